# SPDX-License-Identifier: Apache-2.0
"""Files instead of a network at the coordinator: bundles for whoever asks, and files that were carried in.

Rules kept here:
* the one inbox takes every parcel of a file as it would over https, within the same sizes;
* a file is read whole before its first parcel is handed on: a damaged one changes nothing;
* the same file again gets the same answers and changes nothing;
* what follows a refused parcel of the same round is not handed on, as over https it would not have been sent;
* a bundle holds answers to what anybody may ask, and what was said to guardians' parcels that are already here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import select

from windvane_privacy.couriers import ROUTES, Parcel
from windvane_privacy.errors import (
    BodyTooLarge,
    ConfigurationError,
    LedgerError,
    MalformedInput,
    StateNotWritten,
    UnknownManifest,
    WindvaneError,
)
from windvane_privacy.log import read_leaf
from windvane_privacy.parcel_file import Answer, decode_parcels, encode_answers, parcel_id, refused
from windvane_privacy.roster import Endorsement, SignedRoster
from windvane_server.coordinator import Coordinator
from windvane_server.http_limits import limit_of
from windvane_server.schema import leaves, results, rounds

LOG = Parcel("leaves")
"""The question for the whole log, in the very bytes that members and guardians ask it with."""
GUARDIANS_ENTRIES = frozenset({"guardian-ready", "nonce", "opened"})
_OWN = (ConfigurationError, LedgerError, StateNotWritten)
"""Faults of this machine: no answer to anybody, and no reason to go on."""


@dataclass(frozen=True, slots=True)
class Taken:
    """One parcel of a file and what became of it; `answer` is None where it was not handed on."""

    parcel: Parcel
    answer: Answer | None


@dataclass(frozen=True, slots=True)
class Received:
    """A file that was taken in: its parcels in order, and the file to carry back."""

    taken: tuple[Taken, ...]
    answers: bytes


def bundle(coordinator: Coordinator, names: Sequence[str] = (), *, envelopes: bool = False) -> bytes:
    """The file from which a member or guardian without a network reads: federation, log, and the rounds of these names
    (without a name: all). `envelopes`: with the sealed envelopes of each closed round, for guardians.

    Raises:
        UnknownManifest: no round of one of these names.
    """
    known = _names(coordinator)
    if not set(names) <= set(known):
        raise UnknownManifest
    return encode_answers(_standing(coordinator, names or known, envelopes=envelopes))


def receive(coordinator: Coordinator, raw: bytes) -> Received:
    """Hand every parcel of a carried file to the inbox. The answer file holds what was said to each, and a fresh bundle
    of the rounds they belong to (with the envelopes, where a guardian sent the file).

    Raises:
        MalformedInput: no file of parcels, or a damaged one; nothing was handed on.
    """
    parcels = decode_parcels(raw)
    taken: list[Taken] = []
    stopped: set[str] = set()
    for parcel in parcels:
        if parcel.round_id in stopped:
            taken.append(Taken(parcel, None))
            continue
        answer = _ask(coordinator, parcel)
        if answer.problem is not None:
            stopped.add(parcel.round_id)
        taken.append(Taken(parcel, answer))
    known = _names(coordinator)
    named = [name for name in dict.fromkeys(p.round_id for p in parcels) if name in known]
    standing = _standing(coordinator, named, envelopes=any(_is_guardians(p) for p in parcels))
    said = {parcel_id(one.parcel): one.answer for one in taken if one.answer is not None}
    return Received(tuple(taken), encode_answers(standing | said))


def _standing(coordinator: Coordinator, names: Sequence[str], *, envelopes: bool) -> dict[bytes, Answer]:
    """What can be answered now: questions of everybody, and guardians' parcels that were taken before."""
    found: dict[bytes, Answer] = {}
    for parcel in (*_questions(names, envelopes=envelopes), *_sent_before(coordinator, names)):
        answer = _ask(coordinator, parcel)
        # What is not there yet is left out: the reader is told to ask for a newer file.
        if answer.problem is None:
            found[parcel_id(parcel)] = answer
    return found


def _questions(names: Sequence[str], *, envelopes: bool) -> Iterator[Parcel]:
    yield Parcel("federation")
    yield Parcel("rounds")
    yield LOG
    for name in names:
        yield from (Parcel(kind, name) for kind in ("state", "manifest", "roster"))
        if envelopes:
            yield Parcel("envelopes", name)


def _sent_before(coordinator: Coordinator, names: Sequence[str]) -> Iterable[Parcel]:
    """Guardians' parcels that are here: the inbox answers them again as it did the first time."""
    found: list[Parcel] = []
    with coordinator.store.read() as connection:
        entries = select(leaves.c.round, leaves.c.raw).where(
            leaves.c.round.in_(names), leaves.c.kind.in_(GUARDIANS_ENTRIES)
        )
        found += [Parcel("leaf", row.round, row.raw) for row in connection.execute(entries.order_by(leaves.c.idx))]
        sums = select(results.c.round, results.c.raw).where(results.c.round.in_(names))
        found += [Parcel("result", row.round, row.raw) for row in connection.execute(sums)]
    for name in names:
        roster = _ask(coordinator, Parcel("roster", name))
        if roster.problem is None:
            signed = SignedRoster.decode(roster.body)
            found += [
                Parcel("endorse", name, Endorsement(signed.roster.sha256, each.key, each.sig).encode())
                for each in signed.signatures[1:]  # the first is the coordinator's own
            ]
    return found


def _names(coordinator: Coordinator) -> list[str]:
    with coordinator.store.read() as connection:
        return list(connection.execute(select(rounds.c.round).order_by(rounds.c.place)).scalars())


def _ask(coordinator: Coordinator, parcel: Parcel) -> Answer:
    try:
        limit = limit_of(parcel.kind, ROUTES[parcel.kind])
        if len(parcel.body) > limit:
            raise BodyTooLarge(f"At most {limit} bytes are accepted here.")
        return Answer(coordinator.handle(parcel))
    except _OWN:
        raise
    except WindvaneError as error:
        return refused(error)


def _is_guardians(parcel: Parcel) -> bool:
    if parcel.kind != "leaf":
        return parcel.kind in {"endorse", "result"}
    try:
        return read_leaf(parcel.body).type in GUARDIANS_ENTRIES
    except MalformedInput:
        return False
