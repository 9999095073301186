# SPDX-License-Identifier: Apache-2.0
"""What reading a member's logs costs, step by step, next to the least that decoding them can cost.

Rules kept here:
* all steps run on the same files in one process, in turns, so that a busy machine slows them alike; the best turn
  counts;
* results are ratios to the floor, a loop that only decodes the same fields; nothing is asserted about seconds;
* peak memory is measured in a process of its own, for two sizes of home: it must not grow with the home;
* the home is made up by the demo's writer from an explicit seed.

Run `python3 dev.py bench`, with `--megabytes N` for another size and `--rounds N` for more turns.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from windvane.demo.claude_logs import write_person
from windvane.demo.world import Quarter, people_of, plan_work
from windvane_client.events import AnyEvent
from windvane_client.evidence import micros
from windvane_client.preview import plan_source, read, summed
from windvane_client.preview_own import own_work
from windvane_client.preview_setup import no_setup
from windvane_client.readers import SampleFacts, context_for, reader
from windvane_client.readers import claude_rows as rows
from windvane_client.readers.files import open_log
from windvane_client.store import EventStore

NOW = datetime(2027, 1, 15, tzinfo=UTC)
SOURCE = "claude_code"
Step = Callable[[Path], int]
"""Does one step on a home; returns the number of rows or events, so that no step can skip the work unnoticed."""


def write_home(home: Path, megabytes: float, seed: int = 1) -> Path:
    """Transcripts of one person below `home` until they fill `megabytes`; returns their folder."""
    rng = random.Random(seed)
    person = people_of(0, 1, seed)[0]
    quarter = Quarter.before(NOW)
    folder = home / ".claude" / "projects"
    while _size(folder) < megabytes * 1_000_000:
        write_person(home, person, plan_work(person, quarter, rng), rng)
    return folder


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in _files(folder))


def _files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.jsonl"))


# --- steps ------------------------------------------------------------------------------------------------------------


def floor(folder: Path) -> int:
    """Decodes the fields that the reader reads, and does nothing with them."""
    decode = msgspec.json.Decoder(rows.Row).decode
    count = 0
    for path in _files(folder):
        with path.open("rb") as file:
            for line in file:
                count += 1
                try:
                    row = decode(line)
                except msgspec.DecodeError:
                    continue
                if row.message is not None and bytes(memoryview(row.message.content)[:1]) == b"[":
                    rows.BLOCKS.decode(row.message.content)
    return count


def _events(folder: Path) -> Iterator[AnyEvent]:
    setup, facts = no_setup(), SampleFacts(SOURCE)
    for path in _files(folder):
        context = context_for(path, ids=setup.ids, catalogue=setup.catalogue, now=micros(NOW), facts=facts)
        context.final = True
        with open_log(path) as stream:
            yield from reader(SOURCE).read(stream, context)


def reading(folder: Path) -> int:
    """The reader alone: rows become events, which are dropped."""
    return sum(1 for _ in _events(folder))


def storing(folder: Path) -> int:
    """The reader and the store, and the merge of copies."""
    with EventStore.temporary() as store:
        store.add(_events(folder))
        return sum(store.counts().values())


def previewing(folder: Path) -> int:
    """The whole way of a preview: read, store, episodes, signals, outcomes, own votes."""
    setup = no_setup()
    with EventStore.temporary() as store:
        sample = plan_source(SOURCE, [folder], setup)
        read([sample], store, setup, now=NOW)
        summed(store, [sample], setup, NOW)
        own_work(store, setup, micros(NOW))
        return sample.rows.read


STEPS: dict[str, Step] = {
    "decode only (floor)": floor,
    "reader": reading,
    "reader + store": storing,
    "whole preview": previewing,
}


# --- measuring --------------------------------------------------------------------------------------------------------


def measure(folder: Path, rounds: int) -> dict[str, float]:
    """CPU seconds of each step: the best of `rounds` turns."""
    best: dict[str, float] = {}
    for turn in range(rounds):
        for name, step in STEPS.items():
            _progress(f"turn {turn + 1} of {rounds}: {name}")
            begun = time.process_time()
            if not step(folder):
                sys.exit(f"The step '{name}' found nothing to do.")
            spent = time.process_time() - begun
            best[name] = min(spent, best.get(name, spent))
    return best


def peak_of_preview(folder: Path) -> float | None:
    """Largest resident memory (MB) of one preview in a fresh process; None where the system does not tell it."""
    done = subprocess.run(
        [sys.executable, __file__, "--peak-of", str(folder)], capture_output=True, text=True, check=True
    )
    return float(done.stdout) if done.stdout.strip() else None


def _own_peak() -> float | None:
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    found = [line.split()[1] for line in status.read_text("utf-8").splitlines() if line.startswith("VmHWM")]
    return int(found[0]) / 1024


def _progress(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="What reading logs costs, as ratios to decoding alone.")
    parser.add_argument("--megabytes", type=float, default=50, help="size of the made-up home (default: 50)")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each step, the best counts (default: 3)")
    parser.add_argument("--peak-of", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak_of is not None:
        previewing(options.peak_of)
        peak = _own_peak()
        print("" if peak is None else peak)
        return
    with tempfile.TemporaryDirectory(prefix="windvane-bench-") as place:
        _progress(f"writing a home of {options.megabytes:g} MB")
        large = write_home(Path(place, "large"), options.megabytes)
        small = write_home(Path(place, "small"), options.megabytes / 10)
        best = measure(large, options.rounds)
        count = floor(large)
        print(f"{count:,} rows in {len(_files(large))} files, {_size(large) / 1e6:.0f} MB\n")
        print(f"{'step':24}{'ratio':>8}{'rows a CPU second':>20}")
        least = best["decode only (floor)"]
        for name, spent in best.items():
            print(f"{name:24}{spent / least:8.2f}{count / spent:20,.0f}")
        print("\npeak memory of a preview")
        for folder in (small, large):
            peak = peak_of_preview(folder)
            told = "not told by this system" if peak is None else f"{peak:.0f} MB"
            print(f"  home of {_size(folder) / 1e6:4.0f} MB: {told}")


if __name__ == "__main__":
    main()
