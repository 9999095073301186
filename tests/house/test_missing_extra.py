# SPDX-License-Identifier: Apache-2.0
"""A command whose packages are missing prints one line with the extra to install, never an ImportError."""

from __future__ import annotations

import subprocess
import sys

import pytest

from windvane.main import EXTRAS

WITHOUT = "import sys; sys.modules.update(dict.fromkeys({packages!r})); from windvane.main import run; run({words!r})"


def without_server(*words: str) -> subprocess.CompletedProcess[str]:
    code = WITHOUT.format(packages=EXTRAS["server"], words=list(words))
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "words", [("coordinator", "run"), ("coordinator", "--help"), ("demo",), ("witness", "serve")], ids=" ".join
)
def test_command_names_the_extra_that_is_missing(words: tuple[str, ...]) -> None:
    done = without_server(*words)
    assert done.returncode == 1
    assert "MissingExtra" in done.stderr
    assert "windvane[server]" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "words",
    [("member", "--help"), ("guardian", "--help"), ("witness", "--help"), ("audit", "--help"), ("--help",)],
    ids=" ".join,
)
def test_members_guardians_and_reviewers_need_no_server_package(words: tuple[str, ...]) -> None:
    assert without_server(*words).returncode == 0
