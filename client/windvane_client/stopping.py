# SPDX-License-Identifier: Apache-2.0
"""A member stops a round for itself: what it tells the log, once, and again until the log has it.

Rules kept here:
* a stop is stored before it is told: a lost answer costs a repetition, never the stop;
* the log is told the same bytes each time, and only where something was drawn;
* the reasons are of a closed list, and about no number.
"""

from __future__ import annotations

from windvane_privacy.couriers import Courier, Parcel
from windvane_privacy.identity import SigningKey
from windvane_privacy.leaf import STOPPED, make_leaf
from windvane_privacy.ledger import Ledger
from windvane_privacy.ledger_schema import Stop, StopReason
from windvane_privacy.log import Scan


def make_stop(round_id: str, reason: StopReason, day: str, key: SigningKey) -> Stop:
    """The signed stop of a drawn round."""
    said = {"what": STOPPED, "note": reason.value, "day": day}
    return Stop(reason, make_leaf("incident", round_id, said, key))


def tell_stops(ledger: Ledger, courier: Courier, scan: Scan | None = None) -> None:
    """Send every stop that the scanned log does not hold (without a scan: every one).

    Raises:
        CoordinatorUnreachable: no answer; the next call goes on.
    """
    known = set() if scan is None else {leaf.raw for leaf in scan.leaves}
    for round_id, stop in ledger.stops():
        if stop.leaf is not None and stop.leaf not in known:
            courier.exchange(Parcel("leaf", round_id, stop.leaf))
