# SPDX-License-Identifier: Apache-2.0
"""Canonical JSON and its strict reader.

Rules kept here:
* what is signed or hashed is RFC 8785 canonical JSON, made in this one place;
* what is read is refused when it is not exactly canonical: duplicate keys, spaces, other number forms, depth above 8,
  NaN and Infinity, and bytes that are not UTF-8 all raise `MalformedInput`, and nothing else escapes;
* floats never occur in anything signed (rho, delta and scales are integers or strings).
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, NoReturn

import rfc8785

from windvane_privacy.errors import MalformedInput

MAX_DEPTH = 8

JsonValue = Any


def encode(value: JsonValue) -> bytes:
    """RFC 8785 bytes of a value made of dict, list, tuple, str, int, bool and None.

    Raises:
        MalformedInput: a float, an integer of 2^53 or more, or another type is inside.
    """
    _check(value, 0)
    try:
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError, RecursionError) as error:
        raise MalformedInput("a value has no canonical form") from error


def decode(raw: bytes, *, max_bytes: int = 1 << 20) -> JsonValue:
    """The value of canonical bytes; anything that `encode` would not have written is refused.

    Raises:
        MalformedInput: not UTF-8, not JSON, a duplicate key, too deep, too long, or not canonical.
    """
    if len(raw) > max_bytes:
        raise MalformedInput("longer than allowed here")
    try:
        value = json.loads(raw.decode("utf-8"), object_pairs_hook=_unique, parse_float=_refuse, parse_constant=_refuse)
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise MalformedInput("not strict JSON") from error
    if encode(value) != raw:
        raise MalformedInput("not in canonical form")
    return value


def sha256_hex(raw: bytes) -> str:
    """Lower-case hex SHA-256."""
    return hashlib.sha256(raw).hexdigest()


def _unique(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise MalformedInput("a key occurs twice")
    return found


def _refuse(_token: str) -> NoReturn:
    raise MalformedInput("a number is not a whole number")


def _check(value: JsonValue, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise MalformedInput("nested too deeply")
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise MalformedInput("a key is not text")
            _check(inner, depth + 1)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            _check(inner, depth + 1)
    elif not (value is None or isinstance(value, (str, bool, int))):
        raise MalformedInput("a value is neither text, whole number, truth value, list nor object")
