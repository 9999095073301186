# SPDX-License-Identifier: Apache-2.0
"""Collecting: what is new is read once, whatever happened to the files in between."""

from __future__ import annotations

import gzip
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from collecting_member import MANIFEST, adopt, make_state
from windvane_client.collect import collect
from windvane_client.collect_files import CollectReport
from windvane_client.evidence import StoredEvidence
from windvane_client.ids import KeyedIds
from windvane_client.settings import LogFolder
from windvane_client.state import MemberState
from windvane_client.store import EventStore
from windvane_privacy.catalogue import Family
from windvane_privacy.errors import ConfigurationError, LedgerLocked
from windvane_privacy.outcomes import PersonOutcome

NOW = datetime(2026, 10, 2, 9, 0, tzinfo=UTC)


@pytest.fixture
def state(tmp_path: Path) -> MemberState:
    """A member whose people have known these models for a month: work with a new model does not count."""
    logs, past = tmp_path / "logs", tmp_path / "past"
    logs.mkdir()
    past.mkdir()
    known = [conversation(f"past-{model}", model=model, day=-30) for model in ("alder", "birch", "spruce")]
    (past / "past.jsonl").write_text("".join(known))
    made = make_state(tmp_path, (LogFolder(str(logs), "canonical"), LogFolder(str(past), "canonical")))
    run(made, NOW - timedelta(days=60))
    return made


def conversation(name: str, person: str = "p", model: str = "alder", day: int = 3) -> str:
    """One closed piece of coding work, as canonical lines."""
    start = datetime(2026, 8, 1, 10, 0, tzinfo=UTC) + timedelta(days=day)
    common = {"v": 1, "person": person, "conv": name, "mode": "interactive", "kind_hint": "coding"}
    rows = [
        {"k": "prompt", "origin": "human", "turn": "1"},
        {"k": "call", "key": f"{name}-m", "served": model, "status": "ok", "route": "direct", "turn": "1"},
        {"k": "outcome", "value": "accepted", "evidence": "rating"},
    ]
    lines = [
        json.dumps(common | {"ts": (start + timedelta(seconds=9 * i)).strftime("%Y-%m-%dT%H:%M:%SZ"), "seq": i} | row)
        for i, row in enumerate(rows)
    ]
    return "\n".join(lines) + "\n"


def log(state: MemberState, name: str = "a.jsonl") -> Path:
    return Path(state.settings.logs[0].path) / name


def run(state: MemberState, now: datetime = NOW) -> CollectReport:
    return collect(state, now)


def outcomes(state: MemberState) -> list[PersonOutcome]:
    return list(StoredEvidence(state).outcomes(MANIFEST))


def gaps(state: MemberState) -> int:
    with EventStore.open(state.collection) as store:
        return store.counts().get("gap", 0)


def test_rows_become_outcomes(state: MemberState) -> None:
    log(state).write_text(conversation("c1") + conversation("c2", model="birch"))
    report = run(state)
    assert (report.files, report.read, report.rows.read, report.rows.rejected) == (2, 1, 6, 0)
    assert {(row.model, row.trials, row.successes) for row in outcomes(state)} == {("alder", 1, 1), ("birch", 1, 1)}


def test_a_second_run_reads_only_what_is_new(state: MemberState) -> None:
    log(state).write_text(conversation("c1"))
    run(state)
    assert (run(state).unchanged, run(state).rows.read) == (2, 0)
    with log(state).open("a") as file:
        file.write(conversation("c2"))
    assert run(state).rows.read == 3
    assert [row.trials for row in outcomes(state)] == [2]


def test_a_half_written_last_line_waits_for_its_rest(state: MemberState) -> None:
    text = conversation("c1")
    log(state).write_text(text[:-20])
    assert run(state).rows.read == 2
    log(state).write_text(text)
    assert run(state).rows.read == 1
    assert [(row.trials, row.successes) for row in outcomes(state)] == [(1, 1)]


@pytest.mark.parametrize("cuts", [(), (1,), (3,), (1, 2, 3, 4, 5), (4,)])
def test_any_split_into_runs_gives_the_same_outcomes(tmp_path: Path, state: MemberState, cuts: tuple[int, ...]) -> None:
    lines = (conversation("c1") + conversation("c2", model="birch")).splitlines(keepends=True)
    for end in (*cuts, len(lines)):
        log(state).write_text("".join(lines[:end]))
        run(state)
    assert [(row.model, row.trials, row.successes) for row in outcomes(state)] == [("alder", 1, 1), ("birch", 1, 1)]


def test_a_file_that_began_anew_is_read_from_its_start(state: MemberState) -> None:
    log(state).write_text(conversation("c1") + conversation("c2"))
    run(state)
    log(state).write_text(conversation("c3"))  # shorter
    assert run(state).rows.read == 3
    log(state).write_text(conversation("c4") + conversation("c5") + conversation("c6"))  # longer, other beginning
    assert run(state).rows.read == 9
    assert [row.trials for row in outcomes(state)] == [6]


def test_a_log_that_is_read_twice_counts_once(state: MemberState) -> None:
    log(state).write_text(conversation("c1"))
    log(state, "copy.jsonl").write_text(conversation("c1"))
    run(state)
    for path in (log(state), log(state, "copy.jsonl")):
        os.utime(path, (1, 1))
        path.write_bytes(path.read_bytes())
        run(state)
    assert [row.trials for row in outcomes(state)] == [1]


def test_a_file_in_two_configured_folders_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    folder = LogFolder(str(tmp_path / "logs"), "canonical")
    state = make_state(tmp_path, (folder, folder))
    log(state).write_text(conversation("c1"))
    assert run(state).rows.read == 3


def test_broken_rows_are_counted_by_reason_and_the_rest_is_read(state: MemberState) -> None:
    log(state).write_bytes(b"not json\n\xff\xfe\n" + conversation("c1").encode() + b'{"v":1}{"v":1}\n')
    report = run(state)
    assert report.rows.rejected == 3
    assert sum(report.rows.reasons.values()) == 3
    assert [row.trials for row in outcomes(state)] == [1]


def test_a_damaged_archive_is_counted_and_the_rest_is_read(state: MemberState) -> None:
    log(state).write_text(conversation("c1"))
    log(state, "b.jsonl.gz").write_bytes(gzip.compress(conversation("c2").encode())[:-12])
    log(state, "c.jsonl.gz").write_bytes(b"no gzip at all")
    report = run(state)
    assert report.unreadable + report.rows.reasons.get("unreadable", 0) == 2
    assert outcomes(state)[0].trials >= 1


def test_a_file_that_vanishes_during_the_run_is_counted_and_the_rest_is_read(state: MemberState) -> None:
    for name in ("a", "b", "c"):
        log(state, f"{name}.jsonl").write_text(conversation(name))

    def delete(done: int, _total: int) -> None:
        log(state, "b.jsonl").unlink(missing_ok=True)

    report = collect(state, NOW, progress=delete)
    assert report.unreadable == 1
    assert [row.trials for row in outcomes(state)] == [2]


def test_a_compressed_log_is_read(state: MemberState) -> None:
    log(state, "b.jsonl.gz").write_bytes(gzip.compress(conversation("c2").encode()))
    assert run(state).rows.read == 3


def test_a_file_that_vanished_with_unread_rows_leaves_a_gap(state: MemberState) -> None:
    text = conversation("c1")
    log(state).write_text(text[:-20])
    run(state)
    before = gaps(state)
    log(state).unlink()
    assert run(state).vanished == 1
    assert run(state).vanished == 0
    assert gaps(state) == before + 1


def test_a_long_pause_warns_and_then_leaves_a_gap(state: MemberState) -> None:
    assert run(state, NOW - timedelta(days=59)).warnings == []
    assert run(state, NOW - timedelta(days=33)).warnings  # 26 days later
    assert gaps(state) == 0
    assert run(state, NOW).warnings
    assert gaps(state) == 1


def test_whoever_opted_out_leaves_no_event(state: MemberState) -> None:
    log(state).write_text(conversation("c1", person="gone") + conversation("c2"))
    run(state)
    with EventStore.open(state.collection) as store:
        assert len(store.people()) == 1


@pytest.mark.parametrize("source", ["claude_code", "codex", "canonical", "litellm", "otlp"])
@pytest.mark.parametrize(("staff_id", "opened"), [("gone", 0), ("p", 1)])
def test_a_folder_of_whoever_opted_out_is_not_opened(tmp_path: Path, source: str, staff_id: str, opened: int) -> None:
    (tmp_path / "logs").mkdir()
    state = make_state(tmp_path, (LogFolder(str(tmp_path / "logs"), source, staff_id),))
    log(state, "rollout-1.jsonl").write_text("{}\n")
    assert run(state).files == opened


def test_rows_of_nobody_give_no_outcome(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    state = make_state(tmp_path, (LogFolder(str(tmp_path / "logs"), "canonical"),), 'default = "drop"\n')
    log(state).write_text(conversation("c1"))
    run(state)
    assert outcomes(state) == []


def test_a_change_of_the_list_of_models_reads_everything_again(state: MemberState) -> None:
    log(state).write_text(conversation("c1", model="spruce"))
    run(state)
    assert outcomes(state) == []
    families = (*MANIFEST.families, Family("spruce", "Spruce", "v", ()))
    adopt(state, msgspec.structs.replace(MANIFEST, families=families))
    report = run(state)
    assert report.rows.read == 3 + 9
    assert report.warnings


def test_the_rules_are_fixed_inside_a_window(state: MemberState) -> None:
    run(state)
    (state.folder / "rules.toml").write_text('[tools]\nmine = "data"\n')
    with pytest.raises(ConfigurationError):
        run(state)


def test_an_outside_fact_may_be_declared_inside_a_window_and_is_on_record(state: MemberState) -> None:
    run(state)
    facts = []
    for text in ('[[event]]\ndate = 2026-08-06\nkind = "policy"\nfrom = "alder"\n', ""):
        (state.folder / "events.toml").write_text(text)
        run(state)
        with EventStore.open(state.collection) as store:
            facts.append(store.fact(f"events:{MANIFEST.round}"))
    assert None not in facts
    assert len(set(facts)) == 2


def test_the_window_is_deleted_after_its_round_and_stays_deleted(state: MemberState) -> None:
    log(state).write_text(conversation("c1"))
    run(state)
    assert outcomes(state)
    evidence = StoredEvidence(state)
    evidence.forget(MANIFEST.events.from_, MANIFEST.events.to)
    evidence.forget(MANIFEST.events.from_, MANIFEST.events.to)
    assert outcomes(state) == []
    log(state, "again.jsonl").write_text(conversation("c1"))  # the same work turns up in another file
    assert run(state).events == 0
    assert outcomes(state) == []


def test_two_runs_at_once_are_refused(state: MemberState) -> None:
    with EventStore.open(state.collection), pytest.raises(LedgerLocked):
        run(state)


def test_nothing_of_a_log_is_kept_in_clear(state: MemberState) -> None:
    log(state).write_text(conversation("secret-conversation", person="secret-person"))
    assert run(state).events == 3
    raw = state.collection.read_bytes()
    assert b"secret" not in raw
    assert str(log(state)).encode() not in raw


def test_progress_reaches_its_end(state: MemberState) -> None:
    log(state).write_text(conversation("c1"))
    log(state, "b.jsonl").write_text(conversation("c2"))
    seen: list[tuple[int, int]] = []
    collect(state, NOW, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1][0] == seen[-1][1] > 0


def test_an_alias_stands_for_a_family_of_the_catalogue(state: MemberState) -> None:
    (state.folder / "aliases.toml").write_text('"our-deployment" = "alder"\n')
    log(state).write_text(conversation("c1", model="our-deployment"))
    run(state)
    assert [row.model for row in outcomes(state)] == ["alder"]
    (state.folder / "aliases.toml").write_text('"our-deployment" = "no-such-model"\n')
    with pytest.raises(ConfigurationError):
        run(state)


def test_work_that_was_read_after_the_outcomes_were_built_is_not_forgotten(state: MemberState) -> None:
    log(state).write_text(conversation("c1"))
    run(state)
    evidence = StoredEvidence(state)
    assert evidence.outcomes(MANIFEST)
    log(state, "late.jsonl").write_text(conversation("c2", day=9))
    run(state)
    evidence.forget(MANIFEST.events.from_, MANIFEST.events.to)
    with EventStore.open(state.collection) as store:
        seen = store.first_seen(KeyedIds(state.k_org, state.people).staff("p"))
    assert datetime.fromtimestamp(seen["alder"].last / 1e6, UTC).day == 10


def test_a_crash_between_files_counts_no_row_twice(state: MemberState) -> None:
    log(state).write_text(conversation("c1"))
    log(state, "b.jsonl").write_text(conversation("c2"))

    def crash(done: int, total: int) -> None:
        if done < total:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        collect(state, NOW, progress=crash)
    run(state)
    with EventStore.open(state.collection) as store:
        assert store.rows().read == 9 + 6  # the past of the fixture, and these two files once
    assert [row.trials for row in outcomes(state)] == [2]


def test_what_needs_a_person_is_said_in_words_without_a_name_or_a_number(state: MemberState) -> None:
    run(state)
    models = ("our-own-name", "alder", "birch")
    log(state).write_text("".join(conversation(f"c{n}", model=models[n % 3]) for n in range(30)))
    (told,) = run(state).warnings
    assert told.startswith("Some of the calls went to models that the list does not know.")
    assert "aliases.toml" in told
    assert "our-own-name" not in told
    with log(state).open("a") as file:
        file.write(conversation("c99", model="our-own-name"))
    assert run(state).warnings == [], "a few rows say nothing about a log"


def test_deleted_days_belong_to_the_machines_person_only(tmp_path: Path) -> None:
    for name in ("claude", "canonical"):
        (tmp_path / name).mkdir()
    folders = (
        LogFolder(str(tmp_path / "claude"), "claude_code", "p"),
        LogFolder(str(tmp_path / "canonical"), "canonical"),
    )
    made = make_state(tmp_path, folders)
    run(made, NOW - timedelta(days=40))
    run(made)
    with EventStore.open(made.collection) as store:
        assert store.people() == [KeyedIds(made.k_org, made.people).staff("p")]
        assert store.counts() == {"gap": 1}


def test_two_hundred_unknown_rows_of_one_person_change_nobody_elses_rows(tmp_path: Path) -> None:
    found = []
    for number, head in enumerate(('{"v":1,"k":"of_another_time","person":"q"}\n' * 200, "")):
        (tmp_path / str(number) / "logs").mkdir(parents=True)
        made = make_state(tmp_path / str(number), (LogFolder(str(tmp_path / str(number) / "logs"), "canonical"),))
        work = conversation("past", day=-30) + conversation("c1", "p") + conversation("c2", "q")
        log(made).write_text(head + work)
        report = run(made)
        assert (report.rows.unknown, report.rows.read) == (200, 209) if head else (0, 9)
        found.append(sorted((row.signal, row.model, row.trials, row.successes) for row in outcomes(made)))
    assert found[0] == found[1] != []


def test_reading_opens_no_connection(state: MemberState, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a connection was opened")

    for name in ("connect", "connect_ex", "bind"):
        monkeypatch.setattr(f"socket.socket.{name}", refuse)
    log(state).write_text(conversation("c1"))
    assert run(state).events > 0
    assert outcomes(state)
