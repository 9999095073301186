# SPDX-License-Identifier: Apache-2.0
"""Arithmetic in the field of p = 2^64 - 2^32 + 1 elements, on numpy arrays.

Rules kept here:
* an array of elements is `uint64` with at least one dimension and every entry below p; every public function checks
  that first (numpy scalars warn where arrays wrap, and `int64` with `uint64` silently becomes `float64`);
* a sum of many elements goes through 32-bit halves, never through `np.sum` of elements, which wraps modulo 2^64;
* uniform elements come from rejection sampling, never from a remainder;
* the stream behind them is AES-256-CTR under a fresh 32-byte secret that is used once.

Source of the field: Field64 of draft-irtf-cfrg-vdaf, section 6.1.2.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from windvane_privacy.errors import BoundBroken, FieldElementOutOfRange
from windvane_privacy.manifest import FIELD_PRIME

Elements: TypeAlias = NDArray[np.uint64]

P: Final = FIELD_PRIME
LARGEST: Final = (P - 1) // 2
"""Largest absolute value that has an encoding: 9,223,372,034,707,292,160."""
SEED_BYTES: Final = 32

_P = np.uint64(P)
_EPSILON = np.uint64(2**32 - 1)
"""2^64 mod p. The same number is the mask of the low 32 bits."""
_32 = np.uint64(32)
_SPARE_WORDS: Final = 8


def checked(values: NDArray[np.generic]) -> Elements:
    """The same array, known to hold field elements.

    Raises:
        BoundBroken: not `uint64`, or no dimension (a fault of the program).
        FieldElementOutOfRange: an entry of p or more.
    """
    if values.dtype != np.uint64 or values.ndim == 0:
        raise BoundBroken("A vector of field elements has another type.")
    found: Elements = values.astype(np.uint64, copy=False)
    if bool((found >= _P).any()):
        raise FieldElementOutOfRange
    return found


def add(a: Elements, b: Elements) -> Elements:
    """a + b, entry by entry.

    Raises:
        BoundBroken, FieldElementOutOfRange: see `checked`.
    """
    total_ = checked(a) + checked(b)
    wrapped = np.where(total_ < a, total_ + _EPSILON, total_)
    return _reduce(wrapped)


def sub(a: Elements, b: Elements) -> Elements:
    """a - b, entry by entry.

    Raises:
        BoundBroken, FieldElementOutOfRange: see `checked`.
    """
    difference = checked(a) - checked(b)
    return np.where(a < b, difference + _P, difference)


def mul(a: Elements, b: Elements) -> Elements:
    """a b, entry by entry; either may have one entry, which then multiplies the whole other array.

    Raises:
        BoundBroken, FieldElementOutOfRange: see `checked`.
    """
    a_low, a_high = checked(a) & _EPSILON, a >> _32
    b_low, b_high = checked(b) & _EPSILON, b >> _32
    low_low, low_high, high_low, high_high = a_low * b_low, a_low * b_high, a_high * b_low, a_high * b_high
    middle = (low_low >> _32) + (low_high & _EPSILON) + (high_low & _EPSILON)
    low = (low_low & _EPSILON) | (middle << _32)
    high = high_high + (low_high >> _32) + (high_low >> _32) + (middle >> _32)
    # 2^64 = 2^32 - 1 and 2^96 = -1 modulo p.
    top = high >> _32
    rest = low - top
    rest = np.where(low < top, rest - _EPSILON, rest)
    shifted = (high & _EPSILON) * _EPSILON
    product = rest + shifted
    product = np.where(product < rest, product + _EPSILON, product)
    return _reduce(product)


def total(values: Elements | Sequence[Elements], axis: int = 0) -> Elements:
    """Sum along an axis of fewer than 2^32 terms; a sequence of equal vectors is summed entry by entry.

    Raises:
        BoundBroken: nothing to sum, vectors of unequal length, a sum without a remaining dimension, see `checked`.
        FieldElementOutOfRange: see `checked`.
    """
    if not isinstance(values, np.ndarray):
        if not values or len({v.shape for v in values}) != 1 or any(v.dtype != np.uint64 for v in values):
            raise BoundBroken("Vectors of field elements do not fit each other.")
        values = np.stack(values)
    if values.ndim < 2 or values.shape[axis] == 0:
        raise BoundBroken("A sum of field elements has no terms or no dimension left.")
    terms = checked(values)
    low = (terms & _EPSILON).sum(axis=axis, dtype=np.uint64)
    high = (terms >> _32).sum(axis=axis, dtype=np.uint64)
    weight = np.array([2**32], dtype=np.uint64)
    return add(_reduce(low), mul(_reduce(high), weight))


def encode_signed(values: NDArray[np.int64] | Sequence[int]) -> Elements:
    """v where v >= 0, else v + p; for whole numbers of absolute value at most `LARGEST`.

    Raises:
        BoundBroken: a number beyond that, no whole number, or an array that is not one-dimensional `int64`.
    """
    if isinstance(values, np.ndarray):
        if values.dtype != np.int64 or values.ndim != 1:
            raise BoundBroken("Signed numbers to be encoded have another type.")
        numbers: list[int] = values.tolist()
    else:
        numbers = list(values)
    if any(type(v) is not int or not -LARGEST <= v <= LARGEST for v in numbers):
        raise BoundBroken("A number has no encoding in the field.")
    return np.array([v if v >= 0 else v + P for v in numbers], dtype=np.uint64)


def decode_signed(elements: Elements) -> list[int]:
    """The signed numbers of a one-dimensional array: x - p where x > (p - 1) / 2, else x.

    Raises:
        BoundBroken, FieldElementOutOfRange: see `checked`.
    """
    return [x - P if x > LARGEST else x for x in checked(elements).ravel().tolist()]


def inverse(value: int) -> int:
    """1 / value modulo p, for constants. `value` is not 0 modulo p.

    Raises:
        BoundBroken: it is.
    """
    if value % P == 0:
        raise BoundBroken("Zero has no inverse.")
    return pow(value, P - 2, P)


def constant(value: int) -> Elements:
    """An integer modulo p as an array of one element, to multiply a vector with."""
    return np.array([value % P], dtype=np.uint64)


def expand_secret(seed: bytes, n: int) -> Elements:
    """n uniform elements from AES-256-CTR under a 32-byte secret, zero first block, words little-endian.

    The caller draws the seed with `secrets` and uses it for one call only.

    Raises:
        BoundBroken: the seed has another length.
    """
    if len(seed) != SEED_BYTES:
        raise BoundBroken("A seed has another length.")
    stream = Cipher(algorithms.AES256(seed), modes.CTR(bytes(16))).encryptor()
    return elements_from(lambda size: stream.update(bytes(size)), n)


def random_elements(n: int) -> Elements:
    """n uniform elements under a fresh seed from the system's generator."""
    return expand_secret(secrets.token_bytes(SEED_BYTES), n)


def elements_from(stream: Callable[[int], bytes], n: int) -> Elements:
    """The first n words of a byte stream that are field elements. `stream(size)` gives the next `size` bytes."""
    found = np.empty(0, dtype=np.uint64)
    while len(found) < n:
        # A word is refused with probability 2^-32: the spare words all but end the loop in one turn.
        words = np.frombuffer(stream(8 * (n - len(found) + _SPARE_WORDS)), dtype="<u8").astype(np.uint64)
        found = np.concatenate([found, accept_below(words, P)])
    return found[:n]


def accept_below(words: Elements, modulus: int) -> Elements:
    """The words below `modulus`, in order: uniform if the words are uniform over any range that holds it."""
    return words[words < np.uint64(modulus)]


def _reduce(values: Elements) -> Elements:
    return np.where(values >= _P, values - _P, values)
