# SPDX-License-Identifier: Apache-2.0
"""Coverage: what the events of each recorder and week hold and what they could not say (docs/signals.md, coverage).

Rules kept here:
* every count is kept for one (person, recorder, ISO week) and added up over people; nothing else is kept of a person;
* where several people share a store, a count behind which fewer than `LEAST_PEOPLE` people stand reads "too few";
* days and weeks are UTC; a day without any row of a recorder is said, never filled in;
* while a round is open, nothing about outcomes is counted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

from windvane_client.constants import CONSTANTS, DAY, SECOND, Constants
from windvane_client.events import MAIN, AnyEvent, Call, Gap, Prompt, Rows, Tool
from windvane_client.merge import KIND_NAMES, kind_number
from windvane_client.rules import Rules
from windvane_client.signals import PersonFacts
from windvane_client.store import EventStore
from windvane_client.switches import cause, decisive
from windvane_privacy.catalogue import OTHER, UNKNOWN, Catalogue

LEAST_PEOPLE: Final = 10
TOO_FEW: Final = "too few"
COUNTED: Final = ("events", "prompts", "calls", "days", "gaps")
"""What is counted of the rows: events by kind, prompts by mode, answers by whether the model is listed, days without
any row between a person's first and last, and what could not be seen."""
OUTCOMES: Final = ("episodes", "closes", "changes", "tools", "infra")
"""What is counted of the outcomes: episodes by class and by how they closed, changes of model by cause, tool calls by
outcome, faults by result."""
NO_ROWS: Final = "without_rows"

Place = tuple[str, str, str, str]
"""(recorder, week, what is counted, word)."""


@dataclass(slots=True)
class Coverage:
    """Counts by place, the people behind each, and the people behind each (recorder, week)."""

    people: int = 0
    counts: Counter[Place] = field(default_factory=Counter)
    behind: Counter[Place] = field(default_factory=Counter)
    active: Counter[tuple[str, str]] = field(default_factory=Counter)
    moves: defaultdict[tuple[str, str], list[int]] = field(default_factory=lambda: defaultdict(list))
    """When people left a family for another one for the last time (`last_moves`), by pair."""

    def add(self, own: Mapping[Place, int]) -> None:
        """One more person's counts."""
        self.people += 1
        for place, n in own.items():
            self.counts[place] += n
            self.behind[place] += 1
        self.active.update({place[:2] for place in own if place[2] == "events"})

    def shown(self, place: Place) -> int | str:
        """The count of a place, or "too few" where several people share the store and few of them are behind it."""
        return self._shown(self.counts[place], self.behind[place])

    def people_of(self, recorder: str, week: str) -> int | str:
        """People with rows of a recorder in a week."""
        return self._shown(self.active[recorder, week], self.active[recorder, week])

    def weeks(self) -> list[tuple[str, str]]:
        """(recorder, week) in order."""
        return sorted({place[:2] for place in self.counts})

    def words(self, recorder: str, what: str, week: str | None = None) -> dict[str, int | str]:
        """Counts of one kind by word, of a week or of all weeks together."""
        found: dict[str, int | str] = {}
        for place in sorted(self.counts):
            if place[0] == recorder and place[2] == what and week in (None, place[1]):
                n, known = self.shown(place), found.get(place[3], 0)
                # A sum of which a part is hidden would tell the part.
                found[place[3]] = n + known if isinstance(n, int) and isinstance(known, int) else TOO_FEW
        return found

    def _shown(self, count: int, people: int) -> int | str:
        return TOO_FEW if self.people > 1 and people < LEAST_PEOPLE else count


def take(
    found: Coverage,
    store: EventStore,
    person: bytes,
    facts: PersonFacts | None,
    *,
    catalogue: Catalogue,
    rules: Rules,
    constants: Constants = CONSTANTS,
) -> None:
    """Add one person of a store. `facts`: what was read of the person; None while a round is open."""
    own = _rows(store, person, catalogue, outcomes=facts is not None)
    if facts is not None:
        _episodes(own, facts, catalogue, rules, constants)
        for pair, ts in last_moves(facts).items():
            found.moves[pair].append(ts)
    found.add(own)


def last_moves(facts: PersonFacts) -> dict[tuple[str, str], int]:
    """(A, B) -> when a person first opened a turn on B after the last one on A (µs), for every A that was left."""
    last = {family: ts for ts, family in facts.history.openings}
    after: tuple[int, str] | None = None
    found: dict[tuple[str, str], int] = {}
    for ts, family in reversed(facts.history.openings):
        if after is not None and last[family] == ts and after[1] != family:
            found[family, after[1]] = after[0]
        after = ts, family
    return found


def _rows(store: EventStore, person: bytes, catalogue: Catalogue, *, outcomes: bool = False) -> Counter[Place]:
    own: Counter[Place] = Counter()
    days: defaultdict[str, set[int]] = defaultdict(set)
    for conversation in store.conversations(person):
        for event in conversation.events:
            recorder, ts = event.recorder, event.ts
            week = "" if ts is None else week_of(ts // DAY)
            own[recorder, week, "events", KIND_NAMES[kind_number(event)]] += 1
            if ts is not None and not isinstance(event, Gap):
                days[recorder].add(ts // DAY)
            word = _word(event, catalogue)
            if word is not None and (outcomes or word[0] != "tools"):
                own[recorder, week, *word] += 1
    for recorder, there in days.items():
        for day in range(min(there), max(there)):
            if day not in there:
                own[recorder, week_of(day), "days", NO_ROWS] += 1
    return own


def _word(event: AnyEvent, catalogue: Catalogue) -> tuple[str, str] | None:
    if isinstance(event, Tool):
        return "tools", event.outcome
    if isinstance(event, Prompt) and event.thread == MAIN:
        return "prompts", event.mode
    if isinstance(event, Call) and event.status == "ok":
        return "calls", "listed" if event.served in catalogue else OTHER if event.served == OTHER else UNKNOWN
    return ("gaps", event.what) if isinstance(event, Gap) else None


def _episodes(
    own: Counter[Place], facts: PersonFacts, catalogue: Catalogue, rules: Rules, constants: Constants
) -> None:
    for episode in facts.episodes:
        recorder, week = episode.recorder, week_of(episode.opened // DAY)
        own[recorder, week, "episodes", episode.ending.value] += 1
        own[recorder, week, "closes", episode.how or "open"] += 1
        at = decisive(episode.openings)
        if at is not None:
            own[recorder, week, "changes", cause(episode.openings, at, facts.history, catalogue, rules, constants)] += 1
        for (_, _, result), n in episode.fault_counts:
            own[recorder, week, "infra", result] += n
    for request in facts.requests:
        own[request.recorder, week_of(request.ts // DAY), "infra", request.result] += 1


@lru_cache(maxsize=4096)
def week_of(day: int) -> str:
    """ISO week of a day (days since 1970, UTC), such as `2026-W27`."""
    year, week, _ = datetime.fromtimestamp(day * DAY // SECOND, UTC).isocalendar()
    return f"{year}-W{week:02d}"


def coverage_json(found: Coverage, rows: Sequence[tuple[str, Rows]], unmapped: int) -> dict[str, Any]:
    """The key `coverage` of `preview --json`. `rows`: row counts by source; `unmapped`: rows of identities that no
    entry of people.toml names."""
    return {
        "people": found.people,
        "rows_of_unmapped_people": unmapped,
        "rows": [
            {"source": source, **{name: getattr(one, name) for name in Rows.FIELDS}, "reasons": dict(one.reasons)}
            for source, one in rows
        ],
        "weeks": [
            {
                "recorder": recorder,
                "week": week or None,
                "people": found.people_of(recorder, week),
                **{what: found.words(recorder, what, week) for what in (*COUNTED, *OUTCOMES)},
            }
            for recorder, week in found.weeks()
        ],
    }
