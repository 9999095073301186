# SPDX-License-Identifier: Apache-2.0
"""`windvane coordinator bundle` and `receive`: members and guardians that have no network, or none to us.

Rules kept here:
* thin: what a bundle holds and who takes a parcel is decided in `windvane_server.carried`;
* each parcel is named with what became of it, in the file's order; a refusal is shown and carried back.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from windvane.carried import read_carried, write_carried
from windvane.terminal import Json, out, print_json
from windvane_privacy.errors import WindvaneError

if TYPE_CHECKING:
    from windvane_server.carried import Taken

HERE = Path("windvane-coordinator")
State = Annotated[Path, typer.Option("--state", help="Folder of this coordinator.", show_default=True)]


def bundle(
    rounds: Annotated[list[str] | None, typer.Argument(metavar="[ROUND]...", help="Default: every round.")] = None,
    *,
    target: Annotated[Path, typer.Argument(metavar="FILE", help="The bundle to write.")],
    state: State = HERE,
    envelopes: Annotated[
        bool, typer.Option("--envelopes", help="Add the sealed envelopes of closed rounds, for a guardian.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Write what members and guardians without a network read: the federation, the log, the rounds."""
    from windvane_server.carried import bundle as make
    from windvane_server.coordinator import Coordinator

    coordinator = Coordinator(state)
    try:
        raw = make(coordinator, rounds or [], envelopes=envelopes)
    finally:
        coordinator.close()
    write_carried(target, raw)
    if as_json:
        print_json({"bundle": str(target), "bytes": len(raw)})
        return
    out.print(f"Written: {target} ({len(raw):,} bytes). It holds nothing that is not public or sealed.", markup=False)


def receive(
    carried: Annotated[Path, typer.Argument(metavar="FILE", help="What a member or a guardian handed over.")],
    state: State = HERE,
    answer: Annotated[Path | None, typer.Option("--answer", help="Write the answers here, to carry back.")] = None,
    as_json: Json = False,
) -> None:
    """Take in a carried file as if it had come over https, and write the answers to carry back."""
    from windvane_server.carried import receive as take
    from windvane_server.coordinator import Coordinator

    raw = read_carried(carried)
    coordinator = Coordinator(state)
    try:
        received = take(coordinator, raw)
    finally:
        coordinator.close()
    if answer is not None:
        write_carried(answer, received.answers)
    rows = [_row(one) for one in received.taken]
    if as_json:
        print_json({"parcels": [{"kind": kind, "round": name, "said": said} for kind, name, said in rows]})
        return
    for kind, name, said in rows:
        out.print(f"{kind} {name}: {said}".replace("  ", " "), markup=False)
    if answer is not None:
        out.print(f"Answers: {answer}. Carry this file back; it holds the newest log too.", markup=False)


def _row(one: Taken) -> tuple[str, str, str]:
    from windvane_privacy.file_courier import refusal

    said = "taken"
    if one.answer is None:
        said = "left, because the parcel before it was refused"
    elif one.answer.problem is not None:
        problem: WindvaneError = refusal(one.answer)
        said = f"refused, {type(problem).__name__.rstrip('_')}: {problem.sentence()}"
    return one.parcel.kind, one.parcel.round_id, said
