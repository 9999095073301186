# SPDX-License-Identifier: Apache-2.0
"""Whoever holds a ledger or a round key refuses to start where files cannot be locked, and leaves nothing behind."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from windvane_client.settings import LogFolder, MemberSettings
from windvane_client.state import MemberState
from windvane_privacy.errors import UnsupportedPlatform
from windvane_privacy.guardian_ledger import GuardianLedger
from windvane_privacy.guardian_state import init_guardian
from windvane_privacy.keyfiles import secure_folder
from windvane_privacy.ledger import Ledger


def on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("windvane_privacy.keyfiles.sys", SimpleNamespace(platform="win32"))


def test_a_guardian_does_not_start_on_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = secure_folder(tmp_path / "made")
    GuardianLedger.create(made)
    on_windows(monkeypatch)
    with pytest.raises(UnsupportedPlatform):
        GuardianLedger(made)
    with pytest.raises(UnsupportedPlatform):
        init_guardian(tmp_path / "new", "Guardian", "group")
    assert not (tmp_path / "new").exists()


def test_a_members_agent_does_not_start_on_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Ledger.create(tmp_path / "ledger", key_id="0" * 64, machine_id="here")
    on_windows(monkeypatch)
    with pytest.raises(UnsupportedPlatform):
        Ledger.open(tmp_path / "ledger", machine_id="here")
    settings = MemberSettings(
        name="Alder Works", band="50-99", ties=(), address="https://windvane.example",
        logs=(LogFolder(str(tmp_path)),), second_place=str(tmp_path / "second"),
    )  # fmt: skip
    with pytest.raises(UnsupportedPlatform):
        MemberState.create(tmp_path / "member", settings, b"never read")
    assert not (tmp_path / "member").exists()
