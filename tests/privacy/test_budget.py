# SPDX-License-Identifier: Apache-2.0
"""Budget: exact rho, OpenDP's epsilon, and a second accountant that must agree."""

from __future__ import annotations

import importlib.util
import math
import re
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import ROOT, not_run
from manifests import make_manifest
from windvane_privacy import budget
from windvane_privacy.errors import ManifestError
from windvane_privacy.manifest import rho_of, share_scale
from windvane_privacy.noise import gaussian, local_rho, sensitivity

DELTAS = ("1e-6", "1e-8", "1e-9")
TABLE = {
    "9/512": (0.840, 1.011, 1.087),
    "9/128": (1.769, 2.104, 2.253),
    "9/64": (2.580, 3.048, 3.257),
    "27/128": (3.224, 3.793, 4.048),
    "9/32": (3.782, 4.436, 4.729),
    "9/16": (5.582, 6.498, 6.908),
    "9/8": (8.317, 9.600, 10.176),
    "81/1352": (1.622, 1.932, 2.070),
    "81/338": (3.460, 4.065, 4.336),
}


@pytest.mark.parametrize("rho", TABLE)
def test_epsilon_is_the_published_one(rho: str) -> None:
    found = [budget.epsilon(Fraction(rho), delta) for delta in DELTAS]
    assert found == [pytest.approx(figure, abs=0.0005001) for figure in TABLE[rho]]


def test_every_epsilon_in_the_mechanism_page_is_recomputed() -> None:
    """Each row of the page's table: a fraction, then epsilon at three deltas, rounded up."""
    page = (ROOT / "docs" / "mechanism.md").read_text(encoding="utf-8")
    cell = r"\s*(\d+\.\d{3})\s*\|"
    rows = re.findall(rf"^\|[^|\n]*\|\s*(\d+/\d+)\s*\|{cell}{cell}{cell}\s*$", page, re.MULTILINE)
    assert {row[0] for row in rows} == set(TABLE)
    for rho, *printed in rows:
        assert printed == [budget.epsilon_text(Fraction(rho), delta) for delta in DELTAS], rho


def test_every_guarantee_in_the_mechanism_page_is_recomputed() -> None:
    page = (ROOT / "docs" / "mechanism.md").read_text(encoding="utf-8")
    printed = dict(re.findall(r"^\| \((a|a\+|b|c)\) \|.*\| (\d\.\d{3} \| \d\.\d{3}) \|$", page, re.MULTILINE))
    large, small = (budget.guarantees(make_manifest(members=members, demo=False)) for members in (60, 40))
    assert printed == {
        name: f"{first.text} | {second.text}"
        for name, first, second in (
            ("a", large.a, small.a),
            ("a+", large.a_plus, small.a_plus),
            ("b", dict(large.b)[2], dict(small.b)[2]),
            ("c", large.c, small.c),
        )
    }


def test_rho_composes_exactly_over_64_quarters_and_epsilons_are_not_added() -> None:
    rho = rho_of(9, 208)
    assert sum([rho] * 64, Fraction(0)) == 64 * rho == Fraction(9, 8)
    twelve = budget.epsilon(12 * rho, "1e-8")
    assert twelve == pytest.approx(3.793, abs=0.0005)
    assert 12 * budget.epsilon(rho, "1e-8") > 3 * twelve


@settings(deadline=None)  # the first call loads OpenDP; a busy machine is no failure
@given(st.fractions(min_value=Fraction(1, 10_000), max_value=8, max_denominator=100_000))
def test_epsilon_never_understates_and_stays_below_the_closed_form(rho: Fraction) -> None:
    """Grows with rho; below rho + 2 sqrt(rho ln(1/delta)); above what any single order of the conversion refutes."""
    value = budget.epsilon(rho, "1e-8")
    ceiling = float(rho) + 2 * math.sqrt(float(rho) * math.log(1e8))
    assert 0 < value <= ceiling
    assert budget.epsilon(rho + Fraction(1, 100), "1e-8") > value
    assert budget.epsilon(rho, "1e-9") > value
    orders = (1 + 10 ** (k / 40) for k in range(-120, 121))
    best = min(float(rho) * a + (math.log(1e8) + (a - 1) * math.log1p(-1 / a) - math.log(a)) / (a - 1) for a in orders)
    assert value == pytest.approx(best, rel=2e-3)
    assert value <= best * (1 + 1e-9)


@settings(deadline=None)  # the first call loads OpenDP; a busy machine is no failure
@given(st.fractions(min_value=0, max_value=20, max_denominator=10**6))
def test_printed_epsilon_is_rounded_up(rho: Fraction) -> None:
    value, printed = budget.epsilon(rho, "1e-8"), Fraction(budget.epsilon_text(rho, "1e-8"))
    assert Fraction(value) <= printed < Fraction(value) + Fraction(1, 1000)
    assert re.fullmatch(r"\d+\.\d{3}", budget.epsilon_text(rho, "1e-8"))


def test_nothing_costs_nothing_and_a_negative_rho_is_refused() -> None:
    assert budget.epsilon(Fraction(0), "1e-8") == 0.0
    assert budget.epsilon_text(Fraction(0), "1e-8") == "0.000"
    with pytest.raises(ValueError, match="negative"):
        budget.epsilon(Fraction(-1, 100), "1e-8")


@pytest.mark.parametrize("delta", ["", "0", "1", "1e8", "0.5", "1e-0", "1e-999999999", "1e-08", "1/9", "-1e-8", "nan"])
def test_a_delta_of_another_form_is_refused(delta: str) -> None:
    with pytest.raises(ManifestError):
        budget.epsilon(Fraction(1, 10), delta)


def eps(loss: budget.Loss) -> float:
    return round(loss.epsilon, 3)


def test_guarantees_of_a_large_federation() -> None:
    """60 organisations of 1,000 people: rho 9/512, h = 5, smallest cohort 10."""
    manifest = make_manifest(members=60, demo=False)
    found = budget.guarantees(manifest)
    assert (manifest.noise.h, manifest.cohorts.m_min, found.delta) == (5, 10, "1e-8")
    assert (found.a.rho, eps(found.a), found.a.text) == (Fraction(9, 512), 1.011, "1.012")
    assert found.a_plus.rho == Fraction(9, 1024)
    assert [(g, loss.rho) for g, loss in found.b] == [(g, Fraction(45, 512 * g)) for g in (4, 3, 2, 1)]
    assert [eps(loss) for _g, loss in found.b[1:]] == [1.323, 1.639, 2.369]
    assert (found.c.rho, eps(found.c)) == (Fraction(45, 512), 2.369)
    assert eps(found.replace_one) == 1.932
    assert eps(found.two_accounts) == 2.104
    assert (eps(found.year), eps(found.three_years)) == (2.104, 3.793)
    assert found.year_c.rho == 4 * found.c.rho


def test_guarantees_of_a_small_federation() -> None:
    """40 organisations: rho 9/128, h = 3."""
    found = budget.guarantees(make_manifest(members=40, demo=False))
    assert [eps(loss) for loss in (found.a, found.c, found.year, found.replace_one)] == [2.104, 3.793, 4.436, 4.065]
    assert [(g, eps(loss)) for g, loss in found.b] == [(2, 2.612), (1, 3.793)]


@pytest.mark.parametrize(
    ("rho", "h", "m", "figure"),
    [("9/512", 5, 12, 0.639), ("9/128", 3, 7, 1.343)],
)
def test_all_honest_members_protect_more(rho: str, h: int, m: int, figure: float) -> None:
    assert budget.epsilon(Fraction(rho) * h / m, "1e-8") == pytest.approx(figure, abs=0.0005001)


@pytest.mark.parametrize(
    ("members", "quarters", "a", "c"),
    [
        (40, 4, 4.436, 8.2),
        (60, 16, 4.436, 10.9),
        (120, 16, 4.436, 16.4),
        (200, 16, 4.436, 22.6),
        (500, 16, 4.436, 28.0),
    ],
)
def test_lifetime_of_a_person_under_the_usual_cap(members: int, quarters: int, a: float, c: float) -> None:
    manifest = make_manifest(members=members, demo=False)
    found = budget.lifetime(manifest, Fraction(9, 32))
    assert found.rounds == quarters
    assert eps(found.a) == 4.436
    assert round(found.c.epsilon, 1) == c
    assert found.spent.rho == manifest.rho


def test_what_a_person_can_have_spent_stops_at_the_cap() -> None:
    cap = Fraction(9, 32)
    spent = [budget.lifetime(make_manifest(rounds_so_far=n), cap).spent.rho for n in range(6)]
    assert spent == [Fraction(9, 128), Fraction(9, 64), Fraction(27, 128), cap, cap, cap]


@pytest.mark.parametrize(
    ("scale", "shares", "low", "high"),
    [
        (0.5, 2, 0.8, 0.9),
        (0.5, 100, 9, 10),
        (0.7, 2, 0.07, 0.09),
        (1.0, 100, 4e-4, 6e-4),
        (1.5, 100, 1e-9, 3e-9),
        (2.0, 100, 5e-17, 9e-17),
        (3.0, 100, 1e-38, 9e-38),
    ],
)
def test_tau_of_a_sum_of_shares(scale: float, shares: int, low: float, high: float) -> None:
    assert low < budget.tau(scale, shares) < high


def test_at_our_scales_a_sum_of_shares_is_a_discrete_gaussian() -> None:
    assert budget.tau(26.0, 500) == 0.0
    assert budget.tau(5.0, 500) > 0.0


def tail(scale: float, bound: int) -> float:
    """P(|N| >= bound) of the discrete Gaussian, relative to its mode to keep the exponents small."""
    masses = math.fsum(math.exp(-x * x / (2 * scale * scale)) for x in range(math.ceil(9 * scale)))
    beyond = math.fsum(math.exp(-x * x / (2 * scale * scale)) for x in range(bound, bound + math.ceil(5 * scale)))
    return 2 * beyond / (2 * masses - 1)


def test_noise_beyond_its_clamp_has_the_probability_that_is_claimed() -> None:
    for tenths in range(260, 2_081, 37):
        scale = tenths / 10
        assert tail(scale, math.ceil(10 * scale)) < float(budget.CLAMP_TAIL)
    assert tail(60.0, 390) > 2**-35  # a clamp at 6.5 s_i would not be negligible


def test_the_clamp_costs_no_delta_to_speak_of() -> None:
    manifest = make_manifest(members=100, demo=False, k=8)
    assert 0 < budget.clamp_delta(manifest) < 2**-50
    assert budget.clamp_is_negligible(manifest)
    noise = manifest.noise
    tiny = make_manifest(members=100, demo=False, noise=type(noise)(noise.s, noise.h, noise.rho, "1e-16"))
    assert not budget.clamp_is_negligible(tiny)


@pytest.mark.parametrize(("members", "k", "delta"), [(100, 8, "1e-8"), (40, 5, "1e-6"), (500, 3, "1e-12")])
def test_what_the_clamp_costs_is_the_stated_formula(members: int, k: int, delta: str) -> None:
    manifest = make_manifest(members=members, demo=False, k=k)
    law = manifest.noise
    manifest = make_manifest(members=members, demo=False, k=k, noise=type(law)(law.s, law.h, law.rho, delta))
    worst = math.exp(budget.epsilon(manifest.rho, delta))
    assert budget.clamp_delta(manifest) == pytest.approx(
        (1 + worst) * members * manifest.length / 2**75, rel=1e-9, abs=0
    )
    assert budget.clamp_is_negligible(manifest)
    assert (Fraction(1, 2**75), Fraction(1, 1000)) == (budget.CLAMP_TAIL, budget.CLAMP_SHARE)


def test_a_group_of_accounts_costs_its_square_and_replacing_has_its_own_norm() -> None:
    rho = Fraction(9, 512)
    assert [budget.group_rho(rho, g) for g in (1, 2, 3, 7)] == [rho, 4 * rho, 9 * rho, 49 * rho]
    for Q, s in ((9, 208), (9, 104), (4, 52), (1, 26)):
        assert budget.replace_one_rho(Q, s) == Fraction(576 * Q, 2 * s * s)


def test_tau_is_the_stated_sum() -> None:
    for scale, shares in ((0.5, 2), (0.7, 3), (1.0, 7)):
        terms = [math.exp(-2 * math.pi**2 * scale**2 * k / (k + 1)) for k in range(1, shares)]
        assert budget.tau(scale, shares) == pytest.approx(10 * sum(terms), rel=1e-12)
    assert budget.tau(0.5, 1) == 0.0


# --- the independent accountant -------------------------------------------------------------------------------------


def needs_accountant() -> None:
    if importlib.util.find_spec("dp_accounting") is None:
        not_run("dp-accounting is not installed", "pip install 'windvane[audit]'")


@pytest.mark.parametrize(("s", "h"), [(208, 5), (208, 24), (104, 3), (104, 6), (52, 2)])
def test_two_accountants_agree(s: int, h: int) -> None:
    """The five rules of the cross-check, on one entry of a ledger."""
    needs_accountant()
    import dp_accounting
    from dp_accounting import pld, rdp

    rho, delta = rho_of(9, s), "1e-8"
    opendp = budget.epsilon(rho, delta)
    orders = rdp.RdpAccountant()
    orders.compose(dp_accounting.ZCDpEvent(float(rho)))
    losses = pld.PLDAccountant(value_discretization_interval=1e-4)
    losses.compose(dp_accounting.GaussianDpEvent(s / 39))
    share = share_scale(s, h)

    assert Fraction(gaussian(2, float(s)).map(39.0)) == rho
    assert abs(opendp - orders.get_epsilon(1e-8)) <= 0.005
    assert 0.90 * opendp <= losses.get_epsilon(1e-8) <= opendp
    assert opendp <= float(rho) + 2 * math.sqrt(float(rho) * math.log(1e8))
    assert Fraction(gaussian(2, share).map(39.0)) <= h * rho * (1 + Fraction(1, 2**40))
    assert share >= 26


@pytest.mark.parametrize("Q", [1, 2, 3, 5, 7, 8, 10, 11])
def test_other_vote_totals_are_accounted_a_hair_above(Q: int) -> None:
    rho = rho_of(Q, 208)
    mapped = Fraction(gaussian(2, 208.0).map(sensitivity(Q)))
    assert rho <= mapped <= rho * (1 + Fraction(1, 2**40))


@pytest.mark.parametrize(
    ("rho", "orders_say", "losses_say"),
    [
        ("9/512", (0.840, 1.011, 1.087), (0.778, 0.954, 1.032)),
        ("9/128", (1.770, 2.104, 2.253), (1.646, 1.989, 2.142)),
        ("9/64", (2.580, 3.049, 3.259), (2.405, 2.885, 3.099)),
        ("27/128", (3.224, 3.793, 4.048), (3.009, 3.594, 3.855)),
        ("9/32", (3.782, 4.436, 4.729), (3.532, 4.205, 4.505)),
    ],
)
def test_the_second_accountant_gives_the_published_figures(
    rho: str, orders_say: tuple[float, ...], losses_say: tuple[float, ...]
) -> None:
    needs_accountant()
    import dp_accounting
    from dp_accounting import pld, rdp

    orders, losses = rdp.RdpAccountant(), pld.PLDAccountant(value_discretization_interval=1e-4)
    orders.compose(dp_accounting.ZCDpEvent(float(Fraction(rho))))
    losses.compose(dp_accounting.GaussianDpEvent(1 / math.sqrt(2 * Fraction(rho))))
    for delta, first, second in zip(DELTAS, orders_say, losses_say, strict=True):
        assert orders.get_epsilon(float(delta)) == pytest.approx(first, abs=0.0011)
        assert losses.get_epsilon(float(delta)) == pytest.approx(second, abs=0.0011)


def test_the_share_of_a_member_is_what_two_guardians_see() -> None:
    manifest = make_manifest(members=60, demo=False)
    assert local_rho(manifest) <= budget.guarantees(manifest).c.rho
