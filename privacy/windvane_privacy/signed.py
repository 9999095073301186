# SPDX-License-Identifier: Apache-2.0
"""What the coordinator and the guardians sign or show besides log entries: the signed manifest, the federation's
document, and a guardian's card.

Rules kept here:
* a manifest counts only with the signature of the pinned coordinator's key, over its canonical bytes;
* a card is signed by the key it shows, so nobody can present somebody else's key as their own;
* the federation's document is unsigned: it is an offer, and whoever pins it compares the fingerprints by another way;
* its witnesses exclude two histories of the log as long as no more of them lie than it says.

Source: docs/protocol.md (manifest, set-up of a federation).
"""

from __future__ import annotations

import re

import msgspec

from windvane_privacy import canonical, manifest
from windvane_privacy.cards import read_signed_card, sign_card
from windvane_privacy.errors import MalformedInput, ManifestSignatureInvalid, SignatureInvalid
from windvane_privacy.identity import KEY_ED25519, SigningKey, check_public, key_id, verify
from windvane_privacy.leaf import is_hash, is_signature
from windvane_privacy.manifest import Manifest
from windvane_privacy.notes import PUBLIC_BYTES as LOG_KEY_BYTES
from windvane_privacy.notes import check_name
from windvane_privacy.quorum import Signer, WitnessPolicy
from windvane_privacy.roster import RosterGuardian, is_name

MANIFEST_LABEL = b"windvane/1/manifest\0"
CARD_LABEL = b"windvane/1/guardian-card\0"
FEDERATION_SCHEMA = "windvane/federation/v2"
CARD_SCHEMA = "windvane/guardian-card/v1"
MOST_AGE_HOURS = 24 * 31
"""Longest time that a federation may let a checkpoint stand without new cosignatures."""
_LOG_KEY = re.compile(f"[0-9a-f]{{{2 * LOG_KEY_BYTES}}}")


# --- manifest --------------------------------------------------------------------------------------------------------


def sign_manifest(agreed: Manifest, key: SigningKey) -> bytes:
    """Canonical `{"manifest": {...}, "key": key id, "sig": hex}`."""
    signature = key.sign(MANIFEST_LABEL, manifest.encode(agreed))
    return canonical.encode({"manifest": msgspec.to_builtins(agreed), "key": key.key_id, "sig": signature.hex()})


def verify_signed_manifest(raw: bytes, coordinator: bytes) -> Manifest:
    """A sound manifest that the pinned coordinator signed.

    Raises:
        MalformedInput: not of this form.
        ManifestSignatureInvalid: signed by another key, altered, or it names another coordinator.
        ManifestError, CapacityExceeded: signed, but its fields contradict each other.
    """
    value = canonical.decode(raw)
    if not isinstance(value, dict) or set(value) != {"manifest", "key", "sig"}:
        raise MalformedInput
    body, sig = canonical.encode(value["manifest"]), value["sig"]
    if not (is_signature(sig) and is_hash(value["key"])):
        raise MalformedInput
    if value["key"] != key_id(KEY_ED25519, coordinator):
        raise ManifestSignatureInvalid
    try:
        verify(coordinator, bytes.fromhex(sig), MANIFEST_LABEL, body)
    except SignatureInvalid:
        raise ManifestSignatureInvalid from None
    agreed = manifest.decode(body)
    if agreed.coordinator != coordinator.hex():
        raise ManifestSignatureInvalid
    return agreed


# --- federation ------------------------------------------------------------------------------------------------------


class PinnedWitness(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whoever cosigns the log: the name in its signature lines, and its ML-DSA-44 public key (1,312 bytes, hex)."""

    name: str
    key: str


class LogPins(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What makes a checkpoint of the log believable. `key`: the log's own ML-DSA-44 public key, hex. `quorum`:
    cosignatures needed of the `witnesses`, of whom `faulty` may lie. `max_age_hours`: when a quorum is too old."""

    key: str
    witnesses: tuple[PinnedWitness, ...]
    quorum: int
    faulty: int
    max_age_hours: int


class Federation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a newcomer is shown: the coordinator's key (hex), the log's origin and witnesses, the guardians, and whether
    it is a demonstration."""

    schema: str
    name: str
    coordinator: str
    log_origin: str
    log: LogPins
    guardians: tuple[RosterGuardian, ...]
    demo: bool

    @property
    def log_policy(self) -> WitnessPolicy:
        """Which checkpoints of this federation's log are believed.

        Raises:
            ConfigurationError: two histories could both reach the quorum, or a witness is named twice.
        """
        witnesses = tuple(Signer(one.name, bytes.fromhex(one.key)) for one in self.log.witnesses)
        return WitnessPolicy(
            log=Signer(self.log_origin, bytes.fromhex(self.log.key)),
            witnesses=witnesses,
            quorum=self.log.quorum,
            faulty=self.log.faulty,
            max_age=self.log.max_age_hours * 3600,
        )

    def encode(self) -> bytes:
        """Canonical bytes."""
        return canonical.encode(msgspec.to_builtins(self))


def decode_federation(raw: bytes) -> Federation:
    """The federation's document.

    Raises:
        MalformedInput: not of this form.
        KeyRefused: a key on it is of low order or not canonical, or a name cannot stand in a checkpoint.
        ConfigurationError: its witnesses do not exclude two histories.
    """
    try:
        found = msgspec.convert(canonical.decode(raw), Federation)
    except msgspec.ValidationError:
        raise MalformedInput from None
    keys = [found.coordinator, *(g.identity for g in found.guardians)]
    sound = (
        found.schema == FEDERATION_SCHEMA
        and is_name(found.name)
        and is_name(found.log_origin)
        and all(is_hash(key) for key in keys)
        and len(set(keys)) == len(keys)
        and [g.index for g in found.guardians] == list(range(1, len(found.guardians) + 1))
        and all(is_name(g.name) and is_name(g.group) for g in found.guardians)
        and all(_LOG_KEY.fullmatch(key) for key in (found.log.key, *(one.key for one in found.log.witnesses)))
        and 0 < found.log.max_age_hours <= MOST_AGE_HOURS
    )
    if not sound:
        raise MalformedInput
    for key in keys:
        check_public(bytes.fromhex(key))
    for name in (found.log_origin, *(one.name for one in found.log.witnesses)):
        check_name(name)
    _ = found.log_policy
    return found


# --- a guardian's card -----------------------------------------------------------------------------------------------


class GuardianCard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A guardian's name, group of institutions and identity key (Ed25519, hex), signed with that key."""

    schema: str
    name: str
    group: str
    identity: str
    sig: str


def make_card(key: SigningKey, name: str, group: str) -> bytes:
    """The signed card of a guardian.

    Raises:
        MalformedInput: the name or the group is not printable text of 1 to 200 characters.
    """
    body = {"schema": CARD_SCHEMA, "name": name, "group": group, "identity": key.public.hex()}
    raw = sign_card(body, CARD_LABEL, key)
    read_card(raw)
    return raw


def read_card(raw: bytes) -> GuardianCard:
    """A card whose signature fits the key on it.

    Raises:
        MalformedInput: not of this form.
        KeyRefused: a low-order or non-canonical key.
        SignatureInvalid: signed by another key, or altered.
    """
    return read_signed_card(raw, GuardianCard, CARD_LABEL, "identity", _sound_card)


def _sound_card(card: GuardianCard) -> bool:
    named = card.schema == CARD_SCHEMA and is_name(card.name) and is_name(card.group)
    return named and is_hash(card.identity) and is_signature(card.sig)
