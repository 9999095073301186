# SPDX-License-Identifier: Apache-2.0
"""Carried files at the coordinator: the same inbox, all or nothing of a file, and the same answers each time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from small_federation import ROUND, SmallFederation
from windvane_privacy.couriers import Parcel
from windvane_privacy.envelope import join_envelopes
from windvane_privacy.errors import (
    BodyTooLarge,
    LotBeforeClose,
    MalformedInput,
    MalformedLeaf,
    NotCommitted,
    RosterError,
    UnknownGuardian,
    UnknownManifest,
    problem_type,
)
from windvane_privacy.file_courier import FileCourier
from windvane_privacy.guardian_state import load_guardian
from windvane_privacy.handed_over import OMITTED
from windvane_privacy.identity import SigningKey
from windvane_privacy.leaf import make_leaf
from windvane_privacy.manifest import Manifest
from windvane_privacy.parcel_file import Answer, decode_answers, encode_parcels, parcel_id
from windvane_privacy.roster import Endorsement, SignedRoster
from windvane_server.carried import LOG, bundle, receive
from windvane_server.schema import leaves


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SmallFederation, Manifest]]:
    small = SmallFederation(tmp_path_factory.mktemp("opened") / "federation")
    manifest = small.open_round()
    yield small, manifest
    small.close()


@pytest.fixture
def world(opened: tuple[SmallFederation, Manifest], tmp_path: Path) -> Iterator[tuple[SmallFederation, Manifest]]:
    small = opened[0].copy(tmp_path / "federation")
    yield small, opened[1]
    small.close()


def answers_of(small: SmallFederation, *parcels: Parcel) -> list[Answer | None]:
    return [one.answer for one in receive(small.coordinator, encode_parcels(parcels)).taken]


def log_of(small: SmallFederation) -> bytes:
    return small.coordinator.handle(LOG)


def test_a_file_is_taken_like_parcels_over_https(world: tuple[SmallFederation, Manifest]) -> None:
    small, manifest = world
    made = small.draw(manifest, 1)
    leaf, reveal = Parcel("leaf", ROUND, made.leaf), Parcel("reveal", ROUND, made.envelope)
    received = receive(small.coordinator, encode_parcels([leaf, reveal]))
    said = decode_answers(received.answers)
    assert said[parcel_id(leaf)].body == small.coordinator.handle(leaf)
    assert said[parcel_id(reveal)].body == small.coordinator.handle(reveal)
    # The log that travels back is the one after the last parcel.
    assert said[parcel_id(LOG)].body == log_of(small)
    assert b'"accepted"' in said[parcel_id(LOG)].body


def test_the_same_file_again_changes_nothing_and_gets_the_same_answers(
    world: tuple[SmallFederation, Manifest],
) -> None:
    small, manifest = world
    made = small.draw(manifest, 1)
    file = encode_parcels([Parcel("leaf", ROUND, made.leaf), Parcel("reveal", ROUND, made.envelope)])
    first = receive(small.coordinator, file)
    small.restart()
    again = receive(small.coordinator, file)
    assert again == first


def test_a_damaged_file_changes_nothing(world: tuple[SmallFederation, Manifest]) -> None:
    small, manifest = world
    made, before = small.draw(manifest, 1), log_of(small)
    file = encode_parcels([Parcel("leaf", ROUND, made.leaf), Parcel("reveal", ROUND, made.envelope)])
    for place in (0, 5, 20, len(file) // 2, len(file) - 100, len(file) - 1):
        with pytest.raises(MalformedInput):
            receive(small.coordinator, file[:place] + bytes([file[place] ^ 4]) + file[place + 1 :])
        with pytest.raises(MalformedInput):
            receive(small.coordinator, file[:place])
    assert log_of(small) == before


def test_what_follows_a_refused_parcel_of_its_round_is_left(world: tuple[SmallFederation, Manifest]) -> None:
    small, manifest = world
    made = small.draw(manifest, 1)
    reveal, leaf = Parcel("reveal", ROUND, made.envelope), Parcel("leaf", ROUND, made.leaf)
    before = log_of(small)
    first, second = answers_of(small, reveal, leaf)
    assert first is not None
    assert first.problem == problem_type(NotCommitted)
    assert second is None
    assert log_of(small) == before
    # Another round's refusal holds nothing back.
    other, mine = answers_of(small, Parcel("reveal", "2099-Q1", b""), leaf)
    assert other is not None
    assert other.problem == problem_type(UnknownManifest)
    assert mine is not None
    assert mine.problem is None


def test_an_endorsement_that_is_refused_keeps_the_round_key_out(tmp_path: Path) -> None:
    small = SmallFederation(tmp_path / "federation")
    small.coordinator.propose_roster(ROUND)
    courier = FileCourier(decode_answers(bundle(small.coordinator)))
    small.courier = courier
    with small.guardian(1) as session, pytest.raises(Exception, match="Carry"):
        session.ready(ROUND)
    assert [parcel.kind for parcel in courier.outbox] == ["endorse", "leaf"]
    wrong = Endorsement.decode(courier.outbox[0].body)
    altered = Parcel("endorse", ROUND, Endorsement("0" * 64, wrong.key, wrong.sig).encode())
    first, second = answers_of(small, altered, courier.outbox[1])
    assert first is not None
    assert first.problem == problem_type(RosterError)
    assert second is None
    with small.coordinator.store.read() as connection:
        assert connection.execute(select(leaves.c.kind)).scalars().all() == []
    small.close()


def test_a_body_beyond_the_size_of_its_address_is_refused(world: tuple[SmallFederation, Manifest]) -> None:
    small, _ = world
    (answer,) = answers_of(small, Parcel("reveal", ROUND, bytes((64 << 10) + 1)))
    assert answer is not None
    assert answer.problem == problem_type(BodyTooLarge)


def test_a_bundle_answers_what_anybody_may_ask_and_guardians_parcels_that_are_here(
    world: tuple[SmallFederation, Manifest],
) -> None:
    small, manifest = world
    found = FileCourier(decode_answers(bundle(small.coordinator)))
    for parcel in (Parcel("federation"), Parcel("rounds"), LOG, *(Parcel(k, ROUND) for k in ("manifest", "roster"))):
        assert found.exchange(parcel) == small.coordinator.handle(parcel)
    for signature in SignedRoster.decode(small.send("roster")).signatures[1:]:
        parcel = Parcel("endorse", ROUND, Endorsement(manifest.roster.sha256, signature.key, signature.sig).encode())
        assert found.exchange(parcel) == small.coordinator.handle(parcel)
    ready = [line for line in log_of(small).splitlines() if b'"guardian-ready"' in line]
    assert len(ready) == 3
    for leaf in ready:
        assert found.exchange(Parcel("leaf", ROUND, leaf)) == small.coordinator.handle(Parcel("leaf", ROUND, leaf))


def test_envelopes_come_with_a_guardians_file_and_with_a_bundle_that_asks_for_them(
    world: tuple[SmallFederation, Manifest],
) -> None:
    small, manifest = world
    made = [small.submit(manifest, number) for number in range(1, 21)]
    asked = parcel_id(Parcel("envelopes", ROUND))
    assert asked not in decode_answers(bundle(small.coordinator, envelopes=True))  # not before the closing
    small.coordinator.close_round(ROUND)
    whole = join_envelopes([one.envelope for one in made])
    assert decode_answers(bundle(small.coordinator, [ROUND], envelopes=True))[asked].body == whole
    assert asked not in decode_answers(bundle(small.coordinator))
    sent = FileCourier(decode_answers(bundle(small.coordinator)))
    small.courier = sent
    with small.guardian(1) as session, pytest.raises(Exception, match="Carry"):
        session.reveal_nonce(ROUND)
    assert decode_answers(receive(small.coordinator, encode_parcels(sent.outbox)).answers)[asked].body == whole
    members = receive(small.coordinator, encode_parcels([Parcel("leaf", ROUND, made[0].leaf)]))
    assert asked not in decode_answers(members.answers)


def test_a_bundle_of_a_round_that_does_not_exist_is_refused(world: tuple[SmallFederation, Manifest]) -> None:
    with pytest.raises(UnknownManifest):
        bundle(world[0].coordinator, ["2099-Q1"])


# --- a guardian says that somebody was left out -----------------------------------------------------------------------


def omission(small: SmallFederation, note: str = "7", key: SigningKey | None = None) -> Parcel:
    own = load_guardian(small.guardian_folder(1)).identity
    fields = {"what": OMITTED, "note": note, "day": small.clock().date().isoformat()}
    return Parcel("leaf", ROUND, make_leaf("incident", ROUND, fields, key or own))


def test_a_guardians_incident_is_written_once_after_the_closing(world: tuple[SmallFederation, Manifest]) -> None:
    small, manifest = world
    for number in range(1, 21):
        small.submit(manifest, number)
    with pytest.raises(LotBeforeClose):
        small.coordinator.handle(omission(small))
    small.coordinator.close_round(ROUND)
    receipt = small.coordinator.handle(omission(small))
    assert small.coordinator.handle(omission(small)) == receipt
    assert small.coordinator.handle(omission(small, "8")) == receipt  # the first of a guardian counts
    assert log_of(small).count(OMITTED.encode()) == 1


@pytest.mark.parametrize("note", ["", "Alder", "7,", "0", "7, 8", "-1", "1,2\n"])
def test_a_guardians_incident_lists_numbers_and_nothing_else(
    world: tuple[SmallFederation, Manifest], note: str
) -> None:
    small, _ = world
    with pytest.raises(MalformedLeaf):
        small.coordinator.handle(omission(small, note))


def test_a_member_cannot_speak_as_a_guardian(world: tuple[SmallFederation, Manifest]) -> None:
    small, _ = world
    with pytest.raises(UnknownGuardian):
        small.coordinator.handle(omission(small, key=small.members[0].key))
