# SPDX-License-Identifier: Apache-2.0
"""A coordinator that lies to its member: each lie is refused by its own name, and nothing is revealed for it."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from log_witnesses import WITNESSES, answer, receipt
from manifests import derived
from member_world import LyingCourier, MemberWorld
from small_federation import ROUND
from windvane_client.agreement import verify_agreement
from windvane_privacy import log
from windvane_privacy.couriers import Parcel
from windvane_privacy.errors import (
    CheckpointTooOld,
    DemoManifest,
    GuardianNotPinned,
    InconsistentCheckpoint,
    LogIncomplete,
    ManifestChanged,
    ManifestError,
    ManifestNotLogged,
    ManifestSignatureInvalid,
    QuorumMissing,
    ReceiptRefused,
    RosterError,
    RosterSignatureMissing,
    UnknownManifest,
    UnknownMember,
    WindvaneError,
)
from windvane_privacy.identity import SigningKey
from windvane_privacy.ledger_schema import State
from windvane_privacy.notes import Cosigner
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


def _log_key(world: MemberWorld) -> Cosigner:
    return Cosigner.from_raw(world.manifest.log_origin, (world.small.state / "log.key").read_bytes())


def test_a_leaf_left_out_of_the_log_is_noticed(world: MemberWorld) -> None:
    def drop(raw: bytes) -> bytes:
        lines = raw.split(b"\n")
        return b"\n".join(lines[:5] + lines[6:])

    assert isinstance(_lie(world, "leaves", drop)[0], LogIncomplete)


def test_scan_of_a_selection_is_refused(world: MemberWorld) -> None:
    """Also when log and witnesses sign a checkpoint for the selection: it does not continue the one that was seen."""

    def select(raw: bytes) -> bytes:
        leaves = raw.split(b"\n")[1:-1]
        return answer(leaves[:2] + leaves[3:], world.clock(), key=_log_key(world))

    assert isinstance(_lie(world, "leaves", select)[0], InconsistentCheckpoint)


def test_a_log_of_another_key_is_refused(world: MemberWorld) -> None:
    stranger = Cosigner.from_raw(world.manifest.log_origin, derived("another log"))

    def resign(raw: bytes) -> bytes:
        return answer(raw.split(b"\n")[1:-1], world.clock(), key=stranger)

    assert isinstance(_lie(world, "leaves", resign)[0], InconsistentCheckpoint)


def test_a_checkpoint_that_the_witnesses_did_not_sign_is_refused(world: MemberWorld) -> None:
    def alone(raw: bytes) -> bytes:
        return answer(raw.split(b"\n")[1:-1], world.clock(), key=_log_key(world), witnesses=WITNESSES[:1])

    assert isinstance(_lie(world, "leaves", alone)[0], QuorumMissing)


def test_a_checkpoint_that_is_too_old_is_refused(world: MemberWorld) -> None:
    def stale(raw: bytes) -> bytes:
        return answer(raw.split(b"\n")[1:-1], world.clock() - timedelta(days=15), key=_log_key(world))

    assert isinstance(_lie(world, "leaves", stale)[0], CheckpointTooOld)


def test_a_receipt_for_something_else_is_refused(world: MemberWorld) -> None:
    def other(_raw: bytes) -> bytes:
        shown = [leaf.raw for leaf in world.log().leaves]
        return receipt(shown, 3, world.clock(), key=_log_key(world))

    error, _ = _lie(world, "leaf", other)
    assert isinstance(error, ReceiptRefused)
    with world.agent() as agent:
        assert agent.ledger.round(ROUND).state is State.DRAWN


def test_a_receipt_of_a_log_that_only_we_are_shown_is_refused(world: MemberWorld) -> None:
    """Log and witnesses sign a history of its own for this receipt: the scan is of another one."""

    def forked(_raw: bytes) -> bytes:
        shown = [leaf.raw for leaf in world.log().leaves]
        return receipt([*shown[1:], shown[0]][:-1] + shown[-1:], len(shown) - 1, world.clock(), key=_log_key(world))

    assert isinstance(_lie(world, "leaf", forked)[0], (ReceiptRefused, InconsistentCheckpoint))


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
    """A whole log of these entries, under a checkpoint that everybody signed."""
    raw = answer(leaves, world.clock(), key=_log_key(world))
    return log.scan(raw, world.small.coordinator.federation.log_policy, now=int(world.clock().timestamp()))


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
