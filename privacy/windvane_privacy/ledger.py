# SPDX-License-Identifier: Apache-2.0
"""The member's ledger: what was approved, drawn, committed and revealed, and what it cost.

Rules kept here:
* noise is drawn inside the transaction that stores it, and at most once for a round (R1, R2);
* a round is charged from the moment it is drawn, for ever, published or not (R4);
* an approval for exactly this manifest stands before the draw;
* an envelope is handed out only after a receipt for exactly its hash is stored, and after `revealed` is stored;
* a commitment of ours in the log that is not here burns the round, for good, and charges every person: this ledger
  cannot know whom the lost draw was about;
* `accepted` and `burned` delete the envelope; own directions are written in the same transaction;
* a failed integrity check or hash chain leaves the ledger readable and refuses every write;
* no float enters the ledger; rho is stored as two whole numbers.

Why in two phases: docs/protocol.md, "Commit, receipt, reveal".
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

from windvane_privacy import canonical
from windvane_privacy.admission import NOBODY, Admission
from windvane_privacy.envelope import commit_hash
from windvane_privacy.errors import (
    CommitMismatch,
    IllegalTransition,
    LedgerDamaged,
    LedgerError,
    ManifestChanged,
    NeedsApproval,
    ReceiptRefused,
)
from windvane_privacy.leaf import leaf_hash
from windvane_privacy.ledger_schema import (
    FILE,
    GENESIS,
    BurnReason,
    Drawn,
    LeafLike,
    ReceiptLike,
    RoundEntry,
    State,
    Stop,
    StopReason,
    Word,
    entry_hash,
    people_hash,
    schema,
)
from windvane_privacy.ledger_view import LedgerView
from windvane_privacy.manifest import Manifest
from windvane_privacy.own import OwnCounts
from windvane_privacy.sqlite_file import SqliteFile, create_file, roll_back


class Ledger(LedgerView):
    """One open ledger. One process, one connection; a second one raises `LedgerLocked`."""

    @classmethod
    def create(cls, folder: Path, *, key_id: str, machine_id: str) -> None:
        """Make the ledger of a new member, once.

        Raises:
            StateExists: there is one already.
        """
        create_file(
            folder,
            FILE,
            schema(),
            {
                "install_id": secrets.token_hex(16),
                "machine_id": machine_id,
                "key_id": key_id,
                "chain_head": GENESIS,
            },
        )

    @classmethod
    def open(cls, folder: Path, *, machine_id: str) -> Ledger:
        """Open and check it.

        Raises:
            LedgerLocked: another process has it.
            LedgerDamaged: missing, or no database; a milder fault opens it for reading (`damage`).
            LedgerFormat: written by a newer version, or by one that is too old.
            LedgerError: the disk did not take the step to this version's format.
        """
        file = SqliteFile(folder, FILE)
        try:
            found = cls(file, machine_id)
            # The chain is checked before and after: an upgrade neither hides a broken one nor breaks one.
            return cls(file, machine_id) if file.upgrade() else found
        except BaseException:
            file.close()
            raise

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the ledger to the next process."""
        self._file.close()

    # --- the steps of a round, in order ---

    def approve(self, round_id: str, manifest_sha256: str, day: str) -> None:
        """Record that this manifest was approved.

        Raises:
            ManifestChanged: another manifest of this round was approved.
        """
        known = self.approval(round_id)
        if known is not None:
            if known[0] != manifest_sha256:
                raise ManifestChanged
            return
        with self._transaction():
            self._sql.execute("INSERT INTO approval VALUES (?, ?, ?)", (round_id, manifest_sha256, day))

    def draw(
        self,
        manifest: Manifest,
        *,
        day: str,
        lifetime_cap: Fraction,
        make: Callable[[Admission], Drawn],
        since: Mapping[bytes, str] = NOBODY,
    ) -> RoundEntry:
        """Draw, charge and store in one transaction. `make` runs inside it. `since`: attested first days of people.

        Raises:
            IllegalTransition: the round is not empty.
            NeedsApproval, ManifestChanged: this manifest was not approved.
        """
        with self._transaction():
            if self.round(manifest.round) is not None:
                raise IllegalTransition("This round was drawn before.")
            approved = self.approval(manifest.round)
            if approved is None:
                raise NeedsApproval
            if approved[0] != manifest.sha256:
                raise ManifestChanged
            drawn = make(self.admission(manifest.rho, lifetime_cap, since))
            if commit_hash(drawn.envelope) != drawn.commit_hash:
                raise CommitMismatch
            self._insert(
                manifest,
                State.DRAWN,
                drawn.persons,
                everyone=0,
                approved_at_day=approved[1],
                drawn_day=day,
                submission_id=drawn.submission_id,
                envelope=drawn.envelope,
                commitment_leaf=drawn.commitment_leaf,
                commit_hash=drawn.commit_hash,
                noisy=canonical.encode(list(drawn.noisy)),
                opendp_json=drawn.opendp_json,
                versions=drawn.versions,
            )
        return self._require(manifest.round, State.DRAWN)

    def commit(self, round_id: str, receipt: ReceiptLike) -> None:
        """Store the receipt of our commitment. The caller has scanned the log: the first commitment there is ours.

        Raises:
            ReceiptRefused: it is about another leaf.
            IllegalTransition: the round is not `drawn`.
        """
        entry = self._require(round_id, State.DRAWN)
        if receipt.leaf_hash != leaf_hash(entry.commitment_leaf or b""):
            raise ReceiptRefused("It is about another entry.")
        with self._transaction():
            self._update(round_id, "state = 'committed', receipt = ?", receipt.raw)

    def reveal(self, round_id: str) -> bytes:
        """The stored envelope, after `revealed` is on the disk; the same bytes at every call.

        Raises:
            IllegalTransition: the commitment has no receipt yet, or the round is over.
        """
        entry = self.round(round_id)
        if entry is None or entry.state not in (State.COMMITTED, State.REVEALED) or entry.envelope is None:
            raise IllegalTransition("Only a committed round can be revealed.")
        if entry.state is State.COMMITTED:
            with self._transaction():
                self._update(round_id, "state = 'revealed'")
        elif self.damage is not None:
            raise LedgerDamaged(self.damage)
        return entry.envelope

    def accept(
        self, round_id: str, accepted: LeafLike, words: Sequence[Word], day: str, counts: OwnCounts | None = None
    ) -> None:
        """End the round: the log holds the coordinator's `accepted` entry for our hash.

        Raises:
            ReceiptRefused: the entry is of another kind, round or hash.
            IllegalTransition: the round is not `revealed`.
        """
        entry = self._require(round_id, State.REVEALED)
        if (accepted.type, accepted.round, accepted.fields.get("hash")) != ("accepted", round_id, entry.commit_hash):
            raise ReceiptRefused("It is about another submission.")
        with self._transaction():
            self._update(
                round_id, "state = 'accepted', acceptance = ?, envelope = NULL, ended_day = ?", accepted.raw, day
            )
            self._keep_own(round_id, words, counts)

    def burn(
        self,
        round_id: str,
        reason: BurnReason,
        words: Sequence[Word],
        day: str,
        counts: OwnCounts | None = None,
        stop: Stop | None = None,
    ) -> None:
        """End the round without sending anything more. It stays charged.

        Raises:
            IllegalTransition: the round is empty or over.
        """
        entry = self.round(round_id)
        if entry is None or entry.state.final or (reason is BurnReason.STOPPED) != (stop is not None):
            raise IllegalTransition
        with self._transaction():
            if stop is not None:
                self._keep_stop(round_id, stop, day)
            self._update(round_id, "state = 'burned', reason = ?, envelope = NULL, ended_day = ?", reason.value, day)
            self._keep_own(round_id, words, counts)

    def stop_undrawn(self, round_id: str, reason: StopReason, day: str) -> None:
        """Never draw for this round. Nothing was drawn, so nothing is charged and nobody need be told.

        Raises:
            IllegalTransition: it was drawn.
        """
        if self.round(round_id) is not None:
            raise IllegalTransition("This round was drawn before.")
        if self.stop(round_id) is None:
            with self._transaction():
                self._keep_stop(round_id, Stop(reason, None), day)

    def burn_undrawn(
        self,
        manifest: Manifest,
        commit_hash: str,
        words: Sequence[Word],
        *,
        versions: str,
        day: str,
        counts: OwnCounts | None = None,
    ) -> RoundEntry:
        """Account for a draw that the log proves and this ledger has lost: charged to everyone, burned. `commit_hash`:
        what the log holds.

        Raises:
            IllegalTransition: the round has an entry.
        """
        with self._transaction():
            if self.round(manifest.round) is not None:
                raise IllegalTransition
            self._insert(
                manifest,
                State.BURNED,
                (),
                everyone=1,
                drawn_day=day,
                ended_day=day,
                commit_hash=commit_hash,
                reason=BurnReason.FOREIGN_COMMITMENT.value,
                versions=versions,
            )
            self._keep_own(manifest.round, words, counts)
        return self._require(manifest.round, State.BURNED)

    # --- beside the rounds ---

    def remember_head(self, raw: bytes) -> None:
        """Keep the newest verified head of the log. Raises LedgerDamaged even where it is kept: no step may follow."""
        if self.damage is not None:
            raise LedgerDamaged(self.damage)
        if self.last_head != raw:
            with self._transaction():
                self._set_meta("last_head", raw.hex())

    def note_policy(self, sha256: str, day: str) -> bool:
        """Write an entry if the policy is another than at the last entry; True if it was."""
        if [known for _day, known in self.notes("policy")][-1:] == [sha256]:
            return False
        self.note("policy", sha256, day)
        return True

    def note(self, what: str, sha256: str, day: str) -> None:
        """Write an entry beside the rounds; it is never changed or deleted."""
        with self._transaction():
            self._sql.execute("INSERT INTO policy_change(day, what, sha256) VALUES (?, ?, ?)", (day, what, sha256))

    def confirm_machine(self, day: str) -> None:
        """A human has said that the move to this machine was meant, and that no copy runs elsewhere."""
        if not self.moved:
            return
        with self._transaction():
            self._set_meta("machine_id", self._machine_id)
            self._sql.execute(
                "INSERT INTO policy_change(day, what, sha256) VALUES (?, 'machine', ?)", (day, self._machine_id)
            )
        self.moved = False

    def forget_noisy(self, ended_before: str) -> None:
        """Delete noisy vectors and counts of rounds that ended before a day; deletes own directions of none."""
        query = (
            "SELECT round_id FROM round WHERE ended_day < ? AND (noisy IS NOT NULL OR EXISTS"
            " (SELECT 1 FROM round_people WHERE round_people.round_id = round.round_id))"
        )
        if self.damage is None:
            for (round_id,) in self._file.rows(query, (ended_before,)):
                self.forget_shown(str(round_id))

    def forget_shown(self, round_id: str) -> None:
        """Delete noisy vector and counts of a round that is over; harmless again.

        Raises:
            IllegalTransition: the round is not over.
        """
        entry = self.round(round_id)
        if entry is None or not entry.state.final:
            raise IllegalTransition("Its round is not over.")
        with self._transaction():
            self._sql.execute("UPDATE round SET noisy = NULL WHERE round_id = ?", (round_id,))
            for table in ("round_cells", "round_people"):
                self._sql.execute(f"DELETE FROM {table} WHERE round_id = ?", (round_id,))

    # --- inside ---

    def _insert(self, manifest: Manifest, state: State, persons: Sequence[bytes], **columns: object) -> None:
        number, previous = self._chain_end()
        values: dict[str, object] = dict.fromkeys(self._columns)
        values.update(
            round_id=manifest.round,
            number=number + 1,
            manifest_sha256=manifest.sha256,
            state=state.value,
            rho_num=manifest.rho.numerator,
            rho_den=manifest.rho.denominator,
            q=manifest.bounds.Q,
            s=manifest.noise.s,
            h=manifest.noise.h,
            s_i=repr(manifest.share_scale),
            events_from=manifest.events.from_,
            events_to=manifest.events.to,
            people_sha256=people_hash(persons),
            prev_hash=previous,
            **columns,
        )
        values["entry_hash"] = entry_hash(values, previous)
        names = ", ".join(values)
        self._sql.execute(f"INSERT INTO round({names}) VALUES ({', '.join('?' * len(values))})", tuple(values.values()))
        self._sql.executemany(
            "INSERT INTO person_quarter VALUES (?, ?)", [(person, manifest.round) for person in persons]
        )
        self._set_meta("chain_head", str(values["entry_hash"]))

    def _update(self, round_id: str, assignment: str, *values: object) -> None:
        self._sql.execute(f"UPDATE round SET {assignment} WHERE round_id = ?", (*values, round_id))

    def _keep_own(self, round_id: str, words: Sequence[Word], counts: OwnCounts | None) -> None:
        rows = [(round_id, word.kind, str(word.signal), f"{word.a}|{word.b}", word.word) for word in words]
        self._sql.executemany("INSERT INTO own_directions VALUES (?, ?, ?, ?, ?)", rows)
        if counts is not None:
            cells = [(round_id, place, a, b) for place, (a, b) in enumerate(counts.cells)]
            self._sql.executemany("INSERT INTO round_cells VALUES (?, ?, ?, ?)", cells)
            self._sql.execute("INSERT INTO round_people VALUES (?, ?, ?)", (round_id, counts.people, counts.malformed))

    def _keep_stop(self, round_id: str, stop: Stop, day: str) -> None:
        self._sql.execute("INSERT INTO stop VALUES (?, ?, ?, ?)", (round_id, stop.reason.value, day, stop.leaf))

    def _require(self, round_id: str, state: State) -> RoundEntry:
        entry = self.round(round_id)
        if entry is None or entry.state is not state:
            raise IllegalTransition(f"It would have to be {state.value}.")
        return entry

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        if self.damage is not None:
            raise LedgerDamaged(self.damage)
        try:
            self._sql.execute("BEGIN IMMEDIATE")
            yield
            self._sql.execute("COMMIT")
        except sqlite3.IntegrityError as error:
            roll_back(self._sql)
            raise IllegalTransition(f"The database refused it: {error}.") from None
        except sqlite3.Error:
            roll_back(self._sql)
            raise LedgerError("The disk did not take the entry; nothing was sent.") from None
        except BaseException:
            roll_back(self._sql)
            raise

    def _set_meta(self, key: str, value: str) -> None:
        self._sql.execute(
            "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", (key, value)
        )
