# SPDX-License-Identifier: Apache-2.0
"""From a telemetry file to rows of the outcomes table: two synthetic quarters, worked out by hand.

Both files: sessions 1 and 2 only introduce the families (novelty, one turn each). Sessions 3 to 8: two turns with A.
Sessions 9 to 12: two turns with B. Session 13: opened with A, then B; Gemini CLI writes the person's command. Session
14: two turns with A, a request fails once and recovers. One tool call a turn, the one of session 5's first turn fails.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from reader_support import IDS, KEY, NOW
from windvane_client.catalogue_builtin import builtin_catalogue
from windvane_client.outcomes_table import build_outcomes
from windvane_client.readers import READERS, SampleFacts, context_for
from windvane_client.readers.files import open_log
from windvane_client.readers.otlp_values import Values
from windvane_client.rules import Rules
from windvane_client.store import EventStore
from windvane_privacy.catalogue import Signal

FIXTURES = Path(__file__).parent / "fixtures"
JANUARY, APRIL = 1_767_225_600_000_000, 1_775_001_600_000_000


def outcomes(name: str, source: str = "otlp") -> dict[tuple[str, ...], tuple[int, int]]:
    path = FIXTURES / name
    ctx = context_for(path, ids=IDS, catalogue=builtin_catalogue(), now=NOW, facts=SampleFacts(source))
    with EventStore.temporary() as store:
        with open_log(path) as stream:
            store.add(READERS[source].read(stream, ctx))
        assert (ctx.rows.rejected, ctx.rows.unknown, ctx.rows.foreign) == (0, 0, 0)
        rows = list(
            build_outcomes(
                store,
                window=(JANUARY, APRIL),
                catalogue=builtin_catalogue(),
                rules=Rules(),
                ids_key=KEY,
                now=APRIL + 86_400_000_000,
            )
        )
    return {
        (row.signal.value, row.kind, row.recorder, row.basis.value, row.model, row.against or ""): (
            row.successes,
            row.trials,
        )
        for row in rows
    }


@pytest.mark.parametrize(
    ("name", "dialect", "basis", "client", "a", "b"),
    [
        ("otlp_gemini_cli_SYNTHETIC.json", "gemini_cli", "recorded", "gemini_cli", "gemini-2.5-pro", "gemini-3-pro"),
        ("otlp_codex_SYNTHETIC.jsonl", "codex", "inferred", "codex_cli", "gpt-5.1-codex", "gpt-5.2"),
    ],
)
@pytest.mark.parametrize("fixed", [False, True])
def test_a_telemetry_file_ends_in_rows(name, dialect, basis, client, a, b, fixed):
    recorder = f"otlp/{dialect}"
    found = outcomes(name, recorder if fixed else "otlp")
    head = ("coding", recorder)
    assert found == {
        # Opened on A: sessions 3-8, 13, 14; 13 was left. Opened on B: 9-12.
        (Signal.SWITCH_AWAY, *head, basis, a, b): (7, 8),
        (Signal.SWITCH_AWAY, *head, basis, b, a): (4, 4),
        # A: sessions 1 (1), 3-8 (12, one failed), 13 (1), 14 (2). B: sessions 2 (1), 9-12 (8), 13 (1).
        (Signal.TOOL_RELIABILITY, *head, "bit", a, ""): (15, 16),
        (Signal.TOOL_RELIABILITY, *head, "bit", b, ""): (10, 10),
        (Signal.INFRA_RECOVERY, "coding", f"{recorder}/{client}", "attempts", a, ""): (1, 1),
    }
    # Completion is one-sided in these logs: only an abandonment would show.
    assert not any(key[0] == Signal.COMPLETION for key in found)


def test_a_file_of_another_dialect_gives_no_row_at_all():
    path = FIXTURES / "otlp_codex_SYNTHETIC.jsonl"
    ctx = context_for(path, ids=IDS, catalogue=builtin_catalogue(), now=NOW, facts=SampleFacts("otlp/gemini_cli"))
    with open_log(path) as stream:
        assert list(READERS["otlp/gemini_cli"].read(stream, ctx)) == []
    assert ctx.rows.foreign == ctx.rows.read > 100


def without(name: str, *attributes: str, rows: tuple[str, ...] = ()) -> bytes:
    """The fixture without these attributes, and without rows whose event's name ends in one of `rows`."""

    def strip(raw: Any) -> Any:
        if isinstance(raw, list):
            kept = [strip(one) for one in raw]
            return [one for one in kept if not (isinstance(one, dict) and one.get("key") in attributes)]
        if isinstance(raw, dict):
            return {key: strip(one) for key, one in raw.items() if key not in attributes}
        return raw

    def dropped(record: dict[str, Any]) -> bool:
        return any(f".{row}" in json.dumps(record) for row in rows)

    found = []
    for value, _, _ in Values(io.BytesIO((FIXTURES / name).read_bytes()), final=True):
        read = json.loads(value or b"")
        for group in read.get("resourceLogs", ()):
            for scope in group["scopeLogs"]:
                scope["logRecords"] = [one for one in scope["logRecords"] if not dropped(one)]
        if "resourceLogs" in read or not dropped(read):
            found.append(json.dumps(strip(read)).encode() + b"\n")
    return b"".join(found)


@pytest.mark.parametrize(
    ("name", "attributes", "rows", "lost"),
    [
        ("otlp_gemini_cli_SYNTHETIC.json", ("interactive",), (), {"switch_away", "tool_reliability", "infra_recovery"}),
        ("otlp_gemini_cli_SYNTHETIC.json", ("session.id",), (), {"switch_away", "tool_reliability", "infra_recovery"}),
        ("otlp_gemini_cli_SYNTHETIC.json", ("model",), (), {"switch_away", "tool_reliability", "infra_recovery"}),
        ("otlp_gemini_cli_SYNTHETIC.json", ("success",), (), {"tool_reliability"}),
        ("otlp_gemini_cli_SYNTHETIC.json", (), ("api_error", "network_retry_attempt"), {"infra_recovery"}),
        ("otlp_gemini_cli_SYNTHETIC.json", ("status_code", "error_type", "error.type"), (), {"infra_recovery"}),
        (
            "otlp_codex_SYNTHETIC.jsonl",
            ("originator", "service.name"),
            (),
            {"switch_away", "tool_reliability", "infra_recovery"},
        ),
        (
            "otlp_codex_SYNTHETIC.jsonl",
            ("conversation.id",),
            (),
            {"switch_away", "tool_reliability", "infra_recovery"},
        ),
        ("otlp_codex_SYNTHETIC.jsonl", ("success",), (), {"tool_reliability"}),
        ("otlp_codex_SYNTHETIC.jsonl", ("http.response.status_code",), (), {"infra_recovery"}),
        ("otlp_codex_SYNTHETIC.jsonl", ("event.kind",), (), {"tool_reliability", "infra_recovery"}),
    ],
)
def test_without_its_evidence_a_signal_is_unknown(tmp_path, name, attributes, rows, lost):
    path = tmp_path / name
    path.write_bytes(without(name, *attributes, rows=rows))
    signals = {key[0] for key in outcomes(str(path))}
    assert signals.isdisjoint(lost)
    assert signals | lost >= {"switch_away", "tool_reliability", "infra_recovery"} - (
        {"switch_away"} if "event.kind" in attributes else set()
    )
