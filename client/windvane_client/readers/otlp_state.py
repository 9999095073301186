# SPDX-License-Identifier: Apache-2.0
"""Telemetry (OTLP JSON): one row with its header, and what a pass remembers of a session.

Rules kept here:
* a session id and an identity are hashed as soon as they are seen; only the hashes stay in an event;
* an identity that nobody mapped gives a gap, never an event; a person who opted out leaves no trace;
* the mode is what a field declares; the terminal's name declares nothing;
* memory does not grow with the file: sessions and traces are bounded;
* a tool call is credited to a model only if all answers of its turn came from that one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

from windvane_client.events import MAIN, AnyEvent, Gap, Tool
from windvane_client.readers.header import Fields
from windvane_client.readers.lines import Rejected, plausible
from windvane_client.readers.otlp_rows import PERSON_NAMES, Attributes, Present
from windvane_client.readers.protocol import ReadContext
from windvane_privacy.catalogue import UNKNOWN

VERSION = "1.0.0"
_MAX_SESSIONS = 4096
_MAX_DENIED = 256
_MAX_DURATION = 86_400_000
_K = TypeVar("_K")
_V = TypeVar("_V")


class OptedOut(Exception):
    """The row belongs to a person who opted out."""


@dataclass(slots=True)
class Row:
    """One log record or span. `start`, `end`: ns UTC (a log record has only `start`). `trace`: opaque id or empty.

    `name`: the event's name without its program's prefix, empty for a span; `heads`: first bytes of marked texts;
    `place`: natural id of a row without one.
    """

    attrs: Attributes
    heads: dict[str, bytes]
    dialect: str
    name: str
    is_span: bool
    start: int | None
    end: int | None
    trace: str
    failed: bool
    place: str

    def text(self, *names: str) -> str | None:
        """The first of the attributes that is there, as text.

        Raises:
            Rejected: it is no text and no whole number.
        """
        for name in names:
            value = self.attrs.get(name)
            if value is None or value == "":
                continue
            if isinstance(value, bool | float | Present):
                raise Rejected("wrong_type")
            return str(value)
        return None

    def number(self, *names: str) -> int | None:
        """The first of the attributes that holds a whole number (also as text) from 0 to 10^9."""
        for name in names:
            value = self.attrs.get(name)
            if isinstance(value, float) and value.is_integer():
                value = int(value)
            if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
                value = int(value)
            if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1_000_000_000:
                return value
        return None

    def truth(self, name: str) -> bool | None:
        """A truth value that may be written as a word; None where it is neither."""
        value = self.attrs.get(name)
        if isinstance(value, str):
            return {"true": True, "false": False}.get(value.strip().casefold())
        return value if isinstance(value, bool) else None

    def status(self, *names: str) -> int | str | None:
        """The first of the attributes that holds an HTTP status or a code word."""
        for name in names:
            value = self.attrs.get(name)
            if isinstance(value, int | str) and not isinstance(value, bool):
                return value
        return None

    def duration(self) -> int:
        """How long the row's event took, µs; 0 where it does not say so."""
        return min(self.number("duration_ms") or 0, _MAX_DURATION) * 1000


@dataclass(slots=True)
class Session:
    """What a pass remembers of one session. `families`: that answered since the last prompt; `route`: of its calls;
    `turn`: keyed id of the last prompt; `errors`, `last_error`: failed attempts in a row; `denied`: refused calls.
    """

    automation: str = ""
    families: set[str] = field(default_factory=set)
    route: str = "direct"
    turn: bytes | None = None
    errors: int = 0
    last_error: bytes = b""
    denied: dict[str, None] = field(default_factory=dict)

    @property
    def family(self) -> str:
        """The model behind the turn's tool calls, if it was one."""
        return next(iter(self.families)) if len(self.families) == 1 else UNKNOWN

    def opened(self, turn: bytes) -> None:
        """A prompt came."""
        self.turn = turn
        self.families = set()
        self.errors = 0

    def copy(self) -> Session:
        """What is known now, for a row that turns out to be malformed."""
        return replace(self, families=set(self.families), denied=dict(self.denied))

    def answered(self, family: str) -> None:
        """A model answered."""
        self.families.add(family)
        self.errors = 0

    def failed(self, key: bytes) -> int:
        """Number of this failed attempt in its row of failures; a copy of the last one has its number."""
        if key != self.last_error:
            self.errors += 1
            self.last_error = key
        return max(self.errors, 1)

    def deny(self, tool: str) -> None:
        """This tool call was refused; what follows about it says only that it did not succeed."""
        self.denied[tool] = None
        if len(self.denied) > _MAX_DENIED:
            del self.denied[next(iter(self.denied))]


class _Person(NamedTuple):
    """Who a row's identities are. `stated`: keyed id of the first of them."""

    excluded: bool
    stated: bytes | None
    person: bytes | None


def _make_room(known: dict[_K, _V]) -> None:
    if len(known) >= _MAX_SESSIONS:
        known.clear()


class Pass:
    """One pass over one file: the header of the row that is being read, and the sessions."""

    def __init__(self, context: ReadContext) -> None:
        self.context = context
        self.out: list[AnyEvent] = []
        """Events of the row that is being read."""
        self.row = Row({}, {}, "", "", False, None, None, "", False, "")
        self.session = self._before = Session()
        self._sessions: dict[tuple[str, str], Session] = {}
        self._session_id = ""
        self._seq = 0
        self._kinds: dict[tuple[str, str], str | None] = {}
        self._fields: Fields = self._header("", None, None)
        self._nobody = False
        self._people: dict[tuple[str, ...], _Person] = {}
        self._convs: dict[tuple[str, str], bytes] = {}

    def start(self, row: Row, session: str | None, client: str, namespace: str) -> None:
        """Begin a row. `session`: raw id of its conversation.

        Raises:
            OptedOut: its person opted out.
            Rejected: a time before 2020 or more than a day ahead.
        """
        self.row, self.out = row, []
        self._seq += 1
        ts = None if row.start is None else row.start // 1000
        if ts is not None and not plausible(ts, self.context.now):
            raise Rejected("bad_time")
        person = self._person(row)
        self._session_id = session or ""
        self.session = self._session_of(row.dialect, session) if session else Session()
        self._before = self.session.copy()
        conv = self.conversation(namespace, session) if session else None
        self._fields = self._header(row.dialect, person, conv)
        self._fields["ts"] = ts
        self._fields["client"] = client
        self._fields["kind_hint"] = self._kind(row.dialect, client)

    def take_back(self) -> None:
        """The row is rejected: its session is as it was before."""
        if self._session_id:
            self._sessions[self.row.dialect, self._session_id] = self._before

    def _header(self, dialect: str, person: bytes | None, conv: bytes | None) -> Fields:
        recorder = f"otlp/{dialect}"
        sequence = self.row.number("event.sequence")
        return Fields(
            source=recorder,
            recorder=recorder,
            reader=f"otlp/{VERSION}",
            key=b"",
            person=person,
            conv=conv,
            project=None,
            thread=MAIN,
            ts=None,
            seq=self._seq if sequence is None else sequence,
            mode="unknown",
            mode_evidence="",
            client="other",
            kind_hint=None,
            parent=None,
            row=None,
        )

    def _person(self, row: Row) -> bytes | None:
        ids, facts = self.context.ids, self.context.facts
        stated = [name for name in PERSON_NAMES if name in row.attrs]
        identities = [
            f"{'email' if name == 'user.email' else 'otlp'}:{value}"
            for name in stated
            if isinstance(value := row.attrs[name], str | int) and value != ""
        ]
        named = tuple(identities)
        known = self._people.get(named)
        if known is None:
            # Rows of one person follow each other, so who that is, is looked up once.
            _make_room(self._people)
            known = self._people[named] = _Person(
                any(map(ids.excluded, named)),
                ids.key("otlp/person", named[0]) if named else None,
                next((person for one in named if (person := ids.person(one)) is not None), None),
            )
        if known.excluded:
            raise OptedOut
        self._nobody = False
        if not stated:
            return self.context.machine_person
        facts.saw_person(known.stated)
        self._nobody = known.person is None
        return known.person

    def conversation(self, namespace: str, session: str) -> bytes:
        """Keyed id of a session, hashed once."""
        known = self._convs.get((namespace, session))
        if known is None:
            _make_room(self._convs)
            known = self._convs[namespace, session] = self.context.ids.conv(namespace, session)
        return known

    def _session_of(self, dialect: str, session: str) -> Session:
        known = self._sessions.get((dialect, session))
        if known is None:
            _make_room(self._sessions)
            known = self._sessions[dialect, session] = Session()
        return known

    def _kind(self, dialect: str, client: str) -> str | None:
        rule = self.context.kind_rule
        if rule is None:
            return None
        if (dialect, client) not in self._kinds:
            recorder, log_dir = f"otlp/{dialect}", self.context.log_dir
            attributes = {"source": "otlp", "recorder": recorder, "client": client, "log_dir": log_dir}
            self._kinds[dialect, client] = rule(attributes)
        return self._kinds[dialect, client]

    def mode(self, mode: str, evidence: str) -> None:
        """What the row or its session declares."""
        self._fields["mode"], self._fields["mode_evidence"] = mode, evidence

    def thread(self, thread: str) -> None:
        """Main thread or side thread."""
        self._fields["thread"] = thread

    @property
    def ts(self) -> int | None:
        """Time of the row, µs UTC."""
        return self._fields["ts"]

    def key(self, kind: str, *parts: str | int | None) -> bytes:
        """Keyed id of an event of the row's dialect, inside its session."""
        raw = "\0".join("" if part is None else str(part) for part in (self._session_id, *parts))
        return self.context.ids.key(f"otlp/{self.row.dialect}/{kind}", raw)

    def own_key(self, kind: str, *parts: str | None) -> bytes:
        """Keyed id made of the event's number in its session, else of its time and of what tells two events apart."""
        sequence = self.row.text("event.sequence")
        if sequence is not None:
            return self.key(kind, "sequence", sequence)
        if self.row.start is None:
            return self.key(kind, "place", self.row.place)
        return self.key(kind, "time", self.row.name, self.row.start, self.row.text("event.timestamp"), *parts)

    def of(self, key: bytes, *, node: bool = False) -> Fields:
        """Header of an event of this row. `node`: a prompt or call, which other events can name."""
        self._fields["key"] = key
        self._fields["row"] = key if node else None
        return self._fields

    def family(self, *raw: str | None) -> str:
        """Family of the first name that is there."""
        catalogue, aliases = self.context.catalogue, self.context.aliases
        return next((catalogue.resolve(one, aliases) for one in raw if one), UNKNOWN)

    def tool(self, raw: str | None, name: str, outcome: str, turn: bytes | None, *, mcp: bool = False) -> None:
        """One tool call with its result; it began as long before the row as the row says that it took."""
        tool_class, origin = self.context.tools.classify(name)
        if mcp:
            tool_class, origin = "mcp" if tool_class == "unknown" else tool_class, "mcp"
        head = self.of(self.key("tool", raw, name) if raw else self.own_key("tool", name))
        end = self.ts
        if end is not None:
            head["ts"] = end - self.row.duration()
        self.out.append(
            Tool(
                **head,
                turn=turn,
                family=self.session.family,
                tool_class=tool_class,
                outcome=outcome,
                origin=origin,
                result_ts=end,
            )
        )

    def events(self) -> list[AnyEvent]:
        """The row's events, or a gap where nobody says whose they are."""
        if self.out and self._nobody:
            return [Gap(**self.of(self.key("gap", "person", self.row.place)), what="person_unknown")]
        return self.out

    def rejected(self, place: str) -> Gap:
        """A row that could not be read, in the conversation of the last good one."""
        self._seq += 1
        self._fields["seq"] = self._seq
        return Gap(
            **self.of(self.context.ids.key("otlp/rejected", f"{self.context.file_key.hex()}:{place}")),
            what="rows_rejected",
        )
