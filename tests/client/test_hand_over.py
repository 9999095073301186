# SPDX-License-Identifier: Apache-2.0
"""When a member may hand over an ignored envelope, and that it is the very one that was revealed."""

from __future__ import annotations

from pathlib import Path

import pytest

from member_world import LyingCourier, MemberWorld
from small_federation import ROUND
from windvane_client.hand_over import hand_over, note_unanswered
from windvane_privacy.couriers import Parcel
from windvane_privacy.errors import (
    ConfigurationError,
    IllegalTransition,
    NotReady,
    RoundBurned,
)
from windvane_privacy.ledger_schema import State


class Ignoring:
    """A coordinator that answers every reveal as if it had taken it, and throws the envelope away."""

    def __init__(self, world: MemberWorld) -> None:
        self._world = world
        self.thrown_away: list[bytes] = []

    def exchange(self, parcel: Parcel) -> bytes:
        if parcel.kind != "reveal":
            return self._world.courier.exchange(parcel)
        self.thrown_away.append(parcel.body)
        return b"{}"


@pytest.fixture
def ignored(world: MemberWorld) -> tuple[MemberWorld, Ignoring]:
    world.clock = world.small.clock
    world.approve()
    courier = Ignoring(world)
    with world.agent(courier) as agent:
        with pytest.raises(NotReady):
            agent.submit(ROUND)
        note_unanswered(agent, ROUND)
    return world, courier


def test_after_48_hours_of_the_log_the_revealed_bytes_are_handed_over(ignored: tuple[MemberWorld, Ignoring]) -> None:
    world, courier = ignored
    for hours in (0, 24, 23):
        world.clock.pass_by(hours=hours)
        with world.agent(courier) as agent, pytest.raises(NotReady, match="2026-10-04"):
            hand_over(agent, ROUND)
    world.clock.pass_by(hours=2)
    for _ in range(2):
        with world.agent(courier) as agent:
            assert hand_over(agent, ROUND) == courier.thrown_away[0]
            entry = agent.ledger.round(ROUND)
        assert entry is not None
        assert entry.state is State.REVEALED


def test_the_first_time_counts_however_often_somebody_asks(ignored: tuple[MemberWorld, Ignoring]) -> None:
    world, courier = ignored
    world.clock.pass_by(days=1)
    with world.agent(courier) as agent:
        note_unanswered(agent, ROUND)
        with pytest.raises(NotReady):
            hand_over(agent, ROUND)
    world.clock.pass_by(days=1)
    with world.agent(courier) as agent:
        assert hand_over(agent, ROUND) == courier.thrown_away[0]


def test_what_is_accepted_is_not_handed_over(ignored: tuple[MemberWorld, Ignoring]) -> None:
    world, courier = ignored
    world.small.send("reveal", courier.thrown_away[0])
    world.clock.pass_by(days=3)
    with world.agent() as agent, pytest.raises(IllegalTransition, match="accepted"):
        hand_over(agent, ROUND)
    with world.agent() as agent:
        agent.submit(ROUND)
        with pytest.raises(IllegalTransition, match="accepted"):
            hand_over(agent, ROUND)


def test_what_was_not_revealed_is_not_handed_over(world: MemberWorld) -> None:
    world.approve()
    with world.agent() as agent, pytest.raises(NotReady):
        hand_over(agent, ROUND)
    losing = LyingCourier(world.courier, lose=[("leaf", "request")])
    with world.agent(losing) as agent:
        with pytest.raises(Exception, match="did not answer"):
            agent.submit(ROUND)
        note_unanswered(agent, ROUND)
        with pytest.raises(NotReady, match="revealed"):
            hand_over(agent, ROUND)
    assert not list(world.folder.glob("unanswered-*"))


def test_a_stopped_or_burned_round_is_not_handed_over(ignored: tuple[MemberWorld, Ignoring]) -> None:
    world, courier = ignored
    world.clock.pass_by(days=2)
    world.small.coordinator.abort(ROUND, "legal")
    with world.agent(courier) as agent, pytest.raises(IllegalTransition, match="stopped"):
        hand_over(agent, ROUND)
    with world.agent(courier) as agent:
        with pytest.raises(RoundBurned):
            agent.submit(ROUND)
        with pytest.raises(RoundBurned):
            hand_over(agent, ROUND)


def test_a_note_that_somebody_wrote_over_is_refused_by_name(ignored: tuple[MemberWorld, Ignoring]) -> None:
    world, courier = ignored
    note: Path = world.folder / f"unanswered-{ROUND}"
    note.write_text("some day")
    with world.agent(courier) as agent, pytest.raises(ConfigurationError, match="unanswered"):
        hand_over(agent, ROUND)
