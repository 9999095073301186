# SPDX-License-Identifier: Apache-2.0
"""Facts become the outcomes table: trials and successes per person (docs/signals.md, the five signals).

Rules kept here:
* only closed episodes of mode `interactive` in the window count, each in the window in which it closes;
* an episode with two opening models gives no completion trial; a changed model with a cause outside the person gives no
  switch trial; a new model gives neither;
* families outside the catalogue and undecided kinds of work give no row (blind votes may be of kind `other` when the
  layout is pooled);
* a row names its recorder (for faults also the client), so that two loggers are never compared;
* every person's rows follow from that person's events alone.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from windvane_client.capabilities import capability
from windvane_client.completion import ABANDONED, CLEAN_END, EXPLICIT_NO, EXPLICIT_YES
from windvane_client.constants import CONSTANTS, Constants
from windvane_client.infra import LOST, RECOVERED_OTHER, RECOVERED_SAME
from windvane_client.modes import INTERACTIVE
from windvane_client.rules import Rules
from windvane_client.signals import BIT_TRIALS, CLASSED_TRIALS, EpisodeFacts, PersonFacts, read_person
from windvane_client.store import EventStore, Seen
from windvane_client.switches import COUNTING, cause, decisive, eligible
from windvane_privacy.catalogue import OTHER, Catalogue, Signal
from windvane_privacy.outcomes import MAX_RECORDER, MAX_TRIALS, Basis, PersonOutcome

COMPLETED: dict[str, tuple[Basis, bool]] = {
    EXPLICIT_NO: (Basis.EXPLICIT, False),
    EXPLICIT_YES: (Basis.EXPLICIT, True),
    ABANDONED: (Basis.ENDED, False),
    CLEAN_END: (Basis.ENDED, True),
}
_RECOVERED = {RECOVERED_SAME: True, RECOVERED_OTHER: False, LOST: False}

Key = tuple[Signal, str, str, Basis, str, str | None]
"""(signal, kind, recorder, basis, model, against)."""


@dataclass(slots=True)
class WindowEnd:
    """What survives a window that ends at `until` (µs): when each person first and last used a family, and the episodes
    still open then, (person, conv) -> start."""

    until: int
    seen: dict[bytes, dict[str, Seen]] = field(default_factory=dict)
    open_since: dict[tuple[bytes, bytes], int] = field(default_factory=dict)

    def add(self, facts: PersonFacts) -> None:
        """Add one person. Facts read at any moment from `until` on say the same: an episode that was open at `until`
        closes at that time or later, whenever one looks."""
        self.seen[facts.person] = facts.history.seen
        for episode in facts.episodes:
            if episode.opened < self.until and (episode.closed is None or episode.closed >= self.until):
                self.open_since[facts.person, episode.conv] = episode.opened


def build_outcomes(
    store: EventStore,
    *,
    window: tuple[int, int],
    catalogue: Catalogue,
    rules: Rules,
    ids_key: bytes,
    now: int,
    pooled: bool = False,
    constants: Constants = CONSTANTS,
    end: WindowEnd | None = None,
) -> Iterator[PersonOutcome]:
    """The outcomes of a window, sorted by their key, one person in memory at a time.

    `window`: [from, to) in µs. `pooled`: the manifest's layout has the one kind `all`, so blind votes of kind `other`
    count. `ids_key`: the organisation's key, for the order behind the cap of tool calls. `now`: moment of reading, µs.
    `end`: filled on the way, for `retire_window`.
    """
    for person in store.people():
        facts = read_person(store, person, window=window, rules=rules, ids_key=ids_key, now=now, constants=constants)
        if end is not None:
            end.add(facts)
        yield from rows_of(facts, window=window, catalogue=catalogue, rules=rules, pooled=pooled, constants=constants)


def rows_of(
    facts: PersonFacts,
    *,
    window: tuple[int, int],
    catalogue: Catalogue,
    rules: Rules,
    pooled: bool = False,
    constants: Constants = CONSTANTS,
) -> list[PersonOutcome]:
    """One person's rows, sorted by their key."""
    counts: dict[Key, list[int]] = defaultdict(lambda: [0, 0])
    counted = [
        (episode, facts.kinds[episode.workspace])
        for episode in facts.episodes
        if episode.closed is not None and window[0] <= episode.closed < window[1]
    ]
    for episode, kind in counted:
        if kind != OTHER:
            _tools_and_faults(counts, episode, kind)
    comparable = [(episode, kind) for episode, kind in counted if kind != OTHER and episode.mode == INTERACTIVE]
    for episode, kind in comparable:
        _completion(counts, episode, kind, facts, constants)
    _switches(counts, comparable, facts, catalogue, rules, constants)
    _requests(counts, facts, window)
    _votes(counts, facts, window, pooled=pooled)
    rows = [
        PersonOutcome(
            facts.person, signal, kind, recorder, basis, model, against, min(n, MAX_TRIALS), min(k, MAX_TRIALS)
        )
        for (signal, kind, recorder, basis, model, against), (n, k) in counts.items()
        if n and model in catalogue and (against is None or (against in catalogue and against != model))
    ]
    return sorted(rows, key=lambda row: row.key)


def _add(counts: dict[Key, list[int]], key: Key, trials: int, successes: int) -> None:
    entry = counts[key]
    entry[0] += trials
    entry[1] += successes


def _completion(
    counts: dict[Key, list[int]], episode: EpisodeFacts, kind: str, facts: PersonFacts, constants: Constants
) -> None:
    families = {opening.family for opening in episode.openings if opening.family is not None}
    closing = episode.openings[-1].family if episode.openings else None
    outcome = COMPLETED.get(episode.ending.value)
    if outcome is None or closing is None or len(families) != 1 or not episode.can_say.completion:
        return
    if facts.history.is_new(closing, episode.opened, constants):
        return
    basis, success = outcome
    _add(counts, (Signal.COMPLETION, kind, episode.recorder, basis, closing, None), 1, success)


def _tools_and_faults(counts: dict[Key, list[int]], episode: EpisodeFacts, kind: str) -> None:
    entry = episode.can_say
    if entry.tools is not None:
        trials = CLASSED_TRIALS if entry.tools is Basis.CLASSED else BIT_TRIALS
        for (family, outcome), n in episode.tool_counts:
            if outcome in trials:
                key: Key = (Signal.TOOL_RELIABILITY, kind, episode.recorder, entry.tools, family, None)
                _add(counts, key, n, n * trials[outcome])
    if entry.infra:
        # Where only telemetry writes the attempts, it is the one recorder of them.
        own = episode.telemetry is None or capability(episode.source, episode.recorder).infra
        recorder = episode.recorder if own or episode.telemetry is None else episode.telemetry[1]
        for (family, client, result), n in episode.fault_counts:
            _fault(counts, recorder, client, kind, family, result, n)


def _fault(
    counts: dict[Key, list[int]], recorder: str, client: str, kind: str, family: str, result: str, n: int
) -> None:
    if result in _RECOVERED:
        place = f"{recorder}/{client}"[:MAX_RECORDER]
        _add(counts, (Signal.INFRA_RECOVERY, kind, place, Basis.ATTEMPTS, family, None), n, n * _RECOVERED[result])


def _requests(counts: dict[Key, list[int]], facts: PersonFacts, window: tuple[int, int]) -> None:
    """A gateway's requests belong to no episode: each counts in the window in which it ended."""
    for one in facts.requests:
        kind = facts.kinds[one.workspace]
        if kind != OTHER and window[0] <= one.ts < window[1]:
            _fault(counts, one.recorder, one.client, kind, one.family, one.result, 1)


def _switches(
    counts: dict[Key, list[int]],
    episodes: list[tuple[EpisodeFacts, str]],
    facts: PersonFacts,
    catalogue: Catalogue,
    rules: Rules,
    constants: Constants,
) -> None:
    opened: dict[tuple[str, str, Basis], set[str]] = defaultdict(set)
    left: dict[tuple[str, str, Basis, str], Counter[tuple[str | None, str]]] = defaultdict(Counter)
    for episode, kind in episodes:
        entry = episode.can_say
        basis = entry.switch
        if basis is None or not entry.shows_moves:
            continue
        place = (kind, episode.recorder, basis)
        opened[place] |= {opening.family for opening in episode.openings if opening.direct and opening.family}
        change = switch_of(episode, facts, catalogue, rules, constants)
        if change is None:
            continue
        a = episode.openings[0].family
        if a is not None and not facts.history.is_new(a, episode.opened, constants):
            left[*place, a][change] += 1
    for (kind, recorder, basis, a), changes in left.items():
        moves = {change: n for change, n in changes.items() if change[0] is not None}
        unknown = sum(n for (_, why), n in moves.items() if why == "unknown")
        if unknown > constants.unknown_cause_max * sum(moves.values()):
            continue
        trials = sum(n for (target, why), n in changes.items() if target is None or why in COUNTING)
        for b in opened[kind, recorder, basis] - {a}:
            gone = sum(n for (target, why), n in moves.items() if target == b and why in COUNTING)
            _add(counts, (Signal.SWITCH_AWAY, kind, recorder, basis, a, b), trials, trials - gone)


def switch_of(
    episode: EpisodeFacts, facts: PersonFacts, catalogue: Catalogue, rules: Rules, constants: Constants
) -> tuple[str | None, str] | None:
    """(target, cause) of an eligible closed episode, (None, "stayed") where it was not left; None if not eligible."""
    found = episode.openings
    if episode.closed is None:
        return None
    choices = facts.history.choices(episode.closed, catalogue, constants, facts.kept)
    if not eligible(found, choices, catalogue, constants):
        return None
    at = decisive(found)
    if at is None:
        return None, "stayed"
    return found[at].family, cause(found, at, facts.history, catalogue, rules, constants)


def _votes(counts: dict[Key, list[int]], facts: PersonFacts, window: tuple[int, int], *, pooled: bool) -> None:
    for vote in facts.votes:
        basis = capability(vote.source, vote.recorder).blind
        kind = facts.kinds[vote.workspace]
        if basis is None or vote.blind not in ("proved", "attested") or vote.judge != "person" or vote.a == vote.b:
            continue
        if vote.winner not in ("a", "b") or not window[0] <= vote.ts < window[1] or (kind == OTHER and not pooled):
            continue
        strength = basis if vote.blind == "proved" else Basis.ATTESTED
        for model, against, won in ((vote.a, vote.b, vote.winner == "a"), (vote.b, vote.a, vote.winner == "b")):
            _add(counts, (Signal.BLIND_QUALITY, kind, vote.recorder, strength, model, against), 1, won)


def retire_window(
    store: EventStore,
    *,
    window: tuple[int, int],
    rules: Rules,
    ids_key: bytes,
    now: int,
    constants: Constants = CONSTANTS,
    end: WindowEnd | None = None,
) -> int:
    """Delete a window's rows once its round is over; the number of copies deleted.

    What survives: when each person first and last used a family, and the episodes still open at the window's end.
    `end`: the same from an earlier reading of the same events under the same rules; without it they are read again.
    """
    until = window[1]
    with store.transaction():
        if end is None:
            end = WindowEnd(until)
            for person in store.people():
                end.add(read_person(
                    store, person, window=window, rules=rules, ids_key=ids_key, now=now, constants=constants
                ))  # fmt: skip
        for person, seen in end.seen.items():
            store.keep_first_seen(person, seen)
        store.forget_unused(until - constants.first_seen_kept)
        return store.delete_window(until, end.open_since)
