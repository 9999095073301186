# SPDX-License-Identifier: Apache-2.0
"""Passphrases as an operator meets them: separate processes, files of the owner's, nothing to wait for in cron."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from windvane_privacy.passphrase import is_sealed

FIRST, SECOND = "correct horse battery", "another good passphrase"


def windvane(*arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from windvane.main import run; run()", *map(str, arguments)]
    given = {name: value for name, value in os.environ.items() if not name.startswith("WINDVANE_PASS")}
    return subprocess.run(
        command,
        env=given | variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def words(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text + "\n")
    path.chmod(0o600)
    return str(path)


@pytest.mark.process
def test_a_guardians_key_is_sealed_changed_and_unsealed_by_commands(tmp_path: Path) -> None:
    first, second = words(tmp_path, "first", FIRST), words(tmp_path, "second", SECOND)
    state = ("--state", tmp_path / "g")
    made = windvane("guardian", "init", *state, "--name", "G", "--group", "g", "--passphrase",
                    WINDVANE_PASSPHRASE_FILE=first)  # fmt: skip
    assert made.returncode == 0, made.stderr
    key = tmp_path / "g" / "identity.key"
    assert is_sealed(key.read_bytes())
    assert FIRST not in made.stdout + made.stderr

    nobody = windvane("guardian", "passphrase", *state, "--new-file", second)
    assert nobody.returncode == 1
    assert nobody.stderr.startswith("PassphraseMissing")
    wrong = windvane("guardian", "passphrase", *state, "--new-file", first, WINDVANE_PASSPHRASE_FILE=second)
    assert wrong.stderr.startswith("PassphraseWrong") or "Nothing was to be changed" in wrong.stdout
    changed = windvane("guardian", "passphrase", *state, "--new-file", second, WINDVANE_PASSPHRASE_FILE=first)
    assert (changed.returncode, changed.stdout.strip()) == (0, "Done.")
    removed = windvane("guardian", "passphrase", *state, "--remove", WINDVANE_PASSPHRASE_FILE=second)
    assert removed.returncode == 0, removed.stderr
    assert len(key.read_bytes()) == 32


@pytest.mark.process
@pytest.mark.parametrize("audience", ["member", "guardian", "coordinator", "witness"])
def test_a_folder_without_keys_is_named(tmp_path: Path, audience: str) -> None:
    refused = windvane(audience, "passphrase", "--state", tmp_path, "--new-file", words(tmp_path, "w", FIRST))
    assert refused.returncode == 1
    assert "No key is in this folder" in refused.stderr


@pytest.mark.process
def test_a_witness_in_cron_says_what_is_missing_and_waits_for_nobody(tmp_path: Path) -> None:
    first = words(tmp_path, "first", FIRST)
    state = ("--state", tmp_path / "w")
    windvane("witness", "init", *state, "--name", "w.test", "--passphrase", WINDVANE_PASSPHRASE_FILE=first)
    refused = windvane("witness", "status", *state)
    assert refused.returncode == 1
    assert "WINDVANE_PASSPHRASE_FILE" in refused.stderr
    assert windvane("witness", "status", *state, WINDVANE_PASSPHRASE_FILE=first).returncode == 0
