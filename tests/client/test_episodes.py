# SPDX-License-Identifier: Apache-2.0
"""Where an episode begins and ends."""

from __future__ import annotations

import pytest

from client_events import NOW, START, A, Log, facts_of, tag
from windvane_client.constants import DAY, MINUTE


@pytest.mark.parametrize(("pause", "episodes"), [(59, 1), (60, 2), (61, 2), (252, 2)])
def test_sixty_idle_minutes_close_an_episode(pause: float, episodes: int) -> None:
    log = Log()
    log.prompt(0)
    log.call(1)
    log.prompt(1 + pause)
    facts = facts_of(log)
    assert len(facts.episodes) == episodes
    assert facts.episodes[0].how == "idle"
    assert facts.episodes[-1].closed == log.start + round((1 + pause + 60) * MINUTE)


def test_side_threads_keep_an_episode_alive() -> None:
    log = Log()
    log.prompt(0)
    log.tool(50, thread="side")
    log.prompt(100)
    assert len(facts_of(log).episodes) == 1


def test_time_in_which_a_tool_call_waits_is_not_idle() -> None:
    log = Log()
    log.prompt(0)
    log.tool(1, "no_result", key="build")
    log.tool(181, "ok", "unknown", "unknown", key="build", result=181)
    log.prompt(200)
    facts = facts_of(log)
    assert len(facts.episodes) == 1
    assert facts.totals.tools == {"ok": 1}


def test_a_call_whose_result_never_comes_does_not_hold_an_episode_open() -> None:
    log = Log()
    log.prompt(0)
    log.tool(1, "no_result")
    log.prompt(200)
    assert len(facts_of(log).episodes) == 2


def test_a_turn_of_45_minutes_is_one_episode() -> None:
    log = Log()
    log.prompt(0)
    for minute in range(1, 46):
        log.tool(minute)
    log.end(45)
    assert len(facts_of(log).episodes) == 1


def test_a_compaction_summary_inside_a_turn_neither_opens_nor_splits() -> None:
    log = Log()
    log.prompt(0)
    log.call(1)
    log.prompt(20, "system")
    log.tool(21)
    log.end(22)
    facts = facts_of(log)
    assert [e.ending.value for e in facts.episodes] == ["clean_end"]
    # The work after the summary is still the person's turn, so it counts.
    assert facts.episodes[0].tools == {(A, "ok"): 1}


def test_a_notice_after_a_finished_turn_opens_a_turn_that_is_automation() -> None:
    log = Log()
    log.turn(0)
    log.prompt(5, "system")
    log.tool(6)
    facts = facts_of(log)
    assert len(facts.episodes) == 1
    assert facts.episodes[0].tools == {}
    assert facts.episodes[0].mode == "interactive"


def test_a_command_opens_an_episode_and_programs_do_not() -> None:
    log = Log()
    log.prompt(0, "sdk")
    log.tool(1)
    log.prompt(2, "system")
    log.prompt(3, "scheduled")
    assert facts_of(log).episodes == []
    log.prompt(4, "command")
    assert len(facts_of(log).episodes) == 1


def test_events_before_the_first_opening_and_without_conversation_belong_to_no_episode() -> None:
    log = Log()
    log.tool(0)
    log.prompt(1)
    nowhere = Log(conv="")
    nowhere.prompt(0)
    nowhere.tool(1)
    facts = facts_of(log, nowhere)
    assert len(facts.episodes) == 1
    assert facts.totals.tools == {"ok": 2}
    assert facts.episodes[0].tools == {}


def test_an_explicit_close_ends_an_episode_where_it_stands() -> None:
    log = Log()
    log.turn(0)
    log.close(10)
    log.turn(12)
    first, second = facts_of(log).episodes
    assert (first.how, first.closed) == ("explicit", log.start + 10 * MINUTE)
    assert second.opened == log.start + 12 * MINUTE


def test_a_close_long_after_the_work_finds_the_episode_closed_by_idleness() -> None:
    log = Log()
    log.turn(0)
    log.close(300)
    (episode,) = facts_of(log).episodes
    assert (episode.how, episode.closed) == ("idle", log.start + 61 * MINUTE)


def test_another_conversation_in_the_same_client_closes_this_one() -> None:
    log, other, elsewhere = Log(), Log(conv="c2"), Log(conv="c3", client="claude_ide")
    log.turn(0)
    other.turn(20)
    elsewhere.turn(5)
    by_conv = {e.conv: e for e in facts_of(log, other, elsewhere).episodes}
    assert (by_conv[tag("c1")].how, by_conv[tag("c1")].closed) == ("new_conv", log.start + 20 * MINUTE)
    assert by_conv[tag("c3")].how == "idle"


def test_an_episode_younger_than_the_idle_limit_is_open() -> None:
    log = Log()
    log.turn(0)
    (young,) = facts_of(log, now=log.start + 60 * MINUTE).episodes
    (old,) = facts_of(log, now=log.start + 61 * MINUTE).episodes
    assert (young.closed, young.ending.value) == (None, "unknown")
    assert old.closed is not None


def test_a_model_command_hours_later_does_not_bridge_the_pause() -> None:
    log = Log()
    log.turn(0)
    log.set_model(180)
    log.turn(180.5)
    assert len(facts_of(log).episodes) == 2


def test_a_rewound_turn_loses_its_tools_and_ends_but_keeps_its_errors() -> None:
    log = Log()
    log.prompt(0, key="p1")
    log.call(1, key="m1", parent=tag("p1"))
    log.prompt(2, key="p2", parent=tag("m1"))
    log.call(3, key="m2", parent=tag("p2"))
    log.tool(4, "malformed", parent=tag("m2"))
    log.error(4.5, attempt=1, parent=tag("m2"))
    log.error(4.6, attempt=2, final=True, parent=tag("m2"))
    log.end(5, "interrupted", parent=tag("m2"))
    log.prompt(6, key="p3", parent=tag("m1"))
    log.call(7, key="m3", parent=tag("p3"))
    log.tool(7.5, "ok", parent=tag("m3"))
    log.end(8, parent=tag("m3"))
    (episode,) = facts_of(log).episodes
    assert episode.tools == {(A, "ok"): 1}
    assert episode.faults == {(A, "claude_cli", "lost"): 1}
    assert episode.ending.value == "clean_end"


def test_parallel_tools_are_no_rewind() -> None:
    log = Log()
    log.prompt(0, key="p1")
    log.call(1, key="m1", parent=tag("p1"))
    log.tool(2, parent=tag("m1"))
    log.tool(2, parent=tag("m1"))
    log.call(3, key="m2", parent=tag("m1"))
    log.prompt(4, key="p2", parent=tag("m1"))  # not under m2: the log goes on from the other branch
    facts = facts_of(log)
    assert facts.episodes[0].tools == {(A, "ok"): 2}


def test_a_log_that_links_no_rows_has_no_rewinds() -> None:
    log = Log()
    log.prompt(0, parent=None)
    log.call(1, parent=None)
    log.tool(2)
    log.prompt(3, parent=None)
    facts = facts_of(log)
    assert facts.episodes[0].tools == {(A, "ok"): 1}
    assert facts.totals.parent_missing == 0


def test_going_back_to_the_very_first_prompt_is_a_rewind() -> None:
    log = Log()
    log.prompt(0, parent=None)
    log.call(1)
    log.tool(2)
    log.prompt(3, parent=None)
    assert facts_of(log).episodes[0].tools == {}


def test_a_broken_chain_is_no_rewind_but_a_gap() -> None:
    log = Log()
    log.prompt(0, key="p1")
    log.call(0.5)
    log.tool(1)
    log.prompt(2, key="p2", parent=tag("nobody knows this row"))
    facts = facts_of(log)
    assert facts.episodes[0].tools == {(A, "ok"): 1}
    assert facts.totals.parent_missing == 1


def test_late_evidence_counts_for_fourteen_days() -> None:
    for days, value in ((13, "explicit_yes"), (15, "clean_end")):
        log = Log()
        log.turn(0)
        log.outcome(61 + days * 24 * 60, "accepted", "rating")
        assert [e.ending.value for e in facts_of(log).episodes] == [value]


def test_an_event_without_a_time_is_counted_and_belongs_to_no_episode() -> None:
    log = Log()
    log.turn(0)
    log.tool(0, ts=None)
    facts = facts_of(log)
    assert facts.episodes[0].tools == {}
    assert facts.totals.tools == {"ok": 1}


def test_inside_equal_times_a_row_follows_the_row_it_answers() -> None:
    log = Log()
    # Reading order puts the answer of the second file first.
    log.call(1, key="m1", parent=tag("p1"))
    log.prompt(1, key="p1", parent=None)
    log.end(2)
    assert [e.ending.value for e in facts_of(log).episodes] == ["clean_end"]


def test_an_episode_over_the_windows_end_counts_once_where_it_closes() -> None:
    log = Log(start=START + 92 * DAY - 30 * MINUTE)
    log.turn(0)
    (episode,) = facts_of(log).episodes
    assert episode.closed == START + 92 * DAY + 31 * MINUTE
    assert episode.closed < NOW
