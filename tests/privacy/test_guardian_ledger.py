# SPDX-License-Identifier: Apache-2.0
"""The guardian's ledger and state folder: written once, checked at start, never silently made anew."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from guardian_world import ROUND, World
from manifests import derived
from windvane_privacy.errors import (
    ConfigurationError,
    GuardianNotPinned,
    IllegalTransition,
    KeyFileTooOpen,
    LedgerDamaged,
    LedgerFormat,
    LedgerLocked,
    PolicyMissing,
    StateExists,
)
from windvane_privacy.guardian_ledger import FILE, GuardianLedger
from windvane_privacy.guardian_state import init_guardian, load_guardian, own_card, pin_coordinator
from windvane_privacy.keyfiles import secure_folder

NONCE = derived("nonce")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = secure_folder(tmp_path / "state")
    GuardianLedger.create(made)
    return made


def test_a_round_goes_forward_and_keeps_every_byte(folder: Path) -> None:
    with GuardianLedger(folder) as ledger:
        assert ledger.round(ROUND) is None
        ledger.begin(ROUND, "key", NONCE, b"ready")
        ledger.keep_receipt(ROUND, "ready_receipt", b"receipt")
        ledger.reveal(ROUND, "m", "root", b"nonce")
        ledger.open_once(ROUND, "m", "root", "table", b"result", b"opened")
    with GuardianLedger(folder) as ledger:
        row = ledger.round(ROUND)
    assert row is not None
    assert (row.state, row.nonce, row.ready_leaf, row.ready_receipt) == ("opened", NONCE, b"ready", b"receipt")
    assert (row.set_root, row.nonce_leaf, row.result, row.opened_leaf) == ("root", b"nonce", b"result", b"opened")


def test_what_was_written_once_is_never_changed(folder: Path) -> None:
    with GuardianLedger(folder) as ledger:
        ledger.begin(ROUND, "key", NONCE, b"ready")
        with pytest.raises(IllegalTransition):
            ledger.begin(ROUND, "other", NONCE, b"ready")
        ledger.reveal(ROUND, "m", "root", b"nonce")
        with pytest.raises(IllegalTransition):
            ledger.reveal(ROUND, "m", "other", b"nonce")
        with pytest.raises(IllegalTransition):
            ledger.open_once(ROUND, "m", "other", "table", b"result", b"opened")
        ledger.open_once(ROUND, "m", "root", "table", b"result", b"opened")
        with pytest.raises(IllegalTransition):
            ledger.open_once(ROUND, "m", "root", "table", b"another", b"opened")
        ledger.keep_receipt(ROUND, "opened_receipt", b"receipt")
        with pytest.raises(IllegalTransition):
            ledger.keep_receipt(ROUND, "opened_receipt", b"another")
        with pytest.raises(IllegalTransition):
            ledger.keep_receipt(ROUND, "result", b"another")
        with pytest.raises(IllegalTransition):
            ledger.reveal("unknown", "m", "root", b"nonce")


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM round",
        "UPDATE round SET state = 'ready'",
        "UPDATE round SET state = 'nonce', result = NULL, opened_leaf = NULL, cohorts_sha256 = NULL",
        "UPDATE round SET result = x'00'",
        "UPDATE round SET nonce = zeroblob(32)",
        "UPDATE round SET set_root = 'other'",
        """INSERT OR REPLACE INTO round(round_id, state, round_key_id, nonce, ready_leaf)
        VALUES ('2026-Q3', 'ready', 'k', zeroblob(32), x'00')""",
        """INSERT INTO round(round_id, state, round_key_id, nonce, ready_leaf, manifest_sha256, set_root, nonce_leaf)
        VALUES ('2026-Q4', 'nonce', 'k', zeroblob(32), x'00', 'm', 'r', x'00')""",
    ],
)
def test_the_tables_themselves_refuse(folder: Path, statement: str) -> None:
    with GuardianLedger(folder) as ledger:
        ledger.begin(ROUND, "key", NONCE, b"ready")
        ledger.reveal(ROUND, "m", "root", b"nonce")
        ledger.open_once(ROUND, "m", "root", "table", b"result", b"opened")
        before = ledger.round(ROUND)
    connection = sqlite3.connect(folder / FILE.name)
    with pytest.raises(sqlite3.IntegrityError):
        connection.execute(statement)
    connection.close()
    with GuardianLedger(folder) as ledger:
        assert ledger.round(ROUND) == before
        assert ledger.round("2026-Q4") is None


def test_one_process_at_a_time(folder: Path) -> None:
    with GuardianLedger(folder), pytest.raises(LedgerLocked):
        GuardianLedger(folder)


def test_a_ledger_is_not_made_by_opening_and_not_made_twice(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(LedgerDamaged):
        GuardianLedger(secure_folder(tmp_path / "empty"))
    assert not (tmp_path / "empty" / FILE.name).exists()
    with pytest.raises(StateExists):
        GuardianLedger.create(folder)


def test_files_are_for_the_owner_only(folder: Path) -> None:
    assert stat.S_IMODE((folder / FILE.name).stat().st_mode) == 0o600
    (folder / FILE.name).chmod(0o640)
    with pytest.raises(KeyFileTooOpen):
        GuardianLedger(folder)


def test_a_damaged_file_is_refused(folder: Path) -> None:
    with GuardianLedger(folder) as ledger:
        ledger.begin(ROUND, "key", NONCE, b"r" * 20_000)
    raw = bytearray((folder / FILE.name).read_bytes())
    raw[len(raw) // 3 : len(raw) // 3 + 8000] = b"\xff" * 8000
    (folder / FILE.name).write_bytes(bytes(raw))
    with pytest.raises(LedgerDamaged):
        GuardianLedger(folder)
    (folder / FILE.name).write_bytes(b"no database at all, but some bytes" * 50)
    with pytest.raises(LedgerDamaged):
        GuardianLedger(folder)


def test_another_format_is_refused(folder: Path) -> None:
    connection = sqlite3.connect(folder / FILE.name)
    connection.execute(f"PRAGMA user_version = {FILE.format + 1}")
    connection.close()
    with pytest.raises(LedgerFormat):
        GuardianLedger(folder)


def test_the_journal_is_not_wal_and_every_commit_is_synced(folder: Path) -> None:
    with GuardianLedger(folder) as ledger:
        assert ledger._connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        assert ledger._connection.execute("PRAGMA synchronous").fetchone() == (3,)


@pytest.mark.process
def test_a_killed_process_leaves_what_it_committed_and_nothing_else(folder: Path) -> None:
    script = textwrap.dedent(
        """
        import os, signal, sys
        from pathlib import Path
        from windvane_privacy.guardian_ledger import GuardianLedger
        ledger = GuardianLedger(Path(sys.argv[1]))
        ledger.begin("2026-Q3", "key", bytes(32), b"ready")
        ledger.open_once("2026-Q3", "m", "root", "table", b"result", b"opened")
        with ledger._transaction() as connection:
            connection.execute("UPDATE round SET opened_receipt = x'01'")
            os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    ended = subprocess.run([sys.executable, "-c", script, str(folder)], check=False, env=os.environ)
    assert ended.returncode == -signal.SIGKILL
    with GuardianLedger(folder) as ledger:
        row = ledger.round(ROUND)
    assert row is not None
    assert (row.result, row.opened_receipt) == (b"result", None)


# --- the folder -------------------------------------------------------------------------------------------------------


def test_set_up_happens_once_and_in_order(tmp_path: Path) -> None:
    world = World(tmp_path)
    state = world.folders[1]
    with pytest.raises(StateExists):
        init_guardian(state, "Institute 1", "Group 1")
    with pytest.raises(StateExists):
        pin_coordinator(state, world.federation.encode(), demo=True)
    loaded = load_guardian(state)
    assert (loaded.index, loaded.policy.demo) == (1, True)
    assert loaded.coordinator == world.key.public
    assert own_card(state).identity == loaded.identity.public.hex()
    assert stat.S_IMODE((state / "identity.key").stat().st_mode) == 0o600


def test_a_federation_that_does_not_list_this_guardian_is_not_pinned(tmp_path: Path) -> None:
    world = World(tmp_path)
    stranger = tmp_path / "stranger"
    init_guardian(stranger, "Institute 1", "Group 1")
    with pytest.raises(GuardianNotPinned):
        pin_coordinator(stranger, world.federation.encode())
    with pytest.raises(PolicyMissing):
        load_guardian(stranger)


def test_a_federation_is_not_exchanged_behind_the_policys_back(tmp_path: Path) -> None:
    world = World(tmp_path)
    path = world.folders[1] / "policy.toml"
    path.write_text(path.read_text().replace(world.key.public.hex(), "0" * 64))
    with pytest.raises(ConfigurationError):
        load_guardian(world.folders[1])


def test_round_keys_are_made_once_and_kept_private(tmp_path: Path) -> None:
    loaded = load_guardian(World(tmp_path).folders[2])
    key = loaded.make_round_key(ROUND)
    assert loaded.make_round_key(ROUND).key_id == key.key_id == loaded.round_key(ROUND).key_id
    assert loaded.make_round_key("2026-Q4").key_id != key.key_id
    assert stat.S_IMODE((loaded.folder / f"round-{ROUND}.key").stat().st_mode) == 0o600
    with pytest.raises(ConfigurationError):
        loaded.round_key("2027-Q1")
