# SPDX-License-Identifier: Apache-2.0
"""What enters the outcomes table, when, and under which names."""

from __future__ import annotations

import pytest

from client_events import CATALOGUE, END, NOW, START, A, B, C, Log, rows_of_logs, rows_of_store, store_of, table
from windvane_client.constants import DAY, MINUTE
from windvane_client.store import EventStore
from windvane_privacy.outcomes import person_is_valid


def rich(**header: object) -> Log:
    """A person with rows in every signal: a dozen episodes, one switch, one recovered fault, one vote."""
    log = Log(**({"source": "canonical", "recorder": "canonical/test", "kind_hint": "coding"} | header)).habit(A, B)
    for i in range(12):
        log.turn(i * 200, A if i % 2 else B, "interrupted" if i % 5 == 0 else "clean")
        log.tool(i * 200 + 1.5, "malformed" if i == 3 else "ok", A if i % 2 else B)
        log.turn(i * 200 + 2, A if i % 2 and i != 7 else B)
    log.prompt(2600)
    log.error(2601, attempt=1)
    log.call(2602)
    log.vote(2700, "a", item=log.conv)
    return log


def test_a_rich_log_gives_rows_of_every_signal_in_the_agreed_form() -> None:
    rows = rows_of_logs(rich())
    assert {row.signal for row in rows} == {
        "completion", "switch_away", "tool_reliability", "infra_recovery", "blind_quality",
    }  # fmt: skip
    assert person_is_valid(rows, CATALOGUE, pooled=False)
    assert table(rows, "switch_away") == {(A, B): (6, 5), (B, A): (6, 6)}
    assert table(rows, "tool_reliability") == {(A, None): (6, 5), (B, None): (6, 6)}
    assert table(rows, "infra_recovery") == {(A, None): (1, 1)}
    assert table(rows, "blind_quality") == {(A, B): (1, 1), (B, A): (1, 0)}
    assert table(rows, "completion") == {(A, None): (5, 5), (B, None): (6, 6)}


def test_thirteen_weekly_runs_equal_one_big_run() -> None:
    events = [event for i in range(13) for event in rich(conv=f"week{i}", start=START + (i * 7 + 1) * DAY).events]
    with store_of(events) as store:
        expected = rows_of_store(store)
    with EventStore.temporary() as store:
        for week in range(-4, 15):
            since, until = START + week * 7 * DAY, START + (week + 1) * 7 * DAY
            store.add(event for event in events if since <= (event.ts or 0) < until)
            rows_of_store(store, now=until)  # a look in between
        assert rows_of_store(store) == expected
    assert sum(row.trials for row in expected) > 200


@pytest.mark.parametrize(
    ("start", "window"),
    [(START - 62 * MINUTE, 0), (START - 61 * MINUTE, 1), (END - 62 * MINUTE, 1), (END - 61 * MINUTE, 2)],
)
def test_an_episode_counts_exactly_once_in_the_window_in_which_it_closes(start: int, window: int) -> None:
    log = Log(start=start).habit(A)
    log.turn(0)  # its last event is at minute 1, so it closes at minute 61
    log.tool(0.9)
    windows = ((START - 92 * DAY, START), (START, END), (END, END + 92 * DAY))
    with store_of(log) as store:
        for i, at in enumerate(windows):
            rows = rows_of_store(store, window=at, now=END + 300 * DAY)
            expected = {(A, None): (1, 1)} if i == window else {}
            assert table(rows, "completion") == expected
            assert table(rows, "tool_reliability") == expected


def test_a_later_reading_says_the_same() -> None:
    log = rich(start=END - 5 * DAY)
    later = Log(conv="later", start=END + 15 * DAY)
    later.turn(0)
    late_vote = Log(conv="c1", start=END + 15 * DAY)
    late_vote.outcome(0, "rejected")
    with store_of(log) as store:
        expected = rows_of_store(store, now=END + 14 * DAY)
        store.add([*later.events, *late_vote.events])
        assert rows_of_store(store, now=END + 60 * DAY) == expected


@pytest.mark.parametrize(("days", "counts"), [(13.9, False), (14, True)])
def test_a_model_counts_for_completion_fourteen_days_after_its_first_use(days: float, counts: bool) -> None:
    log = Log().habit(A, days_before=days)
    log.turn(0)
    assert bool(table(rows_of_logs(log), "completion")) == counts


def test_the_first_fourteen_days_of_a_history_are_novelty() -> None:
    log = Log(start=START + DAY)
    for day in range(20):
        log.turn(day * 24 * 60)
    assert table(rows_of_logs(log), "completion") == {(A, None): (6, 6)}


def test_tools_and_faults_do_not_wait_for_habits() -> None:
    log = Log()
    log.prompt(0)
    log.tool(1)
    log.error(2, attempt=1)
    log.call(3)
    assert {row.signal for row in rows_of_logs(log)} == {"tool_reliability", "infra_recovery"}


@pytest.mark.parametrize("family", ["other", "unknown", "some-model-nobody-listed"])
def test_models_outside_the_catalogue_give_no_row(family: str) -> None:
    log = Log(source="canonical", recorder="canonical/x", kind_hint="coding").habit(A, family)
    log.turn(0, family)
    log.tool(0.7, "ok", family)
    log.error(0.8, family=family, attempt=1)
    log.call(0.9, family)
    log.turn(5, family)
    log.vote(6, "a", family)
    assert rows_of_logs(log) == []


def test_two_recorders_are_two_rows() -> None:
    first = rich(conv="c1", recorder="canonical/one")
    second = rich(conv="c2", recorder="canonical/two")
    rows = rows_of_logs(first, second)
    assert {row.recorder.split("/")[1] for row in rows} == {"one", "two"}
    assert len(rows) == 2 * len(rows_of_logs(first))


@pytest.mark.parametrize(
    ("over", "rows"),
    [
        ({}, {(A, B): (1, 1), (B, A): (1, 0)}),
        ({"winner": "b"}, {(A, B): (1, 0), (B, A): (1, 1)}),
        ({"winner": "tie"}, {}),
        ({"blind": "no"}, {}),
        ({"judge": "llm"}, {}),
        ({"b": A}, {}),
        ({"b": "other"}, {}),
    ],
)
def test_only_decided_blind_votes_of_persons_count(over: dict[str, str], rows: dict[object, object]) -> None:
    log = Log(source="canonical", recorder="canonical/x", kind_hint="writing")
    log.vote(0, **({"winner": "a"} | over))
    assert table(rows_of_logs(log), "blind_quality") == rows


def test_the_latest_vote_on_an_item_replaces_the_earlier_one() -> None:
    log = Log(source="canonical", recorder="canonical/x", kind_hint="writing")
    log.vote(0, "a")
    log.vote(5, "b")
    log.vote(6, "b", item="another")
    for order in (log.events, log.events[::-1]):
        with store_of(order) as store:
            assert table(rows_of_store(store), "blind_quality") == {(A, B): (2, 0), (B, A): (2, 2)}


def test_claude_code_cannot_claim_a_blind_vote() -> None:
    log = Log()
    log.vote(0, "a")
    assert rows_of_logs(log) == []


def test_basis_follows_the_source() -> None:
    def bases(log: Log) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for row in rows_of_logs(log):
            found.setdefault(row.signal, set()).add(row.basis)
        return found

    canonical = bases(rich())
    claude = bases(rich(source="claude_code", recorder="claude_code"))
    assert canonical["switch_away"] == {"recorded"}
    assert claude["switch_away"] == {"inferred"}
    assert canonical["tool_reliability"] == claude["tool_reliability"] == {"classed"}
    assert canonical["completion"] == claude["completion"] == {"ended"}
    assert canonical["blind_quality"] == {"proved"}
    assert "blind_quality" not in claude


def test_a_third_model_is_stayed_away_from() -> None:
    log = rich().habit(C)
    log.turn(2900, C)
    rows = table(rows_of_logs(log), "switch_away")
    assert rows[A, C] == (6, 6)
    assert NOW > END
