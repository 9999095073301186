# SPDX-License-Identifier: Apache-2.0
"""Where the agent takes a window's outcomes from, and how the window's events end.

Rules kept here:
* outcomes are a function of the stored events and the manifest's window: asking again gives the same table;
* only evidence up to the collection deadline counts, whenever the question is asked;
* a person who opted out has no outcome, is not charged and gives no vote, whatever was collected before;
* when the round is over, its events are deleted, and the collectors' files that held them; what stays is which model
  families a person has used before;
* what stays is noted while the outcomes are built, and used only if no event and no rule has changed since.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from windvane_client.collected_files import delete_collected
from windvane_client.outcomes_table import WindowEnd, build_outcomes, retire_window
from windvane_client.rules import Rules, load_rules
from windvane_client.state import MemberState
from windvane_client.store import EventStore
from windvane_privacy.manifest import Manifest, parse_time
from windvane_privacy.outcomes import PersonOutcome

RETIRED = "retired_until"


class Evidence(Protocol):
    """The member's own outcomes; they never leave this machine."""

    def outcomes(self, manifest: Manifest) -> Sequence[PersonOutcome]:
        """The outcomes table of the manifest's window."""
        ...

    def forget(self, events_from: str, events_to: str) -> None:
        """Delete the events of the window [from, to), RFC 3339; again is harmless."""
        ...


class StoredEvidence:
    """Outcomes of the event store in a member's state."""

    def __init__(self, state: MemberState) -> None:
        self._state = state
        self._built: tuple[str, tuple[PersonOutcome, ...]] | None = None
        self._end: tuple[int, Rules, WindowEnd] | None = None

    def outcomes(self, manifest: Manifest) -> Sequence[PersonOutcome]:
        """See `Evidence`. A member that has collected nothing has an empty table."""
        # The draw and the end of a round ask for the same frozen table; it is built once while this object lives.
        if self._built is None or self._built[0] != manifest.sha256:
            self._built = (manifest.sha256, self._build(manifest))
        return self._built[1]

    def _build(self, manifest: Manifest) -> tuple[PersonOutcome, ...]:
        if not self._state.collection.exists():
            return ()
        window = micros(parse_time(manifest.events.from_)), micros(parse_time(manifest.events.to))
        now, rules, end = micros(parse_time(manifest.collection_deadline)), self._rules(), WindowEnd(window[1])
        with EventStore.open(self._state.collection) as store:
            rows = tuple(
                build_outcomes(
                    store,
                    window=window,
                    catalogue=manifest.catalogue,
                    rules=rules,
                    ids_key=self._state.k_org,
                    now=now,
                    pooled=manifest.pooled,
                    end=end,
                )
            )
            self._end = (store.revision, rules, end) if now >= window[1] else None
        gone = self._opted_out()
        return tuple(row for row in rows if row.person not in gone)

    def forget(self, events_from: str, events_to: str) -> None:
        """See `Evidence`."""
        self._built = None
        known, self._end = self._end, None
        if not self._state.collection.exists():
            return
        window = micros(parse_time(events_from)), micros(parse_time(events_to))
        with EventStore.open(self._state.collection) as store:
            if retired_until(store) >= window[1]:
                return
            rules, end = self._rules(), None
            if known is not None and known[:2] == (store.revision, rules) and known[2].until == window[1]:
                end = known[2]
            with store.transaction():
                retire_window(store, window=window, rules=rules, ids_key=self._state.k_org, now=window[1], end=end)
                store.set_fact(RETIRED, str(window[1]))
            delete_collected(store, self._state.ids, self._state.settings.logs, window[1])

    def _opted_out(self) -> frozenset[bytes]:
        # Whoever opted out before the draw is out of it, also with what was collected before.
        ids = self._state.ids
        return frozenset(ids.staff(staff_id) for staff_id in self._state.people.excluded_staff)

    def _rules(self) -> Rules:
        return load_rules(self._state.folder).with_people(self._state.ids.staff)


def retired_until(store: EventStore) -> int:
    """End of the newest window whose events are deleted, µs; 0 before the first."""
    return int(store.fact(RETIRED) or 0)


def micros(moment: datetime) -> int:
    """Microseconds since 1970, UTC."""
    return round(moment.timestamp() * 1_000_000)
