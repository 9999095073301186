# SPDX-License-Identifier: Apache-2.0
"""Collecting: new rows of the configured log folders become events in the store, run after run.

Rules kept here:
* a file is read from where the last run stopped; a file that shrank or began anew is read from its start, which is
  harmless because events merge;
* a file's events, its counts and its cursor are stored in one transaction, which small files share: a crash counts
  nothing twice, and a file that fails takes back only what is its own;
* a file that cannot be read is counted by reason and the rest is read; no path and no text is repeated in any message;
* model names are resolved with the catalogue of the window's agreement; a change of catalogue reads everything again;
* the organisation's rules stay fixed inside a window (`ConfigurationError` otherwise);
* what could not be seen is written down: vanished files, days after which a program deletes its logs;
* a person who opted out is dropped before any event exists; memory is flat in the size of the logs.
"""

from __future__ import annotations

import hashlib
import tomllib
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, Protocol

from windvane_client.attention import Noticed, warnings_of
from windvane_client.catalogue_builtin import builtin_catalogue
from windvane_client.events import AnyEvent, Gap, Rows
from windvane_client.evidence import micros, retired_until
from windvane_client.ids import FirstStepIds
from windvane_client.people import People, staff_id_text
from windvane_client.readers import MACHINE_SOURCES, ReadContext, SampleFacts, context_for, reader
from windvane_client.readers.files import open_log, packed_logs
from windvane_client.rules import Rules, load_rules
from windvane_client.settings import LogFolder
from windvane_client.state import MemberState
from windvane_client.store import Cursor, EventStore
from windvane_client.tool_classes import ToolClasses
from windvane_privacy import canonical
from windvane_privacy.catalogue import Catalogue
from windvane_privacy.errors import ConfigurationError
from windvane_privacy.manifest import Manifest, parse_time
from windvane_privacy.signed import verify_signed_manifest

HEAD_BYTES = 4096
SHARED_BYTES = 8 << 20
"""Files are stored together up to this size: a commit costs more than a small file."""
DAY = 86_400_000_000
WARN_AFTER_DAYS, LOGS_KEPT_DAYS = 25, 30
"""Claude Code deletes transcripts after 30 days unless told otherwise."""
READER = "collect/1.0.0"

Progress = Callable[[int, int], None]
"""Called with (bytes done, bytes to do)."""


@dataclass(slots=True)
class CollectReport:
    """What one run did. Counts of files and rows, never of outcomes.

    `rows`: rows of this run by fate, rejections by reason. `unreadable`: files that could not be opened. `vanished`:
    files that were gone with unread rows. `unmapped`: nobody of people.toml can be this machine's person.
    """

    files: int = 0
    read: int = 0
    unchanged: int = 0
    unreadable: int = 0
    vanished: int = 0
    events: int = 0
    rows: Rows = field(default_factory=Rows)
    by_source: dict[str, int] = field(default_factory=dict)
    days_since_last: int | None = None
    unmapped: bool = False
    warnings: list[str] = field(default_factory=list)
    noticed: Noticed = field(default_factory=Noticed)
    """What may need a person in the rows of this run."""


class Sink(Protocol):
    """Where events go and what is remembered about files: the agent's `EventStore`, or a collector's file."""

    def transaction(self) -> AbstractContextManager[None]:
        """See `EventStore`, as for the other methods."""
        ...

    def add(self, events: Iterable[AnyEvent]) -> int: ...
    def add_rows(self, recorder: str, rows: Rows, week: str = "") -> None: ...
    def cursor(self, file_key: bytes) -> Cursor | None: ...
    def cursors(self) -> Iterator[Cursor]: ...
    def set_cursor(self, cursor: Cursor) -> None: ...
    def drop_cursor(self, file_key: bytes) -> None: ...
    def fact(self, name: str) -> str | None: ...
    def set_fact(self, name: str, value: str) -> None: ...


@dataclass(frozen=True, slots=True)
class CollectSetup:
    """What reading needs to know besides the logs."""

    logs: Sequence[LogFolder]
    people: People
    ids: FirstStepIds
    catalogue: Catalogue
    aliases: Mapping[str, str]
    rules: Rules


@dataclass(frozen=True, slots=True)
class _Source:
    """One configured folder with everything its files need."""

    folder: LogFolder
    person: bytes | None


class _Found(NamedTuple):
    source: _Source
    path: Path
    size: int


def collect(state: MemberState, now: datetime, *, progress: Progress | None = None) -> CollectReport:
    """Read what is new. `now` is UTC.

    Raises:
        ConfigurationError: a configuration file is wrong, or the rules changed inside a window.
        LedgerLocked: another process is collecting.
    """
    manifest, rules = current_manifest(state, now), load_rules(state.folder)
    catalogue = manifest.catalogue if manifest is not None else builtin_catalogue()
    setup = CollectSetup(
        state.settings.logs,
        state.people,
        state.ids,
        catalogue,
        load_aliases(state.folder / "aliases.toml", catalogue),
        rules,
    )
    with EventStore.open(state.collection) as store:
        window = manifest.round if manifest is not None else _quarter(now)
        store.freeze_rules(window, rules.sha256)
        # Outages and policies happen inside a window: declared until the draw, and on record.
        store.set_fact(f"events:{window}", rules.events_sha256)
        return read_logs(store, setup, now, retired=retired_until(store), progress=progress)


def read_logs(
    store: Sink, setup: CollectSetup, now: datetime, *, retired: int = 0, progress: Progress | None = None
) -> CollectReport:
    """Read what is new into `store`. `retired`: what is older belongs to a window that is over, µs."""
    report = CollectReport()
    sources = [_Source(one, _owner(one, setup.ids)) for one in setup.logs if not _opted_out(one, setup.people)]
    machines = {one.person for one in sources if one.folder.source in MACHINE_SOURCES}
    _prepare(store, report, setup, micros(now), machines)
    found = [
        _Found(source, path, _size(path))
        for source in sources
        for path in reader(source.folder.source).discover(_roots(source))
    ]
    if any(packed_logs(_roots(source)) for source in sources):
        report.warnings.append("Some logs are compressed in a way that is not read: unpack them, or use .gz.")
    total, done, seen = sum(one.size for one in found), 0, set[bytes]()
    tools = ToolClasses(setup.rules.tools)
    for group in _groups(found):
        with store.transaction():
            for source, path, size in group:
                context = _context(path, source, setup, tools, micros(now))
                if context.file_key in seen:
                    continue  # two configured folders hold it; the first one counts
                seen.add(context.file_key)
                _read_file(store, path, source, context, report, retired, now)
                done += size
                if progress is not None:
                    progress(done, total)
    _gone(store, report, seen, micros(now))
    store.set_fact("last_run", str(micros(now)))
    report.unmapped = any(source.folder.source in MACHINE_SOURCES and source.person is None for source in sources)
    if report.unmapped:
        report.warnings.append("Logs without a person's name belong to nobody yet: set [machine] in people.toml.")
    for one in warnings_of(report.noticed, numbers=False):
        if not (report.unmapped and one.code == "nobody_mapped"):
            report.warnings.append(one.text)
    return report


def current_manifest(state: MemberState, now: datetime) -> Manifest | None:
    """The verified agreement whose events are being collected: the newest whose window has begun, else the next one."""
    coordinator = bytes.fromhex(state.policy.coordinator)
    known = sorted(
        (verify_signed_manifest(raw, coordinator) for raw in state.manifests()), key=lambda one: one.events.from_
    )
    begun = [one for one in known if parse_time(one.events.from_) <= now]
    return begun[-1] if begun else (known[0] if known else None)


def load_aliases(path: Path, catalogue: Catalogue) -> dict[str, str]:
    """aliases.toml: exact model names (deployments, gateway groups) to families of the catalogue; {} without the file.

    Raises:
        ConfigurationError: not a table of text, or a family that the catalogue does not have.
    """
    if not path.exists():
        return {}
    try:
        return parse_aliases(path.read_text("utf-8"), catalogue)
    except (OSError, UnicodeDecodeError):
        raise ConfigurationError("aliases.toml cannot be read.") from None


def parse_aliases(text: str, catalogue: Catalogue) -> dict[str, str]:
    """The table of `load_aliases` from its text; raises alike."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise ConfigurationError("aliases.toml cannot be read.") from None
    if not all(isinstance(family, str) and family in catalogue for family in table.values()):
        raise ConfigurationError("aliases.toml maps to something that is no family of the catalogue.")
    return table


# --- one file ---------------------------------------------------------------------------------------------------------


def _groups(found: Iterable[_Found]) -> Iterator[list[_Found]]:
    """Files in order, cut where their sizes reach `SHARED_BYTES`."""
    group: list[_Found] = []
    size = 0
    for one in found:
        if group and size + one.size > SHARED_BYTES:
            yield group
            group, size = [], 0
        group.append(one)
        size += one.size
    if group:
        yield group


def _read_file(
    store: Sink,
    path: Path,
    source: _Source,
    context: ReadContext,
    report: CollectReport,
    retired: int,
    now: datetime,
) -> None:
    report.files += 1
    name = source.folder.source
    cursor = store.cursor(context.file_key)
    mapping = context.companion if name == "mapping" else b""
    try:
        status = path.stat()
        if cursor is not None:
            same_head = _head(path, min(HEAD_BYTES, cursor.size), mapping) == cursor.head_sha256
            if same_head and (cursor.size, cursor.mtime_ns) == (status.st_size, status.st_mtime_ns):
                report.unchanged += 1
                return
            if same_head and status.st_size >= cursor.size:
                context.offset = cursor.offset
        head = _head(path, min(HEAD_BYTES, status.st_size), mapping)
        with open_log(path) as stream, store.transaction():
            events = report.noticed.watch(_fresh(reader(name).read(stream, context), retired))
            report.events += store.add(events)
            store.add_rows(name, context.rows, _week(now))
            store.set_cursor(Cursor(context.file_key, status.st_size, status.st_mtime_ns, context.offset, head))
    except (OSError, EOFError, zlib.error, ConfigurationError):
        # A file may vanish, lose its rights or be a damaged .gz while it is read; the others must still count.
        report.unreadable += 1
        return
    report.read += 1
    report.by_source[name] = report.by_source.get(name, 0) + 1
    _add_rows(report.rows, context.rows)


def _fresh(events: Iterator[AnyEvent], retired: int) -> Iterator[AnyEvent]:
    """What belongs to a window that is over stays deleted, also when its logs are read again."""
    return (event for event in events if event.ts is None or event.ts >= retired)


def _context(path: Path, source: _Source, setup: CollectSetup, tools: ToolClasses, now: int) -> ReadContext:
    facts, rules = SampleFacts(source.folder.source), setup.rules
    context = context_for(path, ids=setup.ids, catalogue=setup.catalogue, now=now, facts=facts)
    context.machine_person = source.person
    context.aliases = setup.aliases
    context.kind_rule = rules.kind_rule
    context.key_mode = rules.key_mode
    context.skip_agent = rules.skips_agent
    context.tools = tools
    context.tool_markers = rules.tool_markers
    context.scores = rules.scores
    return context


def _head(path: Path, length: int, mapping: bytes) -> bytes:
    # With another mapping the same bytes say something else, so the file counts as a new one.
    with path.open("rb") as file:
        return hashlib.sha256(file.read(length) + mapping).digest()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


# --- around the files -------------------------------------------------------------------------------------------------


def _prepare(store: Sink, report: CollectReport, setup: CollectSetup, now: int, machines: set[bytes | None]) -> None:
    names = sorted((family.id, *family.patterns) for family in setup.catalogue.families)
    fingerprint = canonical.sha256_hex(canonical.encode([[list(one) for one in names], dict(setup.aliases)]))
    known = store.fact("catalogue")
    if known != fingerprint:
        if known is not None:
            report.warnings.append("The list of models has changed: all log files that still exist are read again.")
        for cursor in list(store.cursors()):
            store.drop_cursor(cursor.file_key)
        store.set_fact("catalogue", fingerprint)
    last = store.fact("last_run")
    if last is None:
        return
    report.days_since_last = max(0, now - int(last)) // DAY
    if report.days_since_last > WARN_AFTER_DAYS:
        report.warnings.append("The last run was long ago; programs delete their logs, so run it every week.")
    if report.days_since_last > LOGS_KEPT_DAYS:
        # Each machine's person has an own gap: how their work of that time ended is unknown, nobody else's is.
        for person in sorted(machines, key=lambda one: one or b"") or [None]:
            key = hashlib.sha256(last.encode() + (person or b"")).digest()[:16]
            store.add(_gap("retention_cut", key, now, since=int(last), person=person))


def _gone(store: Sink, report: CollectReport, seen: set[bytes], now: int) -> None:
    for cursor in list(store.cursors()):
        if cursor.file_key in seen:
            continue
        with store.transaction():
            if cursor.offset < cursor.size:
                report.vanished += 1
                store.add(_gap("files_missing", cursor.file_key, now))
            store.drop_cursor(cursor.file_key)


def _gap(what: str, key: bytes, now: int, *, since: int | None = None, person: bytes | None = None) -> Iterator[Gap]:
    yield Gap(
        source="collect", recorder="collect", reader=READER, key=key, person=person, ts=now, what=what, since=since,
        until=now,
    )  # fmt: skip


def _owner(folder: LogFolder, ids: FirstStepIds) -> bytes | None:
    return ids.machine() if folder.staff_id is None else ids.staff(folder.staff_id)


def _opted_out(folder: LogFolder, people: People) -> bool:
    if folder.staff_id is not None:
        return people.is_excluded(staff_id_text(folder.staff_id))
    # Other sources name their people row by row; the reader drops who opted out.
    return folder.source in MACHINE_SOURCES and people.machine_excluded


def _roots(source: _Source) -> list[Path]:
    return [Path(source.folder.path)]


def _add_rows(total: Rows, more: Rows) -> None:
    for name in Rows.FIELDS:
        setattr(total, name, getattr(total, name) + getattr(more, name))
    for reason, count in more.reasons.items():
        total.reasons[reason] = total.reasons.get(reason, 0) + count


def _quarter(now: datetime) -> str:
    return f"{now.year}-Q{(now.month - 1) // 3 + 1}"


def _week(now: datetime) -> str:
    year, week, _ = now.astimezone(UTC).isocalendar()
    return f"{year}-W{week:02d}"
