# SPDX-License-Identifier: Apache-2.0
"""The coordinator's end of the public log: the tree over its entries, checkpoints, cosignatures, receipts.

Rules kept here:
* nothing is shown that is not under a checkpoint with a quorum of witnesses: what is newer is "not yet";
* the next checkpoint is made once the last one has its quorum, so that witnesses of any rhythm meet under one;
* an entry's receipt is its proof under the first checkpoint that held it, as it was when its quorum was complete: the
  same entry gets the same receipt, byte for byte;
* a checkpoint is kept in a second place before anybody sees it; a database that is older refuses to serve.

Source: C2SP tlog-checkpoint, tlog-cosignature, tlog-witness, tlog-proof, tlog-tiles (July 2026).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Protocol

from sqlalchemy import Connection, Row, func, select, update

from windvane_privacy import canonical
from windvane_privacy.errors import (
    InconsistentCheckpoint,
    LogRolledBack,
    MalformedInput,
    NotReady,
    QuorumMissing,
    SignatureInvalid,
    UnknownAddress,
)
from windvane_privacy.keyfiles import read_secret, replace_file
from windvane_privacy.log import encode_leaves
from windvane_privacy.merkle import Tree
from windvane_privacy.notes import (
    Checkpoint,
    Cosigner,
    SignatureLine,
    SignedCheckpoint,
    encode_proof,
    parse_checkpoint,
    verify_cosignature,
)
from windvane_privacy.proofs import LogProof, encode_log_proof
from windvane_privacy.quorum import WitnessPolicy, believe
from windvane_privacy.tiles import Tile, encode_bundle, encode_tile
from windvane_privacy.witness import Answer, Request, encode_request
from windvane_server.entries import Entry
from windvane_server.schema import checkpoints, leaves
from windvane_server.store import Store

REFRESH_SECONDS = 3600
"""A checkpoint whose quorum is older is cosigned anew: its cosignatures are the log's clock."""


class AtOnce(Protocol):
    """A witness that answers while it is asked: one in this process, or an address that takes `add-checkpoint`."""

    def add_checkpoint(self, raw: bytes, now: int) -> Answer:
        """Its answer to a C2SP `add-checkpoint` request. `now`: seconds since 1970."""
        ...


class Checkpoints:
    """The log of one origin. `at_once`: witnesses that are asked for each checkpoint; the others come by themselves.

    Raises:
        LogRolledBack: the database is older than the checkpoint in `second_place`.
    """

    def __init__(
        self, store: Store, key: Cosigner, policy: WitnessPolicy, second_place: Path, at_once: Sequence[AtOnce] = ()
    ) -> None:
        self._store, self._key, self._policy = store, key, policy
        self._second_place, self._at_once = second_place, tuple(at_once)
        self._tree = Tree()
        self._lock, self._asking = threading.Lock(), threading.Lock()
        self._check_second_place()

    # --- what is asked ---

    def newest(self, now: datetime) -> bytes:
        """The newest checkpoint as a signed note, with the cosignatures so far."""
        self._advance(now)
        with self._store.read() as connection:
            row = self._last(connection)
        if row is None:
            raise NotReady("The log is empty.")
        return bytes(row.note)

    def consistency(self, old: int, new: int) -> bytes:
        """Proof lines from one size to another.

        Raises:
            MalformedInput: the log has no such sizes.
        """
        with self._store.read() as connection:
            tree = self._grown(connection)
        try:
            return encode_proof(tree.consistency(old, new)).encode()
        except InconsistentCheckpoint:
            raise MalformedInput("The log has no such sizes.") from None

    def add(self, raw: bytes) -> bytes:
        """Take a witness's cosignature: a signed note of one of our checkpoints with its line.

        Raises:
            LogRolledBack: a witness has signed more than this database holds.
            InconsistentCheckpoint: no checkpoint of ours.
            SignatureInvalid: no pinned witness has signed it.
        """
        note = parse_checkpoint(raw)
        lines = [line for line in note.signatures if self._valid(line, note.checkpoint)]
        if not lines:
            raise SignatureInvalid("No witness of this federation has signed it.")
        with self._store.write() as connection:
            row = connection.execute(
                select(checkpoints).where(checkpoints.c.size == note.checkpoint.size)
            ).one_or_none()
            if row is None or parse_checkpoint(bytes(row.note)).checkpoint != note.checkpoint:
                if note.checkpoint.size > self._size(connection):
                    raise LogRolledBack
                raise InconsistentCheckpoint("It is no checkpoint of this log.")
            self._keep(connection, row, lines)
        return canonical.encode({"size": note.checkpoint.size, "witness": lines[0].name})

    def answer(self, now: datetime) -> bytes:
        """All entries under the newest checkpoint with a quorum.

        Raises:
            NotReady: there is none yet.
        """
        self._advance(now)
        with self._store.read() as connection:
            row = self._believed(connection)
            if row is None:
                raise NotReady("The witnesses have not signed yet.")
            raws = connection.execute(select(leaves.c.raw).where(leaves.c.idx < row.size).order_by(leaves.c.idx))
            return encode_leaves(bytes(row.note), [bytes(raw) for raw in raws.scalars()])

    def tile(self, tile: Tile, now: datetime) -> bytes:
        """A tile of hashes or a bundle of entries, where the checkpoint with a quorum reaches over it.

        Raises:
            UnknownAddress: it does not, or not yet.
        """
        self._advance(now)
        with self._store.read() as connection:
            row = self._believed(connection)
            if row is None or not tile.within(row.size):
                raise UnknownAddress
            if tile.level is not None:
                return encode_tile(self._grown(connection), tile)
            raws = connection.execute(
                select(leaves.c.raw).where(leaves.c.idx >= tile.start, leaves.c.idx < tile.stop).order_by(leaves.c.idx)
            )
            return encode_bundle([bytes(raw) for raw in raws.scalars()])

    def receipt(self, entry: Entry, now: datetime) -> bytes:
        """The receipt of an entry.

        Raises:
            NotReady: it is in the log, but no checkpoint with a quorum holds it yet.
        """
        self._advance(now)
        with self._store.read() as connection:
            row = connection.execute(
                select(checkpoints)
                .where(checkpoints.c.size > entry.index, checkpoints.c.agreed.is_not(None))
                .order_by(checkpoints.c.size)
                .limit(1)
            ).one_or_none()
            if row is None:
                raise NotReady("It is in the log; the witnesses have not signed yet.")
            path = tuple(self._grown(connection).inclusion(entry.index, row.size))
        return encode_log_proof(LogProof(entry.index, path, parse_checkpoint(bytes(row.agreed))))

    # --- growing ---

    def _advance(self, now: datetime) -> None:
        """Make the next checkpoint where one is due, and ask the witnesses that answer at once."""
        second = int(now.timestamp())
        if not self._at_once:
            self._next(second)
            return
        with self._asking:
            # An entry may have come while the witnesses signed the checkpoint before it: that one first, then the next.
            while (last := self._next(second)) is not None and self._stale(last, second):
                if not self._ask(last, second):
                    return

    def _next(self, second: int) -> Row[tuple[object, ...]] | None:
        """The newest checkpoint, made now where one is due."""
        with self._store.read() as connection:
            last, size = self._last(connection), self._size(connection)
        if not self._due(last, size):
            return last
        with self._store.write() as connection:
            last, size = self._last(connection), self._size(connection)
            if self._due(last, size):
                self._make(connection, size, second)
        with self._store.read() as connection:
            return self._last(connection)

    def _due(self, last: Row[tuple[object, ...]] | None, size: int) -> bool:
        return size > 0 and (last is None or (size > last.size and last.agreed is not None))

    def _make(self, connection: Connection, size: int, second: int) -> None:
        point = Checkpoint(self._policy.log.name, size, self._grown(connection).root(size))
        note = SignedCheckpoint(point, (self._key.cosign(point, second),)).encode()
        # First the second place: a checkpoint that anybody has seen is never forgotten.
        replace_file(self._second_place, note)
        connection.execute(checkpoints.insert().values(size=size, note=note, agreed=None))

    def _stale(self, row: Row[tuple[object, ...]], second: int) -> bool:
        """Whether a checkpoint wants cosignatures: it has no quorum, or an ageing one."""
        try:
            found = believe(parse_checkpoint(bytes(row.note)), self._policy, now=None)
        except QuorumMissing:
            return True
        return second - found.timestamp > REFRESH_SECONDS

    def _ask(self, row: Row[tuple[object, ...]], second: int) -> bool:
        """Ask every witness that answers at once; whether the checkpoint has a fresh quorum then."""
        note = parse_checkpoint(bytes(row.note))
        with self._store.read() as connection:
            tree = self._grown(connection)
        lines = []
        for witness in self._at_once:
            answer, old = witness.add_checkpoint(encode_request(Request(row.size, (), note)), second), row.size
            if answer.status == 409 and answer.body.strip().isdigit() and int(answer.body) <= row.size:
                old = int(answer.body)
                request = Request(old, tuple(tree.consistency(old, row.size)), note)
                answer = witness.add_checkpoint(encode_request(request), second)
            if answer.status == 200:
                signed = parse_checkpoint(note.checkpoint.text.encode() + b"\n" + answer.body)
                lines += [line for line in signed.signatures if self._valid(line, note.checkpoint)]
        if not lines:
            return False
        with self._store.write() as connection:
            again = connection.execute(select(checkpoints).where(checkpoints.c.size == row.size)).one()
            self._keep(connection, again, lines)
            return not self._stale(self._last(connection) or again, second)

    def _keep(self, connection: Connection, row: Row[tuple[object, ...]], lines: Sequence[SignatureLine]) -> None:
        note = parse_checkpoint(bytes(row.note))
        for line in lines:
            note = note.with_line(line)
        values: dict[str, bytes] = {"note": note.encode()}
        if row.agreed is None:
            try:
                believe(note, self._policy, now=None)
                values["agreed"] = note.encode()
            except QuorumMissing:
                pass
        connection.execute(update(checkpoints).where(checkpoints.c.size == row.size).values(**values))

    def _valid(self, line: SignatureLine, point: Checkpoint) -> bool:
        for one in self._policy.witnesses:
            if (line.name, line.key_id) == (one.name, one.key_id):
                try:
                    verify_cosignature(line, point, one.public)
                except SignatureInvalid:
                    return False
                return True
        return False

    # --- the table ---

    def _size(self, connection: Connection) -> int:
        last = connection.execute(select(func.max(leaves.c.idx))).scalar()
        return 0 if last is None else int(last) + 1

    def _last(self, connection: Connection) -> Row[tuple[object, ...]] | None:
        return connection.execute(select(checkpoints).order_by(checkpoints.c.size.desc()).limit(1)).one_or_none()

    def _believed(self, connection: Connection) -> Row[tuple[object, ...]] | None:
        return connection.execute(
            select(checkpoints).where(checkpoints.c.agreed.is_not(None)).order_by(checkpoints.c.size.desc()).limit(1)
        ).one_or_none()

    def _grown(self, connection: Connection) -> Tree:
        """The tree over every entry. The connection has appended none: what it sees is committed."""
        with self._lock:
            more = connection.execute(
                select(leaves.c.hash).where(leaves.c.idx >= self._tree.size).order_by(leaves.c.idx)
            )
            for digest in more.scalars():
                self._tree.append(bytes.fromhex(digest))
            return self._tree

    def _check_second_place(self) -> None:
        if not self._second_place.exists():
            return
        seen = parse_checkpoint(read_secret(self._second_place)).checkpoint
        with self._store.read() as connection:
            size = self._size(connection)
            if size < seen.size or self._grown(connection).root(seen.size) != seen.root:
                raise LogRolledBack
