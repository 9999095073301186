# SPDX-License-Identifier: Apache-2.0
"""`windvane member ledger verify | export | rebuild`: is it whole, what a reviewer gets, what to do when it is gone.

Rules kept here:
* thin: the checks are `windvane_privacy.ledger_verify`, the extract is `windvane_privacy.ledger_export`, the new ledger
  `windvane_client.rebuild`;
* `verify` and `export` only read and need no network; the exit code is 0 only if everything holds;
* an extract holds no person and no count;
* `rebuild` says what it costs before it asks, and never replaces a ledger that is whole.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from windvane.terminal import Json, err, out, print_json, utc_now
from windvane_privacy.errors import LedgerDamaged

HERE = Path("windvane-member")
State = Annotated[Path, typer.Option("--state", help="Folder of this member.")]
app = typer.Typer(no_args_is_help=True, help="The ledger: check it, export it, make a lost one anew.")

BEFORE_REBUILD = (
    "Every round of yours in the public log will be charged to everybody in your organisation, and burned: the new "
    "ledger cannot know whom those draws were about. People whose cap is reached by that are left out from now on. "
    "persons_since.csv (staff id and attested first day) is the only way in for people hired later."
)
BEFORE_NEW_KEY = (
    "With another key nobody can be told from a newcomer. So every round so far counts for everybody, and what was "
    "collected of the open quarter is deleted and read again. If there is a backup of keys/k_org.key, use that instead."
)


@app.command()
def verify(state: State = HERE, as_json: Json = False) -> None:
    """Check file, triggers, chain and every entry's stored measurement. Needs no network; changes nothing."""
    from windvane.member_budget import manifests_of
    from windvane_client.state import MemberState
    from windvane_privacy.ledger_verify import verify_ledger

    opened = MemberState.open(state)
    with opened.ledger() as ledger:
        stages = verify_ledger(ledger, manifests_of(opened))
    if as_json:
        print_json(
            {
                "whole": all(stage.holds for stage in stages),
                "stages": [
                    {
                        "name": s.name,
                        "looked_at": s.looked_at,
                        "holds": s.holds,
                        "findings": [f.sentence for f in s.findings],
                    }
                    for s in stages
                ],
            }
        )
    else:
        for stage in stages:
            out.print(f"{'holds ' if stage.holds else 'BROKEN'}  {stage.name}: {stage.looked_at}.", markup=False)
            for finding in stage.findings:
                out.print(f"        {finding.sentence}", markup=False)
    failed = [stage.name for stage in stages if not stage.holds]
    if failed:
        raise LedgerDamaged(f"What does not hold: {', '.join(failed)}.")
    if not as_json:
        out.print("The ledger is whole.")


@app.command()
def export(
    to: Annotated[
        Path | None, typer.Option("--out", "-o", help="File to write, such as ledger.jsonl; default: print it.")
    ] = None,
    state: State = HERE,
) -> None:
    """Write one line for each charged round, for a reviewer: what it cost, and no person and no count."""
    from windvane.member_budget import manifests_of
    from windvane_client.state import MemberState
    from windvane_privacy.ledger_export import encode_spends, spends

    opened = MemberState.open(state)
    with opened.ledger() as ledger:
        if ledger.damage is not None:
            raise LedgerDamaged(ledger.damage)
        found = spends(ledger.rounds(), manifests_of(opened))
    raw = encode_spends(found)
    if to is None:
        typer.echo(raw, nl=False)
        return
    try:
        to.write_bytes(raw)
    except OSError:
        raise typer.BadParameter("this file cannot be written", param_hint="--out") from None
    err.print(f"{len(found)} charged rounds are written. Check them with: windvane audit budget {to}", markup=False)


@app.command()
def rebuild(
    state: State = HERE,
    key_lost: Annotated[
        bool, typer.Option("--key-lost", help="The ledger is whole, but keys/k_org.key is gone for good.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Answer yes to the question of this command.")] = False,
    as_json: Json = False,
) -> None:
    """Make a lost or damaged ledger anew from the public log: every round of yours there is charged and burned."""
    from windvane_client.https import HttpsCourier
    from windvane_client.rebuild import rebuild_ledger, refuse_whole, replace_person_key
    from windvane_client.state import MemberState

    opened = MemberState.open(state)
    if key_lost:
        _ask(BEFORE_NEW_KEY, "Is the key gone for good?", yes=yes)
        replace_person_key(opened, utc_now().date().isoformat())
        if as_json:
            print_json({"person_key": "replaced"})
        else:
            out.print("Done. Every round so far counts for everybody. Next: windvane member collect")
        return
    refuse_whole(opened)
    _ask(BEFORE_REBUILD, "Make the ledger anew?", yes=yes)
    settings = opened.settings
    with HttpsCourier(settings.address, ca=None if settings.ca is None else Path(settings.ca)) as courier:
        burned = rebuild_ledger(opened, courier, utc_now)
    if as_json:
        print_json({"burned": list(burned)})
        return
    out.print(f"The ledger is made anew. Charged to everybody and burned: {', '.join(burned) or 'no round'}.")


def _ask(before: str, question: str, *, yes: bool) -> None:
    if not yes:
        err.print(before, markup=False)
        typer.confirm(question, abort=True, err=True)
