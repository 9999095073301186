# SPDX-License-Identifier: Apache-2.0
"""Whom a round may still ask: a person's own charges, with this round's, stay within the lifetime cap.

Rules kept here:
* the answer about a person looks at that person's own charges and attested first day, and at nobody else's;
* rho is added as exact fractions; a person exactly at the cap is within it;
* fail closed: a round whose people this ledger does not know (the draw or the ledger was lost, or the key of the
  pseudonyms was) counts for every person, known or not;
* only an attested first day takes somebody out of such a round: one that lies a whole window after the loss or later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from types import MappingProxyType

from windvane_privacy.manifest import parse_time

Admission = Callable[[bytes], bool]
"""Whether one more round keeps a person within the lifetime cap; looks at that person's own charges only."""
NOBODY: Mapping[bytes, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, repr=False)
class Charge:
    """One round's charge: rho to each of `people`, or to `everyone` where the ledger cannot know to whom. `drawn_day`:
    when it was written."""

    rho: Fraction
    drawn_day: str
    events_from: str
    events_to: str
    everyone: bool
    people: frozenset[bytes]


def admission(
    charges: Sequence[Charge],
    person_keys: Sequence[tuple[str, str]],
    rho: Fraction,
    cap: Fraction,
    since: Mapping[bytes, str] = NOBODY,
) -> Admission:
    """Who stays within `cap` with one more round of `rho`.

    `person_keys`: (day, hash) of each key of the pseudonyms this ledger has known, in order; with a second one the
    people of all rounds up to that day are lost. `since`: attested first days (2027-03-01) by pseudonym.
    """
    key_lost_on = person_keys[-1][0] if len(person_keys) > 1 else ""
    lost, spent = [], dict[bytes, Fraction]()
    for charge in charges:
        if charge.everyone or charge.drawn_day <= key_lost_on:
            lost.append((charge.rho, _fresh_from(charge, max(charge.drawn_day, key_lost_on))))
        else:
            for person in charge.people:
                spent[person] = spent.get(person, Fraction(0)) + charge.rho

    def admits(person: bytes) -> bool:
        first_day = since.get(person, "")
        unknown = sum((each for each, fresh_from in lost if first_day < fresh_from), Fraction(0))
        return spent.get(person, Fraction(0)) + unknown + rho <= cap

    return admits


def _fresh_from(charge: Charge, lost_on: str) -> str:
    """The first day whose newcomers a lost round cannot have been about: one window after the loss was found."""
    window = parse_time(charge.events_to) - parse_time(charge.events_from)
    return (date.fromisoformat(lost_on) + window).isoformat()
