# SPDX-License-Identifier: Apache-2.0
"""The public vocabulary: what a report can say about one pair, and nothing else.

Rules kept here:
* states, certainty words, changes and reasons are closed lists; a number has nowhere to go;
* a claim names a pair, never a model: there is no claim about one model;
* two certainty words, never a third; what is weaker is `no_clear_direction`;
* the first reason, in the fixed order of precedence, decides observation status and letter; all reasons are listed;
* the gloss of a certainty word is part of its sentence, so it lives beside the word.

Letters in square brackets follow the UK Government Statistical Service; `obs_status` and `conf_status` follow SDMX
(CL_OBS_STATUS, CL_CONF_STATUS). docs/signals.md says what each signal means.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum

import msgspec

from windvane_privacy.catalogue import Signal
from windvane_privacy.errors import ReportError

ClaimKey = tuple[str, str, str, str]
"""(kind, signal, a, b)."""


class State(StrEnum):
    """What is said about a pair."""

    TOWARD_A = "toward_a"
    TOWARD_B = "toward_b"
    NO_CLEAR_DIRECTION = "no_clear_direction"
    NOT_ENOUGH_DATA = "not_enough_data"
    WITHHELD = "withheld"
    NOT_COMPARED = "not_compared"


class Certainty(StrEnum):
    """How sure a direction is."""

    FIRM = "firm"
    MODERATE = "moderate"


class Change(StrEnum):
    """What became of the claim since the report before."""

    FIRST_MEASURED = "first_measured"
    NEW = "new"
    REVERSED_AFTER_PAUSE = "reversed_after_pause"
    KEPT = "kept"
    ENDED = "ended"


class Reason(StrEnum):
    """Why nothing is said, in order of precedence."""

    INTEGRITY_HOLD = "integrity_hold"
    VERSION_BREAK = "version_break"
    TOO_NEW = "too_new"
    CAUSES_UNCLEAR = "causes_unclear"
    TOO_FEW_ORGS = "too_few_orgs"
    TOO_FEW_PEOPLE = "too_few_people"
    NOT_SELECTED = "not_selected"


class ObsStatus(StrEnum):
    """SDMX observation status: normal, not significant, suppressed, break in series, low reliability."""

    DIRECTION = "A"
    NONE = "N"
    SUPPRESSED = "Q"
    BREAK = "B"
    UNRELIABLE = "U"


class ConfStatus(StrEnum):
    """SDMX confidentiality status; everything in the report is free for publication."""

    FREE = "F"


DIRECTIONS = frozenset({State.TOWARD_A, State.TOWARD_B})
MEASURED = DIRECTIONS | {State.NO_CLEAR_DIRECTION}
REASON_ORDER: tuple[Reason, ...] = tuple(Reason)
LETTERS: dict[Reason, str] = {
    Reason.INTEGRITY_HOLD: "q",
    Reason.VERSION_BREAK: "b",
    Reason.TOO_NEW: "x",
    Reason.CAUSES_UNCLEAR: "u",
    Reason.TOO_FEW_ORGS: "x",
    Reason.TOO_FEW_PEOPLE: "x",
    Reason.NOT_SELECTED: "z",
}
_REASON_STATE: dict[Reason, State] = {
    Reason.INTEGRITY_HOLD: State.WITHHELD,
    Reason.VERSION_BREAK: State.WITHHELD,
    Reason.TOO_NEW: State.WITHHELD,
    Reason.CAUSES_UNCLEAR: State.WITHHELD,
    Reason.TOO_FEW_ORGS: State.NOT_ENOUGH_DATA,
    Reason.TOO_FEW_PEOPLE: State.NOT_ENOUGH_DATA,
    Reason.NOT_SELECTED: State.NOT_COMPARED,
}
_REASON_OBS: dict[Reason, ObsStatus] = {
    Reason.VERSION_BREAK: ObsStatus.BREAK,
    Reason.CAUSES_UNCLEAR: ObsStatus.UNRELIABLE,
}
GLOSS: dict[Certainty, str] = {
    Certainty.FIRM: "at most about one such statement in a hundred goes the wrong way",
    Certainty.MODERATE: "at most about one such statement in twenty goes the wrong way",
}
PARENTHESIS = "(this does not mean that they are equal)"
_QUARTER = re.compile(r"[0-9]{4}-Q[1-4]")


def reason_state(reason: Reason) -> State:
    """The state of a cell of which this is the first reason."""
    return _REASON_STATE[reason]


def reason_obs(reason: Reason) -> ObsStatus:
    """The observation status of a cell of which this is the first reason."""
    return _REASON_OBS.get(reason, ObsStatus.SUPPRESSED)


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One statement: quarter (of its report), kind of work, signal, and the pair `a` < `b` of family ids.

    `since_quarter`: first quarter of the present direction. `called_quarter`: last quarter in which the rule called it;
    earlier than the report's quarter when the direction is kept. Both null without a direction.
    """

    kind: str
    signal: Signal
    a: str
    b: str
    state: State
    certainty: Certainty | None
    since_quarter: str | None
    called_quarter: str | None
    change: Change
    reasons: tuple[Reason, ...]
    obs_status: ObsStatus
    conf_status: ConfStatus

    @property
    def key(self) -> ClaimKey:
        """What the claim is about."""
        return (self.kind, self.signal.value, self.a, self.b)

    @property
    def letter(self) -> str | None:
        """Letter of the first reason; null for a measured cell."""
        return LETTERS[self.reasons[0]] if self.reasons else None


def measured_claim(
    key: ClaimKey,
    state: State,
    change: Change,
    *,
    certainty: Certainty | None = None,
    since: str | None = None,
    called: str | None = None,
) -> Claim:
    """A claim about a cell that was eligible: a direction, or no clear one.

    Raises:
        ReportError: the parts contradict each other.
    """
    obs = ObsStatus.DIRECTION if state in DIRECTIONS else ObsStatus.NONE
    kind, signal, a, b = key
    claim = Claim(
        kind, Signal(signal), a, b, state, certainty, since, called, change, (), obs, ConfStatus.FREE
    )  # fmt: skip
    check_claim(claim)
    return claim


def silent_claim(key: ClaimKey, reasons: Iterable[Reason], change: Change) -> Claim:
    """A claim that says why nothing is said.

    Raises:
        ReportError: no reason is given.
    """
    given = set(reasons)
    ordered = tuple(reason for reason in REASON_ORDER if reason in given)
    if not ordered:
        raise ReportError("A cell without a statement needs a reason.")
    first = ordered[0]
    obs = reason_obs(first)
    kind, signal, a, b = key
    claim = Claim(
        kind, Signal(signal), a, b, reason_state(first), None, None, None, change, ordered, obs, ConfStatus.FREE
    )  # fmt: skip
    check_claim(claim)
    return claim


def check_claim(claim: Claim) -> None:
    """Refuse a claim whose fields contradict each other; docs/protocol.md has the table.

    Raises:
        ReportError: with the rule that is broken.
    """
    if not claim.a < claim.b:
        raise ReportError("The pair of a claim is not in order.")
    if claim.reasons != tuple(reason for reason in REASON_ORDER if reason in claim.reasons):
        raise ReportError("The reasons of a claim are not in their order.")
    quarters = (claim.since_quarter, claim.called_quarter)
    if claim.state in DIRECTIONS:
        sound = (
            claim.certainty is not None
            and all(q is not None and _QUARTER.fullmatch(q) for q in quarters)
            and not claim.reasons
            and claim.obs_status is ObsStatus.DIRECTION
            and claim.change is not Change.ENDED
        )
    else:
        sound = (
            claim.certainty is None
            and quarters == (None, None)
            and claim.change in {Change.FIRST_MEASURED, Change.KEPT, Change.ENDED}
            and _silence_is_sound(claim)
        )
    if not sound:
        raise ReportError("State, certainty, change and reasons of a claim contradict each other.")


def _silence_is_sound(claim: Claim) -> bool:
    if claim.state is State.NO_CLEAR_DIRECTION:
        return not claim.reasons and claim.obs_status is ObsStatus.NONE
    if not claim.reasons:
        return False
    first = claim.reasons[0]
    return claim.state is reason_state(first) and claim.obs_status is reason_obs(first)
