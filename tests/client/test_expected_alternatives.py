# SPDX-License-Identifier: Apache-2.0
"""The recorded Claude Code samples under a stated other setting: with a marker rule, with a subagent's file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from windvane_client.catalogue_builtin import builtin_catalogue
from windvane_client.ids import throw_away_ids
from windvane_client.observed import observe
from windvane_client.readers import ReadContext, SampleFacts, reader
from windvane_client.rules import Rules, parse_rules
from windvane_client.store import EventStore

NOW = 1_790_000_000_000_000  # 2026-09, long after the last event


def read_sample(paths: list[Path], rules: Rules | None = None) -> tuple[EventStore, dict[str, Any]]:
    rules = rules or Rules()
    catalogue = builtin_catalogue()
    ids = throw_away_ids()
    source = reader("claude_code")
    facts = SampleFacts("claude_code")
    store = EventStore.temporary()
    for path in paths:
        context = ReadContext(
            ids=ids,
            catalogue=catalogue,
            now=NOW,
            file_key=path.name.encode().ljust(16)[:16],
            facts=facts,
            machine_person=ids.machine(),
            session_hint=path.stem,
            final=True,
            tool_markers=rules.tool_markers,
        )
        with path.open("rb") as stream:
            store.add(source.read(stream, context))
        store.add_rows("claude_code", context.rows)
    seen = observe(store, facts, store.rows(), catalogue=catalogue, rules=rules, ids_key=bytes(32), now=NOW)
    return store, seen


def test_an_organisations_marker_turns_its_hook_stops_into_hook_stops(shared: Path) -> None:
    path = shared / "samples" / "claude_code" / "real_skill_model_swap_v2.1.39.jsonl"
    expected = json.loads(path.with_name(f"{path.name}.expected.json").read_text())
    wanted = expected["information"]["alternative"]["tools_with_marker_rule"]
    marker, outcome = next(iter(wanted["rule"].items()))
    store, seen = read_sample([path], parse_rules(f'[tool_markers]\n"{marker}" = "{outcome}"\n'))
    with store:
        assert seen["tools"]["outcomes"] == wanted["outcomes"]


def test_a_subagents_file_joins_the_conversation_on_the_side_thread(shared: Path) -> None:
    folder = shared / "samples" / "claude_code"
    main, side = folder / "real_skill_model_swap_v2.1.39.jsonl", folder / "real_subagent_file_a9.jsonl"
    expected = json.loads(main.with_name(f"{main.name}.expected.json").read_text())
    store, seen = read_sample([side, main])
    with store:
        wanted = expected["information"]["alternative"]["with_subagent_file"]
        assert {k: seen["calls"][k] for k in wanted} == wanted
        assert seen["conversations"] == 1
        assert seen["episodes"] == 1
        assert seen["tools"]["outcomes"]["ok"] == 242
