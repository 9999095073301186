# SPDX-License-Identifier: Apache-2.0
"""Hundreds of thousands of wrong proofs of the log's tree, each refused; the tree itself is compared with a plain one.

Rules kept here:
* the plain tree below is written from RFC 6962 sections 2.1 to 2.1.2 alone, with nothing of the module it is compared
  with: recursion over slices, `hashlib`, no levels, no bits;
* every wrong proof is counted, and their number is asserted: a loop that tries nothing fails;
* a changed proof that proves something true is no negative: wrong sizes for which the proof looks the same. They are
  left out by a rule with its reason, and asserted to be accepted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from random import Random

import pytest

from windvane_privacy.errors import InclusionRefused, InconsistentCheckpoint
from windvane_privacy.merkle import MAX_PROOF, CompactRange, Tree, hash_leaf, verify_consistency, verify_inclusion

MOST = 64
OTHER = hashlib.sha256(b"of no tree").digest()

# --- the plain tree --------------------------------------------------------------------------------------------------


def plain_split(n: int) -> int:
    """The largest power of two smaller than n."""
    k = 1
    while k * 2 < n:
        k *= 2
    return k


def plain_root(entries: Sequence[bytes]) -> bytes:
    """MTH of section 2.1."""
    if not entries:
        return hashlib.sha256(b"").digest()
    if len(entries) == 1:
        return hashlib.sha256(b"\x00" + entries[0]).digest()
    k = plain_split(len(entries))
    return hashlib.sha256(b"\x01" + plain_root(entries[:k]) + plain_root(entries[k:])).digest()


def plain_path(m: int, entries: Sequence[bytes]) -> list[bytes]:
    """PATH(m, D[n]) of section 2.1.1."""
    if len(entries) == 1:
        return []
    k = plain_split(len(entries))
    if m < k:
        return [*plain_path(m, entries[:k]), plain_root(entries[k:])]
    return [*plain_path(m - k, entries[k:]), plain_root(entries[:k])]


def plain_proof(m: int, entries: Sequence[bytes]) -> list[bytes]:
    """PROOF(m, D[n]) of section 2.1.2, for 0 < m < n."""

    def subproof(m: int, entries: Sequence[bytes], whole: bool) -> list[bytes]:
        if m == len(entries):
            return [] if whole else [plain_root(entries)]
        k = plain_split(len(entries))
        if m <= k:
            return [*subproof(m, entries[:k], whole), plain_root(entries[k:])]
        return [*subproof(m - k, entries[k:], False), plain_root(entries[:k])]

    return subproof(m, entries, True)


def drawn_entries(number: int, size: int) -> list[bytes]:
    """Entries of a few bytes that depend on the numbers only."""
    rng = Random(number)
    return [rng.randbytes(rng.randrange(40)) for _ in range(size)]


ENTRIES = [b"entry %d" % i for i in range(MOST + 2)]
LEAVES = [hashlib.sha256(b"\x00" + entry).digest() for entry in ENTRIES]
ROOTS = [plain_root(ENTRIES[:size]) for size in range(MOST + 3)]


@pytest.mark.parametrize("number", range(100))
def test_a_hundred_roots_of_drawn_entries_are_those_of_the_plain_tree(number: int) -> None:
    size = Random(number).choice(
        [number, number * 3, 2 ** (number % 9), 2 ** (number % 9) + 1, Random(-number).randrange(600)]
    )
    entries = drawn_entries(number, size)
    leaves = [hash_leaf(entry) for entry in entries]
    compact = CompactRange()
    for leaf in leaves:
        compact.append(leaf)
    assert Tree(leaves).root() == compact.root() == plain_root(entries)


def test_every_proof_is_the_one_that_the_plain_tree_gives() -> None:
    tree = Tree(LEAVES)
    for size in range(1, MOST + 1):
        for index in range(size):
            path = plain_path(index, ENTRIES[:size])
            assert tree.inclusion(index, size) == path
            verify_inclusion(index, size, LEAVES[index], path, ROOTS[size])
            if index:
                proof = plain_proof(index, ENTRIES[:size])
                assert tree.consistency(index, size) == proof
                verify_consistency(index, size, ROOTS[index], ROOTS[size], proof)


# --- wrong proofs ----------------------------------------------------------------------------------------------------


def changed(proof: Sequence[bytes], beside: Sequence[bytes]) -> Iterator[list[bytes]]:
    """Proofs that differ from this one; `beside` are hashes that stand near it in the tree."""
    found = list(proof)
    for extra in (bytes(32), OTHER, *beside):
        yield [*found, extra]
        yield [extra, *found]
    yield found * 2
    yield [*found, *[OTHER] * (MAX_PROOF + 2)]
    for place, one in enumerate(found):
        flipped = bytearray(one)
        flipped[place % 32] ^= 1 << place % 8
        for other in (bytes(flipped), OTHER, bytes(32), one[::-1], one[:31], one + b"\0", b"", *beside):
            yield [*found[:place], other, *found[place + 1 :]]
        yield found[:place] + found[place + 1 :]
        yield found[: place + 1] + found[place:]
        yield found[:place]
        for second in range(place):
            swapped = found.copy()
            swapped[place], swapped[second] = swapped[second], swapped[place]
            yield swapped
    yield found[::-1]


def inclusion_negatives(size: int) -> Iterator[tuple[int, int, bytes, Sequence[bytes], bytes]]:
    """Index, size, leaf hash, proof and root of which one is wrong."""
    root = ROOTS[size]
    for index in range(size):
        leaf, proof = LEAVES[index], plain_path(index, ENTRIES[:size])
        for other in changed(proof, (leaf, root)):
            if other != proof:
                yield index, size, leaf, other, root
        for wrong in {-1, index - 1, index + 1, index ^ 1, size - 1, size, index + size, 2**63} - {index}:
            yield wrong, size, leaf, proof, root
        for wrong in (OTHER, LEAVES[index + 1], root, leaf[:31], hashlib.sha256(ENTRIES[index]).digest()):
            if wrong != leaf:
                yield index, size, wrong, proof, root
        for wrong in (
            ROOTS[size - 1],
            ROOTS[size + 1],
            OTHER,
            root[::-1],
            root[:31],
            b"",
            proof[-1] if proof else OTHER,
        ):
            yield index, size, leaf, proof, wrong
        for wrong in {0, -size, index, size - 1, size + 1, 2 * size, 2**63} - {size}:
            if not same_shape(index, size, wrong):
                yield index, wrong, leaf, proof, root


def same_shape(index: int, size: int, other: int) -> bool:
    """Whether leaf `index` has a way to the root of both sizes in which left and right follow in the same order.

    A proof of inclusion does not bind the size by itself: with the root of the true size, a wrong size of which the
    leaf's way looks the same proves the same true thing. The size is bound by the signed checkpoint, together with the
    root (RFC 6962 section 3.5), and a checkpoint with this root and another size is a fork that no witness cosigns.
    """
    return 0 <= index < other and sides(index, size) == sides(index, other)


def sides(index: int, size: int) -> list[bool]:
    """From the root down, whether the leaf is on the right: section 2.1.1 without the hashes."""
    found = []
    while size > 1:
        k = plain_split(size)
        found.append(index >= k)
        index, size = (index - k, size - k) if index >= k else (index, k)
    return found


def consistency_negatives(new: int) -> Iterator[tuple[int, int, bytes, bytes, Sequence[bytes]]]:
    """Both sizes, both roots and proof of which one is wrong."""
    after = ROOTS[new]
    for old in range(1, new):
        before, proof = ROOTS[old], plain_proof(old, ENTRIES[:new])
        for other in changed(proof, (before, after)):
            if other != proof:
                yield old, new, before, after, other
        for wrong in (ROOTS[old - 1], ROOTS[old + 1], OTHER, before[:31], after):
            if wrong != before:
                yield old, new, wrong, after, proof
        for wrong in (ROOTS[new - 1], ROOTS[new + 1], OTHER, after[:31], before):
            if wrong != after:
                yield old, new, before, wrong, proof
        for wrong in {-1, 0, old - 1, old + 1, new, new + 1, 2**63} - {old}:
            if not same_steps((old, new), (wrong, new)):
                yield wrong, new, before, after, proof
        for wrong in {-1, 0, 1, old, new - 1, new + 1, 2 * new, 2**63} - {new}:
            if not same_steps((old, new), (old, wrong)):
                yield old, wrong, before, after, proof
        yield new, old, after, before, proof


def steps(old: int, new: int) -> list[str] | None:
    """What section 2.1.2 does with each hash, from the root down: which side it stands on, and whether the old tree has
    it too; None where there is no such proof."""
    if not 0 < old < new:
        return None
    found, whole = [], True
    while old != new:
        k = plain_split(new)
        if old <= k:
            found.append("right")
            new = k
        else:
            found.append("left")
            old, new, whole = old - k, new - k, False
    return [*found, "start" if whole else "own start"]


def same_steps(true: tuple[int, int], wrong: tuple[int, int]) -> bool:
    """Whether both pairs of sizes use the hashes in the same way: then the proof shows the same true thing about the
    same two roots, and only the signed checkpoints can say that a size is wrong."""
    return steps(*true) == steps(*wrong)


def test_every_wrong_proof_of_inclusion_is_refused() -> None:
    tried = 0
    for size in range(1, MOST + 1):
        for case in inclusion_negatives(size):
            tried += 1
            try:
                verify_inclusion(*case)
            except InclusionRefused:
                continue
            pytest.fail(f"leaf {case[0]} of a tree of {size}: {case}")
    assert tried >= 200_000


def test_every_wrong_proof_of_consistency_is_refused() -> None:
    tried = 0
    for new in range(2, MOST + 1):
        for case in consistency_negatives(new):
            tried += 1
            try:
                verify_consistency(*case)
            except InconsistentCheckpoint:
                continue
            pytest.fail(f"from {case[0]} to a tree of {new}: {case}")
    assert tried >= 200_000


def test_what_was_left_out_as_true_is_accepted() -> None:
    """Sizes that the proof itself cannot tell apart: had they been refused, they would belong to the negatives."""
    inclusions = consistencies = 0
    for size in range(1, MOST + 1):
        for index in range(size):
            proof = plain_path(index, ENTRIES[:size])
            for other in range(MOST + 2):
                if other != size and same_shape(index, size, other):
                    inclusions += 1
                    verify_inclusion(index, other, LEAVES[index], proof, ROOTS[size])
    for new in range(2, MOST + 1):
        for old in range(1, new):
            proof = plain_proof(old, ENTRIES[:new])
            for other in range(old + 1, MOST + 2):
                if other != new and same_steps((old, new), (old, other)):
                    consistencies += 1
                    verify_consistency(old, other, ROOTS[old], ROOTS[new], proof)
    assert inclusions > 0 < consistencies
