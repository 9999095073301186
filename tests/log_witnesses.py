# SPDX-License-Identifier: Apache-2.0
"""The log's key and three witnesses for tests: real keys and signatures; what a witness stores stays in memory."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from manifests import LOG_ORIGIN, derived
from windvane_privacy import log
from windvane_privacy.keyfiles import secure_folder, write_secret
from windvane_privacy.merkle import Tree
from windvane_privacy.notes import Checkpoint, Cosigner, SignedCheckpoint, verifier_key
from windvane_privacy.proofs import LogProof, encode_log_proof
from windvane_privacy.quorum import Signer, WitnessPolicy
from windvane_privacy.signed import Federation, LogPins, PinnedWitness
from windvane_privacy.witness import Witness
from windvane_privacy.witness_state import CARD, KEY, LOGS, pin_log

WITNESSES = tuple(Cosigner.from_raw(f"witness-{i}.test", derived(f"witness {i}")) for i in (1, 2, 3))
CARDS = tuple(verifier_key(one.name, one.public) for one in WITNESSES)
LOG_KEY = Cosigner.from_raw(LOG_ORIGIN, derived("log key"))
PINS = LogPins(
    LOG_KEY.public.hex(), tuple(PinnedWitness(one.name, one.public.hex()) for one in WITNESSES), 2, 0, 14 * 24
)
POLICY = WitnessPolicy(
    Signer(LOG_ORIGIN, LOG_KEY.public), tuple(Signer(one.name, one.public) for one in WITNESSES), 2, 0, 14 * 24 * 3600
)


class MemoryShelf:
    """What a witness stores, for as long as the test runs."""

    def __init__(self) -> None:
        self.rows: dict[str, SignedCheckpoint] = {}

    @contextmanager
    def held(self) -> Iterator[None]:
        yield

    def last(self, origin: str) -> SignedCheckpoint | None:
        return self.rows.get(origin)

    def store(self, note: SignedCheckpoint) -> None:
        self.rows[note.checkpoint.origin] = note


def at_once(federation: Federation, count: int = 3) -> tuple[Witness, ...]:
    """Witnesses that have signed nothing yet, of this federation's log."""
    pinned = (federation.log_policy.log,)
    return tuple(Witness(key, pinned, MemoryShelf()) for key in WITNESSES[:count])


def folders(parent: Path, federation: Federation) -> list[Path]:
    """The same witnesses as folders, for a coordinator in a process of its own."""
    made = []
    for one in WITNESSES:
        folder = secure_folder(parent / one.name)
        secure_folder(folder / LOGS)
        if not (folder / KEY).exists():
            write_secret(folder / CARD, f"{verifier_key(one.name, one.public)}\n".encode())
            write_secret(folder / KEY, one.raw)
        pin_log(folder, federation.log_policy.log)
        made.append(folder)
    return made


# --- a log made by hand -----------------------------------------------------------------------------------------------


def note(
    leaves: Sequence[bytes], now: datetime, *, key: Cosigner = LOG_KEY, witnesses: Sequence[Cosigner] = WITNESSES
) -> SignedCheckpoint:
    """A checkpoint over exactly these leaves, signed by all of these."""
    return _note(tuple(leaves), int(now.timestamp()), key, tuple(witnesses))


@functools.lru_cache(maxsize=4096)
def _note(leaves: tuple[bytes, ...], second: int, key: Cosigner, witnesses: tuple[Cosigner, ...]) -> SignedCheckpoint:
    point = Checkpoint(key.name, len(leaves), tree(leaves).root())
    return SignedCheckpoint(point, tuple(one.cosign(point, second) for one in (key, *witnesses)))


def tree(leaves: Sequence[bytes]) -> Tree:
    """The tree over these leaves."""
    return Tree(bytes.fromhex(log.leaf_hash(leaf)) for leaf in leaves)


def answer(leaves: Sequence[bytes], now: datetime, **signers: object) -> bytes:
    """The answer to a `leaves` parcel of a log that holds exactly these."""
    return log.encode_leaves(note(leaves, now, **signers).encode(), leaves)  # type: ignore[arg-type]


def receipt(leaves: Sequence[bytes], index: int, now: datetime, size: int | None = None, **signers: object) -> bytes:
    """The receipt of a leaf under a checkpoint of the first `size` leaves; of those up to it without a size."""
    held = leaves[: index + 1 if size is None else size]
    path = tuple(tree(held).inclusion(index, len(held)))
    return encode_log_proof(LogProof(index, path, note(held, now, **signers)))  # type: ignore[arg-type]
