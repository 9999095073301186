# SPDX-License-Identifier: Apache-2.0
"""When the first message after a draw leaves: at a fixed mark of the clock.

Rules kept here:
* the sampler and the votes do not take the same time for all data; the moment of sending must not tell how long;
* the mark is the same for everybody: whole half minutes, UTC; a draw takes far less;
* only the first message waits: what follows is an answer to what others did.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

SLOT: Final = 30
"""Seconds between two marks."""


def seconds_to_slot(now: datetime) -> float:
    """Seconds until the next mark; 0 at a mark."""
    return -now.timestamp() % SLOT


def slot_pause(clock: Callable[[], datetime], sleep: Callable[[float], None]) -> Callable[[], None]:
    """Waits for the next mark of this clock."""
    return lambda: sleep(seconds_to_slot(clock()))
