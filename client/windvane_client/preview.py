# SPDX-License-Identifier: Apache-2.0
"""Preview: what the readers see in one's own logs, and what it would count for. It needs no federation.

Rules kept here:
* nothing is written but the temporary store, no connection is opened, no noise is drawn;
* files go into the store one after the other: memory is flat in the size of the logs;
* every file is read, or refused with a reason: never silently skipped;
* while a round is open only rows are shown, no outcome, vote or cell;
* with several people, a summary of fewer than `LEAST_PEOPLE` shows no outcome.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from pathlib import Path

from windvane_client.capabilities import capability, together
from windvane_client.coverage import LEAST_PEOPLE, Coverage, take
from windvane_client.events import Rows
from windvane_client.evidence import micros
from windvane_client.file_reading import FileRead, Reading, Task, Unread, settings_of
from windvane_client.file_workers import read_files
from windvane_client.noticed import Noticed
from windvane_client.observed import ALL_TIME, Observed, summary
from windvane_client.people import staff_id_text
from windvane_client.preview_setup import Setup
from windvane_client.preview_sources import (
    LOG_SUFFIXES,
    NO_READER,
    OPTED_OUT,
    PACKED,
    UNREADABLE,
    Refusal,
    others_at_home,
    recognise,
    usual_roots,
)
from windvane_client.readers import MACHINE_SOURCES, SampleFacts, gemini_cli, reader
from windvane_client.readers.cline_files import beside_task, session_of
from windvane_client.readers.files import find_logs, packed_logs
from windvane_client.signals import Totals, read_person
from windvane_client.store import EventStore

Progress = Callable[[int, int], None]
"""Called with (bytes read, bytes to read)."""


@dataclass(slots=True)
class Sample:
    """Files of one source that are read as one: a session with its subagents, or all that one --source was given for.

    `refused`: nothing was read, and why. `person`: whose logs these are, for sources that name nobody. `gaps`: what the
    reader could not see, by word of the closed list. `packed`: files in a compression that is not
    read. `observed`, `missing`: the summing up, where it was asked for.
    """

    source: str | None
    files: list[Path]
    refused: Refusal | None = None
    person: bytes | None = None
    rows: Rows = field(default_factory=Rows)
    facts: SampleFacts = field(default_factory=lambda: SampleFacts(""))
    gaps: Counter[str] = field(default_factory=Counter)
    unreadable: int = 0
    packed: int = 0
    observed: Observed | None = None
    missing: list[str] = field(default_factory=list)


# --- which files ------------------------------------------------------------------------------------------------------


def plan_source(source: str, paths: Sequence[Path], setup: Setup) -> Sample:
    """All paths as one sample of one source."""
    person, opted_out = _owner(source, paths[0] if paths else None, setup)
    if opted_out:
        return Sample(source, [], OPTED_OUT)
    packed = packed_logs(paths)
    files = [path for path in reader(source).discover(paths) if path not in packed]
    if packed and not files:
        return Sample(source, packed, PACKED)
    return Sample(source, files, person=person, facts=SampleFacts(source), packed=len(packed))


def plan_paths(paths: Sequence[Path], setup: Setup, *, apart: bool) -> list[Sample]:
    """The logs under the paths, each file by what it is. `apart`: one sample a session or file, else one a source."""
    plan = _Plan(setup, apart)
    named = {path.resolve() for path in paths}
    for path in find_logs(paths, LOG_SUFFIXES):
        if path in named or not beside_task(path):
            plan.place(*recognise(path), path)
    return plan.samples


def plan_usual(home: Path, environment: Mapping[str, str], setup: Setup, *, apart: bool) -> list[Sample]:
    """The member's configured folders; without set-up the usual places of the home folder, or where the programs' own
    variables of the environment moved them. `apart`: as `plan_paths`."""
    plan = _Plan(setup, apart)
    if setup.is_member:
        for folder in setup.folders:
            for path in reader(folder.source).discover([Path(folder.path)]):
                plan.place(folder.source, None, path)
            for path in packed_logs([Path(folder.path)]):
                plan.place(folder.source, PACKED, path)
        return plan.samples
    for source, places in usual_roots(home, environment).items():
        for path in reader(source).discover(places):
            plan.place(source, None, path)
        for path in packed_logs(places):
            plan.place(source, PACKED, path)
    return [*plan.samples, *(Sample(name, [], NO_READER) for name in others_at_home(home))]


class _Plan:
    """Files placed into samples, in the order in which they were found."""

    def __init__(self, setup: Setup, apart: bool) -> None:
        self._setup = setup
        self._apart = apart
        self._by_group: dict[tuple[str | None, Refusal | None, bytes | None, Path | None], Sample] = {}

    @property
    def samples(self) -> list[Sample]:
        return list(self._by_group.values())

    def place(self, source: str | None, refusal: Refusal | None, path: Path) -> None:
        person = None
        if source is not None and refusal is None:
            person, opted_out = _owner(source, path, self._setup)
            refusal = OPTED_OUT if opted_out else None
        session = None
        if self._apart and refusal is not OPTED_OUT:
            session = session_of(path) if source == "cline" else path
            session = _session(path) if source == "claude_code" else session
            session = gemini_cli.session_of(path) if source == "gemini_cli" else session
        group = (source, refusal, person, session)
        sample = self._by_group.get(group)
        if sample is None:
            sample = Sample(source, [], refusal, person=person, facts=SampleFacts(source or ""))
            self._by_group[group] = sample
        if refusal is not OPTED_OUT:
            sample.files.append(path)


def _session(path: Path) -> Path:
    """A transcript and its subagents' files are one session."""
    if path.parent.name == "subagents":
        return path.parent.parent
    return path.with_name(path.name.removesuffix(".gz").removesuffix(".jsonl"))


def _owner(source: str, path: Path | None, setup: Setup) -> tuple[bytes | None, bool]:
    """(whose logs these are, whether that person opted out), for sources that name no person."""
    staff_id = None
    if path is not None:
        at = path.resolve()
        inside = [one for one in setup.folders if one.staff_id and at.is_relative_to(Path(one.path).resolve())]
        staff_id = max(inside, key=lambda one: len(one.path)).staff_id if inside else None
    if staff_id is None:
        return setup.ids.machine(), source in MACHINE_SOURCES and setup.people.machine_excluded
    return setup.ids.staff(staff_id), setup.people.is_excluded(staff_id_text(staff_id))


# --- reading ----------------------------------------------------------------------------------------------------------


def read(
    samples: Sequence[Sample],
    store: EventStore,
    setup: Setup,
    *,
    now: datetime,
    each: bool = False,
    progress: Progress | None = None,
    noticed: Noticed | None = None,
    workers: int | None = None,
) -> None:
    """Read every sample into `store` and count what its reader saw. `each`: also sum up each sample by itself;
    `noticed`: filled with what may need a person; `workers`: as for `read_files`."""
    todo = [(sample, path, _size(path)) for sample in samples if sample.refused is None for path in sample.files]
    total, done = sum(size for _, _, size in todo), 0
    ids = setup.ids
    settings = settings_of(ids, setup.people, setup.catalogue, setup.aliases, setup.rules, now=micros(now), final=True)
    tasks = (Task(os.fsencode(path), sample.source or "", sample.person, 0, size) for sample, path, size in todo)
    with closing(read_files(Reading(settings, ids, setup.catalogue), tasks, workers=workers)) as files:
        sizes = iter(todo)
        for sample in samples:
            if sample.refused is not None:
                continue
            with ExitStack() as stack:
                own = stack.enter_context(EventStore.temporary()) if each else None
                for _, _, size in islice(sizes, len(sample.files)):

                    def at(position: int, start: int = done, size: int = size) -> None:
                        if progress is not None:
                            progress(start + min(position, size), total)

                    _store_file(sample, next(files), store, own, at, noticed or Noticed())
                    done += size
                    at(size)
                if sample.files and sample.unreadable == len(sample.files):
                    sample.refused = UNREADABLE
                elif own is not None:
                    sample.observed, sample.missing = summed(own, [sample], setup, now)


def _store_file(
    sample: Sample,
    file: FileRead,
    store: EventStore,
    own: EventStore | None,
    progress: Callable[[int], None],
    noticed: Noticed,
) -> None:
    try:
        with store.transaction(), nullcontext() if own is None else own.transaction():
            for batch in file.batches():
                store.add_copies(batch.copies)
                if own is not None:
                    own.add_copies(batch.copies)
                progress(batch.position)
    except Unread:
        # Gone, or its rights changed, since it was found: counted, and the others are read.
        sample.unreadable += 1
        return
    told = file.done
    sample.rows.add(told.rows)
    sample.facts.absorb(told.facts)
    sample.gaps.update(told.gaps)
    noticed.absorb(told.noticed)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


# --- summing up -------------------------------------------------------------------------------------------------------


def summed(
    store: EventStore, samples: Sequence[Sample], setup: Setup, now: datetime, cover: Coverage | None = None
) -> tuple[Observed, list[str]]:
    """The `observed` object of the samples that were read into `store`, and the words for what could not be seen.
    `cover`: filled with what the events of each week hold."""
    used = [sample for sample in samples if sample.refused is None]
    rows = Rows()
    for sample in used:
        rows.add(sample.rows)
    gaps = gaps_of(used)
    if setup.open_round is not None:
        if cover is not None:
            for person in store.people():
                take(cover, store, person, None, catalogue=setup.catalogue, rules=setup.rules)
        return _only_rows(rows), gaps
    at, rules = micros(now), setup.rules
    people = [
        read_person(store, person, window=ALL_TIME, rules=rules, ids_key=setup.key, now=at) for person in store.people()
    ]
    if cover is not None:
        for one in people:
            take(cover, store, one.person, one, catalogue=setup.catalogue, rules=rules)
    facts = _joined_facts([sample.facts for sample in used])
    entry = together([capability(one.source, one.recorder) for one in (sample.facts for sample in used) if one.any_row])
    found = summary(people, facts, rows, catalogue=setup.catalogue, rules=rules, entry=entry)
    bases = {
        capability(one.source, one.recorder).tools for one in (sample.facts for sample in used) if one.any_tool_row
    }
    if len(bases - {None}) > 1:
        found["tools"]["basis"] = "mixed"
    if 1 < len(people) < LEAST_PEOPLE:
        _hide_outcomes(found)
    words = {word for person in people for word in person_gaps(person.totals)}
    return found, sorted({*gaps, *words, *_joined_gaps(store, facts)})


def person_gaps(totals: Totals) -> Iterator[str]:
    """What could not be seen of one person's work."""
    if totals.parent_missing:
        yield "parent_missing"
    if totals.source_silent:
        yield "source_silent"


def all_gaps(store: EventStore, samples: Sequence[Sample], people: Iterable[str]) -> list[str]:
    """What could not be seen, also what only shows when all samples are there. `people`: `person_gaps` of them all."""
    used = [sample for sample in samples if sample.refused is None]
    facts = _joined_facts([sample.facts for sample in used])
    return sorted({*gaps_of(used), *people, *_joined_gaps(store, facts)})


def _joined_gaps(store: EventStore, facts: SampleFacts) -> Iterator[str]:
    if facts.fork_parents - (facts.conversations or set()):
        yield "fork_parent_missing"
    if facts.subagents_named - facts.subagents_read:
        yield "subagent_file_missing"
    if store.shared_ids():
        yield "shared_id"


def gaps_of(samples: Sequence[Sample]) -> list[str]:
    """What the readers could not see, as words of the closed list of gaps."""
    words = {word for sample in samples for word in sample.gaps}
    if any(sample.rows.unknown for sample in samples):
        words.add("rows_unknown")
    if any(sample.unreadable or sample.packed for sample in samples):
        words.add("files_missing")
    return sorted(words)


def _joined_facts(parts: Sequence[SampleFacts]) -> SampleFacts:
    first = next((one for one in parts if one.any_row), parts[0] if parts else SampleFacts(""))
    joined = SampleFacts(first.source, recorder=first.recorder, stated_mode=first.stated_mode)
    for one in parts:
        for name in ("any_row", "any_call_row", "any_prompt_row", "any_tool_row", "any_vote_row"):
            setattr(joined, name, getattr(joined, name) or getattr(one, name))
        if one.persons is not None:
            joined.persons = (joined.persons or set()) | one.persons
        if one.conversations is not None:
            # A gateway's are counted by their requests.
            own = one.conversations if capability(one.source, one.recorder).prompts else set()
            joined.conversations = (joined.conversations or set()) | own
        joined.failures_hidden = joined.failures_hidden or one.failures_hidden
        joined.fork_parents |= one.fork_parents
        joined.subagents_named |= one.subagents_named
        joined.subagents_read |= one.subagents_read
        if one.attempts_known is not None:
            joined.saw_attempts(one.attempts_known)
    return joined


def _only_rows(rows: Rows) -> Observed:
    empty = {"answered": None, "failed": None, "side_answered": None}
    found: Observed = {"rows": {name: getattr(rows, name) for name in Rows.FIELDS}}
    found |= dict.fromkeys(("conversations", "persons", "mode", "kind"))
    found |= {"calls": empty, "prompts": {"person": None, "command": None}, "episodes": None}
    _hide_outcomes(found)
    return found


def _hide_outcomes(found: Observed) -> None:
    found |= dict.fromkeys(("completion", "infra", "blind", "outcome_rows"))
    found["switches"] = {"eligible_episodes": None, "person_made": None, "by_cause": None}
    found["tools"] = {"basis": found.get("tools", {}).get("basis"), "outcomes": None}
