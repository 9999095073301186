# SPDX-License-Identifier: Apache-2.0
"""Claude Code transcripts: user rows, that is prompts, commands, interrupts and tool results.

Rules kept here:
* a user row is a prompt only if nothing says otherwise; a field says it before a marker does;
* a command is a prompt only once a model call follows it; a model command is evidence, never a change by itself;
* an error result gets its outcome from a field or from the first 80 bytes, and from nothing else.
"""

from __future__ import annotations

from contextlib import suppress

import msgspec

from windvane_client.events import Close, Prompt, Tool, TurnEnd
from windvane_client.readers import claude_rows as rows
from windvane_client.readers.claude_answers import content_blocks
from windvane_client.readers.claude_header import AGENT, ROW
from windvane_client.readers.claude_state import Pass, Thread
from windvane_client.readers.lines import Rejected, peek
from windvane_privacy.catalogue import UNKNOWN


def user_row(now: Pass, row: rows.Row, thread: Thread, *, side: bool) -> None:
    """One user row.

    Raises:
        Rejected: no content, or content that is neither text nor a list of blocks.
        msgspec.ValidationError: a block that is no block.
    """
    if row.message is None:
        raise Rejected("missing_field")
    content = row.message.content
    blocks = content_blocks(content)
    if len(blocks) == 1 and blocks[0].type == "tool_result":  # nine user rows of ten
        outcome = _outcome(now, row, blocks[0])
        now.head.parent = now.links.pass_through(row.uuid, row.parentUuid or row.logicalParentUuid)
        if thread.agents or thread.blocked:
            _tool_result(now, row, thread, blocks[0].tool_use_id or "", outcome)
        else:
            now.out.append(tool_result(now, blocks[0].tool_use_id or "", outcome))
        return
    results = [block for block in blocks if block.type == "tool_result"] if blocks else blocks
    texts = [block.text for block in blocks if block.type == "text"] if blocks else [content]
    head = peek(texts[0]) if texts else b""
    if results:
        outcomes = [_outcome(now, row, block) for block in results]  # a row that is rejected links nothing
        now.link(row)
        for block, outcome in zip(results, outcomes, strict=True):
            _tool_result(now, row, thread, block.tool_use_id or "", outcome)
    if head.startswith(rows.INTERRUPT):
        # Dropped first: a command that started no turn is nobody's parent, also when the row is written twice.
        thread.drop_pending(now.links)
        now.link(row)
        now.out.append(TurnEnd(**now.head.of("claude_code/end", now.row_id(row)), how="interrupted"))
        return
    if results or side or _hidden(row):
        now.link(row)
    elif head.startswith(rows.COMMANDS) and row.promptSource not in ("sdk", "system"):
        command(now, row, thread, head, local=False)
    elif head.startswith(rows.NEVER_PROMPTS):
        now.link(row)
        local_output(now, thread, head)
    else:
        _prompt(now, row, thread, head)


def _hidden(row: rows.Row) -> bool:
    return any(map(rows.truth, (row.isMeta, row.isCompactSummary, row.isVisibleInTranscriptOnly)))


def _outcome(now: Pass, row: rows.Row, block: rows.Block) -> str:
    if block.tool_use_id is None:
        raise Rejected("missing_field")
    return _error_result(now, row, block) if block.is_error and rows.truth(block.is_error) else "ok"


def _tool_result(now: Pass, row: rows.Row, thread: Thread, tool: str, outcome: str) -> None:
    if thread.agents and tool in thread.agents:
        del thread.agents[tool]
        _subagent(now, row)
    if thread.blocked and tool in thread.blocked:
        outcome = "hook_block"
    now.out.append(tool_result(now, tool, outcome))


def tool_result(now: Pass, tool: str, outcome: str) -> Tool:
    """The result of a tool call; the call's own event names the tool and who asked for it."""
    result = now.head.tool(tool)
    result.family, result.tool_class, result.outcome, result.result_ts = UNKNOWN, "unknown", outcome, now.head.ts
    return result


def _subagent(now: Pass, row: rows.Row) -> None:
    """The result names the subagent: without its own file the subagent's tool calls are lost."""
    agent = None
    if bytes(memoryview(row.toolUseResult)[:1]) == b"{":
        # Only for coverage: a form that is not known here costs no row.
        with suppress(msgspec.ValidationError):
            agent = rows.AGENT_RESULT.decode(row.toolUseResult).agentId
    if agent:
        now.context.facts.subagents_named.add(now.head.key(AGENT, agent))


def _error_result(now: Pass, row: rows.Row, block: rows.Block) -> str:
    denial = bytes(memoryview(row.toolDenialKind)[:6])
    if denial not in (b"", b"null", b"false"):
        return "denied"
    head = rows.first_text(block.content) if memoryview(block.content) else b""
    for marker, outcome in now.context.tool_markers.items():
        if head.startswith(marker):
            return outcome
    return rows.classify_result(head)


def command(now: Pass, row: rows.Row, thread: Thread, head: bytes, *, local: bool) -> None:
    """A slash command; `local`: from a system row, which never starts a model turn."""
    thread.drop_pending(now.links)
    if rows.names_command(head, b"/model"):
        now.link(row)
        thread.model_command = now.model_set("claude_code/model", now.row_id(row), "person")
    elif rows.names_command(head, b"/clear"):
        now.link(row)
        now.out.append(Close(**now.head.of("claude_code/clear", now.row_id(row)), how="explicit"))
    elif local:
        now.link(row)
    else:
        key = now.head.key(ROW, now.row_id(row))
        now.head.parent = now.above(row)
        now.links.add(row.uuid, key)
        typed = rows.PROMPT_SOURCES.get(row.promptSource or "") in ("human", "queued")
        thread.command_mode = ("interactive", "promptSource") if typed else None
        event = Prompt(**now.head.node(key), origin="command")
        event.mode, event.mode_evidence = thread.command_mode or now.head.row_mode
        thread.command = event


def local_output(now: Pass, thread: Thread, head: bytes) -> None:
    """The output of a local command: it started no turn, and may say that the model was kept."""
    if not head.startswith(rows.LOCAL_OUTPUT):
        return
    if not head.startswith(rows.MODEL_KEPT):
        now.emit_model_command(thread)
    thread.drop_pending(now.links)


def _prompt(now: Pass, row: rows.Row, thread: Thread, head: bytes) -> None:
    origin, evidence = _origin(row, thread, head)
    now.emit_model_command(thread)
    thread.drop_pending(now.links)
    declared = None
    if evidence:
        declared = ("interactive" if origin in ("human", "queued") else "automation", evidence)
    now.head.turn_mode(declared)
    if origin != "system":
        thread.new_turn()
        thread.plan_mode(row.permissionMode)
    key = now.head.key(ROW, now.row_id(row))
    above = now.above(row)
    now.links.add(row.uuid, key)
    now.head.parent = above
    now.emit_plan(thread, now.row_id(row))
    now.out.append(Prompt(**now.head.node(key), origin=origin))


def _origin(row: rows.Row, thread: Thread, head: bytes) -> tuple[str, str]:
    """(origin, name of the field that declares it or ""). Fields come before markers."""
    if thread.scheduled:
        thread.scheduled = False
        return "scheduled", "scheduled_task_fire"
    source = rows.PROMPT_SOURCES.get(row.promptSource) if row.promptSource else None
    if source is not None:
        return source, "promptSource"
    kind = rows.KIND.decode(row.origin).kind if bytes(memoryview(row.origin)[:1]) == b"{" else None
    if kind is not None:
        return ("human" if kind == "human" else "system"), "origin.kind"
    if row.promptSource or head.startswith(rows.SYSTEM_PROMPTS):
        return "system", "promptSource" if row.promptSource else "marker"
    if row.entrypoint is not None and row.entrypoint.startswith("sdk-"):
        return "sdk", "entrypoint"
    return "human", ""
