# SPDX-License-Identifier: Apache-2.0
"""One visit of a witness to its log: fetch the newest checkpoint, check, sign, bring the line.

Rules kept here:
* a witness pulls: nothing listens at the witness, and it may come from cron;
* whatever the log says, the witness's own row decides; nothing that contradicts it is signed;
* only what the log signed is kept as evidence, beside what the witness signed before;
* the visit may be repeated at any time; a checkpoint that stands still is signed anew, because cosignatures are the
  log's clock.

Source: C2SP tlog-witness, tlog-cosignature (July 2026).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from windvane_privacy import canonical
from windvane_privacy.couriers import Courier, Parcel
from windvane_privacy.errors import InconsistentCheckpoint, MalformedInput, UnknownLog, WitnessConflict
from windvane_privacy.merkle import MAX_PROOF
from windvane_privacy.notes import SignedCheckpoint, decode_hash, parse_checkpoint
from windvane_privacy.witness import Request, Witness

MAX_PROOF_BYTES = MAX_PROOF * 45
Keep = Callable[[SignedCheckpoint, SignedCheckpoint], object]
"""Keeps what was signed before, and what the log shows instead."""


@dataclass(frozen=True, slots=True)
class Visit:
    """What a visit did: the size that is signed now, and the one before."""

    size: int
    before: int


def visit(witness: Witness, origin: str, courier: Courier, now: int, evidence: Keep) -> Visit:
    """Sign the log's newest checkpoint and bring the line. `now`: seconds since 1970.

    Raises:
        UnknownLog: the coordinator serves another log.
        SignatureInvalid: the pinned log did not sign what was shown.
        InconsistentCheckpoint, ForkDetected: the log is not the one that was signed before; nothing was signed.
        WitnessRowLost: what was signed before is not known any more.
        NotReady: the log is empty.
    """
    try:
        return _visit(witness, origin, courier, now, evidence)
    except WitnessConflict:
        # Another process of this witness signed in between: once more, from what it stored.
        return _visit(witness, origin, courier, now, evidence)


def _visit(witness: Witness, origin: str, courier: Courier, now: int, evidence: Keep) -> Visit:
    note = parse_checkpoint(courier.exchange(Parcel("checkpoint")))
    if note.checkpoint.origin != origin:
        raise UnknownLog("The coordinator serves a log of another name.")
    shown, signed = witness.shown(note), witness.last(origin)
    before, size = signed.checkpoint.size, shown.checkpoint.size
    try:
        if size < before:
            raise InconsistentCheckpoint("The log is shorter than what was signed.")
        proof = () if before in (0, size) else _proof(courier, before, size)
        line = witness.cosign(Request(before, proof, shown), now)
    except InconsistentCheckpoint:
        evidence(signed, shown)
        raise
    courier.exchange(Parcel("cosign", "", SignedCheckpoint(shown.checkpoint, (line,)).encode()))
    return Visit(size, before)


def _proof(courier: Courier, old: int, new: int) -> tuple[bytes, ...]:
    raw = courier.exchange(Parcel("consistency", "", canonical.encode({"old": old, "new": new})))
    try:
        text = raw.decode("ascii")
    except UnicodeDecodeError:
        raise MalformedInput("A proof is not ASCII.") from None
    if len(raw) > MAX_PROOF_BYTES or (text and not text.endswith("\n")):
        raise MalformedInput("A proof is not lines of hashes.")
    return tuple(decode_hash(line) for line in text.splitlines())
