# SPDX-License-Identifier: Apache-2.0
"""The roster: which organisations and guardians a round has, who signed that, and the card by which one enrols.

Rules kept here:
* a roster counts only with the coordinator's signature and those of two guardians;
* a roster follows the last accepted one: nobody's number is given to another key, nobody disappears, a version never
  goes back, and the guardians stay;
* everybody counts the roster themselves: `active` and `people` follow from the list, no total is taken on trust;
* sizes of organisations are public bands, never counts;
* an enrolment is signed by the key it enrols, and low-order or malformed keys are refused.

Source: docs/protocol.md (rosters, enrolment).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import msgspec

from windvane_privacy import canonical
from windvane_privacy.cards import MAX_CARD_BYTES, read_signed_card, sign_card
from windvane_privacy.errors import (
    MalformedInput,
    RosterNotSuccessor,
    RosterSignatureMissing,
    SignatureInvalid,
    UnknownMember,
)
from windvane_privacy.identity import KEY_ED25519, SigningKey, key_id, verify
from windvane_privacy.leaf import is_day, is_hash, is_round, is_signature

BANDS: dict[str, int] = {
    "10-49": 10,
    "50-99": 50,
    "100-249": 100,
    "250-999": 250,
    "1000-4999": 1000,
    "5000+": 5000,
}
"""Public size bands of an organisation (people in scope) and the lower end that is counted."""

SCHEMA = "windvane/roster/v1"
ENROLMENT_SCHEMA = "windvane/enrolment/v1"
ROSTER_LABEL = b"windvane/1/roster\0"
ENROLMENT_LABEL = b"windvane/1/enrolment\0"
GUARDIANS_NEEDED = 2
MAX_NAME = 200
_MAX_ROSTER_BYTES = 1 << 24
_STATES = frozenset({"active", "left", "revoked"})


class RosterMember(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One organisation. `key`: Ed25519 public key, hex. `since`: round id or day of entry. `ties`: vendors of the
    catalogue that own part of it or that it owns. `state`: active, left or revoked."""

    number: int
    name: str
    key: str
    key_id: str
    state: str
    since: str
    band: str
    ties: tuple[str, ...]


class RosterGuardian(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One guardian. `index` counts from 1, `identity` is its Ed25519 public key (hex), `group` its group of
    institutions."""

    index: int
    name: str
    identity: str
    group: str


class Roster(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All members by number, and the guardians. `previous`: hex SHA-256 of the roster before, null for the first."""

    schema: str
    version: int
    previous: str | None
    federation: str
    coordinator: str
    log_origin: str
    members: tuple[RosterMember, ...]
    guardians: tuple[RosterGuardian, ...]

    @property
    def sha256(self) -> str:
        """Hex SHA-256 of the canonical bytes."""
        return canonical.sha256_hex(encode_roster(self))

    @property
    def active(self) -> tuple[RosterMember, ...]:
        """Members that may take part in a round, by number."""
        return tuple(member for member in self.members if member.state == "active")

    @property
    def people(self) -> int:
        """Sum of the lower ends of the active members' bands: people in scope, at least."""
        return sum(BANDS[member.band] for member in self.active)

    def member(self, number: int) -> RosterMember:
        """The active member with this number.

        Raises:
            UnknownMember: nobody, or somebody who is not active.
        """
        for member in self.members:
            if member.number == number and member.state == "active":
                return member
        raise UnknownMember

    def by_key(self, public: str) -> RosterMember:
        """The active member with this public key (hex).

        Raises:
            UnknownMember: nobody, or somebody who is not active.
        """
        for member in self.members:
            if member.key == public and member.state == "active":
                return member
        raise UnknownMember


class Signature(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who signed (key id, hex) and the Ed25519 signature (hex)."""

    key: str
    sig: str


class SignedRoster(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A roster with the signatures collected so far; `verify_roster` says whether they suffice."""

    roster: Roster
    signatures: tuple[Signature, ...]

    def encode(self) -> bytes:
        """Canonical bytes."""
        return canonical.encode(msgspec.to_builtins(self))

    @classmethod
    def decode(cls, raw: bytes) -> SignedRoster:
        """A sound roster with its signatures, not yet verified.

        Raises:
            MalformedInput: not canonical, an unknown field, or the list contradicts itself.
        """
        try:
            signed = msgspec.convert(canonical.decode(raw, max_bytes=_MAX_ROSTER_BYTES), cls)
        except msgspec.ValidationError:
            raise MalformedInput("a field of the roster is missing, unknown or of another type") from None
        check_roster(signed.roster)
        if not all(is_hash(s.key) and is_signature(s.sig) for s in signed.signatures):
            raise MalformedInput("a signature of the roster is malformed")
        return signed


class Endorsement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A guardian's signature below the roster with this hash: the body of an `endorse` parcel."""

    sha256: str
    key: str
    sig: str

    def encode(self) -> bytes:
        """Canonical bytes."""
        return canonical.encode(msgspec.to_builtins(self))

    @classmethod
    def decode(cls, raw: bytes) -> Endorsement:
        """An endorsement, not yet verified.

        Raises:
            MalformedInput: not of this form.
        """
        try:
            found = msgspec.convert(canonical.decode(raw, max_bytes=MAX_CARD_BYTES), cls)
        except msgspec.ValidationError:
            raise MalformedInput from None
        if not (is_hash(found.sha256) and is_hash(found.key) and is_signature(found.sig)):
            raise MalformedInput
        return found

    @property
    def signature(self) -> Signature:
        """The signature alone, as a `SignedRoster` holds it."""
        return Signature(self.key, self.sig)


class Enrolment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The card of an organisation that asks to enter; the fields are those of `RosterMember`."""

    schema: str
    name: str
    key: str
    band: str
    ties: tuple[str, ...]
    sig: str

    @property
    def key_id(self) -> str:
        """Key id of the enrolled key."""
        return key_id(KEY_ED25519, bytes.fromhex(self.key))


# --- rosters ---------------------------------------------------------------------------------------------------------


def encode_roster(roster: Roster) -> bytes:
    """Canonical bytes of the roster alone: what its signatures cover."""
    return canonical.encode(msgspec.to_builtins(roster))


def check_roster(roster: Roster) -> None:
    """Refuse a list that contradicts itself.

    Raises:
        MalformedInput: numbers out of order, a name or key twice, a wrong key id, an unknown band or state.
    """
    members, guardians = roster.members, roster.guardians
    numbers = [m.number for m in members]
    keys = [m.key for m in members]
    names = [m.name.casefold() for m in members]
    sound = (
        roster.schema == SCHEMA
        and roster.version >= 1
        and (roster.previous is None or is_hash(roster.previous))
        and all(is_name(text) for text in (roster.federation, roster.log_origin))
        and is_hash(roster.coordinator)
        and all(a < b for a, b in pairwise(numbers))
        and (not numbers or (numbers[0] >= 1 and numbers[-1] < 2**32))
        and len(set(keys)) == len(keys)
        and len(set(names)) == len(names)
        and all(_sound_member(m) for m in members)
        and [g.index for g in guardians] == list(range(1, len(guardians) + 1))
        and len({g.identity for g in guardians}) == len(guardians)
        and all(is_name(g.name) and is_name(g.group) and is_hash(g.identity) for g in guardians)
    )
    if not sound:
        raise MalformedInput("the roster contradicts itself")


def sign_roster(roster: Roster, key: SigningKey) -> Signature:
    """The coordinator's or a guardian's signature below a roster."""
    return Signature(key.key_id, key.sign(ROSTER_LABEL, encode_roster(roster)).hex())


def endorse(roster: Roster, key: SigningKey) -> Endorsement:
    """A guardian's signature as an `endorse` parcel carries it."""
    signature = sign_roster(roster, key)
    return Endorsement(roster.sha256, signature.key, signature.sig)


def verify_roster(
    signed: SignedRoster, coordinator: bytes, guardians: Iterable[bytes], need: int = GUARDIANS_NEEDED
) -> Roster:
    """The roster, once the coordinator and `need` different guardians of the given keys have signed it.

    `need=0` accepts a proposal that no guardian has signed yet.

    Raises:
        RosterSignatureMissing: a signature is missing or does not fit, or the roster names another coordinator.
    """
    roster = signed.roster
    body = encode_roster(roster)
    by_id = {s.key: s.sig for s in signed.signatures}

    def holds(public: bytes) -> bool:
        sig = by_id.get(key_id(KEY_ED25519, public))
        if sig is None:
            return False
        try:
            verify(public, bytes.fromhex(sig), ROSTER_LABEL, body)
        except SignatureInvalid:
            return False
        return True

    if roster.coordinator != coordinator.hex() or not holds(coordinator):
        raise RosterSignatureMissing
    if sum(holds(public) for public in set(guardians) - {coordinator}) < need:
        raise RosterSignatureMissing
    return roster


def check_successor(old: Roster, new: Roster) -> None:
    """Refuse a roster that does not follow the one accepted last. The same roster again is fine.

    A version may be left out (an installation that slept through a round): then the link by hash cannot be checked,
    all other rules hold.

    Raises:
        RosterNotSuccessor: see the module's rules.
    """
    if new == old:
        return
    linked = new.previous == old.sha256 if new.version == old.version + 1 else new.version > old.version
    same = (old.federation, old.coordinator, old.log_origin) == (new.federation, new.coordinator, new.log_origin)
    if not (linked and same and new.guardians == old.guardians):
        raise RosterNotSuccessor
    listed = {member.number: member for member in new.members}
    for member in old.members:
        now = listed.pop(member.number, None)
        if now is None or (now.name, now.key) != (member.name, member.key):
            raise RosterNotSuccessor
        if member.state not in {"active", now.state}:
            raise RosterNotSuccessor
    last = max((member.number for member in old.members), default=0)
    if any(number <= last for number in listed):
        raise RosterNotSuccessor


# --- enrolment -------------------------------------------------------------------------------------------------------


def make_enrolment(key: SigningKey, name: str, band: str, ties: Iterable[str]) -> bytes:
    """The signed card of an organisation.

    Raises:
        MalformedInput: the name, the band or a tie has not the agreed form.
    """
    body = {
        "schema": ENROLMENT_SCHEMA,
        "name": name,
        "key": key.public.hex(),
        "band": band,
        "ties": sorted(set(ties)),
    }
    raw = sign_card(body, ENROLMENT_LABEL, key)
    read_enrolment(raw)
    return raw


def read_enrolment(raw: bytes) -> Enrolment:
    """A card whose signature fits the key on it.

    Raises:
        MalformedInput: not of this form.
        KeyRefused: a low-order or non-canonical key.
        SignatureInvalid: signed by another key, or altered.
    """
    return read_signed_card(raw, Enrolment, ENROLMENT_LABEL, "key", _sound_enrolment)


def is_name(text: str) -> bool:
    """Whether a text can be shown as a name: 1 to 200 printable characters, no space at either end."""
    return 1 <= len(text) <= MAX_NAME and text.isprintable() and text == text.strip()


def _sound_member(member: RosterMember) -> bool:
    return (
        is_name(member.name)
        and is_hash(member.key)
        and member.key_id == key_id(KEY_ED25519, bytes.fromhex(member.key))
        and member.state in _STATES
        and (is_day(member.since) or is_round(member.since))
        and member.band in BANDS
        and _sound_ties(member.ties)
    )


def _sound_enrolment(card: Enrolment) -> bool:
    named = card.schema == ENROLMENT_SCHEMA and is_name(card.name) and card.band in BANDS and _sound_ties(card.ties)
    return named and is_hash(card.key) and is_signature(card.sig)


def _sound_ties(ties: tuple[str, ...]) -> bool:
    return len(ties) <= 32 and list(ties) == sorted(set(ties)) and all(is_name(tie) for tie in ties)
