# SPDX-License-Identifier: Apache-2.0
"""From an organisation's outcomes to the one envelope it sends: the whole path as a function of its arguments.

Rules kept here:
* the order is fixed: people within their cap, votes, exact vector, noise, shares, seal, sign; each step has its module;
* the exact vector is overwritten by the step that adds noise, and neither returned, stored nor shown;
* a member without any vote makes an envelope of the same length: noise on zeros;
* it runs inside the ledger's draw transaction and touches neither disk nor network;
* the commitment leaf is signed here, so that a retry sends the same bytes.
"""

from __future__ import annotations

import hashlib
import platform
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from windvane_privacy.envelope import SUBMISSION_ID_BYTES, build_envelope, commit_hash, envelope_length
from windvane_privacy.identity import SIGNATURE_BYTES, SigningKey
from windvane_privacy.ledger_schema import Drawn
from windvane_privacy.log import make_leaf
from windvane_privacy.manifest import Manifest
from windvane_privacy.noise import Noise, measurement_json, release
from windvane_privacy.outcomes import PersonOutcome, by_person
from windvane_privacy.shares import split
from windvane_privacy.votes import Sampler, collect_votes, exact_vector

_INSTALL_LABEL = b"windvane/1/install\0"


@dataclass(frozen=True, slots=True)
class Sender:
    """Who sends: number in the roster, identity key, the two ids that tell a copied installation apart, and the
    vendors to which the roster says that this organisation is tied."""

    member: int
    key: SigningKey
    install_id: str
    machine_id: str
    ties: frozenset[str] = frozenset()


def make_submission(
    rows: Iterable[PersonOutcome],
    manifest: Manifest,
    *,
    sender: Sender,
    day: str,
    admits: Callable[[bytes], bool],
    noise: Noise,
    sampler: Sampler,
    versions: str,
) -> Drawn:
    """One draw. `admits` says whether a person is still within the lifetime cap; `day` is today, UTC.

    A person who is not admitted gives no vote and is charged nothing; nobody else's votes change.

    Raises:
        BoundBroken: the vector is outside its bounds before or after the noise.
        InvalidOutcomes: the rows are no table.
    """
    admitted = [row for person, own in by_person(rows).items() if admits(person) for row in own]
    collected = collect_votes(admitted, manifest, sampler, ties=sender.ties)
    noisy = release(exact_vector(collected.votes, manifest), manifest, noise)
    submission_id = secrets.token_bytes(SUBMISSION_ID_BYTES)
    shares = split(noisy, manifest.t, manifest.n)
    envelope = build_envelope(manifest, sender.member, sender.key, shares, submission_id)
    committed = commit_hash(envelope)
    leaf = make_leaf(
        "commitment",
        manifest.round,
        {
            "manifest": manifest.sha256,
            "member": sender.member,
            "hash": committed,
            "install": installation(submission_id, sender.install_id, sender.machine_id),
            "day": day,
        },
        sender.key,
    )
    return Drawn(
        submission_id=submission_id,
        envelope=envelope,
        commit_hash=committed,
        commitment_leaf=leaf,
        noisy=tuple(noisy),
        persons=collected.people,
        opendp_json=measurement_json(manifest),
        versions=versions,
    )


def installation(submission_id: bytes, install_id: str, machine_id: str) -> str:
    """Hex hash that tells two installations apart afterwards, and nobody anything now: `install_id` is random."""
    parts = (_INSTALL_LABEL, submission_id, bytes.fromhex(install_id), machine_id.encode())
    return hashlib.sha256(b"".join(parts)).hexdigest()


def software_versions() -> str:
    """What drew: this package, the noise, the cryptography and Python, for the ledger."""
    found = []
    for package in ("windvane", "opendp", "cryptography", "numpy"):
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"{package} unknown")
    return "; ".join([*found, f"python {platform.python_version()}"])


@dataclass(frozen=True, slots=True)
class EnvelopeField:
    """One field of the envelope: where it starts, its bytes, its name, and what it tells whoever reads it."""

    offset: int
    length: int
    name: str
    tells: str


def envelope_fields(manifest: Manifest) -> tuple[EnvelopeField, ...]:
    """Every byte of the envelope by name, in order, without a gap; the page before and after a draw shows this."""
    fixed = (
        (4, "version", "the form of the envelope, WVE1"),
        (4, "member", "your public number in the roster"),
        (16, "submission id", "random, made for this draw"),
        (32, "manifest", "SHA-256 of the agreement"),
        (32, "member key", "id of your identity key"),
        (4, "n, t, suite, flags", "guardians, how many open together, how it is sealed, nothing"),
    )
    total, n = envelope_length(manifest), manifest.n
    sealed = (total - sum(length for length, _, _ in fixed) - SIGNATURE_BYTES) // n - 37
    parts = [
        part
        for guardian in manifest.guardians
        for part in (
            (1, f"guardian {guardian.index}", "for whom the next share is sealed"),
            (32, f"round key of guardian {guardian.index}", "id of the key it is sealed to"),
            (4, f"length {guardian.index}", "the same for all members"),
            (sealed, f"sealed share {guardian.index}", "one random-looking share of the noised vector, encrypted"),
        )
    ]
    fields, offset = [], 0
    for length, name, tells in (*fixed, *parts, (SIGNATURE_BYTES, "signature", "yours, over all bytes before it")):
        fields.append(EnvelopeField(offset, length, name, tells))
        offset += length
    return tuple(fields)
