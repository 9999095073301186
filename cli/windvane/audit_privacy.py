# SPDX-License-Identifier: Apache-2.0
"""`windvane audit privacy`: runs the empirical audit in a folder that is deleted again, and says what it showed.

Rules kept here:
* the facts first, then their layout; `--json` prints the same facts;
* a figure is text with three decimals; a promise is rounded down and what was shown is rounded up, never the other way;
* what an audit cannot show stands beside its verdict.
"""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from windvane.terminal import err
from windvane_client.audit_member import AuditMember
from windvane_client.privacy_audit import Audit, audit, draws_needed
from windvane_privacy import canonical


def run_audit(trials: int, *, s: int, h: int, quiet: bool) -> Audit:
    """The audit of an agreement with these two numbers.

    Raises:
        ManifestError: noise of this scale is too small for so many members.
    """
    with tempfile.TemporaryDirectory(prefix="windvane-audit-") as place:
        member = AuditMember(Path(place), s=s, h=h)
        columns = (TextColumn("Drawing"), BarColumn(), TimeRemainingColumn())
        with Progress(*columns, console=err, transient=True, disable=quiet) as bar:
            task = bar.add_task("draw", total=draws_needed(member, trials))
            return audit(member, trials, lambda done: bar.update(task, completed=done))


def facts_of(found: Audit) -> canonical.JsonValue:
    """What was found, as whole numbers, text and truth values."""
    return {
        "holds": not found.faults,
        "faults": list(found.faults),
        "looks_with_the_person": found.trials,
        "looks_without": found.trials,
        "draws": found.draws,
        "noise_scale": _down(found.scale),
        "honest_members": found.honest,
        "mu_promised_at_most": _down(found.claimed),
        "mu_shown_at_least": _up(found.shown),
        "alpha": f"{found.alpha:g}",
        "noise_numbers": found.noise.draws,
        "noise_chi_square_deviations": _up(found.noise.chi_square),
        "noise_variance_deviations": _up(found.noise.variance),
        "noise_mean_deviations": _up(found.noise.mean),
        "distance_squared": found.replay.distance,
        "distance_squared_allowed": found.allowed_distance,
        "same_steps_with_and_without": found.replay.same_path,
        "openings_that_differ": found.unequal,
    }


def show(console: Console, found: Audit) -> None:
    """The facts for people."""
    console.print(
        f"{found.trials:,} looks at one made-up person who takes part, and {found.trials:,} at the same place without, "
        f"in {found.draws:,} draws.\nEach draw went through a member's real steps, and guardians' keys opened it."
    )
    table = Table("what", "found", "allowed", "")
    for what, seen, allowed, good in (
        (
            "how clearly one person shows (mu)",
            f"at least {_up(found.shown)}",
            f"at most {_down(found.claimed)}",
            found.shown <= found.claimed,
        ),
        (
            "shape of the noise (standard deviations)",
            f"{_up(found.noise.chi_square)}, {_up(found.noise.variance)}, {_up(found.noise.mean)}",
            "within 5",
            found.noise.holds,
        ),
        (
            "how far one person moves the sums",
            f"{_up(math.sqrt(found.replay.distance))}",
            f"at most {_down(math.sqrt(found.allowed_distance))}",
            found.replay.distance <= found.allowed_distance,
        ),
        (
            "same steps with and without the person",
            "yes" if found.replay.same_path else "no",
            "yes",
            found.replay.same_path,
        ),
        ("openings that differ from the ledger", str(found.unequal), "0", found.unequal == 0),
    ):
        table.add_row(what, seen, allowed, "[green]holds[/]" if good else "[bold red]broken[/]")
    console.print(table)
    if not found.faults:
        console.print(
            "Nothing that was looked for is broken. An audit can show that a promise is broken, never that it holds "
            "against everything: the proof is in bounds.md."
        )


def _up(value: float) -> str:
    return f"{math.ceil(value * 1000) / 1000:.3f}"


def _down(value: float) -> str:
    return f"{math.floor(value * 1000) / 1000:.3f}"
