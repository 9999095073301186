# SPDX-License-Identifier: Apache-2.0
"""Coverage says what each program's weeks hold, and little where few people stand behind it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from client_events import CATALOGUE, KEY, NOW, START, A, B, Log, store_of, tag
from windvane_client.constants import DAY
from windvane_client.coverage import COUNTED, OUTCOMES, TOO_FEW, Coverage, coverage_json, last_moves, take, week_of
from windvane_client.events import Rows
from windvane_client.rules import Rules
from windvane_client.signals import PersonFacts, read_person

WIDE = (0, 2**62)


def covered(*logs: Log, open_round: bool = False) -> Coverage:
    found = Coverage()
    with store_of(*logs) as store:
        for person in store.people():
            facts = None if open_round else read_person(
                store, person, window=WIDE, rules=Rules(), ids_key=KEY, now=NOW
            )  # fmt: skip
            take(found, store, person, facts, catalogue=CATALOGUE, rules=Rules())
    return found


def busy(person: str = "ana", day: int = 40) -> Log:
    """One piece of work: a fault that was recovered, three tool calls, a clean end."""
    log = Log(person, f"{person}-{day}", start=START + day * DAY)
    log.prompt(0)
    log.error(0.2, attempt=1)
    log.call(0.5, A)
    for minute, outcome in ((1, "ok"), (2, "malformed"), (3, "denied")):
        log.tool(minute, outcome)
    log.end(4)
    return log


def test_every_word_of_a_week_is_counted_where_it_happened() -> None:
    first, second = busy(day=40), busy(day=54)
    second.call(5, "other")
    second.call(6, "unknown")
    found = covered(first, second)
    (one, week), (_, between), (_, later) = found.weeks()
    assert found.words(one, "days", between) == {"without_rows": 7}
    assert found.people_of(one, between) == 0
    assert (week, later) == (week_of(START // DAY + 40), week_of(START // DAY + 54))
    assert found.words(one, "events", week) == {"attempt_error": 1, "call": 1, "prompt": 1, "tool": 3, "turn_end": 1}
    assert found.words(one, "prompts", week) == {"interactive": 1}
    assert found.words(one, "calls", week) == {"listed": 1}
    assert found.words(one, "calls", later) == {"listed": 1, "other": 1, "unknown": 1}
    assert found.words(one, "tools", week) == {"denied": 1, "malformed": 1, "ok": 1}
    assert found.words(one, "episodes", week) == {"clean_end": 1}
    assert found.words(one, "closes", week) == {"idle": 1}
    assert found.words(one, "infra", week) == {"recovered_same": 1}
    assert found.words(one, "tools") == {"denied": 2, "malformed": 2, "ok": 2}


def test_a_change_of_model_is_counted_by_its_cause() -> None:
    log = Log().habit(A, B)
    log.turn(0, A)
    log.turn(5, B)
    assert covered(log).words("claude_code", "changes") == {"person_inferred": 1}


def test_days_without_any_row_are_said_in_their_week() -> None:
    found = covered(busy(day=40), busy(day=50))
    weeks = {week: found.words("claude_code", "days", week) for _, week in found.weeks()}
    assert sum(n for words in weeks.values() for n in words.values() if isinstance(n, int)) == 9
    assert covered(busy(day=40), busy(day=41)).words("claude_code", "days") == {}


def test_what_could_not_be_seen_is_counted_by_its_word() -> None:
    log = busy()
    log.gap(5, "source_silent")
    assert covered(log).words("claude_code", "gaps") == {"source_silent": 1}


@pytest.mark.parametrize(("people", "shown"), [(1, 3), (2, TOO_FEW), (9, TOO_FEW), (10, 30)])
def test_a_count_of_few_people_is_not_shown(people: int, shown: object) -> None:
    found = covered(*(busy(f"p{n}") for n in range(people)))
    ((recorder, week),) = found.weeks()
    assert found.words(recorder, "events", week)["tool"] == shown
    assert found.people_of(recorder, week) == (people if people in (1, 10) else TOO_FEW)


def test_what_one_of_many_did_is_hidden_although_the_week_is_shown() -> None:
    odd = busy("p0")
    odd.tool(3.5, "runtime")
    found = covered(odd, *(busy(f"p{n}") for n in range(1, 10)))
    ((recorder, week),) = found.weeks()
    assert found.words(recorder, "tools", week) == {"denied": 10, "malformed": 10, "ok": 10, "runtime": TOO_FEW}


def test_a_sum_with_a_hidden_part_is_hidden() -> None:
    found = covered(*(busy(f"p{n}") for n in range(10)), busy("p0", day=54))
    assert found.words("claude_code", "tools") == {"denied": TOO_FEW, "malformed": TOO_FEW, "ok": TOO_FEW}


def test_while_a_round_is_open_nothing_about_outcomes_is_counted() -> None:
    found = covered(busy(), open_round=True)
    shown = coverage_json(found, [("claude_code", Rows(read=9))], 2)
    (week,) = shown["weeks"]
    assert {what for what in COUNTED if week[what]} == {"events", "prompts", "calls"}
    assert not any(week[what] for what in OUTCOMES)
    assert (shown["rows"][0]["read"], shown["rows_of_unmapped_people"]) == (9, 2)
    assert not found.moves


@pytest.mark.parametrize(
    ("build", "moves"),
    [
        (lambda log: (log.turn(0, A), log.turn(5, B)), {(A, B)}),
        (lambda log: (log.turn(0, A), log.turn(5, B), log.turn(9, A)), {(B, A)}),
        (lambda log: (log.turn(0, A), log.turn(5, A)), set()),
    ],
)
def test_a_move_is_the_last_time_that_a_model_was_left(build: Callable[[Log], object], moves: set) -> None:
    log = Log()
    build(log)
    with store_of(log) as store:
        facts: PersonFacts = read_person(store, tag("ana"), window=WIDE, rules=Rules(), ids_key=KEY, now=NOW)
    assert set(last_moves(facts)) == moves
