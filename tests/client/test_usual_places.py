# SPDX-License-Identifier: Apache-2.0
"""Where logs are looked for without being named, and what is said of those that cannot be read."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from client.test_collect import make_state
from windvane.main import run
from windvane_client.collect import collect
from windvane_client.preview_sources import usual_roots
from windvane_client.settings import LogFolder

ROLLOUT = (
    '{"timestamp":"2026-07-01T10:00:00Z","type":"session_meta","payload":{"id":"s","originator":"codex-tui"}}\n'
    '{"timestamp":"2026-07-01T10:00:01Z","type":"event_msg","payload":{"type":"user_message","message":"x"}}\n'
)
SESSION = (
    '{"sessionId":"s","projectHash":"p","startTime":"2026-07-01T10:00:00Z"}\n'
    '{"id":"m","type":"user","timestamp":"2026-07-01T10:00:00Z","content":"x"}\n'
)
TRANSCRIPT = '{"type":"user","sessionId":"s","uuid":"u","timestamp":"2026-07-01T10:00:00Z","message":{"content":"x"}}\n'
VARIABLES = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def preview(capsys: pytest.CaptureFixture[str], *words: object) -> list[dict[str, Any]]:
    run(["member", "preview", *map(str, words), "--now", "2027-06-01T00:00:00Z", "--json"])
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    samples: list[dict[str, Any]] = answer.get("samples", [answer])
    return samples


def found(samples: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return [(sample["source"], sample["observed"]["prompts"]["person"]) for sample in samples]


@pytest.mark.parametrize(
    ("variable", "place", "source", "text"),
    [
        ("CODEX_HOME", "sessions/2026/07/01/rollout-1.jsonl", "codex", ROLLOUT),
        ("CODEX_HOME", "archived_sessions/rollout-1.jsonl", "codex", ROLLOUT),
        ("GEMINI_CLI_HOME", ".gemini/tmp/p/chats/session-1.jsonl", "gemini_cli", SESSION),
        ("CLAUDE_CONFIG_DIR", "projects/p/s.jsonl", "claude_code", TRANSCRIPT),
    ],
)
def test_a_programs_own_variable_says_where_its_logs_are(
    home: Path, tmp_path: Path, variable: str, place: str, source: str, text: str,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    write(tmp_path / "moved" / place, text)
    assert preview(capsys) == []
    monkeypatch.setenv(variable, str(tmp_path / "moved"))
    assert found(preview(capsys)) == [(source, 1)]
    assert found(preview(capsys, "--source", source)) == [(source, 1)]


def test_claude_code_may_have_several_folders(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("one", "two"):
        write(
            tmp_path / name / "projects/p/s.jsonl", TRANSCRIPT.replace('"s"', f'"{name}"').replace('"u"', f'"{name}"')
        )
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", f"{tmp_path / 'one'}, {tmp_path / 'two'},")
    assert found(preview(capsys)) == [("claude_code", 1)] * 2
    roots = usual_roots(home, {"CLAUDE_CONFIG_DIR": "a, b"})
    assert roots["claude_code"] == [Path("a/projects"), Path("b/projects")]


def test_without_a_variable_the_home_folder_counts(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(home / ".codex/sessions/2026/07/01/rollout-1.jsonl", ROLLOUT)
    write(home / ".gemini/tmp/p/chats/session-1.jsonl", SESSION)
    assert found(preview(capsys)) == [("codex", 1), ("gemini_cli", 1)]


@pytest.mark.parametrize("suffix", [".zst", ".xz", ".bz2"])
def test_a_compression_that_is_not_read_is_refused_with_what_to_do(
    home: Path, tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    log = write(tmp_path / "logs" / f"rollout-1.jsonl{suffix}", b"\x28\xb5\x2f\xfd CANARY")
    for words in ((log,), (log.parent,), (log, "--source", "codex"), (log.parent, "--source", "codex")):
        (sample,) = preview(capsys, *words)
        assert sample["observed"] is None
        assert "compressed" in sample["refused"]["reason"]
        assert ".gz" in sample["refused"]["instead"]
    write(home / ".codex/sessions" / log.name, log.read_bytes())
    assert ["compressed" in sample["refused"]["reason"] for sample in preview(capsys)] == [True]


def test_the_others_of_the_folder_are_read_and_the_gap_is_shown(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "logs/rollout-1.jsonl.zst", b"\x28\xb5\x2f\xfd")
    write(tmp_path / "logs/rollout-2.jsonl", ROLLOUT)
    (sample,) = preview(capsys, tmp_path / "logs", "--source", "codex")
    assert sample["observed"]["rows"]["read"] == 2
    assert sample["gaps"] == ["files_missing"]


def test_collect_warns_of_logs_in_a_compression_that_is_not_read(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    write(folder / "rollout-2.jsonl", ROLLOUT)
    state = make_state(tmp_path, logs=[LogFolder(str(folder), "codex")])
    now = datetime(2026, 7, 2, tzinfo=UTC)
    assert not any("compressed" in one for one in collect(state, now).warnings)
    write(folder / "rollout-1.jsonl.zst", b"\x28\xb5\x2f\xfd")
    report = collect(state, now)
    assert [one for one in report.warnings if "compressed" in one]
    assert report.unreadable == 0
