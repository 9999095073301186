# SPDX-License-Identifier: Apache-2.0
"""Claude Code transcripts: `<project folder>/<session>.jsonl` and `<session>/subagents/agent-*.jsonl`.

Rules kept here:
* one model answer is one call, keyed by `message.id`, however many rows, files or resumed copies hold it;
* a change of model is no act of a person: skills, subagents, plan mode and the program's own moves are marked as such;
* `<synthetic>` is no model; a text that the program wrote is no prompt; a queued text counts only when delivered;
* an unknown row type is counted before any field is checked; a known one that lacks what it must have is rejected;
* a grown file is read from its start again, and only what is new is counted and emitted: any split into runs gives the
  same events.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

import msgspec

from windvane_client.events import MAIN, SIDE, AnyEvent, Gap, Outcome, Rows
from windvane_client.readers import claude_rows as rows
from windvane_client.readers.claude_answers import answer
from windvane_client.readers.claude_header import AGENT, Header
from windvane_client.readers.claude_prompts import user_row
from windvane_client.readers.claude_side_rows import attachment_row, system_row
from windvane_client.readers.claude_state import Pass, Thread
from windvane_client.readers.files import find_logs
from windvane_client.readers.lines import (
    DAY,
    EARLIEST,
    NOT_READ,
    UNREADABLE,
    LineDecoder,
    Lines,
    Rejected,
    reason_of,
    reject,
    rfc3339_micros,
)
from windvane_client.readers.protocol import ReadContext

SOURCE = "claude_code"
VERSION = "1.0.0"
_MAX_THREADS = 4096
_NONE_YET = object()
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_moment = datetime.fromisoformat
_ROW = LineDecoder(rows.Row)
_decode = msgspec.json.Decoder(rows.Row).decode
_TYPE = LineDecoder(rows.TypeOnly)


def default_roots(home: Path, config_dirs: str | None) -> list[Path]:
    """The usual places: CLAUDE_CONFIG_DIR (a comma list) if set, else the two folders in the home folder."""
    if config_dirs:
        return [Path(one.strip()) / "projects" for one in config_dirs.split(",") if one.strip()]
    return [home / ".claude" / "projects", home / ".config" / "claude" / "projects"]


class ClaudeCodeReader:
    """Reader of the source `claude_code`."""

    source = SOURCE
    version = VERSION

    def discover(self, roots: Sequence[Path]) -> Iterator[Path]:
        """Transcripts under the roots, subagent files included."""
        return find_logs(roots, (".jsonl", ".jsonl.gz"))

    def read(self, stream: BinaryIO, context: ReadContext) -> Iterator[AnyEvent]:
        """Events of one transcript; see `windvane_client.readers.protocol.Reader`."""
        return _Transcript(context).events(stream)


class _Transcript:
    """One pass over one file."""

    def __init__(self, context: ReadContext) -> None:
        self._context = context
        self._rows = context.rows
        self._head = Header(context, SOURCE, VERSION)
        self._now = Pass(context, self._head)
        self._threads: dict[tuple[str | None, str | None], Thread] = {}
        self._thread = Thread()
        self._told: dict[tuple[object, object], set[str | None]] = {}
        """Kinds of rows by session and version: what only depends on these fields is settled once."""
        self._told_here: set[str | None] = set()
        self._session_id: object = _NONE_YET
        self._version: object = _NONE_YET
        self._entrypoint: object = None
        self._session_kind: object = None
        self._agent: object = None
        self._side = False
        self._moved = True
        """The session or the version may be another one than the header's."""
        self._latest = context.now + DAY

    def events(self, stream: BinaryIO) -> Iterator[AnyEvent]:
        context, now, counted = self._context, self._now, self._context.offset
        scratch = Rows()
        # From the start even when resumed: the links between rows and the state of a turn live in the older part.
        lines = Lines(stream, final=context.final)
        for line, end in lines:
            fresh = end > counted or lines.problem == UNREADABLE
            self._rows = context.rows if fresh else scratch
            self._rows.read += 1
            now.out = []
            try:
                if line is None:
                    raise Rejected(lines.problem)
                now.line = line
                self._row(line)
            except NOT_READ as error:
                reason = reason_of(error)
                self._rejected("truncated" if lines.cut and reason == "not_json" else reason)
            now.start = end
            if fresh and now.out:
                yield from now.out
        context.offset = max(lines.offset, counted)

    def _rejected(self, reason: str) -> None:
        reject(self._rows, reason)
        place = f"{self._context.file_key.hex()}:{self._now.start}"
        # What a row gave before it turned out to be malformed is dropped with it.
        self._now.out = [Gap(**self._head.of("claude_code/rejected", place), what="rows_rejected")]

    def _row(self, line: bytes) -> None:
        row: rows.Row | None
        try:
            row = _decode(line)
        except NOT_READ:
            row = None
        if row is None:
            row = self._decoded(line)
            if row is None:
                return
        kind = row.type
        if kind is None or kind not in rows.KNOWN:
            if kind is not None:
                self._rows.unknown += 1
                return
            if row.message is None or row.message.role != "assistant" or not row.message.model:
                raise Rejected("missing_field")
        turn = kind in rows.TURNS
        if turn and (row.message is None or row.message.content is rows.NONE):
            raise Rejected("missing_field")
        ts = None
        if row.timestamp is not None:
            try:
                span = _moment(row.timestamp) - _EPOCH
                ts = (span.days * 86_400 + span.seconds) * 1_000_000 + span.microseconds
            except (ValueError, TypeError, OverflowError):  # no time, or one without a zone
                ts = rfc3339_micros(row.timestamp)
            if ts is None or not EARLIEST <= ts <= self._latest:
                raise Rejected("bad_time")
        elif turn or kind is None:
            raise Rejected("missing_field")
        now = self._now
        # Rows of one program follow each other: what only depends on these fields is settled once.
        if row.sessionId != self._session_id or row.version != self._version:
            self._move(row)
        if kind not in self._told_here:
            self._told_here.add(kind)
            self._facts(row)
        if kind in rows.IGNORED:
            now.links.pass_through(row.uuid, row.parentUuid or row.logicalParentUuid)
            return
        agent = row.agentId
        side = row.isSidechain is True or agent is not None or row.isSidechain == "true"
        if (
            self._moved
            or side is not self._side
            or agent != self._agent
            or row.entrypoint != self._entrypoint
            or row.sessionKind != self._session_kind
        ):
            self._moved, self._side, self._agent = False, side, agent
            self._entrypoint, self._session_kind = row.entrypoint, row.sessionKind
            if agent:
                self._context.facts.subagents_read.add(self._head.key(AGENT, agent))
            self._head.program(row, SIDE if side else MAIN)
            self._thread = self._thread_of(row, side=side)
        head = now.head
        head.ts, head.parent = ts, None
        thread = self._thread
        if kind == "assistant" or kind is None:
            answer(now, row, thread, side=side)
        elif kind == "user":
            user_row(now, row, thread, side=side)
        elif kind == "system":
            system_row(now, row, thread)
        elif kind == "attachment":
            attachment_row(now, row, thread, side=side)
        elif kind == "permission-mode":
            thread.plan_mode(row.permissionMode)
        else:
            now.link(row)
            place = f"{self._session(row)}:{row.timestamp}"
            now.out.append(Outcome(**self._head.of("claude_code/pr", place), value="submitted", evidence="pr-link"))

    def _move(self, row: rows.Row) -> None:
        """Another session or version than that of the row before."""
        self._session_id, self._version, self._moved = row.sessionId, row.version, True
        place = (row.sessionId, row.version)
        told = self._told.get(place)
        if told is None:
            if len(self._told) >= _MAX_THREADS:
                self._told.clear()
            told = self._told[place] = set()
        self._told_here = told

    def _decoded(self, line: bytes) -> rows.Row | None:
        """The row that could not be decoded at once, mended; None where its type is unknown or not read, whatever else
        is wrong with it."""
        try:
            return _ROW.decode(line)
        except Rejected as error:
            if error.reason != "wrong_type":
                raise
        kind = _TYPE.decode(line).type
        if kind in rows.IGNORED:
            self._context.facts.any_row = True
            return None
        if kind is None or kind in rows.KNOWN:
            raise Rejected("wrong_type")
        self._rows.unknown += 1
        return None

    def _facts(self, row: rows.Row) -> None:
        facts = self._context.facts
        facts.any_row = True
        if row.sessionId is not msgspec.UNSET:
            facts.saw_conversation(self._head.conversation(row.sessionId) if row.sessionId else None)
        if row.type in rows.TURNS:
            facts.any_call_row = facts.any_prompt_row = facts.any_tool_row = True
        elif row.type is None:
            facts.any_call_row = True
        if row.version is not None and facts.attempts_known is not True:
            facts.saw_attempts(rows.writes_attempts(row.version))

    @staticmethod
    def _session(row: rows.Row) -> str | None:
        return row.sessionId if isinstance(row.sessionId, str) else None

    def _thread_of(self, row: rows.Row, *, side: bool) -> Thread:
        name = (self._session(row), row.agentId or "side" if side else None)
        thread = self._threads.get(name)
        if thread is None:
            if len(self._threads) >= _MAX_THREADS:
                self._threads.clear()
            thread = self._threads[name] = Thread()
        return thread
