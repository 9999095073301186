# SPDX-License-Identifier: Apache-2.0
"""Python's own SQLite on the disk that forgets: a VFS made with ctypes in the very library that `sqlite3` uses.

Rules kept here:
* the library is the one that is loaded in this process; a Python with SQLite built in has none, and the test says so;
* a path that is on the disk of the test goes there, every other path to the real VFS;
* the same promises as SQLite's own VFS on POSIX: sectors of 4,096 bytes, a write damages nothing beside it;
* no callback raises: with the power off every call is an I/O error.
"""

from __future__ import annotations

import ctypes
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int64, c_void_p, cast, memmove, pointer, string_at
from pathlib import Path

from power_disk import Disk, DiskFile

OK, IOERR, NOTFOUND, CANTOPEN, SHORT_READ = 0, 10, 12, 14, 522
CREATE, SECTOR_SIZE, POWERSAFE_OVERWRITE = 0x4, 4096, 0x1000

_CLOSE = CFUNCTYPE(c_int, c_void_p)
_TRANSFER = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int64)
_TRUNCATE = CFUNCTYPE(c_int, c_void_p, c_int64)
_FLAG = CFUNCTYPE(c_int, c_void_p, c_int)
_SIZE = CFUNCTYPE(c_int, c_void_p, POINTER(c_int64))
_RESERVED = CFUNCTYPE(c_int, c_void_p, POINTER(c_int))
_CONTROL = CFUNCTYPE(c_int, c_void_p, c_int, c_void_p)
_OPEN = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_int, POINTER(c_int))
_DELETE = CFUNCTYPE(c_int, c_void_p, c_char_p, c_int)
_ACCESS = CFUNCTYPE(c_int, c_void_p, c_char_p, c_int, POINTER(c_int))


class _Methods(Structure):
    _fields_ = [
        ("version", c_int), ("close", _CLOSE), ("read", _TRANSFER), ("write", _TRANSFER), ("truncate", _TRUNCATE),
        ("sync", _FLAG), ("size", _SIZE), ("lock", _FLAG), ("unlock", _FLAG), ("reserved", _RESERVED),
        ("control", _CONTROL), ("sector_size", _CLOSE), ("characteristics", _CLOSE),
    ]  # fmt: skip


class _File(Structure):
    _fields_ = [("methods", c_void_p), ("number", c_int64)]


class _Vfs(Structure):
    _fields_ = [
        ("version", c_int), ("file_size", c_int), ("max_path", c_int), ("next", c_void_p), ("name", c_char_p),
        ("data", c_void_p), ("open", _OPEN), ("delete", _DELETE), ("access", _ACCESS), ("full_path", c_void_p),
        ("dl_open", c_void_p), ("dl_error", c_void_p), ("dl_sym", c_void_p), ("dl_close", c_void_p),
        ("randomness", c_void_p), ("sleep", c_void_p), ("current_time", c_void_p), ("last_error", c_void_p),
    ]  # fmt: skip


def loaded_library() -> ctypes.CDLL | None:
    """The SQLite that `sqlite3` of this process uses; None where it is not a library of its own."""
    try:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    paths = {line.split(maxsplit=5)[5] for line in maps if "/libsqlite3.so" in line}
    if len(paths) != 1:
        return None
    library = ctypes.CDLL(paths.pop())
    library.sqlite3_libversion.restype = c_char_p
    library.sqlite3_vfs_find.restype = POINTER(_Vfs)
    library.sqlite3_vfs_find.argtypes = [c_char_p]
    library.sqlite3_vfs_register.argtypes = [c_void_p, c_int]
    library.sqlite3_vfs_unregister.argtypes = [c_void_p]
    return library if library.sqlite3_libversion().decode() == sqlite3.sqlite_version else None


class PowerVfs:
    """The VFS; `disk` is the disk that it uses now. It must outlive its connections: SQLite keeps pointers into it."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.disk = Disk()
        self.opened = 0
        self._library = library
        self._real = library.sqlite3_vfs_find(None)
        self._open: dict[int, tuple[Disk, str, DiskFile]] = {}
        self._methods = _Methods(
            1, _CLOSE(self._close), _TRANSFER(self._read), _TRANSFER(self._write), _TRUNCATE(self._truncate),
            _FLAG(self._sync), _SIZE(self._size), _FLAG(lambda _file, _kind: OK), _FLAG(lambda _file, _kind: OK),
            _RESERVED(self._reserved), _CONTROL(lambda _file, _what, _value: NOTFOUND),
            _CLOSE(lambda _file: SECTOR_SIZE), _CLOSE(lambda _file: POWERSAFE_OVERWRITE),
        )  # fmt: skip
        self._vfs = _Vfs()
        memmove(pointer(self._vfs), self._real, ctypes.sizeof(_Vfs))
        self._vfs.version, self._vfs.next, self._vfs.name = 1, None, b"power"
        self._vfs.file_size = max(self._real.contents.file_size, ctypes.sizeof(_File))
        self._callbacks = (_OPEN(self._open_file), _DELETE(self._delete), _ACCESS(self._access))
        self._vfs.open, self._vfs.delete, self._vfs.access = self._callbacks

    @contextmanager
    def default(self) -> Iterator[None]:
        """Every new connection of this process uses it."""
        self._library.sqlite3_vfs_register(pointer(self._vfs), 1)
        try:
            yield
        finally:
            self._library.sqlite3_vfs_unregister(pointer(self._vfs))
            self._library.sqlite3_vfs_register(self._real, 1)

    # --- files ---

    def _of(self, file: int) -> tuple[Disk, str, DiskFile]:
        return self._open[_File.from_address(file).number]

    def _close(self, file: int) -> int:
        self._open.pop(_File.from_address(file).number, None)
        return OK

    def _read(self, file: int, target: int, length: int, offset: int) -> int:
        disk, _name, held = self._of(file)
        if disk.off or disk.unreadable:
            return IOERR
        data = bytes(held.now[offset : offset + length])
        memmove(target, data.ljust(length, b"\0"), length)
        return OK if len(data) == length else SHORT_READ

    def _write(self, file: int, source: int, length: int, offset: int) -> int:
        disk, _name, _held = self._of(file)
        if disk.calls + 1 in disk.failing:
            length //= 2  # a short write: some of it arrives, and the call fails
        return self._change(file, lambda held: held.write(offset, string_at(source, length)))

    def _truncate(self, file: int, size: int) -> int:
        return self._change(file, lambda held: held.truncate(size))

    def _change(self, file: int, change: Callable[[DiskFile], None]) -> int:
        disk, _name, held = self._of(file)
        if disk.off:
            return IOERR
        # Done before the power fails in it: what is pending may then be there in part.
        change(held)
        return OK if disk.step() else IOERR

    def _sync(self, file: int, _flags: int) -> int:
        disk, name, held = self._of(file)
        if disk.off or not disk.step():
            return IOERR
        if disk.files.get(name) is held:
            disk.sync(name)
        return OK

    def _size(self, file: int, out: object) -> int:
        disk, _name, held = self._of(file)
        out[0] = len(held.now)
        return IOERR if disk.off else OK

    def _reserved(self, _file: int, out: object) -> int:
        out[0] = 0
        return OK

    # --- names ---

    def _mine(self, path: str) -> bool:
        return any(path in (name, f"{name}-journal") for name in self.disk.files)

    def _open_file(self, _vfs: int, name: int, file: int, flags: int, out: object) -> int:
        path = string_at(name).decode() if name else ""
        if not self._mine(path):
            return self._real.contents.open(cast(self._real, c_void_p), name, file, flags, out)
        opened = _File.from_address(file)
        opened.methods = None
        disk = self.disk
        if disk.off:
            return CANTOPEN
        if path not in disk.files:
            if not flags & CREATE:
                return CANTOPEN
            disk.create(path)
            if not disk.step():
                return CANTOPEN
        self.opened += 1
        self._open[self.opened] = (disk, path, disk.files[path])
        opened.number, opened.methods = self.opened, cast(pointer(self._methods), c_void_p)
        if out:
            out[0] = flags
        return OK

    def _delete(self, _vfs: int, name: bytes, sync_folder: int) -> int:
        path, disk = name.decode(), self.disk
        if not self._mine(path):
            return self._real.contents.delete(cast(self._real, c_void_p), name, sync_folder)
        if disk.off:
            return IOERR
        if path in disk.files:
            disk.delete(path)
        if not disk.step():
            return IOERR
        if sync_folder:
            disk.sync_names()
        return OK

    def _access(self, _vfs: int, name: bytes, kind: int, out: object) -> int:
        path = name.decode()
        if not (self._mine(path) or (path.endswith("-wal") and self._mine(path.removesuffix("-wal")))):
            return self._real.contents.access(cast(self._real, c_void_p), name, kind, out)
        out[0] = int(path in self.disk.files)
        return IOERR if self.disk.off else OK
