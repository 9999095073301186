# SPDX-License-Identifier: Apache-2.0
"""The Merkle tree of RFC 6962: known roots, proofs of every size, and every changed proof refused."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windvane_privacy.errors import InclusionRefused, InconsistentCheckpoint, LogError
from windvane_privacy.merkle import (
    EMPTY_ROOT,
    CompactRange,
    Tree,
    hash_leaf,
    hash_node,
    verify_consistency,
    verify_inclusion,
)

# The eight leaves with which RFC 6962 implementations are compared, and their roots.
LEAVES = [bytes.fromhex(text) for text in (
    "", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f",
)]  # fmt: skip
ROOTS = {
    0: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    1: "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    2: "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    3: "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    4: "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    5: "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    6: "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    7: "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    8: "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
}


def naive_root(leaves: list[bytes]) -> bytes:
    """RFC 6962 section 2.1, word by word."""
    if not leaves:
        return EMPTY_ROOT
    if len(leaves) == 1:
        return leaves[0]
    k = 1
    while k * 2 < len(leaves):
        k *= 2
    return hash_node(naive_root(leaves[:k]), naive_root(leaves[k:]))


def leaves_of(n: int) -> list[bytes]:
    return [hash_leaf(str(i).encode()) for i in range(n)]


@pytest.mark.parametrize("size", range(9))
def test_known_roots(size: int) -> None:
    tree = Tree(hash_leaf(leaf) for leaf in LEAVES)
    assert tree.root(size).hex() == ROOTS[size]
    assert tree.range(size).root().hex() == ROOTS[size]


@given(st.integers(0, 130))
def test_tree_and_range_are_the_definition(size: int) -> None:
    leaves = leaves_of(size)
    compact = CompactRange()
    for leaf in leaves:
        compact.append(leaf)
    assert Tree(leaves).root() == compact.root() == naive_root(leaves)


def test_every_inclusion_proof_up_to_65_leaves_verifies_and_no_other_place_does() -> None:
    tree = Tree(leaves_of(65))
    for size in range(1, 66):
        root = tree.root(size)
        for index in range(size):
            proof = tree.inclusion(index, size)
            verify_inclusion(index, size, leaves_of(65)[index], proof, root)
            for wrong in {0, index - 1, index + 1, size - 1} - {index}:
                with pytest.raises(InclusionRefused):
                    verify_inclusion(wrong, size, leaves_of(65)[index], proof, root)


def test_every_consistency_proof_up_to_65_leaves_verifies() -> None:
    tree = Tree(leaves_of(65))
    for new in range(66):
        for old in range(new + 1):
            verify_consistency(old, new, tree.root(old), tree.root(new), tree.consistency(old, new))


def test_a_range_goes_on_where_it_was_stored() -> None:
    leaves = leaves_of(100)
    tree = Tree(leaves)
    for size in range(101):
        compact = tree.range(size)
        again = CompactRange(compact.size, compact.hashes)
        for leaf in leaves[size:]:
            again.append(leaf)
        assert again.root() == tree.root()


def test_changed_proofs_are_refused() -> None:
    """35,000 and more negatives: a flipped bit, a missing, doubled, swapped or additional entry, other sizes."""
    tree, tried = Tree(leaves_of(40)), 0
    for new in range(1, 41):
        root = tree.root(new)
        for index in range(new):
            proof, leaf = tree.inclusion(index, new), leaves_of(40)[index]
            for changed in changes(proof):
                tried += 1
                with pytest.raises(InclusionRefused):
                    verify_inclusion(index, new, leaf, changed, root)
        for old in range(1, new):
            proof, old_root = tree.consistency(old, new), tree.root(old)
            for changed in changes(proof):
                tried += 1
                with pytest.raises(InconsistentCheckpoint):
                    verify_consistency(old, new, old_root, root, changed)
            for sizes in ((old - 1, new), (old + 1, new), (new, old)):
                if sizes[0] != sizes[1]:
                    tried += 1
                    with pytest.raises(InconsistentCheckpoint):
                        verify_consistency(*sizes, old_root, root, proof)
    assert tried >= 35_000


def changes(proof: list[bytes]) -> list[list[bytes]]:
    """Proofs that differ from this one."""
    found = [[*proof, bytes(32)], [*proof, EMPTY_ROOT], [bytes(32), *proof]]
    for place, one in enumerate(proof):
        flipped = bytes([one[0] ^ 1]) + one[1:]
        found.append([*proof[:place], flipped, *proof[place + 1 :]])
        found.append([*proof[:place], *proof[place + 1 :]])
        found.append([*proof[:place], one, *proof[place:]])
        found.append([*proof[:place], one[:31], *proof[place + 1 :]])
        if place and proof[place - 1] != one:
            found.append([*proof[: place - 1], one, proof[place - 1], *proof[place + 1 :]])
    return found


def test_what_cannot_be_proved_is_not() -> None:
    tree = Tree(leaves_of(5))
    for index, size in ((5, 5), (-1, 5), (0, 0)):
        with pytest.raises(InclusionRefused):
            tree.inclusion(index, size)
    for old, new in ((3, 2), (0, 6), (-1, 3)):
        with pytest.raises(InconsistentCheckpoint):
            tree.consistency(old, new)
    with pytest.raises(InconsistentCheckpoint):
        tree.root(6)
    for size, hashes in ((3, [bytes(32)]), (1, [bytes(31)]), (-1, [])):
        with pytest.raises(InconsistentCheckpoint):
            CompactRange(size, hashes)


def test_from_nothing_only_the_empty_root_is_consistent() -> None:
    root = Tree(leaves_of(3)).root()
    verify_consistency(0, 3, EMPTY_ROOT, root, [])
    for old_root, proof in ((root, []), (EMPTY_ROOT, [root])):
        with pytest.raises(InconsistentCheckpoint):
            verify_consistency(0, 3, old_root, root, proof)


# --- vectors of others ------------------------------------------------------------------------------------------------

# It wants success with roots that are not hashes; a verifier that checks lengths must refuse it.
EXCEPTION = "consistency/additional/sizes-are-equal-one-and-proof-is-empty.json"


def test_the_vectors_of_transparency_dev(shared: Path) -> None:
    folder = shared / "vectors" / "transparency-dev-merkle" / "testdata"
    seen, differ = 0, []
    for path in sorted(folder.rglob("*.json")):
        vector = json.loads(path.read_text())
        seen += 1
        proof = [base64.b64decode(one) for one in vector["proof"] or []]
        values = {
            name: base64.b64decode(text or "") for name, text in vector.items() if name.startswith(("root", "leafH"))
        }
        try:
            if "leafIdx" in vector:
                verify_inclusion(vector["leafIdx"], vector["treeSize"], values["leafHash"], proof, values["root"])
            else:
                verify_consistency(vector["size1"], vector["size2"], values["root1"], values["root2"], proof)
            refused = False
        except LogError:
            refused = True
        if refused != vector["wantErr"]:
            differ.append(str(path.relative_to(folder)))
    assert seen == 196
    assert differ == [EXCEPTION]
