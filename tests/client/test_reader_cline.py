# SPDX-License-Identifier: Apache-2.0
"""Cline and Roo: task files, session files, forks, and what was accepted, rejected, retried or cancelled."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reader_support import IDS, KEY, NOW, context, of
from windvane.main import run
from windvane_client.catalogue_builtin import builtin_catalogue
from windvane_client.events import AnyEvent
from windvane_client.observed import observe
from windvane_client.readers import READERS, SampleFacts, context_for
from windvane_client.readers.files import open_log
from windvane_client.readers.json_items import Items
from windvane_client.readers.protocol import ReadContext
from windvane_client.rules import Rules
from windvane_client.store import EventStore

CANARY = "CANARY-4711"
START = 1_772_359_200_000  # 2026-03-01T10:00:00Z in ms
A, B = "anthropic/claude-opus-4.6", "openai/gpt-5.2"
LONG_AFTER = ("--now", "2027-06-01T00:00:00Z")


class Task:
    """Rows of one task file, a second apart."""

    def __init__(self, start: int = START, model: str = A, mode: str = "act") -> None:
        self.ms, self.model, self.mode = start, model, mode
        self.rows: list[Any] = []

    def say(self, what: str, text: str = "x", **more: object) -> None:
        self._row("say", what, text, more)

    def ask(self, what: str, text: str = "x", **more: object) -> None:
        self._row("ask", what, text, more)

    def _row(self, kind: str, what: str, text: str, more: dict[str, object]) -> None:
        info = {"providerId": "p", "modelId": self.model, "mode": self.mode}
        self.rows.append({"ts": self.ms, "type": kind, kind: what, "text": text, "modelInfo": info, **more})
        self.ms += 1000

    def request(self, *, answer: bool = True, **body: object) -> None:
        self.say("api_req_started", json.dumps({"request": "x", **body}))
        if answer:
            self.say("text")

    def tool(self, name: str = "editedExistingFile") -> None:
        self.ask("tool", json.dumps({"tool": name, "path": "x"}))

    def done(self) -> None:
        self.say("completion_result")
        self.ask("completion_result", "")


def read(rows: object, ctx: ReadContext | None = None) -> tuple[list[AnyEvent], ReadContext]:
    ctx = ctx or context("cline", final=True)
    raw = rows if isinstance(rows, bytes) else json.dumps(rows).encode()
    return list(READERS["cline"].read(io.BytesIO(raw), ctx)), ctx


def seen(*tasks: Task) -> dict[str, Any]:
    store, facts = EventStore.temporary(), SampleFacts("cline")
    for n, task in enumerate(tasks):
        ctx = context("cline", final=True)
        ctx.facts, ctx.log_dir = facts, f"task{n}"
        store.add(read(task.rows, ctx)[0])
        store.add_rows("cline", ctx.rows)
    return observe(store, facts, store.rows(), catalogue=builtin_catalogue(), rules=Rules(), ids_key=KEY, now=NOW)


def preview(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    run(["member", "preview", *map(str, arguments), *LONG_AFTER, "--json"])
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


# --- the recorded session ---------------------------------------------------------------------------------------------


def test_the_header_is_found_beside_the_messages(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = shared / "samples" / "cline"
    expected = json.loads((folder / "real_session.json.expected.json").read_text("utf-8"))
    answer = preview(capsys, folder)
    assert [sample["observed"] for sample in answer["samples"] if not sample["refused"]] == [expected["observed"]]


def test_a_session_that_is_no_fork_is_read_as_worked_out(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shared / "samples" / "cline"
    wanted = json.loads((folder / "real_session.json.expected.json").read_text("utf-8"))
    wanted = wanted["information"]["alternative"]["if_not_a_fork"]
    header = json.loads((folder / "real_session.json").read_text("utf-8"))
    del header["metadata"]["fork"]
    (tmp_path / "s.json").write_text(json.dumps(header), "utf-8")
    shutil.copy(folder / "real_session.messages.json", tmp_path / "s.messages.json")
    found = preview(capsys, tmp_path, "--source", "cline")["observed"]
    assert found["calls"]["answered"] == wanted["answered"]
    assert found["prompts"]["person"] == wanted["person_prompts"]
    assert found["tools"] == {"basis": "bit", "outcomes": wanted["tools"]}
    assert (found["episodes"], found["completion"]) == (wanted["episodes"], wanted["completion"])


# --- session files ----------------------------------------------------------------------------------------------------


def message(n: int, role: str = "assistant", content: object = "x", **more: object) -> dict[str, object]:
    own = {"modelInfo": {"id": A, "family": "claude-opus"}} if role == "assistant" else {}
    return {"id": f"m{n}", "role": role, "content": content, "ts": START + n * 1000, **own, **more}


def session(messages: list[object], header: dict[str, object] | None = None, **more: object) -> tuple[Any, ReadContext]:
    ctx = context("cline", final=True, companion=json.dumps(header or {"interactive": True}).encode())
    return read({"sessionId": "s1", "agent": "lead", "messages": messages, **more}, ctx)


FORK = {"forkedFromSessionId": "s0", "forkedAt": START + 2500}


def test_messages_from_before_the_fork_are_the_parents() -> None:
    messages = [message(1, "user"), message(2), message(3, "user"), message(4)]
    events, ctx = session(messages, {"interactive": True, "metadata": {"fork": FORK}})
    assert [type(event).__name__ for event in events] == ["Prompt", "Call"]
    assert ctx.rows.read == 4
    assert ctx.facts.fork_parents == {IDS.conv("cline", "s0")}
    whole, _ = session(messages)
    assert len(whole) == 4
    # Fork suite: the same message id in parent and child is one call, whichever is read first.
    assert {event.key for event in events} < {event.key for event in whole}


def test_a_fork_without_a_readable_time_holds_nothing() -> None:
    header = {"interactive": True, "metadata": {"fork": {"forkedFromSessionId": "s0", "forkedAt": CANARY}}}
    assert session([message(1, "user"), message(2)], header)[0] == []


def test_a_message_without_a_time_takes_the_next_one() -> None:
    first = message(1, "user")
    del first["ts"]
    events, _ = session([first, message(2)])
    assert [event.ts for event in events] == [(START + 2000) * 1000] * 2
    assert [event.seq for event in events] == [1, 2]
    last = message(3, "user")
    last["ts"] = None
    assert [event.ts for event in session([message(2), last])[0]] == [(START + 2000) * 1000] * 2


def test_the_model_is_that_of_each_answer() -> None:
    header = {"interactive": True, "model": B, "metadata": {"model": B}}
    events, _ = session([message(1, "user"), message(2), message(3, modelInfo={"id": B})], header)
    assert [event.served for event in of(events, "Call")] == ["claude-opus-4.6", "gpt-5.2"]


@pytest.mark.parametrize(
    ("result", "outcome"),
    [
        ({"is_error": True}, "failed"),
        ({"is_error": False}, "ok"),
        ({"content": [{"result": CANARY, "success": True}]}, "ok"),
        ({"content": [{"success": True}, {"success": "false"}]}, "failed"),
        ({"content": json.dumps({"result": CANARY, "success": True}, separators=(",", ":"))}, "ok"),
        ({"content": json.dumps({"result": CANARY, "success": False}, separators=(",", ":"))}, "failed"),
        ({"content": json.dumps({"success": True, "result": CANARY})}, "unclassified"),
        ({"content": [{"type": "text", "text": CANARY}]}, "unclassified"),
    ],
)
def test_a_sessions_tool_outcome_is_read_from_its_flags(result: dict[str, object], outcome: str) -> None:
    call = message(2, content=[{"type": "tool_use", "id": "t1", "name": "editor", "input": {"x": CANARY}}])
    answer = message(3, "user", [{"type": "tool_result", "tool_use_id": "t1", **result}])
    events, _ = session([message(1, "user"), call, answer])
    tools = of(events, "Tool")
    assert [(tool.outcome, tool.tool_class) for tool in tools] == [("no_result", "edit"), (outcome, "unknown")]
    assert len(of(events, "Prompt")) == 1


def test_the_header_tells_the_mode_and_its_absence_leaves_it_unknown() -> None:
    for header, mode in (
        ({"interactive": "true"}, "interactive"),
        ({"interactive": False}, "automation"),
        ({"x": 1}, "unknown"),
    ):
        events, _ = session([message(1, "user"), message(2)], header)
        assert {event.mode for event in events} == {mode}
    assert {event.thread for event in session([message(2)], agent="helper")[0]} == {"side"}


def test_process_state_is_no_completion_and_failures_are_unknown() -> None:
    header = {"interactive": True, "status": "completed", "exit_code": 0}
    events, ctx = session([message(1, "user"), message(2)], header)
    assert of(events, "TurnEnd") == of(events, "Outcome") == []
    assert ctx.facts.failures_hidden
    assert not ctx.facts.infra_possible


# --- task files -------------------------------------------------------------------------------------------------------


def test_a_result_that_the_next_task_follows_was_accepted() -> None:
    first = Task()
    first.say("task")
    first.request()
    first.done()
    second = Task(first.ms + 600_000)
    second.say("task")
    assert seen(first, second)["completion"] == ["explicit_yes", "unknown"]
    late = Task(first.ms + 2 * 3_600_000)
    late.say("task")
    assert seen(first, late)["completion"] == ["unknown", "unknown"]


def test_silence_after_a_result_is_no_acceptance() -> None:
    task = Task()
    task.say("task")
    task.request()
    task.done()
    assert seen(task)["completion"] == ["unknown"]


def test_feedback_after_a_result_rejects_it() -> None:
    task = Task()
    task.say("task")
    task.request()
    task.done()
    task.say("user_feedback")
    task.request()
    assert seen(task)["completion"] == ["explicit_no"]
    early = Task()
    early.say("task")
    early.request()
    early.say("user_feedback")
    early.request()
    assert seen(early)["completion"] == ["unknown"]


def test_the_mistake_limit_ends_in_abandonment() -> None:
    task = Task()
    task.say("task")
    task.request()
    task.ask("mistake_limit_reached")
    assert seen(task)["completion"] == ["abandoned"]


def test_what_is_still_written_is_no_event() -> None:
    task = Task()
    task.say("task")
    task.request(answer=False)
    task.say("text", partial=True)
    task.say("reasoning", partial="true")
    assert of(read(task.rows)[0], "Call") == []
    task.say("text", partial=False)
    task.say("text")
    assert len(of(read(task.rows)[0], "Call")) == 1


@pytest.mark.parametrize(
    ("failure", "error_class"),
    [
        (json.dumps({"message": CANARY, "status": 529}), "overload"),
        (json.dumps({"message": CANARY, "code": "429"}), "rate_vendor"),
        ("503 " + CANARY, "5xx"),
        ("Connection error.", "network"),
        ("Request timed out.", "timeout"),
        ("401 " + CANARY, "client_4xx"),
        (CANARY, "client_4xx"),
    ],
)
def test_a_failed_request_is_classed_and_its_recovery_is_seen(failure: str, error_class: str) -> None:
    task = Task()
    task.say("task")
    task.request(answer=False)
    task.ask("api_req_failed", failure)
    task.say("api_req_retried")
    task.say("text")
    errors = of(read(task.rows)[0], "AttemptError")
    assert [(error.error_class, error.attempt, error.final) for error in errors] == [(error_class, 1, False)]
    assert seen(task)["infra"]["recovered_same"] == (error_class != "client_4xx")


def test_exhausted_retries_are_lost_and_a_persons_stop_is_cut() -> None:
    for reason, found in (("retries_exhausted", "lost"), ("user_cancelled", "cut")):
        task = Task()
        task.say("task")
        task.request(answer=False, cancelReason=reason)
        task.say("api_req_retry_delayed", "529 x", partial=False)
        task.say("api_req_retry_delayed", "529 x", partial=False)
        task.ask("resume_task")
        infra = seen(task)["infra"]
        assert {name for name, n in infra.items() if n} == {found}
        assert sum(infra.values()) == 1
    assert seen(task)["completion"] == ["abandoned"]
    assert of(read(task.rows)[0], "Call")[0].status == "aborted"


def test_a_stream_that_died_is_no_answer() -> None:
    task = Task()
    task.say("task")
    task.request(cancelReason="streaming_failed")
    task.request()
    assert seen(task)["calls"]["answered"] == 1


def test_a_cancel_reason_inside_a_prompt_is_not_read() -> None:
    task = Task()
    task.say("task")
    inner = json.dumps({"cancelReason": "user_cancelled"})
    task.say("api_req_started", json.dumps({"request": inner}))
    task.say("text")
    assert [call.status for call in of(read(task.rows)[0], "Call")] == ["ok"]


def test_a_new_model_in_one_mode_is_the_persons_and_plan_to_act_is_not() -> None:
    for mode, by in (("act", "person"), ("plan", "harness")):
        task = Task(mode=mode)
        task.say("task")
        task.request()
        task.model, task.mode = B, "act"
        task.say("user_feedback")
        task.request()
        sets = of(read(task.rows)[0], "ModelSet")
        assert [(one.family, one.by) for one in sets] == [("gpt-5.2", by)]
    same = Task()
    same.request()
    same.model = "claude-opus-4-6"
    same.request()
    assert of(read(same.rows)[0], "ModelSet") == []


def tools_of(*steps: tuple[str, str, str]) -> dict[str, int]:
    task = Task()
    task.say("task")
    task.request()
    for kind, what, text in steps:
        (task.say if kind == "say" else task.ask)(what, text)
    task.request()
    found: dict[str, int] = seen(task)["tools"]["outcomes"]
    return found


EDIT = ("ask", "tool", json.dumps({"tool": "editedExistingFile", "path": CANARY}))


@pytest.mark.parametrize(
    ("steps", "outcomes"),
    [
        ([EDIT], {"ok": 1}),
        ([EDIT, ("say", "diff_error", CANARY)], {"precondition": 1}),
        ([("say", "diff_error", CANARY)], {"precondition": 1}),
        ([EDIT, ("say", "error", CANARY)], {"failed": 1}),
        ([("say", "error", f"Cline tried to use {CANARY} without value")], {"malformed": 1}),
        ([("say", "error", f"Roo tried to use {CANARY} without value")], {"malformed": 1}),
        ([EDIT, ("say", "clineignore_error", CANARY)], {"denied": 1}),
        ([EDIT, ("say", "user_feedback", CANARY)], {"unclassified": 1}),
        ([("ask", "command", CANARY), ("say", "command_output", CANARY)], {"ok": 1}),
        ([("ask", "use_mcp_server", CANARY), ("say", "mcp_server_response", CANARY)], {"unclassified": 1}),
        ([("ask", "use_mcp_server", CANARY)], {"unclassified": 1}),
        ([EDIT, EDIT, ("say", "diff_error", CANARY)], {"ok": 1, "precondition": 1}),
    ],
)
def test_tool_rows_give_their_outcomes(steps: list[tuple[str, str, str]], outcomes: dict[str, int]) -> None:
    assert tools_of(*steps) == outcomes


def test_a_tool_that_nothing_follows_has_no_result() -> None:
    task = Task()
    task.say("task")
    task.request()
    task.tool("readFile")
    events, _ = read(task.rows)
    assert [(tool.tool_class, tool.outcome) for tool in of(events, "Tool")] == [("read", "no_result")]


def test_a_task_is_interactive_and_its_program_is_known_by_its_folder(tmp_path: Path) -> None:
    task = Task()
    task.say("task")
    task.request()
    for extension, client in (("saoudrizwan.claude-dev", "cline"), ("rooveterinaryinc.roo-cline", "roo")):
        path = tmp_path / extension / "tasks" / "17" / "ui_messages.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(task.rows), "utf-8")
        ctx = context_for(path, ids=IDS, catalogue=builtin_catalogue(), now=NOW, facts=SampleFacts("cline"))
        with open_log(path) as stream:
            events = list(READERS["cline"].read(stream, ctx))
        assert {(event.mode, event.mode_evidence, event.client) for event in events} == {
            ("interactive", "ui_messages", client)
        }


def test_the_usual_places_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    task = Task()
    task.say("task")
    path = tmp_path / ".config/Code/User/globalStorage/saoudrizwan.claude-dev/tasks/17/ui_messages.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(task.rows), "utf-8")
    answer = preview(capsys)
    assert [(sample["source"], sample["observed"]["prompts"]["person"]) for sample in answer["samples"]] == [
        ("cline", 1)
    ]


# --- documents that are broken, cut or grown --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ({"type": "say", "say": "text"}, "missing_field"),
        ({"type": "say", "ts": START}, "missing_field"),
        ({"ts": START}, "missing_field"),
        ({"type": "say", "say": "text", "ts": 5}, "bad_time"),
        ({"type": "say", "say": "text", "ts": CANARY}, "bad_time"),
        ({"type": "say", "say": "text", "ts": [CANARY]}, "wrong_type"),
        (CANARY, "not_an_object"),
        (42, "not_an_object"),
        ([CANARY], "not_an_object"),
    ],
)
def test_one_broken_row_costs_no_other(broken: object, reason: str) -> None:
    task = Task()
    task.say("task")
    task.request()
    whole, _ = read(task.rows)
    events, ctx = read([*task.rows[:2], broken, *task.rows[2:]])
    assert ctx.rows.reasons == {reason: 1}
    assert (ctx.rows.read, ctx.rows.rejected) == (4, 1)
    assert [event.key for event in events if type(event).__name__ != "Gap"] == [event.key for event in whole]
    assert len(of(events, "Gap")) == 1


@pytest.mark.parametrize(
    "raw", [b'[{"k": NaN}]', b'[{"a": "\0"}]', b"[" + b'{"zzz":' * 2000 + b"1" + b"}" * 2000 + b"]"]
)
def test_elements_that_are_no_json_are_rejected(raw: bytes) -> None:
    events, ctx = read(raw)
    assert (ctx.rows.read, ctx.rows.rejected, len(events)) == (1, 1, 1)


@pytest.mark.parametrize("raw", [b"nonsense", b"{", b'{"interactive": [1]}', b'"text"', b"42"])
def test_a_file_that_is_no_log_is_one_rejected_row(raw: bytes) -> None:
    events, ctx = read(raw)
    assert (ctx.rows.read, ctx.rows.rejected) == (1, 1)
    assert [(type(event).__name__, event.what) for event in events] == [("Gap", "rows_rejected")]


@pytest.mark.parametrize("raw", [b"", b"  \n", b"[]", b"\xef\xbb\xbf[]", b'{"interactive": true}', b'{"messages": []}'])
def test_an_empty_file_and_a_header_have_no_rows(raw: bytes) -> None:
    events, ctx = read(raw)
    assert (ctx.rows.read, ctx.rows.rejected, events) == (0, 0, [])


def test_an_unknown_type_is_counted_before_any_field_is_checked() -> None:
    for row in (
        {"type": "hologram"},
        {"type": "say", "say": "hologram", "ts": [1]},
        {"type": "ask", "ask": "hologram"},
    ):
        events, ctx = read([row])
        assert (ctx.rows.unknown, ctx.rows.rejected, events) == (1, 0, [])
    _, ctx = session([{"role": "hologram", "ts": [1]}])
    assert (ctx.rows.unknown, ctx.rows.rejected) == (1, 0)


def documents() -> list[bytes]:
    task = Task()
    task.say("task", 'a "quoted" [text] {with} \\ signs')
    task.request()
    task.tool()
    task.say("diff_error")
    task.request(answer=False)
    task.ask("api_req_failed", "529 x")
    task.say("api_req_retried")
    task.done()
    task.say("user_feedback")
    messages = [message(1, "user"), message(2, content=[{"type": "tool_use", "id": "t", "name": "editor"}])]
    messages.append(message(3, "user", [{"type": "tool_result", "tool_use_id": "t", "is_error": True}]))
    inside = {"version": 1, "note": {"messages": [1]}, "sessionId": "s1", "messages": messages, "after": [{}]}
    return [json.dumps(task.rows).encode(), json.dumps(inside, indent=1).encode()]


def merged(events: list[AnyEvent]) -> list[AnyEvent]:
    with EventStore.temporary() as store:
        store.add(events)
        return [e for person in store.people() for conv in store.conversations(person) for e in conv.events]


@given(st.sampled_from(documents()), st.lists(st.integers(0, 1000), max_size=4))
@settings(max_examples=60, deadline=None)
def test_a_file_that_is_read_while_it_grows_gives_the_same_events_and_counts(raw: bytes, cuts: list[int]) -> None:
    whole, once = read(raw, context("cline"))
    found: list[AnyEvent] = []
    offset = read_rows = 0
    for cut in [*sorted(len(raw) * c // 1000 for c in cuts), len(raw)]:
        ctx = context("cline", offset=offset)
        found += read(raw[:cut], ctx)[0]
        offset, read_rows = ctx.offset, read_rows + ctx.rows.read
    assert merged(found) == merged(whole)
    assert (offset, read_rows) == (len(raw), once.rows.read)


@given(st.sampled_from(documents()), st.integers(0, 10_000), st.binary(max_size=3), st.integers(0, 40))
@settings(max_examples=200, deadline=None)
def test_damage_is_counted_and_never_raised(raw: bytes, at: int, put: bytes, cut: int) -> None:
    at %= len(raw)
    _, ctx = read(raw[:at] + put + raw[at + cut :])
    assert ctx.rows.rejected == sum(ctx.rows.reasons.values()) <= ctx.rows.read


def test_of_a_cut_file_the_rows_before_the_cut_are_read() -> None:
    raw = documents()[0]
    whole, _ = read(raw)
    events, ctx = read(raw[:-30])
    assert ctx.rows.reasons == {"truncated": 1}
    assert [event.key for event in events if type(event).__name__ != "Gap"] == [event.key for event in whole[:-2]]


def test_elements_are_split_outside_strings() -> None:
    items = Items(
        b'{"a": "\\"messages\\": [", "messages" : [ {"x": "]}\\\\"} , {"y": [1, {}]} ], "z": []}', b"messages"
    )
    assert [raw for raw, _ in items] == [b'{"x": "]}\\\\"}', b'{"y": [1, {}]}']
    assert items.complete


def test_no_text_of_a_task_or_session_is_in_an_event() -> None:
    def shown(raw: object, companion: bytes = b"") -> str:
        events, ctx = read(raw, context("cline", final=True, companion=companion))
        packed = msgspec.msgpack.encode(events).decode("latin-1")
        return repr(events) + packed + repr(ctx.rows) + repr(ctx.facts)

    names = ["task", "api_req_started", "text", "error", "diff_error", "error_retry", "command_output", "user_feedback"]
    task = Task(model=CANARY, mode=CANARY)
    for name in names:
        task.say(name, CANARY)
    for name in ("tool", "command", "use_mcp_server", "api_req_failed", "followup", "completion_result"):
        task.ask(name, CANARY)
    assert len(read(task.rows)[0]) > 8
    assert CANARY not in shown(task.rows)
    header = {"session_id": CANARY, "cwd": CANARY, "interactive": CANARY, "metadata": {"fork": {"forkedAt": CANARY}}}
    blocks = [{"type": "tool_use", "id": CANARY, "name": CANARY, "input": {CANARY: CANARY}}, {"type": CANARY}]
    results = [{"type": "tool_result", "tool_use_id": CANARY, "content": CANARY}]
    messages = [
        message(1, "user", CANARY),
        message(2, content=blocks, modelInfo={"id": CANARY}),
        message(3, "user", results),
    ]
    for part in (b"", json.dumps(header).encode()):
        assert CANARY not in shown({"sessionId": CANARY, "agent": CANARY, "messages": messages}, part)
    # Every field of every row is mistaken for the canary once: no error path lets it out.
    for wrong in (CANARY, [CANARY], {CANARY: CANARY}, 7):
        for row in task.rows:
            for name in row:
                assert CANARY not in shown([{**row, name: wrong}])
        for one in messages:
            for name in one:
                assert CANARY not in shown({"messages": [{**one, name: wrong}]})


# --- what the source cannot say ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("without", "key", "unknown"),
    [
        ("modelInfo", "switches", {"eligible_episodes": None, "person_made": None, "by_cause": None}),
        ("completion_result", "completion", ["unknown", "unknown"]),
    ],
)
def test_without_its_evidence_a_value_is_unknown(without: str, key: str, unknown: object) -> None:
    first = Task()
    first.say("task")
    first.request()
    first.done()
    second = Task(first.ms + 600_000)
    second.say("task")
    second.request()
    assert seen(first, second)[key] != unknown
    for task in (first, second):
        task.rows = [row for row in task.rows if without not in (row.get("say"), row.get("ask"))]
        for row in task.rows:
            row.pop(without, None)
    assert seen(first, second)[key] == unknown
