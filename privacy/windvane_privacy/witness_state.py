# SPDX-License-Identifier: Apache-2.0
"""A witness's state folder: its key, the logs that it pinned, and what it signed last for each.

Rules kept here:
* the key is made here and never leaves; what others get is the verifier key `witness.vkey`;
* a log is pinned by hand, once; its key is never replaced; its row is there from then on;
* a row is replaced whole or not at all, and is on the disk before anything is signed;
* a row that is missing or damaged is never taken for "nothing signed yet": nothing is signed;
* one process at a time holds the rows: a second one waits.

Files: witness.key (0600), witness.vkey, lock, and for each log logs/HASH.vkey and logs/HASH.signed, where HASH is the
hex SHA-256 of the log's origin. What contradicts a row lies in evidence/HASH, HASH that of the checkpoint shown:
signed.note is what was signed before, shown.note what the log showed then, both with the log's own signature.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from windvane_privacy.errors import ConfigurationError, MalformedInput, StateExists, StateNotWritten, WitnessRowLost
from windvane_privacy.keyfiles import read_secret, replace_file, require_platform, secure_folder, write_secret
from windvane_privacy.merkle import EMPTY_ROOT
from windvane_privacy.notes import (
    Checkpoint,
    Cosigner,
    SignedCheckpoint,
    check_name,
    parse_checkpoint,
    parse_verifier_key,
    verifier_key,
)
from windvane_privacy.passphrase import read_key, write_key
from windvane_privacy.quorum import Signer
from windvane_privacy.witness import Witness

KEY, CARD, LOGS, LOCK, EVIDENCE = "witness.key", "witness.vkey", "logs", "lock", "evidence"


class FileShelf:
    """The rows of one witness, one file a log."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def held(self) -> Iterator[None]:
        """Nobody else reads or stores in between; waits for whoever does."""
        import fcntl  # not on Windows, where require_platform has refused before

        with (self._folder / LOCK).open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def last(self, origin: str) -> SignedCheckpoint:
        """What was stored last for this log.

        Raises:
            WitnessRowLost: the row is missing or damaged.
        """
        path = self._path(origin)
        if not path.exists():
            raise WitnessRowLost(f"{path.name} is missing.")
        try:
            return parse_checkpoint(read_secret(path))
        except MalformedInput:
            raise WitnessRowLost(f"{path.name} is damaged.") from None

    def store(self, note: SignedCheckpoint) -> None:
        """Keep this one instead; on disk on return.

        Raises:
            StateNotWritten: the disk did not take it.
        """
        try:
            replace_file(self._path(note.checkpoint.origin), note.encode())
        except OSError:
            raise StateNotWritten("What the witness signs next could not be written.") from None

    def begin(self, origin: str) -> None:
        """The first row of a log: nothing was signed. A row that is there stays.

        Raises:
            StateExists: the log has a row already.
        """
        write_secret(self._path(origin), SignedCheckpoint(Checkpoint(origin, 0, EMPTY_ROOT), ()).encode())

    def _path(self, origin: str) -> Path:
        return self._folder / LOGS / f"{_name(origin)}.signed"


def init_witness(folder: Path, name: str) -> str:
    """Make a witness's key; returns its verifier key, one line, which a federation needs.

    Raises:
        StateExists: the folder is set up already.
        KeyRefused: the name cannot stand in a signature line.
    """
    require_platform()
    check_name(name)
    secure_folder(folder)
    if (folder / KEY).exists():
        raise StateExists
    key = Cosigner.generate(name)
    card = verifier_key(name, key.public)
    secure_folder(folder / LOGS)
    write_secret(folder / CARD, f"{card}\n".encode())
    write_key(folder / KEY, key.raw)
    return card


def pin_log(folder: Path, log: Signer) -> None:
    """Watch this log. The same again is harmless.

    Raises:
        StateExists: a log of this origin is pinned with another key.
        ConfigurationError: no witness is set up here.
    """
    read_secret(folder / KEY)
    path = folder / LOGS / f"{_name(log.name)}.vkey"
    text = f"{verifier_key(log.name, log.public)}\n".encode()
    if not path.exists():
        # The row first: a log that is pinned and has no row has lost it. One that is there is of a call that was cut.
        with contextlib.suppress(StateExists):
            FileShelf(folder).begin(log.name)
        write_secret(path, text)
    elif read_secret(path) != text:
        raise StateExists("Another key is pinned for this log.")


def own_signer(folder: Path) -> Signer:
    """The name and public key of this folder's witness.

    Raises:
        ConfigurationError: no witness is set up here.
    """
    return Signer(*parse_verifier_key(read_secret(folder / CARD).decode("ascii", "replace").strip()))


def load_witness(folder: Path) -> Witness:
    """The witness of this folder with every log that it pinned.

    Raises:
        ConfigurationError, KeyFileTooOpen: a file is missing, damaged or open to others.
    """
    own = own_signer(folder)
    key = Cosigner.from_raw(own.name, read_key(folder / KEY))
    if key.public != own.public:
        raise ConfigurationError("witness.key and witness.vkey do not belong together.")
    return Witness(key, pinned_logs(folder), FileShelf(folder))


def pinned_logs(folder: Path) -> tuple[Signer, ...]:
    """Every log that is pinned in this folder."""
    texts = [read_secret(path).decode("ascii", "replace").strip() for path in sorted((folder / LOGS).glob("*.vkey"))]
    return tuple(Signer(*parse_verifier_key(text)) for text in texts)


def keep_evidence(folder: Path, signed: SignedCheckpoint, shown: SignedCheckpoint) -> Path:
    """Keep what was signed last and what contradicts it; returns the folder of both. The same again is harmless."""
    raw = shown.checkpoint.text.encode()
    kept = secure_folder(secure_folder(folder / EVIDENCE) / hashlib.sha256(raw).hexdigest())
    for name, note in (("signed.note", signed), ("shown.note", shown)):
        if not (kept / name).exists():
            write_secret(kept / name, note.encode())
    return kept


def _name(origin: str) -> str:
    return hashlib.sha256(origin.encode()).hexdigest()
