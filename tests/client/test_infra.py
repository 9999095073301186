# SPDX-License-Identifier: Apache-2.0
"""What happened after the provider failed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from client_events import A, B, Log, facts_of, rows_of_logs, table, tag
from windvane_client.events import ERROR_CLASSES, INFRA_CLASSES

CASES: list[tuple[str, Callable[[Log], object], dict[str, int]]] = [
    (
        "retries, then the same model",
        lambda g: (g.error(1, attempt=1), g.error(2, attempt=2), g.call(3)),
        {"recovered_same": 1},
    ),
    ("a fallback record", lambda g: (g.error(1, attempt=1), g.call(3, B, route="fallback")), {"recovered_other": 1}),
    ("another model answers", lambda g: (g.error(1, attempt=1), g.call(3, B)), {"recovered_other": 1}),
    ("retries exhausted", lambda g: (g.error(1, attempt=1), g.error(2, final=True)), {"lost": 1}),
    ("the turn ends without an answer", lambda g: (g.error(1, attempt=1), g.end(2, "error")), {"lost": 1}),
    ("the next prompt comes without an answer", lambda g: (g.error(1, attempt=1), g.prompt(5), g.call(6)), {"lost": 1}),
    ("a person interrupts", lambda g: (g.error(1, attempt=1), g.end(2, "interrupted")), {"cut": 1}),
    ("a person aborts the request", lambda g: (g.error(1, attempt=1), g.error(2, "aborted")), {"cut": 1}),
    ("the log ends", lambda g: g.error(1, attempt=1), {"cut": 1}),
    (
        "two runs in one turn",
        lambda g: (g.error(1, attempt=1), g.call(2), g.error(3, attempt=1), g.call(4)),
        {"recovered_same": 2},
    ),
    (
        "the side thread has its own runs",
        lambda g: (g.error(1, attempt=1, thread="side"), g.call(2), g.call(3, thread="side")),
        {"recovered_same": 1},
    ),
    ("nobody knows which model answered", lambda g: (g.error(1, attempt=1), g.call(2, "unknown")), {"cut": 1}),
    (
        "a failed call is no answer",
        lambda g: (g.error(1, attempt=1), g.call(2, status="error"), g.end(3, "error")),
        {"lost": 1},
    ),
]


@pytest.mark.parametrize(("build", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_each_result(build: Callable[[Log], object], expected: dict[str, int]) -> None:
    log = Log()
    log.prompt(0)
    build(log)
    assert facts_of(log).totals.faults == expected


@pytest.mark.parametrize("error_class", ERROR_CLASSES)
def test_only_infra_classes_open_a_run(error_class: str) -> None:
    log = Log()
    log.prompt(0)
    log.error(1, error_class, attempt=1)
    log.call(2)
    assert facts_of(log).totals.faults == ({"recovered_same": 1} if error_class in INFRA_CLASSES else {})


def test_interleaved_requests_are_two_runs() -> None:
    log = Log(source="canonical", recorder="canonical/test")
    log.prompt(0)
    log.error(1, attempt=1, request=tag("r1"))
    log.error(2, attempt=1, request=tag("r2"))
    log.error(3, attempt=2, request=tag("r1"))
    log.call(4, A, key="r2")
    log.error(5, attempt=3, request=tag("r1"), final=True)
    assert facts_of(log).totals.faults == {"recovered_same": 1, "lost": 1}


def test_a_success_in_a_later_turn_rescues_nothing() -> None:
    log = Log()
    log.prompt(0)
    log.error(1, attempt=1)
    log.turn(10, A)
    assert table(rows_of_logs(log), "infra_recovery") == {(A, None): (1, 0)}


def test_trials_are_credited_to_the_model_that_was_asked() -> None:
    log = Log()
    log.prompt(0)
    log.error(1, attempt=1)
    log.call(2, B, route="fallback")
    log.error(3, attempt=1)
    log.call(4, A)
    assert table(rows_of_logs(log), "infra_recovery") == {(A, None): (2, 1)}


def test_a_log_without_retries_gives_no_trial() -> None:
    for header in ({"reader": "claude_code/1.0.0+no-attempts"}, {}):
        log = Log(**header)
        log.prompt(0)
        log.error(1, attempt=1 if header else None, final=True)
        log.prompt(5)
        assert table(rows_of_logs(log), "infra_recovery") == {}


def test_two_clients_are_two_recorders() -> None:
    first, second = Log(), Log(conv="c2", client="claude_ide")
    for log, answer in ((first, A), (second, B)):
        log.prompt(0)
        log.error(1, attempt=1)
        log.call(2, answer)
    rows = [r for r in rows_of_logs(first, second) if r.signal == "infra_recovery"]
    assert {(r.recorder, r.successes) for r in rows} == {("claude_code/claude_cli", 1), ("claude_code/claude_ide", 0)}


def test_a_rewound_turn_keeps_its_faults() -> None:
    log = Log()
    log.prompt(0)
    log.call(0.5)
    back = log.above
    log.prompt(1)
    log.error(2, attempt=1)
    log.call(3)
    log.prompt(4, parent=back)
    assert facts_of(log).totals.faults == {"recovered_same": 1}
