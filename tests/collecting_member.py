# SPDX-License-Identifier: Apache-2.0
"""A member's state whose folders a test fills with logs."""

from __future__ import annotations

from pathlib import Path

from log_witnesses import PINS
from manifests import coordinator_key, make_guardians, make_manifest
from windvane_client.settings import LogFolder, MemberSettings
from windvane_client.state import MemberState
from windvane_privacy.manifest import Manifest
from windvane_privacy.roster import RosterGuardian
from windvane_privacy.signed import FEDERATION_SCHEMA, Federation, sign_manifest

MANIFEST = make_manifest()
PEOPLE = 'default = "drop"\ncanonical = "staff-id"\n[exclude]\nstaff_ids = ["gone"]\n'


def make_state(folder: Path, logs: tuple[LogFolder, ...], people: str = PEOPLE) -> MemberState:
    guardians = tuple(RosterGuardian(g.index, g.name, g.identity, f"group {g.index}") for g in make_guardians())
    document = Federation(
        FEDERATION_SCHEMA, "Test", coordinator_key().public.hex(), MANIFEST.log_origin, PINS, guardians, demo=True
    )
    settings = MemberSettings("Us", "100-249", (), "https://a.example", logs, str(folder / "second"))
    made = MemberState.create(folder / "member", settings, document.encode(), demo=True, people=people)
    adopt(made, MANIFEST)
    return made


def adopt(state: MemberState, manifest: Manifest) -> None:
    state.keep_manifest(manifest.round, sign_manifest(manifest, coordinator_key()))
