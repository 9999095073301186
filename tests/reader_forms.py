# SPDX-License-Identifier: Apache-2.0
"""Every form in which some program writes a log that a reader reads: how rows become a file, and who reads it."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import collected_logs as collecting
import gemini_cli_logs as gemini
import langfuse_logs as observed
import otlp_support as otel
import reader_logs as logs
from reader_support import context
from windvane_client.events import AnyEvent
from windvane_client.readers import READERS, ReadContext
from windvane_client.rules import parse_rules

LINES, ARRAY, MESSAGES, PAGE, CSV = "lines", "array", "messages", "page", "csv"
SESSION, OBSERVED, UNDER_KEY = "session", "page of observations", "under a key"
BY_LINE = (LINES, UNDER_KEY)
"""Frames in which a line is a row."""
_AROUND = {
    SESSION: (
        b'{\n"sessionId": "s1", "projectHash": "CANARY-4711", "kind": "main", "messages": [',
        b'], "summary": "CANARY-4711"}',
    ),
    ARRAY: (b"[", b"]"),
    MESSAGES: (b'{"version": 1, "agent": "lead", "sessionId": "s1", "messages": [', b"]}"),
    OBSERVED: (b'{\n"data": [', b'],\n"meta": {"page": 1}}'),
    PAGE: (b'{\n"type": "chats", "items": [', b"]}"),
}
CALLS = b"""name = "g"
format = "csv"
event = "call"
[columns]
person = "user"
conv = "trace"
key = "id"
ts = { column = "at", zone = "Europe/Berlin" }
served = "model"
requested = "asked"
route = { column = "via", map = { "fb" = "fallback", "no" = "direct" } }
status = { column = "code", map = { "2xx" = "ok", "499" = "aborted", "*" = "error" } }
[declares]
infra_recovery = "attempts"
"""
VOTES = b"""name = "v"
format = "jsonl"
event = "vote"
[columns]
person = "user"
ts = { column = "at", unit = "s" }
item = "item"
a = "left"
b = "right"
winner = { column = "won", map = { "l" = "a", "r" = "b", "*" = "tie" } }
blind = { column = "hidden", map = { "true" = "proved", "*" = "no" } }
[declares]
blind_quality = "proved"
"""
OUTCOMES = b"""name = "o"
format = "jsonl"
event = "outcome"
joins = "canonical"
[columns]
person = "user"
conv = "trace"
ts = "at"
value = { column = "state", map = { "done" = "accepted", "*" = "rejected" } }
[declares]
completion = "explicit"
"""
_CALL_COLUMNS = ("id", "at", "user", "trace", "model", "asked", "via", "code", "text")
HEADER = json.dumps({
    "session_id": "s1", "interactive": True, "status": "completed",
    "metadata": {"fork": {"forkedAt": "2026-02-01T00:00:00Z", "forkedFromSessionId": "s0"}},
}).encode()  # fmt: skip


@dataclass(frozen=True, slots=True)
class Form:
    """`stateless`: each row gives its events whatever stands around it. `nested`: a row holds rows that are read one by
    one. `about`: what else the context says.
    """

    name: str
    source: str
    frame: str
    rows: Callable[[Sequence[str]], list[object]]
    stateless: bool = False
    companion: bytes = b""
    nested: bool = False
    about: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def head(self) -> int:
        """How many rows stand before the first one that `rows` gives."""
        return int(self.frame == UNDER_KEY)

    def context(self, **more: Any) -> ReadContext:
        return context(self.source, companion=self.companion, **self.about, **more)

    def write(self, rows: Sequence[object]) -> bytes:
        """One file."""
        return framed(self.frame, [raw(row) for row in rows])

    def read(self, data: bytes, **more: Any) -> tuple[list[AnyEvent], ReadContext]:
        made = self.context(**more)
        return list(READERS[self.source].read(io.BytesIO(data), made)), made


def raw(row: object) -> bytes:
    return row if isinstance(row, bytes) else json.dumps(row).encode()


def framed(frame: str, rows: Sequence[bytes]) -> bytes:
    if frame in (LINES, CSV, UNDER_KEY):
        head = collecting.HEAD if frame == UNDER_KEY else b""
        return head + b"".join(row + b"\n" for row in rows)
    head, foot = _AROUND[frame]
    return head + b",\n ".join(rows) + foot


def mapped_calls(steps: Sequence[str]) -> list[object]:
    rows: list[object] = [",".join(_CALL_COLUMNS).encode()]
    for n, step in enumerate(step for step in steps if step not in ("broken", "unknown")):
        code = {"error": 503, "retry": 529, "gave_up": 400, "interrupt": 499}.get(step, 200)
        model = "gpt-5.2" if step in ("other", "model") else "claude-opus-4.6"
        at = f"2026-03-01T10:{n:02}:00" if n % 2 else f"2026-03-01T09:{n:02}:00Z"
        text = f'{logs.CANARY}, "quoted"\nsecond line'
        rows.append(logs.csv_line([f"r{n}", at, "u1", f"t{n // 4}", model, "", "no", code, text]))
    return rows


def mapped_votes(steps: Sequence[str]) -> list[object]:
    return [b'{"user": }' if step == "broken" else _vote(n, hidden=step != "other") for n, step in enumerate(steps)]


def _vote(n: int, *, hidden: bool) -> dict[str, Any]:
    sides = {"left": "gpt-5.2", "right": "claude-opus-4.6"}
    when = {"user": "u1", "at": 1_772_359_200 + n, "item": f"i{n}"}
    return {**when, **sides, "won": "lrx"[n % 3], "hidden": hidden, "comment": logs.CANARY}


def mapped_outcomes(steps: Sequence[str]) -> list[object]:
    return [
        b'{"user": }'
        if step == "broken"
        else {"user": "u1", "at": f"2026-03-01T10:{n:02}:00Z", "trace": f"c{n}", "state": step, "note": logs.CANARY}
        for n, step in enumerate(steps)
    ]


def spans(steps: Sequence[str]) -> list[object]:
    """One trace a line, in the three dialects of spans."""
    rows: list[object] = []
    for n, step in enumerate(steps):
        if step == "broken":
            rows.append(b"{]")
            continue
        inside = {"traceId": f"{n // 3:032x}", "spanId": f"{n:016x}"}
        match step:
            case "tool" | "result":
                about = {
                    "gen_ai.operation.name": "execute_tool",
                    "gen_ai.tool.name": "edit",
                    "gen_ai.tool.call.id": f"t{n}",
                }
            case "error":
                about = {"gen_ai.tool.name": "edit", "error.type": "x", "gen_ai.conversation.id": "c"}
            case "other" | "model":
                about = {"openinference.span.kind": "LLM", "llm.model_name": "gpt-5.2", "session.id": "s1",
                         "input.value": logs.CANARY, "llm.token_count.completion": 5}  # fmt: skip
            case "skill" | "side":
                about = {"ai.operationId": "ai.streamText.doStream", "ai.response.model": "claude-opus-4-6",
                         "ai.response.finishReason": "stop", "ai.prompt": logs.CANARY}  # fmt: skip
            case "plan":
                about = {"ai.operationId": "ai.streamText", "ai.model.id": "claude-opus-4-6"}
            case "unknown":
                about = {"gen_ai.operation.name": "hologram"}
            case _:
                about = {"gen_ai.request.model": "gpt-5.2", "gen_ai.response.model": "gpt-5.2-2025-12-11",
                         "gen_ai.response.finish_reasons": ["stop"], "gen_ai.prompt": logs.CANARY}  # fmt: skip
        rows.append(otel.spans(otel.span(n, about, **inside)))
    return rows


_RULES = parse_rules(observed.RULES)
_PEOPLE_WORK = {"key_mode": _RULES.key_mode, "scores": _RULES.scores}
FORMS = (
    Form("claude_code", "claude_code", LINES, logs.claude_code),
    Form("codex", "codex", LINES, logs.codex),
    Form("cline", "cline", ARRAY, logs.cline),
    Form("cline session", "cline", MESSAGES, logs.cline_session, companion=HEADER),
    Form("litellm", "litellm", LINES, logs.litellm, stateless=True),
    Form("litellm array", "litellm", ARRAY, logs.litellm, stateless=True),
    Form("litellm table", "litellm", CSV, logs.litellm_csv, stateless=True),
    Form("open_webui votes", "open_webui", ARRAY, logs.feedback, stateless=True),
    Form("open_webui lines", "open_webui", LINES, logs.feedback, stateless=True),
    Form("open_webui chats", "open_webui", PAGE, logs.chats, stateless=True, nested=True),
    Form("otlp claude_code", "otlp", LINES, logs.claude_events),
    Form("otlp codex", "otlp", LINES, logs.codex_events),
    Form("otlp gemini_cli", "otlp", LINES, logs.gemini_events),
    Form("otlp spans", "otlp", LINES, spans),
    Form("otlp/codex", "otlp/codex", LINES, logs.codex_events),
    Form("otlp/gen_ai", "otlp/gen_ai", LINES, spans),
    Form("canonical", "canonical", LINES, logs.canonical, stateless=True),
    Form("mapping calls", "mapping", CSV, mapped_calls, stateless=True, companion=CALLS),
    Form("mapping votes", "mapping", LINES, mapped_votes, stateless=True, companion=VOTES),
    Form("mapping outcomes", "mapping", LINES, mapped_outcomes, stateless=True, companion=OUTCOMES),
    Form("langfuse", "langfuse", LINES, observed.langfuse, stateless=True, about=_PEOPLE_WORK),
    Form("langfuse array", "langfuse", ARRAY, observed.langfuse, stateless=True, about=_PEOPLE_WORK),
    Form("langfuse page", "langfuse", OBSERVED, observed.langfuse, stateless=True, about=_PEOPLE_WORK),
    Form("langfuse traces", "langfuse", ARRAY, observed.traces, stateless=True, nested=True, about=_PEOPLE_WORK),
    Form("gemini_cli", "gemini_cli", LINES, gemini.records),
    Form("gemini_cli resumed", "gemini_cli", LINES, gemini.resumed, nested=True),
    Form("gemini_cli document", "gemini_cli", SESSION, gemini.messages),
    Form(
        "collected", "collected", UNDER_KEY, collecting.collected, stateless=True, about={"collected": collecting.KNOWN}
    ),
)
