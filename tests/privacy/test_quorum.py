# SPDX-License-Identifier: Apache-2.0
"""Witnesses: two histories never both have a quorum, whoever lies and in whatever order things arrive."""

from __future__ import annotations

from itertools import combinations, product

import pytest

from windvane_privacy.errors import (
    CheckpointTooOld,
    ClockImplausible,
    ConfigurationError,
    InconsistentCheckpoint,
    QuorumMissing,
)
from windvane_privacy.merkle import Tree, hash_leaf
from windvane_privacy.notes import Checkpoint, Cosigner, SignatureLine, SignedCheckpoint
from windvane_privacy.quorum import Signer, WitnessPolicy, believe, continues

ORIGIN, NOW, DAY = "log.example/w", 1_790_000_000, 86_400
LOG = Cosigner.from_raw(ORIGIN, bytes([9]) * 32)
WITNESSES = [Cosigner.from_raw(f"witness.example/{i}", bytes([i]) * 32) for i in range(7)]


def signer(key: Cosigner) -> Signer:
    return Signer(key.name, key.public)


def policy(n: int = 7, q: int = 5, f: int = 2, max_age: int = 14 * DAY) -> WitnessPolicy:
    return WitnessPolicy(signer(LOG), tuple(map(signer, WITNESSES[:n])), q, f, max_age)


def tree(size: int, word: str = "leaf") -> Tree:
    return Tree(hash_leaf(f"{word}{i}".encode()) for i in range(size))


def point(size: int = 5, word: str = "leaf") -> Checkpoint:
    return Checkpoint(ORIGIN, size, tree(size, word).root())


def note(checkpoint: Checkpoint, who: list[int], time: int = NOW, log: Cosigner | None = LOG) -> SignedCheckpoint:
    signed = SignedCheckpoint(checkpoint, ())
    if log is not None:
        signed = signed.with_line(log.cosign(checkpoint, time))
    for i in who:
        signed = signed.with_line(WITNESSES[i].cosign(checkpoint, time))
    return signed


def test_five_of_seven_are_enough_and_four_are_not():
    found = believe(note(point(), [0, 2, 3, 5, 6]), policy(), now=NOW)
    assert found.checkpoint == point()
    assert found.signers == tuple(WITNESSES[i].name for i in (0, 2, 3, 5, 6))
    with pytest.raises(QuorumMissing):
        believe(note(point(), [0, 2, 3, 5]), policy(), now=NOW)


def test_the_log_itself_must_have_signed():
    for log in (None, Cosigner.generate(ORIGIN), WITNESSES[0]):
        with pytest.raises(InconsistentCheckpoint):
            believe(note(point(), [1, 2, 3, 4, 5], log=log), policy(), now=NOW)


def test_a_witness_counts_once_and_a_broken_line_not_at_all():
    signed = note(point(), [0, 1, 2, 3])
    again = SignedCheckpoint(signed.checkpoint, (*signed.signatures, WITNESSES[0].cosign(point(), NOW + 1)))
    good = WITNESSES[4].cosign(point(), NOW)
    broken = SignatureLine(good.name, good.key_id, good.blob[:-1] + bytes([good.blob[-1] ^ 1]))
    elsewhere = WITNESSES[4].cosign(point(6), NOW)
    for extra in (again.signatures[-1], broken, elsewhere):
        with pytest.raises(QuorumMissing):
            believe(SignedCheckpoint(point(), (*signed.signatures, extra)), policy(), now=NOW)
    whole = SignedCheckpoint(point(), (*signed.signatures, broken, good))
    assert len(believe(whole, policy(), now=NOW).signers) == 5


def test_an_old_quorum_is_refused_and_one_fresh_signature_does_not_mend_it():
    old = note(point(), [0, 1, 2, 3, 4], NOW - 15 * DAY)
    fresh = old.with_line(WITNESSES[5].cosign(point(), NOW))
    for signed in (old, fresh):
        with pytest.raises(CheckpointTooOld):
            believe(signed, policy(), now=NOW)
    believe(note(point(), [0, 1, 2, 3, 4], NOW - 14 * DAY), policy(), now=NOW)


def test_a_signature_from_the_future_does_not_count():
    mixed = note(point(), [0, 1, 2, 3], NOW).with_line(WITNESSES[4].cosign(point(), NOW + 2 * DAY))
    with pytest.raises(ClockImplausible):
        believe(mixed, policy(), now=NOW)
    believe(mixed, policy(), now=NOW + 2 * DAY)


@pytest.mark.parametrize(("n", "q", "f"), [(7, 4, 1), (7, 5, 3), (5, 3, 1), (3, 2, 1), (3, 0, 0), (3, 4, 0), (0, 0, 0)])
def test_a_rule_that_two_histories_could_both_meet_is_refused(n: int, q: int, f: int):
    with pytest.raises(ConfigurationError):
        policy(n, q, f)


@pytest.mark.parametrize(("n", "q", "f"), [(7, 5, 2), (5, 4, 2), (3, 2, 0), (1, 1, 0)])
def test_the_declared_rules_stand(n: int, q: int, f: int):
    policy(n, q, f)


def test_a_witness_named_twice_or_the_log_itself_is_no_witness():
    one, two = signer(WITNESSES[0]), Signer("other.name", WITNESSES[0].public)
    for witnesses in ((one, one), (one, two), (signer(LOG), one)):
        with pytest.raises(ConfigurationError):
            WitnessPolicy(signer(LOG), witnesses, 2, 0, DAY)


def test_two_forks_never_both_have_a_quorum():
    """Five witnesses, two forks, every order of delivery, every two liars: an honest witness signs the first fork
    it sees and refuses the other, a liar signs both."""
    n, q, f = 5, 4, 2
    tried = 0
    for liars in combinations(range(n), f):
        honest = [i for i in range(n) if i not in liars]
        for first in product("ab", repeat=len(honest)):
            sides = {
                side: set(liars) | {i for i, seen in zip(honest, first, strict=True) if seen == side} for side in "ab"
            }
            assert not all(len(signers) >= q for signers in sides.values())
            tried += 1
    assert tried == 10 * 8
    # The same with real signatures, for the split that comes closest.
    forks = {side: note(point(5, side), [0, 1, *extra]) for side, extra in (("a", [2, 3]), ("b", [4]))}
    believed = []
    for signed in forks.values():
        try:
            believed.append(believe(signed, policy(n, q, f), now=NOW))
        except QuorumMissing:
            continue
    assert len(believed) == 1


def test_a_log_may_grow_and_nothing_else():
    grown = tree(9)
    continues(point(5), point(9), grown.consistency(5, 9))
    continues(point(5), point(5), [])
    for seen, now, proof in (
        (point(9), point(5), []),
        (point(5), point(9, "other"), tree(9, "other").consistency(5, 9)),
        (point(5), point(5, "other"), []),
        (Checkpoint("other.example", 5, point(5).root), point(9), grown.consistency(5, 9)),
    ):
        with pytest.raises(InconsistentCheckpoint):
            continues(seen, now, proof)
