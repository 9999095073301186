# SPDX-License-Identifier: Apache-2.0
"""The member's state folder: settings, keys, policy, people, ledger, collection.

Rules kept here:
* everything lies in one folder, 0700, made once and whole: a crash in between leaves nothing half made;
* existing keys and ledgers are never overwritten (`StateExists`), a missing ledger is never made anew by using it;
* every file is checked as a whole when it is read; an unknown field is an error;
* a disk that does not take a file is a named refusal; the step is taken again with the same bytes;
* the newest checkpoint of the log is kept a second time outside the folder, so that a restored copy of it shows;
* nothing in here is sent anywhere but the public enrolment card.

    member.toml  policy.toml  people.toml  federation.json  enrolled.json
    policy.adopted.toml                    the policy as the ledger noted it last
    persons_since.csv                      attested first days, after a loss only
    keys/identity.key  keys/k_org.key      0600
    ledger/ledger.db                       what was drawn and what it cost
    collection/collection.db               events of the open window
    manifests/ROUND.json                   agreements as signed
    roster.json                            the newest roster that was accepted
    evidence/                              log entries in our name that we did not sign
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import tomllib
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from windvane_client.ids import KeyedIds, load_or_make_k_org
from windvane_client.people import PEOPLE_TOML, People, load_people, parse_people
from windvane_client.settings import MemberSettings, check_settings, settings_toml
from windvane_privacy.errors import ConfigurationError, DemoManifest, StateExists, StateNotWritten
from windvane_privacy.identity import SigningKey
from windvane_privacy.keyfiles import (
    replace_file,
    require_platform,
    secure_folder,
    sync_folder,
    write_secret,
)
from windvane_privacy.ledger import Ledger
from windvane_privacy.log import is_round
from windvane_privacy.passphrase import read_key, write_key
from windvane_privacy.policy import PinnedGuardian, Policy, load_policy, policy_toml
from windvane_privacy.quorum import WitnessPolicy
from windvane_privacy.roster import make_enrolment
from windvane_privacy.signed import Federation, decode_federation

MAX_FILE_BYTES = 1 << 24
_MACHINE_LABEL = b"windvane/1/machine\0"


@dataclass(frozen=True, slots=True)
class MemberState:
    """An existing state folder."""

    folder: Path

    # --- making it ---

    @classmethod
    def create(
        cls,
        folder: Path,
        settings: MemberSettings,
        federation: bytes,
        *,
        demo: bool = False,
        approval: Literal["auto", "human"] = "human",
        people: str | None = None,
    ) -> MemberState:
        """Make a member's state, once. `federation`: the coordinator's document, as its key was compared; `people`: the
        text of people.toml (default: a commented one that maps nobody).

        Raises:
            StateExists: the folder holds something.
            ConfigurationError: a setting is malformed.
            DemoManifest: the federation is a demonstration and `demo` is not set.
            UnsupportedPlatform: a ledger cannot be kept here.
        """
        require_platform()
        check_settings(settings)
        found = decode_federation(federation)
        if found.demo and not demo:
            raise DemoManifest("This federation is a demonstration.")
        parse_people(people if people is not None else PEOPLE_TOML)
        if folder.exists() and any(folder.iterdir()):
            raise StateExists
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = folder.with_name(f".{folder.name}.{secrets.token_hex(8)}")
        try:
            _fill(draft, settings, federation, found, demo, approval, people)
            _sync_tree(draft)
            # rename(2) takes an empty folder's place and refuses a filled one.
            draft.rename(folder)
        except OSError as error:
            if folder.exists() and any(folder.iterdir()):
                raise StateExists from None
            raise ConfigurationError("The state folder cannot be written.") from error
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        return cls(folder.absolute())

    @classmethod
    def open(cls, folder: Path) -> MemberState:
        """The state in a folder.

        Raises:
            ConfigurationError: there is none.
            KeyFileTooOpen: others can enter it.
        """
        if not (folder / "member.toml").is_file():
            raise ConfigurationError("No member is set up in this folder.")
        secure_folder(folder)
        return cls(folder.absolute())

    # --- reading it ---

    @property
    def settings(self) -> MemberSettings:
        """member.toml. Raises ConfigurationError."""
        try:
            settings = msgspec.convert(tomllib.loads(self._read("member.toml").decode("utf-8")), MemberSettings)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError):
            raise ConfigurationError("member.toml has a field that is missing, unknown or malformed.") from None
        check_settings(settings)
        return settings

    @property
    def policy(self) -> Policy:
        """policy.toml. Raises PolicyMissing, ConfigurationError."""
        return load_policy(self.folder / "policy.toml")

    @property
    def federation(self) -> Federation:
        """The federation's document as it was accepted."""
        return decode_federation(self._read("federation.json"))

    def log_policy(self, policy: Policy) -> WitnessPolicy:
        """Which checkpoints of the log are believed under a policy.

        Raises:
            ConfigurationError: the federation that was accepted here is another one than the policy pins.
        """
        federation = self.federation
        if (federation.coordinator, federation.log_origin) != (policy.coordinator, policy.log_origin):
            raise ConfigurationError("policy.toml and federation.json pin different coordinators.")
        return federation.log_policy

    @property
    def key(self) -> SigningKey:
        """The identity key."""
        return SigningKey.from_raw(read_key(self.folder / "keys" / "identity.key"))

    @property
    def people(self) -> People:
        """people.toml. Raises ConfigurationError."""
        return load_people(self.folder / "people.toml")

    @property
    def k_org(self) -> bytes:
        """Key of the keyed ids: 32 bytes."""
        path = self.folder / "keys" / "k_org.key"
        if not path.exists():
            raise ConfigurationError("keys/k_org.key is missing; without it nobody's charges can be found.")
        return load_or_make_k_org(path)

    @property
    def ids(self) -> KeyedIds:
        """The keyed ids of this organisation. Raises ConfigurationError."""
        return KeyedIds(self.k_org, self.people, number=self.settings.collector_key)

    @property
    def collection(self) -> Path:
        """File of the event store."""
        return self.folder / "collection" / "collection.db"

    def card(self) -> bytes:
        """The signed public card with which this member enrols."""
        settings = self.settings
        return make_enrolment(self.key, settings.name, settings.band, settings.ties)

    def ledger(self) -> Ledger:
        """The open ledger. Raises LedgerLocked, LedgerDamaged, LedgerFormat."""
        return Ledger.open(self.folder / "ledger", machine_id=machine_id())

    # --- what a round leaves ---

    @property
    def enrolled(self) -> bool:
        """Whether the coordinator has taken the card."""
        return (self.folder / "enrolled.json").is_file()

    def keep_enrolled(self, answer: bytes) -> None:
        """The coordinator has taken the card."""
        _replace(self.folder / "enrolled.json", answer)

    def manifest(self, round_id: str) -> bytes | None:
        """The signed manifest of a round, as it was verified."""
        path = self._manifest_path(round_id)
        return self._read(path) if path.is_file() else None

    def manifests(self) -> list[bytes]:
        """Every signed manifest that was verified here."""
        folder = self.folder / "manifests"
        return [self._read(path) for path in sorted(folder.glob("*.json"))] if folder.is_dir() else []

    def keep_manifest(self, round_id: str, raw: bytes) -> None:
        """Keep a verified signed manifest; the ledger says whether it is approved."""
        secure_folder(self.folder / "manifests")
        _replace(self._manifest_path(round_id), raw)

    def roster(self) -> bytes | None:
        """The newest accepted roster."""
        return self._read("roster.json") if (self.folder / "roster.json").is_file() else None

    def keep_roster(self, raw: bytes) -> None:
        """Replace the newest accepted roster."""
        _replace(self.folder / "roster.json", raw)

    def second_head(self) -> bytes | None:
        """The checkpoint of the log as kept outside this folder."""
        path = self._second_path()
        return self._read(path) if path.is_file() else None

    def keep_second_head(self, raw: bytes) -> None:
        """Keep the newest checkpoint outside this folder."""
        path = self._second_path()
        secure_folder(path.parent)
        _replace(path, raw)

    def keep_evidence(self, name: str, raw: bytes) -> Path:
        """Keep a log entry that accuses somebody; `name` is its hash."""
        folder = secure_folder(self.folder / "evidence")
        path = folder / f"{name}.json"
        if not path.exists():
            _replace(path, raw)
        return path

    def _second_path(self) -> Path:
        # By key: a new member in the same folder must not be measured against the old one's log.
        return Path(self.settings.second_place) / f"checkpoint-{self.key.key_id[:16]}"

    def _manifest_path(self, round_id: str) -> Path:
        if not is_round(round_id):
            raise ConfigurationError("The name of the round is malformed.")
        return self.folder / "manifests" / f"{round_id}.json"

    def _read(self, name: str | Path) -> bytes:
        path = self.folder / name
        try:
            with path.open("rb") as file:
                raw = file.read(MAX_FILE_BYTES + 1)
        except OSError:
            raise ConfigurationError(f"{path.name} is missing or cannot be read.") from None
        if len(raw) > MAX_FILE_BYTES:
            raise ConfigurationError(f"{path.name} is too long.")
        return raw


def _replace(path: Path, raw: bytes) -> None:
    try:
        replace_file(path, raw)
    except OSError:
        raise StateNotWritten(f"{path.name} could not be written.") from None


def machine_id() -> str:
    """A stable id of this machine, hashed: it tells a copied installation apart and names no machine."""
    try:
        raw = Path("/etc/machine-id").read_bytes().strip()
    except OSError:
        raw = b""
    return hashlib.sha256(_MACHINE_LABEL + (raw or str(uuid.getnode()).encode())).hexdigest()


def usual_second_place(home: Path) -> Path:
    """Where the second copy of the checkpoint lies unless told otherwise: in the home's folder for programs' state."""
    base = os.environ.get("XDG_STATE_HOME", "")
    return (Path(base) if base.startswith("/") else home / ".local" / "state") / "windvane"


def _fill(
    draft: Path,
    settings: MemberSettings,
    federation: bytes,
    found: Federation,
    demo: bool,
    approval: Literal["auto", "human"],
    people: str | None,
) -> None:
    secure_folder(draft)
    for name in ("keys", "collection", "manifests"):
        secure_folder(draft / name)
    key = SigningKey.generate()
    write_key(draft / "keys" / "identity.key", key.raw)
    load_or_make_k_org(draft / "keys" / "k_org.key")
    policy = policy_toml(
        coordinator=found.coordinator,
        log_origin=found.log_origin,
        guardians=[PinnedGuardian(g.name, g.identity, g.group) for g in found.guardians],
        demo=demo,
        approval=approval,
    )
    write_secret(draft / "policy.toml", policy.encode())
    write_secret(draft / "people.toml", (people if people is not None else PEOPLE_TOML).encode())
    write_secret(draft / "federation.json", federation)
    write_secret(draft / "member.toml", settings_toml(settings).encode())
    Ledger.create(draft / "ledger", key_id=key.key_id, machine_id=machine_id())
    load_policy(draft / "policy.toml")


def _sync_tree(folder: Path) -> None:
    for inner in (*(p for p in folder.iterdir() if p.is_dir()), folder):
        sync_folder(inner)
