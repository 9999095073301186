# SPDX-License-Identifier: Apache-2.0
"""The other end of `file_workers`: a process that reads the log files that its parent names, and nothing else.

Rules kept here:
* two pipes and no more: tasks come on standard input, copies and counts go to standard output; no socket is opened,
  no file is written, no word is printed;
* it ends when its parent does: a pipe that is closed ends it, also in the middle of a file;
* keys and people's ids come over the pipe, never in an argument or a variable of the environment.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, Final

import msgspec

from windvane_client.file_reading import Batch, Done, Reading, Settings, Task, Unread

LENGTH: Final = 4
READY, COPIES, DONE, UNREAD = b"r", b"c", b"d", b"u"
"""First byte of a message to the parent: ready for tasks, copies of the file, its end, or it cannot be read."""
_encode = msgspec.msgpack.Encoder().encode
_BATCH: Final = msgspec.msgpack.Decoder(Batch)
_DONE: Final = msgspec.msgpack.Decoder(Done)


_CONTAINERS: Final = 50_000
"""So many more containers than before start a search for cycles (Python: 700)."""


@contextmanager
def few_collections() -> Iterator[None]:
    """Python looks for unreachable cycles rarely: reading makes none, and looking took a tenth of the time."""
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], _CONTAINERS) if before[0] else 0, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def framed(message: bytes) -> bytes:
    """A message with its length before it."""
    return len(message).to_bytes(LENGTH, "big") + message


def read_frame(stream: BinaryIO) -> bytes | None:
    """The next message; None where the stream has ended."""
    head = stream.read(LENGTH)
    if len(head) < LENGTH:
        return None
    size = int.from_bytes(head, "big")
    message = stream.read(size)
    return message if len(message) == size else None


def message_of(value: Settings | Task) -> bytes:
    """Settings or a task as a framed message."""
    return framed(_encode(value))


def batch_of(message: bytes) -> Batch:
    """The copies of a message that begins with `COPIES`."""
    return _BATCH.decode(memoryview(message)[1:])


def done_of(message: bytes) -> Done:
    """The end of a message that begins with `DONE`."""
    return _DONE.decode(memoryview(message)[1:])


def serve(tasks: BinaryIO, answers: BinaryIO) -> None:
    """Read the settings, then one file for each task, until there are no more."""
    first = read_frame(tasks)
    if first is None:
        return
    reading = Reading(msgspec.msgpack.decode(first, type=Settings))
    answers.write(framed(READY))
    answers.flush()
    while (message := read_frame(tasks)) is not None:
        for answer in _answers(reading, msgspec.msgpack.decode(message, type=Task)):
            answers.write(framed(answer))
            answers.flush()


def _answers(reading: Reading, task: Task) -> Iterator[bytes]:
    file = reading.file(task)
    try:
        for batch in file.batches():
            yield COPIES + _encode(batch)
    except Unread:
        yield UNREAD
    else:
        yield DONE + _encode(file.done)


def main() -> None:
    """Serves standard input and output."""
    # Ctrl-C reaches every process of the terminal; the parent decides, and closes the pipes.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with few_collections():
            serve(sys.stdin.buffer, sys.stdout.buffer)
        sys.stdout.flush()
    except BrokenPipeError:
        os._exit(1)  # nobody listens any more: not even a flush at exit may complain


if __name__ == "__main__":
    main()
