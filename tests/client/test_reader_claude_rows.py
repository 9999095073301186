# SPDX-License-Identifier: Apache-2.0
"""Claude Code: what each kind of row becomes."""

from __future__ import annotations

import pytest

from reader_support import IDS, NOW, Log, context, of, read, text, tool
from windvane_client.readers import NO_ATTEMPTS
from windvane_client.readers.claude_code import default_roots
from windvane_client.readers.claude_rows import writes_attempts
from windvane_client.readers.lines import plausible, rfc3339_micros
from windvane_client.tool_classes import ToolClasses
from windvane_privacy.errors import ConfigurationError


@pytest.mark.parametrize(
    ("more", "origin", "mode"),
    [
        ({}, "human", "unknown"),
        ({"promptSource": "typed"}, "human", "interactive"),
        ({"promptSource": "suggestion_accepted"}, "human", "interactive"),
        ({"promptSource": "queued"}, "queued", "interactive"),
        ({"promptSource": "sdk"}, "sdk", "automation"),
        ({"promptSource": "system"}, "system", "automation"),
        ({"promptSource": "brand_new"}, "system", "automation"),
        ({"origin": {"kind": "human"}}, "human", "interactive"),
        ({"origin": {"kind": "task-notification"}}, "system", "automation"),
        ({"origin": {"kind": "channel"}}, "system", "automation"),
        ({"entrypoint": "cli"}, "human", "interactive"),
        ({"entrypoint": "claude-vscode"}, "human", "interactive"),
        ({"entrypoint": "claude-desktop"}, "human", "interactive"),
        ({"entrypoint": "sdk-py"}, "sdk", "automation"),
        ({"entrypoint": "brand_new"}, "human", "unknown"),
        ({"entrypoint": "cli", "sessionKind": "background"}, "human", "automation"),
    ],
)
def test_fields_decide_who_prompted(more, origin, mode):
    log = Log()
    log.user(**more)
    log.answer("m1", entrypoint=more.get("entrypoint"), sessionKind=more.get("sessionKind"))
    events, _ = log.read()
    (prompt,), (call,) = of(events, "Prompt"), of(events, "Call")
    assert (prompt.origin, prompt.mode) == (origin, mode)
    assert call.mode == mode
    assert prompt.row == prompt.key == call.parent


@pytest.mark.parametrize(
    "head",
    [
        "<local-command-caveat>x", "<local-command-stdout>x", "<bash-input>ls", "<bash-stdout>x",
        "<system-reminder>x", "Caveat: The messages below x", "[Request interrupted by user]",
    ],
)  # fmt: skip
@pytest.mark.parametrize("as_list", [False, True])
def test_texts_of_the_program_are_no_prompts(head, as_list):
    log = Log()
    log.user([text(head)] if as_list else head)
    assert not of(log.read()[0], "Prompt")


@pytest.mark.parametrize(
    "more",
    [{"isMeta": True}, {"isMeta": "true"}, {"isCompactSummary": True}, {"isSidechain": True}, {"agentId": "a1"}],
)
def test_flagged_rows_are_no_prompts(more):
    log = Log()
    log.user("neutral", **more)
    assert not of(log.read()[0], "Prompt")


@pytest.mark.parametrize("head", ["<task-notification>", "<teammate-message id=1>"])
def test_notifications_open_an_automatic_turn(head):
    log = Log(entrypoint="cli")
    log.user(head)
    log.answer("m1")
    log.user("neutral")
    log.answer("m2")
    events, _ = log.read()
    assert [(p.origin, p.mode) for p in of(events, "Prompt")] == [("system", "automation"), ("human", "interactive")]
    assert [c.mode for c in of(events, "Call")] == ["automation", "interactive"]


def test_a_scheduled_task_is_no_person():
    log = Log(entrypoint="cli")
    log.system("scheduled_task_fire", content="neutral")
    log.user("neutral")
    assert [(p.origin, p.mode) for p in of(log.read()[0], "Prompt")] == [("scheduled", "automation")]


def test_a_command_is_a_prompt_only_if_a_model_call_follows():
    log = Log()
    log.user("<command-message>review</command-message>\n<command-name>/review</command-name>")
    log.user("body of the command", isMeta=True)
    log.answer("m1")
    log.user("<command-name>/compact</command-name>")
    log.user("<local-command-stdout>done</local-command-stdout>")
    log.answer("m2")
    log.user("<command-name>/cost</command-name>")
    log.user("other input")
    log.answer("m3")
    events, _ = log.read()
    assert [p.origin for p in of(events, "Prompt")] == ["command", "human"]
    first, second, third = of(events, "Call")
    command, human = of(events, "Prompt")
    assert first.parent == command.key
    assert second.parent == first.key, "a command that started no turn must not break the chain"
    assert third.parent == human.key
    assert human.parent == second.key


def test_a_model_command_is_evidence_unless_the_model_was_kept():
    for row in ("user", "system"):
        for output, expected in (("Set model to x", 1), ("Kept model as x", 0)):
            log = Log()
            log.user("neutral")
            log.answer("m1")
            for body in ("<command-name>/model</command-name>", f"<local-command-stdout>{output}"):
                if row == "user":
                    log.user(body)
                else:
                    log.system("local_command", content=body)
            events, _ = log.read()
            assert [(m.by, m.family) for m in of(events, "ModelSet")] == [("person", "unknown")] * expected
    log = Log()
    log.user("<command-name>/modelling</command-name>")
    log.user("<local-command-stdout>x")
    assert not of(log.read()[0], "ModelSet")


def test_clear_closes_the_conversation():
    log = Log()
    log.user("<command-name>/clear</command-name>")
    assert [c.how for c in of(log.read()[0], "Close")] == ["explicit"]


def test_queued_text_counts_only_when_delivered_by_a_person():
    log = Log()
    log.user()
    log.row("queue-operation", operation="enqueue", content="neutral")
    log.row("queue-operation", operation="remove")
    log.attachment("queued_command", prompt="neutral", commandMode="prompt")
    log.attachment("queued_command", prompt="neutral")
    log.attachment("queued_command", prompt="neutral", commandMode="task-notification")
    log.attachment("queued_command", prompt="neutral", origin={"kind": "channel"})
    log.attachment("queued_command", prompt="neutral", isMeta=True)
    assert [p.origin for p in of(log.read()[0], "Prompt")] == ["human", "queued", "queued"]


def test_turn_ends():
    log = Log()
    log.user()
    log.answer("m1", stop_reason="end_turn")
    log.system("turn_duration", durationMs=3)
    log.system("stop_hook_summary", preventedContinuation=False)
    log.system("stop_hook_summary", preventedContinuation=True)
    log.system("stop_hook_summary")
    log.user([text("[Request interrupted by user for tool use]")])
    log.attachment("max_turns_reached")
    log.answer("m2", stop_reason="tool_use")
    log.answer("m3", stop_reason=None)
    ends = of(log.read()[0], "TurnEnd")
    assert [end.how for end in ends] == ["clean", "clean", "clean", "interrupted", "limit"]
    assert len({end.key for end in ends}) == 5


def test_explicit_outcomes():
    log = Log()
    log.user()
    log.attachment("goal_status", met=False, sentinel=True, condition="neutral")
    log.attachment("goal_status", met=True, condition="neutral")
    log.attachment("goal_status", met=False, failed=True, condition="neutral")
    log.row("pr-link", prUrl="https://example.org/1")
    found = [(o.value, o.evidence) for o in of(log.read()[0], "Outcome")]
    assert found == [("met", "goal_status"), ("failed", "goal_status"), ("submitted", "pr-link")]


def test_attempts_of_one_request_share_its_id():
    log = Log()
    log.user()
    log.answer("m0")
    log.user()
    log.system("api_error", error={"status": 529}, retryAttempt=1, maxRetries=10)
    log.system("api_error", error={"cause": {"code": "ECONNRESET"}}, retryAttempt=2, maxRetries=10)
    log.answer("m1")
    log.system("api_error", error={"status": "500"}, cause={"code": "x"}, retryAttempt="1")
    log.answer("m9", text("API Error: 500"), model="<synthetic>", isApiErrorMessage=True, apiErrorStatus=500)
    log.user()
    log.answer("m9", text("API Error: Request was aborted."), model="<synthetic>", isApiErrorMessage=True)
    events, _ = log.read()
    errors = of(events, "AttemptError")
    assert [e.error_class for e in errors] == ["overload", "network", "5xx", "5xx", "aborted"]
    assert [e.final for e in errors] == [False, False, False, True, True]
    assert [e.attempt for e in errors] == [1, 2, 1, None, None]
    assert {e.family for e in errors} == {"claude-opus-4.6"}
    a, b, c, d, e = (error.request for error in errors)
    assert a == b
    assert c == d
    assert len({a, c, e}) == 3
    assert len(of(events, "Call")) == 2, "a row that says that the program gave up is no answer"


def test_the_family_asked_is_unknown_after_a_model_command():
    log = Log()
    log.user()
    log.answer("m0")
    log.user("<command-name>/model</command-name>")
    log.user("<local-command-stdout>Set model to x")
    log.user()
    log.system("api_error", error={"status": 529}, retryAttempt=1)
    assert [e.family for e in of(log.read()[0], "AttemptError")] == ["unknown"]


def test_after_a_skill_the_request_goes_to_the_persons_model_again():
    log = Log()
    log.user()
    log.answer("m0", tool("t0", "Skill"))
    log.answer("m1", model="claude-haiku-4-5")
    log.system("api_error", error={"status": 529}, retryAttempt=1)
    log.answer("m2", model="claude-haiku-4-5")
    log.user()
    log.system("api_error", error={"status": 529}, retryAttempt=1)
    log.answer("m3")
    events, _ = log.read()
    assert [e.family for e in of(events, "AttemptError")] == ["claude-haiku-4.5", "claude-opus-4.6"]
    assert [c.route for c in of(events, "Call")] == ["direct", "skill", "skill", "direct"]


def test_plan_mode_and_announced_moves_are_the_programs():
    log = Log()
    log.user(permissionMode="default")
    log.answer("m0")
    log.row("permission-mode", permissionMode="plan")
    log.user(permissionMode="plan")
    log.answer("m1", tool("t1", "ExitPlanMode"))
    log.system("model_refusal_fallback", content="neutral")
    events, _ = log.read()
    assert [m.by for m in of(events, "ModelSet")] == ["harness", "harness", "refusal"]


@pytest.mark.parametrize(
    ("result", "outcome"),
    [
        ("The user doesn't want to proceed with this tool use", "denied"),
        ("<tool_use_error>InputValidationError: x", "malformed"),
        ("<tool_use_error>Error: No such tool available: x", "malformed"),
        ("<tool_use_error>Sibling tool call errored</tool_use_error>", "no_result"),
        ("<tool_use_error>File has been modified since read, x", "runtime"),
        ("<tool_use_error>String to replace not found", "precondition"),
        ("File content (31000 tokens) exceeds maximum", "precondition"),
        ("File content (31000 tokens) is fine", "failed"),
        ("Exit code 1", "runtime"),
        ("Error: Exit code 2", "runtime"),
        ("MCP error -32001: x", "tool_infra"),
        ("Error: something", "failed"),
        (" Exit code 1", "failed"),
        ("", "failed"),
    ],
)
def test_error_results_are_classified_by_their_first_bytes(result, outcome):
    for content in (result, [text(result)], [{"type": "image"}, text(result)]):
        log = Log()
        log.user()
        log.answer("m1", tool("t1"))
        log.result("t1", content, is_error=True)
        call, end = of(log.read()[0], "Tool")
        assert (call.outcome, call.result_ts, call.tool_class, call.family) == (
            "no_result", None, "run", "claude-opus-4.6",
        )  # fmt: skip
        assert (end.outcome, end.family, end.tool_class) == (outcome, "unknown", "unknown")
        assert end.result_ts == end.ts
        assert call.key == end.key


def test_escaped_markers_are_recognised():
    raw = b'"\\u003ctool_use_error\\u003eInputValidationError: x"'
    log = Log()
    log.answer("m1", tool("t1"))
    log.result("t1", "PLACE", is_error=True)
    from reader_support import lines

    events, _ = read(lines(log.rows).replace(b'"PLACE"', raw))
    assert of(events, "Tool")[-1].outcome == "malformed"


def test_the_denial_field_comes_before_the_text():
    log = Log()
    log.answer("m1", tool("t1"))
    log.result("t1", "Exit code 1", is_error=True, toolDenialKind="user-rejected")
    assert of(log.read()[0], "Tool")[-1].outcome == "denied"


def test_a_hook_stop_is_no_failure_whichever_row_comes_first():
    for first in (True, False):
        log = Log()
        log.answer("m1", tool("t1"))
        if first:
            log.attachment("hook_blocking_error", toolUseID="t1", hookEvent="PreToolUse")
        log.result("t1", "blocked", is_error=True)
        if not first:
            log.attachment("hook_blocking_error", toolUseID="t1", hookEvent="PreToolUse")
        assert of(log.read()[0], "Tool")[-1].outcome == "hook_block"
    log = Log()
    log.attachment("hook_blocking_error", toolUseID="t1", hookEvent="Stop")
    assert not log.read()[0], "a stop hook stops no tool"


def test_tools_credit_the_call_that_issued_them():
    log = Log(agentId="a1", isSidechain=True)
    log.answer("m1", tool("t1", "mcp__x__y"), model="claude-sonnet-4-5")
    log.result("t1")
    events, _ = log.read()
    (call,) = of(events, "Call")
    issued, _ = of(events, "Tool")
    assert (call.thread, call.route) == ("side", "subagent")
    assert (issued.call, issued.family, issued.tool_class, issued.origin) == (
        call.key, "claude-sonnet-4.5", "mcp", "mcp",
    )  # fmt: skip


def test_ignored_rows_do_not_break_the_chain():
    log = Log()
    log.user()
    log.row("progress", data={"type": "hook_progress"})
    log.system("informational")
    log.answer("m1", tool("t1"))
    log.answer("m1", tool("t2"))
    log.result("t1")
    log.result("t2")
    log.answer("m2")
    log.row("system", subtype="compact_boundary", parentUuid=None, logicalParentUuid=log.last)
    log.user("summary", isCompactSummary=True)
    log.user()
    events, _ = log.read()
    first, second = of(events, "Prompt")
    one, two = of(events, "Call")
    assert (first.parent, one.parent, two.parent, second.parent) == (None, first.key, one.key, two.key)
    assert all(t.parent == one.key for t in of(events, "Tool"))


def test_a_broken_chain_names_a_parent_that_no_event_has():
    log = Log()
    log.user()
    log.user(parentUuid="never seen")
    events, _ = log.read()
    assert events[1].parent is not None
    assert events[1].parent not in {event.key for event in events}


def test_a_rewind_leaves_the_dropped_turn_off_the_path():
    log = Log()
    log.user()
    kept = log.answer("m1")
    log.user(uuid="rewound")
    log.answer("m2")
    log.last = kept
    log.user()
    events, _ = log.read()
    prompts, calls = of(events, "Prompt"), of(events, "Call")
    assert prompts[2].parent == calls[0].key == prompts[1].parent


def test_unknown_types_are_counted_before_any_field_is_checked():
    events, ctx = read([{"type": "hologram", "message": 3, "timestamp": 5}, {"type": "hologram"}])
    assert not events
    assert (ctx.rows.read, ctx.rows.unknown, ctx.rows.rejected) == (2, 2, 0)


def test_ignored_types_may_look_however_they_like():
    _, ctx = read([{"type": "progress", "message": 3}, {"type": "summary", "version": 5}])
    assert (ctx.rows.read, ctx.rows.unknown, ctx.rows.rejected) == (2, 0, 0)


def test_unknown_attachments_and_subtypes_are_ignored():
    log = Log()
    log.attachment("brand_new", met={"a": 1}, toolUseID=7)
    log.system("brand_new")
    events, ctx = log.read()
    assert not events
    assert ctx.rows.rejected == 0


def test_fields_of_another_type_reject_the_row_and_only_it():
    log = Log()
    log.user()
    log.user(version=7)
    log.attachment("goal_status", met={"a": 1})
    log.answer("m1", "no block")
    log.result(7)
    log.answer("m2")
    events, ctx = log.read()
    assert ctx.rows.reasons == {"wrong_type": 4}
    assert [type(e).__name__ for e in events] == ["Prompt", "Gap", "Gap", "Gap", "Gap", "Call"]
    assert {gap.conv for gap in of(events, "Gap")} == {events[0].conv}


def test_missing_optional_fields_are_no_fault():
    rows = [
        {"type": "user", "timestamp": "2026-03-01T10:00:00Z", "message": {"content": "neutral"}},
        {"type": "assistant", "timestamp": "2026-03-01T10:00:01Z", "message": {"content": [text()]}},
    ]
    events, ctx = read(rows)
    assert ctx.rows.rejected == 0
    assert ctx.facts.conversations is None
    assert {event.conv for event in events} == {None}
    assert of(events, "Call")[0].served == "unknown"


@pytest.mark.parametrize(
    ("stamp", "reason"),
    [
        (None, "missing_field"), ("yesterday", "bad_time"), ("2019-12-31T23:59:59Z", "bad_time"),
        ("2031-01-01T00:00:00Z", "bad_time"), (17, "wrong_type"), ("9999-12-31T23:59:59+00:00", "bad_time"),
    ],
)  # fmt: skip
def test_times_that_cannot_be_are_rejected(stamp, reason):
    log = Log()
    log.user(timestamp=stamp)
    _, ctx = log.read()
    assert ctx.rows.reasons == {reason: 1}


def test_times_with_a_zone_become_utc():
    log = Log()
    log.user(timestamp="2026-03-31T23:30:00-02:00")
    log.user(timestamp="2026-04-01T01:30:00Z")
    events, _ = log.read()
    assert events[0].ts == events[1].ts


@pytest.mark.parametrize(
    ("version", "known"),
    [("2.0.75", False), ("2.0.76", True), ("2.1.0", True), ("3.0.0-beta.1", True), ("1.9.99", False), ("x", False)],
)
def test_retries_are_known_from_2_0_76_on(version, known):
    assert writes_attempts(version) is known
    log = Log(version=version)
    log.user()
    events, ctx = log.read()
    assert ctx.facts.attempts_known is known
    assert events[0].reader.endswith(NO_ATTEMPTS) is not known


def test_no_version_at_all_is_neither():
    log = Log(version=None)
    log.user()
    assert log.read()[1].facts.attempts_known is None


def test_the_reader_keeps_only_the_kind_of_a_rule():
    seen = []

    def rule(attributes):
        seen.append(attributes)
        return "analysis"

    log = Log(entrypoint="cli")
    log.user()
    events, _ = read(log.rows, context(kind_rule=rule))
    assert events[0].kind_hint == "analysis"
    assert seen[-1] == {
        "source": "claude_code", "recorder": "claude_code", "client": "claude_cli", "log_dir": "-home-project",
    }  # fmt: skip


def test_an_organisations_tool_class_comes_first():
    classes = ToolClasses({"mcp__ticketing__*": "ticket", "Bash": "data"})
    assert classes.classify("mcp__ticketing__close") == ("ticket", "mcp")
    assert classes.classify("Bash") == ("data", "builtin")
    assert classes.classify("TaskCreate")[0] == "plan"
    assert classes.classify("Invented") == ("unknown", "unknown")
    for wrong in ({"x": "nonsense"}, {"a*b": "run"}, {"": "run"}):
        with pytest.raises(ConfigurationError):
            ToolClasses(wrong)


def test_usual_places(tmp_path):
    assert default_roots(tmp_path, None) == [tmp_path / ".claude/projects", tmp_path / ".config/claude/projects"]
    assert default_roots(tmp_path, f"{tmp_path}/a, {tmp_path}/b") == [tmp_path / "a/projects", tmp_path / "b/projects"]


def test_events_name_the_machines_person_and_the_project():
    log = Log()
    log.user()
    (event,) = log.read()[0]
    assert event.person == IDS.machine() == IDS.staff("me")
    assert event.project == IDS.project("claude_code", "-home-project")
    assert event.conv == IDS.conv("claude_code", "s1")


def test_a_rejected_row_belongs_to_the_conversation_before_it():
    log = Log()
    log.user()
    log.rows.append({"type": "summary", "summary": "neutral", "leafUuid": "x"})
    log.rows.append(b"{")
    events, _ = log.read()
    prompt, gap = events
    assert (gap.what, gap.conv, gap.ts) == ("rows_rejected", prompt.conv, prompt.ts)


def test_interleaved_sessions_keep_their_own_state():
    a, b = Log("a", entrypoint="cli"), Log("b", entrypoint="sdk-py")
    a.user()
    b.user()
    a.answer("a1", tool("t1", "Skill"))
    b.answer("b1")
    a.answer("a2", model="claude-haiku-4-5")
    b.answer("b2", model="claude-haiku-4-5")
    rows = [row for pair in zip(a.rows, b.rows, strict=True) for row in pair]
    calls = of(read(rows)[0], "Call")
    assert [(c.route, c.mode) for c in calls] == [
        ("direct", "interactive"),
        ("direct", "automation"),
        ("skill", "interactive"),
        ("direct", "automation"),
    ]
    assert len({c.conv for c in calls}) == 2


def test_a_subagent_whose_file_is_not_there_is_named() -> None:
    def main(result: object, name: str = "Agent") -> Log:
        log = Log()
        log.user()
        log.answer("m1", tool("t1", name))
        log.result("t1", toolUseResult=result)
        return log

    side = Log(agentId="a7", isSidechain=True)
    side.user()
    side.answer("m2")
    _, alone = main({"agentId": "a7", "status": "completed"}).read()
    assert len(alone.facts.subagents_named - alone.facts.subagents_read) == 1
    _, both = read(main({"agentId": "a7"}, "Task").rows + side.rows)
    assert both.facts.subagents_named == both.facts.subagents_read != set()
    for other in ({"agentId": 7}, {"status": "completed"}, "text", None):
        events, ctx = main(other).read()
        assert (ctx.facts.subagents_named, ctx.rows.rejected) == (set(), 0)
        assert of(events, "Tool")[-1].outcome == "ok"
    assert not main({"agentId": "a7"}, "Bash").read()[1].facts.subagents_named


@pytest.mark.parametrize(
    "text_",
    [
        "2026-03-01T09:00:59.999Z", "2026-03-01T09:00:00.123456Z", "2026-03-01T11:00:00.5+02:00",
        "2026-03-01T09:00:00", "20260301T090000Z", "2026-03-01", "2026-03-01 09:00:00.001Z", "2026-03-01T09:00:60Z",
        "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "17", "",
    ],
)  # fmt: skip
def test_the_time_of_a_row_is_read_as_in_every_other_log(text_: str) -> None:
    log = Log()
    log.user(timestamp=text_)
    event_times = [event.ts for event in of(log.read()[0], "Prompt")]
    micros = rfc3339_micros(text_)
    assert event_times == ([micros] if plausible(micros, NOW) else [])
