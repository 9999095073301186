# SPDX-License-Identifier: Apache-2.0
"""`windvane audit budget`: every charge of a member's extract, mapped again and asked of two accountants.

Rules kept here:
* offline, and from the extract alone (`ledger.jsonl`, or the folder it lies in);
* a rule that fails is named with its round and both figures; the exit code is 0 only if everything holds;
* without the second accountant nothing is said to agree: the extra is named instead.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from windvane.terminal import Json, err, out, print_json
from windvane_privacy.budget import epsilon_text
from windvane_privacy.errors import AccountsDisagree, ConfigurationError

MAX_BYTES = 1 << 26
FILE = "ledger.jsonl"


def budget(
    place: Annotated[Path, typer.Argument(metavar="FILE", help="ledger.jsonl of a member, or a folder with it.")],
    cap: Annotated[
        str | None, typer.Option("--cap", metavar="RHO", help="Also check the limit of a quarter, such as 9/128.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Map every charge of a ledger's extract again, and compare two independent accountants on it."""
    from windvane_privacy.crosscheck import DELTAS, DpAccounting
    from windvane_privacy.ledger_check import check_accountants, check_chain, check_measurements, check_quarters
    from windvane_privacy.ledger_export import decode_spends

    found = decode_spends(_read(place))
    accountant = DpAccounting()
    findings = [*check_chain(found), *check_measurements(found)]
    if cap is not None:
        findings += check_quarters(found, _fraction(cap))
    err.print(f"Asking both accountants about {len(found)} charges.")
    findings += check_accountants(found, accountant)
    total = sum((spend.rho for spend in found), Fraction(0))
    epsilons = {delta: epsilon_text(total, delta) for delta in DELTAS}
    facts = {
        "charges": len(found),
        "rho": f"{total.numerator}/{total.denominator}",
        "epsilon": epsilons,
        "findings": [{"round": one.round, "what": one.words} for one in findings],
    }
    if as_json:
        print_json(facts)
    else:
        for one in findings:
            out.print(one.sentence, markup=False)
        told = ", ".join(f"{value} at {delta}" for delta, value in epsilons.items())
        out.print(f"{len(found)} charges, rho {facts['rho']} in all for somebody in every round: epsilon {told}.")
        if not findings:
            out.print("Every charge maps again exactly, and both accountants agree on each.")
    if findings:
        raise AccountsDisagree(f"{len(findings)} {'thing does' if len(findings) == 1 else 'things do'} not hold.")


def _read(place: Path) -> bytes:
    path = place / FILE if place.is_dir() else place
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError:
        raise ConfigurationError("There is no such file, or no ledger.jsonl in the folder.") from None
    if len(raw) > MAX_BYTES:
        raise ConfigurationError("The file is too long for a ledger's extract.")
    return raw


def _fraction(text: str) -> Fraction:
    try:
        value = Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise typer.BadParameter("a fraction such as 9/128", param_hint="--cap") from None
    return value
