# SPDX-License-Identifier: Apache-2.0
"""Damage to logs: what disks, programs and hands do to rows and files, drawn from a seeded generator.

A mutated row stays one row: it holds no line end, and in a table its quotes have partners. A mutated element of an
array stays one element. What is done to a whole file may join, cut or reorder anything.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from random import Random
from typing import Any

_HOLE = "@@HOLE@@"
_HOLE_BYTES = b'"@@HOLE@@"'
VALUES = (
    b"null", b"true", b"false", b"0", b"-1", b"-0.0", b"1e5", b"1e400", b"-1e999", b"1.5", b'""', b'" "', b"[]", b"{}",
    b"[[]]", b"[null]", b'[""]', b"[{}]", b'{"": ""}', b'"0"', b'"-1"', b'"1e309"', b'"nan"', b'"inf"', b'"true"',
    b"9223372036854775807", b"9223372036854775808", b"18446744073709551616", b"-9223372036854775809", b"9" * 40,
    b"9" * 400, b'"' + b"9" * 30 + b'"', b"0." + b"9" * 400, b"1" + b"0" * 25,
    b'"2026-03-01"', b'"0001-01-01T00:00:00"', b'"9999-12-31T23:59:59.999999"', b'"0001-01-01T00:00:00+14:00"',
    b'"9999-12-31T23:59:59-14:00"', b'"2026-03-29T02:30:00"', b'"2026-10-25T02:30:00"', b'"2026-02-30T00:00:00Z"',
    b'"2026-W10-1"', b'"20260301"', b'"2026-03-01T24:00:00Z"', b"1772359200", b"1772359200000", b"1772359200000000",
    b"1772359200000000000", b"1577836799", b"99999999999999999999", b'"\\u0660\\u0661"', b'"\xc2\xb2"', b'"\xd9\xa1"',
    b'"\\ud800"', b'"\\udfff\\ud800"', b'"\\ud83d\\ude00"', b'"\\u0000"', b'"\\\\ud800"', b'"\xff\xfe"',
    b'"\xed\xa0\x80"',
    b'"a\\/b"', b'"\\u003csynthetic>"', b'"<synthetic>"', b'"' + b"x" * 257 + b'"', b'"' + b"\xc3\xa9" * 200 + b'"',
    b'"\\ud800' + b"x" * 300 + b'"', b'"{\\"a\\": 1}"', b'"[1]"', b'"{"', b'"%s"', b'"__class__"', b'"CANARY-4711"',
    b'{"CANARY-4711": "CANARY-4711"}', b'["CANARY-4711"]', b"NaN", b"Infinity", b"-Infinity", b"undefined", b"'x'",
    b"01",
    b"+1", b"1.", b".5", b"0x1", b'"\x00"', b'"\t"', b'"\x1f"', b"", b"{", b"]", b'"', b"\\", b"// x", b"nul", b"tru",
    b"[" * 50 + b"]" * 50,
    b'1, "type": "user"', b'{}, "zzz": 1', b'null, "": 2', b'"a", "a": "b", "a": "c"',
)  # fmt: skip
"""In place of a value. Most are JSON; the rest is what programs that are no JSON writers put there."""
SOUND = tuple(
    value
    for value in VALUES
    if value.count(b"[") == value.count(b"]")
    and value.count(b"{") == value.count(b"}")
    and value.count(b'"') % 2 == 0
    and value not in (b"\\", b"// x", b"")
)
"""Those that leave brackets and quotes with their partners."""
LONG = (b"9" * 5000, b'"' + b"9" * 5000 + b'"', b"[" * 2000 + b"]" * 2000, b'{"a":' * 1500 + b"1" + b"}" * 1500,
        b"[" * 900 + b"]" * 900)  # fmt: skip
"""Seldom used, since reading them takes long."""
WORDS = ("zzz", "type", "", "ts", "id", "model", "person", "role", "k", "\ud800", "a" * 300, "CANARY-4711", "0")
SPICE = (b"\0", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\x1a", b"\xc3", b"\\", b'"', b"{", b"}", b"[", b"]", b",",
         b":",
         b"\r", b"9", b"\x0b", b"\x85", b"\xe2\x80\xa8", b"null", b"\\ud800", b"\\u", b"  ", b"-", b"e")  # fmt: skip
HARMLESS = (
    b"\0",
    b"\xff",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    b"\x1a",
    b"\xc3",
    b"9",
    b"\x85",
    b"\xe2\x80\xa8",
    b"x",
    b"-",
    b" ",
)
"""Bytes that open, close and quote nothing."""


@dataclass(frozen=True, slots=True)
class Sown:
    """A good row: its bytes, and the tree and its places where it is a JSON object."""

    raw: bytes
    tree: Any = None
    places: tuple[tuple[str | int, ...], ...] = ()


def sown(row: bytes, most: int = 60) -> Sown:
    try:
        tree = json.loads(row)
    except ValueError:
        return Sown(row)
    if not isinstance(tree, dict):
        return Sown(row)
    found: list[tuple[str | int, ...]] = []
    queue: list[tuple[tuple[str | int, ...], Any]] = [((), tree)]
    for place, node in queue:
        inner = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        queue += [((*place, name), one) for name, one in inner]
        if place:
            found.append(place)
    return Sown(row, tree, tuple(found[:most]))


def mutated_row(rng: Random, good: Sown, others: list[Sown], *, sound: bool) -> bytes:
    """A damaged copy of a row. `sound`: brackets and quotes keep their partners, so that it stays one element."""
    if good.tree is None or (not sound and rng.random() < 0.25):
        raw = _bytes_of_row(rng, good.raw, sound=sound)
    else:
        raw = _tree(rng, good, others, sound=sound)
        if rng.random() < 0.1:
            raw = _bytes_of_row(rng, raw, sound=sound)
    return raw.replace(b"\n", b" ")


def _tree(rng: Random, good: Sown, others: list[Sown], *, sound: bool) -> bytes:
    tree, fragments = good.tree, []
    for _ in range(1 if rng.random() < 0.7 else 1 + int(rng.random() * 3)):
        place = good.places[int(rng.random() * len(good.places))]
        what = rng.random()
        if what < 0.5:
            pool = LONG if what < 0.003 else SOUND if sound else VALUES
            fragments.append(pool[int(rng.random() * len(pool))])
            tree = _put(tree, place, _HOLE)
        elif what < 0.65:
            tree = _put(tree, place, None, gone=True)
        elif what < 0.75:
            tree = _renamed(tree, place, WORDS[int(rng.random() * len(WORDS))], keep=False)
        elif what < 0.85:
            tree = _renamed(tree, place, WORDS[int(rng.random() * len(WORDS))], keep=True)
        else:
            other = others[int(rng.random() * len(others))]
            if other.places:
                tree = _put(tree, place, _at(other.tree, other.places[int(rng.random() * len(other.places))]))
    raw = json.dumps(tree).encode()
    for fragment in fragments:
        raw = raw.replace(_HOLE_BYTES, fragment, 1)
    return raw


def _at(tree: Any, place: tuple[str | int, ...]) -> Any:
    for step in place:
        tree = tree[step]
    return tree


def _holder(tree: Any, place: tuple[str | int, ...]) -> tuple[Any, Any] | None:
    """A copy of the tree along a place, and the copied holder of its last step; None where it is no longer there."""
    root = node = tree.copy()
    for step in place[:-1]:
        inner = node[step] if _there(node, step) else None
        if not isinstance(inner, dict | list):
            return None
        node[step] = inner = inner.copy()
        node = inner
    return (root, node) if _there(node, place[-1]) else None


def _there(node: Any, step: str | int) -> bool:
    if isinstance(node, dict):
        return step in node
    return isinstance(step, int) and step < len(node)


def _put(tree: Any, place: tuple[str | int, ...], value: Any, *, gone: bool = False) -> Any:
    found = _holder(tree, place)
    if found is None:
        return tree
    root, node = found
    if gone:
        del node[place[-1]]
    else:
        node[place[-1]] = value
    return root


def _renamed(tree: Any, place: tuple[str | int, ...], name: str, *, keep: bool) -> Any:
    found = _holder(tree, place)
    if found is None:
        return tree
    root, node = found
    if isinstance(node, list):
        node.append(node[place[-1]])  # type: ignore[index]
    else:
        node[name] = node[place[-1]] if keep else node.pop(place[-1])
    return root


def _bytes_of_row(rng: Random, raw: bytes, *, sound: bool) -> bytes:
    if sound:
        at = [n for n, byte in enumerate(raw) if byte not in b'"\\{}[],:\r\n ']
        place = at[int(rng.random() * len(at))] if at else 0
        return raw[:place] + HARMLESS[int(rng.random() * len(HARMLESS))] + raw[place + 1 :]
    return _some_bytes(rng, raw)


def _some_bytes(rng: Random, raw: bytes) -> bytes:
    size, what = len(raw), rng.random()
    at = int(rng.random() * (size + 1))
    if what < 0.3:  # a byte flips
        return raw[:at] + bytes([int(rng.random() * 256)]) + raw[at + 1 :]
    if what < 0.45:  # the end is cut
        return raw[:at]
    if what < 0.55:  # the start is cut
        return raw[at:]
    if what < 0.65:  # a piece is missing
        return raw[:at] + raw[at + 1 + int(rng.random() * 40) :]
    if what < 0.72:  # a piece is there twice
        piece = raw[at : at + 1 + int(rng.random() * 200)]
        return raw[:at] + piece + raw[at:]
    if what < 0.76:  # a hole of zeros, as after a crash
        hole = 1 + int(rng.random() * 64)
        return raw[:at] + b"\0" * hole + raw[at + hole :]
    spice = SPICE[int(rng.random() * len(SPICE))]
    return raw[:at] + spice * (1 if what < 0.97 else 50) + raw[at:]


def paired(row: bytes) -> bytes:
    """A row of a table whose quotes have partners: without, the format itself makes it swallow the next row."""
    return row + b'"' if row.count(b'"') % 2 else row


def mutated_file(rng: Random, data: bytes) -> bytes:
    """A damaged copy of a whole file."""
    what = rng.random()
    if what < 0.5:
        for _ in range(1 + int(rng.random() * 4)):
            data = _some_bytes(rng, data)
        return data
    rows = data.split(b"\n")
    if what < 0.6:
        rng.shuffle(rows)
    elif what < 0.65:
        rows = rows[int(rng.random() * len(rows)) :]
    elif what < 0.7:
        rows = [row for row in rows if rng.random() < 0.7]
    elif what < 0.75:
        rows = [row for row in rows for _ in range(1 + (rng.random() < 0.3))]
    elif what < 0.8:
        at = int(rng.random() * len(rows))
        rows[at : at + 2] = [b"".join(rows[at : at + 2])]
    else:
        end = (b"\r\n", b"\r", b"\n\n", b"\n \t\r\n", b"\x00\n", b"\xe2\x80\xa8", b"")[int(rng.random() * 7)]
        data = end.join(rows)
        return (b"\xef\xbb\xbf", b"\xff\xfe", b"\n", b"")[int(rng.random() * 4)] + data
    return b"\n".join(rows)


def mutated_gzip(rng: Random, data: bytes) -> bytes:
    """A damaged compressed copy."""
    packed = gzip.compress(data, compresslevel=1, mtime=0)
    return _some_bytes(rng, packed) if rng.random() < 0.9 else packed + _some_bytes(rng, packed)
