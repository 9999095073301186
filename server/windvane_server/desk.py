# SPDX-License-Identifier: Apache-2.0
"""What every part of one coordinator works on: its database, its log, its federation, its rounds, its clock.

Rules kept here:
* one of each for all parts, made by `coordinator.py`; a part keeps nothing of a round beside them;
* time is handed in, never read here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from windvane_privacy.signed import Federation
from windvane_server.agreed import Agreements
from windvane_server.checkpoints import Checkpoints
from windvane_server.entries import Entries
from windvane_server.store import Store

Clock = Callable[[], datetime]


@dataclass(frozen=True, slots=True)
class Desk:
    """`clock` tells the time in UTC."""

    store: Store
    log: Entries
    checkpoints: Checkpoints
    federation: Federation
    agreements: Agreements
    clock: Clock


class Part:
    """A part of the coordinator at its desk."""

    def __init__(self, desk: Desk) -> None:
        self._store = desk.store
        self._log = desk.log
        self._checkpoints = desk.checkpoints
        self._federation = desk.federation
        self._agreements = desk.agreements
        self._clock = desk.clock
