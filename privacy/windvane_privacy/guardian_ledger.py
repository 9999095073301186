# SPDX-License-Identifier: Apache-2.0
"""What a guardian must never forget: its nonce, what it revealed, and that it opened a round, for which set.

Rules kept here:
* the file's own rules are those of `sqlite_file.py`: one process, synced commits, owner only, never made by opening;
* `ready -> nonce -> opened` (or `ready -> opened` for a guardian that was away at the lot), never back, never deleted;
* what was written once is never changed: a retry sends the same bytes;
* the opened result is on the disk before its first byte leaves;
* an envelope that a member handed over is kept as it came, and is neither changed nor deleted;
* that a round's key is to be destroyed is written before the key goes, and the entry for the log with it;
* a row has no printable form: neither its nonce nor its result can reach a log by accident;
* a damaged file is refused altogether: unlike a member, a guardian reads nothing from it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import Self

from windvane_privacy.errors import IllegalTransition, LedgerDamaged, LedgerError
from windvane_privacy.sqlite_file import FileKind, SqliteFile, create_file, roll_back

_HELD = (
    """CREATE TABLE held(
  round_id TEXT NOT NULL REFERENCES round(round_id), member INTEGER NOT NULL,
  hash TEXT NOT NULL, envelope BLOB NOT NULL, PRIMARY KEY(round_id, member)
) STRICT, WITHOUT ROWID""",
    """CREATE TABLE omission(
  round_id TEXT PRIMARY KEY REFERENCES round(round_id), leaf BLOB NOT NULL
) STRICT, WITHOUT ROWID""",
    *(
        f"CREATE TRIGGER {table}_{verb.lower()} BEFORE {verb} ON {table} BEGIN SELECT RAISE(ABORT, 'written once'); END"
        for table in ("held", "omission")
        for verb in ("UPDATE", "DELETE")
    ),
)
_DESTROYED = (
    """CREATE TABLE destroyed(
  round_id TEXT PRIMARY KEY REFERENCES round(round_id), leaf BLOB NOT NULL
) STRICT, WITHOUT ROWID""",
    *(
        f"CREATE TRIGGER destroyed_{verb.lower()} BEFORE {verb} ON destroyed "
        "BEGIN SELECT RAISE(ABORT, 'written once'); END"
        for verb in ("UPDATE", "DELETE")
    ),
)
FILE = FileKind("guardian.db", application_id=0x57564731, format=3, upgrades={1: _HELD, 2: _DESTROYED})  # "WVG1"


@dataclass(frozen=True, slots=True, repr=False)
class GuardianRound:
    """One row: the bytes of a round as they were sent, or are to be sent. Unset until their step is done."""

    round_id: str
    state: str
    round_key_id: str
    nonce: bytes
    ready_leaf: bytes
    ready_receipt: bytes | None
    manifest_sha256: str | None
    set_root: str | None
    nonce_leaf: bytes | None
    nonce_receipt: bytes | None
    cohorts_sha256: str | None
    result: bytes | None
    opened_leaf: bytes | None
    opened_receipt: bytes | None


_COLUMNS = tuple(f.name for f in fields(GuardianRound))
_RECEIPTS = frozenset({"ready_receipt", "nonce_receipt", "opened_receipt"})


class GuardianLedger:
    """The open ledger of one guardian. Use it as a context, or call `close`."""

    def __init__(self, folder: Path) -> None:
        """Open the ledger in `folder`.

        Raises:
            LedgerDamaged: missing, not a ledger, or its integrity check failed.
            LedgerLocked: another process has it open.
            LedgerFormat: written by another version.
            KeyFileTooOpen: others can read it.
            UnsupportedPlatform: no file locks here.
        """
        self._file = SqliteFile(folder, FILE)
        if self._file.damage is not None:
            self._file.close()
            raise LedgerDamaged(self._file.damage)
        try:
            self._file.upgrade()
        except BaseException:
            self._file.close()
            raise
        self._connection = self._file.connection

    @classmethod
    def create(cls, folder: Path) -> None:
        """Make an empty ledger.

        Raises:
            StateExists: there is one.
            KeyFileTooOpen: the folder can be read by others.
            UnsupportedPlatform: no file locks here.
        """
        create_file(folder, FILE, _SCHEMA)

    def close(self) -> None:
        """Close the file and give up its lock."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- rounds ---

    def round(self, round_id: str) -> GuardianRound | None:
        """The row of a round, or None before `ready`."""
        query = f"SELECT {', '.join(_COLUMNS)} FROM round WHERE round_id = ?"
        row = self._file.row(query, (round_id,))
        return None if row is None else GuardianRound(*row)

    def rounds(self) -> list[GuardianRound]:
        """Every round of this guardian, by name."""
        found = self._file.rows(f"SELECT {', '.join(_COLUMNS)} FROM round ORDER BY round_id")
        return [GuardianRound(*row) for row in found]

    def begin(self, round_id: str, round_key_id: str, nonce: bytes, ready_leaf: bytes) -> None:
        """Write `ready`. Raises IllegalTransition where the round has begun before."""
        with self._transaction() as connection:
            connection.execute(
                "INSERT INTO round(round_id, state, round_key_id, nonce, ready_leaf) VALUES (?, 'ready', ?, ?, ?)",
                (round_id, round_key_id, nonce, ready_leaf),
            )

    def reveal(self, round_id: str, manifest_sha256: str, set_root: str, nonce_leaf: bytes) -> None:
        """Write `nonce`: from now on the nonce counts as known, bound to this set."""
        self._update(
            round_id,
            "ready",
            state="nonce",
            manifest_sha256=manifest_sha256,
            set_root=set_root,
            nonce_leaf=nonce_leaf,
        )

    def open_once(
        self,
        round_id: str,
        manifest_sha256: str,
        set_root: str,
        cohorts_sha256: str,
        result: bytes,
        opened_leaf: bytes,
    ) -> None:
        """Write `opened` with the signed result and its leaf; returns when both are on the disk."""
        self._update(
            round_id,
            None,
            state="opened",
            manifest_sha256=manifest_sha256,
            set_root=set_root,
            cohorts_sha256=cohorts_sha256,
            result=result,
            opened_leaf=opened_leaf,
        )

    def keep_receipt(self, round_id: str, column: str, receipt: bytes) -> None:
        """Keep the receipt of a leaf. `column`: ready_receipt, nonce_receipt or opened_receipt."""
        if column not in _RECEIPTS:
            raise IllegalTransition
        self._update(round_id, None, **{column: receipt})

    # --- what members handed over ---

    def hold(self, round_id: str, member: int, commit_hash: str, envelope: bytes) -> None:
        """Keep a handed-over envelope; the same one again changes nothing.

        Raises:
            IllegalTransition: the round has not begun here, or another envelope of this member is held.
        """
        if (member, commit_hash) in self.held(round_id):
            return
        with self._transaction() as connection:
            connection.execute("INSERT INTO held VALUES (?, ?, ?, ?)", (round_id, member, commit_hash, envelope))

    def held(self, round_id: str) -> list[tuple[int, str]]:
        """Member number and commit hash of every envelope that is held for a round."""
        rows = self._file.rows("SELECT member, hash FROM held WHERE round_id = ? ORDER BY member", (round_id,))
        return [(int(row[0]), str(row[1])) for row in rows]

    def omission(self, round_id: str) -> bytes | None:
        """The entry that says that members were left out of a round, if there is one."""
        row = self._file.row("SELECT leaf FROM omission WHERE round_id = ?", (round_id,))
        return None if row is None else bytes(row[0])

    def keep_omission(self, round_id: str, leaf: bytes) -> None:
        """Keep that entry, so that the same bytes are sent each time."""
        with self._transaction() as connection:
            connection.execute("INSERT INTO omission VALUES (?, ?)", (round_id, leaf))

    # --- the end of a round's key ---

    def destroyed(self, round_id: str) -> bytes | None:
        """The entry that says that the round's key is destroyed, once that was decided."""
        row = self._file.row("SELECT leaf FROM destroyed WHERE round_id = ?", (round_id,))
        return None if row is None else bytes(row[0])

    def destroy(self, round_id: str, leaf: bytes) -> None:
        """Write that the round's key is to be destroyed, with the entry that says so afterwards."""
        with self._transaction() as connection:
            connection.execute("INSERT INTO destroyed VALUES (?, ?)", (round_id, leaf))

    # --- what was seen last ---

    def recall(self, key: str) -> bytes | None:
        """A remembered document: "roster" (the last one accepted) or "head" (the last one seen)."""
        row = self._file.row("SELECT value FROM memory WHERE key = ?", (key,))
        return None if row is None else bytes(row[0])

    def remember(self, key: str, value: bytes) -> None:
        """Replace a remembered document."""
        with self._transaction() as connection:
            connection.execute(
                "INSERT INTO memory(key, value) VALUES (?, ?) ON CONFLICT(key) DO UPDATE SET value = excluded.value",
                (key, value),
            )

    def _update(self, round_id: str, only_from: str | None, **columns: str | bytes) -> None:
        assignments = ", ".join(f"{name} = ?" for name in columns)
        condition = "" if only_from is None else " AND state = ?"
        values = (*columns.values(), round_id, *(() if only_from is None else (only_from,)))
        with self._transaction() as connection:
            changed = connection.execute(f"UPDATE round SET {assignments} WHERE round_id = ?{condition}", values)
            if changed.rowcount != 1:
                raise IllegalTransition

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            yield self._connection
            self._connection.execute("COMMIT")
        except sqlite3.IntegrityError as error:
            roll_back(self._connection)
            raise IllegalTransition from error
        except sqlite3.Error:
            roll_back(self._connection)
            raise LedgerError("The disk did not take the entry; nothing was sent.") from None
        except BaseException:
            roll_back(self._connection)
            raise


_FROZEN = ("round_id", "round_key_id", "nonce", "ready_leaf")
_ONCE = tuple(name for name in _COLUMNS if name not in {"state", *_FROZEN})
_SCHEMA = f"""
CREATE TABLE memory(key TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE round(
  round_id TEXT PRIMARY KEY,
  state TEXT NOT NULL CHECK (state IN ('ready','nonce','opened')),
  round_key_id TEXT NOT NULL, nonce BLOB NOT NULL CHECK (length(nonce) = 32), ready_leaf BLOB NOT NULL,
  ready_receipt BLOB, manifest_sha256 TEXT, set_root TEXT, nonce_leaf BLOB, nonce_receipt BLOB,
  cohorts_sha256 TEXT, result BLOB, opened_leaf BLOB, opened_receipt BLOB,
  CHECK (state <> 'ready' OR (set_root IS NULL AND nonce_leaf IS NULL)),
  CHECK (state <> 'nonce' OR (set_root IS NOT NULL AND nonce_leaf IS NOT NULL)),
  CHECK ((state = 'opened') = (result IS NOT NULL)),
  CHECK ((state = 'opened') = (opened_leaf IS NOT NULL)),
  CHECK ((state = 'opened') = (cohorts_sha256 IS NOT NULL)),
  CHECK ((set_root IS NULL) = (manifest_sha256 IS NULL))
) STRICT;
CREATE TRIGGER round_once BEFORE INSERT ON round
  WHEN NEW.state <> 'ready' OR EXISTS (SELECT 1 FROM round WHERE round_id = NEW.round_id)
  BEGIN SELECT RAISE(ABORT, 'a round begins once'); END;
CREATE TRIGGER round_kept BEFORE DELETE ON round BEGIN SELECT RAISE(ABORT, 'a round is never deleted'); END;
CREATE TRIGGER round_step BEFORE UPDATE ON round
  WHEN NOT (NEW.state = OLD.state OR (OLD.state = 'ready' AND NEW.state = 'nonce')
    OR (OLD.state IN ('ready','nonce') AND NEW.state = 'opened'))
  BEGIN SELECT RAISE(ABORT, 'not a step of a round'); END;
CREATE TRIGGER round_frozen BEFORE UPDATE ON round
  WHEN {" OR ".join(f"NEW.{name} IS NOT OLD.{name}" for name in _FROZEN)}
    OR {" OR ".join(f"(OLD.{name} IS NOT NULL AND NEW.{name} IS NOT OLD.{name})" for name in _ONCE)}
  BEGIN SELECT RAISE(ABORT, 'written once'); END;
"""
_SCHEMA += "".join(f"{statement};\n" for statement in (*_HELD, *_DESTROYED))
