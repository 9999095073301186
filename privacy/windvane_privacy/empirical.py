# SPDX-License-Identifier: Apache-2.0
"""What many draws say about a claimed privacy loss: a lower bound on it, and whether the noise has its agreed shape.

Rules kept here:
* a bound is a lower bound: it can show that a claim is broken, never that it holds for every attack;
* the threshold of the attack is chosen on one half of the draws and tried on the other;
* confidence is exact (Clopper, Pearson 1934): no normal approximation of a binomial;
* everything is a function of numbers: nothing is drawn, read or written here.

Sources: Clopper, Pearson (1934); Dong, Roth, Su, "Gaussian Differential Privacy" (2019) for mu; Wilson, Hilferty (1931)
for the chi-square.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

ALPHA = 1e-4
"""Chance that a sound mechanism is called broken by the bound of one side."""
FAR = 5.0
"""Standard deviations beyond which noise has not its agreed shape: once in three million sound audits."""
_GRID = 100
_STEPS = 200
_LEAST_EXPECTED = 8.0
_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class Shape:
    """Noise against the discrete Gaussian of `scale`: standard deviations of the chi-square above its mean, of the
    variance from its own, and of the mean from zero; `draws` numbers were looked at."""

    draws: int
    scale: float
    chi_square: float
    variance: float
    mean: float

    @property
    def holds(self) -> bool:
        """Whether all three are within what chance explains."""
        return self.chi_square < FAR and abs(self.variance) < FAR and abs(self.mean) < FAR


def clopper_pearson(successes: int, trials: int, alpha: float) -> tuple[float, float]:
    """(low, high): the chance of a success is above low, and below high, each with confidence 1 - alpha.

    Raises:
        ValueError: no trial, or more successes than trials.
    """
    if trials < 1 or not 0 <= successes <= trials:
        raise ValueError("A share needs trials, and no more successes than these.")
    return _low(successes, trials, alpha), 1.0 - _low(trials - successes, trials, alpha)


def mu_lower_bound(without: Sequence[int], with_person: Sequence[int], *, alpha: float = ALPHA) -> float:
    """The least mu (Gaussian differential privacy) that draws without and with a person still allow; 0 says nothing.

    A mechanism of mu lets no test have `probit(true positives) - probit(false positives)` above mu.

    Raises:
        ValueError: fewer than four draws on a side.
    """
    if min(len(without), len(with_person)) < 4:
        raise ValueError("Each side needs at least four draws: two to choose with, two to try with.")
    choose = [values[: len(values) // 2] for values in (without, with_person)]
    test = [values[len(values) // 2 :] for values in (without, with_person)]
    seen = sorted({*choose[0], *choose[1]})
    thresholds = seen[:: max(1, len(seen) // _GRID)]
    best = max(thresholds, key=lambda threshold: _bound(choose[0], choose[1], threshold, alpha))
    return max(0.0, _bound(test[0], test[1], best, alpha))


def shape(noise: Sequence[int], scale: float) -> Shape:
    """Noise against the discrete Gaussian of this scale.

    Raises:
        ValueError: too few numbers for two classes of a chi-square test.
    """
    n = len(noise)
    variance = math.fsum(value * value for value in noise) / n
    mean = math.fsum(noise) / n
    return Shape(
        draws=n,
        scale=scale,
        chi_square=_chi_square(Counter(noise), scale, n),
        variance=(variance / scale**2 - 1) / math.sqrt(2 / n),
        mean=mean / (scale / math.sqrt(n)),
    )


# --- inside -----------------------------------------------------------------------------------------------------------


def _bound(without: Sequence[int], with_person: Sequence[int], threshold: int, alpha: float) -> float:
    true = clopper_pearson(sum(value >= threshold for value in with_person), len(with_person), alpha)[0]
    false = clopper_pearson(sum(value >= threshold for value in without), len(without), alpha)[1]
    return _probit(true) - _probit(false)


def _probit(share: float) -> float:
    # A bound at 0 or 1 says nothing on that side; far out stands for nothing without arithmetic on infinities.
    return _NORMAL.inv_cdf(min(max(share, 1e-12), 1 - 1e-12))


def _low(successes: int, trials: int, alpha: float) -> float:
    # P(X >= successes) = I_p(successes, trials - successes + 1) grows with p: bisection finds where it is alpha.
    if successes == 0:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if beta_share(middle, successes, trials - successes + 1) < alpha:
            low = middle
        else:
            high = middle
    return low


def beta_share(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function I_x(a, b), by its continued fraction (Lentz's method)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1.0 - beta_share(1 - x, b, a)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    ) / a  # fmt: skip
    tiny = 1e-300
    d = 1 - (a + b) * x / (a + 1)
    c, d = 1.0, 1 / (d if abs(d) > tiny else tiny)
    fraction = d
    for m in range(1, 10_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 + term * d
            d = 1 / (d if abs(d) > tiny else tiny)
            c = 1 + term / c
            c = c if abs(c) > tiny else tiny
            fraction *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return front * fraction


def _chi_square(observed: Counter[int], scale: float, total: int) -> float:
    """Standard deviations of the statistic above its mean (Wilson-Hilferty); rare values are joined with neighbours."""
    reach = math.ceil(6 * scale)
    masses = {x: math.exp(-x * x / (2 * scale * scale)) for x in range(-reach, reach + 1)}
    norm = math.fsum(masses.values())
    classes: list[list[float]] = []
    weight, count = 0.0, sum(n for value, n in observed.items() if value < -reach)
    for value, mass in masses.items():
        weight += total * mass / norm
        count += observed.get(value, 0)
        if weight >= _LEAST_EXPECTED:
            classes.append([weight, count])
            weight, count = 0.0, 0
    if len(classes) < 2:
        raise ValueError("There are too few numbers to judge a shape by.")
    classes[-1][0] += weight
    classes[-1][1] += count + sum(n for value, n in observed.items() if value > reach)
    statistic = math.fsum((seen - hoped) ** 2 / hoped for hoped, seen in classes)
    spread = 2 / (9 * (len(classes) - 1))
    return float(((statistic / (len(classes) - 1)) ** (1 / 3) - (1 - spread)) / math.sqrt(spread))
