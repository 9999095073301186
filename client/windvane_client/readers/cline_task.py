# SPDX-License-Identifier: Apache-2.0
"""Cline and Roo task files: what the person saw in the editor, row by row.

Rules kept here:
* a row that is still being written (`partial`) is no event; a request is a call once its answer has begun;
* a result that is offered and then commented on was rejected; silence after it is no acceptance;
* a new model in the same mode was chosen by the person; a change between planning and acting brings its own model;
* a tool that the next request follows without an error ran; what a person or a rule stopped is no failure;
* a failed request is classed by its status or a fixed beginning, never by what else its message says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from windvane_client.events import AnyEvent, AttemptError, Call, ModelSet, Outcome, Prompt, Rows, Tool, TurnEnd
from windvane_client.readers import cline_rows as rows
from windvane_client.readers.cline_session import micros
from windvane_client.readers.failures import UNCLASSED
from windvane_client.readers.lines import LineDecoder, Rejected
from windvane_client.readers.machine_head import MachineHead
from windvane_client.readers.protocol import ReadContext
from windvane_privacy.catalogue import UNKNOWN

_MESSAGE = LineDecoder(rows.UiMessage)
_TYPES = LineDecoder(rows.UiTypes)
_MAX_OPEN: Final = 4096


@dataclass(slots=True)
class _Request:
    """One request to a model. `reason`: why it was cancelled, or empty. `attempts`: how many of them failed."""

    key: bytes
    reason: str
    answered: bool = False
    attempts: int = 0
    failure: str = UNCLASSED


class TaskPass:
    """One pass over one task file."""

    def __init__(self, context: ReadContext, source: str, version: str) -> None:
        self._context = context
        self.head = MachineHead(context, source, version)
        if context.log_dir:
            self.head.session = context.log_dir
        self.head.fields["conv"] = context.ids.conv(source, self.head.session)
        self.head.client(context.program or "cline")
        self.head.mode("interactive", "ui_messages")
        self._family = UNKNOWN
        self._mode: str | None = None
        self._prompted = False
        self._last: tuple[str | None, str, int] | None = None
        """Type, name and time of the row before; a program numbers its rows by their time."""
        self._request: _Request | None = None
        self._tools: dict[bytes, str] = {}
        self._offered = False
        self._after_failure = False
        self._out: list[AnyEvent] = []

    def element(self, raw: bytes, counted: Rows) -> list[AnyEvent]:
        """Events of one row."""
        message, name = self._decoded(raw, counted)
        if message is None:
            return []
        ts = micros(message.ts, self._context.now)
        if ts is None:
            raise Rejected("missing_field")
        facts = self._context.facts
        facts.any_row = facts.any_call_row = facts.any_prompt_row = facts.any_tool_row = True
        facts.saw_attempts(True)
        if rows.true(message.partial):
            return []
        if self._last == (message.type, name, ts):
            return []  # the same row again
        self._out = []
        boundary = name == "api_req_started" or name in rows.PROMPTS or name.startswith("resume_")
        if boundary:
            self._close_request()
        self.head.at(ts)
        self._model(message)
        self._row(message, name, ts)
        self._last, self._after_failure = (message.type, name, ts), name in rows.FAILURES
        return self._out

    def end(self) -> list[AnyEvent]:
        """What the last request came to."""
        self._out = []
        self._close_request()
        return self._out

    def _decoded(self, raw: bytes, counted: Rows) -> tuple[rows.UiMessage | None, str]:
        """The row and its type word; None where the type is unknown, whatever else is wrong with it."""
        try:
            message: rows.UiMessage | rows.UiTypes = _MESSAGE.decode(raw)
        except Rejected as error:
            if error.reason != "wrong_type":
                raise
            message = _TYPES.decode(raw)
        kind = message.type
        if kind is None:
            raise Rejected("missing_field")
        name = {"ask": message.ask, "say": message.say}.get(kind)
        if name is None and kind in ("ask", "say"):
            raise Rejected("missing_field")
        if name is None or name not in (rows.ASKS if kind == "ask" else rows.SAYS):
            counted.unknown += 1
            return None, ""
        if not isinstance(message, rows.UiMessage):
            raise Rejected("wrong_type")
        return message, name

    # --- model and requests -----------------------------------------------------------------------------------------

    def _model(self, message: rows.UiMessage) -> None:
        info = message.modelInfo
        if info is None or not info.modelId:
            return
        family = self._context.catalogue.resolve(info.modelId, self._context.aliases)
        if self._family not in (family, UNKNOWN):
            by = "person" if info.mode == self._mode else "harness"
            place = self.head.key("model", self.head.fields["ts"])
            self._out.append(ModelSet(**self.head.event(place), family=family, by=by))
        self._family, self._mode = family, info.mode

    def _row(self, message: rows.UiMessage, name: str, ts: int) -> None:
        first_text = name == "text" and message.type == "say" and not self._prompted
        if name in rows.PROMPTS or first_text:
            self._prompt(ts)
            return
        if name in rows.ANSWERS:
            self._answer(ts)
        if name == "api_req_started":
            self._settle(ts)
            self._offered = False
            self._request = _Request(self.head.key("call", ts), rows.cancel_reason(message.text))
        elif name in rows.FAILURES:
            self._failed(message, name, ts)
        elif name == "api_req_rate_limit_wait":
            self._attempt("rate_own", ts, self._request)
        elif name == "mistake_limit_reached":
            self._end_turn("limit", ts)
        elif name == "completion_result":
            if not self._offered:
                self._settle(ts)
                self._end_turn("clean", ts)
            self._offered = True
        else:
            self._tool_row(message, name, ts)

    def _prompt(self, ts: int) -> None:
        key = self.head.key("prompt", ts)
        if self._offered:
            self._out.append(Outcome(**self.head.derived("reaction", key), value="rejected", evidence="user_feedback"))
        self._offered = False
        self._settle(ts, "unclassified")
        self._prompted = True
        self._out.append(Prompt(**self.head.event(key), origin="human"))

    def _answer(self, ts: int) -> None:
        request = self._request
        if request is None or request.answered or request.reason:
            return
        request.answered = True
        family = self._family
        asked = family if family != UNKNOWN else None
        self._out.append(Call(**self.head.event(request.key), served=family, requested=asked))

    def _failed(self, message: rows.UiMessage, name: str, ts: int) -> None:
        request = self._request
        if name == "api_req_retried":
            if self._after_failure:
                return  # the failure that it answers was written
            found = UNCLASSED
        else:
            found = rows.error_class(message.text)
            if name == "api_req_failed" and self._after_failure and request is not None:
                found = request.failure  # the last automatic retry was written already
        if request is not None:
            request.attempts += 1
            request.failure = found
        self._attempt(found, ts, request)

    def _attempt(self, error_class: str, ts: int, request: _Request | None, *, final: bool = False) -> None:
        self._out.append(
            AttemptError(
                **self.head.event(self.head.key("attempt", ts, final)),
                error_class=error_class,
                family=self._family,
                request=request.key if request is not None else None,
                attempt=max(1, request.attempts) if request is not None else 1,
                final=final,
            )
        )

    def _close_request(self) -> None:
        """The request is over: what its cancel reason says about it, at the time of its last row."""
        request, self._request = self._request, None
        ts = self.head.fields["ts"]
        if request is None or not request.reason or ts is None:
            return
        if request.reason == "user_cancelled":
            self._tools.clear()
            self._out.append(Call(**self.head.event(request.key), served=self._family, status="aborted"))
            self._end_turn("interrupted", ts)
            return
        request.attempts += 1
        self._attempt(request.failure, ts, request, final=request.reason == "retries_exhausted")

    def _end_turn(self, how: str, ts: int) -> None:
        self._out.append(TurnEnd(**self.head.event(self.head.key("end", how, ts)), how=how))

    # --- tools ------------------------------------------------------------------------------------------------------

    def _tool_row(self, message: rows.UiMessage, name: str, ts: int) -> None:
        if name == "tool":
            self._called(rows.tool_class(message.text), "builtin", ts)
        elif name in rows.TOOLS:
            self._called(*rows.TOOLS[name], ts)
        elif name in rows.RESULTS:
            kind, outcome = rows.RESULTS[name]
            self._result(kind, outcome, ts)
        elif name == "diff_error":
            if not self._result("edit", "precondition", ts):
                self._called("edit", "builtin", ts)
                self._result("edit", "precondition", ts)
        elif name in ("clineignore_error", "rooignore_error"):
            self._result(None, "denied", ts)
        elif name == "error":
            if rows.bad_call(message.text):
                self._called("unknown", "unknown", ts)
                self._result("unknown", "malformed", ts)
            else:
                self._result(None, "failed", ts)

    def _called(self, kind: str, origin: str, ts: int) -> None:
        key = self.head.key("tool", ts)
        self._tools[key] = kind
        if len(self._tools) > _MAX_OPEN:
            del self._tools[next(iter(self._tools))]
        event = self.head.event(key)
        self._out.append(Tool(**event, family=self._family, tool_class=kind, outcome="no_result", origin=origin))

    def _result(self, kind: str | None, outcome: str, ts: int) -> bool:
        """The latest open tool of this class has a result; False where there is none."""
        key = next((known for known, one in reversed(self._tools.items()) if kind in (None, one)), None)
        if key is None:
            return False
        del self._tools[key]
        event = self.head.event(key)
        self._out.append(Tool(**event, family=UNKNOWN, tool_class="unknown", outcome=outcome, result_ts=ts))
        return True

    def _settle(self, ts: int, outcome: str = "ok") -> None:
        """The results of all open tools go to the model, or a person spoke instead."""
        for kind in list(self._tools.values()):
            # An MCP server's answer is free text: that it came says nothing.
            self._result(kind, "unclassified" if kind == "mcp" else outcome, ts)
