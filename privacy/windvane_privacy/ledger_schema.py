# SPDX-License-Identifier: Apache-2.0
"""What the member's ledger holds: tables, triggers, states, and the hash chain over its entries.

Rules kept here:
* states are `drawn -> committed -> revealed -> accepted`, and `burned` from the first three; the last two are final; a
  round without an entry is empty; an entry is born `drawn`, or `burned` when the log accounts for a draw that this
  ledger does not hold;
* nothing is deleted, and what was agreed, charged and committed never changes: the database itself refuses it, whatever
  program writes;
* the envelope leaves the database when the round ends; the noisy vector may leave it afterwards and never comes back;
* each entry's hash covers its frozen columns, its people and the entry before it;
* what holds a vector or pseudonyms has no printable form: nothing of it can reach a log by accident.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Protocol

from windvane_privacy import canonical
from windvane_privacy.sqlite_file import FileKind

FILE = FileKind("ledger.db", application_id=0x57564C31, format=1)  # "WVL1"
_ENTRY_LABEL = b"windvane/1/ledger\0"
_PEOPLE_LABEL = b"windvane/1/people\0"
GENESIS = "00" * 32


class State(StrEnum):
    """Where a round stands for this member; no entry means empty."""

    DRAWN = "drawn"
    COMMITTED = "committed"
    REVEALED = "revealed"
    ACCEPTED = "accepted"
    BURNED = "burned"

    @property
    def final(self) -> bool:
        """Nothing will be sent or changed any more."""
        return self in (State.ACCEPTED, State.BURNED)


class BurnReason(StrEnum):
    """Why nothing will be sent for a round, ever."""

    FOREIGN_COMMITMENT = "foreign_commitment"
    """The first commitment with our signature in the log is not the one that is stored here."""
    NOT_COMMITTED_IN_TIME = "not_committed_in_time"
    """The round closed before the log held our commitment."""
    NOT_ACCEPTED = "not_accepted"
    """The round closed without our envelope."""
    ABORTED = "aborted"
    """The coordinator stopped the round in the log."""
    STOPPED = "stopped"
    """This member stopped it itself, for a reason that the log shows."""


class StopReason(StrEnum):
    """Why a member stops a round itself. None of them is about numbers: those are not shown before the round ends."""

    KEY_LOSS = "key_loss"
    WRONG_CONFIGURATION = "wrong_configuration"
    LEGAL = "legal"


@dataclass(frozen=True, slots=True, repr=False)
class Drawn:
    """Everything that one draw makes, ready to be stored; made inside the transaction that stores it.

    `noisy`: L released integers, the same that are inside the shares. `persons`: 16-byte pseudonyms that are charged.
    `opendp_json`: the serialised measurement. `versions`: the software that drew.
    """

    submission_id: bytes
    envelope: bytes
    commit_hash: str
    commitment_leaf: bytes
    noisy: tuple[int, ...]
    persons: tuple[bytes, ...]
    opendp_json: str
    versions: str


@dataclass(frozen=True, slots=True)
class Stop:
    """A round that this member stopped itself. `leaf`: the signed entry for the log; None where nothing was drawn."""

    reason: StopReason
    leaf: bytes | None


@dataclass(frozen=True, slots=True, repr=False)
class RoundEntry:
    """One round as the ledger holds it. Bytes are None where they do not exist (yet, or any more).

    `everyone`: the charge falls on every person, because this ledger cannot know whom the draw it lost was about.
    """

    round_id: str
    number: int
    manifest_sha256: str
    state: State
    rho: Fraction
    q: int
    s: int
    h: int
    s_i: str
    events_from: str
    events_to: str
    everyone: bool
    approved_at_day: str | None
    drawn_day: str
    submission_id: bytes | None
    envelope: bytes | None
    commitment_leaf: bytes | None
    commit_hash: str | None
    noisy: tuple[int, ...] | None
    receipt: bytes | None
    acceptance: bytes | None
    reason: BurnReason | None
    ended_day: str | None
    opendp_json: str | None
    versions: str
    entry_hash: str


class ReceiptLike(Protocol):
    """A verified receipt (`log.Receipt`): the hash of the leaf it is about, and its bytes."""

    @property
    def leaf_hash(self) -> str: ...
    @property
    def raw(self) -> bytes: ...


class LeafLike(Protocol):
    """A verified leaf (`log.Leaf`)."""

    @property
    def type(self) -> str: ...
    @property
    def round(self) -> str: ...
    @property
    def fields(self) -> Mapping[str, canonical.JsonValue]: ...
    @property
    def raw(self) -> bytes: ...


class Word(Protocol):
    """One own direction (`votes.OwnDirection`)."""

    @property
    def kind(self) -> str: ...
    @property
    def signal(self) -> str: ...
    @property
    def a(self) -> str: ...
    @property
    def b(self) -> str: ...
    @property
    def word(self) -> str: ...


FROZEN = (
    "round_id", "number", "manifest_sha256", "rho_num", "rho_den", "q", "s", "h", "s_i", "events_from", "events_to",
    "everyone", "approved_at_day", "drawn_day", "submission_id", "commitment_leaf", "commit_hash", "opendp_json",
    "versions", "people_sha256",
)  # fmt: skip
"""Columns that the entry hash covers and that no update may touch."""


def entry_hash(columns: Mapping[str, object], previous: str) -> str:
    """Hex SHA-256 over label, canonical JSON of the frozen columns, and the hash before (32 bytes)."""
    frozen = {name: _jsonable(columns[name]) for name in FROZEN}
    return hashlib.sha256(_ENTRY_LABEL + canonical.encode(frozen) + bytes.fromhex(previous)).hexdigest()


def people_hash(persons: Iterable[bytes]) -> str:
    """Hex SHA-256 over the sorted pseudonyms, so that the list of the charged cannot shrink unnoticed."""
    return hashlib.sha256(_PEOPLE_LABEL + b"".join(sorted(persons))).hexdigest()


def _jsonable(value: object) -> object:
    return value.hex() if isinstance(value, bytes) else value


_TABLES = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE approval(
  round_id TEXT PRIMARY KEY, manifest_sha256 TEXT NOT NULL, approved_at_day TEXT NOT NULL
) STRICT;

CREATE TABLE policy_change(
  number INTEGER PRIMARY KEY, day TEXT NOT NULL, what TEXT NOT NULL, sha256 TEXT NOT NULL
) STRICT;

CREATE TABLE round(
  round_id TEXT PRIMARY KEY,
  number INTEGER NOT NULL UNIQUE,        -- place in the chain, from 1
  manifest_sha256 TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('drawn','committed','revealed','accepted','burned')),
  rho_num INTEGER NOT NULL CHECK (rho_num > 0),
  rho_den INTEGER NOT NULL CHECK (rho_den > 0),
  q INTEGER NOT NULL, s INTEGER NOT NULL, h INTEGER NOT NULL, s_i TEXT NOT NULL,
  events_from TEXT NOT NULL, events_to TEXT NOT NULL,
  everyone INTEGER NOT NULL CHECK (everyone IN (0, 1)),
  approved_at_day TEXT, drawn_day TEXT NOT NULL,
  submission_id BLOB, envelope BLOB, commitment_leaf BLOB, commit_hash TEXT,
  noisy BLOB, receipt BLOB, acceptance BLOB,
  reason TEXT CHECK (reason IN ('foreign_commitment','not_committed_in_time','not_accepted','aborted','stopped')),
  ended_day TEXT,
  opendp_json TEXT, versions TEXT NOT NULL, people_sha256 TEXT NOT NULL,
  prev_hash TEXT NOT NULL, entry_hash TEXT NOT NULL,
  CHECK ((state IN ('accepted','burned')) = (envelope IS NULL)),
  CHECK ((state IN ('accepted','burned')) = (ended_day IS NOT NULL)),
  CHECK ((state = 'burned') = (reason IS NOT NULL)),
  CHECK ((state = 'accepted') = (acceptance IS NOT NULL)),
  CHECK (state <> 'drawn' OR receipt IS NULL),
  CHECK (state NOT IN ('committed','revealed','accepted') OR receipt IS NOT NULL),
  CHECK (everyone = 1 OR (commit_hash IS NOT NULL AND commitment_leaf IS NOT NULL AND approved_at_day IS NOT NULL)),
  CHECK (everyone = 0 OR (state = 'burned' AND noisy IS NULL AND commitment_leaf IS NULL))
) STRICT;

CREATE TABLE person_quarter(
  person_key BLOB NOT NULL CHECK (length(person_key) = 16),
  round_id TEXT NOT NULL REFERENCES round(round_id),
  PRIMARY KEY (person_key, round_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE stop(
  round_id TEXT PRIMARY KEY, reason TEXT NOT NULL CHECK (reason IN ('key_loss','wrong_configuration','legal')),
  day TEXT NOT NULL,
  leaf BLOB                              -- what the log is told; NULL where nothing was drawn
) STRICT;

-- Counts for one look after the end of a round; the only rows here that are deleted.
CREATE TABLE round_cells(
  round_id TEXT NOT NULL REFERENCES round(round_id), cell INTEGER NOT NULL,
  toward_a INTEGER NOT NULL, toward_b INTEGER NOT NULL, PRIMARY KEY (round_id, cell)
) STRICT, WITHOUT ROWID;

CREATE TABLE round_people(
  round_id TEXT PRIMARY KEY REFERENCES round(round_id), people INTEGER NOT NULL, malformed INTEGER NOT NULL
) STRICT;

CREATE TABLE own_directions(
  round_id TEXT NOT NULL REFERENCES round(round_id),
  kind TEXT NOT NULL, signal TEXT NOT NULL, pair TEXT NOT NULL,
  word TEXT NOT NULL CHECK (word IN ('toward_a','toward_b','even','too_few')),
  PRIMARY KEY (round_id, kind, signal, pair)
) STRICT, WITHOUT ROWID;
"""


def _refuse(name: str, event: str, table: str, when: str, message: str) -> str:
    condition = f" WHEN {when}" if when else ""
    return f"CREATE TRIGGER {name} BEFORE {event} ON {table}{condition} BEGIN SELECT RAISE(ABORT, '{message}'); END;\n"


def _triggers() -> str:
    changed = " OR ".join(f"NEW.{name} IS NOT OLD.{name}" for name in (*FROZEN, "prev_hash", "entry_hash"))
    step = (
        "NOT (NEW.state = OLD.state OR (OLD.state = 'drawn' AND NEW.state IN ('committed','burned'))"
        " OR (OLD.state = 'committed' AND NEW.state IN ('revealed','burned'))"
        " OR (OLD.state = 'revealed' AND NEW.state IN ('accepted','burned')))"
    )
    once = " OR ".join(
        f"(OLD.{name} IS NOT NULL AND NEW.{name} IS NOT OLD.{name})" for name in ("receipt", "acceptance", "reason")
    )
    ended = "OLD.state IN ('accepted','burned')"
    born = "NEW.state NOT IN ('drawn','burned') OR (NEW.state = 'burned' AND NEW.everyone = 0)"
    identity = "key IN ('install_id','key_id')"
    return "".join(
        (
            # INSERT OR REPLACE would delete without asking the delete trigger: an existing key is refused first.
            _refuse(
                "round_once",
                "INSERT",
                "round",
                "EXISTS (SELECT 1 FROM round WHERE round_id = NEW.round_id OR number = NEW.number)",
                "a round is drawn once",
            ),
            _refuse("round_born", "INSERT", "round", born, "a round begins drawn"),
            _refuse("round_kept", "DELETE", "round", "", "a round is never deleted"),
            _refuse("round_frozen", "UPDATE", "round", changed, "a frozen column"),
            _refuse("round_step", "UPDATE", "round", step, "not a step of a round"),
            _refuse("round_proofs", "UPDATE", "round", once, "a proof is stored once"),
            _refuse(
                "round_envelope",
                "UPDATE",
                "round",
                "NEW.envelope IS NOT OLD.envelope AND NEW.envelope IS NOT NULL",
                "an envelope is never replaced",
            ),
            _refuse(
                "round_noisy",
                "UPDATE",
                "round",
                f"NEW.noisy IS NOT OLD.noisy AND (NEW.noisy IS NOT NULL OR NOT ({ended}))",
                "a noisy vector is written once",
            ),
            _refuse(
                "round_over",
                "UPDATE",
                "round",
                f"{ended} AND (NEW.receipt IS NOT OLD.receipt OR NEW.acceptance IS NOT OLD.acceptance"
                " OR NEW.ended_day IS NOT OLD.ended_day)",
                "the round is over",
            ),
            _refuse(
                "person_once",
                "INSERT",
                "person_quarter",
                "EXISTS (SELECT 1 FROM person_quarter WHERE person_key = NEW.person_key AND round_id = NEW.round_id)",
                "a person is charged once a round",
            ),
            _refuse("person_kept", "DELETE", "person_quarter", "", "a charge is never deleted"),
            _refuse("person_frozen", "UPDATE", "person_quarter", "", "a charge never changes"),
            _refuse(
                "approval_once",
                "INSERT",
                "approval",
                "EXISTS (SELECT 1 FROM approval WHERE round_id = NEW.round_id)",
                "a round is approved once",
            ),
            _refuse("approval_kept", "DELETE", "approval", "", "an approval is never deleted"),
            _refuse("approval_frozen", "UPDATE", "approval", "", "an approval never changes"),
            _refuse("policy_kept", "DELETE", "policy_change", "", "a policy entry is never deleted"),
            _refuse("policy_frozen", "UPDATE", "policy_change", "", "a policy entry never changes"),
            _refuse(
                "words_after",
                "INSERT",
                "own_directions",
                "NOT EXISTS (SELECT 1 FROM round WHERE round_id = NEW.round_id AND state IN ('accepted','burned'))",
                "own directions come after the end of a round",
            ),
            *(
                _refuse(
                    f"{table}_after",
                    "INSERT",
                    table,
                    "NOT EXISTS (SELECT 1 FROM round WHERE round_id = NEW.round_id AND state IN ('accepted','burned'))",
                    "counts come after the end of a round",
                )
                + _refuse(f"{table}_frozen", "UPDATE", table, "", "counts never change")
                for table in ("round_cells", "round_people")
            ),
            _refuse(
                "stop_once",
                "INSERT",
                "stop",
                "EXISTS (SELECT 1 FROM stop WHERE round_id = NEW.round_id)",
                "a round is stopped once",
            ),
            _refuse("stop_kept", "DELETE", "stop", "", "a stop is never deleted"),
            _refuse("stop_frozen", "UPDATE", "stop", "", "a stop never changes"),
            _refuse(
                "no_draw_after_stop",
                "INSERT",
                "round",
                "NEW.state = 'drawn' AND EXISTS (SELECT 1 FROM stop WHERE round_id = NEW.round_id)",
                "this member has stopped the round",
            ),
            _refuse("words_frozen", "UPDATE", "own_directions", "", "own directions never change"),
            _refuse("meta_frozen", "UPDATE", "meta", f"OLD.{identity}", "identity of the ledger"),
            _refuse(
                "meta_once",
                "INSERT",
                "meta",
                f"NEW.{identity} AND EXISTS (SELECT 1 FROM meta WHERE key = NEW.key)",
                "identity of the ledger",
            ),
            _refuse("meta_kept", "DELETE", "meta", "", "identity of the ledger"),
        )
    )


def schema() -> str:
    """The statements that make an empty ledger."""
    return _TABLES + _triggers()
