# SPDX-License-Identifier: Apache-2.0
"""Claude Code transcripts: answers, tool calls and failed attempts.

Rules kept here:
* one answer is one call, keyed by `message.id`, however many rows hold it; it is emitted again only if it changed;
* `<synthetic>` is no model; a model inside a skill or a subagent was nobody's choice;
* a failed attempt belongs to the request it was made for; the family asked is the last one that answered, or unknown.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from windvane_client.events import AttemptError
from windvane_client.readers import claude_rows as rows
from windvane_client.readers.claude_header import ROW
from windvane_client.readers.claude_state import Pass, Thread
from windvane_client.readers.failures import error_class
from windvane_client.readers.lines import Rejected
from windvane_privacy.catalogue import SYNTHETIC

_PLAN_TOOLS = frozenset({"EnterPlanMode", "ExitPlanMode"})
_blocks = rows.BLOCKS.decode


def answer(now: Pass, row: rows.Row, thread: Thread, *, side: bool) -> None:
    """One assistant row.

    Raises:
        Rejected: content that is neither text nor a list of blocks.
        msgspec.ValidationError: a block that is no block.
    """
    message = row.message
    if message is None:
        raise Rejected("missing_field")
    if row.isApiErrorMessage and rows.truth(row.isApiErrorMessage):
        _gave_up(now, row, thread, message)
        return
    if message.model != now.model:
        now.model, now.family = message.model, now.context.catalogue.resolve(message.model, now.context.aliases)
    family = now.family
    blocks: Sequence[rows.Block] = ()
    if row.type:
        try:
            blocks = _blocks(message.content)
        except msgspec.DecodeError:
            blocks = content_blocks(message.content)
    if family == SYNTHETIC:
        now.link(row)
        return
    head = now.head
    key = head.call_key(message.id) if message.id else head.key(ROW, now.row_id(row))
    if thread.call == key:  # a further row of the same answer
        above = thread.call_parent
    else:
        above = now.links.node(row.parentUuid or row.logicalParentUuid)
        if above == key:
            above = None
    now.links.add(row.uuid, key)
    if side:
        route = "subagent"
    else:
        if thread.command is not None or thread.model_command is not None:
            now.emit_waiting(thread)
        if thread.plan_changed:
            now.emit_plan(thread, now.row_id(row))
        route = thread.route(family)
    shown = (key, family, route)
    if thread.shown != shown:
        thread.shown = shown
        head.parent = above
        now.out.append(head.call(key, family, route))
    thread.answered(key, above, family, direct=route == "direct")
    head.parent = key
    for index, block in enumerate(blocks):
        if block.type == "tool_use":
            _tool_use(now, row, thread, block, index, key, family, side)
    if message.stop_reason == "end_turn":
        now.out.append(head.ended(key, "clean"))


def content_blocks(content: msgspec.Raw) -> list[rows.Block]:
    """The blocks of `message.content`; none where it is one text.

    Raises:
        Rejected: neither text nor list.
        msgspec.ValidationError: a block that is no block.
    """
    first = memoryview(content)[0]
    if first == rows.LIST:
        return _blocks(content)
    if first != rows.STRING:
        raise Rejected("wrong_type")
    return []


def _tool_use(
    now: Pass, row: rows.Row, thread: Thread, block: rows.Block, index: int, call: bytes, family: str, side: bool
) -> None:
    name = block.name or ""
    tool_class, origin = now.context.tools.classify(name)
    raw = block.id or f"{now.row_id(row)}:{index}"
    tool = now.head.tool(raw)
    tool.family, tool.tool_class, tool.outcome, tool.call, tool.origin = family, tool_class, "no_result", call, origin
    now.out.append(tool)
    if name in rows.AGENT_TOOLS:
        thread.agent_started(raw)
    elif name == "Skill":
        thread.skill_started(family)
    elif name in _PLAN_TOOLS and not side:
        now.out.append(now.model_set("claude_code/plan", raw, "harness"))


def _gave_up(now: Pass, row: rows.Row, thread: Thread, message: rows.Message) -> None:
    head = rows.first_text(message.content)
    marker = next((found for text, found in rows.GAVE_UP_MARKERS if head.startswith(text)), None)
    word = None
    if bytes(memoryview(row.error)[:1]) == b'"':
        word = msgspec.json.decode(row.error, type=str) if len(memoryview(row.error)) <= rows.MAX_CODE else None
    now.link(row)
    failure(now, row, thread, error_class(row.apiErrorStatus, (word,), marker), final=True)


def failure(now: Pass, row: rows.Row, thread: Thread, name: str, *, final: bool) -> None:
    """One failed attempt of class `name`; `final`: the program gave up."""
    now.emit_waiting(thread)
    attempt = _attempt(row)
    request = thread.request(row.uuid, row.parentUuid, attempt)
    if request is None:
        request = now.head.key("claude_code/request", now.row_id(row))
    thread.failed(row.uuid, request, attempt, final=final)
    now.out.append(
        AttemptError(
            **now.head.of("claude_code/attempt", now.row_id(row)),
            error_class=name,
            family=thread.asked,
            request=request,
            attempt=attempt,
            final=final,
        )
    )


def _attempt(row: rows.Row) -> int | None:
    value = row.retryAttempt
    if isinstance(value, str):
        value = int(value) if value.isascii() and value.isdigit() and len(value) < 6 else None
    return value if value is not None and 0 <= value < 100_000 else None


def retry_class(row: rows.Row) -> str:
    """Error class of a retry row."""
    failure = rows.Failure()
    if bytes(memoryview(row.error)[:1]) == b"{":
        failure = rows.FAILURE.decode(row.error)
    causes = (row.cause, failure.cause)
    codes = [rows.CAUSE.decode(one).code for one in causes if bytes(memoryview(one)[:1]) == b"{"]
    return error_class(failure.status, (failure.type, failure.code, *codes))
