# SPDX-License-Identifier: Apache-2.0
"""Votes: what one person may say, and that nobody else has a part in it."""

from __future__ import annotations

import json
import math
import random
import secrets
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from importlib import resources

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifests import make_manifest
from outcome_rows import chi_square_z, person, row
from windvane_privacy.catalogue import SIGNALS, Signal
from windvane_privacy.errors import BoundBroken, InvalidOutcomes
from windvane_privacy.layout import Cell, Layout
from windvane_privacy.manifest import Manifest
from windvane_privacy.outcomes import AGAINST, BASES, Basis, PersonOutcome
from windvane_privacy.votes import Vote, collect_votes, exact_vector, own_words, person_votes

POOLED = make_manifest(k=5)
BY_KIND = make_manifest(k=4, kinds=("coding", "writing"))
VECTORS = json.loads((resources.files("windvane_privacy") / "vectors" / "votes-1.json").read_bytes())
COINS = secrets.SystemRandom()
AB = Cell(Signal.COMPLETION, "all", "alder", "birch")


class Watched:
    """A sampler that remembers what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []

    def sample(self, population: Sequence[int], k: int) -> list[int]:
        self.asked.append((len(population), k))
        return COINS.sample(population, k)


def preferred(rows: Sequence[PersonOutcome], manifest: Manifest = POOLED) -> list[tuple[str, str, str, str, str]]:
    found = person_votes(rows, manifest, COINS)
    return [(v.cell.signal, v.cell.kind, v.cell.a, v.cell.b, "a" if v.toward_a else "b") for v in found]


@st.composite
def tables(draw: st.DrawFn, manifest: Manifest) -> list[PersonOutcome]:
    """Well-formed rows of one person over all signals, kinds, recorders and bases."""
    ids = [f.id for f in manifest.families]
    rows: dict[tuple[object, ...], PersonOutcome] = {}
    for _ in range(draw(st.integers(0, 40))):
        signal = draw(st.sampled_from(SIGNALS))
        a, b = draw(st.permutations(ids))[:2]
        named = signal in AGAINST
        trials = draw(st.integers(1, 60))
        made = row(
            a,
            trials,
            draw(st.integers(0, trials)),
            signal=signal,
            kind=draw(st.sampled_from(("coding", "writing"))),
            recorder=draw(st.sampled_from(("r1", "r2"))),
            basis=draw(st.sampled_from(sorted(BASES[signal]))),
            against=b if named else None,
        )
        rows[made.key] = made
        if signal is Signal.BLIND_QUALITY:
            mirror = replace(made, model=b, against=a, successes=trials - made.successes)
            rows[mirror.key] = mirror
    return list(rows.values())


@pytest.mark.parametrize("manifest", [POOLED, BY_KIND], ids=["pooled", "by kind"])
@settings(deadline=None)  # a busy machine is no failure
@given(data=st.data())
def test_votes_of_one_person_are_in_distinct_cells_and_at_most_q(manifest: Manifest, data: st.DataObject) -> None:
    votes = person_votes(data.draw(tables(manifest)), manifest, COINS)
    layout = Layout(manifest)
    used = Counter(vote.cell.signal for vote in votes)
    assert len({vote.cell for vote in votes}) == len(votes) <= manifest.bounds.Q
    assert all(vote.cell in layout.index for vote in votes)
    assert all(used[signal] <= q for signal, q in zip(SIGNALS, manifest.bounds.q, strict=True))


def every_pair(who: int = 1, trials: int = 30) -> list[PersonOutcome]:
    """A person with a candidate in each of the ten pairs, and coins in every comparison."""
    return [row(f.id, trials, 3 + 5 * i, who=who) for i, f in enumerate(POOLED.families)]


def test_at_most_q_is_reached_and_all_candidates_are_equally_likely() -> None:
    coins = random.Random(11)
    rows = [row(f.id, 20, 4 * i, who=1) for i, f in enumerate(POOLED.families)]
    pairs = len(POOLED.pairs)
    seen = Counter[int]()
    runs = 900
    for _ in range(runs):
        votes = person_votes(rows, POOLED, coins)
        assert len(votes) == POOLED.bounds.q[0]
        seen.update(Layout(POOLED).index[vote.cell] for vote in votes)
    # Sampling without replacement makes the counts a little more even than independent draws, never less.
    assert chi_square_z(seen, dict.fromkeys(range(pairs), runs * 3 / pairs)) < 5


def test_one_candidate_more_than_q_is_one_too_many() -> None:
    pairs = POOLED.pairs[: POOLED.bounds.q[1] + 1]
    rows = [
        row(model, 9, won, signal=Signal.SWITCH_AWAY, basis=Basis.RECORDED, against=other)
        for a, b in pairs
        for model, other, won in ((a, b, 9), (b, a, 0))
    ]
    for _ in range(20):
        assert len(person_votes(rows, POOLED, COINS)) == POOLED.bounds.q[1] == 2


def test_votes_of_one_person_ignore_other_people() -> None:
    """The first person's votes have the same distribution alone, beside many, and beside malformed rows."""
    alone, beside = Counter[tuple[Vote, ...]](), Counter[tuple[Vote, ...]]()
    others = [r for who in range(2, 5) for r in every_pair(who, 41)] + [row("alder", 0, 0, who=9)]
    first, second = random.Random(1), random.Random(2)
    runs = 700
    single = [row("alder", 30, 17), row("birch", 7, 4), row("cedar", 25, 12)]
    for _ in range(runs):
        alone[tuple(collect_votes(single, POOLED, first).votes[0])] += 1
        beside[tuple(collect_votes([*single, *others], POOLED, second).votes[0])] += 1
    assert len(alone) > 5
    for key in alone.keys() | beside.keys():
        p = (alone[key] + beside[key]) / (2 * runs)
        assert abs(alone[key] - beside[key]) <= 5 * math.sqrt(2 * runs * p * (1 - p)) + 1


@settings(deadline=None)  # a busy machine is no failure
@given(st.permutations(every_pair(2) + every_pair(3) + [row("alder", 9, 9), row("birch", 9, 4)]))
def test_votes_without_coins_never_change_with_others_or_with_row_order(rows: list[PersonOutcome]) -> None:
    assert collect_votes(rows, POOLED, COINS).votes[0] == [Vote(AB, toward_a=True)]


def test_both_sides_get_the_same_number_of_trials_and_never_more_than_tasks() -> None:
    watched = Watched()
    person_votes([row("alder", 3, 1), row("birch", 900, 500)], POOLED, watched)
    person_votes([row("alder", 70, 1), row("birch", 900_000, 500)], POOLED, watched)
    assert watched.asked == [(3, 3), (900, 3), (70, POOLED.bounds.tasks), (900_000, POOLED.bounds.tasks)]


def test_trials_are_drawn_hypergeometrically() -> None:
    """Against 9 successes in 20 of 20 trials on the other side, the draw of one side decides the vote."""
    n, k, t, runs = 33, 13, 20, 4_000
    mass = {x: math.comb(k, x) * math.comb(n - k, t - x) / math.comb(n, t) for x in range(max(0, t - n + k), k + 1)}
    wins = Counter[int]()
    for threshold in (6, 7, 8, 9):
        for _ in range(runs // 4):
            rows = [row("alder", n, k), row("birch", t, threshold)]
            wins[threshold] += preferred(rows) == [("completion", "all", "alder", "birch", "a")]
        hoped = sum(p for x, p in mass.items() if x > threshold)
        spread = math.sqrt(hoped * (1 - hoped) / (runs // 4))
        assert abs(wins[threshold] / (runs // 4) - hoped) < 5 * spread


def confounded(coins: random.Random, *, uneven: bool) -> list[list[PersonOutcome]]:
    """People with no preference: both models finish alike in each kind, but are used unlike.

    `uneven`: one model is used little and the other much, in one kind. Otherwise one does mostly the easy kind.
    """
    use = (("coding", 0.9, 3, 30),) if uneven else (("writing", 0.9, 12, 3), ("coding", 0.4, 3, 12))
    everyone = []
    for who in range(1_500):
        rows = []
        for kind, p, n_a, n_b in use:
            for model, n in (("alder", n_a), ("birch", n_b)):
                rows.append(row(model, n, sum(coins.random() < p for _ in range(n)), who=who, kind=kind))
        everyone.append(rows)
    return everyone


@pytest.mark.parametrize("uneven", [True, False], ids=["one side used little", "one side used in the easy kind"])
def test_votes_are_balanced(uneven: bool) -> None:
    """Where there is no difference, balanced votes show none; comparing plain means would call a winner."""
    coins = random.Random(5)
    people = confounded(coins, uneven=uneven)
    balanced = [vote.toward_a for rows in people for vote in person_votes(rows, POOLED, coins)]
    net = 2 * sum(balanced) - len(balanced)
    assert len(balanced) > 500
    assert abs(net) < 4 * math.sqrt(len(balanced))

    def mean(rows: list[PersonOutcome], model: str) -> float:
        own = [r for r in rows if r.model == model]
        return sum(r.successes for r in own) / sum(r.trials for r in own)

    plain = [mean(rows, "alder") - mean(rows, "birch") for rows in people]
    unbalanced = sum(d > 0 for d in plain) - sum(d < 0 for d in plain)
    assert abs(unbalanced) > 4 * math.sqrt(len(plain))


@pytest.mark.parametrize(
    ("strong", "weak", "vote"),
    [
        (1, 1, "a"),
        (1, 0, "a"),
        (1, -1, None),
        (0, 1, "a"),
        (0, 0, None),
        (0, -1, "b"),
        (-1, 1, None),
        (-1, 0, "b"),
        (-1, -1, "b"),
    ],
)
def test_vote_is_the_common_sign_of_strong_and_weak_evidence(strong: int, weak: int, vote: str | None) -> None:
    rows = [
        row("alder", 10, 5 + strong),
        row("birch", 10, 5),
        row("alder", 10, 5 + 4 * weak, basis=Basis.ENDED),
        row("birch", 10, 5, basis=Basis.ENDED),
    ]
    assert [side for *_, side in preferred(rows)] == ([vote] if vote else [])


def blind(trials: int, wins: int, *, mirror: int | None = None) -> list[PersonOutcome]:
    first = row("alder", trials, wins, signal=Signal.BLIND_QUALITY, basis=Basis.PROVED, against="birch")
    losses = trials - wins if mirror is None else mirror
    return [first, replace(first, model="birch", against="alder", successes=losses)]


def test_blind_comparisons_are_drawn_once_for_both_sides() -> None:
    watched = Watched()
    person_votes(blind(50, 30), POOLED, watched)
    assert watched.asked == [(50, POOLED.bounds.tasks)]
    # An odd number of comparisons has a winner, always; two draws would tie now and then.
    assert all(len(preferred(blind(19, 9))) == 1 for _ in range(50))
    # Ten of twenty each is a tie, always; two draws would not be.
    assert all(preferred(blind(20, 10)) == [] for _ in range(50))


@pytest.mark.parametrize(
    "bad",
    [
        [row("alder", 0, 0, who=7)],
        [row("alder", 3, 4, who=7)],
        [row("alder", 3, -1, who=7)],
        [row("alder", 1_000_001, 1, who=7)],
        [row("alder", True, 1, who=7)],
        [row("unheard-of", 3, 1, who=7)],
        [row("other", 3, 1, who=7)],
        [row("alder", 3, 1, who=7, kind="gardening")],
        [row("alder", 3, 1, who=7, kind="other")],
        [row("alder", 3, 1, who=7, recorder="")],
        [row("alder", 3, 1, who=7, recorder="r" * 65)],
        [row("alder", 3, 1, who=7, basis=Basis.PROVED)],
        [row("alder", 3, 1, who=7, against="birch")],
        [row("alder", 3, 1, who=7, signal=Signal.SWITCH_AWAY, basis=Basis.RECORDED)],
        [row("alder", 3, 1, who=7, signal=Signal.SWITCH_AWAY, basis=Basis.RECORDED, against="alder")],
        [row("alder", 3, 1, who=7), row("alder", 4, 1, who=7)],
        [replace(r, person=person(7)) for r in blind(20, 8, mirror=11)],
        [replace(row("alder", 3, 1, who=7), model=[])],  # type: ignore[arg-type]
        [replace(row("alder", 3, 1, who=7), recorder=None)],  # type: ignore[arg-type]
        [replace(row("alder", 3, 1, who=7), signal=5)],  # type: ignore[arg-type]
    ],
)
def test_a_person_with_bad_rows_gives_no_vote_and_changes_nobody_elses(bad: list[PersonOutcome]) -> None:
    good = [row("alder", 9, 9), row("birch", 9, 4)]
    own_good = [replace(r, person=person(7)) for r in good if r.key[1:] not in {b.key[1:] for b in bad if _plain(b)}]
    found = collect_votes([*good, *own_good, *bad], POOLED, COINS)
    assert found.votes == [[Vote(AB, toward_a=True)]]
    assert found.invalid_people == 1
    assert found.people == (person(1), person(7))
    assert person_votes([*own_good, *bad], POOLED, COINS) == []


def _plain(r: PersonOutcome) -> bool:
    return isinstance(r.model, str)


@pytest.mark.parametrize(
    "table",
    [["not a row"], [replace(row("alder", 1, 1), person=b"short")], [replace(row("alder", 1, 1), person="x" * 16)]],
)
def test_a_table_that_is_no_table_raises(table: list[PersonOutcome]) -> None:
    with pytest.raises(InvalidOutcomes):
        collect_votes(table, POOLED, COINS)


def test_votes_of_two_people_at_once_are_refused() -> None:
    with pytest.raises(InvalidOutcomes):
        person_votes([row("alder", 1, 1, who=1), row("birch", 1, 0, who=2)], POOLED, COINS)


def test_everyone_with_a_row_is_counted_whether_or_not_a_vote_resulted() -> None:
    found = collect_votes([row("alder", 9, 9, who=4), row("alder", 9, 9, who=2)], POOLED, COINS)
    assert found.people == (person(2), person(4))
    assert found.votes == [[], []]
    assert found.invalid_people == 0


def test_unlisted_pairs_give_no_vote_and_crowd_nothing_out() -> None:
    manifest = make_manifest(k=5, cap=1)
    rows = [row(f.id, 20, 4 * i) for i, f in enumerate(manifest.families)]
    assert len(manifest.pairs) == 2 <= manifest.bounds.q[0]
    for _ in range(20):
        assert {(v.cell.a, v.cell.b) for v in person_votes(rows, manifest, COINS)} == set(manifest.pairs)


def test_kinds_outside_the_layout_give_no_vote() -> None:
    rows = [row("alder", 9, 9, kind="support"), row("birch", 9, 1, kind="support")]
    assert preferred(rows, BY_KIND) == []
    assert preferred(rows, POOLED) != []


@pytest.mark.parametrize("case", VECTORS["people"], ids=lambda case: case["name"])
def test_votes_reproduce_the_published_vectors(case: dict[str, list[list[str]]]) -> None:
    manifest = make_manifest(k=3, cap=2, kinds=tuple(case["layout"]))  # type: ignore[arg-type]
    rows = [
        PersonOutcome(person(1), Signal(signal), kind, recorder, Basis(basis), *rest)  # type: ignore[arg-type]
        for signal, kind, recorder, basis, *rest in case["rows"]
    ]
    assert preferred(rows, manifest) == [tuple(vote) for vote in case["votes"]]


def of_one(cell: Cell, toward_a: int, toward_b: int) -> list[list[Vote]]:
    return [[Vote(cell, toward_a=i < toward_a)] for i in range(toward_a + toward_b)]


def test_released_integers_reproduce_the_published_vectors() -> None:
    layout = Layout(POOLED)
    for case in VECTORS["cells"]:
        exact = exact_vector(of_one(AB, case["toward_a"], case["toward_b"]), POOLED)
        found = [int(exact[layout.d_index(AB)]), int(exact[layout.t_index(AB)])]
        assert found == case["released"]
        assert int(abs(exact).sum()) == sum(map(abs, found))


def test_votes_that_break_a_bound_are_not_counted() -> None:
    layout = Layout(POOLED)
    completion = [cell for cell in layout.cells if cell.signal is Signal.COMPLETION]
    twice = [Vote(AB, toward_a=True), Vote(AB, toward_a=False)]
    too_many = [Vote(cell, toward_a=True) for cell in completion[: POOLED.bounds.q[0] + 1]]
    elsewhere = [Vote(Cell(Signal.COMPLETION, "coding", "alder", "birch"), toward_a=True)]
    for person_of_votes in (twice, too_many, elsewhere):
        with pytest.raises(BoundBroken):
            exact_vector([person_of_votes], POOLED)
    assert exact_vector([too_many[:-1]], POOLED).any()


@pytest.mark.parametrize(
    ("toward_a", "toward_b", "word"),
    [
        (0, 0, "too_few"),
        (9, 0, "too_few"),
        (10, 0, "toward_a"),
        (0, 10, "toward_b"),
        (5, 5, "even"),
        (11, 9, "toward_a"),
        (54, 46, "even"),
        (46, 54, "even"),
        (45, 55, "toward_b"),
        (55, 45, "toward_a"),
    ],
)
def test_own_directions_are_words(toward_a: int, toward_b: int, word: str) -> None:
    words = own_words(of_one(AB, toward_a, toward_b), POOLED)
    assert len(words) == POOLED.cell_count
    assert {w.word for w in words if (w.signal, w.kind, w.a, w.b) == (AB.signal, AB.kind, AB.a, AB.b)} == {word}
    assert {w.word for w in words[1:] if (w.signal, w.a, w.b) != (AB.signal, AB.a, AB.b)} == {"too_few"}
