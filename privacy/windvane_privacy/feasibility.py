# SPDX-License-Identifier: Apache-2.0
"""What a federation of a size can see at all: the smallest difference that its own noise does not swallow.

Rules kept here:
* nothing here looks at data: sizes, scales and stated assumptions in, a bound out;
* the bound is a floor: it leaves out that organisations differ, the clamp and every gate of the decision rule, all of
  which can only raise it;
* an assumption has a name and a reason; every scale comes from the caller.

Formula: docs/feasibility.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from windvane_privacy.manifest import D_SCALE

LEVEL = 0.05
"""Chance of any false direction among all comparisons, two-sided, at which the floor is computed."""
POWER = 0.80
LARGEST_GAP = 0.20
"""Differences above twenty points are not looked for: no two models that people keep using differ by more."""


@dataclass(frozen=True, slots=True)
class PairUse:
    """How a pair of models is used. Assumptions, from simulated people with a median of fifty tasks a quarter.

    `votes`: share of people who vote on the pair. `slope`: imbalance of votes for a difference of 1 in the rate of
    finished tasks (a difference of one point shows as about `slope` hundredths).
    """

    name: str
    votes: float
    slope: float


POOLED_PAIRS = (PairUse("most used pair", 0.100, 4.8), PairUse("a middle pair", 0.026, 4.5))
"""All kinds of work together."""
KIND_PAIRS = (PairUse("most used pair", 0.024, 3.8), PairUse("a middle pair", 0.006, 3.5))
"""One kind of work of six: fewer people vote, and on fewer tasks, so that a difference shows less in their votes."""


def noise_variance(organisations: int, s: int, h: int) -> float:
    """Variance of the noise on a federation's net votes of one comparison: (s / 12)^2 n / h."""
    return (s / D_SCALE) ** 2 * organisations / h


def needed_imbalance(votes: float, noise: float, comparisons: int) -> float:
    """The imbalance r of votes with (z + z')^2 (T + noise) = (r T)^2: called with `POWER` at `LEVEL` over all
    comparisons. T = `votes`; what is drawn by chance has variance T at most."""
    normal = NormalDist()
    z = normal.inv_cdf(1 - LEVEL / (2 * comparisons)) + normal.inv_cdf(POWER)
    return z * math.sqrt(votes + noise) / votes


def smallest_gap(
    *, organisations: int, people_each: int, s: int, h: int, pair: PairUse, comparisons: int
) -> float | None:
    """The smallest difference in the rate of finished tasks that can be told, as a share; None above `LARGEST_GAP`."""
    votes = organisations * people_each * pair.votes
    gap = needed_imbalance(votes, noise_variance(organisations, s, h), comparisons) / pair.slope
    return gap if gap <= LARGEST_GAP else None
