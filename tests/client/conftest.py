# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the member's tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from member_world import MemberWorld


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> MemberWorld:
    """A small federation with an open round and one real member, made once."""
    made = MemberWorld(tmp_path_factory.mktemp("template"))
    made.small.close()
    return made


@pytest.fixture
def world(tmp_path: Path, template: MemberWorld) -> Iterator[MemberWorld]:
    """A copy of it that the test may spoil."""
    made = MemberWorld.copy_of(tmp_path, template)
    yield made
    made.small.close()


@pytest.fixture(autouse=True)
def no_moved_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may have moved the logs of these programs."""
    for name in ("CODEX_HOME", "GEMINI_CLI_HOME"):
        monkeypatch.delenv(name, raising=False)
