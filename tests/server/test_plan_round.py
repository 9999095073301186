# SPDX-License-Identifier: Apache-2.0
"""From a plan to a manifest: every computed figure against the table of docs/mechanism.md, and the calendar."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifests import make_guardians
from small_federation import FAMILIES
from windvane_privacy import manifest as manifests
from windvane_privacy.errors import ConfigurationError, ManifestError
from windvane_privacy.manifest import RosterReference, parse_time, rho_of
from windvane_server.plan_round import (
    DEMO_FLOORS,
    REAL_FLOORS,
    RoundPlan,
    Standing,
    build_manifest,
    calendar,
    honest_share,
    ladder_rho,
    noise_scale,
    read_plan,
    too_small,
)


def standing(members: int, people: int, *, demo: bool = False) -> Standing:
    return Standing(
        round_id="2027-Q1",
        demo=demo,
        log_origin="test/log",
        coordinator="ab" * 32,
        roster=RosterReference("cd" * 32, 1, members, people),
        guardians=make_guardians(),
        t=2,
        rules=(),
        min_software="0.1.0",
        rounds_so_far=0,
        last_full_round=None,
        previous_report=None,
    )


def plan(**changes: object) -> RoundPlan:
    order = tuple(family.id for family in FAMILIES)
    values = {"quarter": "2027-Q1", "source": "a list", "order": order, "families": FAMILIES, "delta": "1e-8"}
    return RoundPlan(**(values | changes))  # type: ignore[arg-type]  # a test passes wrong types on purpose


@pytest.mark.parametrize(
    ("members", "people", "s", "m_min", "h", "share", "C"),
    [
        (36, 36_000, 104, 6, 3, 60.0, 20),
        (40, 40_000, 104, 6, 3, 60.0, 20),
        (60, 12_000, 104, 10, 5, 46.5, 20),
        (60, 60_000, 208, 10, 5, 93.0, 20),
        (120, 60_000, 208, 20, 10, 65.8, 20),
        (200, 200_000, 208, 34, 17, 50.4, 8),
        (500, 150_000, 208, 85, 24, 42.5, 8),
    ],
)
def test_the_ladder_gives_the_table_of_the_mechanism(
    members: int, people: int, s: int, m_min: int, h: int, share: float, C: int
) -> None:
    made = build_manifest(plan(), standing(members, people))
    manifests.check(made)
    assert (made.noise.s, made.cohorts.m_min, made.noise.h, made.bounds.C) == (s, m_min, h, C)
    assert math.isclose(made.share_scale, share, abs_tol=0.05)
    assert made.rho == ladder_rho(members, people)
    assert made.bounds.Q == 9


@given(st.fractions(min_value=Fraction(1, 5000), max_value=Fraction(1)))
def test_the_noise_scale_is_the_smallest_that_keeps_rho(rho: Fraction) -> None:
    s = noise_scale(rho, 9)
    assert rho_of(9, s) <= rho
    assert s == 1 or rho_of(9, s - 1) > rho


@given(st.integers(0, 500), st.sampled_from([Fraction(9, 128), Fraction(9, 512), Fraction(9, 32)]))
def test_h_never_exceeds_half_a_cohort_nor_the_local_limit(m_min: int, rho: Fraction) -> None:
    h = honest_share(m_min, rho)
    assert h == 1 or (h <= m_min / 2 and h * rho <= Fraction(27, 64))
    assert h + 1 > m_min / 2 or (h + 1) * rho > Fraction(27, 64)


@pytest.mark.parametrize("quarter", ["2026-Q1", "2026-Q4", "2027-Q1", "2027-Q4", "2028-Q1"])
def test_the_calendar_of_every_quarter_is_that_of_a_real_round(quarter: str) -> None:
    made = build_manifest(plan(quarter=quarter), standing(40, 40_000))
    manifests.check(made)
    start, end = parse_time(made.events.from_), parse_time(made.events.to)
    assert (start.month - 1) // 3 + 1 == int(quarter[-1])
    assert 89 < (end - start).days < 93
    assert end.day == 1


def test_the_dates_of_a_quarter_by_hand() -> None:
    assert calendar("2026-Q4") == {
        "events_from": "2026-10-01T00:00:00Z",
        "events_to": "2027-01-01T00:00:00Z",
        "collection_deadline": "2027-01-15T00:00:00Z",
        "opens": "2027-01-16T00:00:00Z",
        "commit_by": "2027-01-29T00:00:00Z",
        "closes": "2027-01-31T00:00:00Z",
        "publish_at": "2027-02-15T12:00:00Z",
    }


@pytest.mark.parametrize("quarter", ["2027-Q5", "2027-q1", "27-Q1", "2027-Q1 ", "0000-Q1", ""])
def test_a_quarter_has_one_form(quarter: str) -> None:
    with pytest.raises(ConfigurationError):
        calendar(quarter)


def test_a_real_round_takes_no_dates_and_a_demonstration_no_unknown_ones() -> None:
    dates = {"closes": "2027-04-20T00:00:00Z"}
    with pytest.raises(ConfigurationError, match="dates"):
        build_manifest(plan(dates=dates), standing(40, 40_000))
    with pytest.raises(ConfigurationError, match="dates"):
        build_manifest(plan(dates={"lunch": "2027-04-20T00:00:00Z"}), standing(40, 4_000, demo=True))
    assert build_manifest(plan(dates=dates), standing(40, 4_000, demo=True)).submission.closes == dates["closes"]


@pytest.mark.parametrize("rho", ["9/32", "9/100", "0", "-1/2", "1/0", "much"])
def test_a_plan_cannot_ask_for_more_than_the_ladder_gives(rho: str) -> None:
    with pytest.raises(ConfigurationError):
        build_manifest(plan(rho=rho), standing(40, 40_000))


def test_a_plan_may_ask_for_less() -> None:
    assert build_manifest(plan(rho="9/512"), standing(40, 40_000)).noise.s == 208


@pytest.mark.parametrize(
    ("organisations", "people", "reason"),
    [(35, 90_000, "roster"), (36, 9_999, "people"), (36, 10_000, None), (0, 0, "roster")],
)
def test_the_floors_name_what_is_missing(organisations: int, people: int, reason: str | None) -> None:
    assert too_small(organisations, people, REAL_FLOORS) == reason


def test_a_demonstration_has_its_own_floors() -> None:
    assert too_small(20, 2_000, DEMO_FLOORS) is None
    manifests.check(build_manifest(plan(), standing(20, 2_000, demo=True)))
    with pytest.raises(ManifestError):
        manifests.check(build_manifest(plan(), standing(20, 2_000)))


TOML = b"""
quarter = "2027-Q1"
source = "a list"
order = ["elm", "mine-1"]
delta = "1e-8"
[[family]]
id = "mine-1"
label = "Mine 1"
vendor = "Me"
patterns = []
"""


def test_a_plan_file_adds_its_families_to_the_catalogue() -> None:
    found = read_plan(TOML, FAMILIES)
    assert [family.id for family in found.families] == ["alder", "birch", "cedar", "dogwood", "elm", "mine-1"]
    own = read_plan(TOML.replace(b"mine-1", b"elm").replace(b'"elm", "elm"', b'"elm", "birch"'), FAMILIES)
    assert next(family for family in own.families if family.id == "elm").label == "Mine 1"


def test_a_plan_file_can_leave_the_builtin_families_out() -> None:
    found = read_plan(b"builtin = false\n" + TOML, FAMILIES)
    assert [family.id for family in found.families] == ["mine-1"]


@pytest.mark.parametrize(
    "raw",
    [b"", b"\xff", b"quarter = ", TOML + b"surprise = 1", TOML.replace(b'"1e-8"', b"1e-8"), b'[dates]\nopens = "x"'],
)
def test_a_plan_file_with_anything_else_is_refused(raw: bytes) -> None:
    with pytest.raises(ConfigurationError):
        read_plan(raw, FAMILIES)
