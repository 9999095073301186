# SPDX-License-Identifier: Apache-2.0
"""What a round of sealed shares costs a member, a guardian and the coordinator, next to the cheapest sum there is.

Rules kept here:
* the real code does all of it: shares, seals, signatures, parsing, opening, sums, signed results, tally with the third
  guardian's check; noise is measured beside, because each member draws it on its own machine;
* the baseline runs in the same turn over the same vectors: three additive shares modulo p, nothing sealed, nothing
  signed, nothing checked; ratios are to it;
* a whole round runs in a process of its own, so that its peak memory is its own; nothing is asserted about seconds;
* vectors come from an explicit seed; keys, shares and seals never do.

Run `python3 dev.py bench-sums`; `--write` keeps `sums.json` and the plots beside this file.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

PLACE = Path(__file__).resolve().parent
sys.path.insert(0, str(PLACE.parent / "tests"))

from growth import curve  # noqa: E402

from manifests import make_guardians, make_manifest, member_key  # noqa: E402
from windvane_privacy import field, lot  # noqa: E402
from windvane_privacy.catalogue import KINDS, SIGNALS  # noqa: E402
from windvane_privacy.envelope import build_envelope, envelope_length, open_share, parse_envelope, verify_envelope  # noqa: E402
from windvane_privacy.identity import SigningKey  # noqa: E402
from windvane_privacy.manifest import Manifest  # noqa: E402
from windvane_privacy.noise import OpenDPNoise  # noqa: E402
from windvane_privacy.sealing import RoundKey  # noqa: E402
from windvane_privacy.shares import split  # noqa: E402
from windvane_privacy.tally import make_result, read_result, tally  # noqa: E402

CELLS = (120, 360, 720, 2_500, 5_000, 10_000)
MEMBERS = (50, 100, 200, 350, 500)
FIXED_CELLS, FIXED_MEMBERS = 720, 100
LARGEST = (500, 10_000)
COHORTS = 5
BOUND = 200


def manifest_of(members: int, cells: int, keys: Sequence[RoundKey], identities: Sequence[SigningKey]) -> Manifest:
    """A manifest with so many cells at least: pairs of made-up families in every kind and signal."""
    pairs_needed = -(-cells // (len(KINDS) * len(SIGNALS)))
    count = next(n for n in range(2, 200) if n * (n - 1) // 2 >= pairs_needed)
    names = [f"family-{i:03}" for i in range(count)]
    pairs = tuple((a, b) for i, a in enumerate(names) for b in names[i + 1 :])[:pairs_needed]
    entries = [
        _entry(entry, key, identity) for entry, key, identity in zip(make_guardians(), keys, identities, strict=True)
    ]
    return make_manifest(
        members=members, order=names[:4], kinds=tuple(KINDS), G=COHORTS, guardians=entries, sound=False, pairs=pairs,
    )  # fmt: skip


def _entry(entry: Any, key: RoundKey, identity: SigningKey) -> Any:
    return msgspec.structs.replace(
        entry, round_key=key.public.hex(), round_key_id=key.key_id, identity=identity.public.hex()
    )


class Round:
    """One round: the guardians' keys, the manifest and the members' vectors."""

    def __init__(self, members: int, cells: int) -> None:
        self.keys = [RoundKey.generate() for _ in range(3)]
        self.identities = [SigningKey.generate() for _ in range(3)]
        self.manifest = manifest_of(members, cells, self.keys, self.identities)
        self.members = [member_key(i) for i in range(1, members + 1)]
        self.rng = np.random.default_rng(members * 1_000_003 + cells)
        self.cohorts = lot.cohorts(range(1, members + 1), secrets.token_bytes(32), COHORTS)
        self.place = {member: g for g, cohort in enumerate(self.cohorts) for member in cohort}

    def vector(self) -> list[int]:
        return self.rng.integers(-BOUND, BOUND, self.manifest.length).tolist()

    def envelope(self, number: int, values: Sequence[int]) -> bytes:
        shares = split(values, 2, 3)
        return build_envelope(self.manifest, number, self.members[number - 1], shares, secrets.token_bytes(16))

    def opened(self, guardian: int, raw: bytes, number: int) -> NDArray[np.uint64]:
        envelope = parse_envelope(raw, self.manifest)
        verify_envelope(envelope, self.members[number - 1].public)
        share = open_share(envelope, self.manifest, guardian, self.keys[guardian - 1])
        return share[: self.manifest.length]

    def result(self, guardian: int, envelopes: Iterable[bytes]) -> bytes:
        sums = [np.zeros(self.manifest.length, dtype=np.uint64) for _ in self.cohorts]
        for number, raw in enumerate(envelopes, 1):
            g = self.place[number]
            sums[g] = field.add(sums[g], self.opened(guardian, raw, number))
        counts = [len(cohort) for cohort in self.cohorts]
        return make_result(self.manifest, "0" * 64, guardian, counts, sums, self.identities[guardian - 1])


def whole(members: int, cells: int) -> dict[str, float]:
    """A whole round in this process, after the baseline over the same vectors. Seconds of wall time, MB of memory."""
    made = Round(members, cells)
    vectors = [made.vector() for _ in range(members)]
    true = [[sum(column) for column in zip(*(vectors[m - 1] for m in cohort), strict=True)] for cohort in made.cohorts]
    start = time.perf_counter()
    plain = baseline(vectors, made)
    base = time.perf_counter() - start
    start = time.perf_counter()
    envelopes = [made.envelope(number, values) for number, values in enumerate(vectors, 1)]
    sent = time.perf_counter() - start
    results = {}
    for guardian in (1, 2, 3):
        raw = made.result(guardian, envelopes)
        results[guardian] = read_result(raw, made.identities[guardian - 1].public)
    opened = time.perf_counter() - start - sent
    sums, checked = tally(results, made.manifest, made.cohorts)
    took = time.perf_counter() - start
    if not checked or [list(row) for row in sums.sums] != true or plain != true:
        sys.exit("The sums are wrong.")
    return {
        "members": members, "cells": made.manifest.cell_count, "numbers": made.manifest.length, "seconds": took,
        "members_seconds": sent, "guardians_seconds": opened, "tally_seconds": took - sent - opened,
        "baseline_seconds": base, "ratio": took / base, "envelope_bytes": envelope_length(made.manifest),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }  # fmt: skip


def baseline(vectors: Sequence[Sequence[int]], made: Round) -> list[list[int]]:
    """Three additive shares of each vector, added up by three parties, and those three sums added."""
    parts = [[np.zeros(made.manifest.length, dtype=np.uint64) for _ in made.cohorts] for _ in range(3)]
    for number, values in enumerate(vectors, 1):
        g = made.place[number]
        first, second = field.random_elements(made.manifest.length), field.random_elements(made.manifest.length)
        third = field.sub(field.sub(field.encode_signed(values), first), second)
        for party, share in zip(parts, (first, second, third), strict=True):
            party[g] = field.add(party[g], share)
    return [field.decode_signed(field.add(field.add(a, b), c)) for a, b, c in zip(*parts, strict=True)]


def one_member(cells: int, turns: int) -> dict[str, float]:
    """Best of some turns, in milliseconds: a member's noise, shares and seals; a guardian's work for one member."""
    made = Round(2 * COHORTS, cells)
    values = made.vector()
    exact = np.array(values, dtype=np.int64)
    raw = made.envelope(1, values)
    share = made.opened(1, raw, 1)
    noise = OpenDPNoise()
    return {
        "cells": made.manifest.cell_count,
        "numbers": made.manifest.length,
        "envelope_bytes": len(raw),
        "noise_ms": _best(lambda: noise.draw(exact, made.manifest.share_scale), turns),
        "split_ms": _best(lambda: split(values, 2, 3), turns),
        "member_ms": _best(lambda: made.envelope(1, values), turns),
        "guardian_ms": _best(lambda: field.add(share, made.opened(1, raw, 1)), turns),
    }


def _best(work: Callable[[], object], turns: int) -> float:
    found = []
    for _ in range(turns):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return 1000 * min(found)


def _apart(members: int, cells: int) -> dict[str, float]:
    """A whole round in a process of its own."""
    command = [sys.executable, __file__, "--whole", str(members), str(cells)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def measured(*, largest: tuple[int, int], members: Sequence[int], cells: Sequence[int], turns: int) -> dict[str, Any]:
    """Everything that `sums.json` holds."""
    return {
        "machine": {"python": platform.python_version(), "cores": os.cpu_count(), "system": platform.system()},
        "parts": [one_member(count, turns) for count in cells],
        "by_members": [_apart(count, FIXED_CELLS) for count in members],
        "by_cells": [_apart(FIXED_MEMBERS, count) for count in cells],
        "largest": _apart(*largest),
    }


def show(found: dict[str, Any]) -> None:
    """Prints the tables."""
    console = Console(soft_wrap=True)
    parts = Table("cells", "numbers", "envelope, kB", "noise, ms", "member, ms", "guardian for a member, ms")
    for row in found["parts"]:
        parts.add_row(
            f"{row['cells']:,}", f"{row['numbers']:,}", f"{row['envelope_bytes'] / 1000:.0f}", f"{row['noise_ms']:.1f}",
            f"{row['member_ms']:.1f}", f"{row['guardian_ms']:.1f}",
        )  # fmt: skip
    console.print(parts)
    rounds = Table("members", "cells", "round, s", "peak, MB", "plain sum, s", "times the plain sum")
    for row in (*found["by_members"], *found["by_cells"], found["largest"]):
        rounds.add_row(
            str(row["members"]), f"{row['cells']:,}", f"{row['seconds']:.2f}", f"{row['peak_mb']:.0f}",
            f"{row['baseline_seconds']:.2f}", f"{row['ratio']:.1f}",
        )  # fmt: skip
    console.print(rounds)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--whole", nargs=2, type=int, metavar=("MEMBERS", "CELLS"), help="one round, here, as JSON")
    parser.add_argument("--write", action="store_true", help="keep the results and plots")
    asked = parser.parse_args()
    if asked.whole:
        print(json.dumps(whole(*asked.whole)))
        return
    found = measured(largest=LARGEST, members=MEMBERS, cells=CELLS, turns=5)
    show(found)
    if asked.write:
        (PLACE / "sums.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        write_plots(found, PLACE)


def write_plots(found: dict[str, Any], folder: Path) -> None:
    """Growth with members and with cells, the whole round beside the plain sum."""
    for name, over, fixed in (
        ("members", "by_members", f"{found['by_members'][0]['cells']:,} cells"),
        ("cells", "by_cells", f"{found['by_cells'][0]['members']} members"),
    ):
        lines = {
            "sealed shares, three guardians": [(row[name], row["seconds"]) for row in found[over]],
            "plain additive shares": [(row[name], row["baseline_seconds"]) for row in found[over]],
        }
        text = curve(f"A whole round by number of {name}, with {fixed}", name, "seconds", lines)
        (folder / f"sums-{name}.svg").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
