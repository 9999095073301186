# SPDX-License-Identifier: Apache-2.0
"""Only what a person did counts, and behaviour never makes a person."""

from __future__ import annotations

import pytest

from client_events import A, B, Log, facts_of, rows_of_logs, tag
from windvane_client.events import MODES
from windvane_client.rules import parse_rules


def full(mode: str) -> Log:
    """Events of every signal in one mode."""
    log = Log(source="canonical", recorder="canonical/x", kind_hint="coding", mode=mode).habit(A, B)
    log.turn(0, A)
    log.tool(1)
    log.error(2, attempt=1)
    log.call(3, A)
    log.turn(5, A)
    return log


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "interactive"])
def test_no_other_mode_reaches_the_table(mode: str) -> None:
    assert rows_of_logs(full(mode)) == []


def test_interactive_reaches_it() -> None:
    found = {row.signal for row in rows_of_logs(full("interactive"))}
    assert found == {"completion", "switch_away", "tool_reliability", "infra_recovery"}


def test_a_mixed_conversation_is_split_by_turn() -> None:
    log = Log()
    log.prompt(0)
    log.tool(1)
    for minute, origin in ((2, "sdk"), (4, "scheduled")):
        log.prompt(minute, origin)
        log.tool(minute + 1, "malformed")
    log.prompt(10)
    log.tool(11)
    log.prompt(12, mode="automation")
    log.tool(13, "malformed")
    (episode,) = facts_of(log).episodes
    assert episode.tools == {(A, "ok"): 2}
    # One turn of the episode was not interactive, so neither is its end.
    assert episode.mode == "automation"


def test_a_service_account_is_automation_whatever_the_log_says() -> None:
    rules = parse_rules("[modes]\nservice_accounts = ['ana']\n").with_people(tag)
    log = full("interactive")
    log.vote(8, "a")
    assert rows_of_logs(log, rules=rules) == []
    assert rows_of_logs(log) != []


def test_a_vote_is_a_persons_act_whatever_the_chats_mode() -> None:
    log = Log(source="canonical", recorder="canonical/x", kind_hint="writing", mode="unknown")
    log.vote(0, "a")
    assert {row.signal for row in rows_of_logs(log)} == {"blind_quality"}


def demoted(log: Log) -> bool:
    return any(episode.mode == "unknown" for episode in facts_of(log).episodes)


@pytest.mark.parametrize(("hours", "expected"), [(16, False), (17, True)])
def test_more_than_sixteen_active_hours_are_not_one_person(hours: int, expected: bool) -> None:
    log = Log()
    for hour in range(hours):
        log.prompt(hour * 60 + (hour * 7) % 50)
    assert demoted(log) == expected


@pytest.mark.parametrize(("prompts", "gap", "expected"), [(20, 4.9, True), (19, 4.9, False), (20, 5.0, False)])
def test_twenty_prompts_under_five_seconds_apart_are_not_typed(prompts: int, gap: float, expected: bool) -> None:
    log = Log()
    for i in range(prompts):
        log.prompt(i * gap / 60)
    assert demoted(log) == expected


@pytest.mark.parametrize(("starts", "jitter", "expected"), [(10, 0, True), (9, 0, False), (10, 2.5, False)])
def test_ten_equally_spaced_starts_are_a_schedule(starts: int, jitter: float, expected: bool) -> None:
    log = Log()
    for i in range(starts):
        one = Log(conv=f"start{i}", start=log.start)
        one.prompt(i * 30 + (jitter / 60 if i % 2 else 0))
        log.events += one.events
    assert demoted(log) == expected


def test_demotion_ends_with_the_day_and_the_person() -> None:
    log, bob = Log(), Log("bob", "bob")
    for i in range(25):
        log.prompt(i / 60)
    log.prompt(24 * 60 + 1)
    bob.turn(1)
    assert [episode.mode for episode in facts_of(log, bob).episodes] == ["unknown", "interactive"]
    assert [episode.mode for episode in facts_of(log, bob, person="bob").episodes] == ["interactive"]


def test_behaviour_never_promotes() -> None:
    log = Log(mode="unknown")
    log.turn(0)
    assert [episode.mode for episode in facts_of(log).episodes] == ["unknown"]


@pytest.mark.parametrize("mode", ["interactive", "automation"])
def test_a_conversation_in_which_a_program_had_a_turn_gives_no_completion(mode: str) -> None:
    """The models are known to the person, so nothing but the mode of one turn stands in the way."""
    log = Log(source="canonical", recorder="canonical/x", kind_hint="coding").habit(A, B)
    log.turn(0, A)
    log.prompt(5, mode=mode)
    log.call(5.5, A)
    log.end(6)
    found = [row for row in rows_of_logs(log) if row.signal == "completion"]
    assert bool(found) == (mode == "interactive")
