# SPDX-License-Identifier: Apache-2.0
"""The chain shows every leaf, in order, unchanged, up to a signed head; receipts hold it to what it promised."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifests import LOG_ORIGIN, coordinator_key, member_key
from windvane_privacy import log
from windvane_privacy.errors import InconsistentCheckpoint, LogIncomplete, MalformedInput, ReceiptRefused

KEY = coordinator_key()
DAY = "2026-10-02"
LEAVES = [log.make_leaf("accepted", "2026-Q3", {"member": n, "hash": "ab" * 32, "day": DAY}, KEY) for n in range(1, 9)]


def heads(leaves: list[bytes]) -> list[str]:
    found = [log.first_head(LOG_ORIGIN)]
    for leaf in leaves:
        found.append(log.next_head(found[-1], log.leaf_hash(leaf)))
    return found


def answer(leaves: list[bytes], start: int = 0, *, of: list[bytes] | None = None) -> bytes:
    """What the log shows from `start` on; `of`: what the signed head is over, when it is something else."""
    signed = of if of is not None else leaves
    head = log.make_head(len(signed), heads(signed)[-1], DAY, LOG_ORIGIN, KEY)
    return log.encode_leaves(start, heads(leaves)[start], leaves[start:], head)


def look(raw: bytes, *, start: int = 0, previous: str | None = None, seen: log.Head | None = None) -> log.Scan:
    return log.scan(raw, KEY.public, LOG_ORIGIN, start=start, previous=previous, seen=seen)


def test_the_chain_is_the_one_written_in_the_protocol() -> None:
    head = hashlib.sha256(b"windvane/1/chain\0" + LOG_ORIGIN.encode()).digest()
    for leaf in LEAVES:
        head = hashlib.sha256(b"windvane/1/chain\0" + head + hashlib.sha256(b"\0" + leaf).digest()).digest()
    assert look(answer(LEAVES)).head.head == head.hex()


@pytest.mark.parametrize("start", [0, 1, 5, 8])
def test_a_scan_gives_every_leaf_from_its_start(start: int) -> None:
    found = look(answer(LEAVES, start), start=start, previous=heads(LEAVES)[start])
    assert [leaf.raw for leaf in found.leaves] == LEAVES[start:]
    assert list(found.heads) == heads(LEAVES)[start:]


def test_an_empty_log_is_a_log() -> None:
    assert look(answer([])).leaves == ()


def test_a_dropped_reordered_edited_or_added_leaf_is_refused() -> None:
    edited = log.make_leaf("accepted", "2026-Q3", {"member": 3, "hash": "cd" * 32, "day": DAY}, KEY)
    dropped = LEAVES[:2] + LEAVES[3:]
    swapped = [LEAVES[1], LEAVES[0], *LEAVES[2:]]
    with pytest.raises(LogIncomplete):
        look(answer(dropped, of=LEAVES))
    with pytest.raises(LogIncomplete):
        look(answer([*LEAVES, edited], of=LEAVES))
    with pytest.raises(InconsistentCheckpoint):
        look(answer(swapped, of=LEAVES))
    with pytest.raises(InconsistentCheckpoint):
        look(answer([*LEAVES[:2], edited, *LEAVES[3:]], of=LEAVES))


@given(st.data())
def test_no_other_list_of_leaves_fits_a_signed_head(data: st.DataObject) -> None:
    other = data.draw(st.lists(st.sampled_from(LEAVES), max_size=10))
    if other == LEAVES:
        return
    with pytest.raises((LogIncomplete, InconsistentCheckpoint)):
        look(answer(other, of=LEAVES))


def test_an_answer_that_begins_elsewhere_is_refused() -> None:
    with pytest.raises(LogIncomplete):
        look(answer(LEAVES, 2))
    with pytest.raises(InconsistentCheckpoint):
        look(answer(LEAVES, 2), start=2, previous=heads(LEAVES)[3])


def test_a_log_that_forgets_or_rewrites_what_was_seen_is_refused() -> None:
    seen = look(answer(LEAVES[:5])).head
    assert look(answer(LEAVES), seen=seen).head.size == 8
    assert look(answer(LEAVES[:5]), seen=seen).head.size == 5
    with pytest.raises(InconsistentCheckpoint):
        look(answer(LEAVES[:4]), seen=seen)
    with pytest.raises(InconsistentCheckpoint):
        look(answer([*LEAVES[:4], *LEAVES[5:]]), seen=seen)
    with pytest.raises(LogIncomplete):
        look(answer(LEAVES, 6), start=6, previous=heads(LEAVES)[6], seen=seen)


def test_a_head_of_another_signer_or_another_log_is_refused() -> None:
    theirs = log.make_head(8, heads(LEAVES)[-1], DAY, LOG_ORIGIN, member_key(1))
    elsewhere = log.make_head(8, heads(LEAVES)[-1], DAY, "another.example/log", KEY)
    for head in (theirs, elsewhere):
        with pytest.raises(InconsistentCheckpoint):
            look(log.encode_leaves(0, heads([])[0], LEAVES, head))


@given(st.binary(max_size=300))
def test_garbage_leaks_only_malformed_input(raw: bytes) -> None:
    for text in (raw, raw + b"\n", answer(LEAVES)[:200] + raw + b"\n"):
        with pytest.raises((MalformedInput, LogIncomplete)):
            look(text)


# --- receipts ---------------------------------------------------------------------------------------------------------


def receipt(index: int) -> bytes:
    return log.make_receipt(index, log.leaf_hash(LEAVES[index]), heads(LEAVES)[index], LOG_ORIGIN, KEY)


def test_a_receipt_fits_its_leaf_and_the_log() -> None:
    found = log.verify_receipt(receipt(3), LEAVES[3], KEY.public, LOG_ORIGIN)
    assert (found.index, found.head) == (3, heads(LEAVES)[4])
    look(answer(LEAVES)).check_receipt(found)
    look(answer(LEAVES, 2), start=2).check_receipt(found)
    assert receipt(3) == receipt(3)


def test_a_receipt_of_another_leaf_log_or_signer_is_refused() -> None:
    with pytest.raises(ReceiptRefused):
        log.verify_receipt(receipt(3), LEAVES[4], KEY.public, LOG_ORIGIN)
    with pytest.raises(ReceiptRefused):
        log.verify_receipt(receipt(3), LEAVES[3], member_key(1).public, LOG_ORIGIN)
    with pytest.raises(ReceiptRefused):
        log.verify_receipt(receipt(3), LEAVES[3], KEY.public, "another.example/log")


@given(st.integers(0, len(receipt(3)) - 1), st.integers(0, 255))
def test_a_changed_receipt_is_refused(place: int, value: int) -> None:
    raw = receipt(3)
    changed = raw[:place] + bytes([value]) + raw[place + 1 :]
    if changed == raw:
        return
    with pytest.raises(ReceiptRefused):
        log.verify_receipt(changed, LEAVES[3], KEY.public, LOG_ORIGIN)


def test_a_log_that_breaks_its_receipt_is_refused() -> None:
    found = log.verify_receipt(receipt(3), LEAVES[3], KEY.public, LOG_ORIGIN)
    for other in (LEAVES[:3], [LEAVES[0], LEAVES[2], LEAVES[1], *LEAVES[3:]], [*LEAVES[:3], *LEAVES[4:]]):
        with pytest.raises(ReceiptRefused):
            look(answer(other)).check_receipt(found)


def test_a_receipt_is_made_by_verification_only() -> None:
    with pytest.raises(ReceiptRefused):
        log.Receipt(0, "0" * 64, "0" * 64, "0" * 64, b"", None)
