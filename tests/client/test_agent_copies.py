# SPDX-License-Identifier: Apache-2.0
"""Restored backups, cloned machines and lost state: at most one ciphertext of a member and round is ever revealed."""

from __future__ import annotations

import pytest

from member_world import LyingCourier, MemberWorld
from small_federation import ROUND
from windvane_client.state import machine_id
from windvane_privacy.errors import CoordinatorUnreachable, DuplicateSubmission, InconsistentCheckpoint, RoundBurned
from windvane_privacy.ledger import Ledger
from windvane_privacy.ledger_schema import BurnReason, State
from windvane_privacy.log import make_leaf


def _revealed(*couriers: LyingCourier) -> set[bytes]:
    return {parcel.body for courier in couriers for parcel in courier.sent if parcel.kind == "reveal"}


def test_restored_backup_burns_the_round(world: MemberWorld) -> None:
    world.approve()
    before = world.backup()
    first, second = LyingCourier(world.courier), LyingCourier(world.courier)
    with world.agent(first) as agent:
        agent.submit(ROUND)
    world.restore(before)
    with world.agent(second) as agent:
        with pytest.raises(RoundBurned):
            agent.submit(ROUND)
        entry = agent.ledger.round(ROUND)
        assert (entry.state, entry.reason) == (State.BURNED, BurnReason.FOREIGN_COMMITMENT)
        # Whom the lost draw was about is lost too: everybody is charged.
        assert entry.everyone
        assert agent.ledger.lifetime() == (1, world.manifest.rho)
        assert agent.ledger.own_directions(ROUND)
    assert second.sent
    assert not [p for p in second.sent if p.kind in ("leaf", "reveal")]
    assert len(_revealed(first, second)) == 1


def test_a_backup_from_after_the_draw_sends_the_same_bytes(world: MemberWorld) -> None:
    world.approve()
    couriers = [LyingCourier(world.courier, lose=[("leaf", "request")]), LyingCourier(world.courier)]
    with world.agent(couriers[0]) as agent, pytest.raises(CoordinatorUnreachable):
        agent.submit(ROUND)
    drawn = world.backup()
    for _ in range(2):
        with world.agent(couriers[1]) as agent:
            assert agent.submit(ROUND).state is State.ACCEPTED
        world.restore(drawn)
    assert len(_revealed(*couriers)) == 1
    assert len(world.mine("commitment")) == len(world.mine("accepted")) == 1


def test_cloned_machine_first_commitment_wins(world: MemberWorld) -> None:
    world.approve()
    clone = world.backup("clone")
    original = world.folder
    late = LyingCourier(world.courier, lose=[("leaf", "request")])
    with world.agent(late) as agent:  # the original draws; its commitment is still in flight
        with pytest.raises(CoordinatorUnreachable):
            agent.submit(ROUND)
        lost = agent.ledger.round(ROUND)
    world.folder, winner = clone, LyingCourier(world.courier)
    with world.agent(winner) as agent:
        won = agent.submit(ROUND)
    assert won.commit_hash != lost.commit_hash
    world.folder = original
    with world.agent(late) as agent:  # now it arrives, second
        with pytest.raises(RoundBurned):
            agent.submit(ROUND)
        entry = agent.ledger.round(ROUND)
        assert (entry.state, entry.reason, entry.everyone) == (State.BURNED, BurnReason.FOREIGN_COMMITMENT, False)
    assert [leaf.fields["hash"] for leaf in world.mine("accepted")] == [won.commit_hash]
    assert len(_revealed(late, winner)) == 1


def test_second_commitment_in_the_log_burns(world: MemberWorld) -> None:
    """A coordinator that logs both: a copy's commitment first, then ours. Both are signed by our key."""
    world.approve()
    with world.agent(LyingCourier(world.courier, lose=[("leaf", "request")])) as agent:
        with pytest.raises(CoordinatorUnreachable):
            agent.submit(ROUND)
        ours = agent.ledger.round(ROUND)
    fields = {
        "manifest": world.manifest.sha256, "member": 20, "hash": "0" * 64, "install": "0" * 64, "day": "2026-10-02",
    }  # fmt: skip
    world.append(make_leaf("commitment", ROUND, fields, world.state.key))
    world.append(ours.commitment_leaf)
    courier = LyingCourier(world.courier)
    with world.agent(courier) as agent:
        with pytest.raises(RoundBurned):
            agent.submit(ROUND)
        assert agent.ledger.round(ROUND).reason is BurnReason.FOREIGN_COMMITMENT
    assert _revealed(courier) == set()


def test_a_later_commitment_of_a_copy_does_not_burn_the_first(world: MemberWorld) -> None:
    world.approve()
    stuck = LyingCourier(world.courier, lose=[("reveal", "request")])
    with world.agent(stuck) as agent, pytest.raises(CoordinatorUnreachable):
        agent.submit(ROUND)
    fields = {
        "manifest": world.manifest.sha256, "member": 20, "hash": "0" * 64, "install": "0" * 64, "day": "2026-10-02",
    }  # fmt: skip
    world.append(make_leaf("commitment", ROUND, fields, world.state.key))
    with world.agent() as agent:
        assert agent.submit(ROUND).state is State.ACCEPTED


def test_a_restored_ledger_does_not_believe_an_older_log(world: MemberWorld) -> None:
    """Coordinator and backup go back together: the head in the second place tells."""
    world.approve()
    before, answer = world.backup(), world.small.send("leaves", b"", "")
    with world.agent() as agent:
        agent.submit(ROUND)
    world.restore(before)

    def old_log(parcel: object, real: bytes) -> bytes:
        return answer if parcel.kind == "leaves" else real

    with world.agent(LyingCourier(world.courier, change=old_log)) as agent:
        with pytest.raises(InconsistentCheckpoint):
            agent.submit(ROUND)
        assert agent.ledger.round(ROUND) is None


def test_without_the_second_place_the_older_log_would_have_been_believed(world: MemberWorld) -> None:
    """The test above bites: what stops the second draw is the second place alone."""
    world.approve()
    before, answer = world.backup(), world.small.send("leaves", b"", "")
    with world.agent() as agent:
        agent.submit(ROUND)
    world.restore(before)
    for path in world.second.iterdir():
        path.unlink()

    def old_log(parcel: object, real: bytes) -> bytes:
        return answer if parcel.kind == "leaves" else real

    with world.agent(LyingCourier(world.courier, change=old_log)) as agent, pytest.raises(DuplicateSubmission):
        agent.submit(ROUND)


def test_a_deleted_and_remade_member_never_draws_beside_its_old_commitment(world: MemberWorld) -> None:
    """Same identity key, new ledger: every commitment in the log becomes a charged, burned round."""
    world.approve()
    with world.agent() as agent:
        agent.submit(ROUND)
        key_id = agent.ledger.key_id
    (world.folder / "ledger" / "ledger.db").unlink()
    Ledger.create(world.folder / "ledger", key_id=key_id, machine_id=machine_id())
    with world.agent() as agent:
        with pytest.raises(RoundBurned):
            agent.submit(ROUND)
        assert agent.ledger.lifetime() == (1, world.manifest.rho)
