# SPDX-License-Identifier: Apache-2.0
"""The field agrees with Python's whole numbers, leaves `uint64` nowhere, and its random elements are uniform.

Rules kept here:
* every operation is compared with `% p` on Python integers, on edge values in all pairs and on random ones;
* the uniformity test is shown to bite: a remainder instead of a rejection fails it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st

from windvane_privacy import field
from windvane_privacy.errors import BoundBroken, FieldElementOutOfRange
from windvane_privacy.field import LARGEST, Elements, P

EDGES = (
    0, 1, 2, 2**32 - 2, 2**32 - 1, 2**32, 2**32 + 1, 2**63 - 1, 2**63, 2**63 + 1, LARGEST, LARGEST + 1,
    P - 2**32, P - 2**32 + 1, P - 2, P - 1,
)  # fmt: skip
elements = st.integers(0, P - 1) | st.sampled_from(EDGES)


def arr(*values: int) -> Elements:
    return np.array(values, dtype=np.uint64)


OPERATIONS: dict[str, tuple[Callable[[Elements, Elements], Elements], Callable[[int, int], int]]] = {
    "add": (field.add, lambda a, b: (a + b) % P),
    "sub": (field.sub, lambda a, b: (a - b) % P),
    "mul": (field.mul, lambda a, b: a * b % P),
}


def test_p_is_the_vdaf_field64_prime() -> None:
    assert P == 18446744069414584321
    assert LARGEST == 9223372034707292160
    assert pow(7, 2**32 - 1, P) != 1
    assert pow(pow(7, 2**32 - 1, P), 2**32, P) == 1


@pytest.mark.parametrize("name", OPERATIONS)
def test_edge_values_in_all_pairs_agree_with_python(name: str) -> None:
    ours, theirs = OPERATIONS[name]
    pairs = list(product(EDGES, EDGES))
    result = ours(arr(*(a for a, _ in pairs)), arr(*(b for _, b in pairs)))
    assert result.dtype == np.uint64
    assert result.tolist() == [theirs(a, b) for a, b in pairs]


@pytest.mark.parametrize("name", OPERATIONS)
def test_many_random_operations_agree_with_python(name: str) -> None:
    ours, theirs = OPERATIONS[name]
    a, b = field.random_elements(60_000), field.random_elements(60_000)
    assert ours(a, b).tolist() == [theirs(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_million_random_operations_agree_with_python(name: str) -> None:
    ours, theirs = OPERATIONS[name]
    a, b = field.random_elements(10**6), field.random_elements(10**6)
    assert ours(a, b).tolist() == [theirs(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]


@given(elements, elements, elements)
def test_ring_laws_hold(x: int, y: int, z: int) -> None:
    a, b, c = arr(x), arr(y), arr(z)
    add, sub, mul = field.add, field.sub, field.mul
    assert add(a, b) == add(b, a)
    assert mul(a, b) == mul(b, a)
    assert add(add(a, b), c) == add(a, add(b, c))
    assert mul(mul(a, b), c) == mul(a, mul(b, c))
    assert mul(a, add(b, c)) == add(mul(a, b), mul(a, c))
    assert sub(add(a, b), b) == a
    assert add(a, arr(0)) == a
    assert mul(a, arr(1)) == a


@given(st.integers(1, P - 1) | st.sampled_from(EDGES[1:]))
def test_inverse_times_the_number_is_one(x: int) -> None:
    assert x * field.inverse(x) % P == 1


def test_zero_has_no_inverse() -> None:
    with pytest.raises(BoundBroken):
        field.inverse(P)


@given(st.lists(st.integers(-LARGEST, LARGEST) | st.sampled_from([-LARGEST, LARGEST, 0, -1, 1]), max_size=8))
def test_signed_numbers_survive_encoding(values: list[int]) -> None:
    assert field.decode_signed(field.encode_signed(values)) == values
    assert field.decode_signed(field.encode_signed(np.array(values, dtype=np.int64))) == values


@pytest.mark.parametrize("value", [LARGEST + 1, -LARGEST - 1])
def test_numbers_beyond_half_the_field_have_no_encoding(value: int) -> None:
    with pytest.raises(BoundBroken):
        field.encode_signed([value])
    with pytest.raises(BoundBroken):
        field.encode_signed(np.array([value], dtype=np.int64))


@pytest.mark.parametrize("values", [[1.0], [True], ["1"], np.array([1.0]), np.array([1], dtype=np.int32)])
def test_only_whole_numbers_are_encoded(values: object) -> None:
    with pytest.raises(BoundBroken):
        field.encode_signed(values)  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", [np.int64, np.float64, np.uint32])
def test_another_dtype_is_refused_by_every_operation(dtype: type) -> None:
    wrong, right = np.array([1, 2], dtype=dtype), arr(1, 2)
    for operation, _ in OPERATIONS.values():
        for a, b in ((wrong, right), (right, wrong)):
            with pytest.raises(BoundBroken):
                operation(a, b)
    with pytest.raises(BoundBroken):
        field.decode_signed(wrong)
    for terms in (np.array([[1], [2]], dtype=dtype), [wrong, wrong], [right, wrong]):
        with pytest.raises(BoundBroken):
            field.total(terms)


def test_scalars_are_refused_because_they_warn_where_arrays_wrap() -> None:
    with pytest.raises(BoundBroken):
        field.add(np.uint64(1), arr(1))  # type: ignore[arg-type]
    with pytest.raises(BoundBroken):
        field.mul(np.array(1, dtype=np.uint64), arr(1))
    with pytest.raises(BoundBroken):
        field.total(arr(1, 2))


def test_an_entry_of_p_or_more_is_refused_everywhere() -> None:
    for big in (P, P + 1, 2**64 - 1):
        wrong = arr(0, big)
        for operation, _ in OPERATIONS.values():
            for a, b in ((wrong, arr(1, 1)), (arr(1, 1), wrong)):
                with pytest.raises(FieldElementOutOfRange):
                    operation(a, b)
        with pytest.raises(FieldElementOutOfRange):
            field.decode_signed(wrong)
        with pytest.raises(FieldElementOutOfRange):
            field.total([wrong, arr(1, 1)])


@pytest.mark.parametrize("axis", [0, 1])
def test_long_sums_do_not_wrap(axis: int) -> None:
    terms = np.concatenate([np.full((2_000, 3), P - 1, dtype=np.uint64), field.random_elements(600).reshape(200, 3)])
    terms = terms if axis == 0 else np.ascontiguousarray(terms.T)
    rows = terms.tolist() if axis == 0 else terms.T.tolist()
    assert field.total(terms, axis=axis).tolist() == [sum(column) % P for column in zip(*rows, strict=True)]
    # The shortcut that must not be taken gives something else on the same terms.
    assert terms.sum(axis=axis).tolist() != field.total(terms, axis=axis).tolist()


def test_vectors_of_unequal_length_and_no_vectors_have_no_sum() -> None:
    for terms in ([], [arr(1), arr(1, 2)], np.empty((0, 3), dtype=np.uint64)):
        with pytest.raises(BoundBroken):
            field.total(terms)


def test_expansion_is_the_aes_256_ctr_stream_little_endian() -> None:
    seed = bytes(range(32))
    stream = Cipher(algorithms.AES256(seed), modes.CTR(bytes(16))).encryptor().update(bytes(8 * 50))
    words = [int.from_bytes(stream[i : i + 8], "little") for i in range(0, len(stream), 8)]
    assert all(word < P for word in words)
    assert field.expand_secret(seed, 50).tolist() == words


def test_expansion_under_the_zero_key_starts_with_the_known_block() -> None:
    # AES-256 of the zero block under the zero key.
    block = bytes.fromhex("dc95c078a2408989ad48a21492842087")
    assert field.expand_secret(bytes(32), 2).astype("<u8").tobytes() == block


@pytest.mark.parametrize("length", [0, 16, 31, 33])
def test_a_seed_of_another_length_is_refused(length: int) -> None:
    with pytest.raises(BoundBroken):
        field.expand_secret(bytes(length), 1)


def test_words_of_p_or_more_are_skipped_not_reduced() -> None:
    words = [5, P, 7, 2**64 - 1, P - 1, P + 5, 9]
    rest = iter([b"".join(w.to_bytes(8, "little") for w in words), (11).to_bytes(8, "little") * 40])
    # Seven words are asked for at first and three of them refused: the loop must go on.
    assert field.elements_from(lambda _size: next(rest), 5).tolist() == [5, 7, P - 1, 9, 11]


def test_two_draws_share_nothing() -> None:
    a, b = field.random_elements(100), field.random_elements(100)
    assert not set(a.tolist()) & set(b.tolist())


def _chi_square(values: Elements, bins: int) -> float:
    counts = np.bincount(values.astype(np.int64), minlength=bins)
    expected = len(values) / bins
    return float(((counts - expected) ** 2 / expected).sum())


def test_rejection_is_uniform_and_a_remainder_would_fail() -> None:
    prime = 193  # as a stand-in for p over words of eight bits, where the bias of a remainder is visible
    words = field.random_elements(200_000) & np.uint64(255)
    # 192 degrees of freedom, standard deviation 19.6: 330 is seven of them away.
    assert _chi_square(field.accept_below(words, prime), prime) < 330
    assert _chi_square(words % np.uint64(prime), prime) > 10_000


def test_every_top_nibble_of_random_elements_is_equally_frequent() -> None:
    # 15 degrees of freedom: 70 is passed once in 10^8 runs.
    assert _chi_square(field.random_elements(100_000) >> np.uint64(60), 16) < 70
