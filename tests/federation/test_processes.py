# SPDX-License-Identifier: Apache-2.0
"""Real processes die in the middle of a round: three members, any one guardian, the coordinator twice.

One federation of the demo is prepared once: twenty organisations, of which sixteen take part, three are killed in the
middle of `windvane member submit`, and one has not begun. Every test goes on with a copy of its folders and a new
coordinator process on the copied state. The organisations declare a hundred people and have the logs of eight: these
tests are about what survives, not about what is said.

Failures: a round that does not end in a signed report; an entry of the log that is gone; a member counted that never
sent its envelope, or lost after it had committed.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from windvane.demo.federation import DemoFederation
from windvane.demo.members import Organisation
from windvane_client.agent import MemberAgent
from windvane_client.collect import collect
from windvane_client.https import HttpsCourier
from windvane_client.state import MemberState
from windvane_privacy.couriers import ROUTES, Parcel
from windvane_privacy.guardian import GuardianSession
from windvane_privacy.ledger_schema import State
from windvane_privacy.log import Leaf, scan
from windvane_privacy.report_file import Report, verify_quarter
from windvane_server.coordinator import Coordinator

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]

MEMBERS, IN_LOGS, DECLARED = 20, 8, 100
TAKE_PART = 16
KILLED_AT = (("leaf", "request"), ("leaf", "answer"), ("reveal", "request"))
"""Where the line stops for the three members that are killed; each is dead before its envelope has arrived."""
LEDGERS_OF_THE_DEAD = (State.DRAWN, State.DRAWN, State.REVEALED)
LAST = TAKE_PART + len(KILLED_AT)


class Line:
    """HTTP between one member and the coordinator at `target`; keeps one request, or the answer to it, to itself.

    `reached` is set when the kept parcel is here. `let_through` sends it on, `close` throws it away.
    """

    def __init__(self, target: str, kind: str, part: str) -> None:
        self.target, self.kind, self.part = target, kind, part
        self.reached, self._free = threading.Event(), threading.Event()
        self._through = False
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = False
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def let_through(self) -> None:
        self._through = True
        self._free.set()

    def close(self) -> None:
        self._free.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(20)

    def _passes(self, part: str, method: str, path: str) -> bool:
        route = ROUTES[self.kind]
        if (self.part, route.method, route.path.rsplit("/", 1)[1]) != (part, method, path.rsplit("/", 1)[1]):
            return True
        self.reached.set()
        self._free.wait(120)
        return self._through

    def _handler(line) -> type[BaseHTTPRequestHandler]:  # noqa: N805 - `self` is the handler inside
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._carry("GET", b"")

            def do_POST(self) -> None:
                self._carry("POST", self.rfile.read(int(self.headers["Content-Length"])))

            def _carry(self, method: str, body: bytes) -> None:
                path = urlsplit(self.path).path
                if not line._passes("request", method, path):
                    return
                sent = {"Content-Type": self.headers["Content-Type"]} if body else {}
                with httpx.Client(trust_env=False, timeout=60) as client:
                    answer = client.request(method, line.target + self.path, content=body, headers=sent)
                if not line._passes("answer", method, path):
                    return
                self.send_response(answer.status_code)
                self.send_header("Content-Type", answer.headers["Content-Type"])
                self.send_header("Content-Length", str(len(answer.content)))
                self.end_headers()
                self.wfile.write(answer.content)

            def log_message(self, *_what: object) -> None:
                pass

        return Handler


@contextmanager
def _line(target: str, kind: str, part: str) -> Iterator[Line]:
    made = Line(target, kind, part)
    try:
        yield made
    finally:
        made.close()


@dataclass
class Prepared:
    """The folders, at rest. `now`: when the round was planned. `endings`: exit codes of the three members."""

    folder: Path
    now: datetime
    endings: list[int]

    def copy(self, folder: Path) -> DemoFederation:
        """The same federation elsewhere, with a coordinator process that its guardians know."""
        for part in ("coordinator", "guardians", "witnesses"):
            shutil.copytree(self.folder / part, folder / part)
        state = self._federation(folder).members[LAST].state
        shutil.copytree(self._federation(self.folder).members[LAST].state, state)
        _edit(state / "member.toml", str(self.folder), str(folder))
        made = self._federation(folder)
        made.serve()
        for index in (1, 2, 3):
            place = made.guardian(index) / "address.json"
            known = json.loads(place.read_text())
            _edit(place, known["address"], made.address)
        return made

    def _federation(self, folder: Path) -> DemoFederation:
        return DemoFederation(folder, MEMBERS, DECLARED, seed=1, now=self.now)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    folder = tmp_path_factory.mktemp("prepared").resolve()
    with DemoFederation(folder, MEMBERS, IN_LOGS, seed=1) as federation:
        federation.write_logs(_nothing)
        federation.people = DECLARED
        federation.found()
        federation.enrol(_nothing)
        federation.agree()
        assert not federation.too_small
        federation.organisations = TAKE_PART
        federation.take_part(_nothing)
        federation.organisations = MEMBERS
        for member in federation.members[TAKE_PART:]:
            _approve_and_collect(member, federation)
        dying = federation.members[TAKE_PART:LAST]
        endings = [_killed_at(m, federation, *moment) for m, moment in zip(dying, KILLED_AT, strict=True)]
        return Prepared(folder, federation.now, endings)


@pytest.fixture
def federation(prepared: Prepared, tmp_path: Path) -> Iterator[DemoFederation]:
    with prepared.copy(tmp_path.resolve()) as made:
        yield made


def test_three_members_killed_in_mid_submission_are_not_counted(prepared: Prepared, federation: DemoFederation) -> None:
    assert prepared.endings == [-signal.SIGKILL] * len(KILLED_AT)
    original = DemoFederation(prepared.folder, MEMBERS, DECLARED, seed=1, now=prepared.now)
    for member, state in zip(original.members[TAKE_PART:LAST], LEDGERS_OF_THE_DEAD, strict=True):
        with MemberState.open(member.state).ledger() as ledger:
            entry = ledger.round(federation.round_id)
            assert entry is not None
            assert (entry.state, ledger.damage) == (state, None)
    log = _log(federation)
    everyone = range(1, TAKE_PART + 1)
    key_ids = {MemberState.open(m.state).key.key_id for m in original.members[:TAKE_PART]}
    assert {leaf.fields["member"] for leaf in log if leaf.type == "accepted"} == _numbers(log, key_ids)
    assert sum(leaf.type == "accepted" for leaf in log) == len(everyone)
    assert sum(leaf.type == "commitment" for leaf in log) == len(everyone) + 2


@pytest.mark.parametrize(
    ("victim", "moment"), [(1, "before its nonce"), (2, "after its nonce"), (3, "before its nonce")]
)
def test_three_dead_members_and_any_one_dead_guardian_still_end_in_a_report(
    federation: DemoFederation, victim: int, moment: str
) -> None:
    if moment == "after its nonce":
        with _coordinator(federation) as coordinator:
            coordinator.close_round(federation.round_id)
        _kill_when_it_says(_guardian(federation, victim), "nonce is in the log")
    else:
        _kill_when_it_says(_guardian(federation, victim), "Waiting")
    others = [index for index in (1, 2, 3) if index != victim]
    said = _close(federation, others, lot_wait=0)
    assert "opened by two guardians, not cross-checked" in " ".join(said.split())
    log = _log(federation)
    assert {leaf.fields["guardian"] for leaf in log if leaf.type == "opened"} == set(others)
    (lot,) = [leaf.fields for leaf in log if leaf.type == "lot"]
    assert (lot["nonces"][victim - 1] is None) is (moment == "before its nonce")
    report = _publish(federation, crosschecked=False)
    assert report.not_opened is None
    assert report.claims


def test_a_coordinator_killed_between_commit_and_reveal_and_before_the_lot_loses_nothing(
    federation: DemoFederation,
) -> None:
    member = federation.members[LAST]
    with _line(federation.address, "reveal", "request") as line:
        process = _submit(member, federation, line)
        assert line.reached.wait(120)
        before = _log(federation)
        _kill_coordinator(federation)
        after = _log(federation)
        assert [leaf.raw for leaf in after] == [leaf.raw for leaf in before]
        line.let_through()
        _stdout, stderr = process.communicate(timeout=120)
        assert process.returncode == 0, stderr
    (mine,) = _commitments(before, MemberState.open(member.state).key.key_id)
    accepted = {leaf.fields["member"]: leaf.fields["hash"] for leaf in _log(federation) if leaf.type == "accepted"}
    assert accepted[mine.fields["member"]] == mine.fields["hash"]
    assert len(accepted) == TAKE_PART + 1

    with _coordinator(federation) as coordinator:
        root = coordinator.close_round(federation.round_id)
    with (
        HttpsCourier(federation.address) as courier,
        GuardianSession(federation.guardian(1), courier, _now) as guardian,
    ):
        assert guardian.reveal_nonce(federation.round_id).revealed
    before = _log(federation)
    _kill_coordinator(federation)
    assert [leaf.raw for leaf in _log(federation)] == [leaf.raw for leaf in before]
    # The first two results are enough to end this step; the tally before publication checks the third.
    _close(federation, (1, 2, 3), lot_wait=48)
    (lot,) = [leaf.fields for leaf in _log(federation) if leaf.type == "lot"]
    assert lot["set_root"] == root
    assert None not in lot["nonces"]
    report = _publish(federation, crosschecked=True)
    assert report.not_opened is None
    assert report.claims


# --- steps ------------------------------------------------------------------------------------------------------------


def _approve_and_collect(member: Organisation, federation: DemoFederation) -> None:
    state = MemberState.open(member.state)
    with HttpsCourier(federation.address) as courier, MemberAgent(state, courier, _now) as agent:
        agent.approve(federation.round_id)
    assert collect(state, _now()).rows.read > 0


def _submit(member: Organisation, federation: DemoFederation, line: Line) -> subprocess.Popen[str]:
    """`windvane member submit` as a process, over the line."""
    _edit(member.state / "member.toml", MemberState.open(member.state).settings.address, line.address)
    command = ["member", "submit", federation.round_id, "--state", str(member.state), "--yes"]
    return _start(command)


def _killed_at(member: Organisation, federation: DemoFederation, kind: str, part: str) -> int:
    with _line(federation.address, kind, part) as line:
        process = _submit(member, federation, line)
        reached = line.reached.wait(120)
        os.kill(process.pid, signal.SIGKILL)
        _stdout, stderr = process.communicate(timeout=20)
        assert reached, stderr
    return process.returncode


def _guardian(federation: DemoFederation, index: int) -> subprocess.Popen[str]:
    return _start(["guardian", "open", federation.round_id, "--state", str(federation.guardian(index)), "--wait", "90"])


def _kill_when_it_says(process: subprocess.Popen[str], words: str) -> None:
    assert process.stderr is not None
    said = ""
    for line in process.stderr:
        said += line
        if words in said:
            break
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=20)
    assert words in said
    assert process.returncode == -signal.SIGKILL


def _close(federation: DemoFederation, guardians: Sequence[int], *, lot_wait: int) -> str:
    """Guardians and `close-round` at once, as in a real closing week; what `close-round` says at its end."""
    close = ["coordinator", "close-round", federation.round_id, "--state", str(federation.coordinator)]
    first = _start([*close, "--lot-wait", str(lot_wait), "--wait", "90"])
    running = [_guardian(federation, index) for index in guardians]
    said, complaint = first.communicate(timeout=150)
    for process in running:
        _stdout, stderr = process.communicate(timeout=150)
        assert process.returncode == 0, stderr
    assert first.returncode == 0, complaint
    return said


def _publish(federation: DemoFederation, *, crosschecked: bool) -> Report:
    with _coordinator(federation) as coordinator:
        assert coordinator.tally(federation.round_id)[1] is crosschecked
        site = coordinator.publish(federation.round_id)
        key = bytes.fromhex(coordinator.federation.coordinator)
    assert (site / "index.html").is_file()
    return verify_quarter(site / federation.round_id, key)


def _kill_coordinator(federation: DemoFederation) -> None:
    """SIGKILL, and a new process on the same state and port."""
    server = federation._server
    assert server is not None
    assert server.stdout is not None
    os.kill(server.pid, signal.SIGKILL)
    assert server.wait(20) == -signal.SIGKILL
    server.stdout.close()
    port = urlsplit(federation.address).port
    assert port is not None
    federation.serve(port)


@contextmanager
def _coordinator(federation: DemoFederation) -> Iterator[Coordinator]:
    """The operator beside the serving process."""
    made = Coordinator(federation.coordinator)
    try:
        yield made
    finally:
        made.close()


def _start(command: Sequence[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "windvane", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def _log(federation: DemoFederation) -> tuple[Leaf, ...]:
    """The public log as anybody reads it, verified."""
    with HttpsCourier(federation.address) as courier:
        raw = courier.exchange(Parcel("leaves"))
    with _coordinator(federation) as coordinator:
        document = coordinator.federation
    return scan(raw, document.log_policy, now=int(time.time())).leaves


def _commitments(log: Sequence[Leaf], key_id: str) -> list[Leaf]:
    return [leaf for leaf in log if leaf.type == "commitment" and leaf.key_id == key_id]


def _numbers(log: Sequence[Leaf], key_ids: set[str]) -> set[object]:
    """Member numbers of the commitments below these keys."""
    return {leaf.fields["member"] for key_id in key_ids for leaf in _commitments(log, key_id)}


def _edit(path: Path, old: str, new: str) -> None:
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")


def _nothing(_step: int) -> None:
    pass


def _now() -> datetime:
    return datetime.now(UTC)
