# SPDX-License-Identifier: Apache-2.0
"""The file under a ledger, a member's or a guardian's: made once, opened by one process, checked before use.

Rules kept here:
* the folder is 0700 and the file 0600; a wider one, a symbolic link or another owner is refused;
* rollback journal, `synchronous=EXTRA`, one connection: what COMMIT returned is on the disk (never WAL: SQLite 3.7.0 to
  3.51.2 have a WAL fault, and one connection needs no WAL);
* two locks: a lock file for processes that ask, SQLite's exclusive lock for programs that do not;
* a file is made whole or not at all, and one that is missing is never made anew by opening it: an empty ledger would
  allow a second draw, or a second opening;
* an older format is brought up step by step, each step whole or not at all, and never in a file that is damaged; a
  newer one is refused.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from windvane_privacy.errors import KeyFileTooOpen, LedgerDamaged, LedgerError, LedgerFormat, LedgerLocked, StateExists
from windvane_privacy.keyfiles import require_platform, secure_folder, sync_folder


@dataclass(frozen=True, slots=True)
class FileKind:
    """What tells one kind of ledger from another: its file's name, SQLite's `application_id`, and the format's number
    (`user_version`, from 1; 0 is a file that was not made to its end). `upgrades`: the statements that turn a format
    into the next one."""

    name: str
    application_id: int
    format: int
    upgrades: Mapping[int, Sequence[str]] = field(default_factory=dict)

    @property
    def lock_name(self) -> str:
        """Name of the lock file beside it."""
        return Path(self.name).with_suffix(".lock").name


def create_file(folder: Path, kind: FileKind, schema: str, meta: Mapping[str, str] | None = None) -> None:
    """A new ledger in `folder` (made if it does not exist). `schema`: the statements that make its tables; `meta`: the
    first rows of its table `meta`, where it has one.

    Raises:
        StateExists: there is one.
        LedgerError: the disk did not take it.
        KeyFileTooOpen: the folder can be read by others.
        UnsupportedPlatform: no file locks here.
    """
    require_platform()
    secure_folder(folder)
    unfinished = folder / (kind.name + ".new")
    unfinished.unlink(missing_ok=True)
    handle = os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    os.fchmod(handle, 0o600)
    os.close(handle)
    connection = _connect(unfinished)
    try:
        # BEGIN stands inside the script: executescript commits whatever was begun before it.
        named = f"PRAGMA application_id = {kind.application_id};PRAGMA user_version = {kind.format};"
        connection.executescript(f"BEGIN IMMEDIATE;{schema}{named}")
        if meta:
            connection.executemany("INSERT INTO meta VALUES (?, ?)", list(meta.items()))
        connection.execute("COMMIT")
    except sqlite3.Error:
        raise LedgerError("The disk did not take the new ledger.") from None
    finally:
        connection.close()
    try:
        # link, not rename: it refuses an existing ledger instead of replacing it.
        os.link(unfinished, folder / kind.name)
    except FileExistsError:
        raise StateExists("There is a ledger in this folder.") from None
    finally:
        unfinished.unlink()
        sync_folder(folder)


class SqliteFile:
    """An open ledger file: the lock, the connection, and whether it may be written.

    `damage` is None, or one sentence that says why the file is open for reading only.

    Raises:
        LedgerDamaged: missing, a link, no database, or not made to its end.
        LedgerLocked: another process has it.
        LedgerFormat: written by a newer version, or by one that is too old.
        LedgerError: the disk does not give it.
        KeyFileTooOpen: others have rights on the file or its folder.
        UnsupportedPlatform: no file locks here.
    """

    def __init__(self, folder: Path, kind: FileKind) -> None:
        require_platform()
        path = folder / kind.name
        if not path.exists() or path.is_symlink():
            raise LedgerDamaged("The ledger's file is missing.")
        _check_file(secure_folder(folder) / kind.name)
        self.damage: str | None = None
        self._kind, self._format = kind, kind.format
        self._lock = _lock(folder / kind.lock_name)
        try:
            self.connection = self._open(path, kind)
        except BaseException:
            os.close(self._lock)
            raise

    def rows(self, query: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query.

        Raises:
            LedgerDamaged: a page of the file is broken.
            LedgerError: the disk does not give it.
        """
        try:
            return self.connection.execute(query, parameters).fetchall()
        except sqlite3.DatabaseError as error:
            raise _named(error) from None

    def row(self, query: str, parameters: Sequence[object] = ()) -> tuple[Any, ...] | None:
        """The first row of a query, or None. Raises LedgerDamaged, LedgerError."""
        found = self.rows(query, parameters)
        return found[0] if found else None

    def upgrade(self) -> bool:
        """Bring a sound file of an older format to this version's; whether anything had to be done.

        Raises:
            LedgerError: the disk did not take it; the file is as it was, or some whole steps further.
        """
        todo = range(self._format, self._kind.format) if self.damage is None else range(0)
        for old in todo:
            try:
                self.connection.execute("BEGIN IMMEDIATE")
                for statement in self._kind.upgrades[old]:
                    self.connection.execute(statement)
                self.connection.execute(f"PRAGMA user_version = {old + 1}")
                self.connection.execute("COMMIT")
            except sqlite3.Error:
                roll_back(self.connection)
                raise LedgerError("The ledger could not be brought to this version's format.") from None
            self._format = old + 1
        return bool(todo)

    def close(self) -> None:
        """Close the file and give up both locks."""
        self.connection.close()
        os.close(self._lock)

    def fail(self, why: str) -> None:
        """From here on the file is open for reading only."""
        if self.damage is None:
            self.damage = why
        self.connection.execute("PRAGMA query_only = ON")

    def _open(self, path: Path, kind: FileKind) -> sqlite3.Connection:
        connection = _connect(path)
        try:
            try:
                # Taken now, not at the first write: a second program must fail at its start.
                connection.execute("BEGIN EXCLUSIVE")
                connection.execute("COMMIT")
                version = int(connection.execute("PRAGMA user_version").fetchone()[0])
                application = int(connection.execute("PRAGMA application_id").fetchone()[0])
                rows = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(5)")]
                foreign = connection.execute("PRAGMA foreign_key_check").fetchone()
            except sqlite3.DatabaseError as error:
                raise _named(error) from None
            if application != kind.application_id or version == 0:
                raise LedgerDamaged("The file is not a complete ledger.")
            if version > kind.format or any(old not in kind.upgrades for old in range(version, kind.format)):
                raise LedgerFormat
            self._format = version
        except BaseException:
            connection.close()
            raise
        if rows != ["ok"] or foreign is not None:
            self.damage = "The database's own integrity check failed."
            connection.execute("PRAGMA query_only = ON")
        return connection


def roll_back(connection: sqlite3.Connection) -> None:
    """Give up the open transaction. A disk that fails here too changes nothing: the next opening rolls back."""
    try:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    except sqlite3.Error:
        pass


def _connect(path: Path) -> sqlite3.Connection:
    # Autocommit: every transaction is begun and ended by name in the ledgers.
    try:
        connection = sqlite3.connect(path, timeout=0, isolation_level=None, cached_statements=16)
    except sqlite3.Error as error:
        raise _named(error) from None
    try:
        for pragma in (
            "journal_mode = DELETE",
            "synchronous = EXTRA",
            "locking_mode = EXCLUSIVE",
            "foreign_keys = ON",
            "trusted_schema = OFF",
            "recursive_triggers = ON",
            "secure_delete = ON",
            "temp_store = MEMORY",
        ):
            connection.execute(f"PRAGMA {pragma}").fetchall()
    except sqlite3.DatabaseError as error:
        connection.close()
        raise _named(error) from None
    return connection


def _named(error: sqlite3.Error) -> LedgerError:
    # SQLITE_ERROR on a query of ours: a table or a column is not there.
    missing = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR
    if missing or not isinstance(error, sqlite3.OperationalError):
        return LedgerDamaged("The file cannot be read as a database.")
    return LedgerLocked() if "locked" in str(error) else LedgerError("The disk does not give the ledger's file.")


def _lock(path: Path) -> int:
    import fcntl  # not on Windows, where require_platform has refused before

    try:
        handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError:
        raise LedgerError("The disk does not give the ledger's lock file.") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise LedgerLocked from None
    return handle


def _check_file(path: Path) -> None:
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode):
        raise LedgerDamaged("The ledger's file is a link or no file.")
    if stat.S_IMODE(found.st_mode) & 0o177 or found.st_uid != os.geteuid():
        raise KeyFileTooOpen("Others have rights on the ledger.")
