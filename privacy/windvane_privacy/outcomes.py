# SPDX-License-Identifier: Apache-2.0
"""The outcomes table: what the member's signals hand to the votes. It never leaves the member's machine.

Rules kept here:
* one row counts the trials and successes of one person with one model, for one signal, kind, recorder and basis;
* a larger share of successes is better in every signal;
* rows are compared only inside one (recorder, basis): a difference between two loggers is not one between two models;
* the table is validated person by person: a person whose rows fail gives no vote, everybody else's votes stay;
* only a table that is no table raises.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from windvane_privacy.catalogue import KINDS, OTHER, Catalogue, Signal
from windvane_privacy.errors import InvalidOutcomes

MAX_TRIALS = 1_000_000
MAX_RECORDER = 64


class Basis(StrEnum):
    """Strength class of the evidence inside one signal."""

    EXPLICIT = "explicit"
    ENDED = "ended"
    RECORDED = "recorded"
    INFERRED = "inferred"
    CLASSED = "classed"
    BIT = "bit"
    ATTEMPTS = "attempts"
    PROVED = "proved"
    ATTESTED = "attested"


STRONG = frozenset({Basis.EXPLICIT, Basis.RECORDED, Basis.CLASSED, Basis.PROVED, Basis.ATTEMPTS})
BASES: Mapping[Signal, frozenset[Basis]] = {
    Signal.COMPLETION: frozenset({Basis.EXPLICIT, Basis.ENDED}),
    Signal.SWITCH_AWAY: frozenset({Basis.RECORDED, Basis.INFERRED}),
    Signal.TOOL_RELIABILITY: frozenset({Basis.CLASSED, Basis.BIT}),
    Signal.INFRA_RECOVERY: frozenset({Basis.ATTEMPTS}),
    Signal.BLIND_QUALITY: frozenset({Basis.PROVED, Basis.ATTESTED}),
}
AGAINST = frozenset({Signal.SWITCH_AWAY, Signal.BLIND_QUALITY})
"""Signals whose rows name the other model too."""


@dataclass(frozen=True, slots=True)
class PersonOutcome:
    """One row. `person`: 16-byte pseudonym. `against` is set for switch_away and blind_quality only.

    `trials` is 1 to 1,000,000, `successes` 0 to `trials`; a row with no trial does not exist.
    """

    person: bytes
    signal: Signal
    kind: str
    recorder: str
    basis: Basis
    model: str
    against: str | None
    trials: int
    successes: int

    @property
    def key(self) -> tuple[bytes, str, str, str, str, str, str]:
        """What makes a row unique; also its sort order."""
        return (self.person, self.signal, self.kind, self.recorder, self.basis, self.model, self.against or "")


def by_person(rows: Iterable[object]) -> dict[bytes, list[PersonOutcome]]:
    """Rows grouped by person, in order of the pseudonym.

    Raises:
        InvalidOutcomes: something in the table is not a `PersonOutcome` with a 16-byte person.
    """
    people: dict[bytes, list[PersonOutcome]] = {}
    for row in rows:
        if not isinstance(row, PersonOutcome) or not _is_pseudonym(row.person):
            raise InvalidOutcomes
        people.setdefault(row.person, []).append(row)
    return dict(sorted(people.items()))


def _is_pseudonym(value: object) -> bool:
    return isinstance(value, bytes) and len(value) == 16


def person_is_valid(rows: list[PersonOutcome], catalogue: Catalogue, *, pooled: bool) -> bool:
    """Whether every row of one person is of the agreed form; see the module's rules."""
    return len({row.key for row in rows}) == len(rows) and all(_valid(row, catalogue, pooled) for row in rows)


def _valid(row: PersonOutcome, catalogue: Catalogue, pooled: bool) -> bool:
    if row.kind not in KINDS or row.basis not in BASES.get(row.signal, ()):
        return False
    if row.kind == OTHER and not (pooled and row.signal is Signal.BLIND_QUALITY):
        return False
    if not 0 < len(row.recorder) <= MAX_RECORDER or row.model not in catalogue:
        return False
    if (row.signal in AGAINST) != (row.against is not None):
        return False
    if row.against is not None and (row.against == row.model or row.against not in catalogue):
        return False
    if type(row.trials) is not int or type(row.successes) is not int:
        return False
    return 1 <= row.trials <= MAX_TRIALS and 0 <= row.successes <= row.trials
