# SPDX-License-Identifier: Apache-2.0
"""Claude Code transcripts: the fields that are read, and the fixed markers.

Rules kept here:
* a field that can hold text is absent or `Raw`, and of a `Raw` at most the first 80 bytes are compared with a marker;
* type-like fields are `str`, never an enum: the decoder's message would quote the value;
* structured fields come before markers.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import msgspec

from windvane_client.readers.lines import peek

NONE: Final = msgspec.Raw()
"""Stands for an absent field; absence is tested by identity."""
LIST: Final = ord("[")
STRING: Final = ord('"')


class Message(msgspec.Struct, gc=False):
    """`message` of a row."""

    id: str | None = None
    role: str | None = None
    model: str | None = None
    stop_reason: str | None = None
    content: msgspec.Raw = NONE


class Row(msgspec.Struct, gc=False):
    """One line of a transcript."""

    type: str | None = None
    subtype: str | None = None
    uuid: str | None = None
    parentUuid: str | None = None
    logicalParentUuid: str | None = None
    sessionId: str | msgspec.UnsetType | None = msgspec.UNSET
    timestamp: str | None = None
    version: str | None = None
    entrypoint: str | None = None
    sessionKind: str | None = None
    isSidechain: bool | str | None = None
    isMeta: bool | str | None = None
    isCompactSummary: bool | str | None = None
    isVisibleInTranscriptOnly: bool | str | None = None
    isApiErrorMessage: bool | str | None = None
    preventedContinuation: bool | str | None = None
    agentId: str | None = None
    promptSource: str | None = None
    permissionMode: str | None = None
    apiErrorStatus: int | str | None = None
    retryAttempt: int | str | None = None
    message: Message | None = None
    origin: msgspec.Raw = NONE
    toolDenialKind: msgspec.Raw = NONE
    attachment: msgspec.Raw = NONE
    error: msgspec.Raw = NONE
    cause: msgspec.Raw = NONE
    content: msgspec.Raw = NONE
    toolUseResult: msgspec.Raw = NONE


class TypeOnly(msgspec.Struct, gc=False):
    """What tells a row of unknown type from a malformed one."""

    type: str | None = None


class Block(msgspec.Struct, gc=False):
    """A content block; `input`, `thinking` and the like are never named."""

    type: str | None = None
    id: str | None = None
    name: str | None = None
    tool_use_id: str | None = None
    is_error: bool | str | None = None
    text: msgspec.Raw = NONE
    content: msgspec.Raw = NONE


class AgentResult(msgspec.Struct, gc=False):
    """`toolUseResult` of a subagent's task: which subagent it was. Its prompt and its answer are never named."""

    agentId: str | None = None


class Kind(msgspec.Struct, gc=False):
    """`origin` of a prompt."""

    kind: str | None = None


class Attachment(msgspec.Struct, gc=False):
    """`attachment` of a row."""

    type: str | None = None
    toolUseID: str | None = None
    hookEvent: str | None = None
    commandMode: str | None = None
    isMeta: bool | str | None = None
    met: bool | str | None = None
    failed: bool | str | None = None
    origin: msgspec.Raw = NONE


class Cause(msgspec.Struct, gc=False):
    """`cause` of a failed attempt."""

    code: str | int | None = None


class Failure(msgspec.Struct, gc=False):
    """`error` of a failed attempt."""

    status: int | str | None = None
    code: str | int | None = None
    type: str | None = None
    cause: msgspec.Raw = NONE


AGENT_RESULT: Final = msgspec.json.Decoder(type=AgentResult)
BLOCKS: Final = msgspec.json.Decoder(type=list[Block])
ATTACHMENT: Final = msgspec.json.Decoder(type=Attachment)
KIND: Final = msgspec.json.Decoder(type=Kind)
FAILURE: Final = msgspec.json.Decoder(type=Failure)
CAUSE: Final = msgspec.json.Decoder(type=Cause)
STRUCTS: Final = (Message, Row, TypeOnly, Block, AgentResult, Kind, Attachment, Cause, Failure)
"""For the field audit."""

MAX_CODE: Final = 66
"""Longest error word that is decoded, in JSON bytes; longer ones are text."""
ATTACHMENTS: Final = frozenset({"queued_command", "hook_blocking_error", "goal_status", "max_turns_reached"})

IGNORED: Final = frozenset({"file-history-snapshot", "summary", "progress", "queue-operation"})
TURNS: Final = frozenset({"user", "assistant"})
KNOWN: Final = IGNORED | TURNS | {"system", "attachment", "permission-mode", "pr-link"}

INTERACTIVE_ENTRYPOINTS: Final = {
    "cli": "claude_cli",
    "claude-vscode": "claude_ide",
    "claude-desktop": "claude_desktop",
}
BACKGROUND_KINDS: Final = frozenset({"background", "bg"})
PROMPT_SOURCES: Final = {
    "typed": "human",
    "suggestion_accepted": "human",
    "queued": "queued",
    "sdk": "sdk",
    "system": "system",
}

AGENT_TOOLS: Final = frozenset({"Task", "Agent"})
"""Tools that start a subagent, which writes its own file."""

INTERRUPT: Final = b"[Request interrupted by user"
COMMANDS: Final = (b"<command-name>", b"<command-message>")
LOCAL_OUTPUT: Final = b"<local-command-stdout>"
MODEL_KEPT: Final = b"<local-command-stdout>Kept model"
NEVER_PROMPTS: Final = (b"<local-command-", b"<bash-", b"<system-reminder", b"Caveat: The messages below")
SYSTEM_PROMPTS: Final = (b"<task-notification>", b"<teammate-message")

RESULT_MARKERS: Final[tuple[tuple[bytes, str], ...]] = (
    (b"The user doesn't want to proceed", "denied"),
    (b"<tool_use_error>InputValidationError", "malformed"),
    (b"<tool_use_error>Error: No such tool", "malformed"),
    (b"<tool_use_error>Sibling tool call errored", "no_result"),
    (b"<tool_use_error>File has been modified since read", "runtime"),
    (b"<tool_use_error>", "precondition"),
    (b"Exit code ", "runtime"),
    (b"Error: Exit code ", "runtime"),
    (b"MCP error -32", "tool_infra"),
    (b"Error: MCP error -32", "tool_infra"),
    (b"Request timed out", "tool_infra"),
    (b"Error: Request timed out", "tool_infra"),
    (b"Tool execution timed out", "tool_infra"),
)
"""First match wins."""
_TOO_LARGE: Final = (b"File content (", b" exceeds")

GAVE_UP_MARKERS: Final[tuple[tuple[bytes, str], ...]] = (
    (b"Request was aborted", "aborted"),
    (b"API Error: Request was aborted", "aborted"),
    (b"Claude AI usage limit reached", "rate_own"),
    (b"Claude usage limit reached", "rate_own"),
    (b"5-hour limit reached", "rate_own"),
    (b"You've hit your", "rate_own"),
    (b"You've reached your", "rate_own"),
    (b"You have hit your", "rate_own"),
    (b"Prompt is too long", "context"),
    (b"API Error: Repeated 529", "overload"),
    (b"API Error: 529", "overload"),
    (b"API Error: 429", "rate_vendor"),
    (b"API Error: 408", "timeout"),
    (b"API Error: 504", "timeout"),
    (b"API Error: 5", "5xx"),
    (b"API Error: 4", "client_4xx"),
    (b"API Error (Request timed out", "timeout"),
    (b"API Error: Request timed out", "timeout"),
    (b"Request timed out", "timeout"),
    (b"API Error (Connection error", "network"),
    (b"API Error: Connection error", "network"),
    (b"API Error: Unable to connect", "network"),
)
"""Text of the row that says that the program gave up: person and plan quota first, then the status."""


def truth(value: bool | str | None) -> bool:
    """A truth value that may be written as a word."""
    return value is True or value == "true"


def first_text(raw: msgspec.Raw) -> bytes:
    """The peek of a string, or of the first text block of a list; empty where there is none.

    Raises:
        msgspec.ValidationError: the list holds something that is no block.
    """
    head = peek(raw)
    if head or bytes(memoryview(raw)[:1]) != b"[":
        return head
    for block in BLOCKS.decode(raw):
        if block.type == "text":
            return peek(block.text)
    return b""


def classify_result(head: bytes) -> str:
    """Tool outcome of an error result from the first bytes of its text."""
    for marker, outcome in RESULT_MARKERS:
        if head.startswith(marker):
            return outcome
    if head.startswith(_TOO_LARGE[0]) and _TOO_LARGE[1] in head:
        return "precondition"
    return "failed"


def names_command(head: bytes, command: bytes) -> bool:
    """True where a command row runs exactly this slash command."""
    _, found, after = head.partition(b"<command-name>" + command)
    return bool(found) and (not after or after[:1] in b"< \\")


@lru_cache(maxsize=256)
def writes_attempts(version: str) -> bool:
    """True from log version 2.0.76 on, the oldest published schema with retry rows."""
    numbers: list[int] = []
    for part in version.split(".")[:3]:
        digits = part.split("-")[0]
        if not (digits.isascii() and digits.isdigit()) or len(digits) > 6:
            return False
        numbers.append(int(digits))
    return tuple(numbers) >= (2, 0, 76)
