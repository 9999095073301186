# SPDX-License-Identifier: Apache-2.0
"""Where chance comes from: the modules that decide what leaves know OpenDP and the system's generator, nothing else.

Rules kept here:
* what a module may import is a list; a new name on it is a decision that a reviewer sees here;
* a name is looked up in the source, wherever it stands: an import inside a function counts.
"""

from __future__ import annotations

import ast
from fractions import Fraction
from pathlib import Path
from types import ModuleType

import numpy as np
import opendp.prelude as dp
import pytest

from conftest import ROOT
from manifests import make_manifest
from windvane_privacy import budget, noise, policy, votes
from windvane_privacy.manifest import share_scale
from windvane_privacy.noise import OpenDPNoise, release

PLAIN = {"__future__", "collections", "dataclasses", "fractions", "functools", "math", "re", "types", "typing"}
MAY_IMPORT = {
    votes: PLAIN | {"numpy", "windvane_privacy"},
    noise: PLAIN | {"importlib", "numpy", "opendp", "windvane_privacy"},
    budget: PLAIN | {"windvane_privacy"},
    policy: PLAIN | {"importlib", "json", "msgspec", "pathlib", "tomllib", "windvane_privacy"},
}
MANIFEST = make_manifest()


def imported(module: ModuleType) -> set[str]:
    """Top names of everything that a module imports, in whatever form."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(Path(module.__file__ or "").read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").split(".")[0])
        elif isinstance(node, ast.Name) and node.id in {"__import__", "eval", "exec"}:
            found.add(node.id)
    return found


@pytest.mark.parametrize("module", MAY_IMPORT, ids=lambda module: module.__name__)
def test_what_decides_about_noise_imports_only_what_is_listed(module: ModuleType) -> None:
    assert imported(module) <= MAY_IMPORT[module]


def test_every_entry_goes_through_opendp_once_as_a_whole_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Watches the library's own call, which is not replaced: one call, the whole exact vector, the share's scale."""
    seen: list[tuple[list[int], Fraction]] = []
    real = dp.Measurement.__call__

    def watched(measurement: dp.Measurement, data: np.ndarray) -> list[int]:
        assert data.dtype == np.int64
        seen.append(([int(entry) for entry in data], Fraction(measurement.map(39.0))))
        return real(measurement, data)

    monkeypatch.setattr(dp.Measurement, "__call__", watched)
    exact = np.zeros(MANIFEST.length, dtype=np.int64)
    exact[0], exact[1] = 24, 10
    before = exact.tolist()
    release(exact, MANIFEST, OpenDPNoise())
    share = noise.gaussian(1, share_scale(MANIFEST.noise.s, MANIFEST.noise.h))
    assert seen == [(before, Fraction(share.map(39.0)))]


def test_a_released_entry_may_lie_ten_scales_outside_and_no_less() -> None:
    for h in range(1, 25):
        manifest = make_manifest(members=500, s=208, h=h)
        scale = 208 / h**0.5
        assert 10 * scale <= manifest.noise_clamp < 10 * scale + 1.001


def test_only_the_agent_and_the_preview_choose_a_sampler_and_it_is_the_systems() -> None:
    sources = [*(ROOT / "client").rglob("*.py"), *(ROOT / "privacy").rglob("*.py")]
    for path in sources:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert not {name for name in names if name.split(".")[0] == "random" or name.startswith("numpy.random")}, path
        calls = {n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
        assert not calls & {"__import__", "eval", "exec"}, path
