# SPDX-License-Identifier: Apache-2.0
"""A stored measurement read again: what the noise that was drawn costs, from its own serialised form alone.

Rules kept here:
* the text is compared with the one form that a draw writes before OpenDP sees it: only length, scale and OpenDP's
  version are free, so that no text from a file can name another function to be called;
* the answer is OpenDP's own map, as an exact fraction;
* anything else is `MalformedInput`, never a traceback.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from windvane_privacy.errors import MalformedInput
from windvane_privacy.noise import gaussian, opendp, sensitivity

MAX_BYTES = 4096
_VERSION = re.compile(r"[0-9]{1,4}\.[0-9]{1,4}\.[0-9]{1,4}")


@dataclass(frozen=True, slots=True)
class Remapped:
    """What a stored measurement is: `length` integers, one share's `scale`, `rho` of that share by OpenDP's map (what
    two guardians could hold against the member), and the `version` of OpenDP that wrote it."""

    length: int
    scale: float
    rho: Fraction
    version: str


def remap(text: str, Q: int) -> Remapped:
    """The measurement of a ledger's entry, mapped at the sensitivity of Q votes.

    Raises:
        MalformedInput: not the form that a draw writes.
    """
    length, scale, version = _parameters(text)
    from opendp.mod import deserialize

    opendp()  # switches on the feature that reading it needs
    try:
        # Written anew: a key that stands twice in the text would be called by OpenDP and not be seen in the comparison.
        measurement = deserialize(json.dumps(_form(length, scale, version)))  # type: ignore[no-untyped-call]  # OpenDP
        rho = Fraction(measurement.map(sensitivity(Q)))
    except Exception as error:  # OpenDP's own errors have no common class with Python's
        raise MalformedInput("OpenDP does not read the stored measurement") from error
    return Remapped(length, scale, rho, version)


def central_rho(Q: int, s: int, length: int = 1) -> Fraction:
    """rho of the whole noise of a cohort, scale s, by OpenDP's map."""
    return Fraction(gaussian(length, float(s)).map(sensitivity(Q)))


def _parameters(text: str) -> tuple[int, float, str]:
    if len(text) > MAX_BYTES:
        raise MalformedInput("the stored measurement is too long")
    try:
        value = json.loads(text)
        length = value["__kwargs__"]["input_domain"]["__kwargs__"]["size"]
        scale = value["__kwargs__"]["scale"]
        version = value["__version__"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise MalformedInput("the stored measurement is not of the form that a draw writes") from None
    sound = (
        type(length) is int
        and 0 < length < 1 << 20
        and type(scale) is float
        and math.isfinite(scale)
        and scale > 0
        and isinstance(version, str)
        and _VERSION.fullmatch(version) is not None
        and value == _form(length, scale, version)
    )
    if not sound:
        raise MalformedInput("the stored measurement is not of the form that a draw writes")
    return length, scale, version


def _form(length: int, scale: float, version: str) -> dict[str, Any]:
    def call(module: str, function: str, **arguments: Any) -> dict[str, Any]:
        return {"__function__": function, "__module__": module, "__kwargs__": arguments, "__version__": version}

    atom = call("domains", "atom_domain", bounds=None, nan=None, T="i64")
    return call(
        "measurements",
        "make_gaussian",
        input_domain=call("domains", "vector_domain", atom_domain=atom, size=length),
        input_metric=call("metrics", "l2_distance", T="f64"),
        scale=scale,
        k=None,
        MO="ZeroConcentratedDivergence",
    )
