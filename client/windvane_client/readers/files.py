# SPDX-License-Identifier: Apache-2.0
"""Log files on disk: finding them under the roots and opening them.

Rules kept here:
* regular files only; no symlink is followed out of a root;
* a file is opened read-only and read up to the size it had at opening;
* `.gz` is read by the standard library; any other compression has no reader, and its files are named as such;
* no path is put into an error or a log.
"""

from __future__ import annotations

import gzip
import io
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, cast

from windvane_privacy.errors import ConfigurationError

_BUFFER = 1 << 20
PACKED_SUFFIXES = tuple(
    f"{log}{packed}"
    for log in (".jsonl", ".json", ".csv")
    for packed in (".zst", ".zstd", ".bz2", ".xz", ".lz4", ".br", ".zip")
)
"""Names of logs in a compression that is not read."""


def find_logs(roots: Sequence[Path], suffixes: tuple[str, ...]) -> Iterator[Path]:
    """Regular files under the roots whose name ends in one of `suffixes`, sorted inside each root, each file once.

    A root that is a file is taken whatever its name.
    """
    seen: set[tuple[int, int]] = set()
    for root in roots:
        try:
            base = root.resolve(strict=True)
        except OSError:
            continue
        if base.is_file():
            candidates: Iterator[Path] = iter((base,))
        else:
            candidates = _walk(base, suffixes)
        for path in candidates:
            try:
                status = path.stat()
            except OSError:
                continue
            if stat.S_ISREG(status.st_mode) and (status.st_dev, status.st_ino) not in seen:
                seen.add((status.st_dev, status.st_ino))
                yield path


def packed_logs(roots: Sequence[Path]) -> list[Path]:
    """Logs under the roots in a compression that is not read; nothing is opened."""
    return [path for path in find_logs(roots, PACKED_SUFFIXES) if path.name.endswith(PACKED_SUFFIXES)]


def _walk(base: Path, suffixes: tuple[str, ...]) -> Iterator[Path]:
    for folder, folders, files in os.walk(base):
        folders.sort()
        for name in sorted(files):
            if not name.endswith(suffixes):
                continue
            path = Path(folder, name)
            if path.is_symlink():
                try:
                    target = path.resolve(strict=True)
                except OSError:
                    continue
                if not target.is_relative_to(base):
                    continue
            yield path


class _Window(io.RawIOBase):
    """The first `size` bytes of a file."""

    def __init__(self, file: io.FileIO, size: int) -> None:
        super().__init__()
        self._file = file
        self._size = size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence == io.SEEK_END:
            return self._file.seek(self._size + offset)
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def readinto(self, buffer: object) -> int:
        view = memoryview(cast("bytearray", buffer)).cast("B")
        left = self._size - self._file.tell()
        if left <= 0:
            return 0
        return self._file.readinto(view[:left]) or 0

    def close(self) -> None:
        self._file.close()
        super().close()


def open_log(path: Path) -> BinaryIO:
    """A log file as a stream of its plain bytes, seekable, ending at the size it has now.

    Raises:
        ConfigurationError: not a regular file, or it cannot be opened.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags)
    except OSError:
        raise ConfigurationError("A log file cannot be opened for reading.") from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise ConfigurationError("A log is not a regular file.")
    window = io.BufferedReader(_Window(io.FileIO(descriptor, "rb"), status.st_size), _BUFFER)
    if path.suffix == ".gz":
        return cast("BinaryIO", io.BufferedReader(gzip.GzipFile(fileobj=window, mode="rb"), _BUFFER))
    return cast("BinaryIO", window)
