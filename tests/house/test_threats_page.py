# SPDX-License-Identifier: Apache-2.0
"""The page of threats names tests that exist, errors that exist, and the one table of coalitions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from house.render_threats import ADVERSARIES, Adversary
from windvane_privacy.coalitions import COALITIONS, Guarantee
from windvane_privacy.errors import all_errors

TESTS = Path(__file__).resolve().parents[1]


def names() -> set[str]:
    """Every test function and test file of this repository."""
    found = {path.stem for path in TESTS.rglob("test_*.py")}
    for path in TESTS.rglob("test_*.py"):
        found |= set(re.findall(r"^(?:async )?def (test_\w+)", path.read_text(encoding="utf-8"), re.M))
    return found


@pytest.mark.parametrize("adversary", ADVERSARIES, ids=lambda one: one.name)
def test_every_line_of_the_page_names_tests_that_exist(adversary: Adversary) -> None:
    known = names()
    for attack in adversary.attacks:
        assert attack.tests, attack.what
        assert set(attack.tests) <= known, (attack.what, set(attack.tests) - known)


@pytest.mark.parametrize("adversary", ADVERSARIES, ids=lambda one: one.name)
def test_every_error_of_the_page_exists(adversary: Adversary) -> None:
    for attack in adversary.attacks:
        for name in re.findall(r"`([A-Z]\w+)`", attack.end):
            assert name in {error.__name__ for error in all_errors().values()}, name


def test_no_coalition_stands_twice_and_the_last_one_has_everything_but_the_noise() -> None:
    assert len({one.who for one in COALITIONS}) == len(COALITIONS)
    assert COALITIONS[-1].guarantee is Guarantee.C
    assert {one.guarantee for one in COALITIONS} == set(Guarantee)
