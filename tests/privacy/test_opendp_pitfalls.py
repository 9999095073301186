# SPDX-License-Identifier: Apache-2.0
"""What OpenDP does not check for us, pinned: when the library changes its mind a test here fails, and we look again."""

from __future__ import annotations

import importlib.metadata
import math
import pickle
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pytest
from opendp.mod import GLOBAL_FEATURES, OpenDPException

from manifests import make_manifest
from windvane_privacy import noise
from windvane_privacy.errors import BoundBroken

MANIFEST = make_manifest()


@pytest.fixture(autouse=True)
def contrib() -> None:
    """Each test starts as the program does, whatever ran before it."""
    noise.opendp()


def test_we_stay_on_the_version_these_pins_were_taken_from() -> None:
    assert importlib.metadata.version("opendp").startswith("0.16.")


def test_the_length_of_a_vector_is_not_checked_at_release_so_we_do() -> None:
    measurement = noise.gaussian(280, 60.0)
    assert len(measurement([0] * 279)) == 279
    with pytest.raises(BoundBroken):
        noise.release(np.zeros(MANIFEST.length - 1, dtype=np.int64), MANIFEST, noise.OpenDPNoise())


def test_the_bounds_of_a_domain_are_not_checked_at_release_so_we_do() -> None:
    space = dp.vector_domain(dp.atom_domain(bounds=(0, 100), T="i64"), size=2), dp.l2_distance(T=float)
    measurement = dp.m.make_gaussian(*space, scale=26.0)
    assert measurement([500, 500])[0] > 200
    exact = np.zeros(MANIFEST.length, dtype=np.int64)
    exact[0] = 12 * MANIFEST.bounds.C + 12
    with pytest.raises(BoundBroken):
        noise.release(exact, MANIFEST, noise.OpenDPNoise())


@pytest.mark.parametrize("dtype", [np.int32, np.uint64, np.float64])
def test_other_number_types_raise_a_type_error(dtype: type) -> None:
    with pytest.raises(TypeError):
        noise.gaussian(2, 60.0)(np.zeros(2, dtype=dtype))


def test_int_means_32_bits_so_we_say_i64() -> None:
    assert str(dp.atom_domain(T=int)) == "AtomDomain(T=i32)"
    assert "i64" in str(noise.gaussian(2, 60.0).input_domain)


def test_the_privacy_filter_loses_one_query_to_rounding_so_the_ledger_uses_fractions() -> None:
    """Sixteen times (sqrt 8)^2 / (2 16^2) is a quarter; in floats each is a hair above, so a budget of a quarter ends
    after fifteen."""
    unit = dp.m.make_gaussian(dp.atom_domain(T="i64"), dp.absolute_distance(T=float), scale=16.0)
    each = Fraction(unit.map(math.sqrt(8)))
    assert 15 * each <= Fraction(1, 4) < 16 * each
    ours = Fraction(noise.gaussian(2, 208.0).map(39.0))
    assert 16 * ours == Fraction(9, 32)


def test_a_queryable_cannot_be_stored_so_the_ledger_is_ours() -> None:
    space = dp.vector_domain(dp.atom_domain(T="i64"), size=2), dp.l2_distance(T=float)
    composed = dp.c.make_adaptive_composition(*space, dp.zero_concentrated_divergence(), d_in=39.0, d_mids=[0.1])
    queryable = composed(np.zeros(2, dtype=np.int64))
    with pytest.raises(ValueError, match="pickled"):
        pickle.dumps(queryable)


def test_unknown_features_are_accepted_silently_so_we_enable_one_only() -> None:
    before = set(GLOBAL_FEATURES)
    dp.enable_features("nonsense")
    assert "nonsense" in GLOBAL_FEATURES
    dp.disable_features("nonsense")
    assert set(GLOBAL_FEATURES) == before
    noise.opendp()
    assert set(GLOBAL_FEATURES) == {"contrib"}


def test_without_contrib_nothing_can_be_built() -> None:
    dp.disable_features("contrib")
    try:
        with pytest.raises(OpenDPException):
            dp.m.make_gaussian(dp.atom_domain(T="i64"), dp.absolute_distance(T=float), scale=26.0)
    finally:
        dp.enable_features("contrib")


def test_sums_saturate_at_the_limits_of_64_bits_so_we_clamp_first() -> None:
    limit = np.iinfo(np.int64).max
    drawn = [noise.gaussian(1, 100.0)(np.array([limit], dtype=np.int64))[0] for _ in range(64)]
    assert max(drawn) == limit
    assert min(drawn) > limit - 2_000


def test_a_scale_of_nothing_adds_no_noise_so_a_small_scale_is_refused_before() -> None:
    assert noise.gaussian(2, 0.0)([3, -4]) == [3, -4]
    assert math.isinf(noise.gaussian(2, 0.0).map(39.0))
    silent = make_manifest(members=5_000, s=30, h=24, sound=False)
    with pytest.raises(BoundBroken):
        noise.release(np.zeros(silent.length, dtype=np.int64), silent, noise.OpenDPNoise())
