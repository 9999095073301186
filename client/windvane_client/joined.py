# SPDX-License-Identifier: Apache-2.0
"""One conversation written by two programs: each kind of event from the first of them that tells it.

Rules kept here:
* a transcript comes before telemetry, telemetry before a gateway: one prompt is never two turns; of Gemini CLI the
  telemetry comes first, since its session files name no mode;
* what only the later one tells (the failed attempts of Codex) is taken from there;
* an episode can say what telemetry says only where telemetry was on in every turn of it;
* decided inside one conversation of one person, by the kinds of event that are there, never by their content;
* events without a conversation are no conversation together: none of them stands for another.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

from windvane_client.capabilities import Capability, attempts_known, capability, together
from windvane_client.constants import MINUTE
from windvane_client.episodes import Episode
from windvane_client.events import MAIN, AnyEvent, AttemptError, Gap

_LAST = 3
_AFTER_TELEMETRY = frozenset({"litellm", "langfuse", "mapping", "gemini_cli"})
"""Gateways, and the session files of Gemini CLI: its telemetry says more, above all whether a person is there."""


def first_tellers(events: Sequence[AnyEvent]) -> list[AnyEvent]:
    """The events of one conversation without what a later kind of recorder says again. Gaps stay: each is its own."""
    ranks = {source: _rank(source) for source in {event.source for event in events}}
    if len(set(ranks.values())) < 2:
        return list(events)
    best: dict[str, int] = {}
    placed = [(event, _kind(event), ranks[event.source] + _hides_attempts(event)) for event in events]
    for _, kind, rank in placed:
        best[kind] = min(rank, best.get(kind, rank))
    return [event for event, kind, rank in placed if isinstance(event, Gap) or rank == best[kind]]


def _hides_attempts(event: AnyEvent) -> int:
    """A log that writes some failures, and not the attempts, stands behind one that writes them."""
    return _LAST * (isinstance(event, AttemptError) and not attempts_known(event))


@dataclass(slots=True)
class Telemetry:
    """Telemetry beside a transcript in one conversation: who wrote it, and when (µs, in order)."""

    source: str = ""
    recorder: str = ""
    times: list[int] = field(default_factory=list)

    def covers(self, episode: Episode) -> bool:
        """Whether it was on in every turn that the person opened: near the prompt or later in the turn."""
        starts = [turn.prompt.ts or 0 for turn in episode.turns if turn.opens]
        ends = [*starts[1:], episode.last + MINUTE]
        return bool(self.times) and all(
            bisect_left(self.times, start - MINUTE) < bisect_left(self.times, end)
            for start, end in zip(starts, ends, strict=True)
        )


def telemetry_of(events: Sequence[AnyEvent]) -> Telemetry:
    """The telemetry in a conversation that a transcript tells as well; empty where only one of them is there."""
    told = [event for event in events if _rank(event.source) == 1 and event.ts and event.thread == MAIN]
    if not told or not any(_rank(event.source) == 0 for event in events):
        return Telemetry()
    return Telemetry(told[0].source, told[0].recorder, sorted(event.ts or 0 for event in told))


def entry_of(source: str, recorder: str, telemetry: tuple[str, str] | None) -> Capability:
    """What an episode can say: its own log's entry, and what telemetry of the same turns adds."""
    own = capability(source, recorder)
    return own if telemetry is None else together([own, capability(*telemetry)])


def _kind(event: AnyEvent) -> str:
    return str(event.__struct_config__.tag)


def _rank(source: str) -> int:
    if source.startswith("otlp"):
        return 1
    return 2 if source in _AFTER_TELEMETRY else 0
