# SPDX-License-Identifier: Apache-2.0
"""What survives a window is the same, whether it was noted while the outcomes were built or is read again."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client_events import CATALOGUE, KEY, START, A, B, C, Log, store_of
from windvane_client.constants import CONSTANTS, DAY, HOUR, MINUTE
from windvane_client.outcomes_table import WindowEnd, build_outcomes, retire_window
from windvane_client.rules import Rules
from windvane_client.store import EventStore

WINDOW = (START, START + 50 * DAY)


def over_the_edge(starts: list[int], people: list[str]) -> list[Log]:
    """Work of several people and conversations that begins so many minutes before the window's end."""
    logs = []
    for number, (minutes, person) in enumerate(zip(starts, people, strict=True)):
        log = Log(person, f"conversation {number % 3}", start=WINDOW[1] - minutes * MINUTE)
        log.turn(0, (A, B, C)[number % 3])
        log.tool(30)
        log.turn(31, (B, A, C)[number % 3], None)
        logs.append(log)
    return logs


def left(store: EventStore) -> tuple[list[object], list[object]]:
    query = "SELECT person, kind, key, ts FROM copies ORDER BY 1, 2, 3, 4"
    return list(store._db.execute(query)), list(store._db.execute("SELECT * FROM first_seen ORDER BY 1, 2"))


def noted(store: EventStore, now: int) -> WindowEnd:
    end = WindowEnd(WINDOW[1])
    rows = build_outcomes(
        store, window=WINDOW, catalogue=CATALOGUE, rules=Rules(), ids_key=KEY, now=now, end=end
    )  # fmt: skip
    list(rows)
    return end


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_noted_early_or_read_again_the_same_survives(data: st.DataObject) -> None:
    edges = st.sampled_from([-300, -61, -60, -59, -1, 0, 1, 30, 31, 59, 60, 61, 91, 92, 300, 3 * 24 * 60])
    starts = data.draw(st.lists(edges, min_size=1, max_size=6))
    people = data.draw(st.lists(st.sampled_from(["ana", "ben"]), min_size=len(starts), max_size=len(starts)))
    later = data.draw(st.sampled_from([0, 1, HOUR, DAY, CONSTANTS.late_evidence, 20 * DAY]))
    logs = over_the_edge(starts, people)
    with store_of(*logs) as one, store_of(*logs) as two:
        end = noted(one, WINDOW[1] + later)
        options = {"window": WINDOW, "rules": Rules(), "ids_key": KEY, "now": WINDOW[1]}
        assert retire_window(one, **options, end=end) == retire_window(two, **options)
        assert left(one) == left(two)


@pytest.mark.parametrize(("minutes", "carried"), [(20, True), (70, True), (100, False), (-1, False)])
def test_only_an_episode_that_was_open_at_the_end_is_carried_over(minutes: int, carried: bool) -> None:
    with store_of(*over_the_edge([minutes], ["ana"])) as store:
        assert bool(noted(store, WINDOW[1] + DAY).open_since) is carried
