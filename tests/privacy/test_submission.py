# SPDX-License-Identifier: Apache-2.0
"""From outcomes to one envelope: the guardians open exactly what was noised, and nothing exact remains."""

from __future__ import annotations

import secrets

import numpy as np
import pytest
from numpy.typing import NDArray

from manifests import guardian_round_key, make_manifest, member_key
from windvane_privacy import submission
from windvane_privacy.catalogue import Signal
from windvane_privacy.envelope import commit_hash, envelope_length, open_share, parse_envelope, verify_envelope
from windvane_privacy.field import decode_signed
from windvane_privacy.ledger_schema import Drawn
from windvane_privacy.log import read_leaf, verify_leaf
from windvane_privacy.manifest import Manifest
from windvane_privacy.noise import OpenDPNoise
from windvane_privacy.outcomes import Basis, PersonOutcome
from windvane_privacy.shares import combine
from windvane_privacy.submission import Sender, envelope_fields, make_submission

SENDER = Sender(7, member_key(7), "ab" * 16, "cd" * 32)


class Silent:
    def draw(self, exact: NDArray[np.int64], share_scale: float) -> list[int]:
        return [int(value) for value in exact]


def rows(people: int) -> list[PersonOutcome]:
    return [
        PersonOutcome(bytes([i]) * 16, Signal.COMPLETION, "coding", "x", Basis.EXPLICIT, model, None, 5, successes)
        for i in range(people)
        for model, successes in (("alder", 5), ("birch", 0))
    ]


def make(manifest: Manifest, people: int = 6, *, noise: object = None, **changes: object) -> Drawn:
    how = {
        "sender": SENDER, "day": "2026-10-02", "admits": lambda _person: True, "noise": noise or Silent(),
        "sampler": secrets.SystemRandom(), "versions": "test",
    } | changes  # fmt: skip
    return make_submission(rows(people), manifest, **how)


def opened(drawn: Drawn, manifest: Manifest) -> list[int]:
    """What two of the three guardians see together."""
    envelope = parse_envelope(drawn.envelope, manifest)
    verify_envelope(envelope, SENDER.key.public)
    shares = {j: open_share(envelope, manifest, j, guardian_round_key(j)) for j in (1, 3)}
    return decode_signed(combine(shares, manifest.t)[: manifest.length])


def test_two_guardians_open_exactly_the_stored_noisy_vector() -> None:
    manifest = make_manifest()
    drawn = make(manifest, noise=OpenDPNoise())
    assert opened(drawn, manifest) == list(drawn.noisy)
    assert len(drawn.noisy) == manifest.length


def test_with_a_silent_source_the_vector_is_the_votes() -> None:
    manifest = make_manifest()
    found = opened(make(manifest, people=6), manifest)
    assert sorted(value for value in found if value) == [5 * 6, 12 * 6]


def test_the_exact_vector_is_overwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[NDArray[np.int64]] = []
    real = submission.exact_vector

    def keep(*arguments: object) -> NDArray[np.int64]:
        kept.append(real(*arguments))
        assert kept[-1].any()
        return kept[-1]

    monkeypatch.setattr(submission, "exact_vector", keep)
    make(make_manifest())
    assert len(kept) == 1
    assert not kept[0].any()


def test_every_member_sends_the_same_length() -> None:
    manifest = make_manifest()
    lengths = {len(make(manifest, people=people).envelope) for people in (0, 1, 40)}
    assert lengths == {envelope_length(manifest)}


def test_the_commitment_names_the_envelope_and_the_agreement() -> None:
    manifest = make_manifest()
    drawn = make(manifest)
    leaf = read_leaf(drawn.commitment_leaf)
    verify_leaf(leaf, SENDER.key.public)
    assert drawn.commit_hash == leaf.fields["hash"] == commit_hash(drawn.envelope)
    assert (leaf.fields["manifest"], leaf.fields["member"], leaf.round) == (manifest.sha256, 7, manifest.round)


def test_the_commitment_tells_nothing_about_the_machine() -> None:
    manifest = make_manifest()
    leaves = [make(manifest).commitment_leaf for _ in range(2)]
    assert len({read_leaf(leaf).fields["install"] for leaf in leaves}) == 2
    for leaf in leaves:
        assert SENDER.install_id.encode() not in leaf
        assert SENDER.machine_id.encode() not in leaf


def test_a_person_at_the_cap_gives_no_vote_and_is_not_charged() -> None:
    manifest = make_manifest()
    capped = bytes([2]) * 16
    drawn = make(manifest, people=6, admits=lambda person: person != capped)
    assert sorted(value for value in opened(drawn, manifest) if value) == [5 * 5, 12 * 5]
    assert drawn.persons == tuple(bytes([i]) * 16 for i in (0, 1, 3, 4, 5))


def test_everyone_with_a_row_is_charged_whether_or_not_a_vote_resulted() -> None:
    manifest = make_manifest()
    tie = [
        PersonOutcome(b"t" * 16, Signal.COMPLETION, "coding", "x", Basis.EXPLICIT, model, None, 5, 5)
        for model in ("alder", "birch")
    ]
    drawn = make_submission(
        tie, manifest, sender=SENDER, day="2026-10-02", admits=lambda _p: True, noise=Silent(),
        sampler=secrets.SystemRandom(), versions="test",
    )  # fmt: skip
    assert drawn.persons == (b"t" * 16,)
    assert not any(opened(drawn, manifest))


@pytest.mark.parametrize("k", [3, 5, 8])
def test_every_byte_of_the_envelope_has_a_name(k: int) -> None:
    manifest = make_manifest(k=k)
    fields = envelope_fields(manifest)
    offset = 0
    for one in fields:
        assert one.offset == offset
        assert one.length > 0
        assert one.name
        assert one.tells
        offset += one.length
    assert offset == envelope_length(manifest)
    assert len({one.name for one in fields}) == len(fields)


def test_the_named_places_hold_what_they_say() -> None:
    manifest = make_manifest()
    drawn = make(manifest)
    at = {one.name: drawn.envelope[one.offset : one.offset + one.length] for one in envelope_fields(manifest)}
    assert at["version"] == b"WVE1"
    assert int.from_bytes(at["member"], "big") == 7
    assert at["submission id"] == drawn.submission_id
    assert at["manifest"].hex() == manifest.sha256
    assert at["member key"].hex() == SENDER.key.key_id
    assert at["round key of guardian 2"].hex() == manifest.guardians[1].round_key_id
    assert int.from_bytes(at["length 2"], "big") == len(at["sealed share 2"])
