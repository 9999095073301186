# SPDX-License-Identifier: Apache-2.0
"""Checkpoints and cosignatures: one text for one statement, and everything else refused."""

from __future__ import annotations

import base64
import hashlib
import struct

import pytest
from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA44PublicKey
from hypothesis import given
from hypothesis import strategies as st

from windvane_privacy.errors import KeyRefused, MalformedInput, SignatureInvalid
from windvane_privacy.notes import (
    Checkpoint,
    Cosigner,
    SignatureLine,
    SignedCheckpoint,
    cosigner_id,
    parse_checkpoint,
    verify_cosignature,
)

ROOT = hashlib.sha256(b"root").digest()
POINT = Checkpoint("log.example/windvane", 42, ROOT)
KEY = Cosigner.from_raw("witness.example/one", bytes(range(32)))
NOW = 1_790_000_000
NOTE = SignedCheckpoint(POINT, (KEY.cosign(POINT, NOW),)).encode()


def test_a_checkpoint_is_three_lines_and_its_signatures():
    lines = NOTE.decode().split("\n")
    assert lines[:4] == ["log.example/windvane", "42", base64.b64encode(ROOT).decode(), ""]
    assert lines[4].startswith("— witness.example/one ")
    assert lines[5] == ""
    assert len(lines) == 6
    assert parse_checkpoint(NOTE).checkpoint == POINT
    assert parse_checkpoint(NOTE).encode() == NOTE


def test_the_signed_message_is_the_declared_one():
    (line,) = parse_checkpoint(NOTE).signatures
    expected = b"".join((
        b"subtree/v1\n\0", b"\x13witness.example/one", struct.pack(">Q", NOW), b"\x14log.example/windvane",
        struct.pack(">Q", 0), struct.pack(">Q", 42), ROOT,
    ))  # fmt: skip
    assert line.blob[:8] == struct.pack(">Q", NOW)
    MLDSA44PublicKey.from_public_bytes(KEY.public).verify(line.blob[8:], expected)
    wanted = hashlib.sha256(b"witness.example/one\n\x06" + KEY.public).digest()[:4]
    assert line.key_id == cosigner_id(KEY.name, KEY.public) == wanted
    assert len(base64.b64encode(line.key_id + line.blob)) == 3244


def test_a_valid_cosignature_gives_its_time():
    (line,) = parse_checkpoint(NOTE).signatures
    assert verify_cosignature(line, POINT, KEY.public) == NOW


@pytest.mark.parametrize(
    "other",
    [
        Checkpoint("log.example/other", 42, ROOT),
        Checkpoint("log.example/windvane", 43, ROOT),
        Checkpoint("log.example/windvane", 42, bytes(32)),
    ],
)
def test_a_cosignature_covers_origin_size_and_root(other: Checkpoint):
    with pytest.raises(SignatureInvalid):
        verify_cosignature(KEY.cosign(POINT, NOW), other, KEY.public)


def test_a_cosignature_of_another_key_name_time_or_length_is_refused():
    line, stranger = KEY.cosign(POINT, NOW), Cosigner.generate(KEY.name)
    renamed = SignatureLine("witness.example/two", cosigner_id("witness.example/two", KEY.public), line.blob)
    later = SignatureLine(line.name, line.key_id, struct.pack(">Q", NOW + 1) + line.blob[8:])
    for wrong, public in (
        (line, stranger.public),
        (renamed, KEY.public),
        (later, KEY.public),
        (SignatureLine(line.name, line.key_id, line.blob[:-1]), KEY.public),
        (SignatureLine(line.name, line.key_id, bytes(8) + line.blob[8:]), KEY.public),
        (SignatureLine(line.name, bytes(4), line.blob), KEY.public),
        (line, KEY.public[:-1]),
    ):
        with pytest.raises(SignatureInvalid):
            verify_cosignature(wrong, POINT, public)


@pytest.mark.parametrize("timestamp", [0, -1, 1 << 63])
def test_a_timestamp_out_of_range_is_not_signed(timestamp: int):
    with pytest.raises(MalformedInput):
        KEY.cosign(POINT, timestamp)


B64 = base64.b64encode(ROOT)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"log\n42\n" + B64 + b"\n",
        b"log\n42\n" + B64 + b"\n\nx",
        b"log\n042\n" + B64 + b"\n\n",
        b"log\n+42\n" + B64 + b"\n\n",
        b"log\n4_2\n" + B64 + b"\n\n",
        b"log\n 42\n" + B64 + b"\n\n",
        "log\n٤٢\n".encode() + B64 + b"\n\n",
        b"log\n-1\n" + B64 + b"\n\n",
        b"log\n9223372036854775808\n" + B64 + b"\n\n",
        b"log\n99999999999999999999\n" + B64 + b"\n\n",
        b"log\n42\n" + B64[:-1] + b"\n\n",
        b"log\n42\n" + B64 + b"=\n\n",
        b"log\n42\n" + B64[:-2] + b"9=\n\n",
        b"log\n42\n" + B64.replace(b"/", b"_").replace(b"+", b"-") + b" \n\n",
        b"log\n42\n" + base64.b64encode(bytes(31)) + b"\n\n",
        b"log\n42\n" + B64 + b"\nextension\n\n",
        b"log\r\n42\n" + B64 + b"\n\n",
        b"lo g\n42\n" + B64 + b"\n\n",
        b"lo+g\n42\n" + B64 + b"\n\n",
        b"\n42\n" + B64 + b"\n\n",
        b"log\n42\n" + B64 + b"\n\n- name " + B64 + b"\n",
        b"log\n42\n" + B64 + "\n\n— name\n".encode(),
        b"log\n42\n" + B64 + "\n\n— na me AAAAAAA=\n".encode(),
        b"log\n42\n" + B64 + "\n\n— name AAAA\n".encode(),
        b"log\n42\n" + B64 + b"\n\n" + "— name AAAAAAA=\n".encode() * 65,
        b"log\n42\n" + B64 + b"\n\n\xff\n",
        b"l" * ((1 << 20) + 1),
    ],
)
def test_a_checkpoint_in_any_other_form_is_refused(raw: bytes):
    with pytest.raises(MalformedInput):
        parse_checkpoint(raw)


@given(st.binary(max_size=200), st.integers(0, len(NOTE)), st.integers(0, len(NOTE)))
def test_the_parser_raises_nothing_but_its_own_error(noise: bytes, start: int, end: int):
    for raw in (noise, NOTE[:start] + noise + NOTE[end:]):
        try:
            found = parse_checkpoint(raw)
        except MalformedInput:
            continue
        assert found.encode() == raw


@pytest.mark.parametrize("name", ["", "a b", "a+b", "é", "a\nb", "x" * 201])
def test_names_that_would_break_a_line_are_refused(name: str):
    with pytest.raises(KeyRefused):
        Cosigner.generate(name)


def test_a_key_comes_back_from_its_seed_and_is_not_printed():
    again = Cosigner.from_raw(KEY.name, KEY.raw)
    assert again.public == KEY.public
    assert KEY.raw.hex() not in repr(KEY)
    with pytest.raises(KeyRefused):
        Cosigner.from_raw(KEY.name, bytes(31))


def test_one_signer_has_one_line():
    first = SignedCheckpoint(POINT, ()).with_line(KEY.cosign(POINT, NOW))
    second = first.with_line(KEY.cosign(POINT, NOW + 5))
    assert len(second.signatures) == 1
    assert verify_cosignature(second.signatures[0], POINT, KEY.public) == NOW + 5
