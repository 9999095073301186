# SPDX-License-Identifier: Apache-2.0
"""The organisation's own outcome of a round, for its own screen: in words for eight quarters, in counts once.

Rules kept here:
* the counts are drawn anew from the frozen outcomes when the round ends: close to the vector that was drawn, which is
  never stored, and not equal to it;
* nobody sees them before the round has ended: taking part must not depend on them;
* a cell with fewer than ten people has no count;
* what was shown is deleted with the noisy vector: after the display, at the latest 45 days after the end.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta

from windvane_privacy.manifest import Manifest
from windvane_privacy.outcomes import PersonOutcome
from windvane_privacy.votes import OwnDirection, Sampler, cell_counts, collect_votes, own_words

KEPT = timedelta(days=45)
"""How long counts and noisy vector stay after the end of a round, if nobody looks."""
LEAST_PEOPLE = 10


@dataclass(frozen=True, slots=True, repr=False)
class OwnCounts:
    """Counts of one organisation. `cells`: people for a and for b, in the order of the layout, before any bound.
    `people`: with a row in the table. `malformed`: of them, without a vote because a row was not of the agreed form."""

    cells: tuple[tuple[int, int], ...]
    people: int
    malformed: int


def own_outcome(
    rows: Sequence[PersonOutcome], manifest: Manifest, sampler: Sampler, *, ties: Collection[str] = ()
) -> tuple[list[OwnDirection], OwnCounts]:
    """Words and counts of a table. `ties` as in `votes.collect_votes`: the counts leave out those pairs as the draw
    did, the words do not, since they never leave this machine.

    Raises:
        InvalidOutcomes: the table is none.
    """
    words = own_words(collect_votes(rows, manifest, sampler).votes, manifest)
    counted = collect_votes(rows, manifest, sampler, ties=ties)
    cells = cell_counts(counted.votes, manifest)
    return words, OwnCounts(cells, len(counted.people), counted.invalid_people)
