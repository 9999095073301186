# SPDX-License-Identifier: Apache-2.0
"""One case of hostile or damaged bytes for one parser: drawn by its number, parsed, and judged.

Rules kept here:
* a case is its parser and its number: the same number is the same change, wherever and whenever it runs; only shares,
  seals and ML-DSA signatures inside a sound input are fresh in every process;
* a parser raises nothing but the errors that it is documented to raise, and no warning;
* what it accepts is written again to the very same bytes: nothing has two spellings;
* half of the cases get their hash or signature after the change, so that what lies behind that check is tried too.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any

from mutations import SPICE, VALUES, mutated_file
from windvane_privacy.errors import WindvaneError

_APART = 64
"""Between the seeds of two cases of a parser; it stays, and is more than there are parsers."""
NUMBERS = (
    0, 1, -1, 2, 255, 256, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53 - 1, 2**53, -(2**53) + 1, 2**63 - 1, 2**63, 2**64,
    10**30, 10**400, 1.0, 1.5, -0.0, 1e300, math.nan, math.inf, True, False, None,
)  # fmt: skip
TEXTS = (
    "", " ", "0", "a", "A", "é", "\ud800", "\0", "\n", "\u2028", "\u202e", "\U0001f600", "\u0663", "x" * 300, "0" * 64,
    "F" * 64, "f" * 63, "0" * 128, "0" * 2432, "2026-07-01", "2026-7-1", "2026-02-30", "9999-12-31", "20260701",
    "2026-07-01T00:00:00Z", "2026-7-1T0:0:0Z", "2999-12-31T23:59:59Z", "2026-07-01T00:00:60Z", "\u0662026-07-01",
    "2026-Q3", "2026-Q9", "../../etc/passwd", "a/b", "1e-8", "1e-99", "1/0", "0/1", "9/512", "(", "[[a", "a(?i)b",
    "(" * 200, "a{99999999999}", "\\", "<b>", "%s", "null", "1", "true", "self", "__class__", "26.0", "1e400", "0.0",
    "a|b", "e\u0301", "9" * 5000, "9" * 5000 + ".0", "\u0663.\u0663", "1e-1\u0663",
)  # fmt: skip
CHARACTERS = "0123456789abcdefgA-/.: +=\n\0\u0663é\ud800"
LENGTHS = tuple(
    value.to_bytes(size, "big") for size in (1, 2, 4, 8) for value in (0, 1, 2 ** (8 * size - 1), 2 ** (8 * size) - 1)
)
_BACKSLASH = (b"\\u0061", b"\\/", b"\\n", b"-0", b"1e5", b"1.0", b"01", b" ", b"\t", b"NaN", b"9" * 4400)


@dataclass(frozen=True)
class Parser:
    """A parser of bytes from outside.

    `contents`: sound inputs, before their hash or signature where they have one. `parse` reads an input and uses what
    it got; it may raise `refuses` and nothing else. `again` writes what was parsed; it is given the input as well.
    `dress` gives a content its hash or signature; None where there is neither. `tree`: contents are JSON.
    """

    name: str
    contents: tuple[bytes, ...]
    parse: Callable[[bytes], Any]
    refuses: tuple[type[WindvaneError], ...]
    again: Callable[[Any, bytes], bytes]
    dress: Callable[[bytes], bytes] | None = None
    tree: bool = True

    @cached_property
    def trees(self) -> tuple[Any, ...]:
        return tuple(json.loads(content) for content in self.contents) if self.tree else ()

    def dressed(self, content: bytes) -> bytes:
        return content if self.dress is None else self.dress(content)

    def mutated(self, rng: Random) -> bytes:
        """A changed input."""
        content = self.contents[int(rng.random() * len(self.contents))]
        change = _changed_bytes
        if self.tree and rng.random() < 0.7:
            content = canonical_text(self._grown(rng))
            if rng.random() < 0.85:
                return self.dressed(content)
        if self.dress is not None and rng.random() < 0.5:
            return self.dress(change(rng, content))
        return change(rng, self.dressed(content))

    def problem(self, index: int, number: int) -> tuple[str | None, bool]:
        """What is wrong with case `number`, None where nothing is; and whether the parser accepted it."""
        raw = self.mutated(Random(number * _APART + index))
        try:
            found = self.parse(raw)
        except self.refuses:
            return None, False
        except Exception as error:
            return f"{type(error).__name__} for {raw[:200]!r}", False
        try:
            same = self.again(found, raw) == raw
        except Exception as error:
            return f"accepted, then {type(error).__name__}: {raw[:200]!r}", True
        return (None if same else f"accepted, but written otherwise: {raw[:200]!r}"), True

    def _grown(self, rng: Random) -> Any:
        trees = self.trees
        tree = trees[int(rng.random() * len(trees))]
        for _ in range(1 if rng.random() < 0.8 else 2):
            other = trees[int(rng.random() * len(trees))]
            tree = changed_tree(rng, tree, other)
        return tree


def canonical_text(value: Any) -> bytes:
    """RFC 8785 for the values that have it; for the others what a careless writer makes of them."""
    try:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    except (ValueError, RecursionError):  # a number of more digits than Python writes
        return b"9" * 4400
    return text.encode("utf-8", "surrogatepass")


# --- trees -----------------------------------------------------------------------------------------------------------


def changed_tree(rng: Random, tree: Any, other: Any) -> Any:
    """A copy with one place changed; `other` gives foreign pieces."""
    if not isinstance(tree, dict | list) or not tree or rng.random() < 0.12:
        return _changed_here(rng, tree, other)
    found: Any = tree.copy()
    if isinstance(found, dict):
        names = list(found)
        name: Any = names[int(rng.random() * len(names))]
    else:
        name = int(rng.random() * len(found))
    found[name] = changed_tree(rng, found[name], other)
    return found


def _changed_here(rng: Random, node: Any, other: Any) -> Any:
    what = rng.random()
    if isinstance(node, dict) and what < 0.7:
        return _changed_table(rng, node, other)
    if isinstance(node, list) and what < 0.7:
        return _changed_list(rng, node, other)
    if isinstance(node, str) and what < 0.7:
        return changed_text(rng, node)
    if type(node) is int and what < 0.6:
        step = (1, -1, node, -2 * node, 2**32, -(2**32), 7)[int(rng.random() * 7)]
        return node + step
    if what < 0.95:
        pool: tuple[Any, ...] = TEXTS if rng.random() < 0.55 else NUMBERS
        return pool[int(rng.random() * len(pool))]
    if what < 0.999:
        return ([], {}, [node], {"a": node}, [[]], [None], _piece(rng, other))[int(rng.random() * 7)]
    for _ in range((9, 40, 300)[int(rng.random() * 3)]):
        node = [node]
    return node


def _changed_table(rng: Random, node: dict[str, Any], other: Any) -> Any:
    found, what = dict(node), rng.random()
    names = list(found)
    name = names[int(rng.random() * len(names))] if names else ""
    if what < 0.35:
        found.pop(name, None)
    elif what < 0.6:
        found[TEXTS[int(rng.random() * len(TEXTS))]] = found.get(name)
    elif what < 0.75 and names:
        found[TEXTS[int(rng.random() * len(TEXTS))]] = found.pop(name)
    elif names:
        second = names[int(rng.random() * len(names))]
        found[name], found[second] = found[second], found[name] if rng.random() < 0.5 else _piece(rng, other)
    return found


def _changed_list(rng: Random, node: list[Any], other: Any) -> Any:
    found, what = list(node), rng.random()
    at = int(rng.random() * len(found)) if found else 0
    if what < 0.3:
        del found[at : at + 1]
    elif what < 0.55:
        found[at:at] = found[at : at + 1]
    elif what < 0.7:
        found.reverse()
    elif what < 0.8:
        return found * 40
    elif what < 0.9:
        return []
    else:
        found.insert(at, _piece(rng, other))
    return found


def _piece(rng: Random, tree: Any) -> Any:
    while isinstance(tree, dict | list) and tree and rng.random() < 0.8:
        inner = list(tree.values()) if isinstance(tree, dict) else tree
        tree = inner[int(rng.random() * len(inner))]
    return tree


def changed_text(rng: Random, text: str) -> str:
    """A text with a character changed, lost or added, in other capitals, or cut."""
    at, what = int(rng.random() * (len(text) + 1)), rng.random()
    one = CHARACTERS[int(rng.random() * len(CHARACTERS))]
    if what < 0.45:
        return text[:at] + one + text[at + 1 :]
    if what < 0.6:
        return text[:at] + text[at + 1 :]
    if what < 0.8:
        return text[:at] + one + text[at:]
    return (text[:at], text.upper(), text + "\n", " " + text, text * 2, text[at:])[int(rng.random() * 6)]


# --- bytes -----------------------------------------------------------------------------------------------------------


def _changed_bytes(rng: Random, raw: bytes) -> bytes:
    what, at = rng.random(), int(rng.random() * (len(raw) + 1))
    if what < 0.4:
        return mutated_file(rng, raw)
    if what < 0.55:  # one bit
        return (
            raw[:at] + bytes([raw[at] ^ 1 << int(rng.random() * 8)]) + raw[at + 1 :] if at < len(raw) else raw + b"\0"
        )
    if what < 0.7:  # a length or a number
        value = LENGTHS[int(rng.random() * len(LENGTHS))]
        at = at if rng.random() < 0.5 else int(rng.random() * 64)
        return raw[:at] + value + raw[at + len(value) :]
    pool = (VALUES, SPICE, _BACKSLASH)[int(rng.random() * 3)]
    piece = pool[int(rng.random() * len(pool))]
    if what < 0.85:
        return raw[:at] + piece + raw[at + (len(piece) if rng.random() < 0.5 else 0) :]
    if what < 0.95:  # the same key once more
        end = raw.find(b",", at)
        start = raw.rfind(b",", 0, max(end, 0))
        return raw[:end] + raw[start:end] + raw[end:] if 0 <= start < end else raw + piece
    return (b"", piece, raw + raw, raw[::-1], raw + b"\n")[int(rng.random() * 5)]
