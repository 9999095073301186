# SPDX-License-Identifier: Apache-2.0
"""A guardian's look at a round, check by check: what holds, and the first thing that does not.

Rules kept here:
* nothing is sent, nothing is stored but the newest checkpoint, no nonce and no share leaves;
* the checks are the very functions that `reveal_nonce` and `open` call, in their order;
* after the first refusal nothing more is looked at, because everything else rests on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windvane_privacy.ceremony import check_floors, check_not_stopped, closed_set, fixed_lot
from windvane_privacy.errors import WindvaneError
from windvane_privacy.guardian_outcomes import View

if TYPE_CHECKING:
    from windvane_privacy.guardian import GuardianSession


@dataclass(frozen=True, slots=True)
class Line:
    """One check: its `name`, what it found in words, and the refusal if it did not hold."""

    name: str
    found: str
    refusal: WindvaneError | None = None


def inspect(session: GuardianSession, round_id: str) -> Iterator[Line]:
    """Every check of the round up to the lot, in order, to the first refusal."""
    for name, check in _checks(session, round_id):
        try:
            found = check()
        except WindvaneError as refusal:
            yield Line(name, "", refusal)
            return
        yield Line(name, found)


def verify(session: GuardianSession, round_id: str) -> list[tuple[int, WindvaneError]]:
    """Number and refusal of every accepted member whose share does not open here; no share is kept.

    Raises:
        WindvaneError: what `inspect` would find before the envelopes, or another number of envelopes than accepted.
    """
    view = session.view(round_id)
    closed = closed_set(view.leaves, view.manifest, view.roster)
    return list(session.opener(view).refusals(session.envelopes(view, closed), closed))


def _checks(session: GuardianSession, round_id: str) -> Iterator[tuple[str, Callable[[], str]]]:
    views: list[View] = []

    def agreed() -> str:
        view = session.view(round_id)
        views.append(view)
        return f"manifest {view.manifest.sha256}, {len(view.roster.active)} organisations, log of {view.day}"

    def closed() -> str:
        view = views[0]
        found = closed_set(view.leaves, view.manifest, view.roster)
        check_not_stopped(view.leaves, view.manifest)
        check_floors(view.manifest, len(found.accepted))
        return f"{len(found.accepted)} accepted, root {found.set_root}"

    def drawn() -> str:
        view = views[0]
        table = fixed_lot(view.leaves, view.manifest, closed_set(view.leaves, view.manifest, view.roster))
        return f"cohorts of {', '.join(str(len(cohort)) for cohort in table)}"

    yield "agreement: manifest, policy, roster, own key, log", agreed
    yield "closed set, floors", closed
    yield "lot, recomputed", drawn
