# SPDX-License-Identifier: Apache-2.0
"""Telemetry of Claude Code: events of the dialect `claude_code`.

Rules kept here:
* every value may be text: numbers and truth values are read from it;
* a request of a title, a compaction or a subagent was nobody's choice of a model;
* an attempt that a person aborted is nobody's failure; a status that says "undefined" says nothing;
* nothing in these events says who typed: the mode stays unknown.
"""

from __future__ import annotations

from windvane_client.events import SIDE, AttemptError, Call, ModelSet, Prompt
from windvane_client.readers.failures import UNCLASSED, error_class
from windvane_client.readers.otlp_state import Pass
from windvane_privacy.catalogue import SYNTHETIC, UNKNOWN

IGNORED = frozenset({
    "permission_mode_changed", "auth", "mcp_server_connection", "internal_error", "plugin_installed", "plugin_loaded",
    "skill_activated", "at_mention", "hook_execution_start", "hook_execution_complete", "hook_registered",
    "compaction", "assistant_response", "api_request_body", "api_response_body", "feedback_survey",
})  # fmt: skip
"""Known events that tell none of the signals."""
EVENTS = frozenset({
    "user_prompt", "api_request", "api_error", "api_retries_exhausted", "api_refusal", "tool_decision", "tool_result",
})  # fmt: skip
"""Events that are read."""
_MAIN_SOURCES = frozenset({"repl_main_thread", "main", "sdk"})
_BACKGROUND = (
    "compact", "generate_session_title", "title", "auxiliary", "away_summary", "prompt_suggestion", "tool_use_summary",
    "bash_", "hook_", "memory", "session_", "web_", "quota", "terminal_title",
)  # fmt: skip
_ABORTED = (b"Request was aborted", b"Request aborted", b"AbortError", b"aborted", b"The user aborted")


def event(now: Pass) -> bool:
    """The events of one record; False where its type is unknown."""
    row = now.row
    match row.name:
        case "user_prompt":
            _prompt(now)
        case "api_request":
            _call(now)
        case "api_error" | "api_retries_exhausted":
            _failure(now, final=row.name == "api_retries_exhausted")
        case "api_refusal":
            now.out.append(ModelSet(**now.of(now.own_key("refusal")), family=UNKNOWN, by="refusal"))
        case "tool_decision":
            _decision(now)
        case "tool_result":
            _tool(now)
        case name:
            return name in IGNORED
    return True


def _turn(now: Pass) -> bytes | None:
    raw = now.row.text("prompt.id")
    return now.key("turn", raw) if raw else now.session.turn


def _prompt(now: Pass) -> None:
    raw = now.row.text("prompt.id")
    key = now.key("prompt", raw) if raw else now.own_key("prompt")
    turn = now.key("turn", raw) if raw else key
    now.session.opened(turn)
    origin = "command" if "command_name" in now.row.attrs else "human"
    now.out.append(Prompt(**now.of(key, node=True), turn=turn, origin=origin))


def _route(now: Pass) -> str:
    source = now.row.text("query_source")
    if source is None or source.partition(":")[0] in _MAIN_SOURCES:
        return "direct"
    now.thread(SIDE)
    return "background" if source.startswith(_BACKGROUND) else "subagent"


def _call(now: Pass) -> None:
    family = now.family(now.row.text("model"))
    if family == SYNTHETIC:
        return
    route = _route(now)
    request = now.row.text("request_id")
    key = now.key("call", request) if request else now.own_key("call", now.row.text("model"))
    now.session.answered(family)
    now.out.append(Call(**now.of(key, node=True), turn=_turn(now), served=family, route=route))


def _failure(now: Pass, *, final: bool) -> None:
    row = now.row
    _route(now)
    marker = "aborted" if row.heads.get("error", b"").startswith(_ABORTED) else None
    name = error_class(row.status("status_code"), (), marker)
    if final and name == UNCLASSED and row.number("status_code") is None:
        # Only faults of the provider are tried again until the attempts are used up.
        name = "5xx"
    model = row.text("model")
    now.out.append(
        AttemptError(
            **now.of(now.own_key("attempt", model)),
            turn=_turn(now),
            error_class=name,
            family=now.family(model),
            request=_turn(now),
            attempt=row.number("attempt", "total_attempts"),
            final=final,
        )
    )


def _decision(now: Pass) -> None:
    row = now.row
    if row.text("decision") not in ("reject", "denied", "deny"):
        return
    raw = row.text("tool_use_id")
    if raw:
        now.session.deny(raw)
    _emit(now, raw, "denied")


def _tool(now: Pass) -> None:
    row = now.row
    raw = row.text("tool_use_id")
    success = row.truth("success")
    outcome = "unclassified" if success is None else "ok" if success else "failed"
    if raw is not None and raw in now.session.denied:
        outcome = "denied"
    _emit(now, raw, outcome)


def _emit(now: Pass, raw: str | None, outcome: str) -> None:
    name = now.row.text("tool_name") or ""
    now.tool(raw, name, outcome, _turn(now))
