# SPDX-License-Identifier: Apache-2.0
"""Capacity: no sum of members can wrap around the field."""

from __future__ import annotations

import pytest

from manifests import make_manifest
from windvane_privacy.errors import CapacityExceeded
from windvane_privacy.manifest import FIELD_PRIME, Manifest, check


def largest(manifest: Manifest) -> int:
    return 12 * manifest.bounds.C + manifest.noise_clamp


def test_a_real_federation_is_far_from_the_field() -> None:
    manifest = make_manifest(members=5_000, demo=False)
    assert manifest.roster.members * largest(manifest) < FIELD_PRIME >> 32


@pytest.mark.parametrize("members", [40, 200])
def test_a_sum_that_could_wrap_is_refused_at_the_very_edge(members: int) -> None:
    """The largest C whose sums stay below half of the field is sound; one more is not."""
    B = make_manifest(members=members).noise_clamp
    edge = ((FIELD_PRIME - 1) // 2 - 1) // members
    C = (edge - B) // 12
    check(make_manifest(members=members, C=C))
    with pytest.raises(CapacityExceeded):
        make_manifest(members=members, C=C + 1)


def test_opposite_extremes_stay_apart_in_the_field() -> None:
    """At the edge the smallest and the largest sum are still different field elements, with their signs."""
    B = make_manifest().noise_clamp
    C = (((FIELD_PRIME - 1) // 2 - 1) // 40 - B) // 12
    most = 40 * largest(make_manifest(C=C))
    assert most < (FIELD_PRIME - 1) // 2 < -most % FIELD_PRIME
