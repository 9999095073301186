# SPDX-License-Identifier: Apache-2.0
"""JSON documents of a log: lines, one pretty-printed value, values one after the other, or the elements of one array.

Rules kept here:
* a value is found by brackets outside strings, on bytes: nothing is decoded that the reader does not name;
* memory is bounded by one value; one above the limit is skipped without being held, and counted;
* a value that is cut at the end of the file waits for the next run, unless the file is finished.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from typing import BinaryIO, Final

from windvane_client.readers.lines import MAX_LINE_BYTES, UNREADABLE

_CHUNK: Final = 1 << 20
_HEAD: Final = 1 << 16
_BOM: Final = b"\xef\xbb\xbf"
_BETWEEN: Final = b" \t\r\n," + _BOM
_OUTSIDE: Final = re.compile(rb'["{}\[\]]')
_ESCAPE: Final = re.compile(
    rb"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(.))"
)
_OBJECT: Final = re.compile(rb'\{[ \t]*"[^"]')
"""How an object begins, outside a quoted column of a table: there its quotes are doubled."""
_LINES_LOOKED_AT: Final = 8
_PLAIN: Final = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"b": b"\b", b"f": b"\f"}

LINES, VALUES, TABLE, DAMAGED = "lines", "values", "table", "damaged"


def framing(stream: BinaryIO) -> str:
    """How a file is framed, by its first lines; the stream is left at its start. `table`: neither { nor [ begins it;
    `damaged`: not even its first line can be read.

    First lines that are damaged, as where a program cut its log, do not hide that objects follow, one a line.
    """
    stream.seek(0)
    seen: list[bytes] = []
    try:
        for _ in range(_LINES_LOOKED_AT):
            seen.append(_written(stream))
    except (EOFError, OSError, zlib.error):
        if not seen:
            return DAMAGED  # read once more, such a stream only says that it is at its end
    finally:
        stream.seek(0)
    first, *others = (*seen, *[b""] * (_LINES_LOOKED_AT - len(seen)))
    object_follows = _OBJECT.match(others[0]) is not None
    if first[:1] == b"[":
        # An array with an element a line ends its lines with a comma.
        return LINES if object_follows and first != b"[" and first[-1:] != b"," else VALUES
    if first == b"{":
        return LINES if object_follows else VALUES
    return LINES if first[:1] in (b"{", b"") or any(map(_OBJECT.match, others)) else TABLE


def _written(stream: BinaryIO) -> bytes:
    """The next line that is not blank, or its beginning; empty at the end."""
    line = stream.readline(_HEAD)
    while line and line.removeprefix(_BOM).isspace():
        line = stream.readline(_HEAD)
    head = line
    while len(line) == _HEAD and line[-1] != 10:
        line = stream.readline(_HEAD)
    return head.removeprefix(_BOM).strip() + (b"" if line is head else line.strip()[-1:])


class Values:
    """The values of a document. Iterating gives (value or None, end of the value in bytes).

    None stands for a value that was too long or cut and is not held; `problem` then holds its reason. `offset` is the
    end of the last consumed value. Elements of an outermost array are values of their own.
    """

    def __init__(self, stream: BinaryIO, *, final: bool = False, max_bytes: int = MAX_LINE_BYTES) -> None:
        self._stream = stream
        self._final = final
        self._limit = max_bytes
        self.offset = 0
        self.problem = ""
        self.cut = False

    def __iter__(self) -> Iterator[tuple[bytes | None, int]]:
        held = bytearray()  # of the value that is being read; empty between values
        depth, base, in_string, length, at, first = 0, 0, False, 0, 0, True
        carried = b""
        loose = False  # something stands between two values, in a part that was read before
        while True:
            try:
                chunk = self._stream.read(_CHUNK)
            except (EOFError, OSError, zlib.error):
                self.problem = UNREADABLE
                yield None, self.offset
                return
            if not chunk:
                break
            data = carried + chunk
            carried = b""
            pos = start = 0  # `start`: where the part of the current value in `data` begins
            while pos < len(data):
                if in_string:
                    end = data.find(b'"', pos)
                    slashes = _slashes(data, pos, len(data) if end < 0 else end)
                    if end < 0:
                        if slashes:  # what they escape is in the next chunk
                            carried, data = data[-slashes:], data[:-slashes]
                        break
                    in_string, pos = slashes % 2 == 1, end + 1
                    continue
                token = _OUTSIDE.search(data, pos)
                if token is None:
                    break
                byte, pos = data[token.start()], token.end()
                if byte == 34:
                    in_string = True
                elif byte in (123, 91):  # { [
                    if first and byte == 91:
                        base = depth = 1
                        first = False
                        start = pos
                        continue
                    first = False
                    if depth == base:
                        if loose or data[start : token.start()].strip(_BETWEEN):
                            self.problem = "not_json"
                            yield None, at + token.start()
                        loose = False
                        start, length = token.start(), 0
                        held.clear()
                    depth += 1
                else:
                    depth = max(depth - 1, 0)
                    if depth == base:
                        length += pos - start
                        whole = None if length > self._limit else bytes(held) + data[start:pos]
                        held.clear()
                        if whole is None:
                            self.problem = "too_long"
                        start = pos
                        self.offset = at + pos
                        yield whole, self.offset
                    elif depth < base:
                        if loose or data[start : token.start()].strip(_BETWEEN):
                            self.problem = "not_json"
                            yield None, at + token.start()
                        base, first, start, loose = 0, True, pos, False
            if depth > base:
                length += len(data) - start
                if length <= self._limit:
                    held += data[start:]
            else:
                loose = loose or bool(data[start:].strip(_BETWEEN))
            at += len(data)
        if (depth > base or in_string or loose) and self._final:
            self.problem, self.cut = "truncated", True
            yield None, at + len(carried)
        if depth <= base:
            self.offset = at + len(carried)


def _slashes(data: bytes, start: int, end: int) -> int:
    """Backslashes directly before `end`, not looking beyond `start`."""
    at = end
    while at > start and data[at - 1] == 92:
        at -= 1
    return end - at


def embedded(raw: bytes) -> bytes:
    """The JSON inside a JSON string, as bytes; what is no string comes back as it is."""
    text = raw.strip()
    if text[:1] != b'"':
        return text
    return _ESCAPE.sub(_unescaped, text[1:-1])


def _unescaped(found: re.Match[bytes]) -> bytes:
    high, low, single, plain = found.groups()
    if plain is not None:
        return _PLAIN.get(plain, plain)
    if single is not None:
        code = int(single, 16)
        return "\ufffd".encode() if 0xD800 <= code <= 0xDFFF else chr(code).encode()
    return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00).encode()
