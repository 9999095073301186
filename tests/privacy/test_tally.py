# SPDX-License-Identifier: Apache-2.0
"""Guardians' results: exact sums from any t, a contradiction seen, and nothing that could not have been sent."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifests import guardian_key, make_guardians, make_manifest
from windvane_privacy import canonical, field, shares
from windvane_privacy.errors import (
    MalformedInput,
    NotReady,
    ResultSignatureInvalid,
    SpareShareMismatch,
    TallyError,
    TallyOutOfRange,
)
from windvane_privacy.sums import CohortSums
from windvane_privacy.tally import GuardianResult, make_result, max_result_bytes, read_result, tally

MANIFEST = make_manifest(members=20, G=4, k=3)
COHORTS = tuple(tuple(range(5 * g + 1, 5 * g + 6)) for g in range(4))
ROOT = "cd" * 32
LIMIT = 12 * MANIFEST.bounds.C + MANIFEST.noise_clamp


def rows_of(value: int) -> list[list[int]]:
    return [[value + g - i for i in range(MANIFEST.length)] for g in range(4)]


def results(rows: list[list[int]], manifest=MANIFEST, root: str = ROOT) -> dict[int, GuardianResult]:
    parts = [shares.split(row, manifest.t, manifest.n) for row in rows]
    found = {}
    for j in range(1, manifest.n + 1):
        sums = [part[j - 1][:-1] for part in parts]
        raw = make_result(manifest, root, j, [5, 5, 5, 5], sums, guardian_key(j))
        assert len(raw) <= max_result_bytes(manifest)
        found[j] = read_result(raw, guardian_key(j).public)
    return found


@settings(max_examples=20)
@given(st.lists(st.integers(-5 * LIMIT, 5 * LIMIT), min_size=4, max_size=4))
def test_any_t_results_give_the_exact_sums(values: list[int]) -> None:
    rows = [[value] * MANIFEST.length for value in values]
    found = results(rows)
    for chosen in (*combinations((1, 2, 3), 2), (1, 2, 3)):
        sums, checked = tally({j: found[j] for j in chosen}, MANIFEST, COHORTS)
        assert [list(row) for row in sums.sums] == rows
        assert checked == (len(chosen) == 3)


def test_three_of_five_guardians() -> None:
    manifest = make_manifest(members=20, G=4, k=3, t=3, guardians=make_guardians(5))
    found = results(rows_of(7), manifest)
    for chosen in combinations(range(1, 6), 3):
        sums, _ = tally({j: found[j] for j in chosen}, manifest, COHORTS)
        assert [list(row) for row in sums.sums] == rows_of(7)
    with pytest.raises(NotReady):
        tally({1: found[1], 2: found[2]}, manifest, COHORTS)


def test_one_result_is_not_enough() -> None:
    with pytest.raises(NotReady):
        tally({2: results(rows_of(0))[2]}, MANIFEST, COHORTS)


@settings(max_examples=20)
@given(st.integers(1, 3), st.integers(0, 3), st.integers(0, MANIFEST.length - 1), st.integers(1, 2**63))
def test_each_altered_entry_is_seen_by_the_spare_share(guardian: int, cohort: int, entry: int, by: int) -> None:
    found = results(rows_of(3))
    delta = np.zeros(MANIFEST.length, dtype=np.uint64)
    delta[entry] = by
    sums = list(found[guardian].shares)
    sums[cohort] = field.add(sums[cohort], delta)
    raw = make_result(MANIFEST, ROOT, guardian, [5, 5, 5, 5], sums, guardian_key(guardian))
    found[guardian] = read_result(raw, guardian_key(guardian).public)
    with pytest.raises(SpareShareMismatch):
        tally(found, MANIFEST, COHORTS)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_sum_that_so_many_members_cannot_have_sent_is_refused(sign: int) -> None:
    tally(results(rows_with(sign * 5 * LIMIT)), MANIFEST, COHORTS)
    with pytest.raises(TallyOutOfRange):
        tally(results(rows_with(sign * (5 * LIMIT + 1))), MANIFEST, COHORTS)


def rows_with(value: int) -> list[list[int]]:
    rows = [[0] * MANIFEST.length for _ in range(4)]
    rows[3][-1] = value
    return rows


def test_results_for_different_sets_are_not_added() -> None:
    found = {**results(rows_of(1)), 2: results(rows_of(1), root="ef" * 32)[2]}
    with pytest.raises(TallyError):
        tally({1: found[1], 2: found[2]}, MANIFEST, COHORTS)


def test_a_result_for_another_manifest_guardian_or_lot_is_refused() -> None:
    found = results(rows_of(1))
    other = make_manifest(members=20, G=4, k=3, rounds_so_far=1)
    with pytest.raises(TallyError):
        tally(found, other, COHORTS)
    with pytest.raises(TallyError):
        tally({1: found[2], 2: found[1]}, MANIFEST, COHORTS)
    with pytest.raises(TallyError):
        tally(found, MANIFEST, ((1, 2, 3, 4, 5, 6), *COHORTS[1:]))
    with pytest.raises(TallyError):
        tally(found, MANIFEST, COHORTS[:3])


def test_a_result_counts_only_with_its_guardians_signature() -> None:
    raw = results(rows_of(1))[1].raw
    with pytest.raises(ResultSignatureInvalid):
        read_result(raw, guardian_key(2).public)
    value = canonical.decode(raw)
    with pytest.raises(ResultSignatureInvalid):
        read_result(canonical.encode({**value, "set_root": "00" * 32}), guardian_key(1).public)
    value["cohorts"][0]["share"] = "00" * 8 * MANIFEST.length
    with pytest.raises(ResultSignatureInvalid):
        read_result(canonical.encode(value), guardian_key(1).public)


@pytest.mark.parametrize(
    "share", ["", "0", "zz" * 8, "00" * 7, "FF" * 8, "00 " * 8, "ff" * 8, "01000000ffffffff", None, 5]
)
def test_what_is_no_row_of_field_elements_is_refused(share: object) -> None:
    value = canonical.decode(results(rows_of(1))[1].raw)
    value["cohorts"][1]["share"] = share
    del value["sig"]
    key = guardian_key(1)
    signed = {**value, "sig": key.sign(b"windvane/1/result\0", canonical.encode(value)).hex()}
    with pytest.raises(MalformedInput):
        read_result(canonical.encode(signed), key.public)


@given(st.binary(max_size=300))
def test_garbage_leaks_only_malformed_input(raw: bytes) -> None:
    with pytest.raises(MalformedInput):
        read_result(raw, guardian_key(1).public)


def test_sums_read_back_and_name_nothing() -> None:
    sums, _ = tally(results(rows_of(2)), MANIFEST, COHORTS)
    raw = sums.to_json()
    assert CohortSums.from_json(raw) == sums
    words = [*MANIFEST.signals, *MANIFEST.kinds, *(family.id for family in MANIFEST.families)]
    assert all(f'"{word}"'.encode() not in raw for word in words)


@pytest.mark.parametrize(
    "value",
    [
        {"schema": "windvane/sums/v1", "sizes": [], "sums": []},
        {"schema": "windvane/sums/v1", "sizes": [5], "sums": [[1], [2]]},
        {"schema": "windvane/sums/v1", "sizes": [5, 5], "sums": [[1], [2, 3]]},
        {"schema": "windvane/sums/v1", "sizes": [0], "sums": [[1]]},
        {"schema": "windvane/sums/v1", "sizes": [5], "sums": [[True]]},
        {"schema": "windvane/sums/v1", "sizes": [5], "sums": ["1"]},
        {"schema": "windvane/sums/v2", "sizes": [5], "sums": [[1]]},
        {"schema": "windvane/sums/v1", "sizes": [5], "sums": [[1]], "models": ["a"]},
        [],
    ],
)
def test_what_are_no_sums_is_refused(value: object) -> None:
    with pytest.raises(MalformedInput):
        CohortSums.from_json(canonical.encode(value))
