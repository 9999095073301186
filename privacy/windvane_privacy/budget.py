# SPDX-License-Identifier: Apache-2.0
"""What a round costs a person: exact rho, and the epsilons that are printed from it.

Rules kept here:
* the only currency is rho (zCDP) as an exact fraction; composition adds rho; epsilons are never added;
* every epsilon comes from rho through OpenDP's conversion, at the manifest's delta, and is rounded up in print;
* the three guarantees name who is against the person; (b) and (c) are worst cases, never averages;
* replace-one, groups of accounts and people in two organisations are stated beside add/remove, not hidden.

Sources: Bun, Steinke (2016) for zCDP; Canonne, Kamath, Steinke (2020) for the conversion; docs/mechanism.md.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from windvane_privacy.errors import ManifestError
from windvane_privacy.manifest import D_SCALE, Manifest
from windvane_privacy.noise import opendp

CLAMP_TAIL = Fraction(1, 2**75)
"""P(|noise| >= 10 s_i) of one entry is below this for every s_i of 26 and more (a test computes it)."""
CLAMP_SHARE = Fraction(1, 1000)
"""The clamp of the noise may add at most this share of delta."""
_DELTA = re.compile(r"1e-[1-9][0-9]?")


@dataclass(frozen=True, slots=True)
class Loss:
    """A privacy loss: exact `rho` and its `epsilon` at the round's delta."""

    rho: Fraction
    epsilon: float

    @property
    def text(self) -> str:
        """epsilon with three decimals, rounded up."""
        return _rounded_up(self.epsilon)


@dataclass(frozen=True, slots=True)
class Overlap:
    """What other rounds with overlapping events have cost a person here: `rho`, under guarantee (a), and `local`, under
    guarantee (c): the sum of every such round's own h x rho."""

    rho: Fraction = Fraction(0)
    local: Fraction = Fraction(0)


@dataclass(frozen=True, slots=True)
class Guarantees:
    """What one person of one organisation can lose in one round, add or remove, by who is against that person.

    `a`: the public, the coordinator, one guardian; h honest members in the cohort. `a_plus`: the same, every member of
    the smallest cohort honest. `b`: g honest members only, by g = h - 1 down to 1. `c`: two guardians together.
    `replace_one`: (a) with one person exchanged for another. `two_accounts`: (a) for one person with two accounts or in
    two organisations of one cohort. `year`, `three_years`: (a) after 4 and 12 rounds. `year_c`: (c) after 4 rounds.
    """

    delta: str
    a: Loss
    a_plus: Loss
    b: tuple[tuple[int, Loss], ...]
    c: Loss
    replace_one: Loss
    two_accounts: Loss
    year: Loss
    year_c: Loss
    three_years: Loss


@dataclass(frozen=True, slots=True)
class Lifetime:
    """The most one person can lose in one organisation under a cap: whole `rounds` that fit, what is `spent` at most
    with this round, and the loss at the cap under (a) and (c)."""

    rounds: int
    spent: Loss
    a: Loss
    c: Loss


@dataclass(frozen=True, slots=True)
class Coalitions:
    """What a cost under guarantee (a) becomes under each guarantee; `Guarantees` says who is against whom."""

    a: Loss
    a_plus: Loss
    b: tuple[tuple[int, Loss], ...]
    c: Loss


def coalitions(rho: Fraction, *, h: int, m: int, delta: str) -> Coalitions:
    """rho under (a), (a+) with all m members honest, (b) for every g < h, and (c)."""
    return Coalitions(
        a=loss(rho, delta),
        a_plus=loss(rho * h / max(h, m), delta),
        b=tuple((g, loss(rho * h / g, delta)) for g in range(h - 1, 0, -1)),
        c=loss(rho * h, delta),
    )


def guarantees(manifest: Manifest) -> Guarantees:
    """The guarantees of one round; everything from the manifest."""
    rho, h, delta = manifest.rho, manifest.noise.h, manifest.noise.delta
    quarter = coalitions(rho, h=h, m=manifest.cohorts.m_min, delta=delta)
    return Guarantees(
        delta=delta,
        a=quarter.a,
        a_plus=quarter.a_plus,
        b=quarter.b,
        c=quarter.c,
        replace_one=loss(replace_one_rho(manifest.bounds.Q, manifest.noise.s), delta),
        two_accounts=loss(group_rho(rho, 2), delta),
        year=loss(4 * rho, delta),
        year_c=loss(4 * rho * h, delta),
        three_years=loss(12 * rho, delta),
    )


def lifetime(manifest: Manifest, cap: Fraction) -> Lifetime:
    """What a lifetime cap (rho, from a policy) means at this manifest's rho; this round counts as spent."""
    rho, delta = manifest.rho, manifest.noise.delta
    return Lifetime(
        rounds=cap // rho,
        spent=loss(min(rho * (manifest.rounds_so_far + 1), cap), delta),
        a=loss(cap, delta),
        c=loss(cap * manifest.noise.h, delta),
    )


def loss(rho: Fraction, delta: str) -> Loss:
    """rho with its epsilon."""
    return Loss(rho, epsilon(rho, delta))


@lru_cache(maxsize=512)
def epsilon(rho: Fraction, delta: str) -> float:
    """The epsilon of rho-zCDP at `delta` (such as "1e-8"), from OpenDP; never below the true one for this conversion.

    Raises:
        ManifestError: delta is not of the form that manifests use.
        ValueError: rho is negative.
    """
    bound = parse_delta(delta)
    if rho < 0:
        raise ValueError("rho must not be negative")
    if rho == 0:
        return 0.0
    dp = opendp()
    unit = dp.m.make_gaussian(dp.atom_domain(T="i64"), dp.absolute_distance(T=float), scale=1.0)
    # At scale 1 a distance d costs d^2 / 2; the float root may fall short of rho by a unit in the last place.
    distance = math.sqrt(2 * rho)
    while Fraction(unit.map(distance)) < rho:
        distance = math.nextafter(distance, math.inf)
    value: float = dp.c.make_zCDP_to_approxDP(unit).map(distance).epsilon(float(bound))
    return value


def epsilon_text(rho: Fraction, delta: str) -> str:
    """`epsilon` with three decimals, rounded up: what is printed is never smaller than what holds."""
    return _rounded_up(epsilon(rho, delta))


def parse_delta(text: str) -> Fraction:
    """A delta from its text, a power of ten such as "1e-8".

    Raises:
        ManifestError: another form; a longer exponent could stand for a number too large to hold.
    """
    if _DELTA.fullmatch(text) is None:
        raise ManifestError("delta is not a power of ten such as 1e-8.")
    return Fraction(text)


def replace_one_rho(Q: int, s: int) -> Fraction:
    """rho when one person is exchanged for another: (24 sqrt Q)^2 / (2 s^2)."""
    return Fraction((2 * D_SCALE) ** 2 * Q, 2 * s * s)


def group_rho(rho: Fraction, accounts: int) -> Fraction:
    """rho of one person who counts as `accounts` people."""
    return accounts * accounts * rho


def tau(scale: float, shares: int) -> float:
    """How far a sum of `shares` discrete Gaussians of `scale` is from being one, as a log-ratio of probabilities.

    Kairouz, Liu, Steinke (2021): 10 sum_{k=1}^{K-1} exp(-2 pi^2 s_i^2 k / (k + 1)). Zero in float64 from scale 26 on.
    """
    return 10 * math.fsum(math.exp(-2 * math.pi**2 * scale**2 * k / (k + 1)) for k in range(1, shares))


def clamp_delta(manifest: Manifest) -> float:
    """The most delta that clamping each member's noise adds to guarantee (a): (1 + e^eps) m L 2^-75, m = everyone."""
    worst = epsilon(manifest.rho, manifest.noise.delta)
    return (1 + math.exp(worst)) * manifest.roster.members * manifest.length * float(CLAMP_TAIL)


def clamp_is_negligible(manifest: Manifest) -> bool:
    """Whether `clamp_delta` is at most a thousandth of delta."""
    return clamp_delta(manifest) <= float(parse_delta(manifest.noise.delta) * CLAMP_SHARE)


def _rounded_up(value: float) -> str:
    # Exactly in thousandths: formatting alone would round to the nearest.
    thousandths = math.ceil(Fraction(value) * 1000)
    return f"{thousandths // 1000}.{thousandths % 1000:03d}"
