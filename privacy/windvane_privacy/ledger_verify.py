# SPDX-License-Identifier: Apache-2.0
"""Whether a member's ledger is whole: its file, its tables and triggers, its chain, and every entry's measurement.

Rules kept here:
* the ledger is only read;
* tables and triggers are compared with the ones this version makes, word for word: a trigger that was dropped refuses
  nothing any more;
* every stage is looked at, also after one has failed, and each has a sentence;
* an entry's measurement is mapped again by `windvane_privacy.ledger_check`, the same code a reviewer runs.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass

from windvane_privacy.ledger_check import Finding, check_chain, check_measurements
from windvane_privacy.ledger_export import Spend, spends
from windvane_privacy.ledger_schema import schema
from windvane_privacy.ledger_view import LedgerView
from windvane_privacy.manifest import Manifest


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of the check: its name, what was looked at, and what does not hold."""

    name: str
    looked_at: str
    findings: tuple[Finding, ...]

    @property
    def holds(self) -> bool:
        """Nothing was found."""
        return not self.findings


def verify_ledger(ledger: LedgerView, manifests: Mapping[str, Manifest]) -> tuple[Stage, ...]:
    """All stages, in order. `manifests` by their SHA-256, as far as they are known here."""
    found = spends(ledger.rounds(), manifests)
    damage = () if ledger.damage is None else (Finding(None, ledger.damage),)
    return (
        Stage("file and chain", "the database's own check, every entry's hash, its people and its envelope", damage),
        Stage("tables and triggers", "every table and trigger, word for word", _schema(ledger)),
        Stage("order", f"{_count(found)}, each linked to the one before", check_chain(found)),
        Stage("measurements", f"{_count(found)}, mapped again by OpenDP", check_measurements(found)),
    )


def _schema(ledger: LedgerView) -> tuple[Finding, ...]:
    ours, theirs = _expected(), ledger.objects()
    return tuple(
        Finding(None, f"The {kind} {name} {'is missing' if (kind, name) not in theirs else 'is another one'}.")
        for (kind, name), text in sorted(ours.items())
        if theirs.get((kind, name)) != text
    ) + tuple(
        Finding(None, f"There is a {kind} that no ledger has.") for kind, name in sorted(theirs.keys() - ours.keys())
    )


def _expected() -> dict[tuple[str, str], str]:
    memory = sqlite3.connect(":memory:")
    try:
        memory.executescript(schema())
        rows = memory.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        return {(str(kind), str(name)): str(sql) for kind, name, sql in rows}
    finally:
        memory.close()


def _count(found: tuple[Spend, ...]) -> str:
    return f"{len(found)} {'entry' if len(found) == 1 else 'entries'}"
