# SPDX-License-Identifier: Apache-2.0
"""Named members of JSON rows, also nested ones: found, typed, and nothing beside them."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reader_support import context, lines, of, read
from windvane_client.constants import CONSTANTS
from windvane_client.gateways import requests_of
from windvane_client.readers.json_columns import JsonColumns
from windvane_client.readers.lines import Rejected
from windvane_privacy.errors import ConfigurationError

CANARY = "CANARY-4711"


def cut(row: Any, *names: str) -> dict[str, str]:
    return JsonColumns(frozenset(names), max_field=50)(json.dumps(row).encode())


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\nb", "a.\x00", "\ud800"])
def test_a_name_that_the_decoder_cannot_hold_is_refused_by_name(name: str) -> None:
    with pytest.raises(ConfigurationError, match=r"mapping\.toml"):
        JsonColumns(frozenset({"good", name}), max_field=50)


OTHER_KIND = {"b", "b.0", "o.s", "l", "o"}
"""An object or a list stands where a value is named: counted, never guessed. A way that ends early is only missing."""


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("a", "1"), ("b.c", "x"), ("b.d.e", "true"), ("l.0", "p"), ("l.-1", "q"), ("l.2", None), ("l.-3", None),
        ("o.0.s", "503"), ("o.1.s", "200"), ("o.-1.s", "200"), ("o.0.t", None), ("o.5.s", None), ("f.g", "flat"),
        ("gone", None), ("a.b", None), ("b", None), ("b.0", None), ("o.s", None), ("l", None), ("n.x", None),
        ("empty", None), ("o", None), ("l.0.s", None),
    ],
)  # fmt: skip
def test_a_name_leads_through_objects_and_lists(name, value):
    row = {
        "a": 1, "b": {"c": "x", "d": {"e": True}, "text": CANARY}, "l": ["p", "q"], "f.g": "flat", "f": {"g": "nested"},
        "o": [{"s": 503, "text": [CANARY]}, {"s": 200, "t": None}], "n": None, "empty": "", "prompt": {"x": [CANARY]},
    }  # fmt: skip
    if name in OTHER_KIND:
        with pytest.raises(Rejected, match="another type"):
            cut(row, name)
    else:
        assert cut(row, name) == ({} if value is None else {name: value})


def test_names_that_share_a_way_are_all_found():
    row = {"x": [{"m": "a", "s": 1}, {"m": "b", "s": 2}], "y": {"m": "c"}}
    assert cut(row, "x.0.m", "x.1.s", "x.-1.m", "y.m") == {"x.0.m": "a", "x.1.s": "2", "x.-1.m": "b", "y.m": "c"}
    assert cut({"x": 5}, "x", "x.y") == {"x": "5"}
    assert cut({"x": {"y": 5}}, "x", "x.y") == {"x.y": "5"}


def test_a_way_of_strange_form_is_only_a_name():
    for name in (".", "a.", ".a", "a..b", "0.a", ".".join("abcdefghi")):
        assert cut({name: "v"}, name) == {name: "v"}
        assert cut({"a": {"b": "v"}}, name) == {}


def test_a_value_longer_than_a_field_may_be_rejects_the_row():
    with pytest.raises(Rejected):
        cut({"a": {"b": "x" * 51}}, "a.b")


def test_what_no_name_leads_to_is_in_no_struct():
    root = JsonColumns(frozenset({"a", "b.c", "l.0.s"}), max_field=50)
    seen = set()
    for struct, names in root._places.items():
        assert {field.encode_name for field in msgspec.structs.fields(struct)} == set(names)
        seen |= set(names)
    assert seen == {"a", "b", "b.c", "c", "l", "l.0.s", "s"}


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=4)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abc01"), inner, max_size=3)),
    max_leaves=8,
)


@given(
    st.dictionaries(st.sampled_from("abc01"), JSON, max_size=4), st.sampled_from(["a", "a.b", "a.0", "a.0.b", "a.-1"])
)
def test_whatever_stands_there_gives_a_value_or_a_rejection(row, name):
    try:
        found = cut(row, name)
    except Rejected:
        return
    place: Any = row
    for step in name.split("."):
        if isinstance(place, list):
            place = place[int(step)] if step in ("0", "-1") and place else None
        else:
            place = place.get(step) if isinstance(place, dict) else None
    plain = isinstance(place, str | int) and place != ""
    assert found == ({name: str(place).lower() if isinstance(place, bool) else str(place)} if plain else {})


OPENROUTER = """name = "openrouter"
format = "jsonl"
event = "call"
[columns]
key = "id"
person = "externalUser"
conv = "sessionId"
ts = "createdAt"
served = "model"
status = { column = "providerResponses.-1.status", map = { "2xx" = "ok", "*" = "error" } }
"""


def test_a_gateways_nested_export_is_mapped():
    """The last provider that was asked decides whether the request was answered."""
    told = [
        {"id": f"r{n}", "externalUser": "u", "sessionId": "c", "createdAt": f"2026-03-01T10:00:0{n}Z",
         "model": "openai/gpt-5.2", "providerResponses": answers, "input": CANARY}
        for n, answers in enumerate([[{"status": 503}, {"status": 529}], [{"status": 503}, {"status": 200}], []])
    ]  # fmt: skip
    events, ctx = read(lines(told), context("mapping", companion=OPENROUTER.encode()))
    assert [(type(one).__name__, getattr(one, "error_class", "")) for one in events] == [
        ("AttemptError", "overload"), ("Call", ""), ("Gap", ""),
    ]  # fmt: skip
    assert ctx.rows.reasons == {"missing_field": 1}
    assert [one.result for one in requests_of(events, context().now, CONSTANTS)] == ["recovered_same"]
    assert CANARY not in repr(events)
    assert len(of(events, "Gap")) == 1
