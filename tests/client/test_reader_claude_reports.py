# SPDX-License-Identifier: Apache-2.0
"""Faults that other readers of these transcripts had; each was reported in public."""

from __future__ import annotations

from collections import Counter

import pytest

from reader_support import Log, of, read, text, tool
from windvane_client.catalogue_builtin import builtin_catalogue


def merged(events):
    """One call a key, the main thread's copy before a side copy, as the store does it."""
    found = {}
    for call in of(events, "Call"):
        if call.key not in found or (found[call.key].thread == "side" and call.thread == "main"):
            found[call.key] = call
    return list(found.values())


def test_r1_text_and_tool_use_of_one_answer_are_one_call():
    """ccusage#389: text and tool use of one answer are two rows: one call."""
    log = Log()
    log.user()
    log.answer("m1", text())
    log.answer("m1", tool("t1"))
    assert len(of(log.read()[0], "Call")) == 1


def test_r2_an_answer_with_18_parallel_tools_is_one_call():
    """ccusage#994, #1728: every way to read removes duplicates, also one session by itself."""
    log = Log()
    log.user()
    log.answer("m1")
    for n in range(18):
        log.answer("m1", tool(f"t{n}"))
    for n in range(18):
        log.result(f"t{n}")
    events, _ = log.read()
    assert len(of(events, "Call")) == 1
    assert Counter(t.call for t in of(events, "Tool") if t.result_ts is None) == {of(events, "Call")[0].key: 18}


def test_r3_without_request_id_the_last_row_wins():
    """ccusage#976, #797: no `requestId`: still one call; the last row wins."""
    log = Log()
    log.user()
    log.answer("m1", model=None)
    log.answer("m1", model="claude-opus-4-6")
    calls = of(log.read()[0], "Call")
    assert len({call.key for call in calls}) == 1
    assert calls[-1].served == "claude-opus-4.6"


def test_r3_without_message_id_the_row_is_the_call():
    """ccusage#976, #797: no `requestId`: still one call; the last row wins."""
    log = Log()
    log.answer("", text())
    log.answer("", text())
    assert len({call.key for call in of(log.read()[0], "Call")}) == 2


def test_r4_one_message_id_under_two_sessions_is_one_call():
    """ccusage#1762: one message id under several session ids: one call."""
    first, second = Log("a"), Log("b")
    first.answer("m1")
    second.answer("m1")
    events, ctx = read(first.rows + second.rows)
    assert len({call.key for call in of(events, "Call")}) == 1
    assert len(ctx.facts.conversations) == 2


def test_r5_a_side_replay_with_a_new_request_id_leaves_the_main_copy():
    """ccusage#913: a side replay with a new request id: the main copy only."""
    log = Log()
    log.user()
    log.answer("m1", requestId="r1")
    log.answer("m1", requestId="r2", isSidechain=True)
    (call,) = merged(log.read()[0])
    assert (call.thread, call.route) == ("main", "direct")


def test_r6_a_resume_with_fresh_row_ids_is_one_call_a_message():
    """tokenjam#294, #300: a resume with fresh row ids: one call a message id."""
    log = Log()
    log.user()
    log.answer("m1")
    log.answer("m2")
    again = Log("resumed")
    again.user()
    again.answer("m1")
    again.answer("m2")
    again.answer("m3")
    events, _ = read(log.rows + again.rows)
    assert len(merged(events)) == 3
    third = of(events, "Call")[-1]
    second = merged(events)[1]
    assert third.parent == second.key, "the resumed part hangs on the same answer"


def test_r9_two_alike_subagents_stay_two():
    """tokscale#679: two subagents with equal token counts stay two."""
    a, b = Log(agentId="a", isSidechain=True), Log(agentId="b", isSidechain=True)
    a.answer("m1", usage={"input_tokens": 5})
    b.answer("m2", usage={"input_tokens": 5})
    assert len(merged(read(a.rows + b.rows)[0])) == 2


def test_r13_synthetic_is_no_model():
    """splitrail#1, aide#78: `<synthetic>` is no model."""
    log = Log()
    log.user()
    log.answer("m1", model="<synthetic>")
    log.answer("m2")
    events, _ = log.read()
    assert [call.served for call in of(events, "Call")] == ["claude-opus-4.6"]
    assert of(events, "Call")[0].parent == of(events, "Prompt")[0].key


@pytest.mark.parametrize(
    "name",
    [
        "claude-sonnet-4-6", "anthropic/claude-4-6-sonnet", "claude-sonnet-4.6", "claude-sonnet-4-6[1m]",
        "us.anthropic.claude-sonnet-4-6-20260101-v1:0", "claude-sonnet-4-6@20260101", "CLAUDE-SONNET-4-6-latest",
        "openrouter/anthropic/claude-sonnet-4.6:thinking", "bedrock/converse/eu.anthropic.claude-sonnet-4-6",
    ],
)  # fmt: skip
def test_r14_one_family_however_it_is_written(name):
    """tokscale#565: two ways to write one family are one family."""
    assert builtin_catalogue().resolve(name) == "claude-sonnet-4.6"


def test_r15_an_opaque_profile_is_unknown_unless_an_alias_names_it():
    """claude-code#27890: an opaque inference profile: alias or `unknown`, never one common model."""
    arn = "arn:aws:bedrock:eu-west-1:1:application-inference-profile/abc-sonnet"
    assert builtin_catalogue().resolve(arn) == "unknown"
    assert builtin_catalogue().resolve(arn, {arn: "claude-sonnet-4.6"}) == "claude-sonnet-4.6"
    assert builtin_catalogue().resolve("azure/gpt-5") == "unknown"


@pytest.mark.parametrize(
    "limit", ["Claude AI usage limit reached|17", "You've hit your session limit", "5-hour limit reached"]
)
def test_r16_the_persons_own_limit_is_no_fault_of_the_vendor(limit):
    """claude-code#3434, #66723: the program moves at a cap or on a refusal: `quota`, `refusal`."""
    log = Log()
    log.user()
    log.answer("m1", text(limit), model="<synthetic>", isApiErrorMessage=True, apiErrorStatus=429, error="rate_limit")
    (error,) = of(log.read()[0], "AttemptError")
    assert (error.error_class, error.final) == ("rate_own", True)


def test_r17_a_plan_exit_is_marked_so_that_the_next_model_is_no_choice():
    """claude-code#93177: `opusplan`: `planned_mode`."""
    log = Log()
    log.user(permissionMode="plan")
    log.answer("m1", tool("t1", "ExitPlanMode"))
    log.result("t1")
    log.answer("m2", model="claude-sonnet-4-6")
    assert [m.by for m in of(log.read()[0], "ModelSet")] == ["harness"]


def test_r18_a_declined_question_is_denied_and_no_error():
    """token-monitor#3: a declined question is `denied`, no error."""
    log = Log()
    log.answer("m1", tool("t1", "AskUserQuestion"))
    log.result("t1", "The user doesn't want to proceed with this tool use.", is_error=True)
    assert of(log.read()[0], "Tool")[-1].outcome == "denied"


def test_r19_structured_fields_come_before_words():
    """cclens#7: structured fields before words; hook stops are no tool failures."""
    log = Log()
    log.answer("m1", tool("t1"), tool("t2"))
    log.attachment("hook_blocking_error", toolUseID="t1", hookEvent="PreToolUse")
    log.result("t1", "Exit code 2", is_error=True)
    log.result("t2", "Exit code 2", is_error=True, toolDenialKind="permission-rule")
    outcomes = [t.outcome for t in of(log.read()[0], "Tool") if t.result_ts is not None]
    assert outcomes == ["hook_block", "hook_block", "denied"]
    log = Log()
    log.user("<task-notification> typed by a person", promptSource="typed")
    assert [p.origin for p in of(log.read()[0], "Prompt")] == ["human"]
