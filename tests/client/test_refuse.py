# SPDX-License-Identifier: Apache-2.0
"""A member stops a round for itself: before the draw nobody is told, after it the log is, and nothing more is sent."""

from __future__ import annotations

import pytest

from member_world import LyingCourier, MemberWorld
from small_federation import ROUND
from windvane_privacy import canonical
from windvane_privacy.couriers import Parcel
from windvane_privacy.errors import (
    CoordinatorUnreachable,
    IllegalTransition,
    MalformedLeaf,
    NotReady,
    RoundBurned,
    RoundStopped,
    SignatureInvalid,
    UnknownMember,
)
from windvane_privacy.identity import SigningKey
from windvane_privacy.leaf import make_leaf
from windvane_privacy.ledger_schema import BurnReason, State, StopReason

LEGAL = StopReason.LEGAL


def incidents(world: MemberWorld) -> list[dict[str, object]]:
    return [dict(leaf.fields) for leaf in world.log().leaves if leaf.type == "incident"]


def drawn(world: MemberWorld) -> None:
    """The draw is stored, the commitment is lost on its way."""
    world.approve()
    courier = LyingCourier(world.courier, lose=[("leaf", "request")])
    with world.agent(courier) as agent, pytest.raises(CoordinatorUnreachable):
        agent.submit(ROUND)


def test_a_round_refused_before_the_draw_is_never_drawn_and_nobody_is_told(world: MemberWorld) -> None:
    world.approve()
    with world.agent() as agent:
        assert agent.refuse(ROUND, LEGAL) is None
        assert agent.refuse(ROUND, StopReason.KEY_LOSS) is None  # again is harmless; the first reason stays
        with pytest.raises(RoundStopped):
            agent.submit(ROUND)
        assert agent.ledger.round(ROUND) is None
        assert agent.ledger.stop(ROUND).reason is LEGAL
        assert agent.ledger.lifetime() == (0, 0)
    assert incidents(world) == []
    assert world.mine("commitment") == []


def test_after_the_draw_it_burns_stays_charged_and_the_log_says_so(world: MemberWorld) -> None:
    drawn(world)
    with world.agent() as agent:
        entry = agent.refuse(ROUND, LEGAL)
        assert (entry.state, entry.reason) == (State.BURNED, BurnReason.STOPPED)
        assert entry.envelope is None
        assert agent.ledger.lifetime() == (1, world.manifest.rho)
        with pytest.raises(RoundBurned):
            agent.submit(ROUND)
    assert [(one["what"], one["note"]) for one in incidents(world)] == [("stopped", "legal")]
    assert world.mine("commitment") == world.mine("accepted") == []


def test_a_stop_that_could_not_be_told_is_told_at_the_next_call(world: MemberWorld) -> None:
    drawn(world)
    courier = LyingCourier(world.courier, lose=[("leaf", "request")])
    with world.agent(courier) as agent, pytest.raises(CoordinatorUnreachable):
        agent.refuse(ROUND, StopReason.WRONG_CONFIGURATION)
    assert incidents(world) == []
    with world.agent() as agent:
        assert agent.ledger.round(ROUND).state is State.BURNED
        agent.scan()
        agent.scan()
    assert [one["note"] for one in incidents(world)] == ["wrong_configuration"]


def test_what_was_revealed_cannot_be_taken_back(world: MemberWorld) -> None:
    world.approve()
    courier = LyingCourier(world.courier, lose=[("reveal", "request")])
    with world.agent(courier) as agent:
        with pytest.raises(CoordinatorUnreachable):
            agent.submit(ROUND)
        assert agent.ledger.round(ROUND).state is State.REVEALED
        with pytest.raises(IllegalTransition):
            agent.refuse(ROUND, LEGAL)
        assert agent.submit(ROUND).state is State.ACCEPTED
        with pytest.raises(IllegalTransition):
            agent.refuse(ROUND, LEGAL)
    assert incidents(world) == []


def test_a_committed_round_can_be_stopped_and_is_not_accepted(world: MemberWorld) -> None:
    world.approve()
    courier = LyingCourier(world.courier, lose=[("reveal", "request")])
    with world.agent(courier) as agent:
        ledger = agent.ledger
        ledger.reveal = lambda _round: (_ for _ in ()).throw(NotReady())  # the machine stops before it reveals
        with pytest.raises(NotReady):
            agent.submit(ROUND)
        assert ledger.round(ROUND).state is State.COMMITTED
        assert agent.refuse(ROUND, StopReason.KEY_LOSS).reason is BurnReason.STOPPED
    assert len(world.mine("commitment")) == 1
    assert world.mine("accepted") == []
    assert [one["note"] for one in incidents(world)] == ["key_loss"]


def test_the_coordinator_takes_a_stop_only_from_the_member_itself(world: MemberWorld) -> None:
    def said(key: SigningKey, what: str = "stopped", note: str = "legal") -> Parcel:
        return Parcel(
            "leaf", ROUND, make_leaf("incident", ROUND, {"what": what, "note": note, "day": "2026-10-02"}, key)
        )

    member = world.state.key
    for parcel, refusal in (
        (said(SigningKey.generate()), UnknownMember),
        (said(member, what="aborted"), MalformedLeaf),
        (said(member, note="I did not like my numbers"), MalformedLeaf),
    ):
        with pytest.raises(refusal):
            world.courier.exchange(parcel)
    forged = said(member)
    broken = forged.body.replace(b'"legal"', b'"key_loss"')
    with pytest.raises(SignatureInvalid):
        world.courier.exchange(Parcel("leaf", ROUND, broken))
    assert incidents(world) == []
    assert world.courier.exchange(forged) == world.courier.exchange(said(member, note="key_loss"))
    assert [one["note"] for one in incidents(world)] == ["legal"], "the first one counts"


def test_a_members_stop_does_not_stop_the_round_for_others(world: MemberWorld) -> None:
    drawn(world)
    with world.agent() as agent:
        agent.refuse(ROUND, LEGAL)
    standing = canonical.decode(world.courier.exchange(Parcel("state", ROUND)))
    assert standing["state"] == "open"
