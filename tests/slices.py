# SPDX-License-Identifier: Apache-2.0
"""Which part of a long suite runs: another one with every change of the code that it tries, none depends on the day."""

from __future__ import annotations

import hashlib
import os

import pytest

from conftest import ROOT

CORE = ("privacy/windvane_privacy", "client/windvane_client")


def our_turn(part: int, parts: int) -> None:
    """Return where part `part` (from 0) of `parts` runs now: all with WINDVANE_SLICE=1/1, else the one that the bytes
    of the core choose; else skip."""
    if os.environ.get("WINDVANE_SLICE") == "1/1":
        return
    if _chosen(parts) != part:
        pytest.skip("another part's turn; all of them: WINDVANE_SLICE=1/1")


def slice_of(cases: int, parts: int) -> range:
    """The numbers of WINDVANE_SLICE=n/m, else those of one of `parts` parts, which the bytes of the core choose."""
    stated = os.environ.get("WINDVANE_SLICE", "")
    part, parts = map(int, stated.split("/")) if stated else (_chosen(parts) + 1, parts)
    assert 1 <= part <= parts, "WINDVANE_SLICE is n/m with n from 1 to m"
    return range(cases * (part - 1) // parts, cases * part // parts)


def _chosen(parts: int) -> int:
    digest = hashlib.sha256()
    for folder in CORE:
        for path in sorted((ROOT / folder).glob("*.py")):
            digest.update(path.read_bytes())
    return int.from_bytes(digest.digest()[:8], "big") % parts
