# SPDX-License-Identifier: Apache-2.0
"""What one person can have spent at most: exact, over quarters, never above the cap, never a count of people."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger_entries import quarter
from manifests import make_manifest
from windvane_privacy import budget
from windvane_privacy.spent import most_spent

CAP = Fraction(9, 32)
RHO = Fraction(9, 512)


@dataclass(frozen=True)
class Round:
    """A charged round."""

    rho: Fraction
    h: int
    events_from: str
    events_to: str


def one(place: int, rho: Fraction = RHO, h: int = 5) -> Round:
    events = quarter(place).events
    return Round(rho, h, events.from_, events.to)


@pytest.mark.parametrize(
    ("rounds", "newest", "four", "twelve", "lifetime", "left"),
    [
        (0, "0", "0", "0", "0", 16),
        (1, "9/512", "9/512", "9/512", "9/512", 15),
        (4, "9/512", "9/128", "9/128", "9/128", 12),
        (12, "9/512", "9/128", "27/128", "27/128", 4),
        (16, "9/512", "9/128", "27/128", "9/32", 0),
        (40, "9/512", "9/128", "27/128", "9/32", 0),
    ],
)
def test_sums_over_quarters_stop_at_the_cap(
    rounds: int, newest: str, four: str, twelve: str, lifetime: str, left: int
) -> None:
    found = most_spent([one(i) for i in range(rounds)], CAP, RHO)
    assert [span.rho for span in found.spans] == [Fraction(x) for x in (newest, four, twelve, lifetime)]
    assert [span.quarters for span in found.spans] == [1, 4, 12, 0]
    assert [span.local for span in found.spans] == [5 * span.rho for span in found.spans] if rounds else True
    assert found.left == left


def test_rounds_on_overlapping_events_are_one_quarter() -> None:
    twin = Round(RHO, 5, "2026-02-01T00:00:00Z", "2026-04-02T00:00:00Z")
    found = most_spent([one(0), twin], CAP, RHO)
    assert found.spans[0].rho == 2 * RHO
    # The twin reaches into the second quarter by a day, so three rounds hang together.
    assert most_spent([one(0), twin, one(1)], CAP, RHO).spans[0].rho == 3 * RHO
    assert most_spent([one(0), one(1)], CAP, RHO).spans[0].rho == RHO


def test_a_long_round_holds_together_what_lies_in_it() -> None:
    long = Round(RHO, 5, "2026-01-01T00:00:00Z", "2026-10-01T00:00:00Z")
    assert most_spent([long, one(0), one(1), one(2), one(3)], CAP, RHO).spans[0].rho == RHO
    assert most_spent([long, one(0), one(1), one(2)], CAP, RHO).spans[0].rho == 4 * RHO


def test_under_two_guardians_each_round_counts_with_its_own_h() -> None:
    found = most_spent([one(0, Fraction(9, 128), 3), one(1, RHO, 5)], CAP, RHO)
    assert found.spans[-1].local == Fraction(27, 128) + Fraction(45, 512)
    full = most_spent([one(i, Fraction(9, 128), 3) for i in range(9)] + [one(9, RHO, 5)], CAP, RHO)
    assert full.spans[-1].local == 5 * CAP


def test_the_order_of_the_charges_does_not_matter() -> None:
    rounds = [one(i, rho=Fraction(9, 512 + i)) for i in range(6)]
    assert most_spent(rounds, CAP, RHO) == most_spent(rounds[::-1], CAP, RHO)


def test_without_terms_nothing_is_said_of_what_is_left() -> None:
    assert most_spent([one(0)], CAP, None).left is None


@given(st.lists(st.tuples(st.integers(0, 30), st.sampled_from([RHO, Fraction(9, 128)])), max_size=30))
def test_nobody_can_have_spent_more_than_the_sum_or_the_cap(charges: list[tuple[int, Fraction]]) -> None:
    found = most_spent([one(place, rho) for place, rho in charges], CAP, RHO)
    total = sum((rho for _place, rho in charges), Fraction(0))
    assert found.spans[-1].rho == min(total, CAP)
    assert found.left is not None
    assert min(total, CAP) + found.left * RHO <= CAP < min(total, CAP) + (found.left + 1) * RHO


# --- the coalitions, against the published table ----------------------------------------------------------------------


def eps(loss: budget.Loss) -> float:
    return round(loss.epsilon, 3)


@pytest.mark.parametrize(
    ("rho", "h", "m", "a", "a_plus", "b", "c"),
    [
        ("9/512", 5, 12, 1.011, 0.639, {3: 1.323, 2: 1.639, 1: 2.369}, 2.369),
        ("9/128", 3, 7, 2.104, 1.343, {2: 2.612, 1: 3.793}, 3.793),
        ("9/512", 10, 24, 1.011, None, {1: 3.437}, 3.437),
        ("9/512", 17, 34, 1.011, None, {1: 4.585}, 4.585),
        ("9/512", 24, 85, 1.011, None, {1: 5.541}, 5.541),
        ("9/128", 6, 12, 2.104, None, {1: 5.541}, 5.541),
    ],
)
def test_each_coalition_costs_what_is_published(
    rho: str, h: int, m: int, a: float, a_plus: float | None, b: dict[int, float], c: float
) -> None:
    found = budget.coalitions(Fraction(rho), h=h, m=m, delta="1e-8")
    assert (eps(found.a), eps(found.c)) == (a, c)
    assert a_plus is None or eps(found.a_plus) == a_plus
    assert [g for g, _loss in found.b] == list(range(h - 1, 0, -1))
    assert [loss.rho for g, loss in found.b] == [Fraction(rho) * h / g for g in range(h - 1, 0, -1)]
    assert {g: eps(dict(found.b)[g]) for g in b} == b


@pytest.mark.parametrize(("h", "c"), [(5, 10.9), (10, 16.4), (17, 22.6), (24, 28.0), (3, 8.2), (6, 12.1)])
def test_two_guardians_over_a_lifetime_cost_what_is_published(h: int, c: float) -> None:
    assert round(budget.coalitions(CAP, h=h, m=2 * h, delta="1e-8").c.epsilon, 1) == c


def test_a_cohort_smaller_than_h_is_never_credited_with_more_noise() -> None:
    found = budget.coalitions(RHO, h=5, m=3, delta="1e-8")
    assert found.a_plus == found.a


@pytest.mark.parametrize(("s", "rho", "figure"), [(208, "81/1352", 1.932), (104, "81/338", 4.065)])
def test_exchanging_one_person_costs_what_is_published(s: int, rho: str, figure: float) -> None:
    assert budget.replace_one_rho(9, s) == Fraction(rho)
    assert round(budget.epsilon(Fraction(rho), "1e-8"), 3) == figure


@pytest.mark.parametrize("accounts", range(1, 8))
def test_a_group_of_accounts_costs_its_square(accounts: int) -> None:
    assert budget.group_rho(RHO, accounts) == accounts**2 * RHO


def test_two_organisations_of_one_cohort_cost_four_times_the_rho() -> None:
    found = budget.guarantees(make_manifest(members=60, demo=False))
    assert (found.two_accounts.rho, eps(found.two_accounts)) == (4 * RHO, 2.104)
