# SPDX-License-Identifier: Apache-2.0
"""When a checkpoint is believed: the log's own signature, and enough witnesses, and not too old.

Rules kept here:
* with n witnesses of which f may lie, q cosignatures are enough only if 2 q - n > f: two forks can then never both have
  a quorum, because two sets of q share more than f witnesses; any other rule is refused when it is made;
* each witness counts once, by its pinned key; a line of a stranger or a broken line counts for nothing;
* a checkpoint that is older than the one seen before, contradicts it, or is too old is refused;
* a log that nobody but itself signs proves nothing: a policy has at least one witness, unless it is a demonstration's.

Source: C2SP tlog-policy, tlog-cosignature (July 2026); Malkhi and Reiter, "Byzantine quorum systems" (1998), section 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from windvane_privacy.errors import (
    CheckpointTooOld,
    ClockImplausible,
    ConfigurationError,
    InconsistentCheckpoint,
    QuorumMissing,
    SignatureInvalid,
)
from windvane_privacy.merkle import verify_consistency
from windvane_privacy.notes import Checkpoint, SignedCheckpoint, cosigner_id, verify_cosignature

CLOCK_AHEAD = 24 * 3600
"""Seconds by which a witness's clock may be ahead of ours."""


@dataclass(frozen=True, slots=True)
class Signer:
    """A pinned signer: its name and its ML-DSA-44 public key, 1,312 bytes."""

    name: str
    public: bytes

    @property
    def key_id(self) -> bytes:
        """Four bytes that stand in its signature lines."""
        return cosigner_id(self.name, self.public)


@dataclass(frozen=True, slots=True)
class WitnessPolicy:
    """Whose signatures make a checkpoint. `log`: the log's own key, named by its origin. `quorum`: cosignatures needed.
    `faulty`: witnesses that may lie.

    `max_age`: seconds from the newest cosignature that completes the quorum until the checkpoint is too old.

    Raises:
        ConfigurationError: two forks could both reach the quorum, or a witness is named twice.
    """

    log: Signer
    witnesses: tuple[Signer, ...]
    quorum: int
    faulty: int
    max_age: int

    def __post_init__(self) -> None:
        n, q = len(self.witnesses), self.quorum
        if len({one.public for one in self.witnesses}) != n or len({one.name for one in self.witnesses}) != n:
            raise ConfigurationError("A witness is named twice.")
        if any(one.public == self.log.public for one in self.witnesses):
            raise ConfigurationError("The log cannot be its own witness.")
        if not (1 <= q <= n and self.faulty >= 0 and 2 * q - n > self.faulty and self.max_age > 0):
            raise ConfigurationError(
                f"{q} of {n} witnesses do not exclude two histories when {self.faulty} lie: 2 q - n must be above f."
            )


def usual_rule(n: int) -> tuple[int, int]:
    """(quorum, faulty) for n witnesses: as many may lie as may be silent, f of each: 5 and 2 of 7, 4 and 1 of 5.

    q = n - f cosignatures with 2 q - n > f, that is 3 f < n: f = (n - 1) // 3.
    """
    faulty = (n - 1) // 3
    return n - faulty, faulty


@dataclass(frozen=True, slots=True)
class Believed:
    """A checkpoint with its quorum. `signers`: names of the witnesses that count. `timestamp`: second at which the
    quorum was complete."""

    checkpoint: Checkpoint
    signers: tuple[str, ...]
    timestamp: int


def believe(note: SignedCheckpoint, policy: WitnessPolicy, *, now: int | None) -> Believed:
    """The checkpoint, if the log signed it and a quorum of witnesses cosigned it.

    `now`: seconds since 1970; None for a checkpoint that was believed before, as in a receipt: it cannot be too old.

    Raises:
        InconsistentCheckpoint: of another log, or not signed by this one.
        QuorumMissing: too few witnesses.
        CheckpointTooOld: the quorum was complete too long ago.
        ClockImplausible: this clock is behind that of a quorum.
    """
    if note.checkpoint.origin != policy.log.name or _time(note, policy.log) is None:
        raise InconsistentCheckpoint("It is not signed by the pinned log.")
    valid = [(time, one.name) for one in policy.witnesses if (time := _time(note, one)) is not None]
    times = sorted((one for one in valid if now is None or one[0] <= now + CLOCK_AHEAD), reverse=True)
    if len(times) < policy.quorum <= len(valid):
        raise ClockImplausible("Witnesses have signed later than this clock says it is.")
    if len(times) < policy.quorum:
        raise QuorumMissing(f"{policy.quorum} witnesses are needed.")
    # The newest q signatures: the oldest of them says when the quorum last stood.
    complete = times[policy.quorum - 1][0]
    if now is not None and now - complete > policy.max_age:
        raise CheckpointTooOld
    return Believed(note.checkpoint, tuple(sorted(name for _, name in times)), complete)


def continues(seen: Checkpoint, now: Checkpoint, proof: Sequence[bytes]) -> None:
    """Return if `now` is the log that was seen before, the same or grown.

    Raises:
        InconsistentCheckpoint: it is smaller, of another log, or the proof does not show it.
    """
    if seen.origin != now.origin:
        raise InconsistentCheckpoint
    verify_consistency(seen.size, now.size, seen.root, now.root, proof)


def _time(note: SignedCheckpoint, signer: Signer) -> int | None:
    """Timestamp of this signer's valid line; None without one."""
    for line in note.signatures:
        if (line.name, line.key_id) == (signer.name, signer.key_id):
            try:
                return verify_cosignature(line, note.checkpoint, signer.public)
            except SignatureInvalid:
                continue
    return None
