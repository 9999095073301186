# SPDX-License-Identifier: Apache-2.0
"""The database: made by migrations alone, append-only, and the same whichever process looks."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text
from sqlalchemy.exc import IntegrityError

from windvane_privacy.errors import ConfigurationError
from windvane_privacy.identity import SigningKey
from windvane_privacy.log import make_leaf, read_leaf
from windvane_server.entries import Entries
from windvane_server.schema import STATES, leaves, metadata, rounds
from windvane_server.store import MIGRATIONS, Store, migrate, newest_level


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "coordinator.db")
    yield made
    made.close()


def test_the_migrations_make_exactly_the_tables_of_the_schema(store: Store) -> None:
    with store.read() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    assert store.level() == newest_level()


def test_migrations_go_down_to_nothing_and_up_again(store: Store) -> None:
    migrate(store.engine, "base")
    assert inspect(store.engine).get_table_names() == ["alembic_version"]
    migrate(store.engine)
    assert set(metadata.tables) < set(inspect(store.engine).get_table_names())
    with store.read() as connection:
        triggers = connection.execute(text("SELECT count(*) FROM sqlite_master WHERE type = 'trigger'")).scalar()
    assert triggers == 4


def test_every_migration_has_a_way_down_and_one_line_of_descent() -> None:
    script = ScriptDirectory(str(MIGRATIONS))
    revisions = list(script.walk_revisions())
    assert len(script.get_heads()) == 1
    assert all(callable(revision.module.downgrade) for revision in revisions)


def test_every_table_is_strict_and_checks_its_types(store: Store) -> None:
    with store.read() as connection:
        strict = {row.name: row.strict for row in connection.execute(text("PRAGMA table_list")) if row.schema == "main"}
    assert all(strict[name] for name in metadata.tables)


def test_the_states_of_a_round_are_a_closed_list(store: Store) -> None:
    for place, state in enumerate(STATES, 1):
        with store.write() as connection:
            connection.execute(rounds.insert().values(round=state, place=place, state=state))
    with pytest.raises(IntegrityError), store.write() as connection:
        connection.execute(rounds.insert().values(round="x", place=99, state="anything else"))


@pytest.mark.parametrize("statement", ["UPDATE leaves SET slot = NULL", "DELETE FROM leaves"])
def test_the_log_cannot_be_changed_even_by_sql(tmp_path: Path, store: Store, statement: str) -> None:
    entries = Entries(SigningKey.generate())
    with store.write() as connection:
        entries.append(connection, _leaf(), "a slot")
    with sqlite3.connect(tmp_path / "coordinator.db") as direct, pytest.raises(sqlite3.IntegrityError):
        direct.execute(statement)
    direct.close()
    with store.read() as connection:
        assert connection.execute(leaves.select()).one().slot == "a slot"


def test_a_slot_is_filled_once(store: Store) -> None:
    entries = Entries(SigningKey.generate())
    with store.write() as connection:
        entries.append(connection, _leaf(), "a slot")
    with pytest.raises(IntegrityError), store.write() as connection:
        entries.append(connection, _leaf("2026-07-02"), "a slot")


def test_a_step_that_fails_leaves_nothing_in_the_log(store: Store) -> None:
    entries = Entries(SigningKey.generate())

    def fail() -> None:
        with store.write() as connection:
            entries.append(connection, _leaf(), None)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    with store.read() as connection:
        assert connection.execute(leaves.select()).all() == []


def test_two_processes_on_one_database_make_one_log(tmp_path: Path, store: Store) -> None:
    other = Store(tmp_path / "coordinator.db")
    entries = Entries(SigningKey.generate())
    for place in range(6):
        with (store, other)[place % 2].write() as connection:
            entries.append(connection, _leaf(f"2026-07-{place + 1:02}"), None)
    other.close()
    with store.read() as connection:
        rows = connection.execute(leaves.select().order_by(leaves.c.idx)).all()
    assert [row.idx for row in rows] == list(range(6))
    assert [read_leaf(row.raw).fields["day"] for row in rows] == [f"2026-07-{place:02}" for place in range(1, 7)]


@pytest.mark.parametrize("damage", ["not a database", "of a later version"])
def test_a_database_that_is_not_ours_is_refused(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "coordinator.db"
    if damage == "not a database":
        path.write_bytes(b"something else entirely" * 100)
    else:
        Store(path).close()
        with sqlite3.connect(path) as direct:
            direct.execute("UPDATE alembic_version SET version_num = '9999'")
        direct.close()
    with pytest.raises(ConfigurationError):
        Store(path)


def _leaf(day: str = "2026-07-01") -> bytes:
    return make_leaf("incident", "", {"what": "a test", "note": "", "day": day}, SigningKey.generate())
