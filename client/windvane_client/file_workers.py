# SPDX-License-Identifier: Apache-2.0
"""Many log files are read by several processes at once; their copies come back in the order of the files.

Rules kept here:
* what comes back is what one process would give, file by file, in the same order: the store cannot tell the difference;
* this process reads too, whenever a worker still has the file whose turn it is; where there is little to read, it reads
  alone: starting others would cost more than it saves;
* what is held back, because an earlier file is still being read, is bounded: whoever is too far ahead waits;
* a worker that dies loses the file that it was reading, which counts as unreadable, and no other;
* workers get two pipes each, no socket, and end with this process.
"""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Final

import windvane_client
import windvane_privacy
from windvane_client.file_reading import Batch, Done, FileRead, OwnFile, Reading, Task, Unread
from windvane_client.file_worker import COPIES, DONE, LENGTH, READY, batch_of, done_of, few_collections, message_of

WORTH_BYTES: Final = 60_000_000
"""Less than this is read by this process alone: it takes a second, and starting a worker a fifth."""
_TELEMETRY: Final = 10
"""A byte of telemetry is as much work as so many bytes of a transcript."""
MOST: Final = 8
AHEAD_BYTES: Final = 4 << 20
"""A worker has about so much to read at hand, so that it never waits; nobody can take more off it at the end."""
_TOLD_BYTES: Final = 8 << 10
"""Most that the paths of a worker's tasks take: they fit into its pipe, so telling it never waits for its reading."""
MOST_WAITING: Final = 512
HELD_BYTES: Final = 8 << 20
"""Most that is held of files whose turn has not come."""
_COPY_BYTES: Final = 400
"""What one copy takes in this process, about."""
_PIPE_BYTES: Final = 1 << 20
_SET_PIPE_SIZE: Final = 1031
"""F_SETPIPE_SZ of Linux, which Python names only there."""


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def read_files(
    reading: Reading, tasks: Iterable[Task], *, workers: int | None = None
) -> Generator[FileRead, None, None]:
    """The files of the tasks in their order, each to be read to its end before the next is asked for.

    `workers`: how many processes besides this one, 0 for none; None: so many that with this one each core has its own,
    where there is enough to read. Tasks are taken from `tasks` some way ahead.
    """
    with few_collections():
        yield from _read_files(reading, iter(tasks), workers)


def _read_files(reading: Reading, tasks: Iterator[Task], workers: int | None) -> Generator[FileRead, None, None]:
    first: list[Task] = []
    wanted = min(cores(), MOST) - 1 if workers is None else workers
    if wanted > 0 and os.name == "posix":
        size = 0
        for task in tasks:
            first.append(task)
            size += task.size * (_TELEMETRY if task.source.startswith("otlp") else 1)
            if len(first) > 1 and (size >= WORTH_BYTES or workers is not None):
                team = _Team(reading, chain(first, tasks))
                try:
                    yield from team.files(wanted)
                finally:
                    team.end()
                return
    for task in chain(first, tasks):
        yield reading.file(task)


@dataclass(slots=True, eq=False)
class _Pending:
    """A file whose turn has not come, or has just come; satisfies `FileRead` then."""

    task: Task
    team: _Team
    worker: _Worker | None = None
    """Who reads it; None: this process."""
    told: deque[bytes | Batch] = field(default_factory=deque)
    """What has been read of it, in order: messages of a worker, or batches of this process."""
    ended: Done | None = None
    lost: bool = False
    dropped: bool = False
    _own: OwnFile | None = None
    _batches: Generator[Batch, None, None] | None = None

    @property
    def done(self) -> Done:
        if self.ended is None:
            raise Unread
        return self.ended

    def batches(self) -> Iterator[Batch]:
        while True:
            while self.told:
                one = self.told.popleft()
                self.team.held -= _weight(one)
                if isinstance(one, Batch):
                    yield one
                elif one[:1] == COPIES:
                    yield batch_of(one)
                elif one[:1] == DONE:
                    self.ended = done_of(one)
                else:
                    raise Unread
            if self.lost:
                raise Unread
            if self.ended is not None:
                return
            if self.worker is None:
                self.read_on()
                self.team.attend()
            else:
                self.team.wait(self.worker)

    def read_on(self) -> None:
        """One more batch, by this process; afterwards the file may be at its end, or lost."""
        if self._own is None or self._batches is None:
            self._own = self.team.reading.file(self.task)
            self._batches = self._own.batches()
        try:
            batch = next(self._batches, None)
        except Unread:
            self.lost = True
            return
        if batch is None:
            self.ended = self._own.done
        else:
            self.tell(batch)

    def tell(self, one: bytes | Batch) -> None:
        """Something was read of it."""
        if self.dropped:
            return
        self.told.append(one)
        self.team.held += _weight(one)

    def drop(self) -> None:
        """Nobody wants more of it."""
        self.dropped = True
        while self.told:
            self.team.held -= _weight(self.told.popleft())
        if self._batches is not None:
            self._batches.close()


def _weight(one: bytes | Batch) -> int:
    """About how many bytes of memory are held."""
    return len(one) if isinstance(one, bytes) else _COPY_BYTES * len(one.copies)


class _Worker:
    """One process, the pipes to it, and the files that it has been given, in order."""

    def __init__(self, settings: bytes) -> None:
        # The same code as here, wherever it lies; -P: never what lies in the current folder.
        own = {str(Path(str(module.__file__)).parents[1]) for module in (windvane_client, windvane_privacy)}
        known = os.environ.get("PYTHONPATH")
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([*sorted(own), *([known] if known else [])])}
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "windvane_client.file_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            bufsize=0,
        )
        self.files: deque[_Pending] = deque()
        self.ready = self.dead = False
        self._raw = bytearray()
        if self._process.stdin is None or self._process.stdout is None:
            raise OSError
        self._stdin, self.stdout = self._process.stdin, self._process.stdout
        if sys.platform == "linux":
            import fcntl

            with suppress(OSError):
                fcntl.fcntl(self.stdout.fileno(), _SET_PIPE_SIZE, _PIPE_BYTES)
        self._send(settings)

    @property
    def pid(self) -> int:
        return self._process.pid

    def _send(self, message: bytes) -> None:
        left = memoryview(message)
        with suppress(BrokenPipeError):  # it died: noticed where it is listened to
            while left:
                left = left[self._stdin.write(left) :]

    def load(self) -> int:
        """Bytes of the files that it has been given and that are not read to their end."""
        return sum(file.task.size for file in self.files)

    @property
    def hungry(self) -> bool:
        """It has little to read, so that it would soon wait; what it was told fits into its pipe in any case."""
        return not self.files or (
            self.load() < AHEAD_BYTES and sum(len(file.task.path) for file in self.files) < _TOLD_BYTES
        )

    def give(self, file: _Pending) -> None:
        """One more file to read."""
        file.worker = self
        self.files.append(file)
        self._send(message_of(file.task))

    def hear(self) -> list[bytes]:
        """The messages that have arrived; waits for some bytes. A worker that died says nothing any more."""
        data = os.read(self.stdout.fileno(), _PIPE_BYTES)
        self.dead = not data
        raw, messages, at = self._raw, [], 0
        raw += data
        while at + LENGTH <= len(raw):
            end = at + LENGTH + int.from_bytes(raw[at : at + LENGTH], "big")
            if end > len(raw):
                break
            messages.append(bytes(raw[at + LENGTH : end]))
            at = end
        del raw[:at]
        return messages

    def end(self) -> None:
        """Nobody needs it any more."""
        with suppress(OSError):
            self._stdin.close()
        self._process.kill()
        self.stdout.close()
        self._process.wait()


class _Team:
    """This process and the workers of one run."""

    def __init__(self, reading: Reading, tasks: Iterator[Task]) -> None:
        self.reading = reading
        self._tasks = tasks
        self._waiting: deque[_Pending] = deque()
        self._workers: list[_Worker] = []
        self._selector = selectors.DefaultSelector()
        self._ahead: _Pending | None = None
        """What this process reads while it waits for a worker's file."""
        self.held = 0

    def files(self, count: int) -> Iterator[FileRead]:
        """See `read_files`."""
        settings = message_of(self.reading.settings)
        for _ in range(count):
            with suppress(OSError):
                worker = _Worker(settings)
                self._workers.append(worker)
                self._selector.register(worker.stdout, selectors.EVENT_READ, worker)
        self._hand_out()
        while self._waiting or self._take() is not None:
            file = self._waiting.popleft()
            try:
                yield file
            finally:
                file.drop()
            self._hand_out()

    def _take(self) -> _Pending | None:
        """The next file, for this process unless it is given to a worker; None where there is none."""
        if len(self._waiting) >= MOST_WAITING or (task := next(self._tasks, None)) is None:
            return None
        file = _Pending(task, self)
        self._waiting.append(file)
        return file

    def _hand_out(self) -> None:
        """Give files to workers that will soon have none."""
        while self._workers:
            worker = min(self._workers, key=_Worker.load)
            if not worker.hungry or (file := self._take()) is None:
                return
            worker.give(file)

    def attend(self) -> None:
        """Take what workers have said by now, and give them more to do."""
        if self._workers:
            for key, _ in self._selector.select(0):
                self._hear(key.data)
            self._hand_out()

    def wait(self, worker: _Worker) -> None:
        """Nothing is there of this worker's file: read ahead as long as little is held, then wait for it."""
        if self.held >= HELD_BYTES:
            self._hear(worker)
        elif self._read_ahead():
            self.attend()
        else:
            for key, _ in self._selector.select():
                self._hear(key.data)

    def _read_ahead(self) -> bool:
        """Read one more batch of a file that no worker has; False where there is none."""
        file = self._ahead
        if file is None or file.lost or file.ended is not None:
            file = self._ahead = self._take()
        if file is None:
            return False
        file.read_on()
        return True

    def _hear(self, worker: _Worker) -> None:
        if worker.dead:
            return
        for message in worker.hear():
            if message == READY:
                worker.ready = True
                continue
            worker.files[0].tell(message)
            if message[:1] != COPIES:
                worker.files.popleft()
        if worker.dead:
            self._mourn(worker)
        self._hand_out()

    def _mourn(self, worker: _Worker) -> None:
        """A worker died: the file in its hands is lost, the others are read by those that live."""
        self._selector.unregister(worker.stdout)
        self._workers.remove(worker)
        worker.end()
        if worker.files and worker.ready:
            worker.files.popleft().lost = True
        for file in worker.files:
            file.worker = None
            if self._workers:
                min(self._workers, key=_Worker.load).give(file)
        worker.files.clear()

    def end(self) -> None:
        """End every worker, and close what this process reads."""
        for worker in self._workers:
            worker.end()
        for file in self._waiting:
            file.drop()
        self._selector.close()
