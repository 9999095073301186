# SPDX-License-Identifier: Apache-2.0
"""The worked example of docs/mechanism.md to its printed digits, and the tail of Student's t."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from direction_reference import tail
from report_world import real_manifest
from windvane_privacy import direction
from windvane_privacy.catalogue import Signal
from windvane_privacy.claims import State
from windvane_privacy.layout import Cell
from windvane_privacy.statistics import benjamini_hochberg, cell_statistics, two_sided_p, with_phi

# Regularised incomplete beta function I_{14/(14+t^2)}(7, 1/2), computed with 40 digits.
TAILS = [
    (0.0, 1.0),
    (0.1, 0.92176221413162589),
    (0.5, 0.62484191623969475),
    (1.0, 0.33428194339465759),
    (1.3, 0.21459759256193592),
    (2.145, 0.049980151822736208),
    (2.977, 0.0099968852720179378),
    (4.140, 0.0010008856679971763),
    (4.362, 0.00065075241848867363),
    (6.5, 1.4018256628817122e-5),
    (10.0, 9.3413942258054498e-8),
    (25.0, 5.1253299048857471e-13),
]
CELL = Cell(Signal.COMPLETION, "all", "alder", "birch")
D_HAND = [744, 1152, 492, 900, 1056]
T_HAND = [975, 940, 1005, 950, 980]


@pytest.fixture(scope="module")
def hand():
    manifest = real_manifest()
    return manifest, cell_statistics(CELL, D_HAND, T_HAND, (12,) * 5, manifest.share_scale)


def test_constants_of_the_example_follow_from_its_size(hand):
    manifest, _ = hand
    assert (manifest.noise.s, manifest.cohorts.m_min, manifest.noise.h) == (208, 10, 5)
    assert f"{manifest.share_scale:.2f}" == "93.02"
    assert (manifest.noise_clamp, manifest.bounds.C) == (931, 20)
    assert f"{manifest.bounds.C + manifest.noise_clamp / 12:.2f}" == "97.58"


def test_statistics_of_the_example(hand):
    _, cell = hand
    assert [Fraction(d, 12) for d in cell.d] == [62, 96, 41, 75, 88]
    assert [Fraction(t, 5) for t in cell.t] == [195, 188, 201, 190, 196]
    assert (cell.net, cell.spoke) == (362, 970)
    assert f"{cell.V0 - 970 / 5:.2f}" == "721.07"
    assert f"{cell.sd_T:.1f}" == "144.1"
    assert cell.s_obs2 == Fraction("1901.2") / 4
    assert f"{float(cell.s_obs2):.1f}" == "475.3"
    assert f"{cell.V0:.2f}" == "915.07"


def test_tests_of_the_example(hand):
    manifest, cell = hand
    found = with_phi(cell, 1.9)
    assert f"{found.se**2 / 5:.2f}" == "1377.68"
    assert f"{found.se:.2f}" == "83.00"
    assert f"{found.t:.3f}" == "4.362"
    assert f"{found.p:.2e}" == "6.51e-04"
    assert (25 * cell.twelve_d, 6 * cell.five_t) == (108_600, 29_100)
    assert cell.agreeing == 5
    lie = manifest.bounds.C + manifest.noise_clamp / 12
    assert f"{362 - lie:.1f}" == "264.4"
    assert f"{2.33 * found.se:.1f}" == "193.4"
    assert f"{362 - 2 * lie:.1f}" == "166.8"
    assert direction._call(found, lie) is State.TOWARD_A
    assert not direction._firm(found, 110, lie)


def test_rank_fifteen_of_a_hundred_and_ten_passes_the_false_discovery_test(hand):
    _, cell = hand
    p = with_phi(cell, 1.9).p
    cells = [Cell(Signal.COMPLETION, f"kind{i}", "a", "b") for i in range(110)]
    values = [1e-9] * 14 + [p] + [0.9] * 95
    assert f"{0.10 * 15 / 110:.4f}" == "0.0136"
    assert benjamini_hochberg(dict(zip(cells, values, strict=True)), 0.10) == frozenset(cells[:15])


@pytest.mark.parametrize(("t", "expected"), TAILS)
def test_closed_form_of_p_agrees_with_stored_values(t, expected):
    assert abs(two_sided_p(t) - expected) < 1e-12
    assert two_sided_p(-t) == two_sided_p(t)


@pytest.mark.parametrize("t", [0.3, 1.7, 3.9, 5.2])
def test_closed_form_of_p_agrees_with_integration(t):
    assert math.isclose(two_sided_p(t), tail(t), abs_tol=1e-12)


def test_step_up_takes_everything_below_the_last_passing_rank():
    cells = [Cell(Signal.COMPLETION, f"kind{i}", "a", "b") for i in range(4)]
    # .04 fails alone at rank 1 (.025) but .05 passes at rank 2 (.05), and takes rank 1 with it.
    assert benjamini_hochberg(dict(zip(cells, [0.04, 0.05, 0.5, 0.9], strict=True)), 0.10) == frozenset(cells[:2])
    assert benjamini_hochberg({}, 0.10) == frozenset()
