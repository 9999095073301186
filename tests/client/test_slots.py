# SPDX-License-Identifier: Apache-2.0
"""The first message after a draw leaves at a mark of the clock, whatever the draw took."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from member_world import LyingCourier, MemberWorld
from small_federation import ROUND
from windvane_client.slots import SLOT, seconds_to_slot, slot_pause
from windvane_privacy.errors import CoordinatorUnreachable
from windvane_privacy.ledger_schema import State

START = datetime(2026, 10, 2, 9, 0, tzinfo=UTC)


@given(st.integers(0, 10**9), st.integers(1, SLOT * 1000 - 1))
def test_two_draws_of_different_length_send_at_the_same_moment(at: int, took: int) -> None:
    begun = datetime.fromtimestamp(at - at % SLOT, UTC)
    for ended in (begun + timedelta(milliseconds=1), begun + timedelta(milliseconds=took)):
        assert ended + timedelta(seconds=seconds_to_slot(ended)) == begun + timedelta(seconds=SLOT)
    assert seconds_to_slot(begun) == 0


def test_the_pause_stands_between_the_draw_and_the_first_message_and_nowhere_else(world: MemberWorld) -> None:
    world.approve()
    slept: list[float] = []
    courier = LyingCourier(world.courier, lose=[("leaf", "request")])

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        assert not any(parcel.kind == "leaf" for parcel in courier.sent)
        world.clock.pass_by(seconds=seconds)

    world.clock.pass_by(seconds=7)
    with world.agent(courier, pause=slot_pause(world.clock, sleep)) as agent:
        with pytest.raises(CoordinatorUnreachable):
            agent.submit(ROUND)
        assert agent.ledger.round(ROUND).state is State.DRAWN
        assert slept == [SLOT - 7]
        agent.submit(ROUND)
    assert slept == [SLOT - 7]
