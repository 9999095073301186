# SPDX-License-Identifier: Apache-2.0
"""Puts known privacy bugs into a copy of the program, one at a time, and shows which named test notices each.

Rules kept here:
* a bug is a small replacement of text that must occur exactly once; where it does not, the script fails and says so;
* the working tree is never changed: each bug lives in a copy that is deleted afterwards;
* noticed means that the named test itself fails; a file that cannot be imported is not a failure of that kind;
* every named test passes without a bug, or nothing is shown by its failing.

    python tests/privacy/seeded_bugs.py [NAME ...]
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from seeded_bug_list import BUGS, Bug, changed  # noqa: E402 - found beside the tests, also when run as a program

COPIED = ("client", "privacy", "server", "cli", "tests", "docs", "pyproject.toml", "CHANGELOG.md")
LONGEST = 240
"""Seconds that a named test may take."""


@dataclass(frozen=True, slots=True)
class Found:
    """What became of one bug: whether its test failed, and the seconds it took."""

    bug: Bug
    noticed: bool
    seconds: float
    said: str


def copy_of(root: Path, target: Path) -> None:
    """The program and its tests in another folder."""
    skip = shutil.ignore_patterns("__pycache__", "*.pyc", ".hypothesis")
    for name in COPIED:
        source = root / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=skip)
        else:
            shutil.copy2(source, target / name)


def run_tests(folder: Path, tests: Sequence[str]) -> tuple[int, float, str]:
    """(exit code of pytest, seconds, the end of what it said) for tests of a copy."""
    paths = os.pathsep.join(str(folder / name) for name in ("client", "privacy", "server", "cli", "tests"))
    environment = os.environ | {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    options = ["-q", "-x", "-m", "", "-p", "no:cacheprovider", "-p", "no:randomly", "--timeout", str(LONGEST)]
    command = [sys.executable, "-m", "pytest", *tests, *options]
    begun = time.monotonic()
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=LONGEST + 30
        )
    except subprocess.TimeoutExpired:
        return -1, time.monotonic() - begun, "it did not end"
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    return done.returncode, time.monotonic() - begun, " ".join(lines[-2:])[-200:]


def look_for(bug: Bug, root: Path, folder: Path) -> Found:
    """Put the bug into the copy at `folder`, run its test, take it out again."""
    path = folder / bug.file
    before = path.read_text(encoding="utf-8")
    path.write_text(changed(bug, root), encoding="utf-8")
    try:
        code, seconds, said = run_tests(folder, [bug.test])
    finally:
        path.write_text(before, encoding="utf-8")
    return Found(bug, code == 1, seconds, said)


def main(names: Sequence[str] = (), root: Path = ROOT) -> int:
    """Looks for the named bugs, or all; the exit code is 1 if any is not noticed."""
    console = Console(soft_wrap=True)
    wide = Console(width=160)
    bugs = [bug for bug in BUGS if not names or bug.name in names]
    with tempfile.TemporaryDirectory(prefix="windvane-bugs-") as place:
        folder = Path(place)
        copy_of(root, folder)
        code, seconds, said = run_tests(folder, sorted({bug.test for bug in bugs}))
        if code != 0:
            console.print(f"Without a bug the named tests do not pass: {said}", markup=False)
            return 1
        console.print(f"Without a bug the named tests pass ({seconds:.0f} s).")
        found = []
        for bug in bugs:
            found.append(look_for(bug, root, folder))
            if not found[-1].noticed:
                console.print(f"NOT NOTICED: {bug.name}: {found[-1].said}", markup=False)
    table = Table(title="Seeded privacy bugs")
    table.add_column("bug")
    table.add_column("test that noticed it", no_wrap=True)
    table.add_column("seconds", justify="right")
    for one in found:
        test = one.bug.test.rpartition("::")[2] if one.noticed else "[bold red]none[/]"
        table.add_row(one.bug.name, test, f"{one.seconds:.1f}")
    wide.print(table)
    missed = sum(not one.noticed for one in found)
    console.print(f"{len(found)} bugs, {len(found) - missed} noticed, {missed} not.")
    return 1 if missed or not found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
