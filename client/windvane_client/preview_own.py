# SPDX-License-Identifier: Apache-2.0
"""The person's own outcomes, own directions in words, and the sentence that says what to do next.

Rules kept here:
* one person sees own counts; with several people a cell of fewer than `LEAST_PEOPLE` shows none;
* a direction is a word made from the same votes that a submission would make, drawn `DRAWS` times: where the draws
  disagree the word says so, and below `LEAST_TRIALS` a side it says `too_few`;
* the votes are made on a layout of this preview in which nothing is left out by lot; no noise is drawn;
* there is always a last sentence, above all when nothing could be compared.
"""

from __future__ import annotations

import secrets
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final

from windvane_client.capabilities import NAMES_NO_MODE, capability
from windvane_client.coverage import LEAST_PEOPLE, Coverage, take
from windvane_client.observed import ALL_TIME
from windvane_client.outcomes_table import rows_of
from windvane_client.preview import Sample, person_gaps
from windvane_client.preview_setup import Setup
from windvane_client.signals import PersonFacts, read_person
from windvane_client.store import EventStore
from windvane_privacy import manifest as agreement
from windvane_privacy.catalogue import KINDS, OTHER, SIGNALS, Signal, ordered_pair
from windvane_privacy.layout import Cell
from windvane_privacy.manifest import Bounds, Manifest
from windvane_privacy.outcomes import AGAINST, PersonOutcome
from windvane_privacy.votes import collect_votes, own_words, person_votes

DRAWS: Final = 41
CLEAR: Final = 0.95
"""Share of the draws that must give one vote before a direction is called clear."""
LEAST_TRIALS: Final = 3
"""A person's own direction needs so many trials of each model; the organisation's has a floor of people instead."""
USUAL_BOUNDS: Final = Bounds(q=(3, 2, 1, 1, 2), Q=9, C=20, tasks=20)
USUAL_S, USUAL_H = 208, 5
"""Bounds and noise of a round of 60 organisations with 1,000 people each (docs/mechanism.md)."""
_TIME = "2026-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True)
class OutcomeCell:
    """Trials and successes of one model in one signal and kind, all recorders together. `people`: how many have one."""

    kind: str
    signal: Signal
    model: str
    against: str | None
    trials: int
    successes: int
    people: int


@dataclass(frozen=True, slots=True)
class Lean:
    """One comparison in a word: `toward_a toward_b leans_a leans_b even too_few`."""

    kind: str
    signal: Signal
    a: str
    b: str
    word: str


@dataclass(slots=True)
class Own:
    """Everything that the page shows of one's own work.

    `person`: set where the logs are one person's. `modes`: episodes by mode; `programs`: whether programs left events;
    `kinds`: closed interactive episodes by
    kind of work; `families`: families of the catalogue that opened a person's turns.
    """

    people: int = 0
    person: PersonFacts | None = None
    rows: list[PersonOutcome] = field(default_factory=list)
    episodes: int = 0
    still_open: int = 0
    modes: Counter[str] = field(default_factory=Counter)
    programs: bool = False
    kinds: Counter[str] = field(default_factory=Counter)
    families: set[str] = field(default_factory=set)
    gaps: set[str] = field(default_factory=set)
    """What could not be seen of somebody's work."""


def own_work(store: EventStore, setup: Setup, now: int, cover: Coverage | None = None) -> Own:
    """Own outcomes, person by person. `now`: µs. `cover`: filled with what the events of each week hold."""
    own = Own()
    for person in store.people():
        facts = read_person(store, person, window=ALL_TIME, rules=setup.rules, ids_key=setup.key, now=now)
        if cover is not None:
            take(cover, store, person, facts, catalogue=setup.catalogue, rules=setup.rules)
        own.people += 1
        own.person = facts if own.people == 1 else None
        own.rows += rows_of(facts, window=ALL_TIME, catalogue=setup.catalogue, rules=setup.rules)
        own.episodes += len(facts.episodes)
        own.gaps.update(person_gaps(facts.totals))
        own.programs = own.programs or facts.totals.event_modes["automation"] > 0
        for episode in facts.episodes:
            own.modes[episode.mode] += 1
            own.still_open += episode.closed is None
            if episode.mode == "interactive" and episode.closed is not None:
                own.kinds[facts.kinds[episode.workspace]] += 1
            own.families |= {one.family for one in episode.openings if one.family and one.family in setup.catalogue}
    return own


def outcome_cells(rows: Iterable[PersonOutcome]) -> list[OutcomeCell]:
    """The outcomes by kind, signal and model, in that order."""
    trials: Counter[tuple[str, Signal, str, str | None]] = Counter()
    successes: Counter[tuple[str, Signal, str, str | None]] = Counter()
    people: defaultdict[tuple[str, Signal, str, str | None], set[bytes]] = defaultdict(set)
    for row in rows:
        place = (row.kind, Signal(row.signal), row.model, row.against)
        trials[place] += row.trials
        successes[place] += row.successes
        people[place].add(row.person)
    order = sorted(trials, key=lambda p: (KINDS.index(p[0]), SIGNALS.index(p[1]), p[2], p[3] or ""))
    return [OutcomeCell(*place, trials[place], successes[place], len(people[place])) for place in order]


# --- directions -------------------------------------------------------------------------------------------------------


def leans(rows: Sequence[PersonOutcome], setup: Setup) -> list[Lean]:
    """Own directions, for each comparison that has outcomes on both sides; several people: the organisation's words."""
    cells = _comparable(rows)
    if not cells:
        return []
    layout = preview_layout(
        setup, sorted({(c.a, c.b) for c in cells}), sorted({c.kind for c in cells}, key=KINDS.index)
    )
    sampler = secrets.SystemRandom()
    if len({row.person for row in rows}) > 1:
        words = own_words(collect_votes(rows, layout, sampler).votes, layout)
        wanted = {(c.kind, c.signal, c.a, c.b) for c in cells}
        return [Lean(w.kind, w.signal, w.a, w.b, w.word) for w in words if (w.kind, w.signal, w.a, w.b) in wanted]
    tally: dict[Cell, Counter[bool]] = {cell: Counter() for cell in cells}
    for _ in range(DRAWS):
        for vote in person_votes(rows, layout, sampler):
            tally[vote.cell][vote.toward_a] += 1
    return [Lean(c.kind, c.signal, c.a, c.b, _word(tally[c], least)) for c, least in cells.items()]


def _word(votes: Counter[bool], least: int) -> str:
    if least < LEAST_TRIALS:
        return "too_few"
    a, b = votes[True], votes[False]
    if max(a, b) >= CLEAR * DRAWS:
        return "toward_a" if a > b else "toward_b"
    if max(a, b) > DRAWS / 2:
        return "leans_a" if a > b else "leans_b"
    return "even"


def _comparable(rows: Iterable[PersonOutcome]) -> dict[Cell, int]:
    """Cells with outcomes of both models from one recorder and basis, with the trials of the rarer side."""
    sides: defaultdict[tuple[bytes, Signal, str, str, str], dict[tuple[str, str | None], int]] = defaultdict(dict)
    for row in rows:
        place = (row.person, Signal(row.signal), row.kind, row.recorder, row.basis)
        sides[place][row.model, row.against] = row.trials
    found: Counter[Cell] = Counter()
    for (_, signal, kind, _, _), trials in sides.items():
        for a, b in combinations(sorted({model for model, _ in trials}), 2):
            named = signal in AGAINST
            n_a, n_b = trials.get((a, b if named else None)), trials.get((b, a if named else None))
            if n_a is not None and n_b is not None:
                found[Cell(signal, kind, *ordered_pair(a, b))] += min(n_a, n_b)
    return {cell: found[cell] for cell in sorted(found, key=_in_order)}


def _in_order(cell: Cell) -> tuple[int, int, str, str]:
    return KINDS.index(cell.kind), SIGNALS.index(cell.signal), cell.a, cell.b


def preview_layout(setup: Setup, pairs: Sequence[tuple[str, str]], kinds: Sequence[str]) -> Manifest:
    """A layout for one's own words: every pair, every kind apart, no vote left out by lot. It is no agreement, and no
    round could be held under it."""
    votes = max(1, len(pairs) * len(kinds))
    bounds = setup.manifest.bounds if setup.manifest is not None else USUAL_BOUNDS
    order = tuple(sorted({family for pair in pairs for family in pair}))
    return Manifest(
        schema=agreement.SCHEMA, round="preview", demo=True, log_origin="", coordinator="",
        events=agreement.Window(_TIME, _TIME), collection_deadline=_TIME,
        submission=agreement.Submission(_TIME, _TIME, _TIME), publish_at=_TIME, appeal_days=0, destroy_by_days=0,
        families=setup.catalogue.families, signals=tuple(str(signal) for signal in SIGNALS), kinds=tuple(kinds),
        pairs=tuple(pairs), pair_source=agreement.PairSource("your own models", order, max(1, len(order))),
        bounds=Bounds((votes,) * 5, 5 * votes, bounds.C, bounds.tasks),
        noise=agreement.NoiseLaw(USUAL_S, USUAL_H, "1", "1e-8"), cohorts=agreement.CohortLayout(1, 1),
        floors=agreement.Floors(1, 1, 1, 1), roster=agreement.RosterReference("", 0, 1, 1), guardians=(), t=2, n=3,
        stage="1", rules=(), min_software="0", log_batch="now", rounds_so_far=0, last_full_round=None,
        previous_report=None,
    )  # fmt: skip


# --- what to do next --------------------------------------------------------------------------------------------------


def next_step(samples: Sequence[Sample], own: Own | None, found: Sequence[Lean], setup: Setup) -> str:
    """One sentence. `own` is None while a round is open."""
    read = [sample for sample in samples if sample.refused is None]
    rows = sum(sample.rows.read for sample in read)
    used = rows - sum(s.rows.rejected + s.rows.unknown + s.rows.foreign for s in read)
    if own is None:
        return (
            f"The round {setup.open_round} is open, so no outcome is shown before it has ended for you: "
            "run `windvane member status` to see where it stands."
        )
    if not any(sample.files for sample in samples):
        return _nothing_found(samples, setup)
    if not read:
        return "Nothing was read: every log was refused, for the reasons above; name other logs or their --source."
    if not used:
        return (
            "No row could be used: if these logs are of another program, name it with --source; if they are damaged, "
            "copy them again."
        )
    if not own.people:
        return "No identity is mapped, so nobody's work counts: add people.toml, which says who is which staff id."
    if not own.rows and not any(capability(sample.source or "").prompts for sample in read):
        return (
            "A gateway shows requests, not work: only how models recover from faults can count, for keys that "
            'rules.toml names under [modes] interactive_keys, and with a kind of work ([[kind]] source = "litellm").'
        )
    silent = {sample.source for sample in read} & NAMES_NO_MODE
    return _about_work(own, found, setup, sorted(source for source in silent if source is not None))


def _nothing_found(samples: Sequence[Sample], setup: Setup) -> str:
    if any(sample.refused is not None for sample in samples):
        return (
            "No log that this version can read was found, only the refused ones above: write them as canonical JSONL, "
            "or name a folder of Claude Code transcripts: `windvane member preview FOLDER`."
        )
    if setup.is_member:
        return "The folders of member.toml hold no logs: correct the paths under [[logs]], or wait for the first logs."
    return (
        "No logs were found: Claude Code keeps its transcripts in .claude/projects of your home, Codex in "
        ".codex/sessions, Gemini CLI in .gemini/tmp, Cline and Roo in the editor's globalStorage; canonical JSONL has "
        "no usual place; name yours: `windvane member preview FOLDER`."
    )


def _about_work(own: Own, found: Sequence[Lean], setup: Setup, silent: Sequence[str]) -> str:
    """`silent`: sources among the logs that never say whether a person worked."""
    modes = own.modes
    if not own.rows and not modes["interactive"]:
        if own.programs and not modes["unknown"]:
            return "Programs started all of this work, and only work that a person starts counts: preview other logs."
        if not own.episodes:
            return (
                "No prompt of a person is in these logs, so there is no work to compare: preview logs of conversations."
            )
        if silent:
            return (
                f"Mode unknown: {' and '.join(silent)} never says whether a person or a program worked; where only "
                "people do, declare it in rules.toml under [modes] interactive_keys (docs/sources)."
            )
        return (
            "Mode unknown: these logs do not say whether a person or a program worked (older Claude Code has no field "
            "`entrypoint`); newer ones will count, so look again in a few weeks."
        )
    if own.kinds[OTHER] > sum(own.kinds.values()) / 2:
        return (
            f"Most of this work ({own.kinds[OTHER]} of {sum(own.kinds.values())} pieces) has no decided kind (`other`)"
            ', never compared: add a rule to rules.toml, as [[kind]] log_dir = "letters*", kind = "writing".'
        )
    if any(lean.word != "too_few" for lean in found):
        return _ready(setup)
    if len(own.families) < 2:
        which = "One model family only" if own.families else "No model family of the catalogue"
        return f"{which}: a comparison needs two, so use a second model for the same kind of work, or do nothing."
    if found:
        return (
            f"Too little to compare so far (fewer than {LEAST_TRIALS} of each model, or too few people): look again in "
            "a few weeks; in a submission it counts all the same."
        )
    return (
        "Two models, but never both for the same kind of work in the same program, or one of them for under 14 days: "
        "nothing can be compared so far, so look again in a few weeks."
    )


def _ready(setup: Setup) -> str:
    if setup.is_member:
        return (
            "All is in order: let `windvane member collect` run every week, so that nothing is lost before the round."
        )
    return (
        "Your logs can be compared: to let them count, your organisation takes part with `windvane member init` "
        "(docs/members.md)."
    )


def least_people(own: Own) -> int:
    """People that a cell needs before it shows a count."""
    return 1 if own.people == 1 else LEAST_PEOPLE
