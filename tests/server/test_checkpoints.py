# SPDX-License-Identifier: Apache-2.0
"""The coordinator's log grows under its witnesses, waits for them, and never serves less than it has signed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from log_witnesses import WITNESSES, at_once, folders
from manifests import derived
from small_federation import ROUND, SmallFederation, leaves_of
from windvane_privacy import canonical, log
from windvane_privacy.couriers import Parcel
from windvane_privacy.errors import InconsistentCheckpoint, LogRolledBack, MalformedInput, NotReady, SignatureInvalid
from windvane_privacy.manifest import Manifest
from windvane_privacy.notes import Checkpoint, Cosigner, SignedCheckpoint, parse_checkpoint
from windvane_privacy.proofs import parse_log_proof
from windvane_privacy.witness_state import load_witness
from windvane_privacy.witnessing import visit
from windvane_server.coordinator import Coordinator


def without_witnesses(small: SmallFederation, count: int = 0) -> None:
    """The same coordinator, whose witnesses come by themselves, all but `count`."""
    small.coordinator.close()
    small.coordinator = Coordinator(small.state, small.clock, at_once=at_once(small.coordinator.federation, count))


def come(small: SmallFederation, *names: str) -> None:
    """These witnesses visit the log, in this order."""
    made = {path.name: path for path in folders(small.folder / "witnesses", small.coordinator.federation)}
    for name in names:
        now = int(small.clock().timestamp())
        origin = small.coordinator.federation.log_origin
        visit(load_witness(made[name]), origin, small.courier, now, lambda *_notes: None)


ALL = tuple(one.name for one in WITNESSES)


def test_nothing_is_shown_before_a_quorum_and_the_receipt_comes_with_it(
    small: SmallFederation, manifest: Manifest
) -> None:
    before = leaves_of(small).head.size
    without_witnesses(small)
    made = small.draw(manifest, 1)
    with pytest.raises(NotReady):
        small.send("leaf", made.leaf)
    assert leaves_of(small).head.size == before
    come(small, ALL[0])
    with pytest.raises(NotReady):
        small.send("leaf", made.leaf)
    come(small, ALL[1])
    receipt = small.send("leaf", made.leaf)
    scan = leaves_of(small)
    assert scan.leaves[-1].raw == made.leaf
    scan.check_receipt(log.verify_receipt(receipt, made.leaf, small.coordinator.federation.log_policy))


def test_a_receipt_never_changes_whoever_signs_later(small: SmallFederation, manifest: Manifest) -> None:
    without_witnesses(small)
    made = small.draw(manifest, 1)
    with pytest.raises(NotReady):
        small.send("leaf", made.leaf)
    come(small, *ALL[:2])
    receipt = small.send("leaf", made.leaf)
    come(small, ALL[2])
    small.clock.pass_by(hours=5)
    come(small, *ALL)
    small.restart()
    assert small.send("leaf", made.leaf) == receipt
    assert len(parse_log_proof(receipt).note.signatures) == 3


def test_witnesses_of_any_rhythm_meet_under_one_checkpoint(small: SmallFederation, manifest: Manifest) -> None:
    """Entries come between the visits; the checkpoint that the first one signed waits for the others."""
    without_witnesses(small)
    for number, name in enumerate(ALL, 1):
        with pytest.raises(NotReady):
            small.send("leaf", small.draw(manifest, number).leaf)
        come(small, name)
    come(small, *ALL)
    assert leaves_of(small).leaves[-1].fields["member"] == 3


def test_one_call_after_another_is_enough_when_witnesses_answer_at_once(
    small: SmallFederation, manifest: Manifest
) -> None:
    for number in (1, 2, 3):
        small.submit(manifest, number)
    assert leaves_of(small).leaves[-1].fields["member"] == 3


def test_a_quiet_log_is_signed_anew(small: SmallFederation, manifest: Manifest) -> None:
    size = leaves_of(small).head.size
    small.clock.pass_by(days=40)
    found = leaves_of(small).head
    assert (found.size, found.day) == (size, small.clock().date().isoformat())


def test_a_line_of_a_stranger_or_over_something_else_is_refused(small: SmallFederation, manifest: Manifest) -> None:
    point = parse_checkpoint(small.send("checkpoint", b"", "")).checkpoint
    now = int(small.clock().timestamp())
    stranger = Cosigner.from_raw("stranger.test", derived("stranger"))
    forged = Cosigner.from_raw(WITNESSES[0].name, derived("not the witness"))
    for key in (stranger, forged):
        with pytest.raises(SignatureInvalid):
            small.send("cosign", SignedCheckpoint(point, (key.cosign(point, now),)).encode(), "")
    other = Checkpoint(point.origin, point.size, derived("another root"))
    with pytest.raises(InconsistentCheckpoint):
        small.send("cosign", SignedCheckpoint(other, (WITNESSES[0].cosign(other, now),)).encode(), "")
    for raw in (b"", b"garbage", point.text.encode()):
        with pytest.raises(MalformedInput):
            small.send("cosign", raw, "")
    good = SignedCheckpoint(point, (WITNESSES[0].cosign(point, now),)).encode()
    for _ in range(2):
        answer = canonical.decode(small.send("cosign", good, ""))
        assert answer == {"size": point.size, "witness": WITNESSES[0].name}


# --- an older database ------------------------------------------------------------------------------------------------


def restored(small: SmallFederation, manifest: Manifest, tmp_path: Path) -> None:
    """The database of before a submission, restored after it."""
    saved = tmp_path / "saved.db"
    shutil.copy(small.state / "coordinator.db", saved)
    small.submit(manifest, 1)
    small.coordinator.close()
    shutil.copy(saved, small.state / "coordinator.db")


def test_a_restored_old_database_serves_nothing(small: SmallFederation, manifest: Manifest, tmp_path: Path) -> None:
    restored(small, manifest, tmp_path)
    with pytest.raises(LogRolledBack):
        Coordinator(small.state, small.clock)


def test_a_witness_shows_that_a_database_is_old_where_the_second_place_is_lost(
    small: SmallFederation, manifest: Manifest, tmp_path: Path
) -> None:
    newest = None

    def remember() -> bytes:
        return small.send("checkpoint", b"", "")

    saved = tmp_path / "saved.db"
    shutil.copy(small.state / "coordinator.db", saved)
    small.submit(manifest, 1)
    newest = parse_checkpoint(remember()).checkpoint
    small.coordinator.close()
    shutil.copy(saved, small.state / "coordinator.db")
    (small.state / "checkpoint").unlink()
    small.coordinator = Coordinator(small.state, small.clock)
    line = WITNESSES[0].cosign(newest, int(small.clock().timestamp()))
    with pytest.raises(LogRolledBack):
        small.send("cosign", SignedCheckpoint(newest, (line,)).encode(), "")


def test_a_rewritten_database_serves_nothing(small: SmallFederation, manifest: Manifest, tmp_path: Path) -> None:
    other = small.copy(tmp_path / "other")
    small.submit(manifest, 1)
    other.submit(manifest, 2)
    small.coordinator.close()
    other.close()
    shutil.copy(other.state / "coordinator.db", small.state / "coordinator.db")
    with pytest.raises(LogRolledBack):
        Coordinator(small.state, small.clock)


def test_the_checkpoint_is_in_the_second_place_before_anybody_sees_it(
    small: SmallFederation, manifest: Manifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    size = leaves_of(small).head.size
    before = (small.state / "checkpoint").read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr("windvane_server.checkpoints.replace_file", dies)
        with pytest.raises(KeyboardInterrupt):
            small.send("leaf", small.draw(manifest, 1).leaf)
    assert (small.state / "checkpoint").read_bytes() == before
    assert parse_checkpoint(before).checkpoint.size == size == leaves_of(small).head.size - 1


def test_a_step_that_fails_after_its_entry_leaves_the_tree_as_it_was(
    small: SmallFederation, manifest: Manifest
) -> None:
    before = leaves_of(small).head.checkpoint
    coordinator = small.coordinator
    inbox = coordinator._inbox

    def fail() -> None:
        with coordinator.store.write() as connection:
            inbox._log.append(connection, small.draw(manifest, 1).leaf, None)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert leaves_of(small).head.checkpoint == before
    small.submit(manifest, 2)
    assert leaves_of(small).leaves[-1].fields["member"] == 2
    assert coordinator.handle(Parcel("state", ROUND))
