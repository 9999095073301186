# SPDX-License-Identifier: Apache-2.0
"""However a log is written or read in pieces, it is the same log."""

from __future__ import annotations

import gzip
import io

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reader_support import Log, context, lines, read, text, tool
from windvane_client.readers import READERS

STEPS = [
    "user", "answer", "more", "tool", "result", "error", "retry", "gave_up", "command", "output", "model", "skill",
    "other", "end", "interrupt", "side", "progress", "broken", "unknown", "queued", "plan", "hook",
]  # fmt: skip


def build(steps: list[str]) -> list[object]:
    log = Log(entrypoint="cli")
    n = 0
    for step in steps:
        n += step in ("answer", "skill", "other", "side")
        match step:
            case "user":
                log.user()
            case "answer" | "more":
                log.answer(f"m{n}")
            case "tool":
                log.answer(f"m{n}", tool(f"t{n}"))
            case "result":
                log.result(f"t{n}")
            case "error":
                log.result(f"t{n}", "Exit code 1", is_error=True)
            case "retry":
                log.system("api_error", error={"status": 529}, retryAttempt=1)
            case "gave_up":
                log.answer("e", text("API Error: 500"), model="<synthetic>", isApiErrorMessage=True, apiErrorStatus=500)
            case "command":
                log.user("<command-name>/review</command-name>")
            case "output":
                log.user("<local-command-stdout>x")
            case "model":
                log.user("<command-name>/model</command-name>")
            case "skill":
                log.answer(f"m{n}", tool(f"t{n}", "Skill"))
            case "other":
                log.answer(f"m{n}", model="claude-haiku-4-5")
            case "end":
                log.system("turn_duration")
            case "interrupt":
                log.user("[Request interrupted by user]")
            case "side":
                log.answer(f"m{n}", isSidechain=True)
            case "progress":
                log.row("progress")
            case "broken":
                log.rows.append(b'{"type": "user"')
            case "unknown":
                log.row("hologram")
            case "queued":
                log.attachment("queued_command", prompt="x")
            case "plan":
                log.row("permission-mode", permissionMode="plan" if n % 2 else "default")
            case "hook":
                log.attachment("hook_blocking_error", toolUseID=f"t{n}", hookEvent="PreToolUse")
    return log.rows


def canonical(steps: list[str]) -> list[object]:
    rows: list[object] = []
    for n, step in enumerate(steps):
        head = {"v": 1, "person": "p", "conv": "c", "ts": 1_770_000_000_000_000 + n, "seq": n}
        if step == "broken":
            rows.append(b"{")
        elif step in ("user", "command"):
            rows.append({**head, "k": "prompt", "origin": "human"})
        else:
            rows.append({**head, "k": "call", "key": f"m{n}", "served": "gpt-5"})
    return rows


def codex(steps: list[str]) -> list[object]:
    rows: list[object] = [
        {
            "timestamp": "2026-03-01T10:00:00Z", "type": "session_meta",
            "payload": {"id": "s1", "originator": "codex_cli_rs", "source": "cli"},
        }
    ]  # fmt: skip
    for n, step in enumerate(steps, 1):
        kind, payload = "event_msg", {"type": "agent_message", "message": "x"}
        match step:
            case "user" | "queued":
                payload = {"type": "user_message", "message": "x"}
            case "answer" | "side" | "skill":
                payload = {"type": "token_count", "info": {"total_token_usage": {"total_tokens": 10 * n}}}
            case "more":
                payload = {"type": "token_count", "info": None}
            case "tool" | "hook":
                kind, payload = "response_item", {"type": "function_call", "name": "shell", "call_id": f"c{n // 3}"}
            case "result" | "error":
                kind, payload = "response_item", {"type": "function_call_output", "call_id": f"c{n // 3}"}
            case "output":
                payload = {"type": "patch_apply_end", "call_id": f"c{n // 3}", "success": True}
            case "model" | "other" | "plan":
                kind, payload = "turn_context", {"model": "gpt-5" if n % 2 else "gpt-5.2-codex", "turn_id": f"t{n}"}
            case "command":
                payload = {"type": "task_started", "turn_id": f"t{n}"}
            case "end":
                payload = {"type": "task_complete", "turn_id": f"t{n}"}
            case "interrupt":
                payload = {"type": "turn_aborted", "turn_id": f"t{n}"}
            case "retry":
                payload = {"type": "thread_rolled_back", "num_turns": 1}
            case "unknown":
                payload = {"type": "hologram"}
            case "broken":
                rows.append(b'{"type": "event_msg"')
                continue
        rows.append({"timestamp": f"2026-03-01T10:{n:02}:00Z", "type": kind, "payload": payload})
    return rows


logs = st.one_of(
    st.tuples(st.just("codex"), st.lists(st.sampled_from(STEPS), max_size=25).map(codex)),
    st.tuples(st.just("claude_code"), st.lists(st.sampled_from(STEPS), max_size=25).map(build)),
    st.tuples(st.just("canonical"), st.lists(st.sampled_from(STEPS), max_size=12).map(canonical)),
)


@given(logs, st.lists(st.integers(0, 100), max_size=4))
@settings(max_examples=80, deadline=None)
def test_any_split_into_runs_gives_the_same_events_and_counts(log, cuts):
    source, rows = log
    raw = lines(rows)
    whole, once = read(raw, context(source))
    found, offset, counted = [], 0, {"read": 0, "rejected": 0, "unknown": 0}
    for cut in [*sorted(len(raw) * c // 100 for c in cuts), len(raw)]:
        ctx = context(source, offset=offset)
        found += read(raw[:cut], ctx)[0]
        offset = ctx.offset
        for name in counted:
            counted[name] += getattr(ctx.rows, name)
    if source == "canonical":  # its line counter only orders rows that carry no `seq`
        assert [event.key for event in found] == [event.key for event in whole]
    else:
        assert found == whole
    assert counted == {name: getattr(once.rows, name) for name in counted}
    assert offset == once.offset == len(raw)


@given(logs)
@settings(max_examples=40, deadline=None)
def test_crlf_and_gzip_change_nothing(log):
    source, rows = log
    raw = lines(rows)
    whole, _ = read(raw, context(source))
    crlf, _ = read(raw.replace(b"\n", b"\r\n"), context(source))
    stream = io.BufferedReader(gzip.GzipFile(fileobj=io.BytesIO(gzip.compress(raw))))
    packed = list(READERS[source].read(stream, context(source)))
    assert packed == whole
    # The natural id of a rejected line is its byte position, which the line ends move.
    kept = [event for event in whole if type(event).__name__ != "Gap"]
    assert [event for event in crlf if type(event).__name__ != "Gap"] == kept


@given(logs)
@example(("claude_code", build(["command", "interrupt"])))
@settings(max_examples=40, deadline=None)
def test_doubled_rows_add_no_event(log):
    source, rows = log
    once, _ = read([row for row in rows if isinstance(row, dict)], context(source))
    twice, _ = read([row for row in rows if isinstance(row, dict) for _ in (0, 1)], context(source))

    def firsts(events):
        found = {}
        for event in events:
            copy = msgspec.structs.replace(event, seq=0)
            found.setdefault((type(event), event.key, getattr(event, "result_ts", None)), copy)
        return found

    def lasts(events):
        return firsts(reversed(events))

    assert firsts(twice) == firsts(once)
    assert lasts(twice) == lasts(once)


@given(logs)
@settings(max_examples=30, deadline=None)
def test_reading_twice_gives_the_same_bytes(log):
    source, rows = log
    assert read(lines(rows), context(source))[0] == read(lines(rows), context(source))[0]


@given(logs)
@settings(max_examples=40, deadline=None)
def test_coverage_adds_up(log):
    source, rows = log
    events, ctx = read(lines(rows), context(source))
    assert ctx.rows.read == len(rows)
    assert ctx.rows.rejected == sum(ctx.rows.reasons.values()) == sum(isinstance(row, bytes) for row in rows)
    assert ctx.rows.rejected + ctx.rows.unknown + ctx.rows.foreign <= ctx.rows.read
    assert len({(type(e), e.key) for e in events if type(e).__name__ == "Gap"}) == ctx.rows.rejected


@given(st.binary(max_size=400))
@settings(max_examples=150, deadline=None)
@pytest.mark.parametrize("source", ["claude_code", "canonical"])
def test_no_bytes_raise(source, raw):
    _, ctx = read(raw, context(source, final=True))
    assert ctx.offset == len(raw)
