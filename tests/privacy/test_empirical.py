# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of the empirical audit, against exact sums and known values."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from statistics import NormalDist

import pytest

from outcome_rows import gaussian_expected
from windvane_privacy.empirical import beta_share, clopper_pearson, mu_lower_bound, shape
from windvane_privacy.noise import OpenDPNoise, opendp  # noqa: F401 - loads the library that draws


def tail(k: int, n: int, p: Fraction) -> Fraction:
    """P(X >= k) of a binomial, exactly."""
    return sum((math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k, n + 1)), Fraction(0))


@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_beta_share_is_the_binomial_tail(n: int) -> None:
    for k in range(1, n + 1):
        for p in (Fraction(1, 100), Fraction(1, 3), Fraction(1, 2), Fraction(9, 10), Fraction(999, 1000)):
            assert beta_share(float(p), k, n - k + 1) == pytest.approx(float(tail(k, n, p)), rel=1e-11)


@pytest.mark.parametrize("x", [0.0, 1.0])
def test_beta_share_ends_at_zero_and_one(x: float) -> None:
    assert beta_share(x, 3, 4) == x


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(5, 10, 0.18709, 0.81291), (0, 10, 0.0, 0.30850), (10, 10, 0.69150, 1.0), (1, 20, 0.00127, 0.24873)],
)
def test_clopper_pearson_gives_the_published_intervals(successes: int, trials: int, low: float, high: float) -> None:
    """Two-sided 95 %, as in every table: one-sided 97.5 % at each end."""
    assert clopper_pearson(successes, trials, 0.025) == pytest.approx((low, high), abs=6e-6)


@pytest.mark.parametrize(("successes", "trials"), [(1, 1), (3, 17), (16, 17), (200, 400)])
@pytest.mark.parametrize("alpha", [1e-4, 0.025])
def test_at_the_bound_the_chance_is_alpha_exactly(successes: int, trials: int, alpha: float) -> None:
    low, high = clopper_pearson(successes, trials, alpha)
    assert float(tail(successes, trials, Fraction(low))) == pytest.approx(alpha, rel=1e-7)
    if successes < trials:
        below = 1 - tail(successes + 1, trials, Fraction(high))
        assert float(below) == pytest.approx(alpha, rel=1e-7)


def test_large_numbers_end_and_narrow() -> None:
    low, high = clopper_pearson(15_000, 20_000, 1e-4)
    assert 0.73 < low < 0.75 < high < 0.77


@pytest.mark.parametrize(("successes", "trials"), [(0, 0), (-1, 3), (4, 3)])
def test_a_share_that_is_none_is_refused(successes: int, trials: int) -> None:
    with pytest.raises(ValueError, match="share"):
        clopper_pearson(successes, trials, 0.05)


def normal(seed: int, mean: float, n: int) -> list[int]:
    coins = random.Random(seed)
    return [round(1000 * coins.gauss(mean, 1)) for _ in range(n)]


@pytest.mark.parametrize("mu", [0.0, 0.1875, 1.5, 3.0])
def test_the_bound_stays_below_the_true_mu_and_comes_near(mu: float) -> None:
    found = mu_lower_bound(normal(1, 0, 20_000), normal(2, mu, 20_000))
    assert max(0.0, mu - 0.25) <= found <= mu


def test_twice_the_loss_is_seen_in_few_draws() -> None:
    assert mu_lower_bound(normal(3, 0, 400), normal(4, 3.0, 400)) > 1.5
    assert mu_lower_bound([0] * 400, [1521] * 400) > 3


def test_the_same_draws_on_both_sides_show_nothing() -> None:
    assert mu_lower_bound(normal(5, 0, 2_000), normal(6, 0, 2_000)) == 0.0


def test_a_person_who_lowers_the_sum_shows_as_nothing_and_not_as_less() -> None:
    assert mu_lower_bound(normal(7, 2.0, 500), normal(8, 0, 500)) == 0.0


def test_the_bound_needs_draws_to_choose_and_to_try() -> None:
    with pytest.raises(ValueError, match="four"):
        mu_lower_bound([1, 2, 3], [1, 2, 3, 4])


def test_probit_and_the_library_agree_on_the_claim() -> None:
    """A test of shift mu at threshold mu/2 has true and false positives that are mu apart in probit."""
    law = NormalDist()
    for mu in (0.1, 1.5):
        assert law.inv_cdf(1 - law.cdf(-mu / 2)) - law.inv_cdf(1 - law.cdf(mu / 2)) == pytest.approx(mu)


def draws(scale: float, n: int) -> list[int]:
    import numpy as np

    return OpenDPNoise().draw(np.zeros(n, dtype=np.int64), scale)


def test_the_shape_of_agreed_noise_holds() -> None:
    found = shape(draws(26.0, 20_000), 26.0)
    assert found.holds
    assert found.draws == 20_000


@pytest.mark.parametrize(
    ("what", "made"),
    [
        ("none", lambda: [0] * 20_000),
        ("12 % too small", lambda: draws(22.9, 20_000)),
        ("12 % too large", lambda: draws(29.1, 20_000)),
        ("one draw many times", lambda: draws(26.0, 50) * 400),
        ("shifted", lambda: [value + 3 for value in draws(26.0, 20_000)]),
        ("even numbers only", lambda: [2 * value for value in draws(13.0, 20_000)]),
        ("flat", lambda: [random.Random(i).randint(-45, 45) for i in range(20_000)]),
    ],
)
def test_noise_of_another_shape_is_seen(what: str, made) -> None:
    assert not shape(made(), 26.0).holds, what


def test_expected_counts_are_those_of_the_discrete_gaussian() -> None:
    """Noise that has exactly the expected counts lies below the mean of the statistic, never above."""
    exact = [value for value, count in gaussian_expected(26.0, 50_000).items() for _ in range(round(count))]
    assert shape(exact, 26.0).chi_square < 0


def test_a_handful_of_numbers_has_no_shape() -> None:
    with pytest.raises(ValueError, match="few"):
        shape([1, 2, 3], 26.0)
