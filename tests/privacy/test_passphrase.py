# SPDX-License-Identifier: Apache-2.0
"""Sealed key files: nothing of the key is in them, nothing but the passphrase opens them, and a change loses no key."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifests import derived
from windvane_privacy import passphrase
from windvane_privacy.errors import (
    ConfigurationError,
    KeyFileTooOpen,
    PassphraseMissing,
    PassphraseWrong,
    StateExists,
    StateNotWritten,
)
from windvane_privacy.guardian_state import init_guardian
from windvane_privacy.keyfiles import write_secret
from windvane_privacy.passphrase import change, is_sealed, read_key, seal, unseal, write_key
from windvane_privacy.sealing import RoundKey
from windvane_privacy.witness import Witness
from windvane_privacy.witness_state import init_witness, load_witness

GOOD, OTHER = "correct horse battery", "another passphrase"
SECRET = derived("secret")


@pytest.fixture(autouse=True)
def nobody_asks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)
    monkeypatch.delenv(passphrase.FILE_VARIABLE, raising=False)
    passphrase.use(None)
    passphrase.ask_with(None)
    yield
    passphrase.use(None)
    passphrase.ask_with(None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    return tmp_path


def test_without_a_passphrase_a_key_file_is_what_it_was(folder: Path) -> None:
    write_key(folder / "key", SECRET)
    assert (folder / "key").read_bytes() == SECRET
    assert read_key(folder / "key") == SECRET


@pytest.mark.parametrize("secret", [SECRET, RoundKey.generate().raw], ids=["signing key", "round key"])
def test_a_sealed_file_opens_with_its_passphrase_only_and_holds_nothing_of_the_key(folder: Path, secret: bytes) -> None:
    passphrase.use(GOOD)
    write_key(folder / "key", secret)
    raw = (folder / "key").read_bytes()
    assert is_sealed(raw)
    assert len(raw) == len(secret) + 48
    assert not any(secret[i : i + 4] in raw for i in range(len(secret) - 4))
    assert read_key(folder / "key") == secret
    assert stat.S_IMODE((folder / "key").stat().st_mode) == 0o600
    passphrase.use(OTHER)
    with pytest.raises(PassphraseWrong):
        read_key(folder / "key")
    passphrase.use(None)
    with pytest.raises(PassphraseMissing):
        read_key(folder / "key")


def test_two_sealings_of_one_key_share_nothing() -> None:
    first, second = seal(SECRET, GOOD.encode()), seal(SECRET, GOOD.encode())
    assert first[4:] != second[4:]
    assert first[:4] == second[:4] == b"WVK1"


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 79), st.integers(1, 255))
def test_a_changed_byte_anywhere_does_not_open(place: int, by: int) -> None:
    raw = bytearray(_SEALED)
    raw[place] ^= by
    if is_sealed(bytes(raw)):
        with pytest.raises(PassphraseWrong):
            unseal(bytes(raw), GOOD.encode())
    else:
        assert place < 4


_SEALED = seal(SECRET, GOOD.encode())


@pytest.mark.parametrize("length", range(4, 80, 7))
def test_a_truncated_file_does_not_open(length: int) -> None:
    if length not in passphrase.PLAIN_BYTES:
        with pytest.raises(PassphraseWrong):
            unseal(_SEALED[:length], GOOD.encode())


def test_an_unsealed_key_that_looks_sealed_is_a_key(folder: Path) -> None:
    odd = b"WVK1" + SECRET[4:]
    write_secret(folder / "key", odd)
    assert read_key(folder / "key") == odd


def test_a_short_passphrase_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="12"):
        passphrase.use("too short")


def test_an_existing_key_is_never_replaced(folder: Path) -> None:
    write_key(folder / "key", SECRET)
    passphrase.use(GOOD)
    with pytest.raises(StateExists):
        write_key(folder / "key", derived("other"))


# --- where it comes from ----------------------------------------------------------------------------------------------


def test_a_person_is_asked_once(folder: Path) -> None:
    write_secret(folder / "key", _SEALED)
    asked = []
    passphrase.ask_with(lambda: asked.append(1) or GOOD)
    assert read_key(folder / "key") == read_key(folder / "key") == SECRET
    assert asked == [1]


def test_a_file_of_the_owner_is_taken_and_one_that_others_can_read_is_not(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_secret(folder / "key", _SEALED)
    place = folder / "words"
    place.write_text(GOOD + "\n")
    place.chmod(0o600)
    monkeypatch.setenv(passphrase.FILE_VARIABLE, str(place))
    assert read_key(folder / "key") == SECRET
    place.chmod(0o640)
    with pytest.raises(KeyFileTooOpen):
        read_key(folder / "key")
    for text in ("", "\n", "x" * 2000):
        place.write_text(text)
        place.chmod(0o600)
        with pytest.raises(ConfigurationError):
            read_key(folder / "key")
    monkeypatch.setenv(passphrase.FILE_VARIABLE, str(folder / "none"))
    with pytest.raises(ConfigurationError):
        read_key(folder / "key")


def test_systemds_credential_is_taken(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_secret(folder / "key", _SEALED)
    (folder / passphrase.CREDENTIAL).write_text(GOOD)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(folder))
    assert read_key(folder / "key") == SECRET


def test_the_value_of_a_variable_is_never_a_passphrase(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_secret(folder / "key", _SEALED)
    for name in ("WINDVANE_PASSPHRASE", "PASSPHRASE"):
        monkeypatch.setenv(name, GOOD)
    with pytest.raises(PassphraseMissing):
        read_key(folder / "key")


# --- changing it ------------------------------------------------------------------------------------------------------


def keys(folder: Path) -> list[Path]:
    for number in (1, 2, 3):
        write_secret(folder / f"{number}.key", derived(f"key {number}"))
    return sorted(folder.glob("*.key"))


def test_setting_changing_and_removing_keep_every_key(folder: Path) -> None:
    paths = keys(folder)
    secrets = [path.read_bytes() for path in paths]
    for old, new in ((None, GOOD), (GOOD, OTHER), (OTHER, None)):
        assert change(paths, old and old.encode(), new and new.encode()) == 3
        passphrase.use(new)
        assert [read_key(path) for path in paths] == secrets
    assert [path.read_bytes() for path in paths] == secrets
    assert change(paths, None, None) == 0


def test_a_wrong_old_passphrase_changes_nothing(folder: Path) -> None:
    paths = keys(folder)
    change(paths, None, GOOD.encode())
    before = [path.read_bytes() for path in paths]
    with pytest.raises(PassphraseWrong):
        change(paths, OTHER.encode(), b"a new passphrase")
    with pytest.raises(PassphraseMissing):
        change(paths, None, b"a new passphrase")
    assert [path.read_bytes() for path in paths] == before


def test_a_disk_that_fails_in_the_middle_loses_no_key_and_the_next_run_ends_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = keys(folder)
    secrets = [path.read_bytes() for path in paths]
    change(paths, None, GOOD.encode())
    done: list[Path] = []
    real = passphrase.replace_file

    def fails(path: Path, data: bytes) -> None:
        if done:
            raise OSError
        done.append(path)
        real(path, data)

    with monkeypatch.context() as patched:
        patched.setattr(passphrase, "replace_file", fails)
        with pytest.raises(StateNotWritten):
            change(paths, GOOD.encode(), OTHER.encode())
    assert change(paths, GOOD.encode(), OTHER.encode()) == 2
    passphrase.use(OTHER)
    assert [read_key(path) for path in paths] == secrets


# --- the folders that hold keys ---------------------------------------------------------------------------------------


def test_every_key_that_a_set_up_makes_is_sealed(tmp_path: Path) -> None:
    passphrase.use(GOOD)
    init_guardian(tmp_path / "guardian", "Guardian", "Group")
    init_witness(tmp_path / "witness", "witness.test")
    for path in (tmp_path / "guardian" / "identity.key", tmp_path / "witness" / "witness.key"):
        assert is_sealed(path.read_bytes()), path
    assert isinstance(load_witness(tmp_path / "witness"), Witness)
    passphrase.use(None)
    with pytest.raises(PassphraseMissing):
        load_witness(tmp_path / "witness")
