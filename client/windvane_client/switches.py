# SPDX-License-Identifier: Apache-2.0
"""Who changed the model, and why: turn openings, the decisive change and its cause (docs/signals.md, switch-away).

Rules kept here:
* a turn's model is the one that first answered its prompt directly; a skill's or subagent's model is no choice;
* only the change that leaves the opening model for good matters; there and back again is no change;
* cause before count: every cause outside the person is looked for first, and only a change that the person made counts;
* where the log could have hidden the cause, the cause is `unknown` and counts for nobody;
* all evidence is the person's own, or was declared by the organisation.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from windvane_client.capabilities import attempts_known, capability
from windvane_client.constants import SECOND, Constants
from windvane_client.episodes import Episode, Turn
from windvane_client.events import INFRA_CLASSES, MAIN, AttemptError, Call, ModelSet
from windvane_client.rules import Rules
from windvane_client.store import Seen
from windvane_privacy.catalogue import Catalogue

CAUSES = (
    "retired", "policy", "default_change", "planned_mode", "router", "fallback", "infra", "quota", "context",
    "refusal", "novelty",
    "person_set", "person_inferred", "unknown",
)  # fmt: skip
"""Causes of a decisive change in the order in which they are looked for; `returned`, `same_family` are none."""
COUNTING = frozenset({"person_set", "person_inferred"})
_UNKNOWN = "unknown"
_PLANNED_ROUTES = frozenset({"skill", "subagent", "background"})


@dataclass(frozen=True, slots=True)
class Opening:
    """How one person turn began. `ts`: the prompt, `answered`: the answer that tells the model (or the prompt), µs.

    `family` is None where nothing tells it. `route`: of that answer. `set_by`: who set a model since the person turn
    before, `set_to`: the families that a person set. `causes_known`: the log would have shown another cause.
    """

    ts: int
    answered: int
    family: str | None
    route: str
    set_by: frozenset[str] = frozenset()
    set_to: frozenset[str] = frozenset()
    causes_known: bool = False

    @property
    def direct(self) -> bool:
        """The person's choice of model is visible here."""
        return self.route == "direct" and self.family is not None


@dataclass(slots=True)
class History:
    """What one person's own past tells: openings, failed attempts, first and last use of a family."""

    openings: list[tuple[int, str]] = field(default_factory=list)
    errors: list[tuple[int, str, str]] = field(default_factory=list)
    seen: dict[str, Seen] = field(default_factory=dict)
    """From windows whose rows are deleted."""
    _times: dict[str, list[int]] = field(default_factory=dict)
    """The times of `openings` by family, in order."""

    def freeze(self) -> None:
        """Sort what was collected and complete `seen` with it. Call once, before the questions below."""
        self.openings.sort()
        self.errors.sort()
        for ts, family in self.openings:
            self._times.setdefault(family, []).append(ts)
            known = self.seen.get(family)
            self.seen[family] = Seen(min(ts, known.first), max(ts, known.last)) if known else Seen(ts, ts)

    def is_new(self, family: str, moment: int, constants: Constants) -> bool:
        """Whether the person first used a family less than the novelty span before `moment` (µs), or never before."""
        known = self.seen.get(family)
        return known is None or moment - known.first < constants.novelty

    def choices(self, until: int, catalogue: Catalogue, constants: Constants, kept: Mapping[str, Seen]) -> set[str]:
        """Catalogue families that the person opened turns with in the choice span before `until` (µs). `kept`: the
        history from before the rows that are still here."""
        since = until - constants.choice_span
        recent = {f for f, times in self._times.items() if bisect_left(times, since) < bisect_right(times, until)}
        recent |= {family for family, times in kept.items() if since <= times.last <= until}
        return {family for family in recent if family in catalogue}

    def failed(self, classes: Iterable[str], family: str, since: int, until: int) -> str | None:
        """Class of the first attempt of these classes that failed between two times (µs), on `family` or on nobody
        knows which; None where none did."""
        wanted = frozenset(classes)
        at = bisect_left(self.errors, (since, "", ""))
        for ts, model, error in self.errors[at:]:
            if ts > until:
                return None
            if error in wanted and model in (family, _UNKNOWN):
                return error
        return None


def openings(episode: Episode) -> tuple[Opening, ...]:
    """The openings of an episode's person turns, in order."""
    found: list[Opening] = []
    set_by: set[str] = set()
    set_to: set[str] = set()
    for turn in episode.turns:
        if turn.by_person:
            found.append(_opening(turn, frozenset(set_by), frozenset(set_to)))
            set_by.clear()
            set_to.clear()
        for event in turn.events:
            if isinstance(event, ModelSet) and event.thread == MAIN:
                set_by.add(event.by)
                if event.by == "person":
                    set_to.add(event.family)
    return tuple(found)


def _opening(turn: Turn, set_by: frozenset[str], set_to: frozenset[str]) -> Opening:
    ts = turn.prompt.ts or 0
    known = capability(turn.prompt.source, turn.prompt.recorder).causes and attempts_known(turn.prompt)
    answered = [e for e in turn.events if isinstance(e, Call) and e.thread == MAIN and e.status == "ok"]
    first = next((call for call in answered if call.route == "direct"), answered[0] if answered else None)
    # A command between prompt and answer belongs to this opening too (a picker that opens while the prompt waits).
    until = first.ts if first is not None and first.ts is not None else ts
    for event in turn.events:
        if isinstance(event, ModelSet) and event.thread == MAIN and first is not None and (event.ts or 0) <= until:
            set_by |= {event.by}
            set_to |= {event.family} if event.by == "person" else frozenset()
    if first is not None:
        family = None if first.served == _UNKNOWN else first.served
        return Opening(ts, until, family, first.route, set_by, set_to, known)
    asked = next((f for f in map(_requested, turn.events) if f not in (None, _UNKNOWN)), None)
    return Opening(ts, ts, asked, "direct" if asked else _UNKNOWN, set_by, set_to, known)


def _requested(event: object) -> str | None:
    if isinstance(event, Call) and event.thread == MAIN:
        return event.requested
    if isinstance(event, AttemptError) and event.thread == MAIN:
        return event.family
    # A log that writes which model a turn is for, before any answer; a model that somebody chose is no request.
    if isinstance(event, ModelSet) and event.thread == MAIN and event.by == "unknown":
        return event.family
    return None


def eligible(found: Sequence[Opening], choices: set[str], catalogue: Catalogue, constants: Constants) -> bool:
    """Whether an episode could have shown a switch: enough person turns, every model known, and a choice."""
    return (
        len(found) >= constants.min_person_turns
        and all(opening.family is not None for opening in found)
        and (found[0].family or _UNKNOWN) in catalogue
        and len(choices) >= 2
    )


def decisive(found: Sequence[Opening]) -> int | None:
    """Index of the change that leaves the opening model for good; None where there is none (or models are unknown)."""
    if len(found) < 2 or any(opening.family is None for opening in found) or found[-1].family == found[0].family:
        return None
    at = len(found) - 1
    while found[at - 1].family != found[0].family:
        at -= 1
    return at


@dataclass(frozen=True, slots=True)
class Reason:
    """Cause of a change, a word of `CAUSES`, and the names of the evidence for it (never a value of the log)."""

    cause: str
    evidence: tuple[str, ...] = ()


def cause(
    found: Sequence[Opening], at: int, history: History, catalogue: Catalogue, rules: Rules, constants: Constants
) -> str:
    """Cause of the decisive change at index `at`; a word of `CAUSES`."""
    return reason(found, at, history, catalogue, rules, constants).cause


def reason(
    found: Sequence[Opening], at: int, history: History, catalogue: Catalogue, rules: Rules, constants: Constants
) -> Reason:
    """Cause of the decisive change at index `at` with its evidence, first hit wins."""
    change, start = found[at], found[0]
    a, b = start.family or _UNKNOWN, change.family or _UNKNOWN
    since, until = change.ts - constants.cause_lookback, change.answered
    declared = {event.kind for event in rules.declared if event.covers(a, b, change.ts)}
    if a in catalogue and _retired(catalogue.get(a).retired_from, change.ts):
        return Reason("retired", ("list_of_models",))
    # A retirement is of one model: declared for nobody knows which, it explains nothing.
    if any(e.kind == "retirement" and e.model_from == a and e.covers(a, b, change.ts) for e in rules.declared):
        return Reason("retired", ("declared_retirement",))
    for event in rules.declared:
        if event.kind in ("policy", "default_change") and event.covers(a, b, change.ts):
            return Reason(event.kind, (f"declared_{event.kind}",))
    if "policy" in change.set_by:
        return Reason("policy", ("model_set_policy",))
    if change.route in _PLANNED_ROUTES:
        return Reason("planned_mode", (f"route_{change.route}",))
    if "harness" in change.set_by:
        return Reason("planned_mode", ("model_set_harness",))
    if change.route in ("router", "fallback"):
        return Reason(change.route, (f"route_{change.route}",))
    if "fallback" in change.set_by:
        return Reason("fallback", ("model_set_fallback",))
    if "outage" in declared:
        return Reason("infra", ("declared_outage",))
    for code, classes, earliest in (
        ("infra", INFRA_CLASSES, since), ("quota", ("rate_own",), since), ("context", ("context",), start.ts),
    ):  # fmt: skip
        error = history.failed(classes, a, earliest, until)
        if error is not None:
            return Reason(code, (f"attempt_error_{error}",))
    if "refusal" in change.set_by:
        return Reason("refusal", ("model_set_refusal",))
    if any(history.is_new(family, change.ts, constants) for family in (a, b)):
        return Reason("novelty", ("first_use",))
    # A command that names another model than the one that came is no evidence for this change.
    if "person" in change.set_by and (not change.set_to or change.set_to & {b, _UNKNOWN}):
        return Reason("person_set", ("model_set_person",))
    if change.causes_known and change.route == "direct":
        return Reason("person_inferred", ("nothing_else_recorded",))
    return Reason(_UNKNOWN, ("causes_not_recorded" if not change.causes_known else "route_unknown",))


def _retired(day: str | None, moment: int) -> bool:
    return day is not None and datetime.fromtimestamp(moment // SECOND, UTC).strftime("%Y-%m-%d") >= day
