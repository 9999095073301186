# SPDX-License-Identifier: Apache-2.0
"""A stored measurement is read again by OpenDP itself, and nothing but a measurement is read."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger_entries import quarter
from windvane_privacy.errors import MalformedInput
from windvane_privacy.manifest import rho_of, share_scale
from windvane_privacy.noise import local_rho, measurement_json
from windvane_privacy.remap import central_rho, remap


def test_a_stored_measurement_has_the_scale_and_rho_of_the_members_share() -> None:
    manifest = quarter(0)
    found = remap(measurement_json(manifest), 9)
    assert (found.length, found.scale) == (manifest.length, share_scale(208, 5))
    assert found.rho == local_rho(manifest) <= 5 * manifest.rho


@pytest.mark.parametrize(("s", "rho"), [(208, "9/512"), (104, "9/128"), (52, "9/32")])
def test_the_central_map_is_the_charge_exactly(s: int, rho: str) -> None:
    assert central_rho(9, s) == Fraction(rho) == rho_of(9, s)
    assert central_rho(9, s, length=240) == Fraction(rho)


def stored() -> dict[str, Any]:
    return json.loads(measurement_json(quarter(0)))


def changed(*path: str, to: object) -> str:
    value = stored()
    inner = value
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = to
    return json.dumps(value)


BAD = {
    "empty": "",
    "no JSON": "{",
    "no object": "[]",
    "a number": "1",
    "nothing in it": "{}",
    "too long": " " * 5000 + measurement_json(quarter(0)),
    "too deep": "[" * 4000,
    "another function": changed("__function__", to="make_laplace"),
    "another module": changed("__module__", to="internal"),
    "another sensitivity": changed("__kwargs__", "input_metric", "__function__", to="l1_distance"),
    "another divergence": changed("__kwargs__", "MO", to="MaxDivergence"),
    "bounds": changed("__kwargs__", "input_domain", "__kwargs__", "atom_domain", "__kwargs__", "bounds", to=[0, 1]),
    "scale is text": changed("__kwargs__", "scale", to="93.0"),
    "scale is whole": changed("__kwargs__", "scale", to=93),
    "scale is negative": changed("__kwargs__", "scale", to=-93.0),
    "scale is infinite": changed("__kwargs__", "scale", to=float("inf")),
    "scale is no number": changed("__kwargs__", "scale", to=float("nan")),
    "length is true": changed("__kwargs__", "input_domain", "__kwargs__", "size", to=True),
    "length is zero": changed("__kwargs__", "input_domain", "__kwargs__", "size", to=0),
    "version is text": changed("__version__", to="new"),
    "a field more": changed("__kwargs__", "seed", to=1),
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD.keys())
def test_another_form_is_refused_before_opendp_sees_it(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr("opendp.mod.deserialize", seen.append)
    with pytest.raises(MalformedInput):
        remap(text, 9)
    assert seen == []


def test_a_key_that_stands_twice_calls_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python keeps the last of two equal keys; OpenDP would act on both while it reads."""
    hidden = (
        '{"__function__": "laplace_distribution", "__module__": "measurements", "__kwargs__": {}, "__version__": "0"}'
    )
    text = measurement_json(quarter(0)).replace('"scale":', f'"scale": {hidden}, "scale":')
    assert remap(text, 9).scale == share_scale(208, 5)


@pytest.mark.parametrize("scale", [5e-324, 1e-200])
def test_a_scale_that_opendp_cannot_map_is_malformed_and_no_traceback(scale: float) -> None:
    with pytest.raises(MalformedInput, match="OpenDP"):
        remap(changed("__kwargs__", "scale", to=scale), 9)


@given(st.text(max_size=300) | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps))
def test_any_text_is_a_measurement_or_malformed(text: str) -> None:
    with pytest.raises(MalformedInput):
        remap(text, 9)
