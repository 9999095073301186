# SPDX-License-Identifier: Apache-2.0
"""A rehearsal takes the real path on invented people, and what is opened is what was sealed."""

from __future__ import annotations

import inspect
import secrets

import pytest

from manifests import make_manifest
from windvane_privacy import rehearsal
from windvane_privacy.envelope import envelope_length
from windvane_privacy.noise import OpenDPNoise
from windvane_privacy.rehearsal import Rehearsal, rehearse

MANIFEST = make_manifest()


class Silent:
    """A source that adds nothing."""

    def draw(self, exact, share_scale):
        return [int(value) for value in exact]


def run(noise=None) -> Rehearsal:
    return rehearse(MANIFEST, noise=noise or OpenDPNoise(), sampler=secrets.SystemRandom())


def test_what_every_pair_of_guardians_opens_is_what_was_drawn():
    found = run()
    assert found.same
    assert found.pairs == ((1, 2), (1, 3), (2, 3))
    assert found.envelope_bytes == envelope_length(MANIFEST)
    assert all(one.drawn == one.opened for one in found.cells)


def test_the_noise_is_real_and_never_the_same_twice():
    vectors = {tuple(one.drawn for one in run().cells) for _ in range(5)}
    assert len(vectors) == 5


def test_without_noise_the_invented_people_stand_in_the_cells():
    for one in run(Silent()).cells:
        a, b = one.people
        assert one.drawn == (12 * min(20, a - b), 5 * min(20, a + b))
        assert a > b > 0
    assert sum(run(Silent()).cells[0].people) == rehearsal.PEOPLE


def test_keys_are_made_for_each_run():
    assert run().commit_hash != run().commit_hash


def test_a_rehearsal_has_no_way_to_the_members_data():
    assert set(inspect.signature(rehearse).parameters) == {"manifest", "noise", "sampler"}
    source = inspect.getsource(rehearsal)
    assert not any(word in source for word in ("import Ledger", "Path", " open(", "Courier", "EventStore"))


def test_a_share_that_does_not_fit_is_seen(monkeypatch: pytest.MonkeyPatch):
    real = rehearsal.open_share

    def wrong(envelope, manifest, guardian, key):
        share = real(envelope, manifest, guardian, key)
        if guardian == 2:
            share[0] += 1
        return share

    monkeypatch.setattr(rehearsal, "open_share", wrong)
    assert not run().same
