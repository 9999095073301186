# SPDX-License-Identifier: Apache-2.0
"""One person's events leave the collection at once (docs/members.md, people.toml).

Rules kept here:
* nothing tells whether there was anything to delete: the same steps, no count, no result;
* the ledger is not touched: what was charged about a person stays charged;
* cursors stay, so files that do not change are not read again; whoever shall stay out goes into [exclude] as well;
* a wrong people.toml does not stand in the way: the pseudonym needs the key and the staff id only.
"""

from __future__ import annotations

from windvane_client.ids import KeyedIds
from windvane_client.people import People
from windvane_client.state import MemberState
from windvane_client.store import EventStore


def forget_person(state: MemberState, staff_id: str) -> None:
    """Delete a person's events and history of model families; harmless where nothing is stored, and again.

    Raises:
        LedgerLocked: another process has the collection open.
        LedgerFormat: another version wrote it.
        ConfigurationError: the key or the collection is missing, damaged or too open.
    """
    person = KeyedIds(state.k_org, People()).staff(staff_id)
    if state.collection.exists():
        with EventStore.open(state.collection) as store:
            store.forget(person)
