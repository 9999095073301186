# SPDX-License-Identifier: Apache-2.0
"""From quarter to quarter: every row of the table, and what no history may do."""

from __future__ import annotations

from itertools import product

import pytest

from report_world import all_facts, by_key, real_manifest, sums_of
from windvane_privacy.catalogue import Signal
from windvane_privacy.claims import Certainty, Change, Claim, Reason, State, measured_claim, silent_claim
from windvane_privacy.direction import directions
from windvane_privacy.errors import MalformedInput, ReportError
from windvane_privacy.layout import Cell
from windvane_privacy.transitions import Standing, advance, change_of, previous_of, quarter_number, quarter_of

A, B = State.TOWARD_A, State.TOWARD_B
NOW = "2027-Q1"
KEY = ("all", "completion", "alder", "birch")
CELL = Cell(Signal.COMPLETION, "all", "alder", "birch")
QUARTERS = ("2026-Q3", "2026-Q4", "2027-Q1", "2027-Q2", "2027-Q3", "2027-Q4")


def held(state: State, called: str, since: str = "2026-Q1") -> Standing:
    return Standing(state, since, called)


NONE = Standing()
ROWS = {
    "break ends everything": (held(A, "2026-Q4"), {"broken": True, "call": A, "leaning": A}, NONE),
    "not eligible ends a direction": (held(A, "2026-Q4"), {"eligible": False, "leaning": A}, NONE),
    "none stays none": (NONE, {"leaning": A}, NONE),
    "none and a call": (NONE, {"call": B, "leaning": B}, Standing(B, NOW, NOW)),
    "called again": (held(A, "2026-Q4"), {"call": A, "leaning": A}, Standing(A, "2026-Q1", NOW)),
    "called the other way": (held(A, "2026-Q4"), {"call": B, "leaning": B}, NONE),
    "kept, age 1": (held(A, "2026-Q4"), {"leaning": A}, held(A, "2026-Q4")),
    "kept, age 2": (held(B, "2026-Q3"), {"leaning": B}, held(B, "2026-Q3")),
    "age 3 ends": (held(A, "2026-Q2"), {"leaning": A}, NONE),
    "leans the other way": (held(A, "2026-Q4"), {"leaning": B}, NONE),
    "does not lean": (held(A, "2026-Q4"), {"leaning": None}, NONE),
}


@pytest.mark.parametrize(("before", "now", "after"), ROWS.values(), ids=ROWS.keys())
def test_row_of_the_table(before, now, after):
    given = {"eligible": True, "broken": False, "call": None, "leaning": None, **now}
    assert advance(before, NOW, **given) == after


def test_no_history_of_six_quarters_turns_round_in_one_step_or_keeps_too_long():
    events = {
        "call A": {"call": A, "leaning": A},
        "call B": {"call": B, "leaning": B},
        "lean A": {"leaning": A},
        "lean B": {"leaning": B},
        "flat": {},
        "out": {"eligible": False},
    }
    for history in product(events.values(), repeat=6):
        standing, uncalled = NONE, 0
        for quarter, event in zip(QUARTERS, history, strict=True):
            before = standing
            standing = advance(
                before, quarter, **{"eligible": True, "broken": False, "call": None, "leaning": None, **event}
            )
            assert {before.direction, standing.direction} != {A, B}
            uncalled = 0 if event.get("call") else uncalled + 1
            assert standing.direction is None or uncalled < 3
            if standing.direction:
                assert standing.since <= standing.called <= quarter


def claim(state: State, *, since: str | None = None, called: str | None = None, change: Change = Change.KEPT) -> Claim:
    word = Certainty.MODERATE if state in (A, B) else None
    return measured_claim(KEY, state, change, certainty=word, since=since, called=called)


def toward(state: State, quarter: str) -> Claim:
    return claim(state, since=quarter, called=quarter)


NO = claim(State.NO_CLEAR_DIRECTION)
BROKEN = silent_claim(KEY, [Reason.VERSION_BREAK], Change.KEPT)
FEW = silent_claim(KEY, [Reason.TOO_FEW_PEOPLE], Change.KEPT)
UNLISTED = silent_claim(KEY, [Reason.NOT_SELECTED], Change.KEPT)
CHANGES = {
    "no earlier report": ([], A, Change.FIRST_MEASURED),
    "no earlier report, no direction": ([], None, Change.FIRST_MEASURED),
    "new": ([NO], A, Change.NEW),
    "new after a silent quarter": ([FEW], A, Change.NEW),
    "kept": ([toward(A, "2026-Q3")], A, Change.KEPT),
    "kept none": ([NO], None, Change.KEPT),
    "ended": ([toward(A, "2026-Q3")], None, Change.ENDED),
    "reversed after a pause": ([toward(A, "2026-Q3"), NO], B, Change.REVERSED_AFTER_PAUSE),
    "back after a pause": ([toward(A, "2026-Q3"), NO], A, Change.NEW),
    "a break restarts the series": ([toward(A, "2026-Q3"), BROKEN], B, Change.FIRST_MEASURED),
    "a break is forgotten only once": ([toward(A, "2026-Q3"), BROKEN, NO], B, Change.NEW),
    "a pair that was not listed starts anew": ([toward(A, "2026-Q3"), UNLISTED], B, Change.FIRST_MEASURED),
}


@pytest.mark.parametrize(("past", "now", "change"), CHANGES.values(), ids=CHANGES.keys())
def test_change_of_a_measured_cell(past, now, change):
    previous = previous_of([(quarter, [one]) for quarter, one in zip(QUARTERS, past, strict=False)])
    assert change_of(KEY, now, previous, broken=False) is change


def test_turning_round_in_one_step_is_refused():
    previous = previous_of([("2026-Q3", [toward(A, "2026-Q3")])])
    with pytest.raises(ReportError):
        change_of(KEY, B, previous, broken=False)


def test_report_without_claims_keeps_the_state_but_ages_it():
    past = [("2026-Q3", [toward(A, "2026-Q3")]), ("2026-Q4", [])]
    assert previous_of(past).standing(KEY) == Standing(A, "2026-Q3", "2026-Q3")
    assert previous_of([("2026-Q4", [])]) is None


def test_quarters_out_of_order_are_refused():
    with pytest.raises(ReportError):
        previous_of([("2026-Q4", [NO]), ("2026-Q3", [NO])])
    with pytest.raises(MalformedInput):
        quarter_number("2026-Q5")


def test_quarter_comes_from_the_round_or_else_from_its_events():
    assert quarter_of(real_manifest(round="2027-Q2")) == "2027-Q2"
    assert quarter_of(real_manifest(round="first-round", start="2026-12-01", end="2027-03-01")) == "2026-Q4"
    assert quarter_number("2027-Q1") - quarter_number("2026-Q4") == 1


def one_cell(quarter: str, people: int, past, *, t=(1000,) * 5, **changes) -> Claim:
    """The claim of one cell whose D is `people`; every other cell is even."""
    manifest = real_manifest(round=quarter, **changes)
    sums = sums_of(manifest, {CELL: ((12 * people // 5,) * 5, t)}, rest=((0,) * 5, (1000,) * 5))
    return by_key(directions(sums, manifest, all_facts(manifest), previous_of(past)))[KEY]


def test_life_of_a_direction_over_five_quarters():
    # D = 400 is called; D = 75 leans with t = 1.3 and is not called; D = 55 has t = .96.
    past: list[tuple[str, list[Claim]]] = []
    story = [
        ("2026-Q3", 400, A, Change.FIRST_MEASURED, "2026-Q3"),
        ("2026-Q4", 75, A, Change.KEPT, "2026-Q3"),
        ("2027-Q1", 75, A, Change.KEPT, "2026-Q3"),
        ("2027-Q2", 75, State.NO_CLEAR_DIRECTION, Change.ENDED, None),
        ("2027-Q3", -400, B, Change.REVERSED_AFTER_PAUSE, "2027-Q3"),
    ]
    for quarter, people, state, change, called in story:
        found = one_cell(quarter, people, past, stage="2")
        assert (found.state, found.change, found.called_quarter) == (state, change, called), quarter
        if quarter in ("2026-Q4", "2027-Q1"):
            assert found.certainty is Certainty.MODERATE, "a kept claim is never firm"
            assert found.since_quarter == "2026-Q3"
        past.append((quarter, [found]))
    assert past[0][1][0].certainty is Certainty.FIRM


def test_called_again_keeps_its_first_quarter():
    first = one_cell("2026-Q3", 400, [])
    again = one_cell("2026-Q4", 400, [("2026-Q3", [first])])
    assert (again.since_quarter, again.called_quarter, again.change) == ("2026-Q3", "2026-Q4", Change.KEPT)


def test_lean_of_less_than_one_standard_error_ends_a_direction():
    first = one_cell("2026-Q3", 400, [])
    assert one_cell("2026-Q4", 60, [("2026-Q3", [first])]).state is A
    assert one_cell("2026-Q4", 55, [("2026-Q3", [first])]).change is Change.ENDED


def test_call_against_a_direction_gives_no_clear_direction():
    first = one_cell("2026-Q3", 400, [])
    against = one_cell("2026-Q4", -400, [("2026-Q3", [first])])
    assert (against.state, against.change) == (State.NO_CLEAR_DIRECTION, Change.ENDED)


def test_quarter_without_enough_people_ends_a_direction():
    first = one_cell("2026-Q3", 400, [])
    silent = one_cell("2026-Q4", 400, [("2026-Q3", [first])], t=(100,) * 5)
    assert (silent.state, silent.change) == (State.NOT_ENOUGH_DATA, Change.ENDED)
    later = one_cell("2027-Q1", 75, [("2026-Q3", [first]), ("2026-Q4", [silent])])
    assert later.state is State.NO_CLEAR_DIRECTION


def test_skipped_quarters_count_as_age():
    first = one_cell("2026-Q3", 400, [])
    assert one_cell("2027-Q1", 75, [("2026-Q3", [first])]).state is A
    assert one_cell("2027-Q2", 75, [("2026-Q3", [first])]).change is Change.ENDED


def test_previous_report_of_the_same_quarter_is_refused():
    first = one_cell("2026-Q3", 400, [])
    with pytest.raises(ReportError):
        one_cell("2026-Q3", 400, [("2026-Q3", [first])])
