# SPDX-License-Identifier: Apache-2.0
"""An envelope that the coordinator ignores and its member hands to guardians: what is held, and who was left out.

Rules kept here:
* only what must be in the closed set is held: the member is in the roster, the envelope has the manifest's exact form
  and the member's signature, this guardian's share opens, and its hash is the member's own first commitment, in time;
* what is forged, foreign or not committed is refused by name and holds nothing back;
* what the log shows as accepted is not held: the closed set must contain it anyway;
* a held envelope is in the closed set with its hash, or the member was left out.

Source: docs/protocol.md (an envelope that is ignored).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from windvane_privacy.ceremony import ClosedSet, check_commitment, check_not_stopped
from windvane_privacy.couriers import Parcel
from windvane_privacy.envelope import commit_hash, open_share, parse_envelope, verify_envelope
from windvane_privacy.errors import MalformedInput, UnknownMember
from windvane_privacy.leaf import Leaf, first_commitment, first_of, signed_by
from windvane_privacy.manifest import Manifest, parse_time
from windvane_privacy.parcel_file import decode_parcels
from windvane_privacy.roster import Roster
from windvane_privacy.sealing import RoundKey

OMITTED = "member-omitted"
"""`what` of a guardian's `incident` leaf: the set was closed without these members, whose envelopes it holds; `note`
lists their numbers."""


@dataclass(frozen=True, slots=True)
class Held:
    """An envelope that stands for a place in the closed set."""

    member: int
    commit_hash: str


def read_hand_over(raw: bytes) -> Parcel:
    """The one envelope of a handed-over file, as the parcel that the coordinator would get.

    Raises:
        MalformedInput: no file of parcels, or not exactly one envelope.
    """
    parcels = decode_parcels(raw)
    if len(parcels) != 1 or parcels[0].kind != "reveal":
        raise MalformedInput("A file that is handed over holds one envelope and nothing else.")
    return parcels[0]


def check_handed_over(
    raw: bytes, manifest: Manifest, roster: Roster, leaves: Sequence[Leaf], guardian: int, key: RoundKey
) -> Held:
    """What this envelope stands for, if it must be in the closed set.

    Raises:
        RoundNotOpened: the coordinator stopped the round.
        MalformedEnvelope, UnknownMember, BadMemberSignature, ShareError: it is not an envelope of this round.
        NotCommitted, CommitMismatch: it is not what the member committed to first, in time.
    """
    check_not_stopped(leaves, manifest)
    envelope = parse_envelope(raw, manifest)
    public = next((bytes.fromhex(m.key) for m in roster.active if m.number == envelope.member), None)
    if public is None:
        raise UnknownMember
    verify_envelope(envelope, public)
    digest = commit_hash(raw)
    first = first_commitment(_while_open(leaves, manifest), manifest.round, envelope.member, public)
    check_commitment(first, digest, manifest.sha256, parse_time(manifest.submission.commit_by).date())
    open_share(envelope, manifest, guardian, key)
    return Held(envelope.member, digest)


def is_accepted(held: Held, manifest: Manifest, leaves: Sequence[Leaf]) -> bool:
    """Whether the coordinator's entry for exactly this envelope stands in the log before the closing."""
    coordinator = bytes.fromhex(manifest.coordinator)
    wanted = {"member": held.member, "hash": held.commit_hash}
    return any(
        leaf.type == "accepted"
        and leaf.round == manifest.round
        and wanted.items() <= leaf.fields.items()
        and signed_by(leaf, coordinator)
        for leaf in _while_open(leaves, manifest)
    )


def left_out(held: Iterable[Held], closed: ClosedSet) -> tuple[int, ...]:
    """The members whose held envelopes are not in the closed set, by number."""
    inside = set(closed.accepted)
    return tuple(sorted(one.member for one in held if (one.member, one.commit_hash) not in inside))


def omission_note(members: Sequence[int]) -> str:
    """The `note` of the incident: member numbers, as many as an entry holds."""
    return ",".join(str(member) for member in members[:100])


def _while_open(leaves: Sequence[Leaf], manifest: Manifest) -> Sequence[Leaf]:
    """The leaves from the opening of the round to its closing, or to the end of the log."""
    coordinator = bytes.fromhex(manifest.coordinator)
    opened = first_of(leaves, "round-opened", manifest.round, public=coordinator)
    closing = first_of(leaves, "round-closed", manifest.round, public=coordinator)
    start = 0 if opened is None else leaves.index(opened)
    return leaves[start:] if closing is None else leaves[start : leaves.index(closing)]
