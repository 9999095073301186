# SPDX-License-Identifier: Apache-2.0
"""Whom a round may still ask: the lifetime cap is one person's, exact, and fails closed when people are not known."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger_entries import QUARTERS, charge, charged_ledger, quarter
from ledger_steps import DAY, open_ledger
from policies import policy
from windvane_privacy.admission import Charge, admission
from windvane_privacy.policy import check_manifest
from windvane_privacy.rules import current_rules

ANA, BEN, NEW = (bytes([i]) * 16 for i in (1, 2, 3))
CAP = Fraction(9, 32)
RHO = Fraction(9, 512)
KEYS = [("2026-01-01", "a" * 64)]


def one(place: int = 0, *people: bytes, everyone: bool = False, rho: Fraction = RHO, day: str = "2026-10-02") -> Charge:
    events = quarter(place).events
    return Charge(rho, day, events.from_, events.to, everyone, frozenset(people))


def test_a_person_of_sixteen_quarters_is_dropped_in_the_seventeenth_and_nobody_else() -> None:
    for rounds, stays in ((15, True), (16, False)):
        admits = admission([one(i, ANA) for i in range(rounds)], KEYS, RHO, CAP)
        assert admits(ANA) is stays
        assert admits(NEW)
    with_ben = [one(i, ANA, BEN) if i < 3 else one(i, ANA) for i in range(16)]
    assert [admission(with_ben, KEYS, RHO, CAP)(who) for who in (ANA, BEN, NEW)] == [False, True, True]


def test_in_the_seventeenth_quarter_the_manifest_is_not_refused_and_a_newcomer_still_votes(tmp_path: Path) -> None:
    """The cap is a person's, through the real ledger: sixteen real charges, then whom the draw is told to ask."""
    asked: dict[bytes, bool] = {}
    ledger, _ = charged_ledger(tmp_path / "l", 0)
    with ledger:
        for place in range(16):
            charge(ledger, quarter(place), persons=(ANA,), opendp_json="{}")
        seventeenth = quarter(16, rounds_so_far=16, rules=current_rules())
        check_manifest(policy(), seventeenth, overlap=ledger.overlap(seventeenth))
        ledger.approve(seventeenth.round, seventeenth.sha256, DAY)

        def make(admits: object) -> object:
            asked.update({who: admits(who) for who in (ANA, NEW)})
            raise InterruptedError

        with pytest.raises(InterruptedError):
            ledger.draw(seventeenth, day=DAY, lifetime_cap=CAP, make=make)
    assert asked == {ANA: False, NEW: True}


@given(st.lists(st.sampled_from([Fraction(9, 512), Fraction(9, 128), Fraction(81, 1000)]), max_size=40))
def test_the_cap_is_reached_exactly_and_never_passed(charges: list[Fraction]) -> None:
    admits = admission([one(0, ANA, rho=rho) for rho in charges], KEYS, RHO, CAP)
    assert admits(ANA) == (sum(charges, Fraction(0)) + RHO <= CAP)


@given(st.lists(st.sets(st.sampled_from([ANA, BEN, NEW])), max_size=20))
def test_one_persons_answer_depends_on_nobody_else(rounds: list[set[bytes]]) -> None:
    alone = admission([one(i, *(people & {ANA})) for i, people in enumerate(rounds)], KEYS, RHO, CAP)
    together = admission([one(i, *people) for i, people in enumerate(rounds)], KEYS, RHO, CAP)
    assert alone(ANA) == together(ANA)


def test_a_lost_draw_counts_for_everybody_known_or_not() -> None:
    four = [one(i, everyone=True, rho=Fraction(9, 128)) for i in range(4)]
    for who in (ANA, NEW):
        assert admission(four[:3], KEYS, Fraction(9, 128), CAP)(who)
        assert not admission(four, KEYS, RHO, CAP)(who)


@pytest.mark.parametrize(("first_day", "fresh"), [("2026-12-30", False), ("2026-12-31", True), ("2027-04-01", True)])
def test_a_newcomer_is_fresh_one_window_after_the_loss_and_only_with_an_attested_day(
    first_day: str, fresh: bool
) -> None:
    """The loss was found on 2026-10-02, and the window of the lost round has 90 days."""
    full = [one(0, everyone=True, rho=CAP)]
    assert admission(full, KEYS, RHO, CAP, {NEW: first_day})(NEW) is fresh
    assert not admission(full, KEYS, RHO, CAP, {NEW: "2027-04-01"})(ANA)


def test_an_attested_day_takes_nobody_out_of_what_the_ledger_knows() -> None:
    assert not admission([one(0, ANA, rho=CAP)], KEYS, RHO, CAP, {ANA: "2099-01-01"})(ANA)


def test_with_another_key_of_the_pseudonyms_every_round_before_it_counts_for_everybody() -> None:
    rounds = [one(i, ANA) for i in range(16)]
    lost = [*KEYS, ("2026-10-02", "b" * 64)]
    assert admission(rounds, KEYS, RHO, CAP)(NEW)
    assert not admission(rounds, lost, RHO, CAP)(NEW)
    assert admission(rounds, lost, RHO, CAP, {NEW: "2027-06-01"})(NEW)
    later = [one(i, ANA, day="2026-10-03") for i in range(16)]
    assert admission(later, lost, RHO, CAP)(NEW)
    assert not admission(later, lost, RHO, CAP)(ANA)


def test_a_person_is_charged_once_for_a_round_whose_people_were_lost() -> None:
    half = [one(0, ANA, rho=CAP / 2)]
    assert admission(half, [*KEYS, ("2026-12-01", "b" * 64)], CAP / 2, CAP)(ANA)


def test_what_the_ledger_noted_of_the_key_reaches_the_draw(tmp_path: Path) -> None:
    ledger, _ = charged_ledger(tmp_path / "l", 0)
    with ledger:
        charge(ledger, quarter(0), persons=(ANA,), opendp_json="{}")
        ledger.note("person_key", "a" * 64, "2026-01-01")
        assert ledger.admission(CAP, CAP, {})(NEW)
        ledger.note("person_key", "b" * 64, DAY)
        assert ledger.notes("person_key") == [("2026-01-01", "a" * 64), (DAY, "b" * 64)]
        assert not ledger.admission(CAP, CAP, {})(NEW)
    with open_ledger(tmp_path / "l") as ledger:
        assert not ledger.admission(CAP, CAP, {})(NEW)


def test_quarters_of_the_tests_are_quarters() -> None:
    assert len(QUARTERS) == 4
    assert (quarter(5).round, quarter(5).events.from_) == ("2027-Q2", "2027-04-01T00:00:00Z")
