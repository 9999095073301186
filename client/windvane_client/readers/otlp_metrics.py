# SPDX-License-Identifier: Apache-2.0
"""Telemetry of agents: metrics, read for one thing only: whether a session lived on after its events fell silent.

Rules kept here:
* no number of a metric is read, only its session and its time;
* silence is said only of a session that both events and metrics name, and only after the idle limit;
* memory does not grow with the file: sessions are bounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from windvane_client.constants import CONSTANTS
from windvane_client.readers import otlp_rows as rows
from windvane_client.readers.otlp_state import Row

_MAX_SESSIONS = 4096


class Points(msgspec.Struct, gc=False):
    """The points of a metric."""

    dataPoints: list[rows.Record] | None = None


class Metric(msgspec.Struct, gc=False):
    """One metric; its name and values are not named."""

    sum: Points | None = None
    gauge: Points | None = None
    histogram: Points | None = None


STRUCTS: Final = (Points, Metric)
_METRIC: Final = msgspec.json.Decoder(Metric)


class Silence:
    """The last event and the last metric of each session, by (dialect, raw session id); held for one pass."""

    def __init__(self) -> None:
        self._events: dict[tuple[str, str], Row] = {}
        self._metrics: dict[tuple[str, str], int] = {}

    def heard(self, session: str, row: Row) -> None:
        """An event of a session."""
        place = (row.dialect, session)
        known = self._events.get(place)
        if known is None and len(self._events) >= _MAX_SESSIONS:
            del self._events[next(iter(self._events))]
        if known is None or (known.start or 0) <= (row.start or 0):
            self._events[place] = row

    def metric(self, raw: msgspec.Raw, dialect: str, session_name: str) -> None:
        """One metric.

        Raises:
            msgspec.DecodeError: it has another form.
            Rejected: a time that is none.
        """
        metric = _METRIC.decode(raw)
        for points in (metric.sum, metric.gauge, metric.histogram):
            for point in (points.dataPoints if points is not None else None) or ():
                session = rows.attributes(point.attributes)[0].get(session_name)
                at = rows.nanos(point.timeUnixNano)
                if not isinstance(session, str) or at is None:
                    continue
                place = (dialect, session)
                if place not in self._metrics and len(self._metrics) >= _MAX_SESSIONS:
                    del self._metrics[next(iter(self._metrics))]
                self._metrics[place] = max(at, self._metrics.get(place, 0))

    def sessions(self) -> Iterator[tuple[str, Row]]:
        """(session, its last event) where metrics went on for longer than the idle limit."""
        for (dialect, session), at in self._metrics.items():
            row = self._events.get((dialect, session))
            if row is not None and row.start is not None and (at - row.start) // 1000 >= CONSTANTS.idle:
                yield session, row
