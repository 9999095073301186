# SPDX-License-Identifier: Apache-2.0
"""A member killed in, or failed by, every call that writes to its disk, from the approval to the end of its round.

The real agent is a process under strace, its coordinator is honest. Not failures: a refusal with a name. Failures:
two hashes or two envelopes of one member and round seen outside; an end without its words; a trace; a round that does
not end accepted once the disk works again.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from conftest import not_run
from faulty_calls import ACCEPTED, DURABLE, REFUSED, Fault, SocketCourier, run, strace
from member_world import FixedEvidence, MemberWorld, Silent
from slices import our_turn
from small_federation import ROUND
from windvane_client import agent as agent_module
from windvane_client.agent import MemberAgent
from windvane_privacy.couriers import Parcel
from windvane_privacy.errors import WindvaneError
from windvane_privacy.ledger_schema import State
from windvane_privacy.noise import OpenDPNoise

pytestmark = pytest.mark.process
KINDS = [("KILL", False), ("EIO", False), ("EIO", True), ("ENOSPC", True)]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> MemberWorld:
    if strace() is None:
        not_run("calls of the kernel cannot be made to fail", "install strace")
    OpenDPNoise()  # loaded once; every member process inherits it
    made = MemberWorld(tmp_path_factory.mktemp("template"))
    made.small.close()
    return made


@pytest.fixture(scope="module")
def usual(template: MemberWorld, tmp_path_factory: pytest.TempPathFactory) -> Counter[str]:
    """How often a member makes each call when nothing fails."""
    with _Trial(template, tmp_path_factory.mktemp("usual")) as trial:
        code, calls = trial.run(None)
        assert code == ACCEPTED
        assert trial.problems() == []
    return calls


class _Trial:
    """One member and its coordinator; what left the member."""

    def __init__(self, template: MemberWorld, folder: Path) -> None:
        self.world = MemberWorld.copy_of(folder / "world", template)
        self.folder = folder
        self.hashes: set[bytes] = set()
        self.envelopes: set[bytes] = set()

    def __enter__(self) -> _Trial:
        return self

    def __exit__(self, *_: object) -> None:
        self.world.small.close()

    def answer(self, parcel: Parcel) -> bytes:
        if parcel.kind in ("leaf", "reveal"):
            (self.hashes if parcel.kind == "leaf" else self.envelopes).add(parcel.body)
        return self.world.small.coordinator.handle(parcel)

    def member(self, courier: SocketCourier) -> int:
        with MemberAgent(
            self.world.state, courier, self.world.clock, noise=OpenDPNoise(), evidence=FixedEvidence()
        ) as agent:
            agent.approve(ROUND)
            return ACCEPTED if agent.submit(ROUND).state is State.ACCEPTED else REFUSED

    def run(self, fault: Fault | None) -> tuple[int, Counter[str]]:
        return run(self.member, self.answer, fault, self.folder / "calls")

    def problems(self) -> list[str]:
        """Start again on a disk that works; everything that is wrong then."""
        world, found = self.world, []
        with world.agent() as agent:
            entry = agent.ledger.round(ROUND)
            if agent.ledger.damage is not None:
                found.append("unopenable")
            if self.hashes and entry is None:
                found.append("a charge was lost")
        courier = _Watched(self)
        with world.agent(courier, noise=Silent()) as agent:
            try:
                agent.approve(ROUND)
                entry = agent.submit(ROUND)
                if not agent.ledger.own_directions(ROUND):
                    found.append("an end without its words")
                if entry.state is not State.ACCEPTED or agent.ledger.lifetime() != (1, world.manifest.rho):
                    found.append("not accepted and charged once")
            except WindvaneError as error:
                found.append(f"does not go on: {error!r}")
        if len(self.hashes) != 1 or len(self.envelopes) != 1 or len(world.mine("commitment")) != 1:
            found.append("double draw")
        return found


class _Watched:
    def __init__(self, trial: _Trial) -> None:
        self._trial = trial

    def exchange(self, parcel: Parcel) -> bytes:
        return self._trial.answer(parcel)


def _faults(usual: Counter[str], how: str, lasting: bool) -> list[Fault]:
    return [Fault(call, n, how, lasting) for call in DURABLE for n in range(1, usual[call] + 1)]


def _wrong(template: MemberWorld, folder: Path, faults: list[Fault]) -> tuple[dict[Fault, object], Counter[int]]:
    wrong: dict[Fault, object] = {}
    codes: Counter[int] = Counter()
    for number, fault in enumerate(faults):
        place = folder / str(number)
        place.mkdir()
        with _Trial(template, place) as trial:
            code, _calls = trial.run(fault)
            codes[code] += 1
            allowed = (-9,) if fault.how == "KILL" else (ACCEPTED, REFUSED)
            problems = trial.problems()
            if problems or code not in allowed:
                wrong[fault] = (code, problems)
    return wrong, codes


def test_the_calls_that_make_it_durable_are_made(usual: Counter[str]) -> None:
    assert min(usual[call] for call in ("pwrite64", "unlink", "rename")) >= 1
    assert usual["fsync"] + usual["fdatasync"] >= 20
    assert sum(usual.values()) >= 60


@pytest.mark.parametrize(("how", "lasting"), KINDS)
def test_a_call_that_fails_never_doubles_a_draw(
    template: MemberWorld, usual: Counter[str], tmp_path: Path, how: str, lasting: bool
) -> None:
    faults = _faults(usual, how, lasting)[KINDS.index((how, lasting)) :: len(KINDS) * 8]
    wrong, codes = _wrong(template, tmp_path, faults)
    assert wrong == {}
    assert codes[-9 if how == "KILL" else REFUSED] > 0


def test_the_trials_bite_when_a_hash_leaves_before_it_is_stored(
    template: MemberWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, doubled = agent_module.make_submission, 0
    for number in range(1, 30, 3):
        place = tmp_path / str(number)
        place.mkdir()
        with _Trial(template, place) as trial:

            def member(courier: SocketCourier, trial: _Trial = trial) -> int:
                def hasty(*given: object, **how: object) -> object:
                    made = real(*given, **how)
                    courier.exchange(Parcel("leaf", ROUND, made.commitment_leaf))
                    return made

                monkeypatch.setattr(agent_module, "make_submission", hasty)
                return trial.member(courier)

            run(member, trial.answer, Fault("pwrite64", 20 + number, "KILL"), place / "calls")
            doubled += bool({"a charge was lost", "double draw"} & set(trial.problems()))
    assert doubled > 0


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("how", "lasting"), KINDS)
def test_no_call_that_fails_doubles_a_draw(
    template: MemberWorld, usual: Counter[str], tmp_path: Path, how: str, lasting: bool
) -> None:
    our_turn(KINDS.index((how, lasting)), len(KINDS))
    wrong, codes = _wrong(template, tmp_path, _faults(usual, how, lasting))
    assert wrong == {}
    assert codes[-9 if how == "KILL" else REFUSED] > 0
