# SPDX-License-Identifier: Apache-2.0
"""The coordinator's database: the log, who is enrolled, sealed envelopes, opened sums.

Rules kept here:
* no table has a column for anything of one member but its public card, its sealed envelope and that envelope's hash;
* the log is append-only by trigger, and every step that may happen once has one `slot`, unique in the database;
* an entry's place is read and written inside one transaction, so that two processes cannot fork the log;
* a transaction that returned is on disk (rollback journal, synchronous=EXTRA): an answer never promises more;
* the database is brought to this version when it is opened, and a newer one is refused.

The schema lives in `schema.py`; it is made by `migrations/` alone.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util.exc import CommandError
from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DatabaseError
from sqlalchemy.pool import ConnectionPoolEntry

from windvane_privacy.errors import ConfigurationError

DATABASE = "coordinator.db"
MIGRATIONS = Path(__file__).parent / "migrations"
BUSY_SECONDS = 30
_WRITES = "windvane_writes"


class Store:
    """One database of one coordinator. Any number of readers, one writer at a time."""

    def __init__(self, path: Path) -> None:
        """Open the database at `path` (made when it is not there) and bring it to this version.

        Raises:
            ConfigurationError: no database of ours, or one that a newer version wrote.
        """
        self._lock = threading.Lock()
        self.engine = _engine(f"sqlite:///{path}")
        try:
            migrate(self.engine)
        except (DatabaseError, CommandError) as error:
            self.engine.dispose()
            raise ConfigurationError("The coordinator's database is damaged or of another version.") from error

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A consistent view."""
        with self.engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """One transaction: everything inside it happens, durably, or nothing does."""
        with self._lock, self.engine.connect() as connection:
            connection = connection.execution_options(**{_WRITES: True})
            with connection.begin():
                yield connection

    def level(self) -> str | None:
        """The migration that the database is at."""
        with self.read() as connection:
            return MigrationContext.configure(connection).get_current_revision()

    def close(self) -> None:
        """Give back every connection."""
        self.engine.dispose()


def migrate(engine: Engine, target: str = "head") -> None:
    """Bring the schema to `target`: "head", or a revision; "base" takes everything away.

    Raises:
        CommandError: the database is at a revision that this version does not know.
    """
    config = _config()
    with engine.connect() as connection:
        # Two processes may start at once: the second waits here, then finds nothing to do.
        connection = connection.execution_options(**{_WRITES: True})
        with connection.begin():
            config.attributes["connection"] = connection
            if target == "base":
                command.downgrade(config, "base")
            else:
                command.upgrade(config, target)


def newest_level() -> str | None:
    """The migration that this version of windvane needs."""
    return ScriptDirectory.from_config(_config()).get_current_head()


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    return config


def _engine(url: str) -> Engine:
    engine = create_engine(url, connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False})

    @event.listens_for(engine, "connect")
    def _prepare(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
        # SQLite's own driver would open transactions late and commit before DDL; `_begin` does it instead.
        connection.isolation_level = None
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode=DELETE")
        cursor.execute("PRAGMA synchronous=EXTRA")
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.execute("PRAGMA trusted_schema=OFF")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get(_WRITES, False)
        connection.execute(text("BEGIN IMMEDIATE" if writes else "BEGIN"))

    return engine
