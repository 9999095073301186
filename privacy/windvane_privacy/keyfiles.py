# SPDX-License-Identifier: Apache-2.0
"""Where private keys lie on disk: folders and files that only their owner can read.

Rules kept here:
* a folder is 0700 and a file 0600, both of this user; wider ones are refused, never repaired in silence;
* a secret is written whole or not at all, reaches the disk before the call returns, and never replaces another;
* links are never followed, neither when writing nor when reading;
* file systems without modes (Windows, where only collecting works) are guarded by the user's profile alone; whoever
  holds a ledger or opens shares refuses to start there.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
import sys
from pathlib import Path

from windvane_privacy.errors import (
    ConfigurationError,
    KeyFileTooOpen,
    StateExists,
    StateNotWritten,
    UnsupportedPlatform,
)

MAX_SECRET_BYTES = 1 << 16
_POSIX = os.name == "posix"
_NOFOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
_CLOEXEC: int = getattr(os, "O_CLOEXEC", 0)
_NONBLOCK: int = getattr(os, "O_NONBLOCK", 0)
_BINARY: int = getattr(os, "O_BINARY", 0)
_OTHERS = 0o077


def require_platform() -> None:
    """Return where file locks, fsync, O_NOFOLLOW and modes give what ledgers and round keys need.

    Raises:
        UnsupportedPlatform: Windows.
    """
    if sys.platform == "win32":
        raise UnsupportedPlatform


def secure_folder(path: Path) -> Path:
    """The folder, made with mode 0700 where it does not exist yet.

    Raises:
        KeyFileTooOpen: it exists and others can enter it, or it belongs to another user.
        ConfigurationError: it is a link or no folder, or cannot be made.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            pass
        else:
            # A mkdir mode is cut by the umask; one that took the owner's own bits would lock us out.
            if _POSIX:
                path.chmod(0o700)
        found = path.lstat()
    except OSError as error:
        raise ConfigurationError(f"The folder {path.name} cannot be made or read.") from error
    if not stat.S_ISDIR(found.st_mode):
        raise ConfigurationError(f"{path.name} is a link or no folder.")
    _refuse_open(found, path.name)
    return path


def write_secret(path: Path, data: bytes) -> None:
    """Write a new secret file, 0600, on disk when this returns.

    Raises:
        StateExists: something, be it a link, has this name already; it stays as it is.
        KeyFileTooOpen, ConfigurationError: the folder is open to others, missing or cannot be written.
    """
    _check_folder(path.parent)
    # A crash must not leave half a key under the final name: the name appears by link(2), which never overwrites.
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        try:
            _write_new(draft, data)
            os.link(draft, path)
        except FileExistsError:
            raise StateExists(f"{path.name} exists.") from None
        finally:
            draft.unlink(missing_ok=True)
        sync_folder(path.parent)
    except OSError as error:
        raise ConfigurationError(f"The file {path.name} cannot be written.") from error


def write_private(path: Path, data: bytes) -> None:
    """Write a new file of the owner's, 0600, into any folder: for a secret that is handed over and then deleted.

    Raises:
        StateExists: something has this name already.
        ConfigurationError: the folder is missing or cannot be written.
    """
    try:
        _write_new(path, data)
    except FileExistsError:
        raise StateExists(f"{path.name} exists.") from None
    except OSError as error:
        raise ConfigurationError(f"The file {path.name} cannot be written.") from error


def read_secret(path: Path) -> bytes:
    """The bytes of a secret file.

    Raises:
        KeyFileTooOpen: others can read the file or enter its folder, or it belongs to another user.
        ConfigurationError: it is missing, a link, no plain file, or longer than any secret of ours.
    """
    _check_folder(path.parent)
    try:
        if path.is_symlink():
            raise ConfigurationError(f"{path.name} is a link.")
        # Without O_NONBLOCK a FIFO put in the file's place would hang the agent.
        handle = os.open(path, os.O_RDONLY | _NOFOLLOW | _CLOEXEC | _NONBLOCK | _BINARY)
    except FileNotFoundError:
        raise ConfigurationError(f"The file {path.name} is missing.") from None
    except OSError as error:
        why = "is a link" if error.errno == errno.ELOOP else "cannot be read"
        raise ConfigurationError(f"The file {path.name} {why}.") from error
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise ConfigurationError(f"{path.name} is no plain file.")
        _refuse_open(found, path.name)
        with os.fdopen(handle, "rb", closefd=False) as stream:
            data = stream.read(MAX_SECRET_BYTES + 1)
    finally:
        os.close(handle)
    if len(data) > MAX_SECRET_BYTES:
        raise ConfigurationError(f"{path.name} is too long for a secret.")
    return data


def replace_file(path: Path, data: bytes) -> None:
    """Write a file of the owner's, 0600, in place of what has this name, whole or not at all; on disk on return.

    Raises:
        OSError: the folder cannot be written.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        _write_new(draft, data)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def destroy_secret(path: Path) -> None:
    """Overwrite a secret file with random bytes and delete it; both are on the disk on return.

    Raises:
        KeyFileTooOpen, ConfigurationError: see `read_secret`.
        StateNotWritten: the disk did not take it; call again.
    """
    length = len(read_secret(path))
    try:
        with path.open("r+b") as file:
            file.write(secrets.token_bytes(length))
            file.flush()
            os.fsync(file.fileno())
        path.unlink()
        sync_folder(path.parent)
    except OSError:
        raise StateNotWritten(f"{path.name} could not be destroyed.") from None


def check_private(path: Path) -> None:
    """Return if a file that is read by others' code (a database) is there and its owner's alone.

    Raises:
        KeyFileTooOpen: others can read it or enter its folder, or it belongs to another user.
        ConfigurationError: it is missing, a link, or no plain file.
    """
    _check_folder(path.parent)
    try:
        found = path.lstat()
    except OSError:
        raise ConfigurationError(f"The file {path.name} is missing.") from None
    if not stat.S_ISREG(found.st_mode):
        raise ConfigurationError(f"{path.name} is a link or no plain file.")
    _refuse_open(found, path.name)


def sync_folder(folder: Path) -> None:
    """Bring a folder's names to the disk; where folders cannot be synced (Windows) nothing happens."""
    if not _POSIX:
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _write_new(path: Path, data: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW | _CLOEXEC | _BINARY, 0o600)
    with os.fdopen(handle, "wb") as stream:
        if _POSIX:
            os.fchmod(stream.fileno(), 0o600)
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def _check_folder(folder: Path) -> None:
    try:
        found = folder.stat()
    except OSError as error:
        raise ConfigurationError(f"The folder {folder.name} is missing or cannot be read.") from error
    _refuse_open(found, folder.name)


def _refuse_open(found: os.stat_result, name: str) -> None:
    if not _POSIX:
        return
    if found.st_mode & _OTHERS:
        raise KeyFileTooOpen(f"Others have rights on {name}.")
    if found.st_uid != os.geteuid():
        raise KeyFileTooOpen(f"{name} belongs to another user.")
