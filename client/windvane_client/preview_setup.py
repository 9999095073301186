# SPDX-License-Identifier: Apache-2.0
"""What a preview knows besides the logs: a throw-away set-up, or the member's own, and whether a round is open.

Rules kept here:
* without set-up everything is one person `me`, under a key that ends with the process;
* from the opening of a round's submission until the round has ended for this member its numbers are not seen; where the
  ledger cannot be read, they are not seen either;
* the ledger is only looked at, never written.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from datetime import datetime

from windvane_client.catalogue_builtin import builtin_catalogue
from windvane_client.collect import current_manifest, load_aliases
from windvane_client.ids import K_ORG_BYTES, KeyedIds
from windvane_client.people import People
from windvane_client.rules import Rules, load_rules
from windvane_client.settings import LogFolder
from windvane_client.state import MemberState, machine_id
from windvane_privacy.catalogue import Catalogue
from windvane_privacy.errors import LedgerError
from windvane_privacy.ledger_schema import FILE
from windvane_privacy.ledger_view import LedgerView
from windvane_privacy.manifest import Manifest, parse_time
from windvane_privacy.signed import verify_signed_manifest
from windvane_privacy.sqlite_file import SqliteFile


@dataclass(frozen=True, slots=True)
class Setup:
    """What a preview knows besides the logs. `folders` is empty and `manifest` None without set-up.

    `open_round`: id of a round whose numbers must not be seen now.
    """

    key: bytes
    people: People
    rules: Rules
    catalogue: Catalogue
    aliases: dict[str, str] = field(default_factory=dict)
    folders: tuple[LogFolder, ...] = ()
    manifest: Manifest | None = None
    open_round: str | None = None
    collector_key: int = 1

    @property
    def ids(self) -> KeyedIds:
        """Ids under the set-up's key."""
        return KeyedIds(self.key, self.people, number=self.collector_key)

    @property
    def is_member(self) -> bool:
        """Whether there is a set-up."""
        return self.people.everyone is None


def no_setup() -> Setup:
    """One person `me`, a key that nobody keeps, the shipped catalogue, no rules."""
    return Setup(secrets.token_bytes(K_ORG_BYTES), People.me(), Rules(), builtin_catalogue())


def setup_of(state: MemberState, now: datetime) -> Setup:
    """The set-up of a member. `now`: the real time, UTC; it decides whether a round is open.

    Raises:
        ConfigurationError: a file of the set-up is missing or wrong.
    """
    key, people = state.k_org, state.people
    manifest = current_manifest(state, now)
    catalogue = manifest.catalogue if manifest is not None else builtin_catalogue()
    return Setup(
        key=key,
        people=people,
        rules=load_rules(state.folder).with_people(KeyedIds(key, people).staff),
        catalogue=catalogue,
        aliases=load_aliases(state.folder / "aliases.toml", catalogue),
        folders=state.settings.logs,
        collector_key=state.settings.collector_key,
        manifest=manifest,
        open_round=open_round(state, now),
    )


def open_round(state: MemberState, now: datetime) -> str | None:
    """The round whose numbers must not be seen: its submission has opened, and it has not ended for this member.

    A round in which this member never drew ends when its submission closes.
    """
    coordinator = bytes.fromhex(state.policy.coordinator)
    manifests = [verify_signed_manifest(raw, coordinator) for raw in state.manifests()]
    begun = [one for one in manifests if parse_time(one.submission.opens) <= now]
    if not begun:
        return None
    try:
        file = SqliteFile(state.folder / "ledger", FILE)
    except LedgerError:
        return begun[-1].round
    try:
        view = LedgerView(file, machine_id())
        if view.damage is not None:
            return begun[-1].round
        for manifest in begun:
            entry = view.round(manifest.round)
            if not (now >= parse_time(manifest.submission.closes) if entry is None else entry.state.final):
                return manifest.round
    finally:
        file.close()
    return None
