# SPDX-License-Identifier: Apache-2.0
"""The file under a ledger, a member's or a guardian's: made once, opened by one process, checked before use.

Rules kept here:
* the folder is 0700 and the file 0600; a wider one, a symbolic link or another owner is refused;
* rollback journal, `synchronous=EXTRA`, one connection: what COMMIT returned is on the disk (never WAL: SQLite 3.7.0 to
  3.51.2 have a WAL fault, and one connection needs no WAL);
* two locks: a lock file for processes that ask, SQLite's exclusive lock for programs that do not;
* a file is made whole or not at all, and one that is missing is never made anew by opening it: an empty ledger would
  allow a second draw, or a second opening.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from windvane_privacy.errors import KeyFileTooOpen, LedgerDamaged, LedgerFormat, LedgerLocked, StateExists
from windvane_privacy.keyfiles import require_platform, secure_folder, sync_folder


@dataclass(frozen=True, slots=True)
class FileKind:
    """What tells one kind of ledger from another: its file's name, SQLite's `application_id`, and the format's number
    (`user_version`, from 1; 0 is a file that was not made to its end)."""

    name: str
    application_id: int
    format: int

    @property
    def lock_name(self) -> str:
        """Name of the lock file beside it."""
        return Path(self.name).with_suffix(".lock").name


def create_file(folder: Path, kind: FileKind, schema: str, meta: Mapping[str, str] | None = None) -> None:
    """A new ledger in `folder` (made if it does not exist). `schema`: the statements that make its tables; `meta`: the
    first rows of its table `meta`, where it has one.

    Raises:
        StateExists: there is one.
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
        LedgerFormat: written by another version.
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
        self._lock = _lock(folder / kind.lock_name)
        try:
            self.connection = self._open(path, kind)
        except BaseException:
            os.close(self._lock)
            raise

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
            if version != kind.format:
                raise LedgerFormat
        except BaseException:
            connection.close()
            raise
        if rows != ["ok"] or foreign is not None:
            self.damage = "The database's own integrity check failed."
            connection.execute("PRAGMA query_only = ON")
        return connection


def _connect(path: Path) -> sqlite3.Connection:
    # Autocommit: every transaction is begun and ended by name in the ledgers.
    connection = sqlite3.connect(path, timeout=0, isolation_level=None, cached_statements=16)
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


def _named(error: sqlite3.DatabaseError) -> LedgerLocked | LedgerDamaged:
    locked = isinstance(error, sqlite3.OperationalError) and "locked" in str(error)
    return LedgerLocked() if locked else LedgerDamaged("The file cannot be read as a database.")


def _lock(path: Path) -> int:
    import fcntl  # not on Windows, where require_platform has refused before

    handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
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
