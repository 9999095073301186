# SPDX-License-Identifier: Apache-2.0
"""Synthetic session files of Gemini CLI out of a list of steps.

Rules kept here:
* a record file holds a header, messages, `$set` and `$rewindTo`, as the program appends them; a document only messages;
* a message is written again under its id, as the program does when its tools are done.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reader_logs import CANARY

_HEADER = {"sessionId": "s1", "projectHash": CANARY, "startTime": "2026-03-01T10:00:00Z", "directories": [CANARY]}


def records(steps: Sequence[str]) -> list[object]:
    """One record a line, below the session's header."""
    rows: list[object] = [{**_HEADER, "kind": "main"}]
    for n, step in enumerate(steps):
        match step:
            case "progress":
                rows.append({"$set": {"lastUpdated": CANARY, "sessionId": "s1"}})
            case "hook":
                rows.append({"$set": {"messages": [_message(n, "user"), _message(n, "answer")], "summary": CANARY}})
            case "retry":
                rows.append({"$rewindTo": f"m{max(0, n - 2)}"})
            case _:
                rows.append(_message(n, step))
    return rows


def resumed(steps: Sequence[str]) -> list[object]:
    """Records of which each header holds messages: every three steps are one."""
    rows = records([])
    for n in range(0, len(steps), 3):
        inner = [_message(at, step) for at, step in enumerate(steps[n : n + 3], n) if step != "broken"]
        rows.append({**_HEADER, "messages": inner})
    return rows


def messages(steps: Sequence[str]) -> list[object]:
    """The messages of a session that is one document."""
    return [_message(n, step) for n, step in enumerate(steps)]


def _message(n: int, step: str) -> object:
    if step == "broken":
        return b'{"id": }'
    kind = {"user": "user", "queued": "user", "command": "user", "side": "user", "error": "error", "gave_up": "error",
            "output": "info", "end": "warning", "progress": "info", "retry": "info", "hook": "info", "plan": "info",
            "unknown": "hologram"}.get(step, "gemini")  # fmt: skip
    row: dict[str, Any] = {"id": f"m{n - 1 if step == 'more' else n}", "timestamp": f"2026-03-01T10:{n:02}:00.000Z",
                           "type": kind, "content": CANARY}  # fmt: skip
    match step:
        case "command":
            row["content"] = "/about " + CANARY
        case "side":
            row["content"] = [{"functionResponse": {"name": CANARY}}]
        case "error":
            row["content"] = "[API Error: " + CANARY
        case "queued":
            row["content"] = [{"text": CANARY}]
    if kind == "gemini":
        row["model"] = "gemini-3-pro" if step in ("model", "other") else "gemini-2.5-pro"
        row |= {"thoughts": [{"subject": CANARY}], "tokens": {"total": n}}
        status = {"tool": "executing", "result": "success", "more": "error", "interrupt": "cancelled"}.get(step)
        if status is not None:
            at = f"2026-03-01T10:{n:02}:09.000Z"
            row["toolCalls"] = [{"id": f"c{n // 2}", "name": "replace", "status": status, "args": {CANARY: CANARY},
                                 "timestamp": at, "resultDisplay": CANARY}]  # fmt: skip
        if step == "skill":
            row["toolCalls"] = [{"name": name, "status": "success"} for name in ("read_file", "run_shell_command")]
    return row
