# SPDX-License-Identifier: Apache-2.0
"""What the service writes down about itself: JSON lines from a closed list.

Rules kept here:
* event names and their fields are fixed below; a field that is not listed is dropped, in tests it is an error;
* no address of a client, no header, no body, no key and no hash of an envelope is ever a field;
* a request is its method, the template of its route and its status; the path itself only where it was refused (4xx);
* values are short and plain, so that nothing foreign can start a new line or a new field.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import datetime
from typing import Protocol, TextIO

from windvane_privacy import canonical
from windvane_privacy.manifest import format_time

EVENTS: Mapping[str, frozenset[str]] = {
    "started": frozenset({"version", "level"}),
    "stopped": frozenset(),
    "request": frozenset({"method", "route", "status", "path"}),
    "fault": frozenset({"kind", "where"}),
}
"""Every event and the fields it may have; docs/coordinators.md lists them for operators."""
MAX_VALUE = 200


class Clock(Protocol):
    """Tells the time in UTC."""

    def __call__(self) -> datetime: ...


class ServiceLog:
    """Writes one line an event to `stream`. `strict` raises on what production drops."""

    def __init__(self, stream: TextIO, clock: Clock, *, strict: bool = False) -> None:
        self._stream = stream
        self._clock = clock
        self._strict = strict
        self._lock = threading.Lock()

    def write(self, event: str, fields: Mapping[str, str | int] | None = None) -> None:
        """One event.

        Raises:
            ValueError: in strict mode only, an unknown event or field.
        """
        given = fields or {}
        allowed = EVENTS.get(event)
        if self._strict and (allowed is None or not set(given) <= allowed):
            raise ValueError("an event or a field is not in the closed list")
        if allowed is None:
            return
        line: dict[str, str | int] = {"event": event, "at": format_time(self._clock())}
        line |= {name: _plain(value) for name, value in given.items() if name in allowed}
        with self._lock:
            self._stream.write(canonical.encode(line).decode() + "\n")
            self._stream.flush()


def _plain(value: str | int) -> str | int:
    if isinstance(value, int):
        return value
    return "".join(c if c.isascii() and c.isprintable() else "?" for c in value[:MAX_VALUE])
