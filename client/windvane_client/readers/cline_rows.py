# SPDX-License-Identifier: Apache-2.0
"""Cline and Roo: the fields that are read, the closed lists of message types, and the fixed markers.

Rules kept here:
* a text is `Raw`; it is only compared with fixed markers, in place, and no part of it becomes an object;
* type-like fields are `str`, never an enum: the decoder's message would quote the value;
* numbers and truth values may be written as words.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from windvane_client.readers.failures import UNCLASSED, class_of_status
from windvane_client.readers.lines import peek

NONE: Final = msgspec.Raw()
"""Stands for an absent field; absence is tested by identity."""


class ModelInfo(msgspec.Struct, gc=False):
    """`modelInfo` of a message."""

    modelId: str | None = None
    id: str | None = None
    mode: str | None = None


class UiMessage(msgspec.Struct, gc=False):
    """One element of `ui_messages.json`."""

    type: str | None = None
    ask: str | None = None
    say: str | None = None
    ts: int | float | str | None = None
    partial: bool | str | None = None
    modelInfo: ModelInfo | None = None
    text: msgspec.Raw = NONE


class UiTypes(msgspec.Struct, gc=False):
    """What tells a message of unknown type from a malformed one."""

    type: str | None = None
    ask: str | None = None
    say: str | None = None


class Message(msgspec.Struct, gc=False):
    """One element of `messages` of a session."""

    id: str | None = None
    role: str | None = None
    ts: int | float | str | None = None
    modelInfo: ModelInfo | None = None
    content: msgspec.Raw = NONE


class RoleOnly(msgspec.Struct, gc=False):
    """What tells a message of unknown role from a malformed one."""

    role: str | None = None


class Block(msgspec.Struct, gc=False):
    """A content block; `input`, `path` and the like are never named."""

    type: str | None = None
    id: str | None = None
    name: str | None = None
    tool_use_id: str | None = None
    is_error: bool | str | None = None
    content: msgspec.Raw = NONE


class ResultItem(msgspec.Struct, gc=False):
    """One part of a tool's result."""

    success: bool | str | None = None


class Session(msgspec.Struct, gc=False):
    """A file of messages, around its messages."""

    sessionId: str | msgspec.UnsetType | None = msgspec.UNSET
    agent: str | None = None


class Fork(msgspec.Struct, gc=False):
    """`metadata.fork` of a header."""

    forkedFromSessionId: str | None = None
    forkedAt: str | int | None = None


class Metadata(msgspec.Struct, gc=False):
    """`metadata` of a header."""

    fork: Fork | None = None


class Header(msgspec.Struct, gc=False):
    """The header of a session."""

    session_id: str | None = None
    interactive: bool | str | None = None
    metadata: Metadata | None = None


SESSION: Final = msgspec.json.Decoder(type=Session)
HEADER: Final = msgspec.json.Decoder(type=Header)
BLOCKS: Final = msgspec.json.Decoder(type=list[Block])
RESULT_ITEMS: Final = msgspec.json.Decoder(type=list[ResultItem])
STRUCTS: Final = (
    ModelInfo, UiMessage, UiTypes, Message, RoleOnly, Block, ResultItem, Session, Fork, Metadata, Header,
)  # fmt: skip
"""For the field audit."""

BOTH: Final = frozenset({
    "tool", "command", "command_output", "completion_result", "use_mcp_server", "browser_action_launch", "text",
})  # fmt: skip
ASKS: Final = BOTH | {
    "followup", "plan_mode_respond", "act_mode_respond", "api_req_failed", "resume_task", "resume_completed_task",
    "mistake_limit_reached", "auto_approval_max_req_reached", "new_task", "condense", "summarize_task", "report_bug",
    "use_subagents", "interactive_app",
}  # fmt: skip
SAYS: Final = BOTH | {
    "task", "error", "error_retry", "api_req_started", "api_req_finished", "api_req_retried", "api_req_deleted",
    "api_req_retry_delayed", "api_req_rate_limit_wait", "deleted_api_reqs", "reasoning", "user_feedback",
    "user_feedback_diff", "image", "shell_integration_warning", "shell_integration_warning_with_suggestion",
    "browser_action", "browser_action_result", "browser_session_status", "mcp_server_request_started",
    "mcp_server_response", "mcp_notification", "diff_error", "clineignore_error", "rooignore_error",
    "checkpoint_created", "checkpoint_saved", "load_mcp_documentation", "info", "task_progress", "hook_status",
    "hook_output_stream", "conditional_rules_applied", "generate_explanation", "condense_context",
    "condense_context_error", "sliding_window_truncation", "codebase_search_result", "user_edit_todos",
    "subtask_result", "subagent", "subagent_usage", "too_many_tools_warning",
}  # fmt: skip
PROMPTS: Final = frozenset({"task", "user_feedback", "user_feedback_diff"})
ANSWERS: Final = frozenset({
    "text", "reasoning", "tool", "command", "use_mcp_server", "browser_action_launch", "browser_action",
    "completion_result", "followup", "plan_mode_respond", "act_mode_respond", "new_task", "condense", "use_subagents",
    "load_mcp_documentation", "task_progress",
})  # fmt: skip
"""What only a model's answer brings."""
FAILURES: Final = frozenset({"api_req_failed", "api_req_retried", "api_req_retry_delayed", "error_retry"})
TOOLS: Final = {
    "command": ("run", "builtin"),
    "use_mcp_server": ("mcp", "mcp"),
    "browser_action_launch": ("web", "builtin"),
    "browser_action": ("web", "builtin"),
}
RESULTS: Final = {
    "command_output": ("run", "ok"),
    "browser_action_result": ("web", "ok"),
    "mcp_server_response": ("mcp", "unclassified"),
}
"""Rows that show a result: class of the tool, and what the row tells. An MCP server's answer is free text."""
_EDITED: Final = (b"editedExistingFile", b"newFileCreated", b"fileDeleted", b"appliedDiff", b"insertContent",
                  b"searchAndReplace")  # fmt: skip
_READ: Final = (b"readFile", b"list", b"search", b"codebaseSearch", b"fetchInstructions")
_WEB: Final = (b"webFetch", b"webSearch")
_PLAN: Final = (b"switchMode", b"newTask", b"finishTask", b"updateTodoList", b"summarizeTask", b"useSkill")
_TOOL_CLASSES: Final = (
    *((name, "edit") for name in _EDITED), *((name, "web") for name in _WEB), *((name, "plan") for name in _PLAN),
    *((name, "read") for name in _READ),
)  # fmt: skip
_TOOL_HEAD: Final = re.compile(rb'\{\\"tool\\":[ ]?\\"')
_CANCELLED: Final = re.compile(rb'\\"cancelReason\\":[ ]?\\"(user_cancelled|streaming_failed|retries_exhausted)\\"')
_STATUS: Final = re.compile(rb'\\"(?:status|code|statusCode)\\":[ ]?(?:\\")?([45][0-9]{2})\b')
_STATUS_HEAD: Final = re.compile(rb"(?:Status code: |HTTP |\[?)?([45][0-9]{2})\b")
_ERROR_HEADS: Final = (
    (b"Connection error", "network"), (b"fetch failed", "network"), (b"terminated", "network"),
    (b"Premature close", "network"), (b"read ECONN", "network"), (b"connect E", "network"),
    (b"socket hang up", "network"), (b"Request timed out", "timeout"), (b"Overloaded", "overload"),
    (b"overloaded_error", "overload"),
    (b"Rate limit", "rate_vendor"), (b"Too Many Requests", "rate_vendor"), (b"Prompt is too long", "context"),
    (b"prompt is too long", "context"),
)  # fmt: skip
_BAD_CALL_HEADS: Final = (b"Cline tried to use", b"Roo tried to use")
_SUCCESS: Final = (b'\\"success\\":true}"', b'\\"success\\": true}"')
_NO_SUCCESS: Final = (b'\\"success\\":false}"', b'\\"success\\": false}"')
PEEK_TAIL_BYTES: Final = 24


def true(value: bool | str | None) -> bool:
    """A truth value that may be written as a word."""
    return value is True or value == "true"


def cancel_reason(text: msgspec.Raw) -> str:
    """`cancelReason` of a request; empty where there is none."""
    found = _CANCELLED.search(memoryview(text))
    return found[1].decode("ascii") if found else ""


def tool_class(text: msgspec.Raw) -> str:
    """Class of a file tool from the name at the start of its message."""
    head = peek(text)
    start = _TOOL_HEAD.match(head)
    name = head[start.end() :] if start else b""
    return next((kind for word, kind in _TOOL_CLASSES if name.startswith(word)), "unknown")


def error_class(text: msgspec.Raw) -> str:
    """Class of a failed request: its status, else a fixed beginning of its message, else the class of no cause."""
    head = peek(text)
    status = _STATUS_HEAD.match(head) or _STATUS.search(memoryview(text))
    if status is not None:
        return class_of_status(int(status[1])) or UNCLASSED
    return next((kind for marker, kind in _ERROR_HEADS if head.startswith(marker)), UNCLASSED)


def bad_call(text: msgspec.Raw) -> bool:
    """Whether an error says that the model left a needed argument out."""
    return peek(text).startswith(_BAD_CALL_HEADS)


def result_outcome(block: Block) -> str:
    """Outcome of a tool result.

    Raises:
        msgspec.DecodeError: the parts of the result are no objects.
    """
    if block.is_error is not None:
        return "failed" if true(block.is_error) else "ok"
    first = bytes(memoryview(block.content)[:1])
    if first == b"[":
        flags = [item.success for item in RESULT_ITEMS.decode(block.content) if item.success is not None]
        if flags:
            return "ok" if all(map(true, flags)) else "failed"
    elif first == b'"':
        tail = bytes(memoryview(block.content)[-PEEK_TAIL_BYTES:])
        if tail.endswith(_SUCCESS):
            return "ok"
        if tail.endswith(_NO_SUCCESS):
            return "failed"
    return "unclassified"
