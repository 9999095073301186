# SPDX-License-Identifier: Apache-2.0
"""A preview needs the same memory for a small home and for a large one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import not_run
from preview_homes import NOW, write_big_home

PROGRAM = """
import sys
from windvane.main import run
run(["member", "preview", "--now", sys.argv[1]])
peak = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")]
print("peak:", peak[0], file=sys.stderr)
"""


def peak_megabytes(home: Path) -> float:
    """Largest resident memory of one preview of a home, in its own process."""
    if not Path("/proc/self/status").exists():
        not_run("this system does not tell a process's peak memory", "run it on Linux")
    environment = {k: v for k, v in os.environ.items() if k != "CLAUDE_CONFIG_DIR"} | {"HOME": str(home)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, NOW.strftime("%Y-%m-%dT%H:%M:%SZ")],
        cwd=home,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "claude_code" in done.stdout
    return int(done.stderr.strip().splitlines()[-1].removeprefix("peak: ")) / 1024


def growth(tmp_path: Path, megabytes: int) -> tuple[float, float]:
    """(peak for the large home, how much more than for a home of 4 MB)."""
    write_big_home(tmp_path / "small", 4)
    written = write_big_home(tmp_path / "large", megabytes)
    assert written >= megabytes << 20
    small, large = peak_megabytes(tmp_path / "small"), peak_megabytes(tmp_path / "large")
    return large, large - small


@pytest.mark.process
def test_forty_megabytes_need_little_more_memory_than_four(tmp_path: Path) -> None:
    large, more = growth(tmp_path, 40)
    assert more < 24, more
    assert large < 150, large


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.timeout(900)
def test_five_hundred_megabytes_need_little_more_memory_than_four(tmp_path: Path) -> None:
    # What grows is about 2 kB for each piece of work, which the page lists; nothing grows with the bytes.
    large, more = growth(tmp_path, 500)
    assert more < 96, more
    assert large < 180, large
