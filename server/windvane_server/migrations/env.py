# SPDX-License-Identifier: Apache-2.0
"""How Alembic runs the migrations: inside the transaction that `store.migrate` opened.

Rules kept here:
* no address of a database is configured here; the caller brings its connection;
* a migration happens as a whole or not at all.
"""

from __future__ import annotations

from alembic import context

from windvane_server.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
