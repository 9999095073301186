# SPDX-License-Identifier: Apache-2.0
"""Writes the demo's chat tool export in canonical JSONL (docs/signals.md).

Rules kept here:
* one object a line, only fields of the canonical schema; people appear under their staff id;
* the tool records explicit acceptance, picks of another model, tool outcomes and every failed attempt.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from windvane.demo.world import Person, Work


class Export:
    """Lines of one organisation's export."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._serial = 0

    def person(self, person: Person, plan: Sequence[Work], rng: random.Random) -> None:
        """Adds one person's conversations, one for each piece of work."""
        for number, work in enumerate(plan):
            self._conversation(person, f"{person.staff_id}-{number}", work, rng)

    def _conversation(self, person: Person, conv: str, work: Work, rng: random.Random) -> None:
        now = work.begins
        now = self._prompt(person, conv, now)
        if work.runs:
            now = self._fault(person, conv, now, work.model.id, recovered=work.runs[0], turn=1)
        else:
            now = self._call(person, conv, now, work.model.id, turn=1)
        for outcome in () if work.runs else work.tools:
            self._add(person, conv, now, "tool", family=work.model.id, tool_class="data", outcome=outcome)
            now += timedelta(seconds=2)
        if work.turns == 2:
            model = work.moved_to or work.model
            now += timedelta(seconds=rng.uniform(60, 600))
            if work.moved_to is not None:
                self._add(person, conv, now, "model_set", family=model.id, by="person")
            now = self._prompt(person, conv, now, turn=2)
            now = self._call(person, conv, now, model.id, turn=2)
            if len(work.runs) > 1:
                now = self._prompt(person, conv, now, turn=3)
                now = self._fault(person, conv, now, model.id, recovered=work.runs[1], turn=3)
                if not work.runs[1]:
                    now = self._prompt(person, conv, now + timedelta(seconds=30), turn=4)
                    now = self._call(person, conv, now, model.id, turn=4)
        value = "accepted" if work.finished else "rejected"
        self._add(person, conv, now, "outcome", value=value, evidence="rating")

    def _prompt(self, person: Person, conv: str, now: datetime, turn: int = 1) -> datetime:
        self._add(person, conv, now, "prompt", origin="human", turn=str(turn))
        return now + timedelta(seconds=3)

    def _call(self, person: Person, conv: str, now: datetime, model: str, turn: int) -> datetime:
        self._add(person, conv, now, "call", served=model, status="ok", route="direct", turn=str(turn))
        return now + timedelta(seconds=6)

    def _fault(self, person: Person, conv: str, now: datetime, model: str, *, recovered: bool, turn: int) -> datetime:
        request = f"{conv}-{turn}"
        for attempt in (1, 2):
            self._add(
                person, conv, now, "attempt_error", request=request, family=model, error_class="overload",
                attempt=attempt, final=attempt == 2 and not recovered, turn=str(turn),
            )  # fmt: skip
            now += timedelta(seconds=4)
        return self._call(person, conv, now, model, turn) if recovered else now

    def _add(self, person: Person, conv: str, now: datetime, kind: str, **fields: Any) -> None:
        self._serial += 1
        row: dict[str, Any] = {
            "v": 1, "k": kind, "person": person.staff_id, "conv": conv, "project": person.kind,
            "key": f"e{self._serial}",
            "ts": now.strftime("%Y-%m-%dT%H:%M:%SZ"), "seq": self._serial, "mode": "interactive",
            "kind_hint": person.kind, **fields,
        }  # fmt: skip
        self.lines.append(json.dumps(row, separators=(",", ":")))
