# SPDX-License-Identifier: Apache-2.0
"""Noise: the agreed law, the agreed scale, and nothing but whole numbers inside their range."""

from __future__ import annotations

import ast
import importlib.metadata
import inspect
import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from opendp.mod import deserialize

from manifests import make_manifest
from outcome_rows import chi_square_z, gaussian_expected
from windvane_privacy import budget, noise, policy, votes
from windvane_privacy.errors import BoundBroken, ConfigurationError, ManifestError
from windvane_privacy.manifest import rho_of, share_scale
from windvane_privacy.noise import (
    OpenDPNoise,
    gaussian,
    local_rho,
    measurement_json,
    release,
    require_opendp,
    sensitivity,
)

MANIFEST = make_manifest()
L, C, B = MANIFEST.length, MANIFEST.bounds.C, MANIFEST.noise_clamp
NOISE = OpenDPNoise()


def zeros() -> NDArray[np.int64]:
    return np.zeros(L, dtype=np.int64)


def with_entry(index: int, value: int) -> NDArray[np.int64]:
    exact = zeros()
    exact[index] = value
    return exact


class Fixed:
    """Stands for a broken noise library: gives what it was told to give."""

    def __init__(self, answer: Callable[[NDArray[np.int64]], Any]) -> None:
        self.answer = answer

    def draw(self, exact: NDArray[np.int64], share_scale: float) -> list[int]:
        return self.answer(exact)  # type: ignore[no-any-return]


@pytest.mark.parametrize(("s", "rho"), [(208, "9/512"), (104, "9/128"), (52, "9/32")])
def test_opendp_and_the_ledger_agree_on_rho_exactly(s: int, rho: str) -> None:
    assert Fraction(gaussian(L, float(s)).map(sensitivity(9))) == rho_of(9, s) == Fraction(rho)


def test_sensitivity_is_never_rounded_down() -> None:
    for Q in range(1, 40):
        assert Fraction(sensitivity(Q)) ** 2 >= 169 * Q
    assert sensitivity(9) == 39.0


@pytest.mark.parametrize("s", [52, 104, 208])
def test_share_scale_is_rounded_up_for_every_h(s: int) -> None:
    for h in range(1, 65):
        scale = share_scale(s, h)
        assert Fraction(scale) ** 2 * h >= s * s
        assert Fraction(math.nextafter(math.nextafter(scale, 0), 0)) ** 2 * h < s * s
        if scale >= 26:
            assert Fraction(gaussian(2, scale).map(39.0)) <= h * rho_of(9, s)


@pytest.mark.parametrize(("members", "s", "h"), [(40, 104, 3), (60, 208, 5), (200, 208, 17), (500, 208, 24)])
def test_a_members_own_share_costs_no_more_than_h_rho(members: int, s: int, h: int) -> None:
    manifest = make_manifest(members=members, demo=False, s=s)
    assert manifest.noise.h == h
    assert local_rho(manifest) <= h * manifest.rho
    assert local_rho(manifest) > h * manifest.rho * (1 - Fraction(1, 2**40))


def test_a_share_below_26_is_refused() -> None:
    edge = make_manifest(members=200, s=104, h=16)
    assert edge.share_scale == 26.0
    assert len(release(np.zeros(edge.length, dtype=np.int64), edge, NOISE)) == edge.length
    with pytest.raises(ManifestError, match="noise share"):
        make_manifest(members=200, s=104, h=17)
    too_small = make_manifest(members=200, s=104, h=17, sound=False)
    with pytest.raises(BoundBroken):
        release(np.zeros(too_small.length, dtype=np.int64), too_small, NOISE)


@pytest.mark.parametrize(
    "exact",
    [
        np.zeros(L, dtype=np.float64),
        np.zeros(L, dtype=np.int32),
        np.zeros(L, dtype=np.uint64),
        np.zeros(L - 1, dtype=np.int64),
        np.zeros(L + 1, dtype=np.int64),
        np.zeros((L, 1), dtype=np.int64),
        np.zeros(2 * L, dtype=np.int64)[::2],
        [0] * L,
        None,
        with_entry(0, 12 * C + 1),
        with_entry(0, -12 * C - 1),
        with_entry(0, np.iinfo(np.int64).min),
        with_entry(1, 5 * C + 1),
        with_entry(1, -1),
        with_entry(2, 12 * C + 1),
        with_entry(3, -1),
        with_entry(L - 2, -12 * C - 1),
        with_entry(L - 1, 5 * C + 1),
    ],
)
def test_a_vector_outside_the_agreed_form_is_not_released(exact: Any) -> None:
    with pytest.raises(BoundBroken):
        release(exact, MANIFEST, NOISE)
    if isinstance(exact, np.ndarray):
        assert not exact.any()


@pytest.mark.parametrize("pair", [(12 * C, 5 * C), (-12 * C, 5 * C), (12 * C, 0), (-12 * C, 0)])
def test_a_vector_at_its_edge_is_released(pair: tuple[int, int]) -> None:
    assert len(release(np.array(pair * (L // 2), dtype=np.int64), MANIFEST, NOISE)) == L


def test_a_vector_that_cannot_be_overwritten_is_not_released() -> None:
    exact = zeros()
    exact.flags.writeable = False
    with pytest.raises(BoundBroken):
        release(exact, MANIFEST, NOISE)


@pytest.mark.parametrize(
    "answer",
    [
        lambda exact: exact,
        lambda exact: exact.tolist()[:-1],
        lambda exact: [*exact.tolist(), 0],
        lambda exact: [float(x) for x in exact],
        list,
        lambda exact: [True, *exact.tolist()[1:]],
        lambda exact: tuple(exact.tolist()),
        lambda exact: None,
    ],
    ids=["array", "short", "long", "floats", "numpy integers", "a truth value", "tuple", "nothing"],
)
def test_noise_that_is_not_whole_numbers_of_the_agreed_length_is_not_released(answer: Callable[[Any], Any]) -> None:
    with pytest.raises(BoundBroken):
        release(zeros(), MANIFEST, Fixed(answer))


def test_released_entries_are_clamped_to_their_range() -> None:
    huge = release(zeros(), MANIFEST, Fixed(lambda exact: [10**30] * len(exact)))
    assert huge == [12 * C + B, 5 * C + B] * (L // 2)
    tiny = release(zeros(), MANIFEST, Fixed(lambda exact: [-(10**30)] * len(exact)))
    assert tiny == [-12 * C - B, -B] * (L // 2)
    edge = [12 * C + B, -B] * (L // 2)
    assert release(zeros(), MANIFEST, Fixed(lambda exact: list(edge))) == edge


def test_the_exact_vector_is_overwritten_also_when_the_draw_fails() -> None:
    def fails(exact: NDArray[np.int64]) -> list[int]:
        raise RuntimeError("no entropy")

    for source, error in ((NOISE, None), (Fixed(lambda exact: []), BoundBroken), (Fixed(fails), RuntimeError)):
        exact = with_entry(0, 12 * C)
        if error is None:
            release(exact, MANIFEST, source)
        else:
            with pytest.raises(error):
                release(exact, MANIFEST, source)
        assert not exact.any()


def test_what_is_drawn_is_centred_on_the_exact_vector_with_the_share_s_scale() -> None:
    draws = 400
    sums, squares = 0.0, 0.0
    for _ in range(draws):
        exact = with_entry(0, 12 * C)
        truth = exact.tolist()
        for entry, true in zip(release(exact, MANIFEST, NOISE), truth, strict=True):
            sums += entry - true
            squares += (entry - true) ** 2
    n, s_i = draws * L, MANIFEST.share_scale
    assert abs(sums / n) < 5 * s_i / math.sqrt(n)
    assert abs(squares / n / s_i**2 - 1) < 5 * math.sqrt(2 / n)


def draws_of(scale: float, n: int) -> list[int]:
    return NOISE.draw(np.zeros(n, dtype=np.int64), scale)


def test_sampler_is_the_discrete_gaussian() -> None:
    scale, n = 26.0, 60_000
    assert chi_square_z(Counter(draws_of(scale, n)), gaussian_expected(scale, n)) < 5


def test_sampler_test_notices_another_scale() -> None:
    n = 60_000
    assert chi_square_z(Counter(draws_of(25.0, n)), gaussian_expected(26.0, n)) > 5
    assert chi_square_z(Counter([0] * n), gaussian_expected(26.0, n)) > 5


def test_shares_of_h_members_sum_to_the_noise_of_the_cohort() -> None:
    h, s, n = 4, 52, 25_000
    total = [sum(entries) for entries in zip(*(draws_of(share_scale(s, h), n) for _ in range(h)), strict=True)]
    assert chi_square_z(Counter(total), gaussian_expected(s, n)) < 5
    assert abs(sum(x * x for x in total) / n / s**2 - 1) < 5 * math.sqrt(2 / n)
    half = [a + b for a, b in zip(draws_of(26.0, n // 2), draws_of(26.0, n // 2), strict=True)]
    assert chi_square_z(Counter(half), gaussian_expected(s, n // 2)) > 5


def test_two_releases_of_one_vector_differ() -> None:
    first, second = (release(zeros(), MANIFEST, NOISE) for _ in range(2))
    assert sum(a == b for a, b in zip(first, second, strict=True)) < L // 4
    assert any(first)


def test_the_stored_measurement_is_this_members_own_share() -> None:
    stored = deserialize(measurement_json(MANIFEST))
    assert Fraction(stored.map(39.0)) == local_rho(MANIFEST)
    assert len(stored(zeros())) == L
    assert f'"scale": {MANIFEST.share_scale}' in measurement_json(MANIFEST)


@pytest.mark.parametrize("version", ["0.14.1", "0.9.9", "0.13.0", "nonsense", ""])
def test_an_opendp_with_the_faulty_sampler_is_refused(version: str) -> None:
    with pytest.raises(ConfigurationError):
        require_opendp(version)


def test_the_source_asks_for_the_installed_opendp(monkeypatch: pytest.MonkeyPatch) -> None:
    require_opendp("0.14.2")
    require_opendp(importlib.metadata.version("opendp"))
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "0.14.1" if name == "opendp" else "9")
    with pytest.raises(ConfigurationError):
        OpenDPNoise()


def test_nothing_can_seed_the_noise() -> None:
    assert list(inspect.signature(OpenDPNoise).parameters) == []
    assert list(inspect.signature(OpenDPNoise.draw).parameters) == ["self", "exact", "share_scale"]
    np.random.seed(1)  # noqa: NPY002 - the point of the test
    first = draws_of(26.0, 50)
    np.random.seed(1)  # noqa: NPY002
    assert draws_of(26.0, 50) != first


@pytest.mark.parametrize("module", [votes, noise, budget, policy], ids=lambda module: module.__name__)
def test_no_other_source_of_randomness_is_within_reach(module: ModuleType) -> None:
    tree = ast.parse(Path(module.__file__ or "").read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            assert not {alias.name.split(".")[0] for alias in node.names} & {"random", "scipy"}
        elif isinstance(node, ast.ImportFrom):
            assert (node.module or "").split(".")[0] != "random"
            assert not (node.module or "").startswith("numpy.random")
        elif isinstance(node, ast.Attribute):
            assert not (node.attr == "random" and isinstance(node.value, ast.Name) and node.value.id in {"np", "numpy"})
