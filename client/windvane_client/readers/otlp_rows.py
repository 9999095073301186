# SPDX-License-Identifier: Apache-2.0
"""Telemetry (OTLP JSON): the fields and attributes that are read, in each of the three framings.

Rules kept here:
* only attributes of the fixed list NAMES are decoded, and of those only short scalars; a list, a map or a long text is
  known to be there and nothing else;
* every field of a record is `Raw` until its dialect is known: a foreign record is foreign whatever else is wrong;
* ids are opaque text (hex in OTLP, base64 where a program used protobuf's own JSON), never decoded;
* a body and an error text are compared with fixed markers in their first 80 bytes, and nothing else.
"""

from __future__ import annotations

from typing import Final

import msgspec

from windvane_client.readers.lines import Rejected, peek

NONE: Final = msgspec.Raw()
"""Stands for an absent field; absence is tested by identity."""
_MAX_SCALAR: Final = 1024
_EMPTY: Final = (b"[]", b"{}")

EVENT_NAMES: Final = ("event.name", "event.sequence", "event.timestamp", "service.name")
PERSON_NAMES: Final = ("user.email", "user.id", "user.account_id", "user.account_uuid")
AGENT_NAMES: Final = (
    "session.id", "conversation.id", "prompt.id", "prompt_id", "model", "query_source", "status_code", "attempt",
    "total_attempts", "request_id", "tool_name", "tool_use_id", "decision", "success", "error_type", "duration_ms",
    "command_name", "call_id", "originator", "event.kind", "http.response.status_code", "interactive",
    "role", "error.type", "attempt_number", "function_name", "tool_type", "model_name", "decision_model",
    "decision_source", "github_workflow_name", "command",
)  # fmt: skip
SPAN_NAMES: Final = (
    "gen_ai.operation.name", "gen_ai.system", "gen_ai.provider.name", "gen_ai.request.model", "gen_ai.response.model",
    "gen_ai.response.id", "gen_ai.conversation.id", "gen_ai.response.finish_reasons", "gen_ai.response.finish_reason",
    "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "gen_ai.usage.input_tokens",
    "gen_ai.usage.prompt_tokens", "gen_ai.tool.name", "gen_ai.tool.call.id", "gen_ai.agent.name",
    "openinference.span.kind", "llm.model_name", "llm.finish_reason", "llm.token_count.completion", "tool.name",
    "ai.operationId", "ai.model.id", "ai.response.model", "ai.response.id", "ai.response.finishReason",
    "ai.usage.outputTokens", "ai.usage.completionTokens", "ai.toolCall.name", "ai.toolCall.id",
)  # fmt: skip
NAMES: Final = (*EVENT_NAMES, *PERSON_NAMES, *AGENT_NAMES, *SPAN_NAMES)
"""The attributes that are decoded."""
TEXTS: Final = ("error", "error.message")
"""Attributes of which only the first 80 bytes are compared with a marker."""

_BY_KEY: Final = {b'"%s"' % name.encode(): name for name in (*NAMES, *TEXTS)}


class Present:
    """A value that is there and is not read: a list or map with something in it, or a long text."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Present()"


PRESENT: Final = Present()
Scalar = str | int | float | bool | Present
Attributes = dict[str, Scalar]


class Top(msgspec.Struct, gc=False):
    """What tells the framings of one value apart."""

    resourceLogs: msgspec.Raw = NONE
    resourceSpans: msgspec.Raw = NONE
    resourceMetrics: msgspec.Raw = NONE
    scopeMetrics: msgspec.Raw = NONE
    hrTime: msgspec.Raw = NONE
    startTime: msgspec.Raw = NONE
    attributes: msgspec.Raw = NONE


class Resource(msgspec.Struct, gc=False):
    """`resource`; `_rawAttributes` is a list of [name, value] in objects of the JavaScript SDK."""

    attributes: msgspec.Raw = NONE


class Scope(msgspec.Struct, gc=False):
    """`scope`."""

    name: msgspec.Raw = NONE


class ScopeGroup(msgspec.Struct, gc=False):
    """One of `scopeLogs`, `scopeSpans` or `scopeMetrics`."""

    scope: Scope | None = None
    logRecords: list[msgspec.Raw] | None = None
    spans: list[msgspec.Raw] | None = None
    metrics: list[msgspec.Raw] | None = None


class ResourceGroup(msgspec.Struct, gc=False):
    """One of `resourceLogs`, `resourceSpans` or `resourceMetrics`."""

    resource: Resource | None = None
    scopeLogs: list[ScopeGroup] | None = None
    scopeSpans: list[ScopeGroup] | None = None
    scopeMetrics: list[ScopeGroup] | None = None
    instrumentationLibrarySpans: list[ScopeGroup] | None = None


class Record(msgspec.Struct, gc=False):
    """A log record or a span, in OTLP framing or as an object of the JavaScript SDK."""

    attributes: msgspec.Raw = NONE
    body: msgspec.Raw = NONE
    sdk_body: msgspec.Raw = msgspec.field(default=NONE, name="_body")
    eventName: msgspec.Raw = NONE
    timeUnixNano: msgspec.Raw = NONE
    observedTimeUnixNano: msgspec.Raw = NONE
    hrTime: msgspec.Raw = NONE
    hrTimeObserved: msgspec.Raw = NONE
    startTimeUnixNano: msgspec.Raw = NONE
    endTimeUnixNano: msgspec.Raw = NONE
    startTime: msgspec.Raw = NONE
    endTime: msgspec.Raw = NONE
    traceId: msgspec.Raw = NONE
    spanContext: msgspec.Raw = NONE
    status: msgspec.Raw = NONE
    resource: msgspec.Raw = NONE
    instrumentationScope: msgspec.Raw = NONE
    instrumentationLibrary: msgspec.Raw = NONE


class SpanContext(msgspec.Struct, gc=False):
    """`spanContext` of an SDK object."""

    traceId: str | None = None


class Status(msgspec.Struct, gc=False):
    """`status` of a span; the message is not named."""

    code: int | str | None = None


class ArrayValue(msgspec.Struct, gc=False):
    """A list of OTLP framing; whether it holds something is all that is asked."""

    values: msgspec.Raw = NONE


class AnyValue(msgspec.Struct, gc=False):
    """An attribute's value of OTLP framing."""

    stringValue: msgspec.Raw = NONE
    intValue: msgspec.Raw = NONE
    boolValue: msgspec.Raw = NONE
    doubleValue: msgspec.Raw = NONE
    arrayValue: ArrayValue | None = None
    kvlistValue: msgspec.Raw = NONE


class KeyValue(msgspec.Struct, gc=False):
    """One attribute of OTLP framing. The key stays bytes: only keys of the fixed list become names."""

    key: msgspec.Raw = NONE
    value: AnyValue | None = None


AttributeMap = msgspec.defstruct(
    "AttributeMap",
    [(f"a{i}", msgspec.Raw, NONE) for i in range(len(_BY_KEY))],
    rename={f"a{i}": name for i, name in enumerate(_BY_KEY.values())},
    gc=False,
)
"""Attributes as a plain map: one `Raw` field for each name that is read."""
STRUCTS: Final = (
    Top, Resource, Scope, ScopeGroup, ResourceGroup, Record, SpanContext, Status, KeyValue, ArrayValue, AnyValue,
    AttributeMap,
)  # fmt: skip

GROUPS: Final = msgspec.json.Decoder(list[ResourceGroup])
RECORD: Final = msgspec.json.Decoder(Record)
RESOURCE: Final = msgspec.json.Decoder(Resource)
SCOPE: Final = msgspec.json.Decoder(Scope)
LIST: Final = msgspec.json.Decoder(list[msgspec.Raw])
_CONTEXT: Final = msgspec.json.Decoder(SpanContext)
_STATUS: Final = msgspec.json.Decoder(Status)
_PAIRS: Final = msgspec.json.Decoder(list[KeyValue])
_VALUE: Final = msgspec.json.Decoder(AnyValue)
_MAP: Final = msgspec.json.Decoder(AttributeMap)
_TEXT: Final = msgspec.json.Decoder(str)
_text = _TEXT.decode
_QUOTE: Final = ord('"')
_NUMBER: Final = msgspec.json.Decoder(int | float)
_PAIR: Final = msgspec.json.Decoder(tuple[int, int])


def first_byte(raw: msgspec.Raw) -> bytes:
    """First byte of a value; empty where the field is absent."""
    return bytes(memoryview(raw)[:1])


def scalar(raw: msgspec.Raw) -> Scalar | None:
    """A short scalar; PRESENT for what is not read; None for null, an empty list and an absent field.

    Raises:
        msgspec.DecodeError: text that is not UTF-8.
    """
    first = first_byte(raw)
    if first == b'"':
        return _TEXT.decode(raw) if len(memoryview(raw)) <= _MAX_SCALAR else PRESENT
    if first in (b"[", b"{"):
        return None if bytes(memoryview(raw)[:8]).translate(None, b" \t\r\n") in _EMPTY else PRESENT
    if first == b"t":
        return True
    if first == b"f":
        return False
    return None if first in (b"", b"n") else _NUMBER.decode(raw)


def attributes(raw: msgspec.Raw) -> tuple[Attributes, dict[str, bytes], bool]:
    """(named attributes, heads of the marked texts, whether the container has the form of attributes).

    Raises:
        msgspec.DecodeError: a named attribute is no value.
    """
    found: Attributes = {}
    heads: dict[str, bytes] = {}
    first = first_byte(raw)
    if first == b"[":
        for pair in _PAIRS.decode(raw):
            name, value = _BY_KEY.get(bytes(pair.key)), pair.value
            if name is None or value is None:
                continue
            text = memoryview(value.stringValue)
            if 0 < len(text) <= _MAX_SCALAR and text[0] == _QUOTE and value.arrayValue is None and name not in TEXTS:
                found[name] = _text(text)  # nine of ten; the rest by the long way
            else:
                _take(name, _picked(value), found, heads)
    elif first == b"{":
        values = _MAP.decode(raw)
        for field, name in zip(values.__struct_fields__, _BY_KEY.values(), strict=True):
            value = getattr(values, field)
            if value is not NONE:
                _take(name, value, found, heads)
    else:
        return found, heads, raw is NONE or first == b"n"
    return found, heads, True


def _picked(value: AnyValue) -> msgspec.Raw:
    if value.arrayValue is not None:
        return value.arrayValue.values
    for one in (value.stringValue, value.intValue, value.boolValue, value.doubleValue):
        if one is not NONE:
            return one
    return value.kvlistValue


def _take(name: str, raw: msgspec.Raw, found: Attributes, heads: dict[str, bytes]) -> None:
    if name in TEXTS:
        heads[name] = peek(raw)
        return
    value = scalar(raw)
    if value is not None:
        found[name] = value


def body_head(record: Record) -> bytes:
    """The first 80 bytes of a log record's body where it is a text; compared with event names and dropped."""
    for raw in (record.body, record.sdk_body):
        first = first_byte(raw)
        if first == b'"':
            return peek(raw)
        if first == b"{":
            try:
                return peek(_VALUE.decode(raw).stringValue)
            except msgspec.DecodeError:
                return b""
    return b""


def nanos(*fields: msgspec.Raw) -> int | None:
    """Nanoseconds UTC of the first field that holds a time: whole ns (also as text), or a pair [s, ns].

    Raises:
        Rejected: a field that holds something else.
    """
    for raw in fields:
        first = first_byte(raw)
        try:
            if first == b"[":
                seconds, rest = _PAIR.decode(raw)
                value: Scalar | None = seconds * 1_000_000_000 + rest
            else:
                value = scalar(raw)
        except msgspec.DecodeError:
            raise Rejected("bad_time") from None
        if isinstance(value, str):
            value = int(value) if value.isascii() and value.isdigit() and len(value) < 21 else value
        if value is None or value == 0:
            continue
        if isinstance(value, bool) or not isinstance(value, int):
            raise Rejected("bad_time")
        return value
    return None


def trace(record: Record) -> str:
    """The trace id as opaque text; empty where there is none."""
    if first_byte(record.spanContext) == b"{":
        return _CONTEXT.decode(record.spanContext).traceId or ""
    value = scalar(record.traceId)
    return value if isinstance(value, str) else ""


def failed(record: Record) -> bool:
    """Whether the span's status says ERROR: as number or as name."""
    if first_byte(record.status) != b"{":
        return False
    return _STATUS.decode(record.status).code in (2, "2", "STATUS_CODE_ERROR", "ERROR")
