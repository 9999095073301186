# SPDX-License-Identifier: Apache-2.0
"""A witness's folder: made once, pinned by hand, and what was signed is on the disk before the signature exists."""

from __future__ import annotations

import stat
import threading
from pathlib import Path

import pytest

from manifests import LOG_ORIGIN, derived
from windvane_privacy import canonical, witness_state
from windvane_privacy.couriers import Parcel
from windvane_privacy.errors import (
    ConfigurationError,
    ForkDetected,
    InconsistentCheckpoint,
    KeyFileTooOpen,
    KeyRefused,
    MalformedInput,
    NotReady,
    StateExists,
    UnknownLog,
)
from windvane_privacy.merkle import Tree, hash_leaf
from windvane_privacy.notes import (
    Checkpoint,
    Cosigner,
    SignatureLine,
    SignedCheckpoint,
    encode_proof,
    parse_checkpoint,
    parse_verifier_key,
    verifier_key,
    verify_cosignature,
)
from windvane_privacy.quorum import Signer
from windvane_privacy.witness_state import init_witness, keep_evidence, load_witness, own_signer, pin_log, pinned_logs
from windvane_privacy.witnessing import visit

LOG = Cosigner.from_raw(LOG_ORIGIN, derived("log"))
PIN = Signer(LOG.name, LOG.public)
NOW = 1_790_000_000


class Served:
    """A log that a test grows, rolls back or forks; answers a witness's parcels."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.brought: list[bytes] = []

    @property
    def tree(self) -> Tree:
        return Tree(hash_leaf(word.encode()) for word in self.words)

    def exchange(self, parcel: Parcel) -> bytes:
        point = Checkpoint(LOG.name, len(self.words), self.tree.root())
        match parcel.kind:
            case "checkpoint":
                return SignedCheckpoint(point, (LOG.cosign(point, NOW),)).encode()
            case "consistency":
                asked = canonical.decode(parcel.body)
                return encode_proof(self.tree.consistency(asked["old"], asked["new"])).encode()
            case "cosign":
                self.brought.append(parcel.body)
                return b"{}"
        raise AssertionError(parcel.kind)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    init_witness(tmp_path / "w", "witness.test/1")
    pin_log(tmp_path / "w", PIN)
    return tmp_path / "w"


def go(folder: Path, log: Served) -> tuple[int, int]:
    done = visit(load_witness(folder), LOG_ORIGIN, log, NOW, lambda name, raw: keep_evidence(folder, name, raw))
    return done.before, done.size


def test_the_folder_is_made_once_and_its_key_is_its_owners(folder: Path) -> None:
    assert stat.S_IMODE((folder / "witness.key").stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    with pytest.raises(StateExists):
        init_witness(folder, "witness.test/1")
    (folder / "witness.key").chmod(0o640)
    with pytest.raises(KeyFileTooOpen):
        load_witness(folder)


@pytest.mark.parametrize("name", ["", "two words", "a+b", "é", "x" * 201])
def test_a_name_that_cannot_stand_in_a_signature_line_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(KeyRefused):
        init_witness(tmp_path / "w", name)


def test_what_others_get_is_the_verifier_key(folder: Path) -> None:
    text = (folder / "witness.vkey").read_text().strip()
    own = own_signer(folder)
    assert parse_verifier_key(text) == (own.name, own.public)
    assert verifier_key(own.name, own.public) == text


@pytest.mark.parametrize("change", ["name", "hint", "type", "length", "padding"])
def test_a_damaged_verifier_key_is_malformed(folder: Path, change: str) -> None:
    name, hint, packed = (folder / "witness.vkey").read_text().strip().split("+", 2)
    changed = {
        "name": f"other+{hint}+{packed}", "hint": f"{name}+00000000+{packed}", "type": f"{name}+{hint}+AQ{packed[2:]}",
        "length": f"{name}+{hint}+{packed[:-4]}", "padding": f"{name}+{hint}+{packed}=",
    }[change]  # fmt: skip
    with pytest.raises(MalformedInput):
        parse_verifier_key(changed)


def test_a_log_is_pinned_once_and_its_key_is_never_replaced(folder: Path) -> None:
    pin_log(folder, PIN)
    assert pinned_logs(folder) == (PIN,)
    with pytest.raises(StateExists):
        pin_log(folder, Signer(LOG_ORIGIN, Cosigner.generate(LOG_ORIGIN).public))


def test_keys_that_do_not_belong_together_are_refused(folder: Path, tmp_path: Path) -> None:
    init_witness(tmp_path / "other", "witness.test/1")
    (folder / "witness.vkey").write_bytes((tmp_path / "other" / "witness.vkey").read_bytes())
    with pytest.raises(ConfigurationError):
        load_witness(folder)


def test_each_visit_signs_the_newest_checkpoint_and_brings_a_line_that_holds(folder: Path) -> None:
    log = Served()
    for size in (1, 1, 4, 9):
        log.words = [f"entry {i}" for i in range(size)]
        assert go(folder, log)[1] == size
        note = parse_checkpoint(log.brought[-1])
        assert note.checkpoint.size == size
        assert verify_cosignature(note.signatures[0], note.checkpoint, own_signer(folder).public) == NOW


def test_a_log_that_got_shorter_or_was_rewritten_is_kept_as_evidence_and_not_signed(folder: Path) -> None:
    log = Served()
    log.words = ["a", "b", "c"]
    go(folder, log)
    lies = [(["a", "b"], InconsistentCheckpoint), (["a", "x", "c"], ForkDetected), (["a", "x", "c", "d"], None)]
    for number, (words, refusal) in enumerate(lies, 1):
        log.words = words
        with pytest.raises(refusal or InconsistentCheckpoint):
            go(folder, log)
        assert len(list((folder / "evidence").iterdir())) == number
    assert len(log.brought) == 1
    kept = {parse_checkpoint(path.read_bytes()).checkpoint.size for path in (folder / "evidence").iterdir()}
    assert kept == {2, 3, 4}
    log.words = ["a", "b", "c", "d"]
    assert go(folder, log) == (3, 4)


def test_another_log_at_the_address_is_not_signed(folder: Path) -> None:
    log = Served()
    log.words = ["a"]
    with pytest.raises(UnknownLog):
        visit(load_witness(folder), "another.example/log", log, NOW, lambda _name, _raw: None)
    assert log.brought == []


def test_an_empty_log_is_not_yet(folder: Path) -> None:
    class Empty(Served):
        def exchange(self, parcel: Parcel) -> bytes:
            raise NotReady

    with pytest.raises(NotReady):
        go(folder, Empty())


def test_the_row_is_on_the_disk_before_the_line_exists(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    honest = Cosigner.cosign

    def dies(self: Cosigner, checkpoint: Checkpoint, timestamp: int) -> SignatureLine:
        if self.name == LOG.name:
            return honest(self, checkpoint, timestamp)
        seen.append(load_witness(folder).size(LOG_ORIGIN))
        raise KeyboardInterrupt

    log = Served()
    log.words = ["a", "b"]
    with monkeypatch.context() as patched:
        patched.setattr(Cosigner, "cosign", dies)
        with pytest.raises(KeyboardInterrupt):
            go(folder, log)
    assert seen == [2]
    assert go(folder, log) == (2, 2)


def test_a_damaged_row_signs_nothing(folder: Path) -> None:
    log = Served()
    log.words = ["a"]
    go(folder, log)
    row = next((folder / "logs").glob("*.signed"))
    row.write_bytes(row.read_bytes()[:20])
    with pytest.raises(MalformedInput):
        go(folder, log)


def test_two_processes_of_one_witness_wait_for_each_other(folder: Path) -> None:
    shelf, order = witness_state.FileShelf(folder), []

    def second() -> None:
        with witness_state.FileShelf(folder).held():
            order.append("second")

    with shelf.held():
        other = threading.Thread(target=second)
        other.start()
        other.join(0.2)
        order.append("first")
    other.join(5)
    assert order == ["first", "second"]
