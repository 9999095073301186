# SPDX-License-Identifier: Apache-2.0
"""A row that is rejected leaves nothing behind, and damage costs no more than the row that it hit."""

from __future__ import annotations

import gzip
import io
import json
from typing import Any

import msgspec
import pytest

from otlp_support import gemini, log, logs, read_values, span, spans
from reader_forms import FORMS, Form
from reader_support import Log, context, lines, of, read, text
from windvane_client.events import AnyEvent
from windvane_client.merge import pack
from windvane_client.readers import READERS
from windvane_client.readers.values import framing

CANARY = "CANARY-4711"
BY_NAME = {form.name: form for form in FORMS}


def bare(events: list[AnyEvent]) -> list[AnyEvent]:
    return [msgspec.structs.replace(event, seq=0) for event in events if type(event).__name__ != "Gap"]


def beside(source: str, rows: list[Any], bad: Any, places: range | None = None) -> None:
    """Wherever the bad row stands, it is refused and all others give what they give without it."""
    good, _ = read(rows, context(source))
    for at in places or range(len(rows) + 1):
        found, ctx = read([*rows[:at], bad, *rows[at:]], context(source))
        assert ctx.rows.rejected == 1
        assert bare(found) == bare(good)


# --- rows that turn out to be malformed after some of them was understood --------------------------------------------


def codex_row(kind: str, second: int = 0, **payload: Any) -> dict[str, Any]:
    return {"timestamp": f"2026-03-01T10:00:{second:02}Z", "type": kind, "payload": payload}


CODEX = [
    codex_row("session_meta", id="s1", originator="codex_cli_rs", source="cli"),
    codex_row("event_msg", 1, type="task_started", turn_id="t1"),
    codex_row("event_msg", 2, type="user_message", message="x"),
    codex_row("turn_context", 3, model="gpt-5.2"),
    codex_row("event_msg", 4, type="user_message", message="x"),
    codex_row("event_msg", 5, type="token_count", info={"total_token_usage": {"total_tokens": 9}}),
]


@pytest.mark.parametrize(
    "bad",
    [
        lines([codex_row("session_meta", id="s0", source="Q")]).strip().replace(b'"Q"', b'"\xff"'),
        codex_row("session_meta", id="s0", source={"subagent": {"thread_spawn": {"parent_thread_id": 5}}}),
        lines([codex_row("event_msg", 3, type="task_complete", error={"code": "Q"})])
        .strip()
        .replace(b'"Q"', b'"\xff"'),
        codex_row("response_item", 5, type="function_call", call_id="c1"),
        codex_row("event_msg", 5, type="thread_rolled_back", num_turns="9" * 5000),
        codex_row("event_msg", 5, type="thread_rolled_back", num_turns="-1"),
    ],
    ids=["bad source", "bad parent", "bad error", "nameless call", "endless number", "negative number"],
)
def test_a_rejected_row_of_a_rollout_changes_nothing(bad: Any) -> None:
    # A second header is a copy, and not looked at.
    beside("codex", CODEX, bad, range(1) if b"session_meta" in lines([bad]) else None)


def transcript() -> Log:
    written = Log(entrypoint="cli")
    written.user()
    written.attachment("queued_command", prompt="x")
    written.answer("m1", {"type": "tool_use", "id": "t1", "name": "Bash", "input": {}})
    written.result("t1")
    written.user("<command-name>/model</command-name>")
    written.user()
    written.answer("m2")
    return written


@pytest.mark.parametrize(
    "bad",
    [
        {"type": "attachment", "attachment": 5},
        {"type": "attachment", "attachment": {"type": "queued_command", "origin": {"kind": 5}}},
        {"type": "system", "subtype": "api_error", "error": {"status": [5]}},
        {"type": "assistant", "isApiErrorMessage": True, "message": {"role": "assistant", "content": [5]}},
        {"type": "user", "message": {"role": "user", "content": [{"type": "tool_result", "content": "x"}]}},
        {"type": "user", "origin": {"kind": 5}, "message": {"role": "user", "content": "x"}},
    ],
    ids=["no attachment", "bad origin", "bad fault", "bad answer", "nameless result", "bad prompt"],
)
def test_a_rejected_row_of_a_transcript_links_nothing(bad: dict[str, Any]) -> None:
    written = transcript()
    for copied in list(written.rows):
        shared = {name: copied[name] for name in ("sessionId", "version", "uuid", "timestamp", "isSidechain")}
        beside("claude_code", written.rows, {**shared, "parentUuid": None, "entrypoint": "cli", **bad})


@pytest.mark.parametrize("name", ["api_response", "slash_command.model", "api_error", "model_routing"])
def test_a_rejected_record_of_telemetry_leaves_its_session_as_it_was(name: str) -> None:
    good = [
        gemini(1, "user_prompt", prompt_id="p1"),
        gemini(2, "api_response", prompt_id="p1", model="gemini-2.5-pro"),
        gemini(4, "tool_call", function_name="edit", success=True, prompt_id="p1"),
        gemini(5, "api_response", prompt_id="p1", model="gemini-2.5-pro"),
    ]
    bad = gemini(3, name, model="gemini-3-pro", prompt_id=1.5, model_name=1.5, decision_source=1.5)
    whole, _ = read_values(*map(logs, good))
    found, ctx = read_values(*map(logs, [*good[:2], bad, *good[2:]]))
    assert ctx.rows.rejected == 1
    assert bare(found) == bare(whole)


def test_a_scope_that_cannot_be_read_has_no_name() -> None:
    raw = json.dumps(logs(log(1, event__name="x"), scope="Q")).encode().replace(b'"Q"', b'"\xff"')
    ctx = context("otlp", final=True)
    assert list(READERS["otlp"].read(io.BytesIO(raw + b"\n"), ctx)) == []
    assert (ctx.rows.read, ctx.rows.foreign) == (1, 1)


# --- values that no program writes ------------------------------------------------------------------------------------


def test_a_version_in_other_digits_writes_no_attempts() -> None:
    written = Log(version="2.1.\u00b2")
    written.answer("m1", text(CANARY))
    events, ctx = written.read()
    assert ctx.rows.rejected == 0
    assert of(events, "Call")[0].reader.endswith("+no-attempts")


@pytest.mark.parametrize("seq", [(1 << 53) + 1, -(1 << 64), 10**40])
def test_a_place_that_the_store_cannot_hold_rejects_its_row(seq: int) -> None:
    row = {"v": 1, "k": "prompt", "person": "p", "conv": "c", "ts": "2026-03-01T10:00:00Z", "origin": "human"}
    events, ctx = read([{**row, "seq": seq}, {**row, "seq": 1 << 53}], context("canonical"))
    assert ctx.rows.reasons == {"bad_value": 1}
    assert [pack(event) for event in events]


@pytest.mark.parametrize("end", [10**40, 1, "9" * 20])
def test_a_span_that_ends_at_no_time_is_rejected(end: object) -> None:
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "edit"}
    events, ctx = read_values(spans(span(1, tool), {**span(2, tool), "endTimeUnixNano": end}))
    assert ctx.rows.reasons == {"bad_time": 1}
    assert len(of(events, "Tool")) == len([pack(event) for event in events]) - 1 == 1


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS, ids=[form.name for form in FORMS])
def test_damaged_compression_is_counted_and_never_raised(form: Form) -> None:
    data = form.write(form.rows(["user", "answer", "tool", "result"] * 3))
    packed = gzip.compress(data, mtime=0)
    for damaged in (packed[: len(packed) // 2], packed[:-4], packed[:4], packed[:-8] + bytes(8), b"\x1f\x8b" + data):
        ctx = form.context(final=True)
        stream = io.BufferedReader(gzip.GzipFile(fileobj=io.BytesIO(damaged)))
        events = list(READERS[form.source].read(stream, ctx))
        assert ctx.rows.reasons.get("unreadable") == 1
        assert sum(event.what == "rows_rejected" for event in of(events, "Gap")) == ctx.rows.rejected


@pytest.mark.parametrize("name", ["litellm", "open_webui lines"])
@pytest.mark.parametrize(
    "head",
    [b'l"}}}\n', b'x": "y\n', b"\0\0\0\n", b"{\n", b'["x"\n', b"[[[\n", b'l"}\n: 5}\n\n]\n', b"x" * 70_000 + b"\n"],
)
def test_a_damaged_beginning_hides_no_row(name: str, head: bytes) -> None:
    form = BY_NAME[name]
    data = form.write(form.rows(["user", "answer", "error", "other"]))
    good, before = form.read(data, final=True)
    found, ctx = form.read(head + data, final=True)
    assert bare(found) == bare(good)
    assert ctx.rows.read - before.rows.read == ctx.rows.rejected > 0


@pytest.mark.parametrize(
    ("raw", "frame"),
    [
        (b'a,b\n1,"[\n{""c"": 5}\n]"\n', "table"),
        (b"a,b\n{r1,5\nr2,6\n", "table"),
        (b'[{"a": 1},\n{"a": 2}]\n', "values"),
        (b'{\n  "a": {\n', "values"),
        (b'[\n{"a": 1}\n]\n', "values"),
    ],
)
def test_what_follows_the_first_line_does_not_hide_a_table_or_a_document(raw: bytes, frame: str) -> None:
    assert framing(io.BytesIO(raw)) == frame


def test_one_damaged_chat_of_a_page_costs_no_other() -> None:
    form = BY_NAME["open_webui chats"]
    rows = [json.dumps(row).encode() for row in form.rows(["user", "answer", "answer"] * 3)]
    good, _ = form.read(form.write([rows[0], rows[2]]), final=True)
    for bad in (rows[1].replace(b'"c3"', b'"\0"', 1), rows[1].replace(b'"user"', b'"user"x'), b"[5]", b"7"):
        found, ctx = form.read(form.write([rows[0], bad, rows[2]]), final=True)
        assert (ctx.rows.read, ctx.rows.rejected) == (3, 1)
        assert bare(found) == bare(good)


def test_a_rejected_span_names_no_conversation_of_its_trace() -> None:
    about = {"openinference.span.kind": "LLM", "llm.model_name": "gpt-5.2", "session.id": "s1"}
    good = [spans(span(1, {"gen_ai.request.model": "gpt-5.2", "gen_ai.response.finish_reasons": ["stop"]}))]
    bad = json.loads(json.dumps(spans(span(0, about))).replace('{"stringValue": "gpt-5.2"}', '{"stringValue": -0.0}'))
    alone, _ = read_values(*good)
    beside, ctx = read_values(bad, *good)
    assert ctx.rows.rejected == 1
    assert (
        [event.conv for event in beside if type(event).__name__ == "Call"] == [event.conv for event in alone] == [None]
    )


def test_one_damaged_row_of_a_page_of_observations_costs_no_other() -> None:
    form = BY_NAME["langfuse page"]
    rows = [json.dumps(row).encode() for row in form.rows(["user", "answer", "tool"])]
    good, _ = form.read(form.write([rows[0], rows[2]]), final=True)
    for bad in (rows[1].replace(b'"o1"', b'"\0"', 1), rows[1].replace(b'"o1"', b'"o1"x'), b"[5]", b"7"):
        found, ctx = form.read(form.write([rows[0], bad, rows[2]]), final=True)
        assert (ctx.rows.read, ctx.rows.rejected) == (3, 1)
        assert bare(found) == bare(good)
