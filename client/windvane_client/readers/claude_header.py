# SPDX-License-Identifier: Apache-2.0
"""Claude Code transcripts: the header of the row that is being read.

Rules kept here:
* the mode is what a field of the log declares, per turn before per conversation; it is never inferred from behaviour;
* a row without time takes none; a row without session belongs to no conversation;
* session ids are hashed once and never leave this module in the clear.
"""

from __future__ import annotations

from copy import copy
from typing import Final, TypeVar

from windvane_client.events import Call, Tool, TurnEnd
from windvane_client.readers import claude_rows as rows
from windvane_client.readers.header import Fields
from windvane_client.readers.protocol import NO_ATTEMPTS, ReadContext

CALL, ROW, TOOL, AGENT = "claude_code/call", "claude_code/row", "claude_code/tool", "claude_code/agent"
END = "claude_code/end"
"""Namespaces of natural ids."""
_MAX_SESSIONS = 4096
_MAX_TOOLS = 256
_NO_KEY = b""
_FREQUENT = TypeVar("_FREQUENT", Call, Tool, TurnEnd)
_BLANKS: Final = (
    Call(source="", recorder="", reader="", key=_NO_KEY, served=""),
    Tool(source="", recorder="", reader="", key=_NO_KEY, family="", tool_class="", outcome=""),
    TurnEnd(source="", recorder="", reader="", key=_NO_KEY, how=""),
)
"""Nine events of ten are of these kinds: they are copied from one with the header set, which costs a quarter."""


class Header:
    """The header fields of the row that is being read."""

    def __init__(self, context: ReadContext, source: str, version: str) -> None:
        self._context = context
        self._ids = context.ids
        self._reader = f"{source}/{version}"
        self._sessions: dict[str, bytes] = {}
        self._turn_modes: dict[bytes | None, tuple[str, str]] = {}
        self._kinds: dict[str, str | None] = {}
        self._call: tuple[str, bytes] = ("", _NO_KEY)
        self._tools: dict[str, bytes] = {}
        self._blank_call: Call | None = None
        self._blank_tool: Tool | None = None
        self._blank_end: TurnEnd | None = None
        self.ts: int | None = None
        """Time of the row (µs UTC). A row without time takes none, not the one before."""
        self.parent: bytes | None = None
        """The nearest prompt or call above the row."""
        self._seq = 0
        self.row_mode = ("unknown", "")
        """(mode, evidence) that the row declares for its conversation, whatever its turn declares."""
        project = context.ids.project(source, context.log_dir) if context.log_dir else None
        self._fields = Fields(
            source=source,
            recorder=source,
            reader=self._reader + NO_ATTEMPTS,
            key=_NO_KEY,
            person=context.machine_person,
            conv=None,
            project=project,
            thread="main",
            ts=None,
            seq=0,
            mode="unknown",
            mode_evidence="",
            client="other",
            kind_hint=self._kind("other"),
            parent=None,
            row=None,
        )

    def conversation(self, session: str) -> bytes:
        """Keyed id of a session."""
        known = self._sessions.get(session)
        if known is None:
            if len(self._sessions) >= _MAX_SESSIONS:
                self._sessions.clear()
            known = self._sessions[session] = self._ids.conv("claude_code", session)
        return known

    def program(self, row: rows.Row, thread: str) -> None:
        """What the session, version and program of the row say."""
        fields = self._fields
        session = row.sessionId
        fields["conv"] = self.conversation(session) if isinstance(session, str) and session else None
        known = row.version is not None and rows.writes_attempts(row.version)
        fields["reader"] = self._reader if known else self._reader + NO_ATTEMPTS
        fields["thread"] = thread
        self._blank_call = self._blank_tool = self._blank_end = None
        client, self.row_mode = _program(row)
        fields["client"] = client
        fields["kind_hint"] = self._kind(client)
        self._set_mode()

    def _kind(self, client: str) -> str | None:
        rule = self._context.kind_rule
        if rule is None:
            return None
        if client not in self._kinds:
            self._kinds[client] = rule(
                {
                    "source": "claude_code",
                    "recorder": "claude_code",
                    "client": client,
                    "log_dir": self._context.log_dir,
                }
            )
        return self._kinds[client]

    def turn_mode(self, declared: tuple[str, str] | None) -> None:
        """A prompt declares (mode, evidence) for its turn; None: the turn has the mode of the conversation."""
        conv = self._fields["conv"]
        if declared is None:
            self._turn_modes.pop(conv, None)
        else:
            if len(self._turn_modes) >= _MAX_SESSIONS:
                self._turn_modes.clear()
            self._turn_modes[conv] = declared
        self._set_mode()

    def _set_mode(self) -> None:
        mode, evidence = self._turn_modes.get(self._fields["conv"], self.row_mode)
        fields = self._fields
        if (fields["mode"], fields["mode_evidence"]) != (mode, evidence):
            fields["mode"], fields["mode_evidence"] = mode, evidence
            self._blank_call = self._blank_tool = self._blank_end = None

    def key(self, namespace: str, raw: str) -> bytes:
        """Keyed id of an event."""
        return self._ids.key(namespace, raw)

    def call_key(self, raw: str) -> bytes:
        """Keyed id of an answer. The rows of one answer follow each other, so the last one's is remembered."""
        if self._call[0] != raw:
            self._call = (raw, self._ids.key(CALL, raw))
        return self._call[1]

    def _with(self, key: bytes, row: bytes | None) -> Fields:
        fields = self._fields
        self._seq += 1
        fields["ts"], fields["seq"], fields["parent"] = self.ts, self._seq, self.parent
        fields["key"], fields["row"] = key, row
        return fields

    def of(self, namespace: str, raw: str) -> Fields:
        """Header of an event that no row links to."""
        return self._with(self._ids.key(namespace, raw), None)

    def _blank(self, kind: type[_FREQUENT]) -> _FREQUENT:
        blank = copy(next(one for one in _BLANKS if isinstance(one, kind)))
        for name, value in self._fields.items():
            setattr(blank, name, value)
        blank.row = None
        return blank

    def tool(self, raw: str) -> Tool:
        """A tool call or its result, without what it says; the result follows its call, so the latest keys are
        remembered."""
        key = self._tools.get(raw)
        if key is None:
            if len(self._tools) >= _MAX_TOOLS:
                self._tools.clear()
            key = self._tools[raw] = self._ids.key(TOOL, raw)
        blank = self._blank_tool
        if blank is None:
            blank = self._blank_tool = self._blank(Tool)
        self._seq += 1
        event: Tool = blank.__copy__()  # type: ignore[attr-defined]
        event.key, event.seq, event.ts, event.parent = key, self._seq, self.ts, self.parent
        return event

    def call(self, key: bytes, family: str, route: str) -> Call:
        """An answer: what comes after links to it."""
        blank = self._blank_call
        if blank is None:
            blank = self._blank_call = self._blank(Call)
        self._seq += 1
        event: Call = blank.__copy__()  # type: ignore[attr-defined]
        event.key, event.row, event.seq, event.ts, event.parent = key, key, self._seq, self.ts, self.parent
        event.served, event.route = family, route
        return event

    def ended(self, key: bytes, how: str) -> TurnEnd:
        """An end that an answer itself tells; its natural id is the answer's key."""
        blank = self._blank_end
        if blank is None:
            blank = self._blank_end = self._blank(TurnEnd)
        self._seq += 1
        event: TurnEnd = blank.__copy__()  # type: ignore[attr-defined]
        event.key, event.seq, event.ts, event.parent = self._ids.key(END, key.hex()), self._seq, self.ts, self.parent
        event.how = how
        return event

    def node(self, key: bytes) -> Fields:
        """Header of a prompt or call: what comes after links to it."""
        return self._with(key, key)


def _program(row: rows.Row) -> tuple[str, tuple[str, str]]:
    """(client, (mode, name of the field that told it)) from the conversation's own declaration."""
    entrypoint = row.entrypoint
    client = "other"
    mode = ("unknown", "")
    if entrypoint is not None:
        if entrypoint.startswith("sdk-"):
            client, mode = "claude_sdk", ("automation", "entrypoint")
        elif entrypoint in rows.INTERACTIVE_ENTRYPOINTS:
            client, mode = rows.INTERACTIVE_ENTRYPOINTS[entrypoint], ("interactive", "entrypoint")
    if row.sessionKind in rows.BACKGROUND_KINDS:
        mode = ("automation", "sessionKind")
    return client, mode
