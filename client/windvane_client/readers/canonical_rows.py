# SPDX-License-Identifier: Apache-2.0
"""Canonical JSONL: the fields of each kind of line.

Rules kept here:
* every struct refuses unknown fields;
* ids are strings or whole numbers, classes are strings checked against closed lists after decoding;
* `mode_evidence`, `evidence` and `reader` may be given and are dropped: they could hold anything.
"""

from __future__ import annotations

import re

import msgspec

from windvane_client.readers.lines import Rejected

MAX_ID_BYTES = 256
MAX_SEQ = 1 << 53
"""What every program reads as the same whole number; the store holds no more than 64 bits."""
_RECORDER = re.compile(r"canonical(?:/[a-z0-9][a-z0-9_-]{0,31})?")

Id = str | int
MaybeId = Id | None


class KindOnly(msgspec.Struct):
    """What decides before any field is checked."""

    k: str | None = None
    v: int = 1


class Line(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Header of every line.

    `parent` names the `key` of the prompt or call above. A file links all its prompts and calls or none of them: a
    prompt without `parent` among linked ones starts anew, and what it does not descend from counts as rewound.
    """

    k: str
    v: int = 1
    source: str = ""
    recorder: str = "canonical"
    reader: str = ""
    key: MaybeId = None
    person: Id | msgspec.UnsetType | None = msgspec.UNSET
    conv: Id | msgspec.UnsetType | None = msgspec.UNSET
    project: MaybeId = None
    thread: str = "main"
    ts: str | int | None = None
    seq: int | None = None
    mode: str = "unknown"
    mode_evidence: str = ""
    client: str = "other"
    kind_hint: str | None = None
    turn: MaybeId = None
    parent: MaybeId = None
    row: MaybeId = None

    def distinct(self) -> tuple[object, ...]:
        """Fields of this kind that tell two events of one moment apart, for lines without `key`."""
        return ()


class Prompt(Line, kw_only=True, forbid_unknown_fields=True):
    """`k` = prompt."""

    origin: str

    def distinct(self) -> tuple[object, ...]:
        """See `Line.distinct`."""
        return (self.origin,)


class Call(Line, kw_only=True, forbid_unknown_fields=True):
    """`k` = call; `key` is required."""

    served: str | None = None
    requested: str | None = None
    status: str = "ok"
    route: str = "direct"


class AttemptError(Line, kw_only=True, forbid_unknown_fields=True):
    """`k` = attempt_error."""

    error_class: str
    family: str | None = None
    request: MaybeId = None
    attempt: int | None = None
    final: bool = False

    def distinct(self) -> tuple[object, ...]:
        """See `Line.distinct`."""
        return (self.request, self.attempt, self.final)


class Tool(Line, kw_only=True, forbid_unknown_fields=True):
    """`k` = tool; `key` is required."""

    family: str | None = None
    tool_class: str = "unknown"
    outcome: str
    call: MaybeId = None
    origin: str = "unknown"
    result_ts: str | int | None = None


class ModelSet(Line, kw_only=True, forbid_unknown_fields=True):
    """`k` = model_set."""

    family: str | None = None
    by: str = "unknown"

    def distinct(self) -> tuple[object, ...]:
        """See `Line.distinct`."""
        return (self.by,)


class TurnEnd(Line, kw_only=True, forbid_unknown_fields=True):
    """`k` = turn_end."""

    how: str


class Outcome(Line, kw_only=True, forbid_unknown_fields=True):
    """`k` = outcome."""

    value: str
    evidence: str = ""


class Vote(Line, kw_only=True, forbid_unknown_fields=True):
    """`k` = vote."""

    a: str
    b: str
    winner: str
    blind: str = "no"
    item: Id
    judge: str = "person"


class Close(Line, kw_only=True, forbid_unknown_fields=True):
    """`k` = close."""

    how: str


class Gap(Line, kw_only=True, forbid_unknown_fields=True):
    """`k` = gap."""

    what: str
    count: int = 1
    since: str | int | None = None
    until: str | int | None = None

    def distinct(self) -> tuple[object, ...]:
        """See `Line.distinct`."""
        return (self.what,)


BY_KIND: dict[str, type[Line]] = {
    "prompt": Prompt,
    "call": Call,
    "attempt_error": AttemptError,
    "tool": Tool,
    "model_set": ModelSet,
    "turn_end": TurnEnd,
    "outcome": Outcome,
    "vote": Vote,
    "close": Close,
    "gap": Gap,
}


def text(raw: object) -> str:
    """An id as text.

    Raises:
        Rejected: longer than 256 bytes, or no id at all.
    """
    found = str(raw) if isinstance(raw, str | int) else ""
    if not found or len(found.encode("utf-8", "surrogatepass")) > MAX_ID_BYTES:
        raise Rejected("bad_value")
    return found


def recorder(raw: str) -> str:
    """`canonical`, or `canonical/<mapping>`.

    Raises:
        Rejected: anything else.
    """
    if not _RECORDER.fullmatch(raw):
        raise Rejected("bad_value")
    return raw


def one_of(value: str, allowed: tuple[str, ...]) -> None:
    """A class without which the event means nothing.

    Raises:
        Rejected: outside the closed list.
    """
    if value not in allowed:
        raise Rejected("bad_value")


def known(value: str, allowed: tuple[str, ...]) -> str:
    """A class of a closed list; anything else is `unknown`."""
    return value if value in allowed else "unknown"
