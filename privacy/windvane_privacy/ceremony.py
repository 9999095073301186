# SPDX-License-Identifier: Apache-2.0
"""What the log must show in closing week: the closed set, the nonces and the lot, as pure checks.

Rules kept here:
* the closed set is every `accepted` leaf before the first `round-closed` leaf, no more and no less, each with the
  member's own first commitment;
* the lot is recomputed from the nonces in the log; a guardian whose nonce stands in the log before the lot cannot be
  left out of it;
* too few organisations or too small a cohort stops the round before anything is opened.

Members, guardians and auditors run the same checks. Source: docs/protocol.md (life of a round).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

from windvane_privacy import lot
from windvane_privacy.errors import (
    CommitMismatch,
    LotBeforeClose,
    LotMismatch,
    ManifestNotLogged,
    NonceMismatch,
    NotCommitted,
    NotReady,
    RoundNotOpened,
    SetMismatch,
    UnknownMember,
)
from windvane_privacy.leaf import Leaf, first_of, is_aborted, signed_by
from windvane_privacy.manifest import GuardianEntry, Manifest, parse_time
from windvane_privacy.roster import Roster


@dataclass(frozen=True, slots=True)
class ClosedSet:
    """The accepted members of a round by number, each with its commit hash (hex); `place` is the index of the
    `round-closed` leaf among the leaves that were looked at."""

    accepted: tuple[tuple[int, str], ...]
    set_root: str
    place: int

    @property
    def members(self) -> tuple[int, ...]:
        """Accepted member numbers in order."""
        return tuple(member for member, _ in self.accepted)


def closed_set(leaves: Sequence[Leaf], manifest: Manifest, roster: Roster) -> ClosedSet:
    """The set that the log fixed when the round closed.

    Raises:
        LotBeforeClose: no `round-closed` leaf yet.
        SetMismatch: the root or the number is not that of the accepted leaves before it, or a member occurs twice.
        UnknownMember: an accepted member is not active in the roster.
        NotCommitted, CommitMismatch: an accepted member's own first commitment is missing, late or another one.
    """
    coordinator = bytes.fromhex(manifest.coordinator)
    closing = first_of(leaves, "round-closed", manifest.round, public=coordinator)
    if closing is None:
        raise LotBeforeClose
    place = leaves.index(closing)
    opened = first_of(leaves[:place], "round-opened", manifest.round, public=coordinator)
    if opened is None:
        raise ManifestNotLogged
    agreed = manifest.sha256
    last_day = parse_time(manifest.submission.commit_by).date()
    keys = {member.number: bytes.fromhex(member.key) for member in roster.active}
    first: dict[int, Leaf] = {}
    accepted: dict[int, str] = {}
    for leaf in leaves[leaves.index(opened) : place]:
        if leaf.round != manifest.round or leaf.type not in {"commitment", "accepted"}:
            continue
        member = leaf.fields["member"]
        if leaf.type == "commitment":
            if member in keys and member not in first and signed_by(leaf, keys[member]):
                first[member] = leaf
        elif signed_by(leaf, coordinator):
            if member in accepted:
                raise SetMismatch("A member was accepted twice.")
            if member not in keys:
                raise UnknownMember
            check_commitment(first.get(member), leaf.fields["hash"], agreed, last_day)
            accepted[member] = leaf.fields["hash"]
    rows = tuple(sorted(accepted.items()))
    root = lot.set_root(rows)
    if closing.fields["set_root"] != root or closing.fields["members"] != len(rows):
        raise SetMismatch
    return ClosedSet(rows, root, place)


def fixed_lot(leaves: Sequence[Leaf], manifest: Manifest, closed: ClosedSet) -> tuple[tuple[int, ...], ...]:
    """The cohorts of the first `lot` leaf after the set was closed, recomputed from the nonces in the log.

    Raises:
        NotReady: no `lot` leaf yet.
        NonceMismatch: a revealed nonce is not the one that was committed, or is bound to another set.
        LotMismatch: fewer than t nonces, a logged nonce left out or one that is not logged put in, another set, or
            other cohorts.
        RoundNotOpened: see `check_floors`.
    """
    drawn = first_of(leaves, "lot", manifest.round, public=bytes.fromhex(manifest.coordinator))
    if drawn is None:
        raise NotReady("The lot has not been drawn yet.")
    place = leaves.index(drawn)
    if place < closed.place or drawn.fields["set_root"] != closed.set_root:
        raise LotMismatch
    nonces = revealed_nonces(leaves[closed.place : place], manifest, closed.set_root)
    if drawn.fields["nonces"] != [None if nonce is None else nonce.hex() for nonce in nonces]:
        raise LotMismatch
    if sum(nonce is not None for nonce in nonces) < manifest.t:
        raise LotMismatch("Fewer nonces than guardians needed.")
    check_floors(manifest, len(closed.accepted))
    table = lot.cohorts(closed.members, lot.lot_seed(manifest.sha256, closed.set_root, nonces), manifest.cohorts.G)
    if lot.cohorts_sha256(table) != drawn.fields["cohorts_sha256"]:
        raise LotMismatch
    return table


def revealed_nonces(leaves: Iterable[Leaf], manifest: Manifest, set_root: str) -> list[bytes | None]:
    """Per guardian, in order, the first nonce among these leaves that this guardian signed; None where there is none.

    Raises:
        NonceMismatch: see `check_nonce`.
    """
    listed = list(leaves)
    found: list[bytes | None] = []
    for entry in manifest.guardians:
        public = bytes.fromhex(entry.identity)
        leaf = first_of(listed, "nonce", manifest.round, public=public, guardian=entry.index)
        found.append(None if leaf is None else check_nonce(leaf, entry, manifest.round, set_root))
    return found


def check_nonce(leaf: Leaf, entry: GuardianEntry, round_id: str, set_root: str) -> bytes:
    """The nonce of a `nonce` leaf, whose signature was checked; 32 bytes.

    Raises:
        NonceMismatch: it does not fit the commitment in the manifest, or it is bound to another set.
    """
    nonce = bytes.fromhex(leaf.fields["nonce"])
    if leaf.fields["set_root"] != set_root:
        raise NonceMismatch("It is bound to another set.")
    if lot.nonce_commitment(round_id, entry.index, nonce) != entry.nonce_commitment:
        raise NonceMismatch
    return nonce


def check_not_stopped(leaves: Sequence[Leaf], manifest: Manifest) -> None:
    """Refuse to go on with a round that the coordinator ended by hand.

    Raises:
        RoundNotOpened: the log holds the coordinator's `incident` leaf that says so.
    """
    if is_aborted(leaves, manifest.round, bytes.fromhex(manifest.coordinator)):
        raise RoundNotOpened("The coordinator stopped it.")


def is_enough(manifest: Manifest, accepted: int) -> bool:
    """Whether so many accepted organisations reach the manifest's floor and fill its cohorts.

    Cohort sizes differ by at most one, so the smallest has `m_min` members exactly when `accepted >= G m_min`.
    """
    return accepted >= max(manifest.floors.accepted, manifest.cohorts.G * manifest.cohorts.m_min)


def check_floors(manifest: Manifest, accepted: int) -> None:
    """Stop a round with fewer accepted organisations than the manifest demands, or than its cohorts need.

    Raises:
        RoundNotOpened: it stays charged and is never retried on the same data.
    """
    if not is_enough(manifest, accepted):
        raise RoundNotOpened("Too few organisations.")


def check_commitment(first: Leaf | None, accepted: str, agreed: str, last_day: date) -> None:
    """Refuse an envelope's hash that is not a member's first commitment (`first`) to the agreement `agreed`, in time.

    Raises:
        NotCommitted: there is none, it is to another agreement, or it came after `last_day`.
        CommitMismatch: it is another hash.
    """
    if first is None or first.fields["manifest"] != agreed:
        raise NotCommitted
    if date.fromisoformat(first.fields["day"]) > last_day:
        raise NotCommitted("It came after the last moment for a commitment.")
    if first.fields["hash"] != accepted:
        raise CommitMismatch
