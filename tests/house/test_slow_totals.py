# SPDX-License-Identifier: Apache-2.0
"""The kept totals of the long suites are of this version and without a failure."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

TOTALS = json.loads((Path(__file__).resolve().parents[2] / "benchmarks" / "slow.json").read_text(encoding="utf-8"))


def test_totals_are_of_this_version() -> None:
    assert TOTALS["version"] == version("windvane")


def test_every_suite_ran_and_none_failed() -> None:
    assert TOTALS["suites"]
    for suite, counts in TOTALS["suites"].items():
        assert counts["trials"] > 0, suite
        assert {name: n for name, n in counts.items() if name != "trials" and n} == {}, suite
