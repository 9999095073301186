# SPDX-License-Identifier: Apache-2.0
"""Two accountants over one spend: the five rules hold on every row of the page's table, and each can fail."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import pytest

from conftest import not_run
from windvane_privacy import budget
from windvane_privacy.crosscheck import DELTAS, Accountant, Check, DpAccounting, cross_check
from windvane_privacy.errors import MissingExtra
from windvane_privacy.manifest import rho_of, share_scale
from windvane_privacy.noise import sensitivity

PUBLISHED = {
    # rho: epsilon at 1e-6, 1e-8, 1e-9 by OpenDP, by dp-accounting's RDP, by dp-accounting's PLD
    "9/512": ((0.840, 1.011, 1.087), (0.840, 1.011, 1.087), (0.778, 0.954, 1.032)),
    "9/128": ((1.769, 2.104, 2.253), (1.770, 2.104, 2.253), (1.646, 1.989, 2.142)),
    "9/64": ((2.580, 3.048, 3.257), (2.580, 3.049, 3.259), (2.405, 2.885, 3.099)),
    "27/128": ((3.224, 3.793, 4.048), (3.224, 3.793, 4.048), (3.009, 3.594, 3.855)),
    "9/32": ((3.782, 4.436, 4.729), (3.782, 4.436, 4.729), (3.532, 4.205, 4.505)),
}
ROUNDING = 0.000501


def accountant() -> Accountant:
    if importlib.util.find_spec("dp_accounting") is None:
        not_run("dp-accounting is not installed", "pip install 'windvane[audit]'")
    return DpAccounting()


@dataclass(frozen=True)
class Fixed:
    """A second accountant that says what a test wants, as a function of OpenDP's own epsilon."""

    renyi: Callable[[float], float] = lambda ours: ours
    exact: Callable[[float], float] = lambda ours: 0.95 * ours

    def of_zcdp(self, rho: Fraction, delta: str) -> float:
        return self.renyi(budget.epsilon(rho, delta))

    def of_gaussian(self, multiplier: float, delta: str) -> float:
        return self.exact(budget.epsilon(Fraction(1) / Fraction(2 * multiplier * multiplier), delta))


def entry(s: int = 208, h: int = 5, Q: int = 9, **changes: object) -> dict[str, object]:
    return {"rho": rho_of(Q, s), "Q": Q, "s": s, "h": h, "s_i": share_scale(s, h), **changes}


def failing(found: tuple[Check, ...]) -> set[int]:
    return {check.rule for check in found if not check.holds}


@pytest.mark.parametrize("rho", PUBLISHED)
def test_the_published_figures_are_those_of_each_library(rho: str) -> None:
    second = accountant()
    exact = Fraction(rho)
    for delta, ours, renyi, losses in zip(DELTAS, *PUBLISHED[rho], strict=True):
        assert budget.epsilon(exact, delta) == pytest.approx(ours, abs=ROUNDING)
        assert second.of_zcdp(exact, delta) == pytest.approx(renyi, abs=ROUNDING)
        assert second.of_gaussian((2 * float(exact)) ** -0.5, delta) == pytest.approx(losses, abs=ROUNDING)


@pytest.mark.parametrize(("s", "h"), [(208, 5), (208, 24), (104, 3), (104, 6), (52, 2)])
def test_the_rules_hold_on_the_rounds_that_are_planned(s: int, h: int) -> None:
    found = cross_check(**entry(s, h), accountant=accountant())
    assert [check.rule for check in found] == [1, 2, 3, 4, 2, 3, 4, 2, 3, 4, 5]
    assert not failing(found)


@pytest.mark.parametrize("s", [147, 148, 103, 100])
def test_a_charge_that_no_float_holds_agrees_within_the_rounding_of_the_map(s: int) -> None:
    assert not failing(cross_check(**entry(s, 3), accountant=Fixed()))


@pytest.mark.parametrize("Q", [1, 2, 5, 8, 11])
def test_other_vote_totals_agree_within_the_rounding_of_the_map(Q: int) -> None:
    assert not failing(cross_check(**entry(Q=Q), accountant=Fixed()))


@pytest.mark.parametrize(
    ("rule", "second", "changes"),
    [
        (1, Fixed(), {"rho": Fraction(9, 511)}),
        (1, Fixed(), {"rho": Fraction(9, 512) + Fraction(1, 2**60)}),
        (1, Fixed(), {"Q": 8, "rho": rho_of(8, 208) * (1 + Fraction(1, 2**39))}),
        (2, Fixed(renyi=lambda ours: ours + 0.0051), {}),
        (2, Fixed(renyi=lambda ours: ours - 0.0051), {}),
        (3, Fixed(exact=lambda ours: ours + 0.001), {}),
        (3, Fixed(exact=lambda ours: 0.899 * ours), {}),
        (5, Fixed(), {"s_i": share_scale(208, 6)}),
        (5, Fixed(), {"s_i": share_scale(208, 4)}),
        (5, Fixed(), {"s": 50, "h": 4, "rho": rho_of(9, 50), "s_i": 25.0}),
        (5, Fixed(), {"s_i": float("nan")}),
        (5, Fixed(), {"s_i": 0.0}),
    ],
)  # fmt: skip
def test_a_disagreement_fails_its_rule_and_no_other(rule: int, second: Fixed, changes: dict[str, object]) -> None:
    assert failing(cross_check(**entry(**changes), accountant=second)) == {rule}


def test_a_charge_that_is_too_small_fails_the_members_own_share_too() -> None:
    assert failing(cross_check(**entry(rho=Fraction(9, 513)), accountant=Fixed())) == {1, 5}


def test_a_disagreement_of_the_tolerance_itself_is_none() -> None:
    assert not failing(cross_check(**entry(), accountant=Fixed(renyi=lambda ours: ours + 0.0049)))


def test_an_epsilon_above_the_closed_form_fails_rule_4(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("windvane_privacy.crosscheck.epsilon", lambda _rho, _delta: 2.0)
    assert 4 in failing(cross_check(**entry(), accountant=Fixed()))


def test_the_multiplier_is_the_scale_over_the_sensitivity() -> None:
    asked: list[float] = []

    class Asking(Fixed):
        def of_gaussian(self, multiplier: float, delta: str) -> float:
            asked.append(multiplier)
            return super().of_gaussian(multiplier, delta)

    cross_check(**entry(s=104), accountant=Asking())
    assert asked == [104 / sensitivity(9)] * 3


def test_without_the_second_accountant_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(MissingExtra, match="audit"):
        DpAccounting()
