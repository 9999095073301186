# SPDX-License-Identifier: Apache-2.0
"""Files of parcels and answers: one spelling each, every damage refused, one size for all members of a step."""

from __future__ import annotations

import hashlib
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifests import derived, make_manifest, member_key
from slices import slice_of
from windvane_privacy.couriers import ROUTES, Parcel
from windvane_privacy.envelope import build_envelope, commit_hash
from windvane_privacy.errors import MalformedInput, NotReady, all_errors, problem_type
from windvane_privacy.leaf import make_leaf
from windvane_privacy.parcel_file import (
    MAGIC,
    Answer,
    decode_answers,
    decode_parcels,
    encode_answers,
    encode_parcels,
    parcel_id,
    refused,
)
from windvane_privacy.shares import split

SENT = sorted(kind for kind, route in ROUTES.items() if route.method == "POST")
ROUND_NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}", fullmatch=True) | st.just("")
PARCELS = st.builds(Parcel, st.sampled_from(SENT), ROUND_NAMES, st.binary(max_size=200))
ANSWERS = st.builds(Answer, st.binary(max_size=100)) | st.builds(
    Answer, st.just(b""), st.sampled_from(sorted(all_errors())), st.text(max_size=40).filter(str.isprintable)
)
SOME = (Parcel("leaf", "2026-Q3", b'{"a":1}'), Parcel("reveal", "2026-Q3", b"envelope"), Parcel("enrol", "", b"{}"))
SAID = {derived("one"): Answer(b"receipt"), derived("two"): refused(NotReady("Not yet."))}


SOUND = (
    encode_parcels([Parcel("reveal", "2026-Q3", b"envelope"), Parcel("enrol", "", b"{}")])[:-32],
    encode_parcels([Parcel("endorse", "2026-Q3", b"{}")])[:-32],
    encode_answers(SAID)[:-32],
    encode_answers({})[:-32],
)
"""Contents without their hash, to be changed."""


def sealed(content: bytes) -> bytes:
    """A content with the hash that belongs to it: what a liar writes, not what damage leaves."""
    return content + hashlib.sha256(content).digest()


@given(st.lists(PARCELS, max_size=5))
def test_parcels_come_back_in_order_and_byte_for_byte(parcels: list[Parcel]) -> None:
    raw = encode_parcels(parcels)
    assert decode_parcels(raw) == tuple(parcels)
    assert encode_parcels(decode_parcels(raw)) == raw


@given(st.dictionaries(st.binary(min_size=32, max_size=32), ANSWERS, max_size=5))
def test_answers_come_back_byte_for_byte_whatever_their_order(answers: dict[bytes, Answer]) -> None:
    raw = encode_answers(answers)
    assert decode_answers(raw) == answers
    assert encode_answers(dict(reversed(answers.items()))) == raw


@given(PARCELS, PARCELS)
def test_two_parcels_never_share_a_name(one: Parcel, other: Parcel) -> None:
    assert (parcel_id(one) == parcel_id(other)) == (one == other)


@pytest.mark.parametrize(
    ("raw", "decode"),
    [(encode_parcels(SOME), decode_parcels), (encode_answers(SAID), decode_answers)],
    ids=["parcels", "answers"],
)
def test_every_truncation_and_every_flipped_byte_is_refused(raw: bytes, decode) -> None:
    for end in [*range(0, len(raw), 7), *range(len(raw) - 80, len(raw))]:
        with pytest.raises(MalformedInput):
            decode(raw[:end])
    for place in [*range(60), *range(60, len(raw), 97), *range(len(raw) - 40, len(raw))]:
        with pytest.raises(MalformedInput):
            decode(raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :])
    with pytest.raises(MalformedInput):
        decode(raw + b"\0")


@given(st.binary(max_size=300), st.sampled_from([1, 2]), st.integers(0, 3))
def test_a_file_with_a_right_hash_around_garbage_lets_nothing_out_but_malformed_input(
    content: bytes, what: int, count: int
) -> None:
    raw = sealed(MAGIC + bytes([what, 0, 0, 0]) + count.to_bytes(4, "big") + content)
    for decode in (decode_parcels, decode_answers):
        try:
            decode(raw)
        except MalformedInput:
            pass


@given(st.data())
def test_a_forged_change_of_any_byte_is_refused_or_reads_as_what_it_says(data: st.DataObject) -> None:
    content = bytearray(encode_parcels([Parcel("reveal", "2026-Q3", b"envelope"), Parcel("enrol", "", b"{}")])[:-32])
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] = data.draw(st.integers(0, 255))
    raw = sealed(bytes(content))
    try:
        assert encode_parcels(decode_parcels(raw)) == raw
    except MalformedInput:
        pass


def mutated(rng: random.Random) -> bytes:
    """A sound file with a few changes inside, under the hash that belongs to the changed content."""
    content = bytearray(rng.choice(SOUND))
    for _ in range(rng.randint(1, 4)):
        place, kind = rng.randrange(len(content)), rng.randrange(4)
        if kind == 0:
            content[place] = rng.randrange(256)
        elif kind == 1:
            del content[place : place + rng.randint(1, 40)]
        elif kind == 2:
            content[place:place] = rng.randbytes(rng.randint(1, 40))
        else:  # lengths and counts are where a parser can be led astray
            content[place : place + 4] = rng.choice((b"\0\0\0\0", b"\xff\xff\xff\xff", b"\0\0\0\x01", b"\x7f\0\0\0"))
        content = content or bytearray(MAGIC)
    return sealed(bytes(content))


def fuzz(seed: int, rounds: int) -> int:
    """How many of so many changed files were refused; whatever is read must be what its bytes say."""
    rng, refusals = random.Random(seed), 0
    for _ in range(rounds):
        raw = mutated(rng)
        for decode, encode in ((decode_parcels, encode_parcels), (decode_answers, encode_answers)):
            try:
                assert encode(decode(raw)) == raw  # type: ignore[operator]  # each pair fits itself
            except MalformedInput:
                refusals += 1
    return refusals


def test_changed_files_are_refused_or_read_as_they_are() -> None:
    assert 20_000 <= fuzz(1, 20_000) < 40_000  # each file is of one kind at most, and some changes leave it sound


@pytest.mark.slow
def test_five_million_changed_files_are_refused_or_read_as_they_are() -> None:
    """One part of fifty at a time; all of them with WINDVANE_SLICE=1/1."""
    numbers = slice_of(2_500_000, 50)
    assert fuzz(2 + numbers.start, len(numbers)) >= len(numbers)


def test_what_is_not_empty_in_the_room_after_an_entry_is_refused() -> None:
    content = bytearray(encode_parcels([Parcel("leaf", "2026-Q3", b"{}")])[:-32])
    content[-1] = 1
    with pytest.raises(MalformedInput, match="not empty"):
        decode_parcels(sealed(bytes(content)))


@pytest.mark.parametrize(
    ("kind", "round_id"),
    [
        ("manifest", "2026-Q3"),  # a question: nothing of a file is answered into the dark
        ("../../etc", "2026-Q3"),
        ("leaf", "../2026-Q3"),
        ("leaf", "a/b"),
        ("unknown", ""),
    ],
)
def test_questions_unknown_kinds_and_names_that_could_be_paths_are_refused(kind: str, round_id: str) -> None:
    with pytest.raises(MalformedInput):
        decode_parcels(encode_parcels([Parcel(kind, round_id, b"")]))


def test_two_answers_to_one_parcel_are_refused() -> None:
    name = derived("one")
    record = name + b"\0" + (1).to_bytes(4, "big") + b"a"
    content = MAGIC + bytes([2, 0, 0, 0]) + (2).to_bytes(4, "big") + record + record
    with pytest.raises(MalformedInput, match="two"):
        decode_answers(sealed(content))


def test_parcels_are_no_answers_and_answers_no_parcels() -> None:
    with pytest.raises(MalformedInput, match="answers"):
        decode_answers(encode_parcels(SOME))
    with pytest.raises(MalformedInput, match="parcels"):
        decode_parcels(encode_answers(SAID))


def test_a_refusal_travels_by_name_and_detail() -> None:
    answer = refused(NotReady("The lot is not drawn."))
    assert answer.problem == problem_type(NotReady)
    assert decode_answers(encode_answers({derived("x"): answer}))[derived("x")] == answer


def test_files_of_one_step_have_one_size_for_all_members() -> None:
    manifest = make_manifest(members=200)
    sizes: dict[str, set[int]] = {"leaf": set(), "reveal": set()}
    for member in (1, 9, 10, 99, 100, 200):
        key = member_key(member)
        vector = [member] * manifest.length
        envelope = build_envelope(manifest, member, key, split(vector, manifest.t, manifest.n), bytes(16))
        fields = {
            "manifest": manifest.sha256,
            "member": member,
            "hash": commit_hash(envelope),
            "install": "0" * 64,
            "day": "2026-10-02",
        }
        leaf = make_leaf("commitment", manifest.round, fields, key)
        sizes["leaf"].add(len(encode_parcels([Parcel("leaf", manifest.round, leaf)])))
        sizes["reveal"].add(len(encode_parcels([Parcel("reveal", manifest.round, envelope)])))
    assert {kind: len(found) for kind, found in sizes.items()} == {"leaf": 1, "reveal": 1}
