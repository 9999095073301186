# SPDX-License-Identifier: Apache-2.0
"""The agent's way through a round: what each step needs, and what an interruption costs."""

from __future__ import annotations

import sqlite3
from datetime import timedelta
from pathlib import Path

import pytest

from log_witnesses import answer
from member_world import FixedEvidence, LyingCourier, MemberWorld, Silent, rows_of
from small_federation import ROUND
from windvane_privacy.couriers import Parcel
from windvane_privacy.envelope import envelope_length
from windvane_privacy.errors import (
    CheckpointTooOld,
    ClockImplausible,
    CoordinatorUnreachable,
    LedgerDamaged,
    NeedsApproval,
    NotReady,
    RoundBurned,
    RoundClosed,
    WindowNotOpen,
    WindvaneError,
)
from windvane_privacy.identity import SigningKey
from windvane_privacy.ledger_schema import BurnReason, State
from windvane_privacy.notes import Cosigner
from windvane_server.rounds import ABORT_REASONS


def test_a_member_goes_from_approval_to_accepted(world: MemberWorld) -> None:
    world.approve()
    evidence = FixedEvidence()
    with world.agent(evidence=evidence, noise=None) as agent:  # None: OpenDP's own noise
        entry = agent.submit(ROUND)
        words = {(kind, signal, pair): word for kind, signal, pair, word in agent.ledger.own_directions(ROUND)}
    assert entry.state is State.ACCEPTED
    assert [leaf.fields["hash"] for leaf in world.mine("commitment")] == [entry.commit_hash]
    assert [leaf.fields["hash"] for leaf in world.mine("accepted")] == [entry.commit_hash]
    assert words["all", "completion", "alder|birch"] == "toward_a"
    assert set(words.values()) == {"toward_a", "too_few"}
    assert evidence.forgotten[-1] == world.manifest.events.to


def test_own_directions_say_too_few_below_ten_people(world: MemberWorld) -> None:
    world.approve()
    with world.agent(evidence=FixedEvidence(rows_of(9))) as agent:
        agent.submit(ROUND)
        assert {word for *_, word in agent.ledger.own_directions(ROUND)} == {"too_few"}


def test_a_member_without_votes_sends_an_envelope_of_the_same_length(world: MemberWorld) -> None:
    world.approve()
    courier = LyingCourier(world.courier)
    with world.agent(courier, evidence=FixedEvidence(())) as agent:
        agent.submit(ROUND)
    assert [len(p.body) for p in courier.sent if p.kind == "reveal"] == [envelope_length(world.manifest)]


def test_nothing_is_drawn_or_sent_without_an_approval(world: MemberWorld) -> None:
    courier = LyingCourier(world.courier)
    with world.agent(courier) as agent:
        with pytest.raises(NeedsApproval):
            agent.submit(ROUND)
        assert agent.ledger.round(ROUND) is None
    assert {parcel.kind for parcel in courier.sent} <= {"leaves", "manifest", "roster"}


def test_a_policy_of_auto_approves_by_itself(tmp_path: Path) -> None:
    world = MemberWorld(tmp_path, approval="auto")
    with world.agent() as agent:
        assert agent.submit(ROUND).state is State.ACCEPTED
        assert agent.ledger.approval(ROUND) is not None
    world.small.close()


def test_another_machine_is_asked_about_before_a_draw(world: MemberWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    world.approve()
    monkeypatch.setattr("windvane_client.state.machine_id", lambda: "b" * 64)
    with world.agent() as agent:
        with pytest.raises(NeedsApproval):
            agent.submit(ROUND)
        assert agent.ledger.round(ROUND) is None
        agent.ledger.confirm_machine("2026-10-02")
        assert agent.submit(ROUND).state is State.ACCEPTED


# --- interruptions ------------------------------------------------------------------------------------------------

LOSSES = [
    [("leaf", "request")],
    [("leaf", "answer")],
    [("reveal", "request")],
    [("reveal", "answer")],
    [("leaf", "answer"), ("leaf", "answer"), ("reveal", "answer"), ("leaves", "answer")],
]


@pytest.mark.parametrize("losses", LOSSES, ids=lambda losses: "+".join("-".join(one) for one in losses))
def test_retry_sends_identical_bytes(world: MemberWorld, losses: list[tuple[str, str]]) -> None:
    world.approve()
    courier = LyingCourier(world.courier, lose=list(losses))
    for _ in range(len(losses) + 1):
        with world.agent(courier) as agent:  # a new process each time
            try:
                entry = agent.submit(ROUND)
                break
            except CoordinatorUnreachable:
                continue
    assert entry.state is State.ACCEPTED
    for kind in ("leaf", "reveal"):
        assert len({parcel.body for parcel in courier.sent if parcel.kind == kind}) == 1
    assert len(world.mine("commitment")) == len(world.mine("accepted")) == 1


@pytest.mark.parametrize("step", ["commit", "reveal", "accept"])
def test_a_crash_right_before_a_step_is_stored_costs_nothing(
    world: MemberWorld, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    world.approve()

    class Crash(BaseException):
        pass

    def crash(*_: object) -> None:
        raise Crash

    with world.agent() as agent, monkeypatch.context() as patch:
        patch.setattr(agent.ledger, step, crash)
        with pytest.raises(Crash):
            agent.submit(ROUND)
    with world.agent() as agent:
        assert agent.submit(ROUND).state is State.ACCEPTED
    assert len(world.mine("commitment")) == len(world.mine("accepted")) == 1


def test_a_crash_between_the_end_and_the_deletion_deletes_at_the_next_start(world: MemberWorld) -> None:
    world.approve()

    class Crashing(FixedEvidence):
        def forget(self, _events_from: str, events_to: str) -> None:
            if events_to == world.manifest.events.to:
                raise KeyboardInterrupt

    with world.agent(evidence=Crashing()) as agent, pytest.raises(KeyboardInterrupt):
        agent.submit(ROUND)
    evidence = FixedEvidence()
    with world.agent(evidence=evidence) as agent:
        assert agent.ledger.round(ROUND).state is State.ACCEPTED
    assert evidence.forgotten[-1] == world.manifest.events.to


def test_a_coordinator_that_restarts_between_any_two_parcels_is_not_noticed(world: MemberWorld) -> None:
    world.approve()

    def restart(_parcel: object, answer: bytes) -> bytes:
        world.small.restart()
        return answer

    with world.agent(LyingCourier(world.courier, change=restart)) as agent:
        assert agent.submit(ROUND).state is State.ACCEPTED


def test_submitting_again_after_the_end_changes_nothing(world: MemberWorld) -> None:
    world.approve()
    with world.agent() as agent:
        first = agent.submit(ROUND)
    courier = LyingCourier(world.courier)
    with world.agent(courier) as agent:
        assert agent.submit(ROUND) == first
    assert courier.sent == []


# --- time ---------------------------------------------------------------------------------------------------------


def test_local_clock_cannot_open_a_round(world: MemberWorld) -> None:
    world.approve()
    key = Cosigner.from_raw(world.manifest.log_origin, (world.small.state / "log.key").read_bytes())

    def earlier(parcel: Parcel, raw: bytes) -> bytes:
        """The witnesses signed two days before the window."""
        before = world.clock() - timedelta(days=2)
        return answer(raw.split(b"\n")[1:-1], before, key=key) if parcel.kind == "leaves" else raw

    with world.agent(LyingCourier(world.courier, change=earlier)) as agent:
        with pytest.raises(WindowNotOpen):
            agent.submit(ROUND)
        assert agent.ledger.round(ROUND) is None


@pytest.mark.parametrize(("days", "refusal"), [(-3, ClockImplausible), (20, CheckpointTooOld)])
def test_a_clock_that_contradicts_the_log_refuses(world: MemberWorld, days: int, refusal: type[WindvaneError]) -> None:
    world.approve()
    world.clock.pass_by(days=days)
    with world.agent() as agent:
        with pytest.raises(refusal):
            agent.submit(ROUND)
        assert agent.ledger.round(ROUND) is None


def test_quiet_log_does_not_stop_a_correct_clock(world: MemberWorld) -> None:
    for clock in (world.clock, world.small.clock):
        clock.pass_by(days=60)  # no entry for two months; the head is signed anew
    with world.agent() as agent:
        assert agent.scan().head.day == world.clock().date().isoformat()


def test_nothing_is_drawn_after_the_last_moment(world: MemberWorld) -> None:
    world.approve()
    for clock in (world.clock, world.small.clock):
        clock.pass_by(days=2, minutes=1)
    with world.agent() as agent:
        with pytest.raises(RoundClosed):
            agent.submit(ROUND)
        assert agent.ledger.round(ROUND) is None


# --- rounds that end badly ----------------------------------------------------------------------------------------


def _stuck(world: MemberWorld, kind: str) -> None:
    """A submission that got as far as this parcel, which never arrives."""
    world.approve()
    courier = LyingCourier(world.courier, lose=[(kind, "request")])
    with world.agent(courier) as agent, pytest.raises(CoordinatorUnreachable):
        agent.submit(ROUND)


@pytest.mark.parametrize(
    ("kind", "reason"), [("leaf", BurnReason.NOT_COMMITTED_IN_TIME), ("reveal", BurnReason.NOT_ACCEPTED)]
)
def test_a_round_that_closed_without_us_is_burned_and_stays_charged(
    world: MemberWorld, kind: str, reason: BurnReason
) -> None:
    _stuck(world, kind)
    world.small.clock.pass_by(days=3, minutes=1)
    world.clock.pass_by(days=3, minutes=1)
    world.small.coordinator.close_round(ROUND)
    evidence = FixedEvidence()
    with world.agent(evidence=evidence) as agent:
        with pytest.raises(RoundBurned):
            agent.submit(ROUND)
        entry = agent.ledger.round(ROUND)
        assert (entry.state, entry.reason, entry.envelope) == (State.BURNED, reason, None)
        assert agent.ledger.lifetime() == (1, world.manifest.rho)
        assert agent.ledger.own_directions(ROUND)
    assert evidence.forgotten[-1] == world.manifest.events.to


def test_a_coordinator_that_only_says_closed_burns_nothing(world: MemberWorld) -> None:
    _stuck(world, "leaf")

    def closed(parcel: object, answer: bytes) -> bytes:
        if parcel.kind == "leaf":
            raise RoundClosed
        return answer

    with world.agent(LyingCourier(world.courier, change=closed)) as agent:
        with pytest.raises(RoundClosed):
            agent.submit(ROUND)
        assert agent.ledger.round(ROUND).state is State.DRAWN


def test_an_aborted_round_is_burned(world: MemberWorld) -> None:
    _stuck(world, "reveal")
    world.small.coordinator.abort(ROUND, sorted(ABORT_REASONS)[0])
    with world.agent() as agent:
        with pytest.raises(RoundBurned):
            agent.submit(ROUND)
        assert agent.ledger.round(ROUND).reason is BurnReason.ABORTED


def test_an_acceptance_that_is_not_in_the_log_yet_is_not_ready(world: MemberWorld) -> None:
    world.approve()

    class Deaf(LyingCourier):
        def exchange(self, parcel: object) -> bytes:
            return b"" if parcel.kind == "reveal" else super().exchange(parcel)

    with world.agent(Deaf(world.courier)) as agent:
        with pytest.raises(NotReady):
            agent.submit(ROUND)
        assert agent.ledger.round(ROUND).state is State.REVEALED
    with world.agent() as agent:
        assert agent.submit(ROUND).state is State.ACCEPTED


def test_lost_ledger_fails_closed(world: MemberWorld) -> None:
    world.approve()
    (world.folder / "ledger" / "ledger.db").unlink()
    for _ in range(2):  # it is not made anew by trying
        with pytest.raises(LedgerDamaged), world.agent():
            pass
    assert not (world.folder / "ledger" / "ledger.db").exists()


def test_a_ledger_of_another_key_is_refused(world: MemberWorld) -> None:
    path = world.folder / "keys" / "identity.key"
    path.write_bytes(SigningKey.generate().raw)
    with pytest.raises(LedgerDamaged), world.agent(noise=Silent()):
        pass


def test_a_damaged_ledger_draws_nothing(world: MemberWorld) -> None:
    world.approve()
    with world.agent() as agent:
        agent.submit(ROUND)
    connection = sqlite3.connect(world.folder / "ledger" / "ledger.db")
    connection.execute("DROP TRIGGER round_frozen")
    connection.execute("UPDATE round SET rho_num = 1")
    connection.commit()
    connection.close()
    with world.agent() as agent:
        assert agent.ledger.damage is not None
        with pytest.raises(WindvaneError):
            agent.approve("2026-Q4")
