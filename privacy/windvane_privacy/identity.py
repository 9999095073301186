# SPDX-License-Identifier: Apache-2.0
"""Identity keys: Ed25519 (RFC 8032) signatures under a label, key ids, and which public keys are refused.

Rules kept here:
* what is signed is `label || message`; a label ends in its only zero byte, so no signature serves two purposes;
* a key id covers the type of the key: `SHA-256("windvane/1/key\\0" || type byte || raw public key)`, lower-case hex;
* a public key of low order or in a non-canonical encoding is never enrolled and verifies nothing: such a key has
  signatures that fit many messages;
* a private key is never printed; people compare fingerprints.

Sources: RFC 8032 sections 5.1.2, 5.1.3 (encoding, decompression), 5.1.7; Chalkias, Garillot, Nikolaenko, "Taming the
many EdDSAs" (2020), table 1 (points of low order); Wilkerson, "A proposal for proquints" (2009) for the fingerprint.
"""

from __future__ import annotations

import hashlib
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from windvane_privacy.errors import KeyRefused, SignatureInvalid

KEY_ED25519: Final = 1
KEY_KEM: Final = 2
PUBLIC_BYTES = 32
SIGNATURE_BYTES = 64

_Q: Final = 2**255 - 19
_D: Final = -121665 * pow(121666, -1, _Q) % _Q
_Y8: Final = 0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826
"""y of a point of order eight; the other one is its negative."""
_LOW_ORDER_Y: Final = frozenset({0, 1, _Q - 1, _Y8, _Q - _Y8})
"""y of every point whose order divides eight: orders 4, 1, 2 and twice 8."""


def key_id(kind: int, public: bytes) -> str:
    """Hex SHA-256 that names a public key. `kind`: KEY_ED25519 or KEY_KEM."""
    return hashlib.sha256(b"windvane/1/key\0" + bytes([kind]) + public).hexdigest()


class SigningKey:
    """An Ed25519 private key of a member, a guardian or the coordinator."""

    __slots__ = ("_private", "key_id", "public")

    public: bytes
    key_id: str

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        self.public = private.public_key().public_bytes_raw()
        self.key_id = key_id(KEY_ED25519, self.public)

    @classmethod
    def generate(cls) -> SigningKey:
        """A fresh key from the system's generator."""
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def from_raw(cls, raw: bytes) -> SigningKey:
        """The key of 32 private bytes.

        Raises:
            KeyRefused: another length.
        """
        if len(raw) != PUBLIC_BYTES:
            raise KeyRefused("A private signing key has 32 bytes.")
        return cls(Ed25519PrivateKey.from_private_bytes(raw))

    @property
    def raw(self) -> bytes:
        """The 32 private bytes, for the key file and nothing else."""
        return self._private.private_bytes_raw()

    def sign(self, label: bytes, message: bytes) -> bytes:
        """64 bytes over `label || message`.

        Raises:
            SignatureInvalid: the label does not end in its only zero byte.
        """
        return self._private.sign(_labelled(label, message))

    def __repr__(self) -> str:
        return f"SigningKey({self.key_id[:16]})"


def verify(public: bytes, signature: bytes, label: bytes, message: bytes) -> None:
    """Return if `signature` is the key's over `label || message`.

    Raises:
        SignatureInvalid: it is not, or the key is one that `check_public` refuses.
    """
    signed = _labelled(label, message)
    if len(public) != PUBLIC_BYTES or _weak(public) or len(signature) != SIGNATURE_BYTES:
        raise SignatureInvalid
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, signed)
    except (InvalidSignature, ValueError):
        raise SignatureInvalid from None


def check_public(public: bytes) -> None:
    """Return if the key may be enrolled: 32 bytes, canonical, a point of the curve, not of low order.

    Raises:
        KeyRefused: with the rule that is broken.
    """
    if len(public) != PUBLIC_BYTES:
        raise KeyRefused("An identity key has 32 bytes.")
    if _weak(public):
        raise KeyRefused("The key is of low order or not canonical.")
    y = _y(public)
    # RFC 8032 5.1.3: x^2 = (y^2 - 1) / (d y^2 + 1) must be a square; a product is one exactly if the quotient is.
    if pow((y * y - 1) * (_D * y * y + 1) % _Q, (_Q - 1) // 2, _Q) != 1:
        raise KeyRefused("The key is no point of the curve.")


def fingerprint_words(public: bytes) -> str:
    """Eight pronounceable words over 128 bits of the key id, to be compared by voice."""
    digest = bytes.fromhex(key_id(KEY_ED25519, public))[:16]
    return " ".join(_word(int.from_bytes(digest[i : i + 2], "big")) for i in range(0, 16, 2))


def _word(value: int) -> str:
    consonants, vowels = "bdfghjklmnprstvz", "aiou"
    return (
        consonants[value >> 12]
        + vowels[value >> 10 & 3]
        + consonants[value >> 6 & 15]
        + vowels[value >> 4 & 3]
        + consonants[value & 15]
    )


def _y(public: bytes) -> int:
    return int.from_bytes(public, "little") & (2**255 - 1)


def _weak(public: bytes) -> bool:
    y = _y(public)
    return y >= _Q or y in _LOW_ORDER_Y


def _labelled(label: bytes, message: bytes) -> bytes:
    if not label or label.find(0) != len(label) - 1:
        raise SignatureInvalid("A label must end in its only zero byte.")
    return label + message
