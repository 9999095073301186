# SPDX-License-Identifier: Apache-2.0
"""Every lie about a round's roster and manifest that a guardian can see: each refused by its own name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from guardian_world import ROUND, World, kinds, make_members, place
from log_witnesses import WITNESSES, receipt
from manifests import LOG_ORIGIN, derived
from windvane_privacy import lot
from windvane_privacy.errors import (
    DemoManifest,
    FederationTooSmall,
    GuardianNotPinned,
    InconsistentCheckpoint,
    LotBeforeClose,
    ManifestChanged,
    ManifestError,
    ManifestNotLogged,
    ManifestSignatureInvalid,
    NonceMismatch,
    ReceiptRefused,
    RosterError,
    RosterNotSuccessor,
    RosterSignatureMissing,
    SoftwareTooOld,
    UnknownManifest,
    WindvaneError,
    WrongGuardianKey,
)
from windvane_privacy.identity import KEY_KEM, SigningKey, key_id
from windvane_privacy.log import leaf_hash, make_leaf
from windvane_privacy.notes import Cosigner
from windvane_privacy.roster import SignedRoster, sign_roster
from windvane_privacy.sealing import RoundKey
from windvane_privacy.signed import sign_manifest

Lie = Callable[[World], None]
other_key = SigningKey.from_raw(derived("somebody else"))


# --- ready: the roster ------------------------------------------------------------------------------------------------


def roster_of_somebody_else(world: World) -> None:
    forged = SignedRoster(world.roster, (sign_roster(world.roster, other_key),))
    world.answers["roster"] = lambda parcel: forged.encode()


def roster_edited_after_signing(world: World) -> None:
    signature = sign_roster(world.roster, world.key)
    changed = world.make_roster(make_members(21))
    world.answers["roster"] = lambda parcel: SignedRoster(changed, (signature,)).encode()


def roster_with_too_few(world: World) -> None:
    world.roster = world.make_roster(make_members(19))


def roster_with_too_few_people(world: World) -> None:
    world.roster = world.make_roster(make_members(20, "10-49"))


def roster_with_strange_guardian(world: World) -> None:
    strange = msgspec.structs.replace(world.guardians[2], identity=other_key.public.hex())
    world.roster = msgspec.structs.replace(world.roster, guardians=(*world.guardians[:2], strange))


def roster_of_another_log(world: World) -> None:
    world.roster = msgspec.structs.replace(world.roster, log_origin="another.example/log")


def receipt_of_another_leaf(world: World) -> None:
    other = make_leaf("incident", "", {"what": "another", "note": "", "day": "2026-05-01"}, world.key)
    world.answers["leaf"] = lambda parcel: receipt([other], 0, world.now)


def receipt_of_another_signer(world: World) -> None:
    stranger = Cosigner.from_raw(LOG_ORIGIN, derived("another log"))
    world.answers["leaf"] = lambda parcel: receipt([parcel.body], 0, world.now, key=stranger)


def receipt_without_a_quorum(world: World) -> None:
    world.answers["leaf"] = lambda parcel: receipt([parcel.body], 0, world.now, witnesses=WITNESSES[:1])


@pytest.mark.parametrize(
    ("lie", "refusal"),
    [
        (roster_of_somebody_else, RosterSignatureMissing),
        (roster_edited_after_signing, RosterSignatureMissing),
        (roster_with_too_few, FederationTooSmall),
        (roster_with_too_few_people, FederationTooSmall),
        (roster_with_strange_guardian, GuardianNotPinned),
        (roster_of_another_log, RosterError),
        (receipt_of_another_leaf, ReceiptRefused),
        (receipt_of_another_signer, ReceiptRefused),
        (receipt_without_a_quorum, ReceiptRefused),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_ready_refuses(tmp_path: Path, lie: Lie, refusal: type[WindvaneError]) -> None:
    world = World(tmp_path)
    lie(world)
    with world.session(1) as session, pytest.raises(refusal):
        session.ready(ROUND)
    assert "leaf" not in world.asked or refusal is ReceiptRefused


def member_with_another_key(world: World) -> None:
    first = msgspec.structs.replace(make_members(1)[0], key=other_key.public.hex(), key_id=other_key.key_id)
    world.roster = world.make_roster((first, *make_members(20)[1:]), 2, world.roster.sha256)


def member_gone(world: World) -> None:
    world.roster = world.make_roster(make_members(20, first=2), 2, world.roster.sha256)


def another_first_roster(world: World) -> None:
    world.roster = world.make_roster(make_members(21))


def another_history(world: World) -> None:
    world.roster = world.make_roster(make_members(21), 2, "0" * 64)


@pytest.mark.parametrize("lie", [member_with_another_key, member_gone, another_first_roster, another_history])
def test_a_roster_that_does_not_follow_the_last_one_is_refused(tmp_path: Path, lie: Lie) -> None:
    world = World(tmp_path)
    world.all_ready()
    lie(world)
    with world.session(1) as session, pytest.raises(RosterNotSuccessor):
        session.ready("2026-Q4")


# --- after the manifest -----------------------------------------------------------------------------------------------


def second_manifest(world: World) -> None:
    world.signed_manifest = sign_manifest(world.make_manifest(rounds_so_far=1), world.key)


def unsigned_manifest(world: World) -> None:
    changed = msgspec.structs.replace(world.manifest, coordinator=other_key.public.hex())
    world.signed_manifest = sign_manifest(changed, other_key)


def manifest_of_another_round(world: World) -> None:
    world.signed_manifest = sign_manifest(world.make_manifest(round="2026-Q4"), world.key)


def manifest_not_logged(world: World) -> None:
    del world.leaves[place(world, "round-opened")]


def manifest_logged_by_somebody_else(world: World) -> None:
    fields = {"manifest": world.manifest.sha256, "day": "2026-05-01"}
    world.leaves[place(world, "round-opened")] = make_leaf("round-opened", ROUND, fields, other_key)


def replace_entry(world: World, index: int, **changes: str) -> None:
    entries = list(world.manifest.guardians)
    entries[index - 1] = msgspec.structs.replace(entries[index - 1], **changes)
    reopen(world, guardians=entries)


def reopen(world: World, **changes: object) -> None:
    del world.leaves[place(world, "round-opened")]
    world.open_round(world.make_manifest(**changes))


def coordinators_key_for_me(world: World) -> None:
    key = RoundKey.generate()
    replace_entry(world, 1, round_key=key.public.hex(), round_key_id=key.key_id)


def coordinators_key_for_another_guardian(world: World) -> None:
    key = RoundKey.generate()
    replace_entry(world, 2, round_key=key.public.hex(), round_key_id=key_id(KEY_KEM, key.public))


def coordinators_ready_leaf_for_another_guardian(world: World) -> None:
    """The key is swapped in the log too, but the coordinator cannot sign as the guardian."""
    key, nonce = RoundKey.generate(), lot.nonce_commitment(ROUND, 2, derived("chosen"))
    fields = {
        "guardian": 2,
        "round_key": key.public.hex(),
        "round_key_id": key.key_id,
        "nonce_commitment": nonce,
        "day": "2026-05-01",
    }
    leaf = make_leaf("guardian-ready", ROUND, fields, world.key)
    opened = place(world, "round-opened")
    world.leaves.insert(opened, leaf)
    replace_entry(
        world,
        2,
        round_key=key.public.hex(),
        round_key_id=key.key_id,
        nonce_commitment=nonce,
        ready_leaf=leaf_hash(leaf),
    )


def other_nonce_for_me(world: World) -> None:
    replace_entry(world, 1, nonce_commitment="0" * 64)


def other_ready_leaf_for_me(world: World) -> None:
    replace_entry(world, 1, ready_leaf="0" * 64)


def strange_guardian(world: World) -> None:
    replace_entry(world, 3, identity=other_key.public.hex())


def guardians_swapped(world: World) -> None:
    first, second, third = world.manifest.guardians
    swapped = [
        msgspec.structs.replace(second, index=1),
        msgspec.structs.replace(first, index=2),
        third,
    ]
    reopen(world, guardians=swapped)


def rule_nobody_has(world: World) -> None:
    rule = msgspec.structs.replace(world.manifest.rules[0], sha256="0" * 64)
    reopen(world, rules=(rule,))


def one_roster_signature(world: World) -> None:
    while len(world.endorsed) > 1:
        world.endorsed.popitem()


def roster_swapped(world: World) -> None:
    world.roster = world.make_roster(make_members(21), 2, world.roster.sha256)


def sybils_counted(world: World) -> None:
    reference = msgspec.structs.replace(world.manifest.roster, people=world.manifest.roster.people + 100)
    reopen(world, roster=reference)


def ready_leaf_dropped(world: World) -> None:
    del world.leaves[0]


def logged_leaf_edited(world: World) -> None:
    """The leaves shown have another root than the checkpoint."""
    honest = world.show(world.leaves)
    lines = honest.split(b"\n")
    lines[3] = lines[4]
    world.answers["leaves"] = lambda parcel: b"\n".join(lines)


AFTER_MANIFEST: list[tuple[Lie, type[WindvaneError]]] = [
    (second_manifest, ManifestChanged),
    (unsigned_manifest, ManifestSignatureInvalid),
    (manifest_of_another_round, UnknownManifest),
    (manifest_not_logged, ManifestNotLogged),
    (manifest_logged_by_somebody_else, ManifestNotLogged),
    (coordinators_key_for_me, WrongGuardianKey),
    (coordinators_key_for_another_guardian, ManifestError),
    (coordinators_ready_leaf_for_another_guardian, ManifestError),
    (other_nonce_for_me, NonceMismatch),
    (other_ready_leaf_for_me, ManifestError),
    (strange_guardian, GuardianNotPinned),
    (guardians_swapped, GuardianNotPinned),
    (rule_nobody_has, SoftwareTooOld),
    (one_roster_signature, RosterSignatureMissing),
    (roster_swapped, RosterError),
    (sybils_counted, RosterError),
    (ready_leaf_dropped, ReceiptRefused),
    (logged_leaf_edited, InconsistentCheckpoint),
]


@pytest.mark.parametrize(("lie", "refusal"), AFTER_MANIFEST, ids=lambda x: getattr(x, "__name__", ""))
def test_a_round_whose_agreement_does_not_hold_gets_no_nonce(
    tmp_path: Path, lie: Lie, refusal: type[WindvaneError]
) -> None:
    world = World(tmp_path)
    world.to_opened()
    lie(world)
    before = len(world.leaves)
    with world.session(1) as session, pytest.raises(refusal) as caught:
        session.reveal_nonce(ROUND)
    assert caught.type is refusal
    assert len(world.leaves) == before


def test_a_demonstration_is_refused_by_a_policy_that_does_not_take_part(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.to_opened()
    path = world.folders[1] / "policy.toml"
    path.write_text(path.read_text().replace("demo = true", "demo = false"))
    with world.session(1) as session, pytest.raises(DemoManifest):
        session.reveal_nonce(ROUND)


@pytest.mark.parametrize(("day", "holds"), [("2026-06-17", True), ("2026-06-18", False)])
def test_a_real_manifest_is_logged_fourteen_days_before_the_first_event(tmp_path: Path, day: str, holds: bool) -> None:
    world = World(tmp_path, demo=False)
    world.all_ready()
    world.open_round(day=day)
    with world.session(1) as session, pytest.raises(LotBeforeClose if holds else ManifestNotLogged):
        session.reveal_nonce(ROUND)


def test_a_real_round_is_not_closed_early(tmp_path: Path) -> None:
    world = World(tmp_path, demo=False)
    world.to_closed()
    world.now = world.now.replace(day=30)
    with world.session(1) as session, pytest.raises(LotBeforeClose):
        session.reveal_nonce(ROUND)
    assert "nonce" not in kinds(world)
