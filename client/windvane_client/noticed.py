# SPDX-License-Identifier: Apache-2.0
"""What reading notices about the logs on the way, for the warnings that need a person (`attention`).

Rules kept here:
* only counts, families of models and keyed ids are kept; no name and no text of a log; memory is bounded;
* what several files told adds up, whichever process read them;
* it imports nothing of what is built from events: a process that only reads starts in a tenth of a second.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from windvane_client.capabilities import NO_ATTEMPTS, capability
from windvane_client.events import MAIN, AnyEvent, Call, Prompt, Vote
from windvane_privacy.catalogue import OTHER, SPECIAL_FAMILIES

_MAX_SESSIONS: Final = 65_536
_MAX_ALIKE: Final = 1024
_PROMPTS_AND_VOTES: Final = frozenset({Prompt, Vote})


@dataclass(slots=True)
class Told:
    """`Noticed` of one file in plain values, for the process that asked for it."""

    counts: list[tuple[str, str, int]] = field(default_factory=list)
    """(name of a counter of calls, source, calls)."""
    prompts: list[tuple[str, str, int]] = field(default_factory=list)
    votes: list[tuple[str, bool, int]] = field(default_factory=list)
    families: list[str] = field(default_factory=list)
    people: list[bytes] = field(default_factory=list)
    nobody: int = 0
    sessions: list[tuple[str, bytes, int]] = field(default_factory=list)


_OF_CALLS: Final = ("calls", "loose", "unlisted", "no_attempts")


@dataclass(slots=True)
class Noticed:
    """What reading noticed, by source. `people`: who was seen; `nobody`: events of nobody that people.toml names."""

    calls: Counter[str] = field(default_factory=Counter)
    loose: Counter[str] = field(default_factory=Counter)
    """Calls without a session id."""
    unlisted: Counter[str] = field(default_factory=Counter)
    """Calls whose model the list does not know."""
    no_attempts: Counter[str] = field(default_factory=Counter)
    """Calls from logs that write no retries although the program could."""
    prompts: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Prompts by (source, mode); of a gateway, which sees none, its calls."""
    votes: Counter[tuple[str, bool]] = field(default_factory=Counter)
    """Votes by (source, whether a rule or tag named a kind of work)."""
    families: set[str] = field(default_factory=set)
    people: set[bytes] = field(default_factory=set)
    nobody: int = 0
    sessions: dict[str, dict[bytes, int]] = field(default_factory=lambda: defaultdict(dict))
    """Calls by session id of a gateway, which may make one up for every call."""

    def watch(self, events: Iterable[AnyEvent]) -> Iterator[AnyEvent]:
        """The same events, noticed on the way; all of them are, once the last one is given."""
        # Events of one conversation are alike in what is noticed: they are counted first, and looked at once.
        alike: dict[tuple[object, ...], list[int]] = {}
        first: list[AnyEvent] = []
        for event in events:
            if isinstance(event, Call):
                about = (
                    event.conv, event.person, event.served, event.mode, event.thread, event.source, event.recorder,
                    event.reader,
                )  # fmt: skip
                times = alike.get(about)
                if times is None:
                    if len(alike) >= _MAX_ALIKE:
                        self._see_all(first, alike)
                    alike[about] = [1]
                    first.append(event)
                else:
                    times[0] += 1
            elif type(event) in _PROMPTS_AND_VOTES:
                self.see(event)
            yield event
        self._see_all(first, alike)

    def _see_all(self, first: list[AnyEvent], alike: dict[tuple[object, ...], list[int]]) -> None:
        for event, (times,) in zip(first, alike.values(), strict=True):
            self.see(event, times)
        first.clear()
        alike.clear()

    def see(self, event: AnyEvent, times: int = 1) -> None:
        """Notice one event, or so many that are alike."""
        if event.person is None:
            self.nobody += times
        else:
            self.people.add(event.person)
        if isinstance(event, Call):
            self._call(event, times)
        elif isinstance(event, Prompt) and event.thread == MAIN:
            self.prompts[event.source, event.mode] += times
        elif isinstance(event, Vote):
            self.votes[event.source, event.kind_hint not in (None, OTHER)] += times

    def _call(self, event: Call, times: int) -> None:
        source, entry = event.source, capability(event.source, event.recorder)
        self.calls[source] += times
        self.no_attempts[source] += times if entry.infra and event.reader.endswith(NO_ATTEMPTS) else 0
        if event.served in SPECIAL_FAMILIES:
            self.unlisted[source] += times
        elif event.thread == MAIN:
            self.families.add(event.served)
        if not entry.prompts:
            self.prompts[source, event.mode] += times
        if event.conv is None:
            self.loose[source] += times
        elif not entry.prompts:
            known = self.sessions[source]
            if event.conv in known or len(known) < _MAX_SESSIONS:
                known[event.conv] = known.get(event.conv, 0) + times

    def told(self) -> Told:
        """What was noticed, in plain values."""
        return Told(
            [(name, source, n) for name in _OF_CALLS for source, n in getattr(self, name).items()],
            [(source, mode, n) for (source, mode), n in self.prompts.items()],
            [(source, named, n) for (source, named), n in self.votes.items()],
            sorted(self.families),
            sorted(self.people),
            self.nobody,
            [(source, conv, n) for source, known in self.sessions.items() for conv, n in known.items()],
        )

    def absorb(self, told: Told) -> None:
        """Add what another file told."""
        for name, source, n in told.counts:
            getattr(self, name)[source] += n
        for source, mode, n in told.prompts:
            self.prompts[source, mode] += n
        for source, named, n in told.votes:
            self.votes[source, named] += n
        self.families.update(told.families)
        self.people.update(told.people)
        self.nobody += told.nobody
        for source, conv, n in told.sessions:
            known = self.sessions[source]
            if conv in known or len(known) < _MAX_SESSIONS:
                known[conv] = known.get(conv, 0) + n

    def without_session(self, source: str) -> int:
        """Calls that no session id joins to another one."""
        return self.loose[source] + sum(n == 1 for n in self.sessions.get(source, {}).values())
