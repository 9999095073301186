# SPDX-License-Identifier: Apache-2.0
"""Each condition of the rule on cohort sums worked by hand, one condition away from a call.

60 organisations in 5 cohorts of 12, s_i = 93.02, C = 20, B = 931: sd_T = 144.1, the largest lie is 97.58. All other
cells hold T = 1000 and D = 0 in every cohort, so phi is 1 and, for T = 1000 and equal cohorts, se = 57.35.
"""

from __future__ import annotations

import msgspec
import pytest

from report_world import all_facts, by_key, real_manifest, simulated_sums, sums_of
from windvane_privacy.catalogue import Signal
from windvane_privacy.claims import Certainty, Claim, Reason, State
from windvane_privacy.direction import PublicFacts, decisions, directions, public_facts
from windvane_privacy.errors import ReportError, RoundNotOpened, TallyOutOfRange
from windvane_privacy.layout import Cell, Layout
from windvane_privacy.sums import CohortSums

CELL = Cell(Signal.COMPLETION, "all", "alder", "birch")
KEY = ("all", "completion", "alder", "birch")
REST = ((0,) * 5, (1000,) * 5)
THREE = ("coding", "analysis", "writing")


def decide(d, t=(1000,) * 5, *, cell=CELL, facts=None, rest=REST, sizes=(), **changes) -> Claim:
    """The claim of one cell that holds 12 D_g = `d` and 5 T_g = `t`."""
    manifest = real_manifest(**changes)
    sums = sums_of(manifest, {cell: (d, t)}, rest=rest, sizes=sizes)
    claims = directions(sums, manifest, facts or all_facts(manifest), None)
    return by_key(claims)[cell.kind, cell.signal.value, cell.a, cell.b]


def even(people: int) -> tuple[int, ...]:
    """12 D_g in five equal cohorts that hold D = `people` together."""
    assert (12 * people) % 5 == 0
    return (12 * people // 5,) * 5


CALLS = {
    "clear": (decide, even(400), (1000,) * 5, State.TOWARD_A),
    "clear the other way": (decide, even(-400), (1000,) * 5, State.TOWARD_B),
    "nothing": (decide, even(0), (1000,) * 5, State.NO_CLEAR_DIRECTION),
    # 25 * 4800 = 120,000 = 6 * 20,000: a lean of exactly a tenth counts.
    "lean of exactly a tenth": (decide, even(400), (4000,) * 5, State.TOWARD_A),
    "lean one fifth of a person short": (decide, even(400), (4000, 4000, 4000, 4000, 4001), State.NO_CLEAR_DIRECTION),
    # D = 450 or 448 in both: t = 3.9, p = .0015 <= .10 / 50, and |D| - 97.58 > 2.33 * 114.
    "four cohorts of five": (decide, (1800, 1800, 1800, 12, -12), (1000,) * 5, State.TOWARD_A),
    "three cohorts of five": (decide, (1800, 1800, 1800, -12, -12), (1000,) * 5, State.NO_CLEAR_DIRECTION),
    "a cohort at zero does not agree": (decide, (1800, 1800, 1800, 0, -12), (1000,) * 5, State.NO_CLEAR_DIRECTION),
    # 97.58 + 2.33 * 57.35 = 231.2: p is far below .002 in both.
    "one liar: just above": (decide, even(235), (1000,) * 5, State.TOWARD_A),
    "one liar: just below": (decide, even(230), (1000,) * 5, State.NO_CLEAR_DIRECTION),
    # 30 + 144.1 = 174.1 people; D is large enough for everything else.
    "enough people": (decide, even(400), (175,) * 5, State.TOWARD_A),
    "too few people": (decide, even(400), (174,) * 5, State.NOT_ENOUGH_DATA),
    "fewer than none": (decide, even(400), (-200,) * 5, State.NOT_ENOUGH_DATA),
}


@pytest.mark.parametrize(("rule", "d", "t", "state"), CALLS.values(), ids=CALLS.keys())
def test_one_condition_decides(rule, d, t, state):
    assert rule(d, t).state is state


def test_more_comparisons_demand_a_smaller_p():
    # t = 4.10, p = .0011: passes .10 / 50, fails .10 / 150; nothing else differs.
    kinds = {"kinds": THREE, "people": 60_000}
    assert decide(even(235)).state is State.TOWARD_A
    many = decide(even(235), cell=Cell(Signal.COMPLETION, "coding", "alder", "birch"), **kinds)
    assert many.state is State.NO_CLEAR_DIRECTION


FIRM = {
    # 2 * 97.58 + 2.33 * 57.35 = 328.8, p <= .05 / 50 = .001 in both.
    "two liars: above": (even(330), "2", Certainty.FIRM),
    "two liars: below": (even(325), "2", Certainty.MODERATE),
    "stage one is never firm": (even(700), "1", Certainty.MODERATE),
    "all cohorts must agree": ((2400, 2400, 2400, 2400, -12), "2", Certainty.MODERATE),
    "all cohorts agree": ((2400, 2400, 2400, 2400, 12), "2", Certainty.FIRM),
}


@pytest.mark.parametrize(("d", "stage", "word"), FIRM.values(), ids=FIRM.keys())
def test_firm_needs_more(d, stage, word):
    assert decide(d, stage=stage).certainty is word


def test_firm_needs_a_smaller_p_than_moderate():
    # With a pair that leans in many cells the two liars are met while p stays above .05 / 50.
    manifest = real_manifest(stage="2")
    spread = (3 * 1200, 1200, 3 * 1200, 1200, 1200)
    found = {
        d.cell: d
        for d in decisions(
            sums_of(manifest, {CELL: (spread, (1000,) * 5)}, rest=REST), manifest, all_facts(manifest), None
        )
    }[CELL]
    assert found.tested is not None
    assert found.tested.p <= 0.001
    assert found.claim.certainty is Certainty.FIRM
    wider = (5 * 1200, 600, 5 * 1200, 600, 600)
    found = {
        d.cell: d
        for d in decisions(
            sums_of(manifest, {CELL: (wider, (1000,) * 5)}, rest=REST), manifest, all_facts(manifest), None
        )
    }[CELL]
    assert found.tested is not None
    assert found.tested.p > 0.001
    assert found.claim.certainty is not Certainty.FIRM


def test_break_and_new_model_and_ties_silence_a_pair_with_all_reasons():
    manifest = real_manifest()
    facts = all_facts(
        manifest,
        breaks=frozenset({"alder"}),
        available_days={**{f.id: 92 for f in manifest.families}, "birch": 44},
        tied={("alder", "birch"): 36},
    )
    claim = decide(even(400), (10,) * 5, facts=facts)
    assert claim.state is State.WITHHELD
    assert claim.reasons == (Reason.VERSION_BREAK, Reason.TOO_NEW, Reason.TOO_FEW_ORGS, Reason.TOO_FEW_PEOPLE)
    assert (claim.obs_status, claim.letter) == ("B", "b")


@pytest.mark.parametrize(("tied", "state"), [(35, State.TOWARD_A), (36, State.NOT_ENOUGH_DATA)])
def test_pair_floor_counts_accepted_organisations_without_a_tie(tied, state):
    claim = decide(even(400), facts=all_facts(real_manifest(), tied={("alder", "birch"): tied}))
    assert claim.state is state


@pytest.mark.parametrize(("days", "state"), [(45, State.TOWARD_A), (44, State.WITHHELD), (None, State.WITHHELD)])
def test_both_models_were_there_for_45_days(days, state):
    known = {f.id: 92 for f in real_manifest().families}
    if days is None:
        del known["birch"]
    else:
        known["birch"] = days
    assert decide(even(400), facts=all_facts(real_manifest(), available_days=known)).state is state


@pytest.mark.parametrize(("eligible", "state"), [(5, State.TOWARD_A), (4, State.NOT_ENOUGH_DATA)])
def test_kind_with_four_eligible_cells_is_withheld_as_a_whole(eligible, state):
    manifest = real_manifest()
    cells = Layout(manifest).cells[:eligible]
    sums = sums_of(manifest, dict.fromkeys(cells, (even(400), (1000,) * 5)))
    claims = directions(sums, manifest, all_facts(manifest), None)
    assert by_key(claims)[KEY].state is state
    silent = {State.NOT_ENOUGH_DATA}
    assert ({claim.state for claim in claims} == silent) == (state is State.NOT_ENOUGH_DATA)


def test_withheld_kind_leaves_the_family_of_tests():
    manifest = real_manifest(kinds=THREE, people=60_000)
    coding = Cell(Signal.COMPLETION, "coding", "alder", "birch")
    cells = {cell: REST for cell in Layout(manifest).cells if cell.kind == "coding"}
    # 50 eligible cells in coding, 4 in analysis: the four leave, k_el is 50, and p = .0011 passes .002.
    few = [cell for cell in Layout(manifest).cells if cell.kind == "analysis"][:4]
    cells |= dict.fromkeys(few, REST) | {coding: (even(235), (1000,) * 5)}
    found = decisions(sums_of(manifest, cells), manifest, all_facts(manifest), None)
    assert sum(d.tested is not None for d in found) == 50
    assert next(d for d in found if d.cell == coding).call is State.TOWARD_A


def test_each_signal_and_kind_has_its_own_phi():
    manifest = real_manifest()
    noisy = (12 * 150, -12 * 150, 12 * 150, -12 * 150, 0)
    cells = {cell: (noisy, (1000,) * 5) for cell in Layout(manifest).cells if cell.signal is Signal.COMPLETION}
    found = decisions(sums_of(manifest, cells, rest=REST), manifest, all_facts(manifest), None)
    phi = {d.cell.signal: d.tested.phi for d in found if d.tested}
    assert phi[Signal.COMPLETION] > 20
    assert phi[Signal.SWITCH_AWAY] == 1.0


@pytest.mark.parametrize(("eligible", "own"), [(8, True), (7, False)])
def test_group_with_seven_eligible_cells_takes_the_largest_phi(eligible, own):
    manifest = real_manifest()
    noisy = (12 * 150, -12 * 150, 12 * 150, -12 * 150, 0)
    layout = Layout(manifest)
    cells = {cell: (noisy, (1000,) * 5) for cell in layout.cells if cell.signal is Signal.COMPLETION}
    small = [cell for cell in layout.cells if cell.signal is Signal.SWITCH_AWAY]
    cells |= dict.fromkeys(small[eligible:], ((0,) * 5, (0,) * 5))
    found = {d.cell: d for d in decisions(sums_of(manifest, cells, rest=REST), manifest, all_facts(manifest), None)}
    phi, largest = found[small[0]].tested.phi, found[layout.cells[0]].tested.phi
    assert phi == (1.0 if own else largest)
    assert largest > 20


WORLD = {"alder": 0.4, "birch": 0.0, "cedar": 0.2, "dogwood": 0.18, "elm": -0.3}
MIRROR = {
    State.TOWARD_A: State.TOWARD_B,
    State.TOWARD_B: State.TOWARD_A,
}


def test_swapping_the_two_models_of_every_pair_swaps_every_direction():
    manifest = real_manifest(stage="2")
    sums = simulated_sums(manifest, WORLD, seed=5)
    turned = CohortSums(sums.sizes, tuple(tuple(-v if i % 2 == 0 else v for i, v in enumerate(r)) for r in sums.sums))
    before = directions(sums, manifest, all_facts(manifest), None)
    after = directions(turned, manifest, all_facts(manifest), None)
    expected = tuple(msgspec.structs.replace(c, state=MIRROR.get(c.state, c.state)) for c in before)
    assert after == expected
    assert sum(c.state in MIRROR for c in before) > 10


def test_order_of_cohorts_does_not_matter():
    manifest = real_manifest()
    sums = simulated_sums(manifest, WORLD, seed=6)
    order = (3, 0, 4, 2, 1)
    shuffled = CohortSums(tuple(sums.sizes[g] for g in order), tuple(sums.sums[g] for g in order))
    assert directions(shuffled, manifest, all_facts(manifest), None) == directions(
        sums, manifest, all_facts(manifest), None
    )


def test_every_listed_and_every_unlisted_pair_has_one_claim_in_order():
    manifest = real_manifest(cap=3)
    claims = directions(simulated_sums(manifest, WORLD, seed=7), manifest, all_facts(manifest), None)
    assert len(claims) == len({claim.key for claim in claims}) == 5 * 10
    places = [(list(Signal).index(claim.signal), claim.a, claim.b) for claim in claims]
    assert places == sorted(places)
    listed = {(c.a, c.b) for c in claims if c.state is not State.NOT_COMPARED}
    assert listed == set(manifest.pairs)
    assert len(listed) < 10


def test_everything_equal_gives_hardly_any_claim():
    manifest = real_manifest()
    equal = dict.fromkeys(WORLD, 0.0)
    reports = [
        directions(simulated_sums(manifest, equal, seed), manifest, all_facts(manifest), None) for seed in range(40)
    ]
    called = sum(claim.state in MIRROR for report in reports for claim in report)
    assert called <= 4, "more than a tenth of a false claim a report"


def test_clear_differences_are_called_the_right_way():
    manifest = real_manifest()
    for seed in range(10):
        for claim in directions(simulated_sums(manifest, WORLD, seed), manifest, all_facts(manifest), None):
            gap = WORLD[claim.a] - WORLD[claim.b]
            if claim.state in MIRROR:
                assert (claim.state is State.TOWARD_A) == (gap > 0)
            if abs(gap) > 0.3:
                assert claim.state in MIRROR


def test_round_below_its_floors_has_no_directions():
    manifest = real_manifest()
    for sizes in ((5, 6, 6, 6, 6), (9, 12, 12, 12, 12)):
        with pytest.raises(RoundNotOpened):
            directions(sums_of(manifest, {}, sizes=sizes), manifest, all_facts(manifest), None)


def test_sums_of_another_form_are_refused():
    manifest = real_manifest()
    good = sums_of(manifest, {})
    with pytest.raises(TallyOutOfRange):
        directions(CohortSums(good.sizes[:4], good.sums[:4]), manifest, PublicFacts(), None)
    with pytest.raises(TallyOutOfRange):
        directions(CohortSums(good.sizes, tuple(row[:-1] for row in good.sums)), manifest, PublicFacts(), None)


def test_rule_is_refused_for_another_number_of_cohorts():
    manifest = real_manifest(G=4)
    with pytest.raises(ReportError):
        directions(sums_of(manifest, {}), manifest, all_facts(manifest), None)


def test_public_facts_come_from_the_catalogue_and_the_declared_ties():
    manifest = real_manifest()
    families = [
        msgspec.structs.replace(f, **dates)
        for f, dates in zip(
            manifest.families,
            (
                {},
                {"valid_from": "2026-08-17"},
                {"valid_from": "2026-08-18"},
                {"retired_from": "2026-08-01"},
                {"valid_from": "2027-01-01"},
            ),
            strict=True,
        )
    ]
    manifest = msgspec.structs.replace(manifest, families=tuple(families))
    facts = public_facts(manifest, [["vendor of alder"], ["vendor of alder", "vendor of birch"], [], ["vendor of elm"]])
    assert list(facts.available_days.values()) == [92, 45, 44, 31, 0]
    assert facts.tied["alder", "birch"] == 2
    assert facts.tied["birch", "elm"] == 2
    assert facts.tied["cedar", "dogwood"] == 0


def test_demonstration_takes_its_floors_from_the_manifest():
    facts = {"tied": {("alder", "birch"): 25}}
    demo = {"members": 40, "demo": True}
    manifest = real_manifest(**demo)
    enough = decide(even(800), facts=all_facts(manifest, **facts), **demo)
    assert enough.state is State.TOWARD_A
    below = decide(even(800), facts=all_facts(manifest, tied={("alder", "birch"): 26}), **demo)
    assert below.state is State.NOT_ENOUGH_DATA
