# SPDX-License-Identifier: Apache-2.0
"""What is collected ends also where no round takes it: 60 days after the window (docs/retention.md).

Rules kept here:
* a window whose round was drawn ends with its round, and not before;
* a window without a draw is deleted 60 days after its end, but not while its submission is open;
* days that no window of a round covers count as calendar quarters;
* nothing that a window still needs is deleted, whatever other windows say.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from windvane_client.constants import CONSTANTS
from windvane_client.evidence import Evidence
from windvane_privacy.ledger import Ledger
from windvane_privacy.manifest import Manifest, format_time, parse_time

KEPT = timedelta(microseconds=CONSTANTS.retention_after_window)


@dataclass(frozen=True, slots=True)
class Window:
    """The events of one round, UTC. `closes`: until when a member may take part. `drawn`: the round has an entry in the
    ledger. `over`: that entry is final."""

    since: datetime
    until: datetime
    closes: datetime
    drawn: bool
    over: bool


def overdue(windows: Iterable[Window], now: datetime) -> datetime:
    """End, UTC, of what may be deleted: everything before it is of windows that are over, or ended 60 days ago."""
    limit = _quarter(now - KEPT)
    for window in windows:
        needed = not window.over if window.drawn else now < max(window.until + KEPT, window.closes)
        if needed:
            limit = min(limit, window.since)
    return limit


def forget_skipped(evidence: Evidence, ledger: Ledger, manifests: Iterable[Manifest], now: datetime) -> None:
    """Delete the events of windows in which this member took no part, 60 days after their end."""
    entries = {entry.round_id: entry.state.final for entry in ledger.rounds()}
    windows = [
        Window(
            parse_time(manifest.events.from_),
            parse_time(manifest.events.to),
            parse_time(manifest.submission.closes),
            manifest.round in entries,
            entries.get(manifest.round, False),
        )
        for manifest in manifests
    ]
    limit = format_time(overdue(windows, now.astimezone(UTC)))
    evidence.forget(limit, limit)


def _quarter(moment: datetime) -> datetime:
    """Start of the calendar quarter that `moment` lies in."""
    return datetime(moment.year, moment.month - (moment.month - 1) % 3, 1, tzinfo=UTC)
