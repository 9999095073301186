# SPDX-License-Identifier: Apache-2.0
"""Key files under an optional passphrase: how they are sealed, and where the passphrase comes from.

Rules kept here:
* a sealed file is `"WVK1" || salt 16 || nonce 12 || ChaCha20-Poly1305(key, secret)`, bound to its first 20 bytes; the
  key is scrypt(passphrase, salt), so that each guess costs 32 MiB and a tenth of a second;
* whoever has set a passphrase gets every new key sealed; an unsealed file is read as it is;
* the passphrase comes from systemd's credential, from a file that its owner alone can read, or from the terminal;
  never from an argument or from the value of a variable, which other programs can see;
* a wrong passphrase is named, and is not told apart from a damaged file;
* changing it replaces each file whole or not at all.

Source: RFC 7914 (scrypt), RFC 8439 (ChaCha20-Poly1305).
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from windvane_privacy.errors import (
    ConfigurationError,
    KeyFileTooOpen,
    PassphraseMissing,
    PassphraseWrong,
    StateNotWritten,
)
from windvane_privacy.keyfiles import read_secret, replace_file, write_secret

MAGIC: Final = b"WVK1"
SALT_BYTES, NONCE_BYTES, TAG_BYTES = 16, 12, 16
PLAIN_BYTES: Final = frozenset({32, 96})
"""Lengths of unsealed keys: a sealed one has 48 bytes more, so that none is taken for the other."""
LEAST_LENGTH: Final = 12
"""Characters that a new passphrase has at least."""
CREDENTIAL: Final = "windvane-passphrase"
"""Name of systemd's credential: `LoadCredential=windvane-passphrase:/path`."""
FILE_VARIABLE: Final = "WINDVANE_PASSPHRASE_FILE"
MAX_PASSPHRASE_BYTES: Final = 1024

Ask = Callable[[], str]
_ASK: ContextVar[Ask | None] = ContextVar("ask for the passphrase", default=None)
_SET: ContextVar[bytes | None] = ContextVar("the passphrase that was set", default=None)


def ask_with(ask: Ask | None) -> None:
    """How a person is asked for the passphrase of a sealed key; None where nobody can be asked."""
    _ASK.set(ask)


def use(passphrase: str | None) -> None:
    """From now on this passphrase seals and opens keys; None: whatever the surroundings say.

    Raises:
        ConfigurationError: shorter than LEAST_LENGTH characters.
    """
    if passphrase is not None and len(passphrase) < LEAST_LENGTH:
        raise ConfigurationError(f"A passphrase has at least {LEAST_LENGTH} characters.")
    _SET.set(None if passphrase is None else passphrase.encode())


def write_key(path: Path, secret: bytes) -> None:
    """Write a new key file, sealed where a passphrase is set. Raises as `keyfiles.write_secret`."""
    found = given()
    write_secret(path, secret if found is None else seal(secret, found))


def read_key(path: Path) -> bytes:
    """The key of a file, opened where it is sealed.

    Raises:
        PassphraseMissing: it is sealed, and there is no passphrase and nobody to ask.
        PassphraseWrong: it does not open.
        KeyFileTooOpen, ConfigurationError: see `keyfiles.read_secret`.
    """
    raw = read_secret(path)
    return unseal(raw, _needed()) if is_sealed(raw) else raw


def change(paths: Iterable[Path], old: bytes | None, new: bytes | None) -> int:
    """Seal these key files anew under `new`, or leave them unsealed without one; how many were rewritten.

    Every file is opened before the first is replaced, so that a wrong passphrase changes nothing. After a crash some
    files may have the old one: run it again with both, files that open under the new one are left as they are.

    Raises:
        PassphraseWrong, PassphraseMissing: a file does not open.
        StateNotWritten: the disk did not take one; the others may be done.
    """
    opened = []
    for path in paths:
        raw = read_secret(path)
        if new is not None and is_sealed(raw) and _opens(raw, new):
            continue
        if is_sealed(raw):
            if old is None:
                raise PassphraseMissing
            raw = unseal(raw, old)
        elif new is None:
            continue
        opened.append((path, raw))
    for path, secret in opened:
        try:
            replace_file(path, secret if new is None else seal(secret, new))
        except OSError:
            raise StateNotWritten(f"{path.name} could not be written.") from None
    return len(opened)


# --- sealing ----------------------------------------------------------------------------------------------------------


def seal(secret: bytes, passphrase: bytes) -> bytes:
    """The sealed form of a key of 32 or 96 bytes."""
    head = MAGIC + secrets.token_bytes(SALT_BYTES)
    nonce = secrets.token_bytes(NONCE_BYTES)
    return head + nonce + ChaCha20Poly1305(_key(passphrase, head[4:])).encrypt(nonce, secret, head)


def unseal(raw: bytes, passphrase: bytes) -> bytes:
    """The key of a sealed file.

    Raises:
        PassphraseWrong: another passphrase, or the file was changed.
    """
    head, nonce, sealed = raw[:20], raw[20:32], raw[32:]
    try:
        return ChaCha20Poly1305(_key(passphrase, head[4:])).decrypt(nonce, sealed, head)
    except (InvalidTag, ValueError):
        raise PassphraseWrong from None


def is_sealed(raw: bytes) -> bool:
    """Whether these are the bytes of a sealed key."""
    return raw.startswith(MAGIC) and len(raw) not in PLAIN_BYTES


@lru_cache(maxsize=8)
def _key(passphrase: bytes, salt: bytes) -> bytes:
    return Scrypt(salt=salt, length=32, n=2**15, r=8, p=1).derive(passphrase)


def _opens(raw: bytes, passphrase: bytes) -> bool:
    try:
        unseal(raw, passphrase)
    except PassphraseWrong:
        return False
    return True


# --- where the passphrase comes from ----------------------------------------------------------------------------------


def known_for(paths: Iterable[Path]) -> bytes | None:
    """The passphrase under which these files are sealed now, asked for where needed; None if none of them is."""
    return _needed() if any(is_sealed(read_secret(path)) for path in paths) else None


def from_file(path: Path) -> bytes:
    """A passphrase from a file that its owner alone can read.

    Raises:
        ConfigurationError: missing, empty or too long.
        KeyFileTooOpen: others have rights on it.
    """
    return _read(path, private=True)


def _needed() -> bytes:
    found = given()
    if found is not None:
        return found
    ask = _ASK.get()
    if ask is None:
        raise PassphraseMissing
    asked = ask().encode()
    _SET.set(asked)
    return asked


def given() -> bytes | None:
    """The passphrase that was set, or that the surroundings give; nobody is asked."""
    if (known := _SET.get()) is not None:
        return known
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    if folder and (Path(folder) / CREDENTIAL).is_file():
        return _read(Path(folder) / CREDENTIAL, private=False)
    place = os.environ.get(FILE_VARIABLE)
    return _read(Path(place), private=True) if place else None


def _read(path: Path, *, private: bool) -> bytes:
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            raw = file.read(MAX_PASSPHRASE_BYTES + 1)
    except OSError:
        raise ConfigurationError("The file with the passphrase cannot be read.") from None
    if private and os.name == "posix" and found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise KeyFileTooOpen("Others have rights on the file with the passphrase.")
    text = raw.rstrip(b"\r\n")
    if not text or len(raw) > MAX_PASSPHRASE_BYTES:
        raise ConfigurationError("The file with the passphrase is empty or too long.")
    return text
