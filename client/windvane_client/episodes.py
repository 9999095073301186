# SPDX-License-Identifier: Apache-2.0
"""Conversations cut into episodes, our unit of work (docs/signals.md, episode).

Rules kept here:
* an episode opens at a prompt or a command of a person and closes explicitly, at a new conversation, or after the idle
  limit without any event of either side; time in which a tool call waits for its result is not idle;
* events before the first opening, or without a time, belong to no episode;
* a turn whose prompt is no ancestor of the last human prompt was taken back; where the chain is broken, nothing was;
* closes are placed where they happen (last event + idle limit), so that an episode counts once, in one window;
* a rating that comes after the close still belongs to the episode, for a bounded time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter

from windvane_client.constants import Constants
from windvane_client.events import (
    MAIN,
    OPENING_ORIGINS,
    PERSON_ORIGINS,
    AnyEvent,
    AttemptError,
    Call,
    Close,
    Gap,
    ModelSet,
    Outcome,
    Prompt,
    Tool,
    TurnEnd,
    Vote,
)
from windvane_client.merge import structs_of
from windvane_client.store import Conversation

_MAX_TIES = 64
_WORK = structs_of(Call, Tool, AttemptError, TurnEnd)
"""Kinds that only go on with an episode: three events of four."""
_TOOL = structs_of(Tool)
_TIME = attrgetter("ts")
OPEN = ""


@dataclass(slots=True)
class Turn:
    """From one prompt on the main thread to the next. `events`: both threads, in order, without the prompt."""

    prompt: Prompt
    events: list[AnyEvent] = field(default_factory=list)
    rewound: bool = False

    @property
    def opens(self) -> bool:
        """A person's prompt or command opened it, not a program or the harness."""
        return self.prompt.origin in OPENING_ORIGINS

    @property
    def by_person(self) -> bool:
        """A person wrote its prompt (commands may set a model, so they never tell a choice)."""
        return self.prompt.origin in PERSON_ORIGINS


@dataclass(slots=True)
class Episode:
    """One unit of work. Times are µs. `last`: end of the last event, or of the tool call that was still running.

    `closed` is None and `how` empty while it is open. `goes_on`: the log is known to continue after it.
    """

    turns: list[Turn]
    opened: int
    last: int
    closed: int | None = None
    how: str = OPEN
    goes_on: bool = False
    outcomes: list[Outcome] = field(default_factory=list)
    cut: bool = False
    """Rows of its last turn could not be read."""


@dataclass(slots=True)
class Split:
    """A conversation's episodes in order, and the events that belong to none."""

    episodes: list[Episode] = field(default_factory=list)
    outside: list[AnyEvent] = field(default_factory=list)
    parent_missing: bool = False


def split(conversation: Conversation, constants: Constants) -> Split:
    """Cut one conversation. The last episode stays open: `close_last` decides later."""
    result = Split()
    if conversation.conv is None:
        result.outside = list(conversation.events)
        return result
    cutter = _Cutter(result, constants)
    for event in _by_parent(conversation.events):
        cutter.take(event)
    _mark_rewound(result, conversation.events, conversation.links)
    return result


def close_last(result: Split, now: int, next_start: int | None, constants: Constants) -> None:
    """Close the last episode if it is over at `now` (µs).

    `next_start`: when the same person first opened another conversation in the same client after the episode's last
    event; None if never.
    """
    if not result.episodes:
        return
    episode = result.episodes[-1]
    episode.goes_on = episode.goes_on or next_start is not None
    if episode.closed is not None:
        return
    idle_at = episode.last + constants.idle
    if next_start is not None and next_start < idle_at:
        episode.closed, episode.how = next_start, "new_conv"
    elif now >= idle_at:
        episode.closed, episode.how = idle_at, "idle"


class _Cutter:
    def __init__(self, result: Split, constants: Constants) -> None:
        self.result = result
        self.constants = constants
        self.episode: Episode | None = None

    def take(self, event: AnyEvent) -> None:
        ts = event.ts
        if ts is not None and type(event) in _WORK:
            if self.episode is None:
                self.result.outside.append(event)
            else:
                self.episode.turns[-1].events.append(event)
                self._seen(event, ts)
        elif isinstance(event, Gap):
            self._gap(event)
        elif event.ts is None or isinstance(event, Vote):
            self.result.outside.append(event)
        elif isinstance(event, Prompt) and event.thread == MAIN:
            self._prompt(event, event.ts)
        elif isinstance(event, Outcome):
            self._outcome(event, event.ts)
        elif isinstance(event, Close):
            if self.episode is not None:
                self._close(min(event.ts, self.episode.last + self.constants.idle), self._how(event, event.ts))
        elif self.episode is None:
            self.result.outside.append(event)
        else:
            self.episode.turns[-1].events.append(event)
            # A model command alone, long after the work, does not keep the episode alive.
            if not isinstance(event, ModelSet) or not self._idle(event.ts):
                self._seen(event, event.ts)

    def _idle(self, ts: int) -> bool:
        return self.episode is not None and ts - self.episode.last >= self.constants.idle

    def _how(self, event: Close, ts: int) -> str:
        return "idle" if self._idle(ts) else event.how

    def _seen(self, event: AnyEvent, ts: int) -> None:
        if self.episode is not None:
            self.episode.last = max(self.episode.last, ts)
            if type(event) in _TOOL and isinstance(event, Tool) and event.result_ts is not None:
                self.episode.last = max(self.episode.last, event.result_ts)

    def _close(self, at: int, how: str) -> None:
        if self.episode is not None:
            self.episode.closed, self.episode.how = at, how
            self.episode = None

    def _prompt(self, prompt: Prompt, ts: int) -> None:
        if self._idle(ts) and self.episode is not None:
            self._close(self.episode.last + self.constants.idle, "idle")
        opens = prompt.origin in OPENING_ORIGINS
        if self.episode is None:
            if not opens:
                self.result.outside.append(prompt)
                return
            if self.result.episodes:
                self.result.episodes[-1].goes_on = True
            self.episode = Episode([], ts, ts)
            self.result.episodes.append(self.episode)
        if prompt.origin == "system" and not _ended(self.episode.turns[-1]):
            self.episode.turns[-1].events.append(prompt)  # a summary or notice inside a turn that is still at work
        else:
            self.episode.turns.append(Turn(prompt))
        self._seen(prompt, ts)

    def _outcome(self, event: Outcome, ts: int) -> None:
        if not self.result.episodes:
            self.result.outside.append(event)
            return
        episode = self.result.episodes[-1]
        closed = episode.closed if episode.closed is not None else episode.last + self.constants.idle
        if ts - closed <= self.constants.late_evidence:
            episode.outcomes.append(event)
        if self.episode is not None and not self._idle(ts):
            self._seen(event, ts)

    def _gap(self, event: Gap) -> None:
        if self.result.episodes:
            episode = self.result.episodes[-1]
            episode.turns[-1].events.append(event)
            if event.ts is None:
                episode.cut = True  # it may have been anywhere, so also in the last turn
        else:
            self.result.outside.append(event)


def _ended(turn: Turn) -> bool:
    main = [event for event in turn.events if event.thread == MAIN and isinstance(event, Call | Tool | TurnEnd)]
    return bool(main) and isinstance(main[-1], TurnEnd)


def _by_parent(events: Sequence[AnyEvent]) -> list[AnyEvent]:
    """Order inside equal times: a row never stands before the row that it answers."""
    ordered: list[AnyEvent] = []
    for ts, group in groupby(events, key=_TIME):
        run = list(group)
        if ts is None or not 1 < len(run) <= _MAX_TIES or _in_order(run):
            ordered += run
            continue
        while run:
            rows = [event.row for event in run if event.row is not None]
            free = next((e for e in run if e.parent is None or e.parent == e.row or e.parent not in rows), run[0])
            run.remove(free)
            ordered.append(free)
    return ordered


def _in_order(run: Sequence[AnyEvent]) -> bool:
    """Whether every row of the run already stands behind the row that it answers."""
    behind: set[bytes] = set()
    for event in reversed(run):
        if event.parent is not None and event.parent != event.row and event.parent in behind:
            return False
        if event.row is not None:
            behind.add(event.row)
    return True


def _mark_rewound(result: Split, events: Sequence[AnyEvent], links: Mapping[bytes, bytes | None]) -> None:
    # An answer always answers something: where no answer names a parent, the log does not link its rows.
    if not any(isinstance(e, Call) and e.row is not None and links.get(e.row) is not None for e in events):
        return
    turns = [turn for episode in result.episodes for turn in episode.turns if turn.opens]
    last = next((turn for turn in reversed(turns) if turn.by_person and turn.prompt.row is not None), None)
    if last is None or last.prompt.row is None:
        return
    ancestors: set[bytes] = set()
    row: bytes | None = last.prompt.row
    while row is not None and row not in ancestors:
        if row not in links:
            result.parent_missing = True
            return
        ancestors.add(row)
        row = links[row]
    for turn in turns:
        turn.rewound = turn.prompt.row is not None and turn.prompt.row not in ancestors
