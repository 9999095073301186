# SPDX-License-Identifier: Apache-2.0
"""Every lie of closing week that a guardian can see (set, lot, envelopes): refused by its own name, nothing leaves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from guardian_world import ROUND, World, kinds
from manifests import derived, member_key
from windvane_privacy import lot
from windvane_privacy.envelope import commit_hash, join_envelopes
from windvane_privacy.errors import (
    BadMemberSignature,
    CommitMismatch,
    InconsistentCheckpoint,
    LotBeforeClose,
    LotMismatch,
    MalformedEnvelope,
    MalformedInput,
    NonceMismatch,
    NotCommitted,
    RoundNotOpened,
    SetMismatch,
    ShareWillNotOpen,
    UnknownMember,
    WindvaneError,
)
from windvane_privacy.identity import SigningKey
from windvane_privacy.log import make_leaf, read_leaf

Lie = Callable[[World], None]
other_key = SigningKey.from_raw(derived("somebody else"))


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
