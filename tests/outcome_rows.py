# SPDX-License-Identifier: Apache-2.0
"""Short ways to write outcomes tables and to judge random draws in tests of the votes and the noise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from windvane_privacy.catalogue import Signal
from windvane_privacy.outcomes import Basis, PersonOutcome


def person(number: int) -> bytes:
    """A pseudonym."""
    return number.to_bytes(16, "big")


def row(
    model: str,
    trials: int,
    successes: int,
    *,
    who: int = 1,
    signal: Signal = Signal.COMPLETION,
    kind: str = "coding",
    recorder: str = "r",
    basis: Basis = Basis.EXPLICIT,
    against: str | None = None,
) -> PersonOutcome:
    """One row; completion of a coding task, told explicitly, unless said otherwise."""
    return PersonOutcome(person(who), signal, kind, recorder, basis, model, against, trials, successes)


def chi_square_z(observed: Mapping[int, int], expected: Mapping[int, float], least: float = 8.0) -> float:
    """How many standard deviations the chi-square statistic lies above its mean (Wilson-Hilferty).

    Neighbouring values are joined until each class expects at least `least`; values outside `expected` join the ends.
    """
    total = sum(observed.values())
    classes: list[tuple[float, int]] = []
    weight, count = 0.0, 0
    for value in sorted(expected):
        weight += expected[value]
        count += observed.get(value, 0)
        if weight >= least:
            classes.append((weight, count))
            weight, count = 0.0, 0
    outside = total - sum(observed.get(value, 0) for value in expected)
    last_weight, last_count = classes.pop()
    classes.append((last_weight + weight, last_count + count + outside))
    statistic = math.fsum((seen - hoped) ** 2 / hoped for hoped, seen in classes)
    df = len(classes) - 1
    return ((statistic / df) ** (1 / 3) - (1 - 2 / (9 * df))) / math.sqrt(2 / (9 * df))


def gaussian_expected(scale: float, total: int, width: int | None = None) -> dict[int, float]:
    """Expected counts of `total` draws of the discrete Gaussian."""
    reach = width or math.ceil(6 * scale)
    masses = {x: math.exp(-x * x / (2 * scale * scale)) for x in range(-reach, reach + 1)}
    norm = math.fsum(masses.values())
    return {x: total * mass / norm for x, mass in masses.items()}


def squared(difference: Sequence[int]) -> int:
    """Squared L2 norm, exact."""
    return sum(int(d) ** 2 for d in difference)
