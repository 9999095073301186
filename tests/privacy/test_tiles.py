# SPDX-License-Identifier: Apache-2.0
"""The log as tiles: addresses and bytes in one form, and a reader whom no changed tile deceives."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windvane_privacy.errors import InconsistentCheckpoint, MalformedInput, UnknownAddress, WindvaneError
from windvane_privacy.merkle import EMPTY_ROOT, Tree, hash_leaf, hash_node, verify_consistency, verify_inclusion
from windvane_privacy.notes import Checkpoint
from windvane_privacy.tiles import (
    MAX_ENTRY_BYTES,
    Tile,
    TiledTree,
    bundles,
    edge,
    encode_bundle,
    encode_tile,
    parse_bundle,
    parse_tile,
    parse_tile_path,
)

ORIGIN = "log.example/w"
SIZES = (0, 1, 2, 255, 256, 257, 511, 512, 700)


def entry(index: int) -> bytes:
    return f'{{"entry":{index}}}'.encode()


@functools.cache
def tree(size: int) -> Tree:
    return Tree(hash_leaf(entry(index)) for index in range(size))


def point(size: int) -> Checkpoint:
    return Checkpoint(ORIGIN, size, tree(size).root())


class Served:
    """A log of `size` entries that shows what is within it, and notes what it was asked for."""

    def __init__(self, size: int, gone: Callable[[Tile], bool] = lambda tile: False) -> None:
        self.size, self.gone = size, gone
        self.asked: list[Tile] = []
        self.changed: dict[Tile, bytes] = {}

    def __call__(self, tile: Tile) -> bytes:
        self.asked.append(tile)
        tile = parse_tile_path(tile.path)
        if self.gone(tile) or not tile.within(self.size):
            raise UnknownAddress
        if tile in self.changed:
            return self.changed[tile]
        if tile.level is None:
            return encode_bundle(map(entry, range(tile.start, tile.stop)))
        return encode_tile(tree(self.size), tile)


def read_all(size: int, served: Served) -> list[bytes]:
    return list(TiledTree(point(size), served).entries())


# --- addresses -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tile", "path"),
    [
        (Tile(0, 1_234_067), "tile/0/x001/x234/067"),
        (Tile(0, 0), "tile/0/000"),
        (Tile(63, 999, 255), "tile/63/999.p/255"),
        (Tile(1, 1000, 1), "tile/1/x001/000.p/1"),
        (Tile(None, 7), "tile/entries/007"),
        (Tile(None, 273, 112), "tile/entries/273.p/112"),
    ],
)
def test_addresses_are_those_of_the_standard(tile: Tile, path: str) -> None:
    assert tile.path == path
    assert parse_tile_path(path) == tile


@given(st.none() | st.integers(0, 63), st.integers(0, 2**55), st.integers(1, 256))
def test_every_tile_has_one_address(level: int | None, index: int, width: int) -> None:
    tile = Tile(level, index, width)
    assert parse_tile_path(tile.path) == tile
    assert (
        len([part for part in tile.path.split(".p/")[0].split("/")[2:] if part[0] == "x"]) == (len(str(index)) - 1) // 3
    )


@pytest.mark.parametrize(
    "path",
    [
        "", "tile", "tile/0", "tile/0/", "tile/0/0", "tile/0/00", "tile/0/0000", "tile/00/000", "tile/01/000",
        "tile/64/000", "tile/-1/000", "tile/+1/000", "tile/entry/000", "tile/0/x000/000", "tile/0/x000/x001/000",
        "tile/0/001/000", "tile/0/x001", "tile/0/x001/x000", "tile/0/X001/000", "tile/0/000.p/0", "tile/0/000.p/256",
        "tile/0/000.p/01", "tile/0/000.p/", "tile/0/000.p/1/", "tile/0/000\n", "tile/0/000.p/1\n", "/tile/0/000",
        "tile/0/../000", "tile/0/٠٠٠", "tile/entries/x000/007", "tile/0/" + "x001/" * 50 + "000", "tile/0/000?x",
    ],
)  # fmt: skip
def test_other_forms_of_an_address_are_refused(path: str) -> None:
    with pytest.raises(MalformedInput):
        parse_tile_path(path)


@pytest.mark.parametrize("numbers", [(-1, 0, 1), (64, 0, 1), (0, -1, 1), (0, 0, 0), (0, 0, 257), (None, 0, 0)])
def test_no_tile_has_numbers_out_of_range(numbers: tuple[int | None, int, int]) -> None:
    with pytest.raises(MalformedInput):
        Tile(*numbers)


# --- which tiles there are -------------------------------------------------------------------------------------------


def test_a_tree_of_70_000_has_the_tiles_of_the_standards_example() -> None:
    assert edge(70_000) == [Tile(0, 273, 112), Tile(1, 1, 17), Tile(2, 0, 1)]
    full = [tile for level in range(3) for at in range(300) if (tile := Tile(level, at)).within(70_000)]
    assert full == [*(Tile(0, at) for at in range(273)), Tile(1, 0)]
    assert edge(256) == [Tile(1, 0, 1)]
    assert edge(0) == []


@given(st.integers(0, 2**63 - 1))
def test_the_edge_has_every_partial_tile_and_no_empty_one(size: int) -> None:
    found = edge(size)
    for tile in found:
        assert tile.level is not None
        assert tile.width == size // 256**tile.level % 256
        assert tile.within(size)
        assert not Tile(tile.level, tile.index, tile.width + 1).within(size)
    assert sum(tile.width * 256 ** (tile.level or 0) for tile in found) == size


@given(st.integers(0, 2000), st.data())
def test_bundles_hold_exactly_the_entries_asked_for(size: int, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, size))
    stop = data.draw(st.integers(start, size))
    found = list(bundles(start, stop, size))
    held = [index for tile in found for index in range(tile.start, tile.stop)]
    assert set(range(start, stop)) <= set(held)
    assert held == sorted(set(held))
    for tile in found:
        assert tile.within(size)
        assert tile.width == 256 or tile.stop == size
        assert tile.start < stop
        assert tile.stop > start
    if start == stop:
        assert not found


def test_a_tile_is_the_hashes_of_its_definition() -> None:
    """MTH(D[(n * 256 + i) * 256^l : (n * 256 + i + 1) * 256^l])."""

    def mth(start: int, stop: int) -> bytes:
        if stop - start == 1:
            return hash_leaf(entry(start))
        middle = start + (stop - start) // 2
        return hash_node(mth(start, middle), mth(middle, stop))

    served = Served(700)
    for tile in (Tile(0, 0), Tile(0, 1), Tile(0, 2, 188), Tile(1, 0, 2), Tile(1, 0, 1)):
        span = 256 ** (tile.level or 0)
        hashes = [mth((tile.index * 256 + i) * span, (tile.index * 256 + i + 1) * span) for i in range(tile.width)]
        assert served(tile) == b"".join(hashes)
        assert parse_tile(served(tile), tile.width) == tuple(hashes)


# --- bytes -----------------------------------------------------------------------------------------------------------


@given(st.lists(st.binary(max_size=300), max_size=256))
def test_a_bundle_gives_its_entries_back_and_has_no_other_length(entries: list[bytes]) -> None:
    raw = encode_bundle(entries)
    width = len(entries)
    assert parse_bundle(raw, width) == tuple(entries)
    for changed, other in ((raw + b"\0", width), (raw + b"\0\0", width), (raw, width + 1), (raw[:-1], width)):
        if changed != raw or other != width:
            with pytest.raises(MalformedInput):
                parse_bundle(changed, other)


def test_an_entry_is_as_long_as_two_bytes_can_say() -> None:
    longest = b"x" * MAX_ENTRY_BYTES
    raw = encode_bundle([b"ab", longest])
    assert raw[:6] == b"\x00\x02ab\xff\xff"
    assert parse_bundle(raw, 2) == (b"ab", longest)
    with pytest.raises(MalformedInput):
        encode_bundle([longest + b"x"])


@pytest.mark.parametrize(("length", "width"), [(0, 1), (31, 1), (33, 1), (64, 1), (32, 2), (8191, 256), (8192, 255)])
def test_a_tile_of_another_width_is_refused(length: int, width: int) -> None:
    with pytest.raises(MalformedInput):
        parse_tile(bytes(length), width)


# --- the reader ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
def test_the_reader_gives_every_entry_and_the_roots_of_every_earlier_size(size: int) -> None:
    found = TiledTree(point(size), Served(size))
    assert found.root() == tree(size).root()
    assert list(found.entries()) == [entry(index) for index in range(size)]
    for old in range(0, size + 1, 1 + size // 50):
        assert found.root(old) == tree(old).root()
        assert found.range(old).hashes == tree(size).range(old).hashes


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 70_000), st.data())
def test_proofs_from_tiles_verify_at_three_levels(size: int, data: st.DataObject) -> None:
    whole = tree(70_000)
    served = Served(70_000)
    found = TiledTree(Checkpoint(ORIGIN, size, whole.root(size)), served)
    index = data.draw(st.integers(0, size - 1))
    old = data.draw(st.integers(0, size))
    proof = found.inclusion(index, size)
    assert proof == whole.inclusion(index, size)
    verify_inclusion(index, size, hash_leaf(entry(index)), proof, whole.root(size))
    proof = found.consistency(old, size)
    assert proof == whole.consistency(old, size)
    verify_consistency(old, size, whole.root(old), whole.root(size), proof)
    partial = {tile for tile in served.asked if tile.width < 256}
    assert partial == set(edge(size)), "a partial tile was asked for that this checkpoint does not have"
    assert len(served.asked) == len(set(served.asked)) <= 40


@given(st.sampled_from(SIZES), st.data())
def test_the_reader_gives_the_entries_between_two_places(size: int, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, size))
    stop = data.draw(st.integers(start, size))
    assert list(TiledTree(point(size), Served(size)).entries(start, stop)) == [entry(at) for at in range(start, stop)]


def test_nothing_new_is_asked_for_where_nothing_is_new() -> None:
    served = Served(700)
    found = TiledTree(point(700), served)
    before = list(served.asked)
    assert list(found.entries(700)) == []
    assert served.asked == before == edge(700)


@pytest.mark.parametrize(("start", "stop"), [(-1, 2), (3, 2), (0, 701), (701, 701)])
def test_entries_beyond_the_checkpoint_are_refused(start: int, stop: int) -> None:
    found = TiledTree(point(700), Served(900))
    with pytest.raises(InconsistentCheckpoint):
        list(found.entries(start, stop))


@pytest.mark.parametrize("size", [1, 255, 257, 600])
def test_a_partial_tile_that_is_gone_is_read_from_the_full_one(size: int) -> None:
    served = Served(70_000, gone=lambda tile: tile.width < 256)
    assert read_all(size, served) == [entry(index) for index in range(size)]


def test_a_tile_that_is_nowhere_is_said_to_be_so() -> None:
    for gone in (Tile(0, 2, 88), Tile(0, 1), Tile(None, 0)):
        with pytest.raises(UnknownAddress):
            read_all(600, Served(600, gone=lambda tile, gone=gone: tile == gone))  # type: ignore[misc]


def test_nothing_is_read_under_another_root_or_another_size() -> None:
    for size, root in ((600, tree(599).root()), (600, EMPTY_ROOT), (599, tree(600).root()), (0, tree(600).root())):
        with pytest.raises(InconsistentCheckpoint):
            TiledTree(Checkpoint(ORIGIN, size, root), Served(600))


@settings(max_examples=150, deadline=None)
@given(st.sampled_from((1, 256, 257, 700)), st.data())
def test_no_changed_tile_is_believed(size: int, data: st.DataObject) -> None:
    served = Served(size)
    read_all(size, served)
    tile = data.draw(st.sampled_from(sorted(set(served.asked), key=lambda one: one.path)))
    raw = served(tile)
    at = data.draw(st.integers(0, len(raw) - 1))
    served.changed[tile] = data.draw(
        st.sampled_from(
            (
                raw[:at] + bytes([raw[at] ^ 1 << data.draw(st.integers(0, 7))]) + raw[at + 1 :],
                raw[:at],
                raw + raw[at:],
                raw[32:] + raw[:32] if len(set(parts_of(raw, tile))) > 1 else b"",
            )
        )
    )
    with pytest.raises((InconsistentCheckpoint, MalformedInput)):
        read_all(size, served)


def parts_of(raw: bytes, tile: Tile) -> tuple[bytes, ...]:
    """Hashes of a tile; of a bundle its entries."""
    return parse_bundle(raw, tile.width) if tile.level is None else parse_tile(raw, tile.width)


def test_two_tiles_in_each_others_place_are_refused() -> None:
    for level in (0, None):
        served = Served(700)
        one, two = Tile(level, 0), Tile(level, 1)
        served.changed = {one: served(two), two: served(one)}
        with pytest.raises(InconsistentCheckpoint):
            read_all(700, served)


def test_a_fork_is_refused_at_its_first_tile_though_the_edge_is_shared() -> None:
    """Hashes and entries of another history that agree with each other, below an edge that is the true one."""
    served = Served(700)
    forged = [entry(index) if index != 300 else b"another" for index in range(256, 512)]
    served.changed = {
        Tile(0, 1): b"".join(map(hash_leaf, forged)),
        Tile(None, 1): encode_bundle(forged),
    }
    found = TiledTree(point(700), served)
    assert len(list(found.entries(512))) == 188
    with pytest.raises(InconsistentCheckpoint):
        next(found.entries(256))
    with pytest.raises(InconsistentCheckpoint):
        found.inclusion(300, 700)


def test_a_refused_tile_is_not_kept() -> None:
    served = Served(700)
    right = served(Tile(0, 0))
    served.changed = {Tile(0, 0): right[32:] + right[:32]}
    found = TiledTree(point(700), served)
    for _ in range(2):
        with pytest.raises(WindvaneError):
            found.inclusion(0, 700)
    served.changed = {}
    assert found.inclusion(0, 700) == tree(700).inclusion(0, 700)
