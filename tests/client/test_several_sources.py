# SPDX-License-Identifier: Apache-2.0
"""Logs of several sources side by side: each is found, none hides another, the total says what one of them can."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from client_events import A, Log, facts_of
from windvane.main import run

FIXTURES = Path(__file__).parent / "fixtures"
SOURCES = {
    "canonical", "claude_code", "cline", "codex", "gemini_cli", "langfuse", "litellm", "mapping", "open_webui", "otlp",
}  # fmt: skip
Shown = Callable[..., dict[str, Any]]


@pytest.fixture
def shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shown:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)

    def preview(folder: Path) -> dict[str, Any]:
        run(["member", "preview", str(folder), "--now", "2027-06-01T00:00:00Z", "--json"])
        answer: dict[str, Any] = json.loads(capsys.readouterr().out)
        return answer

    return preview


def test_one_folder_may_hold_every_source(shown: Shown) -> None:
    answer = shown(FIXTURES)
    assert {sample["source"] for sample in answer["samples"]} == SOURCES
    assert [sample["refused"] for sample in answer["samples"] if sample["refused"]] == []
    parts = [sample["observed"] for sample in answer["samples"]]
    assert answer["total"]["conversations"] == sum(part["conversations"] or 0 for part in parts)
    assert answer["total"]["calls"]["answered"] == sum(part["calls"]["answered"] or 0 for part in parts)
    assert answer["total"]["tools"]["basis"] == "mixed"


@pytest.mark.parametrize(
    "knows_less", ["codex_SYNTHETIC", "litellm_SYNTHETIC.csv", "open_webui_SYNTHETIC.json", "gemini_cli_SYNTHETIC"]
)
def test_the_total_says_what_one_of_its_sources_can_say(tmp_path: Path, knows_less: str, shown: Shown) -> None:
    """Whichever comes first."""
    for first, second in ((knows_less, "claude_code_SYNTHETIC.jsonl"), ("claude_code_SYNTHETIC.jsonl", knows_less)):
        folder = tmp_path / first
        for place, name in (("a", first), ("b", second)):
            copy = shutil.copytree if (FIXTURES / name).is_dir() else shutil.copy
            (folder / place).mkdir(parents=True)
            copy(FIXTURES / name, folder / place / name)
        answer = shown(folder)
        claude = next(one["observed"] for one in answer["samples"] if one["source"] == "claude_code")
        assert answer["total"]["infra"]["recovered_same"] >= claude["infra"]["recovered_same"] > 0
        assert answer["total"]["switches"]["person_made"] >= claude["switches"]["person_made"] > 0
        assert sum(answer["total"]["tools"]["outcomes"].values()) >= sum(claude["tools"]["outcomes"].values()) > 0


def test_what_stands_beside_a_task_is_no_log_of_its_own(tmp_path: Path, shown: Shown) -> None:
    task = tmp_path / "tasks" / "1767603600000"
    shutil.copytree(FIXTURES / "cline_SYNTHETIC" / "tasks" / "1767603600000", task)
    (task / "api_conversation_history.json").write_text('[{"role": "user", "content": "CANARY"}]')
    assert [sample["source"] for sample in shown(tmp_path / "tasks")["samples"]] == ["cline"]
    assert [bool(sample["refused"]) for sample in shown(task / "api_conversation_history.json")["samples"]] == [True]


def test_calls_without_a_conversation_stand_for_no_other() -> None:
    spans = Log(conv="", source="otlp/gen_ai", recorder="otlp/gen_ai")
    spans.call(0, A)
    gateway = Log(conv="", source="litellm", recorder="litellm")
    gateway.call(0, A, key="gateway")
    assert facts_of(spans, gateway).totals.calls_ok == 2


def test_in_one_conversation_the_transcript_stands_for_the_gateway() -> None:
    transcript = Log()
    transcript.turn(0)
    gateway = Log(source="litellm", recorder="litellm")
    gateway.call(0.5, A, key="gateway")
    assert facts_of(transcript, gateway).totals.calls_ok == 1
