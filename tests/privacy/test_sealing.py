# SPDX-License-Identifier: Apache-2.0
"""A sealed share opens for one guardian under one `info`, and for nothing else.

Rules kept here:
* each of the 168 bytes of `info` and each kind of damage to the ciphertext is tried;
* the serialised key forms are compared byte by byte with those of the two underlying libraries' keys.
"""

from __future__ import annotations

import hashlib

import pytest
from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from manifests import derived, guardian_round_key
from windvane_privacy.errors import KeyRefused, MalformedInput, ShareWillNotOpen
from windvane_privacy.sealing import OVERHEAD, RoundKey, seal, share_info, unseal

FIELDS = {
    "manifest_sha256": "11" * 32,
    "submission_id": b"\x22" * 16,
    "member": 0x33343536,
    "guardian": 1,
    "t": 2,
    "n": 3,
    "guardian_key_id": "44" * 32,
    "member_key_id": "55" * 32,
    "log_origin": "example.org/log",
}


def info(**changes: object) -> bytes:
    return share_info(**{**FIELDS, **changes})  # type: ignore[arg-type]


def test_info_is_these_168_bytes() -> None:
    golden = (
        "77696e6476616e652f312f736861726500" + "11" * 32 + "22" * 16 + "33343536" + "010203" + "44" * 32 + "55" * 32
        + hashlib.sha256(b"example.org/log").hexdigest()
    )  # fmt: skip
    assert info().hex() == golden
    assert len(info()) == 168


def test_a_share_comes_back_from_its_own_key_and_info() -> None:
    key = RoundKey.generate()
    sealed = seal(key.public, info(), b"plain" * 100)
    assert len(sealed) == 500 + OVERHEAD == 500 + 1136
    assert unseal(key, info(), sealed) == b"plain" * 100


def test_each_of_the_168_bytes_is_bound() -> None:
    key = guardian_round_key(1)
    right = info()
    sealed = seal(key.public, right, b"share")
    for place in range(168):
        wrong = bytearray(right)
        wrong[place] ^= 1
        with pytest.raises(ShareWillNotOpen):
            unseal(key, bytes(wrong), sealed)
    for wrong_length in (right[:-1], right + b"\0", b""):
        with pytest.raises(ShareWillNotOpen):
            unseal(key, wrong_length, sealed)
    assert unseal(key, right, sealed) == b"share"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("manifest_sha256", "12" + "11" * 31), ("submission_id", b"\x23" * 16), ("member", 1), ("guardian", 2),
        ("t", 3), ("n", 4), ("guardian_key_id", "45" * 32), ("member_key_id", "56" * 32), ("log_origin", "other"),
    ],
)  # fmt: skip
def test_every_field_changes_info(field: str, value: object) -> None:
    assert info(**{field: value}) != info()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("manifest_sha256", "11" * 31), ("manifest_sha256", "zz" * 32), ("manifest_sha256", "é" * 64),
        ("manifest_sha256", "11 " * 16 + "11" * 8), ("submission_id", bytes(15)), ("submission_id", bytes(17)),
        ("member", -1), ("member", 2**32), ("guardian", 256), ("t", -1), ("n", 256), ("guardian_key_id", ""),
        ("member_key_id", "55" * 33),
    ],
)  # fmt: skip
def test_fields_that_do_not_fit_are_refused(field: str, value: object) -> None:
    with pytest.raises(MalformedInput):
        info(**{field: value})


def test_wrong_lengths_that_add_up_are_refused() -> None:
    with pytest.raises(MalformedInput):
        info(submission_id=bytes(15), manifest_sha256="11" * 33)
    with pytest.raises(MalformedInput):
        info(guardian_key_id="44" * 31, manifest_sha256="11" * 33)


@given(place=st.integers(0, 1136 + 4), bit=st.integers(0, 7))
def test_any_flipped_bit_closes_the_share(place: int, bit: int) -> None:
    key = guardian_round_key(1)
    sealed = bytearray(seal(key.public, info(), b"share"))
    sealed[place] ^= 1 << bit
    with pytest.raises(ShareWillNotOpen):
        unseal(key, info(), bytes(sealed))


@given(st.binary(max_size=1300))
def test_arbitrary_bytes_never_open_and_never_crash(raw: bytes) -> None:
    with pytest.raises(ShareWillNotOpen):
        unseal(guardian_round_key(1), info(), raw)


def test_truncated_and_extended_ciphertexts_do_not_open() -> None:
    key = guardian_round_key(1)
    sealed = seal(key.public, info(), b"share")
    for wrong in (*(sealed[:cut] for cut in range(0, len(sealed), 37)), sealed[:-1], sealed + b"\0"):
        with pytest.raises(ShareWillNotOpen):
            unseal(key, info(), wrong)


def test_another_guardians_key_does_not_open_it() -> None:
    sealed = seal(guardian_round_key(1).public, info(), b"share")
    with pytest.raises(ShareWillNotOpen):
        unseal(guardian_round_key(2), info(), sealed)
    mixed = RoundKey.from_raw(guardian_round_key(1).raw[:64] + guardian_round_key(2).raw[64:])
    with pytest.raises(ShareWillNotOpen):  # one right half of a hybrid key is not enough
        unseal(mixed, info(), sealed)
    mixed = RoundKey.from_raw(guardian_round_key(2).raw[:64] + guardian_round_key(1).raw[64:])
    with pytest.raises(ShareWillNotOpen):
        unseal(mixed, info(), sealed)


def test_keys_are_serialised_as_ml_kem_then_x25519() -> None:
    raw = derived("some round key", 96)
    key = RoundKey.from_raw(raw)
    kem = MLKEM768PrivateKey.from_seed_bytes(raw[:64]).public_key().public_bytes_raw()
    x25519 = X25519PrivateKey.from_private_bytes(raw[64:]).public_key().public_bytes_raw()
    assert key.public == kem + x25519
    assert (len(kem), len(key.public), len(key.raw)) == (1184, 1216, 96)
    assert key.raw == raw
    assert key.key_id == hashlib.sha256(b"windvane/1/key\0\x02" + key.public).hexdigest()


def test_a_generated_key_survives_its_file_form() -> None:
    key = RoundKey.generate()
    assert unseal(RoundKey.from_raw(key.raw), info(), seal(key.public, info(), b"x")) == b"x"
    assert RoundKey.generate().public != key.public


def test_printing_a_key_shows_no_key() -> None:
    key = RoundKey.generate()
    assert repr(key) == f"RoundKey({key.key_id[:16]})"


@pytest.mark.parametrize("length", [0, 32, 95, 97])
def test_private_bytes_of_another_length_are_refused(length: int) -> None:
    with pytest.raises(KeyRefused):
        RoundKey.from_raw(bytes(length))


def test_malformed_public_keys_are_refused() -> None:
    good = guardian_round_key(1).public
    zero_x25519 = good[:1184] + bytes(32)
    kem_out_of_range = b"\xff" * 1184 + good[1184:]
    for public in (b"", good[:-1], good + b"\0", good[:32], zero_x25519, kem_out_of_range):
        with pytest.raises(KeyRefused):
            seal(public, info(), b"share")


def test_sealing_twice_gives_different_bytes_of_one_length() -> None:
    public = guardian_round_key(1).public
    made = {seal(public, info(), b"share") for _ in range(5)}
    assert len(made) == 5
    assert {len(sealed) for sealed in made} == {5 + OVERHEAD}
