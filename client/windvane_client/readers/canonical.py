# SPDX-License-Identifier: Apache-2.0
"""Canonical JSONL: one canonical event a line, with plain ids that are hashed here (docs/signals.md).

Rules kept here:
* an unknown field rejects the row: a text field cannot slip in, and its name is never repeated;
* ids are opaque strings of at most 256 bytes, times are RFC 3339 or whole µs; both are hashed or parsed at once;
* a class outside its closed list becomes `unknown`, or rejects the row where the event would mean nothing without it;
* a person who opted out leaves no trace; an identity that nobody mapped leaves a gap, never an event.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from windvane_client import events as ev
from windvane_client.events import AnyEvent
from windvane_client.readers import canonical_rows as rows
from windvane_client.readers.files import find_logs
from windvane_client.readers.header import Fields
from windvane_client.readers.lines import LineDecoder, Lines, Rejected, plausible, reject, rfc3339_micros
from windvane_client.readers.protocol import ReadContext
from windvane_privacy.catalogue import KINDS, SYNTHETIC

SOURCE = "canonical"
VERSION = "1.0.0"
_READER = f"{SOURCE}/{VERSION}"
_TYPE = LineDecoder(rows.KindOnly)
_LINES = {kind: LineDecoder(struct) for kind, struct in rows.BY_KIND.items()}


class CanonicalReader:
    """Reader of the source `canonical`."""

    source = SOURCE
    version = VERSION

    def discover(self, roots: Sequence[Path]) -> Iterator[Path]:
        """Files `*.jsonl` and `*.jsonl.gz` under the roots."""
        return find_logs(roots, (".jsonl", ".jsonl.gz"))

    def read(self, stream: BinaryIO, context: ReadContext) -> Iterator[AnyEvent]:
        """Events of one file; see `windvane_client.readers.protocol.Reader`."""
        return _File(context).events(stream)


class _File:
    def __init__(self, context: ReadContext) -> None:
        self._context = context
        self._ids = context.ids
        self._conv: bytes | None = None
        self._ts: int | None = None
        self._seq = 0
        self._start = context.offset

    def events(self, stream: BinaryIO) -> Iterator[AnyEvent]:
        context = self._context
        lines = Lines(stream, start=context.offset, final=context.final)
        for line, end in lines:
            context.rows.read += 1
            self._seq += 1
            try:
                if line is None:
                    raise Rejected(lines.problem)
                event = self._event(line)
            except Rejected as error:
                reason = "truncated" if lines.cut and error.reason == "not_json" else error.reason
                reject(context.rows, reason)
                event = self._gap("rows_rejected")
            self._start = end
            if event is not None:
                yield event
        context.offset = lines.offset

    def _gap(self, what: str) -> ev.Gap:
        """A gap at this line; the byte position is its natural id."""
        key = self._ids.key("canonical/gap", f"{what}\0{self._context.file_key.hex()}\0{self._start}")
        return ev.Gap(
            source=SOURCE,
            recorder=SOURCE,
            reader=_READER,
            key=key,
            conv=self._conv,
            ts=self._ts,
            seq=self._seq,
            what=what,
        )

    def _event(self, line: bytes) -> AnyEvent | None:
        context = self._context
        head = _TYPE.decode(line)
        if head.k is None:
            raise Rejected("missing_field")
        decoder = _LINES.get(head.k)
        if decoder is None or head.v != ev.VERSION:
            context.rows.unknown += 1
            return None
        row = decoder.decode(line)
        identity = rows.text(row.person) if isinstance(row.person, str | int) else None
        if identity and self._ids.excluded(f"canonical:{identity}"):
            context.rows.read -= 1
            return None
        fields = self._fields(row, head.k, identity)
        self._facts(row, identity, head.k)
        built = self._build(row, fields)
        if built is None:
            return None
        self._conv, self._ts = fields["conv"], fields["ts"]
        if fields["person"] is None:
            return self._gap("person_unknown")
        return built

    def _facts(self, row: rows.Line, identity: str | None, kind: str) -> None:
        facts = self._context.facts
        facts.any_row = facts.any_call_row = facts.any_prompt_row = facts.any_tool_row = True
        facts.saw_attempts(True)
        if kind == "vote":
            facts.any_vote_row = True
        if row.person is not msgspec.UNSET:
            facts.saw_person(self._ids.key("canonical/person", identity) if identity else None)
        if row.conv is not msgspec.UNSET:
            facts.saw_conversation(self._ids.conv(SOURCE, rows.text(row.conv)) if row.conv not in (None, "") else None)

    def _fields(self, row: rows.Line, kind: str, identity: str | None) -> Fields:
        person = self._context.machine_person if row.person is msgspec.UNSET else None
        if identity:
            person = self._ids.person(f"canonical:{identity}")
        conv = rows.text(row.conv) if row.conv not in (msgspec.UNSET, None, "") else None
        recorder = rows.recorder(row.recorder)
        client = row.client if row.client in ev.CLIENTS else "other"
        hint = row.kind_hint
        if hint is not None and hint not in KINDS:
            raise Rejected("bad_value")
        rule = self._context.kind_rule
        if hint is None and rule is not None:
            hint = rule({"source": SOURCE, "recorder": recorder, "client": client, "log_dir": self._context.log_dir})
        if row.seq is not None and abs(row.seq) > rows.MAX_SEQ:
            raise Rejected("bad_value")
        if row.thread not in (ev.MAIN, ev.SIDE):
            raise Rejected("bad_value")
        ts = self._time(row.ts)
        if ts is None and kind != "gap":
            raise Rejected("missing_field")
        mode = row.mode if row.mode in ev.MODES else "unknown"
        key = self._key(row, kind, identity, conv, ts)
        node = kind in ("prompt", "call")
        return Fields(
            source=SOURCE,
            recorder=recorder,
            reader=_READER,
            key=key,
            person=person,
            conv=self._ids.conv(SOURCE, conv) if conv is not None else None,
            project=self._id("canonical/project", row.project, project=True),
            thread=row.thread,
            ts=ts,
            seq=row.seq if row.seq is not None else self._seq,
            mode=mode,
            mode_evidence="mode" if mode != "unknown" else "",
            client=client,
            kind_hint=hint,
            parent=self._id("canonical/key", row.parent),
            row=self._id("canonical/key", row.row) or (key if node else None),
        )

    def _id(self, namespace: str, raw: str | int | None, *, project: bool = False) -> bytes | None:
        if raw is None or raw == "":
            return None
        text = rows.text(raw)
        return self._ids.project(namespace, text) if project else self._ids.key(namespace, text)

    def _key(self, row: rows.Line, kind: str, identity: str | None, conv: str | None, ts: int | None) -> bytes:
        """The row's own key, else a natural id made of the fields that tell two events of its kind apart."""
        if row.key not in (None, ""):
            return self._ids.key("canonical/key", rows.text(row.key))
        if isinstance(row, rows.Vote):
            return self._ids.key("canonical/vote", rows.text(row.item))
        if kind in ("call", "tool"):
            raise Rejected("missing_field")
        parts = [kind, identity, conv, ts, row.seq, row.turn, *row.distinct()]
        return self._ids.key("canonical/derived", "\0".join("" if one is None else str(one) for one in parts))

    def _time(self, raw: str | int | None) -> int | None:
        if raw is None:
            return None
        ts = rfc3339_micros(raw) if isinstance(raw, str) else raw
        if not plausible(ts, self._context.now):
            raise Rejected("bad_time")
        return ts

    def _family(self, raw: str | None) -> str:
        return self._context.catalogue.resolve(raw, self._context.aliases)

    def _turn(self, row: rows.Line) -> bytes | None:
        conv = rows.text(row.conv) if row.conv not in (msgspec.UNSET, None, "") else ""
        return self._id("canonical/turn", f"{conv}\0{row.turn}") if row.turn is not None else None

    def _build(self, row: rows.Line, head: Fields) -> AnyEvent | None:
        turn = self._turn(row)
        match row:
            case rows.Prompt(origin=origin):
                rows.one_of(origin, ev.PROMPT_ORIGINS)
                if origin in ("system", "sdk", "scheduled"):
                    head["mode"], head["mode_evidence"] = "automation", "origin"
                return ev.Prompt(**head, turn=turn, origin=origin)
            case rows.Call(served=served, requested=requested, status=status, route=route):
                rows.one_of(status, ev.CALL_STATUS)
                family = self._family(served)
                if family == SYNTHETIC:
                    return None
                asked = self._family(requested) if requested is not None else None
                route = rows.known(route, ev.ROUTES)
                return ev.Call(**head, turn=turn, served=family, requested=asked, status=status, route=route)
            case rows.AttemptError(error_class=name, family=family, request=request, attempt=attempt, final=final):
                rows.one_of(name, ev.ERROR_CLASSES)
                if attempt is not None and not 0 <= attempt < 100_000:
                    raise Rejected("bad_value")
                return ev.AttemptError(
                    **head,
                    turn=turn,
                    error_class=name,
                    family=self._family(family),
                    request=self._id("canonical/request", request),
                    attempt=attempt,
                    final=final,
                )
            case rows.Tool():
                return ev.Tool(
                    **head,
                    turn=turn,
                    family=self._family(row.family),
                    tool_class=rows.known(row.tool_class, ev.TOOL_CLASSES),
                    outcome=row.outcome if row.outcome in ev.TOOL_OUTCOMES else "unclassified",
                    call=self._id("canonical/key", row.call),
                    origin=rows.known(row.origin, ("builtin", "mcp")),
                    result_ts=self._time(row.result_ts),
                )
            case rows.ModelSet(family=family, by=by):
                by = rows.known(by, ev.MODEL_SETTERS)
                return ev.ModelSet(**head, turn=turn, family=self._family(family), by=by)
            case rows.TurnEnd(how=how):
                return ev.TurnEnd(**head, turn=turn, how=rows.known(how, ev.TURN_ENDS))
            case rows.Outcome(value=value):
                rows.one_of(value, ev.OUTCOME_VALUES)
                return ev.Outcome(**head, turn=turn, value=value, evidence="value")
            case rows.Vote():
                return self._vote(row, head, turn)
            case rows.Close(how=how):
                rows.one_of(how, ("explicit", "new_conv", "idle", "log_end"))
                return ev.Close(**head, turn=turn, how=how)
            case rows.Gap(what=what, count=count):
                rows.one_of(what, ev.GAPS)
                if not 0 <= count <= 1_000_000_000:
                    raise Rejected("bad_value")
                since, until = self._time(row.since), self._time(row.until)
                return ev.Gap(**head, turn=turn, what=what, count=count, since=since, until=until)
        raise Rejected("bad_value")

    def _vote(self, row: rows.Vote, head: Fields, turn: bytes | None) -> ev.Vote:
        rows.one_of(row.winner, ("a", "b", "tie"))
        # A signed-in user's vote is itself an act of a person; the chat around it may be anything.
        head["mode"], head["mode_evidence"] = "interactive", "vote"
        return ev.Vote(
            **head,
            turn=turn,
            a=self._family(row.a),
            b=self._family(row.b),
            winner=row.winner,
            blind=row.blind if row.blind in ("proved", "attested") else "no",
            item=self._ids.item(SOURCE, rows.text(row.item)),
            judge="person" if row.judge == "person" else "llm",
        )
