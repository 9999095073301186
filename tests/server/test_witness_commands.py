# SPDX-License-Identifier: Apache-2.0
"""`windvane witness` as an operator runs it: separate processes that visit a coordinator over HTTP."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from small_federation import ROUND, SmallFederation
from windvane_client.https import HttpsCourier
from windvane_privacy.errors import NotReady
from windvane_privacy.guardian_state import init_guardian, pin_coordinator
from windvane_privacy.witness_state import init_witness
from windvane_server.coordinator import Coordinator, init_coordinator

RUN = (sys.executable, "-c", "from windvane.main import run; run()")


def windvane(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*RUN, *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """A coordinator with five witnesses that come by themselves: four suffice, one may lie."""
    cards = [init_guardian(tmp_path / f"guardian-{j}", f"Guardian {j}", f"Group {j}") for j in (1, 2, 3)]
    keys = [init_witness(tmp_path / f"w{j}", f"witness-{j}.test") for j in range(1, 6)]
    federation = init_coordinator(tmp_path / "coordinator", name="Visited", guardians=cards, witnesses=keys, demo=True)
    assert (federation.log.quorum, federation.log.faulty) == (4, 1)
    for j in (1, 2, 3):
        pin_coordinator(tmp_path / f"guardian-{j}", federation.encode(), demo=True)
    command = [*RUN, "coordinator", "run", "--state", str(tmp_path / "coordinator"), "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["address"]
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(20)


@pytest.mark.process
def test_witnesses_from_cron_let_a_log_grow(tmp_path: Path, address: str) -> None:
    for j in range(1, 6):
        pinned = windvane("witness", "pin", "--state", tmp_path / f"w{j}", "--coordinator", address, "--yes")
        assert pinned.returncode == 0, pinned.stderr
        assert "windvane witness run" in pinned.stdout
    empty = windvane("witness", "run", "--state", tmp_path / "w1")
    assert (empty.returncode, empty.stdout) == (1, "")
    assert empty.stderr.startswith("NotReady")
    with HttpsCourier(address) as courier:
        small = _bare(tmp_path, courier)
        small.coordinator.propose_roster(ROUND)
        with small.guardian(1) as session:
            with pytest.raises(NotReady, match="witnesses"):
                session.ready(ROUND)
            for j in range(1, 4):
                said = json.loads(windvane("witness", "run", "--state", tmp_path / f"w{j}", "--json").stdout)
                assert (said["before"], said["size"]) == (0, 1)
            with pytest.raises(NotReady, match="witnesses"):
                session.ready(ROUND)
            windvane("witness", "run", "--state", tmp_path / "w5")
            session.ready(ROUND)
        again = windvane("witness", "run", "--state", tmp_path / "w5")
        assert (again.returncode, again.stdout.count("\n")) == (0, 1)
        status = json.loads(windvane("witness", "status", "--state", tmp_path / "w5", "--json").stdout)
        assert [one["size"] for one in status["logs"].values()] == [1]
        small.coordinator.close()


@pytest.mark.process
def test_a_witness_that_the_federation_does_not_name_pins_nothing(tmp_path: Path, address: str) -> None:
    windvane("witness", "init", "--state", tmp_path / "other", "--name", "other.test")
    refused = windvane("witness", "pin", "--state", tmp_path / "other", "--coordinator", address, "--yes")
    assert refused.returncode == 1
    assert "does not name this witness" in refused.stderr
    assert windvane("witness", "run", "--state", tmp_path / "other").returncode == 1


def _bare(folder: Path, courier: HttpsCourier) -> SmallFederation:
    """The same coordinator's folder, for the operator's steps, and twenty members over HTTP."""
    small = object.__new__(SmallFederation)
    small.folder, small.members, small.courier, small.demo = folder, [], courier, True
    small.clock = lambda: datetime.now(UTC)  # type: ignore[assignment]  # this machine's own time
    small.coordinator = Coordinator(folder / "coordinator")
    for number in range(1, 21):
        small.enrol(f"Organisation {number}")
    return small
