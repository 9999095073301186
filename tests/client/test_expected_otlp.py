# SPDX-License-Identifier: Apache-2.0
"""The telemetry samples give exactly the values that were worked out by hand, through the command's own path."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from windvane.main import run

SAMPLES = (
    "claude_code_otel/SYNTHETIC_logs.otlp.jsonl",
    "otel_genai/fixture_openinference_client_span_tool_calls.json",
    "otel_genai/fixture_otel_genai_client_span_tool_calls.json",
    "otel_genai/fixture_otel_genai_tool_execution_span.json",
    "otel_genai/real_vercel_streamText_doStream.json",
    "otlp/spec_example_logs.json",
    "otlp/spec_example_trace.json",
)
FRAMED = tuple(name for name in SAMPLES if "fixture" not in name)
"""Those that are more than one span's attributes, so that their dialect is found without being named."""


def printed(capsys: pytest.CaptureFixture[str], path: Path, source: str) -> dict[str, Any]:
    run(["member", "preview", str(path), "--source", source, "--now", "2026-11-01T00:00:00Z", "--json"])
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


@pytest.fixture(autouse=True)
def an_empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def test_no_sample_is_forgotten(shared: Path) -> None:
    folders = ("claude_code_otel", "otel_genai", "otlp")
    found = [path for folder in folders for path in (shared / "samples" / folder).glob("*.expected.json")]
    assert sorted(f"{path.parent.name}/{path.name.removesuffix('.expected.json')}" for path in found) == list(SAMPLES)


@pytest.mark.parametrize("name", SAMPLES)
def test_sample_gives_its_expected_values(shared: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = shared / "samples" / name
    expected = json.loads(path.with_name(f"{path.name}.expected.json").read_text("utf-8"))
    answer = printed(capsys, path, expected["source"])
    # Also the keys on which a careful reader could differ.
    assert answer["observed"] == expected["observed"]
    assert (answer["refused"], answer["gaps"]) == (None, [])


@pytest.mark.parametrize("name", FRAMED)
def test_the_dialect_is_found_without_being_named(shared: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = shared / "samples" / name
    expected = json.loads(path.with_name(f"{path.name}.expected.json").read_text("utf-8"))
    assert printed(capsys, path, "otlp")["observed"] == expected["observed"]
