# SPDX-License-Identifier: Apache-2.0
"""Fixtures of all tests."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, settings

# A loaded machine is no counterexample: examples are bounded in number, tests in time, single examples in neither.
settings.register_profile("windvane", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("windvane")

ROOT = Path(__file__).resolve().parent.parent


def not_run(what: str, install: str) -> None:
    """A test whose tool or data is missing says so; under CI that is a failure."""
    message = f"not run: {what}; {install}"
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture(scope="session")
def duckdb() -> ModuleType:
    """The optional extra that reads Parquet."""
    try:
        return importlib.import_module("duckdb")
    except ImportError:
        not_run("DuckDB is missing", "pip install 'windvane[duckdb]'")
        raise


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with recorded log files and public test vectors that lies beside the checkout in CI."""
    folder = Path(os.environ.get("WINDVANE_SHARED", ROOT.parent / "shared"))
    if not (folder / "samples").is_dir():
        not_run("the sample logs and vectors are not here", "set WINDVANE_SHARED to their folder")
    return folder
