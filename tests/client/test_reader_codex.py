# SPDX-License-Identifier: Apache-2.0
"""Codex rollouts: what is counted once, what a fork copies, and what the log cannot tell."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from reader_support import IDS, KEY, NOW, context, lines, of, read
from windvane.main import run
from windvane_client import capabilities
from windvane_client.catalogue_builtin import builtin_catalogue
from windvane_client.events import AnyEvent
from windvane_client.observed import observe
from windvane_client.readers import READERS, SampleFacts, context_for
from windvane_client.readers.files import open_log
from windvane_client.readers.protocol import ReadContext
from windvane_client.rules import Rules
from windvane_client.store import EventStore

CANARY = "CANARY-4711"
START = 1_772_359_200_000  # 2026-03-01T10:00:00Z in ms


def uuid7(ms: int, n: int = 1) -> str:
    text = f"{ms:012x}"
    return f"{text[:8]}-{text[8:]}-7000-8000-{n:012x}"


class Rollout:
    """Rows of one synthetic session, a second apart."""

    def __init__(self, session: str = "s1", start: int = START, **meta: object) -> None:
        self.ms = start
        self.rows: list[Any] = []
        self.total = 0
        self.session = session
        self.row("session_meta", {"id": session, "originator": "codex_cli_rs", "source": "cli", **meta})

    def row(self, kind: str, payload: dict[str, Any]) -> None:
        self.rows.append({"timestamp": stamp(self.ms), "type": kind, "payload": payload})
        self.ms += 1000

    def event(self, what: str, /, **more: object) -> None:
        self.row("event_msg", {"type": what, **more})

    def prompt(self, **more: object) -> None:
        self.event("user_message", message="x", **more)

    def tokens(self, add: int = 100, **info: object) -> None:
        self.total += add
        self.event("token_count", info={"total_token_usage": {"total_tokens": self.total}, **info})

    def turn(self, model: str = "gpt-5.2-codex", end: str | None = "task_complete", turn_id: str | None = None) -> None:
        turn_id = turn_id or uuid7(self.ms)
        self.event("task_started", turn_id=turn_id)
        self.row("turn_context", {"model": model, "turn_id": turn_id})
        self.prompt()
        self.row("response_item", {"type": "reasoning"})
        self.tokens()
        if end is not None:
            self.event(end, turn_id=turn_id)

    def tool(self, call_id: str = "c1", name: str = "apply_patch") -> None:
        self.row("response_item", {"type": "custom_tool_call", "call_id": call_id, "name": name, "input": "x"})

    def output(self, call_id: str = "c1") -> None:
        self.row("response_item", {"type": "custom_tool_call_output", "call_id": call_id, "output": "x"})

    def read(self) -> list[AnyEvent]:
        return read(self.rows, context("codex"))[0]


def stamp(ms: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def restamped(rows: list[Any], ms: int) -> list[Any]:
    return [{**row, "timestamp": stamp(ms)} for row in rows]


def fork_of(parent: Rollout, *, session: str | None = None, after: int = 60_000, **meta: object) -> Rollout:
    """A child that first copies all rows of its parent under the time of the fork."""
    at = parent.ms + after
    child = Rollout(session or uuid7(at, 2), at, forked_from_id=parent.session, **meta)
    child.rows += restamped(parent.rows, at)
    child.total = parent.total
    return child


def seen(*logs: list[Any]) -> tuple[dict[str, Any], EventStore]:
    store, facts = EventStore.temporary(), SampleFacts("codex")
    for n, rows in enumerate(logs):
        ctx = context("codex")
        ctx.facts, ctx.final, ctx.file_key = facts, True, bytes([n]) * 16
        store.add(read(rows, ctx)[0])
        store.add_rows("codex", ctx.rows)
    catalogue = builtin_catalogue()
    found = observe(store, facts, store.rows(), catalogue=catalogue, rules=Rules(), ids_key=KEY, now=NOW)
    return found, store


# --- calls and turns --------------------------------------------------------------------------------------------------


def test_a_call_is_a_token_count_whose_total_changed() -> None:
    log = Rollout()
    log.event("token_count", info=None)
    log.event("token_count", info={"total_token_usage": {"total_tokens": 0}})
    log.tokens(100)
    log.tokens(0)
    log.tokens(50)
    assert len(of(log.read(), "Call")) == 2


def test_six_equal_turn_contexts_are_one_turn() -> None:
    log = Rollout()
    log.prompt()
    for _ in range(6):
        log.row("turn_context", {"model": "gpt-5.2-codex"})
    found, _ = seen(log.rows)
    assert (found["episodes"], found["prompts"]["person"], found["calls"]["answered"]) == (1, 1, None)


def test_text_that_the_program_put_in_is_no_prompt() -> None:
    log = Rollout()
    log.row("response_item", {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]})
    log.prompt(kind="environment_context")
    log.prompt(kind="plain")
    assert len(of(log.read(), "Prompt")) == 1


def test_text_typed_while_the_agent_works_is_queued() -> None:
    log = Rollout()
    log.turn(end=None)
    log.prompt()
    log.event("task_complete")
    log.turn()
    assert [event.origin for event in of(log.read(), "Prompt")] == ["human", "queued", "human"]


@pytest.mark.parametrize("spelling", ["task_complete", "turn_complete"])
def test_both_spellings_of_a_clean_end_are_one(spelling: str) -> None:
    log = Rollout()
    log.turn(end=spelling)
    assert [event.how for event in of(log.read(), "TurnEnd")] == ["clean"]
    assert seen(log.rows)[0]["completion"] == ["clean_end"]


def test_an_aborted_turn_is_interrupted() -> None:
    log = Rollout()
    log.turn(end="turn_aborted")
    assert seen(log.rows)[0]["completion"] == ["abandoned"]


@pytest.mark.parametrize(
    ("error", "error_class"),
    [
        ({"codex_error_info": "usage_limit_exceeded", "message": CANARY}, "rate_own"),
        ({"codex_error_info": "context_window_exceeded"}, "context"),
        ({"codex_error_info": {"http_connection_failed": {"http_status_code": 500}}}, "network"),
        ({"message": CANARY}, "client_4xx"),
    ],
)
def test_a_turn_that_ends_with_an_error_is_no_clean_end(error: dict[str, object], error_class: str) -> None:
    log = Rollout()
    log.turn(end=None)
    log.event("task_complete", error=error)
    events = log.read()
    assert [event.how for event in of(events, "TurnEnd")] == ["error"]
    assert [event.error_class for event in of(events, "AttemptError")] == [error_class]
    assert seen(log.rows)[0]["completion"] == ["abandoned"]


def test_rolled_back_turns_are_rewound() -> None:
    log = Rollout()
    log.turn()
    log.turn(end=None)
    log.tool("c9")
    log.event("patch_apply_end", call_id="c9", success=False)
    log.event("task_complete")
    log.event("thread_rolled_back", num_turns=1)
    log.turn()
    found, _ = seen(log.rows)
    assert found["tools"]["outcomes"] == {}
    assert found["episodes"] == 1
    log.rows = [row for row in log.rows if row["payload"].get("type") != "thread_rolled_back"]
    assert seen(log.rows)[0]["tools"]["outcomes"] == {"failed": 1}


def test_work_that_was_taken_back_last_is_no_clean_end() -> None:
    log = Rollout()
    log.turn()
    log.event("thread_rolled_back", num_turns=1)
    assert seen(log.rows)[0]["completion"] == ["unknown"]


# --- tools ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("end", "outcome"),
    [
        ({"type": "patch_apply_end", "success": True}, "ok"),
        ({"type": "patch_apply_end", "success": "false"}, "failed"),
        ({"type": "mcp_tool_call_end", "result": {"Ok": {"content": [CANARY], "is_error": False}}}, "ok"),
        ({"type": "mcp_tool_call_end", "result": {"Ok": {"content": [], "isError": True}}}, "failed"),
        ({"type": "mcp_tool_call_end", "result": {"Err": CANARY}}, "failed"),
        ({"type": "exec_command_end", "exit_code": 1}, "unclassified"),
        (None, "unclassified"),
    ],
)
def test_only_a_typed_end_tells_a_tools_outcome(end: dict[str, object] | None, outcome: str) -> None:
    log = Rollout()
    log.turn(end=None)
    log.tool()
    if end is not None:
        log.row("event_msg", {**end, "call_id": "c1"})
    log.output()
    assert seen(log.rows)[0]["tools"] == {"basis": "bit", "outcomes": {outcome: 1}}


def test_two_tools_under_one_call_id_are_two() -> None:
    log = Rollout()
    log.tool("same", "shell")
    log.tool("same", "apply_patch")
    assert seen(log.rows)[0]["tools"]["outcomes"] == {"no_result": 2}


# --- forks ------------------------------------------------------------------------------------------------------------


def answered(*logs: list[Any]) -> int:
    count: int = seen(*logs)[0]["calls"]["answered"]
    return count


def test_R7_a_fork_counts_only_its_own_turns_before_after_and_without_its_parent() -> None:
    """ccusage#950, CodexBar#3524: a fork replays its parent and inherits its totals: the child counts only its own."""
    parent = Rollout(uuid7(START))
    for _ in range(5):
        parent.turn()
    child = fork_of(parent)
    child.turn()
    assert answered(child.rows) == 1
    assert answered(parent.rows, child.rows) == answered(child.rows, parent.rows) == 6
    found, _ = seen(child.rows)
    assert (found["episodes"], found["conversations"], found["prompts"]["person"]) == (1, 1, 1)


def test_R7_ninety_one_forks_of_one_parent_add_ninety_one_calls() -> None:
    """ccusage#950, CodexBar#3524: a fork replays its parent and inherits its totals: the child counts only its own."""
    parent = Rollout(uuid7(START))
    parent.turn()
    parent.turn()
    children = []
    for n in range(91):
        child = fork_of(parent, session=uuid7(parent.ms + 60_000, n + 2))
        child.turn()
        children.append(child.rows)
    assert answered(parent.rows, *children) == 2 + 91


def test_R7_a_total_that_a_child_inherits_is_no_call() -> None:
    """ccusage#950, CodexBar#3524: a fork replays its parent and inherits its totals: the child counts only its own."""
    child = Rollout(uuid7(START), START, forked_from_id="parent")
    child.event("task_started", turn_id=uuid7(START + 5))
    child.prompt()
    child.tokens(1_000_000)
    assert answered(child.rows) == 0
    child.row("response_item", {"type": "message", "role": "assistant", "content": []})
    child.tokens(10)
    assert answered(child.rows) == 1


def test_R8_a_copy_that_takes_seconds_is_found_and_work_of_the_same_second_is_kept() -> None:
    """ccusage#1460: a replay that takes seconds is found, real work of the same second is kept."""
    parent = Rollout(uuid7(START))
    for _ in range(3):
        parent.turn()
    fork = parent.ms + 60_000
    child = Rollout(uuid7(fork, 2), fork, forked_from_id=parent.session)
    for n, row in enumerate(parent.rows):
        child.rows += restamped([row], fork + n * 300)  # the copy spans several seconds
    child.total = parent.total
    child.ms = fork + len(parent.rows) * 300
    child.turn()
    for row in child.rows[-6:]:
        row["timestamp"] = stamp(fork + (len(parent.rows) - 1) * 300)  # its own turn in the last second of the copy
    assert answered(child.rows) == 1


def test_R9_two_subagents_with_equal_totals_stay_two() -> None:
    """tokscale#679: two subagents with equal token counts stay two."""
    logs = []
    for name in ("a1", "a2"):
        log = Rollout(name, source={"subagent": {"thread_spawn": {"parent_thread_id": "s1", "depth": 1}}})
        log.turn()
        logs.append(log.rows)
    main = Rollout("s1")
    main.turn()
    found, _ = seen(main.rows, *logs)
    assert found["calls"] == {"answered": 3, "failed": None, "side_answered": 2}
    assert (found["conversations"], found["prompts"]["person"], found["episodes"]) == (1, 1, 1)


def test_a_copied_header_does_not_change_whose_session_it_is() -> None:
    parent = Rollout(uuid7(START), originator="codex_exec")
    parent.turn()
    child = fork_of(parent)
    child.turn()
    child.rows.append({**child.rows[0], "timestamp": stamp(child.ms)})  # its own header once more
    child.turn()
    assert answered(child.rows) == 2
    assert {event.mode for event in of(child.read(), "Prompt")} == {"interactive"}


def test_a_fork_whose_turns_have_no_dates_holds_nothing_and_says_so() -> None:
    parent = Rollout("p")
    parent.turn(turn_id="1")
    child = fork_of(parent, session="c")
    child.turn(turn_id="2")
    found, _ = seen(child.rows)
    assert (found["calls"]["answered"], found["prompts"]["person"]) == (0, 0)
    assert {event.what for event in of(child.read(), "Gap")} == {"schema_unknown"}


def test_the_prompt_that_stands_before_the_first_own_turn_of_a_fork_is_its_own() -> None:
    parent = Rollout(uuid7(START))
    parent.turn()
    child = fork_of(parent)
    child.prompt()
    child.row("turn_context", {"model": "gpt-5.2-codex", "turn_id": uuid7(child.ms)})
    child.row("response_item", {"type": "reasoning"})
    child.tokens()
    found, _ = seen(child.rows)
    assert (found["prompts"]["person"], found["calls"]["answered"]) == (1, 1)


def test_a_missing_parent_is_a_gap_and_a_present_one_is_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parent = Rollout(uuid7(START))
    parent.turn()
    child = fork_of(parent)
    child.turn()
    for name, rows in (("parent", parent.rows), ("child", child.rows)):
        (tmp_path / f"rollout-{name}.jsonl").write_bytes(lines(rows))

    def gaps(*names: str) -> list[str]:
        run(
            ["member", "preview", *(str(tmp_path / f"rollout-{n}.jsonl") for n in names), "--source", "codex", "--json"]
        )
        found: list[str] = json.loads(capsys.readouterr().out)["gaps"]
        return found

    assert gaps("child") == ["fork_parent_missing"]
    assert gaps("child", "parent") == gaps("parent", "child") == []


def test_an_archived_copy_adds_nothing() -> None:
    log = Rollout()
    log.turn()
    log.tool()
    log.turn()
    once, _ = seen(log.rows)
    twice, _ = seen(log.rows, log.rows)
    once.pop("rows"), twice.pop("rows")
    assert once == twice


# --- mode, version drift, content -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("meta", "mode", "client"),
    [
        ({}, "interactive", "codex_cli"),
        ({"originator": "codex-tui"}, "interactive", "codex_cli"),
        ({"originator": "Codex Desktop", "source": "vscode"}, "interactive", "codex_desktop"),
        ({"originator": "codex_vscode", "source": "vscode"}, "interactive", "codex_ide"),
        ({"originator": "codex_exec", "source": "exec"}, "automation", "codex_exec"),
        ({"originator": "codex_cli_rs", "source": "exec"}, "automation", "codex_exec"),
        ({"originator": "somebody"}, "unknown", "other"),
        ({"originator": "codex_cli_rs", "source": "mcp"}, "unknown", "codex_cli"),
        ({"originator": None, "source": "cli"}, "interactive", "codex_cli"),
        ({"originator": None, "source": None}, "unknown", "other"),
    ],
)
def test_the_header_tells_the_mode(meta: dict[str, object], mode: str, client: str) -> None:
    log = Rollout(**meta)  # type: ignore[arg-type]
    log.turn()
    prompt = of(log.read(), "Prompt")[0]
    assert (prompt.mode, prompt.client) == (mode, client)
    assert (prompt.origin == "sdk") == (mode == "automation")


def test_the_session_in_the_files_name_stands_in_for_a_missing_header() -> None:
    log = Rollout()
    log.turn()
    ctx = context("codex")
    ctx.session_hint = "rollout-2026-03-01T10-00-00-11111111-1111-4111-8111-111111111111"
    named, _ = read(log.rows[1:], ctx)
    assert {event.conv for event in named} == {IDS.conv("codex", "11111111-1111-4111-8111-111111111111")}
    assert ctx.facts.conversations is None
    assert {event.conv for event in read(log.rows[1:], context("codex"))[0]} == {None}


@pytest.mark.parametrize(
    "row",
    [
        {"type": "hologram", "payload": {"type": CANARY}},
        {"type": "hologram", "payload": 5},
        {"type": "event_msg", "payload": {"type": "hologram", "turn_id": [CANARY]}},
        {"type": "response_item", "payload": {"type": "hologram"}},
    ],
)
def test_an_unknown_type_is_counted_before_any_field_is_checked(row: dict[str, object]) -> None:
    events, ctx = read([row], context("codex"))
    assert (ctx.rows.unknown, ctx.rows.rejected, events) == (1, 0, [])


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"type": "event_msg", "timestamp": stamp(START)}, "missing_field"),
        ({"type": "event_msg", "payload": {"type": "user_message"}}, "missing_field"),
        ({"payload": {"type": "user_message"}, "timestamp": stamp(START)}, "missing_field"),
        ({"type": "event_msg", "payload": {"type": "user_message"}, "timestamp": "yesterday"}, "bad_time"),
        ({"type": "event_msg", "payload": {"type": "user_message"}, "timestamp": "2018-01-01T00:00:00Z"}, "bad_time"),
        ({"type": "event_msg", "payload": {"type": "task_complete", "id": 5}, "timestamp": stamp(START)}, "wrong_type"),
        ({"type": "event_msg", "payload": {"type": "token_count", "info": 5}, "timestamp": stamp(START)}, "wrong_type"),
        ({"type": "event_msg", "payload": {"type": "thread_rolled_back"}, "timestamp": stamp(START)}, "missing_field"),
        ({"type": "response_item", "payload": {"type": "function_call"}, "timestamp": stamp(START)}, "missing_field"),
    ],
)  # fmt: skip
def test_a_known_row_that_lacks_what_it_must_have_is_rejected(row: dict[str, object], reason: str) -> None:
    log = Rollout()
    log.turn()
    events, ctx = read([*log.rows, row, *log.rows[1:]], context("codex"))
    assert ctx.rows.reasons == {reason: 1}
    assert len(of(events, "Gap")) == 1
    assert of(events, "Gap")[0].conv == IDS.conv("codex", "s1")


def test_numbers_and_truth_values_may_be_words() -> None:
    log = Rollout()
    log.prompt()
    log.event("token_count", info={"total_token_usage": {"input_tokens": "90", "total_tokens": "100"}})
    log.event("thread_rolled_back", num_turns="1")
    assert [type(event).__name__ for event in log.read()] == ["Prompt", "Call", "TurnEnd"]


def test_no_text_of_a_rollout_is_in_an_event() -> None:
    log = Rollout(CANARY, cwd=CANARY, instructions=CANARY, originator=CANARY, source=CANARY, forked_from_id=None)
    log.turn(model=CANARY)
    log.tool(CANARY, CANARY)
    log.output(CANARY)
    log.event("agent_message", message=CANARY)
    log.event("mcp_tool_call_end", call_id=CANARY, invocation={"server": CANARY}, result={"Err": CANARY})
    log.event("task_complete", last_agent_message=CANARY, error={"codex_error_info": CANARY, "message": CANARY})
    log.event("error", message=CANARY, codex_error_info=CANARY)
    log.row("compacted", {"message": CANARY, "replacement_history": [{"text": CANARY}]})

    def shown(rows: list[Any]) -> str:
        events, ctx = read(rows, context("codex"))
        packed = msgspec.msgpack.encode(events).decode("latin-1")
        return repr(events) + packed + repr(ctx.rows) + repr(ctx.facts)

    assert len(log.read()) > 8
    assert CANARY not in shown(log.rows)
    # Every field of every row is mistaken for the canary once: no error path lets it out.
    for row in log.rows:
        for name in row["payload"]:
            for wrong in (CANARY, [CANARY], {CANARY: CANARY}, 7):
                assert CANARY not in shown([{**row, "payload": {**row["payload"], name: wrong}}])
    for wrong in (CANARY, [CANARY], {CANARY: CANARY}, {"type": CANARY}):
        assert CANARY not in shown([{**log.rows[0], "payload": wrong}, {**log.rows[0], "type": wrong}])


# --- what the source cannot say ---------------------------------------------------------------------------------------


def test_switches_and_faults_are_unknown_never_zero() -> None:
    log = Rollout()
    log.turn("gpt-5.2-codex")
    log.turn("gpt-5.3-codex")
    found, _ = seen(log.rows)
    assert set(found["switches"].values()) == {None}
    assert found["infra"] is None
    assert found["blind"] is None
    assert found["calls"]["failed"] is None
    assert not capabilities.capability("codex").infra


@pytest.mark.parametrize(
    ("without", "key"),
    [
        ("task_complete", "completion"),
        ("token_count", "calls"),
        ("user_message", "episodes"),
        ("originator", "mode"),
    ],
)
def test_without_its_evidence_a_value_is_unknown(without: str, key: str) -> None:
    log = Rollout()
    log.turn()
    whole, _ = seen(log.rows)
    log.rows = [row for row in log.rows if row["payload"].get("type") != without]
    log.rows[0]["payload"].pop(without, None)
    log.rows[0]["payload"].pop("source")
    found, _ = seen(log.rows)
    unknown = {"completion": ["unknown"], "episodes": None, "mode": "unknown"}
    assert found[key] != whole[key]
    assert (found[key]["answered"] if key == "calls" else found[key]) == unknown.get(key)


def test_a_grown_file_gives_what_is_new_and_only_that() -> None:
    log = Rollout()
    for _ in range(3):
        log.turn()
    raw = lines(log.rows)
    whole, once = read(raw, context("codex"))
    found: list[AnyEvent] = []
    offset = read_rows = 0
    for cut in (0, 300, 901, 1500, len(raw) - 1, len(raw)):
        ctx: ReadContext = context("codex", offset=offset)
        found += READERS["codex"].read(io.BytesIO(raw[:cut]), ctx)
        offset, read_rows = ctx.offset, read_rows + ctx.rows.read
    assert found == whole
    assert read_rows == once.rows.read


def test_the_fixtures_name_their_sessions_as_codex_does() -> None:
    folder = Path(__file__).parent / "fixtures" / "codex_SYNTHETIC"
    paths = list(READERS["codex"].discover([folder]))
    assert len(paths) == 14
    for path in paths:
        ctx = context_for(path, ids=IDS, catalogue=builtin_catalogue(), now=NOW, facts=SampleFacts("codex"))
        with open_log(path) as stream:
            events = list(READERS["codex"].read(stream, ctx))
        assert path.stem.endswith(json.loads(path.read_text("utf-8").splitlines()[0])["payload"]["id"])
        assert {event.conv for event in events} == ctx.facts.conversations
