# SPDX-License-Identifier: Apache-2.0
"""What the inbox takes, takes twice, and refuses; nothing that is refused changes what is stored."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from small_federation import ROUND, START, SmallFederation
from windvane_privacy import canonical
from windvane_privacy.couriers import ROUTES, Parcel
from windvane_privacy.envelope import commit_hash
from windvane_privacy.errors import (
    AlreadyEnrolled,
    AlreadyOpened,
    BadMemberSignature,
    CommitMismatch,
    DuplicateSubmission,
    EntryConflict,
    KeyRefused,
    LotBeforeClose,
    MalformedEnvelope,
    MalformedInput,
    MalformedLeaf,
    ManifestChanged,
    NonceMismatch,
    NotCommitted,
    ResultSignatureInvalid,
    RosterError,
    RosterSignatureMissing,
    RoundClosed,
    SetMismatch,
    SignatureInvalid,
    UnknownAddress,
    UnknownGuardian,
    UnknownManifest,
    UnknownMember,
    WindowNotOpen,
    WindvaneError,
)
from windvane_privacy.guardian_state import load_guardian
from windvane_privacy.identity import KEY_KEM, SigningKey, key_id
from windvane_privacy.log import make_leaf, verify_receipt
from windvane_privacy.manifest import Manifest
from windvane_privacy.roster import SignedRoster, endorse, make_enrolment
from windvane_privacy.sealing import RoundKey
from windvane_server.schema import envelopes, leaves, members, metadata


def everything(small: SmallFederation) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table but the checkpoints, which are signed anew while nothing happens."""
    with small.coordinator.store.read() as connection:
        return {
            table.name: [tuple(row) for row in connection.execute(table.select())]
            for table in metadata.sorted_tables
            if table.name != "checkpoints"
        }


def refused(small: SmallFederation, error: type[WindvaneError], kind: str, body: bytes, round_id: str = ROUND) -> None:
    before = everything(small)
    with pytest.raises(error):
        small.send(kind, body, round_id)
    assert everything(small) == before


# --- members -----------------------------------------------------------------------------------------------------


def test_the_same_commitment_and_envelope_get_the_same_receipts_for_ever(
    small: SmallFederation, manifest: Manifest
) -> None:
    made = small.draw(manifest, 1)
    receipt = small.send("leaf", made.leaf)
    federation = small.coordinator.federation
    verify_receipt(receipt, made.leaf, federation.log_policy)
    accepted = small.send("reveal", made.envelope)
    stored = everything(small)
    small.restart()
    assert small.send("leaf", made.leaf) == receipt
    assert small.send("reveal", made.envelope) == accepted
    small.clock.pass_by(days=30)
    assert small.send("leaf", made.leaf) == receipt
    assert small.send("reveal", made.envelope) == accepted
    assert everything(small) == stored


def test_a_second_commitment_is_refused_and_changes_nothing(small: SmallFederation, manifest: Manifest) -> None:
    first = small.draw(manifest, 1)
    second = small.draw(manifest, 1)
    receipt = small.send("leaf", first.leaf)
    refused(small, DuplicateSubmission, "leaf", second.leaf)
    refused(small, CommitMismatch, "reveal", second.envelope)
    small.send("reveal", first.envelope)
    refused(small, CommitMismatch, "reveal", second.envelope)
    assert small.send("leaf", first.leaf) == receipt


def test_an_envelope_without_a_commitment_is_not_taken(small: SmallFederation, manifest: Manifest) -> None:
    refused(small, NotCommitted, "reveal", small.draw(manifest, 1).envelope)


def test_a_commitment_in_another_member_s_name_is_not_logged(small: SmallFederation, manifest: Manifest) -> None:
    made = small.draw(manifest, 1)
    fields = {**canonical.decode(made.leaf)}
    wanted = {name: fields[name] for name in ("manifest", "member", "hash", "install", "day")}
    forged = make_leaf("commitment", ROUND, wanted, small.members[1].key)
    refused(small, SignatureInvalid, "leaf", forged)
    fields["hash"] = "0" * 64
    refused(small, SignatureInvalid, "leaf", canonical.encode(fields))
    small.send("leaf", made.leaf)


def test_commitments_of_strangers_and_of_other_manifests_are_refused(
    small: SmallFederation, manifest: Manifest
) -> None:
    stranger = SigningKey.generate()
    fields = {"manifest": manifest.sha256, "member": 99, "hash": "1" * 64, "install": "2" * 64, "day": "2026-10-02"}
    refused(small, UnknownMember, "leaf", make_leaf("commitment", ROUND, fields, stranger))
    other = {**fields, "member": 1, "manifest": "3" * 64}
    refused(small, ManifestChanged, "leaf", make_leaf("commitment", ROUND, other, small.members[0].key))
    unknown = {**fields, "member": 1}
    refused(small, UnknownManifest, "leaf", make_leaf("commitment", "2030-Q1", unknown, small.members[0].key))


def test_a_member_that_enrolled_after_the_roster_waits_for_the_next_round(
    small: SmallFederation, manifest: Manifest
) -> None:
    late = small.enrol("Late organisation")
    refused(small, UnknownMember, "leaf", small.draw(manifest, late.number).leaf)


@pytest.mark.parametrize("change", ["shorter", "longer", "magic", "another key", "signature", "share"])
def test_an_altered_envelope_is_refused(small: SmallFederation, manifest: Manifest, change: str) -> None:
    made = small.draw(manifest, 1)
    small.send("leaf", made.leaf)
    raw = bytearray(made.envelope)
    wanted: type[WindvaneError] = BadMemberSignature
    if change == "shorter":
        raw, wanted = raw[:-1], MalformedEnvelope
    elif change == "longer":
        raw, wanted = raw + b"\0", MalformedEnvelope
    elif change == "magic":
        raw[0] ^= 1
        wanted = MalformedEnvelope
    elif change == "another key":
        raw[60] ^= 1
    elif change == "signature":
        raw[-1] ^= 1
    else:
        raw[300] ^= 1
    refused(small, wanted, "reveal", bytes(raw))
    small.send("reveal", made.envelope)


def test_the_window_decides_to_the_second(small: SmallFederation, manifest: Manifest) -> None:
    first, second, third = (small.draw(manifest, number) for number in (1, 2, 3))
    small.clock.now = START - timedelta(seconds=1)
    refused(small, WindowNotOpen, "leaf", first.leaf)
    small.clock.now = START
    small.send("leaf", first.leaf)
    small.clock.now = START + timedelta(days=2)
    small.send("leaf", second.leaf)
    small.clock.now = START + timedelta(days=2, seconds=1)
    refused(small, RoundClosed, "leaf", third.leaf)
    small.clock.now = START + timedelta(days=3)
    small.send("reveal", first.envelope)
    small.clock.now = START + timedelta(days=3, seconds=1)
    refused(small, RoundClosed, "reveal", second.envelope)


def test_a_closed_round_takes_no_envelope_and_no_commitment(small: SmallFederation, manifest: Manifest) -> None:
    for number in range(1, 16):
        small.submit(manifest, number)
    late, later = small.draw(manifest, 16), small.draw(manifest, 17)
    small.send("leaf", late.leaf)
    small.coordinator.close_round(ROUND)
    refused(small, RoundClosed, "reveal", late.envelope)
    refused(small, RoundClosed, "leaf", later.leaf)


def test_enrolment_takes_a_card_once_and_neither_name_nor_key_twice(small: SmallFederation) -> None:
    key = SigningKey.generate()
    card = make_enrolment(key, "Ünique Organisation", "50-99", ["Alder works"])
    answer = small.send("enrol", card, "")
    assert small.send("enrol", card, "") == answer
    refused(small, AlreadyEnrolled, "enrol", make_enrolment(key, "Another name", "50-99", []), "")
    copy = make_enrolment(SigningKey.generate(), "üNIQUE organisation", "50-99", [])
    refused(small, AlreadyEnrolled, "enrol", copy, "")
    guardian = load_guardian(small.guardian_folder(1)).identity
    refused(small, AlreadyEnrolled, "enrol", make_enrolment(guardian, "A guardian", "50-99", []), "")
    altered = canonical.decode(card) | {"band": "5000+"}
    refused(small, SignatureInvalid, "enrol", canonical.encode(altered), "")
    weak = canonical.decode(card) | {"key": "01" + "00" * 31}
    refused(small, KeyRefused, "enrol", canonical.encode(weak), "")


# --- guardians ---------------------------------------------------------------------------------------------------


def ready_leaf(key: SigningKey, index: int, round_key: RoundKey, **changes: object) -> bytes:
    fields = {
        "guardian": index,
        "round_key": round_key.public.hex(),
        "round_key_id": round_key.key_id,
        "nonce_commitment": "5" * 64,
        "day": "2026-10-02",
    }
    return make_leaf("guardian-ready", ROUND, fields | changes, key)


def test_only_a_guardian_of_the_federation_can_be_ready(small: SmallFederation) -> None:
    small.coordinator.propose_roster(ROUND)
    round_key, stranger = RoundKey.generate(), SigningKey.generate()
    own = load_guardian(small.guardian_folder(1)).identity
    refused(small, UnknownGuardian, "leaf", ready_leaf(stranger, 1, round_key))
    refused(small, UnknownGuardian, "leaf", ready_leaf(stranger, 4, round_key))
    refused(small, UnknownGuardian, "leaf", ready_leaf(own, 2, round_key))
    wrong_id = ready_leaf(own, 1, round_key, round_key_id=key_id(KEY_KEM, bytes(1216)))
    refused(small, MalformedLeaf, "leaf", wrong_id)
    unproposed = make_leaf(
        "guardian-ready",
        "2030-Q1",
        {
            "guardian": 1,
            "round_key": round_key.public.hex(),
            "round_key_id": round_key.key_id,
            "nonce_commitment": "5" * 64,
            "day": "2026-10-02",
        },
        own,
    )
    refused(small, UnknownManifest, "leaf", unproposed)
    taken = ready_leaf(own, 1, round_key)
    assert small.send("leaf", taken) == small.send("leaf", taken)
    refused(small, EntryConflict, "leaf", ready_leaf(own, 1, RoundKey.generate()))


def test_only_guardians_endorse_and_only_the_proposed_roster(small: SmallFederation) -> None:
    proposed = SignedRoster.decode(small.coordinator.propose_roster(ROUND)).roster
    guardian = load_guardian(small.guardian_folder(1)).identity
    stranger = endorse(proposed, SigningKey.generate())
    refused(small, UnknownGuardian, "endorse", stranger.encode())
    false = canonical.decode(endorse(proposed, guardian).encode()) | {"sig": stranger.sig}
    refused(small, RosterSignatureMissing, "endorse", canonical.encode(false))
    other = canonical.decode(endorse(proposed, guardian).encode()) | {"sha256": "4" * 64}
    refused(small, RosterError, "endorse", canonical.encode(other))
    given = endorse(proposed, guardian).encode()
    assert small.send("endorse", given) == small.send("endorse", given)
    assert len(SignedRoster.decode(small.send("roster")).signatures) == 2


def test_nonces_come_after_the_closing_for_its_set_and_as_committed(small: SmallFederation, manifest: Manifest) -> None:
    guardian = load_guardian(small.guardian_folder(1)).identity

    def nonce(root: str, value: str = "6" * 64) -> bytes:
        fields = {"guardian": 1, "nonce": value, "set_root": root, "day": "2026-10-02"}
        return make_leaf("nonce", ROUND, fields, guardian)

    for number in range(1, 16):
        small.submit(manifest, number)
    refused(small, LotBeforeClose, "leaf", nonce("7" * 64))
    with pytest.raises(LotBeforeClose):
        small.send("envelopes")
    root = small.coordinator.close_round(ROUND)
    refused(small, SetMismatch, "leaf", nonce("7" * 64))
    refused(small, NonceMismatch, "leaf", nonce(root))


def test_results_are_taken_once_and_only_from_their_guardian(small: SmallFederation, manifest: Manifest) -> None:
    for number in range(1, 16):
        small.submit(manifest, number)
    small.coordinator.close_round(ROUND)
    small.nonces()
    with small.guardian(1) as session:
        result = session.open(ROUND)
    assert small.send("result", result) == small.send("result", result)
    value = canonical.decode(result)
    refused(small, UnknownGuardian, "result", canonical.encode(value | {"guardian": 7}))
    refused(small, ResultSignatureInvalid, "result", canonical.encode(value | {"guardian": 2}))
    refused(small, ResultSignatureInvalid, "result", canonical.encode(value | {"set_root": "8" * 64}))
    guardian = load_guardian(small.guardian_folder(1)).identity
    fields = {"guardian": 1, "result": "9" * 64, "set_root": value["set_root"], "day": "2026-10-02"}
    refused(small, AlreadyOpened, "leaf", make_leaf("opened", ROUND, fields, guardian))


# --- anything ----------------------------------------------------------------------------------------------------


def test_entries_of_the_coordinator_cannot_be_sent_in(small: SmallFederation, manifest: Manifest) -> None:
    key = small.members[0].key
    for kind, fields in (
        ("accepted", {"member": 1, "hash": "1" * 64}),
        ("round-closed", {"set_root": "1" * 64, "members": 3}),
        ("incident", {"what": "aborted", "note": "legal"}),
        ("round-opened", {"manifest": manifest.sha256}),
    ):
        refused(small, MalformedLeaf, "leaf", make_leaf(kind, ROUND, {**fields, "day": "2026-10-02"}, key))


def test_unknown_kinds_of_parcels_have_no_address(small: SmallFederation) -> None:
    refused(small, UnknownAddress, "teapot", b"")


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b'{"new":1}', b'{"new":-1,"old":0}', b'{"new":"1","old":0}', b'{"new":99999,"old":0}', b'{"old":0}'],
)
def test_a_proof_is_asked_for_in_one_form(small: SmallFederation, manifest: Manifest, body: bytes) -> None:
    assert small.send("consistency", b'{"new":3,"old":0}', "") == b""
    refused(small, MalformedInput, "consistency", body, "")


@given(body=st.binary(max_size=300), kind=st.sampled_from(sorted(ROUTES)), name=st.text(max_size=10))
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_garbage_raises_only_named_refusals_and_is_never_stored(
    garbage_bin: SmallFederation, body: bytes, kind: str, name: str
) -> None:
    before = everything(garbage_bin)
    for round_id in (ROUND, name):
        try:
            garbage_bin.coordinator.handle(Parcel(kind, round_id, body))
        except WindvaneError:
            pass
    assert everything(garbage_bin) == before


@pytest.fixture(scope="module")
def garbage_bin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallFederation]:
    federation = SmallFederation(tmp_path_factory.mktemp("garbage"), size=1)
    federation.coordinator.propose_roster(ROUND)
    yield federation
    federation.close()


def test_the_log_holds_one_commitment_a_member_whatever_is_sent(small: SmallFederation, manifest: Manifest) -> None:
    for _ in range(3):
        for number in (1, 2):
            try:
                small.send("leaf", small.draw(manifest, number).leaf)
            except DuplicateSubmission:
                pass
    with small.coordinator.store.read() as connection:
        kinds = list(connection.execute(leaves.select().where(leaves.c.kind == "commitment")))
        assert len(kinds) == 2
        assert list(connection.execute(envelopes.select())) == []
        assert len(list(connection.execute(members.select()))) == 20


def test_what_is_stored_of_an_envelope_is_its_bytes_and_hash(small: SmallFederation, manifest: Manifest) -> None:
    made = small.submit(manifest, 1)
    with small.coordinator.store.read() as connection:
        row = connection.execute(envelopes.select()).one()
    assert bytes(row.raw) == made.envelope
    assert row.hash == commit_hash(made.envelope) == made.hash
