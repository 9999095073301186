# SPDX-License-Identifier: Apache-2.0
"""What guardians send: endorsements, round keys, nonces, results.

Rules kept here:
* only a guardian of this federation, only signed by its own key, only once for each step of a round;
* a nonce is taken after the set is closed, bound to that set, and only if it is the one committed to beforehand;
* a result is taken only if it fits the round, its closed set and its lot, so that a bad one cannot block the others;
* envelopes are handed out after the closing, all of them or none.

Source: docs/protocol.md (guardians).
"""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlalchemy import Connection, select

from windvane_privacy import canonical
from windvane_privacy.ceremony import check_nonce
from windvane_privacy.couriers import Parcel
from windvane_privacy.envelope import join_envelopes
from windvane_privacy.errors import (
    AlreadyOpened,
    EntryConflict,
    MalformedLeaf,
    NotReady,
    RosterError,
    SetMismatch,
    UnknownGuardian,
)
from windvane_privacy.handed_over import OMITTED
from windvane_privacy.identity import KEY_ED25519, KEY_KEM, key_id
from windvane_privacy.log import Leaf, verify_leaf
from windvane_privacy.roster import Endorsement, RosterGuardian, SignedRoster, verify_roster
from windvane_privacy.tally import max_result_bytes, read_result, tally
from windvane_server.agreed import (
    check_closed,
    drawn_cohorts,
    guardian_by_key,
    guardian_of,
    round_state,
    signed_roster,
)
from windvane_server.desk import Desk, Part
from windvane_server.entries import Entry, slot
from windvane_server.schema import endorsements, envelopes, results, rounds

_NUMBERS = re.compile(r"[1-9][0-9]{0,9}(?:,[1-9][0-9]{0,9}){0,99}")


class GuardianInbox(Part):
    """Takes guardians' parcels and entries. `after_nonce` is called with the round after each nonce."""

    def __init__(self, desk: Desk, after_nonce: Callable[[str], None]) -> None:
        super().__init__(desk)
        self._after_nonce = after_nonce

    def endorse(self, parcel: Parcel) -> bytes:
        """A guardian's signature below the proposed roster."""
        given = Endorsement.decode(parcel.body)
        with self._store.write() as connection:
            proposed = signed_roster(connection, parcel.round_id)
            if proposed.roster.sha256 != given.sha256:
                raise RosterError("Another roster is proposed for this round.")
            guardian = guardian_by_key(self._federation, given.key)
            one = SignedRoster(proposed.roster, (*proposed.signatures[:1], given.signature))
            public = bytes.fromhex(guardian.identity)
            verify_roster(one, bytes.fromhex(self._federation.coordinator), [public], need=1)
            known = connection.execute(
                select(endorsements.c.guardian).where(
                    endorsements.c.sha256 == given.sha256, endorsements.c.guardian == guardian.index
                )
            ).one_or_none()
            if known is None:
                connection.execute(
                    endorsements.insert().values(
                        sha256=given.sha256, guardian=guardian.index, key=given.key, sig=given.sig
                    )
                )
        return canonical.encode({"sha256": given.sha256, "guardian": guardian.index})

    def ready(self, leaf: Leaf) -> bytes:
        """A guardian's round key and its commitment to a nonce."""
        self._verified(leaf)
        if leaf.fields["round_key_id"] != key_id(KEY_KEM, bytes.fromhex(leaf.fields["round_key"])):
            raise MalformedLeaf("The round key's id does not fit the key.")
        with self._store.read() as connection:
            signed_roster(connection, leaf.round)
        return self._receipt(
            self._once(leaf, frozenset({"proposed", "not_opened"}), "The manifest is already made without it.")
        )

    def nonce(self, leaf: Leaf) -> bytes:
        """A guardian's nonce, once the set is closed."""
        guardian = self._verified(leaf)
        with self._store.read() as connection:
            agreed = self._agreements.of(connection, leaf.round)
            self._check_set(connection, leaf)
        entry = agreed.manifest.guardians[guardian.index - 1]
        check_nonce(leaf, entry, leaf.round, leaf.fields["set_root"])
        told = self._once(leaf, frozenset({"closed"}), "The lot is already drawn without it.")
        self._after_nonce(leaf.round)
        return self._receipt(told)

    def opened(self, leaf: Leaf) -> bytes:
        """A guardian's statement of what it opened."""
        guardian = self._verified(leaf)
        with self._store.read() as connection:
            self._agreements.of(connection, leaf.round)
            self._check_set(connection, leaf)
            if round_state(connection, leaf.round) == "closed":
                raise NotReady("The lot is not drawn yet.")
            stored = connection.execute(
                select(results.c.sha256).where(results.c.round == leaf.round, results.c.guardian == guardian.index)
            ).scalar()
        if stored is not None and stored != leaf.fields["result"]:
            raise AlreadyOpened
        return self._receipt(
            self._once(leaf, frozenset({"lot", "tallied", "disputed", "published"}), "The round has no lot.")
        )

    def omitted(self, leaf: Leaf) -> bytes:
        """A guardian says that the set was closed without members whose envelopes it holds; nothing else changes."""
        if not _NUMBERS.fullmatch(leaf.fields["note"]):
            raise MalformedLeaf("A guardian lists the numbers of the members that were left out.")
        guardian = next((g for g in self._federation.guardians if _key_id(g) == leaf.key_id), None)
        if guardian is None:
            raise UnknownGuardian
        verify_leaf(leaf, bytes.fromhex(guardian.identity))
        place = slot(OMITTED, leaf.round, guardian.index)
        with self._store.write() as connection:
            check_closed(connection, leaf.round)
            known = self._log.find(connection, place) or self._log.append(connection, leaf.raw, place)
        return self._receipt(known)

    def destroyed(self, leaf: Leaf) -> bytes:
        """A guardian's statement that its key of a round is gone."""
        guardian = self._verified(leaf)
        with self._store.read() as connection:
            ready = self._log.find(connection, slot("guardian-ready", leaf.round, guardian.index))
        if ready is None or ready.leaf.fields["round_key_id"] != leaf.fields["round_key_id"]:
            raise MalformedLeaf("It names another key than the guardian had for this round.")
        over = frozenset({"published", "aborted", "not_opened"})
        return self._receipt(self._once(leaf, over, "The round is not over."))

    def result(self, parcel: Parcel) -> bytes:
        """A guardian's signed sums of shares."""
        with self._store.read() as connection:
            agreed = self._agreements.of(connection, parcel.round_id)
            check_closed(connection, parcel.round_id)
            root, table = drawn_cohorts(connection, self._log, agreed.manifest)
        named = canonical.decode(parcel.body, max_bytes=max_result_bytes(agreed.manifest))
        index = named.get("guardian") if isinstance(named, dict) else None
        guardian = guardian_of(self._federation, index if type(index) is int else 0)
        result = read_result(parcel.body, bytes.fromhex(guardian.identity))
        if result.set_root != root:
            raise SetMismatch
        try:
            # One result alone never gives a sum: this only checks that it fits the round and its lot.
            tally({guardian.index: result}, agreed.manifest, table)
        except NotReady:
            pass
        with self._store.write() as connection:
            known = connection.execute(
                select(results.c.sha256).where(results.c.round == parcel.round_id, results.c.guardian == guardian.index)
            ).scalar()
            said = self._log.find(connection, slot("opened", parcel.round_id, guardian.index))
            if known not in (None, result.sha256) or (said and said.leaf.fields["result"] != result.sha256):
                raise AlreadyOpened
            if known is None:
                connection.execute(
                    results.insert().values(
                        round=parcel.round_id, guardian=guardian.index, sha256=result.sha256, raw=parcel.body
                    )
                )
        return canonical.encode({"result": result.sha256, "guardian": guardian.index})

    def envelopes(self, parcel: Parcel) -> bytes:
        """Every accepted envelope by member number, each after its length (u32, big-endian)."""
        with self._store.read() as connection:
            check_closed(connection, parcel.round_id)
            rows = connection.execute(
                select(envelopes.c.raw).where(envelopes.c.round == parcel.round_id).order_by(envelopes.c.member)
            ).scalars()
            return join_envelopes(rows)

    def _once(self, leaf: Leaf, states: frozenset[str], otherwise: str) -> Entry:
        """Append a guardian's entry if its slot is free and the round is in one of `states`."""
        place = slot(leaf.type, leaf.round, leaf.fields["guardian"])
        with self._store.write() as connection:
            known = self._log.find(connection, place)
            if known is None:
                if round_state(connection, leaf.round) not in states:
                    raise EntryConflict(otherwise)
                known = self._log.append(connection, leaf.raw, place)
            elif known.raw != leaf.raw:
                raise EntryConflict
        return known

    def _receipt(self, entry: Entry) -> bytes:
        return self._checkpoints.receipt(entry, self._clock())

    def _verified(self, leaf: Leaf) -> RosterGuardian:
        guardian = guardian_of(self._federation, leaf.fields["guardian"])
        public = bytes.fromhex(guardian.identity)
        if leaf.key_id != key_id(KEY_ED25519, public):
            raise UnknownGuardian("The entry is signed by another key than this guardian's.")
        verify_leaf(leaf, public)
        return guardian

    def _check_set(self, connection: Connection, leaf: Leaf) -> None:
        check_closed(connection, leaf.round)
        root = connection.execute(select(rounds.c.set_root).where(rounds.c.round == leaf.round)).scalar()
        if root != leaf.fields["set_root"]:
            raise SetMismatch


def _key_id(guardian: RosterGuardian) -> str:
    return key_id(KEY_ED25519, bytes.fromhex(guardian.identity))
