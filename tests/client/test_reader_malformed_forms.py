# SPDX-License-Identifier: Apache-2.0
"""The malformed inputs of every form of every reader: counted by reason, the rest read, nothing of them repeated."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from reader_forms import BY_LINE as LINED
from reader_forms import CSV, FORMS, LINES, OBSERVED, PAGE, Form, framed, raw
from reader_logs import CANARY
from windvane_client.events import AnyEvent
from windvane_client.readers import ReadContext
from windvane_client.readers import lines as line_module
from windvane_client.readers.lines import Lines

C = CANARY.encode()
STEPS = ["user", "answer", "answer", "command", "answer", "other"]
BROKEN: dict[str, tuple[bytes, str]] = {
    "NaN": (b'{"k": NaN, "x": "' + C + b'"}', "not_json"),
    "Infinity": (b'{"k": -Infinity}', "not_json"),
    "NUL byte": (b'{"k": "' + C + b'\0"}', "nul_byte"),
    "two values on one line": (b'{"k": "a"}{"k": "' + C + b'"}', "not_json"),
    "text": (C, "not_json"),
    "a string": (b'"' + C + b'"', "not_an_object"),
    "a number": (b"4711", "not_an_object"),
    "an array": (b'["' + C + b'"]', "not_an_object"),
    "null": (b"null", "not_an_object"),
    "an object of no type": (b'{"' + C + b'": "' + C + b'"}', "missing_field"),
    "deep nesting": (b'{"' + C + b'": ' + b"[" * 3000 + b"]" * 3000 + b"}", "too_deep"),
    "a cut object": (b'{"k": "' + C, "not_json"),
    "a name that is not UTF-8": (b'{"\xff' + C + b'": 1, "k": \xff}', "not_json"),
}
BESIDE_ELEMENTS = ("a cut object", "two values on one line")
"""What cannot be one element of an array."""
TYPED = {
    "claude_code": {"timestamp": [C.decode()]},
    "codex": {"timestamp": [C.decode()]},
    "cline": {"ts": [C.decode()]},
    "cline session": {"ts": [C.decode()]},
    "litellm": {"model": [C.decode()]},
    "litellm array": {"model": [C.decode()]},
    "open_webui votes": {"created_at": [C.decode()]},
    "open_webui lines": {"created_at": [C.decode()]},
    "open_webui chats": {"created_at": [C.decode()]},
    "canonical": {"ts": [C.decode()]},
    "langfuse": {"id": [C.decode()]},
    "langfuse array": {"startTime": [C.decode()]},
    "langfuse page": {"level": [C.decode()]},
    "gemini_cli": {"timestamp": [C.decode()]},
    "gemini_cli document": {"id": [C.decode()]},
    "collected": {"ts": [C.decode()]},
    "mapping votes": {"user": [C.decode()]},
    "mapping outcomes": {"user": [C.decode()]},
}
"""A field of another type. Telemetry decides record by record; its own tests say what is foreign first."""
UNREAD = {
    "bytes that are no UTF-8": b'"\xff\xfe"',
    "half a surrogate pair": rb'"\ud800"',
    "both halves turned round": rb'"\udc00\ud800"',
    "a doubled name": b'1, "zzz": 2',
}
JSON = [form for form in FORMS if form.frame != CSV]
TABLES = [form for form in FORMS if form.frame == CSV]
BY_LINE = [form for form in FORMS if form.frame in LINED]
CASES = [(form, case) for form in JSON for case in BROKEN if form.frame in LINED or case not in BESIDE_ELEMENTS]


def ids(form: Form) -> str:
    return form.name


def bare(events: list[AnyEvent]) -> list[AnyEvent]:
    return [msgspec.structs.replace(event, seq=0) for event in events if type(event).__name__ != "Gap"]


def rows_of(form: Form) -> list[bytes]:
    return [raw(row) for row in form.rows(STEPS)]


def silent(events: list[AnyEvent], ctx: ReadContext) -> bool:
    return CANARY not in repr(events) + repr(ctx.rows) + repr(ctx.facts)


def beside(form: Form, bad: bytes) -> tuple[list[AnyEvent], ReadContext]:
    """Reads a log with the bad row in its middle: no good row may have changed."""
    rows = rows_of(form)
    good, before = form.read(framed(form.frame, rows), final=True)
    events, ctx = form.read(framed(form.frame, [rows[0], rows[1], bad, *rows[2:]]), final=True)
    assert bare(events) == bare(good)
    assert ctx.rows.read == before.rows.read + 1
    assert form.nested or before.rows.read == form.head + len(rows) - (form.frame == CSV)
    assert silent(events, ctx)
    return events, ctx


@pytest.mark.parametrize(("form", "case"), CASES, ids=[f"{form.name}-{case}" for form, case in CASES])
def test_a_broken_row_is_counted_by_reason_and_the_rest_is_read(form: Form, case: str) -> None:
    bad, reason = BROKEN[case]
    events, ctx = beside(form, bad)
    if form.source in ("otlp/codex", "otlp/gen_ai") and reason == "missing_field":
        assert ctx.rows.foreign > 0  # an object of no dialect belongs to somebody else
        return
    if (
        form.source in ("litellm", "open_webui", "langfuse")
        and form.frame not in (LINES, PAGE, OBSERVED)
        and not bad.startswith((b"{", b"["))
    ):
        reason = "not_json"  # what stands between two objects of an array is not looked at
    assert ctx.rows.reasons == {reason: 1}
    assert [event.what for event in events if type(event).__name__ == "Gap"] == ["rows_rejected"]


@pytest.mark.parametrize("name", TYPED)
def test_a_field_of_another_type_or_none_rejects_its_row(name: str) -> None:
    form = next(form for form in FORMS if form.name == name)
    row = json.loads(rows_of(form)[1])
    wrong: dict[str, Any] = {**row, **TYPED[name]}
    assert beside(form, json.dumps(wrong).encode())[1].rows.reasons == {"wrong_type": 1}
    (field,) = TYPED[name]
    without = {key: value for key, value in row.items() if key != field}
    if name not in ("cline session", "langfuse page", "mapping votes", "mapping outcomes"):  # there it may be missing
        ctx = beside(form, json.dumps({**without, "updated_at": None} if "open" in name else without).encode())[1]
        assert ctx.rows.reasons == {"missing_field": 1}


@pytest.mark.parametrize("case", UNREAD)
@pytest.mark.parametrize("form", JSON, ids=ids)
def test_a_field_that_is_not_read_may_hold_anything(form: Form, case: str) -> None:
    rows = rows_of(form)
    good, before = form.read(framed(form.frame, rows), final=True)
    events, ctx = form.read(
        framed(form.frame, [row[:-1] + b', "zzz": ' + UNREAD[case] + b"}" for row in rows]), final=True
    )
    if form.source == "canonical":  # there a field without a name of ours could be a text that slips in
        assert ctx.rows.reasons == {"unknown_field": len(rows)}
        return
    assert ctx.rows == before.rows
    assert bare(events) == bare(good)


@pytest.mark.parametrize("form", BY_LINE, ids=ids)
def test_the_last_line_waits_for_its_end_or_is_counted_as_cut(form: Form) -> None:
    rows = rows_of(form)
    data = framed(form.frame, rows)
    for cut in (1, len(rows[-1]) // 2, len(rows[-1])):
        events, ctx = form.read(data[:-cut] + b"")
        assert ctx.rows.rejected == 0
        assert ctx.offset == len(data) - len(rows[-1]) - 1
        assert silent(events, ctx)
    _, ctx = form.read(data[:-9], final=True)
    assert ctx.rows.reasons == {"truncated": 1}
    assert form.read(data[:-1], final=True)[1].rows.rejected == 0


@pytest.mark.parametrize(
    "form", [form for form in FORMS if form.frame not in (*LINED, CSV, OBSERVED) and not form.nested], ids=ids
)
def test_of_a_cut_document_the_elements_before_the_cut_are_read(form: Form) -> None:
    rows = rows_of(form)
    data = framed(form.frame, rows)
    at = data.rindex(rows[-1]) + len(rows[-1]) // 2
    events, ctx = form.read(data[:at], final=True)
    assert (ctx.rows.read, ctx.rows.reasons) == (len(rows), {"truncated": 1})
    assert silent(events, ctx)
    assert form.read(data[:at])[1].rows.rejected == 0  # it may still be written


@pytest.mark.parametrize("form", FORMS, ids=ids)
def test_a_byte_order_mark_is_stripped_at_the_start_only(form: Form) -> None:
    bom, rows = b"\xef\xbb\xbf", rows_of(form)
    good, before = form.read(framed(form.frame, rows), final=True)
    events, ctx = form.read(bom + framed(form.frame, rows), final=True)
    assert bare(events) == bare(good)
    assert ctx.rows == before.rows
    if form.frame in LINED:
        _, ctx = form.read(framed(form.frame, [*rows[:-1], bom + rows[-1]]), final=True)
        assert ctx.rows.reasons == {"not_json": 1}


@pytest.mark.parametrize("form", BY_LINE, ids=ids)
def test_a_line_above_the_limit_is_counted_and_never_held(form: Form, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = 1 << 21
    monkeypatch.setattr(line_module, "MAX_LINE_BYTES", limit)
    monkeypatch.setattr(Lines.__init__, "__kwdefaults__", {**Lines.__init__.__kwdefaults__, "max_line_bytes": limit})
    _, ctx = beside(form, b'{"' + C + b'": "' + C * (limit // 10) + b'"}')
    assert ctx.rows.reasons == {"too_long": 1}


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b'"' + C + b'"x,1', "not_json"),
        (b'a"b",' + C, "not_json"),
        (C, "wrong_type"),
        (b"1" + b"," * 40 + C, "wrong_type"),
        (b",".join([b"\xff"] * 11), "not_json"),
    ],
)
@pytest.mark.parametrize("form", TABLES, ids=ids)
def test_a_broken_row_of_a_table_is_counted_by_reason(form: Form, bad: bytes, reason: str) -> None:
    if bad.startswith(b"\xff"):
        bad = b",".join([b"\xff"] * (rows_of(form)[0].count(b",") + 1))
    assert beside(form, bad)[1].rows.reasons == {reason: 1}


@pytest.mark.parametrize("form", TABLES, ids=ids)
def test_the_last_row_of_a_table_waits_for_its_end_or_is_counted_as_cut(form: Form) -> None:
    rows = rows_of(form)
    data = framed(form.frame, rows)
    _, ctx = form.read(data[:-9])
    assert ctx.rows.rejected == 0
    assert ctx.offset == len(data) - len(rows[-1]) - 1
    assert form.read(data[:-9], final=True)[1].rows.reasons == {"truncated": 1}
    assert form.read(data[:-1], final=True)[1].rows.rejected == 0
