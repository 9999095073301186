# SPDX-License-Identifier: Apache-2.0
"""The JSON values of a telemetry file: one a line, or spread over lines, one after the other.

Rules kept here:
* a value ends where its braces close outside strings; no text is decoded to find that out;
* a line that starts a new value while an old one is open means that the old one was cut: it is counted, and the rest is
  read;
* memory is bounded by one value; a value above the limit is skipped and counted;
* the last value, if it is not complete, is left for the next run, unless the file is finished.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO, Final

import msgspec

from windvane_client.readers import lines as line_module
from windvane_client.readers.lines import Lines

_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_BRACES: Final = re.compile(rb"[][{}]")
_ANY: Final = msgspec.json.Decoder(msgspec.Raw)
_OPENS: Final = (b"{", b"[")


class Values:
    """Iterating gives (value or None, start, end); None stands for one that is not held, `problem` is its reason.

    `offset` is the end of the last consumed value.
    """

    def __init__(self, stream: BinaryIO, *, final: bool = False) -> None:
        self._lines = Lines(stream, final=final)
        self._final = final
        self.problem = ""
        self.offset = 0

    def __iter__(self) -> Iterator[tuple[bytes | None, int, int]]:
        held: list[bytes] = []
        depth = size = 0
        start = 0
        before = 0
        for line, end in self._lines:
            place, before = before, end
            if held and (line is None or line[:1] == b"{"):
                # Nested lines of a value that spans lines are indented: this one starts anew.
                yield from self._given("not_json", start, place)
                held, depth, size = [], 0, 0
            if line is None:
                yield from self._given(self._lines.problem, place, end)
                continue
            if not held:
                start = place
                if line.lstrip(b" \t")[:1] not in _OPENS or _complete(line) or (depth := _depth(line)) <= 0:
                    self.offset = end
                    self.problem = "truncated" if self._lines.cut else "not_json"
                    yield line, start, end
                    continue
                held, size = [line], len(line)
                continue
            held.append(line)
            size += len(line)
            depth += _depth(line)
            if size > line_module.MAX_LINE_BYTES:
                yield from self._given("too_long", start, end)
                held, depth, size = [], 0, 0
            elif depth <= 0:
                self.offset = end
                self.problem = "not_json"
                yield b"".join(held), start, end
                held, depth, size = [], 0, 0
        if held and self._final:
            yield from self._given("truncated", start, before)
        elif not held and (self._final or not self._lines.cut):
            self.offset = max(self.offset, self._lines.offset)

    def _given(self, problem: str, start: int, end: int) -> Iterator[tuple[None, int, int]]:
        self.problem = problem
        self.offset = end
        yield None, start, end


def _complete(line: bytes) -> bool:
    """Whether a line is one whole value; it is checked without making an object of it."""
    try:
        _ANY.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _depth(line: bytes) -> int:
    """How many more braces and brackets a line opens than it closes, outside strings.

    A string never spans lines in JSON; a quote without its partner makes the line no JSON: 0.
    """
    if _BRACES.search(line) is None:
        return 0
    bare = _STRING.sub(b"", line)
    if b'"' in bare:
        return 0
    return bare.count(b"{") + bare.count(b"[") - bare.count(b"}") - bare.count(b"]")
