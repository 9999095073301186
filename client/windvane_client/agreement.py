# SPDX-License-Identifier: Apache-2.0
"""What a member checks before it believes in a round: manifest, log, roster, guardians' keys, its own place.

Rules kept here:
* the pinned keys of policy.toml decide; nothing that the coordinator serves is believed unsigned;
* the manifest is the one of the first `round-opened` entry, logged at least LEAD_DAYS before the events begin (a
  demonstration is not bound to that);
* the roster carries the coordinator's and two pinned guardians' signatures, follows the one accepted last, has the
  hash, size and people of the manifest, and lists our key; we count it ourselves;
* each guardian's round key was logged and signed by that guardian: the coordinator cannot put in its own;
* every function is pure: bytes in, an `Agreement` or a named refusal out.

Source: docs/protocol.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

from windvane_privacy.errors import (
    GuardianNotPinned,
    ManifestChanged,
    ManifestError,
    ManifestNotLogged,
    RosterError,
    UnknownManifest,
)
from windvane_privacy.identity import SigningKey
from windvane_privacy.log import Leaf, Scan, first_of, signed_by
from windvane_privacy.manifest import LEAD_DAYS, GuardianEntry, Manifest, parse_time
from windvane_privacy.policy import Policy
from windvane_privacy.roster import Roster, SignedRoster, check_successor, verify_roster
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
        ManifestSignatureInvalid, ManifestNotLogged, ManifestChanged, ManifestError: see the rules.
        RosterError: its signatures, succession or size; UnknownMember if we are not in it.
        GuardianNotPinned: a guardian is not the one that is pinned, or its round key not the one it logged.
    """
    coordinator = bytes.fromhex(policy.coordinator)
    manifest = verify_signed_manifest(raw, coordinator)
    if manifest.round != round_id:
        raise UnknownManifest
    check_logged(manifest, scan, coordinator)
    signed = SignedRoster.decode(roster)
    found = verify_roster(signed, coordinator, [bytes.fromhex(g.identity) for g in policy.guardians])
    _check_roster(found, manifest, policy)
    if accepted is not None:
        # The round's own roster may be older than the newest one that was accepted for a later round.
        old = SignedRoster.decode(accepted).roster
        check_successor(*sorted((old, found), key=lambda one: one.version))
    for entry in manifest.guardians:
        _check_guardian(entry, manifest, scan, policy)
    return Agreement(manifest, raw, found, roster, found.by_key(key.public.hex()).number)


def check_logged(manifest: Manifest, scan: Scan, coordinator: bytes) -> None:
    """The first `round-opened` entry of the round is about this manifest, and came in time.

    Raises:
        ManifestNotLogged, ManifestChanged.
    """
    opened = first_of(scan.leaves, "round-opened", manifest.round, public=coordinator)
    if opened is None:
        raise ManifestNotLogged
    if opened.fields["manifest"] != manifest.sha256:
        raise ManifestChanged
    start = parse_time(manifest.events.from_).date()
    if not manifest.demo and date.fromisoformat(opened.fields["day"]) + timedelta(days=LEAD_DAYS) > start:
        raise ManifestNotLogged("It was logged too late.")


def _check_roster(roster: Roster, manifest: Manifest, policy: Policy) -> None:
    reference = manifest.roster
    if roster.sha256 != reference.sha256 or roster.version != reference.version:
        raise RosterError("It is not the manifest's.")
    if (len(roster.active), roster.people) != (reference.members, reference.people):
        raise RosterError("Its size is not the one that the manifest states.")
    if roster.log_origin != policy.log_origin:
        raise RosterError("It belongs to another log.")
    if [g.identity for g in roster.guardians] != [g.identity for g in manifest.guardians]:
        raise RosterError("Its guardians are not the manifest's.")


def _check_guardian(entry: GuardianEntry, manifest: Manifest, scan: Scan, policy: Policy) -> None:
    if entry.identity not in {guardian.identity for guardian in policy.guardians}:
        raise GuardianNotPinned
    ready = next((leaf for leaf in scan.leaves if leaf.hash == entry.ready_leaf), None)
    if ready is None or not _is_ready(ready, entry, manifest):
        raise ManifestError("A guardian's key of this round is not the one that the guardian logged.")


def _is_ready(leaf: Leaf, entry: GuardianEntry, manifest: Manifest) -> bool:
    told = (entry.index, entry.round_key, entry.round_key_id, entry.nonce_commitment)
    fields = leaf.fields
    return (
        leaf.type == "guardian-ready"
        and leaf.round == manifest.round
        and told == tuple(fields[name] for name in ("guardian", "round_key", "round_key_id", "nonce_commitment"))
        and signed_by(leaf, bytes.fromhex(entry.identity))
    )
