# SPDX-License-Identifier: Apache-2.0
"""A whole round with three real guardian sessions: exact sums, one opening, the same bytes after any crash."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

from guardian_world import ROUND, Died, World, make_members
from log_witnesses import note
from windvane_privacy import canonical, log
from windvane_privacy.couriers import Parcel
from windvane_privacy.errors import (
    AlreadyOpened,
    LedgerLocked,
    LotBeforeClose,
    NotReady,
    SetMismatch,
    SpareShareMismatch,
)
from windvane_privacy.guardian_ledger import GuardianLedger
from windvane_privacy.tally import GuardianResult, read_result, tally


def results(world: World) -> dict[int, GuardianResult]:
    identities = {g.index: bytes.fromhex(g.identity) for g in world.guardians}
    return {j: read_result(raw, identities[j]) for j, raw in world.results.items()}


def test_any_two_of_three_guardians_give_the_exact_sums(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.to_lot()
    for j in (1, 2, 3):
        world.open(j)
    found = results(world)
    for chosen in combinations(found, 2):
        sums, checked = tally({j: found[j] for j in chosen}, world.manifest, world.cohorts)
        assert [list(row) for row in sums.sums] == world.true_sums()
        assert sums.sizes == (5, 5, 5, 5)
        assert not checked
    sums, checked = tally(found, world.manifest, world.cohorts)
    assert [list(row) for row in sums.sums] == world.true_sums()
    assert checked


def test_a_real_calendar_is_carried_through(tmp_path: Path) -> None:
    world = World(tmp_path, demo=False)
    world.to_lot()
    for j in (2, 3):
        world.open(j)
    sums, _ = tally(results(world), world.manifest, world.cohorts)
    assert [list(row) for row in sums.sums] == world.true_sums()


def test_a_guardian_that_stays_away_does_not_stop_the_lot_and_may_open_later(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.to_closed()
    world.all_reveal(1, 3)
    world.draw_lot()
    assert world.nonces()[1] is None
    with world.session(2) as session:
        outcome = session.reveal_nonce(ROUND)
    assert not outcome.revealed
    assert world.nonces()[1] is None
    world.open(2)
    world.open(3)
    sums, _ = tally(results(world), world.manifest, world.cohorts)
    assert [list(row) for row in sums.sums] == world.true_sums()


def test_ready_twice_sends_the_same_leaf_and_keeps_the_key(tmp_path: Path) -> None:
    world = World(tmp_path)
    with world.session(1) as session:
        first = session.ready(ROUND)
        assert session.ready(ROUND).round_key_id == first.round_key_id
    with world.session(1) as session:
        again = session.ready(ROUND)
    assert again.round_key_id == first.round_key_id
    assert len(world.leaves) == 1
    assert len(first.new_members) == 20
    assert again.new_members == ()


@pytest.mark.parametrize("dies_at", ["endorse", "leaf"])
def test_a_guardian_that_dies_in_ready_goes_on_with_the_same_key_and_nonce(tmp_path: Path, dies_at: str) -> None:
    world = World(tmp_path)
    sent: list[bytes] = []

    def die(parcel: Parcel) -> bytes:
        sent.append(parcel.body)
        raise Died

    world.answers[dies_at] = die
    with world.session(1) as session, pytest.raises(Died):
        session.ready(ROUND)
    world.answers.clear()
    world.answers["leaf"] = lambda parcel: (sent.append(parcel.body), world.honest(parcel))[1]
    with world.session(1) as session:
        outcome = session.ready(ROUND)
    assert log.read_leaf(sent[-1]).fields["round_key_id"] == outcome.round_key_id
    assert len(set(sent)) == (2 if dies_at == "endorse" else 1)


def test_a_nonce_is_revealed_once_with_the_same_bytes(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.to_closed()
    sent: list[bytes] = []

    def die(parcel: Parcel) -> bytes:
        sent.append(parcel.body)
        raise Died

    world.answers["leaf"] = die
    with world.session(1) as session, pytest.raises(Died):
        session.reveal_nonce(ROUND)
    world.answers.clear()
    world.all_reveal()
    world.all_reveal()
    assert sent[0] in world.leaves
    assert sum(log.read_leaf(leaf).type == "nonce" for leaf in world.leaves) == 3


def test_no_nonce_leaves_before_the_set_is_closed(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.to_submitted()
    with world.session(1) as session, pytest.raises(LotBeforeClose):
        session.reveal_nonce(ROUND)
    assert all(log.read_leaf(leaf).type != "nonce" for leaf in world.leaves)


def test_nothing_is_opened_before_the_lot(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.to_closed()
    world.all_reveal()
    with world.session(1) as session, pytest.raises(NotReady):
        session.open(ROUND)
    assert not world.results


def test_the_result_is_on_the_disk_before_it_leaves_and_a_restart_sends_the_same_bytes(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.to_lot()
    sent: list[bytes] = []

    def die(parcel: Parcel) -> bytes:
        sent.append(parcel.body)
        raise Died

    world.answers["result"] = die
    with world.session(1) as session, pytest.raises(Died):
        session.open(ROUND)
    # A second computation would be possible from here on; it must not happen, so the envelopes are taken away.
    world.answers = {"envelopes": die}
    assert world.open(1) == sent[0]
    assert world.open(1) == sent[0]
    assert len(sent) == 1
    opened = [log.read_leaf(leaf) for leaf in world.leaves if log.read_leaf(leaf).type == "opened"]
    assert [leaf.fields["result"] for leaf in opened] == [canonical.sha256_hex(sent[0])]


def fork_with_one_member_less(world: World) -> None:
    """The coordinator rewrites the closing week as if member 20 had never been accepted."""
    kept = [x for x in world.leaves if log.read_leaf(x).type not in {"round-closed", "nonce", "lot", "opened"}]
    world.leaves = [x for x in kept if not _accepts(x, 20)]
    world.close()


def _accepts(raw: bytes, member: int) -> bool:
    leaf = log.read_leaf(raw)
    return leaf.type == "accepted" and leaf.fields["member"] == member


def test_a_second_set_is_never_opened(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.to_lot()
    first = world.open(1)
    fork_with_one_member_less(world)
    with world.session(1) as session, pytest.raises(AlreadyOpened):
        session.open(ROUND)
    assert world.results == {1: first}


def test_a_nonce_revealed_for_one_set_serves_no_other(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.to_closed()

    def die(parcel: Parcel) -> bytes:
        raise Died

    world.answers["leaf"] = die
    with world.session(1) as session, pytest.raises(Died):
        session.reveal_nonce(ROUND)
    fork_with_one_member_less(world)
    # Without its last head the guardian cannot see the fork in the log; what it revealed still binds it.
    with GuardianLedger(world.folders[1]) as ledger:
        ledger.remember("head", note([], world.now).encode())
    with world.session(1) as session, pytest.raises(SetMismatch):
        session.reveal_nonce(ROUND)
    assert all(log.read_leaf(leaf).type != "nonce" for leaf in world.leaves)


def test_one_altered_share_of_one_guardian_is_seen(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.to_lot()
    for j in (1, 2, 3):
        world.open(j)
    found = results(world)
    for j in found:
        altered = dict(found)
        wrong = found[j].shares[2].copy()
        wrong[3:4] ^= 1
        rows = list(found[j].shares)
        rows[2] = wrong
        bad = found[j]
        altered[j] = GuardianResult(bad.round, bad.manifest, bad.set_root, j, bad.counts, tuple(rows), bad.raw)
        with pytest.raises(SpareShareMismatch):
            tally(altered, world.manifest, world.cohorts)


def test_two_sessions_of_one_guardian_do_not_run_together(tmp_path: Path) -> None:
    world = World(tmp_path)
    with world.session(1), pytest.raises(LedgerLocked):
        world.session(1)


def test_a_step_before_ready_says_so(tmp_path: Path) -> None:
    world = World(tmp_path)
    with world.session(1) as session, pytest.raises(NotReady):
        session.open(ROUND)
    assert not world.asked


def test_progress_counts_every_member(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.to_lot()
    seen: list[tuple[int, int]] = []
    with world.session(1) as session:
        session.open(ROUND, lambda done, of: seen.append((done, of)))
    assert seen == [(i, 20) for i in range(1, 21)]


def test_the_next_rosters_newcomers_are_shown(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.all_ready()
    world.roster = world.make_roster(make_members(22), 2, world.roster.sha256)
    world.endorsed.clear()
    with world.session(1) as session:
        assert [m.number for m in session.ready("2026-Q4").new_members] == [21, 22]
