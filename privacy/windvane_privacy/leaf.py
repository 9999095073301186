# SPDX-License-Identifier: Apache-2.0
"""Leaves, the signed entries of the public log: their kinds and fields, and which of several counts.

Rules kept here:
* a leaf is canonical JSON of at most 8,192 bytes, signed by whoever says it; it holds hashes and member numbers, never
  counts of events, names of people or models, and times only to the day;
* a known kind has exactly its fields in their exact form; a leaf of an unknown kind is kept, never acted on;
* of every kind the first valid leaf of a round counts, a later one is evidence.

Source: RFC 8785 (canonical JSON), RFC 6962 section 2.1 (leaf hash), docs/protocol.md (all leaves).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from windvane_privacy import canonical
from windvane_privacy.canonical import JsonValue
from windvane_privacy.errors import MalformedInput, MalformedLeaf, SignatureInvalid
from windvane_privacy.identity import KEY_ED25519, SigningKey, key_id, verify

MAX_LEAF_BYTES = 8192
LEAF_LABEL = b"windvane/1/leaf\0"
ABORTED = "aborted"
"""`what` of the coordinator's `incident` leaf that ends a round by hand."""
STOPPED = "stopped"
"""`what` of a member's `incident` leaf: it stopped the round for itself after its draw; `note` is the reason."""
_COMMON = ("type", "v", "round", "key", "sig")
_HASH = re.compile(r"[0-9a-f]{64}")
_SIGNATURE = re.compile(r"[0-9a-f]{128}")
_KIND = re.compile(r"[a-z][a-z0-9-]{0,39}")
_ROUND = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9._-]{0,31})?")
_MAX_WHOLE = 2**32 - 1


def is_hash(value: JsonValue) -> bool:
    """Whether a value is the lower-case hex form of 32 bytes."""
    return isinstance(value, str) and _HASH.fullmatch(value) is not None


def is_day(value: JsonValue) -> bool:
    """Whether a value is a day of the form 2026-07-01, in a year of which windows can be reckoned (2000 to 2999)."""
    try:
        return isinstance(value, str) and date.fromisoformat(value).isoformat() == value and value[0] == "2"
    except ValueError:
        return False


def is_round(value: JsonValue) -> bool:
    """Whether a value can name a round: 1 to 32 of letters, digits, `.`, `_`, `-`, and no leading mark."""
    return isinstance(value, str) and bool(value) and _ROUND.fullmatch(value) is not None


def is_signature(value: JsonValue) -> bool:
    """Whether a value is the lower-case hex form of 64 bytes."""
    return isinstance(value, str) and _SIGNATURE.fullmatch(value) is not None


def _is_whole(value: JsonValue) -> bool:
    return type(value) is int and 0 <= value <= _MAX_WHOLE


def _is_text(value: JsonValue) -> bool:
    return isinstance(value, str) and len(value) <= 1000 and not any(ord(c) < 0x20 for c in value)


def is_round_key(value: JsonValue) -> bool:
    """Whether a value is the lower-case hex form of a public round key, 1,216 bytes."""
    return isinstance(value, str) and re.fullmatch(r"[0-9a-f]{2432}", value) is not None


def _is_nonce_list(value: JsonValue) -> bool:
    return isinstance(value, list) and 0 < len(value) <= 255 and all(v is None or is_hash(v) for v in value)


def _is_file_table(value: JsonValue) -> bool:
    return isinstance(value, dict) and all(_is_text(name) and is_hash(digest) for name, digest in value.items())


def _is_hash_or_table(value: JsonValue) -> bool:
    return is_hash(value) or _is_file_table(value)


LEAF_TYPES: Mapping[str, Mapping[str, Callable[[JsonValue], bool]]] = {
    "roster": {"sha256": is_hash, "version": _is_whole},
    "guardian-ready": {
        "guardian": _is_whole,
        "round_key": is_round_key,
        "round_key_id": is_hash,
        "nonce_commitment": is_hash,
    },
    "round-opened": {"manifest": is_hash},
    "commitment": {"manifest": is_hash, "member": _is_whole, "hash": is_hash, "install": is_hash},
    "accepted": {"member": _is_whole, "hash": is_hash},
    "round-closed": {"set_root": is_hash, "members": _is_whole},
    "nonce": {"guardian": _is_whole, "nonce": is_hash, "set_root": is_hash},
    "lot": {"set_root": is_hash, "nonces": _is_nonce_list, "cohorts_sha256": is_hash},
    "opened": {"guardian": _is_whole, "result": is_hash, "set_root": is_hash},
    "key-destroyed": {"guardian": _is_whole, "round_key_id": is_hash},
    "report-published": {"report": is_hash, "files": _is_hash_or_table},
    "incident": {"what": _is_text, "note": _is_text},
}
"""Known kinds with their fields and the form of each; every leaf also has `day`. `files` is one hash, or a table from
file name to hash. The coordinator signs roster, round-opened, accepted, round-closed, lot, report-published and
incident; a guardian signs guardian-ready, nonce, opened, key-destroyed, and incident for members left out; a member
signs commitment, and incident when it stops a round for itself."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """One entry. `fields`: all but type, v, round, key and sig. `hash`: hex SHA-256(0x00 || raw)."""

    type: str
    round: str
    key_id: str
    fields: Mapping[str, JsonValue]
    sig: str
    raw: bytes
    hash: str


# --- leaves ----------------------------------------------------------------------------------------------------------


def leaf_hash(raw: bytes) -> str:
    """Hex SHA-256(0x00 || leaf)."""
    return hashlib.sha256(b"\0" + raw).hexdigest()


def make_leaf(kind: str, round_id: str, fields: Mapping[str, JsonValue], key: SigningKey) -> bytes:
    """A signed leaf: canonical `{"type", "v": 1, "round", ...fields, "key", "sig"}`.

    `fields` must be those of `LEAF_TYPES[kind]` and `day`. The signature covers the label and the leaf without `sig`.

    Raises:
        MalformedLeaf: an unknown kind, a missing, unknown or malformed field, or more than 8,192 bytes.
    """
    if kind not in LEAF_TYPES or set(fields) & set(_COMMON):
        raise MalformedLeaf
    body = {"type": kind, "v": 1, "round": round_id, **fields, "key": key.key_id}
    signature = key.sign(LEAF_LABEL, canonical.encode(body))
    raw = canonical.encode({**body, "sig": signature.hex()})
    read_leaf(raw)
    return raw


def read_leaf(raw: bytes) -> Leaf:
    """A leaf from its bytes; its signature is not checked here.

    Raises:
        MalformedLeaf: too long, not canonical, or a field is missing, unknown or malformed.
    """
    try:
        value = canonical.decode(raw, max_bytes=MAX_LEAF_BYTES)
    except MalformedInput as error:
        raise MalformedLeaf(error.detail) from None
    if not isinstance(value, dict) or not set(_COMMON) <= set(value):
        raise MalformedLeaf
    kind, round_id, key, sig = value["type"], value["round"], value["key"], value["sig"]
    if not (isinstance(kind, str) and _KIND.fullmatch(kind) and type(value["v"]) is int and value["v"] >= 1):
        raise MalformedLeaf
    if not (isinstance(round_id, str) and _ROUND.fullmatch(round_id) and is_hash(key)):
        raise MalformedLeaf
    if not is_signature(sig):
        raise MalformedLeaf
    fields = {name: inner for name, inner in value.items() if name not in _COMMON}
    if kind in LEAF_TYPES:
        forms = {**LEAF_TYPES[kind], "day": is_day}
        if value["v"] != 1 or set(fields) != set(forms) or not all(forms[n](v) for n, v in fields.items()):
            raise MalformedLeaf
    return Leaf(kind, round_id, key, fields, sig, raw, leaf_hash(raw))


def verify_leaf(leaf: Leaf, public: bytes) -> None:
    """Check that this key signed this leaf.

    Raises:
        SignatureInvalid: the leaf names another key, or the signature does not fit.
    """
    if leaf.key_id != key_id(KEY_ED25519, public):
        raise SignatureInvalid
    body = canonical.decode(leaf.raw, max_bytes=MAX_LEAF_BYTES)
    del body["sig"]
    verify(public, bytes.fromhex(leaf.sig), LEAF_LABEL, canonical.encode(body))


def signed_by(leaf: Leaf, public: bytes) -> bool:
    """Whether this key signed this leaf."""
    try:
        verify_leaf(leaf, public)
    except SignatureInvalid:
        return False
    return True


# --- which leaf counts -----------------------------------------------------------------------------------------------


def first_of(
    leaves: Sequence[Leaf], kind: str, round_id: str, *, public: bytes, guardian: int | None = None
) -> Leaf | None:
    """The first leaf of this kind and round that this key signed; with `guardian`, leaves of others are passed over."""
    for leaf in leaves:
        if leaf.type != kind or leaf.round != round_id:
            continue
        if guardian is not None and leaf.fields.get("guardian") != guardian:
            continue
        if signed_by(leaf, public):
            return leaf
    return None


def first_commitment(leaves: Sequence[Leaf], round_id: str, member: int, public: bytes) -> Leaf | None:
    """The first commitment of this member and round with the member's valid signature."""
    return next((leaf for leaf in _commitments(leaves, round_id, member) if signed_by(leaf, public)), None)


def forged_commitments(leaves: Sequence[Leaf], round_id: str, member: int, public: bytes) -> list[Leaf]:
    """Commitments in this member's name that its key did not sign: evidence, and nothing else."""
    return [leaf for leaf in _commitments(leaves, round_id, member) if not signed_by(leaf, public)]


def is_aborted(leaves: Sequence[Leaf], round_id: str, public: bytes) -> bool:
    """Whether the coordinator, whose key this is, has stopped the round by hand."""
    ours = (leaf for leaf in leaves if leaf.type == "incident" and leaf.round == round_id)
    return any(leaf.fields["what"] == ABORTED and signed_by(leaf, public) for leaf in ours)


def _commitments(leaves: Sequence[Leaf], round_id: str, member: int) -> list[Leaf]:
    return [x for x in leaves if x.type == "commitment" and x.round == round_id and x.fields["member"] == member]
