# SPDX-License-Identifier: Apache-2.0
"""A disk that forgets what was not synced when its power fails.

Rules kept here:
* what was synced stays; of everything else, any part may be there afterwards: each sector of each write is kept,
  dropped or torn on its own, so later writes may survive earlier ones;
* a file that grew over dropped sectors holds zeros or garbage there; a truncation may be dropped;
* a new name is durable with the first sync of its file, a deletion with a sync of its folder; names that are not
  durable survive up to a random point in their order;
* the power fails at the call with a chosen number: that call is half done, and nothing works after it; a call may also
  fail alone (`failing`), as on a full or flaky disk, and the next ones work; or nothing can be read (`unreadable`);
* chance comes from the generator that the test hands in.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field

SECTOR = 512


@dataclass
class DiskFile:
    """Bytes as a program reads them, bytes as they are on the platter, and the calls between the two."""

    now: bytearray = field(default_factory=bytearray)
    durable: bytes = b""
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)

    def write(self, offset: int, data: bytes) -> None:
        if len(self.now) < offset:
            self.now.extend(bytes(offset - len(self.now)))
        self.now[offset : offset + len(data)] = data
        self.pending.append((offset, data))

    def truncate(self, size: int) -> None:
        del self.now[size:]
        self.pending.append((size, None))

    def sync(self) -> None:
        self.durable = bytes(self.now)
        self.pending.clear()

    def after_power_loss(self, chance: random.Random) -> bytes:
        if not self.pending:
            return self.durable
        image = bytearray(self.durable)
        keep, tear = chance.choice((0.0, 0.2, 0.5, 0.8, 0.95, 1.0)), chance.choice((0.0, 0.1, 0.5))
        garbage = chance.random() < 0.5
        for offset, data in self.pending:
            if data is None:
                if chance.random() < keep:
                    del image[offset:]
                continue
            for start in _sectors(offset, len(data)):
                begin, end = max(start, offset), min(start + SECTOR, offset + len(data))
                if chance.random() >= keep:
                    continue
                if tear and chance.random() < tear:
                    end = begin + chance.randrange(end - begin + 1)
                if len(image) < end:
                    gap = begin - len(image)
                    image.extend(chance.randbytes(gap) if garbage and gap > 0 else bytes(max(gap, 0)))
                image[begin:end] = data[begin - offset : end - offset]
        return bytes(image)


def _sectors(offset: int, length: int) -> range:
    return range(offset - offset % SECTOR, offset + length, SECTOR)


@dataclass
class Disk:
    """Files by name. `calls` counts the calls that change something or wait for it; `cut` is the number of the call
    at which the power fails (0: never)."""

    files: dict[str, DiskFile] = field(default_factory=dict)
    durable_names: dict[str, DiskFile] = field(default_factory=dict)
    pending_names: list[tuple[str, DiskFile | None]] = field(default_factory=list)
    calls: int = 0
    cut: int = 0
    failing: frozenset[int] = frozenset()
    off: bool = False
    unreadable: bool = False

    @classmethod
    def holding(cls, files: dict[str, bytes], cut: int = 0, failing: Iterable[int] = ()) -> Disk:
        made = {name: DiskFile(bytearray(raw), raw) for name, raw in files.items()}
        return cls(made, dict(made), cut=cut, failing=frozenset(failing))

    def step(self) -> bool:
        """Count a call; False when it fails."""
        self.calls += 1
        self.off = self.off or self.calls == self.cut
        return not self.off and self.calls not in self.failing

    def create(self, name: str) -> DiskFile:
        made = self.files[name] = DiskFile()
        self.pending_names.append((name, made))
        return made

    def delete(self, name: str) -> None:
        del self.files[name]
        self.pending_names.append((name, None))

    def sync_names(self) -> None:
        self.durable_names = dict(self.files)
        self.pending_names.clear()

    def sync(self, name: str) -> None:
        file = self.files[name]
        file.sync()
        if self.durable_names.get(name) is not file:
            self.sync_names()

    def contents(self) -> dict[str, bytes]:
        """What is there while the power is on."""
        return {name: bytes(file.now) for name, file in self.files.items()}

    def after_power_loss(self, chance: random.Random) -> dict[str, bytes]:
        """One of the many things that may be there afterwards."""
        names = dict(self.durable_names)
        for name, file in self.pending_names[: chance.randint(0, len(self.pending_names))]:
            if file is None:
                names.pop(name, None)
            else:
                names[name] = file
        return {name: file.after_power_loss(chance) for name, file in names.items()}
