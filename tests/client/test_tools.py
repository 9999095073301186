# SPDX-License-Identifier: Apache-2.0
"""Tool calls: which outcome is a trial, for whom, and at most how many."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client_events import A, B, Log, facts_of, rows_of_logs, store_of, table
from windvane_client.events import TOOL_OUTCOMES
from windvane_client.signals import BIT_TRIALS, CLASSED_TRIALS

CLASSED = {"ok": True, "runtime": True, "malformed": False, "precondition": False}
BIT = {"ok": True, "failed": False}


@pytest.mark.parametrize("outcome", TOOL_OUTCOMES)
def test_each_outcome_is_a_success_a_failure_or_no_trial(outcome: str) -> None:
    log = Log()
    log.prompt(0)
    log.tool(1, outcome, result=1)
    expected = {(A, None): (1, int(CLASSED[outcome]))} if outcome in CLASSED else {}
    assert table(rows_of_logs(log), "tool_reliability") == expected


def test_the_two_bases_have_their_own_trials() -> None:
    assert CLASSED_TRIALS == CLASSED
    assert BIT_TRIALS == BIT


def test_a_side_model_is_credited_for_its_own_calls() -> None:
    log = Log()
    log.prompt(0)
    log.tool(1, "ok", A)
    log.tool(2, "malformed", B, thread="side")
    assert table(rows_of_logs(log), "tool_reliability") == {(A, None): (1, 1), (B, None): (1, 0)}


def test_parallel_calls_count_one_by_one() -> None:
    log = Log()
    log.prompt(0)
    for _ in range(7):
        log.tool(1)
    assert table(rows_of_logs(log), "tool_reliability") == {(A, None): (7, 7)}


def test_at_most_fifty_calls_of_a_family_and_episode_enter() -> None:
    log = Log()
    log.prompt(0)
    for i in range(120):
        log.tool(1 + i / 10, "malformed" if i % 2 else "ok")
    for i in range(30):
        log.tool(20 + i / 10, "ok", B)
    log.prompt(200)
    log.tool(201)
    rows = table(rows_of_logs(log), "tool_reliability")
    assert rows[A, None][0] == 51
    assert rows[B, None] == (30, 30)


def test_the_cap_does_not_depend_on_outcome_or_reading_order() -> None:
    def build(flip: bool, backwards: bool) -> tuple[Counter[tuple[str, str]], int]:
        log = Log()
        log.prompt(0)
        for i in range(100):
            log.tool(1 + i / 10, "ok" if (i % 2 == 0) ^ flip else "malformed", key=f"tool{i}")
        if backwards:
            log.events.reverse()
        (episode,) = facts_of(log).episodes
        return episode.tools, sum(episode.tools.values())

    straight, turned = build(False, False), build(True, False)
    assert build(False, True) == straight
    assert straight[1] == turned[1] == 50
    # The same calls are chosen whatever their outcome: exchanging the outcomes exchanges the counts.
    assert straight[0][A, "ok"] == turned[0][A, "malformed"]
    assert straight[0][A, "malformed"] == turned[0][A, "ok"]


def test_the_cap_is_uniform_over_the_calls() -> None:
    """The chosen half of 100 calls spreads over early and late calls alike (each quarter expects 12.5)."""
    quarters = Counter[int]()
    for number in range(20):
        log = Log(conv=f"c{number}")
        log.prompt(0)
        for i in range(100):
            log.tool(1 + i / 10, ("ok", "runtime", "malformed", "precondition")[i // 25], key=f"{number}/{i}")
        (episode,) = facts_of(log).episodes
        for q, outcome in enumerate(("ok", "runtime", "malformed", "precondition")):
            quarters[q] += episode.tools[A, outcome]
    assert sum(quarters.values()) == 1000
    # Mean 250, standard deviation below 10: five of them.
    assert all(abs(n - 250) < 50 for n in quarters.values())


def test_a_call_and_its_result_are_one_call() -> None:
    log = Log()
    log.prompt(0)
    log.tool(1, "no_result", A, "edit", key="t")
    log.tool(3, "precondition", "unknown", "unknown", key="t", result=3)
    for order in (log.events, log.events[::-1]):
        with store_of(order) as store:
            assert store.counts() == {"prompt": 1, "tool": 1}
    assert table(rows_of_logs(log), "tool_reliability") == {(A, None): (1, 0)}


def test_a_call_cancelled_with_its_sibling_is_answered_but_no_trial() -> None:
    log = Log()
    log.prompt(0)
    log.call(0.5)
    log.tool(1, "no_result", A, key="t")
    log.tool(1.5, "no_result", "unknown", "unknown", key="t", result=1.5)
    log.end(2)
    (episode,) = facts_of(log).episodes
    assert episode.tools == {}
    assert episode.ending.value == "clean_end"


@given(st.lists(st.sampled_from(sorted(TOOL_OUTCOMES)), max_size=40))
def test_trials_and_successes_are_the_counts_of_their_outcomes(outcomes: list[str]) -> None:
    log = Log()
    log.prompt(0)
    for i, outcome in enumerate(outcomes):
        log.tool(1 + i / 100, outcome, result=1 + i / 100)
    trials = [outcome for outcome in outcomes if outcome in CLASSED]
    expected = {(A, None): (len(trials), sum(CLASSED[o] for o in trials))} if trials else {}
    assert table(rows_of_logs(log), "tool_reliability") == expected
