# SPDX-License-Identifier: Apache-2.0
"""Several processes read many files: the same rows in the same order as one, whatever happens to a worker."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from conftest import not_run
from preview_homes import NOW, write_big_home
from windvane_client import file_workers
from windvane_client.catalogue_builtin import builtin_catalogue
from windvane_client.collect import CollectSetup, read_logs
from windvane_client.collect_files import CollectReport
from windvane_client.evidence import micros
from windvane_client.file_reading import OwnFile, Reading, Settings, Task, Unread, settings_of
from windvane_client.file_workers import read_files
from windvane_client.ids import FirstStepIds, KeyedIds, ids_of
from windvane_client.people import People
from windvane_client.preview import Sample, plan_source, read
from windvane_client.preview_setup import Setup
from windvane_client.readers.lines import UNREADABLE
from windvane_client.rules import parse_rules
from windvane_client.settings import LogFolder
from windvane_client.store import EventStore

pytestmark = pytest.mark.process
KEY = bytes(range(32))
SETUP = Setup(KEY, People.me(), parse_rules('[tools]\nNeutral = "run"\n'), builtin_catalogue())


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Some transcripts, their ends cut off, and a damaged archive."""
    folder = tmp_path / "home"
    write_big_home(folder, 1)
    project = next(folder.rglob("*.jsonl")).parent
    whole = sorted(folder.rglob("*.jsonl"))[0].read_bytes()
    step = len(whole) // 12
    for number in range(12):
        (project / f"part-{number:02d}.jsonl").write_bytes(whole[number * step : (number + 1) * step])
    (project / "a-damaged.jsonl.gz").write_bytes(b"\x1f\x8b\x08\x00 no gzip file")
    return folder


def settings() -> Settings:
    return settings_of(
        SETUP.ids, SETUP.people, SETUP.catalogue, SETUP.aliases, SETUP.rules, now=micros(NOW), final=True
    )


def tasks(home: Path) -> Iterator[Task]:
    for path in sorted(home.rglob("*.jsonl*")):
        yield Task(os.fsencode(path), "claude_code", b"p" * 16, 0, path.stat().st_size)
    yield Task(os.fsencode(home / "gone.jsonl"), "claude_code", b"p" * 16, 0, 9)


def outcome(home: Path, workers: int) -> list[object]:
    """All that reading gives, file by file."""
    found: list[object] = []
    for file in read_files(Reading(settings()), tasks(home), workers=workers):
        try:
            copies = [copy for batch in file.batches() for copy in batch.copies]
        except Unread:
            found.append("unread")
        else:
            found.append((copies, file.done))
    return found


def test_any_number_of_workers_gives_what_one_process_gives(home: Path) -> None:
    alone = outcome(home, 0)
    assert len(alone) > 12
    assert alone.count("unread") == 1
    assert outcome(home, 1) == outcome(home, 2) == alone


def previewed(home: Path, workers: int) -> tuple[list[object], Sample]:
    sample = plan_source("claude_code", [home], SETUP)
    with EventStore.temporary() as store:
        read([sample], store, SETUP, now=NOW, workers=workers)
        return list(store._db.execute("SELECT rowid, * FROM copies ORDER BY rowid")), sample


def test_a_preview_holds_the_same_rows_with_and_without_workers(home: Path) -> None:
    rows, sample = previewed(home, 0)
    assert rows
    assert previewed(home, 2) == (rows, sample)
    assert sample.rows.reasons[UNREADABLE] == 1


def collected(home: Path, store_path: Path, workers: int) -> tuple[list[object], list[object], CollectReport]:
    people = People.me()
    setup = CollectSetup(
        [LogFolder(str(home), "claude_code")], people, KeyedIds(KEY, people), SETUP.catalogue, {}, SETUP.rules
    )
    with EventStore.open(store_path) as store:
        report = read_logs(store, setup, NOW, workers=workers)
        copies = list(store._db.execute("SELECT rowid, * FROM copies ORDER BY rowid"))
        return copies, list(store.cursors()), report


def test_collecting_stores_the_same_rows_cursors_and_counts(home: Path, tmp_path: Path) -> None:
    alone = collected(home, tmp_path / "one.db", 0)
    assert alone[0]
    assert alone[2].rows.reasons[UNREADABLE] == 1
    assert collected(home, tmp_path / "two.db", 2) == alone


def test_a_worker_that_dies_loses_one_file_and_no_other(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = outcome(home, 0)
    started: list[file_workers._Worker] = []
    begin = file_workers._Worker.__init__

    def remembered(worker: file_workers._Worker, told: bytes) -> None:
        begin(worker, told)
        started.append(worker)

    monkeypatch.setattr(file_workers._Worker, "__init__", remembered)
    found: list[object] = []
    for number, file in enumerate(read_files(Reading(settings()), tasks(home), workers=2)):
        if number == 3:
            for worker in started:
                os.kill(worker.pid, signal.SIGKILL)
        try:
            copies = [copy for batch in file.batches() for copy in batch.copies]
            found.append((copies, file.done))
        except Unread:
            found.append("unread")
    assert len(found) == len(alone)
    different = [number for number, (one, other) in enumerate(zip(alone, found, strict=True)) if one != other]
    # Each of the two lost at most the file in its hands, and the rest was read by this process.
    assert len(different) <= 2
    assert all(found[number] == "unread" for number in different)


def test_workers_that_cannot_start_leave_the_work_to_this_process(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = outcome(home, 0)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert outcome(home, 2) == alone


def test_little_is_read_without_starting_anything(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_workers, "cores", lambda: 8)
    monkeypatch.setattr(file_workers, "_Team", None)
    assert sum(1 for _ in read_files(Reading(settings()), tasks(home))) > 12


def test_a_worker_has_no_socket_and_ends_with_its_parent(home: Path) -> None:
    if not Path("/proc/self/fd").exists():
        not_run("this system does not show a process's open files", "run it on Linux")
    program = (
        "import sys, os, json, pathlib\n"
        "sys.path[:0] = json.loads(sys.argv[1])\n"
        "from client.test_file_workers import Reading, read_files, settings, tasks\n"
        "files = read_files(Reading(settings()), tasks(pathlib.Path(sys.argv[2])), workers=2)\n"
        "next(next(files).batches())\n"
        "print('reading', flush=True)\n"
        "sys.stdin.read()\n"
        "os._exit(0)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, json.dumps(sys.path), str(home)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        assert parent.stdout.readline() == "reading\n"
        children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
        assert len(children) == 2
        for child in children:
            opened = [str(one.readlink()) for one in Path(f"/proc/{child}/fd").iterdir()]
            assert not [one for one in opened if one.startswith("socket:")]
            assert sum(one.startswith("pipe:") for one in opened) == 2
        parent.stdin.close()
    ended = time.monotonic() + 20
    while any(Path(f"/proc/{child}/cmdline").exists() for child in children):
        assert time.monotonic() < ended, "a worker outlived its parent"
        time.sleep(0.05)


@pytest.mark.parametrize("number", [None, 1, 3])
def test_ids_of_another_process_are_the_same(number: int | None) -> None:
    people = People(machine="x", email_local_part=True)
    ids = FirstStepIds(KEY, people) if number is None else KeyedIds(KEY, people, number=number)
    again = ids_of(ids.made_of, people)
    assert type(again) is type(ids)
    assert again.key("a", "b") == ids.key("a", "b")
    assert again.machine() == ids.machine() is not None


class _Counted(Reading):
    """Counts the files that this process reads itself."""

    own = 0

    def file(self, task: Task) -> OwnFile:
        self.own += 1
        return super().file(task)


@pytest.mark.parametrize("held", [file_workers.HELD_BYTES, 0])
def test_this_process_reads_what_no_worker_has_and_holds_it_for_its_turn(
    home: Path, monkeypatch: pytest.MonkeyPatch, held: int
) -> None:
    alone = outcome(home, 0)
    monkeypatch.setattr(file_workers, "AHEAD_BYTES", 1)  # a worker has one file and no more
    monkeypatch.setattr(file_workers, "HELD_BYTES", held)
    reading = _Counted(settings())
    found: list[object] = []
    for file in read_files(reading, tasks(home), workers=1):
        try:
            found.append(([copy for batch in file.batches() for copy in batch.copies], file.done))
        except Unread:
            found.append("unread")
    assert found == alone
    # It waits for the first file, which the worker has; with nothing to be held it reads none meanwhile.
    assert (reading.own > 0) is (held > 0)
    assert reading.own < len(alone)


def test_what_is_held_is_let_go_with_every_file(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_workers, "AHEAD_BYTES", 1)
    team = file_workers._Team(Reading(settings()), tasks(home))
    try:
        for number, file in enumerate(team.files(1)):
            if number % 2:  # every other one is left in the middle
                with suppress(Unread):
                    list(file.batches())
        assert team.held == 0
    finally:
        team.end()


def test_python_searches_for_cycles_as_before_once_all_is_read(home: Path) -> None:
    before = gc.get_threshold()
    files = read_files(Reading(settings()), tasks(home), workers=0)
    next(files)
    assert gc.get_threshold()[0] > before[0]
    files.close()
    assert gc.get_threshold() == before
