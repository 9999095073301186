# SPDX-License-Identifier: Apache-2.0
"""A guardian looks before it acts: each check with its finding, each bad share with its member; nothing is sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from guardian_world import ROUND, World
from manifests import member_key
from windvane_privacy import inspection
from windvane_privacy.envelope import commit_hash, join_envelopes
from windvane_privacy.errors import (
    LotBeforeClose,
    LotMismatch,
    ManifestChanged,
    NotReady,
    SetMismatch,
    ShareWillNotOpen,
)
from windvane_privacy.log import read_leaf
from windvane_privacy.signed import sign_manifest

ASKED = {"manifest", "roster", "leaves", "envelopes"}
"""What a look may ask for; everything else would tell somebody something."""


def looked(world: World) -> list[inspection.Line]:
    world.asked.clear()
    before = list(world.leaves)
    with world.session(1) as session:
        found = list(inspection.inspect(session, ROUND))
    assert set(world.asked) <= ASKED
    assert world.leaves == before
    return found


@pytest.mark.parametrize(
    ("stage", "holds", "refusal"), [("opened", 1, LotBeforeClose), ("closed", 2, NotReady), ("lot", 3, None)]
)
def test_a_look_says_how_far_a_round_holds(
    tmp_path: Path, stage: str, holds: int, refusal: type[Exception] | None
) -> None:
    world = World(tmp_path)
    world.go_to(stage)
    found = looked(world)
    assert sum(line.refusal is None for line in found) == holds
    assert [type(line.refusal) for line in found if line.refusal is not None] == ([refusal] if refusal else [])


def test_a_look_tells_what_was_found(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.go_to("lot")
    agreement, closed, lot = looked(world)
    assert world.manifest.sha256 in agreement.found
    assert "20 organisations" in agreement.found
    assert closed.found.startswith("20 accepted, root ")
    assert lot.found == "cohorts of 5, 5, 5, 5"


def test_after_the_first_refusal_nothing_more_is_looked_at(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.go_to("lot")
    world.signed_manifest = sign_manifest(world.make_manifest(rounds_so_far=1), world.key)
    (only,) = looked(world)
    assert isinstance(only.refusal, ManifestChanged)


def test_a_lie_about_the_lot_shows_as_its_own_line(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.go_to("closed")
    world.all_reveal(2, 3, 1)
    world.cohorts = world.table(world.nonces())
    root = read_leaf(world.leaves[-1]).fields["set_root"]
    world.say("lot", set_root=root, nonces=world.nonces(), cohorts_sha256="0" * 64)
    found = looked(world)
    assert [type(line.refusal) for line in found] == [type(None), type(None), LotMismatch]


def spoiled(world: World, *members: int) -> None:
    """These members committed to envelopes whose first share is garbage."""
    world.go_to("submitted")
    for member in members:
        raw = bytearray(world.make_envelope(member))
        raw[200] ^= 1
        bad = bytes(raw[:-64]) + member_key(member).sign(b"windvane/1/envelope\0", bytes(raw[:-64]))
        for leaf in [x for x in world.leaves if read_leaf(x).fields.get("member") == member]:
            world.leaves.remove(leaf)
        world.envelopes[member] = bad
        world.put(world.commitment(member, commit_hash(bad)))
        world.say("accepted", "2026-10-02", member=member, hash=commit_hash(bad))
    world.close()


def test_verify_names_every_member_whose_share_does_not_open(tmp_path: Path) -> None:
    world = World(tmp_path)
    spoiled(world, 5, 11)
    world.asked.clear()
    with world.session(1) as session:
        found = inspection.verify(session, ROUND)
    assert [(member, type(refusal)) for member, refusal in found] == [(5, ShareWillNotOpen), (11, ShareWillNotOpen)]
    assert set(world.asked) <= ASKED
    # Only the first share was spoiled: the others are of no use to that guardian, and open at theirs.
    with world.session(2) as session:
        assert inspection.verify(session, ROUND) == []


def test_verify_does_not_look_into_another_set(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.go_to("closed")
    honest = [world.envelopes[n] for n, _ in sorted(world.accepted())]
    world.answers["envelopes"] = lambda _parcel: join_envelopes(honest[1:])
    with world.session(1) as session, pytest.raises(SetMismatch):
        inspection.verify(session, ROUND)


def test_a_look_before_the_closing_opens_no_share(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.go_to("submitted")
    with world.session(1) as session, pytest.raises(LotBeforeClose):
        inspection.verify(session, ROUND)
    assert "envelopes" not in world.asked
