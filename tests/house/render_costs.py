# SPDX-License-Identifier: Apache-2.0
"""docs/costs.md: what a round of sealed shares costs, from the kept results of `benchmarks/sums.py`."""

from __future__ import annotations

import json
from pathlib import Path

KEPT = Path(__file__).resolve().parents[2] / "benchmarks" / "sums.json"

HEAD = """\
# What sealed shares cost

Measured by `python3 dev.py bench-sums` on {cores} cores with Python {python}, one process for a round; rendered from
`benchmarks/sums.json`. A *plain sum* is the cheapest honest thing beside it in the same run: three additive shares
modulo p of the same vectors, nothing sealed, nothing signed, nothing checked. A cell has two numbers.

## One member

Noise is drawn on the member's machine; `member` is shares, three seals and the signature; `guardian` is parsing,
checking the signature, opening one share and adding it.

| cells | numbers | envelope, kB | noise, ms | member, ms | guardian for a member, ms |
|---|---|---|---|---|---|
"""
MIDDLE = """
An envelope has the same length for every member of a round, with votes or without.

## A whole round

Every member's shares and seals, all three guardians, the tally with the third guardian's check; without noise, which
members draw each for themselves. Peak memory is of the one process that plays everybody, all envelopes included.

| members | cells | round, s | peak, MB | plain sum, s | times the plain sum |
|---|---|---|---|---|---|
"""
TAIL = """
The last row is the size that the protocol is built for: it should stay below 30 seconds and 1 GiB.

![Growth with members](../benchmarks/sums-members.svg)

![Growth with cells](../benchmarks/sums-cells.svg)
"""


def costs_page() -> str:
    """The whole page."""
    found = json.loads(KEPT.read_text(encoding="utf-8"))
    lines = [HEAD.format(**found["machine"]).rstrip("\n")]
    for row in found["parts"]:
        lines.append(
            f"| {row['cells']:,} | {row['numbers']:,} | {row['envelope_bytes'] / 1000:.0f} | {row['noise_ms']:.1f} | "
            f"{row['member_ms']:.1f} | {row['guardian_ms']:.1f} |"
        )
    lines.append(MIDDLE.rstrip("\n"))
    for row in (*found["by_members"], *found["by_cells"], found["largest"]):
        lines.append(
            f"| {row['members']} | {row['cells']:,} | {row['seconds']:.2f} | {row['peak_mb']:.0f} | "
            f"{row['baseline_seconds']:.2f} | {row['ratio']:.1f} |"
        )
    return "\n".join(lines) + "\n" + TAIL
