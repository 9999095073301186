# SPDX-License-Identifier: Apache-2.0
"""Codex rollouts: the fields that are read, and the closed lists of row types.

Rules kept here:
* a field that can hold text is absent or `Raw`; of a `Raw` only typed parts are decoded, never a text;
* type-like fields are `str`, never an enum: the decoder's message would quote the value;
* a row of unknown type is told apart before any other field is looked at.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

NONE: Final = msgspec.Raw()
"""Stands for an absent field; absence is tested by identity."""


class Payload(msgspec.Struct, gc=False):
    """`payload` of a row: the fields of all row types that are read."""

    type: str | None = None
    id: str | None = None
    timestamp: str | None = None
    originator: str | None = None
    source: msgspec.Raw = NONE
    thread_source: str | None = None
    agent_role: str | None = None
    forked_from_id: str | None = None
    parent_thread_id: str | None = None
    turn_id: str | None = None
    model: str | None = None
    kind: str | None = None
    role: str | None = None
    name: str | None = None
    call_id: str | None = None
    success: bool | str | None = None
    num_turns: int | str | None = None
    codex_error_info: msgspec.Raw = NONE
    info: msgspec.Raw = NONE
    result: msgspec.Raw = NONE
    error: msgspec.Raw = NONE


class Row(msgspec.Struct, gc=False):
    """One line of a rollout."""

    timestamp: str | None = None
    type: str | None = None
    payload: Payload | None = None


class PayloadType(msgspec.Struct, gc=False):
    """What tells a payload of unknown type from a malformed one."""

    type: str | None = None


class TypeOnly(msgspec.Struct, gc=False):
    """What tells a row of unknown type from a malformed one."""

    type: str | None = None
    payload: msgspec.Raw = NONE


class Usage(msgspec.Struct, gc=False):
    """`total_token_usage`: only compared with the one before, never summed."""

    input_tokens: int | str | None = None
    output_tokens: int | str | None = None
    total_tokens: int | str | None = None


class TokenInfo(msgspec.Struct, gc=False):
    """`info` of a `token_count`."""

    model: str | None = None
    total_token_usage: Usage | None = None


class Source(msgspec.Struct, gc=False):
    """`source` of a header, where it is an object."""

    subagent: msgspec.Raw = NONE


class Subagent(msgspec.Struct, gc=False):
    """`source.subagent`, where it is an object."""

    thread_spawn: msgspec.Raw = NONE


class Spawn(msgspec.Struct, gc=False):
    """`source.subagent.thread_spawn`."""

    parent_thread_id: str | None = None


class McpAnswer(msgspec.Struct, gc=False):
    """The answer of an MCP server."""

    is_error: bool | str | None = None
    isError: bool | str | None = None


class McpResult(msgspec.Struct, gc=False):
    """`result` of an `mcp_tool_call_end`: one of two names."""

    Ok: McpAnswer | None = None
    Err: msgspec.Raw = NONE


class Failure(msgspec.Struct, gc=False):
    """`error` of a turn."""

    codex_error_info: msgspec.Raw = NONE
    code: msgspec.Raw = NONE
    type: msgspec.Raw = NONE


class FailureInfo(msgspec.Struct, gc=False):
    """`codex_error_info`, where it is an object."""

    http_connection_failed: msgspec.Raw = NONE
    response_stream_connection_failed: msgspec.Raw = NONE
    response_stream_disconnected: msgspec.Raw = NONE
    response_too_many_failed_attempts: msgspec.Raw = NONE


SOURCE: Final = msgspec.json.Decoder(type=Source)
SUBAGENT: Final = msgspec.json.Decoder(type=Subagent)
SPAWN: Final = msgspec.json.Decoder(type=Spawn)
INFO: Final = msgspec.json.Decoder(type=TokenInfo)
PAYLOAD_TYPE: Final = msgspec.json.Decoder(type=PayloadType)
MCP_RESULT: Final = msgspec.json.Decoder(type=McpResult)
FAILURE: Final = msgspec.json.Decoder(type=Failure)
FAILURE_INFO: Final = msgspec.json.Decoder(type=FailureInfo)
WORD: Final = msgspec.json.Decoder(type=str)
STRUCTS: Final = (
    Payload, Row, PayloadType, TypeOnly, Usage, TokenInfo, Source, Subagent, Spawn, McpAnswer, McpResult, Failure,
    FailureInfo,
)  # fmt: skip
"""For the field audit."""

TYPES: Final = frozenset({"session_meta", "turn_context", "response_item", "event_msg", "compacted"})
ITEMS: Final = frozenset({
    "message", "reasoning", "local_shell_call", "function_call", "function_call_output", "custom_tool_call",
    "custom_tool_call_output", "web_search_call", "image_generation_call", "tool_search_call", "tool_search_output",
    "ghost_snapshot", "compaction", "compaction_summary", "context_compaction", "other",
})  # fmt: skip
EVENTS: Final = frozenset({
    "user_message", "agent_message", "agent_reasoning", "agent_reasoning_raw_content", "token_count", "task_started",
    "turn_started", "task_complete", "turn_complete", "turn_aborted", "thread_rolled_back", "mcp_tool_call_end",
    "patch_apply_end", "web_search_end", "image_generation_end", "exec_command_end", "context_compacted",
    "entered_review_mode", "exited_review_mode", "undo_completed", "item_completed", "thread_name_updated",
    "view_image_tool_call", "plan_update", "warning", "error", "stream_error",
})  # fmt: skip
TURN_STARTS: Final = frozenset({"task_started", "turn_started"})
TURN_ENDS: Final = frozenset({"task_complete", "turn_complete"})
TOOL_CALLS: Final = frozenset({"function_call", "custom_tool_call", "local_shell_call"})
TOOL_OUTPUTS: Final = frozenset({"function_call_output", "custom_tool_call_output"})
ANSWERS: Final = TOOL_CALLS | {"reasoning", "agent_message", "agent_reasoning"}
"""Payloads that only a model's answer brings, besides a message of the assistant."""

INTERACTIVE: Final = {
    "codex_cli_rs": "codex_cli",
    "codex-tui": "codex_cli",
    "codex_tui": "codex_cli",
    "codex_vscode": "codex_ide",
    "codex_vscode_copilot": "codex_ide",
    "codex_app": "codex_desktop",
    "codex_chatgpt_desktop": "codex_desktop",
    "Codex Desktop": "codex_desktop",
}
AUTOMATION: Final = frozenset({"codex_exec", "codex_sdk_ts", "codex_sdk_py"})
INTERACTIVE_SOURCES: Final = {"cli": "codex_cli", "vscode": "codex_ide"}
AUTOMATION_SOURCES: Final = frozenset({"exec"})

_MAX_WORD: Final = 66
_FAILURES: Final = {
    "usagelimitexceeded": "rate_own",
    "usagelimitreached": "rate_own",
    "usagenotincluded": "rate_own",
    "contextwindowexceeded": "context",
    "serveroverloaded": "overload",
    "internalservererror": "5xx",
    "httpconnectionfailed": "network",
    "responsestreamconnectionfailed": "network",
    "responsestreamdisconnected": "network",
}
UNCLASSED: Final = "client_4xx"
_UUID7: Final = re.compile(r"([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", re.IGNORECASE)
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$", re.IGNORECASE)


def made_at(uuid: str | None) -> int | None:
    """When a UUID of version 7 was made, ms UTC (RFC 9562, section 5.7); None for any other text."""
    found = _UUID7.fullmatch(uuid) if uuid is not None else None
    return int(found[1] + found[2], 16) if found else None


def session_in(file_name: str) -> str | None:
    """The session id at the end of a rollout's file name."""
    found = _UUID.search(file_name)
    return found[0].lower() if found else None


def word(raw: msgspec.Raw) -> str:
    """A short code word; empty for text, other types and nothing.

    Raises:
        msgspec.DecodeError: the value is no JSON string after all.
    """
    view = memoryview(raw)
    return WORD.decode(raw) if len(view) <= _MAX_WORD and bytes(view[:1]) == b'"' else ""


def is_object(raw: msgspec.Raw) -> bool:
    """Whether a value is a JSON object."""
    return bytes(memoryview(raw)[:1]) == b"{"


def given(raw: msgspec.Raw) -> bool:
    """Whether a field is there and not null."""
    return raw is not NONE and bytes(memoryview(raw)[:4]) != b"null"


def program(payload: Payload) -> tuple[str, str, str]:
    """(client, mode, name of the field that told the mode) of a header. Any sign of a program beats one of a person."""
    origin = payload.originator
    source = word(payload.source)
    if origin in AUTOMATION or source in AUTOMATION_SOURCES:
        return "codex_exec", "automation", "originator" if origin in AUTOMATION else "source"
    known_source = not source or source in INTERACTIVE_SOURCES
    if origin is None:
        client = INTERACTIVE_SOURCES.get(source)
        return (client, "interactive", "source") if client else ("other", "unknown", "")
    client = INTERACTIVE.get(origin)
    return (client, "interactive", "originator") if client and known_source else (client or "other", "unknown", "")


def subagent(payload: Payload) -> tuple[bool, str | None]:
    """(whether a program started this session inside another one, the id of that one)."""
    parent = payload.parent_thread_id
    side = payload.thread_source == "subagent" or payload.agent_role is not None
    if is_object(payload.source):
        inner = SOURCE.decode(payload.source).subagent
        if given(inner):
            side = True
            spawn = SUBAGENT.decode(inner).thread_spawn if is_object(inner) else NONE
            if is_object(spawn):
                parent = parent or SPAWN.decode(spawn).parent_thread_id
    return side, parent


def failure_class(failure: Payload | Failure) -> str:
    """Class of a failed turn from its code words."""
    info = failure.codex_error_info
    words = [word(info)]
    if is_object(info):
        found = FAILURE_INFO.decode(info)
        if any(given(getattr(found, name)) for name in FailureInfo.__struct_fields__):
            return "network"
    if isinstance(failure, Failure):
        words += [word(failure.code), word(failure.type)]
    classes = (_FAILURES.get(one.replace("_", "").casefold()) for one in words)
    return next((one for one in classes if one is not None), UNCLASSED)


def mcp_outcome(result: msgspec.Raw) -> str:
    """Outcome of an MCP call from its typed end."""
    if not is_object(result):
        return "unclassified"
    found = MCP_RESULT.decode(result)
    if given(found.Err):
        return "failed"
    if found.Ok is None:
        return "unclassified"
    flags = (found.Ok.is_error, found.Ok.isError)
    return "failed" if any(flag is True or flag == "true" for flag in flags) else "ok"


def total_of(usage: Usage | None) -> tuple[str, ...] | None:
    """What the running total is compared by; None where nothing was used yet."""
    if usage is None:
        return None
    parts = tuple(str(one or 0) for one in (usage.input_tokens, usage.output_tokens, usage.total_tokens))
    return parts if any(part != "0" for part in parts) else None
