# SPDX-License-Identifier: Apache-2.0
"""`windvane member policy show | set | adopt`: what this organisation accepts, and who may loosen it.

Rules kept here:
* thin: what is looser is `windvane_privacy.policy_change`, what is in force `windvane_client.in_force`;
* whoever may write the folder may tighten; loosening needs --i-am-the-privacy-officer, said by a person;
* every change is an entry in the ledger; nothing here connects to anything.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from windvane.terminal import Json, print_json, utc_now
from windvane_privacy.errors import LedgerDamaged

HERE = Path("windvane-member")
State = Annotated[Path, typer.Option("--state", help="Folder of this member.")]
Officer = Annotated[
    bool, typer.Option("--i-am-the-privacy-officer", help="I decide about privacy here, and loosening is meant.")
]
app = typer.Typer(no_args_is_help=True, help="What you accept: show it, tighten it, or loosen it on purpose.")


@app.command()
def show(state: State = HERE, as_json: Json = False) -> None:
    """Show the policy, whether the file is the one in force, and every change so far."""
    from windvane_client.in_force import looser_than_adopted
    from windvane_client.state import MemberState
    from windvane_privacy.policy_change import BY_HAND, shown

    opened = MemberState.open(state)
    policy = opened.policy
    with opened.ledger() as ledger:
        looser = looser_than_adopted(opened.folder, ledger, policy)
        changes = [{"day": day, "sha256": sha256} for day, sha256 in ledger.notes("policy")]
    facts = {"policy": shown(policy), "loosened": None if looser is None else list(looser), "changes": changes}
    if as_json:
        print_json(facts)
        return
    console, values = Console(highlight=False), shown(policy)
    table = Table("field", "value", "", box=SIMPLE_HEAD)
    for name, value in values.items():
        if name != BY_HAND:
            table.add_row(name, escape(str(value)), "LOOSER than adopted" if looser and name in looser else "")
    for one in policy.guardians:
        table.add_row("guardian", escape(f"{one.name} ({one.group})"), one.identity[:16])
    console.print(table)
    if looser:
        console.print("The file is looser than what was adopted, so nothing new is approved or drawn.")
    console.print(f"Adopted: {', '.join(one['day'] for one in changes) or 'not yet, at the next start'}.")


@app.command("set")
def set_(
    field: Annotated[str, typer.Argument(metavar="FIELD", help="A field of policy.toml.")],
    value: Annotated[str, typer.Argument(metavar="VALUE", help='Such as 9/512, 40, or "completion,switch_away".')],
    state: State = HERE,
    officer: Officer = False,
    as_json: Json = False,
) -> None:
    """Change one field of policy.toml and adopt it. Tightening needs no flag."""
    from windvane_privacy.policy_change import set_field

    raw = _raw(state)
    _adopt(state, set_field(raw, field, value), officer=officer, as_json=as_json)


@app.command()
def adopt(state: State = HERE, officer: Officer = False, as_json: Json = False) -> None:
    """Put a policy.toml that was edited by hand in force."""
    _adopt(state, _raw(state), officer=officer, as_json=as_json)


def _adopt(state: Path, raw: bytes, *, officer: bool, as_json: bool) -> None:
    from windvane_client.in_force import adopt as adopt_text
    from windvane_client.state import MemberState

    opened = MemberState.open(state)
    with opened.ledger() as ledger:
        if ledger.damage is not None:
            raise LedgerDamaged(ledger.damage)
        looser = adopt_text(opened.folder, ledger, raw, utc_now().date().isoformat(), meant=officer)
    if as_json:
        print_json({"loosened": list(looser)})
    else:
        typer.echo(f"Adopted and noted in the ledger. Loosened: {', '.join(looser) or 'nothing'}.")


def _raw(state: Path) -> bytes:
    from windvane_client.state import MemberState
    from windvane_privacy.errors import PolicyMissing
    from windvane_privacy.policy import MAX_POLICY_BYTES

    try:
        with (MemberState.open(state).folder / "policy.toml").open("rb") as file:
            return file.read(MAX_POLICY_BYTES + 1)
    except OSError:
        raise PolicyMissing from None
