# SPDX-License-Identifier: Apache-2.0
"""A ledger that is gone is made anew from the public log: charged to everybody and burned, never drawn again."""

from __future__ import annotations

import shutil
from fractions import Fraction

import pytest

from member_world import LyingCourier, MemberWorld
from small_federation import ROUND
from windvane_client.rebuild import rebuild_ledger
from windvane_privacy.errors import (
    CheckpointTooOld,
    ClockImplausible,
    CoordinatorUnreachable,
    InconsistentCheckpoint,
    LedgerDamaged,
    ManifestSignatureInvalid,
    PolicyLoosened,
    RoundBurned,
    StateExists,
)
from windvane_privacy.ledger_schema import BurnReason, State
from windvane_privacy.ledger_verify import verify_ledger


def took_part(world: MemberWorld) -> None:
    world.approve()
    with world.agent() as agent:
        agent.submit(ROUND)


def lose(world: MemberWorld) -> None:
    shutil.rmtree(world.folder / "ledger")


def rebuild(world: MemberWorld, courier: object = None) -> tuple[str, ...]:
    return rebuild_ledger(world.state, courier or world.courier, world.clock)


def test_without_a_ledger_nothing_starts(world: MemberWorld) -> None:
    lose(world)
    with pytest.raises(LedgerDamaged), world.agent():
        pass


def test_every_commitment_of_ours_is_charged_to_everybody_and_burned(world: MemberWorld) -> None:
    took_part(world)
    logged = world.mine("commitment")[0]
    lose(world)
    assert rebuild(world) == (ROUND,)
    with world.state.ledger() as ledger:
        entry = ledger.round(ROUND)
        assert entry is not None
        assert (entry.state, entry.reason, entry.everyone) == (State.BURNED, BurnReason.FOREIGN_COMMITMENT, True)
        assert (entry.rho, entry.commit_hash) == (world.manifest.rho, logged.fields["hash"])
        anybody = b"n" * 16
        assert ledger.admission(Fraction(1, 10**6), world.manifest.rho, {})(anybody) is False
        assert all(stage.holds for stage in verify_ledger(ledger, {}))
    with world.agent() as agent, pytest.raises(RoundBurned):
        agent.submit(ROUND)
    assert len(world.mine("commitment")) == 1


def test_without_a_commitment_in_the_log_the_new_ledger_is_empty_and_the_round_can_be_drawn(world: MemberWorld) -> None:
    lose(world)
    assert rebuild(world) == ()
    took_part(world)


@pytest.mark.parametrize("named", ["its own key", "ours"])
def test_a_commitment_that_we_did_not_sign_charges_nothing(world: MemberWorld, named: str) -> None:
    from manifests import derived, member_key
    from windvane_privacy import canonical
    from windvane_privacy.log import make_leaf

    fields = {
        "manifest": world.manifest.sha256, "member": 20, "hash": derived("x").hex(), "install": "0" * 64,
        "day": "2026-10-02",
    }  # fmt: skip
    leaf = make_leaf("commitment", ROUND, fields, member_key(1))
    if named == "ours":
        leaf = canonical.encode({**canonical.decode(leaf), "key": world.state.key.key_id})
    world.append(leaf)
    lose(world)
    assert rebuild(world) == ()


def test_a_whole_ledger_is_never_made_anew(world: MemberWorld) -> None:
    took_part(world)
    before = (world.folder / "ledger" / "ledger.db").read_bytes()
    with pytest.raises(StateExists):
        rebuild(world)
    assert (world.folder / "ledger" / "ledger.db").read_bytes() == before


@pytest.mark.parametrize("damage", ["no database", "chain"])
def test_a_damaged_ledger_is_set_aside_and_kept(world: MemberWorld, damage: str) -> None:
    import sqlite3

    took_part(world)
    path = world.folder / "ledger" / "ledger.db"
    if damage == "no database":
        path.write_bytes(b"nothing")
    else:
        connection = sqlite3.connect(path)
        connection.execute("UPDATE meta SET value = 'ff' WHERE key = 'chain_head'")
        connection.commit()
        connection.close()
    broken = path.read_bytes()
    assert rebuild(world) == (ROUND,)
    assert (world.folder / "ledger.damaged-1" / "ledger.db").read_bytes() == broken
    path.write_bytes(b"again")
    rebuild(world)
    assert (world.folder / "ledger.damaged-2" / "ledger.db").read_bytes() == b"again"


def test_a_log_that_is_older_than_the_second_place_rebuilds_nothing(world: MemberWorld) -> None:
    """A coordinator that shows an old log could hide a draw: the head outside the folder tells."""
    old: list[bytes] = []
    recorder = LyingCourier(world.courier, lambda parcel, answer: old.append(answer) or answer)
    with world.agent(recorder) as agent:
        agent.scan()
    took_part(world)
    lose(world)
    lying = LyingCourier(world.courier, lambda parcel, answer: old[0] if parcel.kind == "leaves" else answer)
    with pytest.raises(InconsistentCheckpoint):
        rebuild(world, lying)
    assert not (world.folder / "ledger").exists()


def test_another_manifest_than_the_logged_one_rebuilds_nothing(world: MemberWorld) -> None:
    took_part(world)
    lose(world)
    lying = LyingCourier(
        world.courier,
        lambda parcel, answer: answer.replace(b'"h":1', b'"h":2') if parcel.kind == "manifest" else answer,
    )
    with pytest.raises(ManifestSignatureInvalid):
        rebuild(world, lying)
    assert not (world.folder / "ledger").exists()
    assert not list(world.folder.glob(".ledger.*"))


@pytest.mark.parametrize("kind", ["leaves", "manifest"])
def test_a_lost_connection_changes_nothing_and_the_same_command_goes_on(world: MemberWorld, kind: str) -> None:
    took_part(world)
    lose(world)
    with pytest.raises(CoordinatorUnreachable):
        rebuild(world, LyingCourier(world.courier, lose=[(kind, "answer")]))
    assert not (world.folder / "ledger").exists()
    assert rebuild(world) == (ROUND,)


def test_a_clock_that_contradicts_the_log_rebuilds_nothing(world: MemberWorld) -> None:
    lose(world)
    world.clock.pass_by(days=400)
    world.small.clock.now = world.clock.now.replace(year=2026)
    with pytest.raises(CheckpointTooOld):
        rebuild(world)
    world.clock.pass_by(days=-800)
    with pytest.raises(ClockImplausible):
        rebuild(world)


def test_a_policy_that_was_loosened_in_between_is_still_noticed(world: MemberWorld) -> None:
    lose(world)
    path = world.folder / "policy.toml"
    path.write_text(path.read_text().replace("max_C = 20", "max_C = 21"))
    rebuild(world)
    with world.agent() as agent, pytest.raises(PolicyLoosened):
        agent.approve(ROUND)
