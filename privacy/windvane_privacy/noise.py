# SPDX-License-Identifier: Apache-2.0
"""The one place where noise is added: a member's share of the discrete Gaussian, drawn by OpenDP.

Rules kept here:
* N1 before the draw the vector is int64, contiguous, of the manifest's length and inside the manifest's clamp (OpenDP
  checks no domain at release);
* N2 after the draw there are L whole numbers, each clamped to B = ceil(10 s_i) beyond its exact range;
* N3 the source of noise is an argument; the only one shipped is OpenDP's, which nothing can seed;
* N5 the exact vector is overwritten with zeros, also when something fails;
* N6 an OpenDP older than 0.14.2 is refused: its sampler fails a chi-square test (opendp issue 2638).

Sources: Canonne, Kamath, Steinke, "The Discrete Gaussian for Differential Privacy" (2020); docs/mechanism.md.
"""

from __future__ import annotations

import importlib.metadata
import math
import re
from fractions import Fraction
from types import ModuleType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from windvane_privacy.errors import BoundBroken, ConfigurationError
from windvane_privacy.manifest import D_SCALE, MIN_SHARE_SCALE, T_SCALE, VOTE_NORM, Manifest

OLDEST_OPENDP = (0, 14, 2)


class Noise(Protocol):
    """A source of noise. `windvane member` has no other than `OpenDPNoise`."""

    def draw(self, exact: NDArray[np.int64], share_scale: float) -> list[int]:
        """`exact` plus one independent draw of scale `share_scale` per entry; same length."""


class OpenDPNoise:
    """Discrete Gaussian noise from OpenDP, the only production source.

    Raises:
        ConfigurationError: the installed OpenDP is too old.
    """

    def __init__(self) -> None:
        require_opendp(importlib.metadata.version("opendp"))

    def draw(self, exact: NDArray[np.int64], share_scale: float) -> list[int]:
        """One release of the whole vector, about 22 microseconds an entry whatever the scale."""
        noisy: list[int] = gaussian(len(exact), share_scale)(exact)
        return noisy


def release(exact: NDArray[np.int64], manifest: Manifest, noise: Noise) -> list[int]:
    """A member's noised vector: L whole numbers, D entries in [-(12 C + B), 12 C + B], T entries in [-B, 5 C + B].

    `exact` is zero afterwards, whatever happened.

    Raises:
        BoundBroken: a vector outside the agreed form, before or after the draw; nothing was released.
    """
    try:
        _before(exact, manifest)
        drawn = noise.draw(exact, manifest.share_scale)
        return _after(drawn, manifest)
    finally:
        _overwrite(exact)


def gaussian(length: int, scale: float) -> Any:
    """OpenDP's measurement of `length` int64 entries under L2; a whole-numbered type makes the Gaussian discrete."""
    dp = opendp()
    space = dp.vector_domain(dp.atom_domain(T="i64"), size=length), dp.l2_distance(T=float)
    return dp.m.make_gaussian(*space, scale=scale)


def measurement_json(manifest: Manifest) -> str:
    """OpenDP's own serialisation of this member's measurement; a reviewer deserialises it and asks for its rho."""
    from opendp.mod import serialize

    text: str = serialize(gaussian(manifest.length, manifest.share_scale))  # type: ignore[no-untyped-call]  # OpenDP
    return text


def sensitivity(Q: int) -> float:
    """L2 sensitivity 13 sqrt(Q) of the released integers (add or remove one person), rounded up where irrational."""
    root = math.isqrt(Q)
    if root * root == Q:
        return float(VOTE_NORM * root)
    return math.nextafter(VOTE_NORM * math.sqrt(Q), math.inf)


def local_rho(manifest: Manifest) -> Fraction:
    """rho of one member's own share alone, from OpenDP's map: what two colluding guardians could hold against it."""
    return Fraction(gaussian(manifest.length, manifest.share_scale).map(sensitivity(manifest.bounds.Q)))


def opendp() -> ModuleType:
    """OpenDP's prelude with `contrib` enabled, and no other feature."""
    import opendp.prelude as dp  # loading takes most of a second; commands that draw nothing must not pay it

    dp.enable_features("contrib")
    return dp


def require_opendp(version: str) -> None:
    """Refuse a version whose sampler is known to be wrong.

    Raises:
        ConfigurationError: older than 0.14.2, or not a version.
    """
    found = re.match(r"(\d+)\.(\d+)\.(\d+)", version)
    if found is None or tuple(map(int, found.groups())) < OLDEST_OPENDP:
        raise ConfigurationError("The installed OpenDP is older than 0.14.2, whose noise is not the one agreed.")


def _overwrite(exact: object) -> None:
    if isinstance(exact, np.ndarray) and exact.flags.writeable:
        exact.fill(0)


def _before(exact: object, manifest: Manifest) -> None:
    if not isinstance(exact, np.ndarray) or exact.dtype != np.int64 or not exact.flags.c_contiguous:
        raise BoundBroken("The exact vector is not a contiguous array of 64-bit whole numbers.")
    if exact.shape != (manifest.length,) or not exact.flags.writeable:
        raise BoundBroken("The exact vector has not the agreed length, or cannot be overwritten.")
    if manifest.share_scale < MIN_SHARE_SCALE:
        raise BoundBroken("The noise share is smaller than any round may use.")
    C = manifest.bounds.C
    net, voters = exact[0::2], exact[1::2]
    if np.any(net > D_SCALE * C) or np.any(net < -D_SCALE * C):
        raise BoundBroken("A net preference is outside its clamp.")
    if np.any(voters > T_SCALE * C) or np.any(voters < 0):
        raise BoundBroken("A number of voters is outside its clamp.")


def _after(drawn: object, manifest: Manifest) -> list[int]:
    if not isinstance(drawn, list) or len(drawn) != manifest.length or any(type(entry) is not int for entry in drawn):
        raise BoundBroken("The noise source did not give whole numbers of the agreed length.")
    C, B = manifest.bounds.C, manifest.noise_clamp
    ranges = ((-(D_SCALE * C + B), D_SCALE * C + B), (-B, T_SCALE * C + B))
    return [min(max(entry, low), high) for entry, (low, high) in zip(drawn, ranges * (len(drawn) // 2), strict=True)]
