# SPDX-License-Identifier: Apache-2.0
"""A member as a process of its own whose system calls fail or kill it, one chosen call at a time.

Rules kept here:
* the kernel's calls are real: strace attaches to the process and makes exactly one of them, or all from one on, fail;
* the coordinator answers from the process of the test, over a socket: what leaves the member is seen there;
* only calls that change what is on the disk are counted, and only of files below the member's folders.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import signal
import socket
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from windvane_privacy.couriers import Parcel
from windvane_privacy.errors import WindvaneError

DURABLE = ("pwrite64", "write", "fsync", "fdatasync", "unlink", "rename", "ftruncate", "mkdir", "fchmod")
ACCEPTED, REFUSED, TRACEBACK = 0, 3, 4
_SET_PTRACER, _ANY = 0x59616D61, ctypes.c_ulong(-1)


def strace() -> str | None:
    return shutil.which("strace")


@dataclass(frozen=True)
class Fault:
    """`call` number `number` of the process: killed in it, or failing with an error, once or from then on."""

    call: str
    number: int
    how: str  # KILL, EIO or ENOSPC
    lasting: bool = False

    @property
    def option(self) -> str:
        what = "signal=KILL" if self.how == "KILL" else f"error={self.how}"
        return f"inject={self.call}:{what}:when={self.number}{'+' if self.lasting else ''}"


class SocketCourier:
    """The member's end: one request, one answer; refusals keep their names."""

    def __init__(self, end: socket.socket) -> None:
        self._file = end.makefile("rwb")

    def exchange(self, parcel: Parcel) -> bytes:
        # A socket is written with sendto(2), which is not among the counted calls.
        head = json.dumps([parcel.kind, parcel.round_id, len(parcel.body)]).encode() + b"\n"
        self._file.write(head + parcel.body)
        self._file.flush()
        kind, size = json.loads(self._file.readline())
        body = self._file.read(size)
        if kind:
            raise next(one for one in _all_errors() if one.__name__ == kind)(body.decode())
        return body


def _all_errors() -> list[type[WindvaneError]]:
    found = [WindvaneError]
    for one in found:
        found.extend(one.__subclasses__())
    return found


def serve(end: socket.socket, answer: Callable[[Parcel], bytes]) -> None:
    """Answer until the member is gone."""
    with end.makefile("rwb") as file:
        while line := file.readline():
            kind, round_id, size = json.loads(line)
            body = file.read(size)
            if len(body) < size:
                return
            try:
                name, reply = "", answer(Parcel(kind, round_id, body))
            except WindvaneError as error:
                name, reply = type(error).__name__, str(error.args[0] if error.args else "").encode()
            try:
                file.write(json.dumps([name, len(reply)]).encode() + b"\n" + reply)
                file.flush()
            except BrokenPipeError:
                return


def run(
    member: Callable[[SocketCourier], int], answer: Callable[[Parcel], bytes], fault: Fault | None, log: Path
) -> tuple[int, Counter[str]]:
    """Run the member with a fault; its exit code (negative: a signal) and how often it made each counted call."""
    ours, theirs = socket.socketpair()
    child = os.fork()
    if not child:
        _be_the_member(member, ours, theirs)
    theirs.close()
    command = [str(strace()), "-f", "-p", str(child), "-o", str(log), "-e", f"trace={','.join(DURABLE)}"]
    if fault is not None:
        command += ["-e", fault.option]
    tracer = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert tracer.stderr is not None
        line = tracer.stderr.readline()
        assert "attached" in line, line
        ours.sendall(b"\n")
        serve(ours, answer)
    finally:
        ours.close()
        if tracer.poll() is None and "attached" not in line:
            os.kill(child, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        tracer.communicate()
    return code, Counter(re.findall(r"^\d+ +(\w+)\(", log.read_text(encoding="utf-8", errors="replace"), re.MULTILINE))


def _be_the_member(member: Callable[[SocketCourier], int], ours: socket.socket, theirs: socket.socket) -> None:
    code = TRACEBACK
    try:
        ours.close()
        ctypes.CDLL(None).prctl(_SET_PTRACER, _ANY, 0, 0, 0)
        theirs.recv(1)
        code = member(SocketCourier(theirs))
    except WindvaneError:
        code = REFUSED
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        # Nothing of the test process may be run or flushed twice.
        os._exit(code)
