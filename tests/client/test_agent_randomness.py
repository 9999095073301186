# SPDX-License-Identifier: Apache-2.0
"""The agent's own coins and noise, when nobody hands in others."""

from __future__ import annotations

import secrets

from member_world import MemberWorld
from small_federation import ROUND
from windvane_client.agent import MemberAgent
from windvane_privacy.ledger_schema import State


def test_an_agent_that_is_told_nothing_uses_the_systems_generator(world: MemberWorld) -> None:
    with MemberAgent(world.state, world.courier, world.clock) as agent:
        assert type(agent._sampler) is secrets.SystemRandom
        assert agent._noise is None  # OpenDP's is made at the draw, not before


def test_an_agent_that_is_told_nothing_adds_noise_to_every_number(world: MemberWorld) -> None:
    """A member without a vote: whatever it sends that is not zero is noise, on D and on T."""
    world.approve()
    with MemberAgent(world.state, world.courier, world.clock) as agent:
        noisy = agent.submit(ROUND).noisy
        assert agent.ledger.round(ROUND).state is State.ACCEPTED
    assert noisy is not None
    scale = world.manifest.share_scale
    for entries in (noisy[0::2], noisy[1::2]):
        assert sum(entry != 0 for entry in entries) > 0.9 * len(entries)
        variance = sum(entry * entry for entry in entries) / len(entries)
        assert 0.3 < variance / scale**2 < 3
