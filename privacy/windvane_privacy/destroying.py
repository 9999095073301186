# SPDX-License-Identifier: Apache-2.0
"""When a round's key may and must be destroyed: after the appeal, counted by the log's clock.

Rules kept here:
* not before the report is in the log and its appeal is over: until then a dispute may need the key;
* a round that was stopped by hand has no report and no appeal: its keys are destroyed at once;
* after the last day it is still done, and said to be late;
* pure: leaves and a day in, a decision or a named refusal out.

A key that is gone cannot open what somebody recorded: two guardians who are broken into later learn nothing of rounds
whose keys are destroyed.

Source: docs/protocol.md (life of a round).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from windvane_privacy.errors import AppealRunning
from windvane_privacy.leaf import Leaf, first_of, is_aborted
from windvane_privacy.manifest import Manifest


@dataclass(frozen=True, slots=True)
class Destruction:
    """`late`: the last day on which the key should have been destroyed is over."""

    late: bool


def check_destruction(leaves: Sequence[Leaf], manifest: Manifest, today: date) -> Destruction:
    """Whether the round's key may be destroyed on this day of the log.

    Raises:
        AppealRunning: the report is not in the log, or its appeal is not over.
    """
    coordinator = bytes.fromhex(manifest.coordinator)
    published = first_of(leaves, "report-published", manifest.round, public=coordinator)
    if published is None:
        if is_aborted(leaves, manifest.round, coordinator):
            return Destruction(late=False)
        raise AppealRunning("The report is not published yet.")
    day = date.fromisoformat(published.fields["day"])
    over = day + timedelta(days=manifest.appeal_days)
    if today < over:
        raise AppealRunning(f"It ends on {over.isoformat()}.")
    return Destruction(late=today > day + timedelta(days=manifest.destroy_by_days))
