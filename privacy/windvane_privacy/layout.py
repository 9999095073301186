# SPDX-License-Identifier: Apache-2.0
"""Cells and their places in the released vector.

Rules kept here:
* order is canonical: signals in manifest order, kinds in manifest order, listed pairs in catalogue order, and in each
  cell first 12 D, then 5 T;
* only the pairs of the manifest's list have cells; nothing about the layout depends on data.
"""

from __future__ import annotations

from dataclasses import dataclass

from windvane_privacy.catalogue import Signal
from windvane_privacy.manifest import Manifest


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """One comparison: a signal, a published kind of work, and the pair a < b of family ids."""

    signal: Signal
    kind: str
    a: str
    b: str


class Layout:
    """The cells of a manifest in order, and the index of each."""

    def __init__(self, manifest: Manifest) -> None:
        self.cells: tuple[Cell, ...] = tuple(
            Cell(Signal(signal), kind, a, b)
            for signal in manifest.signals
            for kind in manifest.kinds
            for a, b in manifest.pairs
        )
        self.index: dict[Cell, int] = {cell: i for i, cell in enumerate(self.cells)}
        self.length = 2 * len(self.cells)

    def d_index(self, cell: Cell) -> int:
        """Place of 12 D of a cell."""
        return 2 * self.index[cell]

    def t_index(self, cell: Cell) -> int:
        """Place of 5 T of a cell."""
        return 2 * self.index[cell] + 1
