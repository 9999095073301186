# SPDX-License-Identifier: Apache-2.0
"""The public log as its readers see it: the scan of everything in it, receipts, and the checkpoints they kept.

Rules kept here:
* the log is the tree of `merkle.py` over leaves, under a checkpoint that the log signed and a quorum of pinned
  witnesses cosigned; a reader computes the root from the leaves and takes no one's word for it;
* a `Receipt` cannot be made but by `verify_receipt`, and a `Scan` shows every leaf up to a believed checkpoint;
* a checkpoint that does not continue the one seen before is refused; so is an old one, and an answer with a gap;
* the time of the log is that of its witnesses: a coordinator cannot date anything alone.

Source: RFC 6962 section 2.1; C2SP tlog-checkpoint, tlog-cosignature, tlog-proof (July 2026); docs/protocol.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import InitVar, dataclass
from datetime import UTC, datetime

from windvane_privacy import canonical
from windvane_privacy.errors import (
    InclusionRefused,
    InconsistentCheckpoint,
    LogIncomplete,
    MalformedInput,
    QuorumMissing,
    ReceiptRefused,
)
from windvane_privacy.leaf import (
    LEAF_TYPES,
    MAX_LEAF_BYTES,
    Leaf,
    first_commitment,
    first_of,
    forged_commitments,
    is_day,
    is_hash,
    is_round,
    leaf_hash,
    make_leaf,
    read_leaf,
    signed_by,
    verify_leaf,
)
from windvane_privacy.merkle import CompactRange, verify_inclusion
from windvane_privacy.notes import MAX_NOTE_BYTES, Checkpoint, parse_checkpoint
from windvane_privacy.proofs import parse_log_proof
from windvane_privacy.quorum import WitnessPolicy, believe

__all__ = [
    "LEAF_TYPES",
    "MAX_LEAF_BYTES",
    "Head",
    "Leaf",
    "Receipt",
    "Scan",
    "encode_leaves",
    "first_commitment",
    "first_of",
    "forged_commitments",
    "is_day",
    "is_hash",
    "is_round",
    "leaf_hash",
    "make_leaf",
    "read_head",
    "read_leaf",
    "scan",
    "signed_by",
    "verify_leaf",
    "verify_receipt",
]

MAX_SCAN_BYTES = 1 << 28
LEAVES_SCHEMA = "windvane/leaves/v2"


@dataclass(frozen=True, slots=True)
class Head:
    """A checkpoint that was believed. `time`: second since 1970 at which its quorum was complete. `raw`: the note."""

    checkpoint: Checkpoint
    time: int
    raw: bytes

    @property
    def size(self) -> int:
        """Leaves under it."""
        return self.checkpoint.size

    @property
    def day(self) -> str:
        """Its UTC day, of the form 2026-07-01."""
        return datetime.fromtimestamp(self.time, UTC).date().isoformat()


_VERIFIED = object()


@dataclass(frozen=True, slots=True)
class Receipt:
    """Proof that the leaf with `leaf_hash` (hex) has place `index` under a believed checkpoint.

    Only `verify_receipt` makes one.
    """

    index: int
    leaf_hash: str
    head: Head
    raw: bytes
    made_by: InitVar[object]

    def __post_init__(self, made_by: object) -> None:
        if made_by is not _VERIFIED:
            raise ReceiptRefused("It was not verified.")


@dataclass(frozen=True, slots=True)
class Scan:
    """Every leaf of the log up to `head`, in order."""

    leaves: tuple[Leaf, ...]
    head: Head

    def check_continues(self, seen: Head) -> None:
        """Refuse a log that is not the one seen before, grown.

        Raises:
            InconsistentCheckpoint: it is shorter than the checkpoint seen before, or has another root at that size.
        """
        if self.head.size < seen.size or self.root(seen.size) != seen.checkpoint.root:
            raise InconsistentCheckpoint

    def check_receipt(self, receipt: Receipt) -> None:
        """Refuse a log that does not hold what a receipt proves.

        Raises:
            ReceiptRefused: another leaf stands at the receipt's place, or the log is shorter than that.
            InconsistentCheckpoint: the receipt's checkpoint is of another history.
        """
        if receipt.index >= len(self.leaves) or self.leaves[receipt.index].hash != receipt.leaf_hash:
            raise ReceiptRefused
        if receipt.head.size <= self.head.size:
            self.check_continues(receipt.head)

    def root(self, size: int) -> bytes:
        """Root of the first `size` leaves, 32 bytes; `size` is at most that of the head."""
        return _range(self.leaves[:size]).root()


def read_head(raw: bytes, policy: WitnessPolicy, *, now: int | None = None) -> Head:
    """A checkpoint that the log signed and a quorum cosigned.

    `now`: seconds since 1970; None for one that was believed before and kept, which cannot be too old.

    Raises:
        MalformedInput: not a checkpoint.
        InconsistentCheckpoint: another log's.
        QuorumMissing, CheckpointTooOld: see `quorum.believe`.
    """
    found = believe(parse_checkpoint(raw), policy, now=now)
    return Head(found.checkpoint, found.timestamp, raw)


def verify_receipt(raw: bytes, leaf: bytes, policy: WitnessPolicy) -> Receipt:
    """The receipt of exactly this leaf.

    Raises:
        ReceiptRefused: malformed, of another leaf or log, or its checkpoint has no quorum.
    """
    try:
        proof = parse_log_proof(raw)
        head = read_head(proof.note.encode(), policy)
    except (MalformedInput, InconsistentCheckpoint, QuorumMissing) as error:
        raise ReceiptRefused(error.detail) from error
    digest = leaf_hash(leaf)
    try:
        verify_inclusion(proof.index, head.size, bytes.fromhex(digest), proof.path, head.checkpoint.root)
    except InclusionRefused as error:
        raise ReceiptRefused("It belongs to another entry, or to another place.") from error
    return Receipt(proof.index, digest, head, raw, _VERIFIED)


# --- answers to the `leaves` parcel ----------------------------------------------------------------------------------


def encode_leaves(note: bytes, leaves: Sequence[bytes]) -> bytes:
    """Lines of text: a canonical `{"checkpoint", "schema"}`, then one line a leaf, from the first to the checkpoint's
    size. Canonical JSON holds no raw line break, so the lines are the exact bytes that were signed.
    """
    first = canonical.encode({"schema": LEAVES_SCHEMA, "checkpoint": note.decode("utf-8")})
    return b"\n".join([first, *leaves]) + b"\n"


def scan(raw: bytes, policy: WitnessPolicy, *, now: int, seen: Head | None = None) -> Scan:
    """All leaves up to a believed checkpoint, with its root recomputed.

    `now`: seconds since 1970. `seen`: the newest checkpoint that the caller believed before.

    Raises:
        MalformedInput, MalformedLeaf: the answer is not of the agreed form.
        QuorumMissing, CheckpointTooOld: see `quorum.believe`.
        LogIncomplete: leaves are missing.
        InconsistentCheckpoint: the leaves have another root, or the log does not continue `seen`.
    """
    if len(raw) > MAX_SCAN_BYTES or not raw.endswith(b"\n"):
        raise MalformedInput
    first, *lines = raw[:-1].split(b"\n")
    value = canonical.decode(first, max_bytes=2 * MAX_NOTE_BYTES)
    if not isinstance(value, dict) or set(value) != {"schema", "checkpoint"}:
        raise MalformedInput
    if value["schema"] != LEAVES_SCHEMA or not isinstance(value["checkpoint"], str):
        raise MalformedInput
    head = read_head(value["checkpoint"].encode(), policy, now=now)
    if head.size != len(lines):
        raise LogIncomplete
    leaves = tuple(read_leaf(line) for line in lines)
    if _range(leaves).root() != head.checkpoint.root:
        raise InconsistentCheckpoint
    found = Scan(leaves, head)
    if seen is not None:
        found.check_continues(seen)
    return found


def _range(leaves: Sequence[Leaf]) -> CompactRange:
    found = CompactRange()
    for leaf in leaves:
        found.append(bytes.fromhex(leaf.hash))
    return found
