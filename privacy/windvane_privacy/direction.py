# SPDX-License-Identifier: Apache-2.0
"""The decision rule: from opened cohort sums to directions, as one pure function.

Rules kept here:
* input is noisy cohort sums, the manifest, public facts and the previous report; nothing else is in reach;
* a cell is eligible when enough people spoke, its pair meets the floor, both models were there long enough and neither
  was replaced; a kind with fewer than 5 eligible cells is withheld as a whole and leaves the family of tests;
* a direction needs all of: Benjamini-Hochberg at .10 over the report, a lean of a tenth of the capped voice (tested in
  integers), 4 of 5 cohorts, and more than one lying organisation can add;
* firm needs more, and range proofs in force; without them every call is moderate;
* every cell of the layout gets a claim, and every pair that was not listed gets one that says so.

docs/mechanism.md derives the constants; the shipped vectors `vectors/direction-1.json` pin this version of the rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import combinations

from windvane_privacy.catalogue import Family, ordered_pair
from windvane_privacy.claims import Certainty, Claim, ClaimKey, Reason, State, measured_claim, silent_claim
from windvane_privacy.errors import ReportError, RoundNotOpened, TallyOutOfRange
from windvane_privacy.layout import Cell, Layout
from windvane_privacy.manifest import D_SCALE, Manifest, parse_time
from windvane_privacy.statistics import (
    COHORTS,
    CellStatistics,
    Tested,
    benjamini_hochberg,
    cell_statistics,
    overdispersion,
    with_phi,
)
from windvane_privacy.sums import CohortSums
from windvane_privacy.transitions import (
    KEPT_T,
    PreviousReport,
    Standing,
    advance,
    change_of,
    quarter_number,
    quarter_of,
)

__all__ = ["CellDecision", "PreviousReport", "PublicFacts", "decisions", "directions", "public_facts"]

LEAST_PEOPLE = 30
LEAST_DAYS = 45
LEAST_CELLS_OF_A_KIND = 5
FALSE_DISCOVERY = 0.10
FIRM_P = 0.05
LEAST_AGREEING = 4
LIAR_FACTOR = 2.33
RANGE_PROOFS = "2"


@dataclass(frozen=True, slots=True)
class PublicFacts:
    """What is publicly known about the quarter, none of it from a sum.

    `breaks`: families that were replaced inside the window. `available_days`: days of the window on which a family
    could be used. `tied`: accepted organisations with a declared tie to the provider of either model, per pair a < b.
    """

    breaks: frozenset[str] = frozenset()
    available_days: Mapping[str, int] = field(default_factory=dict)
    tied: Mapping[tuple[str, str], int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CellDecision:
    """Why a cell of the layout got its claim. `tested` is null for a cell that is not eligible."""

    cell: Cell
    statistics: CellStatistics
    tested: Tested | None
    call: State | None
    claim: Claim


def public_facts(manifest: Manifest, ties: Iterable[Iterable[str]], breaks: Iterable[str] = ()) -> PublicFacts:
    """Facts from the catalogue's dates and the roster's declared ties.

    Args:
        manifest: gives window, families and pairs.
        ties: for each accepted organisation, the vendors to which it declares a tie.
        breaks: families that were replaced inside the window.
    """
    start, end = parse_time(manifest.events.from_), parse_time(manifest.events.to)
    families = {family.id: family for family in manifest.families}
    declared = [frozenset(vendors) for vendors in ties]
    return PublicFacts(
        breaks=frozenset(breaks),
        available_days={family.id: _available(family, start, end) for family in manifest.families},
        tied={
            (a, b): sum(bool(vendors & {families[a].vendor, families[b].vendor}) for vendors in declared)
            for a, b in manifest.pairs
        },
    )


def _available(family: Family, start: datetime, end: datetime) -> int:
    first = max(start, parse_time(f"{family.valid_from}T00:00:00Z")) if family.valid_from else start
    last = min(end, parse_time(f"{family.retired_from}T00:00:00Z")) if family.retired_from else end
    return max(0, (last - first) // timedelta(days=1))


def directions(
    sums: CohortSums, manifest: Manifest, facts: PublicFacts, previous: PreviousReport | None
) -> tuple[Claim, ...]:
    """A claim for every cell of the layout and every pair that was not listed; by kind, signal, a, b.

    Args:
        sums: opened cohort sums, 12 D_g and 5 T_g in layout order.
        manifest: the agreement of the round.
        facts: public facts of the quarter.
        previous: history, see `transitions.previous_of`.

    Raises:
        RoundNotOpened: fewer organisations than the manifest's floors.
        TallyOutOfRange: the sums have not the form of the layout.
        ReportError: not five cohorts, or the previous report is not older.
    """
    by_key = {decision.claim.key: decision.claim for decision in decisions(sums, manifest, facts, previous)}
    pairs = sorted(ordered_pair(a, b) for a, b in combinations(manifest.pair_source.order, 2))
    keys = [(kind, signal, a, b) for kind in manifest.kinds for signal in manifest.signals for a, b in pairs]
    return tuple(by_key[key] if key in by_key else _not_compared(key, previous) for key in keys)


def decisions(
    sums: CohortSums, manifest: Manifest, facts: PublicFacts, previous: PreviousReport | None
) -> tuple[CellDecision, ...]:
    """The decision of every cell of the layout, in layout order; same arguments and errors as `directions`."""
    quarter = quarter_of(manifest)
    _check(sums, manifest, previous, quarter)
    statistics = _statistics(sums, manifest)
    reasons = _silence(statistics, sums, manifest, facts)
    eligible = [entry for entry in statistics if not reasons[entry.cell]]
    phi = overdispersion(eligible)
    measured = {entry.cell: with_phi(entry, phi[entry.cell.signal.value, entry.cell.kind]) for entry in eligible}
    passing = benjamini_hochberg({cell: entry.p for cell, entry in measured.items()}, FALSE_DISCOVERY)
    largest_lie = manifest.bounds.C + manifest.noise_clamp / D_SCALE

    decided: list[CellDecision] = []
    for entry in statistics:
        found = measured.get(entry.cell)
        call = _call(found, largest_lie) if found is not None and entry.cell in passing else None
        firm = found is not None and manifest.stage == RANGE_PROOFS and _firm(found, len(measured), largest_lie)
        claim = _claim(entry, found, reasons[entry.cell], call, previous, quarter, firm=firm)
        decided.append(CellDecision(entry.cell, entry, found, call, claim))
    return tuple(decided)


def _check(sums: CohortSums, manifest: Manifest, previous: PreviousReport | None, quarter: str) -> None:
    G = manifest.cohorts.G
    if G != COHORTS:
        raise ReportError("The rule is made for five cohorts.")
    if len(sums.sizes) != G or len(sums.sums) != G or any(len(row) != manifest.length for row in sums.sums):
        raise TallyOutOfRange("The sums have not the form of the layout.")
    if sum(sums.sizes) < manifest.floors.accepted or min(sums.sizes) < manifest.cohorts.m_min:
        raise RoundNotOpened
    if previous is not None and quarter_number(previous.quarter) >= quarter_number(quarter):
        raise ReportError("The previous report is not of an earlier quarter.")


def _statistics(sums: CohortSums, manifest: Manifest) -> list[CellStatistics]:
    layout = Layout(manifest)
    scale = manifest.share_scale
    return [
        cell_statistics(
            cell,
            [row[layout.d_index(cell)] for row in sums.sums],
            [row[layout.t_index(cell)] for row in sums.sums],
            sums.sizes,
            scale,
        )
        for cell in layout.cells
    ]


def _silence(
    statistics: Iterable[CellStatistics], sums: CohortSums, manifest: Manifest, facts: PublicFacts
) -> dict[Cell, set[Reason]]:
    """Reasons why each cell is not eligible; an eligible cell has none."""
    accepted = sum(sums.sizes)
    days = _days_needed(manifest)
    reasons: dict[Cell, set[Reason]] = {}
    for entry in statistics:
        cell = entry.cell
        broken = {
            Reason.VERSION_BREAK: bool(facts.breaks & {cell.a, cell.b}),
            Reason.TOO_NEW: min(facts.available_days.get(model, 0) for model in (cell.a, cell.b)) < days,
            Reason.TOO_FEW_ORGS: accepted - facts.tied.get((cell.a, cell.b), 0) < manifest.floors.pair,
            Reason.TOO_FEW_PEOPLE: float(entry.spoke) < LEAST_PEOPLE + entry.sd_T,
        }
        reasons[cell] = {reason for reason, holds in broken.items() if holds}
    for kind in manifest.kinds:
        open_cells = [cell for cell, found in reasons.items() if cell.kind == kind and not found]
        if len(open_cells) < LEAST_CELLS_OF_A_KIND:
            for cell in open_cells:
                reasons[cell].add(Reason.TOO_FEW_PEOPLE)
    return reasons


def _days_needed(manifest: Manifest) -> int:
    """45 days; a demonstration may have a window shorter than a quarter, then half of it."""
    window = (parse_time(manifest.events.to) - parse_time(manifest.events.from_)) // timedelta(days=1)
    return min(LEAST_DAYS, window // 2) if manifest.demo else LEAST_DAYS


def _call(entry: Tested, lie: float) -> State | None:
    found = entry.statistics
    leans = 25 * abs(found.twelve_d) >= 6 * found.five_t
    agree = found.agreeing >= LEAST_AGREEING
    liar_proof = float(abs(found.net)) - lie >= LIAR_FACTOR * entry.se
    return _toward(found.sign) if leans and agree and liar_proof else None


def _firm(entry: Tested, family: int, lie: float) -> bool:
    found = entry.statistics
    return (
        entry.p <= FIRM_P / family
        and found.agreeing == len(found.d)
        and float(abs(found.net)) - 2 * lie >= LIAR_FACTOR * entry.se
    )


def _toward(sign: int) -> State | None:
    return {1: State.TOWARD_A, -1: State.TOWARD_B}.get(sign)


def _claim(
    entry: CellStatistics,
    found: Tested | None,
    reasons: set[Reason],
    call: State | None,
    previous: PreviousReport | None,
    quarter: str,
    *,
    firm: bool,
) -> Claim:
    cell = entry.cell
    key: ClaimKey = (cell.kind, cell.signal.value, cell.a, cell.b)
    broken = Reason.VERSION_BREAK in reasons
    before = previous.standing(key) if previous is not None and key in previous.series else Standing()
    leaning = _toward(entry.sign) if found is not None and abs(found.t) > KEPT_T else None
    after = advance(before, quarter, eligible=found is not None, broken=broken, call=call, leaning=leaning)
    change = change_of(key, after.direction, previous, broken=broken)
    if found is None:
        return silent_claim(key, reasons, change)
    if after.direction is None:
        return measured_claim(key, State.NO_CLEAR_DIRECTION, change)
    certainty = Certainty.FIRM if firm and after.called == quarter else Certainty.MODERATE
    return measured_claim(key, after.direction, change, certainty=certainty, since=after.since, called=after.called)


def _not_compared(key: ClaimKey, previous: PreviousReport | None) -> Claim:
    return silent_claim(key, {Reason.NOT_SELECTED}, change_of(key, None, previous, broken=True))
