# SPDX-License-Identifier: Apache-2.0
"""`windvane member notice` and `forget`: what the people whose logs are read are told, and how one of them leaves.

Rules kept here:
* thin: the notice is `windvane_client.notice`, the deletion `windvane_client.forget`;
* neither connects to anything, neither shows a person or a count;
* what `forget` prints is the same whether or not anything was collected about the person.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from windvane.terminal import err

HERE = Path("windvane-member")
LONGEST_STAFF_ID = 256
"""Bytes, as in people.toml."""
State = Annotated[Path, typer.Option("--state", help="Folder of this member.")]

BEFORE = (
    "This deletes the person's events of the open quarter and which models they used before, on this machine. "
    "The ledger is not changed: rounds that were drawn stay charged, and what was sent stays sent."
)
AFTER = """\
Done. Nothing about this staff id is left in the collection.
The ledger's charges stay, and so does what earlier rounds drew and sent.
Logs that change are read again: whoever shall stay out goes under [exclude] in people.toml too.
"""


def notice(
    state: State = HERE,
    out: Annotated[Path | None, typer.Option("--out", help="File to write; default: print it.")] = None,
) -> None:
    """Print a page for staff and works council: what is read, kept and sent here, and how to opt out."""
    from windvane_client.notice import notice as text_of
    from windvane_client.state import MemberState

    opened = MemberState.open(state)
    text = text_of(opened.settings, opened.policy, opened.people, home=Path.home())
    if out is None:
        typer.echo(text, nl=False)
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError:
        raise typer.BadParameter("this file cannot be written", param_hint="--out") from None
    err.print("The notice is written. Read it once before you hand it out.", markup=False)


def forget(
    staff_id: Annotated[str, typer.Argument(metavar="STAFF_ID", help="The person, as named in people.toml.")],
    state: State = HERE,
    yes: Annotated[bool, typer.Option("--yes", help="Answer yes to the question of this command.")] = False,
) -> None:
    """Delete one person's collected events at once; the ledger's charge stays. Staying out needs [exclude] too."""
    from windvane_client.forget import forget_person
    from windvane_client.people import staff_id_text
    from windvane_client.state import MemberState

    text = staff_id_text(staff_id)
    if not text or len(text.encode("utf-8", "surrogatepass")) > LONGEST_STAFF_ID:
        raise typer.BadParameter("a staff id has 1 to 256 bytes", param_hint="STAFF_ID")
    opened = MemberState.open(state)
    if not yes:
        err.print(BEFORE, markup=False)
        typer.confirm("Delete what was collected about this person?", abort=True, err=True)
    forget_person(opened, text)
    typer.echo(AFTER, nl=False)
