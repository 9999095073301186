# SPDX-License-Identifier: Apache-2.0
"""The shipped conformance vectors: the rule reproduces them, and so does a second implementation of it."""

from __future__ import annotations

import copy
from importlib import resources
from typing import Any

import msgspec
import pytest

from direction_reference import decide
from report_world import real_manifest
from windvane_privacy import canonical
from windvane_privacy.claims import Certainty, Change, Claim, State, measured_claim, silent_claim
from windvane_privacy.direction import PublicFacts, directions
from windvane_privacy.layout import Layout
from windvane_privacy.rules import code_sha256, current_rules, rules_sha256
from windvane_privacy.sums import CohortSums
from windvane_privacy.transitions import previous_of

RAW = (resources.files("windvane_privacy") / "vectors" / "direction-1.json").read_bytes()
CASES: list[dict[str, Any]] = canonical.decode(RAW)["cases"]
FIELDS = ("state", "certainty", "since_quarter", "called_quarter", "change", "reasons")


def claim_of(entry: dict[str, Any]) -> Claim:
    key = tuple(entry["key"])
    if entry["reasons"]:
        return silent_claim(key, entry["reasons"], Change(entry["change"]))
    quarters = {"since": entry["since_quarter"], "called": entry["called_quarter"]}
    word = Certainty(entry["certainty"]) if entry["certainty"] else None
    return measured_claim(key, State(entry["state"]), Change(entry["change"]), certainty=word, **quarters)


def answer(case: dict[str, Any]) -> dict[tuple[str, ...], dict[str, Any]]:
    c = case["constants"]
    manifest = real_manifest(
        members=c["roster"],
        people=c["people"],
        order=c["order"],
        cap=c["cap"],
        kinds=tuple(c["kinds"]),
        C=c["C"],
        s=c["s"],
        h=c["h"],
        stage=c["stage"],
        round=case["quarter"],
    )
    layout = Layout(manifest)
    rows = [[0] * layout.length for _ in case["sizes"]]
    index = {(cell.kind, cell.signal.value, cell.a, cell.b): cell for cell in layout.cells}
    assert len(case["cells"]) == len(index)
    for entry in case["cells"]:
        cell = index[entry["kind"], entry["signal"], entry["a"], entry["b"]]
        for g, row in enumerate(rows):
            row[layout.d_index(cell)], row[layout.t_index(cell)] = entry["d"][g], entry["t"][g]
    facts = PublicFacts(
        frozenset(case["breaks"]),
        case["available_days"],
        {(e["a"], e["b"]): e["organisations"] for e in case["tied"]},
    )
    before = case["previous"]
    previous = previous_of([(before["quarter"], [claim_of(e) for e in before["claims"]])]) if before else None
    claims = directions(CohortSums(tuple(case["sizes"]), tuple(map(tuple, rows))), manifest, facts, previous)
    plain = {claim.key: msgspec.json.decode(msgspec.json.encode(claim)) for claim in claims}
    return {key: {name: fields[name] for name in FIELDS} for key, fields in plain.items()}


def expected(case: dict[str, Any]) -> dict[tuple[str, ...], dict[str, Any]]:
    return {tuple(entry["key"]): {name: entry[name] for name in FIELDS} for entry in case["expected"]}


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_rule_reproduces_its_vectors(case):
    assert answer(case) == expected(case)


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_second_implementation_reproduces_the_vectors(case):
    assert decide(case) == expected(case)


def test_vectors_hold_every_state_word_and_most_changes():
    entries = [entry for case in CASES for entry in case["expected"]]
    assert {entry["state"] for entry in entries} == {state.value for state in State}
    assert {entry["certainty"] for entry in entries} == {"firm", "moderate", None}
    assert {entry["change"] for entry in entries} >= {"first_measured", "new", "kept", "ended"}
    assert any(e["called_quarter"] not in (None, case["quarter"]) for case in CASES for e in case["expected"])


def test_altered_vector_is_noticed():
    case = copy.deepcopy(CASES[0])
    called = next(e for e in case["expected"] if e["state"] == "toward_a")
    cell = next(c for c in case["cells"] if [c["kind"], c["signal"], c["a"], c["b"]] == called["key"])
    cell["d"] = [-value for value in cell["d"]]
    assert answer(case) != expected(case)


def test_rules_are_named_by_the_hash_of_their_vectors():
    rules = {rule.id: rule.sha256 for rule in current_rules()}
    assert rules["direction-1"] == canonical.sha256_hex(RAW)
    assert len(rules_sha256(current_rules())) == len(code_sha256()) == 64
    assert rules_sha256(current_rules()) != rules_sha256(current_rules()[:-1])
