# SPDX-License-Identifier: Apache-2.0
"""A coordinator that lies, in memory behind the courier interface: how many kinds of lie are refused, each by name.

The lies to guardians are the functions of `test_guardian_refuses_rounds.py` and `test_guardian_refuses_openings.py`,
which a scripted coordinator tells to real guardian sessions; the lies to a member are the tests of
`test_agent_lies.py`, told to a real agent by a courier that changes answers. This file holds them to their number.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from windvane_privacy.errors import NotReady, WindvaneError

TESTS = Path(__file__).resolve().parents[1]
TO_GUARDIANS = ("test_guardian_refuses_rounds", "test_guardian_refuses_openings")
TO_MEMBERS = TESTS / "client" / "test_agent_lies.py"


@pytest.fixture
def guardians(monkeypatch: pytest.MonkeyPatch) -> list[ModuleType]:
    monkeypatch.syspath_prepend(TESTS / "privacy")
    return [importlib.import_module(name) for name in TO_GUARDIANS]


def lies(module: ModuleType) -> Iterator[tuple[str, type[WindvaneError]]]:
    """Every lie of a module with the refusal that its test demands, from the parameters of the tests themselves."""
    for test in vars(module).values():
        for mark in getattr(test, "pytestmark", ()):
            if mark.name != "parametrize" or mark.args[0] not in (("lie", "refusal"), ("make", "refusal")):
                continue
            for lie, refusal in mark.args[1]:
                yield lie.__name__, refusal


def test_more_than_forty_kinds_of_lie_to_guardians_are_refused_each_by_its_own_name(
    guardians: list[ModuleType],
) -> None:
    found = [one for module in guardians for one in lies(module)]
    names = [name for name, _ in found]
    assert len(set(names)) == len(names) >= 40
    refusals = {refusal for _, refusal in found}
    assert len(refusals) >= 20
    assert not any(refusal in (WindvaneError, NotReady) for refusal in refusals), "a lie is never 'not yet'"


def test_every_lie_to_a_member_names_its_refusal() -> None:
    text = TO_MEMBERS.read_text(encoding="utf-8")
    tests = re.split(r"^def (?=test_)", text, flags=re.M)[1:]
    assert len(tests) >= 18
    named = [one for one in tests if re.search(r"isinstance\(.*?, \(?[A-Z]\w+|pytest\.raises\(\(?[A-Z]\w+", one, re.S)]
    silent = {one.split("(")[0] for one in tests} - {one.split("(")[0] for one in named}
    # Two say what is no lie that stops anything: forged entries are evidence, and two guardians suffice.
    assert silent <= {
        "test_a_commitment_in_our_name_without_our_signature_burns_nothing",
        "test_an_accepted_entry_that_the_coordinator_did_not_sign_ends_nothing",
        "test_two_guardians_suffice",
    }
