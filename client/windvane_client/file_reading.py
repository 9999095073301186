# SPDX-License-Identifier: Apache-2.0
"""One log file becomes copies for the store: what collecting and previewing do with a file, in whichever process.

Rules kept here:
* a file is read with nothing but its task, the settings of the run and its own bytes, so any process gives the same;
* what a reader saw comes back beside the copies: row counts, facts, gaps, and how far the file was read;
* a file that cannot be read is `Unread`, whatever the reason; no path and no text is in it.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import NamedTuple, Protocol

from windvane_client.events import Gap, Rows
from windvane_client.ids import FirstStepIds, ids_of
from windvane_client.merge import KIND_NUMBER, Copy, copy_of, unpack
from windvane_client.noticed import Noticed, Told
from windvane_client.people import People
from windvane_client.readers import ReadContext, SampleFacts, context_for, reader
from windvane_client.readers.files import open_log
from windvane_client.rules import Rules
from windvane_client.tool_classes import ToolClasses
from windvane_privacy.catalogue import Catalogue, Family
from windvane_privacy.errors import ConfigurationError

BATCH = 2048
_GAP = KIND_NUMBER[Gap]


class Unread(Exception):
    """The file could not be read, or not to its end: what it gave so far must not count."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What is the same for every file of a run, as plain values that can be told to another process.

    `ids`: what the keyed ids are made of. `now`: µs UTC. `retired`: what is older belongs to a window that is over, µs.
    `final`: the files are finished. Holds a key: it is never written anywhere.
    """

    ids: tuple[bytes, int | None]
    people: People
    families: tuple[Family, ...]
    aliases: dict[str, str]
    rules: Rules
    now: int
    retired: int = 0
    final: bool = False


@dataclass(frozen=True, slots=True)
class Task:
    """One file to read, from `offset` on. `person`: whose logs these are, for sources that name nobody. `path`: as
    bytes, for names that are no text."""

    path: bytes
    source: str
    person: bytes | None
    offset: int
    size: int


@dataclass(slots=True)
class Done:
    """What reading one file told besides its events. `gaps`: what could not be seen, by word of the closed list."""

    rows: Rows
    facts: SampleFacts
    offset: int
    gaps: dict[str, int] = field(default_factory=dict)
    noticed: Told = field(default_factory=Told)
    """What may need a person."""


class Batch(NamedTuple):
    """Some copies of a file, in reading order, and how many of its bytes are read."""

    copies: list[Copy]
    position: int


class FileRead(Protocol):
    """One file that is being read."""

    def batches(self) -> Iterator[Batch]:
        """Its copies. Raises Unread."""
        ...

    @property
    def done(self) -> Done:
        """What it told, once `batches` has ended."""
        ...


class Reading:
    """Reads files with the settings of one run."""

    def __init__(self, settings: Settings, ids: FirstStepIds | None = None, catalogue: Catalogue | None = None) -> None:
        self.settings = settings
        self._ids = ids or ids_of(settings.ids, settings.people)
        self._catalogue = catalogue or Catalogue(settings.families)
        self._tools = ToolClasses(settings.rules.tools)

    def context(self, path: Path, source: str, person: bytes | None) -> ReadContext:
        """The context of one file."""
        settings, rules = self.settings, self.settings.rules
        facts = SampleFacts(source)
        context = context_for(path, ids=self._ids, catalogue=self._catalogue, now=settings.now, facts=facts)
        context.machine_person = person
        context.final = settings.final
        context.aliases = settings.aliases
        context.kind_rule = rules.kind_rule
        context.key_mode = rules.key_mode
        context.skip_agent = rules.skips_agent
        context.tools = self._tools
        context.tool_markers = rules.tool_markers
        context.scores = rules.scores
        return context

    def file(self, task: Task) -> OwnFile:
        """A file that this process reads."""
        return OwnFile(self, task)


class OwnFile:
    """A file that this process reads; satisfies `FileRead`."""

    def __init__(self, reading: Reading, task: Task) -> None:
        self._reading = reading
        self._task = task
        self._done: Done | None = None

    @property
    def done(self) -> Done:
        if self._done is None:
            raise Unread
        return self._done

    def batches(self) -> Generator[Batch, None, None]:
        task, retired = self._task, self._reading.settings.retired
        gaps: dict[str, int] = {}
        noticed = Noticed()
        try:
            path = Path(os.fsdecode(task.path))
            context = self._reading.context(path, task.source, task.person)
            context.offset = task.offset
            with open_log(path) as stream:
                events = reader(task.source).read(stream, context)
                if retired:
                    # What belongs to a window that is over stays deleted, also when its logs are read again.
                    events = (event for event in events if event.ts is None or event.ts >= retired)
                copies = map(copy_of, noticed.watch(events))
                while batch := list(islice(copies, BATCH)):
                    _count_gaps(batch, gaps)
                    yield Batch(batch, stream.tell())
        except (OSError, EOFError, zlib.error, ConfigurationError):
            # A file may vanish, lose its rights or be a damaged .gz while it is read.
            raise Unread from None
        self._done = Done(context.rows, context.facts, context.offset, gaps, noticed.told())


def _count_gaps(copies: list[Copy], gaps: dict[str, int]) -> None:
    for copy in copies:
        if copy[1] == _GAP and isinstance(gap := unpack(copy[-1]), Gap):
            gaps[gap.what] = gaps.get(gap.what, 0) + 1


def settings_of(
    ids: FirstStepIds,
    people: People,
    catalogue: Catalogue,
    aliases: Mapping[str, str],
    rules: Rules,
    *,
    now: int,
    retired: int = 0,
    final: bool = False,
) -> Settings:
    """The settings of a run."""
    return Settings(ids.made_of, people, catalogue.families, dict(aliases), rules, now, retired, final)
