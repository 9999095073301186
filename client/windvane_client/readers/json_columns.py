# SPDX-License-Identifier: Apache-2.0
"""The named members of JSON objects, also nested ones, as text; nothing else of a row is decoded.

Rules kept here:
* a name is a member of the outer object, or a way through objects and lists: `providerResponses.0.status`; a member
  whose own name holds the dots comes first; in a list 0 is the first element, -1 the last;
* what a name leads to is a text, a number or a truth value; an object or a list there rejects the row, a way that ends
  early is a missing value;
* the decoder is typed by the names alone: a member that no name leads to stays bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from windvane_client.readers.lines import LineDecoder, Rejected
from windvane_privacy.errors import ConfigurationError

MAX_STEPS: Final = 8
"""Of one way: deeper exports are flattened first."""
_INDEX: Final = re.compile(r"-?[0-9]{1,3}")
_UNNAMEABLE: Final = re.compile(r"[\x00-\x1f\"\\\ud800-\udfff]")
"""What a name of the typed decoder cannot hold."""
_ONE: Final = str | int | float | bool | None
_Tree = dict[str, "_Tree"]


def steps_of(name: str) -> tuple[str, ...]:
    """The steps of a way; empty where the name is no way but only a name."""
    steps = tuple(name.split("."))
    return steps if 1 < len(steps) <= MAX_STEPS and all(steps) and not _INDEX.fullmatch(steps[0]) else ()


class JsonColumns:
    """Calling gives the wanted names of a row that are there and not empty.

    Raises:
        ConfigurationError: a name holds a quote, a backslash or a control character.
    """

    def __init__(self, names: frozenset[str], *, max_field: int) -> None:
        if any(_UNNAMEABLE.search(name) for name in names):
            raise ConfigurationError("mapping.toml: a column of JSON has a quote, a backslash or a control character.")
        self._ways = {name: steps_of(name) for name in sorted(names)}
        self._max_field = max_field
        tree: _Tree = {}
        for name, steps in self._ways.items():
            tree.setdefault(name, {})
            place = tree
            for step in steps:
                place = place.setdefault(step, {})
        self._root, self._places = _struct(tree)
        self._decoder = LineDecoder(self._root)

    def __call__(self, line: bytes) -> dict[str, str]:
        """The columns of a row.

        Raises:
            Rejected: no JSON object, a value of another kind, or one longer than a field may be.
        """
        row = self._decoder.decode(line)
        found: dict[str, str] = {}
        for name, steps in self._ways.items():
            value = self._at(row, (name,))
            if value is None and steps:
                value = self._at(row, steps)
            if value is None or value == "":
                continue
            text = str(value).lower() if isinstance(value, bool) else str(value)
            if len(text) > self._max_field:
                raise Rejected("too_long")
            found[name] = text
        return found

    def _at(self, value: Any, steps: Iterable[str]) -> Any:
        for step in steps:
            if isinstance(value, list):
                at = int(step)
                value = value[at] if -len(value) <= at < len(value) else None
            elif isinstance(value, msgspec.Struct):
                value = getattr(value, self._places[type(value)][step])
            else:
                return None
        return None if isinstance(value, list | msgspec.Struct) else value


_Places = dict[type, dict[str, str]]


def _struct(tree: _Tree) -> tuple[type[msgspec.Struct], _Places]:
    """A struct that names the members of a tree and nothing else, and where each of them is in every struct below."""
    names = {name: f"c{number}" for number, name in enumerate(sorted(tree))}
    places: _Places = {}
    fields: Sequence[tuple[str, Any, None]] = [(names[name], _kind(tree[name], places), None) for name in names]
    made = msgspec.defstruct("Export", fields, rename={place: name for name, place in names.items()})
    places[made] = names
    return made, places


def _kind(tree: _Tree, places: _Places) -> Any:
    """The type of a member: one value, an object if names lead on into it, a list if they go on by number."""
    inside = {step: below for step, below in tree.items() if not _INDEX.fullmatch(step)}
    elements: _Tree = {}
    for step, below in tree.items():
        if step not in inside:
            _merge(elements, below)
    kind: Any = _ONE
    if inside:
        made, more = _struct(inside)
        places.update(more)
        kind = kind | made
    if len(inside) < len(tree):
        kind = kind | list[_kind(elements, places)]  # type: ignore[misc]  # a type that is made at run time
    return kind


def _merge(into: _Tree, more: _Tree) -> None:
    for step, below in more.items():
        _merge(into.setdefault(step, {}), below)
