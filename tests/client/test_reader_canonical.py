# SPDX-License-Identifier: Apache-2.0
"""Canonical JSONL: ten kinds of line, strict fields, closed classes."""

from __future__ import annotations

import pytest

from reader_support import IDS, KEY, context, of, read
from windvane_client.events import PROMPT_ORIGINS
from windvane_client.ids import KeyedIds
from windvane_client.people import parse_people

HEAD = {"v": 1, "person": "p-7", "conv": "c-1", "ts": "2026-03-01T10:00:00Z", "seq": 4, "mode": "interactive"}
LINES = {
    "prompt": {"origin": "human", "turn": 1},
    "call": {"key": "m1", "served": "claude-opus-4-6", "requested": "gpt-5", "status": "ok", "route": "fallback"},
    "attempt_error": {"error_class": "overload", "family": "gpt-5", "request": "r1", "attempt": 2, "final": True},
    "tool": {"key": "t1", "family": "gpt-5", "tool_class": "run", "outcome": "ok", "call": "m1",
             "origin": "mcp", "result_ts": 1_772_359_201_000_000},
    "model_set": {"family": "gpt-5", "by": "person"},
    "turn_end": {"how": "clean"},
    "outcome": {"value": "accepted", "evidence": "rating"},
    "vote": {"a": "gpt-5", "b": "claude-opus-4.6", "winner": "a", "blind": "proved", "item": "i1"},
    "close": {"how": "explicit"},
    "gap": {"what": "files_missing", "count": 3, "since": "2026-02-01T00:00:00Z", "until": "2026-02-02T00:00:00Z"},
}  # fmt: skip


def one(kind: str, **more: object) -> dict[str, object]:
    return {"k": kind, **HEAD, **LINES[kind], **more}


def canonical(*rows: object, **more: object):
    return read(rows, context("canonical", **more))


@pytest.mark.parametrize("kind", LINES)
def test_every_kind_becomes_its_event(kind):
    (event,), ctx = canonical(one(kind))
    assert ctx.rows.rejected == 0
    assert type(event).__struct_config__.tag == kind
    assert event.person == IDS.staff("me")
    assert event.conv == IDS.conv("canonical", "c-1")
    assert (event.source, event.recorder, event.ts, event.seq) == ("canonical", "canonical", 1_772_359_200_000_000, 4)
    for name, value in LINES[kind].items():
        if name in ("turn", "request", "item", "call", "key", "evidence", "since", "until", "served"):
            continue
        assert getattr(event, name) == value


def test_links_meet():
    events, _ = canonical(one("prompt", key="p1"), one("call", parent="p1"), one("tool"))
    prompt, call, tool = events
    assert call.parent == prompt.key == prompt.row
    assert tool.call == call.key == call.row
    assert call.served == "claude-opus-4.6"
    assert prompt.turn is not None


@pytest.mark.parametrize("kind", LINES)
def test_an_unknown_field_rejects_the_row(kind):
    events, ctx = canonical(one(kind, prompt_text="x"))
    assert ctx.rows.reasons == {"unknown_field": 1}
    assert [type(e).__name__ for e in events] == ["Gap"]


@pytest.mark.parametrize(
    ("kind", "more", "reason"),
    [
        ("prompt", {"origin": "ghost"}, "bad_value"),
        ("prompt", {"kind_hint": "poetry"}, "bad_value"),
        ("prompt", {"thread": "third"}, "bad_value"),
        ("prompt", {"recorder": "my gateway!"}, "bad_value"),
        ("prompt", {"person": "x" * 257}, "bad_value"),
        ("prompt", {"conv": "ä" * 129}, "bad_value"),
        ("prompt", {"ts": None}, "missing_field"),
        ("prompt", {"ts": 5}, "bad_time"),
        ("prompt", {"ts": 1.5}, "wrong_type"),
        ("call", {"status": "great"}, "bad_value"),
        ("call", {"key": None}, "missing_field"),
        ("tool", {"key": ""}, "missing_field"),
        ("attempt_error", {"error_class": "bad luck"}, "bad_value"),
        ("attempt_error", {"attempt": -1}, "bad_value"),
        ("outcome", {"value": "superb"}, "bad_value"),
        ("vote", {"winner": "both"}, "bad_value"),
        ("close", {"how": "door"}, "bad_value"),
        ("gap", {"what": "mind"}, "bad_value"),
        ("gap", {"count": -1}, "bad_value"),
        ("gap", {"since": "x"}, "bad_time"),
        ("prompt", {"k": None}, "missing_field"),
    ],
)
def test_what_means_nothing_is_rejected(kind, more, reason):
    assert canonical(one(kind, **more))[1].rows.reasons == {reason: 1}


def test_optional_classes_become_unknown():
    events, ctx = canonical(
        one("call", route="x", mode="x", client="x"),
        one("tool", tool_class="x", outcome="x", origin="x"),
        one("model_set", by="x"),
        one("turn_end", how="x"),
        one("vote", blind="x", judge="x"),
    )
    assert ctx.rows.rejected == 0
    call, tool, model, end, vote = events
    assert (call.route, call.mode, call.client) == ("unknown", "unknown", "other")
    assert (tool.tool_class, tool.outcome, tool.origin) == ("unknown", "unclassified", "unknown")
    assert (model.by, end.how, vote.blind, vote.judge) == ("unknown", "unknown", "no", "llm")


def test_unknown_kinds_and_versions_are_counted_apart():
    _, ctx = canonical(one("prompt", k="hologram", zzz=1), one("prompt", v=2, zzz=1))
    assert (ctx.rows.unknown, ctx.rows.rejected) == (2, 0)


@pytest.mark.parametrize("origin", PROMPT_ORIGINS)
def test_a_programs_prompt_is_automation_whatever_its_conversation_says(origin):
    (event,), _ = canonical(one("prompt", origin=origin))
    assert event.mode == ("automation" if origin in ("system", "sdk", "scheduled") else "interactive")


def test_a_vote_is_interactive_by_itself():
    (event,), ctx = canonical(one("vote", mode="unknown"))
    assert (event.mode, event.mode_evidence) == ("interactive", "vote")
    assert ctx.facts.any_vote_row


def test_one_vote_a_voter_and_item():
    events, _ = canonical(one("vote"), one("vote", winner="b", seq=9), one("vote", item="i2"))
    assert len({event.key for event in events}) == 2


def test_synthetic_is_no_model():
    events, ctx = canonical(one("call", served="<synthetic>"))
    assert not events
    assert ctx.rows.rejected == 0


def test_rows_without_key_are_told_apart_by_their_fields():
    events, _ = canonical(one("prompt"), one("prompt"), one("prompt", seq=5), one("prompt", conv="c-2"))
    assert len({event.key for event in events}) == 3


def test_facts_tell_null_from_zero():
    _, ctx = canonical(one("prompt"), one("prompt", person="p-8", conv="c-2"))
    facts = ctx.facts
    assert (len(facts.persons), len(facts.conversations)) == (2, 2)
    assert facts.infra_possible
    assert not facts.any_vote_row
    row = one("prompt")
    del row["person"], row["conv"]
    _, ctx = canonical(row)
    assert (ctx.facts.persons, ctx.facts.conversations) == (None, None)
    _, ctx = canonical(one("prompt", person=None, conv=""))
    assert (ctx.facts.persons, ctx.facts.conversations) == (set(), set())
    _, ctx = canonical(b"broken")
    assert not ctx.facts.any_row


PEOPLE = """
[[person]]
staff_id = "s-1"
ids = ["canonical:p-7"]
[[person]]
staff_id = "s-2"
ids = ["canonical:p-8"]
[exclude]
staff_ids = ["s-2"]
"""


def test_unmapped_people_leave_a_gap_and_excluded_ones_nothing():
    ids = KeyedIds(KEY, parse_people(PEOPLE))
    rows = [one("prompt"), one("prompt", person="p-8"), one("prompt", person="p-9"), one("prompt", person="")]
    events, ctx = canonical(*rows, ids=ids)
    prompt, unmapped, empty = events
    assert prompt.person == ids.staff("s-1")
    assert {type(event).__name__ for event in (unmapped, empty)} == {"Gap"}
    assert (unmapped.what, unmapped.person) == ("person_unknown", None)
    without, ctx2 = canonical(*(row for row in rows if row["person"] != "p-8"), ids=ids)
    assert ctx.rows == ctx2.rows
    assert ctx.facts == ctx2.facts
    assert [e.person for e in events] == [e.person for e in without]


def test_rows_without_person_belong_to_the_machine():
    row = one("prompt")
    del row["person"]
    ids = KeyedIds(KEY, parse_people('[machine]\nstaff_id = "S-1 "\n'))
    (event,), _ = canonical(row, ids=ids)
    assert event.person == ids.staff("s-1")


def test_a_rule_names_the_kind_unless_the_row_does():
    events, _ = canonical(one("prompt"), one("prompt", kind_hint="support", seq=9), kind_rule=lambda _: "research")
    assert [event.kind_hint for event in of(events, "Prompt")] == ["research", "support"]
