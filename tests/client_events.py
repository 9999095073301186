# SPDX-License-Identifier: Apache-2.0
"""Hand-written events for the tests of the signals: one person's log, minute by minute."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from windvane_client.constants import CONSTANTS, DAY, MINUTE, Constants
from windvane_client.events import (
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
from windvane_client.outcomes_table import build_outcomes
from windvane_client.rules import Rules
from windvane_client.signals import PersonFacts, read_person
from windvane_client.store import EventStore
from windvane_privacy.catalogue import Catalogue, Family
from windvane_privacy.outcomes import PersonOutcome

A, B, C = "claude-opus-4.6", "claude-sonnet-4.5", "claude-haiku-4.5"
RETIRED = "claude-opus-3"
CATALOGUE = Catalogue([
    *(Family(id=i, label=i, vendor="anthropic", patterns=()) for i in (A, B, C)),
    Family(id=RETIRED, label="old", vendor="anthropic", patterns=(), retired_from="2026-06-01"),
])  # fmt: skip
START = 1_782_864_000_000_000  # 2026-07-01T00:00:00Z
END = START + 92 * DAY
NOW = END + 20 * DAY
KEY = bytes(32)


def tag(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


class Log:
    """Writes one person's events; times are minutes after `start`."""

    def __init__(self, person: str = "ana", conv: str = "c1", *, start: int = START + 40 * DAY, **header: Any) -> None:
        self.person, self.conv, self.start = person, conv, start
        self.header: dict[str, Any] = {
            "source": "claude_code",
            "recorder": "claude_code",
            "reader": "claude_code/1.0.0",
            "mode": "interactive",
            "mode_evidence": "entrypoint",
            "client": "claude_cli",
        } | header
        self.events: list[AnyEvent] = []
        self.above: bytes | None = None
        """Key of the last prompt or call on the main thread: the next row answers it unless a test says otherwise."""

    def _head(self, minute: float, key: str | None, over: dict[str, Any]) -> dict[str, Any]:
        seq = len(self.events)
        name = key or f"{self.person}/{self.conv}/{self.start}/{seq}"
        return {
            **self.header,
            "key": tag(name),
            "person": tag(self.person) if self.person else None,
            "conv": tag(self.conv) if self.conv else None,
            "project": tag("project"),
            "ts": self.start + round(minute * MINUTE),
            "seq": seq,
            "parent": self.above,
            **over,
        }

    def _add(self, event: AnyEvent) -> AnyEvent:
        if isinstance(event, Prompt | Call) and event.thread == "main":
            self.above = event.key
        self.events.append(event)
        return event

    def prompt(self, minute: float, origin: str = "human", *, key: str | None = None, **over: Any) -> AnyEvent:
        head = self._head(minute, key, over)
        return self._add(Prompt(origin=origin, **({"row": head["key"]} | head)))

    def call(self, minute: float, served: str = A, *, key: str | None = None, **over: Any) -> AnyEvent:
        rest = {name: over.pop(name) for name in ("requested", "status", "route") if name in over}
        head = self._head(minute, key, over)
        return self._add(Call(served=served, **rest, **({"row": head["key"]} | head)))

    def tool(
        self, minute: float, outcome: str = "ok", family: str = A, tool_class: str = "edit", *, key: str | None = None,
        result: float | None = None, **over: Any,
    ) -> AnyEvent:  # fmt: skip
        done = None if result is None else self.start + round(result * MINUTE)
        return self._add(
            Tool(family=family, tool_class=tool_class, outcome=outcome, result_ts=done, **self._head(minute, key, over))
        )

    def error(self, minute: float, error_class: str = "5xx", family: str = A, **over: Any) -> AnyEvent:
        rest = {name: over.pop(name) for name in ("request", "attempt", "final") if name in over}
        return self._add(
            AttemptError(
                error_class=error_class, family=family, **rest, **self._head(minute, over.pop("key", None), over)
            )
        )

    def set_model(self, minute: float, by: str = "person", family: str = "unknown", **over: Any) -> AnyEvent:
        return self._add(ModelSet(family=family, by=by, **self._head(minute, None, over)))

    def end(self, minute: float, how: str = "clean", **over: Any) -> AnyEvent:
        return self._add(TurnEnd(how=how, **self._head(minute, None, over)))

    def outcome(self, minute: float, value: str, evidence: str = "goal_status", **over: Any) -> AnyEvent:
        return self._add(Outcome(value=value, evidence=evidence, **self._head(minute, None, over)))

    def close(self, minute: float, how: str = "explicit") -> AnyEvent:
        return self._add(Close(how=how, **self._head(minute, None, {})))

    def gap(self, minute: float, what: str, **over: Any) -> AnyEvent:
        return self._add(Gap(what=what, **self._head(minute, None, over)))

    def vote(self, minute: float, winner: str, a: str = A, b: str = B, *, item: str = "i", **over: Any) -> AnyEvent:
        rest = {"blind": "proved", "judge": "person"} | {n: over.pop(n) for n in ("blind", "judge") if n in over}
        head = self._head(minute, f"{self.person}/{item}", over)
        return self._add(Vote(a=a, b=b, winner=winner, item=tag(item), **rest, **head))

    def turn(self, minute: float, family: str = A, how: str | None = "clean", *, origin: str = "human") -> None:
        """A prompt, its answer half a minute later, and its end a minute later."""
        self.prompt(minute, origin)
        self.call(minute + 0.5, family)
        if how is not None:
            self.end(minute + 1, how)

    def habit(self, *families: str, days_before: float = 20) -> Log:
        """Earlier conversations that make the families known to the person, and a choice."""
        for i, family in enumerate(families):
            log = Log(
                self.person,
                f"{self.conv}/{family}/{days_before}",
                start=self.start - round(days_before * DAY),
                **self.header,
            )
            log.turn(i * 200, family, None)
            self.events += log.events
        return self


def store_of(*logs: Log | Iterable[AnyEvent]) -> EventStore:
    store = EventStore.temporary()
    for log in logs:
        store.add(log.events if isinstance(log, Log) else log)
    return store


def facts_of(
    *logs: Log, person: str = "ana", rules: Rules | None = None, now: int = NOW, constants: Constants = CONSTANTS,
    window: tuple[int, int] = (START, END),
) -> PersonFacts:  # fmt: skip
    with store_of(*logs) as store:
        return read_person(
            store, tag(person), window=window, rules=rules or Rules(), ids_key=KEY, now=now, constants=constants
        )


def rows_of_store(
    store: EventStore, *, rules: Rules | None = None, now: int = NOW, window: tuple[int, int] = (START, END),
    pooled: bool = False,
) -> list[PersonOutcome]:  # fmt: skip
    return list(
        build_outcomes(
            store, window=window, catalogue=CATALOGUE, rules=rules or Rules(), ids_key=KEY, now=now, pooled=pooled
        )
    )


def rows_of_logs(*logs: Log, **options: Any) -> list[PersonOutcome]:
    with store_of(*logs) as store:
        return rows_of_store(store, **options)


def table(rows: Iterable[PersonOutcome], signal: str) -> dict[tuple[str, str | None], tuple[int, int]]:
    """(model, against) -> (trials, successes) of one signal."""
    return {(row.model, row.against): (row.trials, row.successes) for row in rows if row.signal == signal}
