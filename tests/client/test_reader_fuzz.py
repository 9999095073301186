# SPDX-License-Identifier: Apache-2.0
"""Each reader survives damaged logs, counts what it refuses, and loses no good row beside it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from conftest import ROOT
from reader_fuzz import SOURCES, Fuzzer

ALL = 1_000_000
"""Cases of each reader; they are numbered, and a number is always the same damage."""
QUICK = 300
PARTS = 50


def samples() -> Path | None:
    folder = Path(os.environ.get("WINDVANE_SHARED", ROOT.parent / "shared")) / "samples"
    return folder if folder.is_dir() else None


def cases() -> range:
    """The part of WINDVANE_SLICE=n/m (1/1: all), else one of fifty parts, another one with every change of a reader."""
    stated = os.environ.get("WINDVANE_SLICE", "")
    if stated:
        part, parts = map(int, stated.split("/"))
    else:
        readers = sorted((ROOT / "client" / "windvane_client" / "readers").glob("*.py"))
        digest = hashlib.sha256(b"".join(path.read_bytes() for path in readers)).digest()
        part, parts = int.from_bytes(digest[:8], "big") % PARTS + 1, PARTS
    assert 1 <= part <= parts, "WINDVANE_SLICE is n/m with n from 1 to m"
    return range(ALL * (part - 1) // parts, ALL * part // parts)


def problems(source: str, numbers: range, folder: Path | None) -> tuple[dict[int, str], int]:
    found: dict[int, str] = {}
    fuzzer = Fuzzer(source, folder)
    for number in numbers:
        problem = fuzzer.problem(number)
        if problem is not None:
            found[number] = problem
            if len(found) == 20:
                break
    return found, fuzzer.strict


@pytest.mark.parametrize("source", SOURCES)
def test_damaged_logs_are_counted_and_cost_no_good_row(source: str) -> None:
    found, strict = problems(source, range(QUICK), None)
    assert found == {}
    # Often enough every damaged row was refused, so that nothing but the good events was right.
    assert strict > QUICK // 10


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES)
def test_a_million_damaged_logs_are_counted_and_cost_no_good_row(source: str) -> None:
    numbers = cases()
    found, _ = problems(source, numbers, samples())
    assert found == {}
    print(f"{source}: {len(numbers)} cases, {numbers.start} to {numbers.stop - 1}, no failure")
