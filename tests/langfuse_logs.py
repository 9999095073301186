# SPDX-License-Identifier: Apache-2.0
"""Synthetic exports of Langfuse out of a list of steps.

Rules kept here:
* a single row names its trace, its person and its conversation itself, so it means the same wherever it lies;
* both spellings of the fields occur, and a canary stands in all that is not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reader_logs import CANARY

RULES = """[modes]
interactive_keys = ["u1"]
[scores.user-feedback]
"1" = "accepted"
"0" = "rejected"
"""
_SPELLED = {"traceId": "trace_id", "startTime": "start_time", "endTime": "end_time", "userId": "user_id",
            "parentObservationId": "parent_observation_id", "sessionId": "session_id",
            "model": "provided_model_name"}  # fmt: skip
_KINDS = {"tool": "TOOL", "result": "TOOL", "hook": "TOOL", "gave_up": "TOOL", "user": "SPAN", "queued": "SPAN",
          "skill": "AGENT", "plan": "CHAIN", "progress": "EVENT", "unknown": "HOLOGRAM"}  # fmt: skip
_PER_TRACE = 3


def langfuse(steps: Sequence[str]) -> list[object]:
    """Observations and scores, one row each."""
    return [
        b'{"id": }' if step == "broken" else {**_part(n, step), **_whose(n // _PER_TRACE)}
        for n, step in enumerate(steps)
    ]


def traces(steps: Sequence[str]) -> list[object]:
    """Whole traces with their observations and scores: every three steps are one."""
    rows: list[object] = []
    for n in range(0, len(steps), _PER_TRACE):
        parts = [_part(at, step) for at, step in enumerate(steps[n : n + _PER_TRACE], n) if step != "broken"]
        told = [part for part in parts if "type" in part]
        scores = [part for part in parts if "type" not in part]
        trace = {"id": f"t{n // _PER_TRACE}", "timestamp": _when(n), "name": CANARY, "input": CANARY,
                 "metadata": {CANARY: CANARY}, "environment": "production", **_whose(n // _PER_TRACE)}  # fmt: skip
        if n % 2:
            rows.append({**trace, "observations": told, "scores": scores})
        else:
            rows.append({"trace": {**trace, "scores": scores}, "observations": told})
    return rows


def _when(n: int) -> str:
    return f"2026-03-01T10:{n:02}:00.000Z"


def _whose(trace: int) -> dict[str, Any]:
    return {"userId": "u1", "sessionId": f"c{trace // 2}", "tags": ["windvane:coding", CANARY]}


def _part(n: int, step: str) -> dict[str, Any]:
    about = {"id": f"o{n}", "traceId": f"t{n // _PER_TRACE}", "name": CANARY, "environment": "production"}
    if step in ("end", "output", "command", "retry"):
        source = {"command": "ANNOTATION", "retry": "EVAL"}.get(step, "API")
        row = {**about, "name": "user-feedback", "source": source, "timestamp": _when(n), "comment": CANARY}
        return {**row, "stringValue" if step == "output" else "value": str(n % 2) if step == "output" else n % 2}
    kind = _KINDS.get(step, "GENERATION")
    row = {**about, "type": kind, "startTime": _when(n), "endTime": f"2026-03-01T10:{n:02}:05Z",
           "level": "ERROR" if step in ("error", "gave_up") else "DEFAULT", "input": CANARY, "output": CANARY,
           "model": "claude-opus-4.6" if step == "model" else "gpt-5.2",
           "parentObservationId": f"o{n - 1}" if n % _PER_TRACE else None, "statusMessage": CANARY}  # fmt: skip
    if step in ("interrupt", "hook"):
        row["endTime"] = None
    if step == "side":
        row["environment"] = "langfuse-llm-as-a-judge"
    if step == "other":
        row = {_SPELLED.get(name, name): value for name, value in row.items()}
    return row
