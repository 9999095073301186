# SPDX-License-Identifier: Apache-2.0
"""The collector file: what a laptop needs to write rows that the organisation's agent can merge.

Rules kept here:
* it holds k_collect and never k_org: with it nobody can compute a pseudonym of the ledger;
* it holds one person's staff id, or the whole people.toml for a machine with logs of many;
* whoever opted out gets no collector file;
* a staff id that people.toml does not name gets none either: its rows would count for nobody;
* it is a secret, 0600: who holds it can recognise colleagues among the rows of a shared folder.
"""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import msgspec

from windvane_client.catalogue_builtin import builtin_catalogue
from windvane_client.collect import current_manifest, parse_aliases
from windvane_client.ids import K_ORG_BYTES, collect_key
from windvane_client.people import parse_people, staff_id_text
from windvane_client.rules import parse_rules
from windvane_client.state import MemberState
from windvane_privacy.catalogue import Catalogue, Family
from windvane_privacy.errors import ConfigurationError

SCHEMA = "windvane/collector/v1"
MAX_BYTES = 1 << 22


class CollectorFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a collector file holds. `number`, `k_collect`: the key in force, hex. `people`, `rules`, `aliases`: texts of
    the files of these names. `families`: the list of models of the window."""

    schema: str
    number: int
    k_collect: str
    people: str
    rules: str
    aliases: str
    families: tuple[Family, ...]

    @property
    def key(self) -> bytes:
        """k_collect, 32 bytes."""
        return bytes.fromhex(self.k_collect)

    @property
    def catalogue(self) -> Catalogue:
        """The list of models."""
        return Catalogue(self.families)

    @property
    def parsed_aliases(self) -> dict[str, str]:
        """The table of aliases. Raises ConfigurationError."""
        return parse_aliases(self.aliases, self.catalogue)


def make_collector_file(state: MemberState, now: datetime, *, staff_id: str | None = None) -> bytes:
    """A collector file of this organisation: for one person's machine, or with the whole people.toml. `now`: UTC.

    Raises:
        ConfigurationError: a file of the set-up is wrong, or the person is not named in people.toml or opted out.
    """
    people = _text(state.folder / "people.toml")
    parsed = parse_people(people)
    if staff_id is not None:
        text = staff_id_text(staff_id)
        if text not in parsed.named_staff:
            raise ConfigurationError(
                "people.toml does not name this staff id, so its rows would count for nobody; add an entry [[person]]."
            )
        if parsed.is_excluded(text):
            raise ConfigurationError("This person has opted out.")
        people = f"[machine]\nstaff_id = {json.dumps(text, ensure_ascii=False)}\n"
    manifest = current_manifest(state, now)
    catalogue = manifest.catalogue if manifest is not None else builtin_catalogue()
    number = state.settings.collector_key
    return msgspec.json.encode(
        CollectorFile(
            SCHEMA,
            number,
            collect_key(state.k_org, number).hex(),
            people,
            _text(state.folder / "rules.toml"),
            _text(state.folder / "aliases.toml"),
            catalogue.families,
        )
    )


def read_collector_file(raw: bytes) -> CollectorFile:
    """A collector file, checked as a whole.

    Raises:
        ConfigurationError: it is none, or a part of it is malformed.
        ManifestError: its list of models is malformed.
    """
    try:
        file = msgspec.json.decode(raw, type=CollectorFile)
        good = file.schema == SCHEMA and len(file.key) == K_ORG_BYTES and file.number >= 1
    except (msgspec.DecodeError, ValueError):
        good = False
    if not good:
        raise ConfigurationError("This is no collector file of this version.")
    parse_people(file.people)
    parse_rules(file.rules, "")
    file.parsed_aliases  # noqa: B018 - checks it
    return file


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8") if path.exists() else ""
    except (OSError, UnicodeDecodeError):
        raise ConfigurationError(f"{path.name} cannot be read.") from None
