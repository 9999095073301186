# SPDX-License-Identifier: Apache-2.0
"""What a message holds shows neither in its size nor in the size or the time of its answer: two secret inputs compared.

Times are compared by rank, turn by turn in a random order on the same machine; nothing is asserted about seconds. A
member without a vote and one with every vote at its bound stand for everything in between.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from small_federation import ROUND, SmallFederation, Submission
from windvane_privacy.envelope import parse_envelope, verify_envelope
from windvane_privacy.manifest import D_SCALE, T_SCALE, Manifest
from windvane_privacy.opening import Opener
from windvane_privacy.sealing import RoundKey

NOTHING, EVERYTHING = "no vote at all", "every vote at its bound"


def vector(manifest: Manifest, what: str) -> list[int]:
    C = manifest.bounds.C
    return [0] * manifest.length if what == NOTHING else [D_SCALE * C, T_SCALE * C] * (manifest.length // 2)


@pytest.fixture
def sent(small: SmallFederation, manifest: Manifest) -> dict[str, list[Submission]]:
    """Ten members of each kind, drawn in turn."""
    found: dict[str, list[Submission]] = {NOTHING: [], EVERYTHING: []}
    for number in range(1, 21):
        what = NOTHING if number % 2 else EVERYTHING
        found[what].append(small.draw(manifest, number, vector(manifest, what)))
    return found


def rank_z(first: list[float], second: list[float]) -> float:
    """The rank-sum statistic of two samples in standard deviations (Mann and Whitney 1947, normal approximation)."""
    ranked = sorted([(value, 0) for value in first] + [(value, 1) for value in second])
    total = sum(place for place, (_, which) in enumerate(ranked, 1) if which == 0)
    n, m = len(first), len(second)
    mean, spread = n * (n + m + 1) / 2, (n * m * (n + m + 1) / 12) ** 0.5
    return (total - mean) / spread


def difference(work: Callable[[Submission], object], sent: dict[str, list[Submission]], turns: int = 30) -> float:
    """How far apart the times of the two kinds lie, by rank."""
    order = [(what, one) for what, many in sent.items() for one in many] * turns
    random.Random(7).shuffle(order)
    taken: dict[str, list[float]] = {NOTHING: [], EVERYTHING: []}
    for what, one in order:
        start = time.perf_counter()
        work(one)
        taken[what].append(time.perf_counter() - start)
    return abs(rank_z(taken[NOTHING], taken[EVERYTHING]))


def test_messages_of_all_members_have_one_size(sent: dict[str, list[Submission]]) -> None:
    everybody = [one for many in sent.values() for one in many]
    assert len({len(one.envelope) for one in everybody}) == 1
    # A commitment names its member: the number's digits are public, and the only thing that varies.
    assert len({len(one.leaf) - len(str(one.member.number)) for one in everybody}) == 1


def test_answers_have_one_size_whatever_was_sent(small: SmallFederation, sent: dict[str, list[Submission]]) -> None:
    sizes: dict[str, set[int]] = {NOTHING: set(), EVERYTHING: set()}
    for what, many in sent.items():
        for one in many:
            receipt = small.send("leaf", one.leaf)
            accepted = small.send("reveal", one.envelope)
            # A receipt holds a path of the tree, whose length follows from places in the log alone.
            sizes[what] |= {_without_place(receipt), _without_place(accepted)}
    assert sizes[NOTHING] == sizes[EVERYTHING]
    assert len(sizes[NOTHING]) == 1


def _without_place(receipt: bytes) -> int:
    head, note = receipt.split(b"\n\n", 1)
    origin, _size, rest = note.split(b"\n", 2)
    assert head.startswith(b"c2sp.org/tlog-proof@v1\nindex ")
    return len(origin) + len(rest)


def test_the_coordinator_takes_as_long_for_either(small: SmallFederation, sent: dict[str, list[Submission]]) -> None:
    for many in sent.values():
        for one in many:
            small.send("leaf", one.leaf)
            small.send("reveal", one.envelope)
    assert difference(lambda one: small.send("reveal", one.envelope), sent) < 5


def test_checking_an_envelope_takes_as_long_for_either(manifest: Manifest, sent: dict[str, list[Submission]]) -> None:
    def check(one: Submission) -> None:
        verify_envelope(parse_envelope(one.envelope, manifest), one.member.key.public)

    assert difference(check, sent) < 5


def test_a_guardian_opens_either_in_the_same_time(
    small: SmallFederation, manifest: Manifest, sent: dict[str, list[Submission]]
) -> None:
    raw = (small.guardian_folder(1) / f"round-{ROUND}.key").read_bytes()
    keys = {one.member.number: one.member.key.public for many in sent.values() for one in many}
    opener = Opener(manifest, keys, 1, RoundKey.from_raw(raw))
    assert difference(lambda one: opener.share(one.envelope, one.member.number, one.hash), sent) < 5


def test_the_comparison_bites(sent: dict[str, list[Submission]]) -> None:
    """Work that takes a little longer for votes than for none is seen."""
    busy = {id(one) for one in sent[EVERYTHING]}

    def leaks(one: Submission) -> None:
        end = time.perf_counter() + (0.0003 if id(one) in busy else 0.0001)
        while time.perf_counter() < end:
            pass

    assert difference(leaks, sent) > 5


def test_the_rank_statistic_is_the_published_one() -> None:
    assert rank_z([1, 2, 3], [4, 5, 6]) == pytest.approx(-4.5 / (3 * 3 * 7 / 12) ** 0.5)
    assert rank_z([1, 4], [2, 3]) == 0


def test_what_guardians_fetch_has_one_size_in_two_worlds(tmp_path: Path) -> None:
    """Two whole federations, whose members all hold the one or the other."""
    stored = []
    for what in (NOTHING, EVERYTHING):
        small = SmallFederation(tmp_path / what.replace(" ", "-"))
        agreed = small.open_round()
        for number in range(1, 21):
            small.submit(agreed, number, vector(agreed, what))
        small.coordinator.close_round(ROUND)
        stored.append(len(small.send("envelopes")))
        small.close()
    assert stored[0] == stored[1]
