# SPDX-License-Identifier: Apache-2.0
"""Synthetic telemetry in the forms in which programs write it."""

from __future__ import annotations

import io
import json
from typing import Any

from reader_support import context
from windvane_client.events import AnyEvent
from windvane_client.readers import READERS, ReadContext

T0 = 1_780_000_000
"""Seconds UTC of the first row."""


def value(raw: object) -> dict[str, object]:
    if isinstance(raw, bool):
        return {"boolValue": raw}
    if isinstance(raw, int):
        return {"intValue": str(raw)}
    if isinstance(raw, float):
        return {"doubleValue": raw}
    if isinstance(raw, list):
        return {"arrayValue": {"values": [value(one) for one in raw]}}
    return {"stringValue": raw}


def pairs(attributes: dict[str, Any]) -> list[dict[str, object]]:
    return [{"key": key, "value": value(one)} for key, one in attributes.items()]


def ns(second: float) -> str:
    return str(T0 * 10**9 + round(second * 10**9))


def log(second: float, **attributes: Any) -> dict[str, Any]:
    """One log record; underscores in names stand for themselves, "__" for a dot."""
    named = {name.replace("__", "."): one for name, one in attributes.items()}
    return {"timeUnixNano": ns(second), "attributes": pairs(named)}


def span(second: float, attributes: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "traceId": "5b8efff798038103d269b633813fc60c",
        "spanId": "eee19b7ec3c1b174",
        "startTimeUnixNano": ns(second),
        "endTimeUnixNano": ns(second + 2),
        "attributes": pairs(attributes),
        **more,
    }


def logs(*records: dict[str, Any], service: str = "x", scope: str = "") -> dict[str, Any]:
    groups = [{"scope": {"name": scope}, "logRecords": list(records)}]
    return {"resourceLogs": [{"resource": {"attributes": pairs({"service.name": service})}, "scopeLogs": groups}]}


def spans(*records: dict[str, Any], service: str = "x") -> dict[str, Any]:
    groups = [{"scope": {"name": "x"}, "spans": list(records)}]
    return {"resourceSpans": [{"resource": {"attributes": pairs({"service.name": service})}, "scopeSpans": groups}]}


def claude(second: float, name: str, session: str = "s1", **attributes: Any) -> dict[str, Any]:
    row = log(second, **{"event__name": name, "session__id": session, **attributes})
    return {**row, "body": {"stringValue": f"claude_code.{name}"}}


def codex(second: float, name: str, conversation: str = "c1", **attributes: Any) -> dict[str, Any]:
    return log(second, **{"event__name": f"codex.{name}", "conversation__id": conversation, **attributes})


def gemini(second: float, name: str, session: str = "g1", **attributes: Any) -> dict[str, Any]:
    head = {"event__name": f"gemini_cli.{name}", "session__id": session, "interactive": True}
    return log(second, **{**head, **attributes})


def read_raw(raw: bytes, ctx: ReadContext | None = None) -> tuple[list[AnyEvent], ReadContext]:
    ctx = ctx or context("otlp", final=True)
    return list(READERS[ctx.facts.source].read(io.BytesIO(raw), ctx)), ctx


def read_values(*values: object, ctx: ReadContext | None = None) -> tuple[list[AnyEvent], ReadContext]:
    return read_raw(b"".join(json.dumps(one).encode() + b"\n" for one in values), ctx)
