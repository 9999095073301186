# SPDX-License-Identifier: Apache-2.0
"""Telemetry is the same however it is framed, and what is malformed is counted by reason."""

from __future__ import annotations

import gzip
import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otlp_support import claude, codex, gemini, log, logs, read_raw, read_values, span, spans
from reader_support import NOW, context, of
from windvane_client.readers import READERS
from windvane_client.readers import lines as line_module
from windvane_client.readers.otlp_values import Values

CANARY = "CANARY-4711"
GOOD = logs(claude(1, "user_prompt", prompt__id="p1"))
GOOD_2 = logs(claude(2, "user_prompt", prompt__id="p2"))


def line(value: object) -> bytes:
    return json.dumps(value).encode() + b"\n"


def bare(events: list[Any]) -> list[tuple[Any, ...]]:
    return [(type(e), e.key, e.person, e.conv, e.ts, e.mode) for e in events]


@pytest.mark.parametrize("indent", [None, 1, 2, 4, "\t"])
def test_lines_and_indented_values_say_the_same(indent):
    raw = b"".join(json.dumps(one, indent=indent).encode() + b"\n" for one in (GOOD, GOOD_2))
    events, ctx = read_raw(raw)
    assert (ctx.rows.read, ctx.rows.rejected) == (2, 0)
    assert bare(events) == bare(read_values(GOOD, GOOD_2)[0])
    assert ctx.offset == len(raw)


def test_an_indented_value_without_last_newline_is_read_when_the_file_is_finished():
    raw = json.dumps(GOOD, indent=2).encode()
    assert len(read_raw(raw)[0]) == 1
    ctx = context("otlp")
    assert read_raw(raw, ctx)[0] == []
    assert ctx.offset == 0


def sdk(record: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The same record as an object of the JavaScript SDK."""
    nanos = int(record["timeUnixNano"])
    attributes = {pair["key"]: next(iter(pair["value"].values())) for pair in record["attributes"]}
    time = [nanos // 10**9, nanos % 10**9]
    return {"hrTime": time, "hrTimeObserved": time, "attributes": attributes, "_body": CANARY, **more}


def test_objects_of_the_sdk_say_the_same_as_the_collectors_file():
    record = gemini(1.5, "api_response", model="gemini-2.5-pro", prompt_id="p", role="main")
    framed, _ = read_values(logs(record, service="gemini-cli"))
    plain, ctx = read_raw(json.dumps(sdk(record), indent=2).encode() + b"\n")
    assert framed == plain
    assert len(plain) == 1
    assert (ctx.rows.read, ctx.rows.foreign) == (1, 0)


def test_names_of_enums_and_numbers_mean_the_same():
    call = {"gen_ai.operation.name": "chat", "gen_ai.response.finish_reasons": ["stop"]}
    for code in (2, "2", "STATUS_CODE_ERROR"):
        (event,), _ = read_values(spans(span(1, call, status={"code": code, "message": CANARY})))
        assert event.status == "error"
    for code in (0, 1, "STATUS_CODE_UNSET", "STATUS_CODE_OK", None):
        (event,), _ = read_values(spans(span(1, call, status={"code": code})))
        assert event.status == "ok"


def test_whole_numbers_may_be_text_or_numbers():
    as_text = claude(1, "api_error", status_code="529", attempt="3", model="claude-opus-4-6", event__sequence="7")
    as_number = claude(1, "api_error", status_code=529, attempt=3, model="claude-opus-4-6", event__sequence=7)
    plain = {**as_number, "timeUnixNano": int(as_number["timeUnixNano"])}
    plain["attributes"] = [
        {"key": p["key"], "value": {k: int(v) if k == "intValue" else v for k, v in p["value"].items()}}
        for p in as_number["attributes"]
    ]
    events = [read_values(logs(one))[0] for one in (as_text, as_number, plain)]
    assert events[0] == events[1] == events[2]
    assert (events[0][0].error_class, events[0][0].attempt, events[0][0].seq) == ("overload", 3, 7)


def test_an_id_is_opaque_text():
    """Hex ids have an even length and may look like base64: neither is decoded."""
    call = {"gen_ai.operation.name": "chat", "gen_ai.response.model": "gpt-4o", "gen_ai.usage.output_tokens": 5}
    hexes, _ = read_values(spans(span(1, call), span(1, call, traceId="5B8EFFF798038103D269B633813FC60C")))
    base64, _ = read_values(spans(span(1, call, traceId="W47/95gDgQPSabYzgT/GDA==", spanId="7uGbfsPBsXQ=")))
    assert len({event.key for event in (*hexes, *base64)}) == 3


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (b'{"k": NaN}', "not_json"),
        (b'{"k": "' + CANARY.encode() + b'\0"}', "nul_byte"),
        (b'{"k": "a"}{"k": "' + CANARY.encode() + b'"}', "not_json"),
        (CANARY.encode(), "not_json"),
        (b'"' + CANARY.encode() + b'"', "not_an_object"),
        (b"42", "not_an_object"),
        (b'["' + CANARY.encode() + b'"]', "not_an_object"),
        (b"[]", "not_an_object"),
        (b"null", "not_an_object"),
        (b"}", "not_json"),
        (b'{"' + CANARY.encode() + b'": "' + CANARY.encode() + b'"}', "missing_field"),
        (b'{"resourceLogs": "' + CANARY.encode() + b'"}', "wrong_type"),
        (b'{"resourceLogs": [{"scopeLogs": [{"logRecords": {"a": 1}}]}]}', "wrong_type"),
        (b'{"resourceLogs": [{"scopeLogs": [{"logRecords": ["' + CANARY.encode() + b'"]}]}]}', "wrong_type"),
        (b'{"zzz": ' + b"[" * 3000 + b"]" * 3000 + b"}", "too_deep"),
        (b'{"resourceLogs": [{"resource": {"attri', "not_json"),
        (b'{"resourceLogs": [{"resource": {', "not_json"),
    ],
)
def test_one_bad_value_is_counted_and_the_rest_is_read(broken, reason):
    events, ctx = read_raw(line(GOOD) + broken + b"\n" + line(GOOD_2))
    assert ctx.rows.reasons == {reason: 1}
    assert (ctx.rows.read, ctx.rows.rejected) == (3, 1)
    assert len(of(events, "Prompt")) == 2
    assert [gap.what for gap in of(events, "Gap")] == ["rows_rejected"]
    assert CANARY not in repr(events) + repr(ctx.rows) + repr(ctx.facts)


def test_one_bad_record_does_not_take_its_neighbours_along():
    bad = {**claude(1, "user_prompt", prompt__id="p3"), "timeUnixNano": CANARY}
    old = {**claude(1, "user_prompt", prompt__id="p4"), "timeUnixNano": "1544712660300000000"}
    none = {key: one for key, one in claude(1, "user_prompt", prompt__id="p5").items() if key != "timeUnixNano"}
    events, ctx = read_values(logs(claude(1, "user_prompt", prompt__id="p1"), bad, old, none, claude(2, "user_prompt")))
    assert ctx.rows.reasons == {"bad_time": 2, "missing_field": 1}
    assert len(of(events, "Prompt")) == 2
    assert CANARY not in repr(events)


def test_a_value_that_was_cut_does_not_swallow_the_next():
    half = json.dumps(GOOD, indent=2).encode()[:200].rpartition(b"\n")[0] + b"\n"
    events, ctx = read_raw(half + line(GOOD) + json.dumps(GOOD_2, indent=2).encode() + b"\n")
    assert ctx.rows.reasons == {"not_json": 1}
    assert len(of(events, "Prompt")) == 2


def test_a_value_above_the_limit_is_counted_and_never_held(monkeypatch):
    monkeypatch.setattr(line_module, "MAX_LINE_BYTES", 4096)
    long = json.dumps({"zzz": ["x" * 60] * 200}, indent=1).encode() + b"\n"
    events, ctx = read_raw(line(GOOD) + long + line(GOOD_2))
    assert ctx.rows.reasons["too_long"] == 1
    assert len(of(events, "Prompt")) == 2


def test_bom_gzip_and_crlf_change_nothing():
    raw = line(GOOD) + json.dumps(GOOD_2, indent=2).encode() + b"\n"
    whole, _ = read_raw(raw)
    assert bare(read_raw(b"\xef\xbb\xbf" + raw)[0]) == bare(whole)
    assert bare(read_raw(raw.replace(b"\n", b"\r\n"))[0]) == bare(whole)
    stream = io.BufferedReader(gzip.GzipFile(fileobj=io.BytesIO(gzip.compress(raw))))
    assert list(READERS["otlp"].read(stream, context("otlp", final=True))) == whole


def test_a_lone_surrogate_in_a_text_does_not_cost_the_row():
    record = {**claude(1, "user_prompt"), "body": {"stringValue": "SURROGATE"}}
    raw = line(logs(record, service="claude-code"))
    events, ctx = read_raw(raw.replace(b"SURROGATE", b"\\ud800"))
    assert (len(events), ctx.rows.rejected) == (1, 0)


def test_foreign_is_decided_before_any_field_is_checked():
    records = [
        log(1, my__attribute="x"),
        {**log(1, my__attribute="x"), "timeUnixNano": "1544712660300000000"},
        {**log(1), "timeUnixNano": CANARY},
        {"attributes": CANARY},
        {},
    ]
    events, ctx = read_values(logs(*records), spans(span(1, {"http.method": "GET"}), {"startTimeUnixNano": []}))
    assert events == []
    assert (ctx.rows.read, ctx.rows.foreign, ctx.rows.rejected) == (7, 7, 0)
    assert not ctx.facts.any_row


def test_metrics_are_foreign():
    sums = {"name": CANARY, "sum": {"dataPoints": [{"attributes": [], "asDouble": 1.0}]}}
    _, ctx = read_values({"resourceMetrics": [{"scopeMetrics": [{"metrics": [sums, sums]}]}]})
    assert (ctx.rows.read, ctx.rows.foreign) == (2, 2)


def test_a_row_more_than_a_day_ahead_is_rejected():
    ahead = {**claude(1, "user_prompt"), "timeUnixNano": str((NOW + 2 * 86_400_000_000) * 1000)}
    assert read_values(logs(ahead))[1].rows.reasons == {"bad_time": 1}


def test_a_program_may_write_the_time_only_where_it_was_observed():
    record = {**codex(1, "user_prompt"), "timeUnixNano": "0", "observedTimeUnixNano": claude(5, "x")["timeUnixNano"]}
    (event,), _ = read_values(logs(record))
    assert event.ts == int(record["observedTimeUnixNano"]) // 1000


ROWS = [
    claude(1, "user_prompt", prompt__id="p1", event__sequence=1),
    claude(2, "api_error", prompt__id="p1", model="claude-opus-4-6", status_code="529", attempt=1, event__sequence=2),
    claude(3, "api_request", prompt__id="p1", model="claude-opus-4-6", event__sequence=3),
    claude(4, "tool_result", tool_name="Bash", success="true", event__sequence=4),
    claude(5, "hologram"),
    codex(1, "user_prompt"),
    codex(2, "api_request", http__response__status_code=503, model="gpt-5.2"),
    codex(3, "sse_event", event__kind="response.completed", model="gpt-5.2"),
    codex(4, "tool_result", call_id="t", tool_name="shell", success="true"),
    gemini(1, "user_prompt", prompt_id="p"),
    gemini(2, "api_error", model="gemini-2.5-pro", status_code=503),
    gemini(3, "api_response", model="gemini-2.5-pro", prompt_id="p"),
    gemini(4, "tool_call", function_name="replace", success=False),
    log(1, other="x"),
]
broken = st.sampled_from([b'{"resourceLogs": 5}', b"{", b"x", b'{"resourceLogs": [{"a'])
chunks = st.lists(
    st.one_of(
        st.lists(st.sampled_from(ROWS), min_size=1, max_size=4).map(lambda rows: line(logs(*rows))),
        st.lists(st.sampled_from(ROWS), min_size=1, max_size=3).map(
            lambda rows: json.dumps(logs(*rows), indent=1).encode() + b"\n"
        ),
        broken.map(lambda raw: raw + b"\n"),
    ),
    max_size=8,
)


@given(chunks, st.lists(st.integers(0, 100), max_size=4))
@settings(max_examples=60, deadline=None)
def test_any_split_into_runs_gives_the_same_events_and_counts(parts, cuts):
    raw = b"".join(parts)
    whole, once = read_raw(raw, context("otlp"))
    found, offset = [], 0
    counted = {"read": 0, "rejected": 0, "unknown": 0, "foreign": 0}
    for cut in [*sorted(len(raw) * c // 100 for c in cuts), len(raw)]:
        ctx = context("otlp", offset=offset)
        found += read_raw(raw[:cut], ctx)[0]
        offset = ctx.offset
        for name in counted:
            counted[name] += getattr(ctx.rows, name)
    assert found == whole
    assert counted == {name: getattr(once.rows, name) for name in counted}
    assert offset == once.offset


@given(st.lists(st.sampled_from(ROWS), max_size=10))
@settings(max_examples=40, deadline=None)
def test_rows_written_twice_add_no_event(rows):
    once = read_values(*(logs(row) for row in rows))[0]
    twice = read_values(*(logs(row) for row in rows for _ in (0, 1)))[0]
    assert {(type(e), e.key) for e in twice} == {(type(e), e.key) for e in once}


@given(chunks)
@settings(max_examples=40, deadline=None)
def test_coverage_adds_up(parts):
    events, ctx = read_raw(b"".join(parts))
    rows = ctx.rows
    assert rows.rejected == sum(rows.reasons.values()) == len(of(events, "Gap"))
    assert rows.rejected + rows.unknown + rows.foreign <= rows.read


@given(st.binary(max_size=300))
@settings(max_examples=150, deadline=None)
@pytest.mark.parametrize("source", ["otlp", "otlp/gen_ai"])
def test_no_bytes_raise(source, raw):
    _, ctx = read_raw(raw, context(source, final=True))
    assert ctx.offset == len(raw)


def test_the_splitter_holds_one_value_at_a_time():
    values = Values(io.BytesIO(b'{\n "a": "}{",\n "b": [\n 1]\n}\n{"c": 1}\n'), final=True)
    assert [(json.loads(value or b"0"), end - start) for value, start, end in values] == [
        ({"a": "}{", "b": [1]}, 28),
        ({"c": 1}, 9),
    ]
