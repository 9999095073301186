# SPDX-License-Identifier: Apache-2.0
"""The empirical audit: made-up people go through the real member path many times, each with and without.

Rules kept here:
* the path is the member's own: agent, ledger, votes, OpenDP's noise, shares, seals; then real guardians' keys open it.
  No step is written a second time here, and the call for noise is never replaced in a counted draw;
* the person is the worst that the bounds allow: nine votes, all for the same side, in nine cells far from the clamp;
* people of one draw share no cell, so each is an experiment of its own under noise of its own;
* every draw has a fresh ledger: nothing that an installed member holds is opened, charged or changed;
* for replay alone the noise is frozen: then nothing but one person may differ, and by 39 at most.

What the figures mean: docs/mechanism.md.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FrameType

import numpy as np
from numpy.typing import NDArray

from windvane_client.audit_member import TASKS, AuditMember
from windvane_privacy.catalogue import SIGNALS, Signal
from windvane_privacy.empirical import ALPHA, Shape, mu_lower_bound, shape
from windvane_privacy.layout import Cell, Layout
from windvane_privacy.manifest import D_SCALE, T_SCALE, Manifest
from windvane_privacy.noise import OpenDPNoise, sensitivity
from windvane_privacy.outcomes import AGAINST, Basis, PersonOutcome

_BASIS = {
    Signal.COMPLETION: Basis.EXPLICIT,
    Signal.SWITCH_AWAY: Basis.RECORDED,
    Signal.TOOL_RELIABILITY: Basis.CLASSED,
    Signal.INFRA_RECOVERY: Basis.ATTEMPTS,
    Signal.BLIND_QUALITY: Basis.PROVED,
}
_FOLLOWED = ("noise.py", "shares.py", "field.py", "sealing.py", "envelope.py")
"""Modules between the exact vector and what leaves: their calls must not depend on anybody's data."""


@dataclass(frozen=True, slots=True)
class Replay:
    """Two runs that differ in one person, with the same noise. `distance`: L2 between the vectors before noise,
    squared; `same_path`: whether the same functions were called in the same order, and the noise asked for alike."""

    distance: int
    same_path: bool


@dataclass(frozen=True, slots=True)
class Audit:
    """What was found. `trials`: looks with a person, and as many without; `draws`: members' draws. `claimed`: the mu of
    the agreed noise; `shown`: the least mu that the draws allow, with confidence 1 - `alpha` on each side."""

    trials: int
    draws: int
    honest: int
    scale: float
    claimed: float
    shown: float
    alpha: float
    noise: Shape
    replay: Replay
    allowed_distance: int
    unequal: int
    """Draws in which the guardians opened something else than the ledger holds."""

    @property
    def faults(self) -> tuple[str, ...]:
        """What does not hold, in words; empty where everything does."""
        found = (
            (self.shown > self.claimed, "one person shows more clearly than is promised"),
            (not self.noise.holds, "the noise that was opened is not the noise that was agreed"),
            (self.replay.distance > self.allowed_distance, "one person moves the sums further than the bound allows"),
            (not self.replay.same_path, "what the program does depends on the data"),
            (self.unequal > 0, "what was opened is not what the ledger holds"),
        )
        return tuple(why for broken, why in found if broken)


def audit(member: AuditMember, trials: int, progress: Callable[[int], None] = lambda _done: None) -> Audit:
    """At least `trials` looks at cells without and as many at cells with a worst person, and what they show.

    One draw of a whole cohort (h members, opened as one sum) holds a place for each of 24 people. Half of the places
    are taken, in turn, so each place is looked at with and without its person, under noise of its own.
    """
    manifest = member.manifest
    spots = places(manifest)
    halves = [[row for number in range(half, len(spots), 2) for row in person_at(spots, number)] for half in (0, 1)]
    exact, replayed = replay(member, halves, person_at(spots, 1))
    without: list[int] = []
    with_person: list[int] = []
    noise: list[int] = []
    unequal = 0
    draws = 2 * math.ceil(trials / len(spots))
    for draw in range(draws):
        half = draw % 2
        opened, stored = member.cohort(halves[half])
        unequal += opened != stored
        noise += [value - true for value, true in zip(opened, exact[half], strict=True)]
        for number, place in enumerate(spots):
            look = sum(D_SCALE * opened[d] + T_SCALE * opened[t] for d, t in place.entries)
            (with_person if number % 2 == half else without).append(look)
        progress(draw + 1)
    scale = manifest.share_scale * math.sqrt(manifest.noise.h)
    bound = sensitivity(manifest.bounds.Q)
    return Audit(
        trials=len(with_person),
        draws=draws * manifest.noise.h,
        honest=manifest.noise.h,
        scale=scale,
        claimed=bound / scale,
        shown=mu_lower_bound(without, with_person),
        alpha=ALPHA,
        noise=shape(noise, scale),
        replay=replayed,
        allowed_distance=int(bound**2),
        unequal=unequal,
    )


def draws_needed(member: AuditMember, trials: int) -> int:
    """How many cohorts `audit` draws for so many trials."""
    return 2 * math.ceil(trials / len(places(member.manifest)))


def replay(
    member: AuditMember, tables: Sequence[Sequence[PersonOutcome]], newcomer: Sequence[PersonOutcome]
) -> tuple[list[list[int]], Replay]:
    """The exact vectors of some tables, and what one newcomer in the first of them changes, with the same noise and
    coins throughout."""
    quiet = OpenDPNoise().draw(np.zeros(member.manifest.length, dtype=np.int64), member.manifest.share_scale)
    frozen = FrozenNoise(quiet)
    member.draw(tables[0], noise=frozen, sampler=FixedCoins())  # what is loaded or kept once is loaded now
    exact, paths = [], []
    for rows in (*tables, [*tables[0], *newcomer]):
        path: list[str] = []
        before = sys.getprofile()
        sys.setprofile(_follow(path))
        try:
            member.draw(rows, noise=frozen, sampler=FixedCoins())
        finally:
            sys.setprofile(before)
        exact.append(frozen.exact)
        paths.append((path, frozen.asked))
    distance = sum((a - b) ** 2 for a, b in zip(exact[0], exact[-1], strict=True))
    same = all(path == paths[0] for path in paths) and len(paths[0][0]) > 0
    return exact[:-1], Replay(distance, same)


# --- the people -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Place:
    """Where one worst person votes: nine cells of one pair, and the two released integers of each."""

    cells: tuple[Cell, ...]
    entries: tuple[tuple[int, int], ...]


def places(manifest: Manifest) -> list[Place]:
    """Places that share no cell: for each pair, the kinds of work in groups of as many as a person may vote in."""
    layout = Layout(manifest)
    most = max(manifest.bounds.q)
    groups = [manifest.kinds[at : at + most] for at in range(0, len(manifest.kinds) - most + 1, most)]
    found = []
    for a, b in manifest.pairs:
        for kinds in groups:
            cells = tuple(
                Cell(signal, kind, a, b)
                for signal, q in zip(SIGNALS, manifest.bounds.q, strict=True)
                for kind in kinds[:q]
            )
            found.append(Place(cells, tuple((layout.d_index(cell), layout.t_index(cell)) for cell in cells)))
    return found


def person_at(spots: Sequence[Place], number: int) -> list[PersonOutcome]:
    """The person of a place: one vote for the first model in each of its cells, whatever the coins."""
    person = number.to_bytes(16, "big")
    return [
        PersonOutcome(
            person,
            Signal(cell.signal),
            cell.kind,
            "audit",
            _BASIS[Signal(cell.signal)],
            model,
            other if cell.signal in AGAINST else None,
            TASKS,
            won,
        )
        for cell in spots[number].cells
        for model, other, won in ((cell.a, cell.b, TASKS), (cell.b, cell.a, 0))
    ]


# --- for the replay ---------------------------------------------------------------------------------------------------


class FrozenNoise:
    """Noise that was drawn once and is the same for every run; keeps what it was asked."""

    def __init__(self, kept: Sequence[int]) -> None:
        self._kept = kept
        self.exact: list[int] = []
        self.asked: tuple[int, float] = (0, 0.0)

    def draw(self, exact: NDArray[np.int64], share_scale: float) -> list[int]:
        """The exact vector and the frozen noise."""
        self.exact, self.asked = [int(value) for value in exact], (len(exact), share_scale)
        return [value + kept for value, kept in zip(self.exact, self._kept, strict=True)]


class FixedCoins:
    """The same coins for the same question: one person's do not change because another is there."""

    def sample(self, population: Sequence[int], k: int) -> list[int]:
        """`k` places at even distances."""
        return [population[place * len(population) // k] for place in range(k)]


def _follow(path: list[str]) -> Callable[[FrameType, str, object], None]:
    def note(frame: FrameType, event: str, _argument: object) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.endswith(_FOLLOWED) and "windvane_privacy" in file:
            path.append(frame.f_code.co_qualname)

    return note
