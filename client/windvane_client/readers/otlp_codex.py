# SPDX-License-Identifier: Apache-2.0
"""Telemetry of Codex: events of the dialect `codex`. They supply the errors that its rollouts lack.

Rules kept here:
* an answer is a stream that completed; a request that was sent is none;
* a failed attempt has a status or a fixed marker; one that says neither is of no class and blames nobody;
* the program's own name tells the mode: a terminal or editor is a person, `exec` is a program.
"""

from __future__ import annotations

from windvane_client.events import AttemptError, Call, Prompt
from windvane_client.readers.failures import error_class
from windvane_client.readers.otlp_state import Pass

IGNORED = frozenset({
    "conversation_starts", "sse_event", "websocket_event", "websocket_connect", "websocket_request", "api_request",
    "startup_phase", "turn_ttft", "turn_ttfm", "auth_recovery", "plugin_used", "sandbox_outcome",
})  # fmt: skip
"""Known events that tell none of the signals by themselves."""
EVENTS = frozenset({"user_prompt", "tool_decision", "tool_result"})
"""Events that are read, besides those of IGNORED that tell an answer or a failure."""
PROGRAMS = {
    "codex_cli_rs": ("codex_cli", "interactive"),
    "codex_tui": ("codex_cli", "interactive"),
    "codex-tui": ("codex_cli", "interactive"),
    "codex desktop": ("codex_desktop", "interactive"),
    "codex_vscode": ("codex_ide", "interactive"),
    "codex_exec": ("codex_exec", "automation"),
    "codex_sdk_ts": ("codex_exec", "automation"),
    "codex_mcp_server": ("other", "unknown"),
    "codex": ("other", "unknown"),
    "codex-app-server": ("other", "unknown"),
}
"""Program names (`originator`, or the service's name) to client and mode."""
_MARKERS = (
    (b"stream disconnected", "network"),
    (b"stream closed", "network"),
    (b"error sending request", "network"),
    (b"Connection", "network"),
    (b"connection", "network"),
    (b"idle timeout", "timeout"),
    (b"timeout", "timeout"),
    (b"You've hit your usage limit", "rate_own"),
    (b"interrupted", "aborted"),
)
_DENIED = frozenset({"denied", "abort", "reject", "timed_out"})


def program(name: str | None, service: str | None) -> tuple[str, str, str]:
    """(client, mode, name of the field that told it)."""
    for value, evidence in ((name, "originator"), (service, "service.name")):
        found = PROGRAMS.get(value.casefold()) if value else None
        if found is not None and found[1] != "unknown":
            return found[0], found[1], evidence
    return "other", "unknown", ""


def event(now: Pass) -> bool:
    """The events of one record; False where its type is unknown."""
    row = now.row
    _, mode, evidence = program(row.text("originator"), row.text("service.name"))
    now.mode(mode, evidence)
    kind = row.text("event.kind")
    status = row.status("http.response.status_code")
    bad_status = row.number("http.response.status_code") or 0
    streamed = row.name in ("sse_event", "websocket_event")
    if row.name == "user_prompt":
        key = now.own_key("prompt")
        now.session.opened(key)
        origin = "sdk" if mode == "automation" else "human"
        now.out.append(Prompt(**now.of(key, node=True), turn=key, origin=origin))
    elif streamed and kind == "response.completed" and "error.message" not in row.heads:
        model = row.text("model")
        family = now.family(model)
        now.session.answered(family)
        key = now.own_key("call", model)
        now.out.append(Call(**now.of(key, node=True), turn=now.session.turn, served=family))
    elif row.name in IGNORED and ("error.message" in row.heads or bad_status >= 400 or kind == "response.failed"):
        _failure(now, status)
    elif row.name == "tool_decision":
        if (row.text("decision") or "").casefold() in _DENIED:
            raw = row.text("call_id")
            if raw:
                now.session.deny(raw)
            _tool(now, raw, "denied")
    elif row.name == "tool_result":
        raw = row.text("call_id")
        success = row.truth("success")
        outcome = "unclassified" if success is None else "ok" if success else "failed"
        _tool(now, raw, "denied" if raw is not None and raw in now.session.denied else outcome)
    else:
        return row.name in IGNORED
    return True


def _failure(now: Pass, status: int | str | None) -> None:
    row = now.row
    head = row.heads.get("error.message", b"")
    marker = next((found for text, found in _MARKERS if head.startswith(text)), None)
    model = row.text("model")
    key = now.own_key("attempt", model, row.text("event.kind"))
    # The count goes on over the requests of a turn: `attempt` of the log starts anew with each stream.
    attempt = now.session.failed(key)
    now.out.append(
        AttemptError(
            **now.of(key),
            turn=now.session.turn,
            error_class=error_class(status, (), marker),
            family=now.family(model),
            request=now.session.turn,
            attempt=attempt,
        )
    )


def _tool(now: Pass, raw: str | None, outcome: str) -> None:
    name = now.row.text("tool_name") or ""
    now.tool(raw, name, outcome, now.session.turn)
