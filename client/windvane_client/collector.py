# SPDX-License-Identifier: Apache-2.0
"""A collector: a machine that reads its own logs and writes content-free rows for the organisation's agent.

Rules kept here:
* it has no ledger, no identity and no connection: it reads log folders and writes files into one folder;
* what it writes has neither a staff id nor an e-mail address, path or raw id: every id went through k_collect;
* a run writes one new file, whole or not at all, and then remembers how far it read; a crash in between writes rows
  twice, which merge;
* here it keeps how far it read, and no event.

    collector.json              the collector file, 0600
    collector.toml              which logs are read
    collection/collection.db    how far they were read
"""

from __future__ import annotations

import os
import secrets
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

import msgspec

from windvane_client.collect import CollectSetup, read_logs
from windvane_client.collect_files import CollectReport, Progress
from windvane_client.collector_file import CollectorFile, read_collector_file
from windvane_client.events import Rows
from windvane_client.ids import FirstStepIds
from windvane_client.merge import Copy, event_of
from windvane_client.people import parse_people
from windvane_client.readers.collected import PREFIX
from windvane_client.readers.collected_rows import header, line
from windvane_client.rules import parse_rules
from windvane_client.settings import LogFolder, check_logs, logs_toml
from windvane_client.store import Cursor, EventStore
from windvane_privacy.errors import ConfigurationError, StateExists
from windvane_privacy.keyfiles import read_secret, replace_file, secure_folder, sync_folder, write_secret

FILE, SETTINGS = "collector.json", "collector.toml"


class _Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    logs: tuple[LogFolder, ...]


@dataclass(frozen=True, slots=True)
class CollectorState:
    """An existing collector's folder."""

    folder: Path

    @classmethod
    def create(cls, folder: Path, raw: bytes, logs: tuple[LogFolder, ...]) -> CollectorState:
        """Make a collector from a collector file, or give an existing one the new file of a later quarter.

        Raises:
            ConfigurationError: the file or a log folder is malformed, or the folder cannot be written.
            StateExists: the folder holds something else.
        """
        read_collector_file(raw)
        check_logs(logs, SETTINGS)
        if any(one.source == "collected" for one in logs):
            raise ConfigurationError("Only the agent reads what collectors wrote.")
        known = (folder / FILE).is_file()
        if not known and folder.exists() and any(folder.iterdir()):
            raise StateExists
        secure_folder(folder)
        secure_folder(folder / "collection")
        try:
            replace_file(folder / SETTINGS, logs_toml(logs).encode())
            if known:
                replace_file(folder / FILE, raw)
        except OSError as error:
            raise ConfigurationError("The collector's folder cannot be written.") from error
        if not known:
            write_secret(folder / FILE, raw)
        return cls(folder.absolute())

    @classmethod
    def open(cls, folder: Path) -> CollectorState:
        """The collector in a folder.

        Raises:
            ConfigurationError: there is none.
            KeyFileTooOpen: others can enter the folder.
        """
        if not is_collector(folder):
            raise ConfigurationError("No collector is set up in this folder.")
        secure_folder(folder)
        return cls(folder.absolute())

    @property
    def file(self) -> CollectorFile:
        """The collector file. Raises ConfigurationError, KeyFileTooOpen."""
        return read_collector_file(read_secret(self.folder / FILE))

    @property
    def logs(self) -> tuple[LogFolder, ...]:
        """collector.toml. Raises ConfigurationError."""
        try:
            logs = msgspec.convert(tomllib.loads((self.folder / SETTINGS).read_text("utf-8")), _Settings).logs
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError):
            raise ConfigurationError(f"{SETTINGS} has a field that is missing, unknown or malformed.") from None
        check_logs(logs, SETTINGS)
        return logs


def is_collector(folder: Path) -> bool:
    """Whether a folder is a collector's and not an agent's."""
    return (folder / FILE).is_file()


def collect_out(state: CollectorState, out: Path, now: datetime, *, progress: Progress | None = None) -> CollectReport:
    """Write what is new since the last run into one new file in `out`; no file where nothing is new. `now`: UTC.

    Raises:
        ConfigurationError: a file of the collector is wrong, or `out` is no folder that can be written to.
        LedgerLocked: another run is under way.
    """
    file = state.file
    people = parse_people(file.people)
    setup = CollectSetup(
        state.logs,
        people,
        FirstStepIds(file.key, people),
        file.catalogue,
        file.parsed_aliases,
        parse_rules(file.rules),
    )
    if not out.is_dir():
        raise ConfigurationError("The folder to write to is not there.")
    with EventStore.open(state.folder / "collection" / "collection.db") as store, store.transaction():
        rows = _RowFile(store, out, file.number)
        try:
            report = read_logs(rows, setup, now, progress=progress)
            rows.publish()
        except (_Unwritten, OSError) as error:
            raise ConfigurationError("The folder to write to cannot be written.") from error
        finally:
            rows.discard()
    return report


class _Unwritten(Exception):
    """Rows cannot be written: not to be taken for a log that cannot be read."""


class _RowFile:
    """A new file for events; what is remembered about logs goes to the collector's own store."""

    def __init__(self, store: EventStore, out: Path, number: int) -> None:
        self._store = store
        name = secrets.token_hex(8)
        self._draft, self._path = out / f".{PREFIX}{name}.part", out / f"{PREFIX}{name}.jsonl"
        self._number = number
        self._file: BinaryIO | None = None

    def add_copies(self, copies: Sequence[Copy]) -> int:
        for copy in copies:
            row = line(event_of(copy))
            try:
                if self._file is None:
                    self._file = self._begin()
                self._file.write(row)
            except OSError as error:
                raise _Unwritten from error
        return len(copies)

    def _begin(self) -> BinaryIO:
        # Readable to the group: the agent may run under another account. Who else may read is the folder's business.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        file = os.fdopen(os.open(self._draft, flags, 0o640), "wb")
        file.write(header(self._number))
        return file

    def publish(self) -> None:
        """Give the file its name: from here on the agent sees it."""
        if self._file is None:
            return
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._draft.replace(self._path)
        sync_folder(self._path.parent)

    def discard(self) -> None:
        """Leave nothing half written."""
        if self._file is not None:
            self._file.close()
            with suppress(OSError):
                self._draft.unlink(missing_ok=True)

    def transaction(self) -> AbstractContextManager[None]:
        return self._store.transaction()

    def add_rows(self, recorder: str, rows: Rows, week: str = "") -> None:
        self._store.add_rows(recorder, rows, week)

    def cursor(self, file_key: bytes) -> Cursor | None:
        return self._store.cursor(file_key)

    def cursors(self) -> Iterator[Cursor]:
        return self._store.cursors()

    def set_cursor(self, cursor: Cursor) -> None:
        self._store.set_cursor(cursor)

    def drop_cursor(self, file_key: bytes) -> None:
        self._store.drop_cursor(file_key)

    def fact(self, name: str) -> str | None:
        return self._store.fact(name)

    def set_fact(self, name: str, value: str) -> None:
        self._store.set_fact(name, value)
