# SPDX-License-Identifier: Apache-2.0
"""A whole round by commands in which one member and one guardian never touch a network: only files go to and fro.

The coordinator's other guardians and members reach it directly. Failures: a socket that the two open; a sum that is not
the sum of what was sent; a step that a second run, a lost answer or a damaged file spoils.
"""

from __future__ import annotations

import json
import shutil
import socket
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from member_world import MemberWorld
from small_federation import ROUND
from windvane_privacy.couriers import Parcel
from windvane_privacy.guardian_state import load_guardian
from windvane_privacy.ledger_schema import State
from windvane_privacy.parcel_file import (
    Answer,
    decode_answers,
    decode_parcels,
    encode_answers,
    encode_parcels,
    parcel_id,
)

with warnings.catch_warnings():
    # typer 0.20 imports names that click 8.4 deprecates.
    warnings.simplefilter("ignore", DeprecationWarning)
    from windvane import guardian, main, member


class Kept:
    """The coordinator of the test's world in the place of one that a command would open and close."""

    def __init__(self, world: MemberWorld) -> None:
        self._world = world

    def __getattr__(self, name: str) -> object:
        return getattr(self._world.small.coordinator, name)

    def close(self) -> None:
        pass


class NoSocket(socket.socket):
    def __init__(self, *_how: object, **_more: object) -> None:
        raise AssertionError("a socket was opened")


class Files:
    """Runs commands in this process at the test's time, with files in `folder`, and no socket."""

    def __init__(self, world: MemberWorld, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.world, self.folder, self._capsys = world, folder, capsys

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def run(self, *words: str, code: int = 0) -> str:
        ended = 0
        try:
            main.run(list(words))
        except SystemExit as end:
            ended = int(end.code or 0)
        shown = self._capsys.readouterr()
        assert ended == code, shown.out + shown.err
        return shown.out + shown.err

    def bundle(self, name: str, *words: str) -> None:
        self.run("coordinator", "bundle", *words, self.path(name))

    def receive(self, name: str, answer: str) -> str:
        return self.run("coordinator", "receive", self.path(name), "--answer", self.path(answer))

    def submit(self, source: str, target: str | None = None, code: int = 0) -> str:
        words = ["member", "submit", ROUND, "--state", str(self.world.folder), "--from-file", self.path(source)]
        return self.run(*words, *(["--to-file", self.path(target)] if target else []), code=code)

    def guardian(self, command: str, source: str, target: str | None = None, code: int = 0) -> str:
        state = str(self.world.small.guardian_folder(3))
        words = ["guardian", command, ROUND, "--state", state, "--bundle", self.path(source)]
        return self.run(*words, *(["--out", self.path(target)] if target else []), code=code)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> MemberWorld:
    made = MemberWorld(tmp_path_factory.mktemp("files"))
    made.small.close()
    return made


@pytest.fixture
def files(
    template: MemberWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Files]:
    world = MemberWorld.copy_of(tmp_path / "world", template)
    world.clock = world.small.clock  # one time for all parties
    monkeypatch.setattr(member, "utc_now", world.clock)
    monkeypatch.setattr(guardian, "utc_now", world.clock)
    monkeypatch.setattr("windvane_server.coordinator.Coordinator", lambda _state: Kept(world))
    monkeypatch.setattr(socket, "socket", NoSocket)
    monkeypatch.setenv("COLUMNS", "200")
    folder = tmp_path / "stick"
    folder.mkdir()
    yield Files(world, folder, capsys)
    world.small.close()


def submit_by_file(files: Files) -> None:
    files.bundle("bundle")
    files.run(
        "member", "approve", ROUND, "--state", str(files.world.folder), "--from-file", files.path("bundle"), "--yes"
    )
    files.submit("bundle", "commitment")
    files.receive("commitment", "receipt")
    files.submit("receipt", "envelope")
    files.receive("envelope", "accepted")
    assert "is accepted" in files.submit("accepted")


def test_a_round_ends_in_the_true_sums_with_one_member_and_one_guardian_on_files_alone(files: Files) -> None:
    small = files.world.small
    made = [small.submit(files.world.manifest, number) for number in range(1, 20)]
    submit_by_file(files)
    with files.world.agent() as agent:
        entry = agent.ledger.round(ROUND)
    assert entry is not None
    assert (entry.state, entry.noisy is not None) == (State.ACCEPTED, True)
    files.world.clock.pass_by(days=4)
    small.coordinator.close_round(ROUND)
    # The guardian on files is the second of two: without it nothing is opened.
    small.nonces(1)
    files.bundle("closed", "--envelopes", ROUND)
    files.guardian("open", "closed", "nonce")
    files.receive("nonce", "told")
    files.world.clock.pass_by(days=2)
    small.coordinator.fix_lot(ROUND)
    small.results(1)
    files.bundle("lot", "--envelopes", ROUND)
    files.guardian("open", "lot", "result")
    assert "taken" in files.receive("result", "done")
    assert "is opened for the set" in files.guardian("open", "done")
    opened, crosschecked = small.coordinator.tally(ROUND)
    assert not crosschecked
    vectors = [*(one.vector for one in made), list(entry.noisy or ())]
    assert [sum(column) for column in zip(*opened.sums, strict=True)] == [
        sum(column) for column in zip(*vectors, strict=True)
    ]
    small.nonces(2)
    small.results(2)
    assert small.coordinator.tally(ROUND)[1]  # the third agrees with the one on files


def test_a_guardian_on_files_makes_ready_for_a_round(tmp_path: Path, files: Files) -> None:
    name, small = "2026-Q4", files.world.small
    small.coordinator.propose_roster(name)
    files.bundle("proposed", name)
    words = ["guardian", "ready", name, "--state", str(small.guardian_folder(3)), "--bundle"]
    assert "Carry it" in files.run(*words, files.path("proposed"), "--out", files.path("key"))
    assert [p.kind for p in decode_parcels((files.folder / "key").read_bytes())] == ["endorse", "leaf"]
    first = (files.folder / "key").read_bytes()
    files.run(*words, files.path("proposed"), "--out", files.path("key"))
    assert (files.folder / "key").read_bytes() == first  # one key and one nonce, however often
    files.receive("key", "taken")
    assert "Ready for" in files.run(*words, files.path("taken"))
    with small.guardian(3) as session:
        row = session._ledger.round(name)
    assert row is not None
    assert row.ready_receipt is not None


def test_every_step_by_file_may_be_repeated_and_sends_the_same_bytes(files: Files) -> None:
    files.world.approve()
    files.bundle("bundle")
    for _ in range(2):
        files.submit("bundle", "commitment")
        first = (files.folder / "commitment").read_bytes()
    for _ in range(2):
        files.receive("commitment", "receipt")
    (files.folder / "old").write_bytes((files.folder / "commitment").read_bytes())
    files.submit("receipt", "envelope")
    sent = (files.folder / "envelope").read_bytes()
    assert (files.folder / "old").read_bytes() == first
    # The answer is lost: a new bundle is enough to go on.
    files.bundle("newer")
    files.submit("newer", "envelope")
    assert (files.folder / "envelope").read_bytes() == sent
    files.receive("envelope", "accepted")
    assert "is accepted" in files.submit("accepted")
    assert len(files.world.mine("commitment")) == len(files.world.mine("accepted")) == 1


def test_an_older_log_than_the_one_seen_is_refused_from_a_file_too(files: Files) -> None:
    files.world.approve()
    files.bundle("old")
    files.submit("old", "commitment")
    files.receive("commitment", "receipt")
    files.submit("receipt", "envelope")
    assert "InconsistentCheckpoint" in files.submit("old", "again", code=1)
    assert not (files.folder / "again").exists()


def test_a_forged_answer_is_refused_and_changes_nothing(files: Files) -> None:
    files.world.approve()
    files.bundle("bundle")
    files.submit("bundle", "commitment")
    files.receive("commitment", "receipt")
    answers = decode_answers((files.folder / "receipt").read_bytes())
    (leaf,) = decode_parcels((files.folder / "commitment").read_bytes())
    answers[parcel_id(leaf)] = Answer(b"{}")
    (files.folder / "forged").write_bytes(encode_answers(answers))
    assert "ReceiptRefused" in files.submit("forged", "envelope", code=1)
    assert not (files.folder / "envelope").exists()
    with files.world.agent() as agent:
        entry = agent.ledger.round(ROUND)
    assert entry is not None
    assert entry.state is State.DRAWN


def test_a_refusal_is_carried_back_and_shown_by_name(files: Files) -> None:
    files.world.approve()
    files.bundle("bundle")
    files.submit("bundle", "commitment")
    files.world.clock.pass_by(days=2, hours=1)
    assert "RoundClosed" in files.receive("commitment", "late")
    assert "RoundClosed" in files.submit("late", code=1)


def test_a_stop_is_carried_to_the_log_like_everything_else(files: Files) -> None:
    files.world.approve()
    files.bundle("bundle")
    files.submit("bundle", "commitment")
    words = ["member", "refuse", ROUND, "--reason", "legal", "--state", str(files.world.folder), "--yes", "--to-file"]
    files.run(*words, files.path("stop"))
    assert "taken" in files.receive("stop", "told")
    (stop,) = [leaf for leaf in files.world.log().leaves if leaf.type == "incident"]
    assert (stop.fields["what"], stop.fields["note"]) == ("stopped", "legal")
    assert "RoundBurned" in files.submit("told", code=1)


def test_a_guardian_pins_the_coordinator_from_a_bundle(files: Files, tmp_path: Path) -> None:
    small, state = files.world.small, tmp_path / "guardian"
    shutil.copytree(small.guardian_folder(3), state)
    for name in ("federation.json", "policy.toml"):
        (state / name).unlink()
    files.bundle("bundle")
    said = files.run("guardian", "init", "--state", str(state), "--bundle", files.path("bundle"), "--demo", "--yes")
    assert "is pinned" in said
    assert load_guardian(state).coordinator == load_guardian(small.guardian_folder(3)).coordinator
    assert not (state / "address.json").exists()


def test_a_carried_file_replaces_only_its_own_kind(files: Files) -> None:
    files.world.approve()
    files.bundle("bundle")
    (files.folder / "letter").write_text("not ours")
    assert "StateExists" in files.submit("bundle", "letter", code=1)
    assert (files.folder / "letter").read_text() == "not ours"
    files.submit("bundle", "commitment")
    said = json.loads(files.run("coordinator", "receive", files.path("commitment"), "--json").strip().splitlines()[-1])
    assert said == {"parcels": [{"kind": "leaf", "round": ROUND, "said": "taken"}]}


@pytest.mark.parametrize("what", ["missing", "folder", "parcels"])
def test_a_source_that_is_no_file_of_answers_is_refused_before_anything_happens(files: Files, what: str) -> None:
    files.world.approve()
    files.bundle("bundle")
    files.submit("bundle", "parcels")
    (files.folder / "folder").mkdir()
    shown = files.submit(what, "out", code=1)
    assert ("MalformedInput" in shown) == (what == "parcels")
    assert not (files.folder / "out").exists()


# --- an envelope that is ignored --------------------------------------------------------------------------------------


def test_an_ignored_envelope_is_held_by_file_and_still_taken_by_the_coordinator(files: Files) -> None:
    small = files.world.small
    for number in range(1, 20):
        small.submit(files.world.manifest, number)
    files.world.approve()
    files.bundle("bundle")
    files.submit("bundle", "commitment")
    files.receive("commitment", "receipt")
    files.submit("receipt", "envelope")  # and nobody carries it
    assert int((files.world.folder / f"unanswered-{ROUND}").read_text()) == int(files.world.clock().timestamp())
    words = ["member", "hand-over", ROUND, "--state", str(files.world.folder), "--from-file"]
    files.bundle("same day")
    assert "until 2026-10-04" in files.run(
        *words, files.path("same day"), "--to-file", files.path("for guardians"), code=1
    )
    files.world.clock.pass_by(days=2)
    files.bundle("later")
    files.run(*words, files.path("later"), "--to-file", files.path("for guardians"))
    handed = (files.folder / "for guardians").read_bytes()
    assert handed == (files.folder / "envelope").read_bytes()
    state = ["--state", str(small.guardian_folder(3)), "--bundle"]
    held = files.run("guardian", "hold", files.path("for guardians"), *state, files.path("later"), "--json")
    assert '"held":true' in held
    # The coordinator gives in: the very same file, and the round goes on with twenty.
    files.receive("for guardians", "accepted")
    assert "is accepted" in files.submit("accepted")
    files.world.clock.pass_by(days=2)
    small.coordinator.close_round(ROUND)
    small.nonces(1, 2)
    files.bundle("closed", "--envelopes", ROUND)
    files.guardian("open", "closed", "nonce")
    files.receive("nonce", "told")
    files.guardian("open", "told", "result")
    files.receive("result", "done")
    small.results(1)
    small.coordinator.tally(ROUND)


def test_a_guardian_on_files_refuses_a_set_without_the_envelope_and_says_so_in_the_log(files: Files) -> None:
    small = files.world.small
    made = {number: small.draw(files.world.manifest, number) for number in range(1, 20)}
    for one in made.values():
        small.send("leaf", one.leaf)
        if one.member.number != 7:
            small.send("reveal", one.envelope)
    submit_by_file(files)
    (files.folder / "seventh").write_bytes(encode_parcels([Parcel("reveal", ROUND, made[7].envelope)]))
    files.bundle("now")
    state = ["--state", str(small.guardian_folder(3)), "--bundle"]
    files.run("guardian", "hold", files.path("seventh"), *state, files.path("now"))
    files.world.clock.pass_by(days=4)
    small.coordinator.close_round(ROUND)
    files.bundle("closed")
    said = files.guardian("open", "closed", "incident", code=1)
    assert "MemberOmitted" in said
    assert "Numbers: 7." in said
    assert "taken" in files.receive("incident", "told")
    leaf = files.world.log().leaves[-1]
    assert (leaf.type, leaf.fields["what"], leaf.fields["note"]) == ("incident", "member-omitted", "7")
    assert "MemberOmitted" in files.guardian("open", "told", "incident", code=1)
