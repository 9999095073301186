# SPDX-License-Identifier: Apache-2.0
"""Sets up a checkout and runs its jobs: `python3 dev.py demo`, `python3 dev.py test`, and so on.

Rules kept here:
* needs Python 3.11 or newer and git, nothing else; what it installs lies in `.venv` and `.uv`, nothing outside;
* versions come from `uv.lock` with their hashes; uv itself is pinned below;
* the same commands run on a laptop and in CI.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent
UV = "uv==0.13.9"
BIN = ROOT / ".venv" / ("Scripts" if os.name == "nt" else "bin")

RUNTIME = ["--extra", "server"]
EVERYTHING = ["--extra", "server", "--extra", "audit", "--group", "dev"]

CORE = ("votes", "noise", "budget", "ledger", "policy", "direction_quarters", "direction_branches", "declared_ties")
CORE_TESTS = sorted(
    str(path.relative_to(ROOT)) for name in CORE for path in (ROOT / "tests" / "privacy").glob(f"test_{name}*.py")
)
"""Tests of what a vote, a draw and a charge are; `coverage` wants every branch of those modules tried by them."""

JOBS: dict[str, tuple[str, list[str], list[list[str]]]] = {
    "demo": ("install and run a whole federation, ending in a report", RUNTIME, [["windvane", "demo"]]),
    "test": (
        "install and pass the tests",
        EVERYTHING,
        [["pytest", "-m", "not slow", "-n", "2", "--dist", "loadfile", "-q"]],
    ),
    "dev": ("install everything a developer needs", EVERYTHING, []),
    "check": (
        "format, lint, types, import rules",
        EVERYTHING,
        [["ruff", "format", "--check", "."], ["ruff", "check", "."], ["mypy"], ["lint-imports"]],
    ),
    "coverage": (
        "every branch of the privacy core is tested",
        EVERYTHING,
        [["coverage", "run", "-m", "pytest", "-m", "not slow", "-q", *CORE_TESTS], ["coverage", "report"]],
    ),
    "slow": ("the long suites", EVERYTHING, [["pytest", "-m", "slow", "-q", "-p", "no:randomly", "--timeout", "1800"]]),
    "bench": ("the benchmarks of the readers", EVERYTHING, [["python", "benchmarks/readers.py"]]),
    "bench-sums": ("the benchmark of sealed sums", EVERYTHING, [["python", "benchmarks/sums.py"]]),
    "docs": ("the tests of the documentation", EVERYTHING, [["pytest", "-q", "tests/house"]]),
}


def main() -> int:
    """Runs one job; further arguments go to its last command."""
    if sys.version_info < (3, 11):
        print("Windvane needs Python 3.11 or newer; this is", sys.version.split()[0])
        return 2
    if len(sys.argv) < 2 or sys.argv[1] not in JOBS:
        print("usage: python3 dev.py JOB [ARGUMENTS]\n")
        for name, (what, _extras, _commands) in JOBS.items():
            print(f"  {name:8} {what}")
        return 2
    _what, extras, commands = JOBS[sys.argv[1]]
    install(extras)
    for number, command in enumerate(commands, start=1):
        extra = sys.argv[2:] if number == len(commands) else []
        done = subprocess.run([str(BIN / command[0]), *command[1:], *extra], cwd=ROOT, check=False)
        if done.returncode:
            return done.returncode
    return 0


def install(extras: list[str]) -> None:
    """Brings `.venv` to what `uv.lock` says, with these extras."""
    environment = {key: value for key, value in os.environ.items() if key not in {"VIRTUAL_ENV", "PYTHONHOME"}}
    environment["UV_PROJECT_ENVIRONMENT"] = str(ROOT / ".venv")
    # Certificates of the system, as pip and git use them: networks with a certificate authority of their own work too.
    environment.setdefault("UV_SYSTEM_CERTS", "true")
    # A federation starts many short processes; compiled packages halve what each of them costs.
    environment.setdefault("UV_COMPILE_BYTECODE", "true")
    command = [uv(), "sync", "--frozen", "--quiet", "--inexact", "--python", sys.executable, *extras]
    if subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode:
        sys.exit("The packages could not be installed. Check the network, then run the same command again.")


def uv() -> str:
    """Path of the pinned uv, installed into `.uv` where it is not there yet."""
    place = ROOT / ".uv"
    program = place / ("Scripts" if os.name == "nt" else "bin") / "uv"
    if not program.exists():
        print("Installing uv (once) ...", flush=True)
        shutil.rmtree(place, ignore_errors=True)
        try:
            venv.create(place, with_pip=True)
        except (subprocess.CalledProcessError, OSError):
            sys.exit("Python's venv module is incomplete here; on Debian: apt-get install python3-venv")
        pip = [str(program.parent / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", UV]
        if subprocess.run(pip, check=False).returncode:
            sys.exit("uv could not be installed. Check the network, then run the same command again.")
    return str(program)


if __name__ == "__main__":
    sys.exit(main())
