# SPDX-License-Identifier: Apache-2.0
"""Cline session files: the messages of one session, read with its header.

Rules kept here:
* a fork's messages from before the fork are its parent's: they give no event, whatever the header says about a model;
* the model is the one of each answer, never the header's;
* `status` and `exit_code` are the state of a process, no completion; failed requests are not written;
* a message without a time takes the next one that is known.
"""

from __future__ import annotations

from typing import Final

import msgspec

from windvane_client.events import SIDE, AnyEvent, Call, Prompt, Rows, Tool
from windvane_client.readers import cline_rows as rows
from windvane_client.readers.lines import LineDecoder, Rejected, plausible, rfc3339_micros
from windvane_client.readers.machine_head import MachineHead
from windvane_client.readers.protocol import NO_ATTEMPTS, ReadContext
from windvane_privacy.catalogue import SYNTHETIC, UNKNOWN

RECORDER: Final = "cline/session"
LEAD: Final = "lead"
_MESSAGE = LineDecoder(rows.Message)
_ROLE = LineDecoder(rows.RoleOnly)


def micros(raw: float | str | None, now: int) -> int | None:
    """µs of an epoch time in s, ms, µs or ns (by its size) or of an RFC 3339 text; None where there is none.

    Raises:
        Rejected: it cannot be a time.
    """
    if raw is None:
        return None
    if isinstance(raw, str):
        text = raw.strip()
        ts = _by_size(int(text)) if text.isascii() and text.isdigit() and len(text) < 25 else rfc3339_micros(text)
    else:
        ts = _by_size(int(raw)) if abs(raw) < 1e25 else None
    if not plausible(ts, now):
        raise Rejected("bad_time")
    return ts


def _by_size(number: int) -> int:
    if number > 10**17:
        return number // 1000
    if number > 10**14:
        return number
    return number * 1000 if number > 10**11 else number * 1_000_000


class SessionPass:
    """One pass over one file of messages."""

    def __init__(self, context: ReadContext, source: str, version: str, session: rows.Session) -> None:
        self._context = context
        self.head = MachineHead(context, source, version, recorder=RECORDER, suffix=NO_ATTEMPTS)
        self._waiting: list[rows.Message] = []
        self._served = UNKNOWN
        facts = context.facts
        facts.failures_hidden = True
        facts.recorder = RECORDER
        header = self._header()
        stated = session.sessionId if isinstance(session.sessionId, str) else header.session_id
        name = stated or context.session_hint
        if session.sessionId is not msgspec.UNSET or header.session_id:
            facts.saw_conversation(context.ids.conv(source, name) if stated else None)
        if name:
            self.head.session = name
            self.head.fields["conv"] = context.ids.conv(source, name)
        self.head.client("cline")
        if session.agent not in (None, LEAD):
            self.head.fields["thread"] = SIDE
        if header.interactive is not None:
            self.head.mode("interactive" if rows.true(header.interactive) else "automation", "interactive")
            facts.stated_mode = self.head.fields["mode"]
        self._own_from: int | None = None
        fork = header.metadata.fork if header.metadata is not None else None
        if fork is not None:
            try:
                self._own_from = micros(fork.forkedAt, context.now)
            except Rejected:
                self._own_from = None
            self._own_from = self._own_from if self._own_from is not None else context.now
            if fork.forkedFromSessionId:
                facts.fork_parents.add(context.ids.conv(source, fork.forkedFromSessionId))

    def _header(self) -> rows.Header:
        try:
            return rows.HEADER.decode(self._context.companion)
        except (msgspec.DecodeError, RecursionError):
            return rows.Header()

    def element(self, raw: bytes, counted: Rows) -> list[AnyEvent]:
        """Events of one message, and of those before it that waited for a time."""
        message = self._decoded(raw, counted)
        if message is None:
            return []
        facts = self._context.facts
        facts.any_row = facts.any_call_row = facts.any_prompt_row = facts.any_tool_row = True
        facts.saw_attempts(False)
        ts = micros(message.ts, self._context.now)
        if ts is None:
            self._waiting.append(message)
            return []
        return self._flush(ts) + self._events(message, ts)

    def end(self) -> list[AnyEvent]:
        """Messages at the end that have no time, and no later one to take."""
        last = self.head.fields["ts"]
        return [] if last is None else self._flush(last)

    def _decoded(self, raw: bytes, counted: Rows) -> rows.Message | None:
        try:
            message = _MESSAGE.decode(raw)
        except Rejected as error:
            if error.reason != "wrong_type" or _ROLE.decode(raw).role in (None, "user", "assistant"):
                raise
            counted.unknown += 1
            return None
        if message.role is None or (message.role in ("user", "assistant") and message.content is rows.NONE):
            raise Rejected("missing_field")
        if message.role not in ("user", "assistant"):
            counted.unknown += 1
            return None
        blocks = self._blocks(message)
        if blocks is None:
            raise Rejected("wrong_type")
        for block in blocks:
            if block.type == "tool_result":
                rows.result_outcome(block)  # what cannot be read must not be found out after other rows
        return message

    @staticmethod
    def _blocks(message: rows.Message) -> list[rows.Block] | None:
        first = bytes(memoryview(message.content)[:1])
        if first == b'"':
            return []
        return rows.BLOCKS.decode(message.content) if first == b"[" else None

    def _flush(self, ts: int) -> list[AnyEvent]:
        waiting, self._waiting = self._waiting, []
        return [event for message in waiting for event in self._events(message, ts)]

    def _events(self, message: rows.Message, ts: int) -> list[AnyEvent]:
        head = self.head
        head.at(ts)
        if self._own_from is not None and ts < self._own_from:
            return []
        blocks = self._blocks(message) or []
        key = head.global_key("message", message.id) if message.id else head.key("message", ts)
        out: list[AnyEvent] = []
        if message.role == "assistant":
            info = message.modelInfo
            name = (info.id or info.modelId) if info is not None else None
            self._served = self._context.catalogue.resolve(name, self._context.aliases) if name else UNKNOWN
            if self._served != SYNTHETIC:
                out.append(Call(**head.event(key), served=self._served))
            for block in blocks:
                if block.type == "tool_use" and block.id is not None:
                    kind, origin = self._context.tools.classify(block.name or "")
                    out.append(self._tool(block.id, self._served, kind, "no_result", origin, None))
            return out
        results = [block for block in blocks if block.type == "tool_result"]
        for block in results:
            if block.tool_use_id is not None:
                outcome = rows.result_outcome(block)
                out.append(self._tool(block.tool_use_id, UNKNOWN, "unknown", outcome, "unknown", ts))
        if not results and head.fields["thread"] != SIDE:
            origin = "sdk" if head.fields["mode"] == "automation" else "human"
            out.append(Prompt(**head.event(key), origin=origin))
        return out

    def _tool(self, raw: str, family: str, kind: str, outcome: str, origin: str, result_ts: int | None) -> Tool:
        event = self.head.event(self.head.global_key("tool", raw))
        return Tool(**event, family=family, tool_class=kind, outcome=outcome, origin=origin, result_ts=result_ts)
