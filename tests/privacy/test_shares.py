# SPDX-License-Identifier: Apache-2.0
"""Any t shares give the vector back, fewer tell nothing, sums of shares are shares of sums.

Rules kept here:
* every subset of t guardians is tried, for every (t, n) up to (4, 7);
* secrecy is tested on distributions, and the test is shown to bite on a sharing without fresh coefficients.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windvane_privacy import field, shares
from windvane_privacy.errors import BoundBroken, FieldElementOutOfRange, MalformedInput, NotReady
from windvane_privacy.field import LARGEST, Elements, P

SCHEMES = [(t, n) for t in range(2, 5) for n in range(t, 8)]
EDGES = [0, 1, -1, 2**32, -(2**32), LARGEST, -LARGEST, 1711, -1711]


def numbered(made: list[Elements], chosen: tuple[int, ...]) -> dict[int, Elements]:
    return {j: made[j - 1] for j in chosen}


@pytest.mark.parametrize(("t", "n"), SCHEMES)
def test_every_subset_of_t_gives_the_vector_back(t: int, n: int) -> None:
    made = shares.split(EDGES, t, n)
    blind = set()
    for chosen in combinations(range(1, n + 1), t):
        opened = shares.combine(numbered(made, chosen), t)
        assert field.decode_signed(opened)[: len(EDGES)] == EDGES
        blind.add(opened.tolist()[-1])
    assert len(blind) == 1


@pytest.mark.parametrize(("t", "n"), SCHEMES)
def test_fewer_than_t_do_not_give_it(t: int, n: int) -> None:
    made = shares.split(EDGES, t, n)
    with pytest.raises(NotReady):
        shares.combine(numbered(made, tuple(range(1, t))), t)
    if t > 2:
        opened = shares.combine(numbered(made, tuple(range(1, t))), t - 1)
        assert field.decode_signed(opened)[: len(EDGES)] != EDGES


@given(st.lists(st.integers(-LARGEST, LARGEST), min_size=1, max_size=6))
def test_shares_have_the_vectors_length_and_one_blind_element(values: list[int]) -> None:
    made = shares.split(values, 2, 3)
    assert [share.shape for share in made] == [(len(values) + 1,)] * 3
    assert all(share.dtype == np.uint64 for share in made)


def test_two_of_three_follows_the_printed_weights() -> None:
    made = [x.tolist() for x in shares.split([5, -7], 2, 3)]
    half3, half = 9223372034707292162, 9223372034707292160  # 3/2 and -1/2 in the field
    for a, b, c in zip(*made, strict=True):
        secret = (2 * a - b) % P
        assert (half3 * a + half * c) % P == secret
        assert (3 * b - 2 * c) % P == secret
        assert c == (2 * b - a) % P


def test_the_sum_of_500_members_opens_from_summed_shares() -> None:
    vectors = [[(-1) ** i * (i * 37 + k) for k in range(6)] for i in range(500)]
    made = [shares.split(vector, 2, 3) for vector in vectors]
    sums = {j: field.total([m[j - 1] for m in made]) for j in (1, 2, 3)}
    expected = [sum(column) for column in zip(*vectors, strict=True)]
    for chosen in combinations((1, 2, 3), 2):
        opened = shares.combine({j: sums[j] for j in chosen}, 2)
        assert field.decode_signed(opened)[:-1] == expected
    assert shares.spare_agrees(sums, 2)


@pytest.mark.parametrize(("t", "n"), [(2, 3), (3, 5)])
def test_any_single_altered_entry_of_any_share_is_seen(t: int, n: int) -> None:
    made = shares.split([3, -4], t, n)
    whole = numbered(made, tuple(range(1, n + 1)))
    assert shares.spare_agrees(whole, t)
    for j in whole:
        for entry in range(3):
            altered = {k: share.copy() for k, share in whole.items()}
            altered[j][entry : entry + 1] = field.add(altered[j][entry : entry + 1], field.constant(1))
            assert not shares.spare_agrees(altered, t)


def test_with_exactly_t_shares_nothing_can_be_compared() -> None:
    made = shares.split([1], 2, 3)
    assert shares.spare_agrees(numbered(made, (1, 3)), 2)
    assert shares.spare_agrees({1: field.random_elements(2), 3: field.random_elements(2)}, 2)


def _chi_square(values: Elements) -> float:
    """Of the top four bits: 15 degrees of freedom, 70 is passed once in 10^8 runs."""
    counts = np.bincount((values >> np.uint64(60)).astype(np.int64), minlength=16)
    expected = len(values) / 16
    return float(((counts - expected) ** 2 / expected).sum())


@pytest.mark.parametrize("value", [0, 1, -1, LARGEST])
@pytest.mark.parametrize("guardian", [1, 2, 3])
def test_one_share_of_two_is_uniform_whatever_the_value(guardian: int, value: int) -> None:
    share = shares.split([value] * 20_000, 2, 3)[guardian - 1]
    assert _chi_square(share) < 70
    assert len(set(share.tolist())) == len(share)


def test_any_combination_of_two_shares_of_three_is_uniform() -> None:
    made = shares.split([1711] * 20_000, 3, 5)
    for a, b in combinations(made, 2):
        assert _chi_square(a) < 70
        assert _chi_square(field.sub(a, b)) < 70
        # The weights that would open a line: on a parabola they must leave noise.
        assert _chi_square(field.sub(field.add(a, a), b)) < 70


def test_the_uniformity_test_bites_without_fresh_coefficients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(field, "random_elements", lambda n: np.ones(n, dtype=np.uint64))
    share = shares.split([5] * 20_000, 2, 3)[0]
    assert _chi_square(share) > 10_000


def test_one_coefficient_for_all_degrees_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: list[int] = []
    draw = field.random_elements

    def counted(n: int) -> Elements:
        seeds.append(n)
        return draw(n)

    monkeypatch.setattr(field, "random_elements", counted)
    shares.split([1, 2, 3], 4, 7)
    assert seeds == [1, 4, 4, 4]  # the blind element, then a fresh seed for each of the three coefficients


def test_the_blind_element_is_fresh_each_time() -> None:
    blinds = {shares.combine(numbered(shares.split([0], 2, 3), (1, 2)), 2).tolist()[-1] for _ in range(50)}
    assert len(blinds) == 50


@pytest.mark.parametrize(("t", "n"), [(0, 3), (1, 1), (1, 3), (4, 3), (2, 256)])
def test_a_sharing_that_protects_nobody_is_refused(t: int, n: int) -> None:
    with pytest.raises(BoundBroken):
        shares.split([1], t, n)


def test_malformed_sets_of_shares_are_refused() -> None:
    made = shares.split([1, 2], 2, 3)
    with pytest.raises(MalformedInput):
        shares.combine({0: made[0], 1: made[1]}, 2)
    with pytest.raises(MalformedInput):
        shares.combine({1: made[0], 2: made[1][:-1]}, 2)
    with pytest.raises(FieldElementOutOfRange):
        shares.combine({1: made[0], 2: np.full(3, P, dtype=np.uint64)}, 2)
