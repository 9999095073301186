# SPDX-License-Identifier: Apache-2.0
"""Renders docs/feasibility.md: each figure comes from the code that plans rounds, accounts for them and their floor."""

from __future__ import annotations

from fractions import Fraction

from windvane_privacy import budget
from windvane_privacy.feasibility import KIND_PAIRS, POOLED_PAIRS, PairUse, smallest_gap
from windvane_privacy.manifest import rho_of, share_scale, smallest_cohort
from windvane_server.plan_round import (
    COHORTS,
    REAL_FLOORS,
    VOTES_KEPT,
    honest_share,
    ladder_rho,
    noise_scale,
    too_small,
)

DELTA = "1e-8"
CAP = Fraction(9, 32)
Q = sum(VOTES_KEPT)
SIZES = ((30, 1_000), (36, 200), (36, 1_000), (40, 1_000), (60, 200), (60, 1_000), (120, 500), (200, 1_000), (500, 300))
FLOOR_ROWS = ((20, 2, 104), (30, 3, 104), (30, 3, 208), (60, 6, 208), (120, 12, 208), (200, 20, 208))
PEOPLE = (200, 500, 1_000, 5_000)
POOLED_COMPARISONS, KIND_COMPARISONS = 28, 168
BY_KIND = ((60, 1_000), (200, 1_000), (500, 300))

HEAD = """\
# Is our federation large enough?

For whoever decides whether to join, or whether to start a federation: what can be said with how many organisations
and people, and what it costs a person. Every figure here is computed by the code that plans a round, accounts for it
and adds its noise; a test fails when this page is not current (`python tests/house/render_docs.py` writes it).

## The short answer

* Below {roster} organisations, below {accepted} that take part in a quarter, or below {people:,} people, nothing is
  published, and the report says why.
* From there on, differences between much-used models can be told if they are large. More organisations help more than
  a weaker guarantee does.
* The cost is a person's and is bounded for each quarter and for life: the table below. It is lowest against whoever
  reads the report, and higher only if institutions that you chose together break their word.
* Rare models, single kinds of work and small differences need two hundred organisations or more.

## What it costs, by size

Epsilon is for adding or removing one person with everything that person ever did, at delta {delta}, by OpenDP,
rounded up. *Public*: whoever reads the report, the coordinator, one guardian. *Two guardians*: if two of the three
institutions broke their word together, or one with the coordinator. *h* is how many honest members of a cohort carry
the noise; s and s_i are its scales ([mechanism.md](mechanism.md#3-noise)). *Quarters*: how many a person can be part
of before the lifetime cap of rho {cap} drops that person (nobody else).

"""
COST_HEAD = (
    "| organisations x people each | rho | s | smallest cohort, h | s_i | a quarter: public / two guardians | quarters "
    "| lifetime: public / two guardians |\n|---|---|---|---|---|---|---|---|\n"
)

FLOOR = """
## The smallest difference that can be told

In points of the rate at which work that began with a model ends finished (a difference of 1 point: 71 instead of 70
in 100 tasks). Two figures: for the pair of models that most people use, and for a pair in the middle. "Over 20"
means: not at all. This is a *floor*: it counts the noise and the luck of who votes, and leaves out that organisations
differ, that no organisation counts for more than a bounded number of people, and all further gates of the [decision
rule](mechanism.md). Real rounds see less, never more.

"""

PLANNED = """
At the sizes above, with the h and s that a round would get ({comparisons} comparisons, all kinds of work together):

| organisations x people each | most used pair | a middle pair |
|---|---|---|
"""

GRID = """
And how it changes with size, at a fixed h (most used pair / a middle pair):

| | 200 people each | 500 | 1,000 | 5,000 |
|---|---|---|---|---|
"""

KIND = """
One kind of work at a time ({comparisons} comparisons):

| organisations x people each | most used pair | a middle pair |
|---|---|---|
"""

TAIL = """
Read down a column: votes grow with the number of organisations, and the spread of the noise only with its square
root, so a larger federation sees more at the same cost to a person. Read along a row: so do larger organisations.
Compare 30 organisations at s 104 and at s 208: twice the noise is a quarter of the rho, and for a thousand people
each it costs less than half a point.

## How the floor is computed

    (z + z')^2 (T + V) = (r T)^2        V = (s / 12)^2 n / h        gap = r / slope

T is the number of people who vote on the pair in the whole federation of n organisations, V the variance of the noise
on their net vote, z the normal quantile of .05 / (2 x comparisons), z' that of 80 % power, r the imbalance of votes
that is needed, and the slope says how much a difference between models shows in people's votes.

**Assumptions**, all about people and none about your logs:

| | people who vote on the pair | slope |
|---|---|---|
{assumptions}
The shares are those of simulated people (35 % use one model, 40 % two, 18 % three, 7 % four; a median of 50 tasks a
quarter), the slopes are fitted to the same simulations. If your people use fewer models or do fewer tasks, fewer
vote, and the floor rises.

What no size repairs: people give harder work to the model they trust. A difference that can be told is not yet one
that the models cause; only blind comparisons are free of that
([mechanism.md](mechanism.md#7-what-differential-privacy-does-not-cover)).
"""


def page() -> str:
    """docs/feasibility.md."""
    floors = {"roster": REAL_FLOORS.roster, "accepted": REAL_FLOORS.accepted, "people": REAL_FLOORS.people}
    parts = [HEAD.format(**floors, delta=DELTA, cap=_fraction(CAP)), COST_HEAD]
    parts += [_cost(n, people) for n, people in SIZES]
    parts += [FLOOR.rstrip("\n") + "\n", PLANNED.format(comparisons=POOLED_COMPARISONS)]
    parts += [_planned(n, people, POOLED_PAIRS, POOLED_COMPARISONS) for n, people in SIZES if _large(n, people)]
    parts += [GRID]
    parts += [_grid(*row) for row in FLOOR_ROWS]
    parts += [KIND.format(comparisons=KIND_COMPARISONS)]
    parts += [_planned(n, people, KIND_PAIRS, KIND_COMPARISONS) for n, people in BY_KIND]
    parts += [TAIL.format(assumptions=_assumptions())]
    return "".join(parts)


def terms(n: int, people: int) -> tuple[Fraction, int, int, int]:
    """rho, s, smallest cohort and h of a round of `n` organisations with `people` each."""
    s = noise_scale(ladder_rho(n, n * people), Q)
    m_min = smallest_cohort(n, COHORTS)
    return rho_of(Q, s), s, m_min, honest_share(m_min, rho_of(Q, s))


def _large(n: int, people: int) -> bool:
    return too_small(n, n * people, REAL_FLOORS) is None


def _cost(n: int, people: int) -> str:
    if not _large(n, people):
        return f"| {n} x {people:,} | - | - | - | - | nothing is published | - | - |\n"
    rho, s, m_min, h = terms(n, people)
    quarter = budget.coalitions(rho, h=h, m=m_min, delta=DELTA)
    lifetime = budget.coalitions(CAP, h=h, m=m_min, delta=DELTA)
    return (
        f"| {n} x {people:,} | {_fraction(rho)} | {s} | {m_min}, {h} | {share_scale(s, h):.1f} "
        f"| {quarter.a.text} / {quarter.c.text} | {CAP // rho} | {lifetime.a.text} / {lifetime.c.text} |\n"
    )


def _planned(n: int, people: int, pairs: tuple[PairUse, ...], comparisons: int) -> str:
    _rho, s, _m_min, h = terms(n, people)
    return f"| {n} x {people:,} | {' | '.join(gap(n, people, s, h, pair, comparisons) for pair in pairs)} |\n"


def _grid(n: int, h: int, s: int) -> str:
    cells = [" / ".join(gap(n, people, s, h, pair, POOLED_COMPARISONS) for pair in POOLED_PAIRS) for people in PEOPLE]
    return f"| {n} organisations, h {h}, s {s} | {' | '.join(cells)} |\n"


def gap(n: int, people: int, s: int, h: int, pair: PairUse, comparisons: int) -> str:
    """A floor in points, as the page prints it."""
    found = smallest_gap(organisations=n, people_each=people, s=s, h=h, pair=pair, comparisons=comparisons)
    return "over 20" if found is None else f"{100 * found:.1f}"


def _assumptions() -> str:
    return "".join(
        f"| {where}, {pair.name} | {pair.votes:.1%} | {pair.slope} |\n"
        for where, pairs in (("all kinds together", POOLED_PAIRS), ("one kind of work", KIND_PAIRS))
        for pair in pairs
    )


def _fraction(value: Fraction) -> str:
    return f"{value.numerator}/{value.denominator}"
