# SPDX-License-Identifier: Apache-2.0
"""What a member's operator reads: the page before an approval, the page after a draw, the status.

Rules kept here:
* the page before the approval holds nothing that depends on the data of an open round: no count, no vote, no coverage;
* the noise law is shown on synthetic counts and says so in every line;
* every field of the envelope is named, with what it tells whoever reads it;
* the page after a draw shows the hash, the bytes and the charge, and neither a count nor a noisy number;
* facts are plain values first (`--json` prints them), the layout comes after.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from windvane_privacy import budget
from windvane_privacy.canonical import JsonValue
from windvane_privacy.catalogue import Signal
from windvane_privacy.coalitions import COALITIONS, Guarantee
from windvane_privacy.envelope import envelope_length
from windvane_privacy.ledger_schema import RoundEntry, State
from windvane_privacy.manifest import D_SCALE, T_SCALE, Manifest
from windvane_privacy.policy import Policy
from windvane_privacy.submission import envelope_fields

if TYPE_CHECKING:
    from windvane_client.agreement import Agreement
    from windvane_client.collect_files import CollectReport
    from windvane_privacy.ledger import Ledger

SIGNAL_WORDS = {
    Signal.COMPLETION: "completion: did work that began with a model end well",
    Signal.SWITCH_AWAY: "switch-away: did people stay with the model they began with",
    Signal.TOOL_RELIABILITY: "tool reliability: did its tool calls work",
    Signal.INFRA_RECOVERY: "recovery: did it answer again after a fault of the service",
    Signal.BLIND_QUALITY: "blind quality: which answer did people choose without seeing the name",
}
SYNTHETIC = ((0, 0), (6, 14), (20, 20))
"""Invented (net preference, voters) of one comparison; the noise law is shown on these and on nothing else."""
STATE_WORDS = {
    State.DRAWN: "drawn and stored; nothing has left",
    State.COMMITTED: "committed: the log holds its hash",
    State.REVEALED: "revealed; waiting for the log to show it as accepted",
    State.ACCEPTED: "accepted",
    State.BURNED: "burned: nothing more is sent; it stays charged",
}


# --- before the approval ----------------------------------------------------------------------------------------------


def approval_facts(agreed: Agreement, policy: Policy, ledger: Ledger, last: Manifest | None) -> dict[str, JsonValue]:
    """Everything on the page before an approval; `last` is the manifest approved before this one."""
    m = agreed.manifest
    rounds, spent = ledger.lifetime()
    guarantees = budget.guarantees(m)
    cap = policy.max_rho_lifetime
    return {
        "round": m.round,
        "demo": m.demo,
        "manifest": m.sha256,
        "changed_fields": changed_fields(last, m),
        "first_approval": last is None,
        "events": [m.events.from_, m.events.to],
        "submission": {"opens": m.submission.opens, "commit_by": m.submission.commit_by, "closes": m.submission.closes},
        "publish_at": m.publish_at,
        "member": agreed.member,
        "roster": {"organisations": m.roster.members, "people_at_least": m.roster.people, "version": m.roster.version},
        "floors": msgspec.to_builtins(m.floors),
        "guardians": [{"name": g.name, "identity": g.identity} for g in m.guardians],
        "open_together": m.t,
        "signals": list(m.signals),
        "kinds": list(m.kinds),
        "models": [family.label for family in m.families],
        "pairs": len(m.pairs),
        "cells": m.cell_count,
        "integers": m.length,
        "bounds": msgspec.to_builtins(m.bounds),
        "noise": {"s": m.noise.s, "h": m.noise.h, "s_i": f"{m.share_scale:.3f}", "clamp": m.noise_clamp},
        "privacy": {
            "delta": m.noise.delta,
            "rho": _fraction(m.rho),
            "epsilon": guarantees.a.text,
            "epsilon_year": guarantees.year.text,
            "epsilon_replace_one": guarantees.replace_one.text,
            "rho_two_guardians": _fraction(guarantees.c.rho),
            "epsilon_two_guardians": guarantees.c.text,
        },
        "lifetime": {
            "rounds_charged": rounds,
            "rho_spent_at_most": _fraction(min(spent, cap)),
            "rho_cap": _fraction(cap),
            "epsilon_cap": budget.epsilon_text(cap, m.noise.delta),
        },
        "synthetic_noise": [_synthetic(m, net, voters) for net, voters in SYNTHETIC],
        "envelope_bytes": envelope_length(m),
        "envelope_fields": _fields(m),
        "who_could_learn_what": _coalitions(guarantees),
    }


def show_approval(console: Console, facts: dict[str, JsonValue]) -> None:
    """The page before an approval."""
    if facts["demo"]:
        console.print("[bold]DEMONSTRATION[/]: lower floors, invented data. Never a real round.\n")
    console.print(f"[bold]Round {escape(facts['round'])}[/]: what you are asked to approve")
    console.print("Nothing has been drawn. This page holds nothing that depends on your data.\n", style="dim")
    privacy, lifetime, noise, bounds = facts["privacy"], facts["lifetime"], facts["noise"], facts["bounds"]
    roster, guardians = facts["roster"], ", ".join(g["name"] for g in facts["guardians"])
    models, kinds = len(facts["models"]), ", ".join(facts["kinds"])
    colluding = f"rho {privacy['rho_two_guardians']}, epsilon {privacy['epsilon_two_guardians']}"
    left_out = "whoever reaches it is left out"
    _pairs(
        console,
        "The agreement",
        [
            ("manifest", facts["manifest"]),
            ("events that count", f"{facts['events'][0]} up to {facts['events'][1]}"),
            ("sent between", f"{facts['submission']['opens']} and {facts['submission']['closes']}"),
            ("published at", facts["publish_at"]),
            ("federation", f"{roster['organisations']} organisations, {roster['people_at_least']:,} people or more"),
            ("you are", f"member {facts['member']}"),
            ("guardians", f"{guardians}; any {facts['open_together']} open a sum"),
            ("compared", f"{models} model families in {facts['pairs']} pairs, kinds of work: {kinds}"),
        ],
    )
    _changes(console, facts)
    console.print("[bold]What is compared[/]")
    for signal in facts["signals"]:
        console.print(f"  · {SIGNAL_WORDS[Signal(signal)]}", markup=False)
    console.print()
    _pairs(
        console,
        "What it costs one person (add or remove, delta " + privacy["delta"] + ")",
        [
            ("this round", f"rho {privacy['rho']}, epsilon {privacy['epsilon']}"),
            ("four such rounds", f"epsilon {privacy['epsilon_year']}"),
            ("one person exchanged for another", f"epsilon {privacy['epsilon_replace_one']}"),
            ("if two guardians broke their word", colluding),
            ("charged so far", f"{lifetime['rounds_charged']} rounds, rho {lifetime['rho_spent_at_most']} at most"),
            ("cap of one person", f"rho {lifetime['rho_cap']}, epsilon {lifetime['epsilon_cap']}; {left_out}"),
        ],
    )  # fmt: skip
    _pairs(
        console,
        "How much one person and your organisation can weigh",
        [
            ("votes of one person", f"{bounds['Q']} at most, by signal {', '.join(map(str, bounds['q']))}"),
            ("your organisation, a comparison", f"as {bounds['C']} people at most"),
            ("tasks drawn a side", f"{bounds['tasks']} at most"),
            ("noise on each number", f"discrete Gaussian, s_i = {noise['s_i']} (s = {noise['s']}, h = {noise['h']})"),
            ("numbers", f"{facts['integers']}: two for each of {facts['cells']} comparisons, whatever your data"),
        ],
    )  # fmt: skip
    leaves = "leaves you within (95 of 100 draws)"
    table = Table("synthetic: net", "voters", "becomes", leaves, box=SIMPLE_HEAD)
    for row in facts["synthetic_noise"]:
        low, high = row["d_95"]
        low_t, high_t = row["t_95"]
        table.add_row(
            str(row["net"]),
            str(row["voters"]),
            f"{row['d']} and {row['t']}",
            f"{low} to {high} and {low_t} to {high_t}",
        )
    _section(console, "The noise on SYNTHETIC counts (invented, not yours)", table)
    show_layout(console, facts["envelope_bytes"], facts["envelope_fields"])
    table = Table("who", "could learn about you", box=SIMPLE_HEAD)
    for row in facts["who_could_learn_what"]:
        table.add_row(row["who"], row["learns"])
    _section(console, "Who could learn what", table)
    guardians = f"{facts['open_together']} of the {len(facts['guardians'])} named guardians"
    console.print(
        f"{guardians}, or one of them together with the coordinator, would have to break their word to see your "
        "numbers, and even then with noise."
    )


def changed_fields(last: Manifest | None, now: Manifest) -> list[dict[str, str]]:
    """Fields that differ from the manifest approved before, with both values; long values are only named."""
    if last is None:
        return []
    old, new = msgspec.to_builtins(last), msgspec.to_builtins(now)
    found = []
    for name, value in new.items():
        if old.get(name) != value:
            found.append({"field": name, "was": _short(old.get(name)), "is": _short(value)})
    return found


def _changes(console: Console, facts: dict[str, JsonValue]) -> None:
    if facts["first_approval"]:
        console.print("  You have approved no round before this one.\n", style="dim")
        return
    table = Table("field", "was", "is", box=SIMPLE_HEAD)
    for row in facts["changed_fields"]:
        table.add_row(row["field"], escape(row["was"]), escape(row["is"]))
    _section(console, "Changed since the round you approved last", table)


def _synthetic(m: Manifest, net: int, voters: int) -> dict[str, JsonValue]:
    d, t = D_SCALE * min(net, m.bounds.C), T_SCALE * min(voters, m.bounds.C)
    reach = round(1.96 * m.share_scale)
    return {
        "synthetic": True, "net": net, "voters": voters, "d": d, "t": t,
        "d_95": [d - reach, d + reach], "t_95": [t - reach, t + reach],
    }  # fmt: skip


def _coalitions(g: budget.Guarantees) -> list[dict[str, str]]:
    """The table of `coalitions.py` with this round's epsilons."""
    steps = sorted({g.b[0][0], g.b[len(g.b) // 2][0], g.b[-1][0]}, reverse=True) if g.b else []
    left = dict(g.b)
    rows = []
    for one in COALITIONS:
        if one.guarantee is Guarantee.B:
            for honest in steps:
                said = f"{one.member}; with {honest} left, about one person: epsilon {left[honest].text}"
                rows.append((one.who, said))
        else:
            loss = g.a if one.guarantee is Guarantee.A else g.c
            rows.append((one.who, f"{one.member}; about one person: epsilon {loss.text}"))
    return [{"who": who, "learns": learns} for who, learns in rows]


# --- after the draw ---------------------------------------------------------------------------------------------------


def drawn_facts(entry: RoundEntry, manifest: Manifest) -> dict[str, JsonValue]:
    """What may be shown of a drawn round."""
    return {
        "round": entry.round_id,
        "state": entry.state.value,
        "reason": entry.reason.value if entry.reason is not None else None,
        "commit_hash": entry.commit_hash,
        "commitment_bytes": len(entry.commitment_leaf or b""),
        "envelope_bytes": envelope_length(manifest),
        "envelope_fields": _fields(manifest),
        "rho_charged": _fraction(entry.rho),
        "drawn_day": entry.drawn_day,
    }


def show_drawn(console: Console, facts: dict[str, JsonValue]) -> None:
    """The page after a draw."""
    _pairs(
        console,
        f"Round {facts['round']}: {STATE_WORDS[State(facts['state'])]}",
        [
            ("commit hash", facts["commit_hash"]),
            ("charged", f"rho {facts['rho_charged']}, for ever"),
            ("first message", f"{facts['commitment_bytes']} bytes: the signed hash"),
            ("second message", f"{facts['envelope_bytes']} bytes: the envelope"),
        ],
    )
    show_layout(console, facts["envelope_bytes"], facts["envelope_fields"])


def show_layout(console: Console, total: int, fields: Sequence[dict[str, JsonValue]]) -> None:
    """The envelope, byte by byte."""
    table = Table("from byte", "bytes", "field", "tells", box=SIMPLE_HEAD)
    for row in fields:
        table.add_row(f"{row['offset']:,}", f"{row['length']:,}", row["name"], row["tells"])
    _section(console, f"The envelope: {total:,} bytes, the same for every member", table)


# --- status and collection --------------------------------------------------------------------------------------------


def status_facts(name: str, address: str, policy: Policy, ledger: Ledger) -> dict[str, JsonValue]:
    """Where this member stands; no network, no counts."""
    rounds, spent = ledger.lifetime()
    return {
        "name": name,
        "address": address,
        "demo": policy.demo,
        "approval": policy.approval,
        "key": ledger.key_id,
        "ledger": ledger.damage or "whole",
        "other_machine": ledger.moved,
        "rounds": [
            {
                "round": entry.round_id,
                "state": entry.state.value,
                "reason": entry.reason.value if entry.reason is not None else None,
                "rho": _fraction(entry.rho),
                "commit_hash": entry.commit_hash,
                "drawn_day": entry.drawn_day,
                "ended_day": entry.ended_day,
            }
            for entry in ledger.rounds()
        ],
        "approved": ledger.approvals(),
        "rounds_charged": rounds,
        "rho_spent_at_most": _fraction(min(spent, policy.max_rho_lifetime)),
        "rho_cap": _fraction(policy.max_rho_lifetime),
    }


def show_status(console: Console, facts: dict[str, JsonValue]) -> None:
    """Where this member stands."""
    _pairs(
        console,
        escape(facts["name"]),
        [
            ("coordinator", facts["address"]),
            ("approval", facts["approval"] + (", demonstrations allowed" if facts["demo"] else "")),
            ("ledger", facts["ledger"]),
            ("charged to one person", f"rho {facts['rho_spent_at_most']} at most, cap {facts['rho_cap']}"),
        ],
    )
    if not facts["rounds"]:
        console.print("No round was drawn yet.")
        return
    table = Table("round", "state", "charged", "drawn", "ended", "commit hash", box=SIMPLE_HEAD)
    for row in facts["rounds"]:
        state = row["state"] if row["reason"] is None else f"{row['state']} ({row['reason'].replace('_', ' ')})"
        shown = (row["commit_hash"] or "")[:16]
        table.add_row(row["round"], state, f"rho {row['rho']}", row["drawn_day"], row["ended_day"] or "-", shown)
    console.print(table)


def collect_facts(report: CollectReport) -> dict[str, JsonValue]:
    """What one run of collecting did."""
    return {
        "files": report.files,
        "read": report.read,
        "unchanged": report.unchanged,
        "unreadable": report.unreadable,
        "vanished": report.vanished,
        "events": report.events,
        "rows": {name: getattr(report.rows, name) for name in report.rows.FIELDS},
        "rejected_by_reason": dict(sorted(report.rows.reasons.items())),
        "by_source": dict(sorted(report.by_source.items())),
        "warnings": list(report.warnings),
    }


def show_collect(console: Console, facts: dict[str, JsonValue]) -> None:
    """What one run of collecting did."""
    rows = facts["rows"]
    found = [
        ("log files", f"{facts['files']:,}; read {facts['read']:,}, unchanged {facts['unchanged']:,}"),
        ("rows read", f"{rows['read']:,}; rejected {rows['rejected']:,}, of unknown type {rows['unknown']:,}"),
    ]
    if facts["unreadable"] or facts["vanished"]:
        found.append(("not read", f"{facts['unreadable']:,} files unreadable, {facts['vanished']:,} vanished"))
    found += [(f"rejected: {reason.replace('_', ' ')}", f"{n:,}") for reason, n in facts["rejected_by_reason"].items()]
    _pairs(console, "Collected", found)
    for warning in facts["warnings"]:
        console.print(warning, markup=False)


# --- layout -----------------------------------------------------------------------------------------------------------


def _fields(m: Manifest) -> list[dict[str, JsonValue]]:
    return [
        {"offset": one.offset, "length": one.length, "name": one.name, "tells": one.tells} for one in envelope_fields(m)
    ]


def _pairs(console: Console, title: str, rows: Sequence[tuple[str, str]]) -> None:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, escape(str(value)))
    _section(console, title, table)


def _section(console: Console, title: str, table: Table) -> None:
    console.print(f"[bold]{title}[/]")
    console.print(Padding(table, (0, 0, 1, 2)))


def _short(value: JsonValue) -> str:
    text = str(value)
    return text if len(text) <= 40 else f"{len(value)} entries" if isinstance(value, (list, tuple)) else text[:37] + "…"


def _fraction(value: Fraction) -> str:
    return f"{value.numerator}/{value.denominator}" if value.denominator != 1 else str(value.numerator)
