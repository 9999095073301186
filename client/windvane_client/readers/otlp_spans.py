# SPDX-License-Identifier: Apache-2.0
"""Telemetry of programs: spans of the dialects `gen_ai`, `openinference` and `vercel_ai`.

Rules kept here:
* a wrapper span (agent, chain, outer Vercel span) is no call, also with usage or a model, unless nothing is inside it;
* a call is answered only with a finish reason or output tokens: a span without status may be a stream that died;
* one span exported twice is one call: same response id (else trace and model), same start and end; never equal tokens;
* tool calls among input messages are history and are not read.
"""

from __future__ import annotations

from windvane_client.events import Call, Tool
from windvane_client.readers.otlp_state import Pass, Row
from windvane_privacy.catalogue import SYNTHETIC, UNKNOWN

CALL, TOOL, WRAPPER, OUTER, UNKNOWN_TYPE = "call", "tool", "wrapper", "outer", "unknown"
"""What a span is."""

_GEN_AI = {
    "chat": CALL, "text_completion": CALL, "generate_content": CALL, "completion": CALL, "execute_tool": TOOL,
    "invoke_agent": WRAPPER, "create_agent": WRAPPER, "invoke_workflow": WRAPPER, "embeddings": WRAPPER,
    "retrieval": WRAPPER, "plan": WRAPPER,
}  # fmt: skip
_OPENINFERENCE = {
    "LLM": CALL, "TOOL": TOOL, "AGENT": WRAPPER, "CHAIN": WRAPPER, "RETRIEVER": WRAPPER, "RERANKER": WRAPPER,
    "EMBEDDING": WRAPPER, "GUARDRAIL": WRAPPER, "EVALUATOR": WRAPPER, "PROMPT": WRAPPER,
}  # fmt: skip
_VERCEL_OUTER = frozenset({"ai.generateText", "ai.streamText", "ai.generateObject", "ai.streamObject"})
_SESSION = {
    "gen_ai": ("gen_ai.conversation.id", "session.id"),
    "openinference": ("session.id",),
    "vercel_ai": ("session.id",),
}
_FINISH = (
    "gen_ai.response.finish_reasons", "gen_ai.response.finish_reason", "llm.finish_reason", "ai.response.finishReason",
)  # fmt: skip
_TOKENS = (
    "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion",
    "ai.usage.outputTokens", "ai.usage.completionTokens",
)  # fmt: skip
_SERVED = ("gen_ai.response.model", "ai.response.model", "llm.model_name", "gen_ai.request.model", "ai.model.id")
_ASKED = ("gen_ai.request.model", "ai.model.id")


def session_names(dialect: str) -> tuple[str, ...]:
    """The attributes that name a conversation."""
    return _SESSION[dialect]


def kind(row: Row) -> str:
    """What a span is: one of CALL, TOOL, WRAPPER, OUTER, UNKNOWN_TYPE."""
    if row.dialect == "openinference":
        return _OPENINFERENCE.get((row.text("openinference.span.kind") or "").upper(), UNKNOWN_TYPE)
    if row.dialect == "vercel_ai":
        operation = row.text("ai.operationId") or ""
        if operation in _VERCEL_OUTER:
            return OUTER
        if operation == "ai.toolCall":
            return TOOL
        if operation.startswith("ai.embed"):
            return WRAPPER
        return CALL if operation.endswith((".doGenerate", ".doStream")) else UNKNOWN_TYPE
    operation = row.text("gen_ai.operation.name") or ""
    if operation:
        return _GEN_AI.get(operation, UNKNOWN_TYPE)
    if "gen_ai.tool.name" in row.attrs:
        return TOOL
    return CALL if any(name in row.attrs for name in _SERVED) else WRAPPER


def emit(now: Pass, what: str) -> None:
    """The event of a span that is a call or a tool call."""
    if what == TOOL:
        _tool(now)
    elif what in (CALL, OUTER):
        _call(now)


def _key(now: Pass, kind_: str, named: str | None, *parts: str | None) -> bytes:
    row = now.row
    if row.start is None:
        raw = row.place
    else:
        what = ("id", named) if named else ("trace", row.trace, *parts)
        raw = "\0".join(str(part or "") for part in (*what, row.start, row.end))
    return now.context.ids.key(f"otlp/span/{kind_}", raw)


def _call(now: Pass) -> None:
    row = now.row
    served = row.text(*_SERVED)
    family = now.family(served)
    if family == SYNTHETIC:
        return
    asked = row.text(*_ASKED)
    finish = row.attrs.get("ai.response.finishReason")
    ended = any(name in row.attrs for name in _FINISH) or (row.number(*_TOKENS) or 0) > 0
    broken = row.failed or "error.type" in row.attrs or finish == "error"
    named = row.text("gen_ai.response.id", "ai.response.id")
    now.out.append(
        Call(
            **now.of(_key(now, "call", named, served), node=True),
            served=family,
            requested=now.family(asked) if asked else None,
            status="ok" if ended and not broken else "error",
        )
    )


def _tool(now: Pass) -> None:
    row = now.row
    name = row.text("gen_ai.tool.name", "ai.toolCall.name", "tool.name") or ""
    tool_class, origin = now.context.tools.classify(name)
    named = row.text("gen_ai.tool.call.id", "ai.toolCall.id")
    broken = row.failed or "error.type" in row.attrs
    now.out.append(
        Tool(
            **now.of(_key(now, "tool", f"{named}\0{name}" if named else None, name)),
            family=UNKNOWN,
            tool_class=tool_class,
            outcome="failed" if broken else "ok",
            origin=origin,
            result_ts=now.ts if row.end is None else row.end // 1000,
        )
    )
