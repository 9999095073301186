# SPDX-License-Identifier: Apache-2.0
"""First tables: log, members, rosters, rounds, envelopes, results, sums, reports.

Rules kept here:
* never changed once released; a later migration corrects it;
* the log and the accepted envelopes are append-only by trigger, in SQLite and in PostgreSQL.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_STATES = "'proposed', 'open', 'closed', 'lot', 'tallied', 'not_opened', 'disputed', 'aborted', 'published'"
_FIXED = (("leaves", "UPDATE"), ("leaves", "DELETE"), ("envelopes", "UPDATE"), ("results", "UPDATE"))
"""What may never be done to a table. Envelopes and results may be deleted when their retention ends."""


def upgrade() -> None:
    op.create_table(
        "leaves",
        sa.Column("idx", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("raw", sa.LargeBinary, nullable=False),
        sa.Column("hash", sa.Text, nullable=False, unique=True),
        sa.Column("round", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("slot", sa.Text, unique=True),
        sqlite_strict=True,
    )
    op.create_table(
        "checkpoints",
        sa.Column("size", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("note", sa.LargeBinary, nullable=False),
        sa.Column("agreed", sa.LargeBinary),
        sqlite_strict=True,
    )
    op.create_table(
        "members",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        sa.Column("key", sa.Text, nullable=False, unique=True),
        sa.Column("card", sa.LargeBinary, nullable=False),
        sa.Column("since", sa.Text, nullable=False),
        sqlite_strict=True,
    )
    op.create_table(
        "rosters",
        sa.Column("round", sa.Text, primary_key=True),
        sa.Column("sha256", sa.Text, nullable=False, unique=True),
        sa.Column("version", sa.Integer, nullable=False, unique=True),
        sa.Column("raw", sa.LargeBinary, nullable=False),
        sqlite_strict=True,
    )
    op.create_table(
        "endorsements",
        sa.Column("sha256", sa.Text, sa.ForeignKey("rosters.sha256"), primary_key=True),
        sa.Column("guardian", sa.Integer, primary_key=True),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("sig", sa.Text, nullable=False),
        sqlite_strict=True,
    )
    op.create_table(
        "rounds",
        sa.Column("round", sa.Text, primary_key=True),
        sa.Column("place", sa.Integer, nullable=False, unique=True),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("manifest", sa.LargeBinary),
        sa.Column("planned", sa.LargeBinary),
        sa.Column("reason", sa.Text),
        sa.Column("set_root", sa.Text),
        sa.Column("closed_at", sa.Text),
        sa.CheckConstraint(f"state IN ({_STATES})", name="round_state"),
        sqlite_strict=True,
    )
    _create_outcomes()
    for table, action in _FIXED:
        _forbid(table, action)


def _create_outcomes() -> None:
    op.create_table(
        "envelopes",
        sa.Column("round", sa.Text, sa.ForeignKey("rounds.round"), primary_key=True),
        sa.Column("member", sa.Integer, sa.ForeignKey("members.number"), primary_key=True),
        sa.Column("hash", sa.Text, nullable=False, unique=True),
        sa.Column("raw", sa.LargeBinary, nullable=False),
        sa.Column("leaf", sa.Integer, sa.ForeignKey("leaves.idx"), nullable=False, unique=True),
        sqlite_strict=True,
    )
    op.create_table(
        "results",
        sa.Column("round", sa.Text, sa.ForeignKey("rounds.round"), primary_key=True),
        sa.Column("guardian", sa.Integer, primary_key=True),
        sa.Column("sha256", sa.Text, nullable=False),
        sa.Column("raw", sa.LargeBinary, nullable=False),
        sqlite_strict=True,
    )
    op.create_table(
        "sums",
        sa.Column("round", sa.Text, sa.ForeignKey("rounds.round"), primary_key=True),
        sa.Column("raw", sa.LargeBinary, nullable=False),
        sa.Column("salt", sa.LargeBinary, nullable=False),
        sa.Column("crosschecked", sa.Integer, nullable=False),
        sa.CheckConstraint("crosschecked IN (0, 1)", name="sums_crosschecked"),
        sqlite_strict=True,
    )
    op.create_table(
        "reports",
        sa.Column("round", sa.Text, sa.ForeignKey("rounds.round"), primary_key=True),
        sa.Column("report", sa.Text, nullable=False),
        sa.Column("files", sa.Text, nullable=False),
        sa.Column("raw", sa.LargeBinary, nullable=False),
        sqlite_strict=True,
    )


def downgrade() -> None:
    for table, action in _FIXED:
        _allow(table, action)
    for table in (
        "reports",
        "sums",
        "results",
        "envelopes",
        "rounds",
        "endorsements",
        "rosters",
        "members",
        "leaves",
        "checkpoints",
    ):
        op.drop_table(table)


def _forbid(table: str, action: str) -> None:
    name = f"{table}_no_{action.lower()}"
    if op.get_bind().dialect.name == "sqlite":
        op.execute(
            f"CREATE TRIGGER {name} BEFORE {action} ON {table} BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
        )
        return
    op.execute(
        f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{table} is append-only'; END $$"
    )
    op.execute(f"CREATE TRIGGER {name} BEFORE {action} ON {table} FOR EACH ROW EXECUTE FUNCTION {name}()")


def _allow(table: str, action: str) -> None:
    name = f"{table}_no_{action.lower()}"
    if op.get_bind().dialect.name == "sqlite":
        op.execute(f"DROP TRIGGER {name}")
        return
    op.execute(f"DROP TRIGGER {name} ON {table}")
    op.execute(f"DROP FUNCTION {name}()")
