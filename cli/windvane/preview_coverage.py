# SPDX-License-Identifier: Apache-2.0
"""The page of `windvane member preview`: coverage by week, and the warnings that need a person.

Rules kept here:
* it shows counts that were made before, and decides nothing;
* with several people, what few people stand behind reads "too few", as it comes;
* a warning says what is so, why it matters and what to do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from windvane_client.attention import mass_move, warnings_of
from windvane_client.coverage import COUNTED, NO_ROWS, OUTCOMES, TOO_FEW, Coverage
from windvane_client.noticed import Noticed

LATEST_WEEKS = 8
NAMES = {
    "events": "rows of work", "prompts": "prompts, by who wrote them", "calls": "answers, by model",
    "days": "days", "gaps": "not seen", "episodes": "pieces of work, by end", "closes": "pieces of work, by close",
    "changes": "changes of model, by cause", "tools": "tool calls, by outcome", "infra": "faults, by result",
}  # fmt: skip
WORDS = {
    "interactive": "a person", "automation": "a program", "relay": "a relay", "unknown": "not said",
    "listed": "on the list", "other": "not on the list", NO_ROWS: "without any row",
}  # fmt: skip
_COLUMNS = (("prompts", "prompts"), ("calls", "answers"), ("episodes", "pieces of work"), ("tools", "tool calls"))


@dataclass(frozen=True, slots=True)
class Seen:
    """What the weeks hold, what reading noticed, and the words for what could not be seen."""

    cover: Coverage
    noticed: Noticed
    gaps: Sequence[str] = ()


def show_coverage(out: Console, cover: Coverage) -> None:
    """The latest weeks of each program, and below it what its rows held."""
    weeks = cover.weeks()
    if not weeks:
        return
    table = Table(box=box.SIMPLE_HEAD, header_style="dim", pad_edge=False, show_edge=False)
    names = ("program", "week", *(["people"] if cover.people > 1 else []), *(name for _, name in _COLUMNS))
    for name in (*names, "days without rows"):
        table.add_column(name, justify="left" if name in ("program", "week") else "right")
    latest = sorted(weeks, key=lambda place: place[1])[-LATEST_WEEKS:]
    for recorder, week in sorted(latest):
        cells = [total(cover.words(recorder, what, week)) for what, _ in _COLUMNS]
        people = [cover.people_of(recorder, week)] if cover.people > 1 else []
        days = total(cover.words(recorder, "days", week))
        table.add_row(recorder, week or "no time", *map(_text, (*people, *cells, days)))
    out.print()
    out.print(
        Padding(Text(f"By week (UTC), the latest {LATEST_WEEKS}; all of them with --json", style="dim"), (0, 0, 0, 3))
    )
    out.print(Padding(table, (0, 0, 0, 3)))
    for recorder in dict.fromkeys(recorder for recorder, _ in weeks):
        for what in (*COUNTED, *OUTCOMES):
            counts = cover.words(recorder, what)
            if counts:
                out.print(Padding(Text(f"{recorder}, {NAMES[what]}: {_listed(what, counts)}."), (0, 0, 0, 3)))


def show_warnings(out: Console, seen: Seen, *, open_round: bool) -> None:
    """What needs a person; nothing where nothing does. While a round is open, nothing about changes of model."""
    found = warnings_of(seen.noticed, numbers=True)
    if not open_round:
        found += mass_move(seen.cover.moves, seen.cover.people)
    if not found:
        return
    out.print()
    out.print(Padding(Text("This needs a person", style="bold yellow"), (0, 0, 0, 3)))
    for one in found:
        out.print(Padding(Text.assemble((one.what, "bold"), f" {one.why} {one.do}"), (0, 0, 0, 3)))


def total(counts: Mapping[str, int | str]) -> int | str:
    """The sum of counts; "too few" where one of them is hidden, since the others would tell it."""
    numbers = [n for n in counts.values() if isinstance(n, int)]
    return sum(numbers) if len(numbers) == len(counts) else TOO_FEW


def _text(count: int | str) -> str:
    return f"{count:,}" if isinstance(count, int) else count


def _listed(what: str, counts: Mapping[str, int | str]) -> str:
    plain = what in ("prompts", "calls", "days")
    return ", ".join(f"{WORDS.get(w, w) if plain else w.replace('_', ' ')} {_text(n)}" for w, n in counts.items())
