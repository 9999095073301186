# SPDX-License-Identifier: Apache-2.0
"""Leaves are canonical, signed, and of exactly the form of their kind."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifests import coordinator_key, guardian_round_key, member_key
from windvane_privacy import canonical
from windvane_privacy.errors import MalformedInput, MalformedLeaf, SignatureInvalid
from windvane_privacy.log import (
    LEAF_TYPES,
    MAX_LEAF_BYTES,
    Leaf,
    first_commitment,
    first_of,
    forged_commitments,
    leaf_hash,
    make_leaf,
    read_leaf,
    verify_leaf,
)

H = "ab" * 32
DAY = "2026-10-02"
FIELDS: dict[str, dict[str, Any]] = {
    "roster": {"sha256": H, "version": 1},
    "guardian-ready": {
        "guardian": 1,
        "round_key": guardian_round_key(1).public.hex(),
        "round_key_id": H,
        "nonce_commitment": H,
    },
    "round-opened": {"manifest": H},
    "commitment": {"manifest": H, "member": 7, "hash": H, "install": H},
    "accepted": {"member": 7, "hash": H},
    "round-closed": {"set_root": H, "members": 40},
    "nonce": {"guardian": 2, "nonce": H, "set_root": H},
    "lot": {"set_root": H, "nonces": [H, None, H], "cohorts_sha256": H},
    "opened": {"guardian": 1, "result": H, "set_root": H},
    "key-destroyed": {"guardian": 3, "round_key_id": H},
    "report-published": {"report": H, "files": {"index.html": H}},
    "incident": {"what": "aborted", "note": "by the operator"},
}


def leaf(kind: str = "commitment", key: int = 7, **changes: Any) -> bytes:
    return make_leaf(kind, "2026-Q3", {**FIELDS[kind], "day": DAY, **changes}, member_key(key))


def test_every_known_kind_is_tried_here() -> None:
    assert set(FIELDS) == set(LEAF_TYPES)


@pytest.mark.parametrize("kind", FIELDS)
def test_a_leaf_reads_back_as_it_was_made(kind: str) -> None:
    raw = leaf(kind)
    found = read_leaf(raw)
    assert (found.type, found.round, found.fields) == (kind, "2026-Q3", {**FIELDS[kind], "day": DAY})
    assert found.key_id == member_key(7).key_id
    assert found.hash == leaf_hash(raw)
    verify_leaf(found, member_key(7).public)
    with pytest.raises(SignatureInvalid):
        verify_leaf(found, member_key(8).public)


@pytest.mark.parametrize("kind", FIELDS)
def test_a_missing_unknown_or_malformed_field_is_refused(kind: str) -> None:
    for name, value in FIELDS[kind].items():
        rest = {k: v for k, v in FIELDS[kind].items() if k != name}
        with pytest.raises(MalformedLeaf):
            make_leaf(kind, "2026-Q3", {**rest, "day": DAY}, member_key(7))
        wrong = -1 if type(value) is int else "\x00"
        with pytest.raises(MalformedLeaf):
            make_leaf(kind, "2026-Q3", {**rest, name: wrong, "day": DAY}, member_key(7))
    with pytest.raises(MalformedLeaf):
        leaf(kind, count=3)
    with pytest.raises(MalformedLeaf):
        leaf(kind, day="2026-10-2")


@pytest.mark.parametrize("changes", [{"member": True}, {"member": 2**32}, {"hash": "AB" * 32}, {"hash": H + "\n"}])
def test_forms_are_exact(changes: dict[str, Any]) -> None:
    with pytest.raises(MalformedLeaf):
        leaf(**changes)


def test_every_signed_field_is_covered_by_the_signature() -> None:
    value = canonical.decode(leaf())
    for name, wrong in {"member": 8, "hash": "cd" * 32, "round": "2026-Q4", "day": "2026-10-03"}.items():
        changed = read_leaf(canonical.encode({**value, name: wrong}))
        with pytest.raises(SignatureInvalid):
            verify_leaf(changed, member_key(7).public)


def test_a_leaf_of_an_unknown_kind_is_kept() -> None:
    value = {**canonical.decode(leaf()), "type": "key-added", "v": 3, "anything": [1, 2]}
    found = read_leaf(canonical.encode(value))
    assert found.type == "key-added"
    assert found.fields["anything"] == [1, 2]


def test_a_newer_form_of_a_known_kind_is_refused_not_guessed() -> None:
    with pytest.raises(MalformedLeaf):
        read_leaf(canonical.encode({**canonical.decode(leaf()), "v": 2}))


def test_a_leaf_has_at_most_8192_bytes() -> None:
    files = {f"page-{i}.html": H for i in range(80)}
    length = len(leaf("report-published", files=files))
    assert length <= MAX_LEAF_BYTES
    with pytest.raises(MalformedLeaf):
        leaf("report-published", files={f"page-{i}.html": H for i in range(110)})


@given(st.binary(max_size=400))
def test_garbage_leaks_only_malformed_leaf(raw: bytes) -> None:
    with pytest.raises(MalformedLeaf):
        read_leaf(raw)


VALID = leaf()


@given(st.integers(0, len(VALID) - 1), st.integers(0, 255))
def test_one_changed_byte_never_passes_for_the_same_leaf(place: int, value: int) -> None:
    raw = VALID[:place] + bytes([value]) + VALID[place + 1 :]
    if raw == VALID:
        return
    with pytest.raises((MalformedInput, SignatureInvalid)):
        verify_leaf(read_leaf(raw), member_key(7).public)


def leaves(*raws: bytes) -> list[Leaf]:
    return [read_leaf(raw) for raw in raws]


def test_the_first_commitment_with_the_members_own_signature_counts() -> None:
    forged = leaf(key=8, hash="00" * 32)
    first, second = leaf(hash="11" * 32), leaf(hash="22" * 32)
    other_round = make_leaf("commitment", "2026-Q2", {**FIELDS["commitment"], "day": DAY}, member_key(7))
    other_member = leaf(key=8, member=8)
    listed = leaves(other_round, forged, other_member, first, second)
    found = first_commitment(listed, "2026-Q3", 7, member_key(7).public)
    assert found is not None
    assert found.raw == first
    assert [x.raw for x in forged_commitments(listed, "2026-Q3", 7, member_key(7).public)] == [forged]


def test_a_forged_commitment_alone_is_no_commitment() -> None:
    assert first_commitment(leaves(leaf(key=8)), "2026-Q3", 7, member_key(7).public) is None


def test_first_of_passes_over_what_the_key_did_not_sign() -> None:
    key = coordinator_key()
    forged = leaf("round-closed", members=1)
    own = make_leaf("round-closed", "2026-Q3", {**FIELDS["round-closed"], "day": DAY}, key)
    later = make_leaf("round-closed", "2026-Q3", {**FIELDS["round-closed"], "members": 2, "day": DAY}, key)
    listed = leaves(forged, own, later)
    found = first_of(listed, "round-closed", "2026-Q3", public=key.public)
    assert found is not None
    assert found.raw == own
    assert first_of(listed, "lot", "2026-Q3", public=key.public) is None
    assert first_of(leaves(leaf("nonce")), "nonce", "2026-Q3", public=key.public, guardian=1) is None
