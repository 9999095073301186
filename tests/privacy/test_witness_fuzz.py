# SPDX-License-Identifier: Apache-2.0
"""Damaged requests to a witness: only `MalformedInput` comes out of the parsers, and what is read is what was written.

Each input has a number, from which it is made; a failure names it. The slow suite takes five million, from a seed of
its own.
"""

from __future__ import annotations

import base64
import random

import pytest

from manifests import LOG_ORIGIN, derived
from slices import slice_of
from windvane_privacy.errors import MalformedInput
from windvane_privacy.merkle import Tree, hash_leaf
from windvane_privacy.notes import (
    Checkpoint,
    Cosigner,
    SignatureLine,
    SignedCheckpoint,
    parse_checkpoint,
    parse_verifier_key,
    verifier_key,
)
from windvane_privacy.witness import Request, encode_request, parse_request

LOG = Cosigner.from_raw(LOG_ORIGIN, derived("log"))
TREE = Tree(hash_leaf(bytes([i])) for i in range(8))
POINT = Checkpoint(LOG_ORIGIN, 8, TREE.root())
NOTE = SignedCheckpoint(POINT, (LOG.cosign(POINT, 1_790_000_000),))
PROOF = tuple(TREE.consistency(3, 8))
GOOD = encode_request(Request(3, PROOF, NOTE))
# Most of a request is one signature, whose bytes a parser does not look at: a short one leaves more places that count.
SHORT = encode_request(Request(3, PROOF, SignedCheckpoint(POINT, (SignatureLine(LOG.name, b"\1\2\3\4", b"\5" * 8),))))
CARD = verifier_key(LOG.name, LOG.public)
BITS = (
    b"\n", b"\n\n", b"\r\n", b" ", b"\t", b"\0", b"+", b"=", b"==", b"-", b"_", b"0", b"00", b"1_0", b"9" * 19,
    b"9223372036854775808", b"old ", b"old 0\n", b"\xe2\x80\x94 ", b"\xc2\xa0", b"\xd9\xa1", b"\xff", b"\xed\xa0\x80",
    b"A" * 44, base64.b64encode(bytes(32)) + b"\n", base64.b64encode(bytes(33)) + b"\n",
)  # fmt: skip


def damaged(number: int) -> bytes:
    """The input with this number: a good request in which one to three places are changed."""
    rng = random.Random(number)
    raw = bytearray(GOOD if rng.random() < 0.1 else SHORT)
    for _ in range(rng.randint(1, 3)):
        place, kind = rng.randrange(len(raw) + 1), rng.randrange(6)
        if kind == 0 and place < len(raw):
            raw[place] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del raw[place : place + rng.randint(1, 50)]
        elif kind == 2:
            raw[place:place] = rng.choice(BITS)
        elif kind == 3:
            raw[place:place] = rng.randbytes(rng.randint(1, 8))
        elif kind == 4:
            lines = bytes(raw).split(b"\n")
            lines.insert(rng.randrange(len(lines)), rng.choice(lines))
            raw = bytearray(b"\n".join(lines))
        else:
            lines = bytes(raw).split(b"\n")
            del lines[rng.randrange(len(lines))]
            raw = bytearray(b"\n".join(lines))
    return bytes(raw)


def read(number: int) -> int:
    """How many of the two parsers read this input; each writes what it read as it was."""
    raw, found = damaged(number), 0
    for parse, encode, given in (
        (parse_request, encode_request, raw),
        (parse_checkpoint, SignedCheckpoint.encode, raw.partition(b"\n\n")[2]),
    ):
        try:
            parsed = parse(given)
        except MalformedInput:
            continue
        assert encode(parsed) == given, number  # type: ignore[operator]  # each pair fits itself
        found += 1
    return found


def fuzz(first: int, count: int) -> tuple[int, int]:
    """How many requests and checkpoints were read and how many refused."""
    found = sum(read(number) for number in range(first, first + count))
    return found, 2 * count - found


def test_damaged_requests_are_refused_or_read_as_they_are() -> None:
    found, refused = fuzz(0, 10_000)
    assert found > 500
    assert refused > 10_000


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_five_million_damaged_requests_are_refused_or_read_as_they_are() -> None:
    """One part of fifty at a time; all of them with WINDVANE_SLICE=1/1."""
    numbers = slice_of(5_000_000, 50)
    found, refused = fuzz((2 << 32) + numbers.start, len(numbers))
    assert found > len(numbers) // 20
    assert refused > len(numbers)


@pytest.mark.parametrize("first", range(4))
def test_a_verifier_key_with_any_place_changed_is_refused(first: int) -> None:
    for place in range(first, len(CARD), 4):
        for char in "A+=\n/ é":
            changed = CARD[:place] + char + CARD[place + 1 :]
            if changed == CARD:
                continue
            with pytest.raises(MalformedInput):
                parse_verifier_key(changed)
