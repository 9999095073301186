# SPDX-License-Identifier: Apache-2.0
"""Rows that a collector writes: one canonical event a line, ids already hashed, below a first line that names the key.

Rules kept here:
* the first line says which collector key made the ids, and nothing about the machine or its person;
* an id is 16 bytes, a class a word of its closed list, a name of a family one of the catalogue: whatever else a shared
  folder holds is rejected, so that no text can come in this way;
* source, recorder and mode of the log stay with the event, so that it means the same as if the agent had read it.
"""

from __future__ import annotations

import re
from typing import Final, cast

import msgspec

from windvane_client import events as ev
from windvane_client.capabilities import CAPABILITIES
from windvane_client.events import AnyEvent
from windvane_client.ids import ID_BYTES
from windvane_client.readers.lines import LineDecoder, Rejected, plausible
from windvane_privacy.catalogue import KINDS, OTHER, SPECIAL_FAMILIES, Catalogue

HEADER: Final = "collector"
COLLECT: Final = "collect"
"""Source of the events that collecting itself gives: what could not be read."""

_SOURCES: Final = frozenset(name.partition("/")[0] for name in CAPABILITIES) | frozenset(CAPABILITIES) | {COLLECT}
_RECORDER: Final = re.compile(r"[a-z_]{1,24}(?:/[a-z0-9][a-z0-9_-]{0,31})?")
_READER: Final = re.compile(r"[a-z_]{1,24}(?:/[a-z0-9_.]{1,24}){1,2}(?:\+no-attempts)?")
_EVIDENCE: Final = re.compile(r"[A-Za-z_.-]{0,40}")
"""Names of fields and of lists of rules.toml."""
_LARGEST: Final = 1 << 53

_IDS: Final = ("key", "person", "conv", "project", "turn", "parent", "row", "request", "call", "item")
_FAMILIES: Final = ("served", "requested", "family", "a", "b")
_TIMES: Final = ("ts", "result_ts", "since", "until")
_NUMBERS: Final = ("seq", "attempt", "count")
_WORDS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("thread", (ev.MAIN, ev.SIDE)),
    ("mode", ev.MODES),
    ("client", ev.CLIENTS),
    ("status", ev.CALL_STATUS),
    ("route", ev.ROUTES),
    ("error_class", ev.ERROR_CLASSES),
    ("tool_class", ev.TOOL_CLASSES),
    ("outcome", ev.TOOL_OUTCOMES),
    ("by", ev.MODEL_SETTERS),
    ("value", ev.OUTCOME_VALUES),
    ("winner", ("a", "b", "tie")),
    ("blind", ("proved", "attested", "no")),
    ("judge", ("person", "llm")),
    ("what", ev.GAPS),
)
_BY_KIND: Final[dict[type[AnyEvent], tuple[tuple[str, tuple[str, ...]], ...]]] = {
    ev.Prompt: (("origin", ev.PROMPT_ORIGINS),),
    ev.Tool: (("origin", ("builtin", "mcp", "unknown")),),
    ev.TurnEnd: (("how", ev.TURN_ENDS),),
    ev.Close: (("how", ("explicit", "new_conv", "idle", "log_end")),),
}


class Header(msgspec.Struct, frozen=True):
    """The first line. `number`: which collector key made the ids."""

    v: int
    k: str
    number: int


class _KindOnly(msgspec.Struct):
    k: str | None = None
    v: int | None = None


_HEADER: Final = LineDecoder(Header)
_KIND: Final = LineDecoder(_KindOnly)
_EVENT: Final = LineDecoder(cast("type[AnyEvent]", AnyEvent))
_KINDS_OF_EVENT: Final = (
    ev.Prompt, ev.Call, ev.AttemptError, ev.Tool, ev.ModelSet, ev.TurnEnd, ev.Outcome, ev.Vote, ev.Close, ev.Gap,
)  # fmt: skip
_KNOWN: Final = frozenset(str(kind.__struct_config__.tag) for kind in _KINDS_OF_EVENT)
_encode = msgspec.json.Encoder().encode


def header(number: int) -> bytes:
    """The first line of a file, with its newline."""
    return _encode(Header(ev.VERSION, HEADER, number)) + b"\n"


def line(event: AnyEvent) -> bytes:
    """One event as a canonical line, with its newline. Ids are base64 of 16 bytes, times µs UTC."""
    return b'{"v":%d,' % ev.VERSION + _encode(event)[1:] + b"\n"


def read_header(raw: bytes) -> Header:
    """The first line.

    Raises:
        Rejected: it is none.
    """
    found = _HEADER.decode(raw)
    if found.k != HEADER or found.v != ev.VERSION:
        raise Rejected("bad_value")
    return found


def read_event(raw: bytes, catalogue: Catalogue, now: int) -> AnyEvent | None:
    """The event of a line, checked; None for a kind or version of another time. `now`: µs UTC.

    Raises:
        Rejected: with the reason.
    """
    try:
        event = _EVENT.decode(raw)
    except Rejected as error:
        if error.reason not in ("wrong_type", "missing_field"):
            raise
        shape = _KIND.decode(raw)
        if shape.k in (None, *_KNOWN) and shape.v in (None, ev.VERSION):
            raise
        return None
    if _KIND.decode(raw).v != ev.VERSION:
        return None
    _check(event, now)
    for name in _FAMILIES:
        family = getattr(event, name, None)
        if family is not None and family not in SPECIAL_FAMILIES and family not in catalogue:
            # A family of another list of models: as if its name were unknown to this one.
            setattr(event, name, OTHER)
    return event


def _check(event: AnyEvent, now: int) -> None:
    good = (
        event.source in _SOURCES
        and _RECORDER.fullmatch(event.recorder)
        and _READER.fullmatch(event.reader)
        and _EVIDENCE.fullmatch(event.mode_evidence)
        and (event.kind_hint is None or event.kind_hint in KINDS)
        and all(_is_id(getattr(event, name, None)) for name in _IDS)
        and all(0 <= (getattr(event, name, None) or 0) <= _LARGEST for name in _NUMBERS)
        and all(
            getattr(event, name, allowed[0]) in allowed
            for name, allowed in (*_WORDS, *_BY_KIND.get(type(event), ()))
            if not (name == "outcome" and not isinstance(event, ev.Tool))
        )
    )
    if not good:
        raise Rejected("bad_value")
    if isinstance(event, ev.Outcome):
        event.evidence = event.evidence if _EVIDENCE.fullmatch(event.evidence) else ""
    for name in _TIMES:
        ts = getattr(event, name, None)
        if ts is not None and not plausible(ts, now):
            raise Rejected("bad_time")
    if event.ts is None and not isinstance(event, ev.Gap):
        raise Rejected("missing_field")


def _is_id(value: bytes | None) -> bool:
    return value is None or len(value) == ID_BYTES
