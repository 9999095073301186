# SPDX-License-Identifier: Apache-2.0
"""What a guardian's steps tell their caller, and what it was shown.

Rules kept here:
* values only; no nonce, key or share is in them.
"""

from __future__ import annotations

from dataclasses import dataclass

from windvane_privacy.leaf import Leaf
from windvane_privacy.manifest import Manifest
from windvane_privacy.roster import Roster, RosterMember


@dataclass(frozen=True, slots=True)
class ReadyOutcome:
    """What `ready` did. `new_members`: organisations that the roster lists and the last accepted one did not."""

    round_key_id: str
    roster_sha256: str
    new_members: tuple[RosterMember, ...]


@dataclass(frozen=True, slots=True)
class NonceOutcome:
    """What `reveal_nonce` did: whether the nonce is in the log (it is not, if the lot was drawn without it)."""

    revealed: bool
    set_root: str


@dataclass(frozen=True, slots=True)
class View:
    """What the coordinator shows of a round, verified up to the agreement. `day`: that of the log's checkpoint."""

    manifest: Manifest
    roster: Roster
    leaves: tuple[Leaf, ...]
    day: str
