# SPDX-License-Identifier: Apache-2.0
"""The lot: everybody computes the same cohorts, nobody chooses them."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifests import derived
from windvane_privacy import lot
from windvane_privacy.errors import LotError, MalformedInput

H = "ab" * 32
NONCES = [derived("a"), derived("b"), derived("c")]
members_of = st.lists(st.integers(1, 2**32 - 1), min_size=1, max_size=60, unique=True)


def test_hashes_are_the_ones_written_in_the_protocol() -> None:
    nonce = derived("n")
    body = b"windvane/1/nonce\0" + b"\x07" + b"2026-Q3" + b"\x02" + nonce
    assert lot.nonce_commitment("2026-Q3", 2, nonce) == hashlib.sha256(body).hexdigest()
    rows = [(300, "cd" * 32), (2, H)]
    body = b"windvane/1/set\0" + b"\0\0\0\x02" + b"\xab" * 32 + b"\0\0\x01\x2c" + b"\xcd" * 32
    assert lot.set_root(rows) == hashlib.sha256(body).hexdigest()
    body = b"windvane/1/lot\0" + b"\xab" * 32 + b"\xcd" * 32 + b"\1" + NONCES[0] + b"\0" + b"\1" + NONCES[2]
    assert lot.lot_seed(H, "cd" * 32, [NONCES[0], None, NONCES[2]]) == hashlib.sha256(body).digest()
    assert lot.cohorts_sha256([[1, 3], [2]]) == hashlib.sha256(b"windvane/1/cohorts\0[[1,3],[2]]").hexdigest()


def test_cohorts_by_hand() -> None:
    seed = derived("seed")
    order = sorted(range(1, 8), key=lambda m: hashlib.sha256(seed + m.to_bytes(4, "big")).digest())
    expected = (tuple(sorted(order[0::3])), tuple(sorted(order[1::3])), tuple(sorted(order[2::3])))
    assert lot.cohorts(range(1, 8), seed, 3) == expected


@given(members_of, st.binary(min_size=32, max_size=32), st.integers(1, 12))
def test_everybody_is_in_exactly_one_cohort_and_sizes_differ_by_at_most_one(
    members: list[int], seed: bytes, G: int
) -> None:
    if len(members) < G:
        with pytest.raises(LotError):
            lot.cohorts(members, seed, G)
        return
    table = lot.cohorts(members, seed, G)
    assert sorted(m for cohort in table for m in cohort) == sorted(members)
    sizes = [len(cohort) for cohort in table]
    assert max(sizes) - min(sizes) <= 1
    assert len(table) == G
    assert lot.cohorts(list(reversed(members)), seed, G) == table


def test_membership_is_uniform_and_pairs_meet_by_chance() -> None:
    members, G, rounds = range(1, 13), 3, 3000
    together = dict.fromkeys(range(2, 13), 0)
    places = dict.fromkeys(members, 0)
    for i in range(rounds):
        table = lot.cohorts(members, i.to_bytes(32, "big"), G)
        for member in table[0]:
            places[member] += 1
        mine = next(cohort for cohort in table if 1 in cohort)
        for member in mine:
            if member != 1:
                together[member] += 1
    # Seeds are fixed. A third lands in cohort 0, three of eleven meet member 1; the limits are five standard errors.
    assert all(abs(n - rounds / 3) < 5 * (rounds * 2 / 9) ** 0.5 for n in places.values())
    assert all(abs(n - rounds * 3 / 11) < 5 * (rounds * 24 / 121) ** 0.5 for n in together.values())


def test_every_part_of_the_agreement_changes_the_seed() -> None:
    base = lot.lot_seed(H, "cd" * 32, NONCES)
    variants = [
        lot.lot_seed("cd" * 32, "cd" * 32, NONCES),
        lot.lot_seed(H, H, NONCES),
        lot.lot_seed(H, "cd" * 32, [NONCES[1], NONCES[0], NONCES[2]]),
        lot.lot_seed(H, "cd" * 32, [None, *NONCES[1:]]),
        lot.lot_seed(H, "cd" * 32, [*NONCES[:2], None]),
        lot.lot_seed(H, "cd" * 32, NONCES[:2]),
    ]
    assert len({base, *variants}) == 7


def test_a_commitment_is_bound_to_round_guardian_and_nonce() -> None:
    seen = {
        lot.nonce_commitment(name, guardian, nonce)
        for name in ("2026-Q3", "2026-Q4")
        for guardian in (1, 2)
        for nonce in NONCES[:2]
    }
    assert len(seen) == 8


def test_the_set_root_names_members_and_hashes_not_their_order() -> None:
    rows = [(1, H), (2, "cd" * 32)]
    assert lot.set_root(rows) == lot.set_root(rows[::-1])
    assert len({lot.set_root(r) for r in (rows, rows[:1], [(1, "cd" * 32), (2, H)], [(1, H), (3, "cd" * 32)], [])}) == 5


def test_what_is_no_set_no_hash_and_no_nonce_is_refused() -> None:
    with pytest.raises(LotError):
        lot.set_root([(1, H), (1, "cd" * 32)])
    with pytest.raises(MalformedInput):
        lot.set_root([(1, "zz")])
    with pytest.raises(MalformedInput):
        lot.lot_seed("ab", H, NONCES)
    with pytest.raises(LotError):
        lot.lot_seed(H, H, [b"short"])
    with pytest.raises(LotError):
        lot.nonce_commitment("2026-Q3", 1, b"short")
    with pytest.raises(LotError):
        lot.cohorts([1, 1, 2], derived("s"), 2)
    with pytest.raises(LotError):
        lot.cohorts([1, 2], derived("s"), 0)
