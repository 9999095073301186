# SPDX-License-Identifier: Apache-2.0
"""Requests of a gateway: its rows are attempts and answers, which are put together here (docs/sources/litellm.md).

Rules kept here:
* attempts of one trace and one asked model group are one request, in order of time, until an answer;
* an answer that the gateway marks as a fallback closes the open requests of its trace: it is no new request, no
  turn and no choice of a person;
* an attempt long after the one before belongs to another request; a later success does not rescue the earlier one;
* one request gives at most one fault, credited to the model that was asked first;
* a request that nobody answered is lost only when the log has gone on long enough, else it is cut;
* rows of any number of files meet here, in any order: the result is a function of the set of events.

Events of a gateway name their trace in `turn` and the trace with the asked model group in `AttemptError.request` and
`Call.parent` (of a fallback: the group that was asked originally, where the log tells it).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from windvane_client.capabilities import attempts_known
from windvane_client.constants import Constants
from windvane_client.events import INFRA_CLASSES, AnyEvent, AttemptError, Call
from windvane_client.infra import CUT, LOST, RECOVERED_OTHER, RECOVERED_SAME

_UNKNOWN = "unknown"
_MOVED = frozenset({"fallback", "router"})


@dataclass(slots=True, eq=False)
class Request:
    """One logical request. `last`: time of its last event, µs. `over`: no further attempt is expected.

    `result`: of its fault, or empty where there was none. `failed`: it is over and nobody answered it.
    """

    first: AnyEvent
    trace: bytes | None
    group: bytes | None
    last: int
    family: str
    attempts: list[AttemptError] = field(default_factory=list)
    answer: Call | None = None
    over: bool = False

    @property
    def failed(self) -> bool:
        """Nobody answered, and nobody will."""
        return self.over and (self.answer is None or self.answer.status == "error")

    @property
    def two_sided(self) -> bool:
        """The log would also have shown the other result."""
        return any(attempts_known(attempt) for attempt in self.attempts)

    @property
    def result(self) -> str:
        """Word of `infra.RESULTS`, or empty."""
        if not any(attempt.error_class in INFRA_CLASSES for attempt in self.attempts):
            return ""
        if self.answer is None or self.answer.status == "error":
            if self.attempts[-1].error_class == "aborted":
                return CUT
            return LOST if self.over else CUT
        if self.answer.status == "aborted":
            return CUT
        if self.answer.route in _MOVED:
            return RECOVERED_OTHER
        if self.answer.served == _UNKNOWN and self.family != _UNKNOWN:
            return CUT  # nobody can say which model answered
        return RECOVERED_SAME if self.family in (_UNKNOWN, self.answer.served) else RECOVERED_OTHER


def requests_of(events: Iterable[AnyEvent], now: int, constants: Constants) -> list[Request]:
    """The requests behind one person's events of one conversation (or of none). `now`: moment of reading, µs."""
    found: list[Request] = []
    waiting: dict[bytes, Request] = {}
    for event in sorted((one for one in events if isinstance(one, AttemptError | Call)), key=_place):
        if isinstance(event, AttemptError):
            _attempt(event, found, waiting, constants)
        else:
            _answer(event, found, waiting, constants)
    for request in waiting.values():
        request.over = now - request.last >= constants.request_gap
    return found


def _place(event: AnyEvent) -> tuple[int, bool, int, bytes]:
    # Equal times: what failed came before what answered.
    return (event.ts or 0, isinstance(event, Call), event.seq, event.key)


def _begun(event: AnyEvent, group: bytes | None, family: str, found: list[Request]) -> Request:
    request = Request(event, event.turn, group, event.ts or 0, family)
    found.append(request)
    return request


def _still_open(request: Request | None, ts: int, constants: Constants) -> bool:
    if request is None:
        return False
    if ts - request.last < constants.request_gap:
        return True
    request.over = True
    return False


def _attempt(event: AttemptError, found: list[Request], waiting: dict[bytes, Request], constants: Constants) -> None:
    group = event.request or event.key
    request = waiting.get(group)
    if request is None or not _still_open(request, event.ts or 0, constants):
        request = waiting[group] = _begun(event, group, event.family, found)
    request.attempts.append(event)
    request.last = event.ts or 0
    if event.error_class == "aborted" or event.final:
        request.over = True
        del waiting[group]


def _answer(event: Call, found: list[Request], waiting: dict[bytes, Request], constants: Constants) -> None:
    ts = event.ts or 0
    group = event.parent or event.key
    request = waiting.pop(group, None)
    if request is not None and not _still_open(request, ts, constants):
        request = None
    if event.route == "fallback" and event.turn is not None:
        since = _place(request.first) if request is not None else (0, False, 0, b"")
        # Without a named group any open request of the trace; with it, what was tried after it on its behalf.
        names = [name for name, one in waiting.items() if one.trace == event.turn and _place(one.first) >= since]
        open_ones = [one for name in names if _still_open(one := waiting.pop(name), ts, constants)]
        if request is not None:
            open_ones.append(request)
        open_ones.sort(key=lambda one: _place(one.first))
        request = open_ones[0] if open_ones else None
        for more in open_ones[1:]:
            open_ones[0].attempts += more.attempts
            found.remove(more)
    if request is None:
        request = _begun(event, group, event.requested or event.served, found)
    request.answer, request.last, request.over = event, ts, True
