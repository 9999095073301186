# SPDX-License-Identifier: Apache-2.0
"""A coordinator's folder: what it refuses to start on, and what it never makes anew."""

from __future__ import annotations

import stat
from types import SimpleNamespace

import pytest

from small_federation import SmallFederation
from windvane_privacy.errors import ConfigurationError, KeyFileTooOpen, UnsupportedPlatform
from windvane_server.coordinator import Coordinator, init_coordinator
from windvane_server.store import DATABASE


def test_the_database_is_its_owners_alone(small: SmallFederation) -> None:
    small.close()
    database = small.state / DATABASE
    assert stat.S_IMODE(database.stat().st_mode) == 0o600
    database.chmod(0o640)
    with pytest.raises(KeyFileTooOpen):
        Coordinator(small.state)


def test_a_lost_database_is_not_replaced_by_an_empty_log(small: SmallFederation) -> None:
    small.close()
    (small.state / DATABASE).unlink()
    with pytest.raises(ConfigurationError, match="missing"):
        Coordinator(small.state)
    assert not (small.state / DATABASE).exists()


def test_a_coordinator_does_not_start_on_windows(small: SmallFederation, monkeypatch: pytest.MonkeyPatch) -> None:
    small.close()
    monkeypatch.setattr("windvane_privacy.keyfiles.sys", SimpleNamespace(platform="win32"))
    with pytest.raises(UnsupportedPlatform):
        Coordinator(small.state)
    with pytest.raises(UnsupportedPlatform):
        init_coordinator(small.state.with_name("new"), name="Federation", guardians=[], witnesses=[])
    assert not small.state.with_name("new").exists()
