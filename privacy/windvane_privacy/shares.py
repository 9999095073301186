# SPDX-License-Identifier: Apache-2.0
"""Shamir's secret sharing of a vector among n guardians, any t of whom give it back.

Rules kept here:
* share j is f(j), f(x) = v + c_1 x + ... + c_(t-1) x^(t-1), entry by entry; every c_k comes from its own fresh seed;
* any t - 1 shares are uniform and independent of v; sums of shares are shares of the sum;
* index L of every share is the blind element, one uniform element shared like the rest;
* a wrong share among more than t is seen (`spare_agrees`), not located.

Source: Shamir, "How to share a secret" (1979).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from windvane_privacy import field
from windvane_privacy.errors import BoundBroken, MalformedInput, NotReady
from windvane_privacy.field import Elements, P

MAX_GUARDIANS = 255


def split(values: Sequence[int], t: int, n: int) -> list[Elements]:
    """n shares of `values` and a blind element; share j is at index j - 1 and has `len(values) + 1` elements.

    Raises:
        BoundBroken: not 2 <= t <= n <= 255, or a value without an encoding (see `field.encode_signed`).
    """
    if not 2 <= t <= n <= MAX_GUARDIANS:
        raise BoundBroken("A vector is shared with at least two guardians needed, of at most 255.")
    secret = np.concatenate([field.encode_signed(list(values)), field.random_elements(1)])
    coefficients = [secret, *(field.random_elements(len(secret)) for _ in range(t - 1))]
    return [_at(coefficients, j) for j in range(1, n + 1)]


def combine(shares: Mapping[int, Elements], t: int) -> Elements:
    """f(0) from the t lowest share indices (from 1): the vector as field elements, then its blind element.

    Raises:
        NotReady: fewer than t shares.
        MalformedInput: an index outside 1..255, or shares of unequal length.
        BoundBroken, FieldElementOutOfRange: see `field.checked`.
    """
    return _interpolate(_lowest(shares, t), 0)


def spare_agrees(shares: Mapping[int, Elements], t: int) -> bool:
    """True when every share beyond the t lowest lies on their polynomial; with t shares there is nothing to compare.

    Raises:
        NotReady, MalformedInput, BoundBroken, FieldElementOutOfRange: as `combine`.
    """
    base = _lowest(shares, t)
    spare = [j for j in shares if j not in base]
    return all(np.array_equal(_interpolate(base, j), field.checked(shares[j])) for j in spare)


def _at(coefficients: Sequence[Elements], x: int) -> Elements:
    point = field.constant(x)
    value = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        value = field.add(field.mul(value, point), coefficient)
    return value


def _lowest(shares: Mapping[int, Elements], t: int) -> dict[int, Elements]:
    if t < 1 or len(shares) < t:
        raise NotReady("Fewer shares are here than are needed.")
    if any(not 1 <= j <= MAX_GUARDIANS for j in shares) or len({s.shape for s in shares.values()}) != 1:
        raise MalformedInput("shares do not fit each other")
    return {j: shares[j] for j in sorted(shares)[:t]}


def _interpolate(base: Mapping[int, Elements], x: int) -> Elements:
    terms = [field.mul(share, field.constant(_lagrange(j, base, x))) for j, share in base.items()]
    return field.total(terms)


def _lagrange(j: int, indices: Mapping[int, Elements], x: int) -> int:
    """Weight of share j at x, modulo p."""
    above, below = 1, 1
    for k in indices:
        if k != j:
            above = above * (x - k) % P
            below = below * (j - k) % P
    return above * field.inverse(below) % P
