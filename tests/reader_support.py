# SPDX-License-Identifier: Apache-2.0
"""What the reader tests share: a context with a fixed key, and synthetic Claude Code rows."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from typing import Any

from windvane_client.catalogue_builtin import builtin_catalogue
from windvane_client.events import AnyEvent
from windvane_client.ids import KeyedIds
from windvane_client.people import People
from windvane_client.readers import READERS, ReadContext, SampleFacts

NOW = 1_790_000_000_000_000
KEY = bytes(range(32))
IDS = KeyedIds(KEY, People.me())
VERSION = "2.1.40"


def context(source: str = "claude_code", *, ids: KeyedIds = IDS, offset: int = 0, **more: Any) -> ReadContext:
    return ReadContext(
        ids=ids,
        catalogue=builtin_catalogue(),
        now=NOW,
        file_key=b"f" * 16,
        facts=SampleFacts(source),
        machine_person=ids.machine(),
        log_dir="-home-project",
        session_hint="s",
        offset=offset,
        **more,
    )


def lines(rows: Iterable[object]) -> bytes:
    return b"".join(
        (row if isinstance(row, bytes) else json.dumps(row, ensure_ascii=False).encode()) + b"\n" for row in rows
    )


def read(rows: Iterable[object] | bytes, ctx: ReadContext | None = None) -> tuple[list[AnyEvent], ReadContext]:
    ctx = ctx or context()
    raw = rows if isinstance(rows, bytes) else lines(rows)
    return list(READERS[ctx.facts.source].read(io.BytesIO(raw), ctx)), ctx


def of(events: Iterable[AnyEvent], kind: str) -> list[Any]:
    return [event for event in events if type(event).__name__ == kind]


class Log:
    """Rows of one synthetic session, each a child of the one before, a second apart."""

    def __init__(self, session: str = "s1", **common: object) -> None:
        self.common: dict[str, object] = {"sessionId": session, "version": VERSION, "isSidechain": False, **common}
        self.rows: list[Any] = []
        self.n = 0
        self.last: str | None = None

    def row(self, kind: str, **more: object) -> str:
        self.n += 1
        uuid = str(more.pop("uuid", f"{self.common['sessionId']}-u{self.n}"))
        base = {
            **self.common,
            "type": kind,
            "uuid": uuid,
            "parentUuid": self.last,
            "timestamp": f"2026-03-01T10:{self.n // 60:02}:{self.n % 60:02}.000Z",
        }
        self.rows.append({**base, **more})
        self.last = uuid
        return uuid

    def user(self, content: object = "neutral", **more: object) -> str:
        return self.row("user", message={"role": "user", "content": content}, **more)

    def answer(self, message: str, *blocks: object, model: str | None = "claude-opus-4-6", **more: object) -> str:
        stop = more.pop("stop_reason", None)
        body = {"id": message, "role": "assistant", "model": model, "stop_reason": stop}
        return self.row("assistant", message={**body, "content": list(blocks) or [text()]}, **more)

    def result(self, tool: str, content: object = "fine", **more: object) -> str:
        block = {"type": "tool_result", "tool_use_id": tool, "content": content}
        if "is_error" in more:
            block["is_error"] = more.pop("is_error")
        return self.user([block], **more)

    def system(self, subtype: str, **more: object) -> str:
        return self.row("system", subtype=subtype, **more)

    def attachment(self, kind: str, **more: object) -> str:
        return self.row("attachment", attachment={"type": kind, **more})

    def read(self, **more: Any) -> tuple[list[AnyEvent], ReadContext]:
        return read(self.rows, context(**more))


def text(body: str = "neutral") -> dict[str, str]:
    return {"type": "text", "text": body}


def tool(identity: str, name: str = "Bash") -> dict[str, object]:
    return {"type": "tool_use", "id": identity, "name": name, "input": {"command": "neutral"}}
