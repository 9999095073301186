# SPDX-License-Identifier: Apache-2.0
"""Signed notes of the log: checkpoints, and the cosignatures under them.

Rules kept here:
* a checkpoint is three lines, origin, size, base64 root, and nothing more: cosignatures would not cover a fourth;
* a line is parsed in exactly one way: no leading zeros, canonical base64 with its padding, 32-byte hashes, LF only;
* log and witnesses sign alike, with ML-DSA-44 over the subtree message: what the log says is what was cosigned;
* a timestamp is a second since 1970, not 0 and below 2^63; another signer's line is passed over;
* the only error of a parser is `MalformedInput`.

Source: C2SP signed-note, tlog-checkpoint, tlog-cosignature (July 2026); FIPS 204 (ML-DSA-44).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA44PrivateKey, MLDSA44PublicKey

from windvane_privacy.errors import KeyRefused, MalformedInput, SignatureInvalid
from windvane_privacy.merkle import HASH_BYTES

COSIGNATURE: Final = 6
"""Type byte of an ML-DSA-44 cosignature."""
PUBLIC_BYTES: Final = 1312
SIGNATURE_BYTES: Final = 2420
MAX_NOTE_BYTES: Final = 1 << 20
MAX_SIGNATURES: Final = 64
_SUBTREE: Final = b"subtree/v1\n\0"
_DASH: Final = "— "
_NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,18}")
_NAME: Final = re.compile(r"[!-*,-~]{1,200}")
"""Names of logs and witnesses: printable ASCII, no space and no plus sign."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """`size` leaves have `root` (32 bytes) in the log of this `origin`."""

    origin: str
    size: int
    root: bytes

    @property
    def text(self) -> str:
        """The three lines."""
        return f"{self.origin}\n{self.size}\n{base64.b64encode(self.root).decode()}\n"


@dataclass(frozen=True, slots=True)
class SignatureLine:
    """One signature line: the signer's name, four bytes of its key id, and the rest of the blob."""

    name: str
    key_id: bytes
    blob: bytes

    @property
    def text(self) -> str:
        """The line, with its newline."""
        return f"{_DASH}{self.name} {base64.b64encode(self.key_id + self.blob).decode()}\n"


@dataclass(frozen=True, slots=True)
class SignedCheckpoint:
    """A checkpoint with its signature lines; none of them is verified yet."""

    checkpoint: Checkpoint
    signatures: tuple[SignatureLine, ...]

    def encode(self) -> bytes:
        """The note: text, blank line, signature lines."""
        return (self.checkpoint.text + "\n" + "".join(line.text for line in self.signatures)).encode()

    def with_line(self, line: SignatureLine) -> SignedCheckpoint:
        """The same with one more line; a second one of the same signer takes the first one's place."""
        others = tuple(one for one in self.signatures if (one.name, one.key_id) != (line.name, line.key_id))
        return SignedCheckpoint(self.checkpoint, (*others, line))


class Cosigner:
    """An ML-DSA-44 key with the name under which it signs checkpoints: the log's own, or a witness's.

    Raises:
        KeyRefused: the name is malformed.
    """

    __slots__ = ("_private", "name", "public")

    name: str
    public: bytes

    def __init__(self, name: str, private: MLDSA44PrivateKey) -> None:
        check_name(name)
        self.name = name
        self._private = private
        self.public = private.public_key().public_bytes_raw()

    @classmethod
    def generate(cls, name: str) -> Cosigner:
        """A fresh key from the system's generator."""
        return cls(name, MLDSA44PrivateKey.generate())

    @classmethod
    def from_raw(cls, name: str, raw: bytes) -> Cosigner:
        """The key of a 32-byte seed (FIPS 204 section 6.1).

        Raises:
            KeyRefused: another length.
        """
        if len(raw) != 32:
            raise KeyRefused("The seed of a log identity has 32 bytes.")
        return cls(name, MLDSA44PrivateKey.from_seed_bytes(raw))

    @property
    def raw(self) -> bytes:
        """The 32-byte seed, for the key file and nothing else."""
        return self._private.private_bytes_raw()

    def cosign(self, checkpoint: Checkpoint, timestamp: int) -> SignatureLine:
        """The signature line over a checkpoint at a second since 1970.

        Raises:
            MalformedInput: the timestamp is out of range.
        """
        signature = self._private.sign(_message(checkpoint, self.name, timestamp))
        return SignatureLine(self.name, cosigner_id(self.name, self.public), _time(timestamp) + signature)

    def __repr__(self) -> str:
        return f"Cosigner({self.name})"


def check_name(name: str) -> None:
    """Return if a log or witness may have this name.

    Raises:
        KeyRefused: it is empty, too long, or has a space, a plus sign or anything but printable ASCII.
    """
    if not _NAME.fullmatch(name):
        raise KeyRefused("A name of a log or witness is 1 to 200 printable ASCII characters without space and plus.")


def cosigner_id(name: str, public: bytes) -> bytes:
    """SHA-256(name || 0x0A || 0x06 || public key)[:4]."""
    return hashlib.sha256(name.encode() + b"\n" + bytes([COSIGNATURE]) + public).digest()[:4]


def verifier_key(name: str, public: bytes) -> str:
    """A signer as one line of text: `name+key id+base64(type || public key)` (C2SP signed-note, verifier keys)."""
    packed = base64.b64encode(bytes([COSIGNATURE]) + public).decode()
    return f"{name}+{cosigner_id(name, public).hex()}+{packed}"


def parse_verifier_key(text: str) -> tuple[str, bytes]:
    """Name and ML-DSA-44 public key (1,312 bytes) of a signer.

    Raises:
        MalformedInput: not of this form, of another type of key, or the key id does not fit.
    """
    name, _, rest = text.partition("+")
    hint, _, packed = rest.partition("+")
    raw = _base64(packed)
    if not _NAME.fullmatch(name) or len(raw) != 1 + PUBLIC_BYTES or raw[0] != COSIGNATURE:
        raise MalformedInput("A verifier key is not of its form, or not an ML-DSA-44 cosigner's.")
    if cosigner_id(name, raw[1:]).hex() != hint:
        raise MalformedInput("The key id of a verifier key does not fit.")
    return name, raw[1:]


def verify_cosignature(line: SignatureLine, checkpoint: Checkpoint, public: bytes) -> int:
    """The timestamp of a valid cosignature by this key, seconds since 1970.

    Raises:
        SignatureInvalid: of another key or length, with a timestamp out of range, or not over this checkpoint.
    """
    good = len(public) == PUBLIC_BYTES and line.key_id == cosigner_id(line.name, public)
    if not good or len(line.blob) != 8 + SIGNATURE_BYTES:
        raise SignatureInvalid
    (timestamp,) = struct.unpack(">Q", line.blob[:8])
    try:
        message = _message(checkpoint, line.name, timestamp)
        MLDSA44PublicKey.from_public_bytes(public).verify(line.blob[8:], message)
    except (InvalidSignature, MalformedInput, ValueError):
        raise SignatureInvalid from None
    return int(timestamp)


def parse_checkpoint(raw: bytes) -> SignedCheckpoint:
    """A signed checkpoint from its bytes.

    Raises:
        MalformedInput: in any way not of the form above.
    """
    if len(raw) > MAX_NOTE_BYTES:
        raise MalformedInput("A checkpoint is too long.")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise MalformedInput("A checkpoint is not UTF-8.") from None
    if any(ord(char) < 0x20 and char != "\n" for char in text) or not text.endswith("\n"):
        raise MalformedInput("A checkpoint holds a control character, or does not end in a newline.")
    lines = text[:-1].split("\n")
    if len(lines) < 4 or lines[3] != "" or len(lines) > 4 + MAX_SIGNATURES:
        raise MalformedInput("A checkpoint is three lines, a blank one, and its signatures.")
    origin, size, root = lines[:3]
    if not _NAME.fullmatch(origin) or not _NUMBER.fullmatch(size) or int(size) >= 1 << 63:
        raise MalformedInput("The origin or the size of a checkpoint is malformed.")
    return SignedCheckpoint(
        Checkpoint(origin, int(size), decode_hash(root)), tuple(_signature(line) for line in lines[4:])
    )


def decode_hash(text: str) -> bytes:
    """32 bytes of canonical base64.

    Raises:
        MalformedInput: anything else.
    """
    found = _base64(text)
    if len(found) != HASH_BYTES:
        raise MalformedInput("A hash has not 32 bytes.")
    return found


def encode_proof(proof: Sequence[bytes]) -> str:
    """One line of base64 a hash, each with its newline."""
    return "".join(base64.b64encode(one).decode() + "\n" for one in proof)


def _signature(line: str) -> SignatureLine:
    name, space, blob = line.removeprefix(_DASH).partition(" ")
    raw = _base64(blob)
    if not line.startswith(_DASH) or not space or not _NAME.fullmatch(name) or len(raw) < 5:
        raise MalformedInput("A signature line of a checkpoint is malformed.")
    return SignatureLine(name, raw[:4], raw[4:])


def _base64(text: str) -> bytes:
    try:
        raw = base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise MalformedInput("Base64 is malformed.") from None
    # Two texts for the same bytes would give one statement two forms.
    if base64.b64encode(raw).decode() != text:
        raise MalformedInput("Base64 is not in its canonical form.")
    return raw


def _time(timestamp: int) -> bytes:
    if not 0 < timestamp < 1 << 63:
        raise MalformedInput("A timestamp is not in range.")
    return struct.pack(">Q", timestamp)


def _message(checkpoint: Checkpoint, name: str, timestamp: int) -> bytes:
    named, origin = name.encode(), checkpoint.origin.encode()
    return b"".join((
        _SUBTREE, bytes([len(named)]), named, _time(timestamp), bytes([len(origin)]), origin,
        struct.pack(">QQ", 0, checkpoint.size), checkpoint.root,
    ))  # fmt: skip
