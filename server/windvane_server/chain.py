# SPDX-License-Identifier: Apache-2.0
"""The coordinator's end of the public log: append, find, hand out.

Rules kept here:
* an entry is appended inside the transaction of whatever it stands for: both happen or neither;
* what may happen once has a slot; the first entry of a slot counts and is never replaced;
* the same entry again gets the same receipt, byte for byte;
* an answer always reaches to the signed head, so that a reader notices what is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, Row, select

from windvane_privacy import log
from windvane_privacy.canonical import JsonValue
from windvane_privacy.errors import MalformedInput
from windvane_privacy.identity import SigningKey
from windvane_server.schema import leaves


@dataclass(frozen=True, slots=True)
class Entry:
    """One place of the log. `previous`: head of the chain before it, hex."""

    index: int
    raw: bytes
    hash: str
    previous: str

    @property
    def leaf(self) -> log.Leaf:
        """The entry, read."""
        return log.read_leaf(self.raw)


def slot(kind: str, round_id: str, who: int | None = None) -> str:
    """The name of what may happen once: a round's step, or one member's or guardian's part of it."""
    return f"{round_id}/{kind}" if who is None else f"{round_id}/{kind}/{who}"


class Chain:
    """The log of one origin, signed by the coordinator's key."""

    def __init__(self, origin: str, key: SigningKey) -> None:
        self.origin = origin
        self._key = key

    def append(self, connection: Connection, raw: bytes, place: str | None) -> Entry:
        """Put a leaf at the end. The caller has verified it and has looked into its slot."""
        leaf = log.read_leaf(raw)
        index, previous = self._end(connection)
        head = log.next_head(previous, leaf.hash)
        connection.execute(
            leaves.insert().values(
                idx=index,
                raw=raw,
                hash=leaf.hash,
                previous=previous,
                head=head,
                round=leaf.round,
                kind=leaf.type,
                slot=place,
            )
        )
        return Entry(index, raw, leaf.hash, previous)

    def say(
        self,
        connection: Connection,
        kind: str,
        round_id: str,
        fields: Mapping[str, JsonValue],
        now: datetime,
        place: str | None,
    ) -> Entry:
        """Append an entry of the coordinator's own; the day is added."""
        raw = log.make_leaf(kind, round_id, {**fields, "day": _day(now)}, self._key)
        return self.append(connection, raw, place)

    def find(self, connection: Connection, place: str) -> Entry | None:
        """The entry of a slot."""
        row = connection.execute(select(leaves).where(leaves.c.slot == place)).one_or_none()
        return None if row is None else _entry(row)

    def at(self, connection: Connection, index: int) -> Entry:
        """The entry at a place that is known to exist."""
        return _entry(connection.execute(select(leaves).where(leaves.c.idx == index)).one())

    def receipt(self, entry: Entry) -> bytes:
        """The signed receipt of an entry. Ed25519 is deterministic: it is the same each time."""
        return log.make_receipt(entry.index, entry.hash, entry.previous, self.origin, self._key)

    def answer(self, connection: Connection, start: int, now: datetime) -> bytes:
        """All entries from `start` on, up to a head signed now.

        Raises:
            MalformedInput: the log is shorter than `start`.
        """
        size, head = self._end(connection)
        if start > size:
            raise MalformedInput("The log is shorter than that.")
        rows = connection.execute(
            select(leaves.c.raw, leaves.c.previous).where(leaves.c.idx >= start).order_by(leaves.c.idx)
        ).all()
        previous = rows[0].previous if rows else head
        signed = log.make_head(size, head, _day(now), self.origin, self._key)
        return log.encode_leaves(start, previous, [row.raw for row in rows], signed)

    def _end(self, connection: Connection) -> tuple[int, str]:
        row = connection.execute(
            select(leaves.c.idx, leaves.c.head).order_by(leaves.c.idx.desc()).limit(1)
        ).one_or_none()
        return (0, log.first_head(self.origin)) if row is None else (row.idx + 1, row.head)


def _entry(row: Row[tuple[object, ...]]) -> Entry:
    return Entry(row.idx, row.raw, row.hash, row.previous)


def _day(now: datetime) -> str:
    return now.date().isoformat()
