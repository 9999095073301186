# SPDX-License-Identifier: Apache-2.0
"""What fewer than t guardians see together is uniform, any t give the exact sums, and one wrong entry is always seen.

Rules kept here:
* all shares that a coalition of t - 1 holds are looked at together, for every coalition: each of them uniform alone
  would not be enough;
* the test of uniformity is shown to bite on a sharing that draws one coefficient too few;
* every entry of every cohort of every guardian is altered once, with several differences: none is left to chance.

Source: Shamir, "How to share a secret" (1979).
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifests import guardian_key, make_manifest
from windvane_privacy import field, shares
from windvane_privacy.errors import SpareShareMismatch
from windvane_privacy.field import LARGEST, Elements, P
from windvane_privacy.tally import GuardianResult, make_result, read_result, tally

DRAWS = 30_000
SCHEMES = [(2, 3), (3, 5), (4, 7)]
LIMITS = {2: 40.0, 3: 70.0, 4: 150.0}
"""By t, for 4^(t - 1) bins: 3, 15 and 63 degrees of freedom; each is passed once in about 10^8 draws."""


def chi_square(together: list[Elements], shift: int) -> float:
    """Of two bits of each share, from bit `shift` on, all shares of a coalition as one number."""
    bins = np.zeros(DRAWS, dtype=np.int64)
    for share in together:
        bins = bins * 4 + ((share[:DRAWS] >> np.uint64(shift)) & np.uint64(3)).astype(np.int64)
    expected = DRAWS / 4 ** len(together)
    counts = np.bincount(bins, minlength=4 ** len(together))
    return float(((counts - expected) ** 2 / expected).sum())


@pytest.mark.parametrize("value", [0, 1711, -LARGEST])
@pytest.mark.parametrize(("t", "n"), SCHEMES)
def test_what_t_minus_one_guardians_hold_together_is_uniform(t: int, n: int, value: int) -> None:
    made = shares.split([value] * DRAWS, t, n)
    for coalition in combinations(made, t - 1):
        # The highest bits, some in the middle and the lowest: a bias of a multiplication would show in one of them.
        for shift in (62, 31, 0):
            assert chi_square(list(coalition), shift) < LIMITS[t]


@pytest.mark.parametrize(("t", "n"), SCHEMES[1:])
def test_one_coefficient_too_few_is_seen(monkeypatch: pytest.MonkeyPatch, t: int, n: int) -> None:
    """Each share alone stays uniform then; together they are not."""
    draw, kept = field.random_elements, []

    def once(count: int) -> Elements:
        if count > 1:
            kept.append(kept[0] if kept else draw(count))
            return kept[-1]
        return draw(count)

    monkeypatch.setattr(field, "random_elements", once)
    made = shares.split([0] * DRAWS, t, n)
    assert len(kept) == t - 1
    found = [chi_square(list(coalition), 62) for coalition in combinations(made, t - 1)]
    assert max(found) > 1_000


@settings(max_examples=40)
@given(st.data())
def test_any_t_guardians_open_the_exact_sums(data: st.DataObject) -> None:
    t, n = data.draw(st.sampled_from([(2, 3), (2, 4), (3, 5)]))
    width, members = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 8))
    entries = st.integers(-(LARGEST // 8), LARGEST // 8)
    vectors = data.draw(st.lists(st.lists(entries, min_size=width, max_size=width), min_size=members, max_size=members))
    made = [shares.split(vector, t, n) for vector in vectors]
    held = {j: field.total([one[j - 1] for one in made]) for j in range(1, n + 1)}
    expected = [sum(column) for column in zip(*vectors, strict=True)]
    for chosen in combinations(held, t):
        assert field.decode_signed(shares.combine({j: held[j] for j in chosen}, t))[:-1] == expected
    assert shares.spare_agrees(held, t)


MANIFEST = make_manifest(members=20, G=4, k=3, cap=1)
COHORTS = tuple(tuple(range(5 * g + 1, 5 * g + 6)) for g in range(4))


def result(guardian: int, rows: list[Elements]) -> GuardianResult:
    raw = make_result(MANIFEST, "cd" * 32, guardian, [5] * 4, rows, guardian_key(guardian))
    return read_result(raw, guardian_key(guardian).public)


@pytest.mark.parametrize("guardian", [1, 2, 3])
def test_every_altered_entry_of_a_sum_is_seen_by_the_spare_share(guardian: int) -> None:
    made = [shares.split(list(range(-g, MANIFEST.length - g)), 2, 3) for g in range(4)]
    honest = {j: [part[j - 1][:-1] for part in made] for j in (1, 2, 3)}
    found = {j: result(j, rows) for j, rows in honest.items()}
    sums, checked = tally(found, MANIFEST, COHORTS)
    assert checked
    assert [list(row) for row in sums.sums] == [list(range(-g, MANIFEST.length - g)) for g in range(4)]
    tried = 0
    for cohort in range(4):
        for entry in range(MANIFEST.length):
            for by in (1, P - 1, 2**32, (P - 1) // 2):
                rows = [row.copy() for row in honest[guardian]]
                rows[cohort][entry : entry + 1] = field.add(rows[cohort][entry : entry + 1], field.constant(by))
                with pytest.raises(SpareShareMismatch):
                    tally({**found, guardian: result(guardian, rows)}, MANIFEST, COHORTS)
                tried += 1
    assert tried == 4 * MANIFEST.length * 4


def test_two_guardians_alone_do_not_see_it() -> None:
    """That is what the third one is for, and why a report says whether it compared."""
    made = [shares.split([3] * MANIFEST.length, 2, 3) for _ in range(4)]
    rows = {j: [part[j - 1][:-1].copy() for part in made] for j in (1, 2)}
    rows[1][0][:1] = field.add(rows[1][0][:1], field.constant(1))
    sums, checked = tally({j: result(j, own) for j, own in rows.items()}, MANIFEST, COHORTS)
    assert not checked
    assert sums.sums[0][0] != 3
