# SPDX-License-Identifier: Apache-2.0
"""What the ledger does when something goes wrong: a full disk, a changed file, a repeated step, an interruption.

Rules kept here:
* every fault is a real one: the database's own limits, its own file changed by another program;
* each test says what must still be true afterwards.
"""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from ledger_steps import CAP, DAY, PEOPLE, accepted, commit, draw, drawn, finish, manifest_of, new_ledger, open_ledger
from manifests import member_key
from windvane_privacy.catalogue import Signal
from windvane_privacy.errors import IllegalTransition, LedgerDamaged, LedgerError
from windvane_privacy.ledger import Ledger
from windvane_privacy.ledger_schema import BurnReason, Drawn, State
from windvane_privacy.ledger_view import Admission, LedgerView
from windvane_privacy.votes import OwnDirection

WORD = OwnDirection("all", Signal.COMPLETION, "alder", "birch", "toward_a")


def changed(folder: Path, statement: str) -> None:
    """Another program changes the file."""
    with sqlite3.connect(folder / "ledger.db") as connection:
        connection.execute(statement)
    connection.close()


def test_a_full_disk_refuses_the_draw_and_charges_nothing(tmp_path: Path) -> None:
    manifest = manifest_of()
    with new_ledger(tmp_path / "l") as ledger:
        ledger.approve(manifest.round, manifest.sha256, DAY)
        ledger._sql.execute("PRAGMA max_page_count = 1")  # SQLite takes the present size: not one page more
        large = replace(drawn(manifest), opendp_json=" " * 50_000)
        with pytest.raises(LedgerError, match="disk"):
            ledger.draw(manifest, day=DAY, lifetime_cap=CAP, make=lambda _admits: large)
        assert ledger.round(manifest.round) is None
        ledger._sql.execute("PRAGMA max_page_count = 100000")
        assert draw(ledger, manifest).state is State.DRAWN


def test_what_the_database_itself_refuses_is_an_illegal_step_and_changes_nothing(tmp_path: Path) -> None:
    manifest = manifest_of()
    with new_ledger(tmp_path / "l") as ledger:
        entry = draw(ledger, manifest)
        commit(ledger, entry)
        ledger.reveal(manifest.round)
        with pytest.raises(IllegalTransition, match="refused"):
            ledger.accept(manifest.round, accepted(manifest, entry.commit_hash or ""), [WORD, WORD], DAY)
        found = ledger.round(manifest.round)
        assert found is not None
        assert (found.state, found.envelope) == (State.REVEALED, entry.envelope)


def test_a_ledger_without_its_tables_is_damaged_and_gives_the_lock_back(tmp_path: Path) -> None:
    new_ledger(tmp_path / "l").close()
    changed(tmp_path / "l", "DROP TABLE approval")
    changed(tmp_path / "l", "DROP TABLE meta")
    for _ in range(2):  # a lock that was kept would say `LedgerLocked` the second time
        with pytest.raises(LedgerDamaged):
            open_ledger(tmp_path / "l")


def test_an_interrupted_opening_gives_the_lock_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new_ledger(tmp_path / "l").close()

    def interrupted(_view: LedgerView) -> str | None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(LedgerView, "_broken_chain", interrupted)
        with pytest.raises(KeyboardInterrupt):
            open_ledger(tmp_path / "l")
    open_ledger(tmp_path / "l").close()


def test_a_ledger_that_was_not_made_to_its_end_takes_nothing(tmp_path: Path) -> None:
    new_ledger(tmp_path / "l").close()
    changed(tmp_path / "l", "DROP TRIGGER meta_kept")
    changed(tmp_path / "l", "DELETE FROM meta WHERE key = 'install_id'")
    with open_ledger(tmp_path / "l") as ledger:
        assert ledger.damage is not None
        assert ledger.install_id == ""
        with pytest.raises(LedgerDamaged):
            ledger.approve("2026-Q3", "0" * 64, DAY)


def test_a_damaged_ledger_does_not_hand_out_an_envelope_again(tmp_path: Path) -> None:
    manifest = manifest_of()
    with new_ledger(tmp_path / "l") as ledger:
        commit(ledger, draw(ledger, manifest))
        envelope = ledger.reveal(manifest.round)
        assert ledger.reveal(manifest.round) == envelope
    changed(tmp_path / "l", "UPDATE meta SET value = '00' WHERE key = 'chain_head'")
    with open_ledger(tmp_path / "l") as ledger:
        assert ledger.damage is not None
        with pytest.raises(LedgerDamaged):
            ledger.reveal(manifest.round)


def test_an_envelope_changed_on_the_disk_is_never_handed_out(tmp_path: Path) -> None:
    manifest = manifest_of()
    with new_ledger(tmp_path / "l") as ledger:
        commit(ledger, draw(ledger, manifest))
    changed(tmp_path / "l", "DROP TRIGGER round_envelope")
    changed(tmp_path / "l", "UPDATE round SET envelope = x'00'")
    with open_ledger(tmp_path / "l") as ledger:
        assert ledger.damage is not None
        assert "not the one that was committed" in ledger.damage
        with pytest.raises(LedgerDamaged):
            ledger.reveal(manifest.round)


def test_the_same_head_and_the_same_machine_write_nothing(tmp_path: Path) -> None:
    with new_ledger(tmp_path / "l") as ledger:
        ledger.remember_head(b"head")
        before = ledger._sql.total_changes
        ledger.remember_head(b"head")
        ledger.confirm_machine(DAY)
        assert ledger._sql.total_changes == before
        ledger.remember_head(b"newer")
        assert ledger._sql.total_changes > before
        assert ledger.last_head == b"newer"


def test_a_ledger_knows_whose_it_is_and_what_was_approved_in_order(tmp_path: Path) -> None:
    with new_ledger(tmp_path / "l") as ledger, new_ledger(tmp_path / "m") as other:
        assert ledger.key_id == member_key(1).key_id
        assert len(bytes.fromhex(ledger.install_id)) == 16
        assert ledger.install_id != other.install_id
        for name in ("2026-Q4", "2026-Q3"):
            ledger.approve(name, "0" * 64, DAY)
            ledger.approve(name, "0" * 64, "2026-12-24")
        assert ledger.approvals() == ["2026-Q4", "2026-Q3"]
        assert ledger.approval("2026-Q3") == ("0" * 64, DAY)


def test_no_step_is_taken_on_a_round_that_does_not_exist(tmp_path: Path) -> None:
    manifest = manifest_of()
    with new_ledger(tmp_path / "l") as ledger:
        with pytest.raises(IllegalTransition):
            ledger.reveal(manifest.round)
        with pytest.raises(IllegalTransition):
            ledger.accept(manifest.round, accepted(manifest, "0" * 64), [], DAY)
        finish(ledger, manifest)
        with pytest.raises(IllegalTransition):
            ledger.reveal(manifest.round)
        assert ledger.lifetime() == (1, Fraction(9, 128))


def test_a_refused_approval_inside_a_draw_takes_the_draw_with_it(tmp_path: Path) -> None:
    """A transaction inside the transaction of a draw is a fault of this program; nothing may be left of either."""
    manifest = manifest_of()
    with new_ledger(tmp_path / "l") as ledger:
        ledger.approve(manifest.round, manifest.sha256, DAY)
        with pytest.raises(LedgerError):
            ledger.draw(
                manifest,
                day=DAY,
                lifetime_cap=CAP,
                make=lambda _admits: ledger.approve("2027-Q1", "0" * 64, DAY),  # type: ignore[arg-type,return-value]
            )
        assert ledger.rounds() == []
        assert ledger.approval("2027-Q1") is None
        assert not ledger._sql.in_transaction


def test_ledgers_of_two_members_share_nothing(tmp_path: Path) -> None:
    Ledger.create(tmp_path / "a", key_id="a", machine_id="m")
    with Ledger.open(tmp_path / "a", machine_id="m") as first, new_ledger(tmp_path / "b") as second:
        first.approve("2026-Q3", "0" * 64, DAY)
        assert second.approvals() == []


def test_a_burned_round_counts_against_a_persons_cap_for_ever(tmp_path: Path) -> None:
    first = manifest_of("2026-Q3", s=52)
    second = manifest_of("2026-Q4", s=52, start="2026-10-01", end="2027-01-01")
    assert first.rho == CAP  # one such round uses all of it
    asked: list[bool] = []

    def make(admits: Admission) -> Drawn:
        asked.extend(admits(person) for person in (*PEOPLE, b"newcomer".ljust(16)))
        return drawn(second, persons=())

    with new_ledger(tmp_path / "l") as ledger:
        draw(ledger, first)
        ledger.burn(first.round, BurnReason.ABORTED, [], DAY)
        ledger.approve(second.round, second.sha256, DAY)
        ledger.draw(second, day=DAY, lifetime_cap=CAP, make=make)
        assert asked == [False] * len(PEOPLE) + [True]
        assert ledger.lifetime() == (2, 2 * CAP)
