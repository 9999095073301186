# SPDX-License-Identifier: Apache-2.0
"""The public log: an append-only hash chain of leaves, its signed heads, receipts, and the scan of everything in it.

Rules kept here:
* the log is a chain: `head_0 = H("windvane/1/chain\\0" || origin)`, `head_{i+1} = H("windvane/1/chain\\0" || head_i ||
  leaf_hash_i)` with `leaf_hash = SHA-256(0x00 || leaf)` as in RFC 6962, so that a Merkle tree can take its place and
  no leaf changes;
* a `Receipt` cannot be made but by `verify_receipt`, and a `Scan` shows every leaf from its start to a signed head;
* a head that does not continue the one seen before is refused; so is an answer with a gap.

Until witnesses cosign heads, the chain shows two histories only to someone who sees both of them.

Source: RFC 6962 section 2.1 (leaf hash), docs/protocol.md (log, receipts).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import InitVar, dataclass

from windvane_privacy import canonical
from windvane_privacy.canonical import JsonValue
from windvane_privacy.errors import (
    InconsistentCheckpoint,
    LogIncomplete,
    MalformedInput,
    ReceiptRefused,
    SignatureInvalid,
)
from windvane_privacy.identity import KEY_ED25519, SigningKey, key_id, verify
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
    is_signature,
    leaf_hash,
    make_leaf,
    read_leaf,
    signed_by,
    verify_leaf,
)

__all__ = [
    "LEAF_TYPES",
    "MAX_LEAF_BYTES",
    "Head",
    "Leaf",
    "Receipt",
    "Scan",
    "encode_leaves",
    "first_commitment",
    "first_head",
    "first_of",
    "forged_commitments",
    "is_day",
    "is_hash",
    "is_round",
    "leaf_hash",
    "make_head",
    "make_leaf",
    "make_receipt",
    "next_head",
    "read_leaf",
    "scan",
    "signed_by",
    "verify_head",
    "verify_leaf",
    "verify_receipt",
]

MAX_SCAN_BYTES = 1 << 28
CHAIN_LABEL = b"windvane/1/chain\0"
HEAD_LABEL = b"windvane/1/head\0"
RECEIPT_LABEL = b"windvane/1/receipt\0"


@dataclass(frozen=True, slots=True)
class Head:
    """The coordinator's signed statement that the first `size` leaves chain to `head`, on `day`."""

    size: int
    head: str
    day: str
    raw: bytes


_VERIFIED = object()


@dataclass(frozen=True, slots=True)
class Receipt:
    """The coordinator's signed promise that the leaf with `leaf_hash` has place `index`, after the head `previous`.

    Only `verify_receipt` makes one.
    """

    index: int
    leaf_hash: str
    previous: str
    head: str
    raw: bytes
    made_by: InitVar[object]

    def __post_init__(self, made_by: object) -> None:
        if made_by is not _VERIFIED:
            raise ReceiptRefused("It was not verified.")


@dataclass(frozen=True, slots=True)
class Scan:
    """Every leaf from place `start` to `head`. `heads[i]` is the chain's head before leaf `start + i`; the last entry
    is `head.head`."""

    leaves: tuple[Leaf, ...]
    start: int
    head: Head
    heads: tuple[str, ...]

    def check_continues(self, seen: Head) -> None:
        """Refuse a log that is not the one seen before, grown.

        Raises:
            InconsistentCheckpoint: it is shorter than the head seen before, or differs at that size.
            LogIncomplete: the scan starts after the head seen before, so nothing can be compared.
        """
        if self.head.size < seen.size:
            raise InconsistentCheckpoint
        if seen.size < self.start:
            raise LogIncomplete("The scan must begin at or before the head that was seen last.")
        if self.heads[seen.size - self.start] != seen.head:
            raise InconsistentCheckpoint

    def check_receipt(self, receipt: Receipt) -> None:
        """Refuse a log that does not hold what a receipt promised.

        Raises:
            ReceiptRefused: another leaf stands at the receipt's place, or the log is shorter than that.
        """
        place = receipt.index - self.start
        if not 0 <= place < len(self.leaves) or self.leaves[place].hash != receipt.leaf_hash:
            raise ReceiptRefused
        if self.heads[place] != receipt.previous or self.heads[place + 1] != receipt.head:
            raise ReceiptRefused


# --- chain, heads and receipts ---------------------------------------------------------------------------------------


def first_head(origin: str) -> str:
    """head_0, the head of the empty log of this origin."""
    return hashlib.sha256(CHAIN_LABEL + origin.encode()).hexdigest()


def next_head(previous: str, leaf: str) -> str:
    """The head after one more leaf; both arguments are hex hashes."""
    return hashlib.sha256(CHAIN_LABEL + bytes.fromhex(previous) + bytes.fromhex(leaf)).hexdigest()


def make_head(size: int, head: str, day: str, origin: str, key: SigningKey) -> bytes:
    """The signed head of a log with `size` leaves."""
    body = {"schema": "windvane/head/v1", "origin": origin, "size": size, "head": head, "day": day, "key": key.key_id}
    return _signed(body, HEAD_LABEL, key)


def verify_head(raw: bytes, coordinator: bytes, origin: str) -> Head:
    """The head of the log of this origin, signed by this coordinator.

    Raises:
        MalformedInput: not a head.
        InconsistentCheckpoint: another origin or another signer.
    """
    value = _verified(raw, HEAD_LABEL, "windvane/head/v1", ("size", "head", "day"), coordinator, origin)
    if value is None:
        raise InconsistentCheckpoint("It is not signed by the pinned coordinator for this log.")
    size, head, day = value["size"], value["head"], value["day"]
    if not (type(size) is int and size >= 0 and is_hash(head) and is_day(day)):
        raise MalformedInput
    return Head(size, head, day, raw)


def make_receipt(index: int, leaf_hash: str, previous: str, origin: str, key: SigningKey) -> bytes:
    """The coordinator's receipt for the leaf at `index`, which follows the head `previous`."""
    body = {
        "schema": "windvane/receipt/v1",
        "origin": origin,
        "index": index,
        "leaf_hash": leaf_hash,
        "previous": previous,
        "key": key.key_id,
    }
    return _signed(body, RECEIPT_LABEL, key)


def verify_receipt(raw: bytes, leaf: bytes, coordinator: bytes, origin: str) -> Receipt:
    """The receipt of exactly this leaf.

    Raises:
        ReceiptRefused: malformed, of another leaf, another log, or not signed by this coordinator.
    """
    try:
        names = ("index", "leaf_hash", "previous")
        value = _verified(raw, RECEIPT_LABEL, "windvane/receipt/v1", names, coordinator, origin)
    except MalformedInput as error:
        raise ReceiptRefused from error
    if value is None or not (type(value["index"]) is int and value["index"] >= 0 and is_hash(value["previous"])):
        raise ReceiptRefused
    if value["leaf_hash"] != leaf_hash(leaf):
        raise ReceiptRefused("It belongs to another entry.")
    head = next_head(value["previous"], value["leaf_hash"])
    return Receipt(value["index"], value["leaf_hash"], value["previous"], head, raw, _VERIFIED)


def _signed(body: dict[str, JsonValue], label: bytes, key: SigningKey) -> bytes:
    return canonical.encode({**body, "sig": key.sign(label, canonical.encode(body)).hex()})


def _verified(
    raw: bytes, label: bytes, schema: str, names: Sequence[str], coordinator: bytes, origin: str
) -> dict[str, JsonValue] | None:
    """The fields of a signed statement about this log, or None where somebody else signed it or it is another log's."""
    value = canonical.decode(raw, max_bytes=MAX_LEAF_BYTES)
    if not isinstance(value, dict) or set(value) != {"schema", "origin", "key", "sig", *names}:
        raise MalformedInput
    sig = value.pop("sig")
    if value["schema"] != schema or not is_signature(sig):
        raise MalformedInput
    if value["origin"] != origin or value["key"] != key_id(KEY_ED25519, coordinator):
        return None
    try:
        verify(coordinator, bytes.fromhex(sig), label, canonical.encode(value))
    except SignatureInvalid:
        return None
    return value


# --- answers to the `leaves` parcel ----------------------------------------------------------------------------------


def encode_leaves(start: int, previous: str, leaves: Sequence[bytes], head_raw: bytes) -> bytes:
    """Lines of text: a canonical `{"previous", "schema", "start"}`, the signed head, and one line a leaf from `start`
    on. Canonical JSON holds no raw line break, so the lines are the exact bytes that were signed.

    `previous` is the head before leaf `start`; `leaves` must reach to the head's size.
    """
    first = canonical.encode({"schema": "windvane/leaves/v1", "start": start, "previous": previous})
    return b"\n".join([first, head_raw, *leaves]) + b"\n"


def scan(raw: bytes, coordinator: bytes, origin: str, *, start: int, previous: str | None, seen: Head | None) -> Scan:
    """All leaves from `start` to the signed head, with the chain recomputed.

    `previous`: the head before `start` where the caller knows it (it is always known for 0). `seen`: the newest head
    that the caller saw before; `start` must not be larger than its size.

    Raises:
        MalformedInput, MalformedLeaf: the answer is not of the agreed form.
        LogIncomplete: leaves are missing, or the answer begins elsewhere.
        InconsistentCheckpoint: the chain does not end in the signed head, or does not continue `seen` or `previous`.
    """
    if len(raw) > MAX_SCAN_BYTES or not raw.endswith(b"\n"):
        raise MalformedInput
    lines = raw[:-1].split(b"\n")
    if len(lines) < 2:
        raise MalformedInput
    first = canonical.decode(lines[0], max_bytes=MAX_LEAF_BYTES)
    if not isinstance(first, dict) or set(first) != {"schema", "start", "previous"}:
        raise MalformedInput
    if first["schema"] != "windvane/leaves/v1" or type(first["start"]) is not int or not is_hash(first["previous"]):
        raise MalformedInput
    head = verify_head(lines[1], coordinator, origin)
    if first["start"] != start or head.size != start + len(lines) - 2:
        raise LogIncomplete
    known = first_head(origin) if start == 0 else previous
    if known is not None and first["previous"] != known:
        raise InconsistentCheckpoint
    leaves = tuple(read_leaf(line) for line in lines[2:])
    heads = [first["previous"]]
    for leaf in leaves:
        heads.append(next_head(heads[-1], leaf.hash))
    if heads[-1] != head.head:
        raise InconsistentCheckpoint
    found = Scan(leaves, start, head, tuple(heads))
    if seen is not None:
        found.check_continues(seen)
    return found
