# SPDX-License-Identifier: Apache-2.0
"""Sound inputs of the parsers in `parser_forms`, their signatures, and what is done with what was accepted.

Rules kept here:
* keys are the tests' own, so that a changed document can be signed again as a liar with a real key would sign it;
* what was accepted is used the way its readers use it: sizes, sums, policies and openings follow from it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from log_witnesses import LOG_KEY, PINS, POLICY, WITNESSES, MemoryShelf, note, tree
from manifests import (
    LOG_ORIGIN,
    coordinator_key,
    derived,
    guardian_key,
    guardian_round_key,
    make_manifest,
    member_key,
)
from policies import policy
from report_world import INVENTED
from windvane_privacy import canonical, envelope, field, manifest, roster, sealing, signed
from windvane_privacy import errors as e
from windvane_privacy.budget import clamp_is_negligible
from windvane_privacy.catalogue import Family
from windvane_privacy.claims import Change, Reason, State, measured_claim, silent_claim
from windvane_privacy.couriers import Parcel
from windvane_privacy.identity import SigningKey
from windvane_privacy.layout import Layout
from windvane_privacy.leaf import make_leaf, read_leaf, signed_by
from windvane_privacy.ledger_export import Spend, decode_spends
from windvane_privacy.log import encode_leaves, scan
from windvane_privacy.manifest import Manifest, parse_time
from windvane_privacy.notes import Checkpoint, SignedCheckpoint
from windvane_privacy.parcel_file import Answer
from windvane_privacy.policy import check_manifest, read_policy
from windvane_privacy.policy_change import loosened
from windvane_privacy.proofs import LogProof, encode_log_proof
from windvane_privacy.quorum import Signer
from windvane_privacy.report_file import build_report, read_report, sign_report
from windvane_privacy.shares import split
from windvane_privacy.tally import RESULT_LABEL, GuardianResult, make_result
from windvane_privacy.witness import Request, Witness, parse_request

NOW = datetime(2026, 10, 2, 12, tzinfo=UTC)
SECOND = int(NOW.timestamp())
MEMBER, KEY, COORDINATOR, GUARDIAN = 7, member_key(7), coordinator_key(), guardian_key(1)
SMALL = make_manifest(k=2, cap=1)
"""Ten numbers: an envelope of it is short enough to be changed often."""
FAMILIES = (
    Family("alder", "Alder", "vendor", ("alder-[0-9]+(?:-mini)?", "(?:old)?alder")),
    Family("birch", "Birch", "vendor", (), "2026-02-01", "2027-01-01"),
    Family("cedar", "Cedar", "vendor", ("cedar.*",), None, "2026-08-01"),
)
OTHER = make_manifest(
    members=60, demo=False, k=3, kinds=("coding", "writing"), families=FAMILIES,
    previous_report=derived("report").hex(),
)  # fmt: skip
HASH = derived("some hash").hex()


def signed_again(label: bytes, key: SigningKey) -> Callable[[bytes], bytes]:
    """Gives a changed JSON object the signature that belongs to it; what is no such object stays as it is."""

    def dress(content: bytes) -> bytes:
        try:
            body = canonical.decode(content, max_bytes=1 << 24)
            return canonical.encode({**body, "sig": key.sign(label, content).hex()})
        except (e.MalformedInput, TypeError):
            return content

    return dress


def unsigned(raw: bytes) -> bytes:
    value = canonical.decode(raw, max_bytes=1 << 24)
    del value["sig"]
    return canonical.encode(value)


def bare(value: Any, _raw: bytes) -> bytes:
    """Canonical bytes of a struct."""
    return canonical.encode(msgspec.to_builtins(value))


def text_of(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def bytes_of(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def only(found: Callable[[bytes], Any]) -> Callable[[bytes], bytes]:
    """For checks that return nothing: the input itself, once they have passed."""

    def parse(raw: bytes) -> bytes:
        found(raw)
        return raw

    return parse


def itself(value: Any, _raw: bytes) -> bytes:
    found: bytes = value
    return found


# --- what is done with what was accepted -----------------------------------------------------------------------------


def use_manifest(found: Manifest) -> Manifest:
    for key in (found.coordinator, *(g.identity for g in found.guardians), *(g.round_key for g in found.guardians)):
        bytes.fromhex(key)
    _ = (found.rho, found.share_scale, found.noise_clamp, found.sha256)
    try:
        envelope.envelope_length(found)
        check_manifest(ACCEPTING, found)
        clamp_is_negligible(found)
    except (e.PolicyRefusal, e.ManifestError):
        pass
    _ = parse_time(found.publish_at) + timedelta(days=found.destroy_by_days)
    if found.cell_count < 1_000:
        assert 2 * len(Layout(found).cells) == found.length
    return found


def parse_manifest(raw: bytes) -> Manifest:
    return use_manifest(manifest.decode(raw))


def parse_signed_manifest(raw: bytes) -> Manifest:
    return use_manifest(signed.verify_signed_manifest(raw, COORDINATOR.public))


def sign_manifest(content: bytes) -> bytes:
    sig = COORDINATOR.sign(signed.MANIFEST_LABEL, content).hex()
    return b'{"key":"' + COORDINATOR.key_id.encode() + b'","manifest":' + content + b',"sig":"' + sig.encode() + b'"}'


def parse_roster(raw: bytes) -> roster.SignedRoster:
    found = roster.SignedRoster.decode(raw)
    _ = (found.roster.active, found.roster.people, found.roster.sha256)
    for check in (
        lambda: roster.verify_roster(found, COORDINATOR.public, [guardian_key(j).public for j in (1, 2, 3)]),
        lambda: roster.check_successor(ROSTER.roster, found.roster),
        lambda: found.roster.member(1),
    ):
        try:
            check()
        except e.RosterError:
            pass
    return found


def parse_leaf(raw: bytes) -> Any:
    found = read_leaf(raw)
    signed_by(found, KEY.public)
    return found


def leaf_again(found: Any, raw: bytes) -> bytes:
    fixed = {"type": found.type, "round": found.round, "key": found.key_id, "sig": found.sig}
    return canonical.encode({**found.fields, **fixed, "v": canonical.decode(raw)["v"]})


def parse_envelope(raw: bytes) -> envelope.Envelope:
    found = envelope.parse_envelope(raw, SMALL)
    envelope.verify_envelope(found, KEY.public)
    return found


def envelope_again(found: envelope.Envelope, raw: bytes) -> bytes:
    """From its fields alone; the manifest gives the rest, the signature is the last 64 bytes."""
    head = b"WVE1" + found.member.to_bytes(4, "big") + found.submission_id + bytes.fromhex(found.manifest_sha256)
    head += bytes.fromhex(found.member_key_id) + bytes([SMALL.n, SMALL.t, 1, 0])
    parts = [
        bytes([p.guardian]) + bytes.fromhex(p.round_key_id) + len(p.sealed).to_bytes(4, "big") + p.sealed
        for p in found.parts
    ]
    return head + b"".join(parts) + raw[-64:]


def share_info(found: envelope.Envelope) -> bytes:
    one = found.parts[0]
    return sealing.share_info(
        SMALL.sha256, found.submission_id, found.member, 1, SMALL.t, SMALL.n, one.round_key_id, KEY.key_id, LOG_ORIGIN
    )


def seal_share(content: bytes) -> bytes:
    """The share's plaintext, as a member that lies inside would seal it."""
    return sealing.seal(guardian_round_key(1).public, share_info(ENVELOPE), content)


def open_share(raw: bytes) -> Any:
    first = envelope.Part(1, ENVELOPE.parts[0].round_key_id, raw)
    made = envelope.Envelope(
        ENVELOPE.member, ENVELOPE.submission_id, ENVELOPE.manifest_sha256, ENVELOPE.member_key_id,
        (first, *ENVELOPE.parts[1:]), b"",
    )  # fmt: skip
    return envelope.open_share(made, SMALL, 1, guardian_round_key(1))


def share_again(found: Any, raw: bytes) -> bytes:
    """Sealing is random: the plaintext inside is compared, and the input given back where it is the same."""
    plain = sealing.unseal(guardian_round_key(1), share_info(ENVELOPE), raw)
    return raw if plain[-found.nbytes :] == found.astype("<u8").tobytes() else b""


def parse_request_and_answer(raw: bytes) -> Request:
    """As a witness that is asked: whatever comes, it answers."""
    said = Witness(WITNESSES[0], (Signer(LOG_ORIGIN, LOG_KEY.public),), MemoryShelf()).add_checkpoint(raw, SECOND)
    assert said.status in (200, 400, 403, 404, 409, 422)
    return parse_request(raw)


def proof_again(found: LogProof, raw: bytes) -> bytes:
    """Its `extra` line is read and passed over, so it is put back here."""
    made = encode_log_proof(found)
    head, rest = made[: made.index(b"\n") + 1], made[made.index(b"\n") + 1 :]
    extra = raw[len(head) : raw.index(b"\nindex ") + 1] if raw[len(head) :].startswith(b"extra") else b""
    return head + extra + rest


def parse_scan(raw: bytes) -> Any:
    found = scan(raw, POLICY, now=SECOND)
    _ = found.head.day
    return found


def parse_spends(raw: bytes) -> tuple[Spend, ...]:
    found = decode_spends(raw)
    _ = [(one.rho, float(one.s_i)) for one in found]
    return found


def parse_report(raw: bytes) -> Any:
    found = read_report(raw)
    _ = (found.labels, [claim.letter for claim in found.claims])
    return found


def result_again(found: GuardianResult, _raw: bytes) -> bytes:
    rows = [
        {"cohort": g, "count": count, "share": row.astype("<u8").tobytes().hex()}
        for g, (count, row) in enumerate(zip(found.counts, found.shares, strict=True))
    ]
    body = {
        "schema": "windvane/result/v1", "round": found.round, "manifest": found.manifest, "set_root": found.set_root,
        "guardian": found.guardian, "cohorts": rows, "key": GUARDIAN.key_id,
    }  # fmt: skip
    return signed_again(RESULT_LABEL, GUARDIAN)(canonical.encode(body))


def parse_policy(raw: bytes) -> bytes:
    found = read_policy(raw)
    loosened(ACCEPTING, found)
    try:
        check_manifest(found, SMALL)
    except e.PolicyRefusal:
        pass
    return raw


def with_hash(content: bytes) -> bytes:
    return content + hashlib.sha256(content).digest()


# --- sound inputs ----------------------------------------------------------------------------------------------------

ACCEPTING = policy(demo=True, kinds=("all", "coding", "writing"))
NUMBERS = [3, -4, 5, 0, 1, -1, 2, 9, -9, 7]
SHARES = split(NUMBERS, SMALL.t, SMALL.n)
RAW_ENVELOPE = envelope.build_envelope(SMALL, MEMBER, KEY, SHARES, derived("submission", 16))
ENVELOPE = envelope.parse_envelope(RAW_ENVELOPE, SMALL)
PLAIN_SHARE = sealing.unseal(guardian_round_key(1), share_info(ENVELOPE), ENVELOPE.parts[0].sealed)


def _leaves() -> list[bytes]:
    made = [
        ("commitment", {"manifest": HASH, "member": MEMBER, "hash": HASH, "install": HASH}),
        ("incident", {"what": "stopped", "note": "No."}),
        ("nonce", {"guardian": 1, "nonce": HASH, "set_root": HASH}),
        ("lot", {"set_root": HASH, "nonces": [HASH, None, HASH], "cohorts_sha256": HASH}),
        ("report-published", {"report": HASH, "files": {"index.html": HASH}}),
        ("round-closed", {"set_root": HASH, "members": 30}),
    ]
    return [make_leaf(kind, "2026-Q3", {**fields, "day": "2026-10-02"}, KEY) for kind, fields in made]


def _roster() -> roster.SignedRoster:
    members = tuple(
        roster.RosterMember(
            number, f"Firm {number}", key.public.hex(), key.key_id, state, since, "100-249", ("vendor of elm",)
        )
        for number, key, state, since in (
            (1, member_key(1), "active", "2026-Q3"), (2, member_key(2), "left", "2026-07-01"),
            (5, KEY, "active", "2026-Q1"),
        )
    )  # fmt: skip
    guardians = tuple(
        roster.RosterGuardian(j, f"Guardian {j}", guardian_key(j).public.hex(), f"group {j}") for j in (1, 2, 3)
    )
    made = roster.Roster(
        roster.SCHEMA, 2, HASH, "Test federation", COORDINATOR.public.hex(), LOG_ORIGIN, members, guardians
    )
    keys = (COORDINATOR, guardian_key(1), guardian_key(2))
    return roster.SignedRoster(made, tuple(roster.sign_roster(made, key) for key in keys))


def _report() -> bytes:
    families = tuple(Family(i, label, "Works", ()) for i, label in INVENTED)
    made = make_manifest(order=[i for i, _ in INVENTED], families=families)
    claims = (
        measured_claim(("all", "completion", "alder-4", "birch-2"), State.NO_CLEAR_DIRECTION, Change.FIRST_MEASURED),
        silent_claim(("all", "completion", "alder-4", "cedar-5"), (next(iter(Reason)),), Change.FIRST_MEASURED),
    )
    return build_report(claims, made, previous_sha256=HASH, lot_proof=HASH)


def spends() -> tuple[Spend, ...]:
    common: dict[str, Any] = {
        "schema": "windvane/ledger-entry/v1", "manifest": HASH, "rho_num": 9, "rho_den": 512, "Q": 9, "s": 208, "h": 5,
        "s_i": "93.02", "events_from": "2026-07-01T00:00:00Z", "events_to": "2026-10-01T00:00:00Z", "versions": "v",
        "previous": HASH, "entry": HASH,
    }  # fmt: skip
    drawn = {"member": 7, "q": (3, 2, 1, 1, 2), "everyone": False, "measurement": "{}", "commitment": HASH}
    lost = {"member": None, "q": None, "everyone": True, "measurement": None, "commitment": None}
    return (
        Spend(number=1, round="2026-Q3", **drawn, **common),
        Spend(number=2, round="2026-Q4", **lost, **common),
    )


LEAVES = _leaves()
ROSTER = _roster()
REPORT = _report()
CHECKPOINT = note(LEAVES, NOW)
SHORT = note(LEAVES, NOW, witnesses=())
FEDERATION = signed.Federation(
    signed.FEDERATION_SCHEMA,
    "Test federation",
    COORDINATOR.public.hex(),
    LOG_ORIGIN,
    PINS,
    ROSTER.roster.guardians,
    True,
)
PARCELS = [Parcel("leaf", "2026-Q3", LEAVES[1]), Parcel("reveal", "2026-Q3", b"envelope"), Parcel("enrol", "", b"{}")]
ANSWERS = {
    derived("one"): Answer(b"receipt"),
    derived("two"): Answer(b"", "urn:windvane:problem:not-ready", "Not yet."),
}
TREE = tree(LEAVES)
SIG = sign_report(REPORT, COORDINATOR)
RESULT = make_result(
    SMALL, HASH, 1, [8] * SMALL.cohorts.G, [field.random_elements(SMALL.length)] * SMALL.cohorts.G, GUARDIAN
)
ENROLMENT = roster.make_enrolment(KEY, "Firm 7", "100-249", ["vendor of elm"])


def signed_answer(content: bytes) -> bytes:
    """The `leaves` answer of a log whose own key and witnesses sign whatever lines are given: a log that lies whole."""
    lines = content.split(b"\n")
    checkpoint = Checkpoint(LOG_ORIGIN, len(lines), tree(lines).root())
    signers = (LOG_KEY, *WITNESSES[:2])
    made = SignedCheckpoint(checkpoint, tuple(one.cosign(checkpoint, SECOND) for one in signers))
    return encode_leaves(made.encode(), lines)
