# SPDX-License-Identifier: Apache-2.0
"""A transcript and the telemetry of one conversation are one: nothing counts twice, and each says what it can say."""

from __future__ import annotations

from typing import Any

import pytest

from client_events import CATALOGUE, A, B, Log, facts_of, rows_of_logs, table, tag
from windvane_client.constants import CONSTANTS
from windvane_client.outcomes_table import switch_of
from windvane_client.rules import Rules
from windvane_privacy.outcomes import PersonOutcome

ROLLOUT = {"source": "codex", "recorder": "codex", "reader": "codex/1.0.0", "client": "codex_cli"}
TELEMETRY = ROLLOUT | {"source": "otlp/codex", "recorder": "otlp/codex", "reader": "otlp/1.0.0"}
TURNS = ((0.0, A), (10.0, A))


def rollout(*turns: tuple[float, str]) -> Log:
    log = Log(**ROLLOUT).habit(A, B)
    for minute, family in turns or TURNS:
        log.turn(minute, family)
    return log


def telemetry(*turns: tuple[float, str]) -> Log:
    """The same turns, told again."""
    log = Log(**TELEMETRY)
    for minute, family in turns or TURNS:
        log.prompt(minute, key=f"otlp-prompt-{minute}")
        log.call(minute + 0.5, family, key=f"otlp-call-{minute}")
    return log


def rows(*logs: Log, signal: str) -> list[PersonOutcome]:
    return [row for row in rows_of_logs(*logs) if row.signal == signal]


def test_calls_and_prompts_of_both_count_once() -> None:
    both, alone = facts_of(rollout(), telemetry()), facts_of(rollout())
    for name in ("calls_ok", "prompts_person"):
        assert getattr(both.totals, name) == getattr(alone.totals, name) > 0
    assert len(both.episodes) == len(alone.episodes)


def test_errors_are_taken_from_the_telemetry_and_belong_to_its_recorder() -> None:
    told = telemetry()
    told.error(0.2, "overload", attempt=1)
    assert rows(rollout(), signal="infra_recovery") == []
    (row,) = rows(rollout(), told, signal="infra_recovery")
    assert (row.model, row.recorder, row.trials, row.successes) == (A, "otlp/codex/codex_cli", 1, 1)


def test_a_failure_that_the_rollout_writes_does_not_hide_those_of_the_telemetry() -> None:
    quota = rollout()
    quota.error(9, "rate_own", final=True)
    told = telemetry()
    told.error(0.2, "overload", attempt=1)
    assert [row.trials for row in rows(quota, told, signal="infra_recovery")] == [1]


MOVE = ((0.0, A), (10.0, B))


def cause_of(*logs: Log) -> tuple[str | None, str] | None:
    facts = facts_of(*logs)
    (episode,) = [one for one in facts.episodes if one.conv == tag("c1")]
    return switch_of(episode, facts, CATALOGUE, Rules(), CONSTANTS)


def test_a_rollout_alone_cannot_tell_why_a_model_changed() -> None:
    assert cause_of(rollout(*MOVE)) == (B, "unknown")
    assert rows(rollout(*MOVE), signal="switch_away") == []


def test_with_telemetry_in_every_turn_a_change_is_inferred() -> None:
    assert cause_of(rollout(*MOVE), telemetry(*MOVE)) == (B, "person_inferred")
    found = rows(rollout(*MOVE), telemetry(*MOVE), signal="switch_away")
    assert table(found, "switch_away") == {(A, B): (1, 0)}
    assert {(row.recorder, row.basis) for row in found} == {("codex", "inferred")}


@pytest.mark.parametrize("on", [0, 1])
def test_telemetry_that_was_off_in_one_turn_says_nothing_of_the_whole(on: int) -> None:
    assert cause_of(rollout(*MOVE), telemetry(MOVE[on])) == (B, "unknown")
    assert rows(rollout(*MOVE), telemetry(MOVE[on]), signal="switch_away") == []


def test_an_error_in_the_telemetry_explains_the_change() -> None:
    told = telemetry(*MOVE)
    told.error(9, "5xx", attempt=1)
    assert cause_of(rollout(*MOVE), told) == (B, "infra")


@pytest.mark.parametrize(
    ("later", "ending", "silent"),
    [(4, "clean_end", 0), (30, "unknown", 1), (58, "unknown", 1), (62, "clean_end", 0)],
)
def test_a_transcript_that_stops_while_its_telemetry_goes_on_has_no_known_end(
    later: float, ending: str, silent: int
) -> None:
    last = TURNS[-1][0] + 1
    told = telemetry()
    told.call(last + later, A, key="later")
    facts = facts_of(rollout(), told)
    (episode,) = [one for one in facts.episodes if one.conv == tag("c1")]
    assert (episode.ending.value, facts.totals.source_silent) == (ending, silent)
    told.events[-1].thread = "side"
    assert facts_of(rollout(), told).totals.source_silent == 0, "a title that is made later is no work"


@pytest.mark.parametrize(
    "header",
    [
        {"source": "cline", "recorder": "cline/session", "reader": "cline/1.0.0"},
        {"source": "otlp/claude_code", "recorder": "otlp/claude_code", "reader": "otlp/1.0.0"},
    ],
)
def test_where_only_staying_shows_nothing_is_a_trial(header: dict[str, Any]) -> None:
    log = Log(**header).habit(A, B)
    for number in range(20):
        log.turn(number * 200, A)
        log.turn(number * 200 + 5, A)
    assert rows(log, signal="switch_away") == []
    told = Log(source="canonical", recorder="canonical/x", kind_hint="coding").habit(A, B)
    told.turn(0, A)
    told.turn(5, A)
    told.turn(200, B)
    assert rows(told, signal="switch_away") != []
