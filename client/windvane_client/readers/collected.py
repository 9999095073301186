# SPDX-License-Identifier: Apache-2.0
"""What collectors on other machines wrote into a shared folder, as the agent reads it.

Rules kept here:
* a person is known by the staff ids of people.toml alone: nobody who can write into the folder can invent one;
* whoever opted out here leaves no trace, whatever a collector knew when it read the log;
* a file under a key that is no longer in force is rejected row by row, and counted;
* all other ids stay as the collector made them: the agent makes the same ones from the same log;
* a file is written whole and never grows, and is read as a whole: its first line says under which key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

from windvane_client.capabilities import attempts_known
from windvane_client.events import AnyEvent, Gap, Rows, Vote
from windvane_client.people import KnownPeople
from windvane_client.readers.collected_rows import read_event, read_header
from windvane_client.readers.files import find_logs
from windvane_client.readers.lines import NOT_READ, UNREADABLE, Lines, Rejected, reason_of, reject
from windvane_client.readers.protocol import ReadContext

SOURCE: Final = "collected"
VERSION: Final = "1.0.0"
PREFIX: Final = "windvane-"
_READER: Final = f"{SOURCE}/{VERSION}"


class CollectedReader:
    """Reader of collected rows."""

    source = SOURCE
    version = VERSION

    def discover(self, roots: Sequence[Path]) -> Iterator[Path]:
        """Collectors' files under the roots; other files in the folder are not looked at."""
        return (path for path in find_logs(roots, (".jsonl",)) if path.name.startswith(PREFIX))

    def read(self, stream: BinaryIO, context: ReadContext) -> Iterator[AnyEvent]:
        """Events of one file; see `windvane_client.readers.protocol.Reader`."""
        return _File(context).events(stream)


class _File:
    def __init__(self, context: ReadContext) -> None:
        self._context = context
        self._known = context.collected or KnownPeople(None, {})
        self._problem: str | None = "missing_field"
        """Why no row of the file counts; None once the first line was good."""
        self._begun = False
        self._last: AnyEvent | None = None

    def events(self, stream: BinaryIO) -> Iterator[AnyEvent]:
        context, counted, scratch = self._context, self._context.offset, Rows()
        lines = Lines(stream, final=context.final)
        start = 0
        for line, end in lines:
            fresh = end > counted or lines.problem == UNREADABLE
            rows = context.rows if fresh else scratch
            rows.read += 1
            event: AnyEvent | None = None
            try:
                if line is None:
                    raise Rejected(lines.problem)
                event = self._row(line, rows)
            except NOT_READ as error:
                reason = reason_of(error)
                reject(rows, "truncated" if lines.cut and reason == "not_json" else reason)
                event = self._rejected(start)
            start = end
            if fresh and event is not None:
                yield event
        context.offset = max(lines.offset, counted)

    def _row(self, line: bytes, rows: Rows) -> AnyEvent | None:
        if not self._begun:
            self._begun = True
            number = read_header(line).number
            self._problem = None if self._known.number in (None, number) else "old_key"
            self._context.facts.any_row = True
            return None
        if self._problem is not None:
            raise Rejected(self._problem)
        event = read_event(line, self._context.catalogue, self._context.now)
        if event is None:
            rows.unknown += 1
            return None
        if event.person is not None and event.person in self._known.excluded:
            rows.read -= 1
            return None
        return self._owned(event)

    def _owned(self, event: AnyEvent) -> AnyEvent:
        facts, first = self._context.facts, event.person
        facts.any_call_row = facts.any_prompt_row = facts.any_tool_row = True
        facts.any_vote_row = facts.any_vote_row or isinstance(event, Vote)
        facts.saw_attempts(attempts_known(event))
        facts.saw_conversation(event.conv)
        facts.saw_person(first)
        self._last = event
        if self._known.everyone is not None:
            event.person = self._known.everyone
        elif first is not None:
            event.person = self._known.pseudonyms.get(first)
        if event.person is not None or isinstance(event, Gap):
            return event
        return Gap(
            source=event.source, recorder=event.recorder, reader=event.reader, key=event.key, conv=event.conv,
            ts=event.ts, seq=event.seq, what="person_unknown",
        )  # fmt: skip

    def _rejected(self, start: int) -> Gap:
        context, last = self._context, self._last
        return Gap(
            source=SOURCE, recorder=SOURCE, reader=_READER,
            key=context.ids.key("collected/rejected", f"{context.file_key.hex()}:{start}"),
            person=None if last is None else last.person, conv=None if last is None else last.conv,
            ts=None if last is None else last.ts, what="rows_rejected",
        )  # fmt: skip
