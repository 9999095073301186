# SPDX-License-Identifier: Apache-2.0
"""The tables of the event store, and how its copies become merged events in order.

Rules kept here:
* `copies` is only ever appended to; the merge groups it by (person, kind, key) and writes `joined`, sorted by (person,
  conversation, time); only events with several copies are decoded for it;
* both sorts and `joined` live in temporary files: memory does not grow with the store.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from windvane_client.merge import NO_TIME, merge, pack

SCHEMA = """
CREATE TABLE copies (
  person BLOB NOT NULL, kind INTEGER NOT NULL, key BLOB NOT NULL, conv BLOB NOT NULL, ts INTEGER NOT NULL,
  seq INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE cursors (
  file_key BLOB PRIMARY KEY, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, offset INTEGER NOT NULL,
  head_sha256 BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE coverage (
  recorder TEXT NOT NULL, week TEXT NOT NULL, count TEXT NOT NULL, rows INTEGER NOT NULL,
  PRIMARY KEY (recorder, week, count)) WITHOUT ROWID;
CREATE TABLE first_seen (
  person BLOB NOT NULL, family TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
  PRIMARY KEY (person, family)) WITHOUT ROWID;
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""
# One row a (person, kind, key): the first and the last of its `n` copies by place, and all places if there are more.
_GROUPED = """
CREATE TEMP TABLE grouped AS
SELECT person, conv, ts, seq, kind, key, count(*) AS n, min(rowid) AS copy, max(rowid) AS last,
  CASE WHEN count(*) > 2 THEN group_concat(rowid) END AS members
FROM copies GROUP BY person, kind, key
"""
_MERGED = """
CREATE TEMP TABLE merged (
  person BLOB NOT NULL, conv BLOB NOT NULL, ts INTEGER NOT NULL, seq INTEGER NOT NULL, kind INTEGER NOT NULL,
  key BLOB NOT NULL, body BLOB NOT NULL, links BLOB)
"""
# Filled in the order of its key, so writing it is sequential; it lives in a temporary file of its own. No event is
# written again for it: `copy` or `merger` says where it is.
_JOINED = """
CREATE TEMP TABLE joined (
  person BLOB NOT NULL, conv BLOB NOT NULL, ts INTEGER NOT NULL, seq INTEGER NOT NULL, kind INTEGER NOT NULL,
  key BLOB NOT NULL, copy INTEGER, merger INTEGER, PRIMARY KEY (person, conv, ts, seq, kind, key)) WITHOUT ROWID
"""
_FILL = """
INSERT INTO temp.joined
SELECT person, conv, ts, seq, kind, key, copy, NULL FROM temp.grouped WHERE n = 1
UNION ALL SELECT person, conv, ts, seq, kind, key, NULL, rowid FROM temp.merged
ORDER BY 1, 2, 3, 4, 5, 6
"""
FROM_JOINED = (
    "temp.joined AS joined LEFT JOIN copies ON copies.rowid = joined.copy "
    "LEFT JOIN temp.merged AS merged ON merged.rowid = joined.merger"
)
"""The source of merged events; their bytes are `BODY`, and `merged.links` what several log rows stood for."""
BODY = "coalesce(merged.body, copies.body)"
# In the order in which they were written: copies of one event lie near each other, so pages are read once.
_COPIES = """
SELECT grouped.person, grouped.kind, grouped.key, grouped.members, one.body, two.body FROM temp.grouped AS grouped
JOIN copies AS one ON one.rowid = grouped.copy JOIN copies AS two ON two.rowid = grouped.last
WHERE grouped.n > 1 ORDER BY grouped.copy
"""
_AT_ONCE = 16
_NO_PARENT = bytes(16)


def join(db: sqlite3.Connection) -> None:
    """Fill the temporary table `joined` with the merged events of `copies`."""
    # One savepoint: otherwise each row would be a transaction of the temporary file.
    db.execute("SAVEPOINT joining")
    try:
        _fill(db)
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK TO joining")
            db.execute("RELEASE joining")
        raise
    db.execute("RELEASE joining")


def _fill(db: sqlite3.Connection) -> None:
    for name in ("grouped", "merged", "joined"):
        db.execute(f"DROP TABLE IF EXISTS temp.{name}")
    for statement in (_GROUPED, _MERGED, _JOINED):
        db.execute(statement)
    db.executemany("INSERT INTO temp.merged VALUES (?, ?, ?, ?, ?, ?, ?, ?)", _merged(db))
    db.execute(_FILL)
    db.execute("DROP TABLE temp.grouped")


def _merged(db: sqlite3.Connection) -> Iterator[tuple[bytes, bytes, int, int, int, bytes, bytes, bytes | None]]:
    for person, kind, key, members, one, two in db.execute(_COPIES):
        bodies = (one, two) if members is None else _bodies(db, members.split(","))
        event, pairs = merge(list(dict.fromkeys(bodies)))
        links = b"".join([row + (parent or _NO_PARENT) for row, parent in pairs])
        ts = NO_TIME if event.ts is None else event.ts
        yield person, event.conv or b"", ts, event.seq, kind, key, pack(event), links


def _bodies(db: sqlite3.Connection, rowids: list[str]) -> Iterator[bytes]:
    for at in range(0, len(rowids), _AT_ONCE):
        some = rowids[at : at + _AT_ONCE]
        for row in db.execute(f"SELECT body FROM copies WHERE rowid IN ({', '.join('?' * len(some))})", some):
            yield row[0]


def unpack_links(packed: bytes) -> Iterator[tuple[bytes, bytes | None]]:
    """(row, parent) pairs of a merged event that stands for several log rows."""
    for at in range(0, len(packed), 32):
        parent = packed[at + 16 : at + 32]
        yield packed[at : at + 16], None if parent == _NO_PARENT else parent
