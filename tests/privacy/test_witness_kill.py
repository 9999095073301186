# SPDX-License-Identifier: Apache-2.0
"""A witness that is killed at any step of a visit never signs two roots of one size, and goes on where it was.

The visit runs in a child of this process that ends without notice before the nth line of the modules that check, store
and sign; nothing of it is unwound. Each n is tried, from where the witness begins to decide to a visit that ends.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from manifests import LOG_ORIGIN, derived
from windvane_privacy import canonical, keyfiles, witness, witness_state, witnessing
from windvane_privacy.couriers import Parcel
from windvane_privacy.errors import ForkDetected, InconsistentCheckpoint
from windvane_privacy.merkle import Tree, hash_leaf
from windvane_privacy.notes import Checkpoint, Cosigner, SignatureLine, SignedCheckpoint, encode_proof, parse_checkpoint
from windvane_privacy.quorum import Signer
from windvane_privacy.witness_state import init_witness, load_witness, pin_log
from windvane_privacy.witnessing import visit

LOG = Cosigner.from_raw(LOG_ORIGIN, derived("log"))
NOW = 1_790_000_000
WATCHED = frozenset(module.__file__ for module in (keyfiles, witness, witness_state, witnessing))
KILLED = 9


class Side:
    """One history of a log, as it answers a witness."""

    def __init__(self, words: str) -> None:
        self.tree = Tree(hash_leaf(word.encode()) for word in words)
        self.point = Checkpoint(LOG.name, len(words), self.tree.root())
        self.note = SignedCheckpoint(self.point, (LOG.cosign(self.point, NOW),)).encode()

    def exchange(self, parcel: Parcel) -> bytes:
        if parcel.kind == "checkpoint":
            return self.note
        if parcel.kind == "consistency":
            asked = canonical.decode(parcel.body)
            return encode_proof(self.tree.consistency(asked["old"], asked["new"])).encode()
        return b"{}"


START, HONEST, FORK = Side("ab"), Side("abcde"), Side("abxyz")


def go(folder: Path, side: Side) -> None:
    visit(load_witness(folder), LOG_ORIGIN, side, NOW, lambda *_notes: None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    init_witness(tmp_path / "w", "witness.test/1")
    pin_log(tmp_path / "w", Signer(LOG.name, LOG.public))
    go(tmp_path / "w", START)
    return tmp_path / "w"


class Dies:
    """Ends this process before the line with this number of the watched modules, counted from `Witness.cosign` on."""

    def __init__(self, before: int) -> None:
        self.left = before
        self.armed = False

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> Dies | None:
        if frame.f_code.co_filename not in WATCHED:
            return None
        self.armed = self.armed or frame.f_code is witness.Witness.cosign.__code__
        if event == "line" and self.armed:
            self.left -= 1
            if self.left < 0:
                os._exit(KILLED)
        return self


def signs(folder: Path, side: Side, dies: Dies | None = None) -> tuple[bool, bool]:
    """Visit in a child: whether it came to its end, and whether a signature over this side existed."""
    told = folder.parent / "told"
    told.unlink(missing_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the child starts no thread and touches none
        child = os.fork()
    if child == 0:
        honest = Cosigner.cosign

        def cosign(self: Cosigner, checkpoint: Checkpoint, timestamp: int) -> SignatureLine:
            line = honest(self, checkpoint, timestamp)
            told.touch()
            return line

        Cosigner.cosign = cosign  # type: ignore[method-assign]
        code = 0
        try:
            sys.settrace(dies)
            go(folder, side)
        except (ForkDetected, InconsistentCheckpoint):
            code = 1
        except BaseException:
            code = 2
        os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in {0, 1, KILLED}
    return code != KILLED, told.exists()


def every_death(folder: Path, side: Side) -> Iterator[tuple[Path, bool]]:
    """A copy of the folder for each line at which a visit was killed, and whether it had signed by then."""
    for number in range(1000):
        copy = folder.parent / f"killed-{number}"
        shutil.copytree(folder, copy)
        ended, signed = signs(copy, side, Dies(number))
        yield copy, signed
        shutil.rmtree(copy)
        if ended:
            assert signed
            assert number > 20
            return
    raise AssertionError("no visit came to its end")


@pytest.mark.process
def test_a_witness_killed_at_any_step_never_signs_two_roots_of_one_size(folder: Path) -> None:
    before_row = after_row = 0
    for copy, signed in every_death(folder, HONEST):
        row = load_witness(copy).last(LOG_ORIGIN).checkpoint
        assert row in (START.point, HONEST.point)
        stored = row == HONEST.point
        _, forked = signs(copy, FORK)
        assert not (signed and forked)
        assert forked is not stored
        _, again = signs(copy, HONEST)
        assert again is stored
        before_row, after_row = before_row + (not stored), after_row + (stored and not signed)
    # Both sides of the row were met: killed before it was there, and between the row and the signature.
    assert before_row > 10
    assert after_row > 0


def test_the_row_and_its_name_are_synced_before_anything_is_signed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power failure loses what was not synced: the new file first, then its name, then the signature."""
    steps: list[str] = []
    fsync, replace, cosign = os.fsync, Path.replace, Cosigner.cosign

    def noted_fsync(handle: int) -> None:
        steps.append("sync folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "sync file")
        fsync(handle)

    def noted_replace(self: Path, target: Path) -> Path:
        steps.append("rename")
        return replace(self, target)

    def noted_cosign(self: Cosigner, checkpoint: Checkpoint, timestamp: int) -> SignatureLine:
        steps.append("sign")
        return cosign(self, checkpoint, timestamp)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(Path, "replace", noted_replace)
    monkeypatch.setattr(Cosigner, "cosign", noted_cosign)
    go(folder, HONEST)
    assert steps == ["sync file", "rename", "sync folder", "sign"]
    row = next((folder / "logs").glob("*.signed"))
    assert parse_checkpoint(row.read_bytes()).checkpoint == HONEST.point
