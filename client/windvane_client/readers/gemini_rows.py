# SPDX-License-Identifier: Apache-2.0
"""Gemini CLI session files: the fields that are read, the closed lists of types, and the fixed markers.

Rules kept here:
* a message's content is `Raw`: its first bytes are compared with fixed markers, and no part of it becomes an object;
* no struct names arguments, results, thoughts, a summary or directories;
* type-like fields are `str`, never an enum: the decoder's message would quote the value.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

NONE: Final = msgspec.Raw()
"""Stands for an absent field; absence is tested by identity."""
Text = str | None

USER, MODEL, ERROR = "user", "gemini", "error"
TYPES: Final = frozenset({USER, MODEL, ERROR, "info", "warning"})
SUBAGENT: Final = "subagent"
OUTCOMES: Final = {"success": "ok", "error": "failed", "cancelled": "denied"}
"""Status of a tool call that is over to its outcome; a person's no and an abort are both `cancelled`."""
_HEAD_BYTES: Final = 160
_PEEK_BYTES: Final = 80
_FIRST_TEXT: Final = re.compile(rb'\s*(?:\[\s*)?(?:\{\s*"text"\s*:\s*)?')
_RESULT: Final = re.compile(rb'\s*(?:\[\s*)?\{\s*"functionResponse"')
_HARNESS: Final = (b'"<state_snapshot>', b'"<session_context>', b'"This is the Gemini CLI.')
_COMMAND: Final = (b'"/', b'"?')
_FAILED: Final = b'"[API Error'


class ToolCall(msgspec.Struct, gc=False):
    """One element of `toolCalls`."""

    id: Text = None
    name: Text = None
    status: Text = None
    timestamp: Text = None


class Patch(msgspec.Struct, gc=False):
    """`$set`: the session's header is written anew, or the model's own memory of the conversation is."""

    sessionId: Text = None
    messages: list[msgspec.Raw] | None = None


class Row(msgspec.Struct, gc=False, kw_only=True):
    """One message, or one line of a session: its header, a message, `$set` or `$rewindTo`."""

    id: Text = None
    type: Text = None
    timestamp: Text = None
    model: Text = None
    content: msgspec.Raw = NONE
    toolCalls: list[ToolCall] | None = None
    sessionId: Text | msgspec.UnsetType = msgspec.UNSET
    projectHash: Text = None
    kind: Text = None
    messages: list[msgspec.Raw] | None = None
    patch: Patch | None = msgspec.field(default=None, name="$set")
    rewind: Text = msgspec.field(default=None, name="$rewindTo")


class Header(msgspec.Struct, gc=False):
    """The session around the messages of a document."""

    sessionId: Text | msgspec.UnsetType = msgspec.UNSET
    projectHash: Text = None
    kind: Text = None


class TypeOnly(msgspec.Struct, gc=False):
    """What tells a message of unknown type from a malformed one."""

    type: Text = None


HEADER: Final = msgspec.json.Decoder(type=Header)
TYPE: Final = msgspec.json.Decoder(type=TypeOnly)
STRUCTS: Final = (ToolCall, Patch, Row, Header, TypeOnly)
"""For the field audit."""


def _text(content: msgspec.Raw) -> bytes:
    """The first bytes of a content's first text. The caller compares them with fixed markers and drops them."""
    head = bytes(memoryview(content)[:_HEAD_BYTES])
    found = _FIRST_TEXT.match(head)
    return head[found.end() :][:_PEEK_BYTES] if found is not None else b""


def origin(content: msgspec.Raw) -> str | None:
    """Who wrote a message of type `user`; None for the result of a tool, which is nobody's prompt."""
    if content is NONE:
        return "human"
    if _RESULT.match(memoryview(content)[:_HEAD_BYTES]):
        return None
    head = _text(content)
    if head.startswith(_HARNESS):
        return "system"
    return "command" if head.startswith(_COMMAND) else "human"


def failed_call(content: msgspec.Raw) -> bool:
    """Whether a message of type `error` says that a request to the model failed; other errors are the program's own."""
    return content is not NONE and _text(content).startswith(_FAILED)
