# SPDX-License-Identifier: Apache-2.0
"""A member's own stop is kept for ever; counts of an ended round are kept for one look."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from ledger_steps import DAY, PEOPLE, accepted, commit, draw, finish, manifest_of, new_ledger, open_ledger
from windvane_privacy.errors import IllegalTransition, LedgerDamaged
from windvane_privacy.ledger import Ledger
from windvane_privacy.ledger_schema import BurnReason, State, Stop, StopReason
from windvane_privacy.own import OwnCounts

M = manifest_of()
COUNTS = OwnCounts(((3, 1), (0, 12)), people=15, malformed=1)
STOP = Stop(StopReason.LEGAL, b"a signed leaf")


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    with new_ledger(tmp_path / "l") as opened:
        yield opened


def ended(ledger: Ledger, manifest=M, counts: OwnCounts | None = COUNTS) -> None:
    entry = draw(ledger, manifest)
    commit(ledger, entry)
    ledger.reveal(manifest.round)
    ledger.accept(manifest.round, accepted(manifest, entry.commit_hash or ""), [], DAY, counts)


def test_a_stop_before_the_draw_charges_nobody_and_cannot_be_taken_back(ledger: Ledger) -> None:
    ledger.stop_undrawn(M.round, StopReason.KEY_LOSS, DAY)
    ledger.stop_undrawn(M.round, StopReason.LEGAL, DAY)
    assert ledger.stop(M.round) == Stop(StopReason.KEY_LOSS, None)
    assert ledger.stops() == [(M.round, Stop(StopReason.KEY_LOSS, None))]
    assert ledger.lifetime() == (0, 0)
    # The database itself refuses the draw, whatever program asks.
    with pytest.raises(IllegalTransition, match="stopped the round"):
        draw(ledger, M)
    for statement in ("DELETE FROM stop", "UPDATE stop SET reason = 'legal'"):
        with pytest.raises(sqlite3.IntegrityError):
            ledger._sql.execute(statement)


def test_a_stop_after_the_draw_burns_and_stays_charged(ledger: Ledger) -> None:
    draw(ledger, M)
    with pytest.raises(IllegalTransition):
        ledger.stop_undrawn(M.round, StopReason.LEGAL, DAY)
    ledger.burn(M.round, BurnReason.STOPPED, [], DAY, COUNTS, STOP)
    entry = ledger.round(M.round)
    assert entry is not None
    assert (entry.state, entry.reason, entry.envelope) == (State.BURNED, BurnReason.STOPPED, None)
    assert ledger.stop(M.round) == STOP
    assert ledger.lifetime() == (1, M.rho)


@pytest.mark.parametrize(("reason", "stop"), [(BurnReason.STOPPED, None), (BurnReason.ABORTED, STOP)])
def test_a_stop_and_its_reason_come_together(ledger: Ledger, reason: BurnReason, stop: Stop | None) -> None:
    draw(ledger, M)
    with pytest.raises(IllegalTransition):
        ledger.burn(M.round, reason, [], DAY, None, stop)
    assert ledger.round(M.round).state is State.DRAWN


def test_counts_come_after_the_end_and_go_after_one_look(ledger: Ledger) -> None:
    draw(ledger, M)
    assert ledger.counts(M.round) is None
    with pytest.raises(sqlite3.IntegrityError):
        ledger._sql.execute("INSERT INTO round_people VALUES (?, 1, 0)", (M.round,))
    with pytest.raises(IllegalTransition):
        ledger.forget_shown(M.round)
    with pytest.raises(IllegalTransition):
        ledger.forget_shown("2031-Q1")
    ledger.burn(M.round, BurnReason.ABORTED, [], DAY, COUNTS)
    assert ledger.counts(M.round) == COUNTS
    assert ledger.charged_people(M.round) == len(PEOPLE)
    assert ledger.charged_people("2031-Q1") == 0
    ledger.forget_shown(M.round)
    ledger.forget_shown(M.round)
    assert ledger.counts(M.round) is None
    assert ledger.round(M.round).noisy is None
    assert ledger.lifetime() == (1, M.rho)


def test_counts_and_noisy_numbers_go_together_after_45_days(ledger: Ledger) -> None:
    ended(ledger)
    with pytest.raises(sqlite3.IntegrityError):
        ledger._sql.execute("UPDATE round_cells SET toward_a = 9")
    ledger.forget_noisy(DAY)
    assert ledger.counts(M.round) == COUNTS
    ledger.forget_noisy("2026-12-01")
    assert ledger.counts(M.round) is None
    assert ledger.round(M.round).noisy is None


def test_a_damaged_ledger_forgets_nothing(tmp_path: Path) -> None:
    with new_ledger(tmp_path / "l") as ledger:
        ended(ledger)
    loose = sqlite3.connect(tmp_path / "l" / "ledger.db")
    loose.executescript("DROP TRIGGER meta_kept; UPDATE meta SET value = '00' WHERE key = 'chain_head';")
    loose.close()
    with open_ledger(tmp_path / "l") as ledger:
        assert ledger.damage is not None
        ledger.forget_noisy("2031-01-01")
        assert ledger.counts(M.round) == COUNTS


def test_a_round_without_counts_ends_as_before(ledger: Ledger) -> None:
    finish(ledger, M)
    assert ledger.counts(M.round) is None


def test_counts_have_no_printable_form() -> None:
    assert "12" not in repr(COUNTS)


@pytest.mark.parametrize(
    "damage",
    ["noisy = X'00'", "rho_den = 'x'", "rho_num = 1.5, rho_den = 0", "state = 'dreamt'"],
)
def test_an_entry_that_holds_anything_else_is_damage_and_no_traceback(tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "l"
    with new_ledger(folder) as ledger:
        draw(ledger, M)
    loose = sqlite3.connect(folder / "ledger.db")
    loose.executescript("PRAGMA ignore_check_constraints = ON;")
    names = [row[0] for row in loose.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")]
    loose.executescript("".join(f"DROP TRIGGER {name};" for name in names))
    loose.execute("PRAGMA writable_schema = ON")
    loose.execute("UPDATE sqlite_master SET sql = replace(sql, ') STRICT', ')') WHERE name = 'round'")
    loose.commit()
    loose.close()
    loose = sqlite3.connect(folder / "ledger.db")
    loose.execute("PRAGMA ignore_check_constraints = ON")
    loose.execute(f"UPDATE round SET {damage}")
    loose.commit()
    loose.close()
    with pytest.raises(LedgerDamaged), open_ledger(folder) as ledger:
        ledger.rounds()
