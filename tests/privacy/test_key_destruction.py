# SPDX-License-Identifier: Apache-2.0
"""A round's key is destroyed after the appeal and not before, and the log says so only when it is gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from guardian_world import Died
from small_federation import ROUND, SmallFederation, leaves_of
from windvane_privacy.couriers import Parcel
from windvane_privacy.errors import (
    AppealRunning,
    EntryConflict,
    IllegalTransition,
    MalformedLeaf,
    RoundKeyDestroyed,
    StateNotWritten,
    UnknownGuardian,
)
from windvane_privacy.guardian_ledger import GuardianLedger
from windvane_privacy.guardian_state import load_guardian
from windvane_privacy.identity import SigningKey
from windvane_privacy.leaf import make_leaf


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> SmallFederation:
    """A published round."""
    small = SmallFederation(tmp_path_factory.mktemp("published") / "federation")
    manifest = small.open_round()
    for number in range(1, 21):
        small.submit(manifest, number)
    small.clock.pass_by(days=3, minutes=1)
    small.coordinator.close_round(ROUND)
    small.nonces()
    small.results()
    small.coordinator.tally(ROUND)
    small.clock.pass_by(days=1)
    return small


@pytest.fixture
def small(done: SmallFederation, tmp_path: Path) -> SmallFederation:
    made = done.copy(tmp_path / "federation")
    made.coordinator.publish(ROUND)
    return made


def key_file(small: SmallFederation, guardian: int) -> Path:
    return small.guardian_folder(guardian) / f"round-{ROUND}.key"


def destroy(small: SmallFederation, guardian: int) -> bool:
    with small.guardian(guardian) as session:
        return session.destroy(ROUND)


def logged(small: SmallFederation) -> list[int]:
    return [leaf.fields["guardian"] for leaf in leaves_of(small).leaves if leaf.type == "key-destroyed"]


@pytest.mark.parametrize("days", [0, 1, 29])
def test_a_key_is_not_destroyed_while_the_appeal_runs(small: SmallFederation, days: int) -> None:
    small.clock.pass_by(days=days)
    with pytest.raises(AppealRunning, match="ends on"):
        destroy(small, 1)
    assert key_file(small, 1).exists()
    assert logged(small) == []


def test_a_key_is_not_destroyed_before_the_report(done: SmallFederation, tmp_path: Path) -> None:
    small = done.copy(tmp_path / "federation")
    small.clock.pass_by(days=90)
    with pytest.raises(AppealRunning, match="not published"):
        destroy(small, 1)
    assert key_file(small, 1).exists()


@pytest.mark.parametrize(("days", "late"), [(30, False), (45, False), (47, True)])
def test_after_the_appeal_the_key_is_gone_and_the_log_says_so(small: SmallFederation, days: int, late: bool) -> None:
    small.clock.pass_by(days=days)
    assert destroy(small, 2) is late
    assert not key_file(small, 2).exists()
    assert logged(small) == [2]
    destroy(small, 2)
    assert logged(small) == [2]


def test_a_destroyed_key_opens_nothing_and_is_not_made_again(small: SmallFederation) -> None:
    small.clock.pass_by(days=31)
    destroy(small, 1)
    with small.guardian(1) as session:
        for step in (session.open, session.reveal_nonce):
            with pytest.raises(RoundKeyDestroyed):
                step(ROUND)
    assert not key_file(small, 1).exists()


def test_the_keys_of_a_stopped_round_are_destroyed_at_once(done: SmallFederation, tmp_path: Path) -> None:
    small = done.copy(tmp_path / "federation")
    small.coordinator.abort(ROUND, "legal")
    assert destroy(small, 3) is False
    assert logged(small) == [3]


class Falling:
    """A courier that dies when the entry is to be sent."""

    def __init__(self, small: SmallFederation) -> None:
        self._small = small

    def exchange(self, parcel: Parcel) -> bytes:
        if parcel.kind == "leaf":
            raise Died
        return self._small.coordinator.handle(parcel)


def test_the_log_never_says_it_before_the_key_is_gone(small: SmallFederation, monkeypatch: pytest.MonkeyPatch) -> None:
    small.clock.pass_by(days=31)

    def fails(_path: Path) -> None:
        raise StateNotWritten

    with monkeypatch.context() as patched:
        patched.setattr("windvane_privacy.keyfiles.destroy_secret", fails)
        with pytest.raises(StateNotWritten):
            destroy(small, 1)
    assert key_file(small, 1).exists()
    assert logged(small) == []
    destroy(small, 1)
    assert not key_file(small, 1).exists()
    assert logged(small) == [1]


def test_a_guardian_that_dies_between_key_and_log_goes_on_with_the_same_entry(small: SmallFederation) -> None:
    small.clock.pass_by(days=31)
    honest, small.courier = small.courier, Falling(small)
    with pytest.raises(Died):
        destroy(small, 1)
    assert not key_file(small, 1).exists()
    with GuardianLedger(small.guardian_folder(1)) as ledger:
        leaf = ledger.destroyed(ROUND)
    small.courier = honest
    small.clock.pass_by(days=3)
    destroy(small, 1)
    assert [one.raw for one in leaves_of(small).leaves if one.type == "key-destroyed"] == [leaf]


def test_what_was_there_is_overwritten_before_it_is_deleted(
    small: SmallFederation, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.clock.pass_by(days=31)
    path, seen = key_file(small, 1), []
    before = path.read_bytes()
    unlink = Path.unlink

    def watch(self: Path, missing_ok: bool = False) -> None:
        if self == path:
            seen.append(self.read_bytes())
        unlink(self, missing_ok=missing_ok)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", watch)
        destroy(small, 1)
    assert len(seen[0]) == len(before)
    assert before not in seen


def test_the_coordinator_takes_the_entry_once_of_the_right_key_after_the_round(
    done: SmallFederation, tmp_path: Path
) -> None:
    small = done.copy(tmp_path / "federation")
    identity = load_guardian(small.guardian_folder(1)).identity
    with GuardianLedger(small.guardian_folder(1)) as ledger:
        row = ledger.round(ROUND)
    assert row is not None
    fields = {"guardian": 1, "round_key_id": row.round_key_id, "day": small.clock().date().isoformat()}
    with pytest.raises(EntryConflict):
        small.send("leaf", make_leaf("key-destroyed", ROUND, fields, identity))
    small.coordinator.publish(ROUND)
    with pytest.raises(MalformedLeaf):
        small.send("leaf", make_leaf("key-destroyed", ROUND, {**fields, "round_key_id": "0" * 64}, identity))
    with pytest.raises(UnknownGuardian):
        small.send("leaf", make_leaf("key-destroyed", ROUND, fields, SigningKey.generate()))
    small.send("leaf", make_leaf("key-destroyed", ROUND, fields, identity))
    assert logged(small) == [1]


def test_that_a_key_is_to_go_is_written_once(small: SmallFederation) -> None:
    with GuardianLedger(small.guardian_folder(1)) as ledger:
        ledger.destroy(ROUND, b"first")
        with pytest.raises(IllegalTransition):
            ledger.destroy(ROUND, b"second")
        assert ledger.destroyed(ROUND) == b"first"
