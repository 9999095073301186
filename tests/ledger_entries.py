# SPDX-License-Identifier: Apache-2.0
"""Ledgers whose entries hold the measurement that a real draw of their manifest stores."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from ledger_steps import DAY, PEOPLE, drawn, new_ledger
from manifests import make_manifest
from windvane_privacy.ledger import Ledger
from windvane_privacy.ledger_schema import RoundEntry
from windvane_privacy.manifest import Manifest
from windvane_privacy.noise import measurement_json
from windvane_privacy.submission import software_versions

WIDE = Fraction(9)
QUARTERS = ("01-01", "04-01", "07-01", "10-01")


def quarter(place: int, **changes: object) -> Manifest:
    """The real manifest of 60 organisations (rho 9/512, h = 5) of the quarter at `place`, from 2026's first on."""
    year, q = 2026 + place // 4, place % 4
    end = f"{year}-{QUARTERS[q + 1]}" if q < 3 else f"{year + 1}-01-01"
    how = {"members": 60, "demo": False, "start": f"{year}-{QUARTERS[q]}", "end": end, **changes}
    return make_manifest(round=f"{year}-Q{q + 1}", **how)


def charge(
    ledger: Ledger, manifest: Manifest, *, persons: tuple[bytes, ...] = PEOPLE, day: str = DAY, **stored: str
) -> RoundEntry:
    """Draw a round as a member does, but for its vector; `stored` replaces what the draw writes beside it."""
    beside = {"opendp_json": measurement_json(manifest), "versions": software_versions(), **stored}
    ledger.approve(manifest.round, manifest.sha256, day)
    made = replace(drawn(manifest, mark=manifest.round, persons=persons), **beside)
    return ledger.draw(manifest, day=day, lifetime_cap=WIDE, make=lambda _admits: made)


def charged_ledger(folder: Path, rounds: int = 3) -> tuple[Ledger, dict[str, Manifest]]:
    """An open ledger with so many drawn rounds, and their manifests by hash."""
    ledger, manifests = new_ledger(folder), [quarter(place) for place in range(rounds)]
    for manifest in manifests:
        charge(ledger, manifest)
    return ledger, {manifest.sha256: manifest for manifest in manifests}
