# SPDX-License-Identifier: Apache-2.0
"""A change of model counts only when the person made it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client_events import CATALOGUE, RETIRED, A, B, C, Log, facts_of, rows_of_logs, table, tag
from windvane_client.constants import CONSTANTS, DAY
from windvane_client.outcomes_table import switch_of
from windvane_client.rules import Rules, parse_rules
from windvane_client.switches import CAUSES, COUNTING, Opening, decisive


def change(
    build: Callable[[Log], object], *, rules: Rules | None = None, **header: object
) -> tuple[str | None, str] | None:
    """(target, cause) of the one episode of conversation c1."""
    log = Log(**header).habit(A, B, RETIRED)
    build(log)
    facts = facts_of(log, rules=rules)
    (episode,) = [e for e in facts.episodes if e.conv == tag("c1")]
    return switch_of(episode, facts, CATALOGUE, rules or Rules(), CONSTANTS)


def moved(log: Log, *, between: Callable[[Log], object] | None = None, route: str = "direct", to: str = B) -> None:
    log.turn(0, A)
    if between is not None:
        between(log)
    log.prompt(40)
    log.call(40.5, to, route=route)
    log.end(41)


POLICY = parse_rules(events=f'[[event]]\ndate = 2026-08-06\nkind = "policy"\nfrom = "{A}"\nto = "{B}"\n')
OTHER_POLICY = parse_rules(events=f'[[event]]\ndate = 2026-08-06\nkind = "policy"\nfrom = "{B}"\nto = "{A}"\n')
OLD_POLICY = parse_rules(events=f'[[event]]\ndate = 2026-08-01\nkind = "default_change"\nfrom = "{A}"\n')
OUTAGE = parse_rules(events="[[event]]\ndate = 2026-08-10T00:00:00Z\nuntil = 2026-08-10T00:20:00Z\nkind = 'outage'\n")
PAST_OUTAGE = parse_rules(
    events="[[event]]\ndate = 2026-08-09T22:00:00Z\nuntil = 2026-08-10T00:05:00Z\nkind = 'outage'\n"
)

CASES: list[tuple[str, Callable[[Log], object], Rules | None, str]] = [
    ("nothing else: the person", moved, None, "person_inferred"),
    ("a model command before the change", lambda g: moved(g, between=lambda g: g.set_model(39)), None, "person_set"),
    (
        "a picker that named the target",
        lambda g: moved(g, between=lambda g: g.set_model(39, family=B)),
        None,
        "person_set",
    ),
    (
        "a picker that named another model",
        lambda g: moved(g, between=lambda g: g.set_model(39, family=C)),
        None,
        "person_inferred",
    ),
    ("declared policy", moved, POLICY, "policy"),
    ("a policy for the other direction", moved, OTHER_POLICY, "person_inferred"),
    ("a default change eight days ago", moved, OLD_POLICY, "person_inferred"),
    ("managed settings", lambda g: moved(g, between=lambda g: g.set_model(39, "policy")), None, "policy"),
    ("plan mode", lambda g: moved(g, between=lambda g: g.set_model(39, "harness")), None, "planned_mode"),
    ("a move after a refusal", lambda g: moved(g, between=lambda g: g.set_model(39, "refusal")), None, "refusal"),
    (
        "an error before a move after a refusal",
        lambda g: moved(g, between=lambda g: (g.error(38), g.set_model(39, "refusal"))),
        None,
        "infra",
    ),
    (
        "a person's command after a refusal that moved nothing",
        lambda g: moved(g, between=lambda g: g.set_model(39)),
        None,
        "person_set",
    ),
    ("a move to the fallback", lambda g: moved(g, between=lambda g: g.set_model(39, "fallback")), None, "fallback"),
    ("a skill's model", lambda g: moved(g, route="skill"), None, "planned_mode"),
    ("router", lambda g: moved(g, route="router"), None, "router"),
    ("fallback", lambda g: moved(g, route="fallback"), None, "fallback"),
    ("an error 29 minutes before", lambda g: moved(g, between=lambda g: g.error(11)), None, "infra"),
    ("an error 31 minutes before", lambda g: moved(g, between=lambda g: g.error(9)), None, "person_inferred"),
    (
        "an error on the other model",
        lambda g: moved(g, between=lambda g: g.error(39, family=C)),
        None,
        "person_inferred",
    ),
    (
        "an error on nobody knows which model",
        lambda g: moved(g, between=lambda g: g.error(39, family="unknown")),
        None,
        "infra",
    ),
    (
        "a command typed because of an overload",
        lambda g: moved(g, between=lambda g: (g.error(38, "overload"), g.set_model(39))),
        None,
        "infra",
    ),
    ("declared outage", moved, OUTAGE, "infra"),
    ("an outage that ended 35 minutes before", moved, PAST_OUTAGE, "person_inferred"),
    ("the person's own quota", lambda g: moved(g, between=lambda g: g.error(39, "rate_own")), None, "quota"),
    ("a bad request", lambda g: moved(g, between=lambda g: g.error(39, "client_4xx")), None, "person_inferred"),
    ("a full context", lambda g: moved(g, between=lambda g: g.error(2, "context")), None, "context"),
    ("the target is new", lambda g: moved(g, to=C), None, "novelty"),
]


@pytest.mark.parametrize(("build", "rules", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_each_cause_and_its_nearest_miss(build: Callable[[Log], object], rules: Rules | None, expected: str) -> None:
    found = change(build, rules=rules)
    assert found is not None
    assert found[1] == expected


def test_a_retired_model_is_left_because_it_is_gone() -> None:
    def build(log: Log) -> None:
        log.turn(0, RETIRED)
        log.turn(10, B)

    assert change(build) == (B, "retired")


def test_a_log_that_could_hide_an_outage_gives_an_unknown_cause() -> None:
    assert change(moved, reader="claude_code/1.0.0+no-attempts") == (B, "unknown")


@pytest.mark.parametrize(("days", "cause"), [(13, "novelty"), (14, "person_inferred")])
def test_a_model_is_new_for_fourteen_days(days: float, cause: str) -> None:
    log = Log().habit(A)
    log.habit(C, days_before=days)
    moved(log, to=C)
    # The prompt that changes comes 40 minutes after the conversation's start.
    facts = facts_of(log)
    (episode,) = [e for e in facts.episodes if e.conv == tag("c1")]
    found = switch_of(episode, facts, CATALOGUE, Rules(), CONSTANTS)
    assert found == (C, cause)


def test_there_and_back_again_is_no_change() -> None:
    def build(log: Log) -> None:
        for i, family in enumerate((A, B, A)):
            log.turn(i * 5, family)

    assert change(build) == (None, "stayed")


def test_a_to_b_to_c_is_a_move_to_b() -> None:
    def build(log: Log) -> None:
        log.habit(C)
        for i, family in enumerate((A, B, C)):
            log.turn(i * 5, family)

    assert change(build) == (B, "person_inferred")


def test_the_open_picker_without_effect_is_no_change() -> None:
    def build(log: Log) -> None:
        log.turn(0, A)
        log.set_model(2)
        log.turn(5, A)

    assert change(build) == (None, "stayed")


def test_a_skill_inside_a_turn_changes_nothing() -> None:
    def build(log: Log) -> None:
        log.prompt(0)
        log.call(1, A)
        log.call(2, B, route="skill")
        log.turn(5, A)

    assert change(build) == (None, "stayed")


@pytest.mark.parametrize("families", [(A,), (A, "unknown"), ("other", B), ("unknown", B)])
def test_one_turn_or_an_unknown_model_or_an_unlisted_one_is_not_eligible(families: tuple[str, ...]) -> None:
    def build(log: Log) -> None:
        for i, family in enumerate(families):
            log.turn(i * 5, family)

    assert change(build) is None


def test_without_a_choice_nobody_can_stay_or_leave() -> None:
    log = Log().habit(A)
    log.turn(0, A)
    log.turn(5, A)
    # A skill's and a subagent's model is no choice.
    log.call(6, B, route="skill")
    log.call(7, B, thread="side")
    assert table(rows_of_logs(log), "switch_away") == {}


def test_a_choice_lasts_thirty_days() -> None:
    for days, able in ((29, True), (31, False)):
        log = Log().habit(A).habit(B, days_before=days)
        log.turn(0, A)
        log.turn(5, A)
        facts = facts_of(log)
        episode = next(e for e in facts.episodes if e.conv == tag("c1"))
        found = switch_of(episode, facts, CATALOGUE, Rules(), CONSTANTS)
        assert (found is not None) == able


def test_an_unanswered_turn_opens_on_the_model_that_was_asked() -> None:
    def build(log: Log) -> None:
        log.turn(0, A)
        log.prompt(5)
        log.error(6, "client_4xx", A, final=True)

    assert change(build) == (None, "stayed")


def episode_of(log: Log, number: int, *families: str, between: Callable[[Log, float], object] | None = None) -> None:
    for i, family in enumerate(families):
        if i and between is not None:
            between(log, number * 200 + i * 5 - 1)
        log.turn(number * 200 + i * 5, family)


def test_rows_are_per_ordered_pair_and_count_stays_and_counting_moves() -> None:
    log = Log().habit(A, B, C)
    for number in range(10):
        episode_of(log, number, A, A)
    episode_of(log, 10, A, B)
    episode_of(log, 11, A, C)
    episode_of(log, 12, A, B, between=lambda g, at: g.error(at))
    rows = table(rows_of_logs(log), "switch_away")
    assert rows[A, B] == (12, 11)
    assert rows[A, C] == (12, 11)
    assert {model for model, _ in rows} == {A}


def test_more_than_a_fifth_of_unknown_causes_silences_that_person_only() -> None:
    def logs(known: int, unknown: int, person: str) -> Log:
        log = Log(person, f"{person}-c").habit(A, B)
        for number in range(known):
            episode_of(log, number, A, B)
        old = Log(person, f"{person}-old", reader="claude_code/1.0.0+no-attempts")
        for number in range(unknown):
            episode_of(old, 50 + number, A, B)
        log.events += old.events
        return log

    ana, bob = logs(4, 1, "ana"), logs(3, 1, "bob")
    rows = [r for r in rows_of_logs(ana, bob) if r.signal == "switch_away"]
    assert {r.person for r in rows} == {tag("ana")}
    assert [(r.trials, r.successes) for r in rows if r.against == B] == [(4, 0)]


@given(st.lists(st.sampled_from((A, B, C)), min_size=1, max_size=8))
def test_the_decisive_change_is_the_last_departure(families: list[str]) -> None:
    found = [Opening(i, i, family, "direct") for i, family in enumerate(families)]
    at = decisive(found)
    if families[-1] == families[0]:
        assert at is None
    else:
        assert at is not None
        assert families[at - 1] == families[0]
        assert families[0] not in families[at:]


def test_causes_are_a_closed_list_and_two_count() -> None:
    assert set(CAUSES) >= COUNTING
    assert {expected for *_, expected in CASES} | {"retired", "unknown", "default_change"} == set(CAUSES)
    assert CONSTANTS.choice_span < 40 * DAY


def test_a_declared_default_change_covers_seven_days() -> None:
    rules = parse_rules(events=f'[[event]]\ndate = 2026-08-04\nkind = "default_change"\nfrom = "{A}"\n')
    found = change(moved, rules=rules)
    assert found == (B, "default_change")
