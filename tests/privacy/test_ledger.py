# SPDX-License-Identifier: Apache-2.0
"""The ledger's states: what each step needs, stores and refuses."""

from __future__ import annotations

import sqlite3
from dataclasses import fields as dataclass_fields
from fractions import Fraction
from pathlib import Path

import pytest

from ledger_steps import (
    CAP,
    DAY,
    MACHINE,
    PEOPLE,
    accepted,
    commit,
    draw,
    drawn,
    finish,
    manifest_of,
    new_ledger,
    open_ledger,
    receipt_for,
)
from windvane_privacy.budget import Overlap
from windvane_privacy.catalogue import Signal
from windvane_privacy.errors import (
    CommitMismatch,
    IllegalTransition,
    LedgerLocked,
    ManifestChanged,
    NeedsApproval,
    ReceiptRefused,
    StateExists,
)
from windvane_privacy.ledger import Ledger
from windvane_privacy.ledger_schema import BurnReason, Drawn, RoundEntry, State
from windvane_privacy.votes import OwnDirection

WORDS = [OwnDirection("all", Signal.COMPLETION, "alder", "birch", "toward_a")]


def test_a_round_goes_from_empty_to_accepted(tmp_path: Path) -> None:
    manifest = manifest_of()
    with new_ledger(tmp_path / "l") as ledger:
        assert ledger.round(manifest.round) is None
        entry = draw(ledger, manifest)
        assert entry.state is State.DRAWN
        assert (entry.rho, entry.noisy, entry.q) == (manifest.rho, (7, -3), 9)
        commit(ledger, entry)
        assert ledger.reveal(manifest.round) == entry.envelope
        ledger.accept(manifest.round, accepted(manifest, entry.commit_hash or ""), WORDS, DAY)
        found = ledger.round(manifest.round)
        assert found is not None
        assert found.state is State.ACCEPTED
        assert found.envelope is None
        assert found.commit_hash == entry.commit_hash
        assert ledger.own_directions(manifest.round) == [("all", "completion", "alder|birch", "toward_a")]


def test_everything_survives_closing_and_opening(tmp_path: Path) -> None:
    manifest = manifest_of()
    with new_ledger(tmp_path / "l") as ledger:
        before = draw(ledger, manifest)
        ledger.remember_head(b"head")
    with open_ledger(tmp_path / "l") as ledger:
        assert ledger.round(manifest.round) == before
        assert ledger.damage is None
        assert ledger.last_head == b"head"


def test_noise_is_never_drawn_twice_for_a_round(tmp_path: Path) -> None:
    manifest = manifest_of()
    calls = []

    def make(_admits: object) -> Drawn:
        calls.append(1)
        return drawn(manifest, mark=f"draw {len(calls)}")

    with new_ledger(tmp_path / "l") as ledger:
        ledger.approve(manifest.round, manifest.sha256, DAY)
        first = ledger.draw(manifest, day=DAY, lifetime_cap=CAP, make=make)
        with pytest.raises(IllegalTransition):
            ledger.draw(manifest, day=DAY, lifetime_cap=CAP, make=make)
        assert len(calls) == 1
        assert ledger.round(manifest.round) == first


def test_noise_is_drawn_inside_the_transaction_that_stores_it(tmp_path: Path) -> None:
    manifest = manifest_of()
    with new_ledger(tmp_path / "l") as ledger:
        ledger.approve(manifest.round, manifest.sha256, DAY)

        def make(_admits: object) -> Drawn:
            assert ledger._sql.in_transaction
            return drawn(manifest)

        ledger.draw(manifest, day=DAY, lifetime_cap=CAP, make=make)


def test_a_draw_that_fails_leaves_the_round_empty_and_free(tmp_path: Path) -> None:
    manifest = manifest_of()

    def make(_admits: object) -> Drawn:
        raise KeyboardInterrupt

    with new_ledger(tmp_path / "l") as ledger:
        ledger.approve(manifest.round, manifest.sha256, DAY)
        with pytest.raises(KeyboardInterrupt):
            ledger.draw(manifest, day=DAY, lifetime_cap=CAP, make=make)
        assert ledger.round(manifest.round) is None
        assert ledger.lifetime() == (0, Fraction(0))
        assert draw(ledger, manifest).state is State.DRAWN


def test_nothing_is_drawn_without_an_approval_of_this_manifest(tmp_path: Path) -> None:
    manifest, other = manifest_of(), manifest_of(C=10)
    with new_ledger(tmp_path / "l") as ledger:
        with pytest.raises(NeedsApproval):
            ledger.draw(manifest, day=DAY, lifetime_cap=CAP, make=lambda _a: drawn(manifest))
        ledger.approve(manifest.round, other.sha256, DAY)
        with pytest.raises(ManifestChanged):
            ledger.draw(manifest, day=DAY, lifetime_cap=CAP, make=lambda _a: drawn(manifest))
        with pytest.raises(ManifestChanged):
            ledger.approve(manifest.round, manifest.sha256, DAY)


def test_a_hash_that_is_not_the_envelopes_is_not_stored(tmp_path: Path) -> None:
    manifest = manifest_of()
    good = drawn(manifest)
    bad = Drawn(good.submission_id, good.envelope + b"x", good.commit_hash, good.commitment_leaf, (), (), "{}", "test")
    with new_ledger(tmp_path / "l") as ledger:
        ledger.approve(manifest.round, manifest.sha256, DAY)
        with pytest.raises(CommitMismatch):
            ledger.draw(manifest, day=DAY, lifetime_cap=CAP, make=lambda _a: bad)
        assert ledger.round(manifest.round) is None


def test_an_envelope_leaves_only_after_a_receipt_for_its_hash(tmp_path: Path) -> None:
    manifest = manifest_of()
    with new_ledger(tmp_path / "l") as ledger:
        entry = draw(ledger, manifest)
        with pytest.raises(IllegalTransition):
            ledger.reveal(manifest.round)
        with pytest.raises(ReceiptRefused):
            ledger.commit(manifest.round, receipt_for(drawn(manifest, mark="another").commitment_leaf))
        with pytest.raises(IllegalTransition):
            ledger.reveal(manifest.round)
        commit(ledger, entry)
        assert ledger.reveal(manifest.round) == entry.envelope


def test_a_retry_gives_the_stored_bytes(tmp_path: Path) -> None:
    manifest = manifest_of()
    with new_ledger(tmp_path / "l") as ledger:
        entry = draw(ledger, manifest)
        commit(ledger, entry)
        first = ledger.reveal(manifest.round)
    with open_ledger(tmp_path / "l") as ledger:
        found = ledger.round(manifest.round)
        assert found is not None
        assert found.state is State.REVEALED
        assert found.commitment_leaf == entry.commitment_leaf
        assert ledger.reveal(manifest.round) == first


def test_revealed_is_on_the_disk_before_the_envelope_is_handed_out(tmp_path: Path) -> None:
    manifest = manifest_of()
    with new_ledger(tmp_path / "l") as ledger:
        commit(ledger, draw(ledger, manifest))
        statements: list[str] = []
        ledger._sql.set_trace_callback(statements.append)
        ledger.reveal(manifest.round)
        ledger._sql.set_trace_callback(None)
    assert statements[-1] == "COMMIT"
    assert any("'revealed'" in one for one in statements)


def test_an_accepted_entry_about_another_hash_does_not_end_the_round(tmp_path: Path) -> None:
    manifest = manifest_of()
    with new_ledger(tmp_path / "l") as ledger:
        commit(ledger, draw(ledger, manifest))
        ledger.reveal(manifest.round)
        for leaf in (accepted(manifest, "0" * 64), accepted(manifest_of("2026-Q4"), "0" * 64)):
            with pytest.raises(ReceiptRefused):
                ledger.accept(manifest.round, leaf, [], DAY)


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_burning_deletes_the_envelope_and_keeps_the_charge(tmp_path: Path, steps: int) -> None:
    manifest = manifest_of()
    with new_ledger(tmp_path / "l") as ledger:
        entry = draw(ledger, manifest)
        if steps > 0:
            commit(ledger, entry)
        if steps > 1:
            ledger.reveal(manifest.round)
        ledger.burn(manifest.round, BurnReason.FOREIGN_COMMITMENT, WORDS, DAY)
        found = ledger.round(manifest.round)
        assert found is not None
        assert (found.state, found.envelope, found.reason) == (State.BURNED, None, BurnReason.FOREIGN_COMMITMENT)
        assert ledger.lifetime() == (1, manifest.rho)
        assert ledger.own_directions(manifest.round)
        for step in (
            lambda: ledger.burn(manifest.round, BurnReason.ABORTED, [], DAY),
            lambda: commit(ledger, entry),
            lambda: ledger.reveal(manifest.round),
            lambda: ledger.accept(manifest.round, accepted(manifest, entry.commit_hash or ""), [], DAY),
            lambda: draw(ledger, manifest),
        ):
            with pytest.raises(IllegalTransition):
                step()


def test_a_failed_round_stays_charged_and_counts_with_overlapping_events(tmp_path: Path) -> None:
    first, second = manifest_of("2026-Q3"), manifest_of("2026-Q3b", start="2026-09-01", end="2026-12-01")
    later = manifest_of("2026-Q4", start="2026-10-01", end="2027-01-01")
    with new_ledger(tmp_path / "l") as ledger:
        draw(ledger, first)
        ledger.burn(first.round, BurnReason.ABORTED, [], DAY)
        assert ledger.overlap(second) == Overlap(first.rho, first.noise.h * first.rho)
        assert ledger.overlap(first) == Overlap()
        assert ledger.overlap(later) == Overlap()


def test_failed_round_stays_charged(tmp_path: Path) -> None:
    """To each person whom it was about, for ever: whoever comes later has the whole cap, they have the rest."""
    failed, later = _rounds(2, s=52)
    assert failed.rho == CAP  # one such round uses the whole cap
    with new_ledger(tmp_path / "l") as ledger:
        draw(ledger, failed, persons=PEOPLE[:2])
        ledger.burn(failed.round, BurnReason.NOT_ACCEPTED, WORDS, DAY)
    with open_ledger(tmp_path / "l") as ledger:
        assert ledger.lifetime() == (1, failed.rho)
        assert _admitted(ledger, later, PEOPLE) == {PEOPLE[0]: False, PEOPLE[1]: False, PEOPLE[2]: True}


def test_an_installation_has_one_agent(tmp_path: Path) -> None:
    with new_ledger(tmp_path / "l"):
        with pytest.raises(LedgerLocked):
            open_ledger(tmp_path / "l")
        # A program that knows nothing of the lock file meets SQLite's own lock.
        other = sqlite3.connect(tmp_path / "l" / "ledger.db", timeout=0)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("SELECT * FROM round").fetchall()
        other.close()
    open_ledger(tmp_path / "l").close()


def test_an_existing_ledger_is_never_made_anew(tmp_path: Path) -> None:
    manifest = manifest_of()
    with new_ledger(tmp_path / "l") as ledger:
        entry = draw(ledger, manifest)
    with pytest.raises(StateExists):
        Ledger.create(tmp_path / "l", key_id="0" * 64, machine_id=MACHINE)
    with open_ledger(tmp_path / "l") as ledger:
        assert ledger.round(manifest.round) == entry


def test_another_machine_is_noticed_and_confirmed_once(tmp_path: Path) -> None:
    new_ledger(tmp_path / "l").close()
    with Ledger.open(tmp_path / "l", machine_id="b" * 64) as ledger:
        assert ledger.moved
        ledger.confirm_machine(DAY)
        assert not ledger.moved
    with Ledger.open(tmp_path / "l", machine_id="b" * 64) as ledger:
        assert not ledger.moved
    with open_ledger(tmp_path / "l") as ledger:
        assert ledger.moved


def test_a_change_of_policy_is_an_entry(tmp_path: Path) -> None:
    with new_ledger(tmp_path / "l") as ledger:
        assert ledger.note_policy("1" * 64, DAY)
        assert not ledger.note_policy("1" * 64, DAY)
        assert ledger.note_policy("2" * 64, DAY)
        assert ledger.note_policy("1" * 64, DAY)
        rows = ledger._sql.execute("SELECT sha256 FROM policy_change ORDER BY number").fetchall()
        assert [row[0][0] for row in rows] == ["1", "2", "1"]


def test_the_noisy_vector_is_deleted_after_its_time_and_nothing_else(tmp_path: Path) -> None:
    manifest = manifest_of()
    with new_ledger(tmp_path / "l") as ledger:
        entry = finish(ledger, manifest)
        ledger.forget_noisy(DAY)
        assert ledger.round(manifest.round) == entry
        ledger.forget_noisy("2026-12-31")
        found = ledger.round(manifest.round)
        assert found is not None
        assert found.noisy is None
        assert found.entry_hash == entry.entry_hash
    with open_ledger(tmp_path / "l") as ledger:
        assert ledger.damage is None


# --- the lifetime cap ---------------------------------------------------------------------------------------------


def _rounds(count: int, s: int = 208) -> list[object]:
    return [
        manifest_of(
            f"r{i}",
            s=s,
            start=f"{2026 + i // 4}-{1 + 3 * (i % 4):02d}-01",
            end=f"{2026 + i // 4}-{1 + 3 * (i % 4):02d}-28",
        )
        for i in range(count)
    ]


def _admitted(ledger: Ledger, manifest: object, persons: tuple[bytes, ...], cap: Fraction = CAP) -> dict[bytes, bool]:
    found: dict[bytes, bool] = {}

    def make(admits: object) -> Drawn:
        found.update({person: admits(person) for person in persons})
        return drawn(manifest, mark=manifest.round, persons=tuple(p for p in persons if found[p]))

    ledger.approve(manifest.round, manifest.sha256, DAY)
    ledger.draw(manifest, day=DAY, lifetime_cap=CAP, make=make)
    return found


def test_a_person_charged_for_sixteen_quarters_is_dropped_in_the_seventeenth(tmp_path: Path) -> None:
    veteran, newcomer = PEOPLE[0], PEOPLE[1]
    rounds = _rounds(17)
    assert rounds[0].rho == Fraction(9, 512)
    with new_ledger(tmp_path / "l") as ledger:
        for manifest in rounds[:16]:
            assert _admitted(ledger, manifest, (veteran,)) == {veteran: True}
        assert _admitted(ledger, rounds[16], (veteran, newcomer)) == {veteran: False, newcomer: True}


def test_a_lost_draw_is_charged_to_everyone(tmp_path: Path) -> None:
    lost, later = _rounds(2, s=52)
    assert lost.rho == CAP  # one such round uses the whole cap
    with new_ledger(tmp_path / "l") as ledger:
        entry = ledger.burn_undrawn(lost, "0" * 64, WORDS, versions="test", day=DAY)
        assert (entry.state, entry.everyone, entry.rho) == (State.BURNED, True, lost.rho)
        assert _admitted(ledger, later, PEOPLE) == dict.fromkeys(PEOPLE, False)
        with pytest.raises(IllegalTransition):
            ledger.burn_undrawn(lost, "0" * 64, [], versions="test", day=DAY)
    with open_ledger(tmp_path / "l") as ledger:
        assert ledger.damage is None


def test_charges_are_exact_over_64_rounds(tmp_path: Path) -> None:
    with new_ledger(tmp_path / "l") as ledger:
        for manifest in _rounds(64, s=207):
            draw(ledger, manifest, mark=manifest.round)
        assert ledger.lifetime() == (64, 64 * Fraction(169 * 9, 2 * 207**2))


def test_every_field_of_an_entry_is_a_column(tmp_path: Path) -> None:
    with new_ledger(tmp_path / "l") as ledger:
        columns = set(ledger._columns)
    assert {one.name for one in dataclass_fields(RoundEntry)} - {"rho"} <= columns
    assert columns - {"rho_num", "rho_den", "prev_hash", "people_sha256"} <= {
        one.name for one in dataclass_fields(RoundEntry)
    }


def test_a_draw_and_an_entry_have_no_printable_form(tmp_path: Path) -> None:
    """A trace that shows local values must not show a noised vector or a pseudonym."""
    manifest = manifest_of("2026-Q3")
    with new_ledger(tmp_path / "l") as ledger:
        entry = draw(ledger, manifest)
    made = drawn(manifest)
    assert entry.noisy
    assert made.persons
    assert repr(entry) == object.__repr__(entry)
    assert repr(made) == object.__repr__(made)
