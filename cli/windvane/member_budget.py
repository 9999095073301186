# SPDX-License-Identifier: Apache-2.0
"""`windvane member budget`: what was charged, what one person can have spent at most, and how much is left.

Rules kept here:
* the ledger is only looked at, nothing is asked of anybody, and no count of people is shown;
* rho is exact; every epsilon is OpenDP's for that rho, rounded up, with its delta beside it;
* (a) the public, (a+) all honest, (b) some of your cohort against you, (c) two guardians together: always all four;
* facts are plain values first (`--json` prints them), the layout comes after.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from windvane.terminal import Json, print_json
from windvane_privacy import budget as accounting
from windvane_privacy.canonical import JsonValue
from windvane_privacy.spent import Span, most_spent

if TYPE_CHECKING:
    from windvane_client.state import MemberState
    from windvane_privacy.ledger_schema import RoundEntry
    from windvane_privacy.manifest import Manifest

HERE = Path("windvane-member")
SPAN_WORDS = {1: "the newest quarter", 4: "the last 4 quarters", 12: "the last 12 quarters", 0: "all quarters so far"}
WHO = {
    "a": "the public, the coordinator or one guardian; {h} or more of your cohort are honest",
    "a_plus": "the same, and every member of the smallest cohort is honest",
    "c": "two guardians together, or one with the coordinator: they see your organisation's noised numbers",
}


def budget(
    state: Annotated[Path, typer.Option("--state", help="Folder of this member.")] = HERE, as_json: Json = False
) -> None:
    """What rounds have cost one person here, at most, and how many quarters are left. Needs no network."""
    from windvane_client.state import MemberState

    opened = MemberState.open(state)
    with opened.ledger() as ledger:
        rounds, damage = ledger.rounds(), ledger.damage
    facts = budget_facts(rounds, manifests_of(opened), opened.policy.max_rho_lifetime, damage)
    if as_json:
        print_json(facts)
    else:
        show_budget(Console(highlight=False), facts)


def manifests_of(state: MemberState) -> dict[str, Manifest]:
    """Every verified manifest kept here, by its SHA-256, oldest events first."""
    from windvane_privacy.signed import verify_signed_manifest

    coordinator = bytes.fromhex(state.policy.coordinator)
    found = [verify_signed_manifest(raw, coordinator) for raw in state.manifests()]
    return {one.sha256: one for one in sorted(found, key=lambda one: one.events.to)}


def budget_facts(
    rounds: list[RoundEntry], manifests: dict[str, Manifest], cap: Fraction, damage: str | None
) -> dict[str, JsonValue]:
    """Everything on the page. The terms are those of the newest agreement known here."""
    newest = next(reversed(manifests.values()), None)
    delta = None if newest is None else newest.noise.delta
    spent = most_spent(rounds, cap, None if newest is None else newest.rho)
    facts: dict[str, JsonValue] = {
        "unit": "one person in this organisation, all events whenever they happened; add or remove",
        "delta": delta,
        "ledger": damage or "whole",
        "rounds": [_round(entry) for entry in rounds],
        "spent_at_most": [_span(span, delta) for span in spent.spans],
        "cap": _loss(cap, delta),
        "quarters_left": spent.left,
        "terms": None,
    }
    if newest is not None:
        facts["terms"] = _terms(newest, cap)
    return facts


def _terms(manifest: Manifest, cap: Fraction) -> dict[str, JsonValue]:
    h, m, delta = manifest.noise.h, manifest.cohorts.m_min, manifest.noise.delta
    one = accounting.guarantees(manifest)
    return {
        "round": manifest.round,
        "h": h,
        "smallest_cohort": m,
        "a_quarter": _coalitions(accounting.coalitions(manifest.rho, h=h, m=m, delta=delta)),
        "four_quarters": _coalitions(accounting.coalitions(4 * manifest.rho, h=h, m=m, delta=delta)),
        "lifetime": _coalitions(accounting.coalitions(cap, h=h, m=m, delta=delta)),
        "replace_one": _loss(one.replace_one.rho, delta),
        "two_accounts": _loss(one.two_accounts.rho, delta),
    }


def _coalitions(found: accounting.Coalitions) -> dict[str, JsonValue]:
    return {
        "a": _told(found.a),
        "a_plus": _told(found.a_plus),
        "b": [{"honest": g, **_told(loss)} for g, loss in found.b],
        "c": _told(found.c),
    }


def _round(entry: RoundEntry) -> dict[str, JsonValue]:
    return {
        "round": entry.round_id,
        "state": entry.state.value,
        "rho": _fraction(entry.rho),
        "q": entry.q,
        "s": entry.s,
        "h": entry.h,
        "s_i": entry.s_i,
        "charged_to_everybody": entry.everyone,
        "charged_on": entry.drawn_day,
    }


def _span(span: Span, delta: str | None) -> dict[str, JsonValue]:
    over = SPAN_WORDS[span.quarters]
    return {"over": over, "a": _loss(span.rho, delta), "c": _loss(span.local, delta)}


def _loss(rho: Fraction, delta: str | None) -> dict[str, str | None]:
    return {"rho": _fraction(rho), "epsilon": None if delta is None else accounting.epsilon_text(rho, delta)}


def _told(loss: accounting.Loss) -> dict[str, str | None]:
    return {"rho": _fraction(loss.rho), "epsilon": loss.text}


def _fraction(value: Fraction) -> str:
    return f"{value.numerator}/{value.denominator}" if value.denominator != 1 else str(value.numerator)


# --- layout -----------------------------------------------------------------------------------------------------------


def show_budget(console: Console, facts: dict[str, JsonValue]) -> None:
    """The page."""
    if facts["ledger"] != "whole":
        console.print(f"The ledger is open for reading only: {facts['ledger']}", markup=False)
    _rounds(console, facts)
    at = "" if facts["delta"] is None else f" at delta {facts['delta']}"
    table = Table("over", "rho", f"epsilon{at}", "if two guardians collude", box=SIMPLE_HEAD)
    for row in facts["spent_at_most"]:
        table.add_row(row["over"], row["a"]["rho"], row["a"]["epsilon"] or "-", _both(row["c"]))
    table.add_row("cap of one person", facts["cap"]["rho"], facts["cap"]["epsilon"] or "-", "")
    _section(console, "What one person can have spent here, at most", table)
    terms = facts["terms"]
    if terms is None:
        console.print("No agreement is known here yet: `windvane member collect` fetches new ones.", markup=False)
        return
    table = Table("who is against that person", "a quarter", "4 quarters", "up to the cap", box=SIMPLE_HEAD)
    spans = [terms[name] for name in ("a_quarter", "four_quarters", "lifetime")]
    table.add_row("(a) " + WHO["a"].format(h=terms["h"]), *(_both(span["a"]) for span in spans))
    table.add_row("(a+) " + WHO["a_plus"], *(_both(span["a_plus"]) for span in spans))
    for place, row in enumerate(spans[0]["b"]):
        who = f"(b) as (a), but only {row['honest']} of your cohort {'is' if row['honest'] == 1 else 'are'} honest"
        table.add_row(who, *(_both(span["b"][place]) for span in spans))
    table.add_row("(c) " + WHO["c"], *(_both(span["c"]) for span in spans))
    _section(console, f"Who could learn how much, on the terms of {escape(terms['round'])}: rho, epsilon{at}", table)
    console.print(f"  One person exchanged for another, a quarter: {_both(terms['replace_one'])}.")
    console.print(f"  One person with two accounts, a quarter: {_both(terms['two_accounts'])}; not prevented.")
    left = facts["quarters_left"]
    console.print(
        f"Somebody who was in every round has {left} more quarter{'' if left == 1 else 's'} on these terms; then that "
        "person is left out and everybody else goes on."
    )


def _rounds(console: Console, facts: dict[str, JsonValue]) -> None:
    if not facts["rounds"]:
        console.print("No round was charged yet.")
        return
    table = Table("round", "state", "rho", "q", "s", "h", "s_i", "charged on", box=SIMPLE_HEAD)
    for row in facts["rounds"]:
        state = row["state"] + (", to everybody" if row["charged_to_everybody"] else "")
        numbers = (str(row["q"]), str(row["s"]), str(row["h"]), f"{float(row['s_i']):.3f}")
        table.add_row(escape(row["round"]), state, row["rho"], *numbers, row["charged_on"])
    _section(console, "Charged rounds: for good, published or not", table)


def _both(loss: dict[str, str | None]) -> str:
    return loss["rho"] or "" if loss["epsilon"] is None else f"{loss['rho']}, {loss['epsilon']}"


def _section(console: Console, title: str, table: Table) -> None:
    console.print(f"[bold]{title}[/]")
    console.print(Padding(table, (0, 0, 1, 2)))
