# SPDX-License-Identifier: Apache-2.0
"""How long reading a member's logs takes, next to the least that it can take and next to other programs.

Rules kept here:
* all contenders read the same files in turns of one run, so that a busy machine slows them alike; the best turn counts;
* results are ratios to the floor, in wall time and in processor time; nothing is asserted about seconds;
* the home is made up from an explicit seed, and its rows are sized like recorded ones (`home.py`); a second one with
  rows of 0.5 KB shows the worst case, where the work per row counts most;
* `readers.json` and `memory.svg` hold the last full run, with facts of the machine and without a date.

Run `python3 dev.py bench`, with `--megabytes N` for another size, `--rounds N` for more turns, `--memory 100 500 2000`
for the memory plot, `--write` to keep the results beside this file.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from contenders import CONTENDERS, Contender, NotRun, size_of, transcripts
from home import write_dense_home, write_home
from memory import peak_of_preview, plot
from rich.console import Console
from rich.table import Table

from windvane_client.file_workers import cores

PLACE = Path(__file__).resolve().parent
FLOOR = "floor"


@dataclass(frozen=True, slots=True)
class Result:
    """The best turn of one contender. `wall`, `cpu`: seconds, `cpu` of all its processes; `ratio`: wall, to the
    floor's; `not_run`: why there is none."""

    rows: int = 0
    wall: float = 0.0
    cpu: float = 0.0
    ratio: float = 0.0
    cpu_ratio: float = 0.0
    not_run: str | None = None


def measure(
    folder: Path, rounds: int, contenders: Mapping[str, Contender], *, quiet: bool = False
) -> dict[str, Result]:
    """Every contender, the best of `rounds` turns each."""
    best: dict[str, tuple[float, float, int]] = {}
    missing: dict[str, str] = {}
    for turn in range(rounds):
        for name, contender in contenders.items():
            if name in missing:
                continue
            if not quiet:
                _say(f"turn {turn + 1} of {rounds}: {name}")
            wall, cpu = time.perf_counter(), _cpu()
            try:
                rows = contender(folder)
            except NotRun as why:
                missing[name] = f"not run: {why}"
                continue
            spent = time.perf_counter() - wall, _cpu() - cpu
            if not rows:
                sys.exit(f"'{name}' found nothing to do.")
            known = best.get(name, (*spent, rows))
            best[name] = min(spent[0], known[0]), min(spent[1], known[1]), rows
    least = best[FLOOR]
    return {
        name: Result(not_run=missing[name])
        if name in missing
        else Result(
            best[name][2],
            round(best[name][0], 3),
            round(best[name][1], 3),
            round(best[name][0] / least[0], 2),
            round(best[name][1] / least[1], 2),
        )
        for name in contenders
    }


def _cpu() -> float:
    """Processor seconds of this process and of those that it started and that have ended."""
    own, others = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


def report(folder: Path, results: Mapping[str, Result]) -> dict[str, object]:
    """What `readers.json` holds of one home."""
    files = transcripts(folder)
    size, rows = size_of(folder), results[FLOOR].rows
    return {
        "megabytes": round(size / 1e6),
        "files": len(files),
        "rows": rows,
        "bytes_a_row": round(size / rows),
        "contenders": {name: asdict(result) for name, result in results.items()},
    }


def machine() -> dict[str, object]:
    """Facts of this machine that change the numbers. `load`: of other work, for each core; above 0.5, wall times of
    several processes say little."""
    return {
        "cores": cores(),
        "load": round(os.getloadavg()[0] / cores(), 1),
        "machine": platform.machine(),
        "system": sys.platform,
        "python": platform.python_version(),
    }


def show(console: Console, title: str, results: Mapping[str, Result]) -> None:
    """The table of one home."""
    table = Table("contender", "wall s", "to floor", "cpu s", "cpu to floor", "rows a second", title=title)
    for column in table.columns[1:]:
        column.justify = "right"
    for name, one in results.items():
        if one.not_run is not None:
            table.add_row(name, one.not_run)
            continue
        speed = f"{one.rows / one.wall:,.0f}" if one.rows > 1 else ""
        table.add_row(name, f"{one.wall:.2f}", f"{one.ratio:.2f}", f"{one.cpu:.2f}", f"{one.cpu_ratio:.2f}", speed)
    console.print(table)


def peaks(sizes: Sequence[int]) -> dict[int, float]:
    """Peak memory (MB) of a preview by size of the home (MB)."""
    found = {}
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="windvane-bench-") as place:
            _say(f"memory: a home of {size} MB")
            found[size] = peak_of_preview(write_home(Path(place), size))
    return found


def _say(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description="What reading logs costs, as ratios to decoding alone.")
    parser.add_argument("--megabytes", type=float, default=500, help="size of the made-up home (default: 500)")
    parser.add_argument("--dense", type=float, default=50, help="size of the home of small rows (default: 50)")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each, the best counts (default: 3)")
    parser.add_argument("--memory", type=int, nargs="*", default=[], help="sizes of the memory plot, MB")
    parser.add_argument("--write", action="store_true", help="keep the results beside this file")
    options = parser.parse_args()
    console = Console(width=110)
    kept: dict[str, object] = {"what": "The last full run of benchmarks/readers.py.", "machine": machine()}
    homes = (("recorded sizes", write_home, options.megabytes), ("small rows", write_dense_home, options.dense))
    for name, write, megabytes in homes:
        with tempfile.TemporaryDirectory(prefix="windvane-bench-") as place:
            _say(f"writing a home of {megabytes:g} MB")
            folder = write(Path(place), megabytes)
            results = measure(folder, options.rounds, CONTENDERS)
            kept[name] = facts = report(folder, results)
            show(console, f"{name}: {facts['megabytes']} MB, {facts['rows']:,} rows", results)
    if options.memory:
        found = peaks(options.memory)
        kept["peak memory of a preview, MB"] = {str(size): peak for size, peak in found.items()}
        for size, peak in found.items():
            console.print(f"peak memory of a preview, home of {size} MB: {peak:.0f} MB")
        if options.write:
            (PLACE / "memory.svg").write_text(plot(found), encoding="utf-8")
    if options.write:
        (PLACE / "readers.json").write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
