# SPDX-License-Identifier: Apache-2.0
"""The table of the public log's entries: append, find.

Rules kept here:
* an entry is appended inside the transaction of whatever it stands for: both happen or neither;
* what may happen once has a slot; the first entry of a slot counts and is never replaced.

What is shown of them, and under which checkpoint, is `checkpoints.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, Row, func, select

from windvane_privacy.canonical import JsonValue
from windvane_privacy.identity import SigningKey
from windvane_privacy.leaf import Leaf, make_leaf, read_leaf
from windvane_server.schema import leaves


@dataclass(frozen=True, slots=True)
class Entry:
    """One place of the log. `hash`: leaf hash, hex."""

    index: int
    raw: bytes
    hash: str

    @property
    def leaf(self) -> Leaf:
        """The entry, read."""
        return read_leaf(self.raw)


def slot(kind: str, round_id: str, who: int | None = None) -> str:
    """The name of what may happen once: a round's step, or one member's or guardian's part of it."""
    return f"{round_id}/{kind}" if who is None else f"{round_id}/{kind}/{who}"


class Entries:
    """The entries of one log. `key` signs the coordinator's own."""

    def __init__(self, key: SigningKey) -> None:
        self._key = key

    def append(self, connection: Connection, raw: bytes, place: str | None) -> Entry:
        """Put a leaf at the end. The caller has verified it and has looked into its slot."""
        leaf = read_leaf(raw)
        last = connection.execute(select(func.max(leaves.c.idx))).scalar()
        index = 0 if last is None else last + 1
        connection.execute(
            leaves.insert().values(idx=index, raw=raw, hash=leaf.hash, round=leaf.round, kind=leaf.type, slot=place)
        )
        return Entry(index, raw, leaf.hash)

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
        raw = make_leaf(kind, round_id, {**fields, "day": now.date().isoformat()}, self._key)
        return self.append(connection, raw, place)

    def find(self, connection: Connection, place: str) -> Entry | None:
        """The entry of a slot."""
        row = connection.execute(select(leaves).where(leaves.c.slot == place)).one_or_none()
        return None if row is None else _entry(row)

    def at(self, connection: Connection, index: int) -> Entry:
        """The entry at a place that is known to exist."""
        return _entry(connection.execute(select(leaves).where(leaves.c.idx == index)).one())


def _entry(row: Row[tuple[object, ...]]) -> Entry:
    return Entry(row.idx, row.raw, row.hash)
