# SPDX-License-Identifier: Apache-2.0
"""The decision table of completion, row by row."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from client_events import A, B, Log, facts_of, rows_of_logs, table


def one(build: Callable[[Log], object]) -> str:
    log = Log()
    log.prompt(0)
    log.call(0.5)
    build(log)
    (episode,) = facts_of(log).episodes
    return episode.ending.value


CASES: list[tuple[str, Callable[[Log], object], str]] = [
    ("rejected", lambda g: (g.end(1), g.outcome(2, "rejected")), "explicit_no"),
    ("failed", lambda g: (g.end(1), g.outcome(2, "failed")), "explicit_no"),
    (
        "a rejection beats another field's yes",
        lambda g: (g.outcome(2, "met"), g.outcome(3, "rejected", "rating")),
        "explicit_no",
    ),
    ("a goal that failed and was then met", lambda g: (g.outcome(2, "failed"), g.outcome(3, "met")), "explicit_yes"),
    ("accepted", lambda g: g.outcome(2, "accepted"), "explicit_yes"),
    ("merged", lambda g: g.outcome(2, "merged", "pr-link"), "explicit_yes"),
    ("submitted after an interrupt", lambda g: (g.end(1, "interrupted"), g.outcome(2, "submitted")), "explicit_yes"),
    ("interrupt", lambda g: g.end(1, "interrupted"), "abandoned"),
    ("refused tool", lambda g: g.tool(1, "denied", result=2), "abandoned"),
    ("refused tool, then an answer", lambda g: (g.tool(1, "denied", result=2), g.call(3), g.end(4)), "clean_end"),
    ("final error", lambda g: g.error(1, final=True), "abandoned"),
    ("error that was not the last attempt", lambda g: g.error(1, attempt=1), "unknown"),
    ("limit", lambda g: g.end(1, "limit"), "abandoned"),
    ("turn error", lambda g: g.end(1, "error"), "abandoned"),
    ("pending call where the file may be cut", lambda g: g.tool(1, "no_result"), "unknown"),
    ("clean end", lambda g: g.end(1), "clean_end"),
    ("clean end, written twice", lambda g: (g.end(1), g.end(1.1)), "clean_end"),
    ("text without an end record", lambda g: g.call(1), "unknown"),
    ("end of unknown kind", lambda g: g.end(1, "unknown"), "unknown"),
    ("something after the end", lambda g: (g.end(1), g.tool(2)), "unknown"),
    ("a second prompt nobody answered", lambda g: (g.end(1), g.prompt(2)), "unknown"),
    ("end record of an unanswered prompt", lambda g: (g.end(1), g.prompt(2), g.end(3)), "unknown"),
    ("clean end with a call still pending", lambda g: (g.tool(0.7, "no_result"), g.end(1)), "unknown"),
    ("side thread after the end", lambda g: (g.end(1), g.tool(2, thread="side")), "clean_end"),
    ("rows rejected in the last turn", lambda g: (g.gap(0.8, "rows_rejected"), g.end(1)), "unknown"),
    ("rows rejected in an earlier turn", lambda g: (g.gap(0.8, "rows_rejected"), g.turn(1)), "clean_end"),
    ("the source fell silent", lambda g: (g.end(1), g.gap(2, "source_silent")), "unknown"),
]


@pytest.mark.parametrize(("build", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_each_row_of_the_table(build: Callable[[Log], object], expected: str) -> None:
    assert one(build) == expected


def test_a_prompt_that_was_never_answered_is_unknown() -> None:
    log = Log()
    log.prompt(0)
    (episode,) = facts_of(log).episodes
    assert episode.ending.value == "unknown"


def test_a_pending_call_is_abandoned_only_where_the_log_goes_on() -> None:
    log = Log()
    log.prompt(0)
    log.call(0.5)
    log.tool(1, "no_result")
    later = Log(conv="c2")
    later.turn(500)
    assert [e.ending.value for e in facts_of(log, later).episodes] == ["abandoned", "clean_end"]


def test_completion_counts_by_basis_and_closing_model() -> None:
    log = Log().habit(A, B)
    for i, how in enumerate(("clean", "interrupted", "unknown")):
        log.turn(i * 200, A, how)
    log.turn(600, B)
    log.outcome(602, "accepted")
    rows = [r for r in rows_of_logs(log) if r.signal == "completion"]
    assert {(r.model, r.basis.value, r.trials, r.successes) for r in rows} == {
        (A, "ended", 2, 1),
        (B, "explicit", 1, 1),
    }


def test_an_episode_with_two_opening_models_is_mixed_and_gives_no_trial() -> None:
    log = Log().habit(A, B)
    log.turn(0, A)
    log.turn(5, B)
    assert table(rows_of_logs(log), "completion") == {}


def test_a_mid_turn_model_does_not_make_an_episode_mixed() -> None:
    log = Log().habit(A, B)
    log.prompt(0)
    log.call(1, A)
    log.call(2, B, route="skill")
    log.call(3, B, thread="side")
    log.end(4)
    assert table(rows_of_logs(log), "completion") == {(A, None): (1, 1)}


def test_a_log_that_can_only_show_failures_gives_no_trial() -> None:
    one_sided = Log(source="unheard_of", recorder="unheard_of").habit(A, B)
    for i in range(1000):
        one_sided.turn(i, A, "interrupted")
        one_sided.tool(i + 0.5, "malformed")
        one_sided.error(i + 0.5, attempt=1, final=True)
    assert rows_of_logs(one_sided) == []
