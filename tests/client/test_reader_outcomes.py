# SPDX-License-Identifier: Apache-2.0
"""From a log file to rows of the outcomes table: synthetic quarters, worked out by hand.

All logs: sessions 1 and 2 only introduce the families (novelty, one turn each). Sessions 3 to 8: two turns with A.
Sessions 9 to 12: two turns with B, the last one ends badly. Session 13: opened with A, the person sets B, ends with B.
Session 14: two turns with A, a request fails once and recovers. One tool call a turn.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from reader_support import IDS, KEY, NOW
from windvane_client.catalogue_builtin import builtin_catalogue
from windvane_client.outcomes_table import build_outcomes
from windvane_client.readers import READERS, SampleFacts, context_for
from windvane_client.readers.files import open_log
from windvane_client.rules import Rules
from windvane_client.store import EventStore
from windvane_privacy.catalogue import Signal

FIXTURES = Path(__file__).parent / "fixtures"


def micros(day: str) -> int:
    return int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()) * 1_000_000


def outcomes(source: str) -> dict[tuple[str, ...], tuple[int, int]]:
    folder = FIXTURES / f"{source}_SYNTHETIC"
    root = folder if folder.is_dir() else FIXTURES / f"{source}_SYNTHETIC.jsonl"
    store = EventStore.temporary()
    for path in READERS[source].discover([root]):
        ctx = context_for(path, ids=IDS, catalogue=builtin_catalogue(), now=NOW, facts=SampleFacts(source))
        with open_log(path) as stream:
            store.add(READERS[source].read(stream, ctx))
        assert (ctx.rows.rejected, ctx.rows.unknown) == (0, 0)
    window = (micros("2026-01-01"), micros("2026-04-01"))
    rows = build_outcomes(
        store, window=window, catalogue=builtin_catalogue(), rules=Rules(), ids_key=KEY, now=micros("2026-04-02")
    )
    return {
        (row.signal.value, row.kind, row.recorder, row.basis.value, row.model, row.against or ""): (
            row.successes,
            row.trials,
        )
        for row in rows
    }


def test_a_transcript_ends_in_rows():
    a, b = "claude-opus-4.6", "claude-sonnet-4.6"
    head = ("coding", "claude_code")
    assert outcomes("claude_code") == {
        # Sessions 3-8 and 14 against 9-12, of which one was interrupted; session 13 is mixed.
        (Signal.COMPLETION, *head, "ended", a, ""): (7, 7),
        (Signal.COMPLETION, *head, "ended", b, ""): (3, 4),
        # Opened on A: sessions 3-8, 13, 14; 13 was left. Opened on B: 9-12.
        (Signal.SWITCH_AWAY, *head, "inferred", a, b): (7, 8),
        (Signal.SWITCH_AWAY, *head, "inferred", b, a): (4, 4),
        # A: sessions 1 (1), 3-8 (12, and a malformed one), 13 (1), 14 (2). B: sessions 2 (1), 9-12 (8), 13 (1).
        (Signal.TOOL_RELIABILITY, *head, "classed", a, ""): (16, 17),
        (Signal.TOOL_RELIABILITY, *head, "classed", b, ""): (10, 10),
        (Signal.INFRA_RECOVERY, "coding", "claude_code/claude_cli", "attempts", a, ""): (1, 1),
    }


def test_a_canonical_file_ends_in_rows_and_a_vote():
    a, b = "claude-opus-4.6", "gpt-5.2"
    head = ("analysis", "canonical")
    assert outcomes("canonical") == {
        (Signal.COMPLETION, *head, "explicit", a, ""): (7, 7),
        (Signal.COMPLETION, *head, "explicit", b, ""): (3, 4),
        (Signal.SWITCH_AWAY, *head, "recorded", a, b): (7, 8),
        (Signal.SWITCH_AWAY, *head, "recorded", b, a): (4, 4),
        (Signal.TOOL_RELIABILITY, *head, "classed", a, ""): (16, 16),
        (Signal.TOOL_RELIABILITY, *head, "classed", b, ""): (10, 10),
        (Signal.INFRA_RECOVERY, "analysis", "canonical/other", "attempts", a, ""): (1, 1),
        (Signal.BLIND_QUALITY, *head, "proved", a, b): (1, 1),
        (Signal.BLIND_QUALITY, *head, "proved", b, a): (0, 1),
    }


def test_rollouts_end_in_rows_of_what_they_can_tell():
    a, b = "gpt-5.2-codex", "gpt-5.3-codex"
    head = ("coding", "codex")
    assert outcomes("codex") == {
        # As above: 3-8 and 14 against 9-12, of which one was interrupted. No switches, no faults: not written.
        (Signal.COMPLETION, *head, "ended", a, ""): (7, 7),
        (Signal.COMPLETION, *head, "ended", b, ""): (3, 4),
        # A: sessions 1 (1), 3-8 (12), 13 (1), 14 (2, a patch that failed). B: sessions 2 (1), 9-12 (8), 13 (1).
        (Signal.TOOL_RELIABILITY, *head, "bit", a, ""): (15, 16),
        (Signal.TOOL_RELIABILITY, *head, "bit", b, ""): (10, 10),
    }


def test_tasks_end_in_rows():
    a, b = "claude-opus-4.6", "gpt-5.2"
    head = ("coding", "cline")
    assert outcomes("cline") == {
        # 3-11 and 14 are followed by the person's next task; 12 is commented on; 13 is mixed.
        (Signal.COMPLETION, *head, "explicit", a, ""): (7, 7),
        (Signal.COMPLETION, *head, "explicit", b, ""): (3, 4),
        (Signal.SWITCH_AWAY, *head, "recorded", a, b): (7, 8),
        (Signal.SWITCH_AWAY, *head, "recorded", b, a): (4, 4),
        # One edit of task 3 names a text that is not there.
        (Signal.TOOL_RELIABILITY, *head, "classed", a, ""): (15, 16),
        (Signal.TOOL_RELIABILITY, *head, "classed", b, ""): (10, 10),
        (Signal.INFRA_RECOVERY, "coding", "cline/cline", "attempts", a, ""): (1, 1),
    }
