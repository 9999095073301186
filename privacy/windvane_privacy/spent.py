# SPDX-License-Identifier: Apache-2.0
"""What one person can have spent at most in one organisation, from the rounds that were charged.

Rules kept here:
* a person who was in every round is the worst case; nobody can have spent more than that, or more than the cap;
* rounds whose events overlap are one quarter and count together;
* under two colluding guardians each round counts with its own h; over a lifetime that is at most the largest h times
  the cap;
* exact fractions throughout, and no count of people anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

SPANS = (1, 4, 12)
"""Quarters of which the sum is told, newest first."""


class Charged(Protocol):
    """A charged round, as the ledger holds it (`RoundEntry`)."""

    @property
    def rho(self) -> Fraction: ...
    @property
    def h(self) -> int: ...
    @property
    def events_from(self) -> str: ...
    @property
    def events_to(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Span:
    """A sum over the last `quarters` (0: over all): rho at most under guarantee (a), and under (c)."""

    quarters: int
    rho: Fraction
    local: Fraction


@dataclass(frozen=True, slots=True)
class Spent:
    """`spans`: the last quarter, 4, 12, and all of them. `left`: whole rounds of `rho` that somebody who was in every
    round still has; None where no rho is known."""

    spans: tuple[Span, ...]
    left: int | None


def most_spent(rounds: Iterable[Charged], cap: Fraction, rho: Fraction | None) -> Spent:
    """The most that one person can have spent. `rho`: what the next round would cost."""
    quarters = _quarters(rounds)
    spans = tuple(_span(n, quarters[-n:], cap) for n in SPANS)
    lifetime = _span(0, quarters, cap)
    left = None if rho is None else max(0, (cap - lifetime.rho) // rho)
    return Spent((*spans, lifetime), left)


def _span(name: int, quarters: list[list[Charged]], cap: Fraction) -> Span:
    charged = [one for quarter in quarters for one in quarter]
    rho = sum((one.rho for one in charged), Fraction(0))
    local = sum((one.h * one.rho for one in charged), Fraction(0))
    return Span(name, min(rho, cap), min(local, cap * max((one.h for one in charged), default=1)))


def _quarters(rounds: Iterable[Charged]) -> list[list[Charged]]:
    """Rounds in the order of their events, those that overlap together."""
    found: list[list[Charged]] = []
    until = ""
    for one in sorted(rounds, key=lambda charged: (charged.events_from, charged.events_to)):
        if one.events_from < until:
            found[-1].append(one)
        else:
            found.append([one])
        until = max(until, one.events_to)
    return found
