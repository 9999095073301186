# SPDX-License-Identifier: Apache-2.0
"""The database itself refuses what no program may do; damage is noticed and stops every write."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from ledger_steps import DAY, commit, draw, finish, manifest_of, new_ledger, open_ledger
from windvane_privacy.errors import KeyFileTooOpen, LedgerDamaged, LedgerFormat, StateExists
from windvane_privacy.ledger import Ledger
from windvane_privacy.ledger_schema import FROZEN, BurnReason, State

SAME = "2026-Q3"


@pytest.fixture
def committed(tmp_path: Path) -> sqlite3.Connection:
    """A program that writes to a ledger with one committed and one accepted round behind the ledger's back."""
    with new_ledger(tmp_path / "l") as ledger:
        finish(ledger, manifest_of("2026-Q2", start="2026-04-01", end="2026-07-01"))
        commit(ledger, draw(ledger, manifest_of()))
    connection = sqlite3.connect(tmp_path / "l" / "ledger.db", isolation_level=None)
    yield connection
    connection.close()


STATES = [state.value for state in State]
LEGAL = {
    ("drawn", "committed"), ("drawn", "burned"), ("committed", "revealed"), ("committed", "burned"),
    ("revealed", "accepted"), ("revealed", "burned"),
}  # fmt: skip


def _to(after: str) -> str:
    """An update whose every other column fits the state that it goes to, so that only the step can be refused."""
    ended, receipt = after in ("accepted", "burned"), after in ("committed", "revealed", "accepted")
    return f"""UPDATE round SET state = '{after}', ended_day = {f"coalesce(ended_day, '{DAY}')" if ended else "NULL"},
        receipt = {"coalesce(receipt, x'01')" if receipt else "receipt"},
        acceptance = {"coalesce(acceptance, x'01')" if after == "accepted" else "NULL"},
        reason = {"coalesce(reason, 'aborted')" if after == "burned" else "NULL"},
        envelope = {"NULL" if ended else "coalesce(envelope, x'01')"}"""


@pytest.mark.parametrize("before", STATES)
@pytest.mark.parametrize("after", STATES)
def test_only_the_steps_of_a_round_are_possible(tmp_path: Path, before: str, after: str) -> None:
    manifest = manifest_of()
    with new_ledger(tmp_path / "l") as ledger:
        entry = draw(ledger, manifest)
        if before in ("committed", "revealed", "accepted"):
            commit(ledger, entry)
        if before in ("revealed", "accepted"):
            ledger.reveal(manifest.round)
        if before == "accepted":
            ledger._update(
                manifest.round, "state = 'accepted', acceptance = x'01', envelope = NULL, ended_day = ?", DAY
            )
        if before == "burned":
            ledger.burn(manifest.round, BurnReason.ABORTED, [], DAY)
        if (before, after) in LEGAL:
            ledger._sql.execute(_to(after))
        elif before != after:
            with pytest.raises(sqlite3.IntegrityError, match=r"step|over|once"):
                ledger._sql.execute(_to(after))


@pytest.mark.parametrize("column", [*FROZEN, "prev_hash", "entry_hash"])
def test_what_was_agreed_charged_and_committed_never_changes(committed: sqlite3.Connection, column: str) -> None:
    kind = committed.execute(f"SELECT typeof({column}) FROM round WHERE round_id = '{SAME}'").fetchone()[0]
    value = {"integer": f"{column} + 1", "blob": "x'00'"}.get(kind, "'0'")
    with pytest.raises(sqlite3.IntegrityError):
        committed.execute(f"UPDATE round SET {column} = {value} WHERE round_id = '{SAME}'")


REFUSED = {
    "deleting a round": "DELETE FROM round",
    "replacing a round": "INSERT OR REPLACE INTO round SELECT * FROM round",
    "deleting a charge": "DELETE FROM person_quarter",
    "replacing a charge": "INSERT OR REPLACE INTO person_quarter SELECT * FROM person_quarter",
    "moving a charge": "UPDATE person_quarter SET person_key = x'00000000000000000000000000000000'",
    "deleting an approval": "DELETE FROM approval",
    "changing an approval": "UPDATE approval SET manifest_sha256 = '0'",
    "replacing an approval": "INSERT OR REPLACE INTO approval VALUES ('2026-Q3', '0', '2026-01-01')",
    "another envelope": f"UPDATE round SET envelope = x'00' WHERE round_id = '{SAME}'",
    "another noisy vector": f"UPDATE round SET noisy = x'00' WHERE round_id = '{SAME}'",
    "deleting a noisy vector too early": f"UPDATE round SET noisy = NULL WHERE round_id = '{SAME}'",
    "another receipt": f"UPDATE round SET receipt = x'00' WHERE round_id = '{SAME}'",
    "a second end": "UPDATE round SET ended_day = '2030-01-01' WHERE round_id = '2026-Q2'",
    "own directions before the end": f"INSERT INTO own_directions VALUES ('{SAME}', 'all', 'completion', 'a|b', 'even')",  # noqa: E501
    "another installation": "UPDATE meta SET value = '0' WHERE key = 'install_id'",
    "replacing the installation": "INSERT OR REPLACE INTO meta VALUES ('install_id', '0')",
    "deleting the installation": "DELETE FROM meta",
    "a round born revealed": (
        "INSERT INTO round SELECT 'x', 9, manifest_sha256, 'revealed', rho_num, rho_den, q, s, h, s_i, events_from,"
        " events_to, everyone, approved_at_day, drawn_day, submission_id, x'00', commitment_leaf, commit_hash, noisy,"
        " x'00', NULL, NULL, NULL, opendp_json, versions, people_sha256, prev_hash, entry_hash FROM round"
        f" WHERE round_id = '{SAME}'"
    ),
}


@pytest.mark.parametrize("statement", REFUSED.values(), ids=REFUSED.keys())
def test_no_program_can_rewrite_history(committed: sqlite3.Connection, statement: str) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        committed.execute(statement)


# --- damage -------------------------------------------------------------------------------------------------------

TAMPERED = {
    "a smaller charge": "UPDATE round SET rho_num = 1",
    "a charged person less": "DELETE FROM person_quarter",
    "another envelope": "UPDATE round SET envelope = x'00' WHERE envelope IS NOT NULL",
    "another commitment": "UPDATE round SET commitment_leaf = x'00'",
    "the newest round gone": "DELETE FROM round WHERE round_id = '2026-Q3'",
    "the oldest round gone": "DELETE FROM round WHERE round_id = '2026-Q2'",
}


@pytest.mark.parametrize("statement", TAMPERED.values(), ids=TAMPERED.keys())
def test_tampering_leaves_the_ledger_readable_and_refuses_every_write(tmp_path: Path, statement: str) -> None:
    with new_ledger(tmp_path / "l") as ledger:
        finish(ledger, manifest_of("2026-Q2", start="2026-04-01", end="2026-07-01"))
        entry = draw(ledger, manifest_of())
    connection = sqlite3.connect(tmp_path / "l" / "ledger.db")
    names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")]
    for name in names:
        connection.execute(f"DROP TRIGGER {name}")
    connection.execute("PRAGMA ignore_check_constraints = ON")
    connection.execute(statement)
    connection.commit()
    connection.close()
    with open_ledger(tmp_path / "l") as ledger:
        assert ledger.damage is not None
        assert ledger.rounds() is not None
        for write in (
            lambda: ledger.approve("2027-Q1", "0" * 64, DAY),
            lambda: (
                ledger.burn(SAME, BurnReason.ABORTED, [], DAY) if ledger.round(SAME) else ledger.note_policy("0", DAY)
            ),
            lambda: ledger.remember_head(b"x"),
            lambda: draw(ledger, manifest_of("2027-Q2")),
        ):
            with pytest.raises(LedgerDamaged):
                write()
        assert entry.round_id == SAME


def test_a_damaged_file_is_named_and_not_opened(tmp_path: Path) -> None:
    new_ledger(tmp_path / "l").close()
    path = tmp_path / "l" / "ledger.db"
    whole = path.read_bytes()
    for raw in (b"", b"not a database" * 100, whole[:100], b"\0" * len(whole)):
        path.write_bytes(raw)
        with pytest.raises(LedgerDamaged):
            open_ledger(tmp_path / "l")
    path.unlink()
    with pytest.raises(LedgerDamaged):
        open_ledger(tmp_path / "l")
    assert not path.exists()  # opening never makes an empty ledger


def test_a_flipped_page_is_noticed(tmp_path: Path) -> None:
    with new_ledger(tmp_path / "l") as ledger:
        draw(ledger, manifest_of())
    path = tmp_path / "l" / "ledger.db"
    raw = bytearray(path.read_bytes())
    place = raw.rindex(manifest_of().sha256.encode())
    raw[place] ^= 1
    path.write_bytes(raw)
    with open_ledger(tmp_path / "l") as ledger:
        assert ledger.damage is not None


def test_a_ledger_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    new_ledger(tmp_path / "l").close()
    connection = sqlite3.connect(tmp_path / "l" / "ledger.db")
    connection.execute("PRAGMA user_version = 2")
    connection.close()
    with pytest.raises(LedgerFormat):
        open_ledger(tmp_path / "l")


def test_a_ledger_that_others_can_read_is_refused(tmp_path: Path) -> None:
    new_ledger(tmp_path / "l").close()
    (tmp_path / "l" / "ledger.db").chmod(0o644)
    with pytest.raises(KeyFileTooOpen):
        open_ledger(tmp_path / "l")
    (tmp_path / "l" / "ledger.db").chmod(0o600)
    (tmp_path / "l").chmod(0o755)
    with pytest.raises(KeyFileTooOpen):
        open_ledger(tmp_path / "l")


def test_a_link_in_the_ledgers_place_is_refused(tmp_path: Path) -> None:
    new_ledger(tmp_path / "l").close()
    moved = tmp_path / "elsewhere.db"
    shutil.move(tmp_path / "l" / "ledger.db", moved)
    (tmp_path / "l" / "ledger.db").symlink_to(moved)
    with pytest.raises(LedgerDamaged):
        open_ledger(tmp_path / "l")
    with pytest.raises(StateExists):
        Ledger.create(tmp_path / "l", key_id="0" * 64, machine_id="0" * 64)


def test_a_half_made_ledger_does_not_stand_in_the_way(tmp_path: Path) -> None:
    folder = tmp_path / "l"
    folder.mkdir(mode=0o700)
    (folder / "ledger.db.new").write_bytes(b"half")
    new_ledger(folder).close()
    assert not (folder / "ledger.db.new").exists()


def test_the_settings_that_make_it_durable_are_in_force(tmp_path: Path) -> None:
    with new_ledger(tmp_path / "l") as ledger:
        settings = {
            name: ledger._sql.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "locking_mode", "foreign_keys", "trusted_schema")
        }
    assert settings == {
        "journal_mode": "delete", "synchronous": 3, "locking_mode": "exclusive", "foreign_keys": 1, "trusted_schema": 0,
    }  # fmt: skip
