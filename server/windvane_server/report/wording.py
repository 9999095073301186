# SPDX-License-Identifier: Apache-2.0
"""The sentences of the report: whole sentences under keys, no fragments glued together.

Rules kept here:
* both names stand in the same weight, the alphabetically first one first, whichever way the direction goes;
* a gloss or a parenthesis is part of its sentence;
* "moved away from", never "rejected"; no verb of victory, no figure;
* every sentence that is shown on a page with models comes from here.
"""

from __future__ import annotations

from windvane_privacy.catalogue import POOLED, Signal
from windvane_privacy.claims import DIRECTIONS, GLOSS, LETTERS, Claim, Reason, State

MESSAGES: dict[str, str] = {
    "switch_away.toward": "In {kind}, people who used both {a} and {b} moved from {from} to {to} more often than the "
    "other way: {certainty}.",
    "completion.toward": "In {kind}, people who used both {a} and {b} finished their work with {to} more often than "
    "with {from}: {certainty}.",
    "tool_reliability.toward": "In {kind}, people who used both {a} and {b} met fewer wrong tool calls with {to} than "
    "with {from}: {certainty}.",
    "infra_recovery.toward": "In {kind}, for people who used both {a} and {b}, work went on after a fault in the "
    "service more often with {to} than with {from}: {certainty}. This says as much about service and program as about "
    "the model.",
    "blind_quality.toward": "In {kind}, people who compared answers without knowing the model preferred {to} to {from} "
    "more often than the other way: {certainty}.",
    "none": "No clear direction between {a} and {b} (this does not mean that they are equal).",
    "few": "Not enough people or organisations to say anything about {a} and {b} [x].",
    "not_compared": "{a} and {b} were not compared this quarter [z].",
    "withheld.integrity_hold": "What was measured between {a} and {b} is under check and not shown yet [q].",
    "withheld.version_break": "{a} or {b} was replaced inside the quarter, so the series breaks here [b].",
    "withheld.too_new": "{a} or {b} was not there long enough in this quarter to be compared [x].",
    "withheld.causes_unclear": "The causes behind the moves between {a} and {b} are too unclear to say anything [u].",
    "certainty.firm": "firm ({gloss})",
    "certainty.moderate": "moderate ({gloss})",
    "certainty.kept": "moderate ({gloss}; kept from {quarter}, not measured as clearly this quarter)",
    "scope": "These are statements about people who used both models for the same kind of work, as they met them, "
    "price and speed included. Each organisation counts as one bounded voice. People give harder work to the model "
    "they trust; nothing here corrects that.",
    "stage_one": "In this first stage no proof yet keeps a dishonest organisation from sending more than its bounded "
    "voice. In simulations at most about one such attempt in twenty brought a false statement onto a page like this "
    "one. Therefore no statement is called firm yet.",
    "opening.cross_checked": "This quarter's sums were opened by two guardians, and a third guardian's shares agree.",
    "opening.two_guardians": "This quarter's sums were opened by two guardians, not cross-checked.",
    "erasing": "A few dishonest organisations together can make a statement disappear more easily than they can make "
    "one up, so a missing direction is no finding.",
    "history.toward": "{quarter}: toward {to}",
    "history.none": "{quarter}: no clear direction",
    "history.silent": "{quarter}: nothing said",
    "change.first_measured": "First measured this quarter.",
    "change.new": "New this quarter.",
    "change.reversed_after_pause": "New this quarter, after a pause and an earlier direction the other way.",
    "change.kept": "As in the report before.",
    "change.ended": "The direction of the report before has ended.",
    "demo": "Demonstration: invented organisations, invented models, invented preferences.",
    "kind_withheld": "Nothing can be said about this kind of work this quarter: too few of its comparisons had enough "
    "people and organisations.",
    "no_direction_here": "No pair has a clear direction in this kind of work this quarter.",
}

KINDS: dict[str, str] = {
    POOLED: "all kinds of work together (compared within each kind)",
    "coding": "coding",
    "analysis": "analysis",
    "writing": "writing",
    "research": "research",
    "support": "support",
}
KIND_TITLES: dict[str, str] = {
    POOLED: "All kinds of work together",
    "coding": "Coding",
    "analysis": "Analysis",
    "writing": "Writing",
    "research": "Research",
    "support": "Support",
}
SIGNAL_TITLES: dict[Signal, str] = {
    Signal.COMPLETION: "Finished work",
    Signal.SWITCH_AWAY: "Moving on",
    Signal.TOOL_RELIABILITY: "Tool calls",
    Signal.INFRA_RECOVERY: "After a fault",
    Signal.BLIND_QUALITY: "Blind comparison",
}
SIGNAL_QUESTIONS: dict[Signal, str] = {
    Signal.COMPLETION: "With which of the two did the same people finish their work more often?",
    Signal.SWITCH_AWAY: "From which of the two to which did people move in the middle of their work?",
    Signal.TOOL_RELIABILITY: "With which of the two did people meet fewer wrong tool calls?",
    Signal.INFRA_RECOVERY: "With which of the two did work go on after a fault in the service?",
    Signal.BLIND_QUALITY: "Which answers did people prefer while they did not know the model?",
}
LETTER_MEANINGS: dict[str, str] = {
    "x": "not enough people, organisations or days",
    "z": "not compared",
    "b": "break in the series",
    "u": "low reliability",
    "q": "under check",
}


def quarter_name(quarter: str) -> str:
    """`2026-Q3` as it is read: `2026 Q3`."""
    return quarter.replace("-", " ")


def sentence(claim: Claim, labels: dict[str, str], quarter: str) -> str:
    """The whole sentence of a claim, gloss or letter included.

    Args:
        claim: what is said.
        labels: label by family id.
        quarter: the report's quarter; a direction called earlier is said to be kept.
    """
    a, b = labels[claim.a], labels[claim.b]
    if claim.state not in DIRECTIONS:
        return MESSAGES[silent_key(claim)].format(a=a, b=b)
    to, other = (a, b) if claim.state is State.TOWARD_A else (b, a)
    values = {
        "kind": KINDS[claim.kind],
        "a": a,
        "b": b,
        "to": to,
        "from": other,
        "certainty": _certainty(claim, quarter),
    }
    return MESSAGES[f"{claim.signal.value}.toward"].format_map(values)


def silent_key(claim: Claim) -> str:
    """Key of the sentence of a claim without a direction."""
    if claim.state is State.NO_CLEAR_DIRECTION:
        return "none"
    if claim.state is State.NOT_COMPARED:
        return "not_compared"
    if claim.state is State.NOT_ENOUGH_DATA:
        return "few"
    return f"withheld.{claim.reasons[0].value}"


def history_words(claim: Claim, labels: dict[str, str], quarter: str) -> str:
    """What an earlier report said, in a few words."""
    named = quarter_name(quarter)
    if claim.state in DIRECTIONS:
        to = labels[claim.a if claim.state is State.TOWARD_A else claim.b]
        return MESSAGES["history.toward"].format(quarter=named, to=to)
    key = "history.none" if claim.state is State.NO_CLEAR_DIRECTION else "history.silent"
    return MESSAGES[key].format(quarter=named)


def letter_of(reason: Reason) -> str:
    """Letter of a reason, in its brackets."""
    return f"[{LETTERS[reason]}]"


def _certainty(claim: Claim, quarter: str) -> str:
    if claim.certainty is None or claim.called_quarter is None:
        raise ValueError("a direction has a certainty and a quarter")
    gloss = GLOSS[claim.certainty]
    if claim.called_quarter != quarter:
        return MESSAGES["certainty.kept"].format(gloss=gloss, quarter=quarter_name(claim.called_quarter))
    return MESSAGES[f"certainty.{claim.certainty.value}"].format(gloss=gloss)
