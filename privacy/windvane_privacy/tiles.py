# SPDX-License-Identifier: Apache-2.0
"""The log as tiles: 256 hashes or entries at an address that never changes, and a reader that believes no tile.

Rules kept here:
* a tile has one address and one form: no leading zeros, no needless elements, exactly as many hashes or entries as the
  address says, and not a byte after them;
* whoever serves shows a tile only `within` the tree that it may show; nothing incomplete is hashed into a level above;
* the reader asks for a partial tile only where the size of its checkpoint has one;
* every hash that the reader gives leads to the checkpoint's root, and every entry to such a hash. Whether the
  checkpoint itself is believed is the caller's to settle first.

Source: C2SP tlog-tiles (July 2026); RFC 6962 section 2.1; Cox, "Transparent Logs for Skeptical Clients" (2019).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from windvane_privacy.errors import InconsistentCheckpoint, MalformedInput, UnknownAddress
from windvane_privacy.merkle import HASH_BYTES, Subtrees, Tree, hash_leaf
from windvane_privacy.notes import Checkpoint

HEIGHT: Final = 8
WIDTH: Final = 1 << HEIGHT
"""Hashes or entries of a full tile."""
MAX_LEVEL: Final = 63
MAX_ENTRY_BYTES: Final = (1 << 16) - 1
_ADDRESS: Final = re.compile(r"tile/(entries|0|[1-9][0-9]?)/((?:x[0-9]{3}/){0,6}[0-9]{3})(?:\.p/([1-9][0-9]{0,2}))?")


@dataclass(frozen=True, slots=True)
class Tile:
    """Hash or entry `index * 256` of a level, and the `width - 1` after it.

    `level` 0 holds the hashes of the leaves, every level above the roots of the full tiles below it. None: a bundle,
    the entries themselves. A tile of fewer than 256 is partial.

    Raises:
        MalformedInput: no tile has these numbers.
    """

    level: int | None
    index: int
    width: int = WIDTH

    def __post_init__(self) -> None:
        if not 0 <= (self.level or 0) <= MAX_LEVEL or self.index < 0 or not 1 <= self.width <= WIDTH:
            raise MalformedInput("No tile of the log has these numbers.")

    @property
    def path(self) -> str:
        """Its address below that of the log: `tile/0/x001/234` or `tile/entries/007.p/5`."""
        digits = f"{self.index:d}"
        digits = digits.zfill(-(-len(digits) // 3) * 3)
        parts = [digits[at : at + 3] for at in range(0, len(digits), 3)]
        number = "/".join([f"x{part}" for part in parts[:-1]] + parts[-1:])
        level = "entries" if self.level is None else str(self.level)
        return f"tile/{level}/{number}" + ("" if self.width == WIDTH else f".p/{self.width}")

    @property
    def start(self) -> int:
        """The first leaf below it."""
        return self.index * WIDTH << HEIGHT * (self.level or 0)

    @property
    def stop(self) -> int:
        """One more than the last leaf below it."""
        return self.index * WIDTH + self.width << HEIGHT * (self.level or 0)

    def within(self, size: int) -> bool:
        """Whether a tree of `size` leaves has all of it, complete: only then may it be served."""
        return self.stop <= size


def parse_tile_path(path: str) -> Tile:
    """The tile of an address below that of the log.

    Raises:
        MalformedInput: it is not the address of a tile in its one form.
    """
    found = _ADDRESS.fullmatch(path)
    if found is None:
        raise MalformedInput("That is not the address of a tile of the log.")
    level, number, width = found.groups()
    tile = Tile(
        None if level == "entries" else int(level),
        int(number.replace("/", "").replace("x", "")),
        WIDTH if width is None else int(width),
    )
    if tile.path != path:
        raise MalformedInput("The address of a tile of the log is not in its one form.")
    return tile


def edge(size: int) -> list[Tile]:
    """The partial tiles of hashes of a tree of `size` leaves, one at most a level: they hold its root between them."""
    found = []
    for level in range(-(-size.bit_length() // HEIGHT)):
        index, width = divmod(size >> HEIGHT * level, WIDTH)
        if width:
            found.append(Tile(level, index, width))
    return found


def bundles(start: int, stop: int, size: int) -> Iterator[Tile]:
    """The bundles, as a log of `size` entries has them, that hold entries `start` to `stop - 1`; none for none."""
    for index in range(start // WIDTH, -(-stop // WIDTH) if start < stop else 0):
        yield Tile(None, index, min(WIDTH, size - index * WIDTH))


# --- the bytes -------------------------------------------------------------------------------------------------------


def encode_tile(tree: Subtrees, tile: Tile) -> bytes:
    """The hashes of a tile, one after another; it has a level, and is `within` the tree."""
    height, first = HEIGHT * (tile.level or 0), tile.index * WIDTH
    return b"".join(tree.node(height, at) for at in range(first, first + tile.width))


def parse_tile(raw: bytes, width: int) -> tuple[bytes, ...]:
    """The hashes of a tile of this width.

    Raises:
        MalformedInput: there are more or fewer.
    """
    if len(raw) != HASH_BYTES * width:
        raise MalformedInput("A tile of the log has another width than its address says.")
    return tuple(raw[at : at + HASH_BYTES] for at in range(0, len(raw), HASH_BYTES))


def encode_bundle(entries: Iterable[bytes]) -> bytes:
    """Every entry after its length, two bytes, the higher first.

    Raises:
        MalformedInput: an entry is longer than that can say.
    """
    parts = []
    for entry in entries:
        if len(entry) > MAX_ENTRY_BYTES:
            raise MalformedInput("An entry is too long for the log's tiles.")
        parts += [struct.pack(">H", len(entry)), entry]
    return b"".join(parts)


def parse_bundle(raw: bytes, width: int) -> tuple[bytes, ...]:
    """The entries of a bundle of this width.

    Raises:
        MalformedInput: there are more or fewer, or the last one is cut off.
    """
    found, at = [], 0
    for _ in range(width):
        body = at + 2
        end = body + int.from_bytes(raw[at:body], "big")
        if len(raw) < end:
            raise MalformedInput("A bundle of the log's entries is too short.")
        found.append(raw[body:end])
        at = end
    if at != len(raw):
        raise MalformedInput("A bundle of the log's entries is too long.")
    return tuple(found)


# --- the reader ------------------------------------------------------------------------------------------------------


class TiledTree(Subtrees):
    """The tree under a believed checkpoint, read from tiles: every hash given was checked against the root.

    `fetch` brings the bytes of a tile from anywhere; `UnknownAddress` says that there is none. Tiles of hashes are
    kept (32 bytes a leaf once all are read), bundles are not.

    Raises:
        MalformedInput: a tile is not of its form.
        InconsistentCheckpoint: the tiles at the edge do not have the checkpoint's root.
        WindvaneError: whatever `fetch` raises.
    """

    def __init__(self, checkpoint: Checkpoint, fetch: Callable[[Tile], bytes]) -> None:
        self._checkpoint, self._fetch = checkpoint, fetch
        self._tiles = {
            (tile.level, tile.index): parse_tile(*self._get(tile))[: tile.width] for tile in edge(checkpoint.size)
        }
        # The root of a tree is made of nothing but its edge: from here on each kept tile is as good as the root.
        if self.root() != checkpoint.root:
            raise InconsistentCheckpoint("The log's tiles do not have the root of its checkpoint.")

    @property
    def size(self) -> int:
        """Number of leaves."""
        return self._checkpoint.size

    def node(self, level: int, index: int) -> bytes:
        """See `Subtrees.node`.

        Raises:
            MalformedInput, InconsistentCheckpoint: see the class.
        """
        tile_level, inner = divmod(level, HEIGHT)
        tile_index, at = divmod(index << inner, WIDTH)
        hashes = self._hashes(tile_level, tile_index)
        return Tree(hashes[at : at + (1 << inner)]).root()

    def entries(self, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """Entries `start` to `stop - 1`, in order; up to the checkpoint's size without `stop`.

        Raises:
            MalformedInput: a bundle or tile is not of its form.
            InconsistentCheckpoint: the checkpoint has fewer entries, or an entry or a tile is not the one under it.
        """
        stop = self.size if stop is None else stop
        if not 0 <= start <= stop <= self.size:
            raise InconsistentCheckpoint("The tree has fewer entries than that.")
        for bundle in bundles(start, stop, self.size):
            found = parse_bundle(*self._get(bundle))[: bundle.width]
            hashes = self._hashes(0, bundle.index)
            for at, entry in enumerate(found):
                if hash_leaf(entry) != hashes[at]:
                    raise InconsistentCheckpoint("An entry of the log is not the one under its checkpoint.")
            yield from found[max(0, start - bundle.start) : stop - bundle.start]

    def _hashes(self, level: int, index: int) -> tuple[bytes, ...]:
        """The hashes of a tile: one of the edge, or a full one whose root stands in the tile above."""
        kept = self._tiles.get((level, index))
        if kept is not None:
            return kept
        above, at = divmod(index, WIDTH)
        root = self._hashes(level + 1, above)[at]
        hashes = parse_tile(*self._get(Tile(level, index)))
        if Tree(hashes).root() != root:
            raise InconsistentCheckpoint("A tile of the log does not lead to the root of its checkpoint.")
        self._tiles[level, index] = hashes
        return hashes

    def _get(self, tile: Tile) -> tuple[bytes, int]:
        """The bytes of a tile, and the width that they have: a log may drop a partial tile once it has the full one."""
        try:
            return self._fetch(tile), tile.width
        except UnknownAddress:
            if tile.width == WIDTH:
                raise
            return self._fetch(replace(tile, width=WIDTH)), WIDTH
