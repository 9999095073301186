# SPDX-License-Identifier: Apache-2.0
"""Collecting, file by file: what is new in each log file goes into the store.

Rules kept here:
* a file is read from where the last run stopped; a file that shrank or began anew is read from its start, which is
  harmless because events merge;
* a file's events, its counts and its cursor are stored in one transaction, which small files share: a crash counts
  nothing twice, and a file that fails takes back only what is its own;
* a file that cannot be read is counted by reason and the rest is read; no path and no text is repeated in any message.
"""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import NamedTuple, Protocol

from windvane_client.events import Rows
from windvane_client.file_reading import FileRead, Reading, Task, Unread
from windvane_client.file_workers import read_files
from windvane_client.ids import FirstStepIds
from windvane_client.merge import Copy
from windvane_client.noticed import Noticed
from windvane_client.readers.mapping_file import beside
from windvane_client.store import Cursor

HEAD_BYTES = 4096
SHARED_BYTES = 8 << 20
"""Files are stored together up to this size: a commit costs more than a small file."""

Progress = Callable[[int, int], None]
"""Called with (bytes done, bytes to do)."""


@dataclass(slots=True)
class CollectReport:
    """What one run did. Counts of files and rows, never of outcomes.

    `rows`: rows of this run by fate, rejections by reason. `unreadable`: files that could not be opened. `vanished`:
    files that were gone with unread rows. `unmapped`: nobody of people.toml can be this machine's person.
    """

    files: int = 0
    read: int = 0
    unchanged: int = 0
    unreadable: int = 0
    vanished: int = 0
    events: int = 0
    rows: Rows = field(default_factory=Rows)
    by_source: dict[str, int] = field(default_factory=dict)
    days_since_last: int | None = None
    unmapped: bool = False
    warnings: list[str] = field(default_factory=list)
    noticed: Noticed = field(default_factory=Noticed)
    """What may need a person in the rows of this run."""


class Sink(Protocol):
    """Where events go and what is remembered about files: the agent's `EventStore`, or a collector's file."""

    def transaction(self) -> AbstractContextManager[None]:
        """See `EventStore`, as for the other methods."""
        ...

    def add_copies(self, copies: Sequence[Copy]) -> int: ...
    def add_rows(self, recorder: str, rows: Rows, week: str = "") -> None: ...
    def cursor(self, file_key: bytes) -> Cursor | None: ...
    def cursors(self) -> Iterator[Cursor]: ...
    def set_cursor(self, cursor: Cursor) -> None: ...
    def drop_cursor(self, file_key: bytes) -> None: ...
    def fact(self, name: str) -> str | None: ...
    def set_fact(self, name: str, value: str) -> None: ...


class Found(NamedTuple):
    """A log file below a configured folder. `person`: whose logs these are, for sources that name nobody."""

    source: str
    person: bytes | None
    path: Path
    size: int


class _New(NamedTuple):
    """A file with something new in it, and the cursor to store, but for its offset."""

    source: str
    size: int
    cursor: Cursor


def read_found(
    store: Sink,
    found: Sequence[Found],
    reading: Reading,
    ids: FirstStepIds,
    report: CollectReport,
    week: str,
    *,
    progress: Progress | None = None,
    workers: int | None = None,
) -> set[bytes]:
    """Read what is new in the files into `store`, and count it in `report`; the keys of all files.

    `week`: of the reading, such as `2026-W27`. `workers`: as for `read_files`.
    """
    run = _Run(store, found, ids, report, week, progress)
    with closing(read_files(reading, run.tasks(), workers=workers)) as files:
        for _, group in groupby(files, key=run.group):
            with store.transaction():
                for file in group:
                    run.store_file(file)
    return run.seen


class _Run:
    def __init__(
        self,
        store: Sink,
        found: Sequence[Found],
        ids: FirstStepIds,
        report: CollectReport,
        week: str,
        progress: Progress | None,
    ) -> None:
        self._store, self._found, self._ids, self._report, self._week = store, found, ids, report, week
        self._progress = progress
        self._total = sum(one.size for one in found)
        self._passed = 0
        self._new: deque[_New] = deque()
        self._group = self._in_group = 0
        self.seen: set[bytes] = set()

    def tasks(self) -> Iterator[Task]:
        """The files with something new, in order. They are asked for some way ahead of what is stored."""
        for one in self._found:
            key = self._ids.file(str(one.path))
            if key in self.seen:
                continue  # two configured folders hold it; the first one counts
            self.seen.add(key)
            self._report.files += 1
            try:
                task = self._task(one, key)
            except OSError:
                self._report.unreadable += 1
                task = None
            if task is None:
                self._done(one.size)
            else:
                yield task

    def _task(self, one: Found, key: bytes) -> Task | None:
        """None for a file without anything new. Raises OSError."""
        # With another mapping the same bytes say something else, so the file counts as a new one.
        mapping = beside(one.path) if one.source == "mapping" else b""
        cursor, offset = self._store.cursor(key), 0
        status = one.path.stat()
        if cursor is not None:
            same_head = _head(one.path, min(HEAD_BYTES, cursor.size), mapping) == cursor.head_sha256
            if same_head and (cursor.size, cursor.mtime_ns) == (status.st_size, status.st_mtime_ns):
                self._report.unchanged += 1
                return None
            if same_head and status.st_size >= cursor.size:
                offset = cursor.offset
        head = _head(one.path, min(HEAD_BYTES, status.st_size), mapping)
        self._new.append(_New(one.source, one.size, Cursor(key, status.st_size, status.st_mtime_ns, 0, head)))
        return Task(os.fsencode(one.path), one.source, one.person, offset, status.st_size)

    def group(self, _: FileRead) -> int:
        """Number of the transaction that the next file belongs to."""
        size = self._new[0].size
        if self._in_group and self._in_group + size > SHARED_BYTES:
            self._group, self._in_group = self._group + 1, 0
        self._in_group += size
        return self._group

    def store_file(self, file: FileRead) -> None:
        """Everything of one file, or nothing."""
        store, report, (source, size, cursor) = self._store, self._report, self._new.popleft()
        try:
            with store.transaction():
                added = 0
                for batch in file.batches():
                    added += store.add_copies(batch.copies)
                    self._show(min(batch.position, size))
                done = file.done
                store.add_rows(source, done.rows, self._week)
                store.set_cursor(cursor.at(done.offset))
        except Unread:
            report.unreadable += 1
        else:
            report.events += added
            report.read += 1
            report.by_source[source] = report.by_source.get(source, 0) + 1
            report.rows.add(done.rows)
            report.noticed.absorb(done.noticed)
        self._done(size)

    def _done(self, size: int) -> None:
        self._passed += size
        self._show(0)

    def _show(self, more: int) -> None:
        if self._progress is not None:
            self._progress(self._passed + more, self._total)


def size_of(path: Path) -> int:
    """Bytes of a file; 0 where it is gone."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _head(path: Path, length: int, mapping: bytes) -> bytes:
    with path.open("rb") as file:
        return hashlib.sha256(file.read(length) + mapping).digest()
