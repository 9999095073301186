# SPDX-License-Identifier: Apache-2.0
"""Every parser of foreign bytes refuses by its documented errors, and what it accepts has one spelling.

Rules kept here:
* cases are numbered, see `parser_fuzz`; the long run takes one of five hundred parts, another one with every change of
  the core, and the stated one with WINDVANE_SLICE=n/m;
* a parser that is not on the list fails a test: nothing is read that was not tried;
* what the fuzz found once has a test of its own in `test_one_spelling`.
"""

from __future__ import annotations

import re
from random import Random

import pytest

from conftest import ROOT
from parser_forms import PARSERS
from parser_fuzz import Parser
from slices import slice_of
from windvane_privacy.errors import MalformedInput

ALL = 5_000_000
"""Cases of each parser."""
QUICK = 2_000
DEAR = {"manifest", "signed manifest", "answer with the log", "share", "receipt", "report", "result"}
"""Parsers of which a case takes a millisecond or more: a quarter of the quick cases."""
PARTS = 500
NAMES = [parser.name for parser in PARSERS]
NOT_FROM_OUTSIDE = {
    "decode_signed",  # numbers of the field, after their own checks
    "decode_hash",  # a line inside checkpoints and proofs, which are on the list
    "read_secret",  # a file of one's own
    "read_key",  # a file of one's own
    "read_signed_card",  # the two kinds of card are on the list
    "read_head",  # a checkpoint with its quorum: the answer with the log and the receipt are on the list
}


def problems(place: int, numbers: range) -> tuple[dict[int, str], int]:
    """What went wrong by case, and how many cases were accepted."""
    found: dict[int, str] = {}
    accepted = 0
    for number in numbers:
        problem, taken = PARSERS[place].problem(place, number)
        accepted += taken
        if problem is not None:
            found[number] = problem
            if len(found) == 20:
                break
    return found, accepted


@pytest.mark.parametrize("parser", PARSERS, ids=NAMES)
def test_sound_inputs_are_accepted_and_written_as_they_were(parser: Parser) -> None:
    for content in parser.contents:
        raw = parser.dressed(content)
        assert parser.again(parser.parse(raw), raw) == raw


@pytest.mark.parametrize("place", range(len(PARSERS)), ids=NAMES)
def test_changed_inputs_are_refused_by_name_or_have_one_spelling(place: int) -> None:
    quick = QUICK // 4 if NAMES[place] in DEAR else QUICK
    found, accepted = problems(place, range(quick))
    assert found == {}
    # Changes that pass are what tries the code behind the first check; changes that do not are the point.
    assert quick // 100 < accepted < quick * 3 // 4


@pytest.mark.slow
@pytest.mark.parametrize("place", range(len(PARSERS)), ids=NAMES)
def test_five_million_changed_inputs_are_refused_by_name_or_have_one_spelling(place: int) -> None:
    numbers = slice_of(ALL, PARTS)
    found, accepted = problems(place, numbers)
    assert found == {}
    print(
        f"{NAMES[place]}: {len(numbers)} cases, {numbers.start} to {numbers.stop - 1}, {accepted} accepted, no failure"
    )


def test_every_parser_of_the_core_is_on_the_list() -> None:
    listed = "".join(
        (ROOT / "tests" / name).read_text(encoding="utf-8").split("PARSERS = (")[-1].split("# --- sound inputs")[0]
        for name in ("parser_forms.py", "parser_inputs.py")
    )
    found = set()
    for path in sorted((ROOT / "privacy" / "windvane_privacy").glob("*.py")):
        found |= set(
            re.findall(r"^def ((?:read|decode|parse|scan|split)_?\w*)\(", path.read_text(encoding="utf-8"), re.M)
        )
    assert len(found) > 25
    missing = {name for name in found - NOT_FROM_OUTSIDE if not re.search(rf"\b{name}\b", listed)}
    assert missing == set()


def test_the_same_number_is_the_same_input() -> None:
    for place, parser in enumerate(PARSERS):
        if parser.name not in ("share", "answer with the log"):  # sealing and ML-DSA signing draw fresh randomness
            assert parser.mutated(Random(place)) == parser.mutated(Random(place)), parser.name


def test_the_judge_sees_a_traceback_and_a_second_spelling() -> None:
    def wrong(raw: bytes) -> bytes:
        if len(raw) > 9:
            raise IndexError
        return raw

    loose = Parser("loose", (b"[1,2,3,4]",), wrong, (MalformedInput,), lambda v, _: v.strip())
    told = " ".join(problem or "" for problem, _ in (loose.problem(0, number) for number in range(300)))
    assert "IndexError for" in told
    assert "accepted, but written otherwise" in told
