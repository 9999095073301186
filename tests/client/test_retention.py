# SPDX-License-Identifier: Apache-2.0
"""What nobody drew is deleted 60 days after its window; what a round still needs is not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from member_world import FixedEvidence, LyingCourier, MemberWorld
from small_federation import ROUND
from windvane_client.retention import KEPT, Window, overdue
from windvane_privacy.errors import CoordinatorUnreachable
from windvane_privacy.manifest import parse_time

DAY = timedelta(days=1)


def day(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


Q3 = (day("2026-07-01"), day("2026-10-01"))


@pytest.mark.parametrize(
    ("now", "drawn", "over", "expected"),
    [
        ("2026-11-29", False, False, "2026-07-01"),  # 59 days after the end: still needed
        ("2026-11-30", False, False, "2026-10-01"),  # 60 days
        ("2027-03-15", True, False, "2026-07-01"),  # drawn and not over: for as long as it takes
        ("2026-10-20", True, True, "2026-07-01"),  # over: the round itself deletes; days without a round wait
        ("2027-03-15", True, True, "2027-01-01"),
    ],
)
def test_a_window_ends_with_its_round_or_after_sixty_days(now: str, drawn: bool, over: bool, expected: str) -> None:
    assert overdue([Window(*Q3, Q3[1] + 44 * DAY, drawn, over)], day(now)) == day(expected)


def test_a_window_whose_submission_is_still_open_is_needed_however_late() -> None:
    closes = day("2026-12-10")
    assert overdue([Window(*Q3, closes, drawn=False, over=False)], day("2026-12-09")) == Q3[0]
    assert overdue([Window(*Q3, closes, drawn=False, over=False)], closes) == Q3[1]


def test_without_any_round_calendar_quarters_count() -> None:
    assert overdue([], day("2026-11-29")) == day("2026-07-01")
    assert overdue([], day("2026-11-30")) == day("2026-10-01")


@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 90), st.booleans(), st.booleans()), max_size=5),
    st.integers(0, 1500),
)
def test_nothing_that_is_needed_is_ever_deleted(rounds: list[tuple[int, int, bool, bool]], after: int) -> None:
    start = day("2026-01-01")
    windows = []
    for n, late, drawn, over in rounds:
        end = start + 90 * (n + 1) * DAY
        windows.append(Window(end - 90 * DAY, end, end + late * DAY, drawn, drawn and over))
    now = start + after * DAY
    limit = overdue(windows, now)
    for window in windows:
        needed = (window.drawn and not window.over) or (
            not window.drawn and now < max(window.until + KEPT, window.closes)
        )
        assert not needed or limit <= window.since
    assert limit <= now - KEPT


@pytest.mark.parametrize(("drawn", "days"), list(product([False, True], [40, 200])))
def test_the_agent_forgets_a_skipped_window_and_keeps_a_drawn_one(world: MemberWorld, drawn: bool, days: int) -> None:
    if drawn:
        world.approve()
        courier = LyingCourier(world.courier, lose=[("leaf", "request")])
        with world.agent(courier) as agent, pytest.raises(CoordinatorUnreachable):
            agent.submit(ROUND)
    else:
        with world.agent() as agent:
            agent.learn()
    world.clock.now = parse_time(world.manifest.events.to) + days * DAY
    evidence = FixedEvidence()
    with world.agent(evidence=evidence):
        pass
    gone = max(evidence.forgotten)
    assert (parse_time(gone) >= parse_time(world.manifest.events.to)) == (days >= 60 and not drawn)
