# SPDX-License-Identifier: Apache-2.0
"""The envelope: what one member sends for a round, one sealed share for each guardian under one signature.

Rules kept here:
* every member of a manifest sends the same number of bytes, whatever its votes; the length follows from the manifest
  and is checked before anything else;
* one signature covers all shares: none can be dropped, swapped or mixed with those of another submission;
* the guardians' round keys in the envelope are those of the manifest, else it is refused before it is counted;
* each sealed share repeats its header inside; a difference is refused after opening;
* unknown versions, suites and flag bits are refused, never ignored.

    "WVE1" 4 | member u32 | submission id 16 | manifest 32 | member key id 32 | n u8 | t u8 | suite u8 = 1 |
    flags u8 = 0
    n times: guardian index u8 | guardian round key id 32 | length u32 | sealed share
    Ed25519 signature 64

    share: "WVS1" 4 | member u32 | guardian u8 | t u8 | n u8 | stage u8 | submission id 16 | manifest 32 | L u32 |
    extra u32 | (L + extra) elements of 8 bytes, little-endian

Other integers are big-endian. Source: docs/protocol.md.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from windvane_privacy import field, sealing
from windvane_privacy.errors import (
    BadMemberSignature,
    BoundBroken,
    MalformedEnvelope,
    SetMismatch,
    ShareHeaderMismatch,
    SignatureInvalid,
    SoftwareTooOld,
    WrongGuardianKey,
)
from windvane_privacy.field import Elements
from windvane_privacy.identity import KEY_ED25519, SIGNATURE_BYTES, SigningKey, key_id, verify
from windvane_privacy.manifest import GuardianEntry, Manifest
from windvane_privacy.sealing import RoundKey

MAGIC, SHARE_MAGIC = b"WVE1", b"WVS1"
SUITE = 1
ENVELOPE_LABEL, COMMIT_LABEL = b"windvane/1/envelope\0", b"windvane/1/commit\0"
SUBMISSION_ID_BYTES = 16
EXTRA = 1
"""Elements after the vector in stage one: the blind element."""
MAX_MEMBER = 2**32 - 1
_HEAD = struct.Struct(">4sI16s32s32sBBBB")
_PART = struct.Struct(">B32sI")
_SHARE_HEAD = struct.Struct(">4sIBBBB16s32sII")


@dataclass(frozen=True, slots=True)
class Part:
    """One guardian's sealed share; `guardian` counts from 1."""

    guardian: int
    round_key_id: str
    sealed: bytes


@dataclass(frozen=True, slots=True)
class Envelope:
    """A parsed envelope. Its signature is not checked yet: see `verify_envelope`."""

    member: int
    submission_id: bytes
    manifest_sha256: str
    member_key_id: str
    parts: tuple[Part, ...]
    raw: bytes

    def __repr__(self) -> str:
        return f"Envelope({commit_hash(self.raw)[:16]})"


@dataclass(frozen=True, slots=True)
class _Frame:
    """What a manifest fixes about every envelope; computed once per manifest, not once per member."""

    manifest: bytes
    manifest_sha256: str
    elements: int
    part_bytes: int
    total: int


def envelope_length(manifest: Manifest) -> int:
    """Bytes of every envelope of this manifest.

    Raises:
        SoftwareTooOld: the manifest demands range proofs, which this version does not make.
    """
    return _frame(manifest).total


def build_envelope(
    manifest: Manifest, member: int, key: SigningKey, shares: Sequence[Elements], submission_id: bytes
) -> bytes:
    """The sealed, signed bytes. `member`: number in the roster; `shares`: `shares.split` of the noisy vector.

    Raises:
        BoundBroken: other shares than the manifest's n vectors of L + 1 elements, a member number that is no u32, or a
            submission id that is not 16 bytes.
        FieldElementOutOfRange: a share holds no field element.
        KeyRefused: a guardian's round key cannot be sealed to.
        SoftwareTooOld: see `envelope_length`.
    """
    frame = _frame(manifest)
    if len(shares) != manifest.n or any(share.shape != (frame.elements,) for share in shares):
        raise BoundBroken("The shares do not fit the manifest.")
    if not 0 <= member <= MAX_MEMBER or len(submission_id) != SUBMISSION_ID_BYTES:
        raise BoundBroken("The member number or the submission id does not fit the envelope.")
    pieces = [
        _HEAD.pack(
            MAGIC, member, submission_id, frame.manifest, bytes.fromhex(key.key_id), manifest.n, manifest.t, SUITE, 0
        )
    ]
    for entry, share in zip(manifest.guardians, shares, strict=True):
        plaintext = _share_head(manifest, frame, member, submission_id, entry.index)
        plaintext += field.checked(share).astype("<u8").tobytes()
        info = _info(manifest, frame, member, submission_id, entry, key.key_id)
        sealed = sealing.seal(bytes.fromhex(entry.round_key), info, plaintext)
        pieces += [_PART.pack(entry.index, bytes.fromhex(entry.round_key_id), len(sealed)), sealed]
    body = b"".join(pieces)
    return body + key.sign(ENVELOPE_LABEL, body)


def parse_envelope(raw: bytes, manifest: Manifest) -> Envelope:
    """The fields of an envelope that has exactly the manifest's layout.

    Raises:
        MalformedEnvelope: any other length, version, suite, flag, manifest, guardian or round key.
        SoftwareTooOld: see `envelope_length`; depends on the manifest only.
    """
    frame = _frame(manifest)
    if len(raw) != frame.total:
        raise MalformedEnvelope("Its length is not the one that the manifest fixes.")
    magic, member, submission_id, agreed, member_key_id, n, t, suite, flags = _HEAD.unpack_from(raw)
    if magic != MAGIC or suite != SUITE or flags != 0:
        raise MalformedEnvelope("Its version, suite or flags are unknown.")
    if agreed != frame.manifest or (n, t) != (manifest.n, manifest.t):
        raise MalformedEnvelope("It was made for another manifest.")
    parts, offset = [], _HEAD.size
    for entry in manifest.guardians:
        index, round_key_id, length = _PART.unpack_from(raw, offset)
        if (index, round_key_id.hex(), length) != (entry.index, entry.round_key_id, frame.part_bytes):
            raise MalformedEnvelope("A share is not for the guardian, key and length of the manifest.")
        start = offset + _PART.size
        offset = start + length
        parts.append(Part(index, entry.round_key_id, raw[start:offset]))
    return Envelope(member, submission_id, frame.manifest_sha256, member_key_id.hex(), tuple(parts), raw)


def verify_envelope(envelope: Envelope, public: bytes) -> None:
    """Return if the envelope is signed by this member key (32 bytes), the one it names.

    Raises:
        BadMemberSignature: it is not.
    """
    if key_id(KEY_ED25519, public) != envelope.member_key_id:
        raise BadMemberSignature
    body, signature = envelope.raw[:-SIGNATURE_BYTES], envelope.raw[-SIGNATURE_BYTES:]
    try:
        verify(public, signature, ENVELOPE_LABEL, body)
    except SignatureInvalid:
        raise BadMemberSignature from None


def commit_hash(raw: bytes) -> str:
    """Hex hash that the member commits to. It needs no salt: the envelope holds fresh encapsulations."""
    return hashlib.sha256(COMMIT_LABEL + raw).hexdigest()


def open_share(envelope: Envelope, manifest: Manifest, guardian: int, key: RoundKey) -> Elements:
    """This guardian's share: L + 1 elements, the last one blind. `guardian` counts from 1.

    Raises:
        WrongGuardianKey: the key is not the one that the manifest names for this guardian.
        ShareWillNotOpen: another manifest, member, guardian or key than it was sealed for, or changed bytes.
        ShareHeaderMismatch: the header inside differs from the envelope.
        FieldElementOutOfRange: a number of p or more inside.
    """
    frame = _frame(manifest)
    if not 1 <= guardian <= manifest.n:
        raise WrongGuardianKey("The manifest has no guardian of this number.")
    entry, part = manifest.guardians[guardian - 1], envelope.parts[guardian - 1]
    if not key.key_id == entry.round_key_id == part.round_key_id:
        raise WrongGuardianKey
    info = _info(manifest, frame, envelope.member, envelope.submission_id, entry, envelope.member_key_id)
    plaintext = sealing.unseal(key, info, part.sealed)
    header = _share_head(manifest, frame, envelope.member, envelope.submission_id, guardian)
    if plaintext[: len(header)] != header or len(plaintext) != len(header) + 8 * frame.elements:
        raise ShareHeaderMismatch
    return field.checked(np.frombuffer(plaintext, dtype="<u8", offset=len(header)).astype(np.uint64))


def split_envelopes(answer: bytes, manifest: Manifest, members: int) -> list[bytes]:
    """The envelopes of an answer to the `envelopes` parcel: for each accepted member in order, length u32 and bytes.

    Raises:
        MalformedEnvelope: an envelope of another length than the manifest fixes.
        SetMismatch: fewer or more envelopes than accepted members.
    """
    length = envelope_length(manifest)
    found, offset = [], 0
    while offset < len(answer):
        if int.from_bytes(answer[offset : offset + 4], "big") != length or offset + 4 + length > len(answer):
            raise MalformedEnvelope
        found.append(answer[offset + 4 : offset + 4 + length])
        offset += 4 + length
    if len(found) != members:
        raise SetMismatch("There are not as many envelopes as accepted members.")
    return found


def join_envelopes(envelopes: Iterable[bytes]) -> bytes:
    """The answer to the `envelopes` parcel: what `split_envelopes` reads."""
    return b"".join(len(raw).to_bytes(4, "big") + raw for raw in envelopes)


@lru_cache(maxsize=8)
def _frame(manifest: Manifest) -> _Frame:
    if manifest.stage != "1":
        raise SoftwareTooOld("The round demands range proofs.")
    elements = manifest.length + EXTRA
    part_bytes = _SHARE_HEAD.size + 8 * elements + sealing.OVERHEAD
    total = _HEAD.size + manifest.n * (_PART.size + part_bytes) + SIGNATURE_BYTES
    digest = manifest.sha256
    return _Frame(bytes.fromhex(digest), digest, elements, part_bytes, total)


def _share_head(manifest: Manifest, frame: _Frame, member: int, submission_id: bytes, guardian: int) -> bytes:
    stage = int(manifest.stage)
    return _SHARE_HEAD.pack(
        SHARE_MAGIC, member, guardian, manifest.t, manifest.n, stage, submission_id, frame.manifest,
        frame.elements - EXTRA, EXTRA,
    )  # fmt: skip


def _info(
    manifest: Manifest, frame: _Frame, member: int, submission_id: bytes, entry: GuardianEntry, member_key_id: str
) -> bytes:
    return sealing.share_info(
        frame.manifest_sha256, submission_id, member, entry.index, manifest.t, manifest.n, entry.round_key_id,
        member_key_id, manifest.log_origin,
    )  # fmt: skip
