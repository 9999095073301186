# SPDX-License-Identifier: Apache-2.0
"""Many log files are read by several processes at once; their copies come back in the order of the files.

Rules kept here:
* what comes back is what one process would give, file by file, in the same order: the store cannot tell the difference;
* little is read by this process itself, where starting others would cost more than it saves;
* what is held back, because an earlier file is still being read, is bounded: a worker too far ahead waits;
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
from windvane_client.file_worker import COPIES, DONE, LENGTH, READY, batch_of, done_of, message_of

WORTH_BYTES: Final = 60_000_000
"""Less than this is read by this process alone: it takes half a second, and starting a worker a quarter."""
_TELEMETRY: Final = 10
"""A byte of telemetry is as much work as so many bytes of a transcript."""
MOST: Final = 8
AHEAD: Final = 3
"""Tasks that a worker has at hand, so that it never waits for one."""
MOST_WAITING: Final = 512
HELD_BYTES: Final = 8 << 20
"""Most that is held of files whose turn has not come."""
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

    `workers`: how many processes, None for one a core where there is enough to read, 0 for none but this one. Tasks are
    taken from `tasks` some way ahead.
    """
    tasks = iter(tasks)
    first: list[Task] = []
    wanted = min(cores(), MOST) if workers is None else workers
    if wanted > (1 if workers is None else 0) and os.name == "posix":
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
    """A file that a worker has been given; satisfies `FileRead` once its turn has come."""

    task: Task
    team: _Team
    worker: _Worker
    messages: deque[bytes] = field(default_factory=deque)
    own: OwnFile | None = None
    """Set where no worker is left: this process reads it."""
    ended: Done | None = None
    lost: bool = False

    @property
    def done(self) -> Done:
        if self.own is not None:
            return self.own.done
        if self.ended is None:
            raise Unread
        return self.ended

    def batches(self) -> Iterator[Batch]:
        while True:
            while not self.messages:
                if self.lost:
                    raise Unread
                if self.own is not None:
                    yield from self.own.batches()
                    return
                self.team.listen(self.worker)
            message = self.messages.popleft()
            self.team.held -= len(message)
            kind = message[:1]
            if kind == COPIES:
                yield batch_of(message)
            elif kind == DONE:
                self.ended = done_of(message)
                return
            else:
                raise Unread


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

    def give(self, file: _Pending) -> None:
        """One more file to read."""
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
    """The workers of one run."""

    def __init__(self, reading: Reading, tasks: Iterator[Task]) -> None:
        self._reading = reading
        self._tasks = tasks
        self._waiting: deque[FileRead] = deque()
        self._workers: list[_Worker] = []
        self._selector = selectors.DefaultSelector()
        self.held = 0

    def files(self, count: int) -> Iterator[FileRead]:
        """See `read_files`."""
        settings = message_of(self._reading.settings)
        for _ in range(count):
            with suppress(OSError):
                worker = _Worker(settings)
                self._workers.append(worker)
                self._selector.register(worker.stdout, selectors.EVENT_READ, worker)
        for worker in list(self._workers):
            while not worker.ready and not worker.dead:
                self.listen(worker)
        self._hand_out()
        while self._waiting:
            file = self._waiting.popleft()
            yield file
            if isinstance(file, _Pending):
                self._forget(file)
            self._hand_out()

    def _hand_out(self) -> None:
        """Give files to workers that will soon have none; without workers this process reads the next one itself."""
        while True:
            free = min(self._workers, key=lambda one: len(one.files), default=None)
            most, given = (1, len(self._waiting)) if free is None else (AHEAD, len(free.files))
            if given >= most or len(self._waiting) >= MOST_WAITING:
                return
            task = next(self._tasks, None)
            if task is None:
                return
            if free is None:
                self._waiting.append(self._reading.file(task))
            else:
                file = _Pending(task, self, free)
                self._waiting.append(file)
                free.give(file)

    def listen(self, worker: _Worker) -> None:
        """Wait until this worker or, while little is held, any other has said something."""
        if worker.dead:
            return
        if self.held >= HELD_BYTES:
            self._hear(worker)
            return
        for key, _ in self._selector.select():
            self._hear(key.data)

    def _hear(self, worker: _Worker) -> None:
        for message in worker.hear():
            if message == READY:
                worker.ready = True
                continue
            file = worker.files[0]
            file.messages.append(message)
            self.held += len(message)
            if message[:1] != COPIES:
                worker.files.popleft()
        if worker.dead:
            self._mourn(worker)
        else:
            self._hand_out()

    def _mourn(self, worker: _Worker) -> None:
        """A worker died: the file in its hands is lost, the others go to those that live."""
        self._selector.unregister(worker.stdout)
        self._workers.remove(worker)
        worker.end()
        if worker.files and worker.ready:
            worker.files.popleft().lost = True
        for file in worker.files:
            if self._workers:
                file.worker = min(self._workers, key=lambda one: len(one.files))
                file.worker.give(file)
            else:
                file.own = self._reading.file(file.task)
        worker.files.clear()

    def _forget(self, file: _Pending) -> None:
        """The caller is done with a file, even if it did not read it to its end."""
        while file.messages:
            self.held -= len(file.messages.popleft())

    def end(self) -> None:
        """End every worker."""
        for worker in self._workers:
            worker.end()
        self._selector.close()
