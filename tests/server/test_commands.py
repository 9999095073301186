# SPDX-License-Identifier: Apache-2.0
"""The commands of coordinator and guardians, against a coordinator that runs as a process of its own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from small_federation import FAMILIES, ROUND, Member, SmallFederation, dates_around
from windvane_client.https import HttpsCourier
from windvane_privacy.couriers import Parcel
from windvane_privacy.errors import (
    AppealRunning,
    ConfigurationError,
    FederationTooSmall,
    InsecureAddress,
    NotReady,
    PolicyMissing,
    StateExists,
    UnknownManifest,
)
from windvane_privacy.identity import SigningKey
from windvane_privacy.report_file import verify_quarter
from windvane_privacy.roster import make_enrolment
from windvane_privacy.signed import decode_federation, verify_signed_manifest
from windvane_privacy.witness_state import pin_log

with warnings.catch_warnings():
    # typer 0.20 imports names that click 8.4 deprecates.
    warnings.simplefilter("ignore", DeprecationWarning)
    import typer
    from typer.testing import CliRunner, Result

    from windvane.coordinator import app as coordinator_app
    from windvane.guardian import app as guardian_app
    from windvane.witness import app as witness_app

RUNNER = CliRunner()


def call(app: typer.Typer, *arguments: object) -> Result:
    """Run a command; a refusal comes out as its error, as `windvane.main` sees it."""
    result = RUNNER.invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def coordinator(*arguments: object) -> Result:
    return call(coordinator_app, *arguments)


def guardian(*arguments: object) -> Result:
    return call(guardian_app, *arguments)


def witness(*arguments: object) -> Result:
    return call(witness_app, *arguments)


def init_all(folder: Path) -> list[object]:
    cards: list[object] = []
    for j in (1, 2, 3):
        guardian("init", "--state", folder / f"g{j}", "--name", f"Guardian {j}", "--group", f"Group {j}")
        cards += ["--guardian", folder / f"g{j}" / "guardian.json"]
    for j in (1, 2, 3):
        witness("init", "--state", folder / f"w{j}", "--name", f"witness-{j}.test")
        cards += ["--witness", folder / f"w{j}" / "witness.vkey"]
    return [*cards, "--quorum", "2", "--faulty", "0"]


def write_plan(path: Path) -> Path:
    order = ", ".join(json.dumps(family.id) for family in FAMILIES)
    families = "\n".join(
        f'[[family]]\nid = "{f.id}"\nlabel = "{f.label}"\nvendor = "{f.vendor}"\npatterns = []' for f in FAMILIES
    )
    times = "\n".join(f'{name} = "{moment}"' for name, moment in dates_around(datetime.now(UTC)).items())
    path.write_text(
        f'quarter = "2026-Q3"\nsource = "a test"\norder = [{order}]\ndelta = "1e-8"\n{families}\n[dates]\n{times}\n',
        encoding="utf-8",
    )
    return path


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """A set-up federation whose coordinator listens."""
    coordinator("init", "--state", tmp_path / "c", "--name", "Test Federation", "--demo", *init_all(tmp_path))
    for j in (1, 2, 3):
        pin_log(tmp_path / f"w{j}", decode_federation((tmp_path / "c" / "federation.json").read_bytes()).log_policy.log)
    at_once = [str(part) for j in (1, 2, 3) for part in ("--witness", tmp_path / f"w{j}")]
    command = [sys.executable, "-c", "from windvane.main import run; run()", "coordinator", "run", *at_once]
    process = subprocess.Popen(
        [*command, "--state", str(tmp_path / "c"), "--port", "0", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["address"]
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(20)


@pytest.fixture
def courier(address: str) -> Iterator[HttpsCourier]:
    with HttpsCourier(address) as made:
        yield made


@pytest.mark.process
def test_a_round_by_commands_alone(tmp_path: Path, address: str, courier: HttpsCourier) -> None:
    state = ("--state", tmp_path / "c")
    plan = write_plan(tmp_path / "plan.toml")
    for j in (1, 2, 3):
        pinned = guardian("init", "--state", tmp_path / f"g{j}", "--coordinator", address, "--demo", "--yes")
        assert "is pinned" in pinned.output
    with pytest.raises(UnknownManifest):
        guardian("ready", ROUND, "--state", tmp_path / "g1")
    with pytest.raises(FederationTooSmall):
        coordinator("open-round", ROUND, "--plan", plan, *state)
    small = bare_members(tmp_path, courier)
    with pytest.raises(NotReady, match="Guardian 1"):
        coordinator("open-round", ROUND, "--plan", plan, *state)
    for j in (1, 2, 3):
        said = guardian("ready", ROUND, "--state", tmp_path / f"g{j}").output
        assert "Organisation 20" in said
    opened = json.loads(coordinator("open-round", ROUND, "--plan", plan, "--json", *state).stdout)
    public = bytes.fromhex(json.loads((tmp_path / "c" / "federation.json").read_bytes())["coordinator"])
    manifest = verify_signed_manifest(small.send("manifest"), public)
    assert opened == {"round": ROUND, "manifest": manifest.sha256}
    for number in range(1, 21):
        small.submit(manifest, number)
    with pytest.raises(NotReady, match="Nonces are missing"):
        coordinator("close-round", ROUND, *state)
    with pytest.raises(NotReady):
        guardian("open", ROUND, "--state", tmp_path / "g1")
    for j in (2, 3, 1):
        try:
            guardian("open", ROUND, "--state", tmp_path / f"g{j}")
        except NotReady:
            continue
    for j in (2, 3):
        guardian("open", ROUND, "--state", tmp_path / f"g{j}", "--json")
    assert json.loads(coordinator("close-round", ROUND, "--json", *state).stdout)["crosschecked"] is True
    looked = guardian("inspect", ROUND, "--state", tmp_path / "g1").output
    assert looked.count("holds") == 3
    assert "opens" in guardian("verify", ROUND, "--state", tmp_path / "g1").output
    assert "opened for set" in guardian("log", "--state", tmp_path / "g1").output
    site = Path(json.loads(coordinator("publish", ROUND, "--json", *state).stdout)["site"])
    assert verify_quarter(site / "2026-q3", public).demo
    with pytest.raises(AppealRunning):
        guardian("destroy", ROUND, "--state", tmp_path / "g1")


@pytest.mark.process
def test_an_aborted_round_is_said_and_published_by_commands(tmp_path: Path, address: str) -> None:
    state = ("--state", tmp_path / "c")
    with pytest.raises(FederationTooSmall):
        coordinator("open-round", ROUND, "--plan", write_plan(tmp_path / "plan.toml"), *state)
    assert "is stopped" in coordinator("abort", ROUND, "--reason", "legal", *state).output
    assert "is published" in coordinator("publish", ROUND, *state).output


def test_set_up_happens_once_and_says_the_fingerprints(tmp_path: Path) -> None:
    cards = init_all(tmp_path)
    said = coordinator("init", "--state", tmp_path / "c", "--name", "Test Federation", *cards).output
    assert "Guardian 3 (Group 3)" in said
    before = {path: path.read_bytes() for path in (tmp_path / "c").iterdir()}
    with pytest.raises(StateExists):
        coordinator("init", "--state", tmp_path / "c", "--name", "Test Federation", *cards)
    with pytest.raises(StateExists):
        guardian("init", "--state", tmp_path / "g1", "--name", "Guardian 1", "--group", "Group 1")
    assert {path: path.read_bytes() for path in (tmp_path / "c").iterdir()} == before
    assert all(path.stat().st_mode & 0o077 == 0 for path in before if path.suffix in (".key", ".db"))


def test_a_federation_needs_three_guardians_of_three_groups(tmp_path: Path) -> None:
    cards = init_all(tmp_path)
    for given in ([*cards[:4], *cards[6:]], [*cards[:4], *cards[2:4], *cards[6:]]):
        with pytest.raises(ConfigurationError):
            coordinator("init", "--state", tmp_path / "c", "--name", "Test Federation", *given)
    assert not (tmp_path / "c").exists()


def test_a_guardian_without_a_pinned_coordinator_does_nothing(tmp_path: Path) -> None:
    init_all(tmp_path)
    for command in ("ready", "open"):
        with pytest.raises((ConfigurationError, PolicyMissing)):
            guardian(command, ROUND, "--state", tmp_path / "g1")


def test_a_guardian_without_a_round_has_an_empty_record(tmp_path: Path) -> None:
    init_all(tmp_path)
    assert guardian("log", "--state", tmp_path / "g1").output.strip() == "No round yet."
    assert json.loads(guardian("log", "--state", tmp_path / "g1", "--json").stdout) == []


def test_the_network_needs_a_certificate(tmp_path: Path) -> None:
    coordinator("init", "--state", tmp_path / "c", "--name", "Test Federation", *init_all(tmp_path))
    with pytest.raises(InsecureAddress):
        coordinator("run", "--state", tmp_path / "c", "--host", "0.0.0.0", "--port", "0")
    with pytest.raises(ConfigurationError):
        coordinator("run", "--state", tmp_path / "c", "--tls-cert", tmp_path / "none.pem", "--port", "0")


def bare_members(folder: Path, courier: HttpsCourier) -> SmallFederation:
    """Twenty members as keys only, over HTTPS' own courier."""
    small = object.__new__(SmallFederation)
    small.folder, small.members, small.courier = folder, [], courier
    small.clock = lambda: datetime.now(UTC)  # type: ignore[assignment]  # the members' own clock
    for number in range(1, 21):
        key, name = SigningKey.generate(), f"Organisation {number}"
        courier.exchange(Parcel("enrol", "", make_enrolment(key, name, "100-249", [])))
        small.members.append(Member(number, key, name))
    return small
