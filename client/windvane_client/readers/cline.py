# SPDX-License-Identifier: Apache-2.0
"""Cline and Roo: `tasks/<id>/ui_messages.json`, and `<session>.messages.json` with its header `<session>.json`.

Rules kept here:
* a file is one JSON document that its program writes anew; it is read whole each time, its elements one by one;
* one broken element is rejected by itself; of a cut document the elements before the cut are read;
* what was counted in an earlier run is not counted again; its events are given again, since elements change in place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final, Protocol

import msgspec

from windvane_client.events import AnyEvent, Gap, Rows
from windvane_client.readers import cline_rows as rows
from windvane_client.readers.cline_files import MESSAGES, TASK_FILE
from windvane_client.readers.cline_session import SessionPass
from windvane_client.readers.cline_task import TaskPass
from windvane_client.readers.files import find_logs
from windvane_client.readers.json_items import Items, document
from windvane_client.readers.lines import NOT_READ, reason_of, reject
from windvane_client.readers.machine_head import MachineHead
from windvane_client.readers.protocol import ReadContext

SOURCE: Final = "cline"
VERSION: Final = "1.0.0"


class _Pass(Protocol):
    """One kind of file."""

    head: MachineHead

    def element(self, raw: bytes, counted: Rows) -> list[AnyEvent]: ...

    def end(self) -> list[AnyEvent]: ...


class ClineReader:
    """Reader of the source `cline`."""

    source = SOURCE
    version = VERSION

    def discover(self, roots: Sequence[Path]) -> Iterator[Path]:
        """Task files and files of messages under the roots; a header is read with its messages."""
        return find_logs(roots, (TASK_FILE, MESSAGES, TASK_FILE + ".gz"))

    def read(self, stream: BinaryIO, context: ReadContext) -> Iterator[AnyEvent]:
        """Events of one file; see `windvane_client.readers.protocol.Reader`."""
        data, problem = document(stream)
        first = data.lstrip()[:1]
        if first == b"[":
            yield from _elements(Items(data), TaskPass(context, SOURCE, VERSION), data, context, problem)
            return
        items = Items(data, b"messages")
        if first == b"{" and items.found:
            yield from _elements(items, SessionPass(context, SOURCE, VERSION, _around(data)), data, context, problem)
        elif problem:
            yield from _count(context, problem)
        elif data.strip():
            yield from _header(data, context)


def _around(data: bytes) -> rows.Session:
    """The session around the messages; an empty one where the document is damaged."""
    try:
        return rows.SESSION.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return rows.Session()


def _header(data: bytes, context: ReadContext) -> Iterator[AnyEvent]:
    """A header has no rows of its own; what is no header is one rejected row."""
    try:
        rows.HEADER.decode(data)
    except msgspec.ValidationError:
        yield from _count(context, "wrong_type")
    except RecursionError:
        yield from _count(context, "too_deep")
    except msgspec.DecodeError:
        if not context.final:
            return  # it is being written
        yield from _count(context, "not_json")
    context.offset = len(data)


def _count(context: ReadContext, reason: str) -> Iterator[AnyEvent]:
    """The whole file is one row, and rejected; only once."""
    if not context.offset:
        context.rows.read += 1
        yield _rejected(MachineHead(context, SOURCE, VERSION), context.rows, reason, context, 0)


def _elements(items: Items, now: _Pass, data: bytes, context: ReadContext, problem: str) -> Iterator[AnyEvent]:
    counted, scratch = context.offset, Rows()
    for raw, end in items:
        into = context.rows if end > counted else scratch
        into.read += 1
        try:
            yield from now.element(raw, into)
        except NOT_READ as error:
            yield _rejected(now.head, into, reason_of(error), context, end)
    if problem or (not items.complete and context.final):
        into = context.rows if len(data) > counted else scratch
        into.read += 1
        yield _rejected(now.head, into, problem or "truncated", context, len(data))
    yield from now.end()
    context.offset = max(counted, len(data) if items.complete or context.final else items.offset)


def _rejected(head: MachineHead, into: Rows, reason: str, context: ReadContext, end: int) -> Gap:
    reject(into, reason)
    key = context.ids.key("cline/rejected", f"{context.file_key.hex()}:{end}")
    return Gap(**head.event(key), what="rows_rejected")
