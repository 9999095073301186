# SPDX-License-Identifier: Apache-2.0
"""One visit of a witness to its log: fetch the newest checkpoint, check, sign, bring the line.

Rules kept here:
* a witness pulls: nothing listens at the witness, and it may come from cron;
* whatever the log says, the witness's own row decides; a contradiction is kept as evidence and nothing is signed;
* the visit may be repeated at any time; a checkpoint that stands still is signed anew, because cosignatures are the
  log's clock.

Source: C2SP tlog-witness, tlog-cosignature (July 2026).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from windvane_privacy import canonical
from windvane_privacy.couriers import Courier, Parcel
from windvane_privacy.errors import InconsistentCheckpoint, MalformedInput, UnknownLog
from windvane_privacy.merkle import MAX_PROOF
from windvane_privacy.notes import SignedCheckpoint, decode_hash, parse_checkpoint
from windvane_privacy.witness import Request, Witness

MAX_PROOF_BYTES = MAX_PROOF * 45


@dataclass(frozen=True, slots=True)
class Visit:
    """What a visit did: the size that is signed now, and the one before."""

    size: int
    before: int


def visit(witness: Witness, origin: str, courier: Courier, now: int, evidence: Callable[[str, bytes], object]) -> Visit:
    """Sign the log's newest checkpoint and bring the line. `now`: seconds since 1970.

    `evidence` keeps a checkpoint that contradicts what was signed before, under a name.

    Raises:
        UnknownLog: the coordinator serves another log.
        InconsistentCheckpoint, ForkDetected: the log is not the one that was signed before; nothing was signed.
        NotReady: the log is empty.
    """
    raw = courier.exchange(Parcel("checkpoint"))
    note = parse_checkpoint(raw)
    point = note.checkpoint
    if point.origin != origin:
        raise UnknownLog("The coordinator serves a log of another name.")
    before = witness.size(origin)
    try:
        if point.size < before:
            raise InconsistentCheckpoint("The log is shorter than what was signed.")
        proof = () if before in (0, point.size) else _proof(courier, before, point.size)
        line = witness.cosign(Request(before, proof, note), now)
    except InconsistentCheckpoint:
        evidence(hashlib.sha256(raw).hexdigest(), raw)
        raise
    courier.exchange(Parcel("cosign", "", SignedCheckpoint(point, (line,)).encode()))
    return Visit(point.size, before)


def _proof(courier: Courier, old: int, new: int) -> tuple[bytes, ...]:
    raw = courier.exchange(Parcel("consistency", "", canonical.encode({"old": old, "new": new})))
    try:
        text = raw.decode("ascii")
    except UnicodeDecodeError:
        raise MalformedInput("A proof is not ASCII.") from None
    if len(raw) > MAX_PROOF_BYTES or (text and not text.endswith("\n")):
        raise MalformedInput("A proof is not lines of hashes.")
    return tuple(decode_hash(line) for line in text.splitlines())
