# SPDX-License-Identifier: Apache-2.0
"""Which policy decides: what was adopted, until somebody says that a looser file was meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from member_world import MemberWorld
from small_federation import ROUND
from windvane_client.in_force import ADOPTED, adopt, looser_than_adopted, policy_in_force
from windvane_privacy.errors import ConfigurationError, PolicyLoosened, PolicyMissing

DAY = "2026-10-02"


def edit(world: MemberWorld, old: str, new: str) -> None:
    path = world.folder / "policy.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def notes(world: MemberWorld, what: str = "policy") -> int:
    with world.state.ledger() as ledger:
        return len(ledger.notes(what))


def test_the_first_start_adopts_what_set_up_wrote(world: MemberWorld) -> None:
    assert notes(world) == 1  # the fixture's member has enrolled
    assert (world.folder / ADOPTED).read_bytes() == (world.folder / "policy.toml").read_bytes()
    assert (world.folder / ADOPTED).stat().st_mode & 0o777 == 0o600


def test_a_tightened_file_is_adopted_at_the_next_start_and_decides(world: MemberWorld) -> None:
    edit(world, "max_C = 20", "max_C = 19")
    with world.agent():
        pass
    assert notes(world) == 2
    assert "max_C = 19" in (world.folder / ADOPTED).read_text()


def test_a_loosened_file_is_noticed_and_nothing_is_approved_or_drawn_under_it(world: MemberWorld) -> None:
    world.approve()
    edit(world, "max_C = 20", "max_C = 21")
    said: list[str] = []
    with world.agent(warn=said.append) as agent:
        with pytest.raises(PolicyLoosened, match="max_C"):
            agent.approve(ROUND)
        with pytest.raises(PolicyLoosened):
            agent.submit(ROUND)
        assert agent.ledger.round(ROUND) is None
    assert any("max_C" in one for one in said)
    assert notes(world) == 1


def test_put_back_it_decides_again(world: MemberWorld) -> None:
    edit(world, "max_C = 20", "max_C = 21")
    with world.agent(warn=lambda _said: None):
        pass
    edit(world, "max_C = 21", "max_C = 20")
    world.approve()
    assert notes(world) == 1


def test_an_approval_of_auto_that_was_written_by_hand_draws_nothing(world: MemberWorld) -> None:
    edit(world, 'approval = "human"', 'approval = "auto"')
    with world.agent() as agent:
        with pytest.raises(PolicyLoosened, match="approval"):
            agent.submit(ROUND)
        assert agent.ledger.approval(ROUND) is None


def test_a_coordinator_that_was_written_by_hand_is_not_believed(world: MemberWorld) -> None:
    """The pins of the adopted policy read the log, so the member still knows its own federation."""
    pinned = world.state.policy.coordinator
    edit(world, pinned, "ab" * 32)
    with world.agent() as agent:
        agent.scan()
        with pytest.raises(PolicyLoosened, match="coordinator"):
            agent.agreement(ROUND)


def test_loosening_that_was_meant_is_adopted_and_noted_by_its_own_entry(world: MemberWorld) -> None:
    edit(world, "max_C = 20", "max_C = 21")
    raw = (world.folder / "policy.toml").read_bytes()
    with world.state.ledger() as ledger:
        assert looser_than_adopted(world.folder, ledger, world.state.policy) == ("max_C",)
        with pytest.raises(PolicyLoosened):
            adopt(world.folder, ledger, raw, DAY, meant=False)
        assert adopt(world.folder, ledger, raw, DAY, meant=True) == ("max_C",)
        assert looser_than_adopted(world.folder, ledger, world.state.policy) == ()
    assert (notes(world), notes(world, "loosened")) == (2, 1)
    world.approve()


@pytest.mark.parametrize("spoil", ["gone", "another"])
def test_without_the_adopted_copy_nothing_is_compared_and_nothing_starts(world: MemberWorld, spoil: str) -> None:
    """Whoever loosens both files is noticed too: the ledger holds the hash of what was adopted."""
    edit(world, "max_C = 20", "max_C = 21")
    if spoil == "gone":
        (world.folder / ADOPTED).unlink()
    else:
        (world.folder / ADOPTED).write_bytes((world.folder / "policy.toml").read_bytes().replace(b"21", b"22"))
    with pytest.raises(PolicyLoosened, match="not there to compare"), world.agent():
        pass
    raw = (world.folder / "policy.toml").read_bytes()
    with world.state.ledger() as ledger:
        assert looser_than_adopted(world.folder, ledger, world.state.policy) is None
        with pytest.raises(PolicyLoosened):
            adopt(world.folder, ledger, raw, DAY, meant=False)
        assert adopt(world.folder, ledger, raw, DAY, meant=True) == ()
    world.approve()


def test_a_crash_between_entry_and_copy_loosens_nothing(world: MemberWorld) -> None:
    """The ledger holds the new hash, the copy is the old one: the file that was noted is in force, no other."""
    old = (world.folder / ADOPTED).read_bytes()
    edit(world, "max_C = 20", "max_C = 19")
    with world.agent():
        pass
    (world.folder / ADOPTED).write_bytes(old)
    with world.state.ledger() as ledger:
        assert policy_in_force(world.folder, ledger, DAY).policy.max_C == 19
    assert b"max_C = 19" in (world.folder / ADOPTED).read_bytes()
    (world.folder / ADOPTED).write_bytes(old)
    edit(world, "max_C = 19", "max_C = 20")
    with pytest.raises(PolicyLoosened), world.agent():
        pass


@pytest.mark.parametrize(
    ("content", "error"), [(None, PolicyMissing), ("max_C = [", PolicyMissing), ("max_C = 20", ConfigurationError)]
)
def test_a_missing_or_unreadable_policy_accepts_nothing_whatever_was_adopted(
    world: MemberWorld, content: str | None, error: type[Exception]
) -> None:
    path: Path = world.folder / "policy.toml"
    path.unlink() if content is None else path.write_text(content)
    with pytest.raises(error), world.agent():
        pass
