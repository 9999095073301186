# SPDX-License-Identifier: Apache-2.0
"""What happened after the provider failed: infra episodes (docs/signals.md, infra recovery).

Rules kept here:
* a run of failed attempts of one logical request is one infra episode, credited to the model that was asked;
* only rate limits of the vendor, overload, 5xx, time-outs and network faults open one; a person's own limits, bad
  requests and full contexts never do;
* answered by the same model: recovered; by a fallback, or never: not; cut by a person or by the end of the log: no
  trial;
* a success in a later turn does not rescue the turn before;
* a log that writes only the last failure cannot show a recovery, so it gives no trial.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from windvane_client.capabilities import attempts_known
from windvane_client.events import INFRA_CLASSES, AnyEvent, AttemptError, Call, TurnEnd

RECOVERED_SAME, RECOVERED_OTHER, LOST, CUT = "recovered_same", "recovered_other", "lost", "cut"
RESULTS = (RECOVERED_SAME, RECOVERED_OTHER, LOST, CUT)
_UNKNOWN = "unknown"


@dataclass(slots=True)
class Fault:
    """One infra episode. `family`: the model that was asked. `two_sided`: its log would also show a recovery."""

    family: str
    recorder: str
    client: str
    thread: str
    request: bytes | None
    two_sided: bool = False
    result: str = ""


def faults(events: Sequence[AnyEvent], *, goes_on: bool) -> list[Fault]:
    """Infra episodes among the events of one turn, in order. `goes_on`: the log continues after them."""
    found: list[Fault] = []
    waiting: list[Fault] = []
    for event in events:
        if isinstance(event, AttemptError):
            _attempt(event, found, waiting)
        elif isinstance(event, Call) and waiting:
            _call(event, waiting)
        elif isinstance(event, TurnEnd):
            for fault in waiting:
                fault.result = CUT if event.how == "interrupted" else LOST
            waiting.clear()
    for fault in waiting:
        fault.result = LOST if goes_on else CUT
    return found


def _attempt(event: AttemptError, found: list[Fault], waiting: list[Fault]) -> None:
    fault = _run_of(event, waiting)
    if event.error_class == "aborted":
        if fault is not None:
            _end(fault, CUT, waiting)
        return
    if fault is None and event.error_class in INFRA_CLASSES:
        fault = Fault(event.family, event.recorder, event.client, event.thread, event.request)
        found.append(fault)
        waiting.append(fault)
    if fault is None:
        return
    if fault.family == _UNKNOWN:
        fault.family = event.family
    fault.two_sided = fault.two_sided or (event.attempt is not None and attempts_known(event))
    if event.final:
        _end(fault, LOST, waiting)


def _run_of(event: AttemptError, waiting: Sequence[Fault]) -> Fault | None:
    """The open run that an attempt continues."""
    for fault in reversed(waiting):
        same_family = fault.family == event.family or _UNKNOWN in (fault.family, event.family)
        same_request = fault.request == event.request or None in (fault.request, event.request)
        if fault.thread == event.thread and same_family and same_request:
            return fault
    return None


def _call(call: Call, waiting: list[Fault]) -> None:
    fault = _answered(call, [fault for fault in waiting if fault.thread == call.thread])
    if fault is None or call.status == "error":
        return
    asked = fault.family
    if call.status == "aborted" or (call.served == _UNKNOWN and asked != _UNKNOWN):
        _end(fault, CUT, waiting)  # a person stopped it, or nobody can say which model answered
    elif call.route in ("fallback", "router") or (asked not in (_UNKNOWN, call.served)):
        _end(fault, RECOVERED_OTHER, waiting)
    else:
        _end(fault, RECOVERED_SAME, waiting)


def _answered(call: Call, open_runs: Sequence[Fault]) -> Fault | None:
    """The run that a call answers: the one it names, else the one of its model, else the oldest."""
    named = [f for f in open_runs if f.request is not None and f.request in (call.key, call.parent, call.turn)]
    asked = call.requested or call.served
    same = [f for f in named or open_runs if f.family in (asked, _UNKNOWN)]
    return next(iter(same or named or open_runs), None)


def _end(fault: Fault, result: str, waiting: list[Fault]) -> None:
    fault.result = result
    waiting.remove(fault)
