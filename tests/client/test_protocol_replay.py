# SPDX-License-Identifier: Apache-2.0
"""The steps of the protocol model taken by the real agent, ledger and coordinator: the model allows every one of them.

Hypothesis chooses what happens: requests and answers are lost, late or doubled, logs are old, backups are restored, the
installation is cloned, the coordinator logs a second commitment, the round closes. After each event the model must hold
exactly what the real ledgers, the real log and the couriers hold.
"""

from __future__ import annotations

import itertools
import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from member_world import FixedEvidence, MemberWorld, Silent
from protocol_model import (
    ACCEPTED,
    BURNED,
    CLOSED,
    COMMITTED,
    DRAWN,
    EMPTY,
    ENVELOPE,
    LEAF,
    NOTHING,
    REVEALED,
    Action,
    Bounds,
    Model,
    World,
    bit,
    start,
)
from small_federation import ROUND
from windvane_client.agent import MemberAgent
from windvane_client.state import MemberState
from windvane_privacy import canonical
from windvane_privacy.couriers import Parcel
from windvane_privacy.errors import CoordinatorUnreachable, DuplicateSubmission, WindvaneError
from windvane_privacy.ledger import Ledger
from windvane_privacy.ledger_schema import RoundEntry
from windvane_privacy.log import scan

STATES = {
    None: EMPTY, "drawn": DRAWN, "committed": COMMITTED, "revealed": REVEALED, "accepted": ACCEPTED, "burned": BURNED,
}  # fmt: skip
FATES = ("pass", "lose request", "lose answer", "late", "twice", "old log", "oldest log", "log both")
PLENTY = Bounds(99, 99, 1, 99, 99, 99, 0, 99, draws=5)


class Replay:
    """Real parties beside the model; every event of the real ones is a step of the model, or the test fails."""

    def __init__(self, template: MemberWorld, folder: Path) -> None:
        self.real = MemberWorld.copy_of(folder, template)
        self.real.approve()
        self.model, self.world = Model(PLENTY), start(PLENTY)
        self.places = [self.real.folder]
        self.numbers: dict[str, int] = {}
        self.revealed: set[bytes] = set()
        self.late: list[Parcel] = []
        self.logs: list[bytes] = [self.real.small.send("leaves", b"", "")]
        self.saved: Path | None = None
        self.sent: dict[bytes, int] = {}
        self.copies = itertools.count()
        self.taken: Counter[object] = Counter()

    # --- the model's side ---

    def step(self, action: Action, fits: Callable[[World], bool] = lambda _after: True) -> None:
        found = [after for taken, after in self.model.steps(self.world) if taken == action and fits(after)]
        assert found, f"the model does not allow {action} in {self.world}"
        assert self.model.broken(found[0], action, self.world) is None
        self.world = found[0]
        self.taken[action[0]] += 1
        self.taken.update({("state", machine.state) for machine in self.world.machines})

    def relevant(self, raw: bytes | None = None) -> tuple[int, ...]:
        """The log as the model sees it: commitments of our key, acceptances of ours, the closing."""
        small = self.real.small
        raw = small.send("leaves", b"", "") if raw is None else raw
        leaves = scan(raw, small.coordinator.federation.log_policy, now=int(small.clock().timestamp())).leaves
        found = []
        for leaf in leaves:
            if leaf.type == "commitment" and leaf.fields["member"] == 20:
                found.append(self.numbers[leaf.fields["hash"]])
            elif leaf.type == "accepted" and leaf.fields["member"] == 20:
                found.append(-self.numbers[leaf.fields["hash"]])
            elif leaf.type == "round-closed":
                found.append(CLOSED)
        return tuple(found)

    def settle(self, index: int, ledger: Ledger) -> None:
        """Take the steps that the ledger has taken since the last look."""
        entry = ledger.round(ROUND)
        known = self.world.machines[index]
        if entry is not None and entry.commit_hash not in self.numbers:
            self.numbers[entry.commit_hash or ""] = len(self.numbers) + 1
            self.step(("draw", index))
            known = self.world.machines[index]
        now = STATES[None if entry is None else entry.state.value]
        if known.state == DRAWN and now in (COMMITTED, REVEALED):
            self.step(("commit", index))
        if self.world.machines[index].state == COMMITTED and now == REVEALED:
            self.step(("reveal", index))
        assert self.world.machines[index].state == now
        if entry is not None and not entry.everyone:
            assert self.world.machines[index].draw == self.numbers[entry.commit_hash or ""]

    def scanned(self, index: int, raw: bytes) -> None:
        length = len(self.relevant(raw))
        machine = self.world.machines[index]
        if self.model.scanned(machine, self.world.log[:length]) != machine:
            self.step(("scan", index, length))

    def delivered(self, parcel: Parcel, *, double: bool, kept: bool = False) -> bytes:
        """Hand a parcel to the real coordinator, and the same message to the model's."""
        kind = LEAF if parcel.kind == "leaf" else ENVELOPE
        draw = self.sent[parcel.body]
        if not self.world.net & bit(kind, draw):
            return self.real.small.coordinator.handle(parcel)  # a copy of what came before
        refused: WindvaneError | None = None
        answer = b""
        try:
            answer = self.real.small.coordinator.handle(parcel)
        except DuplicateSubmission as error:
            refused = error
            if double and kind == LEAF and CLOSED not in self.world.log and draw not in self.world.log:
                self.real.append(parcel.body)
        except WindvaneError as error:
            refused = error
        now = self.relevant()
        self.step(("duplicate" if kept else "deliver", kind, draw), lambda after: after.log == now)
        self.logs.append(self.real.small.send("leaves", b"", ""))
        if refused is not None:
            raise refused
        return answer

    # --- the real side ---

    def submit(self, index: int, fates: list[str]) -> None:
        """One process of this installation, from its start to its end."""
        self.real.folder = self.places[index]
        wire = Wire(self, index, fates)
        with MemberAgent(
            MemberState.open(self.places[index]), wire, self.real.clock, noise=Silent(), evidence=FixedEvidence()
        ) as agent:
            wire.ledger = agent.ledger
            with suppress(WindvaneError):  # a named refusal is an answer; anything else fails the test
                agent.submit(ROUND)
            wire.look()
        machine = self.world.machines[index]
        if machine.view != NOTHING or machine.receipt:
            self.step(("crash", index))
        self.check()

    def arrive(self, *, double: bool = False) -> None:
        """The oldest late parcel reaches the coordinator."""
        with suppress(WindvaneError):
            self.delivered(self.late.pop(0), double=double)
        self.check()

    def back_up(self) -> None:
        self.real.folder = self.places[0]
        self.saved = self.real.backup(f"backup-{next(self.copies)}")
        if self.world.backup != self._kept():
            self.step(("backup",))

    def restore(self) -> None:
        assert self.saved is not None
        self.real.folder = self.places[0]
        self.real.restore(self.saved)
        if self.world.backup != self._kept():
            self.step(("restore",))

    def _kept(self) -> tuple[int, int, int]:
        first = self.world.machines[0]
        return first.state, first.draw, first.seen

    def clone(self) -> None:
        """A second machine: the folder and the second place, as a copied disk has them."""
        self.real.folder = self.places[0]
        place, second = self.real.backup("clone"), self.real.second
        copied = second.with_name("clone-second")
        if second.exists():
            shutil.copytree(second, copied)
        text = (place / "member.toml").read_text()
        (place / "member.toml").write_text(text.replace(str(second), str(copied)))
        self.places.append(place)
        self.step(("clone",))

    def close(self) -> None:
        for clock in (self.real.small.clock, self.real.clock):
            clock.pass_by(days=3, minutes=1)
        self.real.small.coordinator.close_round(ROUND)
        self.step(("close",))
        self.check()

    def check(self) -> None:
        assert self.relevant() == self.world.log
        assert len(self.revealed) <= 1
        assert len(self.revealed) == self.world.visible.bit_count()


class Wire:
    """The courier between one process and the coordinator; `fates` say what becomes of each parcel in turn."""

    def __init__(self, replay: Replay, index: int, fates: list[str]) -> None:
        self._replay, self._index, self._fates = replay, index, iter(fates)
        self._scan: bytes | None = None
        self.ledger: Ledger | None = None

    def look(self) -> None:
        """What the process did since its last parcel: it believed a scan or refused it, and went on."""
        replay, index = self._replay, self._index
        assert self.ledger is not None
        if self._scan is not None:
            # Believed only if the second place holds this very answer's checkpoint; a restore does not set it back.
            shown = canonical.decode(self._scan.split(b"\n")[0], max_bytes=1 << 20)["checkpoint"]
            if MemberState.open(replay.places[index]).second_head() == shown.encode():
                replay.scanned(index, self._scan)
            self._scan = None
        replay.settle(index, self.ledger)

    def exchange(self, parcel: Parcel) -> bytes:
        replay = self._replay
        if parcel.kind not in ("leaves", "leaf", "reveal"):
            return replay.real.small.coordinator.handle(parcel)
        self.look()
        fate = next(self._fates, "pass")
        if parcel.kind == "leaves":
            return self._log(fate)
        draw = replay.world.machines[self._index].draw
        replay.sent[parcel.body] = draw
        if parcel.kind == "leaf":
            replay.step(("send_leaf", self._index))
        else:
            replay.revealed.add(parcel.body)
            replay.step(("send_envelope", self._index))
        if fate == "lose request":
            raise CoordinatorUnreachable
        if fate == "late":
            replay.late.append(parcel)
            raise CoordinatorUnreachable
        if fate == "twice":
            with suppress(WindvaneError):
                replay.delivered(parcel, double=False, kept=True)
        answer = replay.delivered(parcel, double=fate == "log both")
        if fate == "lose answer":
            raise CoordinatorUnreachable
        if parcel.kind == "leaf":
            replay.step(("take_receipt", self._index))
        return answer

    def _log(self, fate: str) -> bytes:
        replay = self._replay
        if fate in ("lose request", "lose answer", "late"):
            raise CoordinatorUnreachable
        replay.logs.append(replay.real.small.send("leaves", b"", ""))
        older = {"old log": replay.logs[len(replay.logs) // 2], "oldest log": replay.logs[0]}
        self._scan = older.get(fate, replay.logs[-1])
        return self._scan


def _machine(template: MemberWorld, folder: Path, taken: Counter[object]) -> type[RuleBasedStateMachine]:
    places = itertools.count()

    class Histories(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.place = folder / str(next(places))
            self.replay = Replay(template, self.place)
            self.replay.taken = taken

        def teardown(self) -> None:
            self.replay.real.small.close()
            shutil.rmtree(self.place)

        @rule(which=st.integers(0, 1), fates=st.lists(st.sampled_from(FATES), max_size=6))
        def submit(self, which: int, fates: list[str]) -> None:
            self.replay.submit(which % len(self.replay.places), fates)

        @precondition(lambda self: self.replay.late)
        @rule(double=st.booleans())
        def a_late_parcel_arrives(self, double: bool) -> None:
            self.replay.arrive(double=double)

        @rule()
        def back_up(self) -> None:
            self.replay.back_up()

        @precondition(lambda self: self.replay.saved)
        @rule()
        def restore(self) -> None:
            self.replay.restore()

        @precondition(lambda self: CLOSED not in self.replay.world.log and self.replay.world.draws)
        @rule(rarely=st.integers(0, 3))
        def close(self, rarely: int) -> None:
            if not rarely:  # nothing much happens afterwards
                self.replay.close()

        @precondition(lambda self: len(self.replay.places) == 1)
        @rule()
        def clone(self) -> None:
            self.replay.clone()

    return Histories


def _settings(examples: int) -> settings:
    return settings(
        max_examples=examples, stateful_step_count=12, deadline=None, suppress_health_check=list(HealthCheck),
        print_blob=True,
    )  # fmt: skip


EVERY = {"scan", "draw", "send_leaf", "deliver", "take_receipt", "commit", "reveal", "send_envelope", "crash"}
ACCIDENTS = {"duplicate", "backup", "restore", "clone", "close"}


def _run(template: MemberWorld, folder: Path, examples: int) -> Counter[object]:
    taken: Counter[object] = Counter()
    run_state_machine_as_test(_machine(template, folder, taken), settings=_settings(examples))
    return taken


def test_the_real_parties_take_only_steps_of_the_model(template: MemberWorld, tmp_path: Path) -> None:
    assert _run(template, tmp_path, 12)  # which steps so few histories take is chance; the chosen ones take them all


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_two_hundred_real_histories_are_histories_of_the_model(template: MemberWorld, tmp_path: Path) -> None:
    taken = _run(template, tmp_path, 200)
    assert taken.keys() >= EVERY | ACCIDENTS - {"duplicate"}  # that one is rare: a chosen history takes it
    assert {("state", state) for state in range(6)} <= taken.keys()


def _never_burns(agent: MemberAgent, entry: RoundEntry, *_: object) -> RoundEntry:
    return entry


def _commits_unseen(agent: MemberAgent, entry: RoundEntry, agreed: object) -> RoundEntry:
    agent._courier.exchange(Parcel("leaf", entry.round_id, entry.commitment_leaf or b""))
    with agent.ledger._transaction():
        agent.ledger._update(entry.round_id, "state = 'committed', receipt = x'01'")
    return agent._entry(entry.round_id)


def _restored_before_the_draw(replay: Replay) -> None:
    replay.back_up()
    replay.submit(0, [])
    replay.restore()
    replay.submit(0, [])


def _restored_with_an_old_log(replay: Replay) -> None:
    replay.back_up()
    replay.submit(0, [])
    replay.restore()
    replay.logs = replay.logs[:1]
    replay.submit(0, ["oldest log"])


def _cloned_and_both_logged(replay: Replay) -> None:
    replay.clone()
    replay.submit(0, ["pass", "late"])
    replay.submit(1, [])
    replay.arrive(double=True)
    replay.submit(0, [])


def _interrupted_doubled_and_closed(replay: Replay) -> None:
    replay.submit(0, ["pass", "lose answer"])
    replay.submit(0, ["pass", "pass", "pass", "twice"])
    replay.close()


HISTORIES = [
    _restored_before_the_draw,
    _restored_with_an_old_log,
    _cloned_and_both_logged,
    _interrupted_doubled_and_closed,
]
REAL_BUGS = {
    "a foreign hash burns nothing": ("_burn", _never_burns, _cloned_and_both_logged),
    "a receipt is enough": ("_commit", _commits_unseen, _cloned_and_both_logged),
    "lost draws are not noticed": ("_resynchronise", lambda _agent, _scan: None, _restored_before_the_draw),
    "old logs are believed": ("_seen", lambda _agent: [], _restored_with_an_old_log),
}


@pytest.mark.parametrize("history", HISTORIES)
def test_a_chosen_history_is_one_of_the_model(
    template: MemberWorld, tmp_path: Path, history: Callable[[Replay], None]
) -> None:
    replay = Replay(template, tmp_path / "replay")
    history(replay)
    assert len(replay.revealed) == 1
    assert replay.taken["send_envelope"] == 1
    replay.real.small.close()


def test_the_chosen_histories_take_every_step_and_reach_every_state(template: MemberWorld, tmp_path: Path) -> None:
    taken: Counter[object] = Counter()
    for number, history in enumerate(HISTORIES):
        replay = Replay(template, tmp_path / str(number))
        replay.taken = taken
        history(replay)
        replay.real.small.close()
    assert taken.keys() >= EVERY | ACCIDENTS
    assert {("state", state) for state in range(6)} <= taken.keys()


@pytest.mark.parametrize("bug", REAL_BUGS)
def test_a_bug_in_the_real_agent_leaves_the_model(
    template: MemberWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bug: str
) -> None:
    name, wrong, history = REAL_BUGS[bug]
    monkeypatch.setattr(MemberAgent, name, wrong)
    replay = Replay(template, tmp_path / "replay")
    with pytest.raises(AssertionError):
        history(replay)
    replay.real.small.close()
