# SPDX-License-Identifier: Apache-2.0
"""Tables of the coordinator's database, as SQLAlchemy Core sees them.

Rules kept here:
* types exist in SQLite (STRICT) and PostgreSQL alike; a test compares this file with what the migrations make;
* every column says what it holds; nothing holds a decrypted share, a vector or an event of a member;
* opened sums are stored by index, without the name of a model, a kind or a signal beside them.
"""

from __future__ import annotations

from sqlalchemy import CheckConstraint, Column, ForeignKey, Integer, LargeBinary, MetaData, Table, Text

STATES = ("proposed", "open", "closed", "lot", "tallied", "not_opened", "disputed", "aborted", "published")
"""Life of a round. `not_opened`: below a floor. `disputed`: the spare share contradicts. `aborted`: stopped by hand."""

metadata = MetaData()

leaves = Table(
    "leaves",
    metadata,
    Column("idx", Integer, primary_key=True, autoincrement=False, comment="place in the log, from 0"),
    Column("raw", LargeBinary, nullable=False, comment="canonical bytes of the entry"),
    Column("hash", Text, nullable=False, unique=True, comment="leaf hash, hex"),
    Column("round", Text, nullable=False, comment="round id, or empty"),
    Column("kind", Text, nullable=False, comment="type of the entry"),
    Column("slot", Text, unique=True, comment="what may happen once: round, type, and who; null where repeatable"),
    sqlite_strict=True,
)
checkpoints = Table(
    "checkpoints",
    metadata,
    Column("size", Integer, primary_key=True, autoincrement=False, comment="entries under it"),
    Column("note", LargeBinary, nullable=False, comment="signed note with every cosignature so far"),
    Column("agreed", LargeBinary, comment="the note as it was when its quorum was complete; never changed after"),
    sqlite_strict=True,
)
members = Table(
    "members",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False, comment="member number, from 1, never reused"),
    Column("name", Text, nullable=False, unique=True, comment="legal name, public"),
    Column("key", Text, nullable=False, unique=True, comment="identity key, hex"),
    Column("card", LargeBinary, nullable=False, comment="the signed enrolment card as it came"),
    Column("since", Text, nullable=False, comment="day of the enrolment"),
    sqlite_strict=True,
)
rosters = Table(
    "rosters",
    metadata,
    Column("round", Text, primary_key=True, comment="round that the roster was proposed for"),
    Column("sha256", Text, nullable=False, unique=True, comment="hex"),
    Column("version", Integer, nullable=False, unique=True),
    Column("raw", LargeBinary, nullable=False, comment="signed roster: canonical, with the coordinator's signature"),
    sqlite_strict=True,
)
endorsements = Table(
    "endorsements",
    metadata,
    Column("sha256", Text, ForeignKey("rosters.sha256"), primary_key=True),
    Column("guardian", Integer, primary_key=True, comment="index of the guardian, from 1"),
    Column("key", Text, nullable=False, comment="key id of the guardian, hex"),
    Column("sig", Text, nullable=False, comment="signature over the roster, hex"),
    sqlite_strict=True,
)
rounds = Table(
    "rounds",
    metadata,
    Column("round", Text, primary_key=True),
    Column("place", Integer, nullable=False, unique=True, comment="order in which rounds were proposed, from 1"),
    Column("state", Text, nullable=False),
    Column("manifest", LargeBinary, comment="signed manifest; null until the round is opened"),
    Column("planned", LargeBinary, comment="unsigned manifest of a round that was too small to be opened"),
    Column("reason", Text, comment="why the round was not opened, disputed or aborted: a word of a closed list"),
    Column("set_root", Text, comment="root of the accepted set, hex"),
    Column("closed_at", Text, comment="when the accepted set was fixed, UTC"),
    CheckConstraint(f"state IN ({', '.join(repr(s) for s in STATES)})", name="round_state"),
    sqlite_strict=True,
)
envelopes = Table(
    "envelopes",
    metadata,
    Column("round", Text, ForeignKey("rounds.round"), primary_key=True),
    Column("member", Integer, ForeignKey("members.number"), primary_key=True),
    Column("hash", Text, nullable=False, unique=True, comment="commit hash, hex, as in the log"),
    Column("raw", LargeBinary, nullable=False, comment="the sealed envelope; the coordinator has no key for it"),
    Column("leaf", Integer, ForeignKey("leaves.idx"), nullable=False, unique=True, comment="its accepted entry"),
    sqlite_strict=True,
)
results = Table(
    "results",
    metadata,
    Column("round", Text, ForeignKey("rounds.round"), primary_key=True),
    Column("guardian", Integer, primary_key=True),
    Column("sha256", Text, nullable=False, comment="hash of the signed result, hex"),
    Column("raw", LargeBinary, nullable=False, comment="signed result: one share of each cohort's sum"),
    sqlite_strict=True,
)
sums = Table(
    "sums",
    metadata,
    Column("round", Text, ForeignKey("rounds.round"), primary_key=True),
    Column("raw", LargeBinary, nullable=False, comment="noisy cohort sums: whole numbers by index only"),
    Column("salt", LargeBinary, nullable=False, comment="seals the sums until they are shown, 32 random bytes"),
    Column("crosschecked", Integer, nullable=False, comment="1 if a third guardian's shares agree, else 0"),
    CheckConstraint("crosschecked IN (0, 1)", name="sums_crosschecked"),
    sqlite_strict=True,
)
reports = Table(
    "reports",
    metadata,
    Column("round", Text, ForeignKey("rounds.round"), primary_key=True),
    Column("report", Text, nullable=False, comment="SHA-256 of report.json, hex"),
    Column("files", Text, nullable=False, comment="SHA-256 of files.json, hex"),
    Column("raw", LargeBinary, nullable=False, comment="report.json"),
    sqlite_strict=True,
)
