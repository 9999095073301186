# SPDX-License-Identifier: Apache-2.0
"""Endings that nobody saw: the log stops, and something else says that the work may have gone on.

Rules kept here:
* evidence is the person's own: gaps of the own machine, telemetry of the own conversation;
* an ending that was not seen is unknown, never a success and never a failure.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from windvane_client.constants import MINUTE, Constants
from windvane_client.episodes import Split
from windvane_client.joined import Telemetry

_WRITTEN_LATE = 5 * MINUTE
"""Two programs write the same moment up to this far apart."""


def mark_hidden(cut: Split, swept: Sequence[int], beside: Telemetry, constants: Constants) -> bool:
    """Mark the episodes whose end was not seen. `swept`: when the logs were last read before they were deleted, µs.

    True where telemetry goes on after the transcript has stopped (gap `source_silent`).
    """
    silent = False
    for episode in cut.episodes:
        over = episode.last + constants.idle
        alive = bisect_left(beside.times, over) > bisect_left(beside.times, episode.last + _WRITTEN_LATE)
        episode.cut |= alive
        silent = silent or alive
    if cut.episodes:
        last = cut.episodes[-1]
        last.cut |= any(last.last <= since < last.last + constants.idle for since in swept)
    return silent
