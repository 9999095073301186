# SPDX-License-Identifier: Apache-2.0
"""The Merkle tree over the log's leaves: roots, inclusion proofs, consistency proofs, and their verification.

Rules kept here:
* leaf `SHA-256(0x00 || data)`, node `SHA-256(0x01 || left || right)`: no leaf can pass for a node;
* the tree over n leaves splits at the largest power of two below n; nothing is padded, nothing is doubled;
* a hash has exactly 32 bytes, a proof exactly the length that its sizes ask for: one entry more or less is refused;
* from size 0 an empty proof is valid, and only with the root of the empty tree (C2SP tlog-witness);
* verifying needs neither the tree nor the leaves.

Source: RFC 6962 sections 2.1, 2.1.1 (inclusion), 2.1.2 (consistency); RFC 9162 sections 2.1.3.2 and 2.1.4.2
(verification without recursion); Crosby and Wallach, "Efficient data structures for tamper-evident logging" (2009).
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Final

from windvane_privacy.errors import InclusionRefused, InconsistentCheckpoint

HASH_BYTES: Final = 32
MAX_PROOF: Final = 63
"""Entries of the longest proof that is read: a tree of 2^63 leaves has no longer one."""
EMPTY_ROOT: Final = hashlib.sha256(b"").digest()


def hash_leaf(data: bytes) -> bytes:
    """SHA-256(0x00 || data), 32 bytes."""
    return hashlib.sha256(b"\0" + data).digest()


def hash_node(left: bytes, right: bytes) -> bytes:
    """SHA-256(0x01 || left || right), 32 bytes."""
    return hashlib.sha256(b"\1" + left + right).digest()


class CompactRange:
    """The roots of the complete subtrees of the first `size` leaves, largest first: enough to append and for the root.

    A member keeps one from the opening of a round, and recomputes the cosigned root from the leaves that follow.
    """

    def __init__(self, size: int = 0, hashes: Iterable[bytes] = ()) -> None:
        """Raises InconsistentCheckpoint: another number of hashes than the size has bits set, or not of 32 bytes."""
        self.size = size
        self.hashes = list(hashes)
        if size < 0 or len(self.hashes) != size.bit_count() or any(len(one) != HASH_BYTES for one in self.hashes):
            raise InconsistentCheckpoint("A stored part of the tree does not fit its size.")

    def append(self, leaf_hash: bytes) -> None:
        """One more leaf."""
        merged, size = leaf_hash, self.size
        while size & 1:
            merged = hash_node(self.hashes.pop(), merged)
            size >>= 1
        self.hashes.append(merged)
        self.size += 1

    def root(self) -> bytes:
        """Root of the tree, 32 bytes."""
        if not self.hashes:
            return EMPTY_ROOT
        found = self.hashes[-1]
        for left in reversed(self.hashes[:-1]):
            found = hash_node(left, found)
        return found


class Subtrees(ABC):
    """A tree known by the roots of its complete subtrees: from them come roots and proofs of every earlier size too."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of leaves."""

    @abstractmethod
    def node(self, level: int, index: int) -> bytes:
        """Root of the leaves [index * 2^level, (index + 1) * 2^level), all of which are in the tree; 32 bytes."""

    def root(self, size: int | None = None) -> bytes:
        """Root of the first `size` leaves; of all without one."""
        size = self._within(self.size if size is None else size)
        return EMPTY_ROOT if size == 0 else self._range(0, size)

    def range(self, size: int) -> CompactRange:
        """The compact range of the first `size` leaves."""
        hashes, start = [], 0
        for level in reversed(range(self._within(size).bit_length())):
            if size >> level & 1:
                hashes.append(self.node(level, start >> level))
                start += 1 << level
        return CompactRange(size, hashes)

    def inclusion(self, index: int, size: int) -> list[bytes]:
        """Proof that leaf `index` is in the tree of the first `size` leaves.

        Raises:
            InclusionRefused: there is no such leaf in a tree of this size.
        """
        if not 0 <= index < self._within(size):
            raise InclusionRefused("The tree of this size has no such entry.")
        proof: list[bytes] = []
        start, end = 0, size
        while end - start > 1:
            middle = start + _split(end - start)
            if index < middle:
                proof.append(self._range(middle, end))
                end = middle
            else:
                proof.append(self._range(start, middle))
                start = middle
        return proof[::-1]

    def consistency(self, old: int, new: int) -> list[bytes]:
        """Proof that the tree of the first `old` leaves is the beginning of that of the first `new`.

        Raises:
            InconsistentCheckpoint: old is larger than new, or new than the tree.
        """
        if not 0 <= old <= self._within(new):
            raise InconsistentCheckpoint("There is no proof from a larger tree to a smaller one.")
        if old in (0, new):
            return []
        proof: list[bytes] = []
        start, end, whole = 0, new, True
        while old != end:
            middle = start + _split(end - start)
            if old <= middle:
                proof.append(self._range(middle, end))
                end = middle
            else:
                proof.append(self._range(start, middle))
                start, whole = middle, False
        if not whole:
            proof.append(self._range(start, end))
        return proof[::-1]

    def _within(self, size: int) -> int:
        if not 0 <= size <= self.size:
            raise InconsistentCheckpoint("The tree has fewer entries than that.")
        return size

    def _range(self, start: int, end: int) -> bytes:
        """Root of leaves [start, end); start is a multiple of the largest power of two that fits."""
        length = end - start
        if length & (length - 1) == 0:
            level = length.bit_length() - 1
            return self.node(level, start >> level)
        middle = start + _split(length)
        return hash_node(self._range(start, middle), self._range(middle, end))


class Tree(Subtrees):
    """All complete subtrees of an append-only list of leaf hashes, in memory: 64 bytes a leaf, all levels together."""

    def __init__(self, leaf_hashes: Iterable[bytes] = ()) -> None:
        self._levels: list[list[bytes]] = [[]]
        for one in leaf_hashes:
            self.append(one)

    @property
    def size(self) -> int:
        """Number of leaves."""
        return len(self._levels[0])

    def node(self, level: int, index: int) -> bytes:
        """See `Subtrees.node`."""
        return self._levels[level][index]

    def append(self, leaf_hash: bytes) -> None:
        """One more leaf."""
        self._levels[0].append(leaf_hash)
        level = 0
        while len(self._levels[level]) % 2 == 0:
            left, right = self._levels[level][-2:]
            level += 1
            if level == len(self._levels):
                self._levels.append([])
            self._levels[level].append(hash_node(left, right))


def verify_inclusion(index: int, size: int, leaf_hash: bytes, proof: Sequence[bytes], root: bytes) -> None:
    """Return if the proof shows `leaf_hash` at `index` of the tree with this size and root.

    Raises:
        InclusionRefused: it does not.
    """
    if not 0 <= index < size or not _hashes(leaf_hash, root, *proof):
        raise InclusionRefused
    position, last, found = index, size - 1, leaf_hash
    for sibling in proof:
        if last == 0:
            raise InclusionRefused("The proof is too long.")
        if position & 1 or position == last:
            found = hash_node(sibling, found)
            while not position & 1 and position:
                position, last = position >> 1, last >> 1
        else:
            found = hash_node(found, sibling)
        position, last = position >> 1, last >> 1
    if last != 0 or found != root:
        raise InclusionRefused


def verify_consistency(old: int, new: int, old_root: bytes, new_root: bytes, proof: Sequence[bytes]) -> None:
    """Return if the proof shows that the tree of size `old` is the beginning of the tree of size `new`.

    Raises:
        InconsistentCheckpoint: it does not.
    """
    if not 0 <= old <= new or not _hashes(old_root, new_root, *proof):
        raise InconsistentCheckpoint
    if old == 0:
        if proof or old_root != EMPTY_ROOT:
            raise InconsistentCheckpoint
        return
    if old == new:
        if proof or old_root != new_root:
            raise InconsistentCheckpoint
        return
    path = list(proof)
    if old & (old - 1) == 0:
        path.insert(0, old_root)
    if not path:
        raise InconsistentCheckpoint("The proof is too short.")
    position, last = old - 1, new - 1
    while position & 1:
        position, last = position >> 1, last >> 1
    first = second = path[0]
    for sibling in path[1:]:
        if last == 0:
            raise InconsistentCheckpoint("The proof is too long.")
        if position & 1 or position == last:
            first, second = hash_node(sibling, first), hash_node(sibling, second)
            while not position & 1 and position:
                position, last = position >> 1, last >> 1
        else:
            second = hash_node(second, sibling)
        position, last = position >> 1, last >> 1
    if last != 0 or first != old_root or second != new_root:
        raise InconsistentCheckpoint


def _split(length: int) -> int:
    """The largest power of two below `length`, which is 2 or more."""
    return 1 << (length - 1).bit_length() - 1


def _hashes(*values: bytes) -> bool:
    return len(values) <= MAX_PROOF + 2 and all(len(one) == HASH_BYTES for one in values)
