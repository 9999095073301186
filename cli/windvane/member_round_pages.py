# SPDX-License-Identifier: Apache-2.0
"""What `rehearse`, `preview --drawn` and `preview --after` print.

Rules kept here:
* facts are plain values first (`--json` prints them), the layout comes after;
* the rehearsal says in every part that its people are invented;
* a cell with fewer than ten people shows no count, on the screen and in the JSON alike.
"""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from windvane_privacy import canonical
from windvane_privacy.canonical import JsonValue
from windvane_privacy.layout import Layout
from windvane_privacy.ledger_schema import RoundEntry
from windvane_privacy.manifest import D_SCALE, T_SCALE, Manifest
from windvane_privacy.own import LEAST_PEOPLE, OwnCounts
from windvane_privacy.rehearsal import Rehearsal

TOO_FEW = "too few"


def _label(manifest: Manifest, family: str) -> str:
    return manifest.catalogue.get(family).label


# --- rehearsal --------------------------------------------------------------------------------------------------------


def rehearsal_facts(found: Rehearsal, manifest: Manifest) -> dict[str, JsonValue]:
    """What a rehearsal did."""
    return {
        "round": manifest.round,
        "invented": True,
        "cells": [
            {
                "signal": one.cell.signal.value,
                "kind": one.cell.kind,
                "a": _label(manifest, one.cell.a),
                "b": _label(manifest, one.cell.b),
                "people": list(one.people),
                "exact": _exact(one.people, manifest),
                "drawn": list(one.drawn),
                "opened": list(one.opened),
            }
            for one in found.cells
        ],
        "integers": manifest.length,
        "envelope_bytes": found.envelope_bytes,
        "commit_hash": found.commit_hash,
        "opened_by": [list(pair) for pair in found.pairs],
        "same": found.same,
    }


def show_rehearsal(console: Console, facts: dict[str, JsonValue]) -> None:
    """The page of a rehearsal."""
    console.print(f"[bold]Rehearsal with the agreement of {facts['round']}[/]: INVENTED people, keys made for this run")
    console.print("Nothing of your data was read. Nothing was charged, stored or sent.\n", style="dim")
    table = Table("invented comparison", "toward each", "bounded", "with noise", "opened again", box=SIMPLE_HEAD)
    for row in facts["cells"]:
        a, b = row["people"]
        table.add_row(
            escape(f"{row['a']} and {row['b']}"),
            f"{a} and {b}",
            *(f"{one[0]} and {one[1]}" for one in (row["exact"], row["drawn"], row["opened"])),
        )
    console.print(table)
    opened = "; ".join(" and ".join(map(str, pair)) for pair in facts["opened_by"])
    console.print(f"{facts['integers']} numbers in {facts['envelope_bytes']:,} bytes, like every real envelope.")
    if facts["same"]:
        console.print(f"Opened by guardians {opened}: each time exactly the numbers with noise, and never without.")
    else:
        console.print("[bold red]What was opened is not what was drawn.[/] Do not take part; report this.")
    console.print(
        "A real envelope is sealed to the guardians' keys, so you could not open it again: a rehearsal can show the "
        "path, not your own envelope.",
        style="dim",
    )


def _exact(people: tuple[int, int], manifest: Manifest) -> list[int]:
    a, b = people
    C = manifest.bounds.C
    return [D_SCALE * max(-C, min(C, a - b)), T_SCALE * min(C, a + b)]


# --- a drawn round ----------------------------------------------------------------------------------------------------


def receipt_facts(entry: RoundEntry) -> dict[str, JsonValue]:
    """What the log answered, beside the hash that was stored at the draw."""
    accepted = None
    if entry.acceptance is not None:
        accepted = canonical.decode(entry.acceptance)["hash"]
    return {
        "receipt": entry.receipt is not None,
        "accepted_hash": accepted,
        "hash_is_the_same": None if accepted is None else accepted == entry.commit_hash,
        "s_i": entry.s_i,
        "versions": entry.versions,
    }


def show_receipt(console: Console, facts: dict[str, JsonValue]) -> None:
    """Hash at the draw and hash in the log, one under the other."""
    console.print("[bold]In the log[/]")
    console.print(f"  drawn here   {facts['commit_hash']}", markup=False)
    if facts["accepted_hash"] is not None:
        same = "the same" if facts["hash_is_the_same"] else "NOT the same: report this"
        console.print(f"  accepted     {facts['accepted_hash']}  ({same})", markup=False)
    elif facts["receipt"]:
        console.print("  committed: the receipt for this hash is stored here; not accepted yet", markup=False)
    else:
        console.print("  nothing yet", markup=False)


# --- after the end ----------------------------------------------------------------------------------------------------


def after_facts(entry: RoundEntry, manifest: Manifest, counts: OwnCounts, *, charged: int) -> dict[str, JsonValue]:
    """Counts and noisy integers of a round that has ended. `charged`: people the round is charged to."""
    noisy = entry.noisy
    cells: list[JsonValue] = []
    for place, cell in enumerate(Layout(manifest).cells):
        a, b = counts.cells[place]
        shown = a + b >= LEAST_PEOPLE
        cells.append({
            "signal": cell.signal.value, "kind": cell.kind,
            "a": _label(manifest, cell.a), "b": _label(manifest, cell.b),
            "people": [a, b] if shown else None,
            "bounded": _exact((a, b), manifest) if shown else None,
            "noisy": None if noisy is None else [noisy[2 * place], noisy[2 * place + 1]],
        })  # fmt: skip
    over_cap = None if entry.everyone else max(0, counts.people - charged)
    return {
        "round": entry.round_id,
        "state": entry.state.value,
        "commit_hash": entry.commit_hash,
        "people": counts.people if counts.people >= LEAST_PEOPLE else None,
        "left_out": {"over_their_cap": over_cap, "malformed_rows": counts.malformed},
        "cells": cells,
    }


def show_after(console: Console, facts: dict[str, JsonValue]) -> None:
    """The page after the end of a round."""
    people = TOO_FEW if facts["people"] is None else f"{facts['people']:,}"
    console.print(f"[bold]Round {facts['round']}[/] is {facts['state']}. These numbers are for this screen only.")
    console.print(f"People with outcomes: {people}. ", end="")
    left = facts["left_out"]
    over = "unknown" if left["over_their_cap"] is None else f"{left['over_their_cap']:,}"
    console.print(f"Left out: {over} over their lifetime cap, {left['malformed_rows']:,} with malformed rows.\n")
    table = Table("comparison", "toward each", "bounded", "as it left", box=SIMPLE_HEAD)
    empty = 0
    for row in facts["cells"]:
        if row["people"] is None:
            empty += 1
            continue
        noisy = "not drawn here" if row["noisy"] is None else f"{row['noisy'][0]} and {row['noisy'][1]}"
        table.add_row(
            escape(f"{row['signal'].replace('_', ' ')}, {row['kind']}: {row['a']} and {row['b']}"),
            f"{row['people'][0]} and {row['people'][1]}",
            f"{row['bounded'][0]} and {row['bounded'][1]}",
            noisy,
        )
    console.print(table)
    console.print(
        f"{empty} comparisons with fewer than {LEAST_PEOPLE} people are not shown; they left with noise alike."
    )
    console.print(
        "People are counted anew from the frozen outcomes, with fresh draws: close to what was drawn, not equal; the "
        "exact numbers are never stored. With this display counts and noisy numbers are deleted here.",
        style="dim",
    )
