# SPDX-License-Identifier: Apache-2.0
"""How an episode ended: one class each, first hit wins (docs/signals.md, completion).

Rules kept here:
* explicit evidence first; then how the main thread ended; everything else is `unknown`, never success or failure;
* a clean end needs an end record of the last turn that a person opened, an answer in it, and nothing
  pending or after it;
* a call that waits for its result means "abandoned" only where the log goes on elsewhere; else the file may be cut;
* what was taken back (rewound) tells nothing about the end.
"""

from __future__ import annotations

from dataclasses import dataclass

from windvane_client.capabilities import capability
from windvane_client.episodes import Episode, Turn
from windvane_client.events import MAIN, AnyEvent, AttemptError, Call, Gap, Prompt, Tool, TurnEnd

EXPLICIT_NO, EXPLICIT_YES, ABANDONED, CLEAN_END, UNKNOWN = (
    "explicit_no", "explicit_yes", "abandoned", "clean_end", "unknown",
)  # fmt: skip
CLASSES = (EXPLICIT_NO, EXPLICIT_YES, ABANDONED, CLEAN_END, UNKNOWN)
_NO = frozenset({"rejected", "failed"})
_STOPPED = frozenset({"interrupted", "error", "limit"})
_HIDES = frozenset({"rows_rejected", "files_missing", "retention_cut", "source_silent"})


@dataclass(frozen=True, slots=True)
class Ending:
    """Class of an episode and the names of the evidence that led to it (names of fields or events, never values)."""

    value: str
    evidence: tuple[str, ...]


def ending(episode: Episode) -> Ending:
    """The class of one episode; an open episode is `unknown`."""
    # One kind of evidence may be written again: its latest word counts (a goal that failed and was then met).
    latest = {outcome.evidence: outcome.value for outcome in episode.outcomes}
    if latest:
        bad = tuple(sorted(name for name, value in latest.items() if value in _NO))
        return Ending(EXPLICIT_NO, bad) if bad else Ending(EXPLICIT_YES, tuple(sorted(latest)))
    if episode.closed is None:
        return Ending(UNKNOWN, ("still_open",))
    if episode.cut or any(isinstance(e, Gap) and e.what in _HIDES for e in episode.turns[-1].events):
        return Ending(UNKNOWN, ("rows_hidden",))
    live = [turn for turn in episode.turns if not turn.rewound]
    found = _tail(live)
    if found is not None and _offered(*found):
        # The person's next task accepts what was offered; silence says nothing.
        return Ending(EXPLICIT_YES, ("next_task",)) if episode.how == "new_conv" else Ending(UNKNOWN, ("no_reaction",))
    if found is None:
        return Ending(UNKNOWN, ("no_answer",))
    turn, tail = found
    if isinstance(tail, TurnEnd) and tail.how in _STOPPED:
        return Ending(ABANDONED, (f"turn_end_{tail.how}",))
    if isinstance(tail, Tool) and tail.outcome == "denied":
        return Ending(ABANDONED, ("tool_denied",))
    if isinstance(tail, AttemptError) and tail.final:
        return Ending(ABANDONED, ("final_error",))
    if _pending(tail):
        return Ending(ABANDONED, ("call_pending",)) if episode.goes_on else Ending(UNKNOWN, ("log_may_be_cut",))
    if isinstance(tail, TurnEnd) and tail.how == "clean" and turn is next((t for t in reversed(live) if t.opens), None):
        if not any(isinstance(e, Call) and e.thread == MAIN and e.status == "ok" for e in turn.events):
            return Ending(UNKNOWN, ("no_answer",))
        if any(e.thread == MAIN and _pending(e) for e in turn.events):
            return Ending(UNKNOWN, ("call_pending",))
        return Ending(CLEAN_END, ("turn_end_clean",))
    return Ending(UNKNOWN, ("no_end_record",))


def _offered(turn: Turn, tail: AnyEvent) -> bool:
    clean = isinstance(tail, TurnEnd) and tail.how == "clean"
    return clean and capability(turn.prompt.source, turn.prompt.recorder).offers


def _pending(event: AnyEvent) -> bool:
    return isinstance(event, Tool) and event.outcome == "no_result" and event.result_ts is None


def _tail(turns: list[Turn]) -> tuple[Turn, AnyEvent] | None:
    """The last thing on the main thread that tells how it ended, and its turn; None after an unanswered prompt."""
    found: tuple[tuple[int, int], Turn, AnyEvent] | None = None
    for turn in turns:
        for event in (turn.prompt, *turn.events):
            if event.thread != MAIN or not isinstance(event, Prompt | Call | Tool | AttemptError | TurnEnd):
                continue
            if isinstance(event, Prompt) and event is not turn.prompt:
                continue
            if isinstance(event, Prompt) and not turn.opens:
                continue  # harness text without an answer changes nothing
            at = event.result_ts if isinstance(event, Tool) and event.result_ts is not None else event.ts
            place = (at or 0, event.seq)
            # Equal time and place: what the turn yields comes after what opened it, an end record after all.
            if found is None or place[0] > found[0][0] or (place[0] == found[0][0] and not _outranks(found[2], event)):
                found = (place, turn, event)
    if found is None or isinstance(found[2], Prompt):
        return None
    return found[1], found[2]


def _outranks(known: AnyEvent, event: AnyEvent) -> bool:
    return isinstance(known, TurnEnd) and not isinstance(event, TurnEnd | Prompt)
