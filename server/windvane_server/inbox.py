# SPDX-License-Identifier: Apache-2.0
"""The one inbox of every courier: what arrives is verified, stored once, and answered the same way each time.

Rules kept here:
* nothing is stored that its sender has not signed; the courier's word is never taken;
* the first valid commitment of a member counts: the same again gets the same receipt, another one is refused, and
  neither changes anything;
* an envelope is taken only after its hash is in the log, only inside its window, only in its exact length; the
  coordinator cannot open it and keeps nothing of it but the bytes and their hash;
* commitments are taken until `commit_by`, envelopes until `closes`, both only until the round was closed;
* "not yet" is answered as not yet.

Source: docs/protocol.md (who sends what).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from sqlalchemy import Connection, func, select

from windvane_privacy import canonical
from windvane_privacy.canonical import JsonValue
from windvane_privacy.couriers import ROUTES, Parcel
from windvane_privacy.envelope import commit_hash, envelope_length, parse_envelope, verify_envelope
from windvane_privacy.errors import (
    AlreadyEnrolled,
    BadMemberSignature,
    CommitMismatch,
    DuplicateSubmission,
    MalformedEnvelope,
    MalformedInput,
    MalformedLeaf,
    ManifestChanged,
    NotCommitted,
    NotReady,
    RoundClosed,
    UnknownAddress,
    UnknownManifest,
    UnknownMember,
    WindowNotOpen,
)
from windvane_privacy.handed_over import OMITTED
from windvane_privacy.identity import KEY_ED25519, key_id
from windvane_privacy.leaf import STOPPED
from windvane_privacy.ledger_schema import StopReason
from windvane_privacy.log import Leaf, read_leaf, verify_leaf
from windvane_privacy.manifest import Manifest, parse_time
from windvane_privacy.roster import read_enrolment
from windvane_privacy.tiles import parse_tile_path
from windvane_server.agreed import round_state, signed_roster
from windvane_server.desk import Desk, Part
from windvane_server.entries import Entry, slot
from windvane_server.inbox_guardians import GuardianInbox
from windvane_server.schema import envelopes, members, rounds

MAX_MEMBERS = 20_000


class Inbox(Part):
    """Takes parcels for one coordinator. `after_nonce`: see `GuardianInbox`."""

    def __init__(self, desk: Desk, after_nonce: Callable[[str], None]) -> None:
        super().__init__(desk)
        guardians = GuardianInbox(desk, after_nonce)
        self._kinds: dict[str, Callable[[Parcel], bytes]] = {
            "federation": lambda _parcel: self._federation.encode(),
            "rounds": self._rounds,
            "state": self._state,
            "manifest": self._manifest,
            "roster": self._roster,
            "leaves": self._leaves,
            "checkpoint": lambda _parcel: self._checkpoints.newest(self._clock()),
            "consistency": self._consistency,
            "tile": self._tile,
            "cosign": lambda parcel: self._checkpoints.add(parcel.body),
            "enrol": self._enrol,
            "leaf": self._leaf,
            "reveal": self._reveal,
            "endorse": guardians.endorse,
            "envelopes": guardians.envelopes,
            "result": guardians.result,
        }
        self._entries: dict[str, Callable[[Leaf], bytes]] = {
            "commitment": self._commitment,
            "incident": lambda leaf: (guardians.omitted if leaf.fields["what"] == OMITTED else self._stopped)(leaf),
            "guardian-ready": guardians.ready,
            "nonce": guardians.nonce,
            "opened": guardians.opened,
            "key-destroyed": guardians.destroyed,
        }
        if set(self._kinds) != set(ROUTES):
            raise ValueError("a kind of parcel has no answer")

    def handle(self, parcel: Parcel) -> bytes:
        """The answer to a parcel.

        Raises:
            WindvaneError: the refusal; nothing was stored or changed.
        """
        answer = self._kinds.get(parcel.kind)
        if answer is None:
            raise UnknownAddress
        return answer(parcel)

    # --- what anybody may ask for ---

    def _rounds(self, _parcel: Parcel) -> bytes:
        with self._store.read() as connection:
            names = connection.execute(select(rounds.c.round).order_by(rounds.c.place)).scalars().all()
            return canonical.encode({"rounds": [self._standing(connection, name) for name in names]})

    def _state(self, parcel: Parcel) -> bytes:
        with self._store.read() as connection:
            return canonical.encode(self._standing(connection, parcel.round_id))

    def _standing(self, connection: Connection, round_id: str) -> dict[str, JsonValue]:
        row = connection.execute(select(rounds).where(rounds.c.round == round_id)).one_or_none()
        if row is None:
            raise UnknownManifest
        digest = None if row.manifest is None else self._agreements.of(connection, round_id).sha256
        return {"round": round_id, "state": row.state, "reason": row.reason, "manifest": digest}

    def _manifest(self, parcel: Parcel) -> bytes:
        with self._store.read() as connection:
            raw = connection.execute(select(rounds.c.manifest).where(rounds.c.round == parcel.round_id)).scalar()
        if raw is None:
            raise UnknownManifest
        return bytes(raw)

    def _roster(self, parcel: Parcel) -> bytes:
        with self._store.read() as connection:
            return signed_roster(connection, parcel.round_id).encode()

    def _leaves(self, _parcel: Parcel) -> bytes:
        return self._checkpoints.answer(self._clock())

    def _consistency(self, parcel: Parcel) -> bytes:
        asked = canonical.decode(parcel.body, max_bytes=100)
        if not isinstance(asked, dict) or set(asked) != {"old", "new"}:
            raise MalformedInput("A proof is asked for with the sizes old and new.")
        old, new = asked["old"], asked["new"]
        if type(old) is not int or type(new) is not int:
            raise MalformedInput("The size of a log is a whole number.")
        return self._checkpoints.consistency(old, new)

    def _tile(self, parcel: Parcel) -> bytes:
        asked = canonical.decode(parcel.body, max_bytes=200)
        if not isinstance(asked, dict) or set(asked) != {"path"} or not isinstance(asked["path"], str):
            raise MalformedInput("A tile is asked for by its path.")
        try:
            tile = parse_tile_path(asked["path"])
        except MalformedInput:
            raise UnknownAddress from None
        return self._checkpoints.tile(tile, self._clock())

    # --- members ---

    def _enrol(self, parcel: Parcel) -> bytes:
        card = read_enrolment(parcel.body)
        if card.key in {self._federation.coordinator, *(g.identity for g in self._federation.guardians)}:
            raise AlreadyEnrolled("A key serves one role.")
        with self._store.write() as connection:
            for row in connection.execute(select(members.c.number, members.c.name, members.c.key)):
                if (row.key, row.name) == (card.key, card.name):
                    return canonical.encode({"member": row.number, "name": card.name, "key": card.key_id})
                if row.key == card.key or row.name.casefold() == card.name.casefold():
                    raise AlreadyEnrolled
            number = (connection.execute(select(func.max(members.c.number))).scalar() or 0) + 1
            if number > MAX_MEMBERS:
                raise NotReady("No more organisations are taken at the moment.")
            since = self._clock().date().isoformat()
            connection.execute(
                members.insert().values(number=number, name=card.name, key=card.key, card=parcel.body, since=since)
            )
        return canonical.encode({"member": number, "name": card.name, "key": card.key_id})

    def _leaf(self, parcel: Parcel) -> bytes:
        leaf = read_leaf(parcel.body)
        take = self._entries.get(leaf.type)
        if take is None:
            raise MalformedLeaf("Entries of this type are written by the coordinator, or are unknown.")
        return take(leaf)

    def _commitment(self, leaf: Leaf) -> bytes:
        with self._store.read() as connection:
            agreed = self._agreements.of(connection, leaf.round)
        number = leaf.fields["member"]
        public = agreed.keys.get(number)
        if public is None:
            raise UnknownMember
        if leaf.fields["manifest"] != agreed.sha256:
            raise ManifestChanged
        verify_leaf(leaf, public)
        place = slot("commitment", leaf.round, number)
        with self._store.write() as connection:
            known = self._log.find(connection, place)
            if known is None:
                self._check_window(connection, agreed.manifest, parse_time(agreed.manifest.submission.commit_by))
                known = self._log.append(connection, leaf.raw, place)
            elif known.leaf.fields["hash"] != leaf.fields["hash"]:
                raise DuplicateSubmission
        return self._receipt(known)

    def _stopped(self, leaf: Leaf) -> bytes:
        """A member says that it stopped the round for itself; it is written down and changes nothing else."""
        if leaf.fields["what"] != STOPPED or leaf.fields["note"] not in list(StopReason):
            raise MalformedLeaf("A member says only that it stopped, and one of the listed reasons.")
        with self._store.read() as connection:
            agreed = self._agreements.of(connection, leaf.round)
        number = next((n for n, public in agreed.keys.items() if key_id(KEY_ED25519, public) == leaf.key_id), None)
        if number is None:
            raise UnknownMember
        verify_leaf(leaf, agreed.keys[number])
        place = slot("stopped", leaf.round, number)
        with self._store.write() as connection:
            known = self._log.find(connection, place) or self._log.append(connection, leaf.raw, place)
        return self._receipt(known)

    def _reveal(self, parcel: Parcel) -> bytes:
        with self._store.read() as connection:
            agreed = self._agreements.of(connection, parcel.round_id)
        if len(parcel.body) != envelope_length(agreed.manifest):
            raise MalformedEnvelope
        envelope = parse_envelope(parcel.body, agreed.manifest)
        member = envelope.member
        public = agreed.keys.get(member)
        if public is None:
            raise UnknownMember
        if envelope.member_key_id != key_id(KEY_ED25519, public):
            raise BadMemberSignature
        verify_envelope(envelope, public)
        digest = commit_hash(parcel.body)
        with self._store.write() as connection:
            known = connection.execute(
                select(envelopes.c.leaf, envelopes.c.hash).where(
                    envelopes.c.round == parcel.round_id, envelopes.c.member == member
                )
            ).one_or_none()
            if known is not None and known.hash == digest:
                entry = self._log.at(connection, known.leaf)
            else:
                entry = self._accept(connection, agreed.manifest, member, digest, parcel.body)
        return self._receipt(entry)

    def _accept(self, connection: Connection, manifest: Manifest, member: int, digest: str, raw: bytes) -> Entry:
        committed = self._log.find(connection, slot("commitment", manifest.round, member))
        if committed is None:
            raise NotCommitted
        if committed.leaf.fields["hash"] != digest:
            raise CommitMismatch
        self._check_window(connection, manifest, parse_time(manifest.submission.closes))
        place, fields = slot("accepted", manifest.round, member), {"member": member, "hash": digest}
        entry = self._log.say(connection, "accepted", manifest.round, fields, self._clock(), place)
        row = {"round": manifest.round, "member": member, "hash": digest, "raw": raw, "leaf": entry.index}
        connection.execute(envelopes.insert().values(**row))
        return entry

    def _receipt(self, entry: Entry) -> bytes:
        return self._checkpoints.receipt(entry, self._clock())

    def _check_window(self, connection: Connection, manifest: Manifest, last: datetime) -> None:
        now = self._clock()
        if round_state(connection, manifest.round) != "open" or now > last:
            raise RoundClosed
        if now < parse_time(manifest.submission.opens):
            raise WindowNotOpen(f"It opens at {manifest.submission.opens}.")
