# SPDX-License-Identifier: Apache-2.0
"""Ledgers and proofs for tests of the ledger."""

from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

from log_witnesses import POLICY, receipt
from manifests import coordinator_key, derived, make_manifest, member_key
from windvane_privacy.envelope import commit_hash
from windvane_privacy.ledger import Ledger
from windvane_privacy.ledger_schema import Drawn, RoundEntry
from windvane_privacy.log import (
    Leaf,
    Receipt,
    make_leaf,
    read_leaf,
    verify_receipt,
)
from windvane_privacy.manifest import Manifest

DAY = "2026-10-02"
MACHINE = "a" * 64
CAP = Fraction(9, 32)
PEOPLE = tuple(derived(f"person {i}", 16) for i in range(3))


def new_ledger(folder: Path) -> Ledger:
    Ledger.create(folder, key_id=member_key(1).key_id, machine_id=MACHINE)
    return open_ledger(folder)


def open_ledger(folder: Path) -> Ledger:
    return Ledger.open(folder, machine_id=MACHINE)


def manifest_of(round_id: str = "2026-Q3", **changes: object) -> Manifest:
    return make_manifest(round=round_id, **changes)


def drawn(manifest: Manifest, *, mark: str = "first", persons: tuple[bytes, ...] = PEOPLE) -> Drawn:
    envelope = derived(f"envelope {mark}", 300)
    fields = {
        "manifest": manifest.sha256, "member": 1, "hash": commit_hash(envelope), "install": "0" * 64, "day": DAY,
    }  # fmt: skip
    leaf = make_leaf("commitment", manifest.round, fields, member_key(1))
    return Drawn(derived(mark, 16), envelope, commit_hash(envelope), leaf, (7, -3), persons, "{}", "test")


def draw(ledger: Ledger, manifest: Manifest, *, cap: Fraction = CAP, **how: object) -> RoundEntry:
    ledger.approve(manifest.round, manifest.sha256, DAY)
    return ledger.draw(manifest, day=DAY, lifetime_cap=cap, make=lambda _admits: drawn(manifest, **how))


def receipt_for(leaf: bytes) -> Receipt:
    return verify_receipt(receipt([leaf], 0, datetime(2026, 10, 2, tzinfo=UTC)), leaf, POLICY)


def accepted(manifest: Manifest, hash_: str) -> Leaf:
    fields = {"member": 1, "hash": hash_, "day": DAY}
    return read_leaf(make_leaf("accepted", manifest.round, fields, coordinator_key()))


def commit(ledger: Ledger, entry: RoundEntry) -> None:
    ledger.commit(entry.round_id, receipt_for(entry.commitment_leaf or b""))


def finish(ledger: Ledger, manifest: Manifest) -> RoundEntry:
    entry = draw(ledger, manifest)
    commit(ledger, entry)
    ledger.reveal(manifest.round)
    ledger.accept(manifest.round, accepted(manifest, entry.commit_hash or ""), [], DAY)
    found = ledger.round(manifest.round)
    assert found is not None
    return found
