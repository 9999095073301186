# SPDX-License-Identifier: Apache-2.0
"""The rows of a person follow from that person's events alone."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from client_events import CATALOGUE, A, B, C, Log, rows_of_store, store_of, tag
from windvane_client.events import ERROR_CLASSES, PROMPT_ORIGINS, TOOL_OUTCOMES, TURN_ENDS, AnyEvent
from windvane_privacy.outcomes import PersonOutcome, person_is_valid

FAMILIES = st.sampled_from((A, B, C, "other", "unknown"))
STEPS = st.one_of(
    st.tuples(st.just("prompt"), st.sampled_from(PROMPT_ORIGINS)),
    st.tuples(st.just("call"), FAMILIES),
    st.tuples(st.just("tool"), st.sampled_from(TOOL_OUTCOMES), FAMILIES),
    st.tuples(st.just("error"), st.sampled_from(ERROR_CLASSES), FAMILIES),
    st.tuples(st.just("end"), st.sampled_from(TURN_ENDS)),
    st.tuples(st.just("set_model"), st.sampled_from(("person", "harness", "policy"))),
    st.tuples(st.just("outcome"), st.sampled_from(("accepted", "rejected"))),
    st.tuples(st.just("vote"), st.sampled_from(("a", "b", "tie"))),
    st.tuples(st.just("gap"), st.just("rows_rejected")),
    st.tuples(st.just("pause"), st.integers(1, 200)),
)


@st.composite
def person_log(draw: st.DrawFn, person: str) -> list[AnyEvent]:
    source = draw(st.sampled_from(("claude_code", "canonical")))
    log = Log(person, draw(st.sampled_from(("c1", "c2"))), source=source, recorder=source)
    if draw(st.booleans()):
        log.habit(A, B)
    minute = 0.0
    for step in draw(st.lists(STEPS, max_size=25)):
        name, *values = step
        minute += draw(st.sampled_from((0.0, 0.05, 3.0)))
        if name == "pause":
            minute += float(values[0])
            continue
        options: dict[str, Any] = {"attempt": 1} if name == "error" else {}
        if name in ("prompt", "call", "tool"):
            # Ids that other people use too: merging across people would show here.
            options["key"] = draw(st.sampled_from((None, "shared-1", "shared-2")))
        getattr(log, name)(minute, *values, **options)
    return log.events


def rows_of(person: str, *parts: list[AnyEvent]) -> list[PersonOutcome]:
    with store_of(*parts) as store:
        return [row for row in rows_of_store(store, pooled=True) if row.person == tag(person)]


@settings(max_examples=40, deadline=None)
@given(person_log("ana"), person_log("bob"), person_log("bob"))
def test_other_people_change_nothing(ana: list[AnyEvent], bob: list[AnyEvent], other_bob: list[AnyEvent]) -> None:
    alone = rows_of("ana", ana)
    assert rows_of("ana", ana, bob) == alone
    assert rows_of("ana", other_bob, ana) == alone
    assert rows_of("ana", bob, ana, other_bob) == alone


@settings(max_examples=40, deadline=None)
@given(person_log("ana"), person_log("ana"))
def test_every_row_is_of_the_agreed_form(first: list[AnyEvent], second: list[AnyEvent]) -> None:
    with store_of(first, second) as store:
        for pooled in (True, False):
            rows = rows_of_store(store, pooled=pooled)
            assert rows == sorted(rows, key=lambda row: row.key)
            assert person_is_valid(rows, CATALOGUE, pooled=pooled)


def test_a_mass_move_of_everybody_else_changes_nothing() -> None:
    def mover(person: str) -> Log:
        log = Log(person, person).habit(A, B)
        log.turn(0, A)
        log.turn(5, B)
        return log

    ana = mover("ana")
    crowd = [mover(f"person {i}").events for i in range(30)]
    assert rows_of("ana", ana.events, *crowd) == rows_of("ana", ana.events)
