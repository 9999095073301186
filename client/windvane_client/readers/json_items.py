# SPDX-License-Identifier: Apache-2.0
"""The objects of a JSON array, one after the other, with where each one ends.

Rules kept here:
* one broken object does not cost the others: objects are told apart by their brackets outside strings, and each is
  decoded by itself;
* of a file that is cut, the objects before the cut are whole;
* strings are stepped over, never decoded.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from typing import BinaryIO, Final

from windvane_client.readers.lines import UNREADABLE

MAX_DOCUMENT_BYTES: Final = 256 << 20
_CHUNK: Final = 1 << 20
_SPACE: Final = b" \t\r\n,"
_TOKEN: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)
_BETWEEN: Final = re.compile(rb"[ \t\r\n,]*\Z")
_AFTER_NAME: Final = re.compile(rb"[ \t\r\n]*:[ \t\r\n]*\[")


def document(stream: BinaryIO) -> tuple[bytes, str]:
    """(all bytes of a document without a byte order mark, why they are not all, or empty).

    A document that is longer than one may be is not held at all; of one whose compression is damaged, what was read
    before the damage.
    """
    parts: list[bytes] = []
    length, problem = 0, ""
    try:
        while part := stream.readline(_CHUNK):
            length += len(part)
            if length > MAX_DOCUMENT_BYTES:
                return b"", "too_long"
            parts.append(part)
    except (EOFError, OSError, zlib.error):
        problem = UNREADABLE
    return b"".join(parts).removeprefix(b"\xef\xbb\xbf"), problem


class Items:
    """Iterating gives (bytes of an element, end): bytes that are no object stand for what lies between two objects.

    `name`: the member of the outer object whose array is meant; None where the document is the array itself.
    `complete` says afterwards whether the array was closed; `offset` is the end of the last whole element.
    """

    def __init__(self, data: bytes, name: bytes | None = None) -> None:
        self._data = data
        self._name = None if name is None else b'"' + name + b'"'
        self.complete = False
        self.offset = 0
        self._start = self._array()

    @property
    def found(self) -> bool:
        """Whether the document has the array."""
        return self._start is not None

    def __iter__(self) -> Iterator[tuple[bytes, int]]:
        start = self._start
        if start is None:
            return
        data, depth, begun, last = self._data, 0, start, start
        for token in _TOKEN.finditer(data, start):
            sign = data[token.start()]
            if sign == 34:  # a string
                if depth == 0:
                    yield data[last : token.end()].strip(_SPACE), token.end()
                    last = self.offset = token.end()
            elif sign in b"[{":
                if depth == 0:
                    begun = token.start()
                    if not _BETWEEN.match(data, last, begun):
                        yield data[last:begun].strip(_SPACE), begun
                depth += 1
            else:
                depth -= 1
                if depth == 0:
                    last = self.offset = token.end()
                    yield data[begun:last], last
                elif depth < 0:
                    if not _BETWEEN.match(data, last, token.start()):
                        yield data[last : token.start()].strip(_SPACE), token.start()
                    self.complete = sign == 93
                    return

    def _array(self) -> int | None:
        """Where the array's first element may begin."""
        if self._name is None:
            at = len(self._data) - len(self._data.lstrip())
            return at + 1 if self._data[at : at + 1] == b"[" else None
        depth = 0
        for token in _TOKEN.finditer(self._data):
            sign = self._data[token.start()]
            if sign == 34:
                if depth == 1 and token.group() == self._name:
                    found = _AFTER_NAME.match(self._data, token.end())
                    if found is not None:
                        return found.end()
            else:
                depth += 1 if sign in b"[{" else -1
        return None
