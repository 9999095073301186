# SPDX-License-Identifier: Apache-2.0
"""`windvane member preview --json` has the documented shape."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from preview_homes import write_home
from windvane.main import run
from windvane_client.preview_sources import NOT_BUILT, REFUSED
from windvane_client.readers import READERS

LONG_AFTER = ("--now", "2027-06-01T00:00:00Z")
OBSERVED = {
    "rows", "conversations", "persons", "mode", "kind", "calls", "prompts", "episodes", "completion", "switches",
    "tools", "infra", "blind", "outcome_rows",
}  # fmt: skip


@pytest.fixture(autouse=True)
def an_empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.chdir(tmp_path)


def printed(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    run(["member", "preview", *map(str, arguments), "--json"])
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def test_a_session_and_its_subagent_file_are_one_sample(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = shared / "samples" / "claude_code"
    main, side = folder / "real_skill_model_swap_v2.1.39.jsonl", folder / "real_subagent_file_a9.jsonl"
    expected = json.loads(main.with_name(f"{main.name}.expected.json").read_text("utf-8"))
    answer = printed(capsys, main, side, "--source", "claude_code", *LONG_AFTER)
    assert "subagent_file_missing" not in answer["gaps"]
    calls = answer["observed"]["calls"]
    told = expected["information"]["alternative"]["with_subagent_file"]
    assert {name: calls[name] for name in told} == told


def test_a_source_gives_one_sample_of_all_paths(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_home(tmp_path / "logs")
    answer = printed(capsys, *sorted(folder.glob("*.jsonl")), "--source", "claude_code", *LONG_AFTER)
    assert set(answer) == {"schema", "source", "files", "observed", "refused", "gaps", "coverage", "warnings"}
    assert (answer["schema"], answer["source"]) == ("windvane/preview/v1", "claude_code")
    assert set(answer["observed"]) == OBSERVED
    assert answer["observed"]["conversations"] == len(answer["files"]) == 2
    assert answer["observed"]["outcome_rows"] > 0


def test_without_a_source_there_is_one_sample_a_session_and_a_total(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_home(tmp_path / "home")
    session = sorted(folder.glob("*.jsonl"))[0]
    side = folder / session.stem / "subagents"
    side.mkdir(parents=True)
    shutil.copy(session, side / "agent-1.jsonl")
    answer = printed(capsys, *LONG_AFTER)
    assert set(answer) == {"schema", "samples", "total", "coverage", "warnings"}
    assert [len(sample["files"]) for sample in answer["samples"]] == [2, 1]
    assert {sample["source"] for sample in answer["samples"]} == {"claude_code"}
    parts = [sample["observed"] for sample in answer["samples"]]
    assert set(answer["total"]) == set(parts[0]) == OBSERVED
    for count in ("conversations", "episodes"):
        assert answer["total"][count] == sum(part[count] for part in parts)
    assert answer["total"]["rows"]["read"] == sum(part["rows"]["read"] for part in parts)


def test_a_session_copied_to_a_second_file_counts_once_in_the_total(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_home(tmp_path / "home")
    before = printed(capsys, *LONG_AFTER)["total"]
    session = sorted(folder.glob("*.jsonl"))[0]
    shutil.copy(session, folder / "resumed.jsonl")
    after = printed(capsys, *LONG_AFTER)
    assert len(after["samples"]) == 3
    assert after["total"]["rows"]["read"] > before["rows"]["read"]
    assert {k: v for k, v in after["total"].items() if k != "rows"} == {k: v for k, v in before.items() if k != "rows"}


@pytest.mark.parametrize("source", sorted(REFUSED) + sorted(NOT_BUILT) + ["Cursor", "swe-agent"])
def test_a_refused_source_says_why_and_what_instead(
    tmp_path: Path, source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "some.log"
    log.write_text("CANARY never opened\n")
    log.chmod(0)
    answer = printed(capsys, log, "--source", source)
    assert answer["observed"] is None
    assert set(answer["refused"]) == {"reason", "instead"}
    assert all(answer["refused"].values())
    assert answer["files"] == ["some.log"]


def test_benchmark_runs_are_refused_without_being_named(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = printed(capsys, shared / "samples" / "swe_agent")
    refused = [sample for sample in answer["samples"] if sample["source"] == "swe_agent"]
    assert [sample["observed"] for sample in refused] == [None]
    assert "benchmark" in refused[0]["refused"]["reason"]


@pytest.mark.parametrize(
    ("row", "source"),
    [
        ('{"timestamp":"2026-07-01T10:00:00Z","type":"session_meta","payload":{}}', "codex"),
        ('{"v":1,"k":"prompt","person":"p","conv":"c","ts":"2026-07-01T10:00:00Z","origin":"human"}', "canonical"),
        ('{"type":"user","sessionId":"s","timestamp":"2026-07-01T10:00:00Z","message":{"content":"x"}}', "claude_code"),
        (
            '{"sessionId":"s","timestamp":"2026-07-01T10:00:00Z","message":{"role":"assistant","model":"m"}}',
            "claude_code",
        ),
        ('{"resourceLogs":[]}', "otlp"),
        ('{\n "resourceSpans": [\n ]\n}', "otlp"),
        ('{\n  "hrTime": [\n    1,\n    2\n  ],\n  "attributes": {}\n}', "otlp"),
        ('[\n {\n  "startTime": [1, 2],\n  "attributes": {}\n }\n]', "otlp"),
        ('{"level":"info","text":"x"}', None),
        ('{"k":"prompt"}', None),
        ("not json", None),
        ("", None),
    ],
)
def test_a_file_is_recognised_by_its_first_good_row(
    tmp_path: Path, row: str, source: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.jsonl").write_text(f"[]\n\n{row}\n")
    (sample,) = printed(capsys, tmp_path / "a.jsonl", *LONG_AFTER)["samples"]
    assert sample["source"] == source
    assert (sample["refused"] is None) == (source in READERS)


def test_now_decides_what_lies_in_the_future(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "a.jsonl"
    log.write_text('{"v":1,"k":"prompt","person":"p","conv":"c","ts":"2026-07-01T10:00:00Z","origin":"human"}\n')
    early = printed(capsys, log, "--source", "canonical", "--now", "2026-06-29T00:00:00Z")
    late = printed(capsys, log, "--source", "canonical", "--now", "2026-06-30T12:00:00+00:00")
    assert (early["observed"]["rows"]["rejected"], early["gaps"]) == (1, ["rows_rejected"])
    assert late["observed"]["rows"]["rejected"] == 0


def test_a_cut_last_line_is_counted_and_the_rest_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_home(tmp_path / "home")
    log = sorted(folder.glob("*.jsonl"))[0]
    whole = printed(capsys, log, "--source", "claude_code", *LONG_AFTER)["observed"]["rows"]
    log.write_bytes(log.read_bytes() + b'{"type":"user","mess')
    cut = printed(capsys, log, "--source", "claude_code", *LONG_AFTER)["observed"]["rows"]
    assert cut == whole | {"read": whole["read"] + 1, "rejected": whole["rejected"] + 1}


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--source", "nonsense"], 1, "UnsupportedSource"),
        (["--source", "canonical"], 2, "no usual place"),
        (["--now", "yesterday"], 2, "--now"),
        (["missing.jsonl"], 1, "PATH number 1 does not exist"),
        (["--explain", "99"], 2, "--explain"),
        (["--state", "nowhere"], 1, "No member is set up"),
    ],
    ids=["source", "no place", "now", "path", "explain", "state"],
)
def test_wrong_use_says_what_to_do(
    arguments: list[str], code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        run(["member", "preview", *arguments])
    assert stopped.value.code == code
    assert says in " ".join(capsys.readouterr().err.replace("│", " ").split())
