# SPDX-License-Identifier: Apache-2.0
"""Parcels and answers as one flat file each, for parties that have no network between them.

Rules kept here:
* one strict layout: magic, what it holds, records with their lengths, and the SHA-256 of everything before; there is no
  compression, no index and no name of a file inside, so nothing in it can point anywhere;
* a file is read whole or refused whole (`MalformedInput`), before anything is done with any part of it;
* an answer names its parcel by hash, so that it answers that parcel and no other;
* an entry for the log takes the same room whatever its numbers: the files of one step have one size for all members.

The hash at the end finds damage, not lies: whoever reads a file checks its contents like anything that came by network.

Source: docs/protocol.md (files).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from windvane_privacy import canonical
from windvane_privacy.couriers import ROUTES, Parcel
from windvane_privacy.errors import MalformedInput, WindvaneError, problem_type
from windvane_privacy.leaf import MAX_LEAF_BYTES, is_round

MAGIC = b"WVF1"
PARCELS, ANSWERS = 1, 2
MAX_FILE_BYTES = 512 << 20
"""Ten years of a log and the envelopes of 5,000 members at the largest layout stay below."""
MAX_REFUSAL_BYTES = 4096
PARCEL_LABEL = b"windvane/1/parcel\0"
HASH_BYTES = 32
_HEAD = len(MAGIC) + 8
_GIVEN, _REFUSED = 0, 1


@dataclass(frozen=True, slots=True)
class Answer:
    """What the coordinator said to one parcel: the answer's bytes, or a refusal by its problem type and detail."""

    body: bytes = b""
    problem: str | None = None
    detail: str = ""


Answers = Mapping[bytes, Answer]
"""Answers by `parcel_id`."""


def parcel_id(parcel: Parcel) -> bytes:
    """What an answer names its parcel by: the hash over kind, round and body, each with its length."""
    return hashlib.sha256(PARCEL_LABEL + _named(parcel) + _sized(parcel.body)).digest()


def refused(error: WindvaneError) -> Answer:
    """The answer that a refusal is."""
    return Answer(b"", problem_type(type(error)), error.detail)


def encode_parcels(parcels: Iterable[Parcel]) -> bytes:
    """The file of these parcels, in this order."""
    return _file(PARCELS, [_named(p) + _roomy(p) for p in parcels])


def decode_parcels(raw: bytes) -> tuple[Parcel, ...]:
    """The parcels of a file, in its order.

    Raises:
        MalformedInput: not byte for byte what `encode_parcels` writes.
    """
    reader, count = _records(raw, PARCELS)
    found = tuple(_parcel(reader) for _ in range(count))
    reader.end()
    return found


def encode_answers(answers: Answers) -> bytes:
    """The file of these answers, ordered by the hashes of their parcels."""
    return _file(ANSWERS, [name + _said(answers[name]) for name in sorted(answers)])


def decode_answers(raw: bytes) -> dict[bytes, Answer]:
    """The answers of a file by the hashes of their parcels.

    Raises:
        MalformedInput: not byte for byte what `encode_answers` writes.
    """
    reader, count = _records(raw, ANSWERS)
    found: dict[bytes, Answer] = {}
    last = b""
    for _ in range(count):
        name = reader.take(HASH_BYTES)
        if name <= last:
            raise MalformedInput("The answers are not in order, or one parcel has two.")
        found[name] = _answer(reader)
        last = name
    reader.end()
    return found


# --- records ---------------------------------------------------------------------------------------------------------


def _named(parcel: Parcel) -> bytes:
    kind, round_id = parcel.kind.encode("ascii"), parcel.round_id.encode("ascii")
    return bytes([len(kind)]) + kind + bytes([len(round_id)]) + round_id


def _sized(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def _room(kind: str, length: int) -> int:
    return max(length, MAX_LEAF_BYTES) if kind == "leaf" else length


def _roomy(parcel: Parcel) -> bytes:
    length = len(parcel.body)
    return _sized(parcel.body) + bytes(_room(parcel.kind, length) - length)


def _parcel(reader: _Reader) -> Parcel:
    kind, round_id = reader.word(), reader.word()
    if kind not in ROUTES or ROUTES[kind].method == "GET":
        raise MalformedInput("A file carries only what is sent, of a known kind.")
    if round_id and not is_round(round_id):
        raise MalformedInput("The name of the round is malformed.")
    body = reader.sized()
    if any(reader.take(_room(kind, len(body)) - len(body))):
        raise MalformedInput("The room after a parcel is not empty.")
    return Parcel(kind, round_id, body)


def _said(answer: Answer) -> bytes:
    if answer.problem is None:
        return bytes([_GIVEN]) + _sized(answer.body)
    return bytes([_REFUSED]) + _sized(canonical.encode({"type": answer.problem, "detail": answer.detail}))


def _answer(reader: _Reader) -> Answer:
    outcome, body = reader.take(1)[0], reader.sized()
    if outcome == _GIVEN:
        return Answer(body)
    if outcome != _REFUSED:
        raise MalformedInput("An answer is given or refused.")
    value = canonical.decode(body, max_bytes=MAX_REFUSAL_BYTES)
    if not isinstance(value, dict) or set(value) != {"type", "detail"}:
        raise MalformedInput("A refusal has a type and a detail.")
    problem, detail = value["type"], value["detail"]
    if not isinstance(problem, str) or not isinstance(detail, str):
        raise MalformedInput("A refusal has a type and a detail.")
    return Answer(b"", problem, detail)


# --- the frame -------------------------------------------------------------------------------------------------------


def _file(what: int, records: list[bytes]) -> bytes:
    content = b"".join([MAGIC, bytes([what, 0, 0, 0]), len(records).to_bytes(4, "big"), *records])
    return content + hashlib.sha256(content).digest()


def _records(raw: bytes, what: int) -> tuple[_Reader, int]:
    if len(raw) > MAX_FILE_BYTES or len(raw) < _HEAD + HASH_BYTES or raw[: len(MAGIC)] != MAGIC:
        raise MalformedInput("This is no file of parcels or answers.")
    content = memoryview(raw)[:-HASH_BYTES]
    if hashlib.sha256(content).digest() != raw[-HASH_BYTES:]:
        raise MalformedInput("The file is damaged: it does not have the hash that it ends in.")
    if raw[len(MAGIC) : _HEAD - 4] != bytes([what, 0, 0, 0]):
        wanted = "parcels" if what == PARCELS else "answers"
        raise MalformedInput(f"The file does not hold {wanted}.")
    return _Reader(content, _HEAD), int.from_bytes(raw[_HEAD - 4 : _HEAD], "big")


class _Reader:
    """Takes bytes from the front; running out of them is `MalformedInput`."""

    def __init__(self, content: memoryview, at: int) -> None:
        self._content, self._at = content, at

    def take(self, count: int) -> bytes:
        if count > len(self._content) - self._at:
            raise MalformedInput("A record is longer than the file.")
        self._at += count
        return bytes(self._content[self._at - count : self._at])

    def sized(self) -> bytes:
        return self.take(int.from_bytes(self.take(4), "big"))

    def word(self) -> str:
        try:
            return self.take(self.take(1)[0]).decode("ascii")
        except UnicodeDecodeError:
            raise MalformedInput("A name is not plain letters.") from None

    def end(self) -> None:
        if self._at != len(self._content):
            raise MalformedInput("Something follows the last record.")
