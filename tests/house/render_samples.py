# SPDX-License-Identifier: Apache-2.0
"""Renders docs/sources/samples.md from the readers' runs: `python tests/house/render_samples.py FOLDER` after a change.

Rules kept here:
* every line comes from a run of the command that members use, beside the values that were worked out by hand;
* names and results only: nothing of what stands in a log is copied.
"""

from __future__ import annotations

import io
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from windvane.main import run

PAGE = Path(__file__).resolve().parents[2] / "docs" / "sources" / "samples.md"
HEAD = """\
# What the readers say of recorded logs

For each log below somebody worked out by hand what a right reader reports. This table is rendered from runs of
`windvane member preview LOG --source SOURCE --json` over the same logs, and a test fails when it is out of date. The
logs are not part of this repository: they come from public ones under their own licences, without their texts, names
and paths. `real` logs are recordings, `fixture` ones another project's test data, `generated` ones a real program's
output, `SYNTHETIC` ones were made by hand.

No rate may be read off this page: these logs are a handful of sessions of a few developers and test suites. None of
them reaches a vote; logs that do are in `tests/client/fixtures` and go all the way in
`tests/client/test_source_to_vote.py`.

## Read

*Rows*: read, of which rejected, of unknown type, of another source. *-* means: these rows cannot tell, so nobody
knows; it is never 0. *Values*: how many values equal those worked out by hand, and the doubtful ones, on which a
careful reader could differ; where one differs, it is named.
"""
REFUSED = """
## Not read

These are refused with a reason, the rest of a folder is read all the same ([refused sources](refused.md)).

| source | log | reason | instead |
|---|---|---|---|
"""


def page(samples: Path) -> str:
    """The page, from the samples in this folder."""
    read, refused, equal, all_values = [], [], 0, 0
    for path in sorted(samples.rglob("*.expected.json")):
        expected = json.loads(path.read_text("utf-8"))
        answer = _preview([path.with_name(name) for name in expected["sample"]], expected["source"])
        name = f"`{path.name.removesuffix('.expected.json')}`"
        if answer["observed"] is None:
            why = answer["refused"]
            refused.append(f"| {expected['source']} | {name} | {why['reason']} | {why['instead']} |")
        else:
            told = _results(answer["observed"])
            differ, values = _compared(answer, expected)
            equal, all_values = equal + values - len(differ), all_values + values
            told.append(_values(differ, values, expected["doubtful"]))
            read.append(f"| {expected['source']} | {name} | {' | '.join(told)} |")
    head = "| source | log | rows | calls | episodes | switches | tools | faults | votes | values |\n"
    table = head + "|---|---|---|---|---|---|---|---|---|---|\n" + "\n".join(sorted(read)) + "\n"
    total = f"{equal} of {all_values} values of {len(read)} logs are as worked out by hand.\n"
    return f"{HEAD}\n{total}\n{table}{REFUSED}" + "\n".join(sorted(refused)) + "\n"


def _preview(paths: list[Path], source: str) -> dict[str, Any]:
    out = io.StringIO()
    with redirect_stdout(out):
        run(["member", "preview", *map(str, paths), "--source", source, "--now", "2027-06-01T00:00:00Z", "--json"])
    answer: dict[str, Any] = json.loads(out.getvalue())
    return answer


def _results(observed: Mapping[str, Any]) -> list[str]:
    rows, calls, switches = observed["rows"], observed["calls"], observed["switches"]
    others = ", ".join(f"{rows[name]} {name}" for name in ("rejected", "unknown", "foreign") if rows[name])
    tools = observed["tools"]
    return [
        f"{rows['read']}" + (f" ({others})" if others else ""),
        _counted({"answered": calls["answered"], "on the side": calls["side_answered"], "failed": calls["failed"]}),
        _counted(None if observed["completion"] is None else Counter(observed["completion"])),
        _counted(switches["by_cause"]),
        _counted(tools["outcomes"]),
        _counted(observed["infra"]),
        _counted(observed["blind"]),
    ]


def _counted(counts: Mapping[str, int | None] | None) -> str:
    """Words of closed lists with their counts; "-" where nobody knows, 0 where there is none."""
    if counts is None or (counts and all(n is None for name, n in counts.items() if name != "on the side")):
        return "-"
    parts = [f"{n} {name.replace('_', ' ')}" for name, n in sorted(counts.items()) if n]
    return ", ".join(parts) or "0"


def _compared(answer: Mapping[str, Any], expected: Mapping[str, Any]) -> tuple[list[str], int]:
    """(values that differ, how many there are)."""
    got, wanted = dict(_leaves(answer["observed"])), dict(_leaves(expected["observed"]))
    return sorted(key for key in got | wanted if got.get(key) != wanted.get(key)), len(wanted)


def _values(differ: Sequence[str], values: int, doubtful: Sequence[str]) -> str:
    told = f"{values - len(differ)} of {values} equal"
    for word, keys in (("differ", differ), ("doubtful", doubtful)):
        told += f"; {word}: " + ", ".join(f"`{key}`" for key in keys) if keys else ""
    return told


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key, one in value.items():
            yield from _leaves(one, f"{name}.{key}" if name else key)
    else:
        yield name, value


if __name__ == "__main__":
    PAGE.write_text(page(Path(sys.argv[1])), encoding="utf-8")
    print("wrote", PAGE)
