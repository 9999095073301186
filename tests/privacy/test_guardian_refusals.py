# SPDX-License-Identifier: Apache-2.0
"""Every lie of a coordinator that a guardian can see, each refused by its own name, and nothing leaves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from guardian_world import ROUND, World, make_members
from manifests import LOG_ORIGIN, derived, member_key
from windvane_privacy import lot
from windvane_privacy.envelope import commit_hash
from windvane_privacy.errors import (
    BadMemberSignature,
    CommitMismatch,
    DemoManifest,
    FederationTooSmall,
    GuardianNotPinned,
    InconsistentCheckpoint,
    LotBeforeClose,
    LotMismatch,
    MalformedEnvelope,
    MalformedInput,
    ManifestChanged,
    ManifestError,
    ManifestNotLogged,
    ManifestSignatureInvalid,
    NonceMismatch,
    NotCommitted,
    ReceiptRefused,
    RosterError,
    RosterNotSuccessor,
    RosterSignatureMissing,
    RoundNotOpened,
    SetMismatch,
    ShareWillNotOpen,
    SoftwareTooOld,
    UnknownManifest,
    UnknownMember,
    WindvaneError,
    WrongGuardianKey,
)
from windvane_privacy.guardian import join_envelopes
from windvane_privacy.identity import KEY_KEM, SigningKey, key_id
from windvane_privacy.log import leaf_hash, make_leaf, make_receipt, read_leaf
from windvane_privacy.roster import SignedRoster, sign_roster
from windvane_privacy.sealing import RoundKey
from windvane_privacy.signed import sign_manifest

Lie = Callable[[World], None]
other_key = SigningKey.from_raw(derived("somebody else"))


def kinds(world: World) -> list[str]:
    return [read_leaf(leaf).type for leaf in world.leaves]


def place(world: World, kind: str) -> int:
    return kinds(world).index(kind)


# --- ready: the roster ------------------------------------------------------------------------------------------------


def roster_of_somebody_else(world: World) -> None:
    forged = SignedRoster(world.roster, (sign_roster(world.roster, other_key),))
    world.answers["roster"] = lambda parcel: forged.encode()


def roster_edited_after_signing(world: World) -> None:
    signature = sign_roster(world.roster, world.key)
    changed = world.make_roster(make_members(21))
    world.answers["roster"] = lambda parcel: SignedRoster(changed, (signature,)).encode()


def roster_with_too_few(world: World) -> None:
    world.roster = world.make_roster(make_members(19))


def roster_with_too_few_people(world: World) -> None:
    world.roster = world.make_roster(make_members(20, "10-49"))


def roster_with_strange_guardian(world: World) -> None:
    strange = msgspec.structs.replace(world.guardians[2], identity=other_key.public.hex())
    world.roster = msgspec.structs.replace(world.roster, guardians=(*world.guardians[:2], strange))


def roster_of_another_log(world: World) -> None:
    world.roster = msgspec.structs.replace(world.roster, log_origin="another.example/log")


def receipt_of_another_leaf(world: World) -> None:
    world.answers["leaf"] = lambda parcel: make_receipt(0, "0" * 64, "0" * 64, LOG_ORIGIN, world.key)


def receipt_of_another_signer(world: World) -> None:
    world.answers["leaf"] = lambda parcel: make_receipt(0, leaf_hash(parcel.body), "0" * 64, LOG_ORIGIN, other_key)


@pytest.mark.parametrize(
    ("lie", "refusal"),
    [
        (roster_of_somebody_else, RosterSignatureMissing),
        (roster_edited_after_signing, RosterSignatureMissing),
        (roster_with_too_few, FederationTooSmall),
        (roster_with_too_few_people, FederationTooSmall),
        (roster_with_strange_guardian, GuardianNotPinned),
        (roster_of_another_log, RosterError),
        (receipt_of_another_leaf, ReceiptRefused),
        (receipt_of_another_signer, ReceiptRefused),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_ready_refuses(tmp_path: Path, lie: Lie, refusal: type[WindvaneError]) -> None:
    world = World(tmp_path)
    lie(world)
    with world.session(1) as session, pytest.raises(refusal):
        session.ready(ROUND)
    assert "leaf" not in world.asked or refusal is ReceiptRefused


def member_with_another_key(world: World) -> None:
    first = msgspec.structs.replace(make_members(1)[0], key=other_key.public.hex(), key_id=other_key.key_id)
    world.roster = world.make_roster((first, *make_members(20)[1:]), 2, world.roster.sha256)


def member_gone(world: World) -> None:
    world.roster = world.make_roster(make_members(20, first=2), 2, world.roster.sha256)


def another_first_roster(world: World) -> None:
    world.roster = world.make_roster(make_members(21))


def another_history(world: World) -> None:
    world.roster = world.make_roster(make_members(21), 2, "0" * 64)


@pytest.mark.parametrize("lie", [member_with_another_key, member_gone, another_first_roster, another_history])
def test_a_roster_that_does_not_follow_the_last_one_is_refused(tmp_path: Path, lie: Lie) -> None:
    world = World(tmp_path)
    world.all_ready()
    lie(world)
    with world.session(1) as session, pytest.raises(RosterNotSuccessor):
        session.ready("2026-Q4")


# --- after the manifest -----------------------------------------------------------------------------------------------


def second_manifest(world: World) -> None:
    world.signed_manifest = sign_manifest(world.make_manifest(rounds_so_far=1), world.key)


def unsigned_manifest(world: World) -> None:
    changed = msgspec.structs.replace(world.manifest, coordinator=other_key.public.hex())
    world.signed_manifest = sign_manifest(changed, other_key)


def manifest_of_another_round(world: World) -> None:
    world.signed_manifest = sign_manifest(world.make_manifest(round="2026-Q4"), world.key)


def manifest_not_logged(world: World) -> None:
    del world.leaves[place(world, "round-opened")]


def manifest_logged_by_somebody_else(world: World) -> None:
    fields = {"manifest": world.manifest.sha256, "day": "2026-05-01"}
    world.leaves[place(world, "round-opened")] = make_leaf("round-opened", ROUND, fields, other_key)


def replace_entry(world: World, index: int, **changes: str) -> None:
    entries = list(world.manifest.guardians)
    entries[index - 1] = msgspec.structs.replace(entries[index - 1], **changes)
    reopen(world, guardians=entries)


def reopen(world: World, **changes: object) -> None:
    del world.leaves[place(world, "round-opened")]
    world.open_round(world.make_manifest(**changes))


def coordinators_key_for_me(world: World) -> None:
    key = RoundKey.generate()
    replace_entry(world, 1, round_key=key.public.hex(), round_key_id=key.key_id)


def coordinators_key_for_another_guardian(world: World) -> None:
    key = RoundKey.generate()
    replace_entry(world, 2, round_key=key.public.hex(), round_key_id=key_id(KEY_KEM, key.public))


def coordinators_ready_leaf_for_another_guardian(world: World) -> None:
    """The key is swapped in the log too, but the coordinator cannot sign as the guardian."""
    key, nonce = RoundKey.generate(), lot.nonce_commitment(ROUND, 2, derived("chosen"))
    fields = {
        "guardian": 2,
        "round_key": key.public.hex(),
        "round_key_id": key.key_id,
        "nonce_commitment": nonce,
        "day": "2026-05-01",
    }
    leaf = make_leaf("guardian-ready", ROUND, fields, world.key)
    opened = place(world, "round-opened")
    world.leaves.insert(opened, leaf)
    replace_entry(
        world,
        2,
        round_key=key.public.hex(),
        round_key_id=key.key_id,
        nonce_commitment=nonce,
        ready_leaf=leaf_hash(leaf),
    )


def other_nonce_for_me(world: World) -> None:
    replace_entry(world, 1, nonce_commitment="0" * 64)


def other_ready_leaf_for_me(world: World) -> None:
    replace_entry(world, 1, ready_leaf="0" * 64)


def strange_guardian(world: World) -> None:
    replace_entry(world, 3, identity=other_key.public.hex())


def guardians_swapped(world: World) -> None:
    first, second, third = world.manifest.guardians
    swapped = [
        msgspec.structs.replace(second, index=1),
        msgspec.structs.replace(first, index=2),
        third,
    ]
    reopen(world, guardians=swapped)


def rule_nobody_has(world: World) -> None:
    rule = msgspec.structs.replace(world.manifest.rules[0], sha256="0" * 64)
    reopen(world, rules=(rule,))


def one_roster_signature(world: World) -> None:
    while len(world.endorsed) > 1:
        world.endorsed.popitem()


def roster_swapped(world: World) -> None:
    world.roster = world.make_roster(make_members(21), 2, world.roster.sha256)


def sybils_counted(world: World) -> None:
    reference = msgspec.structs.replace(world.manifest.roster, people=world.manifest.roster.people + 100)
    reopen(world, roster=reference)


def ready_leaf_dropped(world: World) -> None:
    del world.leaves[0]


def logged_leaf_edited(world: World) -> None:
    """The chain shown is another one than the one in the signed head."""
    honest = world.show(world.leaves)
    lines = honest.split(b"\n")
    lines[4] = lines[5]
    world.answers["leaves"] = lambda parcel: b"\n".join(lines)


AFTER_MANIFEST: list[tuple[Lie, type[WindvaneError]]] = [
    (second_manifest, ManifestChanged),
    (unsigned_manifest, ManifestSignatureInvalid),
    (manifest_of_another_round, UnknownManifest),
    (manifest_not_logged, ManifestNotLogged),
    (manifest_logged_by_somebody_else, ManifestNotLogged),
    (coordinators_key_for_me, WrongGuardianKey),
    (coordinators_key_for_another_guardian, ManifestError),
    (coordinators_ready_leaf_for_another_guardian, ManifestError),
    (other_nonce_for_me, NonceMismatch),
    (other_ready_leaf_for_me, ManifestError),
    (strange_guardian, GuardianNotPinned),
    (guardians_swapped, GuardianNotPinned),
    (rule_nobody_has, SoftwareTooOld),
    (one_roster_signature, RosterSignatureMissing),
    (roster_swapped, RosterError),
    (sybils_counted, RosterError),
    (ready_leaf_dropped, ReceiptRefused),
    (logged_leaf_edited, InconsistentCheckpoint),
]


@pytest.mark.parametrize(("lie", "refusal"), AFTER_MANIFEST, ids=lambda x: getattr(x, "__name__", ""))
def test_a_round_whose_agreement_does_not_hold_gets_no_nonce(
    tmp_path: Path, lie: Lie, refusal: type[WindvaneError]
) -> None:
    world = World(tmp_path)
    world.to_opened()
    lie(world)
    before = len(world.leaves)
    with world.session(1) as session, pytest.raises(refusal) as caught:
        session.reveal_nonce(ROUND)
    assert caught.type is refusal
    assert len(world.leaves) == before


def test_a_demonstration_is_refused_by_a_policy_that_does_not_take_part(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.to_opened()
    path = world.folders[1] / "policy.toml"
    path.write_text(path.read_text().replace("demo = true", "demo = false"))
    with world.session(1) as session, pytest.raises(DemoManifest):
        session.reveal_nonce(ROUND)


@pytest.mark.parametrize(("day", "holds"), [("2026-06-17", True), ("2026-06-18", False)])
def test_a_real_manifest_is_logged_fourteen_days_before_the_first_event(tmp_path: Path, day: str, holds: bool) -> None:
    world = World(tmp_path, demo=False)
    world.all_ready()
    world.open_round(day=day)
    with world.session(1) as session, pytest.raises(LotBeforeClose if holds else ManifestNotLogged):
        session.reveal_nonce(ROUND)


def test_a_real_round_is_not_closed_early(tmp_path: Path) -> None:
    world = World(tmp_path, demo=False)
    world.to_closed()
    world.now = world.now.replace(day=30)
    with world.session(1) as session, pytest.raises(LotBeforeClose):
        session.reveal_nonce(ROUND)
    assert "nonce" not in kinds(world)


# --- the closed set ---------------------------------------------------------------------------------------------------


def close_as(world: World, rows: list[tuple[int, str]]) -> None:
    world.say("round-closed", set_root=lot.set_root(rows), members=len(rows))


def member_left_out(world: World) -> None:
    close_as(world, world.accepted()[:-1])


def other_root(world: World) -> None:
    world.say("round-closed", set_root=lot.set_root(world.accepted()[:-1]), members=20)


def other_number(world: World) -> None:
    world.say("round-closed", set_root=lot.set_root(world.accepted()), members=19)


def accepted_without_commitment(world: World) -> None:
    found = [leaf for leaf in world.leaves if read_leaf(leaf).type == "commitment"]
    world.leaves.remove(found[3])
    close_as(world, world.accepted())


def commitment_by_the_coordinator(world: World) -> None:
    """A commitment in the member's name, signed by nobody but the coordinator's friend."""
    at = next(i for i, leaf in enumerate(world.leaves) if read_leaf(leaf).type == "commitment")
    member = read_leaf(world.leaves[at]).fields["member"]
    digest = read_leaf(world.leaves[at]).fields["hash"]
    fields = {
        "manifest": world.manifest.sha256,
        "member": member,
        "hash": digest,
        "install": "0" * 64,
        "day": "2026-10-02",
    }
    world.leaves[at] = make_leaf("commitment", ROUND, fields, other_key)
    close_as(world, world.accepted())


def second_draw_accepted(world: World) -> None:
    """The member committed twice (a restored backup); the coordinator accepts the second envelope."""
    at = next(i for i, leaf in enumerate(world.leaves) if read_leaf(leaf).type == "commitment")
    member = read_leaf(world.leaves[at]).fields["member"]
    world.leaves.insert(at, world.commitment(member, "1" * 64))
    close_as(world, world.accepted())


def late_commitment(world: World) -> None:
    at = next(i for i, leaf in enumerate(world.leaves) if read_leaf(leaf).type == "commitment")
    fields = read_leaf(world.leaves[at]).fields
    world.leaves[at] = world.commitment(fields["member"], fields["hash"], day="2026-10-05")
    close_as(world, world.accepted())


def accepted_twice(world: World) -> None:
    member, digest = world.accepted()[0]
    world.say("accepted", "2026-10-03", member=member, hash=digest)
    close_as(world, world.accepted()[:-1])


def accepted_from_outside(world: World) -> None:
    world.put(world.commitment(77, "1" * 64))
    world.say("accepted", "2026-10-02", member=77, hash="1" * 64)
    close_as(world, world.accepted())


def closed_by_somebody_else(world: World) -> None:
    rows = world.accepted()
    fields = {"set_root": lot.set_root(rows), "members": len(rows), "day": "2026-10-04"}
    world.put(make_leaf("round-closed", ROUND, fields, other_key))


def stopped_by_hand(world: World) -> None:
    close_as(world, world.accepted())
    world.say("incident", what="aborted", note="by the operator")


def too_few_accepted(world: World) -> None:
    for leaf in [x for x in world.leaves if read_leaf(x).type == "accepted"][:1]:
        world.leaves.remove(leaf)
    close_as(world, world.accepted())


@pytest.mark.parametrize(
    ("lie", "refusal"),
    [
        (member_left_out, SetMismatch),
        (other_root, SetMismatch),
        (other_number, SetMismatch),
        (accepted_without_commitment, NotCommitted),
        (commitment_by_the_coordinator, NotCommitted),
        (second_draw_accepted, CommitMismatch),
        (late_commitment, NotCommitted),
        (accepted_twice, SetMismatch),
        (accepted_from_outside, UnknownMember),
        (closed_by_somebody_else, LotBeforeClose),
        (stopped_by_hand, RoundNotOpened),
        (too_few_accepted, RoundNotOpened),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_a_closed_set_that_the_log_does_not_bear_out_gets_no_nonce(
    tmp_path: Path, lie: Lie, refusal: type[WindvaneError]
) -> None:
    world = World(tmp_path)
    world.to_submitted()
    lie(world)
    with world.session(1) as session, pytest.raises(refusal) as caught:
        session.reveal_nonce(ROUND)
    assert caught.type is refusal
    assert "nonce" not in kinds(world)


def test_only_the_first_closing_counts(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.to_closed()
    close_as(world, world.accepted()[:-1])
    world.all_reveal()
    told = [read_leaf(leaf) for leaf in world.leaves if read_leaf(leaf).type == "nonce"]
    assert {leaf.fields["set_root"] for leaf in told} == {lot.set_root(world.accepted())}


# --- the lot ----------------------------------------------------------------------------------------------------------


def draw(world: World, nonces: list[str | None], digest: str | None = None, root: str | None = None) -> None:
    table = lot.cohorts_sha256(world.table(nonces))
    world.cohorts = world.table(nonces)
    world.say("lot", set_root=root or lot.set_root(world.accepted()), nonces=nonces, cohorts_sha256=digest or table)


def logged_nonce_left_out(world: World) -> None:
    draw(world, [*world.nonces()[:2], None])


def nonce_made_up(world: World) -> None:
    draw(world, [*world.nonces()[:2], "1" * 64])


def cohorts_made_up(world: World) -> None:
    draw(world, world.nonces(), digest="0" * 64)


def nonces_told_wrong(world: World) -> None:
    """The cohorts are the right ones, but whoever recomputes them from the lot's own entry gets others."""
    table = lot.cohorts_sha256(world.table(world.nonces()))
    draw(world, [*world.nonces()[:2], None], digest=table)


def lot_for_another_set(world: World) -> None:
    draw(world, world.nonces(), root="0" * 64)


def one_nonce(world: World) -> None:
    world.leaves = [leaf for leaf in world.leaves if not _told_by(leaf, {2, 3})]
    draw(world, world.nonces())


def wrong_nonce(world: World) -> None:
    """Guardian 2 commits to one nonce and reveals another."""
    at = next(i for i, leaf in enumerate(world.leaves) if _told_by(leaf, {2}))
    fields = {**read_leaf(world.leaves[at]).fields, "nonce": "1" * 64}
    with world.session(2) as session:
        world.leaves[at] = make_leaf("nonce", ROUND, fields, session._state.identity)
    draw(world, world.nonces())


def _told_by(raw: bytes, guardians: set[int]) -> bool:
    leaf = read_leaf(raw)
    return leaf.type == "nonce" and leaf.fields["guardian"] in guardians


@pytest.mark.parametrize(
    ("lie", "refusal"),
    [
        (logged_nonce_left_out, LotMismatch),
        (nonce_made_up, LotMismatch),
        (nonces_told_wrong, LotMismatch),
        (cohorts_made_up, LotMismatch),
        (lot_for_another_set, LotMismatch),
        (one_nonce, LotMismatch),
        (wrong_nonce, NonceMismatch),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_a_lot_that_the_nonces_do_not_give_opens_nothing(
    tmp_path: Path, lie: Lie, refusal: type[WindvaneError]
) -> None:
    world = World(tmp_path)
    world.to_closed()
    # Guardian 1 reveals last: nothing it saw before is rewritten by the lie.
    world.all_reveal(2, 3, 1) if lie not in (one_nonce, wrong_nonce) else world.all_reveal(1, 2, 3)
    lie(world)
    with world.session(1) as session, pytest.raises(refusal):
        session.open(ROUND)
    assert not world.results


# --- envelopes --------------------------------------------------------------------------------------------------------


def serve(world: World, raws: list[bytes]) -> None:
    world.answers["envelopes"] = lambda parcel: join_envelopes(raws)


def honest(world: World) -> list[bytes]:
    return [world.envelopes[n] for n, _ in sorted(world.accepted())]


def envelope_dropped(world: World) -> None:
    serve(world, honest(world)[1:])


def envelope_added(world: World) -> None:
    serve(world, [*honest(world), honest(world)[0]])


def envelopes_swapped(world: World) -> None:
    first, second, *rest = honest(world)
    serve(world, [second, first, *rest])


def envelope_changed(world: World) -> None:
    first, *rest = honest(world)
    serve(world, [first[:-1] + bytes([first[-1] ^ 1]), *rest])


def envelope_cut(world: World) -> None:
    first, *rest = honest(world)
    serve(world, [first[:-1], *rest])


def answer_cut(world: World) -> None:
    world.answers["envelopes"] = lambda parcel: join_envelopes(honest(world))[:-1]


@pytest.mark.parametrize(
    ("lie", "refusal"),
    [
        (envelope_dropped, SetMismatch),
        (envelope_added, SetMismatch),
        (envelopes_swapped, CommitMismatch),
        (envelope_changed, CommitMismatch),
        (envelope_cut, MalformedEnvelope),
        (answer_cut, MalformedEnvelope),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_envelopes_that_are_not_the_closed_set_open_nothing(
    tmp_path: Path, lie: Lie, refusal: type[WindvaneError]
) -> None:
    world = World(tmp_path)
    world.to_lot()
    lie(world)
    with world.session(1) as session, pytest.raises(refusal):
        session.open(ROUND)
    assert not world.results


def signed_by_another(world: World, member: int) -> bytes:
    raw = world.make_envelope(member)
    return raw[:-64] + member_key(member + 1).sign(b"windvane/1/envelope\0", raw[:-64])


def naming_another(world: World, member: int) -> bytes:
    return world.make_envelope(member + 1)


def garbage_shares(world: World, member: int) -> bytes:
    raw = bytearray(world.make_envelope(member))
    raw[200] ^= 1
    return bytes(raw[:-64]) + member_key(member).sign(b"windvane/1/envelope\0", bytes(raw[:-64]))


@pytest.mark.parametrize(
    ("make", "refusal"),
    [(signed_by_another, BadMemberSignature), (naming_another, BadMemberSignature), (garbage_shares, ShareWillNotOpen)],
)
def test_a_committed_envelope_that_does_not_hold_up_opens_nothing(
    tmp_path: Path, make: Callable[[World, int], bytes], refusal: type[WindvaneError]
) -> None:
    world = World(tmp_path)
    world.to_submitted()
    raw = make(world, 5)
    for leaf in [x for x in world.leaves if read_leaf(x).fields.get("member") == 5]:
        world.leaves.remove(leaf)
    world.envelopes[5] = raw
    world.put(world.commitment(5, commit_hash(raw)))
    world.say("accepted", "2026-10-02", member=5, hash=commit_hash(raw))
    world.close()
    world.all_reveal()
    world.draw_lot()
    with world.session(1) as session, pytest.raises(refusal):
        session.open(ROUND)
    assert not world.results


def test_a_log_that_got_shorter_is_refused(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.to_lot()
    world.open(1)
    world.leaves = world.leaves[:-3]
    with world.session(1) as session, pytest.raises(InconsistentCheckpoint):
        session.open(ROUND)


@pytest.mark.parametrize("name", ["", "../up", "a/b", "x" * 33, "Q3\n"])
def test_a_rounds_name_is_never_a_path(tmp_path: Path, name: str) -> None:
    world = World(tmp_path)
    with world.session(1) as session, pytest.raises(MalformedInput):
        session.ready(name)
    assert not world.asked
