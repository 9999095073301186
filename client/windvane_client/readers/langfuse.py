# SPDX-License-Identifier: Apache-2.0
"""Langfuse exports: whole traces with their observations, rows of observations, and scores.

Rules kept here:
* a call is an observation of type GENERATION, by its own id; every other type is a wrapper, also with a model or usage;
* without its end or its level nobody knows whether a call was answered or a tool worked: it is neither;
* a conversation is a `sessionId`, never anything in free metadata; tools among a call's inputs are definitions;
* a trace is a person's turn only where the organisation declares that people are at the keyboard; else nobody's prompt;
* a retry looks like any other call, so faults are unknown; a score is an outcome only where the organisation names it,
  and never if a model gave it;
* a person who opted out leaves no trace; an identity that nobody mapped leaves a gap, never an event.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from windvane_client.events import MAIN, SIDE, AnyEvent, Call, Gap, Outcome, Prompt, Tool, Vote
from windvane_client.readers import langfuse_rows as rows
from windvane_client.readers.files import find_logs
from windvane_client.readers.header import Fields
from windvane_client.readers.json_items import Items
from windvane_client.readers.lines import UNREADABLE, LineDecoder, Lines, Rejected, reject
from windvane_client.readers.protocol import NO_ATTEMPTS, ReadContext
from windvane_client.readers.times import micros
from windvane_client.readers.values import DAMAGED, LINES, Values, framing
from windvane_privacy.catalogue import KINDS, SYNTHETIC, UNKNOWN

SOURCE: Final = "langfuse"
VERSION: Final = "1.0.0"
SUFFIXES: Final = (".json", ".json.gz", ".jsonl", ".jsonl.gz")
_READER: Final = f"{SOURCE}/{VERSION}{NO_ATTEMPTS}"
_MAX_ID_BYTES: Final = 256
_RESERVED: Final = "windvane:"
_NOBODY: Final = "langfuse:nobody"
_ROW = LineDecoder(rows.Row)
_SHAPE = LineDecoder(rows.Shape)


class LangfuseReader:
    """Reader of the source `langfuse`."""

    source = SOURCE
    version = VERSION

    def discover(self, roots: Sequence[Path]) -> Iterator[Path]:
        """JSON and JSONL files under the roots."""
        return find_logs(roots, SUFFIXES)

    def read(self, stream: BinaryIO, context: ReadContext) -> Iterator[AnyEvent]:
        """Events of one export; see `windvane_client.readers.protocol.Reader`."""
        return _File(context).events(stream)


class _File:
    def __init__(self, context: ReadContext) -> None:
        self._context = context
        self._ids = context.ids
        self._seq = 0
        self._place = ""
        self._conv: bytes | None = None
        self._ts: int | None = None

    def events(self, stream: BinaryIO) -> Iterator[AnyEvent]:
        context = self._context
        source: Lines | Values
        start = 0
        frame = framing(stream)
        if frame == DAMAGED:
            context.rows.read += 1
            yield self._rejected(UNREADABLE)
            return
        if frame == LINES:
            source = Lines(stream, start=context.offset, final=context.final)
            start = context.offset
        else:
            source = Values(stream, final=context.final)
        for value, end in source:
            for number, item in enumerate(self._items(value)):
                self._place = f"{start}:{number}"
                try:
                    if item is None:
                        raise Rejected(source.problem)
                    yield from self._value(item)
                except Rejected as error:
                    context.rows.read += 1
                    reason = "truncated" if source.cut and error.reason == "not_json" else error.reason
                    yield self._rejected(reason)
            start = end
        context.offset = max(source.offset, context.offset)

    @staticmethod
    def _items(value: bytes | None) -> Sequence[bytes | None]:
        """The rows of a page; the value itself where it is none."""
        if value is None or b'"data"' not in value:
            return [value]
        try:
            page = _ROW.decode(value).data
        except Rejected:
            # One damaged row does not cost the others: they are told apart by their brackets.
            apart = Items(value, b"data")
            found = [raw for raw, _ in apart]
            return found if apart.complete else [value]
        return [value] if page is None else [bytes(one) for one in page]

    def _rejected(self, reason: str) -> Gap:
        reject(self._context.rows, reason)
        return self._gap("rows_rejected")

    def _gap(self, what: str) -> Gap:
        self._seq += 1
        key = self._ids.key("langfuse/gap", f"{what}\0{self._context.file_key.hex()}\0{self._place}")
        return Gap(
            source=SOURCE, recorder=SOURCE, reader=_READER, key=key, conv=self._conv, ts=self._ts, seq=self._seq,
            what=what,
        )  # fmt: skip

    def _decoded(self, raw: bytes) -> rows.Row | None:
        """The row; None where its type is unknown, whatever else is wrong with it."""
        try:
            row = _ROW.decode(raw)
        except Rejected as error:
            if error.reason != "wrong_type":
                raise
            shape = _SHAPE.decode(raw)
            if shape.type in (None, *rows.TYPES) or shape.observations is not rows.NONE:
                raise
            return None
        return row

    def _value(self, raw: bytes) -> Iterator[AnyEvent]:
        row = self._decoded(raw)
        if row is None or (row.type is not None and row.type not in rows.TYPES):
            self._context.rows.read += 1
            self._context.rows.unknown += 1
        elif row.observations is not None or row.scores is not None or (row.trace is not rows.NONE and not row.source):
            yield from self._whole(row)
        elif row.source in rows.SCORE_SOURCES and (row.value is not rows.NONE or row.string_value is not rows.NONE):
            trace = _ROW.decode(bytes(row.trace)) if bytes(memoryview(row.trace)[:1]) == b"{" else row
            yield from self._single(row, trace)
        elif row.type is not None or row.of_trace:
            yield from self._single(row, row)
        elif row.timestamp is not None:
            yield from self._whole(row)
        else:
            raise Rejected("missing_field")

    # --- traces and single rows ---------------------------------------------------------------------------------------

    def _whole(self, row: rows.Row) -> Iterator[AnyEvent]:
        """A trace with its observations and scores; a listed trace holds only their ids."""
        trace = row if row.trace is rows.NONE else _ROW.decode(bytes(row.trace))
        parts = [bytes(one) for one in (*(row.observations or ()), *(trace.scores or row.scores or ()))]
        parts = [one for one in parts if not one.startswith(b'"')]
        if not trace.id:
            raise Rejected("missing_field")
        ts = micros(trace.timestamp, self._context.now)
        if ts is None:
            raise Rejected("missing_field" if trace.timestamp is None else "bad_time")
        head = self._head(trace, trace.id)
        if head is None:
            return  # opted out
        self._context.rows.read += max(0, 1 - len(parts))
        self._context.facts.any_row = True
        place, out = self._place, list[AnyEvent]()
        for number, raw in enumerate(parts):
            self._context.rows.read += 1
            self._place = f"{place}:{number}"
            try:
                out += self._part(raw, head)
            except Rejected as error:
                out.append(self._rejected(error.reason))
        self._place = place
        if head["person"] is None:
            yield from (event for event in out if isinstance(event, Gap))
            yield self._gap("person_unknown")
            return
        # The clock of a trace may stand behind that of its first part.
        first = min((event.ts for event in out if isinstance(event, Call | Tool) and event.ts is not None), default=ts)
        yield from self._turn(head, trace.id, min(ts, first))
        yield from out

    def _single(self, row: rows.Row, trace: rows.Row) -> Iterator[AnyEvent]:
        if not row.id or not row.of_trace:
            raise Rejected("missing_field")
        head = self._head(trace, row.of_trace)
        if head is None:
            return
        found = self._row(row, head)
        self._context.rows.read += 1
        if head["person"] is None:
            yield self._gap("person_unknown")
            return
        if row.type is not None and not row.parent:
            yield from self._turn(head, row.of_trace, micros(row.start, self._context.now))
        yield from found

    def _part(self, raw: bytes, head: Fields) -> list[AnyEvent]:
        row = self._decoded(raw)
        if row is None or (row.type is not None and row.type not in rows.TYPES):
            self._context.rows.unknown += 1
            return []
        if not row.id or (row.type is None and row.source not in rows.SCORE_SOURCES):
            raise Rejected("missing_field")
        return self._row(row, head)

    # --- header -------------------------------------------------------------------------------------------------------

    def _head(self, trace: rows.Row, name: str) -> Fields | None:
        """Header of a trace's events; None where its person opted out."""
        context, ids = self._context, self._ids
        user = trace.user if isinstance(trace.user, str) else ""
        session = trace.session if isinstance(trace.session, str) else ""
        if any(len(one.encode("utf-8", "surrogatepass")) > _MAX_ID_BYTES for one in (user, session, name)):
            raise Rejected("bad_value")
        known = [f"{SOURCE}:{user}", *([f"email:{user}"] if "@" in user else [])] if user else []
        if any(ids.excluded(one) for one in known):
            return None
        facts = context.facts
        if trace.user is not msgspec.UNSET:
            facts.saw_person(ids.key("langfuse/person", user) if user else None)
        conv = ids.conv(SOURCE, session) if session else None
        if trace.session is not msgspec.UNSET:
            facts.saw_conversation(conv)
        tags = [tag for tag in trace.tags or () if tag]
        mode, evidence = self._mode(trace, user, tags)
        found = (ids.person(one) for one in known or [_NOBODY])
        return Fields(
            source=SOURCE,
            recorder=SOURCE,
            reader=_READER,
            key=b"",
            person=next((one for one in found if one is not None), None),
            conv=conv,
            project=None,
            thread=SIDE if evidence == "environment" else MAIN,
            ts=None,
            seq=0,
            mode=mode,
            mode_evidence=evidence,
            client=SOURCE,
            kind_hint=self._kind(tags),
            parent=None,
            row=None,
        )

    def _mode(self, trace: rows.Row, user: str, tags: list[str]) -> tuple[str, str]:
        if (trace.environment or "").startswith(rows.OWN_ENVIRONMENT):
            return "automation", "environment"
        names = [name for name in (user, *tags, SOURCE) if name]
        listed = self._context.key_mode(names) if self._context.key_mode is not None else None
        return listed or (UNKNOWN, "")

    def _kind(self, tags: list[str]) -> str | None:
        """The organisation's rule first; free tags decide nothing by themselves."""
        rule = self._context.kind_rule
        if rule is not None:
            base = {"source": SOURCE, "recorder": SOURCE, "client": SOURCE, "log_dir": self._context.log_dir}
            for tag in tags or [""]:
                found = rule({**base, "tag": tag})
                if found is not None:
                    return found
        reserved = (tag.removeprefix(_RESERVED) for tag in tags if tag.startswith(_RESERVED))
        return next((kind for kind in reserved if kind in KINDS), None)

    # --- events -------------------------------------------------------------------------------------------------------

    def _at(self, head: Fields, what: str, raw: str, ts: int) -> Fields:
        self._seq += 1
        self._conv, self._ts = head["conv"], ts
        key = self._ids.key(f"langfuse/{what}", raw)
        return Fields(**{**head, "key": key, "ts": ts, "seq": self._seq})

    def _turn(self, head: Fields, trace: str, ts: int | None) -> Iterator[AnyEvent]:
        """The prompt that began a trace, where the organisation says that a person was there."""
        if head["mode"] != "interactive" or head["conv"] is None or ts is None:
            return
        self._context.facts.any_prompt_row = True
        made = self._at(head, "trace", trace, ts)
        made["row"] = made["key"]
        yield Prompt(**made, turn=made["key"], origin="human")

    def _row(self, row: rows.Row, head: Fields) -> list[AnyEvent]:
        if row.type is None:
            return self._score(row, head)
        facts, now = self._context.facts, self._context.now
        start, end = micros(row.start, now), micros(row.end, now)
        if start is None:
            raise Rejected("missing_field" if row.start is None else "bad_time")
        if end is None and row.end is not None:
            raise Rejected("bad_time")
        facts.any_row = facts.any_call_row = facts.any_tool_row = True
        facts.saw_attempts(False)
        turn = self._ids.key("langfuse/trace", row.of_trace) if row.of_trace else None
        if row.type == rows.CALL and end is not None and row.level:
            made = self._at(head, "observation", row.id or "", end)
            family = self._context.catalogue.resolve(row.served or None, self._context.aliases)
            if family == SYNTHETIC:
                return []
            made["row"] = made["key"]
            status = "error" if row.level == rows.ERROR else "ok"
            route = "background" if made["thread"] == SIDE else "direct"
            return [Call(**made, turn=turn, served=family, status=status, route=route)]
        if row.type == rows.TOOL:
            made = self._at(head, "observation", row.id or "", start)
            kind, origin = self._context.tools.classify(row.name or "")
            outcome = "failed" if row.level == rows.ERROR else "ok" if row.level else "unclassified"
            outcome = "no_result" if end is None else outcome
            return [
                Tool(**made, turn=turn, family=UNKNOWN, tool_class=kind, outcome=outcome, origin=origin, result_ts=end)
            ]
        return []

    def _score(self, row: rows.Row, head: Fields) -> list[AnyEvent]:
        ts = micros(row.timestamp, self._context.now)
        if ts is None:
            raise Rejected("missing_field" if row.timestamp is None else "bad_time")
        facts = self._context.facts
        facts.any_row = facts.any_vote_row = True
        if row.source == rows.EVAL:
            return []  # a model's judgement
        word = rows.score_word(row, self._context.scores)
        if word is not None:
            return [Outcome(**self._at(head, "score", row.id or "", ts), value=word, evidence="score")]
        if row.source == rows.ANNOTATION:
            # Somebody rated it, and nothing proves that the model's name was hidden.
            item = self._ids.item(SOURCE, row.id or "")
            made = self._at(head, "score", row.id or "", ts)
            return [Vote(**made, a=UNKNOWN, b=UNKNOWN, winner="tie", blind="no", item=item)]
        return []
