# SPDX-License-Identifier: Apache-2.0
"""From the guardians' signed results to the noisy sums of the cohorts.

Rules kept here:
* a result is bound to round, manifest and closed set, and signed by the guardian it names;
* any t guardians give the sums; every further one is checked against them, and a contradiction publishes nothing;
* results for another set, or with other cohort sizes than the lot gives, are refused before anything is opened;
* every sum lies where so many members can have sent it: |v| <= m (12 C + B);
* nothing of a single member is opened here: a result holds sums over cohorts only.

Source: Shamir, "How to share a secret" (1979); docs/protocol.md (results).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windvane_privacy import canonical, field, shares
from windvane_privacy.canonical import JsonValue
from windvane_privacy.errors import (
    MalformedInput,
    NotReady,
    ResultSignatureInvalid,
    SignatureInvalid,
    SpareShareMismatch,
    TallyError,
    TallyOutOfRange,
)
from windvane_privacy.identity import KEY_ED25519, SigningKey, key_id, verify
from windvane_privacy.leaf import is_hash, is_round, is_signature
from windvane_privacy.manifest import D_SCALE, FIELD_PRIME, Manifest
from windvane_privacy.sums import CohortSums

SCHEMA = "windvane/result/v1"
RESULT_LABEL = b"windvane/1/result\0"
ELEMENT_BYTES = 8
_MAX_BYTES = 1 << 28
_FIELDS = {"schema", "round", "manifest", "set_root", "guardian", "cohorts", "key", "sig"}


@dataclass(frozen=True, slots=True)
class GuardianResult:
    """One guardian's sums of shares. `counts[g]`: members in cohort g; `shares[g]`: L field elements (uint64)."""

    round: str
    manifest: str
    set_root: str
    guardian: int
    counts: tuple[int, ...]
    shares: tuple[NDArray[np.uint64], ...]
    raw: bytes

    @property
    def sha256(self) -> str:
        """Hex SHA-256 of the signed bytes, as the `opened` leaf names it."""
        return canonical.sha256_hex(self.raw)


def max_result_bytes(manifest: Manifest) -> int:
    """A bound on the length of a result under this manifest, for whoever takes it in."""
    return 4096 + manifest.cohorts.G * (2 * ELEMENT_BYTES * manifest.length + 128)


def make_result(
    manifest: Manifest,
    set_root: str,
    guardian: int,
    counts: Sequence[int],
    sums: Sequence[NDArray[np.uint64]],
    key: SigningKey,
) -> bytes:
    """The guardian's signed result: canonical JSON, each cohort's share as hex of 8-byte little-endian elements.

    `sums[g]`: L field elements, the sum of this guardian's shares over cohort g, without the blind element.

    Raises:
        TallyError: cohorts or lengths are not those of the manifest.
    """
    if not len(counts) == len(sums) == manifest.cohorts.G or any(row.shape != (manifest.length,) for row in sums):
        raise TallyError("The result does not have the manifest's cohorts and length.")
    body: dict[str, JsonValue] = {
        "schema": SCHEMA,
        "round": manifest.round,
        "manifest": manifest.sha256,
        "set_root": set_root,
        "guardian": guardian,
        "cohorts": [
            {"cohort": g, "count": count, "share": row.astype("<u8").tobytes().hex()}
            for g, (count, row) in enumerate(zip(counts, sums, strict=True))
        ],
        "key": key.key_id,
    }
    return canonical.encode({**body, "sig": key.sign(RESULT_LABEL, canonical.encode(body)).hex()})


def read_result(raw: bytes, identity: bytes) -> GuardianResult:
    """A result that the guardian with this identity key signed.

    Raises:
        MalformedInput: not of the agreed form, or an element is not one of the field.
        ResultSignatureInvalid: another key signed it, or it was altered.
    """
    value = canonical.decode(raw, max_bytes=_MAX_BYTES)
    if not isinstance(value, dict) or set(value) != _FIELDS or value["schema"] != SCHEMA:
        raise MalformedInput
    sig = value.pop("sig")
    if not is_signature(sig) or value["key"] != key_id(KEY_ED25519, identity):
        raise ResultSignatureInvalid
    try:
        verify(identity, bytes.fromhex(sig), RESULT_LABEL, canonical.encode(value))
    except SignatureInvalid:
        raise ResultSignatureInvalid from None
    named = is_round(value["round"]) and is_hash(value["manifest"]) and is_hash(value["set_root"])
    if not (named and type(value["guardian"]) is int and isinstance(value["cohorts"], list)):
        raise MalformedInput
    counts, rows = [], []
    for g, cohort in enumerate(value["cohorts"]):
        if not isinstance(cohort, dict) or set(cohort) != {"cohort", "count", "share"} or cohort["cohort"] != g:
            raise MalformedInput
        # `true` equals 1 here, and would be a second spelling of it.
        if type(cohort["cohort"]) is not int or type(cohort["count"]) is not int or cohort["count"] < 1:
            raise MalformedInput
        counts.append(cohort["count"])
        rows.append(_elements(cohort["share"]))
    return GuardianResult(
        value["round"], value["manifest"], value["set_root"], value["guardian"], tuple(counts), tuple(rows), raw
    )


def tally(
    results: Mapping[int, GuardianResult], manifest: Manifest, cohort_members: tuple[tuple[int, ...], ...]
) -> tuple[CohortSums, bool]:
    """The noisy sums of every cohort, and whether a further guardian's shares agreed with the t that gave them.

    `results`: by guardian index, each already verified by `read_result`. `cohort_members`: the lot.

    Raises:
        NotReady: fewer than t results.
        TallyError: a result is for another round, manifest, set, guardian or lot.
        SpareShareMismatch: a further result contradicts the others.
        TallyOutOfRange: a sum is outside what this many members can have sent.
    """
    for index, result in results.items():
        _check_fits(index, result, manifest, cohort_members)
    if len({result.set_root for result in results.values()}) > 1:
        raise TallyError("The guardians opened different sets.")
    if len(results) < manifest.t:
        raise NotReady("Fewer guardians than needed have opened the round.")
    limit = D_SCALE * manifest.bounds.C + manifest.noise_clamp
    rows: list[tuple[int, ...]] = []
    for g, members in enumerate(cohort_members):
        by_guardian = {index: result.shares[g] for index, result in sorted(results.items())}
        if len(by_guardian) > manifest.t and not shares.spare_agrees(by_guardian, manifest.t):
            raise SpareShareMismatch
        row = tuple(field.decode_signed(shares.combine(by_guardian, manifest.t)))
        if any(abs(entry) > len(members) * limit for entry in row):
            raise TallyOutOfRange
        rows.append(row)
    sizes = tuple(len(members) for members in cohort_members)
    return CohortSums(sizes, tuple(rows)), len(results) > manifest.t


def _check_fits(
    index: int, result: GuardianResult, manifest: Manifest, cohort_members: tuple[tuple[int, ...], ...]
) -> None:
    if result.guardian != index or not 1 <= index <= manifest.n:
        raise TallyError("A result names another guardian.")
    if (result.round, result.manifest) != (manifest.round, manifest.sha256):
        raise TallyError("A result belongs to another round or manifest.")
    if result.counts != tuple(len(members) for members in cohort_members):
        raise TallyError("A result does not have the cohorts of the lot.")
    if any(row.shape != (manifest.length,) for row in result.shares):
        raise TallyError("A result does not have the length of the manifest.")


def _elements(text: JsonValue) -> NDArray[np.uint64]:
    try:
        raw = bytes.fromhex(text) if isinstance(text, str) else b""
    except ValueError:
        raise MalformedInput from None
    # Python's reader of hex takes spaces and capitals, so the one canonical spelling is compared.
    if not raw or len(raw) % ELEMENT_BYTES or raw.hex() != text:
        raise MalformedInput
    row = np.frombuffer(raw, dtype="<u8").astype(np.uint64)
    if bool(np.any(row >= np.uint64(FIELD_PRIME))):
        raise MalformedInput("an element is not one of the field")
    return row
