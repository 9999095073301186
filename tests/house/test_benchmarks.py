# SPDX-License-Identifier: Apache-2.0
"""The benchmark of the readers does the same work with every contender, and its kept results have its shape."""

from __future__ import annotations

import importlib
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from conftest import not_run

PLACE = Path(__file__).resolve().parents[2] / "benchmarks"
MODULES = ("contenders", "home", "memory", "readers")


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(PLACE)
    yield importlib.import_module("readers")
    for name in MODULES:
        sys.modules.pop(name, None)


def test_every_way_of_reading_meets_the_same_rows(bench: ModuleType, tmp_path: Path) -> None:
    known = importlib.import_module("contenders")
    for write in (bench.write_home, bench.write_dense_home):
        folder = write(tmp_path / write.__name__, 1)
        ours = {name: known.CONTENDERS[name] for name in ("floor", *known.OURS)}
        results = bench.measure(folder, 1, ours, quiet=True)
        lines = sum(path.read_bytes().count(b"\n") for path in folder.rglob("*.jsonl"))
        assert {one.rows for one in results.values()} == {lines}
        assert results["floor"].ratio == 1.0
        facts = bench.report(folder, results)
        assert facts["rows"] == lines
        assert set(facts["contenders"]) == set(ours)


def test_duckdb_meets_the_rows_that_are_json(bench: ModuleType, tmp_path: Path) -> None:
    known = importlib.import_module("contenders")
    folder = bench.write_home(tmp_path, 1)
    try:
        rows = known.duckdb(folder)
    except known.NotRun:
        not_run("DuckDB is not installed", "install the dependency group `bench`")
    assert 0.99 * known.floor(folder) < rows <= known.floor(folder)


def test_what_is_not_installed_is_named_and_the_rest_is_measured(
    bench: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = importlib.import_module("contenders")
    monkeypatch.setattr(shutil, "which", lambda _: None)
    folder = bench.write_dense_home(tmp_path, 0.1)
    results = bench.measure(folder, 1, {"floor": known.floor, "ccusage": known.ccusage}, quiet=True)
    assert results["ccusage"].not_run == "not run: install npm"
    assert results["floor"].rows


def test_rows_are_sized_like_recorded_ones(bench: ModuleType, tmp_path: Path) -> None:
    folder = bench.write_home(tmp_path, 5)
    sizes = sorted(len(line) for path in folder.rglob("*.jsonl") for line in path.read_bytes().split(b"\n"))
    assert 1_700 < sum(sizes) / len(sizes) < 2_400
    assert sizes[len(sizes) // 2] < 1_100
    assert sizes[len(sizes) * 9 // 10] > 3_000


def test_the_kept_results_have_the_shape_of_a_run(bench: ModuleType) -> None:
    known = importlib.import_module("contenders")
    kept = json.loads((PLACE / "readers.json").read_text("utf-8"))
    assert set(kept["machine"]) == {"cores", "load", "machine", "system", "python"}
    for home in ("recorded sizes", "small rows"):
        assert set(kept[home]["contenders"]) == set(known.CONTENDERS)
        for one in kept[home]["contenders"].values():
            assert one["not_run"] or one["ratio"] == pytest.approx(
                one["wall"] / kept[home]["contenders"]["floor"]["wall"], rel=0.02
            )
    peaks = {int(size): peak for size, peak in kept["peak memory of a preview, MB"].items()}
    assert set(peaks) == {100, 500, 2000}
    assert max(peaks.values()) < 1.3 * min(peaks.values())
    assert importlib.import_module("memory").plot(peaks) == (PLACE / "memory.svg").read_text("utf-8")
