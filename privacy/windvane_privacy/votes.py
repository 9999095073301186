# SPDX-License-Identifier: Apache-2.0
"""From one person's outcomes to a few signed votes, and from votes to the exact vector of an organisation.

Rules kept here:
* V1 one person, one cell, one vote: the kept votes of a person lie in distinct cells;
* V2 a person's votes depend on that person's rows, the manifest and fresh coins, on nothing about anybody else;
* V3 both sides of a comparison get the same number of trials: `t = min(n_A, n_B, tasks)`, inside each kind of work and
  each stratum (recorder, basis);
* V4 trials and votes are drawn uniformly, without replacement, independent of their outcome (never "the first 20");
* V5 an unknown outcome is no row; it is never a failure;
* V6 only listed pairs have cells: an unlisted pair costs nothing and crowds nothing out;
* an organisation that declares a tie to a vendor votes in no pair with a model of that vendor, and its votes for other
  pairs are chosen as if those pairs were not listed;
* at most `q_g` votes of signal g; a person whose rows are malformed gives none and is counted;
* the organisation's net is clamped, people are never sampled;
* V7 the votes live in memory only; nothing here writes, logs or prints.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from windvane_privacy.catalogue import KINDS, Signal
from windvane_privacy.errors import BoundBroken, InvalidOutcomes
from windvane_privacy.layout import Cell, Layout
from windvane_privacy.manifest import D_SCALE, T_SCALE, Manifest
from windvane_privacy.outcomes import AGAINST, STRONG, PersonOutcome, by_person, person_is_valid

OWN_LEAST_VOTERS = 10
"""Own directions say `too_few` below this many voters of one organisation in a cell."""
OWN_LEAN = Fraction(1, 10)
"""Own directions say `even` where the net is below this share of the voters; the public rule has the same gate."""


class Sampler(Protocol):
    """Uniform draws without replacement. Production: `secrets.SystemRandom()`, which nothing can seed."""

    def sample(self, population: Sequence[int], k: int) -> list[int]:
        """`k` distinct entries of `population`, each subset of that size equally likely."""


@dataclass(frozen=True, slots=True)
class Vote:
    """One person's preference in one cell: for the cell's `a` if `toward_a`, else for its `b`."""

    cell: Cell
    toward_a: bool


@dataclass(frozen=True, slots=True)
class Collected:
    """The votes of an organisation.

    `votes`: one list per person with a valid table, empty lists included. `people`: the pseudonyms of everyone with a
    row, sorted, whether or not a vote resulted: voting depends on the data, and the charge must not. `invalid_people`:
    how many of them gave no vote because their rows were malformed.
    """

    votes: list[list[Vote]]
    people: tuple[bytes, ...]
    invalid_people: int


@dataclass(frozen=True, slots=True)
class OwnDirection:
    """One cell of the organisation's own outcome in a word: `toward_a`, `toward_b`, `even` or `too_few`. No count."""

    kind: str
    signal: Signal
    a: str
    b: str
    word: str


_Stratum = tuple[str, str]
_Rows = Mapping[tuple[str, str | None], PersonOutcome]
_Table = Mapping[tuple[Signal, str], Mapping[_Stratum, _Rows]]


def person_votes(rows: Sequence[PersonOutcome], manifest: Manifest, sampler: Sampler) -> list[Vote]:
    """The votes of one person: at most `q_g` of each signal g, in distinct cells; none if a row is malformed.

    Raises:
        InvalidOutcomes: the rows are no table, or belong to more than one person.
    """
    people = by_person(rows)
    if len(people) > 1:
        raise InvalidOutcomes
    found: list[Vote] = []
    for own in people.values():
        if rows_are_valid(own, manifest):
            found = _votes(own, manifest, Layout(manifest).cells, sampler)
    return found


def collect_votes(
    rows: Iterable[PersonOutcome], manifest: Manifest, sampler: Sampler, *, ties: Collection[str] = ()
) -> Collected:
    """`person_votes` for everyone in the table, each alone. `ties`: vendors to which the roster says that this
    organisation is tied; public, so which cells stay empty depends on no data.

    Raises:
        InvalidOutcomes: the table is no table of `PersonOutcome`; a malformed row of one person does not raise.
    """
    people = by_person(rows)
    tied = {family.id for family in manifest.families if family.vendor in ties}
    cells = [cell for cell in Layout(manifest).cells if not {cell.a, cell.b} & tied]
    valid = [own for own in people.values() if rows_are_valid(own, manifest)]
    votes = [_votes(own, manifest, cells, sampler) for own in valid]
    return Collected(votes, tuple(people), len(people) - len(valid))


def exact_vector(votes: Iterable[Sequence[Vote]], manifest: Manifest) -> NDArray[np.int64]:
    """Shape (L,), int64: for each cell of the layout 12 D, then 5 T; D in [-C, C], T in [0, C].

    `D = clamp(W_A - W_B, -C, C)`, `T = min(W_A + W_B, C)`, W = people who voted for a side.

    Raises:
        BoundBroken: a person has two votes in one cell, more than `q_g` of a signal, or a vote outside the layout.
    """
    layout = Layout(manifest)
    toward_a, toward_b = _counts(votes, manifest, layout)
    C = manifest.bounds.C
    exact = np.zeros(layout.length, dtype=np.int64)
    exact[0::2] = D_SCALE * np.clip(toward_a - toward_b, -C, C)
    exact[1::2] = T_SCALE * np.minimum(toward_a + toward_b, C)
    return exact


def own_words(votes: Iterable[Sequence[Vote]], manifest: Manifest) -> list[OwnDirection]:
    """The organisation's own outcome in words, for every cell of the layout; it stays with the organisation.

    Raises:
        BoundBroken: as `exact_vector`.
    """
    layout = Layout(manifest)
    toward_a, toward_b = _counts(votes, manifest, layout)
    return [
        OwnDirection(cell.kind, cell.signal, cell.a, cell.b, _word(int(toward_a[i]), int(toward_b[i])))
        for i, cell in enumerate(layout.cells)
    ]


def rows_are_valid(rows: Sequence[PersonOutcome], manifest: Manifest) -> bool:
    """Whether every row of one person is of the agreed form, mirror rows of blind quality included."""
    return (
        all(_typed(row) for row in rows)
        and person_is_valid(list(rows), manifest.catalogue, pooled=manifest.pooled)
        and _mirrors_agree(rows)
    )


def cell_counts(votes: Iterable[Sequence[Vote]], manifest: Manifest) -> tuple[tuple[int, int], ...]:
    """People for a and for b in every cell of the layout, before any bound; they stay with the organisation.

    Raises:
        BoundBroken: as `exact_vector`.
    """
    toward_a, toward_b = _counts(votes, manifest, Layout(manifest))
    return tuple((int(a), int(b)) for a, b in zip(toward_a, toward_b, strict=True))


# --- one person -------------------------------------------------------------------------------------------------------


def _typed(row: PersonOutcome) -> bool:
    # A field of another type would raise inside the checks and so let one person stop everybody else (V2).
    texts = (row.signal, row.kind, row.recorder, row.basis, row.model)
    return all(isinstance(text, str) for text in texts) and (row.against is None or isinstance(row.against, str))


def _mirrors_agree(rows: Sequence[PersonOutcome]) -> bool:
    # A blind comparison is one trial seen from both sides, so the two rows must tell the same story.
    blind = {
        (row.kind, row.recorder, row.basis, row.model, row.against or ""): row
        for row in rows
        if row.signal == Signal.BLIND_QUALITY
    }
    for (kind, recorder, basis, model, against), row in blind.items():
        other = blind.get((kind, recorder, basis, against, model))
        if other is not None and (other.trials != row.trials or other.successes + row.successes != row.trials):
            return False
    return True


def _votes(rows: Sequence[PersonOutcome], manifest: Manifest, cells: Sequence[Cell], sampler: Sampler) -> list[Vote]:
    table = _strata(rows)
    q = dict(zip(manifest.signals, manifest.bounds.q, strict=True))
    candidates: dict[Signal, list[Vote]] = {}
    for cell in cells:
        toward_a = _preference(cell, table, manifest.bounds.tasks, sampler)
        if toward_a is not None:
            candidates.setdefault(cell.signal, []).append(Vote(cell, toward_a))
    kept: list[Vote] = []
    for signal, found in candidates.items():
        if len(found) > q[signal]:
            found = [found[i] for i in sorted(sampler.sample(range(len(found)), q[signal]))]
        kept.extend(found)
    return kept


def _strata(rows: Sequence[PersonOutcome]) -> _Table:
    table: dict[tuple[Signal, str], dict[_Stratum, dict[tuple[str, str | None], PersonOutcome]]] = {}
    for row in rows:
        strata = table.setdefault((Signal(row.signal), row.kind), {})
        strata.setdefault((row.recorder, row.basis), {})[row.model, row.against] = row
    return table


def _preference(cell: Cell, table: _Table, tasks: int, sampler: Sampler) -> bool | None:
    """True for a, False for b, None for no vote: the common sign of the two evidence classes, where they have one."""
    strong = weak = 0
    named = cell.signal in AGAINST
    draw = _blind if cell.signal == Signal.BLIND_QUALITY else _difference
    for kind in KINDS if cell.kind not in KINDS else (cell.kind,):
        for (_recorder, basis), rows in table.get((cell.signal, kind), {}).items():
            row_a = rows.get((cell.a, cell.b if named else None))
            row_b = rows.get((cell.b, cell.a if named else None))
            if row_a is None or row_b is None:
                continue
            difference = draw(row_a, row_b, tasks, sampler)
            if basis in STRONG:
                strong += difference
            else:
                weak += difference
    return common_sign(strong, weak)


def common_sign(strong: int, weak: int) -> bool | None:
    """True if no sum is negative and one is positive, False for the reverse, None if both are 0 or they disagree."""
    signs = {s > 0 for s in (strong, weak) if s}
    return signs.pop() if len(signs) == 1 else None


def _difference(row_a: PersonOutcome, row_b: PersonOutcome, tasks: int, sampler: Sampler) -> int:
    t = min(row_a.trials, row_b.trials, tasks)
    return _drawn(row_a, t, sampler) - _drawn(row_b, t, sampler)


def _blind(row_a: PersonOutcome, row_b: PersonOutcome, tasks: int, sampler: Sampler) -> int:
    # x_B = t - x_A: the same comparisons, seen from the other side, so there is one draw.
    t = min(row_a.trials, row_b.trials, tasks)
    return 2 * _drawn(row_a, t, sampler) - t


def _drawn(row: PersonOutcome, t: int, sampler: Sampler) -> int:
    # Successes are the first `successes` of `trials` places: exactly hypergeometric, and no trial need be stored.
    return sum(place < row.successes for place in sampler.sample(range(row.trials), t))


# --- one organisation -------------------------------------------------------------------------------------------------


def _counts(
    votes: Iterable[Sequence[Vote]], manifest: Manifest, layout: Layout
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    toward_a = np.zeros(len(layout.cells), dtype=np.int64)
    toward_b = np.zeros(len(layout.cells), dtype=np.int64)
    fits = _one_person_fits(manifest, layout)
    for person in votes:
        if not fits(person):
            raise BoundBroken
        for vote in person:
            (toward_a if vote.toward_a else toward_b)[layout.index[vote.cell]] += 1
    return toward_a, toward_b


def _one_person_fits(manifest: Manifest, layout: Layout) -> Callable[[Sequence[Vote]], bool]:
    q = dict(zip(manifest.signals, manifest.bounds.q, strict=True))

    def fits(person: Sequence[Vote]) -> bool:
        cells = {vote.cell for vote in person}
        used = Counter(cell.signal for cell in cells)
        return (
            len(cells) == len(person)
            and all(cell in layout.index for cell in cells)
            and all(used[signal] <= q[signal] for signal in used)
        )

    return fits


def _word(toward_a: int, toward_b: int) -> str:
    if toward_a + toward_b < OWN_LEAST_VOTERS:
        return "too_few"
    net = toward_a - toward_b
    if net == 0 or abs(net) < OWN_LEAN * (toward_a + toward_b):
        return "even"
    return "toward_a" if net > 0 else "toward_b"
