# SPDX-License-Identifier: Apache-2.0
"""What must hold of a ledger's spends, from the spends alone: a reviewer asks `ledger.jsonl`, a member its own ledger.

Rules kept here:
* numbers without a gap, each line linked to the one before;
* a round occurs once: it is charged once;
* every stored measurement is mapped again by OpenDP: its scale is the member's share, its rho at most h times the
  charge, and the charge is OpenDP's map at the central scale, exactly where a float holds it;
* s_i follows from s and h; Q is the sum of q, where q is known; the versions name an OpenDP that may be used;
* every finding names its line by number and round, and says in words what does not hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from windvane_privacy.crosscheck import DELTAS, SLACK, Accountant, charge_agrees, cross_check
from windvane_privacy.errors import ConfigurationError, MalformedInput
from windvane_privacy.ledger_export import Spend
from windvane_privacy.ledger_schema import GENESIS
from windvane_privacy.manifest import rho_of, share_scale
from windvane_privacy.noise import require_opendp
from windvane_privacy.remap import central_rho, remap

_OPENDP = re.compile(r"(?:^|; )opendp (\d+\.\d+\.\d+)(?:;|$)")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that does not hold. `round`: whose entry; None: of the ledger as a whole. `words`: what, as a
    sentence."""

    round: str | None
    words: str

    @property
    def sentence(self) -> str:
        """The finding with its round."""
        return self.words if self.round is None else f"{self.round}: {self.words}"


def check_chain(found: Sequence[Spend]) -> tuple[Finding, ...]:
    """Order, links, and that no round is charged twice or not at all."""
    findings, previous, seen = [], GENESIS, set()
    for place, spend in enumerate(found, start=1):
        if spend.number != place:
            findings.append(Finding(spend.round, f"its number is {spend.number} and its place is {place}."))
        if spend.previous != previous:
            findings.append(Finding(spend.round, "it does not follow the entry before it."))
        if spend.round in seen:
            findings.append(Finding(spend.round, "the round occurs twice."))
        seen.add(spend.round)
        previous = spend.entry
    return tuple(findings)


def check_measurements(found: Sequence[Spend]) -> tuple[Finding, ...]:
    """Every entry's scales, charge and stored measurement, mapped again by OpenDP."""
    return tuple(Finding(spend.round, words) for spend in found for words in _measured(spend))


def check_accountants(
    found: Sequence[Spend], accountant: Accountant, deltas: tuple[str, ...] = DELTAS
) -> tuple[Finding, ...]:
    """The cross-check of two accountants on every entry, one finding for each rule that fails."""
    return tuple(
        Finding(spend.round, f"rule {check.rule} fails: {check.what}.")
        for spend in found
        for check in cross_check(
            rho=spend.rho, Q=spend.Q, s=spend.s, h=spend.h, s_i=float(spend.s_i), accountant=accountant, deltas=deltas
        )
        if not check.holds
    )


def check_quarters(found: Sequence[Spend], cap: Fraction) -> tuple[Finding, ...]:
    """Whether the rounds whose events overlap with one round's cost more than `cap` together, that round included."""
    return tuple(
        Finding(spend.round, f"with the rounds that overlap it, rho is {spent} and the limit {cap}.")
        for spend in found
        if (spent := overlapping(found, spend)) > cap
    )


def overlapping(found: Sequence[Spend], spend: Spend) -> Fraction:
    """rho of a round and of all rounds whose events overlap with its events."""
    return sum(
        (x.rho for x in found if x.events_from < spend.events_to and spend.events_from < x.events_to), Fraction(0)
    )


def _measured(x: Spend) -> Iterator[str]:
    scale = share_scale(x.s, x.h)
    if x.rho != rho_of(x.Q, x.s):
        yield f"its charge is rho {x.rho}, and s and Q give {rho_of(x.Q, x.s)}."
    central = central_rho(x.Q, x.s)
    if not charge_agrees(x.rho, central, x.Q):
        yield f"its charge is rho {x.rho}, and OpenDP's map at scale {x.s} gives {float(central):.9f}."
    if x.s_i != repr(scale):
        yield f"the scale of the share is {x.s_i}, and s and h give {scale!r}."
    if x.q is not None and sum(x.q) != x.Q:
        yield "Q is not the sum of the votes of the signals."
    yield from _versions(x)
    if x.measurement is None:
        return
    try:
        stored = remap(x.measurement, x.Q)
    except MalformedInput as error:
        yield f"{error.detail}."
        return
    if repr(stored.scale) != x.s_i:
        yield f"the measurement that drew has scale {stored.scale!r}, and the entry says {x.s_i}."
    if stored.rho > x.h * x.rho * (1 + SLACK):
        yield f"one share alone costs rho {float(stored.rho):.9f}, more than h times the charge."


def _versions(x: Spend) -> Iterator[str]:
    named = _OPENDP.search(x.versions)
    if named is None:
        if not x.everyone:
            yield "its versions name no OpenDP."
        return
    try:
        require_opendp(named.group(1))
    except ConfigurationError as error:
        yield error.detail
