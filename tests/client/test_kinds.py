# SPDX-License-Identifier: Apache-2.0
"""The kind of work is decided per workspace and never by an outcome."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client_events import A, B, Log, facts_of, rows_of_logs
from windvane_client.events import TOOL_OUTCOMES
from windvane_client.rules import Rules, parse_rules
from windvane_privacy.errors import ConfigurationError


def kind(calls: dict[str, int], *, rules: Rules | None = None, **header: object) -> str:
    log = Log(**header)
    log.prompt(0)
    for tool_class, n in calls.items():
        for _ in range(n):
            log.tool(1, tool_class=tool_class)
    (found,) = facts_of(log, rules=rules).kinds.values()
    return found


CANONICAL = {"source": "canonical", "recorder": "canonical/x"}


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ({"edit": 5, "run": 5, "data": 10}, "coding"),
        ({"edit": 5, "run": 4, "data": 11}, "analysis"),
        ({"web": 19, "edit": 1}, "research"),
        ({"web": 18, "edit": 2}, "other"),
        ({"doc": 10, "web": 10, "edit": 0}, "research"),
        ({"doc": 11, "web": 9}, "writing"),
        ({"ticket": 10, "run": 9, "data": 1}, "support"),
        ({"edit": 7, "data": 7, "doc": 6}, "other"),
        ({"data": 19}, "other"),
        ({"data": 20}, "analysis"),
        ({"data": 19, "read": 50, "plan": 50, "mcp": 50, "unknown": 50}, "other"),
    ],
)
def test_the_tool_profile_decides_from_twenty_work_calls_on(calls: dict[str, int], expected: str) -> None:
    assert kind(calls, **CANONICAL) == expected


def test_a_coding_agent_with_too_few_calls_is_coding() -> None:
    assert kind({"data": 19}) == "coding"
    assert kind({"data": 20}) == "analysis"


def test_a_rule_or_tag_comes_before_the_profile() -> None:
    assert kind({"data": 30}, kind_hint="writing") == "writing"
    rules = parse_rules(
        '[[kind]]\nclient = "claude_*"\nkind = "support"\n\n[[kind]]\nsource = "*"\nkind = "research"\n'
    )
    assert kind({"data": 30}, rules=rules) == "support"
    assert kind({"data": 30}, rules=rules, client="other") == "research"
    assert kind({"data": 30}, rules=rules, kind_hint="writing") == "writing"


def test_a_project_is_one_workspace_and_without_one_the_conversation_is() -> None:
    first, second = Log(conv="c1"), Log(conv="c2")
    for log in (first, second):
        log.prompt(0)
        for _ in range(10):
            log.tool(1, tool_class="data")
    assert set(facts_of(first, second).kinds.values()) == {"analysis"}
    for log in (first, second):
        for event in log.events:
            event.project = None
    assert set(facts_of(first, second).kinds.values()) == {"coding"}


@given(
    st.lists(
        st.tuples(st.sampled_from(("edit", "data", "web")), st.sampled_from(TOOL_OUTCOMES), st.sampled_from((A, B))),
        min_size=18,
        max_size=30,
    ),
    st.randoms(),
)
def test_permuting_outcomes_and_models_never_changes_a_kind(calls: list[tuple[str, str, str]], random: object) -> None:
    def build(outcomes: list[str], models: list[str]) -> set[str]:
        log = Log()
        log.prompt(0)
        for (tool_class, _, _), outcome, model in zip(calls, outcomes, models, strict=True):
            log.tool(1, outcome, model, tool_class)
        return set(facts_of(log).kinds.values())

    outcomes, models = [c[1] for c in calls], [c[2] for c in calls]
    before = build(outcomes, models)
    random.shuffle(outcomes)  # type: ignore[attr-defined]
    random.shuffle(models)  # type: ignore[attr-defined]
    assert build(outcomes, models) == before


def test_work_of_kind_other_gives_no_row_but_blind_votes_in_the_pooled_layout() -> None:
    log = Log(**CANONICAL).habit(A, B)
    log.turn(0)
    log.tool(0.7)
    log.vote(2, "a")
    assert rows_of_logs(log) == []
    assert {r.signal for r in rows_of_logs(log, pooled=True)} == {"blind_quality"}
    assert {r.kind for r in rows_of_logs(log, pooled=True)} == {"other"}


@pytest.mark.parametrize(
    "text",
    [
        "[[kind]]\nkind = 'coding'\n",
        "[[kind]]\nkind = 'gardening'\ntag = 'x'\n",
        "[[kind]]\nkind = 'coding'\ncwd = '/home'\n",
        "[[kind]]\nkind = 'coding'\ntag = 3\n",
        "[tools]\nx = 'nothing'\n",
        "[tool_markers]\nx = 'nothing'\n",
        f"[tool_markers]\n{'x' * 81} = 'ok'\n",
        "[modes]\nrobots = []\n",
        "[modes]\nrelay_keys = 'x'\n",
        "[unknown]\n",
        "not toml",
    ],
)
def test_malformed_rules_are_refused_without_quoting_them(text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_rules(text)
    assert "gardening" not in str(caught.value)
    assert "/home" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "[[event]]\nkind = 'policy'\n",
        "[[event]]\ndate = 2026-08-01\nkind = 'storm'\n",
        "[[event]]\ndate = 2026-08-01\nkind = 'outage'\n",
        "[[event]]\ndate = 2026-08-01\nkind = 'policy'\nfrom = 3\n",
        "[[event]]\ndate = 2026-08-01\nkind = 'policy'\nwho = 'x'\n",
    ],
)
def test_malformed_events_are_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        parse_rules(events=text)
