# SPDX-License-Identifier: Apache-2.0
"""What `preview --json` prints.

Rules kept here:
* the shape of a sample and of `observed` is documented and fixed; what is new stands under keys of its own;
* names of files are printed, their folders are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from windvane_client.attention import mass_move, warnings_of
from windvane_client.coverage import Coverage, coverage_json
from windvane_client.events import Rows
from windvane_client.noticed import Noticed
from windvane_client.preview import Sample

SCHEMA: Final = "windvane/preview/v1"


def sample_json(sample: Sample) -> dict[str, Any]:
    """The object that `preview --json` prints for one sample."""
    refused = sample.refused
    return {
        "schema": SCHEMA,
        "source": sample.source,
        "files": [path.name for path in sample.files],
        "observed": sample.observed,
        "refused": None if refused is None else {"reason": refused.reason, "instead": refused.instead},
        "gaps": sample.missing,
    }


def more_json(samples: Sequence[Sample], cover: Coverage, noticed: Noticed) -> dict[str, Any]:
    """The keys `coverage` and `warnings` of `preview --json`."""
    read = [sample for sample in samples if sample.refused is None]
    by_source: dict[str, Rows] = {}
    for sample in read:
        by_source.setdefault(sample.source or "", Rows()).add(sample.rows)
    warnings = [*warnings_of(noticed, numbers=True), *mass_move(cover.moves, cover.people)]
    return {
        "coverage": coverage_json(cover, sorted(by_source.items()), sum(one.gaps["person_unknown"] for one in read)),
        "warnings": [{"code": one.code, "what": one.what, "why": one.why, "do": one.do} for one in warnings],
    }
