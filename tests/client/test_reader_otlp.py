# SPDX-License-Identifier: Apache-2.0
"""Telemetry: what each dialect's rows become, the public bug reports, unknown rows and drift."""

from __future__ import annotations

from typing import Any

import pytest

from otlp_support import claude, codex, gemini, log, logs, ns, pairs, read_raw, read_values, span, spans
from reader_support import KEY, NOW, context, lines, of
from windvane_client.catalogue_builtin import builtin_catalogue
from windvane_client.events import AnyEvent
from windvane_client.ids import KeyedIds
from windvane_client.observed import observe
from windvane_client.people import parse_people
from windvane_client.readers import SampleFacts
from windvane_client.rules import Rules
from windvane_client.store import EventStore

CANARY = "CANARY-4711"
PEOPLE = KeyedIds(
    KEY,
    parse_people(
        '[[person]]\nstaff_id = "s-1"\nids = ["email:ana@example.org", "otlp:hash-1"]\n'
        '[[person]]\nstaff_id = "s-2"\nids = ["otlp:hash-2"]\n[exclude]\nstaff_ids = ["s-2"]\n'
    ),
)


def one(*records: dict[str, Any], **more: Any) -> Any:
    (event,), ctx = read_values(logs(*records, **more))
    assert ctx.rows.rejected + ctx.rows.unknown + ctx.rows.foreign == 0
    return event


def seen(*values: object) -> dict[str, Any]:
    events, ctx = read_values(*values)
    with EventStore.temporary() as store:
        store.add(events)
        return observe(store, ctx.facts, ctx.rows, catalogue=builtin_catalogue(), rules=Rules(), ids_key=KEY, now=NOW)


# --- the same call in every dialect -----------------------------------------------------------------------------------

OLD = {
    "gen_ai.system": "openai", "gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o",
    "gen_ai.response.model": "gpt-4o-2024-08-06", "gen_ai.response.id": "r1", "gen_ai.usage.completion_tokens": 20,
    "gen_ai.prompt": CANARY,
}  # fmt: skip
NEW = {
    "gen_ai.provider.name": "openai", "gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o",
    "gen_ai.response.model": "gpt-4o-2024-08-06", "gen_ai.response.id": "r1", "gen_ai.usage.output_tokens": 20,
    "gen_ai.response.finish_reasons": ["stop"], "gen_ai.input.messages": CANARY,
}  # fmt: skip
VERCEL = {
    "ai.operationId": "ai.generateText.doGenerate", "ai.model.id": "gpt-4o", "ai.response.id": "r1",
    "ai.response.model": "gpt-4o-2024-08-06", "ai.response.finishReason": "stop", "ai.usage.outputTokens": 20,
    "ai.prompt.messages": CANARY,
}  # fmt: skip
INFERENCE = {
    "openinference.span.kind": "LLM", "llm.model_name": "gpt-4o-2024-08-06", "llm.token_count.completion": 20,
    "input.value": CANARY, "gen_ai.request.model": "gpt-4o", "gen_ai.response.id": "r1",
}  # fmt: skip
FORMS = {
    "old": OLD,
    "new": NEW,
    "mixed": {**OLD, **NEW},
    "vercel": VERCEL,
    "vercel with general names": {**NEW, **VERCEL},
    "openinference": INFERENCE,
}


@pytest.mark.parametrize("form", FORMS)
def test_the_same_call_in_every_dialect_is_the_same_event(form):
    def said(events: list[AnyEvent]) -> Any:
        (call,) = events
        assert call.source == call.recorder
        return (call.key, call.ts, call.served, call.requested, call.status, call.route, call.mode, call.person)

    wanted = said(read_values(spans(span(1, NEW)))[0])
    assert wanted[2:6] == ("gpt-4o", "gpt-4o", "ok", "direct")
    assert said(read_values(spans(span(1, FORMS[form])))[0]) == wanted


def test_a_served_model_comes_before_the_asked_one():
    (event,), _ = read_values(spans(span(1, {**NEW, "gen_ai.request.model": "auto"})))
    assert (event.served, event.requested) == ("gpt-4o", "unknown")


@pytest.mark.parametrize(
    ("attributes", "outcome"),
    [
        ({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "shell", "gen_ai.tool.call.id": "1"}, "ok"),
        (
            {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "shell", "error.type": CANARY},
            "failed",
        ),
        ({"openinference.span.kind": "TOOL", "tool.name": "shell"}, "ok"),
        ({"ai.operationId": "ai.toolCall", "ai.toolCall.name": "shell", "ai.toolCall.id": "1"}, "ok"),
    ],
)
def test_a_tool_span_is_a_tool_call(attributes, outcome):
    (event,), _ = read_values(spans(span(1, attributes)))
    assert (type(event).__name__, event.tool_class, event.outcome) == ("Tool", "run", outcome)
    (event,), _ = read_values(spans(span(1, attributes, status={"code": 2})))
    assert event.outcome == "failed"


@pytest.mark.parametrize(
    "attributes",
    [
        {**NEW, "gen_ai.operation.name": "invoke_agent"},
        {**NEW, "gen_ai.operation.name": "embeddings"},
        {**INFERENCE, "openinference.span.kind": "AGENT"},
        {**INFERENCE, "openinference.span.kind": "CHAIN"},
        {"ai.operationId": "ai.embed.doEmbed", "ai.model.id": "x"},
    ],
)
def test_wrappers_are_no_calls(attributes):
    events, ctx = read_values(spans(span(1, attributes)))
    assert (events, ctx.rows.unknown, ctx.rows.foreign) == ([], 0, 0)


def test_an_outer_span_counts_only_where_nothing_is_inside():
    outer = {**VERCEL, "ai.operationId": "ai.generateText", "ai.response.id": "r0"}
    for order in ([VERCEL, outer], [outer, VERCEL]):
        events, _ = read_values(spans(*(span(1, attributes) for attributes in order)))
        assert len(events) == 1
    assert len(read_values(spans(span(1, outer)))[0]) == 1
    other = span(1, VERCEL, traceId="0" * 32)
    assert len(read_values(spans(span(1, outer), other))[0]) == 2


# --- public bug reports -----------------------------------------------------------------------------------------------


def test_r23_a_span_exported_twice_with_new_ids_is_one_call():
    """litellm#10588, codex-observability-plugin#87: exported twice with new ids: counted once."""
    again = span(1, NEW, traceId="f" * 32, spanId="e" * 16)
    events, _ = read_values(spans(span(1, NEW)), spans(again))
    assert len({event.key for event in events}) == 1
    # A response id may be the id of a run: two generations in it are two.
    events, _ = read_values(spans(span(1, NEW), span(9, NEW)))
    assert len({event.key for event in events}) == 2
    # Without a response id the trace decides, and equal tokens never do.
    bare = {name: value for name, value in NEW.items() if name != "gen_ai.response.id"}
    events, _ = read_values(spans(span(1, bare), span(1, bare), span(1, bare, traceId="f" * 32)))
    assert len({event.key for event in events}) == 2


def test_r25_a_stream_that_died_without_a_status_is_no_answer():
    """claude-code#79854, cc-plugin-codex#92:
    "success" with `is_error` or denials, or a dead stream without status: no clean end.
    """
    dead = {name: NEW[name] for name in ("gen_ai.operation.name", "gen_ai.request.model", "gen_ai.provider.name")}
    found = seen(spans(span(1, dead), span(5, NEW), span(9, {**dead, "gen_ai.response.finish_reasons": []})))
    assert found["calls"] == {"answered": 1, "failed": 2, "side_answered": 0}
    assert found["infra"] is None


def test_r26_events_that_stop_while_metrics_go_on_leave_the_ending_unknown():
    """claude-code#89406: events stop on resume while metrics go on: `source_silent`, ending unknown."""

    def metrics(second: float) -> dict[str, Any]:
        point = {"attributes": pairs({"session.id": "s1"}), "timeUnixNano": ns(second), "asDouble": 1}
        group = {
            "scope": {"name": "com.anthropic.claude_code"},
            "metrics": [{"name": "x", "sum": {"dataPoints": [point]}}],
        }
        return {"resourceMetrics": [{"scopeMetrics": [group]}]}

    rows = logs(
        claude(1, "user_prompt", prompt__id="p"),
        claude(2, "api_request", prompt__id="p", model="claude-opus-4-6"),
        claude(3, "api_retries_exhausted", prompt__id="p", model="claude-opus-4-6"),
    )
    assert seen(rows)["completion"] == ["abandoned"]
    assert seen(rows, metrics(60))["completion"] == ["abandoned"]
    assert seen(rows, metrics(3 + 3600))["completion"] == ["unknown"]
    events, ctx = read_values(rows, metrics(3 + 3600))
    assert [gap.what for gap in of(events, "Gap")] == ["source_silent"]
    assert (ctx.rows.read, ctx.rows.foreign) == (4, 0)


@pytest.mark.parametrize("root_first", [True, False])
def test_r27_a_session_named_on_the_root_span_holds_for_its_trace(root_first):
    """pi-extensions#763, aeon#639: session id on the root span only; titles and headless runs apart: inherit, side."""
    root = span(0, {"openinference.span.kind": "AGENT", "session.id": "s1"})
    inner = span(1, INFERENCE)
    elsewhere = span(2, {**INFERENCE, "gen_ai.response.id": "r2"}, traceId="0" * 32)
    events, ctx = read_values(spans(*([root, inner] if root_first else [inner, root]), elsewhere))
    assert {event.conv for event in events} == {ctx.ids.conv("otlp", "s1"), None}
    assert len(events) == 2
    assert ctx.facts.conversations == {ctx.ids.conv("otlp", "s1")}


def test_r27_titles_and_subagents_are_no_choice_of_the_person():
    """pi-extensions#763, aeon#639: session id on the root span only; titles and headless runs apart: inherit, side."""
    rows = [
        claude(i, "api_request", model="claude-haiku-4-5", query_source=source)
        for i, source in enumerate(("repl_main_thread", "generate_session_title", "compact", "agent:custom", "Explore"))
    ]
    events, _ = read_values(logs(*rows))
    assert [(event.thread, event.route) for event in events] == [
        ("main", "direct"), ("side", "background"), ("side", "background"), ("side", "subagent"), ("side", "subagent"),
    ]  # fmt: skip
    roles = ("main", "subagent", "utility_router")
    events, _ = read_values(logs(*(gemini(i, "api_response", model="x", role=role) for i, role in enumerate(roles))))
    assert [(event.thread, event.route) for event in events] == [
        ("main", "direct"), ("side", "subagent"), ("side", "background"),
    ]  # fmt: skip


def test_r29_tools_that_succeed_complete_nothing():
    """gemini-cli#12569: tool success shown as task success: no text of ours may call it completion."""
    found = seen(
        logs(
            gemini(1, "user_prompt", prompt_id="p"),
            gemini(2, "api_response", prompt_id="p", model="gemini-2.5-pro"),
            gemini(3, "tool_call", prompt_id="p", function_name="replace", success=True),
            gemini(4, "conversation_finished"),
        )
    )
    assert found["completion"] == ["unknown"]
    assert found["outcome_rows"] == 1  # the tools
    assert found["tools"] == {"basis": "bit", "outcomes": {"ok": 1}}


def test_r16_after_a_refusal_the_program_moved_not_the_person():
    """claude-code#3434, #66723: a move of the program on a refusal has the cause `refusal`."""
    assert one(claude(1, "api_refusal", model="claude-opus-4-6")).by == "refusal"


# --- agents -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attributes", "name", "final"),
    [
        ({"status_code": "529"}, "overload", False),
        ({"status_code": 500}, "5xx", False),
        ({"status_code": "429"}, "rate_vendor", False),
        ({"status_code": "undefined", "error": "Request was aborted."}, "aborted", False),
        ({"status_code": "undefined", "error": CANARY}, "client_4xx", False),
        ({"error": CANARY}, "client_4xx", False),
    ],
)
def test_failed_attempts_of_claude_code(attributes, name, final):
    event = one(claude(1, "api_error", model="claude-opus-4-6", attempt="1", **attributes))
    assert (event.error_class, event.final, event.family, event.attempt) == (name, final, "claude-opus-4.6", 1)


def test_exhausted_retries_are_lost_once():
    rows = [
        claude(1, "user_prompt", prompt__id="p"),
        claude(2, "api_error", prompt__id="p", model="claude-opus-4-6", status_code="529", attempt=1),
        claude(3, "api_error", prompt__id="p", model="claude-opus-4-6", status_code="529", attempt=2),
        claude(4, "api_retries_exhausted", prompt__id="p", model="claude-opus-4-6", total_attempts=2),
    ]
    found = seen(logs(*rows))
    assert found["infra"] == {"recovered_same": 0, "recovered_other": 0, "lost": 1, "cut": 0}
    assert found["mode"] == "unknown"
    assert found["outcome_rows"] == 0


def test_a_refused_tool_stays_refused_whatever_its_result_says():
    for make, decision, ident in ((claude, "reject", "tool_use_id"), (codex, "denied", "call_id")):
        events, _ = read_values(
            logs(
                make(1, "tool_decision", tool_name="Bash", decision=decision, **{ident: "t1"}),
                make(2, "tool_result", tool_name="Bash", success="false", **{ident: "t1"}),
                make(3, "tool_decision", tool_name="Bash", decision="accept", **{ident: "t2"}),
                make(4, "tool_result", tool_name="Bash", success="true", **{ident: "t2"}),
            )
        )
        assert [event.outcome for event in events] == ["denied", "denied", "ok"]
        assert len({event.key for event in events}) == 2
    assert one(gemini(1, "tool_call", function_name="replace", success=False, decision="reject")).outcome == "denied"


def test_a_tool_call_is_credited_only_where_one_model_answered_the_turn():
    rows = [
        claude(1, "user_prompt", prompt__id="p"),
        claude(2, "api_request", prompt__id="p", model="claude-opus-4-6"),
        claude(3, "tool_result", prompt__id="p", tool_name="Edit", success="true"),
        claude(4, "api_request", prompt__id="p", model="claude-haiku-4-5", query_source="agent:x"),
        claude(5, "tool_result", prompt__id="p", tool_name="Edit", success="true"),
    ]
    assert [event.family for event in of(read_values(logs(*rows))[0], "Tool")] == ["claude-opus-4.6", "unknown"]


def test_a_tool_that_ran_for_hours_was_pending_not_idle():
    rows = [
        gemini(0, "user_prompt", prompt_id="p"),
        gemini(1, "api_response", prompt_id="p", model="gemini-2.5-pro"),
        gemini(9000, "tool_call", prompt_id="p", function_name="replace", success=True, duration_ms=8_998_000),
        gemini(9001, "user_prompt", prompt_id="q"),
    ]
    assert seen(logs(*rows))["episodes"] == 1


@pytest.mark.parametrize(
    ("name", "service", "mode", "client"),
    [
        ("codex_cli_rs", "codex_cli_rs", "interactive", "codex_cli"),
        (None, "codex_tui", "interactive", "codex_cli"),
        ("Codex Desktop", "codex_tui", "interactive", "codex_desktop"),
        ("codex_exec", "codex_exec", "automation", "codex_exec"),
        (CANARY, "x", "unknown", "other"),
    ],
)
def test_the_program_of_codex_tells_the_mode(name, service, mode, client):
    more = {} if name is None else {"originator": name}
    event = one(codex(1, "user_prompt", **more), service=service)
    assert (event.mode, event.client) == (mode, client)


def test_an_answer_of_codex_is_a_stream_that_completed():
    rows = [
        codex(1, "user_prompt"),
        codex(2, "api_request", model="gpt-5.2", http__response__status_code=503, error__message=CANARY),
        codex(3, "api_request", model="gpt-5.2", http__response__status_code=200),
        codex(4, "sse_event", model="gpt-5.2", event__kind="response.output_item.done"),
        codex(5, "sse_event", model="gpt-5.2", error__message=f"stream disconnected before completion: {CANARY}"),
        codex(6, "sse_event", model="gpt-5.2", event__kind="response.completed"),
    ]
    events, _ = read_values(logs(*rows))
    assert [(e.error_class, e.attempt) for e in of(events, "AttemptError")] == [("5xx", 1), ("network", 2)]
    assert len(of(events, "Call")) == 1
    assert CANARY not in repr(events)
    assert seen(logs(*rows))["infra"]["recovered_same"] == 1


def test_a_model_command_of_gemini_names_its_target():
    event = one(gemini(1, "slash_command.model", model_name="gemini-3-pro-preview"))
    assert (event.family, event.by) == ("gemini-3-pro", "person")
    assert one(gemini(1, "slash_command.model", model_name="auto")).family == "unknown"


def test_routes_of_gemini():
    def routes(*before: dict[str, Any]) -> str:
        events, _ = read_values(logs(*before, gemini(9, "api_response", model="gemini-2.5-flash")))
        return str(of(events, "Call")[0].route)

    command = gemini(3, "slash_command.model", model_name="gemini-2.5-flash")
    assert routes() == "direct"
    assert routes(gemini(1, "flash_fallback")) == "fallback"
    assert routes(gemini(1, "flash_fallback"), command) == "direct"
    assert routes(gemini(1, "model_routing", decision_source="agent-router/classifier")) == "router"
    assert routes(gemini(1, "model_routing", decision_source="agent-router/fallback")) == "fallback"
    assert routes(gemini(1, "model_routing", decision_source="agent-router/override")) == "direct"
    events, _ = read_values(logs(gemini(1, "model_routing", decision_source="agent-router/approval-mode")))
    assert of(events, "ModelSet")[0].by == "harness"


def test_a_workflow_is_automation_whatever_its_flag_says():
    rows = [gemini(1, "config", github_workflow_name=CANARY), gemini(2, "user_prompt", prompt_id="p")]
    (event,), _ = read_values(logs(*rows))
    assert (event.mode, event.mode_evidence) == ("automation", "github_workflow_name")
    assert one(gemini(1, "user_prompt", interactive="true")).mode == "interactive"
    assert one(gemini(1, "user_prompt", interactive=False)).mode == "automation"


def test_a_cleared_session_is_closed():
    assert one(gemini(1, "slash_command", command="clear")).how == "explicit"
    assert read_values(logs(gemini(1, "slash_command", command=CANARY)))[0] == []


def test_general_events_and_spans_of_an_agent_do_not_count_its_calls_twice():
    again = log(2, event__name="gen_ai.client.inference.operation.details", session__id="g1", **{"gen_ai.system": "g"})
    found = seen(
        logs(gemini(1, "api_response", model="gemini-2.5-pro"), again, service="gemini-cli"),
        spans(span(1, NEW), service="gemini-cli"),
    )
    assert found["calls"]["answered"] == 1
    assert found["rows"] == {"read": 3, "rejected": 0, "unknown": 0, "foreign": 0}


# --- people -----------------------------------------------------------------------------------------------------------


def test_people_are_looked_up_and_who_opted_out_leaves_no_trace():
    def with_(**who: str) -> dict[str, Any]:
        named = {name.replace("_", "."): value for name, value in who.items()}
        row = claude(1, "user_prompt", prompt__id=str(sorted(who.items())))
        return {**row, "attributes": row["attributes"] + pairs(named)}

    rows = [
        with_(user_email="ana@example.org"),
        with_(user_id="hash-1"),
        with_(user_email="nobody@example.org", user_id="hash-1"),
        with_(user_id="hash-2"),
        with_(user_email="nobody@example.org"),
        with_(),
    ]
    events, ctx = read_values(logs(*rows), ctx=context("otlp", ids=PEOPLE, final=True))
    assert [event.person for event in of(events, "Prompt")] == [PEOPLE.staff("s-1")] * 3 + [None]
    assert [gap.what for gap in of(events, "Gap")] == ["person_unknown"]
    assert ctx.rows.read == 5
    assert len(ctx.facts.persons or ()) == 3


def test_a_transcript_and_the_telemetry_of_one_conversation_count_once():
    transcript = [
        {
            "type": "user", "sessionId": "s1", "version": "2.1.40", "uuid": "u1", "parentUuid": None,
            "timestamp": "2026-05-28T20:26:41Z", "message": {"role": "user", "content": "x"},
        },
        {
            "type": "assistant", "sessionId": "s1", "version": "2.1.40", "uuid": "u2", "parentUuid": "u1",
            "timestamp": "2026-05-28T20:26:42Z",
            "message": {"id": "m", "role": "assistant", "model": "claude-opus-4-6", "content": []},
        },
    ]  # fmt: skip
    rows = [claude(1, "user_prompt", prompt__id="p"), claude(2, "api_request", model="claude-opus-4-6")]
    from reader_support import read

    own, ctx = read(lines(transcript), context("claude_code", final=True))
    told, _ = read_values(logs(*rows, claude(2.5, "tool_result", tool_name="Edit", success="true")))
    assert {event.conv for event in own} == {event.conv for event in told}
    with EventStore.temporary() as store:
        store.add(told)
        store.add(own)
        found = observe(
            store, SampleFacts("claude_code", any_row=True, any_call_row=True, any_prompt_row=True), ctx.rows,
            catalogue=builtin_catalogue(), rules=Rules(), ids_key=KEY, now=NOW,
        )  # fmt: skip
    assert (found["calls"]["answered"], found["prompts"]["person"], found["episodes"]) == (1, 1, 1)


# --- unknown rows, drift, canary --------------------------------------------------------------------------------------


def test_rows_of_unknown_type_are_counted_before_their_fields():
    rows = [claude(1, "hologram", model=True), codex(1, "hologram"), gemini(1, "hologram"), log(1, gen_ai__system="x")]
    events, ctx = read_values(
        logs(*rows), spans(span(1, {"gen_ai.operation.name": "dream"}), span(1, {"ai.operationId": "ai.dream"}))
    )
    assert events == []
    assert (ctx.rows.read, ctx.rows.unknown, ctx.rows.rejected) == (6, 6, 0)


def test_a_field_that_is_missing_is_unknown_and_never_a_success():
    assert one(claude(1, "tool_result", tool_name="Bash")).outcome == "unclassified"
    assert one(claude(1, "api_request")).served == "unknown"
    assert one(codex(1, "sse_event", event__kind="response.completed")).served == "unknown"
    assert one(gemini(1, "tool_call", function_name="replace")).outcome == "unclassified"
    event = one({"timeUnixNano": ns(1), "body": {"stringValue": "claude_code.user_prompt"}, "attributes": []})
    assert (event.conv, event.mode) == (None, "unknown")


def test_a_field_of_another_type_rejects_the_row():
    for wrong in ([CANARY], True, 1.5):
        _, ctx = read_values(logs(claude(1, "api_request", model=wrong)))
        assert ctx.rows.reasons == {"wrong_type": 1}
        _, ctx = read_values(spans(span(1, {**NEW, "gen_ai.response.model": wrong})))
        assert ctx.rows.reasons == {"wrong_type": 1}


def test_an_event_may_name_itself_in_any_of_three_places():
    plain = log(1, session__id="s1", prompt__id="p")
    named = [
        {**plain, "eventName": "claude_code.user_prompt"},
        {**plain, "body": {"stringValue": "claude_code.user_prompt"}},
        log(1, session__id="s1", prompt__id="p", event__name="claude_code.user_prompt"),
    ]
    assert len({one(record).key for record in named}) == 1


def test_no_text_of_any_row_is_in_events_counts_or_facts():
    texts = {"prompt": CANARY, "function_args": CANARY, "arguments": CANARY, "output": CANARY, "reasoning": CANARY}
    classes = {"decision": CANARY, "error_type": CANARY, "role": CANARY, "query_source": CANARY, "model": CANARY}
    ids = {"user.email": CANARY, "prompt.id": CANARY, "tool_use_id": CANARY, "call_id": CANARY, "tool_name": CANARY}
    names = ("user_prompt", "api_request", "api_response", "api_error", "tool_result", "tool_decision", "tool_call",
             "sse_event", "slash_command", "slash_command.model", "model_routing", CANARY)  # fmt: skip
    for make in (claude, codex, gemini):
        for name in names:
            row = make(1, name, CANARY)
            row["attributes"] = row["attributes"] + pairs({**texts, **classes, **ids, "error": CANARY, CANARY: CANARY})
            whole = logs({**row, "body": {"stringValue": CANARY}, "severityText": CANARY}, scope=CANARY)
            events, ctx = read_values(whole)
            assert ctx.rows.read == 1
            assert CANARY not in repr(events) + repr(ctx.rows) + repr(ctx.facts)
    for form in FORMS.values():
        for key in form:
            events, ctx = read_values(spans(span(1, {**form, key: CANARY}, name=CANARY, status={"message": CANARY})))
            assert CANARY not in repr(events) + repr(ctx.rows) + repr(ctx.facts)


def test_a_flat_map_needs_its_dialect_named():
    raw = lines([NEW])
    assert read_raw(raw)[1].rows.reasons == {"missing_field": 1}
    events, ctx = read_raw(raw, context("otlp/gen_ai", final=True))
    assert (len(events), ctx.rows.foreign) == (1, 0)
    events, ctx = read_raw(raw, context("otlp/codex", final=True))
    assert (len(events), ctx.rows.foreign) == (0, 1)
