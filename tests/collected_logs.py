# SPDX-License-Identifier: Apache-2.0
"""Synthetic rows of a collector out of a list of steps.

Rules kept here:
* rows are written by the function that a collector writes them with, so every kind of event comes as it really does;
* `KNOWN` names the one person of these rows, and the key that the first line states.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from windvane_client import events as ev
from windvane_client.people import KnownPeople
from windvane_client.readers.collected_rows import header, line

_PERSON = b"first step of u1"
HEAD = header(1)
KNOWN = KnownPeople(1, {_PERSON: b"pseudonym of u1."})


def collected(steps: Sequence[str]) -> list[object]:
    rows: list[object] = []
    for n, step in enumerate(steps):
        if step == "broken":
            rows.append(b'{"v": }')
            continue
        row: dict[str, Any] = json.loads(line(_event(n, step)))
        rows.append({**row, "k": "hologram"} if step == "unknown" else row)
    return rows


def _id(kind: str, n: int) -> bytes:
    return f"{kind}{n:x}".encode().ljust(16, b".")


def _event(n: int, step: str) -> ev.AnyEvent:
    head: dict[str, Any] = {
        "source": "claude_code", "recorder": "claude_code", "reader": "claude_code/1.4.0", "key": _id("key", n),
        "person": _PERSON, "conv": _id("conv", n // 8), "project": _id("project", 1), "ts": 1_772_359_200_000_000 + n,
        "seq": n, "mode": "interactive", "mode_evidence": "entrypoint", "client": "claude_cli", "kind_hint": "coding",
        "parent": _id("key", n - 1) if n else None,
    }  # fmt: skip
    node = {**head, "row": head["key"]}
    match step:
        case "user" | "queued" | "command":
            return ev.Prompt(**node, origin="human" if step == "user" else step)
        case "error" | "retry" | "gave_up":
            more = {"request": _id("request", 1), "attempt": n, "final": step == "gave_up"}
            return ev.AttemptError(**head, error_class="overload", family="claude-opus-4.6", **more)
        case "tool" | "result" | "hook":
            told = {"outcome": "ok", "result_ts": head["ts"] + 5} if step == "result" else {"outcome": "no_result"}
            return ev.Tool(**head, family="claude-opus-4.6", tool_class="edit", call=_id("key", n - 1), **told)
        case "model" | "plan":
            return ev.ModelSet(**head, family="gpt-5.2", by="person")
        case "end" | "interrupt":
            return ev.TurnEnd(**head, how="clean" if step == "end" else "interrupted")
        case "output":
            return ev.Outcome(**head, value="accepted", evidence="score")
        case "skill":
            sides = {"a": "gpt-5.2", "b": "claude-opus-4.6", "winner": "a"}
            return ev.Vote(**head, **sides, blind="proved", item=_id("item", n))
        case "progress":
            return ev.Close(**head, how="explicit")
        case "side":
            return ev.Gap(**head, what="source_silent", count=2, since=head["ts"] - 9, until=head["ts"])
    return ev.Call(**node, served="claude-opus-4.6", requested="gpt-5.2" if step == "other" else None)
