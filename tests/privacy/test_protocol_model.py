# SPDX-License-Identifier: Apache-2.0
"""The protocol model searched to its end: never two noisy vectors, never stuck; and each seeded bug is found."""

from __future__ import annotations

import pytest

from protocol_model import BUGS, FAULTS, FINAL, Bounds, Model, search, start, stuck

REVEALED_TWICE = "two different noisy vectors of one round are revealed"
DRAWN_TWICE = "a second draw without any copy"
DRAWN_BESIDE = "a draw beside a commitment that was shown before"
BURNED_WITHOUT_CAUSE = "a burned round without a copy or a closing"

CLONE = Bounds(clones=1, double_logs=1, draws=2)
RESTORE = Bounds(restores=1, draws=3)
FOUND = {
    "no scan before the draw": (RESTORE, DRAWN_BESIDE),
    "reveal before receipt": (RESTORE, REVEALED_TWICE),
    "one phase": (RESTORE, REVEALED_TWICE),
    "log checked at the start only": (CLONE, REVEALED_TWICE),
    "no burn on a foreign hash": (CLONE, REVEALED_TWICE),
    "last commitment counts": (CLONE, REVEALED_TWICE),
    "a selection is enough": (RESTORE, DRAWN_BESIDE),
    "redraw on retry": (Bounds(crashes=1, draws=2), DRAWN_TWICE),
    "stored after sending": (Bounds(crashes=1, draws=2), BURNED_WITHOUT_CAUSE),
    "burned rounds begin again": (RESTORE, DRAWN_BESIDE),
    "no second place": (RESTORE, DRAWN_BESIDE),
    "unsigned commitments count": (Bounds(forgeries=1), BURNED_WITHOUT_CAUSE),
}
"""The bugs, how little has to go wrong for each, and the sentence that breaks."""

SMALL = {
    "crashes": Bounds(crashes=2, drops=1, duplicates=1, draws=2),
    "restores": Bounds(crashes=1, restores=2, drops=1, closes=1, draws=3),
    "a clone": Bounds(clones=1, double_logs=1, draws=2),
    "forgeries": Bounds(forgeries=1, restores=1, duplicates=1, double_logs=1, draws=2),
}


@pytest.mark.parametrize("bounds", SMALL.values(), ids=SMALL.keys())
def test_no_history_reveals_two_noisy_vectors(bounds: Bounds) -> None:
    found = search(Model(bounds))
    assert found.broken is None
    assert found.complete
    assert found.states > 200


def test_a_round_without_faults_ends_accepted() -> None:
    states, left = stuck(Model(Bounds()))
    assert states > 20
    assert left == []
    model, known, waiting, ends = Model(Bounds()), set(), [start(Bounds())], 0
    while waiting:
        world = waiting.pop()
        if world in known:
            continue
        known.add(world)
        waiting += [after for _action, after in model.steps(world)]
        for machine in world.machines:
            # Without a fault nothing burns, so the end that is always within reach is acceptance.
            assert machine.state != FINAL[1]
            ends += machine.state == FINAL[0]
    assert ends > 0


@pytest.mark.parametrize("name", ["crashes", "restores"])
def test_nothing_that_went_wrong_keeps_a_member_from_an_end(name: str) -> None:
    """Accepted or burned, once nothing more goes wrong."""
    states, left = stuck(Model(SMALL[name]))
    assert states > 200
    assert left == []


def test_a_lost_draw_that_is_not_burned_never_ends() -> None:
    assert stuck(Model(RESTORE, "lost draws are skipped"))[1]


def test_at_least_a_dozen_bugs_are_seeded() -> None:
    assert BUGS.keys() == FOUND.keys() | {"lost draws are skipped"}


@pytest.mark.parametrize("bug", FOUND)
def test_a_seeded_bug_is_found(bug: str) -> None:
    bounds, sentence = FOUND[bug]
    found = search(Model(bounds, bug), trace=True)
    assert found.broken == sentence
    assert found.steps
    # The same history without the bug is harmless: the sentence breaks because of the bug.
    assert search(Model(bounds)).broken is None


def test_a_restore_alone_breaks_a_protocol_of_one_phase() -> None:
    """Why there are two phases: one restored backup and no other fault suffice, and no restore is needed for less."""
    bounds = Bounds(restores=1, draws=2)
    found = search(Model(bounds, "one phase"), trace=True)
    assert [step[0] for step in found.steps if step[0] in FAULTS] == ["backup", "restore"]
    assert search(Model(Bounds(crashes=2, drops=1, duplicates=1, draws=2), "one phase")).broken is None


LARGE = {
    "one machine": (Bounds(crashes=2, restores=2, drops=1, duplicates=1, closes=1, double_logs=1, draws=3), 350_000),
    "a clone": (Bounds(crashes=1, restores=1, clones=1, double_logs=1, draws=2), 350_000),
}
BEYOND = Bounds(crashes=2, restores=2, clones=1, drops=1, duplicates=1, closes=1, double_logs=1, draws=4)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", LARGE)
def test_no_long_history_reveals_two_noisy_vectors(name: str) -> None:
    bounds, least = LARGE[name]
    found = search(Model(bounds))
    assert found.broken is None
    assert found.complete
    assert found.states >= least


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_million_states_of_everything_at_once_reveal_no_two_noisy_vectors() -> None:
    """Two crashes, two restores and a clone with lost, doubled and late messages: too much to search to its end, so the
    million worlds with the shortest histories."""
    found = search(Model(BEYOND), most=1_000_000)
    assert found.broken is None
    assert found.states == 1_000_000
