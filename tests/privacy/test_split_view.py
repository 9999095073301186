# SPDX-License-Identifier: Apache-2.0
"""A log that shows two histories to its witnesses, in every order of delivery: never two quorums.

Real witnesses with real rows decide; the search is over everything that reaches them. A witness's answer depends on
its own row alone, so a world is the row of each witness, and orders that lead to the same rows are one.
"""

from __future__ import annotations

from itertools import combinations, permutations

import pytest

from log_witnesses import MemoryShelf
from manifests import LOG_ORIGIN, derived
from windvane_privacy.errors import QuorumMissing
from windvane_privacy.merkle import Tree, hash_leaf
from windvane_privacy.notes import Checkpoint, Cosigner, SignatureLine, SignedCheckpoint, parse_checkpoint
from windvane_privacy.quorum import Signer, WitnessPolicy, believe
from windvane_privacy.witness import Request, Witness, encode_request

LOG = Cosigner.from_raw(LOG_ORIGIN, derived("log"))
NOW = 1_790_000_000
KEYS = tuple(Cosigner.from_raw(f"witness-{i}.test", derived(f"split {i}")) for i in range(7))


def _tree(side: str, size: int) -> Tree:
    return Tree(hash_leaf(f"{'common' if i < 2 else side} {i}".encode()) for i in range(size))


TREES = {("common", 2): _tree("a", 2)} | {(side, size): _tree(side, size) for side in "ab" for size in (3, 4)}
POINTS = {at: Checkpoint(LOG_ORIGIN, at[1], tree.root()) for at, tree in TREES.items()}
NOTES = {at: SignedCheckpoint(point, (LOG.cosign(point, NOW),)) for at, point in POINTS.items()}


class Liar:
    """A witness that signs whatever it is shown."""

    def __init__(self, key: Cosigner) -> None:
        self._key = key

    def deliver(self, at: tuple[str, int]) -> SignatureLine:
        return self._key.cosign(POINTS[at], NOW)


class Honest:
    def __init__(self, key: Cosigner) -> None:
        self._witness = Witness(key, (Signer(LOG.name, LOG.public),), MemoryShelf())

    def deliver(self, at: tuple[str, int]) -> SignatureLine | None:
        """The log knows what the witness signed last, and sends the best proof that it has."""
        old = self._witness.size(LOG_ORIGIN)
        proof = tuple(TREES[at].consistency(old, at[1])) if 0 < old <= at[1] else ()
        answer = self._witness.add_checkpoint(encode_request(Request(min(old, at[1]), proof, NOTES[at])), NOW)
        if answer.status != 200:
            return None
        return parse_checkpoint(POINTS[at].text.encode() + b"\n" + answer.body).signatures[0]


DELIVERIES = (("common", 2), ("a", 3), ("b", 3), ("a", 4), ("b", 4))


def _signs_in_each_order() -> dict[tuple[tuple[str, int], ...], dict[tuple[str, int], SignatureLine]]:
    """Every order in which one honest witness may see some of the checkpoints, and what it signs then."""
    found = {}
    for count in range(len(DELIVERIES) + 1):
        for order in permutations(DELIVERIES, count):
            witness = Honest(KEYS[0])
            found[order] = {at: line for at in order if (line := witness.deliver(at)) is not None}
    return found


ORDERS = _signs_in_each_order()


def test_an_honest_witness_never_signs_both_histories_whatever_the_order() -> None:
    assert len(ORDERS) == 326
    for order, lines in ORDERS.items():
        assert len({side for side, _ in lines} - {"common"}) <= 1, order
        assert not order or lines, order
    # A witness that signed what they share may go either way: its row decides, not the proofs.
    assert {side for lines in ORDERS.values() if ("common", 2) in lines for side, _ in lines} == {"common", "a", "b"}


def _believed(at: tuple[str, int], signers: set[int], q: int, f: int, n: int) -> bool:
    policy = WitnessPolicy(
        Signer(LOG.name, LOG.public), tuple(Signer(one.name, one.public) for one in KEYS[:n]), q, f, 10**9
    )
    note = SignedCheckpoint(POINTS[at], (LOG.cosign(POINTS[at], NOW), *(LINES[i, at] for i in sorted(signers))))
    try:
        believe(note, policy, now=NOW)
    except QuorumMissing:
        return False
    return True


LINES = {(i, at): key.cosign(POINTS[at], NOW) for i, key in enumerate(KEYS) for at in DELIVERIES}


@pytest.mark.parametrize(("n", "q", "f"), [(5, 4, 1), (5, 4, 2), (7, 5, 2)])
def test_two_histories_never_both_reach_a_quorum_in_any_order_of_delivery(n: int, q: int, f: int) -> None:
    """Each honest witness may see any order; what it signs is one of the outcomes above. Liars sign everything."""
    outcomes = {frozenset(lines) for lines in ORDERS.values()}
    worlds = 0
    for liars in combinations(range(n), f):
        honest = [i for i in range(n) if i not in liars]
        # Witnesses are alike: how many take each outcome decides, and only the side that each is on counts.
        for on_a in range(len(honest) + 1):
            for on_b in range(len(honest) + 1 - on_a):
                worlds += 1
                a = {*liars, *honest[:on_a]}
                b = {*liars, *honest[on_a : on_a + on_b]}
                believed = {
                    side
                    for side, signers in (("a", a), ("b", b))
                    if any(_believed((side, size), signers, q, f, n) for size in (3, 4))
                }
                assert len(believed) <= 1, (liars, on_a, on_b)
    assert worlds > 20
    assert all(len({side for side, _ in outcome} - {"common"}) <= 1 for outcome in outcomes)


def test_the_search_finds_two_quorums_under_a_majority_that_forgets_the_liars() -> None:
    """Four of five with three liars: the rule that `WitnessPolicy` refuses. Signed by hand, both sides have four."""
    liars = {0, 1, 2}
    a, b = liars | {3}, liars | {4}
    assert _believed(("a", 3), a, 4, 2, 5)
    assert _believed(("b", 3), b, 4, 2, 5)


@pytest.mark.parametrize("liars", [(), (4,)])
def test_real_witnesses_in_many_orders_never_give_two_quorums(liars: tuple[int, ...]) -> None:
    """Five witnesses, two forks: every witness gets both checkpoints of size 3, in each of its two orders."""
    for bits in range(2**5):
        lines: dict[str, set[int]] = {"a": set(), "b": set()}
        for i in range(5):
            witness = Liar(KEYS[i]) if i in liars else Honest(KEYS[i])
            for side in "ab" if bits >> i & 1 else "ba":
                if witness.deliver((side, 3)) is not None:
                    lines[side].add(i)
        assert sum(_believed((side, 3), lines[side], 4, 2, 5) for side in "ab") <= 1
