# SPDX-License-Identifier: Apache-2.0
"""Manifests, cohort sums and reports for the tests of the rule, the report and the site.

Rules kept here:
* sums are made from stated cohort values, so a test says what the cohorts held and nothing else;
* noise in the larger worlds has an explicit seed;
* names are invented: Alder 4, Birch 2, Cedar 5, Elm 3.5, Oak 1.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from manifests import make_manifest
from windvane_privacy.catalogue import Family
from windvane_privacy.claims import Claim
from windvane_privacy.direction import PublicFacts
from windvane_privacy.layout import Cell, Layout
from windvane_privacy.manifest import Manifest
from windvane_privacy.sums import CohortSums

INVENTED = (
    ("alder-4", "Alder 4"),
    ("birch-2", "Birch 2"),
    ("cedar-5", "Cedar 5"),
    ("elm-3.5", "Elm 3.5"),
    ("oak-1", "Oak 1"),
)
FAMILIES = tuple(Family(i, label, f"{label.split()[0]} Works", ()) for i, label in INVENTED)
ORDER = ("cedar-5", "alder-4", "oak-1", "elm-3.5", "birch-2")

Triple = tuple[Sequence[int], Sequence[int]]


def demo_manifest(**changes: Any) -> Manifest:
    """40 organisations of 100 people, five invented models, one pooled kind."""
    return make_manifest(**{"order": ORDER, "families": FAMILIES, **changes})


def real_manifest(**changes: Any) -> Manifest:
    """60 organisations of 1,000 people: s 208, m_min 10, h 5; neutral families, no pair left out."""
    return make_manifest(**{"members": 60, "demo": False, "k": 5, "cap": 4, **changes})


def all_facts(manifest: Manifest, **changes: Any) -> PublicFacts:
    """Every family there all quarter, no break, no tie."""
    return PublicFacts(**{"available_days": {family.id: 92 for family in manifest.families}, **changes})


def sums_of(
    manifest: Manifest, cells: Mapping[Cell, Triple], *, rest: Triple = ((0,) * 5, (0,) * 5), sizes: Sequence[int] = ()
) -> CohortSums:
    """Cohort sums with the given released integers (12 D_g, 5 T_g) in some cells and `rest` in all others."""
    layout = Layout(manifest)
    G = manifest.cohorts.G
    rows = [[0] * layout.length for _ in range(G)]
    for cell in layout.cells:
        d, t = cells.get(cell, rest)
        for g in range(G):
            rows[g][layout.d_index(cell)] = d[g]
            rows[g][layout.t_index(cell)] = t[g]
    each = manifest.roster.members // G
    return CohortSums(tuple(sizes) or (each,) * G, tuple(tuple(row) for row in rows))


def simulated_sums(
    manifest: Manifest, strength: Mapping[str, float], seed: int, *, silent: Sequence[str] = ()
) -> CohortSums:
    """A world in which organisations lean by the difference of two strengths; `silent` signals stay noise only."""
    world = random.Random(seed)
    layout = Layout(manifest)
    G, C, scale = manifest.cohorts.G, manifest.bounds.C, manifest.share_scale
    each = manifest.roster.members // G
    rows = []
    for _ in range(G):
        row = [0] * layout.length
        for cell in layout.cells:
            spread = scale * each**0.5
            d, t = round(world.gauss(0, spread)), round(world.gauss(0, spread))
            if cell.signal.value not in silent:
                lean = strength[cell.a] - strength[cell.b]
                voices = [max(-C, min(C, world.gauss(40 * lean, 8))) for _ in range(each)]
                d, t = d + 12 * round(sum(voices)), t + 5 * C * each
            row[layout.d_index(cell)], row[layout.t_index(cell)] = d, t
        rows.append(tuple(row))
    return CohortSums((each,) * G, tuple(rows))


def by_key(claims: Sequence[Claim]) -> dict[tuple[str, str, str, str], Claim]:
    """Claims by what they are about."""
    return {claim.key: claim for claim in claims}
