# SPDX-License-Identifier: Apache-2.0
"""A witness: signs a checkpoint of a log only if it continues the one it signed last.

Rules kept here:
* one row per log: the size and root that were signed last; a checkpoint at the same size has the same root;
* checked, stored durably, then signed: after a crash in between the same checkpoint is signed again, never another one;
* only logs that were pinned by hand, only checkpoints that the pinned log signed; the row keeps the log's signature, so
  that two histories can be shown to others;
* a row that does not hold, or a signature of ours that the row does not know, stops the witness: it has forgotten;
* a witness sees hashes and sizes; what the log says is not its business.

A witness that lost its row, or runs on an old copy of it, could sign a fork: it counts among the `faulty` ones of the
quorum rule. Its key is not used again; a new witness takes its place.

Source: C2SP tlog-witness (July 2026).
"""

from __future__ import annotations

import re
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, Protocol

from windvane_privacy.errors import (
    ForkDetected,
    InconsistentCheckpoint,
    MalformedInput,
    NotReady,
    SignatureInvalid,
    UnknownLog,
    WitnessConflict,
    WitnessRowLost,
)
from windvane_privacy.merkle import EMPTY_ROOT, MAX_PROOF, verify_consistency
from windvane_privacy.notes import (
    MAX_NOTE_BYTES,
    Checkpoint,
    Cosigner,
    SignatureLine,
    SignedCheckpoint,
    decode_hash,
    encode_proof,
    parse_checkpoint,
    verify_cosignature,
)
from windvane_privacy.quorum import Signer

PLAIN: Final = "text/plain; charset=utf-8"
SIZE: Final = "text/x.tlog.size"
MAX_REQUEST_BYTES: Final = MAX_NOTE_BYTES + 64 * 1024
_OLD: Final = re.compile(r"old (0|[1-9][0-9]{0,18})")


class Shelf(Protocol):
    """Where a witness keeps the row of each log. One process at a time holds it."""

    def held(self) -> AbstractContextManager[None]:
        """Nobody else reads or stores in between."""
        ...

    def last(self, origin: str) -> SignedCheckpoint | None:
        """What was stored last for this log; None if nothing ever was."""
        ...

    def store(self, note: SignedCheckpoint) -> None:
        """Keep this one instead; on disk on return."""
        ...


@dataclass(frozen=True, slots=True)
class Request:
    """An `add-checkpoint` request: the size that the sender thinks was signed last, the proof from there, the note."""

    old: int
    proof: tuple[bytes, ...]
    note: SignedCheckpoint


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer."""

    status: int
    media_type: str
    body: bytes


class Witness:
    """A witness with its key and its shelf. `logs`: the pinned logs."""

    def __init__(self, key: Cosigner, logs: tuple[Signer, ...], shelf: Shelf) -> None:
        self._key = key
        self._logs = {one.name: one for one in logs}
        self._shelf = shelf

    def size(self, origin: str) -> int:
        """Size of the checkpoint that was signed last; 0 if none was.

        Raises:
            UnknownLog: not pinned here.
            WitnessRowLost: what was signed is not known any more.
        """
        return self._row(self._pinned(origin)).checkpoint.size

    def last(self, origin: str) -> SignedCheckpoint:
        """The checkpoint that was signed last, with the log's own signature; of size 0 and without one if none was.

        Raises:
            UnknownLog, WitnessRowLost: as for `size`.
        """
        return self._row(self._pinned(origin))

    def shown(self, note: SignedCheckpoint) -> SignedCheckpoint:
        """A checkpoint that the pinned log signed, with its signature only. Nothing is signed or stored.

        Raises:
            UnknownLog: not pinned here.
            SignatureInvalid: the pinned log did not sign it.
            WitnessRowLost: our own signature stands under it, and the row does not know of it: another copy of this
                witness signed, or the row is an old one.
        """
        pinned = self._pinned(note.checkpoint.origin)
        signed = _signed(note, pinned)
        last = self._row(pinned).checkpoint
        if note.checkpoint.size >= last.size and note.checkpoint != last and self._is_ours(note):
            raise WitnessRowLost("The log shows a signature of this witness that it does not know of.")
        return signed

    def cosign(self, request: Request, now: int) -> SignatureLine:
        """The signature line under a checkpoint that continues what was signed. `now`: seconds since 1970.

        Raises:
            UnknownLog: not pinned here.
            SignatureInvalid: the pinned log did not sign it.
            MalformedInput: it is smaller than the size that the sender names.
            WitnessConflict: another size was signed last; `size` says which.
            ForkDetected: the same size with another root.
            InconsistentCheckpoint: the proof does not show that it continues what was signed.
            WitnessRowLost: what was signed is not known any more.
        """
        checkpoint = request.note.checkpoint
        pinned = self._pinned(checkpoint.origin)
        note = _signed(request.note, pinned)
        if request.old > checkpoint.size:
            raise MalformedInput("A checkpoint is smaller than the size it is said to follow.")
        with self._shelf.held():
            last = self._row(pinned).checkpoint
            if request.old != last.size:
                raise WitnessConflict(size=last.size)
            if checkpoint.size == last.size and checkpoint.root != last.root:
                raise ForkDetected
            verify_consistency(last.size, checkpoint.size, last.root, checkpoint.root, request.proof)
            if checkpoint != last:
                self._shelf.store(note)
            return self._key.cosign(checkpoint, now)

    def newest(self, origin: str, now: int) -> SignedCheckpoint:
        """The checkpoint that was signed last, with the log's line and our own of now.

        Raises:
            UnknownLog, WitnessRowLost: as for `size`.
            NotReady: nothing was signed yet.
        """
        pinned = self._pinned(origin)
        # Under the lock: a later time under an older checkpoint would say that the newer one was not seen.
        with self._shelf.held():
            row = self._row(pinned)
            if not row.signatures:
                raise NotReady("This witness has signed nothing of this log yet.")
            return row.with_line(self._key.cosign(row.checkpoint, now))

    def _pinned(self, origin: str) -> Signer:
        if origin not in self._logs:
            raise UnknownLog
        return self._logs[origin]

    def _row(self, log: Signer) -> SignedCheckpoint:
        row = self._shelf.last(log.name)
        if row is None or row.checkpoint == Checkpoint(log.name, 0, EMPTY_ROOT):
            return SignedCheckpoint(Checkpoint(log.name, 0, EMPTY_ROOT), ())
        try:
            return _signed(row, log)
        except SignatureInvalid:
            raise WitnessRowLost("What this witness stored last is not what the log signed.") from None

    def _is_ours(self, note: SignedCheckpoint) -> bool:
        own = Signer(self._key.name, self._key.public)
        try:
            _signed(note, own)
        except SignatureInvalid:
            return False
        return True

    def add_checkpoint(self, raw: bytes, now: int) -> Answer:
        """The answer to an `add-checkpoint` request, whatever it holds."""
        try:
            line = self.cosign(parse_request(raw), now)
        except MalformedInput:
            return Answer(400, PLAIN, b"")
        except UnknownLog:
            return Answer(404, PLAIN, b"")
        except SignatureInvalid:
            return Answer(403, PLAIN, b"")
        except WitnessConflict as conflict:
            return Answer(409, SIZE, f"{conflict.size}\n".encode())
        except InconsistentCheckpoint:
            return Answer(422, PLAIN, b"")
        return Answer(200, PLAIN, line.text.encode())


def encode_request(request: Request) -> bytes:
    """The request as it is sent."""
    return f"old {request.old}\n{encode_proof(request.proof)}\n".encode() + request.note.encode()


def parse_request(raw: bytes) -> Request:
    """A request from its bytes.

    Raises:
        MalformedInput: in any way not of the form above.
    """
    head, blank, note = raw.partition(b"\n\n")
    try:
        lines = head.decode("ascii").split("\n")
    except UnicodeDecodeError:
        raise MalformedInput("A request to a witness is not ASCII before its checkpoint.") from None
    found = _OLD.fullmatch(lines[0])
    if len(raw) > MAX_REQUEST_BYTES or not blank or found is None or int(found[1]) >= 1 << 63:
        raise MalformedInput("A request to a witness is not of its form.")
    if len(lines) > 1 + MAX_PROOF:
        raise MalformedInput("A proof is too long.")
    return Request(int(found[1]), tuple(decode_hash(line) for line in lines[1:]), parse_checkpoint(note))


def _signed(note: SignedCheckpoint, signer: Signer) -> SignedCheckpoint:
    """The checkpoint with this signer's line alone.

    Raises:
        SignatureInvalid: the signer's line is missing or does not hold.
    """
    for line in note.signatures:
        if (line.name, line.key_id) == (signer.name, signer.key_id):
            verify_cosignature(line, note.checkpoint, signer.public)
            return SignedCheckpoint(note.checkpoint, (line,))
    raise SignatureInvalid("The pinned log did not sign the checkpoint.")
