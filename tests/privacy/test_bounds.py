# SPDX-License-Identifier: Apache-2.0
"""The proof of bounds.md, attacked: how far one person can move what an organisation releases."""

from __future__ import annotations

import itertools
import random
import re
import secrets
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import ROOT
from manifests import make_manifest
from outcome_rows import row, squared
from windvane_privacy.catalogue import SIGNALS
from windvane_privacy.layout import Cell, Layout
from windvane_privacy.votes import Vote, collect_votes, exact_vector

MANIFEST = make_manifest(k=4, cap=3, C=3)
LAYOUT = Layout(MANIFEST)
C = MANIFEST.bounds.C
ADD_L2, ADD_L1, ADD_MAX = 39**2, 153, 12
REPLACE_L2, REPLACE_L1 = 72**2, 306

Person = list[Vote]


def someone(coins: random.Random, *, extra: int = 0) -> Person:
    """A person who keeps 0 to q votes of each signal, in distinct cells; `extra` lets that many more through."""
    votes: Person = []
    for signal, q in zip(SIGNALS, MANIFEST.bounds.q, strict=True):
        cells = [cell for cell in LAYOUT.cells if cell.signal == signal]
        votes += [
            Vote(cell, toward_a=coins.random() < 0.5) for cell in coins.sample(cells, coins.randint(0, q) + extra)
        ]
    return votes


def loudest(*, toward_a: bool, skip: bool = False) -> Person:
    """Nine votes in nine cells, all for the same side; `skip` takes nine other cells."""
    return [
        Vote(cell, toward_a=toward_a)
        for signal, q in zip(SIGNALS, MANIFEST.bounds.q, strict=True)
        for cell in [c for c in LAYOUT.cells if c.signal == signal][q if skip else 0 :][:q]
    ]


def plain_vector(people: Sequence[Person], *, clamp: bool = True, per_cell: int | None = None) -> list[int]:
    """The released integers written out once more, without any check; `per_cell` takes people instead of clamping."""
    released: list[int] = []
    for cell in LAYOUT.cells:
        votes = [1 if vote.toward_a else -1 for person in people for vote in person if vote.cell == cell]
        if per_cell is not None:
            votes = votes[-per_cell:]
        net, voters = sum(votes), len(votes)
        released += [12 * (max(-C, min(C, net)) if clamp else net), 5 * (min(voters, C) if clamp else voters)]
    return released


def moved(before: Sequence[int], after: Sequence[int]) -> list[int]:
    return [int(b) - int(a) for a, b in zip(before, after, strict=True)]


def released(people: Sequence[Person]) -> list[int]:
    return [int(entry) for entry in exact_vector(people, MANIFEST)]


def crowds(seed: int, number: int) -> list[list[Person]]:
    coins = random.Random(seed)
    return [[someone(coins) for _ in range(coins.randint(0, 12))] for _ in range(number)]


def test_vector_is_what_the_formula_says() -> None:
    for people in crowds(1, 200):
        assert released(people) == plain_vector(people)


def test_add_or_remove_never_moves_the_release_beyond_39_in_l2_153_in_l1() -> None:
    coins = random.Random(2)
    for people in crowds(3, 1_200):
        newcomer = coins.choice([someone(coins), loudest(toward_a=coins.random() < 0.5)])
        difference = moved(released(people), released([*people, newcomer]))
        assert squared(difference) <= ADD_L2
        assert sum(map(abs, difference)) <= ADD_L1
        assert max(map(abs, difference)) <= ADD_MAX


def test_the_bound_is_reached_and_so_is_not_too_wide() -> None:
    difference = moved(released([]), released([loudest(toward_a=True)]))
    assert (squared(difference), sum(map(abs, difference))) == (ADD_L2, ADD_L1)
    swapped = moved(released([loudest(toward_a=True)]), released([loudest(toward_a=False)]))
    assert squared(swapped) == REPLACE_L2
    # In L1 the worst exchange is another one: eighteen different cells instead of nine turned ones.
    elsewhere = moved(released([loudest(toward_a=True)]), released([loudest(toward_a=True, skip=True)]))
    assert sum(map(abs, elsewhere)) == REPLACE_L1
    assert squared(elsewhere) < REPLACE_L2


def test_replace_one_never_moves_the_release_beyond_72() -> None:
    coins = random.Random(4)
    extremes = [loudest(toward_a=True), loudest(toward_a=False)]
    for people in crowds(5, 1_200):
        before, after = (coins.choice([someone(coins), *extremes]) for _ in range(2))
        difference = moved(released([*people, before]), released([*people, after]))
        assert squared(difference) <= REPLACE_L2
        assert sum(map(abs, difference)) <= REPLACE_L1


def test_every_small_cell_obeys_the_bound() -> None:
    """Exhaustive in one cell: any number of voters up to twice the clamp, any newcomer, any exchange."""
    cell = LAYOUT.cells[0]
    at = slice(LAYOUT.d_index(cell), LAYOUT.t_index(cell) + 1)

    def pair(toward_a: int, toward_b: int) -> list[int]:
        people = [[Vote(cell, toward_a=i < toward_a)] for i in range(toward_a + toward_b)]
        return released(people)[at]

    for a, b in itertools.product(range(2 * C + 1), repeat=2):
        here = pair(a, b)
        for there in (pair(a + 1, b), pair(a, b + 1)):
            assert squared(moved(here, there)) in {0, 5**2, 12**2, 13**2}
        assert squared(moved(pair(a + 1, b), pair(a, b + 1))) <= 24**2
        # The clamp bounds how loud an organisation is; it never turns its sign.
        assert (here[0] > 0) == (a > b)
        assert (here[0] < 0) == (a < b)


def test_without_one_vote_per_cell_the_bound_breaks() -> None:
    cell = LAYOUT.cells[0]
    nine = [Vote(cell, toward_a=True)] * MANIFEST.bounds.Q
    difference = moved(plain_vector([], clamp=False), plain_vector([nine], clamp=False))
    assert squared(difference) > ADD_L2
    twice = [*loudest(toward_a=True), loudest(toward_a=True)[0]]
    assert squared(moved(plain_vector([]), plain_vector([twice]))) > ADD_L2


def test_without_q_the_bound_breaks() -> None:
    coins = random.Random(6)
    worst = max(squared(moved(plain_vector([]), plain_vector([someone(coins, extra=1)]))) for _ in range(200))
    assert worst > ADD_L2


def test_without_the_clamp_an_organisation_has_no_bound() -> None:
    crowd = [loudest(toward_a=True)] * (5 * C)
    assert max(map(abs, plain_vector(crowd, clamp=False))) > 12 * C
    assert max(map(abs, released(crowd))) == 12 * C


def test_taking_people_instead_of_clamping_breaks_the_bound() -> None:
    """A newcomer can displace another person: the net moves by two and the number of voters not at all."""
    crowd = [loudest(toward_a=True)] * C
    before = plain_vector(crowd, per_cell=C)
    after = plain_vector([*crowd, loudest(toward_a=False)], per_cell=C)
    assert squared(moved(before, after)) > ADD_L2
    assert squared(moved(released(crowd), released([*crowd, loudest(toward_a=False)]))) <= ADD_L2


@settings(deadline=None)  # a busy machine is no failure
@given(st.lists(st.lists(st.integers(0, 20), min_size=4, max_size=4), max_size=6), st.data())
def test_one_persons_whole_table_moves_the_release_by_no_more_than_39(
    tables: list[list[int]], data: st.DataObject
) -> None:
    """From outcomes to integers: everybody's rows without coins, one person's rows present or absent."""
    cells = make_manifest(k=3, C=2)
    ids = [family.id for family in cells.families]
    coins = secrets.SystemRandom()
    rows = [row(m, 20, x, who=i) for i, xs in enumerate(tables) for m, x in zip(ids, xs, strict=False)]
    leaver = data.draw(st.integers(0, max(0, len(tables) - 1)))
    fewer = [r for r in rows if r.person != leaver.to_bytes(16, "big")]
    whole, less = (exact_vector(collect_votes(table, cells, coins).votes, cells) for table in (rows, fewer))
    difference = whole - less
    assert int(np.dot(difference, difference)) <= 13**2 * 3 <= ADD_L2


@pytest.mark.parametrize("cell", LAYOUT.cells[:3])
def test_a_person_without_votes_moves_nothing(cell: Cell) -> None:
    people = [[Vote(cell, toward_a=True)]]
    assert released(people) == released([*people, []])


def test_the_proof_and_the_mechanism_page_name_tests_that_exist() -> None:
    pages = [ROOT / "privacy" / "windvane_privacy" / "bounds.md", ROOT / "docs" / "mechanism.md"]
    named = {name for page in pages for name in re.findall(r"`(test_\w+)`", page.read_text(encoding="utf-8"))}
    sources = "\n".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    assert len(named) > 10
    assert {name for name in named if f"def {name}(" not in sources} == set()
