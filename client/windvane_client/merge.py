# SPDX-License-Identifier: Apache-2.0
"""Copies of one event become one event, whatever the order in which they were read (docs/signals.md, duplicates).

Rules kept here:
* copies merge by (person, kind of event, `key`), never by equal content, equal counts or equal seconds, never across
  persons;
* the first copy fixes time and place; the last copy wins for what can change (status, served model, outcome);
* a known value beats an unknown one, a main-thread copy beats a side copy;
* first and last mean (time, reading order, bytes), so the result is a function of the *set* of copies: the order of
  files, repeated runs and splits into runs cannot change it.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Union

import msgspec

from windvane_client.events import (
    MAIN,
    AnyEvent,
    AttemptError,
    Call,
    Close,
    Gap,
    ModelSet,
    Outcome,
    Prompt,
    Tool,
    TurnEnd,
    Vote,
)
from windvane_privacy.catalogue import OTHER, UNKNOWN

KINDS: tuple[type[AnyEvent], ...] = (Prompt, Call, AttemptError, Tool, ModelSet, TurnEnd, Outcome, Vote, Close, Gap)
"""Kinds of event in the order of their number in the store."""
KIND_NUMBER: dict[type[AnyEvent], int] = {kind: number for number, kind in enumerate(KINDS)}
KIND_NAMES: tuple[str, ...] = tuple(str(kind.__struct_config__.tag) for kind in KINDS)
NO_TIME = 2**63 - 1
"""Sorts an event without a time behind all others."""

_NO_RESULT = ("no_result", None)
_NOT_OF_A_RESULT = ("unknown", "unknown", "unknown", None)
_SAME = attrgetter("thread", "mode", "kind_hint", "client")

# The same structs as arrays: a third of the size on disk. `msgspec.structs.astuple` writes what these read.
_ROWS = tuple(
    msgspec.defstruct(f"{kind.__name__}Row", [], bases=(kind,), array_like=True, tag=name)
    for kind, name in zip(KINDS, KIND_NAMES, strict=True)
)
_DECODER: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(Union[_ROWS])  # noqa: UP007 - built at run time
_ENCODER = msgspec.msgpack.Encoder()
_decode = _DECODER.decode
_encode, _astuple = _ENCODER.encode, msgspec.structs.astuple
_NUMBERED: dict[type[msgspec.Struct], tuple[int, str]] = {
    struct: (number, KIND_NAMES[number]) for group in (KINDS, _ROWS) for number, struct in enumerate(group)
}
"""Number and name of a kind, also of the events that `unpack` makes."""


def pack(event: AnyEvent) -> bytes:
    """Compact bytes of one event: msgpack array of the kind's tag and its fields."""
    return _encode((_NUMBERED[type(event)][1], *_astuple(event)))


Copy = tuple[bytes, int, bytes, bytes, int, int, bytes]
"""A row of the store: person (or nothing), number of the kind, key, conversation (or nothing), time, reading order, and
`pack`."""
NOBODY = b""


def copy_of(event: AnyEvent) -> Copy:
    """What the store keeps of one event."""
    number, name = _NUMBERED[type(event)]
    ts = event.ts
    return (
        event.person or NOBODY, number, event.key, event.conv or b"", NO_TIME if ts is None else ts, event.seq,
        _encode((name, *_astuple(event))),
    )  # fmt: skip


def event_of(copy: Copy) -> AnyEvent:
    """The event of a copy, of the kind's own type."""
    kind = KINDS[copy[1]]
    event: AnyEvent = kind(**msgspec.structs.asdict(unpack(copy[-1])))
    return event


def unpack(raw: bytes) -> AnyEvent:
    """The event of `pack`. Its type is a subclass of the kind's struct."""
    event: AnyEvent = _decode(raw)
    return event


def structs_of(*kinds: type[AnyEvent]) -> frozenset[type[msgspec.Struct]]:
    """The types of events of these kinds, made here or by `unpack`: a look-up is cheaper than asking each kind."""
    return frozenset(struct for struct, (number, _) in _NUMBERED.items() if KINDS[number] in kinds)


def kind_number(event: AnyEvent) -> int:
    """Number of the event's kind in `KINDS`."""
    return _NUMBERED[type(event)][0]


def merge(copies: Sequence[bytes]) -> tuple[AnyEvent, list[tuple[bytes, bytes | None]]]:
    """One event from the packed, distinct copies of one (person, kind, key), and (row, parent) of every copy: a merged
    event still stands for all its log rows. At least one copy."""
    ordered = [event for _, _, _, event in sorted(map(_placed, copies))]
    if len(ordered) == 2 and _one_call(ordered[0], ordered[1]):
        return ordered[0], []
    links: dict[bytes, bytes | None] = {}
    for event in ordered:
        # Several log rows of one answer have one id here: a link to itself only says "the row before".
        if event.row is not None and event.parent != event.row:
            links.setdefault(event.row, event.parent)
    main = [event for event in ordered if event.thread == MAIN] or ordered
    backwards = main[::-1]
    if len(main) < len(ordered):
        backwards += [event for event in reversed(ordered) if event.thread != MAIN]
    first, last = main[0], main[-1]
    if first.mode == "unknown":
        _take(first, ordered, "unknown", "mode", "mode_evidence")
    _take(first, ordered, None, "kind_hint")
    _take(first, ordered, "other", "client")
    if isinstance(first, Call) and isinstance(last, Call):
        first.status = last.status
        _take(first, backwards, "unknown", "served")
        if first.served == OTHER:
            # A log that was read again under a newer list of models: the copy that knows the family is the better one.
            _take(first, [copy for copy in backwards if getattr(copy, "served", OTHER) != UNKNOWN], OTHER, "served")
        _take(first, backwards, None, "requested")
        # A side copy of a main-thread answer (a replayed /btw) says nothing about how the answer came about.
        _take(first, main[::-1], "direct", "route")
    elif isinstance(first, Tool):
        _take(first, backwards, "unknown", "family")
        _take(first, backwards, "unknown", "tool_class")
        _take(first, backwards, "unknown", "origin")
        _take(first, backwards, None, "call")
        _tool_result(first, backwards)
    elif isinstance(first, AttemptError) and isinstance(last, AttemptError):
        first.error_class = last.error_class
        first.final = any(isinstance(event, AttemptError) and event.final for event in ordered)
        _take(first, backwards, "unknown", "family")
        _take(first, main, None, "attempt")
        _take(first, main, None, "request")
    elif not isinstance(first, Prompt):
        for name in type(first).__mro__[1].__annotations__:
            setattr(first, name, getattr(last, name))
    return first, sorted(links.items())


def _one_call(first: AnyEvent, last: AnyEvent) -> bool:
    """Merge a tool call into its result where they differ in nothing but what each alone can know: most of all merges
    are this one. False, and nothing done, for everything else."""
    if not isinstance(first, Tool) or not isinstance(last, Tool) or first.row is not None or last.row is not None:
        return False
    if (last.family, last.tool_class, last.origin, last.call) != _NOT_OF_A_RESULT or _SAME(first) != _SAME(last):
        return False
    if last.result_ts is None or last.outcome == "no_result" or (first.outcome, first.result_ts) != _NO_RESULT:
        return False
    first.outcome, first.result_ts = last.outcome, last.result_ts
    return True


def _placed(raw: bytes) -> tuple[int, int, bytes, AnyEvent]:
    """(time, reading order, bytes) of a copy, then the copy; bytes are distinct, so no two copies are ever compared."""
    event: AnyEvent = _decode(raw)
    ts = event.ts
    return (NO_TIME if ts is None else ts, event.seq, raw, event)


def _take(into: AnyEvent, copies: Sequence[AnyEvent], unknown: str | None, field: str, *with_it: str) -> None:
    """Take `field` (and the fields that explain it) from the first of `copies` that knows it."""
    for event in copies:
        value = getattr(event, field)
        if value != unknown:
            setattr(into, field, value)
            for name in with_it:
                setattr(into, name, getattr(event, name))
            return


def _tool_result(first: Tool, backwards: Sequence[AnyEvent]) -> None:
    """The last copy that knows a result decides; the row of the call itself knows none."""
    started = first.ts
    results = [copy for copy in backwards if isinstance(copy, Tool) and (copy.outcome, copy.result_ts) != _NO_RESULT]
    if not results:
        return
    best = next((copy for copy in results if copy.outcome != "no_result"), results[0])
    first.outcome = best.outcome
    if best.result_ts is not None:
        first.result_ts = best.result_ts
    elif best.ts is not None and started is not None and best.ts > started:
        first.result_ts = best.ts
