# SPDX-License-Identifier: Apache-2.0
"""A scan shows every leaf, in order, unchanged, up to a checkpoint with a quorum; receipts hold the log to its word."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from log_witnesses import POLICY, WITNESSES, answer, note, receipt
from manifests import LOG_ORIGIN, coordinator_key, derived
from windvane_privacy import log
from windvane_privacy.errors import (
    CheckpointTooOld,
    ClockImplausible,
    InconsistentCheckpoint,
    LogIncomplete,
    MalformedInput,
    QuorumMissing,
    ReceiptRefused,
)
from windvane_privacy.notes import Cosigner
from windvane_privacy.proofs import LogProof, encode_log_proof, parse_log_proof

KEY = coordinator_key()
DAY = "2026-10-02"
NOW = datetime(2026, 10, 2, 9, tzinfo=UTC)
SECOND = int(NOW.timestamp())
LEAVES = [log.make_leaf("accepted", "2026-Q3", {"member": n, "hash": "ab" * 32, "day": DAY}, KEY) for n in range(1, 9)]
STRANGER = Cosigner.from_raw(LOG_ORIGIN, derived("somebody else's log"))


def under(leaves: list[bytes], shown: list[bytes]) -> bytes:
    """The checkpoint of some leaves above other ones."""
    return log.encode_leaves(note(leaves, NOW).encode(), shown)


def look(raw: bytes, *, now: int = SECOND, seen: log.Head | None = None) -> log.Scan:
    return log.scan(raw, POLICY, now=now, seen=seen)


def test_the_root_is_the_one_of_rfc_6962() -> None:
    def node(left: bytes, right: bytes) -> bytes:
        return hashlib.sha256(b"\1" + left + right).digest()

    level = [hashlib.sha256(b"\0" + leaf).digest() for leaf in LEAVES]
    while len(level) > 1:
        level = [node(left, right) for left, right in zip(level[::2], level[1::2], strict=True)]
    assert look(answer(LEAVES, NOW)).head.checkpoint.root == level[0]


@pytest.mark.parametrize("size", [0, 1, 5, 8])
def test_a_scan_gives_every_leaf(size: int) -> None:
    found = look(answer(LEAVES[:size], NOW))
    assert [leaf.raw for leaf in found.leaves] == LEAVES[:size]
    assert (found.head.size, found.head.day) == (size, DAY)


def test_a_dropped_reordered_edited_or_added_leaf_is_refused() -> None:
    edited = log.make_leaf("accepted", "2026-Q3", {"member": 3, "hash": "cd" * 32, "day": DAY}, KEY)
    with pytest.raises(LogIncomplete):
        look(under(LEAVES, LEAVES[:2] + LEAVES[3:]))
    with pytest.raises(LogIncomplete):
        look(under(LEAVES, [*LEAVES, edited]))
    with pytest.raises(InconsistentCheckpoint):
        look(under(LEAVES, [LEAVES[1], LEAVES[0], *LEAVES[2:]]))
    with pytest.raises(InconsistentCheckpoint):
        look(under(LEAVES, [*LEAVES[:2], edited, *LEAVES[3:]]))


@given(st.data())
def test_no_other_list_of_leaves_fits_a_checkpoint(data: st.DataObject) -> None:
    other = data.draw(st.lists(st.sampled_from(LEAVES), max_size=10))
    if other == LEAVES:
        return
    with pytest.raises((LogIncomplete, InconsistentCheckpoint)):
        look(under(LEAVES, other))


def test_a_log_that_forgets_or_rewrites_what_was_seen_is_refused() -> None:
    seen = look(answer(LEAVES[:5], NOW)).head
    assert look(answer(LEAVES, NOW), seen=seen).head.size == 8
    assert look(answer(LEAVES[:5], NOW), seen=seen).head.size == 5
    with pytest.raises(InconsistentCheckpoint):
        look(answer(LEAVES[:4], NOW), seen=seen)
    with pytest.raises(InconsistentCheckpoint):
        look(answer([*LEAVES[:4], *LEAVES[5:]], NOW), seen=seen)


def test_a_checkpoint_without_a_quorum_or_of_another_log_is_refused() -> None:
    with pytest.raises(QuorumMissing):
        look(answer(LEAVES, NOW, witnesses=WITNESSES[:1]))
    with pytest.raises(InconsistentCheckpoint):
        look(answer(LEAVES, NOW, key=STRANGER))
    with pytest.raises(InconsistentCheckpoint):
        look(answer(LEAVES, NOW, key=Cosigner.from_raw("another.example/log", derived("log key"))))


def test_an_old_checkpoint_is_refused_and_a_clock_behind_the_witnesses_is_named() -> None:
    aged = answer(LEAVES, NOW)
    look(aged, now=SECOND + POLICY.max_age)
    with pytest.raises(CheckpointTooOld):
        look(aged, now=SECOND + POLICY.max_age + 1)
    with pytest.raises(ClockImplausible):
        look(aged, now=SECOND - 2 * 24 * 3600)


def test_a_checkpoint_that_was_kept_is_never_too_old() -> None:
    raw = note(LEAVES, NOW - timedelta(days=400)).encode()
    assert log.read_head(raw, POLICY).size == 8
    with pytest.raises(CheckpointTooOld):
        log.read_head(raw, POLICY, now=SECOND)


@given(st.binary(max_size=300))
def test_garbage_leaks_only_malformed_input(raw: bytes) -> None:
    for text in (raw, raw + b"\n", answer(LEAVES, NOW)[:200] + raw + b"\n"):
        with pytest.raises((MalformedInput, LogIncomplete)):
            look(text)


# --- receipts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [4, 5, 8])
def test_a_receipt_fits_its_leaf_and_the_log(size: int) -> None:
    found = log.verify_receipt(receipt(LEAVES, 3, NOW, size), LEAVES[3], POLICY)
    assert (found.index, found.head.size) == (3, size)
    look(answer(LEAVES, NOW)).check_receipt(found)


def test_a_receipt_of_another_leaf_log_or_signer_is_refused() -> None:
    with pytest.raises(ReceiptRefused):
        log.verify_receipt(receipt(LEAVES, 3, NOW, 8), LEAVES[4], POLICY)
    with pytest.raises(ReceiptRefused):
        log.verify_receipt(receipt(LEAVES, 3, NOW, key=STRANGER), LEAVES[3], POLICY)
    with pytest.raises(ReceiptRefused):
        log.verify_receipt(receipt(LEAVES, 3, NOW, witnesses=WITNESSES[1:2]), LEAVES[3], POLICY)


def test_a_receipt_with_another_place_or_path_is_refused() -> None:
    good = parse_log_proof(receipt(LEAVES, 3, NOW, 8))
    others = [
        LogProof(2, good.path, good.note),
        LogProof(8, good.path, good.note),
        LogProof(3, good.path[:-1], good.note),
        LogProof(3, (*good.path, good.path[0]), good.note),
        LogProof(3, good.path[::-1], good.note),
    ]
    for other in others:
        with pytest.raises(ReceiptRefused):
            log.verify_receipt(encode_log_proof(other), LEAVES[3], POLICY)


@given(st.integers(0, len(receipt(LEAVES, 3, NOW, 8)) - 1), st.integers(0, 255))
def test_a_changed_receipt_is_refused_or_proves_the_same(place: int, value: int) -> None:
    """One cosignature of three may be damaged: two are a quorum, and what they prove is the same."""
    raw = receipt(LEAVES, 3, NOW, 8)
    changed = raw[:place] + bytes([value]) + raw[place + 1 :]
    try:
        found = log.verify_receipt(changed, LEAVES[3], POLICY)
    except ReceiptRefused:
        return
    good = log.verify_receipt(raw, LEAVES[3], POLICY)
    assert (found.index, found.leaf_hash, found.head.checkpoint) == (3, good.leaf_hash, good.head.checkpoint)


def test_extra_data_of_a_receipt_is_passed_over() -> None:
    raw = receipt(LEAVES, 3, NOW, 8)
    head, rest = raw.split(b"\n", 1)
    assert log.verify_receipt(head + b"\nextra AAAA\n" + rest, LEAVES[3], POLICY).index == 3
    with pytest.raises(ReceiptRefused):
        log.verify_receipt(head + b"\nextra AAAA\nextra AAAA\n" + rest, LEAVES[3], POLICY)


@pytest.mark.parametrize("size", range(1, 9))
def test_a_proof_reads_back(size: int) -> None:
    for index in range(size):
        raw = receipt(LEAVES, index, NOW, size)
        assert encode_log_proof(parse_log_proof(raw)) == raw


def test_every_truncation_of_a_proof_is_malformed() -> None:
    raw = receipt(LEAVES, 3, NOW, 8)
    whole = parse_log_proof(raw)
    for end in range(len(raw)):
        try:
            cut = parse_log_proof(raw[:end])
        except MalformedInput:
            continue
        # What ends with a whole signature line is a proof with fewer cosignatures.
        assert (cut.index, cut.path, cut.note.checkpoint) == (3, whole.path, whole.note.checkpoint)
        assert len(cut.note.signatures) < len(whole.note.signatures)


@given(st.binary(max_size=400))
def test_arbitrary_bytes_are_no_proof(raw: bytes) -> None:
    for text in (raw, b"c2sp.org/tlog-proof@v1\n" + raw, b"c2sp.org/tlog-proof@v1\nindex 3\n" + raw):
        with pytest.raises(MalformedInput):
            parse_log_proof(text)


def test_a_log_that_breaks_its_receipt_is_refused() -> None:
    found = log.verify_receipt(receipt(LEAVES, 3, NOW), LEAVES[3], POLICY)
    for other in (LEAVES[:3], [*LEAVES[:3], *LEAVES[4:]]):
        with pytest.raises(ReceiptRefused):
            look(answer(other, NOW)).check_receipt(found)
    swapped = [LEAVES[0], LEAVES[2], LEAVES[1], *LEAVES[3:]]
    with pytest.raises(InconsistentCheckpoint):
        look(answer(swapped, NOW)).check_receipt(found)


def test_a_receipt_is_made_by_verification_only() -> None:
    good = log.verify_receipt(receipt(LEAVES, 3, NOW), LEAVES[3], POLICY)
    with pytest.raises(ReceiptRefused):
        log.Receipt(3, good.leaf_hash, good.head, good.raw, None)
