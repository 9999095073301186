# SPDX-License-Identifier: Apache-2.0
"""The benchmark of sealed sums gets the true sums, measures everybody's part, and keeps what the page shows."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree as ET

import pytest

PLACE = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(PLACE)
    yield importlib.import_module("sums")
    for name in ("sums", "growth"):
        sys.modules.pop(name, None)


def test_a_round_and_the_plain_sum_give_the_true_sums(bench: ModuleType) -> None:
    found = bench.whole(30, 30)
    assert (found["members"], found["cells"], found["numbers"]) == (30, 30, 60)
    assert found["envelope_bytes"] > 3 * 8 * 60
    assert found["seconds"] > 0 < found["baseline_seconds"]


def test_a_wrong_sum_stops_the_benchmark(bench: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "baseline", lambda _vectors, made: [[0] * made.manifest.length] * len(made.cohorts))
    with pytest.raises(SystemExit, match="wrong"):
        bench.whole(30, 30)


def test_what_is_written_is_what_was_measured(bench: ModuleType, tmp_path: Path) -> None:
    found = bench.measured(largest=(25, 30), members=(25, 30), cells=(30, 60), turns=1)
    bench.show(found)
    bench.write_plots(found, tmp_path)
    for name in ("members", "cells"):
        plot = ET.parse(tmp_path / f"sums-{name}.svg").getroot()
        text = " ".join(plot.itertext())
        assert "plain additive shares" in text
        assert all(f"{row['seconds']:.2f}" in text for row in found[f"by_{name}"])


def test_the_kept_results_are_of_the_sizes_that_the_page_promises() -> None:
    kept = json.loads((PLACE / "sums.json").read_text(encoding="utf-8"))
    assert (kept["largest"]["members"], kept["largest"]["cells"] >= 10_000) == (500, True)
    lengths = {row["cells"]: row["envelope_bytes"] for row in kept["by_members"]}
    assert len(lengths) == 1, "an envelope's length does not depend on the number of members"
    assert [row["members"] for row in kept["by_members"]] == sorted(row["members"] for row in kept["by_members"])
