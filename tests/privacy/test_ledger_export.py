# SPDX-License-Identifier: Apache-2.0
"""The ledger's extract: what each charge was, line by line, and nothing about anybody."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path

import msgspec
import pytest

from conftest import ROOT
from ledger_entries import charge, charged_ledger, quarter
from ledger_steps import DAY, PEOPLE
from windvane_privacy import canonical
from windvane_privacy.errors import MalformedInput
from windvane_privacy.ledger_check import (
    check_accountants,
    check_chain,
    check_measurements,
    check_quarters,
    overlapping,
)
from windvane_privacy.ledger_export import Spend, decode_spends, encode_spends, spends
from windvane_privacy.ledger_schema import GENESIS, BurnReason
from windvane_privacy.manifest import rho_of
from windvane_privacy.noise import gaussian
from windvane_privacy.remap import remap


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Spend, ...]:
    """Three rounds: one drawn, one burned after it, one that the log proves and the ledger lost."""
    ledger, manifests = charged_ledger(tmp_path_factory.mktemp("export") / "l", 2)
    with ledger:
        ledger.burn("2026-Q2", BurnReason.NOT_ACCEPTED, [], DAY)
        lost = quarter(2)
        ledger.burn_undrawn(lost, "ab" * 32, [], versions="test", day=DAY)
        return spends(ledger.rounds(), manifests)


@pytest.fixture
def lines(exported: tuple[Spend, ...]) -> list[bytes]:
    return encode_spends(exported).split(b"\n")[:-1]


def test_every_charge_has_one_line_published_or_not(exported: tuple[Spend, ...]) -> None:
    assert [(x.number, x.round, x.rho) for x in exported] == [
        (1, "2026-Q1", Fraction(9, 512)),
        (2, "2026-Q2", Fraction(9, 512)),
        (3, "2026-Q3", Fraction(9, 512)),
    ]
    assert [x.everyone for x in exported] == [False, False, True]
    assert [x.member for x in exported] == [1, 1, None]
    assert [x.q for x in exported] == [(3, 2, 1, 1, 2), (3, 2, 1, 1, 2), None]
    assert [x.measurement is None for x in exported] == [False, False, True]
    assert [x.previous for x in exported] == [GENESIS, exported[0].entry, exported[1].entry]


def test_lines_are_canonical_and_read_back_as_they_were(exported: tuple[Spend, ...], lines: list[bytes]) -> None:
    assert [canonical.encode(json.loads(line)) for line in lines] == lines
    assert decode_spends(encode_spends(exported)) == exported
    assert decode_spends(b"") == ()


def test_no_person_no_count_and_no_state_is_in_it(exported: tuple[Spend, ...]) -> None:
    """Fields are a closed list, and nothing of the people, the vector or the envelope is among the bytes."""
    assert set(Spend.__struct_fields__) == {
        "schema", "number", "round", "member", "manifest", "rho_num", "rho_den", "q", "Q", "s", "h", "s_i",
        "events_from", "events_to", "everyone", "measurement", "versions", "commitment", "previous", "entry",
    }  # fmt: skip
    raw = encode_spends(exported)
    for secret in (*(person.hex() for person in PEOPLE), "burned", "not_accepted", "people", "noisy", "-3"):
        assert f'"{secret}"'.encode() not in raw
        assert secret not in {"people", "noisy"} or secret.encode() not in raw


def test_a_reviewer_maps_a_stored_measurement_again_from_the_extract_alone(lines: list[bytes]) -> None:
    """What docs/reviewers.md tells to do: one line of the extract, OpenDP, and two comparisons."""
    line = json.loads(lines[0])
    stored = remap(line["measurement"], line["Q"])
    charged = Fraction(line["rho_num"], line["rho_den"])
    assert Fraction(gaussian(stored.length, float(line["s"])).map(39.0)) == charged == Fraction(9, 512)
    assert repr(stored.scale) == line["s_i"]
    assert charged * line["h"] * Fraction(999_999, 10**6) < stored.rho <= charged * line["h"]


def test_what_a_ledger_writes_passes_every_check(exported: tuple[Spend, ...]) -> None:
    class Agreeing:
        def of_zcdp(self, rho: Fraction, delta: str) -> float:
            from windvane_privacy.budget import epsilon

            return epsilon(rho, delta)

        def of_gaussian(self, multiplier: float, delta: str) -> float:
            return 0.95 * self.of_zcdp(Fraction(1) / Fraction(2 * multiplier**2), delta)

    assert check_chain(exported) == check_measurements(exported) == ()
    assert check_accountants(exported, Agreeing(), ("1e-8",)) == ()
    assert check_quarters(exported, Fraction(9, 512)) == ()


def change(exported: tuple[Spend, ...], place: int = 0, **changes: object) -> tuple[Spend, ...]:
    found = list(exported)
    found[place] = msgspec.structs.replace(found[place], **changes)
    return tuple(found)


WRONG = {
    "charge too small": ({"rho_num": 9, "rho_den": 513}, "s and Q give 9/512"),
    "scale of another h": ({"s_i": repr(208 / 2)}, "s and h give"),
    "another h": ({"h": 4}, "s and h give"),
    "votes that do not add up": ({"q": (3, 2, 1, 1, 1)}, "sum of the votes"),
    "an OpenDP that is too old": ({"versions": "windvane 0.1.0; opendp 0.14.1"}, "older than 0.14.2"),
    "no OpenDP": ({"versions": "windvane 0.1.0"}, "name no OpenDP"),
    "a measurement of another form": ({"measurement": "{}"}, "not of the form"),
}


@pytest.mark.parametrize(("changes", "words"), WRONG.values(), ids=WRONG.keys())
def test_a_false_entry_is_found_and_named(exported: tuple[Spend, ...], changes: dict[str, object], words: str) -> None:
    found = check_measurements(change(exported, **changes))
    assert {one.round for one in found} == {"2026-Q1"}
    assert any(words in one.sentence for one in found)


def test_a_measurement_with_less_noise_than_the_entry_says_is_found(exported: tuple[Spend, ...]) -> None:
    measurement = (exported[0].measurement or "").replace("93.02042786399126", "46.51021393199563")
    found = check_measurements(change(exported, measurement=measurement))
    assert [one.words.split(",")[0] for one in found] == [
        "the measurement that drew has scale 46.51021393199563",
        "one share alone costs rho 0.351562500",
    ]


def test_a_charge_that_follows_from_another_scale_is_found_though_its_fields_agree(exported: tuple[Spend, ...]) -> None:
    """s, rho and s_i of one federation, the measurement of another: only the map tells."""
    rho = rho_of(9, 416)
    other = change(exported, rho_num=rho.numerator, rho_den=rho.denominator, s=416, s_i="186.04085572798252")
    assert [one.words.split(",")[0] for one in check_measurements(other)] == [
        "the measurement that drew has scale 93.02042786399126",
        "one share alone costs rho 0.087890625",
    ]


def test_a_missing_swapped_or_doubled_entry_breaks_the_order(exported: tuple[Spend, ...]) -> None:
    first, second, third = exported
    for broken in ((second, third), (first, third), (second, first, third), (first, first, second)):
        assert check_chain(broken), broken
    assert any("twice" in one.words for one in check_chain((first, first)))


def test_rounds_on_overlapping_events_count_together(exported: tuple[Spend, ...]) -> None:
    first, _second, third = exported
    inside = change(exported, 1, events_from=first.events_from, events_to="2026-02-01T00:00:00Z")
    assert overlapping(inside, inside[0]) == Fraction(9, 256)
    assert overlapping(inside, third) == Fraction(9, 512)
    assert [one.round for one in check_quarters(inside, Fraction(9, 512))] == ["2026-Q1", "2026-Q2"]
    assert not check_quarters(inside, Fraction(9, 256))


def edited(line: bytes, **changes: object) -> bytes:
    return canonical.encode({**json.loads(line), **changes})


BAD = {
    "another schema": {"schema": "windvane/ledger-entry/v2"},
    "a field more": {"people": 3},
    "number is text": {"number": "1"},
    "number is zero": {"number": 0},
    "rho is zero": {"rho_num": 0},
    "rho is not in lowest terms": {"rho_num": 18, "rho_den": 1024},
    "a scale in another form": {"s_i": "9.3e1"},
    "a scale with a sign": {"s_i": "-93.02"},
    "h is enormous": {"h": 10**7},
    "a round with a path": {"round": "../../x"},
    "a hash in capitals": {"entry": "AB" * 32},
    "a window that ends before it begins": {"events_to": "2020-01-01T00:00:00Z"},
    "a day that is none": {"events_from": "2026-13-01T00:00:00Z"},
    "no measurement and not everyone": {"measurement": None},
    "everyone with a measurement": {"everyone": True},
    "member zero": {"member": 0},
}


@pytest.mark.parametrize("changes", BAD.values(), ids=BAD.keys())
def test_a_line_of_another_form_is_refused_by_its_number(lines: list[bytes], changes: dict[str, object]) -> None:
    with pytest.raises(MalformedInput, match="line 2"):
        decode_spends(b"\n".join([lines[0], edited(lines[0], **changes), b""]))


@pytest.mark.parametrize("raw", [b"x", b"\n", b"{}\n", b"\xff\n", b"[" * 40 + b"\n", b"\n" * 10_002], ids=repr)
def test_bytes_that_are_no_extract_are_refused(raw: bytes) -> None:
    with pytest.raises(MalformedInput):
        decode_spends(raw)


def test_a_missing_field_and_a_second_key_are_refused(lines: list[bytes]) -> None:
    less = json.loads(lines[0])
    del less["versions"]
    twice = lines[0].replace(b'{"Q":9', b'{"Q":9,"Q":9')
    for line in (canonical.encode(less), twice, lines[0] + b" "):
        with pytest.raises(MalformedInput, match="line 1"):
            decode_spends(line + b"\n")


def test_sixty_four_quarters_compose_exactly(tmp_path: Path) -> None:
    ledger, _ = charged_ledger(tmp_path / "l", 0)
    with ledger:
        for place in range(64):
            charge(ledger, quarter(place), persons=(), opendp_json="{}", versions="test")
        assert ledger.lifetime() == (64, Fraction(9, 8))
        assert sum((x.rho for x in spends(ledger.rounds(), {})), Fraction(0)) == Fraction(9, 8)


def test_the_reviewers_page_maps_a_line_again_as_it_says(
    lines: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The code block of docs/reviewers.md, run as it stands on a member's extract; and it can fail."""
    text = (ROOT / "docs" / "reviewers.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ledger.jsonl").write_bytes(lines[0] + b"\n")
    exec(compile(block, "page", "exec"), {})
    (tmp_path / "ledger.jsonl").write_bytes(edited(lines[0], rho_den=514) + b"\n")
    with pytest.raises(AssertionError):
        exec(compile(block, "page", "exec"), {})
