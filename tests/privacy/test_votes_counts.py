# SPDX-License-Identifier: Apache-2.0
"""The counts that a member may see after a round are those of its votes, cell by cell, before any bound."""

from __future__ import annotations

import secrets

import numpy as np
import pytest

from manifests import make_manifest
from outcome_rows import row
from windvane_privacy.errors import BoundBroken
from windvane_privacy.layout import Cell, Layout
from windvane_privacy.own import own_outcome
from windvane_privacy.votes import Vote, cell_counts, exact_vector, own_words

M = make_manifest()
CELLS = Layout(M).cells


def test_counts_are_people_for_each_side() -> None:
    votes = [[Vote(CELLS[0], True), Vote(CELLS[3], False)]] * 2 + [[Vote(CELLS[0], False)]]
    counts = cell_counts(votes, M)
    assert len(counts) == len(CELLS)
    assert (counts[0], counts[3]) == ((2, 1), (0, 2))
    assert sum(a + b for a, b in counts) == 5


def test_counts_are_not_clamped_and_the_released_vector_is() -> None:
    votes = [[Vote(CELLS[0], True)]] * 50
    assert cell_counts(votes, M)[0] == (50, 0)
    assert np.array_equal(exact_vector(votes, M)[:2], [12 * M.bounds.C, 5 * M.bounds.C])


def test_two_votes_in_one_cell_are_refused_here_too() -> None:
    with pytest.raises(BoundBroken):
        cell_counts([[Vote(CELLS[0], True), Vote(CELLS[0], False)]], M)


def test_words_and_counts_come_from_one_table() -> None:
    first = Cell(CELLS[0].signal, CELLS[0].kind, CELLS[0].a, CELLS[0].b)
    rows = [row(model, 6, successes, who=n + 1) for n in range(12) for model, successes in ((first.a, 6), (first.b, 0))]
    words, counts = own_outcome(rows, M, secrets.SystemRandom())
    assert counts.people == 12
    assert counts.cells[0] == (12, 0)
    assert words[0].word == "toward_a"
    vendor = M.catalogue.get(first.a).vendor
    assert own_outcome(rows, M, secrets.SystemRandom(), ties=[vendor])[1].cells[0] == (0, 0)


@pytest.mark.parametrize(
    ("toward_a", "toward_b", "word"),
    [
        (5, 4, "too_few"),
        (5, 5, "even"),
        (12, 10, "even"),
        (11, 9, "toward_a"),
        (9, 11, "toward_b"),
        (10, 0, "toward_a"),
    ],
)
def test_own_words_lean_from_a_tenth_of_at_least_ten_voters(toward_a: int, toward_b: int, word: str) -> None:
    votes = [[Vote(CELLS[0], True)]] * toward_a + [[Vote(CELLS[0], False)]] * toward_b
    assert own_words(votes, M)[0].word == word
