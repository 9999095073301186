# SPDX-License-Identifier: Apache-2.0
"""An envelope has one layout and one length, is signed as a whole, and each share opens for its guardian only.

Rules kept here:
* the layout is compared with bytes written out here, not with the module's own formats;
* every truncation, every changed header byte and arbitrary bytes give `MalformedEnvelope` and nothing else;
* every changed byte anywhere is noticed by a guardian, whatever the coordinator says.
"""

from __future__ import annotations

import hashlib
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifests import (
    LOG_ORIGIN,
    derived,
    guardian_round_key,
    make_guardians,
    make_manifest,
    member_key,
)
from windvane_privacy import field, sealing
from windvane_privacy.envelope import (
    Envelope,
    build_envelope,
    commit_hash,
    envelope_length,
    open_share,
    parse_envelope,
    verify_envelope,
)
from windvane_privacy.errors import (
    BadMemberSignature,
    BoundBroken,
    FieldElementOutOfRange,
    KeyRefused,
    MalformedEnvelope,
    ShareHeaderMismatch,
    ShareWillNotOpen,
    SoftwareTooOld,
    WrongGuardianKey,
)
from windvane_privacy.field import Elements, P
from windvane_privacy.identity import SigningKey
from windvane_privacy.manifest import Manifest
from windvane_privacy.sealing import RoundKey
from windvane_privacy.shares import combine, split

MANIFEST = make_manifest(k=2)
"""L = 10: small, so that every byte can be tried."""
NUMBER = 0x01020304
SUBMISSION = bytes(range(16))
VALUES = [0, 1, -1, 240, -240, 1711, -1711, 5, 100, -840]
HEAD, PART_HEAD, SHARE_HEAD = 92, 37, 68
PLAIN = SHARE_HEAD + 8 * 11
PART = PART_HEAD + PLAIN + 1136


def made(
    values: list[int] | None = None, manifest: Manifest = MANIFEST, member: int = NUMBER, key: SigningKey | None = None
) -> bytes:
    shares = split(VALUES if values is None else values, manifest.t, manifest.n)
    return build_envelope(manifest, member, key or member_key(1), shares, SUBMISSION)


RAW = made()


def accepted_by_a_guardian(raw: bytes, guardian: int) -> Elements:
    found = parse_envelope(raw, MANIFEST)
    verify_envelope(found, member_key(1).public)
    return open_share(found, MANIFEST, guardian, guardian_round_key(guardian))


def resigned(body: bytes) -> bytes:
    return body + member_key(1).sign(b"windvane/1/envelope\0", body)


def with_plaintext(plaintext: bytes, guardian: int = 1) -> bytes:
    """The envelope with one guardian's share replaced by a member who seals and signs something else."""
    entry = MANIFEST.guardians[guardian - 1]
    info = sealing.share_info(
        MANIFEST.sha256, SUBMISSION, NUMBER, guardian, 2, 3, entry.round_key_id, member_key(1).key_id, LOG_ORIGIN
    )
    start = HEAD + (guardian - 1) * PART + PART_HEAD
    sealed = sealing.seal(bytes.fromhex(entry.round_key), info, plaintext)
    return resigned(RAW[:start] + sealed + RAW[start + len(sealed) : -64])


def plaintext_of(raw: bytes, guardian: int = 1) -> bytes:
    found = parse_envelope(raw, MANIFEST)
    entry = MANIFEST.guardians[guardian - 1]
    info = sealing.share_info(
        MANIFEST.sha256, SUBMISSION, NUMBER, guardian, 2, 3, entry.round_key_id, member_key(1).key_id, LOG_ORIGIN
    )
    return sealing.unseal(guardian_round_key(guardian), info, found.parts[guardian - 1].sealed)


def test_the_envelopes_head_is_these_bytes() -> None:
    golden = (
        "57564531" + "01020304" + "000102030405060708090a0b0c0d0e0f" + MANIFEST.sha256 + member_key(1).key_id
        + "03" + "02" + "01" + "00"
    )  # fmt: skip
    assert RAW[:HEAD].hex() == golden
    for j in (1, 2, 3):
        start = HEAD + (j - 1) * PART
        length = (PLAIN + 1136).to_bytes(4, "big").hex()
        assert RAW[start : start + PART_HEAD].hex() == f"0{j}" + guardian_round_key(j).key_id + length
    assert len(RAW) == HEAD + 3 * PART + 64


def test_a_shares_plaintext_is_these_bytes() -> None:
    for j in (1, 2, 3):
        plaintext = plaintext_of(RAW, j)
        golden = (
            "57565331" + "01020304" + f"0{j}" + "02" + "03" + "01" + "000102030405060708090a0b0c0d0e0f"
            + MANIFEST.sha256 + "0000000a" + "00000001"
        )  # fmt: skip
        assert plaintext[:SHARE_HEAD].hex() == golden
        words = [int.from_bytes(plaintext[i : i + 8], "little") for i in range(SHARE_HEAD, PLAIN, 8)]
        assert open_share(parse_envelope(RAW, MANIFEST), MANIFEST, j, guardian_round_key(j)).tolist() == words


def test_the_signature_covers_label_and_all_but_itself() -> None:
    assert RAW[-64:] == member_key(1).sign(b"windvane/1/envelope\0", RAW[:-64])
    assert commit_hash(RAW) == hashlib.sha256(b"windvane/1/commit\0" + RAW).hexdigest()


@pytest.mark.parametrize(
    ("kinds", "length", "size"),
    [
        (("all",), 240, 9_663),
        (("coding", "analysis", "writing"), 720, 21_183),
        (("coding", "analysis", "writing", "research", "support"), 1_200, 32_703),
    ],
)
def test_sizes_are_the_published_ones(kinds: tuple[str, ...], length: int, size: int) -> None:
    manifest = make_manifest(k=8, kinds=kinds, members=200, demo=False)
    assert manifest.length == length
    assert envelope_length(manifest) == size
    assert len(made([0] * length, manifest)) == size


def test_all_inputs_have_one_length_with_and_without_votes() -> None:
    lengths = {len(made([0] * 10))} | {len(made([i * k for k in range(10)], member=i)) for i in range(300)}
    lengths |= {len(made([-(2**40)] * 10, key=SigningKey.generate())) for _ in range(20)}
    assert lengths == {envelope_length(MANIFEST)}


@pytest.mark.slow
def test_a_thousand_random_inputs_of_the_full_layout_have_one_length() -> None:
    manifest = make_manifest(k=8, members=60, demo=False)
    lengths = {len(made([(i * 7919 + k) % 3421 - 1710 for k in range(240)], manifest, i)) for i in range(1_000)}
    assert lengths == {9_663}


def test_two_envelopes_of_one_input_share_no_ciphertext() -> None:
    first, second = parse_envelope(made(), MANIFEST), parse_envelope(made(), MANIFEST)
    assert {part.sealed for part in first.parts}.isdisjoint(part.sealed for part in second.parts)
    assert commit_hash(first.raw) != commit_hash(second.raw)


@given(st.lists(st.integers(-(2**40), 2**40), min_size=10, max_size=10), st.integers(0, 2**32 - 1))
def test_any_two_guardians_get_the_vector_back(values: list[int], member: int) -> None:
    found = parse_envelope(made(values, member=member), MANIFEST)
    assert (found.member, found.submission_id, found.manifest_sha256) == (member, SUBMISSION, MANIFEST.sha256)
    verify_envelope(found, member_key(1).public)
    opened = {j: open_share(found, MANIFEST, j, guardian_round_key(j)) for j in (1, 2, 3)}
    for pair in combinations(opened, 2):
        assert field.decode_signed(combine({j: opened[j] for j in pair}, 2))[:10] == values


def test_five_guardians_of_whom_three_suffice() -> None:
    manifest = make_manifest(k=2, guardians=make_guardians(5), t=3)
    found = parse_envelope(made(manifest=manifest), manifest)
    opened = {j: open_share(found, manifest, j, guardian_round_key(j)) for j in (1, 4, 5)}
    assert field.decode_signed(combine(opened, 3))[:10] == VALUES


def test_every_truncation_and_every_longer_envelope_is_malformed() -> None:
    for cut in range(len(RAW)):
        with pytest.raises(MalformedEnvelope):
            parse_envelope(RAW[:cut], MANIFEST)
    for longer in (RAW + b"\0", RAW + RAW, b"\0" + RAW):
        with pytest.raises(MalformedEnvelope):
            parse_envelope(longer, MANIFEST)


@given(st.binary(max_size=len(RAW) + 10) | st.binary(min_size=len(RAW), max_size=len(RAW)))
def test_arbitrary_bytes_are_malformed(raw: bytes) -> None:
    with pytest.raises(MalformedEnvelope):
        parse_envelope(raw, MANIFEST)


@given(st.lists(st.tuples(st.integers(0, len(RAW) - 1), st.integers(0, 255)), min_size=1, max_size=6))
def test_a_damaged_envelope_is_parsed_or_malformed(changes: list[tuple[int, int]]) -> None:
    raw = bytearray(RAW)
    for place, value in changes:
        raw[place] = value
    try:
        found = parse_envelope(bytes(raw), MANIFEST)
    except MalformedEnvelope:
        return
    if bytes(raw) != RAW:
        with pytest.raises(BadMemberSignature):
            verify_envelope(found, member_key(1).public)


FREE = set(range(4, 24)) | set(range(56, 88))
"""Bytes of the head that a manifest does not fix: member number, submission id, member key id."""


def test_every_head_byte_that_the_manifest_fixes_is_checked() -> None:
    places = set(range(HEAD)) | {HEAD + j * PART + i for j in range(3) for i in range(PART_HEAD)}
    for place in places:
        raw = bytearray(RAW)
        raw[place] ^= 1
        if place in FREE:
            assert parse_envelope(bytes(raw), MANIFEST).raw == bytes(raw)
        else:
            with pytest.raises(MalformedEnvelope):
                parse_envelope(resigned(bytes(raw[:-64])), MANIFEST)


def test_every_single_changed_byte_breaks_the_signature_or_the_layout() -> None:
    public = member_key(1).public
    for place in range(0, len(RAW), 5):
        raw = bytearray(RAW)
        raw[place] ^= 0x80
        with pytest.raises((MalformedEnvelope, BadMemberSignature)):
            verify_envelope(parse_envelope(bytes(raw), MANIFEST), public)


def test_another_members_key_does_not_verify_it() -> None:
    found = parse_envelope(RAW, MANIFEST)
    for public in (member_key(2).public, b"", bytes(32), member_key(1).public[:-1]):
        with pytest.raises(BadMemberSignature):
            verify_envelope(found, public)


def test_the_key_that_signs_must_be_the_one_that_is_named() -> None:
    body = RAW[:56] + bytes.fromhex(member_key(2).key_id) + RAW[88:-64]
    for public in (member_key(1).public, member_key(2).public):
        with pytest.raises(BadMemberSignature):
            verify_envelope(parse_envelope(resigned(body), MANIFEST), public)


def test_naming_another_key_and_signing_with_it_does_not_open() -> None:
    """Somebody takes the sealed shares of a member and puts an own signature under them."""
    thief = member_key(2)
    body = RAW[:56] + bytes.fromhex(thief.key_id) + RAW[88:-64]
    stolen = parse_envelope(body + thief.sign(b"windvane/1/envelope\0", body), MANIFEST)
    verify_envelope(stolen, thief.public)
    with pytest.raises(ShareWillNotOpen):
        open_share(stolen, MANIFEST, 1, guardian_round_key(1))


@pytest.mark.parametrize(("place", "size"), [(4, 4), (8, 16)])
def test_a_signed_envelope_with_another_number_or_submission_does_not_open(place: int, size: int) -> None:
    body = RAW[:place] + bytes(b ^ 1 for b in RAW[place : place + size]) + RAW[place + size : -64]
    with pytest.raises(ShareWillNotOpen):
        accepted_by_a_guardian(resigned(body), 1)


def test_an_envelope_of_another_manifest_is_refused_and_its_shares_do_not_open() -> None:
    other = make_manifest(k=2, round="2026-Q4")
    with pytest.raises(MalformedEnvelope):
        parse_envelope(RAW, other)
    body = RAW[:24] + bytes.fromhex(other.sha256) + RAW[56:-64]
    moved = parse_envelope(resigned(body), other)
    with pytest.raises(ShareWillNotOpen):
        open_share(moved, other, 1, guardian_round_key(1))


def test_shares_of_two_submissions_cannot_be_mixed() -> None:
    shares = split(VALUES, 2, 3)
    other = build_envelope(MANIFEST, NUMBER, member_key(1), shares, derived("other submission", 16))
    start = HEAD + PART
    mixed = RAW[:start] + other[start : start + PART] + RAW[start + PART : -64]
    with pytest.raises(BadMemberSignature):
        accepted_by_a_guardian(mixed + RAW[-64:], 1)
    accepted_by_a_guardian(resigned(mixed), 1)
    with pytest.raises(ShareWillNotOpen):
        accepted_by_a_guardian(resigned(mixed), 2)


def test_shares_of_two_guardians_cannot_be_swapped() -> None:
    start = HEAD + PART_HEAD
    first, second = RAW[start : start + PART - PART_HEAD], RAW[start + PART : start + 2 * PART - PART_HEAD]
    body = bytearray(RAW[:-64])
    body[start : start + len(first)], body[start + PART : start + PART + len(second)] = second, first
    for guardian in (1, 2):
        with pytest.raises(ShareWillNotOpen):
            accepted_by_a_guardian(resigned(bytes(body)), guardian)


def test_a_guardian_with_another_key_or_number_learns_nothing() -> None:
    found = parse_envelope(RAW, MANIFEST)
    # 0 and -1 would count from the end of a Python sequence, to guardians 3 and 2.
    for guardian, owner in ((1, 2), (4, 1), (0, 3), (-1, 2)):
        with pytest.raises(WrongGuardianKey):
            open_share(found, MANIFEST, guardian, guardian_round_key(owner))
    with pytest.raises(WrongGuardianKey):
        open_share(found, MANIFEST, 1, RoundKey.generate())


def test_every_byte_of_the_inner_header_is_compared() -> None:
    plaintext = plaintext_of(RAW)
    assert len(plaintext) == PLAIN
    for place in range(SHARE_HEAD):
        changed = bytearray(plaintext)
        changed[place] ^= 1
        with pytest.raises(ShareHeaderMismatch):
            accepted_by_a_guardian(with_plaintext(bytes(changed)), 1)
    assert accepted_by_a_guardian(with_plaintext(plaintext), 1).shape == (11,)


@pytest.mark.parametrize("value", [P, P + 1, 2**64 - 1])
@pytest.mark.parametrize("place", [0, 5, 10])
def test_a_number_outside_the_field_is_refused_by_the_guardian(place: int, value: int) -> None:
    plaintext = bytearray(plaintext_of(RAW))
    plaintext[SHARE_HEAD + 8 * place : SHARE_HEAD + 8 * place + 8] = value.to_bytes(8, "little")
    with pytest.raises(FieldElementOutOfRange):
        accepted_by_a_guardian(with_plaintext(bytes(plaintext)), 1)


def test_garbage_for_one_guardian_leaves_the_others_shares_readable() -> None:
    raw = with_plaintext(bytes(PLAIN), guardian=2)
    with pytest.raises(ShareHeaderMismatch):
        accepted_by_a_guardian(raw, 2)
    opened = {j: accepted_by_a_guardian(raw, j) for j in (1, 3)}
    assert field.decode_signed(combine(opened, 2))[:10] == VALUES


def test_shares_that_do_not_fit_the_manifest_are_never_sealed() -> None:
    good = split(VALUES, 2, 3)
    for wrong in (good[:2], [*good, good[0]], [good[0], good[1], good[2][:-1]], [], split(VALUES[:-1], 2, 3)):
        with pytest.raises(BoundBroken):
            build_envelope(MANIFEST, NUMBER, member_key(1), wrong, SUBMISSION)
    for number, submission in ((-1, SUBMISSION), (2**32, SUBMISSION), (1, bytes(15)), (1, bytes(17))):
        with pytest.raises(BoundBroken):
            build_envelope(MANIFEST, number, member_key(1), good, submission)
    with pytest.raises(BoundBroken):
        build_envelope(MANIFEST, 1, member_key(1), [good[0], good[1], good[2].astype(np.int64)], SUBMISSION)  # type: ignore[list-item]
    with pytest.raises(FieldElementOutOfRange):
        build_envelope(MANIFEST, 1, member_key(1), [good[0], good[1], np.full(11, P, dtype=np.uint64)], SUBMISSION)


def test_a_guardian_key_that_cannot_be_sealed_to_stops_the_member() -> None:
    useless = guardian_round_key(2).public[:1184] + bytes(32)
    keys = [guardian_round_key(1).public, useless, guardian_round_key(3).public]
    with pytest.raises(KeyRefused):
        made(manifest=make_manifest(k=2, guardians=make_guardians(round_keys=keys)))


def test_a_manifest_with_range_proofs_is_refused_until_they_are_built() -> None:
    manifest = make_manifest(k=2, stage="2")
    for step in (
        lambda: envelope_length(manifest),
        lambda: made(manifest=manifest),
        lambda: parse_envelope(RAW, manifest),
    ):
        with pytest.raises(SoftwareTooOld):
            step()


def test_printing_an_envelope_shows_its_hash_only() -> None:
    found: Envelope = parse_envelope(RAW, MANIFEST)
    assert repr(found) == f"Envelope({commit_hash(RAW)[:16]})"
