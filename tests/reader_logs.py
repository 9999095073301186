# SPDX-License-Identifier: Apache-2.0
"""One synthetic log for each reader out of the same list of steps, and the forms in which programs write its rows."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

import otlp_support as otel
from reader_support import Log, text, tool

CANARY = "CANARY-4711"

STEPS = [
    "user", "answer", "more", "tool", "result", "error", "retry", "gave_up", "command", "output", "model", "skill",
    "other", "end", "interrupt", "side", "progress", "broken", "unknown", "queued", "plan", "hook",
]  # fmt: skip


def claude_code(steps: Sequence[str]) -> list[object]:
    log = Log(entrypoint="cli")
    n = 0
    for step in steps:
        n += step in ("answer", "skill", "other", "side")
        match step:
            case "user":
                log.user()
            case "answer" | "more":
                log.answer(f"m{n}")
            case "tool":
                log.answer(f"m{n}", tool(f"t{n}"))
            case "result":
                log.result(f"t{n}")
            case "error":
                log.result(f"t{n}", "Exit code 1", is_error=True)
            case "retry":
                log.system("api_error", error={"status": 529}, retryAttempt=1)
            case "gave_up":
                log.answer("e", text("API Error: 500"), model="<synthetic>", isApiErrorMessage=True, apiErrorStatus=500)
            case "command":
                log.user("<command-name>/review</command-name>")
            case "output":
                log.user("<local-command-stdout>x")
            case "model":
                log.user("<command-name>/model</command-name>")
            case "skill":
                log.answer(f"m{n}", tool(f"t{n}", "Skill"))
            case "other":
                log.answer(f"m{n}", model="claude-haiku-4-5")
            case "end":
                log.system("turn_duration")
            case "interrupt":
                log.user("[Request interrupted by user]")
            case "side":
                log.answer(f"m{n}", isSidechain=True)
            case "progress":
                log.row("progress")
            case "broken":
                log.rows.append(b'{"type": "user"')
            case "unknown":
                log.row("hologram")
            case "queued":
                log.attachment("queued_command", prompt="x")
            case "plan":
                log.row("permission-mode", permissionMode="plan" if n % 2 else "default")
            case "hook":
                log.attachment("hook_blocking_error", toolUseID=f"t{n}", hookEvent="PreToolUse")
    return list(log.rows)


def canonical(steps: Sequence[str]) -> list[object]:
    rows: list[object] = []
    for n, step in enumerate(steps):
        head = {"v": 1, "person": "p", "conv": "c", "ts": 1_770_000_000_000_000 + n, "seq": n}
        if step == "broken":
            rows.append(b"{")
        elif step in ("user", "command"):
            rows.append({**head, "k": "prompt", "origin": "human"})
        else:
            rows.append({**head, "k": "call", "key": f"m{n}", "served": "gpt-5"})
    return rows


def codex(steps: Sequence[str]) -> list[object]:
    rows: list[object] = [
        {
            "timestamp": "2026-03-01T10:00:00Z", "type": "session_meta",
            "payload": {"id": "s1", "originator": "codex_cli_rs", "source": "cli"},
        }
    ]  # fmt: skip
    for n, step in enumerate(steps, 1):
        kind, payload = "event_msg", {"type": "agent_message", "message": "x"}
        match step:
            case "user" | "queued":
                payload = {"type": "user_message", "message": "x"}
            case "answer" | "side" | "skill":
                payload = {"type": "token_count", "info": {"total_token_usage": {"total_tokens": 10 * n}}}
            case "more":
                payload = {"type": "token_count", "info": None}
            case "tool" | "hook":
                kind, payload = "response_item", {"type": "function_call", "name": "shell", "call_id": f"c{n // 3}"}
            case "result" | "error":
                kind, payload = "response_item", {"type": "function_call_output", "call_id": f"c{n // 3}"}
            case "output":
                payload = {"type": "patch_apply_end", "call_id": f"c{n // 3}", "success": True}
            case "model" | "other" | "plan":
                kind, payload = "turn_context", {"model": "gpt-5" if n % 2 else "gpt-5.2-codex", "turn_id": f"t{n}"}
            case "command":
                payload = {"type": "task_started", "turn_id": f"t{n}"}
            case "end":
                payload = {"type": "task_complete", "turn_id": f"t{n}"}
            case "interrupt":
                payload = {"type": "turn_aborted", "turn_id": f"t{n}"}
            case "retry":
                payload = {"type": "thread_rolled_back", "num_turns": 1}
            case "unknown":
                payload = {"type": "hologram"}
            case "broken":
                rows.append(b'{"type": "event_msg"')
                continue
        rows.append({"timestamp": f"2026-03-01T10:{n:02}:00Z", "type": kind, "payload": payload})
    return rows


def cline(steps: Sequence[str]) -> list[object]:
    """A task file."""
    said = {
        "user": "user_feedback", "queued": "user_feedback", "command": "task", "answer": "text", "more": "reasoning",
        "result": "command_output", "error": "diff_error", "retry": "api_req_retried", "gave_up": "api_req_failed",
        "tool": "tool", "skill": "command", "end": "completion_result", "interrupt": "resume_task",
        "unknown": "hologram",
        "side": "api_req_started", "output": "api_req_started", "hook": "use_mcp_server", "progress": "task_progress",
    }  # fmt: skip
    rows: list[object] = []
    for n, step in enumerate(steps):
        if step == "broken":
            rows.append(b'{"ts": }')
            continue
        name = said.get(step, "text")
        kind = "ask" if name in ("api_req_failed", "resume_task") else "say"
        body = (
            json.dumps({"request": CANARY, "tool": "readFile", "cancelReason": "user_cancelled"}) if n % 3 else CANARY
        )
        info = {"providerId": "p", "modelId": "gpt-5.2" if step == "model" else "claude-opus-4.6",
                "mode": "plan" if step == "plan" else "act"}  # fmt: skip
        row = {"ts": 1_772_359_200_000 + 1000 * n, "type": kind, kind: name, "text": body, "modelInfo": info}
        rows.append({**row, "partial": step == "other"})
    return rows


def cline_session(steps: Sequence[str]) -> list[object]:
    """The messages of a session file."""
    rows: list[object] = []
    for n, step in enumerate(steps):
        row: dict[str, Any] = {"id": f"m{n}", "role": "assistant", "ts": 1_772_359_200_000 + 1000 * n,
                               "modelInfo": {"id": "claude-opus-4.6"},
                               "content": [{"type": "text", "text": CANARY}]}  # fmt: skip
        match step:
            case "broken":
                rows.append(b'{"role": }')
                continue
            case "user" | "command" | "queued":
                row = {"id": f"u{n}", "role": "user", "ts": row["ts"], "content": CANARY if n % 2 else row["content"]}
            case "tool" | "skill":
                row["content"] = [{"type": "tool_use", "id": f"t{n // 3}", "name": "read_file", "input": {"p": CANARY}}]
            case "result" | "error" | "output":
                block = {"type": "tool_result", "tool_use_id": f"t{n // 3}", "is_error": step == "error",
                         "content": CANARY}  # fmt: skip
                row = {"id": f"r{n}", "role": "user", "ts": row["ts"], "content": [block]}
            case "model":
                row["modelInfo"] = {"id": "gpt-5.2"}
            case "other":
                del row["ts"]
            case "unknown":
                row["role"] = "hologram"
        rows.append(row)
    return rows


def litellm(steps: Sequence[str]) -> list[object]:
    rows: list[object] = []
    for n, step in enumerate(steps):
        if step == "broken":
            rows.append(b'{"id": }')
            continue
        row: dict[str, Any] = {
            "id": f"i{n}", "litellm_call_id": f"c{n}", "trace_id": f"t{n // 6}", "session_id": "s1",
            "call_type": "acompletion", "status": "success", "startTime": 1_772_359_200.5 + n,
            "endTime": 1_772_359_201 + n,
            "model": "claude-opus-4.6", "model_group": "g", "cache_hit": None, "end_user": "u1", "api_key": "k",
            "request_tags": [CANARY, "windvane:coding"], "metadata": {"user_api_key_alias": CANARY},
            "hidden_params": {},
            "messages": [{"content": CANARY}], "response": CANARY, "user_agent": CANARY,
        }  # fmt: skip
        match step:
            case "error" | "retry" | "gave_up":
                about = {"error_code": "503", "error_class": "ServiceUnavailableError", "error_message": CANARY}
                row |= {"status": "failure", "error_information": about, "hidden_params": {
                    "additional_headers": {"x-litellm-attempted-retries": 1}}}  # fmt: skip
            case "other" | "model":
                row |= {"model": "gpt-5.2", "metadata": {"attempted_fallbacks": 1, "original_model_group": "g"}}
            case "tool" | "result":
                del row["id"], row["litellm_call_id"]
                times = {"startTime": "2026-03-01 10:00:00.5", "endTime": "2026-03-01T10:00:01Z"}
                row |= {"request_id": f"r{n}", **times, "metadata": json.dumps({"attempted_retries": 1})}
            case "hook" | "progress":
                row |= {"cache_hit": "True", "request_tags": json.dumps([CANARY])}
            case "side":
                row["call_type"] = "aembedding"
            case "unknown":
                row["call_type"] = "hologram"
        rows.append(row)
    return rows


def litellm_csv(steps: Sequence[str]) -> list[object]:
    """Rows of a table; the first is its header."""
    names = ["request_id", "startTime", "endTime", "call_type", "model", "session_id", "end_user", "status",
             "request_tags", "metadata", "messages"]  # fmt: skip
    rows: list[object] = [",".join(names).encode()]
    for n, row in enumerate(litellm([step for step in steps if step not in ("broken", "unknown")])):
        assert isinstance(row, dict)
        cells: dict[str, Any] = {**row, "request_id": f"r{n}", "messages": f'{CANARY}, "x"\nsecond line'}
        cells["request_tags"] = json.dumps([CANARY]) if n % 2 else '["windvane:coding"]'
        cells["metadata"] = json.dumps({"attempted_retries": n % 2, "status": row["status"]})
        rows.append(csv_line([cells[name] for name in names]))
    return rows


def csv_line(cells: Sequence[object]) -> bytes:
    """One row of a CSV file, without its line end."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(cells)
    return out.getvalue().removesuffix("\n").encode()


def feedback(steps: Sequence[str]) -> list[object]:
    """Open WebUI's votes."""
    rows: list[object] = []
    for n, step in enumerate(steps):
        if step == "broken":
            rows.append(b'{"id": }')
            continue
        data = {"rating": -1 if step == "error" else 1, "model_id": "gpt-5.2", "comment": CANARY, "tags": [CANARY],
                "sibling_model_ids": ["claude-opus-4.6", "gpt-5"][: 1 + n % 2]}  # fmt: skip
        meta = {"arena": step != "other", "model_id": "arena-model", "chat_id": f"c{n // 4}", "message_id": f"m{n}"}
        rows.append({"id": f"f{n}", "user_id": "u1", "type": "hologram" if step == "unknown" else "rating",
                     "data": data,
                     "meta": meta, "created_at": 1_772_359_200 + n, "updated_at": 1_772_359_300 + n,
                     "snapshot": {"chat": {"title": CANARY}}})  # fmt: skip
    return rows


def chats(steps: Sequence[str]) -> list[object]:
    """Open WebUI's chat statistics: every three steps are one chat."""
    rows: list[object] = []
    for n in range(0, len(steps), 3):
        part = steps[n : n + 3]
        messages: dict[str, object] = {}
        for at, step in enumerate(part):
            role, when = "user" if step in ("user", "command") else "assistant", 1_772_359_200 + n + at
            model = "gpt-5.2" if step in ("model", "other") else "claude-opus-4.6"
            messages[f"c{n}-{at}"] = {
                "id": f"c{n}-{at}",
                "role": role,
                "model": model,
                "timestamp": when,
                "rating": at % 2,
            }
        history = {"messages": messages, "currentId": f"c{n}-{len(part) - 1}"}
        rows.append({"id": f"c{n}", "user_id": "u1", "created_at": 1_772_359_200 + n, "updated_at": 1_772_359_300 + n,
                     "tags": ["windvane:writing", CANARY], "title": CANARY, "chat": {"history": history}})  # fmt: skip
    return rows


def claude_events(steps: Sequence[str]) -> list[object]:
    """Telemetry of Claude Code, one request of the exporter a step."""
    return [b"{]" if step == "broken" else otel.logs(_claude(n, step)) for n, step in enumerate(steps)]


def _claude(n: int, step: str) -> dict[str, Any]:
    model = {
        "model": "claude-haiku-4-5" if step in ("other", "model") else "claude-opus-4-6",
        "prompt__id": f"p{n // 4}",
    }
    more = {"event__sequence": n, "prompt": CANARY}
    match step:
        case "user" | "queued" | "command":
            return otel.claude(n, "user_prompt", prompt__id=f"p{n}", **more)
        case "error" | "retry":
            return otel.claude(n, "api_error", status_code="529", attempt="2", error=CANARY, **model, **more)
        case "gave_up":
            return otel.claude(
                n, "api_retries_exhausted", total_attempts="10", status_code="undefined", **model, **more
            )
        case "tool" | "hook":
            decision = {"decision": "reject", "source": "user_reject", "tool_name": "Bash"}
            return otel.claude(n, "tool_decision", **decision, **more)
        case "result" | "output":
            return otel.claude(n, "tool_result", success="false", error_type="validation", tool_name="Edit", **more)
        case "skill":
            return otel.claude(n, "api_refusal", **model, **more)
        case "unknown":
            return otel.claude(n, "hologram", **more)
    return otel.claude(n, "api_request", query_source="compact" if step == "side" else "main", **model, **more)


def codex_events(steps: Sequence[str]) -> list[object]:
    """Telemetry of Codex."""
    return [b"{]" if step == "broken" else otel.logs(_codex(n, step)) for n, step in enumerate(steps)]


def _codex(n: int, step: str) -> dict[str, Any]:
    more: dict[str, Any] = {"originator": "codex_cli_rs", "model": "gpt-5.2" if n % 5 == 4 else "gpt-5.1-codex"}
    match step:
        case "user" | "queued" | "command":
            return otel.codex(n, "user_prompt", prompt=CANARY, **more)
        case "error" | "retry":
            return otel.codex(
                n, "api_request", attempt=1, http__response__status_code=503, error__message=CANARY, **more
            )
        case "tool" | "hook":
            return otel.codex(n, "tool_decision", decision="denied", call_id=f"c{n}", tool_name="shell", **more)
        case "result" | "output":
            return otel.codex(
                n, "tool_result", success="true", call_id=f"c{n}", tool_name="shell", arguments=CANARY, **more
            )
        case "unknown":
            return otel.codex(n, "hologram", **more)
        case "progress":
            return otel.codex(n, "conversation_starts", **more)
    return otel.codex(n, "sse_event", event__kind="response.completed", input_token_count=n, **more)


def gemini_events(steps: Sequence[str]) -> list[object]:
    """Telemetry of Gemini CLI as its own outfile writes it: objects of the SDK."""
    return [b"{]" if step == "broken" else _sdk(_gemini(n, step)) for n, step in enumerate(steps)]


def _sdk(record: dict[str, Any]) -> dict[str, Any]:
    nanos = int(record["timeUnixNano"])
    attributes = {pair["key"]: next(iter(pair["value"].values())) for pair in record["attributes"]}
    return {"hrTime": [nanos // 10**9, nanos % 10**9], "attributes": attributes, "_body": CANARY}


def _gemini(n: int, step: str) -> dict[str, Any]:
    more = {"prompt_id": f"p{n // 4}", "model": "gemini-3-pro" if n % 5 == 4 else "gemini-2.5-pro", "role": "main"}
    match step:
        case "user" | "queued":
            return otel.gemini(n, "user_prompt", prompt=CANARY, **more)
        case "error" | "gave_up":
            return otel.gemini(n, "api_error", status_code=503, error__type="ApiError", **more)
        case "retry":
            return otel.gemini(n, "network_retry_attempt", attempt=1, max_attempts=3, error_type="timeout", **more)
        case "tool" | "result" | "hook":
            decided = {"decision": "reject" if step == "hook" else "accept", "function_args": CANARY}
            return otel.gemini(n, "tool_call", function_name="edit", success=step == "tool", **decided, **more)
        case "model" | "command":
            return otel.gemini(n, "slash_command.model", model_name="gemini-3-pro")
        case "other" | "plan":
            return otel.gemini(
                n, "model_routing", decision_model="gemini-3-pro", decision_source="override", failed=False
            )
        case "end":
            return otel.gemini(n, "conversation_finished", approvalMode="default")
        case "skill":
            return otel.gemini(n, "flash_fallback", **more)
        case "unknown":
            return otel.gemini(n, "hologram")
    return otel.gemini(n, "api_response", **{**more, "role": "subagent" if step == "side" else "main"})
