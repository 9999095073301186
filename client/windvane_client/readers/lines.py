# SPDX-License-Identifier: Apache-2.0
"""Lines of a log: splitting a stream, decoding a line by type, and saying why one was rejected.

Rules kept here:
* memory is bounded by one line; a line above the limit is skipped without being held, and counted;
* the last line without newline is left for the next run, unless the file is finished;
* a line is decoded into a struct that names only the fields that are read; there is no second, laxer parser;
* a rejection is a reason of the closed list REASONS: the decoder's own message quotes the log and is dropped.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import BinaryIO, Final, Generic, TypeVar

import msgspec

from windvane_client.events import Rows
from windvane_privacy.errors import MalformedInput

MAX_LINE_BYTES: Final = 64 << 20
_CHUNK: Final = 1 << 20
_BOM: Final = b"\xef\xbb\xbf"
_BLANK: Final = b" \t\r\n"

UNREADABLE: Final = "unreadable"

REASONS: Final[dict[str, str]] = {
    "not_json": "not JSON, two values on one line, NaN, or a name that is not UTF-8",
    "not_an_object": "JSON, but not an object",
    "wrong_type": "a field has another type than this format gives it",
    "missing_field": "a field that this format requires is missing",
    "unknown_field": "a field that this format does not have",
    "bad_value": "a value outside its closed list or range",
    "bad_time": "a time that cannot be read, before 2020, or more than a day ahead",
    "nul_byte": "a NUL byte",
    "too_deep": "nested too deeply",
    "too_long": "longer than one line may be",
    "old_key": "made under a collector key that is not in force",
    "truncated": "the last line of the file is cut",
    UNREADABLE: "the file's compression is damaged from here on",
}
"""Why a row was rejected: code to explanation."""

EARLIEST: Final = 1_577_836_800_000_000
"""2020-01-01T00:00:00Z in µs."""
DAY: Final = 86_400_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

# The odd number of backslashes decides: an escaped backslash before "ud800" is plain text.
_SURROGATE: Final = re.compile(rb"(?<!\\)((?:\\\\)*)\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_REPLACEMENT: Final = rb"\1\\ufffd"

_ANY: Final = msgspec.json.Decoder(msgspec.Raw)
T = TypeVar("T")


class Rejected(MalformedInput):
    """A row of a log is not in the form its source writes."""

    advice = "Nothing to do: the row is counted and the rest of the file is read."

    def __init__(self, reason: str) -> None:
        self.reason = reason if reason in REASONS else "not_json"
        super().__init__(REASONS[self.reason])


NOT_READ: Final = (Rejected, msgspec.DecodeError, RecursionError)
"""All that a row of a log may raise while it is read; anything else is a fault of the reader."""


def reason_of(error: BaseException) -> str:
    """The reason for which a row that raised one of NOT_READ is rejected. The error's own text is never looked at."""
    if isinstance(error, Rejected):
        return error.reason
    return "too_deep" if isinstance(error, RecursionError) else "wrong_type"


def reject(rows: Rows, reason: str) -> None:
    """Count one rejected row."""
    rows.rejected += 1
    rows.reasons[reason] = rows.reasons.get(reason, 0) + 1


class Lines:
    """The lines of a stream from byte `start` on, with where each one ends.

    Iterating gives (line or None, end): None stands for a line that was too long or cut and is not held; `problem` then
    holds its reason. Blank lines are not rows and are left out. `offset` is the end of the last consumed line.
    """

    def __init__(
        self, stream: BinaryIO, *, start: int = 0, final: bool = False, max_line_bytes: int = MAX_LINE_BYTES
    ) -> None:
        self._stream = stream
        self._final = final
        self._limit = max_line_bytes
        self.offset = start
        self.problem = ""
        self.cut = False
        """True for a last line without newline in a finished file: if it does not parse, it is `truncated`."""

    def __iter__(self) -> Iterator[tuple[bytes | None, int]]:
        stream, readline = self._stream, self._stream.readline
        try:
            if self.offset or (stream.seekable() and stream.tell()):
                stream.seek(self.offset)
            first = self.offset == 0
            while line := readline(_CHUNK):
                end = self.offset + len(line)
                held: bytes | None = line
                if line[-1] != 10:
                    held, end = self._rest(line)
                    if self.cut and not self._final:
                        return
                if first:
                    first = False
                    if held is not None and held.startswith(_BOM):
                        held = held[len(_BOM) :]
                self.offset = end
                if held is None or (held and not held.isspace()):
                    yield held, end
        except (EOFError, OSError, zlib.error):
            self.problem = UNREADABLE
            yield None, self.offset

    def _rest(self, start: bytes) -> tuple[bytes | None, int]:
        """A line longer than one chunk, or the last one without newline."""
        parts: list[bytes] | None = [start]
        length = len(start)
        piece = start
        while piece[-1] != 10:
            piece = self._stream.readline(_CHUNK)
            if not piece:
                self.cut = True
                break
            length += len(piece)
            if parts is not None:
                if length > self._limit:
                    parts = None
                else:
                    parts.append(piece)
        end = self.offset + length
        if parts is None or length > self._limit:
            self.problem = "too_long"
            return None, end
        return b"".join(parts), end


class LineDecoder(Generic[T]):
    """Typed decoding of one line."""

    def __init__(self, kind: type[T]) -> None:
        self._decode = msgspec.json.Decoder(type=kind).decode

    def decode(self, line: bytes) -> T:
        """The struct of a line.

        Raises:
            Rejected: with the reason; nothing of the line is in the error, nor in what led to it.
        """
        try:
            return self._decode(line)
        except msgspec.ValidationError as error:
            reason = _why(line, error)
        except RecursionError:
            reason = "too_deep"
        except msgspec.DecodeError:
            return self._again(line)
        raise Rejected(reason)

    def _again(self, line: bytes) -> T:
        if b"\\u" in line:
            mended, count = _SURROGATE.subn(_REPLACEMENT, line)
            if count:
                reason = "not_json"
                try:
                    return self._decode(mended)
                except msgspec.ValidationError as error:
                    reason = _why(mended, error)
                except RecursionError:
                    reason = "too_deep"
                except msgspec.DecodeError:
                    pass
                raise Rejected(reason)
        raise Rejected("nul_byte" if b"\0" in line else "not_json")


def mended(line: bytes) -> bytes:
    """The line itself, unless only halves of surrogate pairs keep it from being JSON: then without them."""
    if b"\\u" in line:
        try:
            _ANY.decode(line)
        except msgspec.DecodeError:
            return _SURROGATE.sub(_REPLACEMENT, line)
    return line


def without_id(place: int | str, raw: bytes | msgspec.Raw) -> str:
    """Natural id of a row that has none: its place in the file and its bytes, wherever the file lies."""
    return f"{place}:{hashlib.sha256(raw).hexdigest()}"


def _why(line: bytes, error: msgspec.ValidationError) -> str:
    """Reason code; the decoder's message is only compared with its own fixed beginnings, and dropped."""
    if line.lstrip(_BLANK)[:1] != b"{":
        return "not_an_object"
    message = str(error)
    if message.startswith("Object missing required field"):
        return "missing_field"
    return "unknown_field" if message.startswith("Object contains unknown field") else "wrong_type"


_SECONDS: Final = {f"{n:02d}": n * 1_000_000 for n in range(60)}
_MINUTE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:")
_MILLIS: Final = {f".{n:03d}Z": n * 1000 for n in range(1000)}


def rfc3339_micros(text: str) -> int | None:
    """µs UTC of an RFC 3339 time with zone; None where it is not one. A time without zone is UTC."""
    # Rows of one log follow each other, so most share a minute with the row before: `2026-01-31T12:34:` is parsed once.
    seconds, millis = _SECONDS.get(text[17:19]), _MILLIS.get(text[19:])
    minute = None if seconds is None or millis is None else _minute(text[:17])
    if seconds is None or millis is None or minute is None:
        return _any_rfc3339(text)
    return minute + seconds + millis


@lru_cache(maxsize=64)
def _minute(head: str) -> int | None:
    """µs at the start of a minute in this one form; other forms are read as a whole."""
    return _any_rfc3339(head + "00Z") if _MINUTE.fullmatch(head) else None


def _any_rfc3339(text: str) -> int | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        span = moment - _EPOCH
    except OverflowError:
        return None
    return (span.days * 86_400 + span.seconds) * 1_000_000 + span.microseconds


def plausible(ts: int | None, now: int) -> bool:
    """False before 2020 and more than a day ahead of `now` (both µs UTC)."""
    return ts is not None and EARLIEST <= ts <= now + DAY


_ESCAPES: Final = (
    (b"\\u003c", b"<"), (b"\\u003C", b"<"), (b"\\u003e", b">"), (b"\\u003E", b">"), (b"\\u0027", b"'"), (b"\\/", b"/"),
)  # fmt: skip
PEEK_BYTES: Final = 80


def peek(raw: msgspec.Raw | bytes) -> bytes:
    """At most 80 bytes at the start of a JSON string; empty where the value is no string.

    The caller compares them with fixed markers and drops them.
    """
    head = bytes(memoryview(raw)[: PEEK_BYTES + 1])
    if head[:1] != b'"':
        return b""
    head = head[1:]
    if b"\\" in head:
        for escaped, plain in _ESCAPES:
            head = head.replace(escaped, plain)
    return head
