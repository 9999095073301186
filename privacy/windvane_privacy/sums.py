# SPDX-License-Identifier: Apache-2.0
"""The noisy sums of the cohorts: the only numbers that two guardians open.

Rules kept here:
* places only: no signal, kind of work or model is named next to a number (the layout lives in the manifest);
* whole numbers only, as released: 12 D and 5 T of each cell in layout order, noise included, nothing divided;
* the file form is canonical, so that it can be committed to by its hash.
"""

from __future__ import annotations

from dataclasses import dataclass

from windvane_privacy import canonical
from windvane_privacy.errors import MalformedInput

SCHEMA = "windvane/sums/v1"
_MAX_BYTES = 1 << 26


@dataclass(frozen=True, slots=True)
class CohortSums:
    """`sizes[g]`: accepted organisations of cohort g. `sums[g]`: its L noisy integers, 12 D then 5 T a cell.

    Raises:
        MalformedInput: no cohort, a size below one, or rows of different length.
    """

    sizes: tuple[int, ...]
    sums: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        rows = {len(row) for row in self.sums}
        if not self.sizes or len(self.sizes) != len(self.sums) or min(self.sizes) < 1 or len(rows) != 1:
            raise MalformedInput

    def to_json(self) -> bytes:
        """Canonical bytes."""
        return canonical.encode({"schema": SCHEMA, "sizes": list(self.sizes), "sums": [list(row) for row in self.sums]})

    @classmethod
    def from_json(cls, raw: bytes) -> CohortSums:
        """The sums from canonical bytes.

        Raises:
            MalformedInput: not canonical, or not of this form.
        """
        value = canonical.decode(raw, max_bytes=_MAX_BYTES)
        if not isinstance(value, dict) or set(value) != {"schema", "sizes", "sums"} or value["schema"] != SCHEMA:
            raise MalformedInput
        sizes, sums = value["sizes"], value["sums"]
        if not isinstance(sums, list) or not _whole(sizes) or not all(_whole(row) for row in sums):
            raise MalformedInput
        return cls(tuple(sizes), tuple(tuple(row) for row in sums))


def _whole(value: object) -> bool:
    return isinstance(value, list) and all(type(v) is int for v in value)
