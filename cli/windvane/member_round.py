# SPDX-License-Identifier: Apache-2.0
"""`windvane member refuse`, `rehearse`, `preview --drawn` and `preview --after`: a round before and after its numbers.

Rules kept here:
* thin: the stop is `windvane_client.agent`, the rehearsal `windvane_privacy.rehearsal`;
* no count and no noisy number of a round is shown before it has ended;
* what `--after` shows is deleted when it was shown; a cell with fewer than ten people shows no count.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from windvane.carried import FromFile, ToFile
from windvane.terminal import Json, RoundName, err, print_json, utc_now
from windvane_privacy.errors import NotReady, NumbersGone, UnknownManifest
from windvane_privacy.ledger_schema import StopReason

HERE = Path("windvane-member")
State = Annotated[Path, typer.Option("--state", help="Folder of this member.")]


def refuse(
    round_id: RoundName,
    reason: Annotated[
        StopReason, typer.Option("--reason", help="Why: key_loss, wrong_configuration or legal. Public after a draw.")
    ],
    state: State = HERE,
    yes: Annotated[bool, typer.Option("--yes", help="Answer yes to the question of this command.")] = False,
    from_file: FromFile = None,
    to_file: ToFile = None,
) -> None:
    """Stop a round for your organisation, for good: nothing is drawn, or nothing more is sent and it stays charged."""
    from windvane.member import agent_of
    from windvane_client.state import MemberState

    opened = MemberState.open(state)
    with agent_of(opened, from_file, to_file) as agent:
        drawn = agent.ledger.round(round_id)
        if drawn is not None:
            err.print("This round is drawn. It stays charged, and the log will show that you stopped and why.")
        if not yes:
            typer.confirm(f"Stop {round_id} for your organisation, for good?", abort=True, err=True)
        entry = agent.refuse(round_id, reason)
    if entry is None:
        typer.echo(f"Round {round_id} will not be drawn here. Nothing was charged and nobody was told.")
    else:
        typer.echo(f"Round {round_id} is stopped: nothing more is sent, the charge stays, the log holds the reason.")


def rehearse(
    round_id: Annotated[
        str | None, typer.Argument(metavar="[ROUND]", help="Whose agreement to rehearse; default: the newest known.")
    ] = None,
    state: State = HERE,
    as_json: Json = False,
) -> None:
    """Draw, seal and open once on invented people: shows that what is opened is what was sealed. Sends nothing."""
    from windvane.member_round_pages import rehearsal_facts, show_rehearsal
    from windvane_client.collect import current_manifest
    from windvane_client.state import MemberState
    from windvane_privacy.noise import OpenDPNoise
    from windvane_privacy.rehearsal import rehearse as run
    from windvane_privacy.signed import verify_signed_manifest

    opened = MemberState.open(state)
    if round_id is None:
        manifest = current_manifest(opened, utc_now())
    else:
        raw = opened.manifest(round_id)
        manifest = None if raw is None else verify_signed_manifest(raw, bytes.fromhex(opened.policy.coordinator))
    if manifest is None:
        raise UnknownManifest("No agreement of this round is kept here; `windvane member collect` fetches new ones.")
    facts = rehearsal_facts(run(manifest, noise=OpenDPNoise(), sampler=secrets.SystemRandom()), manifest)
    if as_json:
        print_json(facts)
    else:
        show_rehearsal(Console(highlight=False), facts)
    if not facts["same"]:
        raise typer.Exit(1)


def drawn_page(round_id: str, state: Path, *, as_json: bool) -> None:
    """`preview --drawn`: the hash, the bytes and the charge of a drawn round."""
    from windvane.member_pages import drawn_facts, show_drawn
    from windvane.member_round_pages import receipt_facts, show_receipt
    from windvane_client.state import MemberState
    from windvane_privacy.signed import verify_signed_manifest

    opened = MemberState.open(state)
    with opened.ledger() as ledger:
        entry = ledger.round(round_id)
    raw = opened.manifest(round_id)
    if entry is None or raw is None:
        raise NotReady("Nothing was drawn for this round here.")
    manifest = verify_signed_manifest(raw, bytes.fromhex(opened.policy.coordinator))
    facts = {**drawn_facts(entry, manifest), **receipt_facts(entry)}
    if as_json:
        print_json(facts)
        return
    console = Console(highlight=False)
    show_drawn(console, facts)
    show_receipt(console, facts)


def after_page(round_id: str, state: Path, *, as_json: bool) -> None:
    """`preview --after`: counts and noisy integers of a round that has ended, once."""
    from windvane.member_round_pages import after_facts, show_after
    from windvane_client.state import MemberState
    from windvane_privacy.signed import verify_signed_manifest

    opened = MemberState.open(state)
    with opened.ledger() as ledger:
        entry = ledger.round(round_id)
        if entry is None:
            raise NotReady("Nothing was drawn for this round here.")
        if not entry.state.final:
            raise NotReady("The round has not ended for you: no number of it is shown before that.")
        raw, counts = opened.manifest(round_id), ledger.counts(round_id)
        if raw is None or counts is None:
            raise NumbersGone
        manifest = verify_signed_manifest(raw, bytes.fromhex(opened.policy.coordinator))
        facts = after_facts(entry, manifest, counts, charged=ledger.charged_people(round_id))
        if as_json:
            print_json(facts)
        else:
            show_after(Console(highlight=False), facts)
        # After the display: what could not be shown is not lost.
        ledger.forget_shown(round_id)
