# SPDX-License-Identifier: Apache-2.0
"""Collected rows that are no event of this version: which are of another time, and which are damaged.

Rules kept here:
* a kind or a version that this program does not know is unknown, whatever else its row holds;
* a row that says neither is damaged.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from reader_forms import FORMS

FORM = next(form for form in FORMS if form.name == "collected")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"k": None}, "missing_field"),
        ({"k": None, "v": None}, "missing_field"),
        ({"k": None, "v": 2}, None),
        ({"k": "hologram"}, None),
        ({"k": "hologram", "ts": "x"}, None),
        ({"v": 2}, None),
        ({"v": 2, "ts": "x"}, None),
        ({"v": 2, "served": None}, None),
        ({"ts": "x"}, "wrong_type"),
        ({"served": None}, "missing_field"),
    ],
)
def test_a_row_of_another_time_is_unknown_and_a_damaged_one_rejected(
    change: dict[str, Any], reason: str | None
) -> None:
    good = FORM.rows(["user", "answer", "answer"])
    row = good[1]
    assert isinstance(row, dict)
    raw = json.dumps({name: value for name, value in {**row, **change}.items() if value is not None}).encode()
    events, ctx = FORM.read(FORM.write([good[0], raw, good[2]]), final=True)
    assert ctx.rows.reasons == ({} if reason is None else {reason: 1})
    assert ctx.rows.unknown == (reason is None)
    assert [type(event).__name__ for event in events if type(event).__name__ != "Gap"] == ["Prompt", "Call"]
