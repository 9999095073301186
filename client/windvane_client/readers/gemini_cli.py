# SPDX-License-Identifier: Apache-2.0
"""Gemini CLI session files: `chats/session-*.json` (one document) and `session-*.jsonl` (records, `$set`, `$rewindTo`).

Rules kept here:
* one message is one model answer; a message that is written again, with its tools' results, is the same one;
* `$set` replaces the model's memory, which also holds summaries and tool results: no prompt is taken from there;
* what `$rewindTo` takes back hangs on no later row, so its turns count as rewound;
* the files say nothing of modes, turn ends, retries or why a model changed: all of that stays unknown;
* a grown file is read from its start again, and only what is new is counted and emitted; a document that was written
  anew is counted from where the last one ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from windvane_client.events import SIDE, AnyEvent, Call, Gap, Prompt, Rows, Tool, TurnEnd
from windvane_client.readers import gemini_rows as rows
from windvane_client.readers.files import find_logs
from windvane_client.readers.header import Fields
from windvane_client.readers.json_items import Items, document
from windvane_client.readers.lines import (
    NOT_READ,
    UNREADABLE,
    LineDecoder,
    Lines,
    Rejected,
    plausible,
    reason_of,
    reject,
    rfc3339_micros,
)
from windvane_client.readers.machine_head import MachineHead
from windvane_client.readers.protocol import NO_ATTEMPTS, ReadContext
from windvane_client.readers.values import DAMAGED, VALUES, framing
from windvane_privacy.catalogue import SYNTHETIC, UNKNOWN

SOURCE: Final = "gemini_cli"
VERSION: Final = "1.0.0"
CHATS: Final = "chats"
"""Folder of a project's sessions; a session's subagents lie in a folder of their own inside it."""
USUAL_PLACES: Final = (".gemini/tmp",)
"""Below the home folder."""
_PREFIX: Final = "session-"
_SHORT_ID: Final = 8
_MAX_CHAIN: Final = 100_000
_ROW = LineDecoder(rows.Row)


def session_of(path: Path) -> Path:
    """One name for a session's file and those of its subagents: the program puts 8 letters of the id into the name."""
    if path.parent.parent.name == CHATS:
        return path.parent.with_name(path.parent.name[:_SHORT_ID])
    return path.with_name(path.name.partition(".")[0].rpartition("-")[2][:_SHORT_ID])


class GeminiCliReader:
    """Reader of the source `gemini_cli`."""

    source = SOURCE
    version = VERSION

    def discover(self, roots: Sequence[Path]) -> Iterator[Path]:
        """Session files under the roots; the other files of the program's folder are none."""
        named = {root.resolve() for root in roots}
        for path in find_logs(roots, (".json", ".jsonl", ".json.gz", ".jsonl.gz")):
            if path in named or path.name.startswith(_PREFIX) or path.parent.parent.name == CHATS:
                yield path

    def read(self, stream: BinaryIO, context: ReadContext) -> Iterator[AnyEvent]:
        """Events of one session; see `windvane_client.readers.protocol.Reader`."""
        frame = framing(stream)
        if frame == DAMAGED:
            return _Session(context).unreadable()
        if frame == VALUES:
            return _Session(context).document(stream)
        return _Session(context).lines(stream)


class _Session:
    """One pass over one file."""

    def __init__(self, context: ReadContext) -> None:
        self._context = context
        self._rows = context.rows
        self._head = MachineHead(context, SOURCE, VERSION, suffix=NO_ATTEMPTS)
        listed = context.key_mode([SOURCE]) if context.key_mode is not None else None
        if listed is not None:
            self._head.mode(*listed)
        self._head.client(SOURCE)
        self._chain: dict[bytes, bytes | None] = {}
        """Keys of the messages that stand, in order, each with the one before it."""
        self._taken: bytes | None = None
        """Key of the message that was taken back last, until another one follows."""
        self._place = 0
        """Where the row begins."""
        self._seen = self._remembered = False
        self._out: list[AnyEvent] = []

    # --- the two forms ------------------------------------------------------------------------------------------------

    def lines(self, stream: BinaryIO) -> Iterator[AnyEvent]:
        """Events of a file with one record a line."""
        context, counted, scratch = self._context, self._context.offset, Rows()
        found = Lines(stream, final=context.final)
        for line, end in found:
            fresh = end > counted or found.problem == UNREADABLE
            self._rows = context.rows if fresh else scratch
            self._rows.read += 1
            self._out = []
            try:
                if line is None:
                    raise Rejected(found.problem)
                self._record(line)
            except NOT_READ as error:
                reason = reason_of(error)
                self._rejected("truncated" if found.cut and reason == "not_json" else reason, self._place)
            self._place = end
            if fresh:
                yield from self._out
        if self._remembered and not self._seen:
            # A version that writes its answers in a form that is not known: not read, and not called idle.
            yield Gap(**self._head.event(self._head.key("unread")), what="schema_unknown")
        context.offset = max(found.offset, counted)

    def document(self, stream: BinaryIO) -> Iterator[AnyEvent]:
        """Events of a file that is one document; its messages are decoded one by one."""
        context, counted, scratch = self._context, self._context.offset, Rows()
        data, problem = document(stream)
        items = Items(data, b"messages")
        if not items.found:
            if not counted and (context.final or problem):
                self._rows.read += 1
                self._rejected(problem or _why_none(data), 0)
                yield from self._out
            return
        self._header(_around(data))
        for raw, end in items:
            self._rows = context.rows if end > counted else scratch
            self._rows.read += 1
            self._out = []
            try:
                self._message(self._decoded(raw))
            except NOT_READ as error:
                self._rejected(reason_of(error), end)
            yield from self._out
        if problem or (not items.complete and context.final):
            self._rows = context.rows if len(data) > counted else scratch
            self._rows.read += 1
            self._out = []
            self._rejected(problem or "truncated", len(data))
            yield from self._out
        context.offset = max(counted, len(data) if items.complete or context.final else items.offset)

    def unreadable(self) -> Iterator[AnyEvent]:
        """A file of which nothing can be read is one rejected row."""
        self._rows.read += 1
        self._rejected(UNREADABLE, 0)
        yield from self._out

    def _rejected(self, reason: str, place: int | str) -> None:
        reject(self._rows, reason)
        key = self._context.ids.key("gemini_cli/rejected", f"{self._context.file_key.hex()}:{place}")
        self._out.append(Gap(**self._head.event(key), what="rows_rejected"))

    # --- records ------------------------------------------------------------------------------------------------------

    def _decoded(self, raw: bytes) -> rows.Row | None:
        """The row; None where its type is unknown, whatever else is wrong with it."""
        try:
            row = _ROW.decode(raw)
        except Rejected as error:
            if error.reason != "wrong_type" or rows.TYPE.decode(raw).type in (None, *rows.TYPES):
                raise
            self._rows.unknown += 1
            return None
        if row.type is not None and row.type not in rows.TYPES:
            self._rows.unknown += 1
            return None
        return row

    def _record(self, line: bytes) -> None:
        row = self._decoded(line)
        if row is None:
            return
        if row.rewind is not None:
            self._rewind(row.rewind)
        elif row.patch is not None:
            kinds = [rows.TYPE.decode(one).type for one in row.patch.messages or ()]
            if row.patch.sessionId:
                self._session(row.patch.sessionId)
            self._remembered = self._remembered or rows.MODEL in kinds
        elif row.id is None and row.sessionId is not msgspec.UNSET:
            self._header(rows.Header(sessionId=row.sessionId, projectHash=row.projectHash, kind=row.kind))
            for number, one in enumerate(row.messages or ()):
                self._rows.read += 1
                try:
                    self._message(self._decoded(bytes(one)))
                except NOT_READ as error:
                    self._rejected(reason_of(error), f"{self._place}:{number}")
        else:
            self._message(row)

    def _header(self, header: rows.Header) -> None:
        head, ids = self._head, self._context.ids
        if header.projectHash:
            head.fields["project"] = ids.project(SOURCE, header.projectHash)
        side = header.kind == rows.SUBAGENT
        head.fields["thread"] = SIDE if side else "main"
        if isinstance(header.sessionId, str) and header.sessionId:
            self._session(header.sessionId, self._context.log_dir if side else "")
        elif header.sessionId is not msgspec.UNSET:
            self._context.facts.saw_conversation(None)

    def _session(self, session: str, parent: str = "") -> None:
        head = self._head
        head.session = session
        if head.fields["thread"] != SIDE or parent:
            head.fields["conv"] = self._context.ids.conv(SOURCE, parent or session)
            self._context.facts.saw_conversation(head.fields["conv"])

    def _rewind(self, raw: str) -> None:
        """Take the named message and all after it back; the program takes all back where the name is unknown.

        A row that is there twice takes back once: what is gone cannot be chosen again.
        """
        key = self._head.key("message", raw)
        if key == self._taken:
            return
        self._taken = key
        order = list(self._chain)
        for one in order[order.index(key) if key in self._chain else 0 :]:
            del self._chain[one]
        if self._head.fields["ts"] is not None:
            # Until a prompt follows, nothing says how the work that is left stands.
            event = self._head.event(self._head.key("rewind", raw, self._head.fields["ts"]))
            self._out.append(TurnEnd(**event, how="unknown"))

    # --- messages -----------------------------------------------------------------------------------------------------

    def _message(self, row: rows.Row | None) -> None:
        if row is None:
            return
        if row.type is None or row.timestamp is None or row.id is None:
            raise Rejected("missing_field")
        ts = rfc3339_micros(row.timestamp)
        if ts is None or not plausible(ts, self._context.now):
            raise Rejected("bad_time")
        facts = self._context.facts
        facts.any_row = facts.any_call_row = facts.any_prompt_row = facts.any_tool_row = True
        facts.saw_attempts(False)
        self._seen = True
        self._head.at(ts)
        key = self._head.key("message", row.id)
        if row.type == rows.USER:
            self._prompt(row, key)
        elif row.type == rows.MODEL:
            self._answer(row, key, ts)
        elif row.type == rows.ERROR and rows.failed_call(row.content):
            # What failed and why stands in the text only: no class, so no fault.
            self._out.append(Call(**self._node(key), served=UNKNOWN, status="error"))

    def _node(self, key: bytes) -> Fields:
        """Header of an event that later messages hang on."""
        if key not in self._chain:
            if len(self._chain) >= _MAX_CHAIN:
                for one in list(self._chain)[: _MAX_CHAIN // 2]:
                    del self._chain[one]
            self._chain[key] = next(reversed(self._chain), None)
            self._taken = None
        self._head.fields["parent"] = self._chain[key]
        return self._head.event(key, node=True)

    def _prompt(self, row: rows.Row, key: bytes) -> None:
        origin = rows.origin(row.content)
        if origin is None or self._head.fields["thread"] == SIDE:
            return  # a tool's result, or the instruction of the model that started this one
        if origin == "human" and self._head.fields["mode"] == "automation":
            origin = "sdk"
        self._out.append(Prompt(**self._node(key), origin=origin))

    def _answer(self, row: rows.Row, key: bytes, ts: int) -> None:
        family = self._context.catalogue.resolve(row.model, self._context.aliases) if row.model else UNKNOWN
        if family != SYNTHETIC:
            route = "subagent" if self._head.fields["thread"] == SIDE else "direct"
            self._out.append(Call(**self._node(key), served=family, route=route))
        for index, one in enumerate(row.toolCalls or ()):
            self._tool(row, one, index, family, ts)

    def _tool(self, row: rows.Row, tool: rows.ToolCall, index: int, family: str, ts: int) -> None:
        name = tool.name or ""
        kind, origin = self._context.tools.classify(name)
        outcome = rows.OUTCOMES.get(tool.status or "")
        head = self._head
        key = head.key("tool", tool.id, name) if tool.id else head.key("tool of", row.id, index)
        head.fields["parent"] = head.key("message", row.id)
        self._out.append(
            Tool(
                **head.event(key),
                family=family,
                tool_class=kind,
                outcome=outcome or "no_result",
                origin=origin,
                call=head.key("message", row.id),
                result_ts=self._end(ts, tool) if outcome is not None else None,
            )
        )

    def _end(self, ts: int, tool: rows.ToolCall) -> int:
        """When a tool call was over; a time that cannot be is none."""
        ended = rfc3339_micros(tool.timestamp) if tool.timestamp is not None else None
        return ended if ended is not None and ended > ts and plausible(ended, self._context.now) else ts


def _around(data: bytes) -> rows.Header:
    """The session around the messages; of a cut document what stands before them."""
    for whole in (data, data[: data.find(b'"messages"')] + b'"messages":[]}'):
        try:
            return rows.HEADER.decode(whole)
        except (msgspec.DecodeError, RecursionError):
            continue
    return rows.Header()


def _why_none(data: bytes) -> str:
    """Why a document holds no messages."""
    if not data.lstrip().startswith(b"{"):
        return "not_an_object"
    try:
        rows.HEADER.decode(data)
    except msgspec.ValidationError:
        return "wrong_type"
    except RecursionError:
        return "too_deep"
    except msgspec.DecodeError:
        return "not_json"
    return "missing_field"
