# SPDX-License-Identifier: Apache-2.0
"""The summary says null where the log cannot tell, and 0 only where it could."""

from __future__ import annotations

import json
from typing import Any

import pytest

from client_events import CATALOGUE, KEY, NOW, A, B, Log, facts_of, store_of, tag
from windvane_client.events import Rows
from windvane_client.explained import explain
from windvane_client.observed import observe
from windvane_client.readers.protocol import SampleFacts
from windvane_client.rules import Rules

ALL = {"any_row": True, "any_call_row": True, "any_prompt_row": True, "any_tool_row": True, "attempts_known": True}


def seen(*logs: Log, source: str = "claude_code", rows: Rows | None = None, **facts: Any) -> dict[str, Any]:
    with store_of(*logs) as store:
        return observe(
            store,
            SampleFacts(source, **facts),
            rows or Rows(),
            catalogue=CATALOGUE,
            rules=Rules(),
            ids_key=KEY,
            now=NOW,
        )


def test_a_sample_that_says_nothing_is_null_all_over() -> None:
    assert seen(rows=Rows(read=2, foreign=2)) == {
        "rows": {"read": 2, "rejected": 0, "unknown": 0, "foreign": 2},
        "conversations": None,
        "persons": None,
        "mode": "unknown",
        "kind": "other",
        "calls": {"answered": None, "failed": None, "side_answered": 0},
        "prompts": {"person": None, "command": None},
        "episodes": None,
        "completion": None,
        "switches": {"eligible_episodes": None, "person_made": None, "by_cause": None},
        "tools": {"basis": None, "outcomes": None},
        "infra": None,
        "blind": None,
        "outcome_rows": 0,
    }


def test_a_sample_that_could_say_everything_counts_from_zero() -> None:
    log = Log()
    log.prompt(0)
    found = seen(log, **ALL)
    assert found["calls"] == {"answered": 0, "failed": 0, "side_answered": 0}
    assert found["tools"] == {"basis": "classed", "outcomes": {}}
    assert found["infra"] == {"recovered_same": 0, "recovered_other": 0, "lost": 0, "cut": 0}
    assert found["blind"] is None
    assert found["episodes"] == 1


@pytest.mark.parametrize(("flag", "keys"), [
    ("any_call_row", ["calls.answered", "calls.failed"]),
    ("any_prompt_row", ["prompts.person", "prompts.command", "episodes", "completion", "switches.eligible_episodes"]),
    ("any_tool_row", ["tools.basis", "tools.outcomes"]),
    ("attempts_known", ["infra"]),
])  # fmt: skip
def test_evidence_that_is_not_there_is_unknown_and_never_zero(flag: str, keys: list[str]) -> None:
    log = Log().habit(A, B)
    log.turn(0)
    log.tool(2)
    log.error(3, attempt=1)
    log.call(4)

    def value(found: dict[str, Any], key: str) -> object:
        for name in key.split("."):
            found = found[name]
        return found

    whole, without = seen(log, **ALL), seen(log, **(ALL | {flag: False}))
    for key in keys:
        assert value(whole, key) is not None
        assert value(without, key) is None


def test_switches_are_null_when_no_person_turn_names_its_model() -> None:
    log = Log()
    log.turn(0, "unknown")
    assert seen(log, **ALL)["switches"]["person_made"] is None
    log.turn(5, A)
    assert seen(log, **ALL)["switches"]["person_made"] == 0


def test_a_log_with_two_models_and_a_persons_switch_reaches_the_table() -> None:
    log = Log().habit(A, B)
    log.turn(0, A)
    log.turn(5, B)
    log.tool(6)
    found = seen(log, **ALL)
    assert found["switches"] == {"eligible_episodes": 1, "person_made": 1, "by_cause": {"person_inferred": 1}}
    assert found["outcome_rows"] > 0
    assert json.dumps(found)


def test_votes_alone_are_interactive() -> None:
    log = Log(source="canonical", recorder="canonical/x", mode="unknown")
    log.vote(0, "a")
    log.vote(1, "tie", item="two", blind="no")
    found = seen(log, source="canonical", any_row=True, any_vote_row=True)
    assert found["mode"] == "interactive"
    assert found["blind"] == {"proved": 1, "attested": 0, "not_blind": 1}


def test_an_explanation_names_evidence_and_no_ids() -> None:
    log = Log().habit(A, B)
    log.turn(0, A)
    log.turn(5, B, "interrupted")
    facts = facts_of(log)
    episode = next(e for e in facts.episodes if e.conv == tag("c1"))
    told = explain(episode, facts, catalogue=CATALOGUE, rules=Rules())
    assert told["completion"] == {"class": "abandoned", "evidence": ["turn_end_interrupted"]}
    assert told["switch"] == {"target": B, "cause": "person_inferred"}
    assert told["openings"] == [A, B]
    assert json.dumps(told)
