# SPDX-License-Identifier: Apache-2.0
"""The recorded transcripts read as their expected files say, as far as a reader alone can tell."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from reader_support import IDS, NOW, of
from windvane_client.catalogue_builtin import builtin_catalogue
from windvane_client.readers import READERS, SampleFacts, context_for
from windvane_client.readers.files import open_log

NAMES = [
    "fixture_ccusage_alpha",
    "fixture_edge_cases",
    "fixture_sample_session",
    "real_short_v2.1.38",
    "real_skill_model_swap_v2.1.39",
    "real_subagent_file_a9",
    "real_tool_heavy_v2.1.38",
]


def load(shared: Path, name: str):
    path = shared / "samples" / "claude_code" / f"{name}.jsonl"
    facts = SampleFacts("claude_code")
    ctx = context_for(path, ids=IDS, catalogue=builtin_catalogue(), now=NOW, facts=facts)
    ctx.final = True
    with open_log(path) as stream:
        events = list(READERS["claude_code"].read(stream, ctx))
    return events, ctx, json.loads(Path(f"{path}.expected.json").read_text())


@pytest.mark.parametrize("name", NAMES)
def test_sample_reads_as_expected(shared, name):
    events, ctx, expected = load(shared, name)
    observed, facts, rows = expected["observed"], ctx.facts, ctx.rows
    assert {key: getattr(rows, key) for key in ("read", "rejected", "unknown", "foreign")} == observed["rows"]
    assert sum(rows.reasons.values()) == rows.rejected == len(of(events, "Gap"))
    assert len(facts.conversations or ()) == observed["conversations"]
    assert facts.persons is None
    calls = {event.key: event for event in of(events, "Call")}
    assert Counter(call.served for call in calls.values()) == expected["models"]["by_family"]
    assert sum(call.thread == "side" for call in calls.values()) == observed["calls"]["side_answered"]
    assert sum(error.final for error in of(events, "AttemptError")) == observed["calls"]["failed"]
    prompts = {event.key: event.origin for event in of(events, "Prompt")}
    counts = Counter(prompts.values())
    if observed["prompts"]["person"] is None:
        assert not facts.any_prompt_row
        assert not prompts
    else:
        assert facts.any_prompt_row
        assert counts["human"] + counts["queued"] == observed["prompts"]["person"]
        assert counts["command"] == observed["prompts"]["command"]
    outcomes: dict[bytes, str] = {}
    for event in of(events, "Tool"):
        if event.result_ts is not None or event.key not in outcomes:
            outcomes[event.key] = event.outcome
    if observed["tools"]["outcomes"] is None:
        assert not facts.any_tool_row
    else:
        assert facts.any_tool_row
        assert Counter(outcomes.values()) == observed["tools"]["outcomes"]
    assert facts.infra_possible == (observed["infra"] is not None)
    assert facts.any_vote_row == (observed["blind"] is not None)
    assert {event.mode for event in events} == {observed["mode"]}


def test_the_skills_model_is_nobodys_choice(shared):
    events, _, _ = load(shared, "real_skill_model_swap_v2.1.39")
    routes = {(call.served, call.route) for call in of(events, "Call")}
    assert routes == {("claude-opus-4.6", "direct"), ("claude-haiku-4.5", "skill")}


def test_hook_stops_are_known_only_by_an_organisations_marker(shared):
    path = shared / "samples" / "claude_code" / "real_skill_model_swap_v2.1.39.jsonl"
    ctx = context_for(path, ids=IDS, catalogue=builtin_catalogue(), now=NOW, facts=SampleFacts("claude_code"))
    ctx.tool_markers = {b"Pre-commit validation failed": "hook_block"}
    with open_log(path) as stream:
        events = list(READERS["claude_code"].read(stream, ctx))
    outcomes = Counter(event.outcome for event in of(events, "Tool") if event.result_ts is not None)
    assert outcomes == {"ok": 230, "precondition": 3, "runtime": 1, "hook_block": 8}
