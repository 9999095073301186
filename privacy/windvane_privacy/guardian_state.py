# SPDX-License-Identifier: Apache-2.0
"""A guardian's state folder: its identity key, its card, the coordinator it pinned, its policy and its ledger.

Rules kept here:
* the key is made here and never leaves; what the coordinator gets is the signed card `guardian.json`;
* the coordinator is pinned once, from its federation document, after a person compared the fingerprints;
* the guardian's own policy pins the coordinator and the other guardians; the centre cannot change it;
* nothing that exists is ever overwritten.

Files: identity.key, guardian.json, guardian.db, then federation.json, policy.toml, and one round-ROUND.key a round.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from windvane_privacy import keyfiles
from windvane_privacy.errors import ConfigurationError, GuardianNotPinned, StateExists
from windvane_privacy.guardian_ledger import GuardianLedger
from windvane_privacy.identity import SigningKey
from windvane_privacy.passphrase import read_key, write_key
from windvane_privacy.policy import PinnedGuardian, Policy, load_policy, policy_toml
from windvane_privacy.quorum import WitnessPolicy
from windvane_privacy.sealing import RoundKey
from windvane_privacy.signed import Federation, GuardianCard, decode_federation, make_card, read_card

IDENTITY, CARD, FEDERATION, POLICY = "identity.key", "guardian.json", "federation.json", "policy.toml"


@dataclass(frozen=True, slots=True)
class GuardianState:
    """What a session needs of the folder. `index`: the guardian's number in the federation, from 1."""

    folder: Path
    identity: SigningKey
    index: int
    policy: Policy
    federation: Federation

    @property
    def coordinator(self) -> bytes:
        """The pinned coordinator's identity key, 32 bytes."""
        return bytes.fromhex(self.policy.coordinator)

    @property
    def log_origin(self) -> str:
        """Name of the pinned log."""
        return self.policy.log_origin

    @property
    def log_policy(self) -> WitnessPolicy:
        """Which checkpoints of the log are believed here."""
        return self.federation.log_policy

    def round_key(self, round_id: str) -> RoundKey:
        """This round's encryption key.

        Raises:
            ConfigurationError: it was never made, or is gone.
            KeyFileTooOpen: others can read it.
        """
        return RoundKey.from_raw(read_key(self._round_key_file(round_id)))

    def make_round_key(self, round_id: str) -> RoundKey:
        """This round's encryption key, made now unless an earlier call that was cut short has made it."""
        path = self._round_key_file(round_id)
        if path.exists():
            return self.round_key(round_id)
        key = RoundKey.generate()
        write_key(path, key.raw)
        return key

    def destroy_round_key(self, round_id: str) -> None:
        """Overwrite and delete this round's encryption key; nothing happens where it is gone.

        On disks that copy on write, on flash and in backups older bytes may survive: keep the folder on an encrypted
        disk and out of backups.
        """
        path = self._round_key_file(round_id)
        if path.exists():
            keyfiles.destroy_secret(path)

    def _round_key_file(self, round_id: str) -> Path:
        return self.folder / f"round-{round_id}.key"


def init_guardian(folder: Path, name: str, group: str) -> bytes:
    """Make the identity key, the ledger and the card; the card is what the coordinator needs of this guardian.

    Raises:
        StateExists: the folder is set up already.
        MalformedInput: the name or the group is not printable text of 1 to 200 characters.
        KeyFileTooOpen, ConfigurationError: the folder cannot be used.
        UnsupportedPlatform: no file locks here.
    """
    keyfiles.require_platform()
    key = SigningKey.generate()
    card = make_card(key, name, group)
    keyfiles.secure_folder(folder)
    if (folder / IDENTITY).exists():
        raise StateExists
    GuardianLedger.create(folder)
    keyfiles.write_secret(folder / CARD, card)
    write_key(folder / IDENTITY, key.raw)
    return card


def own_card(folder: Path) -> GuardianCard:
    """The card of this folder.

    Raises:
        ConfigurationError: `init_guardian` has not been run here.
    """
    return read_card(keyfiles.read_secret(folder / CARD))


def pin_coordinator(folder: Path, federation: bytes, *, demo: bool = False) -> Federation:
    """Pin the coordinator, its log and the guardians of a federation, and write the policy with its defaults.

    `demo`: whether this guardian takes part in demonstrations. Show `fingerprint_words` of the coordinator's key to a
    person before the first `ready`.

    Raises:
        StateExists: a coordinator is pinned already.
        GuardianNotPinned: the federation does not list this guardian's own key, name and group.
        MalformedInput, KeyRefused: not a federation's document.
    """
    found = decode_federation(federation)
    card = own_card(folder)
    if (card.identity, card.name, card.group) not in [(g.identity, g.name, g.group) for g in found.guardians]:
        raise GuardianNotPinned("The federation does not list this guardian.")
    if (folder / POLICY).exists():
        raise StateExists("A coordinator is pinned already.")
    text = policy_toml(
        coordinator=found.coordinator,
        log_origin=found.log_origin,
        guardians=[PinnedGuardian(g.name, g.identity, g.group) for g in found.guardians],
        demo=demo,
        role="guardian",
    )
    if not (folder / FEDERATION).exists():
        keyfiles.write_secret(folder / FEDERATION, federation)
    elif keyfiles.read_secret(folder / FEDERATION) != federation:
        raise StateExists("Another federation was pinned here.")
    keyfiles.write_secret(folder / POLICY, text.encode())
    return found


def load_guardian(folder: Path) -> GuardianState:
    """The state for a session.

    Raises:
        ConfigurationError, PolicyMissing, KeyFileTooOpen: a file is missing, malformed or open to others.
        GuardianNotPinned: the key here is not one of the federation.
    """
    identity = SigningKey.from_raw(read_key(folder / IDENTITY))
    policy = load_policy(folder / POLICY)
    federation = decode_federation(keyfiles.read_secret(folder / FEDERATION))
    index = next((g.index for g in federation.guardians if g.identity == identity.public.hex()), None)
    if index is None:
        raise GuardianNotPinned("The federation does not list this guardian.")
    if (federation.coordinator, federation.log_origin) != (policy.coordinator, policy.log_origin):
        raise ConfigurationError("policy.toml and federation.json pin different coordinators.")
    return GuardianState(folder, identity, index, policy, federation)
