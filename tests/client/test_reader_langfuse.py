# SPDX-License-Identifier: Apache-2.0
"""Langfuse exports: what is a call, whose it was, and what only the organisation's own words can add."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from reader_support import IDS, KEY, NOW, context, lines, of
from reader_support import read as read_rows
from windvane_client.catalogue_builtin import builtin_catalogue
from windvane_client.ids import KeyedIds
from windvane_client.outcomes_table import build_outcomes
from windvane_client.people import parse_people
from windvane_client.preview_sources import recognise
from windvane_client.readers import READERS, context_for
from windvane_client.readers.files import open_log
from windvane_client.readers.protocol import SampleFacts
from windvane_client.rules import Rules, parse_rules
from windvane_client.signals import read_person
from windvane_client.store import EventStore
from windvane_privacy.catalogue import Signal
from windvane_privacy.errors import ConfigurationError

CANARY = "CANARY-4711"
A, B = "gpt-5.2", "claude-opus-4.6"
FIXTURE = Path(__file__).parent / "fixtures" / "langfuse_SYNTHETIC.json"
RULES = """[modes]
interactive_keys = ["desk"]
[scores.user-feedback]
"1" = "accepted"
"0" = "rejected"
"""


def when(second: int) -> str:
    return f"2026-03-01T10:{second // 60:02}:{second % 60:02}.000Z"


def observation(n: int = 1, kind: str = "GENERATION", **more: Any) -> dict[str, Any]:
    return {
        "id": f"o{n}", "traceId": "t1", "type": kind, "name": CANARY, "startTime": when(n), "endTime": when(n + 1),
        "level": "DEFAULT", "model": "gpt-5.2", "parentObservationId": None, "input": CANARY, "output": CANARY,
        "statusMessage": CANARY, "metadata": {"conversation_id": CANARY}, **more,
    }  # fmt: skip


def score(value: Any = 1, **more: Any) -> dict[str, Any]:
    return {"id": "s1", "traceId": "t1", "name": "user-feedback", "value": value, "source": "API",
            "timestamp": when(50), "comment": CANARY, **more}  # fmt: skip


def trace(*observations: Any, scores: list[Any] | None = None, **more: Any) -> dict[str, Any]:
    about = {"id": "t1", "timestamp": when(0), "userId": "u1", "sessionId": "c1", "tags": [CANARY], "name": CANARY,
             "input": CANARY, "output": CANARY, "scores": scores or [], **more}  # fmt: skip
    return {"trace": about, "observations": list(observations)}


def read(*values: Any, rules: str = "", **more: Any) -> tuple[list[Any], Any]:
    parsed = parse_rules(rules)
    ctx = context("langfuse", key_mode=parsed.key_mode, scores=parsed.scores, kind_rule=parsed.kind_rule, **more)
    return read_rows(json.dumps(values, indent=1).encode(), ctx)


def kinds_of(events: list[Any]) -> list[str]:
    return [type(event).__name__ for event in events]


def flat(row: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The same observation as a row that names its trace's user and session."""
    return {**row, "userId": "u1", "sessionId": "c1", "tags": [CANARY], **more}


def snake(row: dict[str, Any]) -> dict[str, Any]:
    """The same row as scheduled exports spell it."""
    found = {re.sub("[A-Z]", lambda one: "_" + one[0].lower(), name): value for name, value in row.items()}
    if "model" in found:
        found["provided_model_name"] = found.pop("model")
    for name in ("start_time", "end_time", "timestamp"):
        if name in found:
            found[name] = found[name].replace("T", " ").rstrip("Z") + "000"
    return found


WRAPPERS = ["SPAN", "EVENT", "AGENT", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL"]


def test_only_a_generation_is_a_call_and_only_a_tool_a_tool_call():
    wrappers = [observation(n, kind) for n, kind in enumerate(WRAPPERS, 3)]
    events, ctx = read(trace(observation(1), observation(2, "TOOL"), *wrappers))
    assert kinds_of(events) == ["Call", "Tool"]
    assert ctx.rows.read == 2 + len(WRAPPERS)
    assert events[0].served == A


def test_every_form_of_an_export_gives_the_same_events():
    parts = [observation(1), observation(2, "TOOL"), observation(0, "SPAN")]
    whole = read(trace(*parts))[0]
    rest = {**trace()["trace"], "observations": parts}
    rows = [flat(part) for part in parts]
    forms = {
        "trace of the API": read(rest),
        "rows": read(*rows),
        "rows, other spelling": read(*map(snake, rows)),
        "page": read({"data": rows, "meta": {"page": 1}}),
        "lines": read_rows(lines(map(snake, rows)), context("langfuse")),
        "traces in lines": read_rows(lines([trace(*parts)]), context("langfuse")),
    }
    for name, (events, ctx) in forms.items():
        assert [(type(e), e.key, e.ts, e.conv, e.person) for e in events] == [
            (type(e), e.key, e.ts, e.conv, e.person) for e in whole
        ], name
        assert (ctx.rows.read, ctx.rows.rejected, ctx.rows.unknown) == (3, 0, 0), name


def test_a_failed_observation_is_a_failed_call_and_no_fault():
    events, ctx = read(trace(observation(1, level="ERROR"), observation(2, "TOOL", level="ERROR")))
    assert (events[0].status, events[1].outcome) == ("error", "failed")
    assert of(events, "AttemptError") == []
    assert not ctx.facts.infra_possible  # a retry is just another call


def test_what_never_ended_is_neither_answer_nor_result():
    events, _ = read(trace(observation(1, endTime=None), observation(2, "TOOL", endTime=None)))
    assert [(type(e).__name__, e.outcome, e.result_ts) for e in events] == [("Tool", "no_result", None)]


EVIDENCE = {
    "level": ["Prompt", "Tool unclassified"],
    "endTime": ["Prompt", "Tool no_result"],
    "model": ["Prompt", "Call unknown", "Tool ok"],
    "name": ["Prompt", "Call gpt-5.2", "Tool ok"],
}


@pytest.mark.parametrize("field", sorted(EVIDENCE))
def test_without_its_evidence_a_signal_is_unknown_and_never_a_success(field):
    parts = [observation(1), observation(2, "TOOL")]
    for part in parts:
        del part[field]
    events, ctx = read(trace(*parts), rules=RULES.replace("desk", CANARY))
    told = [" ".join([type(e).__name__, *(getattr(e, name) for name in ("served", "outcome") if hasattr(e, name))])
            for e in events]  # fmt: skip
    assert told == EVIDENCE[field]
    assert ctx.rows.rejected == 0


def test_without_sessions_tags_or_scores_there_is_no_work_to_compare():
    told = json.loads(FIXTURE.read_text("utf-8"))
    for gone in ("sessionId", "tags", "userId"):
        less = [{**one, "trace": {name: v for name, v in one["trace"].items() if name != gone}} for one in told]
        # Without a user all of it is the one person of a preview; nobody's in an organisation.
        ids = KeyedIds(KEY, parse_people('[[person]]\nstaff_id = "s"\nids = ["langfuse:u1"]\n'))
        assert outcomes(parse_rules(RULES), json.dumps(less).encode(), ids=ids) == {}, gone
    less = [{**one, "trace": {**one["trace"], "scores": []}} for one in told]
    assert {key[0] for key in outcomes(parse_rules(RULES), json.dumps(less).encode())} == {"tool_reliability"}


def test_a_trace_is_nobodys_prompt_unless_the_organisation_says_that_people_are_there():
    events, ctx = read(trace(observation()))
    assert kinds_of(events) == ["Call"]
    assert (events[0].mode, ctx.facts.any_prompt_row) == ("unknown", False)
    for name in ("u1", CANARY, "langfuse"):  # a user, a tag, the whole source
        events, ctx = read(trace(observation()), rules=f'[modes]\ninteractive_keys = ["{name}"]\n')
        assert kinds_of(events) == ["Prompt", "Call"]
        assert {event.turn for event in events} == {events[0].key}
        assert ctx.facts.any_prompt_row
    events, _ = read(trace(observation()), rules='[modes]\nautomation_keys = ["u1"]\ninteractive_keys = ["langfuse"]\n')
    assert [(type(e).__name__, e.mode) for e in events] == [("Call", "automation")]
    # Without a session there is no conversation, so no turn.
    assert kinds_of(read(trace(observation(), sessionId=None), rules=RULES.replace("desk", CANARY))[0]) == ["Call"]


def test_rows_of_one_trace_are_one_turn():
    rules = RULES.replace("desk", CANARY)
    inner = [flat(observation(n, parentObservationId="o1")) for n in (2, 3)]
    events, _ = read(flat(observation(1, "AGENT")), *inner, rules=rules)
    assert kinds_of(events) == ["Prompt", "Call", "Call"]
    assert {event.turn for event in events} == {events[0].key}
    assert read(trace(observation(1, "AGENT")), rules=rules)[0][0].key == events[0].key


def test_what_langfuse_runs_itself_is_no_persons_work():
    events, _ = read(trace(observation(), environment="langfuse-llm-as-a-judge"), rules=RULES.replace("desk", "u1"))
    assert [(e.mode, e.mode_evidence, e.thread, e.route) for e in events] == [
        ("automation", "environment", "side", "background")
    ]


def test_free_metadata_is_no_conversation_and_an_empty_field_is_none():
    events, ctx = read(trace(observation(), sessionId=None, userId=None))
    assert (events[0].conv, ctx.facts.conversations, ctx.facts.persons) == (None, set(), set())
    about = trace(observation())
    del about["trace"]["sessionId"], about["trace"]["userId"]
    _, ctx = read(about)
    assert (ctx.facts.conversations, ctx.facts.persons) == (None, None)


def test_people_are_mapped_dropped_or_excluded():
    ids = KeyedIds(KEY, parse_people(
        '[[person]]\nstaff_id = "s-1"\nids = ["langfuse:u1", "email:ana@example.org"]\n'
        '[[person]]\nstaff_id = "s-2"\nids = ["langfuse:u2"]\n[exclude]\nstaff_ids = ["s-2"]\n'
    ))  # fmt: skip
    told = [trace(observation(n), id=f"t{n}", userId=user)
            for n, user in enumerate(["u1", "ana@example.org", "u2", "u3", None])]  # fmt: skip
    events, ctx = read(*told, ids=ids)
    assert [event.person for event in events] == [ids.staff("s-1")] * 2 + [None, None]
    assert [event.what for event in of(events, "Gap")] == ["person_unknown"] * 2
    assert ctx.rows.read == 4


def test_kinds_come_from_rules_and_reserved_tags_only():
    assert read(trace(observation()))[0][0].kind_hint is None
    rule = f'[[kind]]\nsource = "langfuse"\ntag = "{CANARY}"\nkind = "support"\n'
    assert read(trace(observation()), rules=rule)[0][0].kind_hint == "support"
    assert read(trace(observation(), tags=["windvane:writing"]))[0][0].kind_hint == "writing"


# --- scores -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "more", "word"),
    [
        (1, {}, "accepted"), (1.0, {}, "accepted"), ("1", {}, "accepted"), (0, {}, "rejected"), (0.5, {}, None),
        (None, {"stringValue": "1"}, "accepted"), (1, {"name": "toxicity"}, None), (1, {"source": "EVAL"}, None),
        (1, {"source": "ANNOTATION"}, "accepted"),
    ],
)  # fmt: skip
def test_a_score_is_an_outcome_only_where_the_organisation_names_it(value, more, word):
    found = of(read(trace(observation(), scores=[score(value, **more)]), rules=RULES)[0], "Outcome")
    assert [event.value for event in found] == ([word] if word else [])
    assert of(read(trace(observation(), scores=[score(value, **more)]))[0], "Outcome") == []


def test_an_annotation_proves_no_blindness_and_a_judge_gives_no_vote():
    scores = [score(id="a", source="ANNOTATION"), score(id="b", source="EVAL"), score(id="c")]
    events, ctx = read(trace(observation(), scores=scores))
    assert [vote.blind for vote in of(events, "Vote")] == ["no"]
    assert ctx.facts.any_vote_row
    assert not read(trace(observation()))[1].facts.any_vote_row


def test_a_score_alone_names_its_trace_and_its_user():
    whole, _ = read(trace(observation(), scores=[score()]), rules=RULES)
    alone, ctx = read({**score(), "trace": {"userId": "u1", "sessionId": "c1", "tags": []}}, rules=RULES)
    assert [(e.key, e.conv, e.person) for e in alone] == [(e.key, e.conv, e.person) for e in of(whole, "Outcome")]
    bare, _ = read(snake(score()), rules=RULES, ids=KeyedIds(KEY, parse_people("")))
    assert [event.what for event in bare] == ["person_unknown"]
    assert ctx.rows.rejected == 0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[scores]\n"x" = 1\n', "maps to something else"),
        ('[scores.x]\n"1" = "good"\n', "maps to something else"),
        ('[scores.x]\n"1" = "accepted"\n', "only one of the two results"),
        ('[scores.x]\n"1" = "rejected"\n', "only one of the two results"),
        ("scores = 1\n", "not a table"),
    ],
)
def test_scores_that_show_only_one_result_are_refused_at_load(text, says):
    with pytest.raises(ConfigurationError, match=says):
        parse_rules(text)


# --- broken, cut and grown --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (observation(id=None), "missing_field"), (observation(startTime=None), "missing_field"),
        (observation(type=None), "missing_field"), (observation(startTime=CANARY), "bad_time"),
        (observation(endTime="2019-01-01T00:00:00Z"), "bad_time"), (observation(model=7), "wrong_type"),
        (observation(level=[CANARY]), "wrong_type"), (CANARY, None), (42, "not_an_object"),
        ([CANARY], "not_an_object"), (None, "not_an_object"),
    ],
)  # fmt: skip
def test_a_broken_observation_is_counted_and_the_rest_is_read(broken, reason):
    events, ctx = read(trace(observation(1), broken, observation(2)))
    if reason is None:
        assert ctx.rows.rejected == 0  # the mere id of an observation, as in a list of traces
    else:
        assert ctx.rows.reasons == {reason: 1}
        assert [event.what for event in of(events, "Gap")] == ["rows_rejected"]
    assert len(of(events, "Call")) == 2
    assert CANARY not in repr(events) + repr(ctx.rows) + repr(ctx.facts)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"id": None}, "missing_field"), ({"timestamp": None}, "missing_field"), ({"timestamp": 5}, "bad_time"),
        ({"userId": 7}, "wrong_type"), ({"userId": "x" * 300}, "bad_value"), ({"sessionId": "x" * 300}, "bad_value"),
        ({"tags": CANARY}, "wrong_type"),
    ],
)  # fmt: skip
def test_a_broken_trace_is_one_rejected_row(more, reason):
    events, ctx = read(trace(observation(), **more), trace(observation(2)))
    assert (ctx.rows.read, ctx.rows.reasons) == (2, {reason: 1})
    assert kinds_of(events) == ["Gap", "Call"]


def test_an_unknown_type_is_counted_before_any_field_is_checked():
    strange = {"id": 7, "traceId": 7, "type": CANARY, "startTime": []}
    events, ctx = read(trace(strange), flat(strange))
    assert (events, ctx.rows.unknown, ctx.rows.rejected) == ([], 2, 0)


def test_a_listed_trace_holds_only_the_ids_of_its_parts():
    events, ctx = read({**trace()["trace"], "observations": ["o1", "o2"], "scores": ["s1"]})
    assert (events, ctx.rows.read, ctx.rows.rejected) == ([], 1, 0)
    assert ctx.facts.conversations == {IDS.conv("langfuse", "c1")}
    assert not ctx.facts.any_call_row


def test_a_cut_export_waits_or_is_counted():
    whole = json.dumps([trace(observation(1)), trace(observation(2))], indent=1).encode()
    for cut in range(0, len(whole), 13):
        ctx = context("langfuse", final=True)
        events, _ = read_rows(whole[:cut], ctx)
        assert len(of(events, "Call")) + ctx.rows.rejected == ctx.rows.read
        assert read_rows(whole[:cut], context("langfuse"))[1].rows.rejected == 0


def test_lines_go_on_where_the_last_run_stopped():
    rows = [flat(observation(n)) for n in range(1, 4)]
    whole = lines(rows)
    for at in range(0, len(whole), 17):
        first = context("langfuse")
        before, _ = read_rows(whole[:at], first)
        second = context("langfuse", offset=first.offset)
        after, _ = read_rows(whole, second)
        once, _ = read_rows(whole, context("langfuse"))
        assert [event.key for event in before + after] == [event.key for event in once]
        assert first.rows.read + second.rows.read == 3


def test_split_packed_or_with_other_line_ends_it_is_the_same_export(tmp_path):
    rows = [flat(observation(n, kind)) for n, kind in enumerate(["AGENT", "GENERATION", "TOOL", "GENERATION"])]
    once, _ = read_rows(lines(rows), context("langfuse"))
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(lines(rows)))
    with open_log(path) as stream:
        assert list(READERS["langfuse"].read(stream, context("langfuse"))) == once
    assert read_rows(lines(rows).replace(b"\n", b"\r\n"), context("langfuse"))[0] == once
    for at in range(5):
        parts = [read_rows(lines(part), context("langfuse"))[0] for part in (rows[:at], rows[at:], rows)]
        with EventStore.temporary() as store:
            for part in parts:
                store.add(part)
            assert store.counts() == {"call": 2, "tool": 1}


def test_a_trace_without_observations_and_one_that_is_none_are_told_apart():
    events, ctx = read({"trace": trace()["trace"]})
    assert (events, ctx.rows.read, ctx.rows.rejected) == ([], 1, 0)
    assert read({"trace": CANARY, "observations": []})[1].rows.reasons == {"not_an_object": 1}


def test_no_text_is_in_events_counts_or_facts():
    seen = ""
    for whole in (observation(), score(), trace()["trace"]):
        for name in whole:
            for wrong in (CANARY, [CANARY], {CANARY: CANARY}, 7):
                broken = {**whole, name: wrong}
                for value in (trace(broken), trace(observation(), scores=[broken]), flat(broken), {**broken}):
                    events, ctx = read(value, rules=RULES)
                    seen += repr(events) + repr(ctx.rows) + repr(ctx.facts)
    assert CANARY not in seen


# --- outcomes ---------------------------------------------------------------------------------------------------------


def outcomes(rules: Rules, raw: bytes | None = None, *, ids: KeyedIds = IDS) -> dict[tuple[str, ...], tuple[int, int]]:
    ctx = context_for(FIXTURE, ids=ids, catalogue=builtin_catalogue(), now=NOW, facts=SampleFacts("langfuse"))
    ctx.key_mode, ctx.scores, ctx.kind_rule = rules.key_mode, rules.scores, rules.kind_rule
    with EventStore.temporary() as store:
        if raw is None:
            with open_log(FIXTURE) as stream:
                store.add(READERS["langfuse"].read(stream, ctx))
        else:
            store.add(read_rows(raw, ctx)[0])
        assert (ctx.rows.rejected, ctx.rows.unknown) == (0, 0)
        rows = build_outcomes(store, window=(0, NOW), catalogue=builtin_catalogue(), rules=rules, ids_key=KEY, now=NOW)
        return {
            (row.signal.value, row.kind, row.recorder, row.basis.value, row.model): (row.successes, row.trials)
            for row in rows
        }


def test_traces_end_in_rows_where_the_organisation_says_what_they_are():
    """By hand: sessions 1 and 2 introduce the models. Completion: 3-8 with A and 9-11 with B were accepted, 12 was
    rejected, 13 is mixed, 14 was not rated. Tools, one a turn: A 1 + 12 + 1 + 2, B 1 + 8 + 1, one failed each."""
    head = ("support", "langfuse")
    assert recognise(FIXTURE) == ("langfuse", None)
    assert outcomes(parse_rules(RULES)) == {
        (Signal.COMPLETION.value, *head, "explicit", A): (6, 6),
        (Signal.COMPLETION.value, *head, "explicit", B): (3, 4),
        (Signal.TOOL_RELIABILITY.value, *head, "bit", A): (15, 16),
        (Signal.TOOL_RELIABILITY.value, *head, "bit", B): (9, 10),
    }
    assert outcomes(Rules()) == {}


def test_the_same_traces_as_single_rows_in_any_order_end_in_the_same_rows():
    told = json.loads(FIXTURE.read_text("utf-8"))
    rows = []
    for one in told:
        about = {name: one["trace"][name] for name in ("userId", "sessionId", "tags", "environment")}
        rows += [snake({**part, **about}) for part in one["observations"]]
        rows += [{**part, "trace": about} for part in one["trace"]["scores"]]
    for order in (rows, rows[::-1]):
        assert outcomes(parse_rules(RULES), lines(order)) == outcomes(parse_rules(RULES))


def test_a_tool_call_is_nobodys_where_two_models_answered_in_its_turn():
    rules = parse_rules(RULES.replace("desk", CANARY))
    for models, families in ((("gpt-5.2", "gpt-5.2"), {A}), (("gpt-5.2", "claude-opus-4-6"), {"unknown"})):
        parts = [observation(n, model=model) for n, model in enumerate(models, 1)]
        events, _ = read_rows(
            lines([trace(*parts, observation(4, "TOOL"))]), context("langfuse", key_mode=rules.key_mode)
        )
        with EventStore.temporary() as store:
            store.add(events)
            (episode,) = read_person(store, IDS.machine(), window=(0, NOW), rules=rules, ids_key=KEY, now=NOW).episodes
        assert {family for family, _ in episode.tools} == families
