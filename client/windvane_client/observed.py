# SPDX-License-Identifier: Apache-2.0
"""The summary of one sample that `preview --json` prints.

Rules kept here:
* null where the rows of the sample cannot tell, 0 only where they could and do not;
* counts of everything that was read, also of what gives no trial.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from windvane_client.capabilities import NOTHING, Capability, capability
from windvane_client.constants import CONSTANTS, Constants
from windvane_client.events import MODES, Rows
from windvane_client.infra import RESULTS
from windvane_client.outcomes_table import rows_of, switch_of
from windvane_client.readers.protocol import SampleFacts
from windvane_client.rules import Rules
from windvane_client.signals import EpisodeFacts, PersonFacts, Totals, read_person
from windvane_client.store import EventStore
from windvane_client.switches import COUNTING, cause, decisive
from windvane_privacy.catalogue import OTHER, Catalogue

Observed = dict[str, Any]
ALL_TIME = (-(2**62), 2**62)


def observe(
    store: EventStore,
    facts: SampleFacts,
    rows: Rows,
    *,
    catalogue: Catalogue,
    rules: Rules,
    ids_key: bytes,
    now: int,
    constants: Constants = CONSTANTS,
) -> Observed:
    """The `observed` object of one sample. `store` holds its events, `facts` and `rows` what its reader saw."""
    people = [
        read_person(store, person, window=ALL_TIME, rules=rules, ids_key=ids_key, now=now, constants=constants)
        for person in store.people()
    ]
    return summary(people, facts, rows, catalogue=catalogue, rules=rules, constants=constants)


def summary(
    people: list[PersonFacts],
    facts: SampleFacts,
    rows: Rows,
    *,
    catalogue: Catalogue,
    rules: Rules,
    constants: Constants = CONSTANTS,
    entry: Capability | None = None,
) -> Observed:
    """`observe` for people who were read already. `entry`: what the sources can say, where they are several."""
    totals = _sum([person.totals for person in people])
    episodes = sorted(
        ((episode, person) for person in people for episode in person.episodes),
        key=lambda pair: (pair[0].opened, pair[1].person, pair[0].conv),
    )
    if entry is None:
        entry = capability(facts.source, facts.recorder) if facts.any_row else NOTHING
    return {
        "rows": {name: getattr(rows, name) for name in Rows.FIELDS},
        "conversations": _conversations(facts, totals, entry),
        "persons": None if facts.persons is None else len(facts.persons),
        "mode": _mode(totals, [vote.judge for person in people for vote in person.votes], facts.stated_mode),
        "kind": _kind(people, entry.default_kind) if facts.any_row else OTHER,
        "calls": {
            "answered": totals.calls_ok if facts.any_call_row else None,
            "failed": totals.calls_failed if facts.any_call_row and not facts.failures_hidden else None,
            "side_answered": totals.calls_side,
        },
        "prompts": {
            "person": totals.prompts_person if facts.any_prompt_row else None,
            "command": totals.prompts_command if facts.any_prompt_row else None,
        },
        "episodes": len(episodes) if facts.any_prompt_row else None,
        "completion": [episode.ending.value for episode, _ in episodes] if facts.any_prompt_row else None,
        "switches": _switches(episodes, catalogue, rules, constants)
        if facts.any_prompt_row and entry.switch is not None
        else _no_switches(),
        "tools": {
            "basis": str(entry.tools) if facts.any_tool_row and entry.tools else None,
            "outcomes": dict(sorted(totals.tools.items())) if facts.any_tool_row and entry.tools else None,
        },
        "infra": {name: totals.faults[name] for name in RESULTS} if entry.infra and facts.infra_possible else None,
        "blind": _blind(Counter(vote.blind for person in people for vote in person.votes))
        if facts.any_vote_row
        else None,
        "outcome_rows": sum(
            len(rows_of(person, window=ALL_TIME, catalogue=catalogue, rules=rules, constants=constants))
            for person in people
        ),
    }


def _switches(
    episodes: list[tuple[EpisodeFacts, PersonFacts]], catalogue: Catalogue, rules: Rules, constants: Constants
) -> dict[str, Any]:
    families = [opening.family for episode, _ in episodes for opening in episode.openings]
    if families and not any(families):
        return _no_switches()
    causes: Counter[str] = Counter()
    able = 0
    for episode, person in episodes:
        able += switch_of(episode, person, catalogue, rules, constants) is not None
        at = decisive(episode.openings)
        if at is not None:
            causes[cause(episode.openings, at, person.history, catalogue, rules, constants)] += 1
    return {
        "eligible_episodes": able,
        "person_made": sum(n for why, n in causes.items() if why in COUNTING),
        "by_cause": dict(sorted(causes.items())),
    }


def _no_switches() -> dict[str, Any]:
    return {"eligible_episodes": None, "person_made": None, "by_cause": None}


def _conversations(facts: SampleFacts, totals: Totals, entry: Capability) -> int | None:
    if facts.conversations is None:
        return None
    # A gateway may make a session id up for every call: only one that joins requests is a conversation.
    return (len(facts.conversations) if entry.prompts else 0) + totals.sessions


def _blind(votes: Counter[str]) -> dict[str, int]:
    return {"proved": votes["proved"], "attested": votes["attested"], "not_blind": votes["no"]}


def _mode(totals: Totals, judges: list[str], stated: str) -> str:
    if totals.turn_modes:
        modes = totals.turn_modes
    elif judges and len(judges) == sum(totals.event_modes.values()):
        return "interactive" if "person" in judges else "unknown"
    else:
        modes = totals.event_modes
    return min(modes, key=lambda mode: (-modes[mode], MODES.index(mode)), default=stated)


def _kind(people: list[PersonFacts], default: str) -> str:
    kinds = Counter(kind for person in people for kind in person.kinds.values())
    return min(kinds, key=lambda kind: (-kinds[kind], kind), default=default)


def _sum(parts: list[Totals]) -> Totals:
    total = Totals()
    for part in parts:
        for name in Totals.__slots__:
            setattr(total, name, getattr(total, name) + getattr(part, name))
    return total
