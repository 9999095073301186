# SPDX-License-Identifier: Apache-2.0
"""Collecting: new rows of the configured log folders become events in the store, run after run.

Rules kept here:
* what happens to a file is written in `collect_files`;
* model names are resolved with the catalogue of the window's agreement; a change of catalogue reads everything again;
* the organisation's rules stay fixed inside a window (`ConfigurationError` otherwise);
* what could not be seen is written down: vanished files, days after which a program deletes its logs;
* a person who opted out is dropped before any event exists; memory is flat in the size of the logs.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from windvane_client.attention import warnings_of
from windvane_client.catalogue_builtin import builtin_catalogue
from windvane_client.collect_files import CollectReport, Found, Progress, Sink, read_found, size_of
from windvane_client.events import Gap
from windvane_client.evidence import micros, retired_until
from windvane_client.file_reading import Reading, settings_of
from windvane_client.ids import FirstStepIds
from windvane_client.merge import copy_of
from windvane_client.people import People, staff_id_text
from windvane_client.readers import MACHINE_SOURCES, reader
from windvane_client.readers.files import packed_logs
from windvane_client.rules import Rules, load_rules
from windvane_client.settings import LogFolder
from windvane_client.state import MemberState
from windvane_client.store import EventStore
from windvane_privacy import canonical
from windvane_privacy.catalogue import Catalogue
from windvane_privacy.errors import ConfigurationError
from windvane_privacy.manifest import Manifest, parse_time
from windvane_privacy.signed import verify_signed_manifest

DAY = 86_400_000_000
WARN_AFTER_DAYS, LOGS_KEPT_DAYS = 25, 30
"""Claude Code deletes transcripts after 30 days unless told otherwise."""
READER = "collect/1.0.0"


@dataclass(frozen=True, slots=True)
class CollectSetup:
    """What reading needs to know besides the logs."""

    logs: Sequence[LogFolder]
    people: People
    ids: FirstStepIds
    catalogue: Catalogue
    aliases: Mapping[str, str]
    rules: Rules


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
    store: Sink,
    setup: CollectSetup,
    now: datetime,
    *,
    retired: int = 0,
    progress: Progress | None = None,
    workers: int | None = None,
) -> CollectReport:
    """Read what is new into `store`. `retired`: what is older belongs to a window that is over, µs; `workers`: as for
    `read_files`."""
    report = CollectReport()
    folders = [one for one in setup.logs if not _opted_out(one, setup.people)]
    owned = [(one, _owner(one, setup.ids)) for one in folders]
    machines = {person for one, person in owned if one.source in MACHINE_SOURCES}
    _prepare(store, report, setup, micros(now), machines)
    found = [
        Found(one.source, person, path, size_of(path))
        for one, person in owned
        for path in reader(one.source).discover([Path(one.path)])
    ]
    if any(packed_logs([Path(one.path)]) for one in folders):
        report.warnings.append("Some logs are compressed in a way that is not read: unpack them, or use .gz.")
    settings = settings_of(
        setup.ids, setup.people, setup.catalogue, setup.aliases, setup.rules, now=micros(now), retired=retired
    )
    reading = Reading(settings, setup.ids, setup.catalogue)
    seen = read_found(store, found, reading, setup.ids, report, _week(now), progress=progress, workers=workers)
    _gone(store, report, seen, micros(now))
    store.set_fact("last_run", str(micros(now)))
    report.unmapped = any(one.source in MACHINE_SOURCES and person is None for one, person in owned)
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
        gaps = [
            _gap("retention_cut", hashlib.sha256(last.encode() + (person or b"")).digest()[:16], now, int(last), person)
            for person in sorted(machines, key=lambda one: one or b"") or [None]
        ]
        with store.transaction():
            store.add_copies([copy_of(gap) for gap in gaps])


def _gone(store: Sink, report: CollectReport, seen: set[bytes], now: int) -> None:
    for cursor in list(store.cursors()):
        if cursor.file_key in seen:
            continue
        with store.transaction():
            if cursor.offset < cursor.size:
                report.vanished += 1
                store.add_copies([copy_of(_gap("files_missing", cursor.file_key, now))])
            store.drop_cursor(cursor.file_key)


def _gap(what: str, key: bytes, now: int, since: int | None = None, person: bytes | None = None) -> Gap:
    return Gap(
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


def _quarter(now: datetime) -> str:
    return f"{now.year}-Q{(now.month - 1) // 3 + 1}"


def _week(now: datetime) -> str:
    year, week, _ = now.astimezone(UTC).isocalendar()
    return f"{year}-W{week:02d}"
