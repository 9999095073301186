# SPDX-License-Identifier: Apache-2.0
"""From quarter to quarter: what a direction needs to stand, to be kept, and to end.

Rules kept here:
* the state of a cell is a function of the previous published report: direction, `since_quarter`, `called_quarter`;
* a kept direction is always moderate, keeps its quarters, and ends with the third quarter without a call;
* a direction never turns round in one step: a call against it ends it;
* withheld or not eligible ends a direction; a version break, or a pair that left the list, clears the series;
* a quarter without a report counts, because age is measured in calendar quarters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from windvane_privacy.claims import DIRECTIONS, Change, Claim, ClaimKey, Reason, State
from windvane_privacy.errors import MalformedInput, ReportError
from windvane_privacy.manifest import Manifest, parse_time

KEPT_T = 1.0
LONGEST_AGE = 2
_QUARTER = re.compile(r"([0-9]{4})-Q([1-4])")


def quarter_of(manifest: Manifest) -> str:
    """The round's name where it is a quarter, such as `2026-Q3`, else the quarter in which its events begin."""
    if _QUARTER.fullmatch(manifest.round):
        return manifest.round
    start = parse_time(manifest.events.from_)
    return f"{start.year:04d}-Q{(start.month - 1) // 3 + 1}"


def quarter_number(quarter: str) -> int:
    """Quarters since year 0; differences are ages.

    Raises:
        MalformedInput: not of the form `2026-Q3`.
    """
    match = _QUARTER.fullmatch(quarter)
    if match is None:
        raise MalformedInput("a quarter is not of the form 2026-Q3")
    return 4 * int(match[1]) + int(match[2]) - 1


@dataclass(frozen=True, slots=True)
class Standing:
    """A direction as published: toward a, toward b or none (null), with its first and its last called quarter."""

    direction: State | None = None
    since: str | None = None
    called: str | None = None


@dataclass(frozen=True, slots=True)
class PreviousReport:
    """What the reports before hold about each cell; `previous_of` makes it.

    `claims`: of the newest report that has any. `held`: cells that any earlier report holds. `series`: cells with an
    unbroken series. `last`: last direction in the present series, also where it has ended since.
    """

    quarter: str
    claims: Mapping[ClaimKey, Claim]
    held: frozenset[ClaimKey]
    series: frozenset[ClaimKey]
    last: Mapping[ClaimKey, State]

    def standing(self, key: ClaimKey) -> Standing:
        """The direction of a cell as last published."""
        claim = self.claims.get(key)
        if claim is None or claim.state not in DIRECTIONS:
            return Standing()
        return Standing(claim.state, claim.since_quarter, claim.called_quarter)


def previous_of(reports: Iterable[tuple[str, Iterable[Claim]]]) -> PreviousReport | None:
    """History of all reports as (quarter, claims), oldest first; null when none of them has claims.

    Raises:
        ReportError: the quarters are not in order.
    """
    found: PreviousReport | None = None
    held: set[ClaimKey] = set()
    series: set[ClaimKey] = set()
    last: dict[ClaimKey, State] = {}
    latest = -1
    for quarter, content in reports:
        if quarter_number(quarter) <= latest:
            raise ReportError("The earlier reports are not in the order of their quarters.")
        latest = quarter_number(quarter)
        claims = {claim.key: claim for claim in content}
        if not claims:
            continue
        held |= claims.keys()
        measured = {key for key, claim in claims.items() if not _breaks(claim)}
        series = measured
        last = {key: state for key, state in last.items() if key in measured}
        last.update({key: claims[key].state for key in measured if claims[key].state in DIRECTIONS})
        found = PreviousReport(quarter, claims, frozenset(held), frozenset(series), dict(last))
    return found


def _breaks(claim: Claim) -> bool:
    return claim.state is State.NOT_COMPARED or Reason.VERSION_BREAK in claim.reasons


def advance(
    before: Standing, quarter: str, *, eligible: bool, broken: bool, call: State | None, leaning: State | None
) -> Standing:
    """The standing after this quarter.

    Args:
        before: the direction as last published.
        quarter: this quarter.
        eligible: the cell takes part in the rule this quarter and is not withheld.
        broken: a version break, or the pair is not in the layout.
        call: the direction that the rule calls afresh.
        leaning: the sign of D where abs(t) > 1, else null.

    Raises:
        ReportError: a direction would turn round in one step.
    """
    if broken or not eligible:
        return Standing()
    if call is not None:
        if before.direction is None:
            return Standing(call, quarter, quarter)
        if before.direction is call:
            return Standing(call, before.since, quarter)
        return Standing()
    if before.direction is None or before.called is None or leaning is not before.direction:
        return Standing()
    age = quarter_number(quarter) - quarter_number(before.called)
    return before if age <= LONGEST_AGE else Standing()


def change_of(key: ClaimKey, now: State | None, previous: PreviousReport | None, *, broken: bool) -> Change:
    """What became of a claim since the report before; `now` is its direction or null.

    Raises:
        ReportError: a direction would turn round in one step.
    """
    before = previous.standing(key).direction if previous else None
    if before is not None and now is not None and now is not before:
        raise ReportError("A direction would turn round in one step.")
    if before is not None and now is None:
        return Change.ENDED
    known = previous is not None and key in (previous.held if broken else previous.series)
    if previous is None or not known:
        return Change.FIRST_MEASURED
    if now is before:
        return Change.KEPT
    last = previous.last.get(key)
    return Change.REVERSED_AFTER_PAUSE if last is not None and last is not now else Change.NEW
