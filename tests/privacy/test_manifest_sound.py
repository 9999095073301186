# SPDX-License-Identifier: Apache-2.0
"""A manifest that does not hold together is refused by name, whatever numbers and times stand in it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifests import make_manifest
from windvane_privacy import canonical
from windvane_privacy.catalogue import Family
from windvane_privacy.errors import MalformedInput, ManifestError, WindvaneError
from windvane_privacy.manifest import MOST_COMPARED, decode, encode

GROUPS = ("bounds", "noise", "cohorts", "floors", "roster")
NUMBERS = [
    (group, name)
    for group in GROUPS
    for name, value in msgspec.to_builtins(getattr(make_manifest(), group)).items()
    if isinstance(value, int)
] + [("", name) for name in ("t", "n", "appeal_days", "destroy_by_days", "rounds_so_far")]


def altered(group: str, name: str, value: object) -> bytes:
    table: dict[str, Any] = canonical.decode(encode(make_manifest()))
    (table[group] if group else table)[name] = value
    return canonical.encode(table)


@given(field=st.sampled_from(NUMBERS), value=st.integers(-(2**53) + 1, 2**53 - 1) | st.sampled_from([0, -1, 1]))
def test_any_number_anywhere_is_taken_or_refused_by_name(field: tuple[str, str], value: int) -> None:
    try:
        decode(altered(*field, value))
    except WindvaneError:
        pass


@pytest.mark.parametrize(
    ("group", "name"), [("noise", "s"), ("noise", "h"), ("cohorts", "G"), ("bounds", "C"), ("bounds", "Q")]
)
def test_a_zero_that_others_divide_by_is_refused(group: str, name: str) -> None:
    with pytest.raises(ManifestError):
        decode(altered(group, name, 0))


@pytest.mark.parametrize("year", ["9999", "0001", "1999", "3000"])
@pytest.mark.parametrize("name", ["from", "to"])
def test_a_year_that_no_window_can_be_reckoned_from_is_refused(year: str, name: str) -> None:
    with pytest.raises(MalformedInput):
        decode(altered("events", name, f"{year}-12-31T00:00:00Z"))


@pytest.mark.parametrize("pattern", ["a{99999999999}", "(", "(" * 5000, "[[a]", "[a||b]"])
def test_a_pattern_that_cannot_be_compiled_is_refused(pattern: str) -> None:
    families = (Family("alder", "Alder", "vendor", (pattern,)), Family("birch", "Birch", "vendor", ()))
    manifest = make_manifest(k=2, cap=1, sound=False, families=families, order=("alder", "birch"))
    with pytest.raises(ManifestError):
        decode(encode(manifest))


def test_a_list_too_long_to_pair_is_refused_before_it_is_paired() -> None:
    ids = tuple(f"m{i}" for i in range(MOST_COMPARED + 1))
    families = tuple(Family(i, i, "vendor", ()) for i in ids)
    manifest = make_manifest(sound=False, order=ids, cap=1, families=families)
    with pytest.raises(ManifestError, match="too many"):
        decode(encode(manifest))
