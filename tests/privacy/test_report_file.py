# SPDX-License-Identifier: Apache-2.0
"""`report.json`: no number token, one chain, a signature that one flipped byte breaks, and a refusal of every lie."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from manifests import coordinator_key, guardian_key
from report_world import FAMILIES, all_facts, demo_manifest, simulated_sums
from windvane_privacy import canonical
from windvane_privacy.catalogue import Family
from windvane_privacy.claims import Change
from windvane_privacy.direction import directions
from windvane_privacy.errors import MalformedInput, ReportError, ReportSignatureInvalid
from windvane_privacy.report_file import (
    build_report,
    check_catalogue,
    claim_address,
    history_of,
    read_report,
    seal,
    sign_report,
    verify_file,
    verify_report,
)
from windvane_privacy.report_schema import report_schema

WORLD = {"alder-4": 0.6, "birch-2": 0.0, "cedar-5": 0.3, "elm-3.5": 0.28, "oak-1": -0.4}
MANIFEST = demo_manifest()
CLAIMS = directions(simulated_sums(MANIFEST, WORLD, seed=3), MANIFEST, all_facts(MANIFEST), None)
RAW = build_report(CLAIMS, MANIFEST, previous_sha256=None, lot_proof="ab" * 32)
KEY = coordinator_key()
SIG = sign_report(RAW, KEY)
WHY = "Fewer organisations took part than the agreement demands, so nothing was opened."


def refuse(_token):
    raise AssertionError("a number token")


def test_report_holds_no_number_token_and_fits_its_schema():
    value = json.loads(RAW, parse_int=refuse, parse_float=refuse, parse_constant=refuse)
    Draft202012Validator(report_schema()).validate(value)
    assert canonical.encode(value) == RAW


def test_report_says_what_it_was_made_from():
    report = read_report(RAW)
    assert report.report_id == "windvane-2026-Q3"
    assert report.method.preregistration_sha256 == MANIFEST.sha256
    assert report.published == MANIFEST.publish_at
    assert report.demo is True
    assert report.claims == CLAIMS
    assert report.privacy["rho"] == "9/128"
    assert report.privacy["quarter"]["a"] == "2.104"
    assert report.privacy["lifetime"] == {"cap": "9/32", "a": "4.436", "c": "8.155"}
    assert set(report.gate.values()) == {"not_run"}
    assert [model.id for model in report.models] == sorted(WORLD)


def test_changes_list_every_claim_that_is_not_kept():
    report = read_report(RAW)
    assert len(report.changes) == len(CLAIMS)
    assert report.changes[0] == "2026-q3.all.completion.alder-4--birch-2"
    following = demo_manifest(round="2026-Q4")
    claims = directions(simulated_sums(following, WORLD, seed=3), following, all_facts(following), history_of([report]))
    second = read_report(build_report(claims, following, previous_sha256=canonical.sha256_hex(RAW)))
    assert second.changes == tuple(claim_address("2026-Q4", c) for c in claims if c.change is not Change.KEPT)
    assert len(second.changes) < len(claims)
    assert second.previous_sha256 == canonical.sha256_hex(RAW)


def test_same_input_gives_the_same_bytes():
    claims = directions(simulated_sums(MANIFEST, WORLD, seed=3), MANIFEST, all_facts(MANIFEST), None)
    assert build_report(claims, MANIFEST, previous_sha256=None, lot_proof="ab" * 32) == RAW


def test_round_that_was_not_opened_gives_one_sentence_and_no_table():
    report = read_report(build_report((), MANIFEST, previous_sha256=None, not_opened=WHY))
    assert report.not_opened == WHY
    assert report.claims == report.models == report.changes == ()
    Draft202012Validator(report_schema()).validate(msgspec.json.decode(msgspec.json.encode(report)))


@pytest.mark.parametrize("reason", [None, "", "Only 12 organisations took part.", "no sentence", "The best won."])
def test_report_without_claims_needs_one_plain_sentence(reason):
    with pytest.raises(ReportError):
        build_report((), MANIFEST, previous_sha256=None, not_opened=reason)


def test_report_has_claims_or_a_reason_but_never_both():
    with pytest.raises(ReportError):
        build_report(CLAIMS, MANIFEST, previous_sha256=None, not_opened=WHY)


def altered(**changes) -> bytes:
    value = json.loads(RAW)
    value.update(changes)
    return canonical.encode(value)


def one_claim(**changes) -> list[dict]:
    claims = json.loads(RAW)["claims"]
    claims[0] = {**claims[0], **changes}
    return claims


LIES = {
    "number": altered(quarter=3),
    "unknown field": altered(total="many"),
    "claims in another order": altered(claims=json.loads(RAW)["claims"][::-1]),
    "claim twice": altered(claims=[json.loads(RAW)["claims"][0]] * 2),
    "claim about an unknown model": altered(claims=one_claim(a="aaa")),
    "third word": altered(claims=one_claim(certainty="tentative")),
    "kept from the future": altered(claims=one_claim(called_quarter="2027-Q1")),
    "direction with a reason": altered(claims=one_claim(reasons=["too_new"])),
    "another schema": altered(schema="windvane/report/v2"),
    "changes left out": altered(changes=[]),
    "models out of order": altered(models=json.loads(RAW)["models"][::-1]),
    "hash too short": altered(previous_sha256="ab"),
    "gate without a rule": altered(gate={"F1": "pass"}),
    "not canonical": RAW + b"\n",
    "empty": b"",
    "list": b"[]",
    "not UTF-8": b"\xff" + RAW,
}


@pytest.mark.parametrize("raw", LIES.values(), ids=LIES.keys())
def test_report_that_contradicts_itself_is_malformed(raw):
    with pytest.raises(MalformedInput):
        read_report(raw)


@given(
    st.one_of(
        st.binary(max_size=64),
        st.recursive(st.text(max_size=4) | st.none(), lambda inner: st.lists(inner, max_size=3)).map(canonical.encode),
    )
)
def test_any_bytes_give_a_report_or_malformed_input(raw):
    with pytest.raises(MalformedInput):
        read_report(raw)
    with pytest.raises(MalformedInput):
        verify_file(RAW, raw, KEY.public)


def test_signature_holds_and_names_its_key():
    assert verify_report(RAW, SIG, KEY.public).quarter == "2026-Q3"
    with pytest.raises(ReportSignatureInvalid):
        verify_report(RAW, SIG, guardian_key(1).public)


@given(st.integers(0, len(RAW) - 1), st.integers(1, 255))
def test_one_flipped_byte_breaks_the_signature(place, mask):
    flipped = bytearray(RAW)
    flipped[place] ^= mask
    with pytest.raises(ReportSignatureInvalid):
        verify_report(bytes(flipped), SIG, KEY.public)


def test_forged_signature_file_is_refused():
    value = json.loads(SIG)
    other = guardian_key(1)
    forged = json.loads(sign_report(RAW, other))
    with pytest.raises(ReportSignatureInvalid):
        verify_report(RAW, canonical.encode({**value, "sig": forged["sig"]}), KEY.public)
    for broken in (
        {**value, "sig": value["sig"][:-2]},
        {**value, "extra": "x"},
        {"sig": value["sig"]},
        {**value, "sig": None},
    ):
        with pytest.raises(MalformedInput):
            verify_report(RAW, canonical.encode(broken), KEY.public)


CATALOGUES = {
    "praise": [Family("top-model", "Top Model", "v", ())],
    "praise as a figure": [Family("elm", "Elm #1", "v", ())],
    "markup": [Family("elm", "<b>Elm", "v", ())],
    "too long": [Family("elm", "E" * 41, "v", ())],
    "one path for two": [Family("elm-3.5", "Elm 3.5", "v", ()), Family("elm-3-5", "Elm 3-5", "v", ())],
    "two orders": [Family("alder", "Zalder", "v", ()), Family("birch", "Birch", "v", ())],
}


@pytest.mark.parametrize("families", CATALOGUES.values(), ids=CATALOGUES.keys())
def test_catalogue_that_cannot_be_published_is_refused(families):
    check_catalogue(FAMILIES)
    with pytest.raises(ReportError):
        check_catalogue(families)


def test_label_with_digits_and_windows_is_no_praise():
    check_catalogue([Family("elm-3.5", "Elm 3.5", "v", ()), Family("window-2", "Window 2", "v", ())])


def test_sealed_sums_open_only_with_their_salt():
    sums = simulated_sums(MANIFEST, WORLD, seed=3).to_json()
    sealed = seal(sums, bytes(32))
    assert sealed == seal(sums, bytes(32)) != seal(sums, b"\x01" + bytes(31))
    with pytest.raises(ReportError):
        seal(sums, b"short")
