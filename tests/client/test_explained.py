# SPDX-License-Identifier: Apache-2.0
"""An explanation names the evidence of each outcome, and says of every signal whether it counts, as the table does."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from client_events import CATALOGUE, A, B, C, Log, facts_of, rows_of_logs, tag
from windvane.preview_why import WHY_NOT, verdict_text
from windvane_client.evidence import micros
from windvane_client.explained import COUNTS, explain
from windvane_client.observed import ALL_TIME
from windvane_client.outcomes_table import rows_of
from windvane_client.preview import plan_paths, read
from windvane_client.preview_own import own_work
from windvane_client.preview_setup import no_setup
from windvane_client.rules import Rules, parse_rules
from windvane_client.store import EventStore

FIXTURES = Path(__file__).parent / "fixtures"
NOW = datetime(2027, 6, 1, tzinfo=UTC)


def told(build: Callable[[Log], object], *habit: str, rules: Rules | None = None, **header: Any) -> dict[str, Any]:
    log = Log(**header).habit(*(habit or (A, B)))
    build(log)
    facts = facts_of(log, rules=rules)
    (episode,) = [one for one in facts.episodes if one.conv == tag("c1")]
    return dict(explain(episode, facts, catalogue=CATALOGUE, rules=rules or Rules()))


def two(log: Log, *families: str) -> None:
    for number, family in enumerate(families or (A, A)):
        log.turn(number * 5, family)


def test_each_change_has_its_cause_and_its_evidence() -> None:
    def build(log: Log) -> None:
        log.turn(0, A)
        log.turn(5, B)
        log.turn(10, A)
        log.error(12, "overload")
        log.turn(15, B)
        log.turn(20, C)

    assert told(build)["changes"] == [
        {"turn": 2, "from": A, "to": B, "cause": "returned", "evidence": ["came_back_later"]},
        {"turn": 3, "from": B, "to": A, "cause": "returned", "evidence": ["came_back_later"]},
        {"turn": 4, "from": A, "to": B, "cause": "infra", "evidence": ["attempt_error_overload"]},
        {"turn": 5, "from": B, "to": C, "cause": "later", "evidence": ["first_model_was_left_before"]},
    ]


POLICY = parse_rules(events=f'[[event]]\ndate = 2026-08-06\nkind = "policy"\nfrom = "{A}"\nto = "{B}"\n')


@pytest.mark.parametrize(
    ("build", "rules", "cause", "evidence"),
    [
        (lambda log: two(log, A, B), POLICY, "policy", "declared_policy"),
        (lambda log: (log.turn(0, A), log.set_model(2, "policy"), log.turn(5, B)), None, "policy", "model_set_policy"),
        (
            lambda log: (log.turn(0, A), log.set_model(2, "refusal"), log.turn(5, B)),
            None, "refusal", "model_set_refusal",
        ),
        (lambda log: (log.turn(0, A), log.set_model(2), log.turn(5, B)), None, "person_set", "model_set_person"),
        (lambda log: two(log, A, B), None, "person_inferred", "nothing_else_recorded"),
        (
            lambda log: (log.turn(0, A), log.error(2, "context"), log.turn(5, B)),
            None, "context", "attempt_error_context",
        ),
    ],
)  # fmt: skip
def test_the_evidence_of_a_cause_is_named(
    build: Callable[[Log], object], rules: Rules | None, cause: str, evidence: str
) -> None:
    (change,) = told(build, rules=rules)["changes"]
    assert (change["cause"], change["evidence"]) == (cause, [evidence])


def test_tool_calls_and_faults_that_do_not_count_are_shown_apart() -> None:
    def build(log: Log) -> None:
        log.prompt(0)
        log.error(0.2, attempt=1)
        log.call(0.5, A)
        for minute, outcome in ((1, "ok"), (2, "denied"), (3, "hook_block")):
            log.tool(minute, outcome)
        for number in range(60):
            log.tool(4 + number / 100, "malformed")
        log.end(6)

    shown = told(build)
    assert sum(shown["tools"].values()) == 50
    assert shown["tools_left_out"][f"{A}:denied"] == shown["tools_left_out"][f"{A}:hook_block"] == 1
    assert sum(shown["tools"].values()) + sum(shown["tools_left_out"].values()) == 63
    assert (shown["infra"], shown["infra_left_out"]) == ({f"{A}:recovered_same": 1}, {})
    unsaid = told(build, mode="unknown")
    assert (unsaid["tools"], unsaid["infra"]) == ({}, {})
    assert sum(unsaid["tools_left_out"].values()) == 63
    assert unsaid["signals"]["tool_reliability"] == unsaid["signals"]["infra_recovery"] == "mode_unknown"


@pytest.mark.parametrize(
    ("build", "habit", "header", "signal", "verdict"),
    [
        (two, (A, B), {}, "completion", COUNTS),
        (two, (A, B), {"mode": "unknown"}, "completion", "mode_unknown"),
        (two, (A, B), {"source": "canonical", "recorder": "canonical/x"}, "completion", "kind_undecided"),
        (two, (A, B), {"source": "otlp", "recorder": "otlp/codex"}, "completion", "source_cannot_tell"),
        (lambda log: two(log, A, B), (A, B), {}, "completion", "several_models"),
        (lambda log: two(log, C, C), (A, B), {}, "completion", "model_is_new"),
        (lambda log: two(log, "other", "other"), (A, B), {}, "completion", "model_not_listed"),
        (lambda log: log.turn(0, A, None), (A, B), {}, "completion", "end_unknown"),
        (lambda log: log.turn(0, A), (A, B), {}, "switch_away", "one_turn_only"),
        (two, (A,), {}, "switch_away", "no_second_model_lately"),
        (two, (A, B), {"source": "codex", "recorder": "codex"}, "switch_away", "source_cannot_tell"),
        (lambda log: two(log, A, "unknown"), (A, B), {}, "switch_away", "model_not_recorded"),
        (lambda log: two(log, A, C), (A, B), {}, "switch_away", "cause_novelty"),
        (lambda log: two(log, A, B), (A, B), {}, "switch_away", COUNTS),
        (two, (A, B), {}, "tool_reliability", "no_call_that_counts"),
        (two, (A, B), {}, "infra_recovery", "no_fault_that_counts"),
        (two, (A, B), {"source": "codex", "recorder": "codex"}, "infra_recovery", "source_cannot_tell"),
    ],
)
def test_a_signal_that_does_not_count_says_why(
    build: Callable[[Log], object], habit: tuple[str, ...], header: dict, signal: str, verdict: str
) -> None:
    found = told(build, *habit, **header)["signals"][signal]
    assert found == verdict
    assert verdict == COUNTS or verdict.startswith("cause_") or verdict in WHY_NOT
    assert "_" not in verdict_text(found)


def test_an_explanation_says_what_told_the_mode_and_the_kind() -> None:
    shown = told(two)
    assert (shown["mode_evidence"], shown["kind_evidence"]) == (["entrypoint"], "default_of_source")
    assert told(two, kind_hint="writing")["kind_evidence"] == "rule_or_tag"
    assert json.dumps(shown)


@pytest.mark.parametrize(
    "name",
    [
        "claude_code_SYNTHETIC.jsonl", "canonical_SYNTHETIC.jsonl", "codex_SYNTHETIC", "cline_SYNTHETIC",
        "otlp_codex_SYNTHETIC.jsonl", "otlp_gemini_cli_SYNTHETIC.json",
    ],
)  # fmt: skip
def test_what_an_explanation_says_counts_is_what_the_table_holds(name: str) -> None:
    setup = no_setup()
    with EventStore.temporary() as store:
        read(plan_paths([FIXTURES / name], setup, apart=False), store, setup, now=NOW)
        person = own_work(store, setup, micros(NOW)).person
    assert person is not None
    rows = rows_of(person, window=ALL_TIME, catalogue=setup.catalogue, rules=setup.rules)
    shown = [explain(one, person, catalogue=setup.catalogue, rules=setup.rules) for one in person.episodes]
    counted = [one for one in shown if one["signals"]["completion"] == COUNTS]
    assert sum(row.trials for row in rows if row.signal == "completion") == len(counted)
    with_tools = [one for one in shown if one["signals"]["tool_reliability"] == COUNTS]
    assert sum(row.trials for row in rows if row.signal == "tool_reliability") == sum(
        n for one in with_tools for n in one["tools"].values()
    )
    with_faults = [one for one in shown if one["signals"]["infra_recovery"] == COUNTS]
    assert sum(row.trials for row in rows if row.signal == "infra_recovery") == sum(
        n for one in with_faults for n in one["infra"].values()
    )
    stays = {(one["openings"][0], one["kind"]) for one in shown if one["signals"]["switch_away"] == COUNTS}
    assert {row.model for row in rows if row.signal == "switch_away"} <= {model for model, _ in stays}
    assert bool(rows)


def test_a_verdict_follows_the_table_when_its_evidence_goes() -> None:
    log = Log().habit(A, B)
    two(log)
    assert any(row.signal == "completion" for row in rows_of_logs(log))
    assert told(two)["signals"]["completion"] == COUNTS
    unsaid = Log(mode="unknown").habit(A, B)
    two(unsaid)
    assert not any(row.signal == "completion" for row in rows_of_logs(unsaid))
