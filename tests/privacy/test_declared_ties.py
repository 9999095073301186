# SPDX-License-Identifier: Apache-2.0
"""An organisation with a tie to a vendor has no voice about that vendor's models, and a whole one about the others."""

from __future__ import annotations

import secrets

from manifests import make_manifest
from outcome_rows import row
from windvane_privacy.votes import collect_votes

MANIFEST = make_manifest()
SAMPLER = secrets.SystemRandom()
MODELS = MANIFEST.pair_source.order
VENDOR = {family.id: family.vendor for family in MANIFEST.families}


def rows():
    """Twelve people who used every model, each model a little better than the next."""
    return [row(model, 20, 20 - 3 * rank, who=who) for who in range(1, 13) for rank, model in enumerate(MODELS)]


def cells(ties):
    found = collect_votes(rows(), MANIFEST, SAMPLER, ties=ties)
    return found, [vote.cell for votes in found.votes for vote in votes]


def test_without_a_tie_people_vote_about_every_vendor() -> None:
    _, voted = cells(())
    assert {VENDOR[cell.a] for cell in voted} | {VENDOR[cell.b] for cell in voted} == {VENDOR[m] for m in MODELS}


def test_tied_organisation_votes_in_no_pair_of_the_vendor() -> None:
    tied = VENDOR[MODELS[0]]
    _, voted = cells({tied})
    assert voted
    assert all(tied not in (VENDOR[cell.a], VENDOR[cell.b]) for cell in voted)


def test_pairs_of_the_vendor_crowd_no_other_vote_out() -> None:
    tied = VENDOR[MODELS[0]]
    untied = [p for p in MANIFEST.pairs if tied not in (VENDOR[p[0]], VENDOR[p[1]])]
    found, _ = cells({tied})
    assert {len(votes) for votes in found.votes} == {min(MANIFEST.bounds.q[0], len(untied))}


def test_everybody_is_charged_with_or_without_a_tie() -> None:
    assert cells({VENDOR[MODELS[0]]})[0].people == cells(())[0].people
