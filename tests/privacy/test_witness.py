# SPDX-License-Identifier: Apache-2.0
"""A witness signs only what continues the row it stored, answers as C2SP says, and never gives two roots one size."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from log_witnesses import MemoryShelf
from manifests import LOG_ORIGIN, derived
from windvane_privacy.errors import MalformedInput
from windvane_privacy.merkle import EMPTY_ROOT, Tree, hash_leaf
from windvane_privacy.notes import (
    Checkpoint,
    Cosigner,
    SignedCheckpoint,
    encode_proof,
    parse_checkpoint,
    verify_cosignature,
)
from windvane_privacy.quorum import Signer
from windvane_privacy.witness import Request, Witness, encode_request, parse_request

LOG = Cosigner.from_raw(LOG_ORIGIN, derived("log"))
OTHER_LOG = Cosigner.from_raw(LOG_ORIGIN, derived("not the log"))
KEY = Cosigner.from_raw("witness.test", derived("a witness"))
NOW = 1_790_000_000
PINNED = (Signer(LOG.name, LOG.public),)


def tree(size: int, side: str = "a") -> Tree:
    """Histories share their first two leaves."""
    return Tree(hash_leaf(f"{'common' if i < 2 else side} {i}".encode()) for i in range(size))


def signed(size: int, side: str = "a", key: Cosigner = LOG) -> SignedCheckpoint:
    point = Checkpoint(key.name, size, tree(size, side).root())
    return SignedCheckpoint(point, (key.cosign(point, NOW),))


def request(old: int, size: int, side: str = "a", key: Cosigner = LOG) -> bytes:
    proof = tuple(tree(size, side).consistency(old, size)) if old <= size else ()
    return encode_request(Request(old, proof, signed(size, side, key)))


class World:
    def __init__(self) -> None:
        self.shelf = MemoryShelf()
        self.witness = Witness(KEY, PINNED, self.shelf)

    def status(self, raw: bytes) -> int:
        return self.witness.add_checkpoint(raw, NOW).status


@pytest.fixture
def world() -> World:
    return World()


def test_the_first_checkpoint_and_one_that_grows_are_signed(world: World) -> None:
    for old, size in ((0, 3), (3, 3), (3, 8), (8, 9)):
        answer = world.witness.add_checkpoint(request(old, size), NOW)
        assert answer.status == 200
        line = parse_checkpoint(signed(size).checkpoint.text.encode() + b"\n" + answer.body).signatures[0]
        assert verify_cosignature(line, signed(size).checkpoint, KEY.public) == NOW
        assert world.witness.size(LOG_ORIGIN) == size


def test_each_refusal_has_the_status_of_the_standard(world: World) -> None:
    assert world.status(request(0, 5)) == 200
    stranger = Cosigner.from_raw("unknown.example/log", derived("log"))
    assert world.status(request(5, 6, key=stranger)) == 404
    assert world.status(request(5, 6, key=OTHER_LOG)) == 403
    unsigned = SignedCheckpoint(signed(6).checkpoint, ())
    assert world.status(encode_request(Request(5, (), unsigned))) == 403
    assert world.status(request(7, 6)) == 400
    assert world.status(b"old 5\n\nnonsense") == 400
    assert world.status(request(3, 6)) == 409
    assert world.status(request(5, 6, "b")) == 422
    assert world.status(request(5, 5, "b")) == 422
    assert world.status(encode_request(Request(5, (), signed(6)))) == 422
    proof = tuple(tree(6).consistency(5, 6))
    assert world.status(encode_request(Request(5, (*proof, proof[0]), signed(6)))) == 422
    assert world.witness.size(LOG_ORIGIN) == 5
    assert world.status(request(5, 6)) == 200


def test_a_wrong_size_is_answered_with_the_stored_one(world: World) -> None:
    world.status(request(0, 5))
    answer = world.witness.add_checkpoint(request(0, 7), NOW)
    assert (answer.status, answer.media_type, answer.body) == (409, "text/x.tlog.size", b"5\n")


def test_from_nothing_only_an_empty_proof_is_taken_and_only_the_empty_root_at_size_0(world: World) -> None:
    assert world.status(encode_request(Request(0, (EMPTY_ROOT,), signed(3)))) == 422
    point = Checkpoint(LOG_ORIGIN, 0, bytes(32))
    assert world.status(encode_request(Request(0, (), SignedCheckpoint(point, (LOG.cosign(point, NOW),))))) == 422
    assert world.status(request(0, 0)) == 200


class Dying(MemoryShelf):
    """A disk that fails before or after it stored."""

    def __init__(self, when: str) -> None:
        super().__init__()
        self.when: str | None = when

    def store(self, note: SignedCheckpoint) -> None:
        if self.when == "before":
            raise OSError
        super().store(note)
        if self.when == "after":
            raise OSError


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_crash_between_storing_and_signing_signs_the_same_again_and_nothing_else(when: str) -> None:
    shelf = Dying(when)
    witness = Witness(KEY, PINNED, shelf)
    with pytest.raises(OSError):
        witness.add_checkpoint(request(0, 5), NOW)
    shelf.when = None
    old = witness.size(LOG_ORIGIN)
    assert old == (0 if when == "before" else 5)
    if when == "after":
        # What was stored may have been signed somewhere: no other root at this size, ever.
        assert witness.add_checkpoint(request(5, 5, "b"), NOW).status == 422
    assert witness.add_checkpoint(request(old, 5), NOW).status == 200


class Unlocked(MemoryShelf):
    """Counts how often the row is read or stored outside the lock."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = False

    @contextmanager
    def held(self) -> Iterator[None]:
        self.inside = True
        yield
        self.inside = False

    def store(self, note: SignedCheckpoint) -> None:
        assert self.inside
        super().store(note)


def test_the_row_is_replaced_under_the_lock_only() -> None:
    witness = Witness(KEY, PINNED, Unlocked())
    assert witness.add_checkpoint(request(0, 5), NOW).status == 200


class Visits(RuleBasedStateMachine):
    """Whatever is sent in whatever order: what was signed is one growing history."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.signed: list[tuple[int, bytes]] = []

    @rule(old=st.integers(0, 9), size=st.integers(0, 9), side=st.sampled_from("ab"), lie=st.booleans())
    def send(self, old: int, size: int, side: str, lie: bool) -> None:
        old = old if lie else self.world.witness.size(LOG_ORIGIN)
        if self.world.status(request(old, size, side)) == 200:
            self.signed.append((size, tree(size, side).root()))

    @precondition(lambda self: self.signed)
    @invariant()
    def one_history(self) -> None:
        sizes = [size for size, _ in self.signed]
        assert sizes == sorted(sizes)
        sides = [{side for side in "ab" if tree(size, side).root() == root} for size, root in self.signed]
        assert set.intersection(*sides)


TestVisits = Visits.TestCase
TestVisits.settings = settings(max_examples=60, stateful_step_count=20, deadline=None)


# --- the parser -------------------------------------------------------------------------------------------------------


@given(st.integers(0, 9), st.integers(0, 9))
def test_a_request_reads_back(old: int, size: int) -> None:
    raw = request(min(old, size), size)
    assert encode_request(parse_request(raw)) == raw


def test_malformed_requests_are_refused_in_every_way() -> None:
    good = request(3, 8)
    head, note = good.split(b"\n\n", 1)
    proof = encode_proof(tree(8).consistency(3, 8)).encode()
    for raw in (
        good.replace(b"old 3", b"old 03"), good.replace(b"old 3", b"old  3"), good.replace(b"old 3", b"old +3"),
        good.replace(b"old 3", b"old 1_0"), good.replace(b"old 3", b"old " + b"9" * 19),
        good.replace(b"old 3", b"OLD 3"),
        good.replace(b"\n", b"\r\n"), note, head, b"old 3\n" + proof * 32 + b"\n" + note, head + b"\n\n",
        good.replace(proof[:44], proof[:43]), good + b"\0", head.replace(b"=", b"") + b"\n\n" + note,
    ):  # fmt: skip
        with pytest.raises(MalformedInput):
            parse_request(raw)


@given(st.binary(max_size=300), st.integers(0, 2000), st.integers(0, 255))
def test_arbitrary_and_damaged_requests_leak_only_malformed_input(raw: bytes, place: int, value: int) -> None:
    good = bytearray(request(3, 8))
    good[place % len(good)] = value
    for text in (raw, b"old 3\n" + raw, bytes(good), bytes(good[: place % len(good)])):
        try:
            parse_request(text)
        except MalformedInput:
            continue
