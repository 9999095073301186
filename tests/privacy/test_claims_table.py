# SPDX-License-Identifier: Apache-2.0
"""Which combinations of state, certainty, change, reasons and status a claim can have: in code and in the schema."""

from __future__ import annotations

from itertools import product

import msgspec
import pytest
from jsonschema import Draft202012Validator

from windvane_privacy.catalogue import Signal
from windvane_privacy.claims import (
    LETTERS,
    Certainty,
    Change,
    Claim,
    ConfStatus,
    ObsStatus,
    Reason,
    State,
    check_claim,
    measured_claim,
    silent_claim,
)
from windvane_privacy.errors import ReportError
from windvane_privacy.report_schema import claim_schema, report_schema

KEY = ("all", "completion", "alder", "birch")
VALIDATOR = Draft202012Validator(claim_schema())

SILENT = {
    State.NOT_ENOUGH_DATA: {Reason.TOO_FEW_ORGS: "Q", Reason.TOO_FEW_PEOPLE: "Q"},
    State.WITHHELD: {
        Reason.INTEGRITY_HOLD: "Q",
        Reason.VERSION_BREAK: "B",
        Reason.TOO_NEW: "Q",
        Reason.CAUSES_UNCLEAR: "U",
    },
    State.NOT_COMPARED: {Reason.NOT_SELECTED: "Q"},
}


def allowed(state: str, certainty: str | None, quarters: bool, change: str, reason: str | None, obs: str) -> bool:
    """The table, written out a second time."""
    if state in ("toward_a", "toward_b"):
        return certainty is not None and quarters and reason is None and obs == "A" and change != "ended"
    if certainty is not None or quarters or change in ("new", "reversed_after_pause"):
        return False
    if state == "no_clear_direction":
        return reason is None and obs == "N"
    return reason is not None and SILENT[State(state)].get(Reason(reason)) == obs


def test_code_and_schema_accept_exactly_the_table():
    seen = refused = 0
    reasons = [None, *(reason.value for reason in Reason)]
    words = [None, *(word.value for word in Certainty)]
    for state, word, quarters, change, reason, obs in product(State, words, (True, False), Change, reasons, ObsStatus):
        when = "2026-Q3" if quarters else None
        claim = Claim(
            *("all", Signal.COMPLETION, "alder", "birch", state, Certainty(word) if word else None, when, when, change),
            (Reason(reason),) if reason else (),
            obs,
            ConfStatus.FREE,
        )
        expected = allowed(state.value, word, quarters, change.value, reason, obs.value)
        seen += expected
        try:
            check_claim(claim)
            accepted = True
        except ReportError:
            accepted = False
        assert accepted is expected, claim
        # The schema is slow: every accepted combination, and a fifth of the refused ones.
        refused += not expected
        if expected or refused % 5 == 0:
            assert VALIDATOR.is_valid(msgspec.json.decode(msgspec.json.encode(claim))) is expected, claim
    assert seen == 2 * 2 * 4 + 3 * (1 + 7)


@pytest.mark.parametrize(
    ("reasons", "obs", "letter", "state"),
    [
        ({Reason.TOO_FEW_PEOPLE, Reason.VERSION_BREAK}, "B", "b", State.WITHHELD),
        ({Reason.TOO_FEW_PEOPLE, Reason.TOO_FEW_ORGS}, "Q", "x", State.NOT_ENOUGH_DATA),
        ({Reason.TOO_NEW, Reason.TOO_FEW_ORGS}, "Q", "x", State.WITHHELD),
        ({Reason.INTEGRITY_HOLD, Reason.VERSION_BREAK}, "Q", "q", State.WITHHELD),
        ({Reason.CAUSES_UNCLEAR}, "U", "u", State.WITHHELD),
        ({Reason.NOT_SELECTED}, "Q", "z", State.NOT_COMPARED),
    ],
)
def test_first_reason_decides_and_all_are_listed_in_order(reasons, obs, letter, state):
    claim = silent_claim(KEY, reasons, Change.KEPT)
    assert (claim.obs_status, claim.letter, claim.state) == (obs, letter, state)
    assert set(claim.reasons) == reasons
    assert list(claim.reasons) == sorted(claim.reasons, key=list(Reason).index)


def test_broken_claims_are_refused():
    good = measured_claim(KEY, State.TOWARD_A, Change.NEW, certainty=Certainty.FIRM, since="2026-Q3", called="2026-Q3")
    for change in (
        {"a": "birch", "b": "alder"},
        {"a": "birch"},
        {"since_quarter": "2026-Q5"},
        {"called_quarter": None},
        {"certainty": None},
        {"reasons": (Reason.TOO_FEW_PEOPLE,)},
    ):
        with pytest.raises(ReportError):
            check_claim(msgspec.structs.replace(good, **change))
    silent = silent_claim(KEY, {Reason.TOO_NEW, Reason.TOO_FEW_PEOPLE}, Change.KEPT)
    for reasons in (silent.reasons[::-1], silent.reasons[:1] * 2):
        with pytest.raises(ReportError):
            check_claim(msgspec.structs.replace(silent, reasons=reasons))
    with pytest.raises(ReportError):
        silent_claim(KEY, [], Change.KEPT)


def test_every_reason_has_a_letter_and_there_is_no_third_word():
    assert set(LETTERS) == set(Reason)
    assert len(Certainty) == 2


def test_schema_has_no_number_and_no_open_object():
    schema = report_schema()
    Draft202012Validator.check_schema(schema)

    def walk(node, *, named: bool):
        """`named`: the keys of this object are names of properties, not words of the schema."""
        if isinstance(node, list):
            for inner in node:
                walk(inner, named=False)
        if not isinstance(node, dict):
            return
        if not named:
            types = node.get("type", [])
            assert not {"number", "integer"} & set([types] if isinstance(types, str) else types)
            if types == "object":
                assert node["additionalProperties"] is False
                assert set(node["required"]) == set(node["properties"])
            values = [*node.get("enum", []), *([node["const"]] if "const" in node else [])]
            assert all(value is None or isinstance(value, str) for value in values)
        for key, inner in node.items():
            if key not in ("enum", "const", "required"):
                walk(inner, named=not named and key == "properties")

    walk(schema, named=False)
