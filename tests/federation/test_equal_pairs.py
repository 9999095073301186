# SPDX-License-Identifier: Apache-2.0
"""Twenty times noise, lot, tally and rule on the same votes of the demo's world: equal pairs stay without a direction.

The votes are drawn once, from the work that the demo plans for its people; no log is written. Every re-run has its own
noise (OpenDP), its own nonces and so its own cohorts, its own shares and two guardians' results. Not failures: a report
that is silent about a true difference; one or two reports that call an equal pair. Known randomness: all of it but the
planned work. A call of an equal pair is rare by the rule (false discovery, lean, agreement of cohorts, one liar).
"""

from __future__ import annotations

import random
import secrets
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime

import numpy as np
import pytest
from numpy.typing import NDArray

from manifests import guardian_key, make_manifest
from windvane.demo.truth import COMPARED
from windvane.demo.world import PUBLIC_ORDER, Person, Quarter, Work, families, people_of, plan_work, true_direction
from windvane_client.signals import CLASSED_TRIALS
from windvane_privacy import field
from windvane_privacy.catalogue import Signal
from windvane_privacy.claims import Claim, State
from windvane_privacy.direction import directions, public_facts
from windvane_privacy.lot import NONCE_BYTES, cohorts, lot_seed
from windvane_privacy.manifest import Manifest
from windvane_privacy.noise import OpenDPNoise, release
from windvane_privacy.outcomes import Basis, PersonOutcome
from windvane_privacy.shares import split
from windvane_privacy.sums import CohortSums
from windvane_privacy.tally import make_result, read_result, tally
from windvane_privacy.votes import collect_votes, exact_vector

ORGANISATIONS, PEOPLE, SEED = 40, 100, 1
RUNS, MOST_WRONG_REPORTS, SEVERAL = 20, 2, 5
QUARTER = Quarter.before(datetime(2026, 10, 2, tzinfo=UTC))
SET_ROOT = "5" * 64

Vector = NDArray[np.int64]
Cohorts = tuple[tuple[int, ...], ...]


@pytest.fixture(scope="module")
def manifest() -> Manifest:
    return make_manifest(members=ORGANISATIONS, order=PUBLIC_ORDER, families=families())


@pytest.fixture(scope="module")
def exact(manifest: Manifest) -> list[Vector]:
    """The exact vector of each organisation: fixed for all re-runs."""
    found = []
    for organisation in range(ORGANISATIONS):
        rows = [
            row
            for number, person in enumerate(people_of(organisation, PEOPLE, SEED))
            for row in _rows(number.to_bytes(16, "big"), person, _plan(organisation, person))
        ]
        collected = collect_votes(rows, manifest, secrets.SystemRandom())
        assert collected.invalid_people == 0
        found.append(exact_vector(collected.votes, manifest))
    return found


@pytest.fixture(scope="module")
def reports(manifest: Manifest, exact: list[Vector]) -> list[list[Claim]]:
    """What each of the re-runs calls."""
    facts = public_facts(manifest, [()] * ORGANISATIONS)
    return [
        [
            claim
            for claim in directions(_opened(exact, manifest)[0], manifest, facts, None)
            if claim.state in (State.TOWARD_A, State.TOWARD_B)
        ]
        for _ in range(RUNS)
    ]


def test_at_most_two_of_twenty_reports_call_a_pair_that_is_equal(reports: list[list[Claim]]) -> None:
    wrong = [[claim.key for claim in report if _truth(claim) is None] for report in reports]
    assert sum(bool(report) for report in wrong) <= MOST_WRONG_REPORTS, wrong


def test_no_report_calls_a_true_difference_the_wrong_way_round(reports: list[list[Claim]]) -> None:
    turned = [
        claim.key
        for report in reports
        for claim in report
        if _truth(claim) not in (None, claim.a if claim.state is State.TOWARD_A else claim.b)
    ]
    assert turned == []


def test_every_report_calls_several_directions(reports: list[list[Claim]]) -> None:
    assert min(len(report) for report in reports) >= SEVERAL


def test_the_runs_differ_in_their_noise_and_their_cohorts(manifest: Manifest, exact: list[Vector]) -> None:
    (first, dealt), (second, dealt_again) = (_opened(exact, manifest) for _ in range(2))
    assert _over_all_cohorts(first) != _over_all_cohorts(second)
    assert dealt != dealt_again


def test_the_world_holds_an_equal_pair_in_each_compared_signal(manifest: Manifest) -> None:
    for signal in COMPARED:
        assert any(true_direction(signal, a, b) is None for a, b in manifest.pairs), signal


def _opened(exact: list[Vector], manifest: Manifest) -> tuple[CohortSums, Cohorts]:
    """Draw, share, deal, sum at two guardians, tally: the noisy sums and the cohorts."""
    noise = OpenDPNoise()
    members = range(1, ORGANISATIONS + 1)
    shares = {
        member: split(release(vector.copy(), manifest, noise), manifest.t, manifest.n)
        for member, vector in zip(members, exact, strict=True)
    }
    nonces = [secrets.token_bytes(NONCE_BYTES) for _ in manifest.guardians]
    dealt = cohorts(list(members), lot_seed(manifest.sha256, SET_ROOT, nonces), manifest.cohorts.G)
    results = {}
    for guardian in (1, 3):
        key = guardian_key(guardian)
        sums = [field.total([shares[member][guardian - 1] for member in cohort])[: manifest.length] for cohort in dealt]
        raw = make_result(manifest, SET_ROOT, guardian, [len(cohort) for cohort in dealt], sums, key)
        results[guardian] = read_result(raw, key.public)
    return tally(results, manifest, dealt)[0], dealt


def _over_all_cohorts(opened: CohortSums) -> list[int]:
    """What does not depend on the lot: only noise can make it differ between two runs."""
    return [sum(column) for column in zip(*opened.sums, strict=True)]


def _truth(claim: Claim) -> str | None:
    return true_direction(claim.signal, claim.a, claim.b)


def _plan(organisation: int, person: Person) -> list[Work]:
    rng = random.Random(f"work {SEED} {organisation} {person.staff_id}")
    return plan_work(person, QUARTER, rng)


def _rows(pseudonym: bytes, person: Person, plan: list[Work]) -> Iterator[PersonOutcome]:
    """The planned work of the quarter as outcomes: what a reader and the signals would find in its log."""
    kind = person.kind if person.chat else "coding"
    recorder = "chat" if person.chat else "claude_code"
    ended = Basis.EXPLICIT if person.chat else Basis.ENDED
    work = [each for each in plan if each.begins >= QUARTER.start]
    counts: Counter[tuple[Signal, Basis, str, str | None, bool]] = Counter()
    used = {each.model.id for each in work} | {each.moved_to.id for each in work if each.moved_to}
    for each in work:
        model, target = each.model.id, each.moved_to.id if each.moved_to else None
        if target is None:
            counts[Signal.COMPLETION, ended, model, None, each.finished] += 1
        if each.turns == 2 and len(used) > 1:
            for other in used - {model}:
                counts[Signal.SWITCH_AWAY, Basis.RECORDED, model, other, other != target] += 1
        for outcome in () if each.runs else each.tools:
            if outcome in CLASSED_TRIALS:
                counts[Signal.TOOL_RELIABILITY, Basis.CLASSED, model, None, CLASSED_TRIALS[outcome]] += 1
        for recovered in each.runs:
            counts[Signal.INFRA_RECOVERY, Basis.ATTEMPTS, model, None, recovered] += 1
    for signal, basis, model, against in {key[:4] for key in counts}:
        good, bad = (counts[signal, basis, model, against, done] for done in (True, False))
        yield PersonOutcome(pseudonym, signal, kind, recorder, basis, model, against, good + bad, good)
