# SPDX-License-Identifier: Apache-2.0
"""Proofs that travel: a leaf's place in the log, with the checkpoint under which it stands.

Rules kept here:
* a proof is `c2sp.org/tlog-proof@v1`: optional `extra`, `index`, one line a hash, a blank line, the signed checkpoint;
* it is parsed in exactly one way; at most 63 hashes, numbers without leading zeros, canonical base64;
* `extra` is read and passed over: nothing in it is signed;
* parsing proves nothing; `log.verify_receipt` does.

Source: C2SP tlog-proof (July 2026); RFC 6962 section 2.1.1.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from windvane_privacy.errors import MalformedInput
from windvane_privacy.merkle import MAX_PROOF
from windvane_privacy.notes import SignedCheckpoint, decode_hash, encode_proof, parse_checkpoint

HEADER: Final = b"c2sp.org/tlog-proof@v1\n"
MAX_PROOF_BYTES: Final = 1 << 20
MAX_EXTRA: Final = 16_384
_INDEX: Final = re.compile(r"index (0|[1-9][0-9]{0,18})")
_EXTRA: Final = re.compile(r"extra [A-Za-z0-9+/]*={0,2}")


@dataclass(frozen=True, slots=True)
class LogProof:
    """Leaf `index` of the tree of `note`, by the hashes of `path` (32 bytes each, leaf first). Nothing is verified."""

    index: int
    path: tuple[bytes, ...]
    note: SignedCheckpoint


def encode_log_proof(proof: LogProof) -> bytes:
    """The proof as it is sent and kept."""
    head = f"index {proof.index}\n{encode_proof(proof.path)}\n"
    return HEADER + head.encode() + proof.note.encode()


def parse_log_proof(raw: bytes) -> LogProof:
    """A proof from its bytes.

    Raises:
        MalformedInput: in any way not of the form above.
    """
    if len(raw) > MAX_PROOF_BYTES or not raw.startswith(HEADER):
        raise MalformedInput("A proof of the log is too long or has another header.")
    head, blank, note = raw.removeprefix(HEADER).partition(b"\n\n")
    try:
        lines = head.decode("ascii").split("\n")
    except UnicodeDecodeError:
        raise MalformedInput("A proof of the log is not ASCII before its checkpoint.") from None
    if _EXTRA.fullmatch(lines[0]) and len(lines[0]) <= MAX_EXTRA:
        lines = lines[1:]
    found = _INDEX.fullmatch(lines[0]) if lines else None
    if not blank or found is None or int(found[1]) >= 1 << 63 or len(lines) > 1 + MAX_PROOF:
        raise MalformedInput("A proof of the log is not of its form.")
    return LogProof(int(found[1]), tuple(decode_hash(line) for line in lines[1:]), parse_checkpoint(note))
