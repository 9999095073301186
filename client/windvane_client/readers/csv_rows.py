# SPDX-License-Identifier: Apache-2.0
"""Rows of a CSV export (RFC 4180), with only the named columns ever cut out of the bytes.

Rules kept here:
* a column that is not named stays inside the row's bytes: no text of it becomes an object;
* a row is complete when its quotes are; memory is bounded by one row, and one above the limit is counted;
* a row with another number of columns than the header is rejected; the last row without newline waits, unless the file
  is finished.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from typing import BinaryIO, Final

from windvane_client.readers.lines import MAX_LINE_BYTES, UNREADABLE, Rejected

_CHUNK: Final = 1 << 20
_BOM: Final = b"\xef\xbb\xbf"
_FIELD: Final = re.compile(rb'"((?:[^"]|"")*+)"|([^",\r\n]*+)', re.DOTALL)
_TEXT: Final = "utf-8"


class Table:
    """A CSV file. Iterating gives (row or None, end of the row in bytes); None: `problem` holds the reason.

    `header` holds all column names after the first row; `columns` cuts the wanted ones out of a row.
    """

    def __init__(
        self,
        stream: BinaryIO,
        wanted: frozenset[str],
        *,
        final: bool = False,
        max_bytes: int = MAX_LINE_BYTES,
        max_field: int = MAX_LINE_BYTES,
    ) -> None:
        self._stream = stream
        self._wanted = wanted
        self._final = final
        self._limit = max_bytes
        self._field_limit = max_field
        self._places: dict[int, str] = {}
        self._width = 0
        self.offset = 0
        self.problem = ""
        self.cut = False

    @property
    def names(self) -> frozenset[str]:
        """The wanted columns that the header names."""
        return frozenset(self._places.values())

    @property
    def places(self) -> dict[int, str]:
        """Position of every wanted column that the header names."""
        return dict(self._places)

    @property
    def width(self) -> int:
        """How many columns the header has."""
        return self._width

    @property
    def doubled(self) -> bool:
        """Whether the header names a wanted column twice."""
        return len(self.names) != len(self._places)

    def __iter__(self) -> Iterator[tuple[bytes | None, int]]:
        self._stream.seek(0)
        try:
            for number, (row, end) in enumerate(self._rows()):
                self.offset = end
                if number == 0:
                    self._head((row or b"").removeprefix(_BOM))
                else:
                    yield row, end
        except (EOFError, OSError, zlib.error):
            self.problem = UNREADABLE
            yield None, self.offset

    def columns(self, row: bytes) -> dict[str, str]:
        """Wanted columns of a row that are not empty.

        Raises:
            Rejected: not as many columns as the header, a wanted column twice in it, a column (read or not) longer
                than `max_field`, broken quotes, or no UTF-8.
        """
        spans = _spans(row)
        if len(spans) != self._width or self.doubled:
            raise Rejected("wrong_type")
        if len(row) > self._field_limit and any(end - start > self._field_limit for start, end, _ in spans):
            raise Rejected("too_long")
        found: dict[str, str] = {}
        for place, name in self._places.items():
            start, end, quoted = spans[place]
            if end > start:
                try:
                    text = row[start:end].decode(_TEXT)
                except UnicodeDecodeError:
                    raise Rejected("not_json") from None
                found[name] = text.replace('""', '"') if quoted else text
        return found

    def _head(self, row: bytes) -> None:
        try:
            spans = _spans(row)
        except Rejected:
            spans = []
        self._width = len(spans)
        for place, (start, end, _) in enumerate(spans):
            name = row[start:end].decode(_TEXT, "replace")
            if name in self._wanted:
                self._places[place] = name

    def _rows(self) -> Iterator[tuple[bytes | None, int]]:
        parts: list[bytes] = []
        length = quotes = 0
        end = 0
        while piece := self._stream.readline(_CHUNK):
            end += len(piece)
            length += len(piece)
            quotes += piece.count(b'"')
            if length <= self._limit:
                parts.append(piece)
            if piece[-1] != 10 or quotes % 2:
                continue
            row = b"".join(parts) if length <= self._limit else None
            if row is None:
                self.problem = "too_long"
            parts, length, quotes = [], 0, 0
            if row is None or not row.isspace():
                yield row, end
        if length and self._final:
            self.cut = True
            whole = quotes % 2 == 0 and length <= self._limit
            self.problem = "" if whole else "truncated"
            yield b"".join(parts) if whole else None, end


def _spans(row: bytes) -> list[tuple[int, int, bool]]:
    """(start, end, quoted) of every column, without the quotes."""
    spans: list[tuple[int, int, bool]] = []
    pos = 0
    while True:
        found = _FIELD.match(row, pos)
        if found is None:
            raise Rejected("not_json")
        quoted = found.group(1) is not None if row[pos : pos + 1] == b'"' else False
        spans.append((*found.span(1 if quoted else 2), quoted))
        pos = found.end()
        if row[pos : pos + 1] == b",":
            pos += 1
        elif row[pos:].strip(b"\r\n") == b"":
            return spans
        else:
            raise Rejected("not_json")
