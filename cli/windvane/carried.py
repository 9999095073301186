# SPDX-License-Identifier: Apache-2.0
"""Files that a person carries between parties: read whole, written whole, and said what to do with.

Rules kept here:
* what is read is bounded and a plain file; what is in it is judged by `parcel_file`, never here;
* a file is replaced only by one of its own kind: a slip of the hand does not cost somebody a key or a document;
* whatever waits to be carried is written, also when the command ends in a refusal.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from windvane.terminal import err, print_json
from windvane_privacy.errors import ConfigurationError, NotReady, StateExists, StateNotWritten, WindvaneError

if TYPE_CHECKING:
    from windvane_privacy.file_courier import FileCourier

FromFile = Annotated[
    Path | None, typer.Option("--from-file", help="Without a network: bundle or answers from the coordinator.")
]
ToFile = Annotated[Path | None, typer.Option("--to-file", help="Without a network: write here what is to be sent.")]
Bundle = Annotated[
    Path | None, typer.Option("--bundle", help="Without a network: bundle or answers of the coordinator.")
]
Out = Annotated[Path | None, typer.Option("--out", help="Without a network: write here what is to be sent.")]


@contextmanager
def carrying(source: Path | None, target: Path | None, *, as_json: bool = False) -> Iterator[FileCourier]:
    """A courier that answers from the file `source`; what is to be carried is written to `target`, however it ends.

    A step that only waits for its answer ends the command well; every other refusal goes on after the file is written.

    Raises:
        ConfigurationError, MalformedInput: `source` cannot be read, or is no file of answers.
        NotReady: nothing can be done yet, and nothing is to be carried or `target` is not named.
    """
    from windvane_privacy.file_courier import FileCourier
    from windvane_privacy.parcel_file import decode_answers

    courier = FileCourier({} if source is None else decode_answers(read_carried(source)))
    try:
        yield courier
    except NotReady:
        if not _write_outbox(courier, target, as_json=as_json):
            raise
        raise typer.Exit(0) from None
    except WindvaneError:
        _write_outbox(courier, target, as_json=False)
        raise
    _write_outbox(courier, target, as_json=False)


def _write_outbox(courier: FileCourier, target: Path | None, *, as_json: bool) -> bool:
    from windvane_privacy.parcel_file import encode_parcels

    if not courier.outbox or target is None:
        return False
    write_carried(target, encode_parcels(courier.outbox))
    if as_json:
        print_json({"carry": str(target), "parcels": len(courier.outbox)})
    else:
        err.print(
            f"Written: {target}. Carry it to the coordinator and bring back the file with the answers,", markup=False
        )
        err.print("then run the same command again with that file.", markup=False)
    return True


def read_carried(path: Path) -> bytes:
    """The bytes of a carried file.

    Raises:
        ConfigurationError: missing, no plain file, too long, or unreadable.
    """
    from windvane_privacy.parcel_file import MAX_FILE_BYTES

    try:
        # Without O_NONBLOCK a FIFO in the file's place would hang the command.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(handle, "rb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise ConfigurationError(f"{path.name} is no plain file.")
            raw = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ConfigurationError(f"The file {path.name} cannot be read.") from error
    if len(raw) > MAX_FILE_BYTES:
        raise ConfigurationError(f"The file {path.name} is longer than any of its kind.")
    return raw


def write_carried(path: Path, raw: bytes) -> None:
    """Write a carried file, whole or not at all; only one of our own kind is replaced.

    Raises:
        StateExists: something else has this name.
        StateNotWritten: the disk did not take it; everything is stored, and the same command writes it again.
    """
    from windvane_privacy.parcel_file import MAGIC

    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        if path.is_symlink() or (path.exists() and not (path.is_file() and _begins_with(path, MAGIC))):
            raise StateExists(f"{path.name} is something else.")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        # The mode is asked for and not enforced: sticks have file systems without modes.
        with os.fdopen(os.open(draft, flags, 0o600), "wb") as stream:
            stream.write(raw)
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise StateNotWritten(f"{path.name} could not be written.") from None


def _begins_with(path: Path, magic: bytes) -> bool:
    with path.open("rb") as stream:
        return stream.read(len(magic)) == magic
