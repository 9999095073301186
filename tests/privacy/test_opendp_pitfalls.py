# SPDX-License-Identifier: Apache-2.0
"""What OpenDP does not check for us, pinned: when the library changes its mind a test here fails, and we look again."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import math
import os
import pickle
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import opendp.prelude as dp
import pytest
from opendp.mod import GLOBAL_FEATURES, OpenDPException

from conftest import ROOT
from manifests import make_manifest
from windvane_privacy import budget, noise
from windvane_privacy.errors import BoundBroken

MANIFEST = make_manifest()
SOURCES = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for folder in ("client", "privacy", "server", "cli")
    for path in (ROOT / folder).rglob("*.py")
}


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


def filter_of(budget: float, distance: float, length: int) -> dp.Queryable:
    space = dp.vector_domain(dp.atom_domain(T="i64"), size=length), dp.l2_distance(T=float)
    composed = dp.c.make_fully_adaptive_composition(*space, dp.zero_concentrated_divergence())
    return dp.c.make_privacy_filter(composed, d_in=distance, d_out=budget)([0] * length)


def answers(queryable: dp.Queryable, query: dp.Measurement) -> int:
    """How many of twenty equal queries are answered."""
    for answered in range(20):
        try:
            queryable(query)
        except OpenDPException:
            return answered
    return 20


def test_the_filter_itself_answers_fifteen_of_sixteen_and_all_sixteen_where_Q_is_nine() -> None:
    assert answers(filter_of(0.25, math.sqrt(8), 2), noise.gaussian(2, 16.0)) == 15
    assert answers(filter_of(9 / 32, 39.0, 2), noise.gaussian(2, 208.0)) == 16


def test_one_query_too_many_ends_the_filter_with_all_it_knew_so_it_is_never_relied_on() -> None:
    queryable, query = filter_of(0.25, math.sqrt(8), 2), noise.gaussian(2, 16.0)
    queryable(query)
    assert queryable.privacy_loss(math.sqrt(8)) == pytest.approx(1 / 64)
    with pytest.raises(OpenDPException, match="exceed"):
        queryable(noise.gaussian(2, 1.0))
    with pytest.raises(OpenDPException, match="exhausted"):
        queryable(query)  # it would have fitted
    with pytest.raises(OpenDPException, match="exhausted"):
        queryable.privacy_loss(math.sqrt(8))


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


def test_the_feature_that_allows_inexact_numbers_was_renamed_so_neither_name_is_ours() -> None:
    with pytest.warns(DeprecationWarning, match="idealized-numerics"):
        dp.enable_features("floating-point")
    with pytest.warns(DeprecationWarning, match="idealized-numerics"):
        dp.disable_features("floating-point")
    dp.disable_features("idealized-numerics")
    noise.opendp()
    assert set(GLOBAL_FEATURES) == {"contrib"}


def test_a_context_splits_epsilon_and_delta_by_adding_so_only_rho_is_ours() -> None:
    """A sixteenth of (1, 1e-8) each: sixteen rounds would be charged as sixteen times as much, not as four times."""

    def shares(loss: object) -> list[object]:
        context = dp.Context.compositor(
            data=[1.0], privacy_unit=dp.unit_of(contributions=1), privacy_loss=loss, split_evenly_over=16
        )
        return list(context.d_mids)

    (epsilon, delta), *_ = shares(dp.loss_of(epsilon=1.0, delta=1e-8))
    assert epsilon == pytest.approx(1 / 16)
    assert delta == pytest.approx(1e-8 / 16)
    ours = (budget.epsilon(16 * Fraction(1, 2500), "1e-8"), 16 * budget.epsilon(Fraction(1, 2500), "1e-8"))
    assert ours[0] < ours[1] / 3


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


def test_numpys_seed_has_no_effect_on_the_library() -> None:
    measurement = noise.gaussian(40, 100.0)
    drawn = []
    for _ in range(2):
        np.random.seed(7)  # noqa: NPY002 - the point of the test
        drawn.append(measurement([0] * 40))
    assert drawn[0] != drawn[1]


DRAW_IN_A_CHILD = """
import os, sys
from windvane_privacy.noise import gaussian
measurement = gaussian(8, 100.0)
measurement([0] * 8)  # the generator has begun before anybody forks
for _ in range(8):
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.write(writing, repr(measurement([0] * 8)).encode())
        os._exit(0)
    os.wait()
    print(os.read(reading, 1000).decode())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="not run: this system has no fork")
def test_children_of_one_process_do_not_draw_the_same_noise() -> None:
    done = subprocess.run([sys.executable, "-c", DRAW_IN_A_CHILD], capture_output=True, text=True, check=True)
    lines = done.stdout.split("\n")[:-1]
    assert len(lines) == len(set(lines)) == 8


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("make_basic_composition", lambda: dp.c.make_basic_composition([noise.gaussian(2, 60.0)])),
        ("make_sequential_composition", dp.c.make_sequential_composition),
        ("make_report_noisy_max_gumbel", dp.m.make_report_noisy_max_gumbel),
    ],
)
def test_old_names_are_deprecated_and_none_is_ours(name: str, call: Callable[[], object]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DeprecationWarning, match=name):
            call()
    assert not any(name in text for text in SOURCES.values())


def test_a_name_of_older_pages_does_not_exist() -> None:
    assert not hasattr(dp.m, "make_report_noisy_top_k")


def test_polars_whose_length_is_clamped_at_zero_is_neither_installed_nor_used() -> None:
    assert importlib.util.find_spec("polars") is None
    assert [name for name, text in SOURCES.items() if re.search(r"\bpolars\b|dp\.len\(|dp\.Context\b", text)] == []


def test_no_filter_queryable_or_odometer_of_the_library_keeps_our_budget() -> None:
    forbidden = re.compile(r"privacy_filter|adaptive_composition|make_composition|privacy_loss\(|odometer")
    assert [name for name, text in SOURCES.items() if forbidden.search(text)] == []


def test_the_library_brings_what_the_members_page_says() -> None:
    needed = [text for text in importlib.metadata.requires("opendp") or [] if "extra ==" not in text]
    assert needed == ["deprecated"]
    conditional = re.compile(r";.*(extra|python_version)")
    brought = [text for text in importlib.metadata.requires("deprecated") or [] if not conditional.search(text)]
    assert [re.split(r"[^a-z]", text)[0] for text in brought] == ["wrapt"]
    files = importlib.metadata.files("opendp") or []
    # Compiled copies of the sources are made on this machine and belong to no wheel.
    size = sum(Path(str(file.locate())).stat().st_size for file in files if file.suffix != ".pyc")
    stated = re.search(r"OpenDP takes (\d+) MB", (ROOT / "docs" / "members.md").read_text(encoding="utf-8"))
    assert stated is not None
    assert size / 1e6 == pytest.approx(int(stated[1]), rel=0.1)


def test_a_scale_of_nothing_adds_no_noise_so_a_small_scale_is_refused_before() -> None:
    assert noise.gaussian(2, 0.0)([3, -4]) == [3, -4]
    assert math.isinf(noise.gaussian(2, 0.0).map(39.0))
    silent = make_manifest(members=5_000, s=30, h=24, sound=False)
    with pytest.raises(BoundBroken):
        noise.release(np.zeros(silent.length, dtype=np.int64), silent, noise.OpenDPNoise())
