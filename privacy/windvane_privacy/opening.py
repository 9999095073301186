# SPDX-License-Identifier: Apache-2.0
"""One member's share of one guardian: opened only after everything about its envelope has held up.

Rules kept here:
* the envelope is the one whose hash the log holds for this member, of the manifest's form, signed by the member's key
  in the roster, and its share for this guardian opens under everything that was bound to it;
* the checks run in this order, and the first that fails names the refusal;
* a look at all envelopes collects refusals and gives no share out.

Source: docs/protocol.md (envelope, shares).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windvane_privacy.ceremony import ClosedSet
from windvane_privacy.envelope import commit_hash, open_share, parse_envelope, verify_envelope
from windvane_privacy.errors import BadMemberSignature, CommitMismatch, WindvaneError
from windvane_privacy.manifest import Manifest
from windvane_privacy.sealing import RoundKey


@dataclass(frozen=True, slots=True)
class Opener:
    """What a guardian opens shares with. `keys`: member number to identity key (32 bytes)."""

    manifest: Manifest
    keys: Mapping[int, bytes]
    guardian: int
    key: RoundKey

    def share(self, raw: bytes, member: int, logged: str) -> NDArray[np.uint64]:
        """The L + 1 field elements of this member's share; the last one is the blind element.

        Raises:
            CommitMismatch: not the envelope that the log holds for this member.
            MalformedEnvelope, BadMemberSignature: it is not the member's.
            WrongGuardianKey, ShareWillNotOpen, ShareHeaderMismatch, FieldElementOutOfRange: its share does not open.
        """
        if commit_hash(raw) != logged:
            raise CommitMismatch
        envelope = parse_envelope(raw, self.manifest)
        if envelope.member != member:
            raise BadMemberSignature("It names another member.")
        verify_envelope(envelope, self.keys[member])
        return open_share(envelope, self.manifest, self.guardian, self.key)

    def refusals(self, raws: Sequence[bytes], closed: ClosedSet) -> Iterator[tuple[int, WindvaneError]]:
        """Number and refusal of every member of the closed set whose share does not open."""
        for (member, logged), raw in zip(closed.accepted, raws, strict=True):
            try:
                self.share(raw, member, logged)
            except WindvaneError as refusal:
                yield member, refusal
