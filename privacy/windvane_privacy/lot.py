# SPDX-License-Identifier: Apache-2.0
"""The lot that deals the accepted organisations into cohorts, from nonces the guardians committed to beforehand.

Rules kept here:
* nobody knows before the set is closed who will be summed with whom, and anybody can recompute it afterwards;
* each guardian commits to its nonce before the manifest exists and reveals it only after the closed set is in the log,
  bound to that set's root;
* the seed covers the manifest, the closed set and every nonce in guardian order; a missing one is marked, not skipped;
* cohort sizes differ by at most one; nothing is ever redrawn or merged.

Left open until the guardians share their nonces with each other: whoever reveals last (or the coordinator, who can hold
back that last entry) knows the lot with and without that nonce, and may choose between these two lots by staying away.
The log shows the missing nonce. It is a choice between two random lots, never a lot of one's own making.

All hashes are SHA-256, integers big-endian. Source: docs/protocol.md (lot).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from windvane_privacy import canonical
from windvane_privacy.errors import LotError, MalformedInput

NONCE_BYTES = 32
_HASH_BYTES = 32


def nonce_commitment(round_id: str, guardian: int, nonce: bytes) -> str:
    """Hex hash of `"windvane/1/nonce\\0" || length of the round's name u8 || name || guardian u8 || nonce (32 bytes)`.

    Raises:
        LotError: the nonce is not 32 bytes.
    """
    if len(nonce) != NONCE_BYTES:
        raise LotError("A nonce is not 32 bytes.")
    name = round_id.encode()
    body = b"windvane/1/nonce\0" + len(name).to_bytes(1, "big") + name + guardian.to_bytes(1, "big") + nonce
    return hashlib.sha256(body).hexdigest()


def set_root(accepted: Sequence[tuple[int, str]]) -> str:
    """Hex hash of `"windvane/1/set\\0"` and, by member number, `member u32 || commit hash (32 bytes)`.

    The order of the argument does not matter.

    Raises:
        LotError: a member occurs twice, or a hash is not 32 bytes of hex.
    """
    rows = sorted(accepted)
    if len({member for member, _ in rows}) != len(rows):
        raise LotError("A member is in the closed set twice.")
    body = b"windvane/1/set\0" + b"".join(member.to_bytes(4, "big") + _digest(commit) for member, commit in rows)
    return hashlib.sha256(body).hexdigest()


def lot_seed(manifest_sha256: str, set_root: str, nonces: Sequence[bytes | None]) -> bytes:
    """32 bytes: hash of `"windvane/1/lot\\0" || manifest || set root ||` per guardian `0x01 || nonce`, or `0x00` where
    the nonce is missing.

    Raises:
        LotError: a nonce or a hash is not 32 bytes.
    """
    body = b"windvane/1/lot\0" + _digest(manifest_sha256) + _digest(set_root)
    for nonce in nonces:
        if nonce is not None and len(nonce) != NONCE_BYTES:
            raise LotError("A nonce is not 32 bytes.")
        body += b"\0" if nonce is None else b"\1" + nonce
    return hashlib.sha256(body).digest()


def cohorts(members: Sequence[int], seed: bytes, G: int) -> tuple[tuple[int, ...], ...]:
    """G cohorts of member numbers, each sorted: members in order of `SHA-256(seed || member u32)`, dealt in turn.

    Raises:
        LotError: fewer members than cohorts, no cohort, or a member twice.
    """
    if not 1 <= G <= len(members) or len(set(members)) != len(members):
        raise LotError("There are fewer members than cohorts.")
    order = sorted(members, key=lambda member: hashlib.sha256(seed + member.to_bytes(4, "big")).digest())
    return tuple(tuple(sorted(order[g::G])) for g in range(G))


def cohorts_sha256(table: Sequence[Sequence[int]]) -> str:
    """Hex hash of `"windvane/1/cohorts\\0" ||` the canonical list of lists of member numbers."""
    listed = canonical.encode([list(cohort) for cohort in table])
    return hashlib.sha256(b"windvane/1/cohorts\0" + listed).hexdigest()


def _digest(text: str) -> bytes:
    try:
        raw = bytes.fromhex(text)
    except ValueError:
        raise MalformedInput from None
    if len(raw) != _HASH_BYTES:
        raise MalformedInput
    return raw
