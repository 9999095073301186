# SPDX-License-Identifier: Apache-2.0
"""A witness's folder: made once, pinned by hand, and what was signed is on the disk before the signature exists."""

from __future__ import annotations

import shutil
import stat
import threading
from collections.abc import Callable
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
    SignatureInvalid,
    StateExists,
    UnknownLog,
    WitnessRowLost,
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
from windvane_privacy.witness import Request, encode_request
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
    done = visit(load_witness(folder), LOG_ORIGIN, log, NOW, lambda *notes: keep_evidence(folder, *notes))
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
        for _again in range(2):
            with pytest.raises(refusal or InconsistentCheckpoint):
                go(folder, log)
        assert len(list((folder / "evidence").iterdir())) == number
    assert len(log.brought) == 1
    kept = [
        {name: parse_checkpoint((case / f"{name}.note").read_bytes()) for name in ("signed", "shown")}
        for case in (folder / "evidence").iterdir()
    ]
    assert {case["shown"].checkpoint.size for case in kept} == {2, 3, 4}
    # Anybody with the log's public key can check both: its own signature stands under each.
    for case in kept:
        assert case["signed"].checkpoint.root == Tree(hash_leaf(word.encode()) for word in "abc").root()
        for note in case.values():
            assert verify_cosignature(note.signatures[0], note.checkpoint, LOG.public) == NOW
    log.words = ["a", "b", "c", "d"]
    assert go(folder, log) == (3, 4)


@pytest.mark.parametrize("size", [2, 3, 4])
def test_what_the_log_did_not_sign_is_no_evidence_against_it(folder: Path, size: int) -> None:
    class Tampered(Served):
        def exchange(self, parcel: Parcel) -> bytes:
            raw = super().exchange(parcel)
            if parcel.kind != "checkpoint" or len(self.brought) == 0:
                return raw
            point = Checkpoint(LOG.name, size, Tree(hash_leaf(bytes([i])) for i in range(size)).root())
            return SignedCheckpoint(point, parse_checkpoint(raw).signatures).encode()

    log = Tampered()
    log.words = ["a", "b", "c"]
    go(folder, log)
    with pytest.raises(SignatureInvalid):
        go(folder, log)
    assert not (folder / "evidence").exists()


def test_another_log_at_the_address_is_not_signed(folder: Path) -> None:
    log = Served()
    log.words = ["a"]
    with pytest.raises(UnknownLog):
        visit(load_witness(folder), "another.example/log", log, NOW, lambda *_notes: None)
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


def row(folder: Path) -> Path:
    return next((folder / "logs").glob("*.signed"))


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:20])


def _change_size(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"\n3\n", b"\n1\n"))


def _unsign(path: Path) -> None:
    path.write_bytes(parse_checkpoint(path.read_bytes()).checkpoint.text.encode() + b"\n")


def _of_another_log(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(LOG_ORIGIN.encode() + b"\n", b"another.example/log\n"))


@pytest.mark.parametrize("damage", [_cut, _change_size, _unsign, _of_another_log, Path.unlink])
def test_a_row_that_is_lost_or_damaged_signs_nothing(folder: Path, damage: Callable[[Path], None]) -> None:
    log = Served()
    log.words = ["a", "b", "c"]
    go(folder, log)
    damage(row(folder))
    log.words = ["a", "x", "c", "d"]
    with pytest.raises(WitnessRowLost):
        go(folder, log)
    note = parse_checkpoint(log.exchange(Parcel("checkpoint")))
    with pytest.raises(WitnessRowLost):
        load_witness(folder).add_checkpoint(encode_request(Request(0, (), note)), NOW)
    assert len(log.brought) == 1


def test_pinning_again_brings_no_lost_row_back(folder: Path) -> None:
    row(folder).unlink()
    pin_log(folder, PIN)
    with pytest.raises(WitnessRowLost):
        load_witness(folder).size(LOG_ORIGIN)


def test_pinning_that_was_cut_before_the_key_goes_on(folder: Path) -> None:
    next((folder / "logs").glob("*.vkey")).unlink()
    assert pinned_logs(folder) == ()
    pin_log(folder, PIN)
    assert load_witness(folder).size(LOG_ORIGIN) == 0


class Shows(Served):
    """A log that shows its newest checkpoint with the cosignatures that it was brought."""

    def exchange(self, parcel: Parcel) -> bytes:
        raw = super().exchange(parcel)
        if parcel.kind != "checkpoint":
            return raw
        note = parse_checkpoint(raw)
        for brought in map(parse_checkpoint, self.brought):
            if brought.checkpoint == note.checkpoint:
                note = note.with_line(brought.signatures[0])
        return note.encode()


def test_a_restored_witness_that_meets_its_own_newer_signature_stops(folder: Path, tmp_path: Path) -> None:
    """The folder of yesterday, or the same folder on a second machine: the log shows what the newer one signed."""
    log = Shows()
    log.words = ["a", "b"]
    go(folder, log)
    shutil.copytree(folder, tmp_path / "copy")
    log.words.append("c")
    go(folder, log)
    assert go(folder, log) == (3, 3)
    with pytest.raises(WitnessRowLost):
        go(tmp_path / "copy", log)
    assert len(log.brought) == 3


def test_a_signature_of_ours_that_does_not_hold_is_passed_over(folder: Path) -> None:
    class Forged(Served):
        def exchange(self, parcel: Parcel) -> bytes:
            raw = super().exchange(parcel)
            if parcel.kind != "checkpoint":
                return raw
            note, own = parse_checkpoint(raw), own_signer(folder)
            line = SignatureLine(own.name, own.key_id, note.signatures[0].blob)
            return SignedCheckpoint(note.checkpoint, (*note.signatures, line)).encode()

    log = Forged()
    log.words = ["a", "b"]
    assert go(folder, log) == (0, 2)


def test_a_visit_that_another_process_overtook_goes_on_from_what_that_one_stored(folder: Path) -> None:
    class Overtaken(Served):
        def exchange(self, parcel: Parcel) -> bytes:
            if parcel.kind == "consistency" and not (folder / "once").exists():
                (folder / "once").touch()
                self.words.append("d")
                go(folder, self)
            return super().exchange(parcel)

    log = Overtaken()
    log.words = ["a", "b"]
    go(folder, log)
    log.words.append("c")
    assert go(folder, log) == (4, 4)


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
