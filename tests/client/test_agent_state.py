# SPDX-License-Identifier: Apache-2.0
"""The state folder: made once and whole, read strictly, never overwritten."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from log_witnesses import PINS
from manifests import coordinator_key, make_guardians
from windvane_client import state as module
from windvane_client.settings import LogFolder, MemberSettings
from windvane_client.state import MemberState
from windvane_privacy.errors import ConfigurationError, DemoManifest, KeyFileTooOpen, MalformedInput, StateExists
from windvane_privacy.policy import load_policy
from windvane_privacy.roster import RosterGuardian, read_enrolment
from windvane_privacy.signed import FEDERATION_SCHEMA, Federation


def federation(*, demo: bool = False) -> bytes:
    guardians = tuple(RosterGuardian(g.index, g.name, g.identity, f"group {g.index}") for g in make_guardians())
    public = coordinator_key().public.hex()
    return Federation(FEDERATION_SCHEMA, "F", public, "log.test", PINS, guardians, demo=demo).encode()


def settings(folder: Path, **changes: object) -> MemberSettings:
    values = {
        "name": 'Übung "and" [Söhne] \\ GmbH', "band": "100-249", "ties": ("vendor a",), "address": "https://a.example",
        "logs": (LogFolder("/logs"), LogFolder("/chat", "canonical", "s-1")), "second_place": str(folder / "second"),
    }  # fmt: skip
    return MemberSettings(**(values | changes))


def test_what_was_set_is_what_is_read(tmp_path: Path) -> None:
    made = settings(tmp_path, ca="/etc/ca.pem")
    state = MemberState.create(tmp_path / "m", made, federation())
    assert state.settings == made
    assert load_policy(state.folder / "policy.toml") == state.policy
    assert (state.policy.demo, state.policy.approval) == (False, "human")
    assert [g.identity for g in state.policy.guardians] == [g.identity for g in make_guardians()]
    card = read_enrolment(state.card())
    assert (card.name, card.band, card.ties, card.key) == (made.name, made.band, made.ties, state.key.public.hex())


def test_nobody_else_can_read_it(tmp_path: Path) -> None:
    state = MemberState.create(tmp_path / "m", settings(tmp_path), federation())
    for path in (state.folder, *state.folder.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    state.folder.chmod(0o755)
    with pytest.raises(KeyFileTooOpen):
        MemberState.open(state.folder)


def test_existing_state_is_never_overwritten(tmp_path: Path) -> None:
    state = MemberState.create(tmp_path / "m", settings(tmp_path), federation())
    before = {path: path.read_bytes() for path in state.folder.rglob("*") if path.is_file()}
    with pytest.raises(StateExists):
        MemberState.create(tmp_path / "m", settings(tmp_path), federation())
    assert {path: path.read_bytes() for path in state.folder.rglob("*") if path.is_file()} == before
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("somebody's")
    with pytest.raises(StateExists):
        MemberState.create(tmp_path / "other", settings(tmp_path), federation())


@pytest.mark.parametrize("at", ["write_secret", "load_or_make_k_org", "load_policy"])
def test_a_crash_while_it_is_made_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    class Crash(BaseException):
        pass

    def crash(*_: object) -> None:
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(module, at, crash)
        with pytest.raises(Crash):
            MemberState.create(tmp_path / "m", settings(tmp_path), federation())
    assert list(tmp_path.iterdir()) == []
    MemberState.create(tmp_path / "m", settings(tmp_path), federation())


BAD = {
    "band": {"band": "12"},
    "name": {"name": "a\nb"},
    "no logs": {"logs": ()},
    "relative logs": {"logs": (LogFolder("logs"),)},
    "relative second place": {"second_place": "second"},
}


@pytest.mark.parametrize("change", BAD.values(), ids=BAD.keys())
def test_malformed_settings_are_refused_before_anything_is_made(tmp_path: Path, change: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError):
        MemberState.create(tmp_path / "m", settings(tmp_path, **change), federation())
    assert list(tmp_path.iterdir()) == []


def test_a_federation_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DemoManifest):
        MemberState.create(tmp_path / "m", settings(tmp_path), federation(demo=True))
    with pytest.raises(MalformedInput):
        MemberState.create(tmp_path / "m", settings(tmp_path), b"{}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("line", ["unknown = 1\n", "name = 5\n", "= =\n", "\xff"])
def test_a_wrong_line_in_the_settings_is_an_error(tmp_path: Path, line: str) -> None:
    state = MemberState.create(tmp_path / "m", settings(tmp_path), federation())
    path = state.folder / "member.toml"
    path.write_bytes(line.encode("latin-1") + path.read_bytes())
    with pytest.raises(ConfigurationError):
        _ = state.settings


def test_a_lost_key_of_the_ids_is_never_made_anew(tmp_path: Path) -> None:
    state = MemberState.create(tmp_path / "m", settings(tmp_path), federation())
    (state.folder / "keys" / "k_org.key").unlink()
    with pytest.raises(ConfigurationError):
        _ = state.k_org


def test_the_second_place_belongs_to_a_key(tmp_path: Path) -> None:
    first = MemberState.create(tmp_path / "m", settings(tmp_path), federation())
    second = MemberState.create(tmp_path / "n", settings(tmp_path), federation())
    first.keep_second_head(b"one")
    assert first.second_head() == b"one"
    assert second.second_head() is None
