# SPDX-License-Identifier: Apache-2.0
"""The coordinator's database, files, log and memory never hold a member's vector, true or noisy.

Each member's vector has marks in it. After a whole round they are looked for in every form a program could keep them
in: text, JSON, packed numbers of any width, and elements of the field. The search itself is tested first.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from log_witnesses import folders
from small_federation import ROUND, SmallFederation, open_now, own_vector
from windvane_client.https import HttpsCourier
from windvane_privacy import field
from windvane_privacy.manifest import Manifest

RUN = 4
"""Consecutive entries that count as a find: no chance match in random bytes, and any stored vector has many."""
MARKS = ([917, -1153, 1031, -1277], [-1201, 1117, -953, 1229])
"""What every member's vector holds, at its start and in its middle; no sum of several members does."""


def marked(manifest: Manifest, number: int) -> list[int]:
    """A member's vector with both marks in it, inside the bounds of one member."""
    vector = own_vector(manifest, number)
    vector[:RUN] = MARKS[0]
    middle = manifest.length // 2
    vector[middle : middle + RUN] = MARKS[1]
    return vector


def forms(part: list[int]) -> set[bytes]:
    """Ways in which four entries of a vector can lie in memory or on disk."""
    kinds = ("<i2", "<i4", "<i8", ">i2", ">i4", ">i8", "<f8", "<f4")
    found = {np.array(part).astype(kind).tobytes() for kind in kinds}
    elements = field.encode_signed(part)
    found |= {elements.astype("<u8").tobytes(), elements.astype(">u8").tobytes()}
    return found | {sep.join(map(str, part)).encode() for sep in (",", ", ", " ", "\n", "\t")}


def finds(content: bytes) -> int:
    """How many marks are in the content, in any form."""
    return sum(content.count(form) for mark in MARKS for form in forms(mark))


def test_the_search_finds_a_vector_in_every_form(manifest: Manifest) -> None:
    vector = marked(manifest, 7)
    hidden = [
        json.dumps(vector).encode(),
        " ".join(map(str, vector)).encode(),
        np.array(vector, dtype=np.int64).tobytes(),
        np.array(vector, dtype=">i4").tobytes(),
        field.encode_signed(vector).tobytes(),
    ]
    assert all(finds(os.urandom(999) + content + os.urandom(99)) == 2 for content in hidden)
    assert finds(os.urandom(1 << 20)) == 0


def test_no_file_of_the_coordinator_holds_a_vector_after_a_whole_round(
    small: SmallFederation, manifest: Manifest
) -> None:
    for number in range(1, 21):
        small.submit(manifest, number, marked(manifest, number))
    small.coordinator.close_round(ROUND)
    small.nonces()
    small.results()
    small.coordinator.tally(ROUND)
    small.coordinator.publish(ROUND)
    files = [path for path in small.state.rglob("*") if path.is_file()]
    assert {"coordinator.db", "report.json"} <= {path.name for path in files}
    assert {path.name: finds(path.read_bytes()) for path in files if finds(path.read_bytes())} == {}


class Served:
    """A coordinator in a process of its own."""

    def __init__(self, state: Path, witnesses: list[Path]) -> None:
        command = [sys.executable, "-c", "from windvane.main import run; run()"]
        arguments = ["coordinator", "run", "--state", str(state), "--port", "0", "--json"]
        arguments += [part for folder in witnesses for part in ("--witness", str(folder))]
        self.process = subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert self.process.stdout is not None
        self.address = json.loads(self.process.stdout.readline())["address"]

    def memory(self) -> bytes:
        """Every readable byte of the process."""
        regions = []
        with (
            Path(f"/proc/{self.process.pid}/maps").open() as maps,
            Path(f"/proc/{self.process.pid}/mem").open("rb") as mem,
        ):
            for line in maps:
                span, rights = line.split()[:2]
                if not rights.startswith("rw"):
                    continue
                start, end = (int(text, 16) for text in span.split("-"))
                try:
                    mem.seek(start)
                    regions.append(mem.read(end - start))
                except (OSError, ValueError, OverflowError):
                    continue
        return b"".join(regions)

    def stop(self) -> bytes:
        self.process.send_signal(signal.SIGTERM)
        _out, log = self.process.communicate(timeout=30)
        return log


@pytest.mark.process
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_the_running_coordinator_s_memory_holds_no_vector(small: SmallFederation) -> None:
    manifest = open_now(small)
    served = Served(small.state, folders(small.folder / "witnesses", small.coordinator.federation))
    try:
        with HttpsCourier(served.address) as courier:
            small.courier = courier
            for number in range(1, 21):
                small.submit(manifest, number, marked(manifest, number))
            content = served.memory()
        # The copy does show what the process holds: the log's own name, and its key.
        assert small.coordinator.federation.log_origin.encode() in content
        assert small.coordinator.federation.coordinator.encode() in content
        assert finds(content) == 0
        log = served.stop()
        assert finds(log) == 0
        assert log.count(b'"event":"request"') == 40
    finally:
        if served.process.poll() is None:
            served.process.kill()
            served.process.communicate()
