# SPDX-License-Identifier: Apache-2.0
"""Reading the member's ledger: its entries, its charges, and whether its chain of entries holds.

Rules kept here:
* nothing here writes;
* sums of rho are exact fractions, never floats;
* the chain is checked before anything else is done: numbers without a gap, each entry's hash over its frozen columns,
  its people and the entry before, each stored envelope against its commitment, and the end of the chain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from windvane_privacy import canonical
from windvane_privacy.admission import Admission, Charge, admission
from windvane_privacy.budget import Overlap
from windvane_privacy.envelope import commit_hash
from windvane_privacy.errors import LedgerDamaged, MalformedInput
from windvane_privacy.ledger_schema import (
    GENESIS,
    BurnReason,
    RoundEntry,
    State,
    Stop,
    StopReason,
    entry_hash,
    people_hash,
)
from windvane_privacy.manifest import Manifest
from windvane_privacy.own import OwnCounts
from windvane_privacy.sqlite_file import SqliteFile


class LedgerView:
    """What the ledger holds.

    `damage`: None, or why it is open for reading only. `moved`: the machine is another than the one that was confirmed.
    """

    def __init__(self, file: SqliteFile, machine_id: str) -> None:
        self._file = file
        self._sql = file.connection
        self._columns = [str(row[1]) for row in self._file.rows("PRAGMA table_info(round)")]
        if file.damage is None:
            broken = self._broken_chain()
            if broken:
                file.fail(broken)
        self._machine_id = machine_id
        self.moved = self._meta("machine_id") != machine_id

    @property
    def damage(self) -> str | None:
        """None, or one sentence: why every write is refused."""
        return self._file.damage

    @property
    def install_id(self) -> str:
        """Random id of this installation, 32 hex digits."""
        return self._meta("install_id") or ""

    @property
    def key_id(self) -> str:
        """Id of the identity key this ledger was made for."""
        return self._meta("key_id") or ""

    @property
    def last_head(self) -> bytes | None:
        """The newest head of the log that was accepted here, as signed by the coordinator."""
        found = self._meta("last_head")
        return bytes.fromhex(found) if found else None

    def round(self, round_id: str) -> RoundEntry | None:
        """The entry of a round; None: empty."""
        row = self._file.row("SELECT * FROM round WHERE round_id = ?", (round_id,))
        return None if row is None else self._entry(row)

    def rounds(self) -> list[RoundEntry]:
        """All entries in the order of their charges."""
        return [self._entry(row) for row in self._file.rows("SELECT * FROM round ORDER BY number")]

    def approval(self, round_id: str) -> tuple[str, str] | None:
        """(manifest SHA-256, day) of the approval of a round."""
        row = self._file.row("SELECT manifest_sha256, approved_at_day FROM approval WHERE round_id = ?", (round_id,))
        return None if row is None else (str(row[0]), str(row[1]))

    def approvals(self) -> list[str]:
        """Approved rounds in order."""
        return [str(row[0]) for row in self._file.rows("SELECT round_id FROM approval ORDER BY rowid")]

    def overlap(self, manifest: Manifest) -> Overlap:
        """What is already charged for other rounds whose events overlap this one's."""
        rows = self._file.rows(
            "SELECT rho_num, rho_den, h FROM round WHERE round_id <> ? AND events_from < ? AND ? < events_to",
            (manifest.round, manifest.events.to, manifest.events.from_),
        )
        return Overlap(
            sum((_rho(num, den) for num, den, _ in rows), Fraction(0)),
            sum((h * _rho(num, den) for num, den, h in rows), Fraction(0)),
        )

    def lifetime(self) -> tuple[int, Fraction]:
        """Charged rounds, and the most that one person can have spent here."""
        rows = self._file.rows("SELECT rho_num, rho_den FROM round")
        return len(rows), sum((_rho(num, den) for num, den in rows), Fraction(0))

    def own_directions(self, round_id: str) -> list[tuple[str, str, str, str]]:
        """(kind, signal, pair as `a|b`, word) of a finished round."""
        return [
            (str(kind), str(signal), str(pair), str(word))
            for kind, signal, pair, word in self._file.rows(
                "SELECT kind, signal, pair, word FROM own_directions WHERE round_id = ? ORDER BY 1, 2, 3", (round_id,)
            )
        ]

    def stop(self, round_id: str) -> Stop | None:
        """This member's own stop of a round; None: it has not stopped it."""
        row = self._file.row("SELECT reason, leaf FROM stop WHERE round_id = ?", (round_id,))
        return None if row is None else Stop(StopReason(str(row[0])), row[1])

    def stops(self) -> list[tuple[str, Stop]]:
        """(round, stop) of every round that this member stopped itself."""
        found = self._file.rows("SELECT round_id, reason, leaf FROM stop ORDER BY rowid")
        return [(str(name), Stop(StopReason(str(reason)), leaf)) for name, reason, leaf in found]

    def counts(self, round_id: str) -> OwnCounts | None:
        """The counts of a finished round; None once they were shown, or 45 days after its end."""
        row = self._file.row("SELECT people, malformed FROM round_people WHERE round_id = ?", (round_id,))
        if row is None:
            return None
        cells = self._file.rows(
            "SELECT toward_a, toward_b FROM round_cells WHERE round_id = ? ORDER BY cell", (round_id,)
        )
        return OwnCounts(tuple((int(a), int(b)) for a, b in cells), int(row[0]), int(row[1]))

    def charged_people(self, round_id: str) -> int:
        """How many people a round is charged to; for the member's own screen after its end."""
        query = "SELECT COUNT(*) FROM person_quarter WHERE round_id = ?"
        row = self._file.row(query, (round_id,))
        return 0 if row is None else int(row[0])

    def notes(self, what: str) -> list[tuple[str, str]]:
        """(day, SHA-256) of the entries of a kind beside the rounds, in order: "policy", "loosened", "machine",
        "person_key"."""
        query = "SELECT day, sha256 FROM policy_change WHERE what = ? ORDER BY number"
        return [(str(day), str(sha256)) for day, sha256 in self._file.rows(query, (what,))]

    def objects(self) -> dict[tuple[str, str], str]:
        """The statements of the file's tables and triggers by (type, name), as they stand in it."""
        query = "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL"
        return {(str(kind), str(name)): str(sql) for kind, name, sql in self._file.rows(query)}

    def admission(self, rho: Fraction, cap: Fraction, since: Mapping[bytes, str]) -> Admission:
        """Whom one more round of `rho` keeps within `cap`; `since`: attested first days."""
        return admission(self.charges(), self.notes("person_key"), rho, cap, since)

    def charges(self) -> list[Charge]:
        """Every round with the people it is charged to, in order."""
        found: dict[str, set[bytes]] = {}
        for person, round_id in self._file.rows("SELECT person_key, round_id FROM person_quarter"):
            found.setdefault(str(round_id), set()).add(bytes(person))
        return [
            Charge(x.rho, x.drawn_day, x.events_from, x.events_to, x.everyone, frozenset(found.get(x.round_id, ())))
            for x in self.rounds()
        ]

    # --- inside ---

    def _meta(self, key: str) -> str | None:
        row = self._file.row("SELECT value FROM meta WHERE key = ?", (key,))
        return None if row is None else str(row[0])

    def _chain_end(self) -> tuple[int, str]:
        row = self._file.row("SELECT number, entry_hash FROM round ORDER BY number DESC LIMIT 1")
        return (0, GENESIS) if row is None else (int(row[0]), str(row[1]))

    def _broken_chain(self) -> str | None:
        """None, or what does not hold together."""
        if self._meta("install_id") is None or self._meta("key_id") is None:
            return "The ledger was not made to its end."
        previous, names = GENESIS, self._columns
        rows = self._file.rows("SELECT * FROM round ORDER BY number")
        for number, row in enumerate(rows, start=1):
            columns = dict(zip(names, row, strict=True))
            persons = [
                bytes(found[0])
                for found in self._file.rows(
                    "SELECT person_key FROM person_quarter WHERE round_id = ?", (columns["round_id"],)
                )
            ]
            if (
                columns["number"] != number
                or columns["prev_hash"] != previous
                or columns["people_sha256"] != people_hash(persons)
                or columns["entry_hash"] != entry_hash(columns, previous)
            ):
                return "The chain of its entries is broken."
            envelope = columns["envelope"]
            if envelope and commit_hash(envelope) != columns["commit_hash"]:
                return "A stored envelope is not the one that was committed."
            previous = columns["entry_hash"]
        return None if self._meta("chain_head") == previous else "The end of its chain is missing."

    def _entry(self, row: Sequence[object]) -> RoundEntry:
        found = dict(zip(self._columns, row, strict=True))
        noisy, reason = found["noisy"], found["reason"]
        kept = {name: found[name] for name in RoundEntry.__dataclass_fields__ if name in found}
        try:
            kept.update(
                state=State(str(found["state"])),
                noisy=tuple(canonical.decode(noisy)) if isinstance(noisy, bytes) else None,
                reason=BurnReason(str(reason)) if reason is not None else None,
            )
        except (ValueError, TypeError, MalformedInput):
            raise LedgerDamaged("An entry cannot be read.") from None
        kept.update(rho=_rho(found["rho_num"], found["rho_den"]), everyone=bool(found["everyone"]))
        return RoundEntry(**kept)  # type: ignore[arg-type]  # columns and fields are compared by a test


def _rho(numerator: object, denominator: object) -> Fraction:
    # A damaged file can still be read, and may then hold anything.
    if type(numerator) is not int or type(denominator) is not int or denominator <= 0:
        raise LedgerDamaged("A charge cannot be read.")
    return Fraction(numerator, denominator)
