# SPDX-License-Identifier: Apache-2.0
"""What a member checks before it believes in a round: the agreement under its own pins, and its own place in it.

Rules kept here:
* the pinned keys of policy.toml decide; nothing that the coordinator serves is believed unsigned;
* every guardian of the manifest is pinned, and what the log must show of the agreement is checked by the same function
  that guardians use (`windvane_privacy.agreement`);
* the roster follows the one accepted last, and lists our key;
* every function is pure: bytes in, an `Agreement` or a named refusal out.

Source: docs/protocol.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from windvane_privacy.agreement import check_agreement
from windvane_privacy.errors import GuardianNotPinned, RosterError, UnknownManifest
from windvane_privacy.identity import SigningKey
from windvane_privacy.log import Scan
from windvane_privacy.manifest import Manifest
from windvane_privacy.policy import Policy
from windvane_privacy.roster import Roster, SignedRoster, check_successor
from windvane_privacy.signed import verify_signed_manifest


@dataclass(frozen=True, slots=True)
class Agreement:
    """A round that holds together. `member`: our number in its roster. `raw`: the signed manifest."""

    manifest: Manifest
    raw: bytes
    roster: Roster
    signed_roster: bytes
    member: int


def verify_agreement(
    raw: bytes, roster: bytes, scan: Scan, *, round_id: str, policy: Policy, key: SigningKey, accepted: bytes | None
) -> Agreement:
    """The agreement on a round. `accepted`: the signed roster that was accepted last, if any.

    Raises:
        UnknownManifest: the manifest is of another round.
        ManifestSignatureInvalid, ManifestNotLogged, ManifestChanged: not signed, not logged in time, or another one.
        ManifestError: a guardian's round key is not the one that this guardian logged.
        GuardianNotPinned: the manifest names a guardian that the policy does not list.
        RosterError: its signatures, succession, size or log; UnknownMember if we are not in it.
    """
    manifest = verify_signed_manifest(raw, bytes.fromhex(policy.coordinator))
    if manifest.round != round_id:
        raise UnknownManifest
    if not {entry.identity for entry in manifest.guardians} <= {guardian.identity for guardian in policy.guardians}:
        raise GuardianNotPinned
    found = check_agreement(manifest, SignedRoster.decode(roster), scan.leaves)
    if found.log_origin != policy.log_origin:
        raise RosterError("It belongs to another log.")
    if accepted is not None:
        # The round's own roster may be older than the newest one that was accepted for a later round.
        old = SignedRoster.decode(accepted).roster
        check_successor(*sorted((old, found), key=lambda one: one.version))
    return Agreement(manifest, raw, found, roster, found.by_key(key.public.hex()).number)
