# SPDX-License-Identifier: Apache-2.0
"""Reading and previewing open no socket: every fixture and sample, by `preview`, `collect`, `notice` and `forget`.

Rules kept here:
* each run is a process of its own; the interpreter reports every socket, name look-up and new program (audit events);
* what the interpreter cannot see, because a library does it, the kernel reports (strace), or is made impossible: the
  same commands do the same where there is no network at all (unshare);
* `collect` is run offline: without that it asks the coordinator for new rounds, before a log is opened.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from collecting_member import make_state
from conftest import not_run
from windvane_client.preview_sources import recognise
from windvane_client.readers import READERS
from windvane_client.settings import LogFolder

FIXTURES = Path(__file__).parent / "fixtures"
RUN = """
import json, sys
wrong = []
def watch(event, arguments):
    if event.startswith(("socket.", "subprocess.", "os.exec", "os.posix_spawn", "os.system", "os.fork", "urllib.")):
        wrong.append((event, str(arguments)[:200]))
sys.addaudithook(watch)
from windvane.main import run
for arguments in json.loads(sys.argv[1]):
    try:
        run(arguments)
    except SystemExit as stopped:
        wrong.append(("exit", stopped.code, arguments))
print("wrong:", wrong, file=sys.stderr)
"""


@pytest.fixture(params=["fixtures", "samples"])
def commands(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """Everything that reads, as one list of commands."""
    root = FIXTURES if request.param == "fixtures" else request.getfixturevalue("shared") / "samples"
    logs = [
        LogFolder(str(path), source)
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.suffix not in (".md", ".toml") and (source := recognise(path)[0]) in READERS
    ]
    assert {one.source for one in logs} >= {"claude_code", "codex", "cline", "litellm", "open_webui", "otlp"}
    state = str(make_state(tmp_path, tuple(logs)).folder)
    now = ["--now", "2027-06-01T00:00:00Z"]
    found = [
        ["member", "preview", str(root), *now],
        ["member", "preview", str(root), *now, "--json"],
        ["member", "preview", str(root), *now, "--explain", "1"],
        ["member", "collect", "--state", state, "--offline"],
        ["member", "collect", "--state", state, "--offline", "--json"],
        ["member", "preview", "--state", state, "--json"],
        ["member", "notice", "--state", state],
        ["member", "forget", "s-1", "--state", state, "--yes"],
    ]
    return json.dumps(found)


def start(tmp_path: Path, commands: str, *before: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k not in ("CLAUDE_CONFIG_DIR", "CODEX_HOME")}
    return subprocess.run(
        [*before, sys.executable, "-c", RUN, commands],
        cwd=tmp_path,
        env=environment | {"HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        check=False,
        timeout=170,
    )


def permitted(*before: str) -> bool:
    return subprocess.run([*before, "true"], check=False, capture_output=True).returncode == 0


def works(done: subprocess.CompletedProcess[str]) -> bool:
    return done.returncode == 0 and done.stderr.strip().splitlines()[-1] == "wrong: []" and len(done.stdout) > 10_000


@pytest.mark.process
def test_no_socket_is_opened(tmp_path: Path, commands: str) -> None:
    done = start(tmp_path, commands)
    assert works(done), done.stderr[-2000:]


@pytest.mark.process
def test_the_kernel_sees_no_call_about_a_network(tmp_path: Path, commands: str) -> None:
    strace = shutil.which("strace")
    trace = tmp_path / "trace"
    watching = [str(strace), "-f", "-qq", "-e", "trace=network", "-o", str(trace)]
    if strace is None:
        not_run("strace is not installed", "apt-get install strace")
    if not permitted(*watching):
        pytest.skip("not run: processes may not be traced here; the audit events above are the proof")
    done = start(tmp_path, commands, *watching)
    assert works(done), done.stderr[-2000:]
    assert [line for line in trace.read_text().splitlines() if "+++" not in line and "---" not in line] == []


@pytest.mark.process
def test_everything_works_where_there_is_no_network(tmp_path: Path, commands: str) -> None:
    alone = ["unshare", "-r", "-n"]
    if shutil.which("unshare") is None or not permitted(*alone):
        pytest.skip("not run: processes without network may not be made here; the audit events above are the proof")
    done = start(tmp_path, commands, *alone)
    assert works(done), done.stderr[-2000:]
