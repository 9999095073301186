# SPDX-License-Identifier: Apache-2.0
"""A rehearsal: the whole path of one envelope on invented people, opened again with keys made for this minute.

Rules kept here:
* the people are invented and the same for everybody: nothing of the member's data is read, nor handed in;
* every step is the real one: votes, bounds, OpenDP's noise, shares, seals, signature, opening;
* the guardians' keys and the member's key are made here and forgotten here: a real envelope cannot be opened by the
  member that sealed it, which is why this one has to be an imitation in its keys;
* nothing is charged, stored or sent.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import msgspec

from windvane_privacy import field
from windvane_privacy.catalogue import POOLED, Signal
from windvane_privacy.envelope import commit_hash, envelope_length, open_share, parse_envelope, verify_envelope
from windvane_privacy.identity import SigningKey
from windvane_privacy.layout import Cell, Layout
from windvane_privacy.manifest import Manifest
from windvane_privacy.noise import Noise
from windvane_privacy.outcomes import Basis, PersonOutcome
from windvane_privacy.sealing import RoundKey
from windvane_privacy.shares import combine
from windvane_privacy.submission import Sender, make_submission
from windvane_privacy.votes import Sampler, cell_counts, collect_votes

PEOPLE = 24
"""Invented people of the first cell; each next one has half as many."""
CELLS = 3
"""Cells with invented people; all others are zero, and carry the same noise."""


@dataclass(frozen=True, slots=True)
class RehearsedCell:
    """One cell: people for a and b, the two released integers as they were drawn, and as they came out again."""

    cell: Cell
    people: tuple[int, int]
    drawn: tuple[int, int]
    opened: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What happened. `pairs`: sets of guardians that opened the same numbers. `same`: all of them equal what was drawn.
    `bytes`: length of the envelope, that of every real one of the manifest."""

    cells: tuple[RehearsedCell, ...]
    pairs: tuple[tuple[int, ...], ...]
    same: bool
    envelope_bytes: int
    commit_hash: str


def rehearse(manifest: Manifest, *, noise: Noise, sampler: Sampler) -> Rehearsal:
    """Draw, seal and open once, on invented people.

    Raises:
        BoundBroken, ShareError, EnvelopeError: a step of the real path does not hold.
    """
    keys = {guardian.index: RoundKey.generate() for guardian in manifest.guardians}
    guardians = tuple(
        msgspec.structs.replace(one, round_key=keys[one.index].public.hex(), round_key_id=keys[one.index].key_id)
        for one in manifest.guardians
    )
    imitation = msgspec.structs.replace(manifest, guardians=guardians)
    rows = list(_invented(imitation))
    signer = SigningKey.generate()
    drawn = make_submission(
        rows,
        imitation,
        sender=Sender(1, signer, secrets.token_hex(16), secrets.token_hex(32)),
        day=manifest.submission.opens[:10],
        admits=lambda _person: True,
        noise=noise,
        sampler=sampler,
        versions="rehearsal",
    )
    envelope = parse_envelope(drawn.envelope, imitation)
    verify_envelope(envelope, signer.public)
    shares = {index: open_share(envelope, imitation, index, key) for index, key in keys.items()}
    pairs = tuple(combinations(sorted(shares), imitation.t))
    opened = [field.decode_signed(combine({j: shares[j] for j in some}, imitation.t)[:-1]) for some in pairs]
    counts = cell_counts(collect_votes(rows, imitation, sampler).votes, imitation)
    layout = Layout(imitation)
    cells = tuple(
        RehearsedCell(cell, counts[i], _two(drawn.noisy, i), _two(opened[0], i))
        for i, cell in enumerate(layout.cells)
        if cell in {row for row, _ in _wanted(imitation)}
    )
    same = all(tuple(one) == drawn.noisy for one in opened) and commit_hash(drawn.envelope) == drawn.commit_hash
    return Rehearsal(cells, pairs, same, envelope_length(imitation), drawn.commit_hash)


def _two(values: tuple[int, ...] | list[int], cell: int) -> tuple[int, int]:
    return values[2 * cell], values[2 * cell + 1]


def _wanted(manifest: Manifest) -> Iterator[tuple[Cell, int]]:
    """The first cells of completion, each with a number of invented people."""
    found = [cell for cell in Layout(manifest).cells if cell.signal == Signal.COMPLETION]
    for place, cell in enumerate(found[:CELLS]):
        yield cell, PEOPLE >> place


def _invented(manifest: Manifest) -> Iterator[PersonOutcome]:
    """People who finished more with `a`; one in four finished more with `b`."""
    number = 0
    for cell, people in _wanted(manifest):
        kind = "coding" if cell.kind == POOLED else cell.kind
        for place in range(people):
            number += 1
            won, lost = (cell.b, cell.a) if place % 4 == 3 else (cell.a, cell.b)
            for model, successes in ((won, 8), (lost, 2)):
                yield PersonOutcome(
                    number.to_bytes(16, "big"), Signal.COMPLETION, kind, "rehearsal", Basis.EXPLICIT, model, None, 10,
                    successes,
                )  # fmt: skip
