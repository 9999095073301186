# SPDX-License-Identifier: Apache-2.0
"""The event store: what was read from the logs, until the window's round is over (docs/signals.md, collection).

Rules kept here:
* only canonical events are stored: no raw id, no text, no model name outside the catalogue;
* writing only appends copies; `conversations` merges them by (person, kind, key), so that the result does not depend on
  the order, the split or the repetition of runs;
* memory is constant: copies, the merge and the sort live in files, one conversation at a time is in memory;
* a file's cursor, its row counts and its events are written in one transaction: a crash counts nothing twice; several
  files may share one, and a file that fails in it is taken back alone;
* the file is 0600, opened by one process at a time, and a window's rows are deleted when its round is over.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import groupby, islice
from pathlib import Path
from typing import Self

from windvane_client.events import AnyEvent, Prompt, Rows
from windvane_client.merge import KIND_NAMES, KIND_NUMBER, NOBODY, Copy, copy_of, unpack
from windvane_client.store_tables import BODY, FROM_JOINED, SCHEMA, join, unpack_links
from windvane_privacy.errors import ConfigurationError, KeyFileTooOpen, LedgerFormat, LedgerLocked

FORMAT = 1
BATCH = 4096
CACHE_KIB = 12_288
_NEXT_REVISION = "INSERT INTO facts VALUES ('revision', '1') ON CONFLICT DO UPDATE SET value = value + 1"


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far a log file was read. `file_key`: keyed id of its path. `offset`: bytes, after the last complete line.
    `head_sha256`: SHA-256 of the first 4 KiB, to notice a file that was written anew."""

    file_key: bytes
    size: int
    mtime_ns: int
    offset: int
    head_sha256: bytes

    def at(self, offset: int) -> Cursor:
        """The same cursor at this offset."""
        return replace(self, offset=offset)


@dataclass(frozen=True, slots=True)
class Conversation:
    """One person's conversation, events merged and in order of time. `conv` is None for events that name none.

    `links`: parent of every log row that the events stand for (None: a root).
    """

    person: bytes | None
    conv: bytes | None
    events: list[AnyEvent]
    links: dict[bytes, bytes | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Seen:
    """When a person first and last opened a turn with a family, µs."""

    first: int
    last: int


class EventStore:
    """See the module. Not safe for two threads."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection
        self._stale = True
        self._changed = False
        self._depth = 0

    # --- opening ---

    @classmethod
    def temporary(cls) -> Self:
        """A private store on disk that disappears with the process (SQLite's own temporary file)."""
        store = cls(_connect(""))
        # Not OFF: a file that fails must be taken back. It keeps pages from before a transaction, so it stays small.
        store._db.executescript("PRAGMA page_size=16384; PRAGMA journal_mode=MEMORY; PRAGMA synchronous=OFF;" + SCHEMA)
        store._db.execute("INSERT INTO facts VALUES ('format', ?)", (str(FORMAT),))
        return store

    @classmethod
    def open(cls, path: Path) -> Self:
        """The store of this installation; made 0600 when it is not there.

        Raises:
            KeyFileTooOpen: others can read the file.
            LedgerLocked: another process has it open.
            LedgerFormat: another version wrote it.
            ConfigurationError: it is no store, or cannot be made.
        """
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        except OSError as error:
            raise ConfigurationError("The collection store cannot be opened.") from error
        try:
            mode = stat.S_IMODE(os.fstat(handle).st_mode)
        finally:
            os.close(handle)
        if os.name == "posix" and mode & 0o077:
            raise KeyFileTooOpen
        try:
            store = cls(_connect(str(path)))
            store._prepare()
        except sqlite3.OperationalError as error:
            raise LedgerLocked from error
        except sqlite3.DatabaseError as error:
            raise ConfigurationError("The collection store is damaged; delete it and collect again.") from error
        return store

    def _prepare(self) -> None:
        self._db.executescript(
            "PRAGMA journal_mode=DELETE; PRAGMA synchronous=FULL; PRAGMA locking_mode=EXCLUSIVE; "
            "PRAGMA foreign_keys=ON; PRAGMA trusted_schema=OFF; PRAGMA secure_delete=ON;"
        )
        self._db.execute("BEGIN EXCLUSIVE")
        if not self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            for statement in filter(str.strip, SCHEMA.split(";")):
                self._db.execute(statement)
            self._db.execute("INSERT INTO facts VALUES ('format', ?)", (str(FORMAT),))
        self._db.execute("COMMIT")
        if self.fact("format") != str(FORMAT):
            raise LedgerFormat

    def close(self) -> None:
        """Close the file and give up the lock."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- writing ---

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Everything written inside is stored together or not at all.

        Inside another transaction: taken back alone when it fails, stored when the outer one is.
        """
        inner = f"inner{self._depth}" if self._depth else None
        self._db.execute(f"SAVEPOINT {inner}" if inner else "BEGIN IMMEDIATE")
        self._depth += 1
        try:
            yield
            if self._changed and not inner:
                self._db.execute(_NEXT_REVISION)
                self._changed = False
        except BaseException:
            if self._db.in_transaction:  # SQLite may have taken everything back itself, for example on a full disk
                if inner:
                    self._db.execute(f"ROLLBACK TO {inner}")
                self._db.execute(f"RELEASE {inner}" if inner else "ROLLBACK")
            raise
        else:
            self._db.execute(f"RELEASE {inner}" if inner else "COMMIT")
        finally:
            self._depth -= 1

    def add(self, events: Iterable[AnyEvent]) -> int:
        """Append events, one transaction, in batches of constant size; the number added."""
        added, copies = 0, map(copy_of, events)
        with self.transaction():
            while batch := list(islice(copies, BATCH)):
                added += self.add_copies(batch)
        return added

    def add_copies(self, copies: Sequence[Copy]) -> int:
        """Append what `copy_of` gives of events, inside a transaction; the number added."""
        if copies:
            # For each `bytes`, sqlite3 looks in vain for an adapter: half of the time. For a `bytearray` it does not.
            blob = bytearray
            rows = [
                (blob(person), kind, blob(key), blob(conv), ts, seq, blob(body))
                for person, kind, key, conv, ts, seq, body in copies
            ]
            self._db.executemany("INSERT INTO copies VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
            self._stale = self._changed = True
        return len(copies)

    # --- cursors, coverage, facts ---

    def cursor(self, file_key: bytes) -> Cursor | None:
        """How far a file was read; None if it never was."""
        row = self._db.execute("SELECT * FROM cursors WHERE file_key = ?", (file_key,)).fetchone()
        return Cursor(*row) if row else None

    def cursors(self) -> Iterator[Cursor]:
        """All cursors, in order of the file's key."""
        return (Cursor(*row) for row in self._db.execute("SELECT * FROM cursors ORDER BY file_key"))

    def set_cursor(self, cursor: Cursor) -> None:
        """Store how far a file was read."""
        with self.transaction():
            self._db.execute(
                "INSERT OR REPLACE INTO cursors VALUES (?, ?, ?, ?, ?)",
                (cursor.file_key, cursor.size, cursor.mtime_ns, cursor.offset, cursor.head_sha256),
            )

    def drop_cursor(self, file_key: bytes) -> None:
        """Forget a file, for example one that has vanished."""
        with self.transaction():
            self._db.execute("DELETE FROM cursors WHERE file_key = ?", (file_key,))

    def add_rows(self, recorder: str, rows: Rows, week: str = "") -> None:
        """Add one reading's row counts. `week`: ISO week of the reading, such as `2026-W27`."""
        counts = {name: getattr(rows, name) for name in Rows.FIELDS} | {
            f"reason:{k}": v for k, v in rows.reasons.items()
        }
        with self.transaction():
            self._db.executemany(
                "INSERT INTO coverage VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET rows = rows + excluded.rows",
                [(recorder, week, name, value) for name, value in counts.items() if value],
            )

    def rows(self, recorder: str | None = None) -> Rows:
        """Row counts so far, of one recorder or of all."""
        total = Rows()
        where, values = ("", ()) if recorder is None else (" WHERE recorder = ?", (recorder,))
        for name, value in self._db.execute(f"SELECT count, sum(rows) FROM coverage{where} GROUP BY count", values):
            if name.startswith("reason:"):
                total.reasons[name.removeprefix("reason:")] = value
            else:
                setattr(total, name, value)
        return total

    def fact(self, name: str) -> str | None:
        """A fact about this store, such as the hash of the rules in force."""
        row = self._db.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def set_fact(self, name: str, value: str) -> None:
        """Store a fact; it holds no raw id and no text of a log."""
        with self.transaction():
            self._db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))

    @property
    def revision(self) -> int:
        """Grows with every change of events or history, whoever made it: equal numbers, equal contents."""
        return int(self.fact("revision") or 0)

    def freeze_rules(self, window: str, sha256: str) -> None:
        """Fix the organisation's rules for a window at its first collection.

        Raises:
            ConfigurationError: the rules have changed since; older logs may be gone, so they wait for the next window.
        """
        known = self.fact(f"rules:{window}")
        if known is None:
            self.set_fact(f"rules:{window}", sha256)
        elif known != sha256:
            raise ConfigurationError("rules.toml has changed inside the window; put it back until the next one.")

    # --- reading ---

    def people(self) -> list[bytes]:
        """Persons with events, in order. Events without a person belong to nobody and are not listed."""
        self._join()
        query = "SELECT DISTINCT person FROM joined WHERE person != x'' ORDER BY person"
        return [row[0] for row in self._db.execute(query)]

    def conversations(self, person: bytes | None) -> Iterator[Conversation]:
        """One person's conversations (None: events of nobody), one in memory at a time, in order of `conv`."""
        self._join()
        cursor = self._db.execute(
            f"SELECT joined.conv, {BODY}, merged.links FROM {FROM_JOINED} WHERE joined.person = ? "
            "ORDER BY joined.conv, joined.ts, joined.seq, joined.kind, joined.key",
            (person or NOBODY,),
        )
        for conv, rows in groupby(cursor, key=lambda row: row[0]):
            events: list[AnyEvent] = []
            links: dict[bytes, bytes | None] = {}
            for _, body, packed in rows:
                event = unpack(body)
                events.append(event)
                if packed is not None:
                    links |= unpack_links(packed)
                elif event.row is not None:
                    links[event.row] = event.parent
            yield Conversation(person, conv or None, events, links)

    def prompts(self, person: bytes) -> Iterator[tuple[bytes | None, Prompt]]:
        """A person's prompts with their conversation, in order of conversation and time."""
        self._join()
        number = KIND_NUMBER[Prompt]
        query = (
            f"SELECT joined.conv, {BODY} FROM {FROM_JOINED} WHERE joined.person = ? AND joined.kind = ? "
            "ORDER BY joined.conv, joined.ts, joined.seq, joined.key"
        )
        for conv, body in self._db.execute(query, (person, number)):
            event = unpack(body)
            if isinstance(event, Prompt):
                yield conv or None, event

    def counts(self) -> dict[str, int]:
        """Merged events by kind."""
        self._join()
        found = dict(self._db.execute("SELECT kind, count(*) FROM joined GROUP BY kind"))
        return {name: found[number] for number, name in enumerate(KIND_NAMES) if number in found}

    def shared_ids(self) -> int:
        """How many ids occur under two or more persons; they stay apart (`gap shared_id`)."""
        query = "SELECT count(*) FROM (SELECT 1 FROM joined GROUP BY kind, key HAVING count(DISTINCT person) > 1)"
        self._join()
        return int(self._db.execute(query).fetchone()[0])

    def _join(self) -> None:
        if self._stale:
            join(self._db)
            self._stale = False

    # --- history and deletion ---

    def first_seen(self, person: bytes) -> dict[str, Seen]:
        """Families that a person opened turns with in windows whose rows are deleted."""
        query = "SELECT family, first, last FROM first_seen WHERE person = ?"
        return {family: Seen(first, last) for family, first, last in self._db.execute(query, (person,))}

    def keep_first_seen(self, person: bytes, seen: Mapping[str, Seen]) -> None:
        """Add to the history that survives a window: earliest first, latest last."""
        with self.transaction():
            self._db.executemany(
                "INSERT INTO first_seen VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
                "first = min(first, excluded.first), last = max(last, excluded.last)",
                [(person, family, times.first, times.last) for family, times in seen.items()],
            )
            self._changed = True

    def delete_window(self, until: int, open_since: Mapping[tuple[bytes, bytes], int] | None = None) -> int:
        """Delete what happened before `until` (µs), but for episodes still open then; the number of copies deleted.

        `open_since`: (person, conv) -> start of the episode that is carried over (`outcomes_table.open_episodes`).
        """
        kept = open_since or {}
        with self.transaction():
            self._db.execute(
                "CREATE TEMP TABLE kept (person BLOB, conv BLOB, since INTEGER, PRIMARY KEY (person, conv))"
            )
            self._db.executemany("INSERT INTO kept VALUES (?, ?, ?)", [(p, c, since) for (p, c), since in kept.items()])
            cursor = self._db.execute(
                "DELETE FROM copies WHERE ts < ? AND NOT EXISTS (SELECT 1 FROM kept WHERE kept.person = copies.person "
                "AND kept.conv = copies.conv AND copies.ts >= kept.since)",
                (until,),
            )
            self._db.execute("DROP TABLE kept")
            self._stale = self._changed = True
        return cursor.rowcount

    def forget(self, person: bytes) -> None:
        """Delete everything about one person."""
        with self.transaction():
            self._db.execute("DELETE FROM copies WHERE person = ?", (person,))
            self._db.execute("DELETE FROM first_seen WHERE person = ?", (person,))
            self._stale = self._changed = True

    def forget_unused(self, before: int) -> None:
        """Delete families that nobody's history has used since `before` (µs)."""
        with self.transaction():
            self._db.execute("DELETE FROM first_seen WHERE last < ?", (before,))
            self._changed = True


def _connect(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, timeout=0)
    connection.executescript(f"PRAGMA temp_store=FILE; PRAGMA cache_size=-{CACHE_KIB};")
    return connection
