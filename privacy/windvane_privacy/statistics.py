# SPDX-License-Identifier: Apache-2.0
"""Statistics of a cell over the cohorts: from opened noisy sums to se, t and p.

Rules kept here:
* only noisy cohort sums and public constants come in; a member's vector is nowhere in reach;
* D, T and the sample variance are exact fractions; from the design variance on float64, in the order written here, with
  `math.fsum` for sums, so that every machine gets the same bytes;
* the unit of replication is the cohort of organisations, not the task and not the person;
* phi is per signal and kind; a group with fewer than 8 eligible cells takes the largest phi of the report;
* p is a closed form (14 is even) and needs no library.

The rule these feed is `direction.py`; docs/mechanism.md derives the constants.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from windvane_privacy.layout import Cell
from windvane_privacy.manifest import D_SCALE, T_SCALE

COHORTS = 5
OWN_FREEDOM = COHORTS - 1
PRIOR_FREEDOM = 10
FREEDOM = OWN_FREEDOM + PRIOR_FREEDOM
"""14 degrees of freedom: 4 of the cell itself, 10 borrowed from the design variance times phi."""
PHI_GROUP = 8


@dataclass(frozen=True, slots=True)
class CellStatistics:
    """One cell before phi. `d`, `t` are the opened integers per cohort (12 D_g, 5 T_g)."""

    cell: Cell
    d: tuple[int, ...]
    t: tuple[int, ...]
    s_obs2: Fraction
    """Sample variance of D_g."""
    V0: float
    """Design variance of one cohort's D: sampling of people plus mean noise."""
    sd_T: float
    """Noise standard deviation of T."""

    @property
    def twelve_d(self) -> int:
        """12 D, exact."""
        return sum(self.d)

    @property
    def five_t(self) -> int:
        """5 T, exact."""
        return sum(self.t)

    @property
    def net(self) -> Fraction:
        """Net preference over all cohorts, positive toward a."""
        return Fraction(self.twelve_d, D_SCALE)

    @property
    def spoke(self) -> Fraction:
        """People who spoke, capped per organisation, with noise."""
        return Fraction(self.five_t, T_SCALE)

    @property
    def sign(self) -> int:
        """1 toward a, -1 toward b, 0 for neither."""
        return (self.twelve_d > 0) - (self.twelve_d < 0)

    @property
    def agreeing(self) -> int:
        """Cohorts whose own sum has the sign of D."""
        return sum(value * self.sign > 0 for value in self.d)

    @property
    def ratio(self) -> float:
        """Observed over design variance."""
        return float(self.s_obs2) / self.V0


@dataclass(frozen=True, slots=True)
class Tested:
    """An eligible cell with its phi, standard error of D, t and two-sided p at 14 degrees of freedom."""

    statistics: CellStatistics
    phi: float
    se: float
    t: float
    p: float


def cell_statistics(
    cell: Cell, d: Sequence[int], t: Sequence[int], sizes: Sequence[int], share_scale: float
) -> CellStatistics:
    """Statistics of one cell.

    Args:
        cell: the comparison.
        d: 12 D_g per cohort.
        t: 5 T_g per cohort.
        sizes: members per cohort, m_g.
        share_scale: s_i, scale of one member's noise share.
    """
    G = len(sizes)
    values = [Fraction(value, D_SCALE) for value in d]
    mean = sum(values, Fraction(0)) / G
    s_obs2 = sum(((value - mean) ** 2 for value in values), Fraction(0)) / (G - 1)
    T = Fraction(sum(t), T_SCALE)
    noise = [m * (share_scale * share_scale) / D_SCALE**2 for m in sizes]
    V0 = float(max(T, Fraction(0))) / G + math.fsum(noise) / G
    sd_T = share_scale * math.sqrt(sum(sizes)) / T_SCALE
    return CellStatistics(cell, tuple(d), tuple(t), s_obs2, V0, sd_T)


def overdispersion(cells: Sequence[CellStatistics]) -> dict[tuple[str, str], float]:
    """phi of each (signal, kind) that has an eligible cell; `cells` are the eligible cells in layout order."""
    groups: dict[tuple[str, str], list[float]] = {}
    for entry in cells:
        groups.setdefault((entry.cell.signal.value, entry.cell.kind), []).append(entry.ratio)
    phi = {group: max(1.0, math.fsum(ratios) / len(ratios)) for group, ratios in groups.items()}
    largest = max(phi.values(), default=1.0)
    return {group: value if len(groups[group]) >= PHI_GROUP else largest for group, value in phi.items()}


def with_phi(entry: CellStatistics, phi: float) -> Tested:
    """se, t and p of a cell with the phi of its group."""
    variance = (OWN_FREEDOM * float(entry.s_obs2) + PRIOR_FREEDOM * phi * entry.V0) / FREEDOM
    se = math.sqrt(len(entry.d) * variance)
    t = float(entry.net) / se
    return Tested(entry, phi, se, t, two_sided_p(t))


def two_sided_p(t: float) -> float:
    """Two-sided tail of Student's t at 14 degrees of freedom, absolute error below 1e-14.

    Abramowitz and Stegun 26.7.4, for an even number of degrees of freedom.
    """
    c = FREEDOM / (FREEDOM + t * t)
    series = math.fsum(math.comb(2 * j, j) / 4**j * c**j for j in range(FREEDOM // 2))
    return min(1.0, max(0.0, 1 - abs(t) / math.sqrt(FREEDOM + t * t) * series))


def benjamini_hochberg(p: Mapping[Cell, float], q: float) -> frozenset[Cell]:
    """Cells that pass Benjamini-Hochberg at rate q; ties keep the mapping's order (layout order)."""
    k = len(p)
    ranked = sorted(p, key=lambda cell: p[cell])
    last = max((i for i, cell in enumerate(ranked, 1) if p[cell] <= q * i / k), default=0)
    return frozenset(ranked[:last])
