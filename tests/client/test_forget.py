# SPDX-License-Identifier: Apache-2.0
"""Forgetting one person: gone at once, everybody else untouched, and what brings them back."""

from __future__ import annotations

import io
import os
from pathlib import Path

import msgspec
import pytest

from client.test_collect import MANIFEST, adopt, conversation, make_state, outcomes, run
from member_world import MemberWorld
from small_federation import ROUND
from windvane import main
from windvane_client.evidence import StoredEvidence
from windvane_client.forget import forget_person
from windvane_client.ids import KeyedIds
from windvane_client.settings import LogFolder
from windvane_client.state import MemberState
from windvane_client.store import EventStore, Seen
from windvane_privacy.catalogue import Family
from windvane_privacy.errors import LedgerLocked
from windvane_privacy.outcomes import PersonOutcome

NAMES = ("ana", "bo", "cy")


@pytest.fixture
def state(tmp_path: Path) -> MemberState:
    """Three people with work on two models in one file, and a history of an earlier window."""
    (tmp_path / "logs").mkdir()
    made = make_state(tmp_path, (LogFolder(str(tmp_path / "logs"), "canonical"),))
    log(made).write_text(work())
    run(made)
    with EventStore.open(made.collection) as store:
        for name in NAMES:
            store.keep_first_seen(pseudonym(made, name), {"alder": Seen(1, 2), "birch": Seen(1, 2)})
    assert {row.person for row in outcomes(made)} == {pseudonym(made, name) for name in NAMES}
    return made


def work() -> str:
    return "".join(
        conversation(f"{name}-{model}-{day}", name, model, day)
        for name in NAMES
        for model in ("alder", "birch")
        for day in (3, 5)
    )


def log(state: MemberState, name: str = "a.jsonl") -> Path:
    return Path(state.settings.logs[0].path) / name


def pseudonym(state: MemberState, name: str) -> bytes:
    return KeyedIds(state.k_org, state.people).staff(name)


def table(state: MemberState, *names: str) -> list[PersonOutcome]:
    known = {pseudonym(state, name) for name in names}
    return [row for row in outcomes(state) if row.person in known]


def events(state: MemberState, name: str) -> int:
    with EventStore.open(state.collection) as store:
        return sum(len(one.events) for one in store.conversations(pseudonym(state, name)))


def command(state: MemberState | Path, *words: str) -> int:
    folder = state.folder if isinstance(state, MemberState) else state
    try:
        main.run(["member", "forget", *words, "--state", str(folder)])
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def test_a_forgotten_person_is_gone_and_everybody_else_is_untouched(state: MemberState) -> None:
    before = outcomes(state)
    others = [repr(row).encode() for row in before if row.person != pseudonym(state, "bo")]
    assert 0 < len(others) < len(before)
    assert command(state, "bo", "--yes") == 0
    assert [repr(row).encode() for row in outcomes(state)] == others
    with EventStore.open(state.collection) as store:
        assert store.people() == sorted(pseudonym(state, name) for name in ("ana", "cy"))
        assert store.first_seen(pseudonym(state, "bo")) == {}
        assert store.first_seen(pseudonym(state, "ana")) != {}
    assert pseudonym(state, "bo") not in state.collection.read_bytes()
    assert pseudonym(state, "ana") in state.collection.read_bytes()


def test_any_way_to_write_the_staff_id_is_the_same_person(state: MemberState) -> None:
    assert command(state, "  BO ", "--yes") == 0
    assert table(state, "bo") == []
    assert table(state, "ana", "cy") == outcomes(state)


def test_files_that_did_not_change_do_not_bring_anybody_back(state: MemberState) -> None:
    forget_person(state, "bo")
    after = outcomes(state)
    assert run(state).unchanged == 1
    os.utime(log(state), (1, 1))  # touched, no byte is new
    assert run(state).events == 0
    assert outcomes(state) == after


def test_new_rows_of_a_file_come_without_the_old_ones(state: MemberState) -> None:
    forget_person(state, "bo")
    with log(state).open("a") as file:
        file.write(conversation("bo-later", "bo", day=9))
    assert run(state).events == 3
    assert events(state, "bo") == 3


def test_a_file_that_is_written_anew_brings_a_person_back(state: MemberState) -> None:
    before = events(state, "bo")
    forget_person(state, "bo")
    assert events(state, "bo") == 0
    log(state, "b.jsonl").write_text(work())  # the same export under a new name
    run(state)
    assert events(state, "bo") == before == 12


def test_a_new_list_of_models_brings_a_person_back(state: MemberState) -> None:
    forget_person(state, "bo")
    adopt(state, msgspec.structs.replace(MANIFEST, families=(*MANIFEST.families, Family("spruce", "S", "v", ()))))
    run(state)
    assert events(state, "bo") == 12


def test_whoever_is_excluded_has_no_outcome_and_forgotten_too_leaves_nothing(state: MemberState) -> None:
    people = state.folder / "people.toml"
    before = table(state, "ana", "cy")
    assert table(state, "bo") != []
    people.write_text(people.read_text().replace('["gone"]', '["gone", "bo"]'))
    run(state)
    assert events(state, "bo") != 0
    assert table(state, "bo") == []
    assert table(state, "ana", "cy") == before
    forget_person(state, "bo")
    log(state, "b.jsonl").write_text(work())
    run(state)
    assert events(state, "bo") == 0
    assert table(state, "ana", "cy") == outcomes(state) != []


def test_an_end_of_the_window_that_was_noted_before_does_not_bring_history_back(state: MemberState) -> None:
    evidence = StoredEvidence(state)
    assert evidence.outcomes(MANIFEST)
    forget_person(state, "bo")
    evidence.forget(MANIFEST.events.from_, MANIFEST.events.to)
    with EventStore.open(state.collection) as store:
        assert store.first_seen(pseudonym(state, "bo")) == {}
        assert set(store.first_seen(pseudonym(state, "ana"))) == {"alder", "birch"}


def test_what_is_printed_does_not_depend_on_whether_there_was_anything(
    state: MemberState, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = []
    for staff_id in ("bo", "bo", "nobody-at-all", "gone"):
        assert command(state, staff_id, "--yes") == 0
        printed = capsys.readouterr()
        shown.append((printed.out, printed.err))
    assert len(set(shown)) == 1
    assert shown[0][0].startswith("Done.")
    assert "charges stay" in shown[0][0]
    assert "[exclude]" in shown[0][0]
    assert not {"bo", "nobody-at-all", "gone"} & set("".join(shown[0]).split())


def test_nothing_is_deleted_before_the_answer(
    state: MemberState, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert command(state, "bo") == 130
    assert table(state, "bo") != []
    assert "stay charged" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert command(state, "bo") == 0
    assert table(state, "bo") == []


def test_a_collection_in_use_is_refused_by_name(state: MemberState, capsys: pytest.CaptureFixture[str]) -> None:
    with EventStore.open(state.collection):
        assert command(state, "bo", "--yes") == 1
        with pytest.raises(LedgerLocked):
            forget_person(state, "bo")
    assert "LedgerLocked" in capsys.readouterr().err
    assert table(state, "bo") != []


@pytest.mark.parametrize("staff_id", ["", "   ", "x" * 257])
def test_what_can_be_no_staff_id_is_wrong_use(
    state: MemberState, staff_id: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(state, staff_id, "--yes") == 2
    assert "256 bytes" in capsys.readouterr().err


def test_a_wrong_people_file_does_not_stand_in_the_way(state: MemberState) -> None:
    people = state.folder / "people.toml"
    good = people.read_text()
    people.write_text("nonsense = [")
    assert command(state, "bo", "--yes") == 0
    people.write_text(good)
    assert table(state, "bo") == []


def test_before_anything_was_collected_it_is_done_and_no_file_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "logs").mkdir()
    made = make_state(tmp_path, (LogFolder(str(tmp_path / "logs"), "canonical"),))
    assert command(made, "bo", "--yes") == 0
    assert capsys.readouterr().out.startswith("Done.")
    assert not made.collection.exists()
    assert command(tmp_path / "none", "bo", "--yes") == 1
    assert "No member is set up" in capsys.readouterr().err


def test_the_ledgers_charge_stays(world: MemberWorld) -> None:
    world.approve()
    with world.agent() as agent:
        agent.submit(ROUND)
        charged = agent.ledger.lifetime()
    ledger = (world.folder / "ledger" / "ledger.db").read_bytes()
    assert charged[0] == 1
    forget_person(world.state, "bo")
    assert (world.folder / "ledger" / "ledger.db").read_bytes() == ledger
    with world.agent() as agent:
        assert agent.ledger.lifetime() == charged
