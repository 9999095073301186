# SPDX-License-Identifier: Apache-2.0
"""What the log must show before anybody believes in a round's agreement: manifest, guardians' keys, roster.

Rules kept here:
* the first `round-opened` leaf of the coordinator names the manifest, at least LEAD_DAYS before the first event that
  counts (a demonstration is not bound to that);
* every guardian's round key and nonce commitment stand in a `guardian-ready` leaf that this guardian signed and that
  was in the log before the manifest: nobody can put a key of their own in a guardian's place;
* the roster is the manifest's by hash and version, of the same log, signed by the coordinator and two of the
  manifest's guardians, lists exactly those guardians, and is counted here;
* pure: leaves in, a roster or a named refusal out. Pinned keys and limits are the policy's (`policy.py`), the
  manifest's signature is checked by `signed.py`, a member's own place by the member.

Members and guardians run the same checks. Source: docs/protocol.md (life of a round).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta

from windvane_privacy.errors import ManifestChanged, ManifestError, ManifestNotLogged, RosterError
from windvane_privacy.identity import KEY_KEM, key_id
from windvane_privacy.leaf import Leaf, first_of, signed_by
from windvane_privacy.manifest import LEAD_DAYS, GuardianEntry, Manifest, parse_time
from windvane_privacy.roster import Roster, SignedRoster, verify_roster


def check_agreement(manifest: Manifest, signed: SignedRoster, leaves: Sequence[Leaf]) -> Roster:
    """The roster of a manifest that the log shows in time, with the guardians' own keys.

    `manifest`: as `verify_signed_manifest` gave it, under the pinned key. `leaves`: every leaf of the log from its
    beginning, or at least from the first `guardian-ready` of the round.

    Raises:
        ManifestNotLogged, ManifestChanged: see `check_logged`.
        ManifestError: a guardian's key or nonce commitment is not the one that this guardian logged.
        RosterError, RosterSignatureMissing: another roster, other counts, or too few signatures.
    """
    opened = check_logged(manifest, leaves)
    before = {leaf.hash: leaf for leaf in leaves[: leaves.index(opened)]}
    for entry in manifest.guardians:
        _check_guardian(entry, manifest.round, before)
    return _check_roster(manifest, signed)


def check_logged(manifest: Manifest, leaves: Sequence[Leaf]) -> Leaf:
    """The coordinator's first `round-opened` leaf of the round, if it names this manifest and came in time.

    Raises:
        ManifestNotLogged: there is none, or it is later than LEAD_DAYS before the events (a demo may be later).
        ManifestChanged: it names another manifest.
    """
    opened = first_of(leaves, "round-opened", manifest.round, public=bytes.fromhex(manifest.coordinator))
    if opened is None:
        raise ManifestNotLogged
    if opened.fields["manifest"] != manifest.sha256:
        raise ManifestChanged
    first_day = parse_time(manifest.events.from_).date()
    if not manifest.demo and date.fromisoformat(opened.fields["day"]) + timedelta(days=LEAD_DAYS) > first_day:
        raise ManifestNotLogged("It was logged too late.")
    return opened


def _check_guardian(entry: GuardianEntry, round_id: str, before: Mapping[str, Leaf]) -> None:
    leaf = before.get(entry.ready_leaf)
    if leaf is None or (leaf.type, leaf.round) != ("guardian-ready", round_id):
        raise ManifestError("A guardian of the manifest is not in the log.")
    own = (entry.index, entry.round_key, entry.round_key_id, entry.nonce_commitment)
    logged = tuple(leaf.fields[name] for name in ("guardian", "round_key", "round_key_id", "nonce_commitment"))
    named = key_id(KEY_KEM, bytes.fromhex(leaf.fields["round_key"]))
    if own != logged or named != entry.round_key_id or not signed_by(leaf, bytes.fromhex(entry.identity)):
        raise ManifestError("A guardian's key is not the one that this guardian put in the log.")


def _check_roster(manifest: Manifest, signed: SignedRoster) -> Roster:
    if signed.roster.sha256 != manifest.roster.sha256:
        raise RosterError("It is not the roster of the manifest.")
    guardians = [bytes.fromhex(entry.identity) for entry in manifest.guardians]
    roster = verify_roster(signed, bytes.fromhex(manifest.coordinator), guardians)
    if roster.log_origin != manifest.log_origin:
        raise RosterError("It belongs to another log.")
    counted = (roster.version, len(roster.active), roster.people)
    if counted != (manifest.roster.version, manifest.roster.members, manifest.roster.people):
        raise RosterError("Counted again, it is not what the manifest says.")
    listed = [(g.index, g.identity) for g in roster.guardians]
    if listed != [(entry.index, entry.identity) for entry in manifest.guardians]:
        raise RosterError("Its guardians are not those of the manifest.")
    return roster
