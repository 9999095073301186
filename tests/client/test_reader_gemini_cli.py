# SPDX-License-Identifier: Apache-2.0
"""Session files of Gemini CLI: one document or one record a line, messages written again, history taken back."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reader_support import IDS, KEY, NOW, context, lines, of, read
from windvane_client.catalogue_builtin import builtin_catalogue
from windvane_client.outcomes_table import build_outcomes
from windvane_client.preview_sources import recognise
from windvane_client.readers import READERS, SampleFacts, context_for
from windvane_client.readers.files import open_log
from windvane_client.rules import Rules, parse_rules
from windvane_client.signals import read_person
from windvane_client.store import EventStore
from windvane_privacy.catalogue import Signal

A, B = "gemini-2.5-pro", "gemini-3-pro"
CANARY = "CANARY-4711"
FOLDER = Path(__file__).parent / "fixtures" / "gemini_cli_SYNTHETIC"
HEAD = {"sessionId": "s1", "projectHash": CANARY, "startTime": "2026-03-01T10:00:00Z", "directories": [CANARY]}


def message(n: int, kind: str = "user", **more: Any) -> dict[str, Any]:
    when = f"2026-03-01T10:{n // 60:02}:{n % 60:02}.000Z"
    return {"id": f"m{n}", "timestamp": when, "type": kind, "content": CANARY, **more}


def answer(n: int, *tools: Any, model: str | None = A, **more: Any) -> dict[str, Any]:
    return message(n, "gemini", model=model, thoughts=[{"subject": CANARY}], toolCalls=list(tools), **more)


def tool(identity: str | None = "t1", status: str | None = "success", name: str = "replace") -> dict[str, Any]:
    return {"id": identity, "name": name, "status": status, "args": {CANARY: CANARY}, "resultDisplay": CANARY}


def as_lines(*records: Any, **more: Any) -> tuple[list[Any], Any]:
    return read(lines([HEAD, *records]), context("gemini_cli", **more))


def as_document(*messages: Any, **more: Any) -> tuple[list[Any], Any]:
    return read(json.dumps({**HEAD, "messages": messages}, indent=2).encode(), context("gemini_cli", **more))


def kinds_of(events: list[Any]) -> list[str]:
    return [type(event).__name__ for event in events]


def test_both_forms_of_a_session_give_the_same_events():
    told = [message(0), answer(5, tool()), answer(9), message(60, "info"), message(61, "warning")]
    (a, line_context), (b, document_context) = as_lines(*told), as_document(*told)
    assert [(type(e), e.key, e.ts, e.parent) for e in a] == [(type(e), e.key, e.ts, e.parent) for e in b]
    assert kinds_of(a) == ["Prompt", "Call", "Tool", "Call"]
    assert (line_context.rows.read, document_context.rows.read) == (6, 5)
    assert line_context.facts.conversations == document_context.facts.conversations == {IDS.conv("gemini_cli", "s1")}


def test_a_message_that_is_written_again_is_one_answer_with_its_tools():
    before, after = answer(5), answer(5, tool(status="executing"))
    done = answer(5, tool())
    with EventStore.temporary() as store:
        store.add(as_lines(message(0), before, {"$set": {"lastUpdated": CANARY}}, after, done)[0])
        assert store.counts() == {"prompt": 1, "call": 1, "tool": 1}
        (events,) = [one.events for one in store.conversations(IDS.machine())]
    assert [event.outcome for event in of_kind(events, "Tool")] == ["ok"]


def of_kind(events: Any, kind: str) -> list[Any]:
    return [event for event in events if kind in {base.__name__ for base in type(event).__mro__}]


@pytest.mark.parametrize(
    ("status", "outcome"),
    [("success", "ok"), ("error", "failed"), ("cancelled", "denied"), ("executing", "no_result"), (None, "no_result"),
     (CANARY, "no_result")],
)  # fmt: skip
def test_the_status_of_a_tool_call_decides_its_outcome(status, outcome):
    (found,) = of(as_lines(message(0), answer(5, tool(status=status)))[0], "Tool")
    assert (found.outcome, found.family, found.tool_class) == (outcome, A, "edit")
    assert (found.result_ts is None) == (outcome == "no_result")


def test_a_tool_call_without_an_id_is_told_apart_by_its_place():
    found = of(as_lines(answer(5, tool(None), tool(None)), answer(6, tool(None)))[0], "Tool")
    assert len({one.key for one in found}) == 3


def test_what_was_taken_back_is_rewound():
    steps = [message(0), answer(5, tool("a", "error")), message(60), answer(65, tool("b", "error"))]
    events, _ = as_lines(*steps, {"$rewindTo": "m60"}, message(120), answer(125, tool("c")))
    turns = openings(events)
    assert [tools for tools, _ in turns] == [{"failed": 1, "ok": 1}]
    # An unknown name takes everything back, as it does in the program.
    events, _ = as_lines(*steps, {"$rewindTo": CANARY}, message(120), answer(125, tool("c")))
    assert [tools for tools, _ in openings(events)] == [{"ok": 1}]
    # Taken back as the last act: the end is unknown, not clean.
    events, _ = as_lines(*steps, {"$rewindTo": "m60"})
    assert [event.how for event in of(events, "TurnEnd")] == ["unknown"]


def openings(events: list[Any]) -> list[tuple[dict[str, int], str]]:
    with EventStore.temporary() as store:
        store.add(events)
        facts = read_person(store, IDS.machine(), window=(0, NOW), rules=Rules(), ids_key=KEY, now=NOW)
        return [(dict(facts.totals.tools), one.ending.value) for one in facts.episodes]


def test_no_prompt_is_taken_from_the_models_memory():
    memory = {"$set": {"messages": [message(7), answer(8), {"id": "x", "type": "user", "content": CANARY}]}}
    events, ctx = as_lines(message(0), answer(5), memory)
    assert kinds_of(events) == ["Prompt", "Call"]
    assert ctx.rows.read == 4
    # A version that writes its answers nowhere else is not read, and says so.
    events, _ = as_lines(memory)
    assert [event.what for event in events] == ["schema_unknown"]
    assert as_lines({"$set": {"messages": [message(7)]}})[0] == []  # the context of a session that just began


@pytest.mark.parametrize(
    ("content", "origin"),
    [
        ([{"text": "neutral"}], "human"), ("neutral", "human"), (None, "human"), ("/compress", "command"),
        ([{"text": "/chat save x"}], "command"), ("?", "command"), ("<state_snapshot>x", "system"),
        ([{"text": "<session_context>x"}], "system"), ([{"functionResponse": {"id": CANARY}}], None),
    ],
)  # fmt: skip
def test_only_what_a_person_wrote_is_a_persons_prompt(content, origin):
    for form in (as_lines, as_document):
        found = of(form(message(0, content=content))[0], "Prompt")
        assert [prompt.origin for prompt in found] == ([origin] if origin else [])


def test_an_error_of_the_program_is_no_failed_request():
    events, _ = as_lines(message(0), message(5, "error"), message(6, "error", content="[API Error: quota"))
    assert [(event.status, event.served) for event in of(events, "Call")] == [("error", "unknown")]
    assert of(events, "AttemptError") == []


def test_a_subagent_works_on_the_side_of_its_parents_conversation():
    events, _ = read(
        lines([{**HEAD, "sessionId": "sub", "kind": "subagent"}, message(0), answer(5, tool())]),
        context("gemini_cli"),
    )
    assert kinds_of(events) == ["Call", "Tool"]
    assert {(event.thread, event.conv) for event in events} == {("side", IDS.conv("gemini_cli", "-home-project"))}
    assert events[0].route == "subagent"


def test_the_mode_is_unknown_unless_the_organisation_declares_it():
    assert {event.mode for event in as_lines(message(0), answer(5))[0]} == {"unknown"}
    people = parse_rules('[modes]\ninteractive_keys = ["gemini_cli"]\n').key_mode
    assert {event.mode for event in as_lines(message(0), answer(5), key_mode=people)[0]} == {"interactive"}
    programs = parse_rules('[modes]\nautomation_keys = ["gemini_cli"]\n').key_mode
    assert as_lines(message(0), key_mode=programs)[0][0].origin == "sdk"


def test_retries_are_not_written_so_faults_are_unknown():
    events, ctx = as_lines(message(0), answer(5))
    assert all(event.reader.endswith("+no-attempts") for event in events)
    assert not ctx.facts.infra_possible


def test_without_its_evidence_a_signal_is_unknown_and_never_0():
    _, ctx = as_lines()
    facts = ctx.facts
    assert (facts.any_call_row, facts.any_prompt_row, facts.any_tool_row, facts.any_vote_row) == (False,) * 4
    no_session = {key: value for key, value in HEAD.items() if key != "sessionId"}
    events, ctx = read(json.dumps({**no_session, "messages": [message(0), answer(5)]}, indent=1).encode(),
                       context("gemini_cli"))  # fmt: skip
    assert ctx.facts.conversations is None
    assert {event.conv for event in events} == {None}
    (call,) = of(as_lines(answer(5, model=None))[0], "Call")
    assert call.served == "unknown"


# --- broken, cut and grown --------------------------------------------------------------------------------------------

BROKEN = [
    ({"type": "user", "timestamp": "2026-03-01T10:00:00Z"}, "missing_field"),
    ({"id": "x", "type": "user"}, "missing_field"),
    ({"id": "x", "timestamp": "2026-03-01T10:00:00Z"}, "missing_field"),
    (message(0, timestamp=CANARY), "bad_time"),
    (message(0, timestamp="2019-01-01T00:00:00Z"), "bad_time"),
    (message(0, timestamp=7), "wrong_type"),
    (message(0, id=[CANARY]), "wrong_type"),
    (answer(5, model=7), "wrong_type"),
    (answer(5, CANARY), "wrong_type"),
    (CANARY, "not_an_object"),
    (42, "not_an_object"),
    ([CANARY], "not_an_object"),
]


@pytest.mark.parametrize(("broken", "reason"), BROKEN)
@pytest.mark.parametrize("form", [as_lines, as_document])
def test_a_broken_message_is_counted_and_the_rest_is_read(form, broken, reason):
    events, ctx = form(message(30), broken, message(40), final=True)
    assert ctx.rows.reasons == {reason: 1}
    assert ctx.rows.rejected == 1
    assert len(of(events, "Prompt")) == 2
    assert [event.what for event in of(events, "Gap")] == ["rows_rejected"]
    assert CANARY not in repr(events) + repr(ctx.rows) + repr(ctx.facts)


def test_an_unknown_type_is_counted_before_any_field_is_checked():
    for form in (as_lines, as_document):
        events, ctx = form(message(0), {"type": CANARY, "id": 7, "timestamp": 7}, {**message(5), "type": CANARY})
        assert (len(events), ctx.rows.unknown, ctx.rows.rejected) == (1, 2, 0)


def test_a_cut_document_keeps_its_whole_messages_and_its_session():
    whole = json.dumps({**HEAD, "messages": [message(n) for n in range(4)]}, indent=2).encode()
    for cut in range(whole.index(b'"messages"') + 13, len(whole), 11):
        ctx = context("gemini_cli", final=True)
        events, _ = read(whole[:cut], ctx)
        prompts = of(events, "Prompt")
        assert len(prompts) + ctx.rows.rejected == ctx.rows.read
        assert {event.conv for event in prompts} <= {IDS.conv("gemini_cli", "s1")}
        assert read(whole[:cut], context("gemini_cli"))[1].rows.rejected == 0


def test_a_grown_file_gives_only_what_is_new_and_hangs_it_on_the_old():
    first = lines([HEAD, message(0), answer(5)])
    ctx = context("gemini_cli")
    before, _ = read(first, ctx)
    later = context("gemini_cli", offset=ctx.offset)
    events, _ = read(first + lines([message(60)]), later)
    assert (kinds_of(events), later.rows.read) == (["Prompt"], 1)
    assert events[0].parent == before[-1].key
    assert events[0].conv == before[0].conv


STEPS = [
    message(0), answer(5, tool("a", None)), answer(5, tool("a")), message(60), answer(65, tool("b", "error")),
    {"$rewindTo": "m60"}, message(120), {"$set": {"lastUpdated": CANARY}}, answer(125, tool("c")), answer(130),
]  # fmt: skip


@given(st.integers(0, 4000), st.integers(0, 4000), st.booleans(), st.booleans())
def test_however_a_session_is_read_in_pieces_it_is_the_same_session(first, second, crlf, twice):
    raw = lines([HEAD, *STEPS])
    if crlf:
        raw = raw.replace(b"\n", b"\r\n")
    with EventStore.temporary() as store:
        offset = 0
        for at in [*sorted((min(first, len(raw)), min(second, len(raw)))), len(raw)]:
            ctx = context("gemini_cli", offset=offset)
            store.add(read(raw[:at], ctx)[0])
            offset = ctx.offset
        if twice:
            store.add(read(raw, context("gemini_cli"))[0])
        assert store.counts() == {"prompt": 3, "call": 4, "tool": 3, "turn_end": 1}
        facts = read_person(store, IDS.machine(), window=(0, NOW), rules=Rules(), ids_key=KEY, now=NOW)
        assert [dict(one.totals.tools) for one in [facts]] == [{"ok": 2}]


def test_a_packed_session_is_the_same_session(tmp_path):
    raw = lines([HEAD, *STEPS])
    path = tmp_path / "session-1.jsonl.gz"
    path.write_bytes(gzip.compress(raw))
    with open_log(path) as stream:
        packed = list(READERS["gemini_cli"].read(stream, context("gemini_cli")))
    assert packed == read(raw, context("gemini_cli"))[0]


@pytest.mark.parametrize("raw", [b"", b"{", b'{\n "sessionId": "s"\n}', b"[\n]", b'{\n "messages": 7\n}', b"[\n1, 2"])
def test_what_is_no_session_gives_no_event(raw):
    ctx = context("gemini_cli", final=True)
    events, _ = read(raw, ctx)
    assert of(events, "Prompt") == []
    assert ctx.rows.rejected == ctx.rows.read == (1 if raw else 0)


def test_no_text_is_in_events_counts_or_facts():
    whole = answer(5, tool(CANARY), id=CANARY, displayContent=CANARY)
    seen = ""
    for form in (as_lines, as_document):
        seen += repr(form(message(0), whole, message(9, "error")))
        for name in whole:
            for wrong in (CANARY, [CANARY], {CANARY: CANARY}, 7):
                events, ctx = form({**whole, name: wrong})
                seen += repr(events) + repr(ctx.rows) + repr(ctx.facts)
    for record in ({"$set": {"summary": CANARY, "messages": [CANARY]}}, {"$rewindTo": [CANARY]}, {"$set": CANARY}):
        events, ctx = as_lines(message(0), record)
        seen += repr(events) + repr(ctx.rows)
    assert CANARY not in seen


# --- files and outcomes -----------------------------------------------------------------------------------------------


def test_only_session_files_of_the_programs_folder_are_logs(tmp_path):
    chats = tmp_path / "tmp" / "p" / "chats"
    (chats / "s1").mkdir(parents=True)
    for name in ("session-1.json", "session-2.jsonl", "s1/agent.jsonl", "../logs.json", "../checkpoint-x.json"):
        (chats / name).write_text("{}")
    found = [path.name for path in READERS["gemini_cli"].discover([tmp_path])]
    assert found == ["session-1.json", "session-2.jsonl", "agent.jsonl"]
    assert list(READERS["gemini_cli"].discover([chats.parent / "logs.json"])) == [chats.parent / "logs.json"]


def outcomes(rules: Rules) -> dict[tuple[str, ...], tuple[int, int]]:
    with EventStore.temporary() as store:
        for path in READERS["gemini_cli"].discover([FOLDER]):
            assert recognise(path) == ("gemini_cli", None)
            facts = SampleFacts("gemini_cli")
            ctx = context_for(path, ids=IDS, catalogue=builtin_catalogue(), now=NOW, facts=facts)
            ctx.key_mode = rules.key_mode
            with open_log(path) as stream:
                store.add(READERS["gemini_cli"].read(stream, ctx))
            assert (ctx.rows.rejected, ctx.rows.unknown) == (0, 0)
        rows = build_outcomes(store, window=(0, NOW), catalogue=builtin_catalogue(), rules=rules, ids_key=KEY, now=NOW)
        return {
            (row.signal.value, row.kind, row.recorder, row.basis.value, row.model): (row.successes, row.trials)
            for row in rows
        }


def test_session_files_end_in_rows_of_what_they_can_tell():
    """By hand: one tool call a turn. A: session 1 (1), 3-8 (12: one failed, one cancelled; what was taken back in 7 is
    left out), 13 (1), 14 (2). B: sessions 2 (1), 9-12 (8), 13 (1). The subagent of session 6 made one call."""
    declared = parse_rules('[modes]\ninteractive_keys = ["gemini_cli"]\n')
    head = (Signal.TOOL_RELIABILITY.value, "coding", "gemini_cli", "bit")
    assert outcomes(declared) == {
        (*head, A): (14, 15),
        (*head, B): (10, 10),
        (*head, "gemini-2.5-flash"): (1, 1),
    }
    assert outcomes(Rules()) == {}


def test_where_telemetry_is_there_it_comes_first():
    """Session files name no mode: their prompts must not hide those of the telemetry."""
    declared = [{**message(0)}, answer(5)]
    transcript, _ = as_lines(*declared)
    with EventStore.temporary() as store:
        store.add(transcript)
        told = [{"v": 1, "k": "prompt", "person": "p", "conv": "c", "ts": "2026-03-01T10:00:00Z", "origin": "human"}]
        (prompt,), _ = read(told, context("canonical"))
        prompt.source = prompt.recorder = "otlp/gemini_cli"
        prompt.mode, prompt.conv, prompt.person = "interactive", transcript[0].conv, IDS.machine()
        store.add([prompt])
        facts = read_person(store, IDS.machine(), window=(0, NOW), rules=Rules(), ids_key=KEY, now=NOW)
    assert [episode.mode for episode in facts.episodes] == ["interactive"]


def test_each_message_of_a_header_is_a_row_and_a_broken_one_costs_no_other():
    told = [message(1), answer(2), message(3, "hologram"), {"id": "m4", "type": 5}, answer(5), 7]
    events, ctx = as_lines({**HEAD, "messages": told})
    good, _ = as_lines({**HEAD, "messages": [told[0], told[1], told[4]]})
    assert [event.key for event in events if type(event).__name__ != "Gap"] == [event.key for event in good]
    assert (ctx.rows.read, ctx.rows.rejected, ctx.rows.unknown) == (2 + len(told), 2, 1)
    assert ctx.rows.reasons == {"wrong_type": 1, "not_an_object": 1}
    assert len({event.key for event in of(events, "Gap")}) == 2


def test_a_rejected_memory_names_no_session():
    bad = {"$set": {"sessionId": "s2", "messages": [5]}}
    events, ctx = as_lines(message(1), bad, answer(2))
    assert ctx.rows.reasons == {"wrong_type": 1}
    assert {event.conv for event in events} == ctx.facts.conversations == {IDS.conv("gemini_cli", "s1")}


def test_a_row_that_takes_back_and_is_there_twice_takes_back_once():
    told, back = [message(1), answer(2), message(3), answer(4)], {"$rewindTo": "m3"}
    once, twice = as_lines(*told, back, answer(5))[0], as_lines(*told, back, back, answer(5))[0]
    assert once[-1].parent == once[1].key
    assert [(type(e), e.key, e.parent) for e in twice] == [(type(e), e.key, e.parent) for e in once]
    # Once something follows it, the same words name what is not there, and the program takes all back.
    assert as_lines(*told, back, message(6), back, answer(7))[0][-1].parent is None
