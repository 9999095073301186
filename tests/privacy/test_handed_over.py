# SPDX-License-Identifier: Apache-2.0
"""An ignored envelope in a guardian's hands: what is held, what is refused, and what a set without it costs."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from guardian_world import ROUND, World, kinds, make_members
from manifests import derived, make_manifest, member_key
from windvane_privacy import canonical, log, lot, shares
from windvane_privacy.couriers import Parcel
from windvane_privacy.envelope import build_envelope, commit_hash
from windvane_privacy.errors import (
    AlreadyOpened,
    BadMemberSignature,
    CommitMismatch,
    CoordinatorUnreachable,
    IllegalTransition,
    MalformedEnvelope,
    MalformedInput,
    MemberOmitted,
    NotCommitted,
    NotReady,
    RoundNotOpened,
    ShareWillNotOpen,
    WindvaneError,
)
from windvane_privacy.guardian_ledger import FILE, GuardianLedger
from windvane_privacy.handed_over import OMITTED, read_hand_over
from windvane_privacy.identity import SigningKey
from windvane_privacy.keyfiles import secure_folder
from windvane_privacy.parcel_file import encode_parcels

IGNORED = 21
"""The member whose envelope the coordinator throws away."""


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A round that is open; of twenty-one members the last has its commitment in the log and is not accepted."""
    made = World(tmp_path_factory.mktemp("template"))
    made.roster = made.make_roster(make_members(IGNORED))
    made.all_ready()
    made.open_round()
    made.submit_all()
    made.leaves = [leaf for leaf in made.leaves if not is_accepted_leaf(leaf, IGNORED)]
    return made


@pytest.fixture
def world(template: World, tmp_path: Path) -> World:
    made = World(tmp_path)
    for j, mine in made.folders.items():
        shutil.rmtree(mine)
        shutil.copytree(template.folders[j], mine)
    for name, value in vars(template).items():
        if name not in {"folder", "folders"}:
            setattr(made, name, value.copy() if isinstance(value, (list, dict)) else value)
    return made


def is_accepted_leaf(raw: bytes, member: int) -> bool:
    leaf = log.read_leaf(raw)
    return leaf.type == "accepted" and leaf.fields["member"] == member


def handed(world: World, raw: bytes | None = None) -> Parcel:
    return Parcel("reveal", ROUND, world.envelopes[IGNORED] if raw is None else raw)


def hold(world: World, parcel: Parcel, guardian: int = 1) -> tuple[int, bool]:
    with world.session(guardian) as session:
        return session.hold(parcel)


def held(world: World, guardian: int = 1) -> list[tuple[int, str]]:
    with GuardianLedger(world.folders[guardian]) as ledger:
        return ledger.held(ROUND)


def accept(world: World) -> None:
    world.say("accepted", "2026-10-02", member=IGNORED, hash=commit_hash(world.envelopes[IGNORED]))


def incidents(world: World) -> list[log.Leaf]:
    return [leaf for leaf in map(log.read_leaf, world.leaves) if leaf.type == "incident"]


# --- what is held -----------------------------------------------------------------------------------------------------


def test_a_guardian_that_holds_an_envelope_releases_no_nonce_for_a_set_without_it(world: World) -> None:
    assert hold(world, handed(world)) == (IGNORED, True)
    world.close()
    for _ in range(2):
        with world.session(1) as session, pytest.raises(MemberOmitted, match="Numbers: 21"):
            session.reveal_nonce(ROUND)
    assert "nonce" not in kinds(world)
    (incident,) = incidents(world)  # said once, with the same bytes each time
    assert (incident.fields["what"], incident.fields["note"]) == (OMITTED, "21")
    own = world.guardians[0].identity
    log.verify_leaf(incident, bytes.fromhex(own))


def test_two_of_three_guardians_that_hold_leave_too_few_nonces_for_a_lot(world: World) -> None:
    for guardian in (1, 2):
        hold(world, handed(world), guardian)
    world.close()
    world.all_reveal(3)
    for guardian in (1, 2):
        with world.session(guardian) as session, pytest.raises(MemberOmitted):
            session.reveal_nonce(ROUND)
    assert kinds(world).count("nonce") == 1 < world.manifest.t


def test_a_set_with_the_held_envelope_is_opened_as_ever(world: World) -> None:
    hold(world, handed(world))
    accept(world)
    world.close()
    world.all_reveal()
    world.draw_lot()
    world.open(1)
    assert incidents(world) == []
    assert 1 in world.results


def test_an_envelope_held_after_the_nonce_was_revealed_still_stops_the_opening(world: World) -> None:
    world.close()
    world.all_reveal()
    world.draw_lot()
    assert hold(world, handed(world)) == (IGNORED, True)
    with pytest.raises(MemberOmitted):
        world.open(1)
    assert world.results == {}


def test_after_its_opening_a_guardian_says_that_it_is_too_late(world: World) -> None:
    world.close()
    world.all_reveal()
    world.draw_lot()
    world.open(1)
    with pytest.raises(AlreadyOpened):
        hold(world, handed(world))
    assert held(world) == []


def test_what_the_log_shows_as_accepted_is_not_held(world: World) -> None:
    accept(world)
    assert hold(world, handed(world)) == (IGNORED, False)
    assert held(world) == []


def test_a_replay_is_held_once_and_survives_a_restart(world: World) -> None:
    for _ in range(3):
        assert hold(world, handed(world)) == (IGNORED, True)
    assert held(world) == [(IGNORED, commit_hash(world.envelopes[IGNORED]))]


def test_the_refusal_stands_whatever_the_coordinator_says_to_the_entry(world: World) -> None:
    hold(world, handed(world))
    world.close()

    def deaf(_parcel: Parcel) -> bytes:
        raise CoordinatorUnreachable

    world.answers["leaf"] = deaf
    with world.session(1) as session, pytest.raises(MemberOmitted):
        session.reveal_nonce(ROUND)
    del world.answers["leaf"]
    with world.session(1) as session, pytest.raises(MemberOmitted):
        session.reveal_nonce(ROUND)
    assert len(incidents(world)) == 1


# --- what is refused and holds nothing back ---------------------------------------------------------------------------


def unsigned(world: World) -> bytes:
    raw = world.envelopes[IGNORED]
    return raw[:-64] + bytes(64)


def signed_by_another(world: World) -> bytes:
    parts = shares.split([1] * world.manifest.length, world.manifest.t, world.manifest.n)
    return build_envelope(world.manifest, IGNORED, member_key(1), parts, bytes(16))


def never_committed(world: World) -> bytes:
    parts = shares.split([1] * world.manifest.length, world.manifest.t, world.manifest.n)
    return build_envelope(world.manifest, IGNORED, member_key(IGNORED), parts, bytes(16))


def without_any_commitment(world: World) -> bytes:
    mine = [x for x in world.leaves if b'"commitment"' in x and log.read_leaf(x).fields["member"] == IGNORED]
    world.leaves.remove(mine[0])
    return world.envelopes[IGNORED]


def committed_by_somebody_else(world: World) -> bytes:
    digest = commit_hash(without_any_commitment(world))
    world.put(world.commitment(IGNORED, digest, key=1))
    return world.envelopes[IGNORED]


def committed_too_late(world: World) -> bytes:
    digest = commit_hash(without_any_commitment(world))
    world.put(world.commitment(IGNORED, digest, day="2026-10-30"))
    return world.envelopes[IGNORED]


def committed_after_the_closing(world: World) -> bytes:
    digest = commit_hash(without_any_commitment(world))
    world.close()
    world.put(world.commitment(IGNORED, digest))
    return world.envelopes[IGNORED]


def committed_second(world: World) -> bytes:
    raw = never_committed(world)
    world.put(world.commitment(IGNORED, commit_hash(raw)))
    return raw


def of_another_round(world: World) -> bytes:
    other = make_manifest(members=20, k=3)
    parts = shares.split([1] * other.length, other.t, other.n)
    return build_envelope(other, IGNORED, member_key(IGNORED), parts, bytes(16))


def cut_short(world: World) -> bytes:
    return world.envelopes[IGNORED][:-1]


def not_opening(world: World) -> bytes:
    """Committed and signed by the member, but the first share is garbage: a guardian could add nothing of it."""
    without_any_commitment(world)
    raw = bytearray(world.envelopes[IGNORED][:-64])
    raw[92 + 37 + 1200] ^= 1
    whole = bytes(raw) + member_key(IGNORED).sign(b"windvane/1/envelope\0", bytes(raw))
    world.put(world.commitment(IGNORED, commit_hash(whole)))
    return whole


@pytest.mark.parametrize(
    ("forge", "error"),
    [
        (unsigned, BadMemberSignature),
        (signed_by_another, BadMemberSignature),
        (never_committed, CommitMismatch),
        (without_any_commitment, NotCommitted),
        (committed_by_somebody_else, NotCommitted),
        (committed_too_late, NotCommitted),
        (committed_after_the_closing, NotCommitted),
        (committed_second, CommitMismatch),
        (of_another_round, MalformedEnvelope),
        (cut_short, MalformedEnvelope),
        (not_opening, ShareWillNotOpen),
    ],
)
def test_a_forged_hand_over_is_refused_by_name_and_does_not_block_the_round(
    world: World, forge: Callable[[World], bytes], error: type[WindvaneError]
) -> None:
    parcel = handed(world, forge(world))
    with pytest.raises(error):
        hold(world, parcel)
    assert held(world) == []
    if "round-closed" not in kinds(world):
        world.close()
    world.all_reveal()
    world.draw_lot()
    world.open(1)
    assert incidents(world) == []


def test_a_round_that_was_stopped_holds_nothing(world: World) -> None:
    world.say("incident", what="aborted", note="legal")
    with pytest.raises(RoundNotOpened):
        hold(world, handed(world))
    assert held(world) == []


def test_a_guardian_outside_of_the_round_holds_nothing(world: World) -> None:
    with pytest.raises(NotReady):
        hold(world, Parcel("reveal", "2099-Q1", world.envelopes[IGNORED]))


@pytest.mark.parametrize(
    "parcels",
    [[], [Parcel("leaf", ROUND, b"{}")], [Parcel("reveal", ROUND, b"a"), Parcel("reveal", ROUND, b"b")]],
    ids=["none", "no envelope", "two"],
)
def test_a_file_that_is_handed_over_holds_one_envelope(parcels: list[Parcel]) -> None:
    with pytest.raises(MalformedInput):
        read_hand_over(encode_parcels(parcels))


# --- the ledger -------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = secure_folder(tmp_path / "state")
    GuardianLedger.create(made)
    return made


def test_what_is_held_is_neither_changed_nor_deleted(folder: Path) -> None:
    with GuardianLedger(folder) as ledger:
        with pytest.raises(IllegalTransition):
            ledger.hold(ROUND, 1, "h", b"envelope")  # no such round here
        ledger.begin(ROUND, "key", derived("nonce"), b"ready")
        ledger.hold(ROUND, 1, "h", b"envelope")
        with pytest.raises(IllegalTransition):
            ledger.hold(ROUND, 1, "other", b"another")
        ledger.keep_omission(ROUND, b"leaf")
        with pytest.raises(IllegalTransition):
            ledger.keep_omission(ROUND, b"another")
        for statement in ("UPDATE held SET hash = 'x'", "DELETE FROM held", "DELETE FROM omission"):
            with pytest.raises(sqlite3.IntegrityError, match="written once"):
                ledger._connection.execute(statement)
    with GuardianLedger(folder) as ledger:
        assert ledger.held(ROUND) == [(1, "h")]
        assert ledger.omission(ROUND) == b"leaf"


def test_a_ledger_of_the_first_format_is_brought_up_and_keeps_its_rounds(folder: Path) -> None:
    with GuardianLedger(folder) as ledger:
        ledger.begin(ROUND, "key", derived("nonce"), b"ready")
    connection = sqlite3.connect(folder / FILE.name)
    connection.executescript("DROP TABLE held; DROP TABLE omission; DROP TABLE destroyed; PRAGMA user_version = 1;")
    connection.close()
    with GuardianLedger(folder) as ledger:
        row = ledger.round(ROUND)
        assert row is not None
        assert row.ready_leaf == b"ready"
        ledger.hold(ROUND, 1, "h", b"envelope")
    connection = sqlite3.connect(folder / FILE.name)
    assert connection.execute("PRAGMA user_version").fetchone() == (FILE.format,)
    connection.close()


def test_the_incident_of_a_stranger_is_not_a_guardians(world: World) -> None:
    stranger = SigningKey.from_raw(derived("stranger"))
    fields = {"what": OMITTED, "note": "20", "day": "2026-10-04"}
    world.put(log.make_leaf("incident", ROUND, fields, stranger))
    world.close()
    world.all_reveal()  # nobody else's word holds a guardian back
    assert canonical.decode(world.leaves[-1])["type"] == "nonce"
    assert lot.set_root(world.accepted())
