# SPDX-License-Identifier: Apache-2.0
"""The protocol page names every address, leaf, label, status and size that the code has, with the code's values."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute

from log_witnesses import CARDS
from manifests import guardian_key, make_manifest
from windvane_privacy import field, lot, manifest, sealing
from windvane_privacy.budget import epsilon_text
from windvane_privacy.catalogue import Family
from windvane_privacy.couriers import BINARY, JSON, ROUTES
from windvane_privacy.envelope import MAGIC, SHARE_MAGIC, envelope_length
from windvane_privacy.errors import all_errors
from windvane_privacy.leaf import LEAF_TYPES, MAX_LEAF_BYTES
from windvane_privacy.ledger_schema import BurnReason, State
from windvane_privacy.manifest import (
    Bounds,
    CohortLayout,
    Floors,
    GuardianEntry,
    Manifest,
    NoiseLaw,
    RosterReference,
)
from windvane_privacy.report_file import Method, Report, ReportModel
from windvane_privacy.report_schema import GATE_RESULTS
from windvane_privacy.roster import BANDS, Roster, RosterGuardian, RosterMember
from windvane_privacy.sealing import share_info
from windvane_privacy.signed import Federation, make_card
from windvane_privacy.submission import envelope_fields
from windvane_server.app import BINARY_ANSWERS, TEXT_ANSWERS, create_app
from windvane_server.coordinator import Coordinator, init_coordinator
from windvane_server.http_limits import MAX_ENVELOPE_BYTES, MAX_JSON_BYTES, MAX_RESULT_BYTES, limit_of
from windvane_server.logs import EVENTS
from windvane_server.plan_round import calendar
from windvane_server.rounds import ABORT_REASONS, LOT_WAIT
from windvane_server.schema import STATES
from windvane_server.site_files import FRESH, IMMUTABLE, SECURITY_HEADERS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
OPERATORS = (ROOT / "docs" / "coordinators.md").read_text(encoding="utf-8")
SOURCES = [p for part in ("privacy", "client", "server", "cli") for p in sorted((ROOT / part).rglob("*.py"))]
LABELS = sorted({name for p in SOURCES for name in re.findall(r"windvane/1/[a-z-]+(?=\\)", p.read_text("utf-8"))})
TRAVELS = [p for p in SOURCES if p.is_relative_to(ROOT / "privacy") or p.is_relative_to(ROOT / "server")]
SCHEMAS = sorted({s for p in TRAVELS for s in re.findall(r'"(windvane/[a-z-]+/v1)"', p.read_text("utf-8"))})
FRAMEWORK_STATUSES = {405, 422}
ROUND_OF_THREE = make_manifest(members=60, demo=False, k=8)
SPLIT_KINDS = make_manifest(members=60, demo=False, k=8, kinds=("coding", "analysis", "writing"))


def section(heading: str) -> str:
    """The text below a heading, up to the next heading of any level."""
    found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#+ |\Z)", PAGE, re.M | re.S)
    assert found, heading
    return found[1]


def rows(text: str) -> list[list[str]]:
    """The cells of every table row, without the lines under the headings."""
    lines = [line for line in text.splitlines() if line.startswith("|") and not line.startswith("|---")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def field_bytes(table: list[list[str]]) -> list[tuple[int, int]]:
    """Offset and length of each row of a byte layout whose lengths are plain numbers."""
    numbers = [(one[0].replace(",", ""), one[1].replace(",", "")) for one in table]
    return [(int(offset), int(length)) for offset, length in numbers if offset.isdigit() and length.isdigit()]


def words(text: str) -> set[str]:
    """Everything between backticks, outside of blocks of code."""
    return set(re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)))


# --- addresses -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", sorted(ROUTES))
def test_every_parcel_has_its_row(kind: str) -> None:
    route = ROUTES[kind]
    row = next(one for one in rows(section("Addresses")) if one[0] == f"`{kind}`")
    assert row[1:3] == [route.method, f"`{route.path}`"]
    assert (f"`{route.content_type}`" in row[3]) == (route.content_type is not None)
    if route.content_type is not None:
        mib = limit_of(kind, route) >> 20
        assert row[4].startswith(f"{mib} MiB" if mib else f"{limit_of(kind, route) >> 10} KiB")


def test_the_limits_are_whole_kibibytes_as_the_page_writes_them() -> None:
    assert (MAX_JSON_BYTES, MAX_ENVELOPE_BYTES, MAX_RESULT_BYTES) == (64 << 10, 64 << 10, 4 << 20)


def test_the_page_has_no_address_that_is_not_served_and_lacks_none(tmp_path: Path) -> None:
    cards = [make_card(guardian_key(j), f"Guardian {j}", f"group {j}") for j in (1, 2, 3)]
    init_coordinator(tmp_path / "c", name="A federation", guardians=cards, witnesses=CARDS)
    coordinator = Coordinator(tmp_path / "c")
    try:
        app: FastAPI = create_app(coordinator, tmp_path)
        served = {
            (m, r.path.replace("{tile:path}", "{tile}"))
            for r in app.routes
            if isinstance(r, APIRoute)
            for m in r.methods or ()
        }
    finally:
        coordinator.close()
    table = [one for one in rows(section("Addresses")) if len(one) == 6 and words(one[2])]
    listed = {(one[1], next(iter(words(one[2])))) for one in table}
    assert listed == {one for one in served if "{path:path}" not in one[1]}


def test_the_kinds_that_answer_in_bytes_are_named() -> None:
    sentence = next(one for one in section("Addresses").split("\n") if one.startswith("Answers to"))
    assert words(sentence) & set(ROUTES) == BINARY_ANSWERS | TEXT_ANSWERS
    assert {JSON, BINARY} <= words(PAGE)


def test_every_status_stands_in_the_table_of_refusals() -> None:
    listed = {int(one[0]) for one in rows(section("Addresses")) if one[0].isdigit()}
    assert listed == {cls.status for cls in all_errors().values()} | FRAMEWORK_STATUSES


def test_an_error_stands_in_the_row_of_its_own_status() -> None:
    by_name = {cls.__name__: cls for cls in all_errors().values()}
    for row in rows(section("Addresses")):
        if row[0].isdigit() and int(row[0]) not in {*FRAMEWORK_STATUSES, 503}:
            for name in words(row[1]) & set(by_name):
                assert by_name[name].status == int(row[0]), name


def test_every_error_that_the_page_names_exists() -> None:
    known = {cls.__name__ for cls in all_errors().values()}
    named = {w for w in words(PAGE) if re.fullmatch(r"(?:[A-Z][a-z]+){2,}", w)} - {"Retry", "Content"}
    assert named <= known, named - known


def test_the_headers_of_the_site_are_those_that_are_sent() -> None:
    text = section("The site")
    for name, value in SECURITY_HEADERS.items():
        assert f"{name}: {value}" in text
    assert IMMUTABLE in text
    assert FRESH in text


# --- signatures and entries ------------------------------------------------------------------------------------------


def test_labels_are_found_in_the_source() -> None:
    assert len(LABELS) >= 20


@pytest.mark.parametrize("label", LABELS)
def test_every_label_is_on_the_page(label: str) -> None:
    assert f"`{label}\\0`" in section("Who signs what")


def test_the_page_has_no_label_that_the_source_lacks() -> None:
    assert set(re.findall(r"windvane/1/[a-z-]+(?=\\)", PAGE)) == set(LABELS)


@pytest.mark.parametrize("schema", SCHEMAS)
def test_every_schema_of_something_that_travels_is_on_the_page(schema: str) -> None:
    assert schema in PAGE


@pytest.mark.parametrize("kind", sorted(LEAF_TYPES))
def test_every_leaf_has_its_row_with_exactly_its_fields(kind: str) -> None:
    row = next(one for one in rows(section("Leaves")) if one[0] == f"`{kind}`")
    everything = set().union(*LEAF_TYPES.values())
    assert words(row[2]) & everything >= set(LEAF_TYPES[kind])
    first_of_each = {w for part in re.split(r",(?![^(]*\))|;", row[2]) for w in re.findall(r"^\s*`([^`]+)`", part)}
    assert set(LEAF_TYPES[kind]) == first_of_each & everything
    assert f"{MAX_LEAF_BYTES:,} bytes" in PAGE


def test_the_leaf_table_has_no_type_that_the_code_lacks() -> None:
    assert {next(iter(words(one[0]))) for one in rows(section("Leaves"))[1:]} == set(LEAF_TYPES)


@pytest.mark.parametrize(
    ("heading", "types"),
    [
        ("Manifest", (Manifest, Bounds, NoiseLaw, CohortLayout, Floors, RosterReference, GuardianEntry, Family)),
        ("Roster", (Roster, RosterMember, RosterGuardian)),
        ("Federation's document", (Federation, RosterGuardian)),
        ("Report and its signatures", (Report, Method, ReportModel)),
    ],
)
def test_every_field_of_a_document_is_on_the_page(heading: str, types: tuple[type, ...]) -> None:
    text = section(heading)
    for one in types:
        for name in one.__struct_encode_fields__:  # type: ignore[attr-defined]  # msgspec's own list
            assert re.search(rf"[`\"]{name}[`\"]", text), name


def test_the_closed_lists_are_complete() -> None:
    assert {state.value for state in State} <= words(section("Commit, receipt, reveal"))
    assert {reason.value for reason in BurnReason} <= words(section("Commit, receipt, reveal"))
    assert set(STATES) <= words(section("Life of a round"))
    assert set(ABORT_REASONS) <= words(section("Life of a round"))
    assert set(BANDS) <= words(section("Cards"))
    assert set(GATE_RESULTS) <= words(section("Report and its signatures"))
    assert LOT_WAIT.days == 2
    assert "after two days" in section("Life of a round")


# --- bytes -----------------------------------------------------------------------------------------------------------


def test_the_envelopes_offsets_are_those_of_the_code() -> None:
    table = field_bytes(rows(section("Envelope"))[:14])
    listed = envelope_fields(ROUND_OF_THREE)
    head = [(f.offset, f.length) for f in listed[:5]]
    assert table[:5] == head
    assert [length for _, length in table[5:9]] == [1, 1, 1, 1]
    parts = [f.offset for f in listed if f.name.startswith("guardian ")]
    assert [offset for offset, _ in table[9:12]] == parts
    assert {length for _, length in table[9:12]} == {parts[1] - parts[0]}
    assert table[12] == (listed[-1].offset, listed[-1].length)
    assert sum(length for _, length in table) == envelope_length(ROUND_OF_THREE)


def test_a_part_has_the_offsets_of_the_code() -> None:
    first = [f for f in envelope_fields(ROUND_OF_THREE) if f.offset >= 92][:4]
    expected = [(f.offset - 92, f.length) for f in first]
    assert field_bytes(rows(section("Envelope"))[14:]) == expected


@pytest.mark.parametrize("agreed", [ROUND_OF_THREE, SPLIT_KINDS], ids=lambda m: str(m.length))
def test_the_stated_sizes_are_those_of_the_code(agreed: Manifest) -> None:
    assert [f"{agreed.length:,}", f"{envelope_length(agreed):,} bytes"] in rows(section("Envelope"))


def test_the_largest_stated_size_follows_from_the_same_formula() -> None:
    per_number = (envelope_length(SPLIT_KINDS) - envelope_length(ROUND_OF_THREE)) / (720 - 240)
    assert ["1,440", f"{envelope_length(SPLIT_KINDS) + int(720 * per_number):,} bytes"] in rows(section("Envelope"))


def test_what_a_share_is_bound_to_has_the_offsets_of_the_code() -> None:
    text = section("Sealed share")
    table = field_bytes(rows(text))
    assert [offset for offset, _ in table] == [sum(n for _, n in table[:i]) for i in range(len(table))]
    assert sum(length for _, length in table) == sealing.INFO_BYTES == 168
    info = share_info("11" * 32, b"\x22" * 16, 0x33333333, 0x44, 0x55, 0x66, "77" * 32, "88" * 32, "origin")
    marks = [info[offset : offset + length] for offset, length in table[1:9]]
    assert [set(mark) for mark in marks] == [{0x11 * i} for i in range(1, 9)]
    assert "168 bytes" in text
    assert "1,120 bytes" in text
    assert f"{sealing.OVERHEAD:,} bytes longer" in text


def test_the_share_header_ends_where_the_numbers_begin() -> None:
    table = field_bytes(rows(section("Share plaintext")))
    assert [offset for offset, _ in table] == [sum(n for _, n in table[:i]) for i in range(len(table))]
    sealed = next(f.length for f in envelope_fields(ROUND_OF_THREE) if f.name.startswith("sealed"))
    assert sum(n for _, n in table) == sealed - sealing.OVERHEAD - 8 * (ROUND_OF_THREE.length + 1)
    assert f"| {sum(n for _, n in table)} | 8 (L + 1) |" in section("Share plaintext")
    assert f"`{MAGIC.decode()}`" in section("Envelope")
    assert f"`{SHARE_MAGIC.decode()}`" in section("Share plaintext")


def test_keys_and_field_have_the_stated_sizes() -> None:
    assert f"{sealing.PUBLIC_BYTES:,} bytes public" in section("Roles and keys")
    assert f"{sealing.PRIVATE_BYTES} private" in section("Roles and keys")
    assert f"= {field.P}" in section("Field and sharing")
    assert f"= {field.LARGEST} " in section("Field and sharing")
    assert lot.NONCE_BYTES == 32
    assert "nonce 32" in section("Closed set, nonces and lot")


def test_the_calendar_is_the_one_that_plans_are_made_with() -> None:
    dates = {name: manifest.parse_time(text) for name, text in calendar("2027-Q1").items()}
    text = section("Calendar of a real round")
    found = {next(iter(words(one[1]))).split(".")[-1]: one[0] for one in rows(text)[2:]}
    names = {"collection_deadline", "opens", "commit_by", "closes", "publish_at"}
    assert set(found) == names
    for name in names:
        after = dates[name] - dates["events_to"]
        day = re.match(r"\+ (\d+)", found[name])
        assert day is not None
        assert int(day[1]) == after.days
        assert ("12:00" in found[name]) == (after.seconds == 12 * 3600)
    assert f"{manifest.LEAD_DAYS} days before it begins" in text


# --- what is promised ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rho", "h"), [(Fraction(9, 128), 3), (Fraction(9, 512), 5)])
def test_the_promise_without_encryption_is_computed(rho: Fraction, h: int) -> None:
    text = " ".join(section("Who can learn what").split())
    said = (
        f"(rho {rho}, h {h}, delta 1e-8): If all encryption failed, a reader of your submission would face epsilon "
        f"{epsilon_text(rho * h, '1e-8')} per quarter for each person in it, instead of {epsilon_text(rho, '1e-8')} "
    )
    assert said in text


def test_the_page_never_promises_that_nobody_can_see() -> None:
    for found in re.finditer(r"nobody can see your numbers", " ".join(PAGE.split())):
        assert " ".join(PAGE.split())[: found.start()].endswith('Never say "')


# --- operators -------------------------------------------------------------------------------------------------------


def test_every_log_event_is_listed_for_operators_with_its_fields() -> None:
    listed = {
        next(iter(words(one[0]))): words(one[1])
        for one in rows(OPERATORS)
        if len(one) == 3 and words(one[0]) & set(EVENTS)
    }
    assert listed == {event: set(fields) for event, fields in EVENTS.items()}
