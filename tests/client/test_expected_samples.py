# SPDX-License-Identifier: Apache-2.0
"""The recorded Claude Code samples give exactly the values that were worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from windvane_client.catalogue_builtin import builtin_catalogue
from windvane_client.ids import throw_away_ids
from windvane_client.observed import observe
from windvane_client.readers import ReadContext, SampleFacts, reader
from windvane_client.rules import Rules, parse_rules
from windvane_client.store import EventStore
from windvane_privacy.catalogue import Catalogue

NOW = 1_790_000_000_000_000  # 2026-09, long after the last event
SAMPLES = (
    "fixture_ccusage_alpha",
    "fixture_edge_cases",
    "fixture_sample_session",
    "real_short_v2.1.38",
    "real_skill_model_swap_v2.1.39",
    "real_subagent_file_a9",
    "real_tool_heavy_v2.1.38",
)


def read_sample(paths: list[Path], rules: Rules | None = None) -> tuple[EventStore, dict[str, Any], Catalogue]:
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
    return store, seen, catalogue


def flat(value: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, inner in value.items():
        # Dictionaries whose keys are outcomes or causes are values; the others are part of the shape.
        if isinstance(inner, dict) and name not in ("outcomes", "by_cause", "blind"):
            found |= flat(inner, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = inner
    return found


@pytest.mark.parametrize("name", SAMPLES)
def test_sample_gives_its_expected_values(shared: Path, name: str) -> None:
    path = shared / "samples" / "claude_code" / f"{name}.jsonl"
    expected = json.loads(path.with_name(f"{path.name}.expected.json").read_text())
    store, seen, _ = read_sample([path])
    with store:
        assert seen.keys() == expected["observed"].keys()
        wanted, got = flat(expected["observed"]), flat(seen)
        wrong = {key: (got.get(key), value) for key, value in wanted.items() if got.get(key) != value}
        assert {key: pair for key, pair in wrong.items() if key not in expected["doubtful"]} == {}


@pytest.mark.parametrize("name", SAMPLES)
def test_also_the_doubtful_values_are_those_of_the_careful_reader(shared: Path, name: str) -> None:
    path = shared / "samples" / "claude_code" / f"{name}.jsonl"
    expected = json.loads(path.with_name(f"{path.name}.expected.json").read_text())
    store, seen, _ = read_sample([path])
    with store:
        assert flat(seen) == flat(expected["observed"])


@pytest.mark.parametrize("name", SAMPLES)
def test_families_and_turn_openings_are_as_worked_out(shared: Path, name: str) -> None:
    path = shared / "samples" / "claude_code" / f"{name}.jsonl"
    expected = json.loads(path.with_name(f"{path.name}.expected.json").read_text())
    store, _, catalogue = read_sample([path])
    with store:
        families, opened = opened_families(store)
        assert families == expected["models"]["by_family"]
        if expected["models"]["turn_openings"] is not None:
            assert sorted(opened) == sorted(o for o in map(tuple, expected["models"]["turn_openings"]) if o)
        assert catalogue


def opened_families(store: EventStore) -> tuple[dict[str, int], list[tuple[str | None, ...]]]:
    from windvane_client.signals import read_person

    families: dict[str, int] = {}
    opened: list[tuple[str | None, ...]] = []
    for person in store.people():
        facts = read_person(store, person, window=(0, NOW), rules=Rules(), ids_key=bytes(32), now=NOW)
        families |= facts.totals.families
        opened += [tuple(o.family for o in episode.openings) for episode in facts.episodes]
    return families, opened


def test_an_organisations_marker_turns_its_hook_stops_into_hook_stops(shared: Path) -> None:
    path = shared / "samples" / "claude_code" / "real_skill_model_swap_v2.1.39.jsonl"
    expected = json.loads(path.with_name(f"{path.name}.expected.json").read_text())
    wanted = expected["information"]["alternative"]["tools_with_marker_rule"]
    marker, outcome = next(iter(wanted["rule"].items()))
    store, seen, _ = read_sample([path], parse_rules(f'[tool_markers]\n"{marker}" = "{outcome}"\n'))
    with store:
        assert seen["tools"]["outcomes"] == wanted["outcomes"]


def test_a_subagents_file_joins_the_conversation_on_the_side_thread(shared: Path) -> None:
    folder = shared / "samples" / "claude_code"
    main, side = folder / "real_skill_model_swap_v2.1.39.jsonl", folder / "real_subagent_file_a9.jsonl"
    expected = json.loads(main.with_name(f"{main.name}.expected.json").read_text())
    store, seen, _ = read_sample([side, main])
    with store:
        wanted = expected["information"]["alternative"]["with_subagent_file"]
        assert {k: seen["calls"][k] for k in wanted} == wanted
        assert seen["conversations"] == 1
        assert seen["episodes"] == 1
        assert seen["tools"]["outcomes"]["ok"] == 242
