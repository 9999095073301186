# SPDX-License-Identifier: Apache-2.0
"""The coordinator behind its own certificate: who trusts its authority gets through, nobody else does."""

from __future__ import annotations

import ipaddress
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from small_federation import SmallFederation
from windvane_client.https import HttpsCourier
from windvane_privacy.couriers import Parcel
from windvane_privacy.errors import CoordinatorUnreachable, InsecureAddress
from windvane_privacy.signed import decode_federation

pytestmark = pytest.mark.process


@dataclass
class Secure:
    """A coordinator that serves https. `ca`: the authority below which its certificate is."""

    address: str
    ca: Path
    coordinator: str


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    folder = tmp_path_factory.mktemp("tls")
    small = SmallFederation(folder / "federation", size=0)
    key = small.coordinator.federation.coordinator
    small.close()
    _write_certificates(folder)
    certificate = ["--tls-cert", str(folder / "server.pem"), "--tls-key", str(folder / "server.key")]
    run = _run(small.state, *certificate)
    with subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            assert server.stdout is not None
            yield Secure(json.loads(server.stdout.readline())["address"], folder / "ca.pem", key)
        finally:
            server.terminate()
            server.wait(20)


def test_a_member_that_trusts_the_authority_gets_through(secure: Secure) -> None:
    assert secure.address.startswith("https://")
    with HttpsCourier(secure.address, ca=secure.ca) as courier:
        assert decode_federation(courier.exchange(Parcel("federation"))).coordinator == secure.coordinator


def test_without_the_authority_nothing_is_exchanged(secure: Secure) -> None:
    with HttpsCourier(secure.address) as courier, pytest.raises(CoordinatorUnreachable):
        courier.exchange(Parcel("federation"))


def test_another_authority_is_not_enough(secure: Secure, tmp_path: Path) -> None:
    _write_certificates(tmp_path)
    with HttpsCourier(secure.address, ca=tmp_path / "ca.pem") as courier, pytest.raises(CoordinatorUnreachable):
        courier.exchange(Parcel("federation"))


def test_a_certificate_for_another_host_is_refused(secure: Secure) -> None:
    elsewhere = secure.address.replace("127.0.0.1", "localhost")
    with HttpsCourier(elsewhere, ca=secure.ca) as courier, pytest.raises(CoordinatorUnreachable):
        courier.exchange(Parcel("federation"))


def test_plain_http_to_the_secure_socket_gets_no_answer(secure: Secure) -> None:
    with HttpsCourier(secure.address.replace("https", "http")) as courier, pytest.raises(CoordinatorUnreachable):
        courier.exchange(Parcel("federation"))


def test_plain_http_beyond_this_machine_is_refused_before_any_connection() -> None:
    with pytest.raises(InsecureAddress):
        HttpsCourier("http://192.0.2.1:8443")


def test_a_network_address_without_a_certificate_is_not_served(tmp_path: Path) -> None:
    small = SmallFederation(tmp_path / "federation", size=0)
    small.close()
    ended = subprocess.run(
        _run(small.state, "--host", "0.0.0.0"),
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert ended.returncode == 1
    assert InsecureAddress.__name__ in ended.stderr
    assert ended.stdout == ""


def _run(state: Path, *options: str) -> list[str]:
    return [
        sys.executable, "-m", "windvane", "coordinator", "run", "--state", str(state), "--port", "0", "--json", *options
    ]  # fmt: skip


def _write_certificates(folder: Path) -> None:
    """ca.pem, and server.pem with server.key for 127.0.0.1 only."""
    now = datetime.now(UTC)
    authority, server = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Throw-away authority")])
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Coordinator")])
    public = authority.public_key()

    def builder(name: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        made = x509.CertificateBuilder().issuer_name(issuer).subject_name(name).public_key(key)
        made = made.serial_number(x509.random_serial_number())
        return made.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(hours=1))

    root = (
        builder(issuer, public)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .sign(authority, hashes.SHA256())
    )
    local = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    leaf = (
        builder(subject, server.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([local]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(public), critical=False)
        .sign(authority, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (folder / "ca.pem").write_bytes(root.public_bytes(pem))
    (folder / "server.pem").write_bytes(leaf.public_bytes(pem))
    (folder / "server.key").write_bytes(
        server.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )


def _key_usage() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
    )  # fmt: skip
