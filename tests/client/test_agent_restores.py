# SPDX-License-Identifier: Apache-2.0
"""What happens to a ledger in an ordinary office: crashes, backups, copies, a clock, an old log; each case by name.

| what happened | test |
|---|---|
| crash before the draw is stored | `test_a_crash_inside_the_draw_draws_again` |
| crash after the draw, commitment sent or not | `test_retry_sends_identical_bytes` |
| backup from before the draw, old commitment in the log | `test_restored_backup_burns_the_round` |
| the same, old commitment still on its way | `test_a_commitment_that_was_on_its_way_*` |
| backup restored after the reveal | `test_a_backup_from_before_the_draw_restored_after_the_reveal_burns` |
| machine cloned before the draw | `test_cloned_machine_first_commitment_wins` |
| machine cloned after the draw | `test_a_clone_from_after_the_draw_reveals_the_same_bytes` |
| ledger deleted | `test_lost_ledger_fails_closed` |
| ledger deleted and made anew | `test_a_deleted_and_remade_member_*`, `test_a_lost_draw_is_charged_to_everyone` |
| clock set back or forward | `test_local_clock_cannot_open_a_round`, `test_a_clock_that_contradicts_the_log_refuses` |
| a log on which nothing happens | `test_quiet_log_does_not_stop_a_correct_clock` |
| the coordinator shows an old log | `test_an_older_log_than_the_one_seen_is_refused` |
| the same, to a restored backup | `test_a_restored_ledger_does_not_believe_an_older_log` |
| the coordinator shows part of its log | `test_scan_of_a_selection_is_refused` |
| two commitments of ours in the log | `test_second_commitment_in_the_log_burns` |
| the ledger's file is damaged | `test_a_damaged_ledger_sends_nothing` |
| the round fails | `test_failed_round_stays_charged` |
"""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

from member_world import LyingCourier, MemberWorld
from small_federation import ROUND
from windvane_privacy.couriers import Parcel
from windvane_privacy.errors import (
    CoordinatorUnreachable,
    DuplicateSubmission,
    InconsistentCheckpoint,
    LedgerDamaged,
    RoundBurned,
)
from windvane_privacy.ledger import Ledger
from windvane_privacy.ledger_schema import BurnReason, State


def _bodies(kind: str, *couriers: LyingCourier) -> set[bytes]:
    return {parcel.body for courier in couriers for parcel in courier.sent if parcel.kind == kind}


def _drawn_and_cut_off(world: MemberWorld, kind: str = "leaf") -> bytes:
    """The commitment of a member whose parcel of this kind was lost on its way out."""
    with world.agent(LyingCourier(world.courier, lose=[(kind, "request")])) as agent:
        with pytest.raises(CoordinatorUnreachable):
            agent.submit(ROUND)
        return agent.ledger.round(ROUND).commitment_leaf


def test_a_crash_inside_the_draw_draws_again(world: MemberWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    world.approve()
    courier = LyingCourier(world.courier)
    real, hashes = Ledger._insert, []

    def crash(ledger: Ledger, *given: object, **columns: object) -> None:
        real(ledger, *given, **columns)
        hashes.append(columns["commit_hash"])
        if len(hashes) == 1:
            raise KeyboardInterrupt  # everything is written, nothing is committed

    monkeypatch.setattr(Ledger, "_insert", crash)
    with world.agent(courier) as agent, pytest.raises(KeyboardInterrupt):
        agent.submit(ROUND)
    assert _bodies("leaf", courier) == set()
    with world.agent(courier) as agent:
        assert agent.submit(ROUND).commit_hash == hashes[1] != hashes[0]
        assert agent.ledger.lifetime() == (1, world.manifest.rho)
    assert len(_bodies("leaf", courier)) == len(_bodies("reveal", courier)) == 1


def test_a_commitment_that_was_on_its_way_and_arrives_first_burns_the_second_draw(world: MemberWorld) -> None:
    world.approve()
    before = world.backup()
    on_its_way = _drawn_and_cut_off(world)
    world.restore(before)
    second = _drawn_and_cut_off(world)  # nothing tells this ledger of the first draw
    assert second != on_its_way
    world.small.send("leaf", on_its_way)
    courier = LyingCourier(world.courier)
    with world.agent(courier) as agent:
        with pytest.raises(RoundBurned):
            agent.submit(ROUND)
        entry = agent.ledger.round(ROUND)
        assert (entry.state, entry.reason) == (State.BURNED, BurnReason.FOREIGN_COMMITMENT)
        assert entry.envelope is None
        assert agent.ledger.lifetime() == (1, world.manifest.rho)
    assert _bodies("reveal", courier) == set()


def test_a_commitment_that_was_on_its_way_and_arrives_second_is_refused(world: MemberWorld) -> None:
    world.approve()
    before = world.backup()
    on_its_way = _drawn_and_cut_off(world)
    world.restore(before)
    courier = LyingCourier(world.courier)
    with world.agent(courier) as agent:
        assert agent.submit(ROUND).state is State.ACCEPTED
    with pytest.raises(DuplicateSubmission):
        world.small.send("leaf", on_its_way)
    assert len(_bodies("reveal", courier)) == len(world.mine("commitment")) == 1


def test_a_backup_from_before_the_draw_restored_after_the_reveal_burns(world: MemberWorld) -> None:
    """The envelope left, whether or not it arrived; a second one never does."""
    world.approve()
    before = world.backup()
    _drawn_and_cut_off(world, "reveal")
    world.restore(before)
    courier = LyingCourier(world.courier)
    with world.agent(courier) as agent:
        with pytest.raises(RoundBurned):
            agent.submit(ROUND)
        assert agent.ledger.round(ROUND).everyone
    assert _bodies("leaf", courier) == _bodies("reveal", courier) == set()


@pytest.mark.parametrize("kind", ["leaf", "reveal"])
def test_a_clone_from_after_the_draw_reveals_the_same_bytes(world: MemberWorld, kind: str) -> None:
    world.approve()
    _drawn_and_cut_off(world, kind)
    original, clone = world.folder, world.backup("clone")
    couriers = []
    for place in (clone, original):
        world.folder = place
        couriers.append(LyingCourier(world.courier))
        with world.agent(couriers[-1]) as agent:
            assert agent.submit(ROUND).state is State.ACCEPTED
    assert len(_bodies("reveal", *couriers)) == 1
    assert len(world.mine("commitment")) == len(world.mine("accepted")) == 1


def test_an_older_log_than_the_one_seen_is_refused(world: MemberWorld) -> None:
    world.approve()
    old = world.small.send("leaves", b"", "")
    _drawn_and_cut_off(world, "reveal")

    def lie(parcel: Parcel, answer: bytes) -> bytes:
        return old if parcel.kind == "leaves" else answer

    courier = LyingCourier(world.courier, change=lie)
    with world.agent(courier) as agent:
        with pytest.raises(InconsistentCheckpoint):
            agent.submit(ROUND)
        assert agent.ledger.round(ROUND).state in (State.COMMITTED, State.REVEALED)
    with world.agent() as agent:
        assert agent.submit(ROUND).state is State.ACCEPTED


@pytest.mark.parametrize("kind", ["leaf", "reveal"])
def test_a_damaged_ledger_sends_nothing(world: MemberWorld, kind: str) -> None:
    world.approve()
    _drawn_and_cut_off(world, kind)
    connection = sqlite3.connect(world.folder / "ledger" / "ledger.db")
    connection.execute("DROP TRIGGER round_frozen")
    connection.execute("UPDATE round SET rho_num = 1")
    connection.commit()
    connection.close()
    courier = LyingCourier(world.courier)
    with world.agent(courier) as agent:
        with pytest.raises(LedgerDamaged):
            agent.submit(ROUND)
        assert agent.ledger.round(ROUND) is not None  # it can still be read
    assert _bodies("leaf", courier) == _bodies("reveal", courier) == set()


def test_every_case_of_the_table_has_its_test() -> None:
    folder = Path(__file__).resolve().parents[1]
    names = {name for path in folder.rglob("test_*.py") for name in re.findall(r"def (test_\w+)", path.read_text())}
    asked = re.findall(r"`(test_\w+)(\*?)`", __doc__ or "")
    assert len(asked) >= 16
    for name, more in asked:
        assert any(one == name or (more and one.startswith(name)) for one in names), name
