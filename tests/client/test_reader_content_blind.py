# SPDX-License-Identifier: Apache-2.0
"""Nothing that a person or a model wrote ever becomes an object of ours."""

from __future__ import annotations

import typing

import msgspec
import pytest

from reader_support import IDS, Log, context, read, text, tool
from windvane_client.readers import (
    READERS,
    canonical_rows,
    claude_rows,
    cline_rows,
    codex_rows,
    gemini_rows,
    langfuse_rows,
    litellm_rows,
    open_webui_rows,
    otlp_metrics,
    otlp_rows,
)
from windvane_client.readers.lines import Rejected

CANARY = "CANARY-4711"
TEXTUAL = {
    "text", "content", "prompt", "input", "output", "snapshot", "arguments", "result", "summary", "body", "query",
    "cwd", "path", "condition", "reason", "thinking", "stdout", "stderr", "prUrl",
}  # fmt: skip


def full_log() -> Log:
    log = Log(cwd=CANARY, gitBranch=CANARY, slug=CANARY, entrypoint=CANARY)
    log.user(CANARY, promptSource=CANARY, permissionMode=CANARY, todos=[CANARY])
    log.user([text(CANARY), {"type": CANARY, "text": CANARY}], origin={"kind": CANARY, "body": CANARY})
    log.answer("m1", text(CANARY), {"type": "thinking", "thinking": CANARY, "signature": CANARY}, model=CANARY)
    log.answer("m2", {"type": "tool_use", "id": "t1", "name": CANARY, "input": {CANARY: CANARY}}, stop_reason=CANARY)
    log.result("t1", f"Exit code 1 {CANARY}", is_error=True, toolUseResult=CANARY, toolDenialKind=CANARY)
    log.answer("m3", tool("t2"))
    log.result("t2", [text(CANARY)], is_error=CANARY)
    log.user(f"<command-name>/{CANARY}</command-name>")
    log.user(f"<local-command-stdout>{CANARY}")
    log.system("api_error", error={"status": CANARY, "type": CANARY, "cause": {"code": CANARY}}, content=CANARY)
    log.system("local_command", content=f"<command-name>/model {CANARY}")
    log.system(CANARY)
    log.answer("m4", text(CANARY), model="<synthetic>", isApiErrorMessage=True, error=CANARY, apiErrorStatus=CANARY)
    log.attachment("queued_command", prompt=CANARY)
    log.attachment("hook_blocking_error", toolUseID="t3", blockingError={"blockingError": CANARY})
    log.attachment("goal_status", met=True, condition=CANARY, reason=CANARY)
    log.row("pr-link", prUrl=CANARY)
    log.row("summary", summary=CANARY)
    log.row("progress", data={"message": CANARY})
    log.row(CANARY)
    log.rows.append({CANARY: CANARY})
    log.rows.append({"type": "user", "message": CANARY})
    log.rows.append({"type": "user", "message": {"content": {"a": CANARY}}, "timestamp": "2026-03-01T10:00:00Z"})
    log.rows.append({"type": "user", "message": {"content": CANARY}, "timestamp": CANARY})
    log.rows.append(CANARY)
    return log


def everything(events, ctx) -> str:
    packed = msgspec.msgpack.encode(events).decode("latin-1")
    return repr(events) + packed + repr(ctx.rows) + repr(ctx.facts)


def test_no_text_of_a_transcript_is_in_events_counts_or_facts():
    log = full_log()
    events, ctx = log.read()
    assert len(events) > 15
    assert ctx.rows.rejected == 5
    assert CANARY not in everything(events, ctx)
    assert CANARY.encode() not in msgspec.msgpack.encode(events)
    # Every field of every row is mistaken for the canary once: no error path lets it out.
    for row in full_log().rows:
        if not isinstance(row, dict):
            continue
        for name in row:
            for wrong in (CANARY, [CANARY], {CANARY: CANARY}, 7):
                events, ctx = read([{**row, name: wrong}])
                assert CANARY not in everything(events, ctx)


def test_no_raw_id_is_in_an_event():
    log = Log("session-raw-id")
    log.user(uuid="uuid-raw-id")
    log.answer("message-raw-id", tool("tool-raw-id"))
    log.result("tool-raw-id")
    events, ctx = log.read()
    assert "raw-id" not in everything(events, ctx)


CANONICAL = [
    {"k": "prompt", "origin": "human"},
    {"k": "call", "key": "k1", "served": CANARY, "requested": CANARY, "route": CANARY},
    {"k": "attempt_error", "error_class": "5xx", "family": CANARY, "request": "r"},
    {"k": "tool", "key": "k2", "family": CANARY, "tool_class": CANARY, "outcome": CANARY, "origin": CANARY},
    {"k": "model_set", "family": CANARY, "by": CANARY},
    {"k": "turn_end", "how": CANARY},
    {"k": "outcome", "value": "met", "evidence": CANARY},
    {"k": "vote", "a": CANARY, "b": CANARY, "winner": "a", "blind": CANARY, "judge": CANARY, "item": "i"},
    {"k": "close", "how": "idle"},
    {"k": "gap", "what": "files_missing"},
]


@pytest.mark.parametrize("row", CANONICAL, ids=lambda row: row["k"])
def test_no_text_of_a_canonical_row_is_in_an_event(row):
    head = {
        "v": 1, "person": CANARY, "conv": CANARY, "project": CANARY, "ts": "2026-03-01T10:00:00Z", "turn": CANARY,
        "parent": CANARY, "row": CANARY, "mode": CANARY, "mode_evidence": CANARY, "client": CANARY, "reader": CANARY,
    }  # fmt: skip
    whole = {**head, **row}
    events, ctx = read([whole], context("canonical"))
    assert len(events) == 1
    assert ctx.rows.rejected == 0
    assert CANARY not in everything(events, ctx)
    for name in whole:
        for wrong in (CANARY, [CANARY], {CANARY: CANARY}, -7, CANARY * 50):
            events, ctx = read([{**whole, name: wrong}], context("canonical"))
            assert CANARY not in everything(events, ctx)


def structs():
    yield from claude_rows.STRUCTS
    yield from codex_rows.STRUCTS
    yield from cline_rows.STRUCTS
    yield from otlp_rows.STRUCTS
    yield from otlp_metrics.STRUCTS
    yield canonical_rows.KindOnly
    yield from canonical_rows.BY_KIND.values()
    yield from litellm_rows.STRUCTS
    yield from open_webui_rows.STRUCTS
    yield from langfuse_rows.STRUCTS
    yield from gemini_rows.STRUCTS


def test_fields_named_like_text_are_raw():
    """The field audit: whoever adds a text field to a struct meets this test."""
    seen = 0
    for struct in structs():
        for field in msgspec.structs.fields(struct):
            if field.encode_name in TEXTUAL:
                seen += 1
                assert field.type is msgspec.Raw, (struct, field.name)
    assert seen >= 3


def test_no_struct_decodes_open_values():
    """A dict, an Any or a bare object in a struct would take whatever is there."""
    for struct in structs():
        for field in msgspec.structs.fields(struct):
            parts = {field.type, *typing.get_args(field.type)}
            assert not parts & {dict, list, object, typing.Any}, (struct, field.name)


def test_no_type_like_field_is_an_enum_or_a_tagged_union():
    for struct in structs():
        assert struct.__struct_config__.tag is None
        for field in msgspec.structs.fields(struct):
            assert typing.get_origin(field.type) is not typing.Literal


def test_errors_and_ids_show_nothing():
    assert CANARY not in repr(IDS)
    assert bytes(range(32)).hex() not in repr(IDS)
    assert str(Rejected("wrong_type")) == "a field has another type than this format gives it"


def test_readers_read_bytes_only():
    """A reader that opened files or asked the clock would not be a function of its arguments."""
    import inspect

    modules = (
        "claude_code", "claude_answers", "claude_prompts", "claude_side_rows", "canonical", "lines", "codex",
        "codex_rows", "codex_state", "cline", "cline_rows", "cline_session", "cline_task", "json_items", "machine_head",
        "collected", "collected_rows", "litellm", "open_webui", "open_webui_chats", "values", "csv_rows", "times",
        "mapping", "otlp", "otlp_dialects", "otlp_metrics", "otlp_claude", "otlp_codex", "otlp_gemini", "otlp_rows",
        "otlp_spans", "otlp_state", "otlp_values", "langfuse", "langfuse_rows", "gemini_cli", "gemini_rows",
    )  # fmt: skip
    for module in modules:
        source = inspect.getsource(__import__(f"windvane_client.readers.{module}", fromlist=["x"]))
        for forbidden in ("open(", ".now(", "import time", "import os", "import json", "print(", "logging"):
            assert forbidden not in source, (module, forbidden)
    built = {
        "canonical", "claude_code", "cline", "codex", "collected", "gemini_cli", "langfuse", "litellm", "mapping",
        "open_webui", "otlp",
    }  # fmt: skip
    assert {source for source in READERS if "/" not in source} == built
