# SPDX-License-Identifier: Apache-2.0
"""kill -9 at random moments of a submission, over real HTTP, with real noise.

Not failures: a member that must be started again; a burned round of a restored backup. Failures: two different hashes
of one member in the log; a second envelope; a member that ends neither accepted nor burned with a reason. Known
randomness: the moments (the seed is in the failure's text), the noise, all keys.
"""

from __future__ import annotations

import os
import random
import secrets
import shutil
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from coordinator_process import serving
from member_world import FixedEvidence
from small_federation import ROUND, START, SmallFederation, leaves_of
from windvane_client.agent import MemberAgent
from windvane_client.https import HttpsCourier
from windvane_client.settings import LogFolder, MemberSettings
from windvane_client.state import MemberState, machine_id
from windvane_privacy.errors import RoundBurned
from windvane_privacy.ledger import Ledger
from windvane_privacy.ledger_schema import State
from windvane_privacy.log import Leaf
from windvane_privacy.noise import OpenDPNoise

ACCEPTED, BURNED, FAILED = 0, 1, 2
KILLS_A_MEMBER = 2


@dataclass
class Running:
    """A federation whose coordinator is a process of its own; `members` are state folders."""

    address: str
    small: SmallFederation
    members: list[Path]

    def log(self) -> tuple[Leaf, ...]:
        return leaves_of(self.small).leaves


@contextmanager
def _running(folder: Path, members: int) -> Iterator[Running]:
    small = SmallFederation(folder / "federation", size=max(1, 20 - members))
    document = small.send("federation", b"", "")
    states = []
    for number in range(members):
        place = folder / f"member-{number}"
        settings = MemberSettings(
            f"Member {number}", "100-249", (), "https://a.example", (LogFolder("/nowhere"),), f"{place}-second"
        )
        states.append(place)
        small.send("enrol", MemberState.create(place, settings, document, demo=True).card(), "")
    small.open_round()
    for place in states:
        with MemberAgent(MemberState.open(place), small.courier, lambda: START) as agent:
            agent.approve(ROUND)
    try:
        with serving(small.state, START) as address:
            yield Running(address, small, states)
    finally:
        small.close()


def _start(place: Path, address: str) -> int:
    """The member as a process; returns its id. It ends with the code of what became of its round."""
    child = os.fork()
    if child:
        return child
    code = FAILED
    try:
        with HttpsCourier(address) as courier:
            agent = MemberAgent(
                MemberState.open(place), courier, lambda: START, noise=OpenDPNoise(), evidence=FixedEvidence()
            )
            with agent:
                code = ACCEPTED if agent.submit(ROUND).state is State.ACCEPTED else FAILED
    except RoundBurned:
        code = BURNED
    finally:
        # Nothing of the test process may be run or flushed twice.
        os._exit(code)
    raise AssertionError


def _wait(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _kill_at_random_moments(running: Running, kills: int) -> None:
    seed = secrets.randbelow(10**9)
    moments = random.Random(seed)
    first, *others = running.members
    OpenDPNoise()  # loaded here once; every member process inherits it
    begin = time.monotonic()
    assert _wait(_start(first, running.address)) == ACCEPTED
    usual = time.monotonic() - begin
    found: Counter[str] = Counter()
    done = 0
    for number, place in enumerate(others):
        backup = place.with_name(f"{place.name}-backup")
        shutil.copytree(place, backup)
        for _ in range(KILLS_A_MEMBER):
            child = _start(place, running.address)
            time.sleep(moments.uniform(0, 1.1 * usual))
            os.kill(child, signal.SIGKILL)
            done += 1
            found["killed" if _wait(child) == -signal.SIGKILL else "was through"] += 1
            with Ledger.open(place / "ledger", machine_id=machine_id()) as ledger:
                entry = ledger.round(ROUND)
                assert ledger.damage is None, f"seed {seed}"
                found["empty" if entry is None else entry.state.value] += 1
        if number % 4 == 3:
            shutil.rmtree(place)
            shutil.copytree(backup, place)
        end = _wait(_start(place, running.address))
        assert end in (ACCEPTED, BURNED), f"seed {seed}, member {number}"
        found[f"ended {end}"] += 1
        with Ledger.open(place / "ledger", machine_id=machine_id()) as ledger:
            entry = ledger.round(ROUND)
            assert entry is not None
            assert entry.state is (State.ACCEPTED if end == ACCEPTED else State.BURNED), f"seed {seed}"
            assert (entry.reason is not None) is (end == BURNED), f"seed {seed}"
            # Only a restored backup may lose a round.
            assert end == ACCEPTED or number % 4 == 3, f"seed {seed}, member {number}"
    assert done >= kills
    assert found["killed"] > 0, f"seed {seed}: no process was killed before its end"
    hashes: dict[tuple[str, object], set[object]] = {}
    for leaf in running.log():
        if leaf.type in ("commitment", "accepted"):
            hashes.setdefault((leaf.type, leaf.fields["member"]), set()).add(leaf.fields["hash"])
    assert all(len(one) == 1 for one in hashes.values()), f"seed {seed}"
    assert sum(kind == "commitment" for kind, _ in hashes) == len(running.members), f"seed {seed}: {found}"


@pytest.mark.process
def test_twelve_kills_never_leave_two_hashes_of_a_member(tmp_path: Path) -> None:
    with _running(tmp_path, 1 + 12 // KILLS_A_MEMBER) as running:
        _kill_at_random_moments(running, 12)


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_two_hundred_kills_never_leave_two_hashes_of_a_member(tmp_path: Path) -> None:
    with _running(tmp_path, 1 + 200 // KILLS_A_MEMBER) as running:
        _kill_at_random_moments(running, 200)
