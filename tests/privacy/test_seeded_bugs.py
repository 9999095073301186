# SPDX-License-Identifier: Apache-2.0
"""The seeded bugs still fit the program, name tests that exist, and are all noticed."""

from __future__ import annotations

import ast
import re
import subprocess
import sys

import pytest

from conftest import ROOT
from seeded_bug_list import BUGS, Bug, changed

NEEDED = (
    "noise never added",
    "scale halved",
    "noise used again",
    "clamp of the net removed",
    "second vote",
    "people sampled",
    "unbalanced votes",
    "floating-point noise",
    "numpy",
    "charge skipped",
    "second draw after a restart",
    "not bound",
    "lifetime cap ignored",
    "h counted twice",
    "keyed function",
    "automation let in",
    "threshold over people",
    "wrong Q",
)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_bug_still_has_its_place_and_leaves_a_program(bug: Bug) -> None:
    text = changed(bug, ROOT)
    assert text != (ROOT / bug.file).read_text(encoding="utf-8")
    ast.parse(text)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_bug_names_a_test_that_exists(bug: Bug) -> None:
    file, _, name = bug.test.partition("::")
    assert re.search(rf"^def {re.escape(name)}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)


def test_every_bug_that_a_reviewer_asks_for_is_there() -> None:
    names = [bug.name for bug in BUGS]
    assert len(names) == len(set(names)) >= 16
    assert [wanted for wanted in NEEDED if not any(wanted in name for name in names)] == []


def test_a_bug_without_its_place_is_a_loud_fault() -> None:
    gone = Bug("gone", BUGS[0].file, "text that is nowhere", "x", BUGS[0].test)
    with pytest.raises(ValueError, match="0 times"):
        changed(gone, ROOT)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_seeded_bug_is_noticed_by_its_test() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests/privacy/seeded_bugs.py")], capture_output=True, text=True, check=False
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout[-3000:]
    assert f"{len(BUGS)} bugs, {len(BUGS)} noticed, 0 not." in done.stdout
