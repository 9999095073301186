# SPDX-License-Identifier: Apache-2.0
"""Two accountants over one spend: what OpenDP says of a round's cost, and what dp-accounting says, side by side.

Rules kept here:
* rule 1: rho of the ledger is OpenDP's map at the central scale s: exactly where a float holds that rho (every s and Q
  that is planned), otherwise at most 2^-40 below it, never above;
* rule 2: epsilon by OpenDP and by dp-accounting's RDP of the same rho differ by at most .005;
* rule 3: dp-accounting's PLD of the Gaussian lies between .90 and 1 times OpenDP's epsilon;
* rule 4: OpenDP's epsilon is at most rho + 2 sqrt(rho ln(1/delta));
* rule 5: one member's own share costs at most h rho (and 2^-40), and its scale is at least 26;
* the second accountant is an argument; dp-accounting is loaded only when asked: a member's install does not have it.

Source: docs/mechanism.md, "What it costs".
"""

from __future__ import annotations

import importlib.util
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol

from windvane_privacy.budget import epsilon, parse_delta
from windvane_privacy.errors import MissingExtra
from windvane_privacy.manifest import MIN_SHARE_SCALE, rho_of, share_scale
from windvane_privacy.noise import gaussian, sensitivity
from windvane_privacy.remap import central_rho

DELTAS = ("1e-6", "1e-8", "1e-9")
"""Deltas at which rules 2 to 4 are asked; a manifest's own delta is among them or is added by the caller."""
SLACK = Fraction(1, 2**40)
"""OpenDP rounds its map up by some units in the last place; more than this share is a disagreement."""
RDP_TOLERANCE = 0.005
PLD_LEAST = 0.90
_PLD_INTERVAL = 1e-4


class Accountant(Protocol):
    """A second accountant. Epsilons at a delta."""

    def of_zcdp(self, rho: Fraction, delta: str) -> float:
        """Epsilon of rho-zCDP, by Rényi differential privacy."""

    def of_gaussian(self, multiplier: float, delta: str) -> float:
        """Epsilon of the Gaussian mechanism with this noise multiplier (scale over sensitivity), by its loss itself."""


class DpAccounting:
    """Google's dp-accounting, of the `audit` extra.

    Raises:
        MissingExtra: it is not installed.
    """

    def __init__(self) -> None:
        if importlib.util.find_spec("dp_accounting") is None:
            raise MissingExtra("Extra: audit.")

    def of_zcdp(self, rho: Fraction, delta: str) -> float:
        """By `RdpAccountant` and `ZCDpEvent`."""
        return float(_renyi(rho).get_epsilon(float(parse_delta(delta))))

    def of_gaussian(self, multiplier: float, delta: str) -> float:
        """By `PLDAccountant` and `GaussianDpEvent`; it has no event for the discrete Gaussian."""
        return float(_losses(multiplier).get_epsilon(float(parse_delta(delta))))


@dataclass(frozen=True, slots=True)
class Check:
    """One rule on one spend. `what`: both sides of the comparison, as a sentence."""

    rule: int
    holds: bool
    what: str


def cross_check(
    *, rho: Fraction, Q: int, s: int, h: int, s_i: float, accountant: Accountant, deltas: tuple[str, ...] = DELTAS
) -> tuple[Check, ...]:
    """Rules 1 to 5 on what one round's entry says it cost; rules 2 to 4 once for each delta.

    `rho`, `Q`, `s`, `h`, `s_i`: as the ledger holds them.
    """
    return (
        _central(rho, Q, s),
        *(check for delta in deltas for check in _epsilons(rho, Q, s, delta, accountant)),
        _own_share(rho, Q, s, h, s_i),
    )


def charge_agrees(rho: Fraction, mapped: Fraction, Q: int) -> bool:
    """Whether a charge is what OpenDP's map gives: equal where sensitivity and rho are floats, else a hair below."""
    exact = math.isqrt(Q) ** 2 == Q and Fraction(float(rho)) == rho
    return mapped == rho if exact else rho <= mapped <= rho * (1 + SLACK)


def _central(rho: Fraction, Q: int, s: int) -> Check:
    mapped = central_rho(Q, s)
    holds = charge_agrees(rho, mapped, Q) and rho == rho_of(Q, s)
    return Check(1, holds, f"rho of the ledger {rho}, of s and Q {rho_of(Q, s)}, of OpenDP's map {float(mapped):.9f}")


def _epsilons(rho: Fraction, Q: int, s: int, delta: str, accountant: Accountant) -> tuple[Check, ...]:
    ours = epsilon(rho, delta)
    renyi = accountant.of_zcdp(rho, delta)
    exact = accountant.of_gaussian(s / sensitivity(Q), delta)
    ceiling = float(rho) + 2 * math.sqrt(float(rho) * math.log(1 / parse_delta(delta)))
    at = f"epsilon at {delta} by OpenDP {ours:.6f}"
    return (
        Check(2, abs(ours - renyi) <= RDP_TOLERANCE, f"{at}, by dp-accounting's RDP {renyi:.6f}"),
        Check(3, PLD_LEAST * ours <= exact <= ours, f"{at}, by dp-accounting's PLD {exact:.6f}"),
        Check(4, ours <= ceiling, f"{at}, closed form {ceiling:.6f}"),
    )


def _own_share(rho: Fraction, Q: int, s: int, h: int, s_i: float) -> Check:
    # A scale that is too small to be a scale must not reach OpenDP, which raises its own error for it.
    sound = math.isfinite(s_i) and s_i >= MIN_SHARE_SCALE and s_i == share_scale(s, h)
    local = Fraction(gaussian(1, s_i).map(sensitivity(Q))) if sound else None
    holds = local is not None and local <= h * rho * (1 + SLACK)
    shown = "not asked" if local is None else f"{float(local):.9f}"
    return Check(
        5, holds, f"scale of the share {s_i}, of s and h {share_scale(s, h)}; its rho {shown}, h rho {h * rho}"
    )


@lru_cache(maxsize=64)
def _renyi(rho: Fraction) -> Any:
    import dp_accounting
    from dp_accounting import rdp

    accountant = rdp.RdpAccountant()
    accountant.compose(dp_accounting.ZCDpEvent(float(rho)))
    return accountant


@lru_cache(maxsize=64)
def _losses(multiplier: float) -> Any:
    import dp_accounting
    from dp_accounting import pld

    accountant = pld.PLDAccountant(value_discretization_interval=_PLD_INTERVAL)
    accountant.compose(dp_accounting.GaussianDpEvent(multiplier))
    return accountant
