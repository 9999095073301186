# SPDX-License-Identifier: Apache-2.0
"""A coordinator that lies to its member: each lie is refused by its own name, and nothing is revealed for it."""

from __future__ import annotations

import msgspec
import pytest

from member_world import LyingCourier, MemberWorld
from small_federation import ROUND
from windvane_client.agreement import verify_agreement
from windvane_privacy import canonical, log
from windvane_privacy.couriers import Parcel
from windvane_privacy.errors import (
    DemoManifest,
    GuardianNotPinned,
    InconsistentCheckpoint,
    LogIncomplete,
    ManifestChanged,
    ManifestError,
    ManifestNotLogged,
    ManifestSignatureInvalid,
    ReceiptRefused,
    RosterError,
    RosterSignatureMissing,
    UnknownManifest,
    UnknownMember,
    WindvaneError,
)
from windvane_privacy.identity import SigningKey
from windvane_privacy.ledger_schema import State
from windvane_privacy.policy import PinnedGuardian
from windvane_privacy.roster import SignedRoster, sign_roster
from windvane_privacy.signed import sign_manifest


def _lie(world: MemberWorld, kind: str, change: object) -> tuple[WindvaneError, LyingCourier]:
    """The error of a submission while every answer of this kind is changed."""
    world.approve()
    (world.folder / "manifests" / f"{ROUND}.json").unlink(missing_ok=True)

    def lie(parcel: Parcel, answer: bytes) -> bytes:
        return change(answer) if parcel.kind == kind else answer

    courier = LyingCourier(world.courier, change=lie)
    with world.agent(courier) as agent, pytest.raises(WindvaneError) as caught:
        agent.submit(ROUND)
    assert not [parcel for parcel in courier.sent if parcel.kind == "reveal"]
    return caught.value, courier


def _coordinator(world: MemberWorld) -> SigningKey:
    return SigningKey.from_raw((world.small.state / "coordinator.key").read_bytes())


def test_a_leaf_left_out_of_the_log_is_noticed(world: MemberWorld) -> None:
    def drop(raw: bytes) -> bytes:
        lines = raw.split(b"\n")
        return b"\n".join(lines[:5] + lines[6:])

    assert isinstance(_lie(world, "leaves", drop)[0], LogIncomplete)


def test_scan_of_a_selection_is_refused(world: MemberWorld) -> None:
    """Also when the coordinator signs a head for its selection: it does not continue the head that was seen."""
    key, origin = _coordinator(world), world.manifest.log_origin

    def select(raw: bytes) -> bytes:
        leaves = raw.split(b"\n")[2:-1]
        kept = leaves[:2] + leaves[3:]
        head = log.first_head(origin)
        for leaf in kept:
            head = log.next_head(head, log.leaf_hash(leaf))
        signed = log.make_head(len(kept), head, "2026-10-02", origin, key)
        return log.encode_leaves(0, log.first_head(origin), kept, signed)

    assert isinstance(_lie(world, "leaves", select)[0], InconsistentCheckpoint)


def test_a_head_of_another_key_is_refused(world: MemberWorld) -> None:
    key, origin = SigningKey.generate(), world.manifest.log_origin

    def resign(raw: bytes) -> bytes:
        lines = raw.split(b"\n")
        head = canonical.decode(lines[1])
        lines[1] = log.make_head(head["size"], head["head"], head["day"], origin, key)
        return b"\n".join(lines)

    assert isinstance(_lie(world, "leaves", resign)[0], InconsistentCheckpoint)


def test_a_receipt_for_something_else_is_refused(world: MemberWorld) -> None:
    key, origin = _coordinator(world), world.manifest.log_origin

    def other(_raw: bytes) -> bytes:
        return log.make_receipt(3, "0" * 64, "0" * 64, origin, key)

    error, _ = _lie(world, "leaf", other)
    assert isinstance(error, ReceiptRefused)
    with world.agent() as agent:
        assert agent.ledger.round(ROUND).state is State.DRAWN


def test_a_receipt_for_a_place_that_holds_something_else_is_refused(world: MemberWorld) -> None:
    key, origin = _coordinator(world), world.manifest.log_origin

    def misplaced(raw: bytes) -> bytes:
        receipt = canonical.decode(raw)
        return log.make_receipt(0, receipt["leaf_hash"], log.first_head(origin), origin, key)

    assert isinstance(_lie(world, "leaf", misplaced)[0], ReceiptRefused)


def test_a_manifest_of_another_key_is_refused(world: MemberWorld) -> None:
    key = SigningKey.generate()
    forged = msgspec.structs.replace(world.manifest, coordinator=key.public.hex())
    assert isinstance(_lie(world, "manifest", lambda _raw: sign_manifest(forged, key))[0], ManifestSignatureInvalid)


def test_a_second_manifest_of_the_round_is_refused(world: MemberWorld) -> None:
    other = msgspec.structs.replace(world.manifest, appeal_days=31, destroy_by_days=46)
    error, _ = _lie(world, "manifest", lambda _raw: sign_manifest(other, _coordinator(world)))
    assert isinstance(error, ManifestChanged)
    # Also without an approval of the first one to compare with: the log alone decides.
    with pytest.raises(ManifestChanged):
        verify_agreement(
            sign_manifest(other, _coordinator(world)), world.small.send("roster"), world.log(), round_id=ROUND,
            policy=world.state.policy, key=world.state.key, accepted=None,
        )  # fmt: skip


def test_a_manifest_of_another_round_is_refused(world: MemberWorld) -> None:
    other = msgspec.structs.replace(world.manifest, round="2026-Q4")
    error, _ = _lie(world, "manifest", lambda _raw: sign_manifest(other, _coordinator(world)))
    assert isinstance(error, UnknownManifest)


def test_a_manifest_that_is_not_in_the_log_is_refused(world: MemberWorld) -> None:
    other = msgspec.structs.replace(world.manifest, round="2026-Q4")
    signed = sign_manifest(other, _coordinator(world))
    with pytest.raises(ManifestNotLogged):
        verify_agreement(
            signed, world.small.send("roster"), world.log(), round_id="2026-Q4", policy=world.state.policy,
            key=world.state.key, accepted=None,
        )  # fmt: skip


def _with_signatures(world: MemberWorld, keep: int) -> object:
    def strip(raw: bytes) -> bytes:
        signed = SignedRoster.decode(raw)
        return SignedRoster(signed.roster, signed.signatures[:keep]).encode()

    return strip


@pytest.mark.parametrize("keep", [0, 1, 2])
def test_a_roster_without_two_guardians_is_refused(world: MemberWorld, keep: int) -> None:
    error, _ = _lie(world, "roster", _with_signatures(world, keep))
    assert isinstance(error, RosterSignatureMissing)


def test_two_guardians_suffice(world: MemberWorld) -> None:
    world.approve()
    strip = _with_signatures(world, 3)
    courier = LyingCourier(world.courier, change=lambda p, raw: strip(raw) if p.kind == "roster" else raw)
    with world.agent(courier) as agent:
        assert agent.submit(ROUND).state is State.ACCEPTED


def test_another_roster_than_the_manifests_is_refused(world: MemberWorld) -> None:
    signed = SignedRoster.decode(world.small.send("roster"))
    fewer = msgspec.structs.replace(signed.roster, version=2, previous=signed.roster.sha256)
    from windvane_privacy.keyfiles import read_secret

    keys = [_coordinator(world)]
    for index in (1, 2):
        folder = world.small.guardian_folder(index)
        found = next(path for path in folder.rglob("*.key") if len(path.read_bytes()) == 32)
        keys.append(SigningKey.from_raw(read_secret(found)))
    forged = SignedRoster(fewer, tuple(sign_roster(fewer, key) for key in keys)).encode()
    error, _ = _lie(world, "roster", lambda _raw: forged)
    assert isinstance(error, RosterError)
    assert not isinstance(error, RosterSignatureMissing)


def test_a_member_that_is_not_in_the_roster_does_not_send(world: MemberWorld) -> None:
    signed = world.small.coordinator.handle(Parcel("manifest", ROUND))
    with pytest.raises(UnknownMember):
        verify_agreement(
            signed, world.small.send("roster"), world.log(), round_id=ROUND, policy=world.state.policy,
            key=SigningKey.generate(), accepted=None,
        )  # fmt: skip


def _log_of(world: MemberWorld, leaves: list[bytes]) -> log.Scan:
    """A whole log of these entries, with a head that the coordinator signed."""
    key, origin = _coordinator(world), world.manifest.log_origin
    head = log.first_head(origin)
    for raw in leaves:
        head = log.next_head(head, log.leaf_hash(raw))
    signed = log.make_head(len(leaves), head, "2026-10-02", origin, key)
    answer = log.encode_leaves(0, log.first_head(origin), leaves, signed)
    return log.scan(answer, key.public, origin, start=0, previous=None, seen=None)


def test_a_round_key_that_came_into_the_log_after_the_manifest_is_refused(world: MemberWorld) -> None:
    shown = list(world.log().leaves)
    late = next(leaf for leaf in shown if leaf.hash == world.manifest.guardians[0].ready_leaf)
    reordered = [leaf.raw for leaf in shown if leaf is not late]
    reordered.insert(1 + next(i for i, raw in enumerate(reordered) if b'"round-opened"' in raw), late.raw)
    with pytest.raises(ManifestError, match="guardian"):
        verify_agreement(
            world.small.send("manifest"), world.small.send("roster"), _log_of(world, reordered), round_id=ROUND,
            policy=world.state.policy, key=world.state.key, accepted=None,
        )  # fmt: skip


def test_a_guardian_that_is_not_pinned_is_refused(world: MemberWorld) -> None:
    others = [*world.state.policy.guardians[1:], PinnedGuardian("Another", "5" * 64, "another group")]
    narrow = msgspec.structs.replace(world.state.policy, guardians=tuple(others))
    with pytest.raises(GuardianNotPinned):
        verify_agreement(
            world.small.send("manifest"), world.small.send("roster"), world.log(), round_id=ROUND, policy=narrow,
            key=world.state.key, accepted=None,
        )  # fmt: skip


def test_a_round_key_that_its_guardian_did_not_log_is_refused(world: MemberWorld) -> None:
    """The coordinator puts its own key in a guardian's place, in manifest and log alike."""
    from windvane_privacy.identity import KEY_KEM, key_id
    from windvane_privacy.sealing import RoundKey

    own = RoundKey.generate().public
    entry = world.manifest.guardians[0]
    swapped = msgspec.structs.replace(entry, round_key=own.hex(), round_key_id=key_id(KEY_KEM, own))
    manifest = msgspec.structs.replace(world.manifest, guardians=(swapped, *world.manifest.guardians[1:]))
    key = _coordinator(world)
    leaves = []
    for leaf in world.log().leaves:
        opened = leaf.type == "round-opened"
        fields = {"manifest": manifest.sha256, "day": leaf.fields["day"]}
        leaves.append(log.make_leaf("round-opened", ROUND, fields, key) if opened else leaf.raw)
    forged = _log_of(world, leaves)
    with pytest.raises(ManifestError, match="guardian"):
        verify_agreement(
            sign_manifest(manifest, key), world.small.send("roster"), forged, round_id=ROUND,
            policy=world.state.policy, key=world.state.key, accepted=None,
        )  # fmt: skip


def test_a_commitment_in_our_name_without_our_signature_burns_nothing(world: MemberWorld) -> None:
    """The coordinator forges one before ours; it becomes evidence and a warning."""
    world.approve()
    stranger = SigningKey.generate()
    fields = {
        "manifest": world.manifest.sha256, "member": 20, "hash": "0" * 64, "install": "0" * 64, "day": "2026-10-02",
    }  # fmt: skip
    forged = log.make_leaf("commitment", ROUND, fields, stranger)
    world.append(forged)
    warnings: list[str] = []
    with world.agent(warn=warnings.append) as agent:
        assert agent.submit(ROUND).state is State.ACCEPTED
    assert warnings
    assert (world.folder / "evidence" / f"{log.leaf_hash(forged)}.json").read_bytes() == forged


def test_an_accepted_entry_that_the_coordinator_did_not_sign_ends_nothing(world: MemberWorld) -> None:
    world.approve()
    with world.agent(LyingCourier(world.courier, lose=[("reveal", "request")])) as agent:
        with pytest.raises(WindvaneError):
            agent.submit(ROUND)
        committed = agent.ledger.round(ROUND)
    fields = {"member": 20, "hash": committed.commit_hash, "day": "2026-10-02"}
    world.append(log.make_leaf("accepted", ROUND, fields, SigningKey.generate()))
    with world.agent(LyingCourier(world.courier, lose=[("reveal", "request")])) as agent:
        with pytest.raises(WindvaneError):
            agent.submit(ROUND)
        assert agent.ledger.round(ROUND).state is State.REVEALED


def test_a_policy_that_was_tightened_after_the_approval_holds(world: MemberWorld) -> None:
    world.approve()
    path = world.folder / "policy.toml"
    path.write_text(path.read_text().replace("demo = true", "demo = false"))
    courier = LyingCourier(world.courier)
    with world.agent(courier) as agent:
        with pytest.raises(DemoManifest):
            agent.submit(ROUND)
        assert agent.ledger.round(ROUND) is None
    assert "leaf" not in {parcel.kind for parcel in courier.sent}


def test_overlapping_rounds_count_together_before_a_draw(world: MemberWorld) -> None:
    from windvane_privacy.errors import RhoAbovePolicy

    world.approve()
    twin = msgspec.structs.replace(world.manifest, round="2026-Q3-twin")
    with world.agent() as agent:
        agent.ledger.burn_undrawn(twin, "0" * 64, [], versions="test", day="2026-10-02")
        with pytest.raises(RhoAbovePolicy):
            agent.submit(ROUND)
