# SPDX-License-Identifier: Apache-2.0
"""Key files are private, whole, never replaced, and refused when others could have read them.

Rules kept here:
* modes are read back from the file system, under a umask that would widen or narrow them;
* links and special files in the place of a key are refused in both directions.
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windvane_privacy.errors import ConfigurationError, KeyFileTooOpen, StateExists
from windvane_privacy.keyfiles import MAX_SECRET_BYTES, read_secret, secure_folder, write_secret

pytestmark = pytest.mark.skipif(os.name != "posix", reason="not run: file modes exist on Linux and macOS only")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return secure_folder(tmp_path / "state")


@pytest.fixture(params=[0o000, 0o022, 0o777])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


@pytest.mark.usefixtures("umask")
def test_modes_are_0700_and_0600_under_any_umask(tmp_path: Path) -> None:
    folder = secure_folder(tmp_path / "state")
    write_secret(folder / "identity.key", b"secret")
    assert mode(folder) == 0o700
    assert mode(folder / "identity.key") == 0o600
    assert read_secret(folder / "identity.key") == b"secret"


@given(data=st.binary(max_size=300))
def test_what_was_written_is_read(data: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = secure_folder(tmp_path_factory.mktemp("k") / "state")
    write_secret(folder / "a.key", data)
    assert read_secret(folder / "a.key") == data
    assert names(folder) == ["a.key"]


def test_a_folder_made_before_is_accepted_and_kept(folder: Path) -> None:
    write_secret(folder / "a.key", b"x")
    assert secure_folder(folder) == folder
    assert names(folder) == ["a.key"]


def test_an_existing_key_is_never_replaced(folder: Path) -> None:
    write_secret(folder / "a.key", b"first")
    with pytest.raises(StateExists):
        write_secret(folder / "a.key", b"second")
    assert read_secret(folder / "a.key") == b"first"
    assert names(folder) == ["a.key"]


@pytest.mark.parametrize("target_exists", [True, False])
def test_a_link_in_the_place_of_a_key_is_not_written_through(folder: Path, target_exists: bool) -> None:
    target = folder / "elsewhere"
    if target_exists:
        target.write_bytes(b"kept")
    (folder / "a.key").symlink_to(target)
    with pytest.raises(StateExists):
        write_secret(folder / "a.key", b"secret")
    assert target.read_bytes() == b"kept" if target_exists else not target.exists()


def test_a_link_in_the_place_of_a_key_is_not_read(folder: Path) -> None:
    write_secret(folder / "real.key", b"secret")
    (folder / "a.key").symlink_to(folder / "real.key")
    with pytest.raises(ConfigurationError, match="link"):
        read_secret(folder / "a.key")


def test_a_link_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    secure_folder(tmp_path / "real")
    (tmp_path / "state").symlink_to(tmp_path / "real")
    with pytest.raises(ConfigurationError, match="link"):
        secure_folder(tmp_path / "state")


@pytest.mark.parametrize("wider", [0o604, 0o602, 0o601, 0o640, 0o620, 0o610, 0o644, 0o777])
def test_a_file_that_others_could_read_is_refused(folder: Path, wider: int) -> None:
    write_secret(folder / "a.key", b"secret")
    (folder / "a.key").chmod(wider)
    with pytest.raises(KeyFileTooOpen):
        read_secret(folder / "a.key")


@pytest.mark.parametrize("narrower", [0o400, 0o600])
def test_a_file_for_its_owner_alone_is_read(folder: Path, narrower: int) -> None:
    write_secret(folder / "a.key", b"secret")
    (folder / "a.key").chmod(narrower)
    assert read_secret(folder / "a.key") == b"secret"


@pytest.mark.parametrize("wider", [0o701, 0o710, 0o750, 0o755, 0o777])
def test_a_folder_that_others_can_enter_is_refused_not_repaired(folder: Path, wider: int) -> None:
    write_secret(folder / "a.key", b"secret")
    folder.chmod(wider)
    for step in (
        lambda: secure_folder(folder),
        lambda: read_secret(folder / "a.key"),
        lambda: write_secret(folder / "b.key", b"secret"),
    ):
        with pytest.raises(KeyFileTooOpen):
            step()
    assert mode(folder) == wider
    assert names(folder) == ["a.key"]


@pytest.mark.skipif(getattr(os, "geteuid", lambda: 1)() != 0, reason="not run: only root can give a file away")
def test_a_file_of_another_user_is_refused(folder: Path) -> None:
    write_secret(folder / "a.key", b"secret")
    os.chown(folder / "a.key", 65534, -1)
    with pytest.raises(KeyFileTooOpen):
        read_secret(folder / "a.key")


def test_a_missing_key_is_a_configuration_error(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match="missing"):
        read_secret(folder / "a.key")
    with pytest.raises(ConfigurationError, match="missing"):
        read_secret(folder / "no folder" / "a.key")
    with pytest.raises(ConfigurationError, match="missing"):
        write_secret(folder / "no folder" / "a.key", b"x")


def test_a_folder_or_a_pipe_in_the_place_of_a_key_is_refused_at_once(folder: Path) -> None:
    (folder / "a.key").mkdir(mode=0o700)
    os.mkfifo(folder / "b.key", mode=0o600)
    for name in ("a.key", "b.key"):
        with pytest.raises(ConfigurationError):
            read_secret(folder / name)


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state").write_bytes(b"")
    with pytest.raises(ConfigurationError):
        secure_folder(tmp_path / "state")
    with pytest.raises(ConfigurationError):
        secure_folder(tmp_path / "state" / "inner")


def test_a_file_longer_than_any_secret_is_not_read_into_memory(folder: Path) -> None:
    write_secret(folder / "a.key", bytes(MAX_SECRET_BYTES))
    assert len(read_secret(folder / "a.key")) == MAX_SECRET_BYTES
    write_secret(folder / "b.key", bytes(MAX_SECRET_BYTES + 1))
    with pytest.raises(ConfigurationError, match="too long"):
        read_secret(folder / "b.key")


def test_messages_name_the_file_and_not_where_it_lies(folder: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_secret(folder / "a.key")
    assert "a.key" in caught.value.sentence()
    assert str(folder) not in caught.value.sentence()


DIES_WHILE_WRITING = """
import os, sys
from pathlib import Path
from windvane_privacy.keyfiles import write_secret
os.fsync = lambda handle: os.kill(os.getpid(), 9)  # the bytes were handed over, the disk has not answered
write_secret(Path(sys.argv[1]), b"secret")
"""


@pytest.mark.process
def test_a_process_that_dies_while_writing_leaves_no_key_under_the_final_name(folder: Path) -> None:
    died = subprocess.run([sys.executable, "-c", DIES_WHILE_WRITING, str(folder / "a.key")], check=False, timeout=60)
    assert died.returncode == -9
    assert "a.key" not in names(folder)
    write_secret(folder / "a.key", b"again")
    assert read_secret(folder / "a.key") == b"again"
