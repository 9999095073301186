# SPDX-License-Identifier: Apache-2.0
"""Codex rollouts: `sessions/YYYY/MM/DD/rollout-*.jsonl` and `archived_sessions/`.

Rules kept here:
* a prompt is an event `user_message`; rows of role `user` are copies of it or text that the program put in;
* a model answer is a `token_count` whose running total changed; totals are never summed;
* a fork counts only its own turns; the header of the parent that it copies changes nothing;
* a tool's outcome comes from a typed end; free text says nothing;
* failed requests are not written: faults and the cause of a change of model are unknown, never 0;
* a grown file is read from its start again, and only what is new is counted and emitted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

from windvane_client.events import SIDE, AnyEvent, AttemptError, Call, Gap, ModelSet, Prompt, Rows, Tool, TurnEnd
from windvane_client.readers import codex_rows as rows
from windvane_client.readers.codex_state import ForkGate, OpenTools, Turns
from windvane_client.readers.files import find_logs
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
from windvane_privacy.catalogue import SYNTHETIC, UNKNOWN

SOURCE: Final = "codex"
VERSION: Final = "1.0.0"
FOLDERS: Final = ("sessions", "archived_sessions")
"""Below the program's own folder: CODEX_HOME, else `.codex` in the home folder."""
_MAX_TURNS_BACK: Final = 100_000
_ROW = LineDecoder(rows.Row)
_TYPE = LineDecoder(rows.TypeOnly)


class CodexReader:
    """Reader of the source `codex`."""

    source = SOURCE
    version = VERSION

    def discover(self, roots: Sequence[Path]) -> Iterator[Path]:
        """Rollouts under the roots."""
        return find_logs(roots, (".jsonl", ".jsonl.gz"))

    def read(self, stream: BinaryIO, context: ReadContext) -> Iterator[AnyEvent]:
        """Events of one rollout; see `windvane_client.readers.protocol.Reader`."""
        return _Rollout(context).events(stream)


class _Rollout:
    """One pass over one file."""

    def __init__(self, context: ReadContext) -> None:
        self._context = context
        self._facts = context.facts
        self._facts.failures_hidden = True
        self._rows = context.rows
        self._head = MachineHead(context, SOURCE, VERSION, suffix=NO_ATTEMPTS)
        self._out: list[AnyEvent] = []
        self._start = 0
        self._gate = ForkGate()
        self._tools = OpenTools()
        self._turns = Turns()
        self._own: str | None = None
        self._linked = False
        self._asked = UNKNOWN
        self._total: tuple[str, ...] | None = None
        self._answering = False
        self._prompt: bytes | None = None
        self._at_work = False
        self._prompted = False
        self._held: tuple[int, str] | None = None
        self._rolled_back_at = ""
        named = rows.session_in(context.session_hint)
        if named is not None:
            self._session(named, None)

    def events(self, stream: BinaryIO) -> Iterator[AnyEvent]:
        context, counted, scratch = self._context, self._context.offset, Rows()
        # From the start even when resumed: the fork, the turn and the running total live in the older part.
        lines = Lines(stream, final=context.final)
        for line, end in lines:
            fresh = end > counted or lines.problem == UNREADABLE
            self._rows = context.rows if fresh else scratch
            self._rows.read += 1
            self._out = []
            try:
                if line is None:
                    raise Rejected(lines.problem)
                self._row(line)
            except NOT_READ as error:
                reason = reason_of(error)
                self._rejected("truncated" if lines.cut and reason == "not_json" else reason)
            self._start = end
            if fresh:
                yield from self._out
        context.offset = max(lines.offset, counted)

    def _rejected(self, reason: str) -> None:
        reject(self._rows, reason)
        key = self._context.ids.key("codex/rejected", f"{self._context.file_key.hex()}:{self._start}")
        self._out = [Gap(**self._head.event(key), what="rows_rejected")]

    def _row(self, line: bytes) -> None:
        row = self._decoded(line)
        if row is None:
            return
        payload = row.payload
        if payload is None or row.timestamp is None:
            raise Rejected("missing_field")
        ts = rfc3339_micros(row.timestamp)
        if ts is None or not plausible(ts, self._context.now):
            raise Rejected("bad_time")
        self._facts.any_row = True
        self._facts.saw_attempts(False)
        self._head.at(ts)
        match row.type:
            case "session_meta":
                self._meta(payload, ts)
            case "turn_context":
                self._turn_context(payload, row.timestamp)
            case "response_item":
                self._facts.any_tool_row = True
                if not self._gate.closed:
                    self._item(payload, ts)
            case "event_msg":
                self._event(payload, ts, row.timestamp)
            case _:
                pass  # a summary of what was said before

    def _decoded(self, line: bytes) -> rows.Row | None:
        """The row; None where its type is unknown, whatever else is wrong with it."""
        try:
            row = _ROW.decode(line)
        except Rejected as error:
            if error.reason != "wrong_type":
                raise
            head = _TYPE.decode(line)
            inner = rows.PAYLOAD_TYPE.decode(head.payload).type if rows.is_object(head.payload) else None
            if self._known(head.type, inner):
                raise
            self._rows.unknown += 1
            return None
        if not self._known(row.type, row.payload.type if row.payload is not None else None):
            self._rows.unknown += 1
            return None
        return row

    @staticmethod
    def _known(kind: str | None, inner: str | None) -> bool:
        """Whether the type is a known one.

        Raises:
            Rejected: there is no type at all.
        """
        if kind is None:
            raise Rejected("missing_field")
        if kind not in rows.TYPES:
            return False
        if kind == "event_msg":
            return inner is None or inner in rows.EVENTS
        return kind != "response_item" or inner is None or inner in rows.ITEMS

    # --- header and model -------------------------------------------------------------------------------------------

    def _session(self, session: str, parent: str | None) -> None:
        ids = self._context.ids
        self._head.session = session
        self._head.fields["conv"] = ids.conv(SOURCE, parent or session)

    def _meta(self, payload: rows.Payload, ts: int) -> None:
        session = payload.id
        if self._own is not None:
            # A copied header of the parent, or the own one again: it only proves that rows are copied.
            if self._linked and session != self._own and not self._gate.inherited:
                self._gate.arm(rows.made_at(self._own))
            return
        if not session:
            self._facts.saw_conversation(None)
            return
        # What may turn out to be malformed comes first: a row that is rejected changes nothing.
        side, parent = rows.subagent(payload)
        client, mode, evidence = rows.program(payload)
        self._own = session
        self._linked = parent is not None
        self._session(session, parent if side else None)
        self._facts.saw_conversation(self._head.fields["conv"])
        self._head.fields["thread"] = SIDE if side else "main"
        self._head.client(client)
        self._head.mode(mode, evidence)
        if payload.forked_from_id:
            made = rows.made_at(session)
            if made is None:
                started = rfc3339_micros(payload.timestamp) if payload.timestamp is not None else None
                made = (ts if started is None else started) // 1000
            self._gate.arm(made)
            self._facts.fork_parents.add(self._context.ids.conv(SOURCE, payload.forked_from_id))

    def _turn_context(self, payload: rows.Payload, stamp: str) -> None:
        if self._gate.closed and not self._gate_opens(payload):
            return
        self._release()
        if payload.model is not None:
            self._asked = self._family(payload.model)
            if self._prompt is not None:
                self._ask(self._prompt)

    def _gate_opens(self, payload: rows.Payload) -> bool:
        found = self._gate.turn(payload.turn_id)
        if found is None:
            self._out.append(Gap(**self._head.event(self._head.key("fork")), what="schema_unknown"))
        return found is True

    def _family(self, name: str | None) -> str:
        return self._context.catalogue.resolve(name, self._context.aliases)

    # --- events -----------------------------------------------------------------------------------------------------

    def _event(self, payload: rows.Payload, ts: int, stamp: str) -> None:
        kind = payload.type
        if kind is None:
            raise Rejected("missing_field")
        if kind == "user_message":
            self._facts.any_prompt_row = True
        elif kind == "token_count":
            self._tokens(payload, stamp)
            return
        if self._gate.closed:
            if kind in rows.TURN_STARTS and self._gate_opens(payload):
                self._held = None
            elif kind == "user_message":
                self._held = (ts, stamp) if payload.kind in (None, "plain") else None
            if self._gate.closed:
                return
        if kind in rows.ANSWERS:
            self._answering = True
        if kind in rows.TURN_STARTS:
            self._at_work, self._prompted = True, False
        elif kind == "user_message":
            if payload.kind in (None, "plain"):
                self._user_message(ts, stamp)
        elif kind in rows.TURN_ENDS:
            self._turn_end(payload, stamp, "error" if rows.given(payload.error) else "clean")
        elif kind == "turn_aborted":
            self._turn_end(payload, stamp, "interrupted")
        elif kind == "error":
            self._failed(rows.failure_class(payload), stamp)
        elif kind == "thread_rolled_back":
            self._rolled_back(payload, stamp)
        elif kind == "patch_apply_end":
            outcome = "ok" if payload.success in (True, "true") else "failed"
            self._tool_end(payload, ts, "unclassified" if payload.success is None else outcome)
        elif kind == "mcp_tool_call_end":
            self._facts.any_tool_row = True
            self._tool_end(payload, ts, rows.mcp_outcome(payload.result))

    def _release(self) -> None:
        """The prompt that stood before the first own row of a fork, in versions that write the turn after it."""
        if self._held is not None:
            (ts, stamp), self._held = self._held, None
            now = self._head.fields["ts"]
            self._head.at(ts)
            self._user_message(ts, stamp)
            self._head.at(now)

    def _user_message(self, ts: int, stamp: str) -> None:
        head = self._head
        if head.fields["thread"] == SIDE:
            return  # the instruction of the model that started this one
        key = head.key("prompt", stamp)
        if key == self._turns.last_prompt:
            return  # the same row once more
        origin = "human"
        if head.fields["mode"] == "automation":
            origin = "sdk"
        elif self._at_work and self._prompted:
            origin = "queued"
        self._prompted = True
        head.fields["parent"] = self._turns.prompt(key)
        self._out.append(Prompt(**head.event(key, node=True), origin=origin))
        self._prompt = key
        if self._asked != UNKNOWN:
            self._ask(key)

    def _ask(self, prompt: bytes) -> None:
        """The model that the turn of this prompt is for; a later row of the same turn corrects it."""
        self._head.fields["parent"] = None
        self._out.append(ModelSet(**self._head.derived("asked", prompt), family=self._asked, by="unknown"))

    def _tokens(self, payload: rows.Payload, stamp: str) -> None:
        if not rows.given(payload.info):
            return
        info = rows.INFO.decode(payload.info)
        total = rows.total_of(info.total_token_usage)
        if info.total_token_usage is not None:
            self._facts.any_call_row = True
        before, self._total = self._total, total if total is not None else self._total
        if total is None or total == before or self._gate.closed:
            return
        if self._gate.inherited and before is None and not self._answering:
            return  # the parent's total, shown before the fork's own first answer
        self._answering = False
        served = self._family(info.model) if info.model is not None else self._asked
        if served == SYNTHETIC:
            return
        head = self._head
        key = head.key("call", stamp, *total)
        head.fields["parent"] = self._turns.answer(key)
        asked = self._asked if self._asked != UNKNOWN else None
        self._out.append(Call(**head.event(key, node=True), served=served, requested=asked))
        self._prompt = None

    def _turn_end(self, payload: rows.Payload, stamp: str, how: str) -> None:
        told = rows.FAILURE.decode(payload.error) if how == "error" and rows.is_object(payload.error) else None
        error_class = rows.failure_class(told) if told is not None else None
        self._at_work = self._prompted = False
        self._prompt = None
        if error_class is not None:
            self._failed(error_class, stamp)
        self._out.append(TurnEnd(**self._head.event(self._head.key("end", payload.turn_id or stamp)), how=how))

    def _failed(self, error_class: str, stamp: str) -> None:
        event = self._head.event(self._head.key("error", stamp))
        self._out.append(AttemptError(**event, error_class=error_class, family=self._asked, final=True))

    def _rolled_back(self, payload: rows.Payload, stamp: str) -> None:
        count = payload.num_turns
        readable = isinstance(count, int) or (count is not None and count.isdecimal() and len(count) < 10)
        turns = int(count) if readable and count is not None else None
        if turns is None or not 0 <= turns <= _MAX_TURNS_BACK:
            raise Rejected("missing_field" if count is None else "bad_value")
        if stamp == self._rolled_back_at:
            return  # the same row once more
        self._rolled_back_at = stamp
        self._turns.roll_back(turns)
        self._prompt = None
        if turns:
            # Until a prompt follows, nothing says how the work that is left stands.
            self._out.append(TurnEnd(**self._head.event(self._head.key("rollback", stamp)), how="unknown"))

    # --- tools ------------------------------------------------------------------------------------------------------

    def _item(self, payload: rows.Payload, ts: int) -> None:
        kind = payload.type
        name = payload.name or ("local_shell" if kind == "local_shell_call" else None)
        if kind in rows.TOOL_CALLS and (name is None or payload.call_id is None):
            raise Rejected("missing_field")
        if kind in rows.ANSWERS or (kind in (None, "message") and payload.role == "assistant"):
            self._answering = True
        if kind in rows.TOOL_CALLS and name is not None and payload.call_id is not None:
            self._tools.called(payload.call_id, name)
            tool_class, origin = self._context.tools.classify(name)
            self._tool(payload.call_id, name, "no_result", None, tool_class, origin, self._asked)
        elif kind in rows.TOOL_OUTPUTS:
            if payload.call_id is None:
                raise Rejected("missing_field")
            self._tool_end(payload, ts, "unclassified")

    def _tool_end(self, payload: rows.Payload, ts: int, outcome: str) -> None:
        name = self._tools.ended(payload.call_id) if payload.call_id is not None else None
        # A text that comes after its typed end, or without its call, adds nothing.
        if name is not None and payload.call_id is not None:
            self._tool(payload.call_id, name, outcome, ts, "unknown", "unknown", UNKNOWN)

    def _tool(
        self, call_id: str, name: str, outcome: str, result_ts: int | None, tool_class: str, origin: str, family: str
    ) -> None:
        event = self._head.event(self._head.key("tool", call_id, name))
        self._out.append(
            Tool(**event, family=family, tool_class=tool_class, outcome=outcome, origin=origin, result_ts=result_ts)
        )
