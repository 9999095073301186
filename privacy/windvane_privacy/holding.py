# SPDX-License-Identifier: Apache-2.0
"""A guardian's refusal to go on with a set that leaves out a member whose envelope it holds, and its entry about it.

Rules kept here:
* the entry is stored before it is sent, and sent again with the same bytes; whatever is said to it, the refusal stands;
* the entry names the members by number and says nothing else.

Source: docs/protocol.md (an envelope that is ignored).
"""

from __future__ import annotations

from windvane_privacy.ceremony import ClosedSet
from windvane_privacy.couriers import Courier, Parcel
from windvane_privacy.errors import MemberOmitted, WindvaneError
from windvane_privacy.guardian_ledger import GuardianLedger
from windvane_privacy.handed_over import OMITTED, Held, left_out, omission_note
from windvane_privacy.identity import SigningKey
from windvane_privacy.leaf import make_leaf


def check_nobody_left_out(
    ledger: GuardianLedger, round_id: str, closed: ClosedSet, courier: Courier, key: SigningKey, day: str
) -> None:
    """Return if the closed set contains every envelope that is held for this round.

    Raises:
        MemberOmitted: it does not; the entry for the log is stored and was sent.
    """
    missing = left_out((Held(*one) for one in ledger.held(round_id)), closed)
    if not missing:
        return
    leaf = ledger.omission(round_id)
    if leaf is None:
        leaf = make_leaf("incident", round_id, {"what": OMITTED, "note": omission_note(missing), "day": day}, key)
        ledger.keep_omission(round_id, leaf)
    try:
        courier.exchange(Parcel("leaf", round_id, leaf))
    except WindvaneError:
        pass
    raise MemberOmitted(f"Numbers: {omission_note(missing)}.")
