# SPDX-License-Identifier: Apache-2.0
"""Every public bug report that the readers answer has a test, and the table of them names tests that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "docs" / "sources" / "reports.md"
ROW = re.compile(r"^\| R(\d+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.M)
TEST = re.compile(r"`([\w/]+\.py)::(test_\w+)`")
LAST = 29


def rows() -> list[tuple[int, str, list[tuple[str, str]]]]:
    """(number, reports, [(file, test)]) of the table."""
    text = TABLE.read_text("utf-8")
    return [(int(number), reports.strip(), TEST.findall(tests)) for number, reports, _, tests in ROW.findall(text)]


def docstring_of(file: str, test: str) -> str | None:
    """The docstring of a test; None where there is no such test."""
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == test]
    return (ast.get_docstring(found[0]) or "") if found else None


def test_every_report_has_a_row_with_a_test() -> None:
    assert [number for number, _, _ in rows()] == list(range(1, LAST + 1))
    assert all(tests for _, _, tests in rows())


def test_every_named_test_is_there_and_names_its_report() -> None:
    for number, reports, tests in rows():
        first = reports.split("#")[0]
        for file, test in tests:
            told = docstring_of(file, test)
            assert told is not None, f"R{number}: {file} has no {test}"
            assert told.startswith(f"{first}#"), f"R{number}: {test} does not start with its report"
            assert test.lower().startswith(f"test_r{number}_"), f"R{number}: {test} has another number"


def test_a_test_that_is_gone_is_noticed() -> None:
    file, _ = rows()[0][2][0]
    assert docstring_of(file, "test_r1_nothing_of_this_name") is None
