# SPDX-License-Identifier: Apache-2.0
"""The samples of all sources that are read give exactly the values that were worked out by hand."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from windvane.main import run
from windvane_client.evidence import micros
from windvane_client.preview import plan_source, read
from windvane_client.preview_setup import no_setup
from windvane_client.readers import READERS
from windvane_client.rules import Rules
from windvane_client.signals import read_person
from windvane_client.store import EventStore
from windvane_privacy.catalogue import OTHER, UNKNOWN

NOW = datetime(2027, 6, 1, tzinfo=UTC)  # long after the last event
LONG_AFTER = ("--now", "2027-06-01T00:00:00Z")
SAMPLES = (
    # file, source, recognised without being named as (None: nothing in it says what it is)
    ("claude_code/fixture_ccusage_alpha.jsonl", "claude_code", "claude_code"),
    ("claude_code/fixture_edge_cases.jsonl", "claude_code", "claude_code"),
    ("claude_code/fixture_sample_session.jsonl", "claude_code", "claude_code"),
    ("claude_code/real_short_v2.1.38.jsonl", "claude_code", "claude_code"),
    ("claude_code/real_skill_model_swap_v2.1.39.jsonl", "claude_code", "claude_code"),
    ("claude_code/real_subagent_file_a9.jsonl", "claude_code", "claude_code"),
    ("claude_code/real_tool_heavy_v2.1.38.jsonl", "claude_code", "claude_code"),
    ("claude_code_otel/SYNTHETIC_logs.otlp.jsonl", "otlp/claude_code", "otlp"),
    ("cline/real_session.json", "cline", "cline"),
    ("codex/fixture_ccl_11111111.jsonl", "codex", "codex"),
    ("codex/fixture_ccusage_alpha.jsonl", "codex", "codex"),
    ("codex/fixture_function_calls.jsonl", "codex", "codex"),
    ("codex/real_head_v0.77_dup_turn_context.jsonl", "codex", "codex"),
    ("gemini_cli/fixture_tool_calls.json", "gemini_cli", "gemini_cli"),
    ("langfuse/real_autogen-2025-06-06.json", "langfuse", "langfuse"),
    ("langfuse/real_google-vertex-tools-langchain-2025-09-19.json", "langfuse", "langfuse"),
    ("litellm/fixture_spend_logs_payload.json", "litellm", "litellm"),
    ("litellm/generated_standard_logging.jsonl", "litellm", "litellm"),
    ("open_webui/SYNTHETIC_feedback_export.json", "open_webui", "open_webui"),
    ("otel_genai/fixture_openinference_client_span_tool_calls.json", "otlp/openinference", None),
    ("otel_genai/fixture_otel_genai_client_span_tool_calls.json", "otlp/gen_ai", None),
    ("otel_genai/fixture_otel_genai_tool_execution_span.json", "otlp/gen_ai", None),
    ("otel_genai/real_vercel_streamText_doStream.json", "otlp/vercel_ai", "otlp"),
    ("otlp/spec_example_logs.json", "otlp", "otlp"),
    ("otlp/spec_example_trace.json", "otlp", "otlp"),
)
NAMES = [name for name, _, _ in SAMPLES]


@pytest.fixture(autouse=True)
def an_empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)


def printed(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    run(["member", "preview", *map(str, arguments), *LONG_AFTER, "--json"])
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def worked_out(shared: Path, name: str) -> tuple[list[Path], dict[str, Any]]:
    """(the files that form the sample, its expected file)"""
    path = shared / "samples" / name
    expected: dict[str, Any] = json.loads(path.with_name(f"{path.name}.expected.json").read_text("utf-8"))
    return [path.with_name(part) for part in expected["sample"]], expected


def test_no_sample_is_forgotten(shared: Path) -> None:
    folder = shared / "samples"
    built = {
        str(path.relative_to(folder)).removesuffix(".expected.json"): expected["source"]
        for path in folder.rglob("*.expected.json")
        if (expected := json.loads(path.read_text("utf-8")))["status"] == "built" or expected["source"] in READERS
    }
    assert built == {name: source for name, source, _ in SAMPLES}


@pytest.mark.parametrize("name", NAMES)
def test_preview_prints_the_expected_values(shared: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    paths, expected = worked_out(shared, name)
    answer = printed(capsys, *paths, "--source", expected["source"])
    # Also the keys on which a careful reader could differ.
    assert answer["observed"] == expected["observed"]
    # Without people.toml every row is the one person's own, so that nobody is unknown.
    # The session that is read without its subagent's file lacks it, beside what was worked out by hand.
    more = ["subagent_file_missing"] if "real_skill_model_swap" in name else []
    gaps = [gap for gap in expected["information"]["gaps"] if gap != "person_unknown"]
    assert answer["gaps"] == gaps + more
    assert answer["files"] == expected["sample"]
    assert answer["refused"] is None


@pytest.mark.parametrize("name", NAMES)
def test_coverage_of_a_sample_adds_up(shared: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    paths, expected = worked_out(shared, name)
    answer = printed(capsys, *paths, "--source", expected["source"])
    (rows,) = answer["coverage"]["rows"]
    assert {key: rows[key] for key in answer["observed"]["rows"]} == answer["observed"]["rows"]
    assert rows["read"] >= rows["rejected"] + rows["unknown"] + rows["foreign"]
    assert sum(rows["reasons"].values()) == rows["rejected"]
    weeks = answer["coverage"]["weeks"]
    for what, told in (("prompts", "person"), ("calls", "answered")):
        held = sum(sum(week[what].values()) for week in weeks)
        assert held >= (answer["observed"][what][told] or 0)
    ends = sum(sum(week["episodes"].values()) for week in weeks)
    assert ends == (answer["observed"]["episodes"] or 0)
    if answer["observed"]["switches"]["by_cause"] is not None:
        causes = sum(sum(week["changes"].values()) for week in weeks)
        assert causes == sum(answer["observed"]["switches"]["by_cause"].values())


@pytest.mark.parametrize("name", NAMES)
def test_families_and_turn_openings_are_as_worked_out(shared: Path, name: str) -> None:
    paths, expected = worked_out(shared, name)
    setup = no_setup()
    families: Counter[str] = Counter()
    opened: list[list[str | None]] = []
    with EventStore.temporary() as store:
        read([plan_source(expected["source"], paths, setup)], store, setup, now=NOW)
        for person in store.people():
            facts = read_person(
                store, person, window=(0, micros(NOW)), rules=Rules(), ids_key=bytes(32), now=micros(NOW)
            )
            families.update(facts.totals.families)
            opened += [[one.family for one in episode.openings] for episode in facts.episodes]
    wanted: Counter[str] = Counter()
    for family, n in expected["models"]["by_family"].items():
        wanted[family if family in setup.catalogue or family == UNKNOWN else OTHER] += n
    assert families == wanted
    if expected["models"]["turn_openings"] is not None:
        assert sorted(opened, key=str) == sorted((one for one in expected["models"]["turn_openings"] if one), key=str)


@pytest.mark.parametrize(("name", "recognised"), [(name, known) for name, _, known in SAMPLES])
def test_a_sample_is_recognised_without_being_named(
    shared: Path, tmp_path: Path, name: str, recognised: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    paths, expected = worked_out(shared, name)
    folder = tmp_path / "logs"
    folder.mkdir()
    for path in paths:
        shutil.copy(path, folder)
    (sample,) = printed(capsys, folder)["samples"]
    assert sample["source"] == recognised
    assert sample["observed"] == (expected["observed"] if recognised else None)


@pytest.mark.parametrize("status", ["refused", "later"])
def test_a_sample_without_a_reader_is_refused_with_a_reason(
    shared: Path, status: str, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = 0
    for path in sorted((shared / "samples").rglob("*.expected.json")):
        expected = json.loads(path.read_text("utf-8"))
        if expected["status"] == status and expected["source"] not in READERS:
            answer = printed(capsys, path.with_name(expected["sample"][0]), "--source", expected["source"])
            assert answer["observed"] is None
            assert answer["refused"]["reason"]
            refused += 1
    assert refused
