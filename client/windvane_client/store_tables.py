# SPDX-License-Identifier: Apache-2.0
"""The tables of the event store, and how its copies become merged events in order.

Rules kept here:
* `copies` is only ever appended to; the merge reads it once, sorted by (person, kind, key), and writes `joined`, sorted
  by (person, conversation, time);
* both sorts and `joined` live in temporary files: memory does not grow with the store.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import groupby

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
# Filled in the order of its key, so writing it is sequential; it lives in a temporary file of its own.
_JOINED = """
CREATE TEMP TABLE joined (
  person BLOB NOT NULL, conv BLOB NOT NULL, ts INTEGER NOT NULL, seq INTEGER NOT NULL, kind INTEGER NOT NULL,
  key BLOB NOT NULL, body BLOB NOT NULL, links BLOB, PRIMARY KEY (person, conv, ts, seq, kind, key)) WITHOUT ROWID;
"""
_UNSORTED = "CREATE TEMP TABLE merged AS SELECT * FROM temp.joined"
_NO_PARENT = bytes(16)


def join(db: sqlite3.Connection) -> None:
    """Fill the temporary table `joined` with the merged events of `copies`."""
    for name in ("merged", "joined"):
        db.execute(f"DROP TABLE IF EXISTS temp.{name}")
    db.execute(_JOINED)
    db.execute(_UNSORTED)
    db.executemany("INSERT INTO temp.merged VALUES (?, ?, ?, ?, ?, ?, ?, ?)", _merged(db))
    db.execute("INSERT INTO temp.joined SELECT * FROM temp.merged ORDER BY person, conv, ts, seq, kind, key")
    db.execute("DROP TABLE temp.merged")


def _merged(db: sqlite3.Connection) -> Iterator[tuple[bytes, bytes, int, int, int, bytes, bytes, bytes | None]]:
    query = "SELECT person, kind, key, conv, ts, seq, body FROM copies ORDER BY person, kind, key, body"
    for (person, kind, key), group in groupby(db.execute(query), key=lambda row: row[:3]):
        rows = list(group)
        _, _, _, conv, ts, seq, body = rows[0]
        if len(rows) == 1:
            yield person, conv, ts, seq, kind, key, body, None
            continue
        bodies = list(dict.fromkeys(row[6] for row in rows))
        event, pairs = merge(bodies)
        links = b"".join([row + (parent or _NO_PARENT) for row, parent in pairs])
        ts = NO_TIME if event.ts is None else event.ts
        yield person, event.conv or b"", ts, event.seq, kind, key, pack(event), links


def unpack_links(packed: bytes) -> Iterator[tuple[bytes, bytes | None]]:
    """(row, parent) pairs of a merged event that stands for several log rows."""
    for at in range(0, len(packed), 32):
        parent = packed[at + 16 : at + 32]
        yield packed[at : at + 16], None if parent == _NO_PARENT else parent
