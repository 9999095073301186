# SPDX-License-Identifier: Apache-2.0
"""The noise law shown on made-up counts.

Rules kept here:
* noise is never drawn on real counts for show: many looks would average it away. Nothing here takes an outcome, a vote
  or an event; the counts are constants of this file;
* the noise is the production source's, at the share that a member really adds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from windvane_privacy.manifest import D_SCALE, T_SCALE
from windvane_privacy.noise import Noise

MADE_UP: tuple[tuple[int, int], ...] = ((14, 6), (41, 9), (0, 0))
"""Invented organisations: people whose vote is for A, and for B, in one cell."""
DRAWS = 3


@dataclass(frozen=True, slots=True)
class SyntheticCell:
    """One invented cell on its way. `net`, `voters`: after the clamp; `exact`: (12 D, 5 T); `noised`: what `DRAWS`
    independent submissions of it would hold."""

    for_a: int
    for_b: int
    net: int
    voters: int
    exact: tuple[int, int]
    noised: tuple[tuple[int, int], ...]


def demonstrate(*, clamp: int, share_scale: float, noise: Noise) -> tuple[SyntheticCell, ...]:
    """The invented cells, bounded and noised. `clamp`: C in people; `share_scale`: s_i of one member."""
    return tuple(_cell(a, b, clamp, share_scale, noise) for a, b in MADE_UP)


def _cell(for_a: int, for_b: int, clamp: int, share_scale: float, noise: Noise) -> SyntheticCell:
    net = max(-clamp, min(clamp, for_a - for_b))
    voters = min(for_a + for_b, clamp)
    exact = (D_SCALE * net, T_SCALE * voters)
    drawn = [noise.draw(np.array(exact, dtype=np.int64), share_scale) for _ in range(DRAWS)]
    return SyntheticCell(for_a, for_b, net, voters, exact, tuple((d[0], d[1]) for d in drawn))
