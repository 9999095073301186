# SPDX-License-Identifier: Apache-2.0
"""`ledger verify`: a whole ledger passes every stage, and each kind of damage is named by the stage that finds it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from ledger_entries import charge, charged_ledger, quarter
from ledger_steps import open_ledger
from windvane_privacy.ledger_schema import schema
from windvane_privacy.ledger_verify import Stage, verify_ledger
from windvane_privacy.manifest import Manifest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    ledger, _ = charged_ledger(tmp_path / "l", 2)
    ledger.close()
    return tmp_path / "l"


def stages(folder: Path, manifests: dict[str, Manifest] | None = None) -> dict[str, Stage]:
    with open_ledger(folder) as ledger:
        return {stage.name: stage for stage in verify_ledger(ledger, manifests or {})}


def tamper(folder: Path, *statements: str) -> None:
    """What a program without our triggers does to the file."""
    connection = sqlite3.connect(folder / "ledger.db")
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def failing(folder: Path) -> dict[str, list[str]]:
    return {name: [f.sentence for f in stage.findings] for name, stage in stages(folder).items() if not stage.holds}


def test_a_whole_ledger_passes_every_stage(folder: Path) -> None:
    found = stages(folder, {m.sha256: m for m in (quarter(0), quarter(1))})
    assert list(found) == ["file and chain", "tables and triggers", "order", "measurements"]
    assert all(stage.holds for stage in found.values())
    assert "2 entries" in found["order"].looked_at


def test_an_empty_ledger_is_whole(tmp_path: Path) -> None:
    charged_ledger(tmp_path / "l", 0)[0].close()
    assert not failing(tmp_path / "l")


def test_a_trigger_that_was_dropped_is_missed_by_name(folder: Path) -> None:
    tamper(folder, "DROP TRIGGER person_kept")
    assert failing(folder) == {"tables and triggers": ["The trigger person_kept is missing."]}


def test_a_trigger_that_was_weakened_is_named(folder: Path) -> None:
    weak = "CREATE TRIGGER round_kept BEFORE DELETE ON round WHEN 0 BEGIN SELECT RAISE(ABORT, 'no'); END"
    tamper(folder, "DROP TRIGGER round_kept", weak)
    assert failing(folder) == {"tables and triggers": ["The trigger round_kept is another one."]}


def test_a_trigger_of_another_program_is_noticed(folder: Path) -> None:
    tamper(folder, "CREATE TRIGGER mine AFTER INSERT ON approval BEGIN SELECT 1; END")
    assert failing(folder) == {"tables and triggers": ["There is a trigger that no ledger has."]}


def test_every_trigger_of_the_schema_is_looked_for(folder: Path) -> None:
    names = [line.split()[2] for line in schema().splitlines() if line.startswith("CREATE TRIGGER")]
    assert len(names) > 20
    tamper(folder, *(f"DROP TRIGGER {name}" for name in names))
    assert failing(folder)["tables and triggers"] == [f"The trigger {name} is missing." for name in sorted(names)]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE round SET rho_den = 1024 WHERE number = 2",
        "DELETE FROM person_quarter WHERE round_id = '2026-Q1'",
        "UPDATE round SET opendp_json = replace(opendp_json, '93.02', '93.03') WHERE number = 1",
        "UPDATE meta SET value = 'ff' WHERE key = 'chain_head'",
    ],
)
def test_a_changed_entry_is_found_even_if_the_triggers_are_put_back(folder: Path, statement: str) -> None:
    connection = sqlite3.connect(folder / "ledger.db")
    kept = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    connection.close()
    tamper(folder, *(f"DROP TRIGGER {name}" for name, _ in kept), statement, *(sql for _, sql in kept))
    found = failing(folder)
    assert "tables and triggers" not in found
    assert "chain" in found["file and chain"][0]


def test_an_entry_whose_measurement_is_false_is_found_though_its_chain_holds(tmp_path: Path) -> None:
    """A program that never drew at the agreed scale writes a whole chain: only the map tells."""
    from windvane_privacy.noise import measurement_json

    ledger, _ = charged_ledger(tmp_path / "l", 1)
    with ledger:
        half = measurement_json(quarter(1)).replace("93.02042786399126", "46.51021393199563")
        charge(ledger, quarter(1), opendp_json=half)
    found = failing(tmp_path / "l")
    assert list(found) == ["measurements"]
    assert all(sentence.startswith("2026-Q2: ") for sentence in found["measurements"])


def test_verifying_writes_nothing(folder: Path) -> None:
    before = (folder / "ledger.db").read_bytes()
    stages(folder)
    assert (folder / "ledger.db").read_bytes() == before
