# SPDX-License-Identifier: Apache-2.0
"""Claude Code transcripts: system and attachment rows.

Rules kept here:
* only the named subtypes are read, the others are ignored without looking at their fields;
* one retry row is one failed attempt;
* a queued text is a prompt when it was delivered and a person typed it.
"""

from __future__ import annotations

import msgspec

from windvane_client.events import Outcome, Prompt, TurnEnd
from windvane_client.readers import claude_rows as rows
from windvane_client.readers.claude_answers import failure, retry_class
from windvane_client.readers.claude_header import ROW
from windvane_client.readers.claude_prompts import command, local_output, tool_result
from windvane_client.readers.claude_state import Pass, Thread
from windvane_client.readers.lines import LineDecoder, peek
from windvane_privacy.catalogue import UNKNOWN

_MOVES = {"model_refusal_fallback": "refusal", "model_consent_fallback": "fallback", "model_fallback": "fallback"}
"""Moves that the program announces, and what they are evidence of."""
_TYPE = LineDecoder(rows.TypeOnly)


def system_row(now: Pass, row: rows.Row, thread: Thread) -> None:
    """One system row.

    Raises:
        msgspec.ValidationError: a field of a subtype that is read has another type.
    """
    subtype = row.subtype
    # What may turn out to be malformed comes first: a row that is rejected links nothing.
    fault = retry_class(row) if subtype == "api_error" else ""
    now.link(row)
    ended = subtype == "stop_hook_summary" and row.preventedContinuation in (False, "false")
    if subtype == "turn_duration" or ended:
        now.out.append(TurnEnd(**now.head.of("claude_code/end", now.row_id(row)), how="clean"))
    elif subtype == "api_error":
        failure(now, row, thread, fault, final=False)
    elif subtype == "scheduled_task_fire":
        thread.scheduled = True
    elif subtype == "local_command":
        head = peek(row.content) if memoryview(row.content) else b""
        if head.startswith(rows.COMMANDS):
            command(now, row, thread, head, local=True)
        else:
            local_output(now, thread, head)
    elif subtype in _MOVES:
        thread.asked = UNKNOWN
        now.out.append(now.model_set("claude_code/move", now.row_id(row), _MOVES[subtype]))


def attachment_row(now: Pass, row: rows.Row, thread: Thread, *, side: bool) -> None:
    """One attachment row.

    Raises:
        msgspec.ValidationError: a field of a type that is read has another type.
    """
    try:
        item = rows.ATTACHMENT.decode(row.attachment)
    except msgspec.ValidationError:
        if _TYPE.decode(bytes(row.attachment)).type in rows.ATTACHMENTS:
            raise
        now.link(row)
        return
    persons = item.type == "queued_command" and not side and _is_persons(item)
    now.link(row)
    place = now.row_id(row)
    if item.type == "queued_command":
        if persons:
            key = now.head.key(ROW, place)
            now.links.add(row.uuid, key)
            now.out.append(Prompt(**now.head.node(key), origin="queued"))
    elif item.type == "hook_blocking_error":
        if item.toolUseID and item.hookEvent in (None, "PreToolUse", "PermissionRequest"):
            thread.block(item.toolUseID)
            now.out.append(tool_result(now, item.toolUseID, "hook_block"))
    elif item.type == "goal_status":
        value = "failed" if rows.truth(item.failed) else "met" if rows.truth(item.met) else None
        if value is not None:
            event = Outcome(**now.head.of("claude_code/goal", place), value=value, evidence="goal_status")
            now.out.append(event)
    elif item.type == "max_turns_reached":
        now.out.append(TurnEnd(**now.head.of("claude_code/end", place), how="limit"))


def _is_persons(item: rows.Attachment) -> bool:
    """A queued text was typed by a person unless a field says otherwise."""
    kind = rows.KIND.decode(item.origin).kind if bytes(memoryview(item.origin)[:1]) == b"{" else None
    return kind in (None, "human") and item.commandMode in (None, "prompt") and not rows.truth(item.isMeta)
