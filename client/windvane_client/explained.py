# SPDX-License-Identifier: Apache-2.0
"""Why one piece of work was read as it was, and what of it can count (docs/signals.md, preview).

Rules kept here:
* evidence is named by the name of its field or event, never by a value; no id leaves this module;
* every signal says whether it can count, or the first reason why it cannot;
* the same functions decide as for the outcomes table: nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from windvane_client.constants import CONSTANTS, Constants
from windvane_client.outcomes_table import COMPLETED, switch_of
from windvane_client.rules import Rules
from windvane_client.signals import BIT_TRIALS, CLASSED_TRIALS, EpisodeFacts, PersonFacts
from windvane_client.switches import COUNTING, Reason, decisive, reason
from windvane_privacy.catalogue import OTHER, Catalogue
from windvane_privacy.outcomes import Basis

COUNTS: Final = "counts"
"""Said of a signal that nothing here keeps from counting."""


def explain(
    episode: EpisodeFacts, person: PersonFacts, *, catalogue: Catalogue, rules: Rules, constants: Constants = CONSTANTS
) -> Mapping[str, Any]:
    """Classes, counts and the names of evidence of one episode."""
    change = switch_of(episode, person, catalogue, rules, constants)
    entry = episode.can_say
    kind = person.kinds[episode.workspace]
    return {
        "closed_by": episode.how or "open",
        "mode": episode.mode,
        "mode_evidence": list(episode.mode_evidence),
        "kind": kind,
        "kind_evidence": person.kinds_decided_by.get(episode.workspace, ""),
        "completion": {"class": episode.ending.value, "evidence": list(episode.ending.evidence)},
        "telemetry_too": episode.telemetry is not None,
        "openings": [opening.family for opening in episode.openings],
        "switch": None if change is None else {"target": change[0], "cause": change[1]},
        "changes": _changes(episode, person, catalogue, rules, constants),
        "tools_basis": None if entry.tools is None else str(entry.tools),
        "tools": _pairs(episode.tool_counts),
        "tools_left_out": _pairs(episode.tools_left_out),
        "infra": _results(episode.fault_counts),
        "infra_left_out": _results(episode.faults_left_out),
        "signals": {
            "completion": _completion(episode, person, kind, catalogue, constants),
            "switch_away": _switch(episode, person, kind, change, catalogue, constants),
            "tool_reliability": _tools(episode, kind, entry.tools),
            "infra_recovery": _infra(episode, kind, infra=entry.infra),
        },
    }


def _changes(
    episode: EpisodeFacts, person: PersonFacts, catalogue: Catalogue, rules: Rules, constants: Constants
) -> list[dict[str, Any]]:
    """Each change of model from one person turn to the next; only the one that leaves the first model can count."""
    found, at = episode.openings, decisive(episode.openings)
    shown = []
    for i in range(1, len(found)):
        before, after = found[i - 1].family, found[i].family
        if before == after:
            continue
        if before is None or after is None or any(opening.family is None for opening in found):
            why = Reason("unknown", ("model_not_recorded",))
        elif i == at:
            why = reason(found, i, person.history, catalogue, rules, constants)
        elif at is None or i < at:
            why = Reason("returned", ("came_back_later",))
        else:
            why = Reason("later", ("first_model_was_left_before",))
        shown.append({"turn": i + 1, "from": before, "to": after, "cause": why.cause, "evidence": list(why.evidence)})
    return shown


def _common(episode: EpisodeFacts, kind: str) -> str | None:
    if episode.closed is None:
        return "still_open"
    if episode.mode != "interactive":
        return f"mode_{episode.mode}"
    return "kind_undecided" if kind == OTHER else None


def _completion(
    episode: EpisodeFacts, person: PersonFacts, kind: str, catalogue: Catalogue, constants: Constants
) -> str:
    families = {opening.family for opening in episode.openings if opening.family is not None}
    closing = episode.openings[-1].family if episode.openings else None
    common = _common(episode, kind)
    if common is not None:
        return common
    if not episode.can_say.completion:
        return "source_cannot_tell"
    if episode.ending.value not in COMPLETED:
        return "end_unknown"
    if closing is None:
        return "model_not_recorded"
    if len(families) > 1:
        return "several_models"
    if closing not in catalogue:
        return "model_not_listed"
    return "model_is_new" if person.history.is_new(closing, episode.opened, constants) else COUNTS


def _switch(
    episode: EpisodeFacts,
    person: PersonFacts,
    kind: str,
    change: tuple[str | None, str] | None,
    catalogue: Catalogue,
    constants: Constants,
) -> str:
    found, common = episode.openings, _common(episode, kind)
    if common is not None:
        return common
    if not episode.can_say.shows_moves:
        return "source_cannot_tell"
    if change is None:
        if len(found) < constants.min_person_turns:
            return "one_turn_only"
        if any(opening.family is None for opening in found):
            return "model_not_recorded"
        return "model_not_listed" if (found[0].family or "") not in catalogue else "no_second_model_lately"
    first = found[0].family
    if first is not None and person.history.is_new(first, episode.opened, constants):
        return "model_is_new"
    return COUNTS if change[0] is None or change[1] in COUNTING else f"cause_{change[1]}"


def _tools(episode: EpisodeFacts, kind: str, basis: Basis | None) -> str:
    if episode.closed is None or kind == OTHER:
        return _common(episode, kind) or ""
    if basis is None:
        return "source_cannot_tell"
    trials = CLASSED_TRIALS if basis is Basis.CLASSED else BIT_TRIALS
    if any(outcome in trials for (_, outcome), _ in episode.tool_counts):
        return COUNTS
    return (episode.tools_left_out and _common(episode, kind)) or "no_call_that_counts"


def _infra(episode: EpisodeFacts, kind: str, *, infra: bool) -> str:
    if episode.closed is None or kind == OTHER:
        return _common(episode, kind) or ""
    if not infra:
        return "source_cannot_tell"
    if any(result != "cut" for (_, _, result), _ in episode.fault_counts):
        return COUNTS
    return (episode.faults_left_out and _common(episode, kind)) or "no_fault_that_counts"


def _pairs(counts: Iterable[tuple[tuple[str, str], int]]) -> dict[str, int]:
    return {f"{family}:{outcome}": n for (family, outcome), n in sorted(counts)}


def _results(counts: Iterable[tuple[tuple[str, str, str], int]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for (family, _, result), n in sorted(counts):
        found[f"{family}:{result}"] = found.get(f"{family}:{result}", 0) + n
    return found
