# SPDX-License-Identifier: Apache-2.0
"""Telemetry of Gemini CLI: events of the dialect `gemini_cli`.

Rules kept here:
* the model command of this program names its target: the cleanest act of a person in any log;
* a model that the router or the fallback took is nobody's choice, until the person sets one;
* `conversation_finished` says that the program stopped its loop, never that the work was done;
* a session that a workflow started is automation, whatever the flag of its records says.
"""

from __future__ import annotations

from windvane_client.events import SIDE, AttemptError, Call, Close, ModelSet, Prompt, TurnEnd
from windvane_client.readers.failures import error_class
from windvane_client.readers.otlp_state import Pass
from windvane_privacy.catalogue import UNKNOWN

IGNORED = frozenset({
    "config", "api_request", "slash_command", "file_operation", "rewind", "chat_compression", "next_speaker_check",
    "loop_detected", "loop_detection_disabled", "ripgrep_fallback", "malformed_json_response", "invalid_chunk",
    "ide_connection", "kitty_sequence_overflow", "tool_output_truncated", "tool_output_masking", "extension_install",
    "extension_uninstall", "extension_enable", "extension_disable", "extension_update", "agent.start", "agent.finish",
    "agent.recovery_attempt", "web_fetch_fallback_attempt", "edit_strategy", "edit_correction", "hook_call",
    "startup_stats", "plan.execution", "approval_mode_switch", "approval_mode_duration", "llm_loop_check",
    "conseca.policy_generation", "conseca.verdict", "keychain.availability", "token_storage.initialization",
    "onboarding.start", "onboarding.success",
})  # fmt: skip
"""Known events that tell none of the signals."""
EVENTS = frozenset({
    "user_prompt", "api_response", "api_error", "network_retry_attempt", "chat.content_retry",
    "chat.content_retry_failure", "tool_call", "slash_command.model", "model_routing", "flash_fallback",
    "conversation_finished",
})  # fmt: skip
"""Events that are read, besides those of IGNORED that tell the mode or a close."""
REPEATED = "gen_ai.client.inference.operation.details"
"""Says again, under the names of the semantic conventions, what `api_response` says."""
_DENIED = frozenset({"reject", "cancelled", "cancel"})
_TOOL_INFRA = frozenset({"mcp_transport_error", "timeout", "mcp_timeout"})


def event(now: Pass) -> bool:
    """The events of one record; False where its type is unknown."""
    row, session = now.row, now.session
    if "github_workflow_name" in row.attrs:
        session.automation = "github_workflow_name"
    interactive = row.truth("interactive")
    if session.automation:
        now.mode("automation", session.automation)
    elif interactive is not None:
        now.mode("interactive" if interactive else "automation", "interactive")
    role = row.text("role")
    if role not in (None, "main"):
        now.thread(SIDE)
    match row.name:
        case "user_prompt":
            _prompt(now)
        case "api_response":
            _call(now, role)
        case "api_error" | "network_retry_attempt" | "chat.content_retry" | "chat.content_retry_failure":
            _failure(now)
        case "tool_call":
            _tool(now)
        case "slash_command.model":
            session.route = "direct"
            name = row.text("model_name")
            now.out.append(ModelSet(**now.of(now.own_key("model", name)), family=now.family(name), by="person"))
        case "slash_command" if row.text("command") == "clear":
            now.out.append(Close(**now.of(now.own_key("clear")), how="explicit"))
        case "model_routing":
            _routing(now)
        case "flash_fallback":
            session.route = "fallback"
        case "conversation_finished":
            now.out.append(TurnEnd(**now.of(now.own_key("end")), turn=_turn(now), how="unknown"))
        case name:
            return name in IGNORED or name == REPEATED
    return True


def _turn(now: Pass) -> bytes | None:
    raw = now.row.text("prompt_id")
    return now.key("turn", raw) if raw else now.session.turn


def _prompt(now: Pass) -> None:
    raw = now.row.text("prompt_id")
    key = now.key("prompt", raw) if raw else now.own_key("prompt")
    turn = now.key("turn", raw) if raw else key
    now.session.opened(turn)
    now.out.append(Prompt(**now.of(key, node=True), turn=turn, origin="human"))


def _call(now: Pass, role: str | None) -> None:
    row, session = now.row, now.session
    model = row.text("model")
    family = now.family(model)
    route = session.route
    if role not in (None, "main"):
        route = "subagent" if role == "subagent" else "background"
    session.answered(family)
    key = now.own_key("call", model, row.text("prompt_id"), role)
    now.out.append(Call(**now.of(key, node=True), turn=_turn(now), served=family, route=route))


def _failure(now: Pass) -> None:
    row = now.row
    model = row.text("model")
    word = row.text("error.type", "error_type")
    key = now.own_key("attempt", model, row.text("prompt_id"))
    number = now.session.failed(key)
    now.out.append(
        AttemptError(
            **now.of(key),
            turn=_turn(now),
            error_class=error_class(row.status("status_code"), (word,)),
            family=now.family(model),
            request=_turn(now),
            attempt=number,
            final=row.name == "chat.content_retry_failure",
        )
    )


def _tool(now: Pass) -> None:
    row = now.row
    name = row.text("function_name") or ""
    success = row.truth("success")
    outcome = "unclassified" if success is None else "ok" if success else "failed"
    if (row.text("decision") or "") in _DENIED:
        outcome = "denied"
    elif outcome == "failed" and (row.text("error_type") or "").casefold() in _TOOL_INFRA:
        outcome = "tool_infra"
    now.tool(row.text("call_id"), name, outcome, _turn(now), mcp=row.text("tool_type") == "mcp")


def _routing(now: Pass) -> None:
    """What decided the model of the calls that follow: the person's own setting, a router, a fallback, or plan mode."""
    source = (now.row.text("decision_source") or "").rpartition("/")[2].casefold()
    if source == "override":
        now.session.route = "direct"
        return
    now.session.route = "fallback" if "fallback" in source else "router"
    if source.startswith("approval"):
        now.out.append(ModelSet(**now.of(now.own_key("route")), family=UNKNOWN, by="harness"))
