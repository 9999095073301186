# SPDX-License-Identifier: Apache-2.0
"""OpenTelemetry logs and traces as JSON (OTLP): agents' events and the spans of programs, in six dialects.

Rules kept here:
* the JSON is parsed as it is: whole numbers may be text, ids are opaque, enums are a number or a name;
* a record of no known dialect is foreign, before any of its fields is checked;
* spans of agents say again what their events say and are not counted;
* a conversation named on the root span holds for its whole trace;
* a grown file is read from its start again, and only what is new is counted and emitted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from windvane_client.events import AnyEvent, Gap, Rows
from windvane_client.readers import otlp_claude, otlp_codex, otlp_gemini, otlp_spans
from windvane_client.readers import otlp_rows as rows
from windvane_client.readers.files import find_logs
from windvane_client.readers.lines import (
    NOT_READ,
    UNREADABLE,
    LineDecoder,
    Rejected,
    mended,
    plausible,
    reason_of,
    reject,
    without_id,
)
from windvane_client.readers.otlp_dialects import (
    AGENTS,
    PREFIXES,
    Group,
    dialect_of,
    name_in,
    own_attributes,
    scope_name,
    sdk_group,
)
from windvane_client.readers.otlp_metrics import Silence
from windvane_client.readers.otlp_state import VERSION, OptedOut, Pass, Row
from windvane_client.readers.otlp_values import Values
from windvane_client.readers.protocol import ReadContext

SOURCE = "otlp"
SUFFIXES: Final = (".jsonl", ".json", ".log", ".jsonl.gz", ".json.gz", ".log.gz")
_SESSION_OF: Final = {"claude_code": "session.id", "codex": "conversation.id", "gemini_cli": "session.id"}
_CONTENT_EVENTS: Final = ("gen_ai.", "ai.", "exception")
_TOP = LineDecoder(rows.Top)
_MAX_HELD = 4096
_MAX_TRACES = 16_384


class OtlpReader:
    """Reader of the source `otlp`, or `otlp/<dialect>`: then rows of another dialect are foreign."""

    version = VERSION

    def __init__(self, dialect: str = "") -> None:
        self.source = f"{SOURCE}/{dialect}" if dialect else SOURCE
        self._dialect = dialect

    def discover(self, roots: Sequence[Path]) -> Iterator[Path]:
        """Files of the collector's file exporter and of programs that write their own, under the roots."""
        return find_logs(roots, SUFFIXES)

    def read(self, stream: BinaryIO, context: ReadContext) -> Iterator[AnyEvent]:
        """Events of one file; see `windvane_client.readers.protocol.Reader`."""
        return _File(context, self._dialect).events(stream)


@dataclass(slots=True)
class _Trace:
    """What a trace is known to belong to; `inner`: it holds a call inside an outer span."""

    session: str | None = None
    inner: bool = False


class _File:
    """One pass over one file."""

    def __init__(self, context: ReadContext, dialect: str) -> None:
        self._context = context
        self._dialect = dialect
        self._now = Pass(context)
        self._rows = context.rows
        self._traces: dict[str, _Trace] = {}
        self._silence = Silence()
        self._held: list[tuple[Row, str, bool]] = []
        self._fresh = True
        self._start = 0
        self._index = 0
        self._scratch = Rows()

    def events(self, stream: BinaryIO) -> Iterator[AnyEvent]:
        context, counted = self._context, self._context.offset
        # From the start even when resumed: turns, routes and traces live in the older part.
        values = Values(stream, final=context.final)
        for value, start, end in values:
            self._fresh = end > counted or values.problem == UNREADABLE
            self._rows = context.rows if self._fresh else self._scratch
            self._start, self._index = start, 0
            try:
                if value is None:
                    raise Rejected(values.problem)
                yield from self._value(value)
            except Rejected as error:
                truncated = values.problem == "truncated" and error.reason == "not_json"
                yield from self._reject("truncated" if truncated else error.reason)
        yield from self._flush(None)
        yield from self._silent()
        context.offset = max(values.offset, counted)

    def _reject(self, reason: str) -> Iterator[AnyEvent]:
        """A value or record that counts as one row and could not be read."""
        self._rows.read += 1
        yield from self._rejected(reason, f"{self._start}:{self._index}", self._fresh)

    def _rejected(self, reason: str, place: str, fresh: bool) -> Iterator[AnyEvent]:
        reject(self._context.rows if fresh else self._scratch, reason)
        gap = self._now.rejected(place)
        if fresh:
            yield gap

    # --- framings -----------------------------------------------------------------------------------------------------

    def _value(self, value: bytes) -> Iterator[AnyEvent]:
        if value.lstrip()[:1] != b"[":
            yield from self._object(value)
            return
        try:
            items = rows.LIST.decode(value)
        except RecursionError:
            items = None
        except msgspec.DecodeError:
            # Says why, and mends lone surrogates; an array that is no list of values is no object either.
            items = None
        if items is None:
            _TOP.decode(value)
            raise Rejected("not_an_object")
        if not any(rows.first_byte(item) == b"{" for item in items):
            raise Rejected("not_an_object")
        for item in items:
            try:
                yield from self._object(bytes(item))
            except Rejected as error:
                yield from self._reject(error.reason)

    def _object(self, value: bytes) -> Iterator[AnyEvent]:
        top = _TOP.decode(value)
        groups = (top.resourceLogs, top.resourceSpans, top.resourceMetrics)
        if any(raw is not rows.NONE for raw in groups):
            for raw in groups:
                if raw is not rows.NONE:
                    yield from self._groups(raw)
        elif top.hrTime is not rows.NONE or top.startTime is not rows.NONE:
            yield from self._record(msgspec.Raw(mended(value)), None, is_span=top.startTime is not rows.NONE)
        elif top.scopeMetrics is not rows.NONE:
            self._foreign()
        elif self._dialect:
            yield from self._flat(msgspec.Raw(mended(value)))
        else:
            raise Rejected("missing_field")

    def _groups(self, raw: msgspec.Raw) -> Iterator[AnyEvent]:
        try:
            groups = rows.GROUPS.decode(raw)
        except msgspec.DecodeError:
            raise Rejected("wrong_type") from None
        for group in groups:
            try:
                attrs = rows.attributes(group.resource.attributes)[0] if group.resource is not None else {}
            except msgspec.DecodeError:
                attrs = {}
            scopes = (group.scopeLogs, group.scopeSpans, group.instrumentationLibrarySpans, group.scopeMetrics)
            for scope in (one for part in scopes for one in part or ()):
                shared = Group(attrs, scope_name(scope.scope))
                for record in scope.logRecords or ():
                    yield from self._record(record, shared, is_span=False)
                for record in scope.spans or ():
                    yield from self._record(record, shared, is_span=True)
                for metric in scope.metrics or ():
                    yield from self._metric(metric, shared)

    def _metric(self, raw: msgspec.Raw, group: Group) -> Iterator[AnyEvent]:
        dialect = dialect_of(group.attrs, "", group.scope)
        if dialect not in AGENTS or (self._dialect and dialect != self._dialect):
            self._foreign()
            return
        self._index += 1
        try:
            self._silence.metric(raw, dialect, _SESSION_OF[dialect])
        except NOT_READ:
            yield from self._reject("wrong_type")
        else:
            self._rows.read += 1
            self._context.facts.any_row = True

    def _silent(self) -> Iterator[AnyEvent]:
        """A session whose metrics went on while its events stopped: how its work ended cannot be known."""
        now = self._now
        for session, row in self._silence.sessions():
            try:
                now.start(row, session, "other", row.dialect)
            except (OptedOut, Rejected):
                continue
            now.out.append(Gap(**now.of(now.key("gap", "silent", row.start)), what="source_silent"))
            yield from now.events()

    def _foreign(self) -> None:
        self._index += 1
        self._rows.read += 1
        self._rows.foreign += 1

    # --- records ------------------------------------------------------------------------------------------------------

    def _record(self, raw: msgspec.Raw, group: Group | None, *, is_span: bool) -> Iterator[AnyEvent]:
        self._index += 1
        self._rows.read += 1
        place = f"{self._start}:{self._index}"
        try:
            row = self._row(raw, group, is_span=is_span, place=place)
            if row is None:
                self._rows.foreign += 1
            else:
                yield from self._dispatch(row)
        except NOT_READ as error:
            yield from self._rejected(reason_of(error), place, self._fresh)

    def _flat(self, raw: msgspec.Raw) -> Iterator[AnyEvent]:
        """One span's attributes as a plain map, as recorded in fixtures: no time, no trace."""
        self._index += 1
        self._rows.read += 1
        place = f"{self._start}:{self._index}"
        try:
            attrs, heads, _ = rows.attributes(raw)
            row = Row(attrs, heads, self._dialect, "", True, None, None, "", False, without_id(place, raw))
            if dialect_of(attrs, "", "") != self._dialect:
                self._rows.foreign += 1
            else:
                yield from self._dispatch(row)
        except NOT_READ as error:
            yield from self._rejected(reason_of(error), place, self._fresh)

    def _place(self, place: str) -> str:
        return f"{self._context.file_key.hex()}:{place}"

    def _row(self, raw: msgspec.Raw, group: Group | None, *, is_span: bool, place: str) -> Row | None:
        """The row; None for a foreign one."""
        record = rows.RECORD.decode(raw)
        if group is None:
            group = sdk_group(record)
        own, heads, well_formed = own_attributes(record)
        attrs = {**group.attrs, **own}
        name = attrs.get("event.name")
        if not isinstance(name, str):
            event_name = rows.scalar(record.eventName)
            name = event_name if isinstance(event_name, str) else ""
        if not is_span and not name.startswith(PREFIXES):
            body = name_in(rows.body_head(record))
            name = f"{body.partition('.')[0]}.{name}" if body and name else body or name
        dialect = dialect_of(attrs, name, group.scope)
        if dialect is None or (self._dialect and dialect != self._dialect):
            return None
        if not well_formed:
            raise Rejected("wrong_type")
        if dialect in AGENTS:
            name = name.removeprefix(f"{dialect}.")
        if is_span:
            start = rows.nanos(record.startTimeUnixNano, record.startTime)
            end = rows.nanos(record.endTimeUnixNano, record.endTime)
        else:
            start = rows.nanos(record.timeUnixNano, record.hrTime, record.observedTimeUnixNano, record.hrTimeObserved)
            end = None
        if start is None:
            raise Rejected("missing_field")
        if not all(plausible(one // 1000, self._context.now) for one in (start, end) if one is not None):
            raise Rejected("bad_time")
        failed = is_span and rows.failed(record)
        return Row(attrs, heads, dialect, name, is_span, start, end, rows.trace(record), failed, self._place(place))

    def _dispatch(self, row: Row) -> Iterator[AnyEvent]:
        facts = self._context.facts
        if facts.source == SOURCE:
            facts.source = f"{SOURCE}/{row.dialect}"
        facts.any_row = True
        if row.dialect in AGENTS:
            if not row.is_span:
                yield from self._agent(row)
            return
        if not row.is_span:
            # Messages and choices as events of their own are content, which the spans stand for.
            if not row.name.startswith(_CONTENT_EVENTS):
                self._rows.unknown += 1
            return
        yield from self._span(row)

    def _agent(self, row: Row) -> Iterator[AnyEvent]:
        facts, now = self._context.facts, self._now
        facts.any_call_row = facts.any_prompt_row = facts.any_tool_row = True
        facts.saw_attempts(True)
        name = _SESSION_OF[row.dialect]
        session = row.text(name)
        client = "other"
        if row.dialect == "gemini_cli":
            client = "gemini_cli"
        elif row.dialect == "codex":
            client = otlp_codex.program(row.text("originator"), row.text("service.name"))[0]
        event = {"claude_code": otlp_claude, "codex": otlp_codex, "gemini_cli": otlp_gemini}[row.dialect].event
        try:
            now.start(row, session, client, row.dialect)
        except OptedOut:
            self._rows.read -= 1
            return
        if name in row.attrs:
            facts.saw_conversation(now.conversation(row.dialect, session) if session else None)
        try:
            known = event(now)
        except NOT_READ:
            now.take_back()
            raise
        if session:
            self._silence.heard(session, row)
        if not known:
            self._rows.unknown += 1
        elif self._fresh:
            yield from now.events()

    # --- spans --------------------------------------------------------------------------------------------------------

    def _span(self, row: Row) -> Iterator[AnyEvent]:
        facts = self._context.facts
        facts.any_call_row = facts.any_tool_row = True
        what = otlp_spans.kind(row)
        if what == otlp_spans.UNKNOWN_TYPE:
            self._rows.unknown += 1
            return
        names = otlp_spans.session_names(row.dialect)
        session = row.text(*names)
        if any(name in row.attrs for name in names):
            facts.saw_conversation(self._now.conversation("otlp", session) if session else None)
        if not row.trace:
            yield from self._emit(row, what, session, self._fresh)
            return
        trace = self._trace(row.trace)
        trace.inner = trace.inner or (row.dialect == "vercel_ai" and what == otlp_spans.CALL)
        if what == otlp_spans.OUTER or (session or trace.session) is None:
            trace.session = trace.session or session
            self._held.append((row, what, self._fresh))
            if len(self._held) > _MAX_HELD:
                yield from self._flush(_MAX_HELD // 2)
        else:
            refused = self._context.rows.rejected + self._scratch.rejected
            yield from self._emit(row, what, session or trace.session, self._fresh)
            if refused == self._context.rows.rejected + self._scratch.rejected:  # a rejected row leaves nothing behind
                trace.session = trace.session or session

    def _trace(self, name: str) -> _Trace:
        found = self._traces.get(name)
        if found is None:
            if len(self._traces) >= _MAX_TRACES:
                self._traces.clear()
            found = self._traces[name] = _Trace()
        return found

    def _flush(self, count: int | None) -> Iterator[AnyEvent]:
        """Emit what was held back, with what is known by now: the oldest `count`, or all."""
        held = self._held[:count]
        del self._held[: len(held)]
        for row, what, fresh in held:
            known = self._trace(row.trace)
            if what == otlp_spans.OUTER and known.inner:
                continue
            session = row.text(*otlp_spans.session_names(row.dialect)) or known.session
            yield from self._emit(row, what, session, fresh)

    def _emit(self, row: Row, what: str, session: str | None, fresh: bool) -> Iterator[AnyEvent]:
        now = self._now
        counted = self._context.rows if fresh else self._scratch
        try:
            now.start(row, session, "other", "otlp")
            otlp_spans.emit(now, what)
        except OptedOut:
            counted.read -= 1
            return
        except Rejected as error:
            yield from self._rejected(error.reason, row.place.partition(":")[2], fresh)
            return
        if fresh:
            yield from now.events()
