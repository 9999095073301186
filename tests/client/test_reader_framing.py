# SPDX-License-Identifier: Apache-2.0
"""JSON documents and CSV tables are cut into rows by bytes, wherever a chunk of the file ends."""

from __future__ import annotations

import csv
import io
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from windvane_client.readers import csv_rows, values
from windvane_client.readers.csv_rows import Table
from windvane_client.readers.lines import Rejected
from windvane_client.readers.times import micros
from windvane_client.readers.values import Values, embedded, framing

JSON = st.recursive(
    st.one_of(st.integers(), st.text(max_size=8), st.sampled_from(["\\", '"', '\\"', "{", "]", "\n", "\ud800"])),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=8,
)
PLAIN = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
OBJECTS = st.lists(st.dictionaries(st.text(max_size=4), JSON, max_size=3), max_size=4)
QUIET = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def cut(raw: bytes, **more: object) -> list[bytes | None]:
    return [value for value, _ in Values(io.BytesIO(raw), **more)]  # type: ignore[arg-type]


@QUIET
@given(OBJECTS, st.integers(1, 9), st.sampled_from([None, 1]), st.booleans(), st.booleans())
def test_values_are_found_whatever_the_chunks(monkeypatch, objects, chunk, indent, array, ascii_only):
    monkeypatch.setattr(values, "_CHUNK", chunk)
    if array:
        raw = json.dumps(objects, indent=indent, ensure_ascii=ascii_only)
    else:
        raw = "\n".join(json.dumps(one, indent=indent, ensure_ascii=ascii_only) for one in objects)
    found = cut(raw.encode("utf-8", "surrogatepass"))
    assert [json.loads(one.decode("utf-8", "surrogatepass")) for one in found if one is not None] == objects
    assert len(found) == len(objects)


@QUIET
@given(OBJECTS, st.data())
def test_a_cut_document_gives_its_whole_values_and_at_most_one_more(objects, data):
    raw = json.dumps(objects).encode()
    at = data.draw(st.integers(0, len(raw)))
    open_, final = cut(raw[:at]), cut(raw[:at], final=True)
    assert [json.loads(one) for one in open_ if one is not None] == objects[: len(open_)]
    assert None not in open_
    assert final in (open_, [*open_, None])


def test_a_value_above_the_limit_is_counted_and_never_held():
    raw = json.dumps([{"a": 1}, {"b": "x" * 5000}, {"c": 2}]).encode()
    found = Values(io.BytesIO(raw), max_bytes=1000)
    assert [value is None for value, _ in found] == [False, True, False]
    assert found.problem == "too_long"


def test_what_stands_between_values_is_counted():
    assert cut(b'{"a": 1} CANARY {"b": 2}') == [b'{"a": 1}', None, b'{"b": 2}']
    assert cut(b'[{"a": 1}, 7, {"b": 2}]') == [b'{"a": 1}', None, b'{"b": 2}']


@pytest.mark.parametrize(
    ("raw", "frame"),
    [
        (b"", "lines"), (b'{"a": 1}\n', "lines"), (b"{\n", "values"), (b"[", "values"), (b"\n\n [\n", "values"),
        (b"\xef\xbb\xbf[", "values"), (b"a,b\n", "table"), (b'"a",b\n', "table"), (b'{"a": tru', "lines"),
    ],
)  # fmt: skip
def test_framing_is_told_by_the_first_line(raw, frame):
    assert framing(io.BytesIO(raw)) == frame


@QUIET
@given(st.dictionaries(PLAIN, st.one_of(PLAIN, st.lists(PLAIN, max_size=3))), st.booleans(), st.booleans())
def test_json_inside_a_string_is_the_same_json(value, inner, outer):
    raw = json.dumps(json.dumps(value, ensure_ascii=inner), ensure_ascii=outer).encode()
    assert json.loads(embedded(raw)) == value


def test_half_a_surrogate_inside_a_string_is_mended():
    assert embedded(rb'"[\"\ud800x\"]"') == '["\ufffdx"]'.encode()
    assert embedded(b' {"a": 1} ') == b'{"a": 1}'


CELL = st.text(st.characters(exclude_characters="\r\0", exclude_categories=["Cs"]), max_size=6)


@QUIET
@given(st.lists(st.tuples(CELL, CELL, CELL), max_size=4), st.sampled_from(["\n", "\r\n"]), st.integers(1, 9))
def test_a_table_gives_its_cells(monkeypatch, rows, newline, chunk):
    monkeypatch.setattr(csv_rows, "_CHUNK", chunk)
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator=newline, quoting=csv.QUOTE_ALL)
    writer.writerow(["id", "text", "model"])
    writer.writerows(rows)
    table = Table(io.BytesIO(out.getvalue().encode()), frozenset({"id", "model"}))
    found = [table.columns(row) for row, _ in table if row is not None]
    wanted = [{name: cell for name, cell in (("id", a), ("model", c)) if cell} for a, _, c in rows]
    assert found == wanted
    assert table.offset == len(out.getvalue().encode())


def test_a_broken_row_is_refused():
    table = Table(io.BytesIO(b"id,model\n"), frozenset({"id"}))
    assert list(table) == []
    for row in (b'"a"b,c\n', b"a\n", b"a,b,c\n", b"\xff,b\n"):
        with pytest.raises(Rejected):
            table.columns(row)


def test_times_in_every_unit_are_one_time():
    now, second = 1_790_000_000_000_000, 1_772_359_200
    for number in (second, float(second), str(second), second * 1000, second * 10**6, second * 10**9):
        assert micros(number, now) == second * 1_000_000
    for raw in ("2026-03-01T10:00:00Z", "2026-03-01 10:00:00", "2026-03-01 10:00:00.000", "2026-03-01 11:00:00+01"):
        assert micros(raw, now) == second * 1_000_000
    for raw in (
        None,
        "",
        "x",
        0,
        -1,
        5,
        float("nan"),
        float("inf"),
        1e30,
        True,
        "1e400",
        "2019-01-01",
        now + 2 * 86_400_000_000,
    ):
        assert micros(raw, now) is None
