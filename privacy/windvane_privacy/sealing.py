# SPDX-License-Identifier: Apache-2.0
"""Sealing a share to one guardian for one round: HPKE (RFC 9180) with the hybrid of ML-KEM-768 and X25519.

Rules kept here:
* one suite: MLKEM768_X25519, HKDF-SHA256, ChaCha20-Poly1305; Base mode, single shot, no sender authentication (the
  envelope is signed);
* everything a ciphertext belongs to is bound through `info` (RFC 9180 section 8.1): 168 bytes, fixed order;
* a round key lives for one round; its public form is 1,184 bytes ML-KEM || 32 bytes X25519, its private form the
  64-byte ML-KEM seed || 32 bytes X25519;
* whatever goes wrong while opening is `ShareWillNotOpen`: no error tells an attacker more.
"""

from __future__ import annotations

import hashlib
import struct

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey, MLKEM768PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import (
    AEAD,
    KDF,
    KEM,
    MLKEM768X25519PrivateKey,
    MLKEM768X25519PublicKey,
    Suite,
)

from windvane_privacy.errors import KeyRefused, MalformedInput, ShareWillNotOpen
from windvane_privacy.identity import KEY_KEM, key_id

PUBLIC_BYTES, PRIVATE_BYTES = 1216, 96
INFO_BYTES = 168
OVERHEAD = 1136
"""Bytes a sealed share is longer than its plaintext: 1,120 encapsulation, 16 tag."""
_KEM_PUBLIC, _KEM_SEED = 1184, 64
_LABEL = b"windvane/1/share\0"
_SUITE = Suite(KEM.MLKEM768_X25519, KDF.HKDF_SHA256, AEAD.CHACHA20_POLY1305)


class RoundKey:
    """A guardian's encryption key of one round."""

    __slots__ = ("_kem", "_x25519", "key_id", "public")

    public: bytes
    """1,216 bytes."""
    key_id: str

    def __init__(self, kem: MLKEM768PrivateKey, x25519: X25519PrivateKey) -> None:
        self._kem = kem
        self._x25519 = x25519
        self.public = kem.public_key().public_bytes_raw() + x25519.public_key().public_bytes_raw()
        self.key_id = key_id(KEY_KEM, self.public)

    @classmethod
    def generate(cls) -> RoundKey:
        """A fresh key from the system's generator."""
        return cls(MLKEM768PrivateKey.generate(), X25519PrivateKey.generate())

    @classmethod
    def from_raw(cls, raw: bytes) -> RoundKey:
        """The key of 96 private bytes.

        Raises:
            KeyRefused: another length.
        """
        if len(raw) != PRIVATE_BYTES:
            raise KeyRefused("A private round key has 96 bytes.")
        return cls(
            MLKEM768PrivateKey.from_seed_bytes(raw[:_KEM_SEED]), X25519PrivateKey.from_private_bytes(raw[_KEM_SEED:])
        )

    @property
    def raw(self) -> bytes:
        """The 96 private bytes, for the key file and nothing else."""
        return self._kem.private_bytes_raw() + self._x25519.private_bytes_raw()

    def hybrid(self) -> MLKEM768X25519PrivateKey:
        """The form that HPKE takes."""
        return MLKEM768X25519PrivateKey(self._kem, self._x25519)

    def __repr__(self) -> str:
        return f"RoundKey({self.key_id[:16]})"


def share_info(
    manifest_sha256: str,
    submission_id: bytes,
    member: int,
    guardian: int,
    t: int,
    n: int,
    guardian_key_id: str,
    member_key_id: str,
    log_origin: str,
) -> bytes:
    """The 168 bytes that a sealed share is bound to.

    Label 17, manifest 32, submission id 16, member u32 big-endian, guardian, t, n one byte each, guardian's round key
    id 32, member's signing key id 32, SHA-256 of the log origin 32.

    Raises:
        MalformedInput: a hash is not 32 bytes of hex, the submission id not 16 bytes, or a number does not fit.
    """
    try:
        hashes = [bytes.fromhex(text) for text in (manifest_sha256, guardian_key_id, member_key_id)]
        numbers = struct.pack(">IBBB", member, guardian, t, n)
        origin = hashlib.sha256(log_origin.encode("utf-8")).digest()
    except (ValueError, struct.error) as error:
        raise MalformedInput("a field that a share is bound to is malformed") from error
    # Two wrong lengths could add up: each is looked at, not only the sum.
    if len(submission_id) != 16 or any(len(digest) != 32 for digest in hashes):
        raise MalformedInput("a field that a share is bound to has another length")
    return b"".join((_LABEL, hashes[0], submission_id, numbers, hashes[1], hashes[2], origin))


def seal(public: bytes, info: bytes, plaintext: bytes) -> bytes:
    """Encapsulation || ciphertext || tag: `len(plaintext) + OVERHEAD` bytes. `public`: 1,216 bytes.

    Raises:
        KeyRefused: the public key is malformed or useless (for example an all-zero X25519 part).
    """
    if len(public) != PUBLIC_BYTES:
        raise KeyRefused("A round key has 1,216 bytes.")
    try:
        key = MLKEM768X25519PublicKey(
            MLKEM768PublicKey.from_public_bytes(public[:_KEM_PUBLIC]),
            X25519PublicKey.from_public_bytes(public[_KEM_PUBLIC:]),
        )
        return _SUITE.encrypt(plaintext, key, info=info)
    except (ValueError, TypeError) as error:
        raise KeyRefused("A round key cannot be sealed to.") from error


def unseal(key: RoundKey, info: bytes, sealed: bytes) -> bytes:
    """The plaintext.

    Raises:
        ShareWillNotOpen: another key, another `info`, or any changed, missing or added byte.
    """
    try:
        return _SUITE.decrypt(sealed, key.hybrid(), info=info)
    except (InvalidTag, ValueError, TypeError):
        raise ShareWillNotOpen from None
