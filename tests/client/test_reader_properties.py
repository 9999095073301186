# SPDX-License-Identifier: Apache-2.0
"""However a log is written or read in pieces, it is the same log.

A JSON document is written anew as a whole whenever it changes: it has no lines to resume at, and what it holds is given
again with each reading (tests of the single readers). Everything else here holds for every form of every reader.
"""

from __future__ import annotations

import gzip
import io

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gemini_cli_logs import records
from reader_forms import BY_LINE, CSV, FORMS, Form, framed, raw
from reader_logs import STEPS, claude_code, cline
from windvane_client.events import AnyEvent
from windvane_client.readers import READERS

BY_NAME = {form.name: form for form in FORMS}
SPANS = ("otlp spans", "otlp/gen_ai")


def logs(*forms: Form) -> st.SearchStrategy[tuple[Form, list[object]]]:
    return st.sampled_from(forms).flatmap(
        lambda form: st.tuples(st.just(form), st.lists(st.sampled_from(STEPS), max_size=20).map(form.rows))
    )


def sound(form: Form, rows: list[object]) -> list[object]:
    return [row for row in rows if isinstance(row, dict) or form.frame == CSV]


def bare(events: list[AnyEvent]) -> list[AnyEvent]:
    """Without the place in the reading order; the natural id of a rejected row is its byte position."""
    return [msgspec.structs.replace(event, seq=0) for event in events if type(event).__name__ != "Gap"]


by_line = logs(*(form for form in FORMS if form.frame in BY_LINE))


@given(by_line, st.lists(st.integers(0, 100), max_size=4))
@settings(max_examples=150, deadline=None)
def test_any_split_into_runs_gives_the_same_events_and_counts(log, cuts):
    form, rows = log
    data = form.write(rows)
    whole, once = form.read(data)
    found, offset, counted = [], 0, {"read": 0, "rejected": 0, "unknown": 0, "foreign": 0}
    for cut in [*sorted(len(data) * c // 100 for c in cuts), len(data)]:
        events, ctx = form.read(data[:cut], offset=offset)
        found += events
        offset = ctx.offset
        for name in counted:
            counted[name] += getattr(ctx.rows, name)
    if form.name in SPANS:
        # A span's conversation may be told by a later one of its trace: it is held back to the end of a run.
        assert {event.key for event in found} == {event.key for event in whole}
    elif form.stateless:  # a line counter only orders rows that carry no place of their own
        assert bare(found) == bare(whole)
    else:
        # What a run does not find, as answers that only the memory of Gemini CLI holds, may come in the next one.
        assert [one for one in found if getattr(one, "what", "") != "schema_unknown"] == [
            one for one in whole if getattr(one, "what", "") != "schema_unknown"
        ]
    assert counted == {name: getattr(once.rows, name) for name in counted}
    assert offset == once.offset == len(data)


@given(logs(*FORMS))
@settings(max_examples=100, deadline=None)
def test_crlf_and_gzip_change_nothing(log):
    form, rows = log
    data = form.write(rows)
    whole, _ = form.read(data, final=True)
    crlf, _ = form.read(data.replace(b"\n", b"\r\n"), final=True)
    stream = io.BufferedReader(gzip.GzipFile(fileobj=io.BytesIO(gzip.compress(data))))
    packed = list(READERS[form.source].read(stream, form.context(final=True)))
    assert packed == whole
    assert bare(crlf) == bare(whole)


@given(logs(*FORMS))
@example((BY_NAME["claude_code"], claude_code(["command", "interrupt"])))
@example((BY_NAME["cline"], cline(["side", "answer"])))
@example((BY_NAME["cline"], cline(["user", "side", "answer"])))
@example((BY_NAME["cline"], cline(["side", "gave_up"])))
@example((BY_NAME["gemini_cli"], records(["user", "answer", "user", "answer", "retry", "answer"])))
@settings(max_examples=100, deadline=None)
def test_doubled_rows_add_no_event(log):
    form, rows = log
    rows = sound(form, rows)
    head, rest = (rows[:1], rows[1:]) if form.frame == CSV else ([], rows)
    once, _ = form.read(form.write(rows), final=True)
    twice, _ = form.read(form.write([*head, *(row for row in rest for _ in (0, 1))]), final=True)

    def firsts(events):
        found = {}
        for event in events:
            copy = msgspec.structs.replace(event, seq=0)
            found.setdefault((type(event), event.key, getattr(event, "result_ts", None)), copy)
        return found

    def lasts(events):
        return firsts(reversed(events))

    assert firsts(twice) == firsts(once)
    assert lasts(twice) == lasts(once)


@given(logs(*FORMS))
@settings(max_examples=60, deadline=None)
def test_reading_twice_gives_the_same_bytes(log):
    form, rows = log
    data = form.write(rows)
    assert form.read(data)[0] == form.read(data)[0]


@given(logs(*(form for form in FORMS if form.stateless)), st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_rows_that_stand_alone_may_lie_in_any_files_in_any_order(log, rng):
    form, rows = log
    head, rest = (rows[:1], rows[1:]) if form.frame == CSV else ([], sound(form, rows))
    whole, _ = form.read(form.write([*head, *rest]), final=True)
    rng.shuffle(rest)
    cut = rng.randrange(len(rest) + 1)
    found = [
        event for part in (rest[:cut], rest[cut:]) for event in form.read(form.write([*head, *part]), final=True)[0]
    ]
    assert sorted(map(repr, bare(found))) == sorted(map(repr, bare(whole)))


@given(logs(*FORMS))
@settings(max_examples=120, deadline=None)
def test_coverage_adds_up(log):
    form, rows = log
    broken = 0 if form.frame == CSV else sum(isinstance(row, bytes) for row in rows)
    events, ctx = form.read(form.write(rows), final=True)
    if not form.nested:
        assert ctx.rows.read == form.head + len(rows) - (form.frame == CSV)
        assert ctx.rows.rejected == broken
    assert ctx.rows.rejected == sum(ctx.rows.reasons.values())
    assert ctx.rows.rejected + ctx.rows.unknown + ctx.rows.foreign <= ctx.rows.read
    gaps = {event.key for event in events if getattr(event, "what", None) == "rows_rejected"}
    assert len(gaps) == ctx.rows.rejected


@given(logs(*FORMS), st.data())
@settings(max_examples=150, deadline=None)
def test_a_broken_row_costs_no_other(log, data):
    form, rows = log
    rows = sound(form, rows)
    whole, before = form.read(form.write(rows), final=True)
    at = data.draw(st.integers(min(form.frame == CSV, len(rows)), len(rows)))
    damaged = [raw(row) for row in rows]
    damaged.insert(at, b'"x"y' if form.frame == CSV else b'{"CANARY-4711": }')
    found, ctx = form.read(framed(form.frame, damaged), final=True)
    assert ctx.rows.read - before.rows.read == ctx.rows.rejected - before.rows.rejected == 1
    assert bare(found) == bare(whole)


@given(st.binary(max_size=400))
@settings(max_examples=60, deadline=None)
@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_no_bytes_raise(name, raw):
    _, ctx = BY_NAME[name].read(raw, final=True)
    assert ctx.offset <= len(raw)
    if name in ("claude_code", "codex", "canonical", "collected"):
        assert ctx.offset == len(raw)
