# SPDX-License-Identifier: Apache-2.0
"""The demo's invented world: models, people, and what is true about them.

Rules kept here:
* organisations, models, people and preferences are invented; no model of any vendor occurs;
* the seed is explicit and touches neither noise nor keys: the same seed gives the same logs, never the same noise;
* what is true is known before any log is written, and at least one pair is equal in each signal that is compared.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from windvane_privacy.catalogue import Family, Signal


@dataclass(frozen=True, slots=True)
class DemoModel:
    """An invented model and its true behaviour, each a probability.

    `finish`: a piece of work ends well. `leave`: a person with another model at hand moves away inside a piece of work.
    `tool_ok`: a tool call is not malformed and meets its target. `recover`: a failed request is answered after retries.
    """

    id: str
    label: str
    vendor: str
    share: float
    finish: float
    leave: float
    tool_ok: float
    recover: float


MODELS: tuple[DemoModel, ...] = (
    DemoModel("alder-4", "Alder 4", "Grove", 0.29, finish=0.90, leave=0.06, tool_ok=0.985, recover=0.90),
    DemoModel("birch-2", "Birch 2", "Grove", 0.21, finish=0.90, leave=0.06, tool_ok=0.86, recover=0.90),
    DemoModel("cedar-5", "Cedar 5", "Timberline", 0.24, finish=0.52, leave=0.42, tool_ok=0.985, recover=0.90),
    DemoModel("elm-3.5", "Elm 3.5", "Hedgerow", 0.15, finish=0.52, leave=0.42, tool_ok=0.86, recover=0.35),
    DemoModel("oak-1", "Oak 1", "Hedgerow", 0.11, finish=0.30, leave=0.60, tool_ok=0.70, recover=0.35),
)
"""Equal pairs: Alder and Birch (completion, switch-away), Alder and Cedar (tools), these three (recovery)."""

PUBLIC_ORDER: tuple[str, ...] = ("alder-4", "cedar-5", "birch-2", "elm-3.5", "oak-1")
"""The named public list that the pair list is taken from, by rank of use."""

HARNESS_MODEL = "oak-1"
"""The model that skills use; calls made by it inside a skill are no choice of a person."""


def families() -> tuple[Family, ...]:
    """The demo's catalogue."""
    return tuple(Family(model.id, model.label, model.vendor, (model.id.replace(".", r"[.-]"),)) for model in MODELS)


def true_direction(signal: Signal, a: str, b: str) -> str | None:
    """Id of the model that the demo made better in this signal, or None where it made the two equal."""
    first, second = (next(m for m in MODELS if m.id == i) for i in (a, b))
    values = {
        Signal.COMPLETION: (first.finish, second.finish),
        Signal.SWITCH_AWAY: (1 - first.leave, 1 - second.leave),
        Signal.TOOL_RELIABILITY: (first.tool_ok, second.tool_ok),
        Signal.INFRA_RECOVERY: (first.recover, second.recover),
    }
    if signal not in values or values[signal][0] == values[signal][1]:
        return None
    return a if values[signal][0] > values[signal][1] else b


@dataclass(frozen=True, slots=True)
class Person:
    """One invented person: staff id, the models they use, which log they leave, their kind of work in the chat tool."""

    staff_id: str
    models: tuple[DemoModel, ...]
    chat: bool
    kind: str


@dataclass(frozen=True, slots=True)
class Quarter:
    """The demo's quarter: the last complete one before `now`."""

    name: str
    start: datetime
    end: datetime

    @classmethod
    def before(cls, now: datetime) -> Quarter:
        """The last quarter that ended before `now` (UTC)."""
        index = (now.year * 4 + (now.month - 1) // 3) - 1
        start = datetime(index // 4, index % 4 * 3 + 1, 1, tzinfo=UTC)
        following = index + 1
        end = datetime(following // 4, following % 4 * 3 + 1, 1, tzinfo=UTC)
        return cls(f"{start.year}-q{index % 4 + 1}", start, end)


ORGANISATION_NAMES: tuple[str, ...] = (
    "Amber Bank", "Basalt Energy", "Beacon Hospital", "Birchfield College", "Blue Harbour Shipping", "Bramble Foods",
    "Brightwater Utilities", "Canal Street Press", "Cobalt Insurance", "Copper Hill Mining", "Coral Travel",
    "Crescent Robotics", "Dovetail Joinery", "Eastgate Council", "Ember Games", "Fairway Logistics", "Fenland Dairy",
    "Fjord Telecom", "Granite Law", "Greenline Rail", "Harvest Seeds", "Heron Airports", "Ivory Paper", "Juniper Labs",
    "Kestrel Aerospace", "Lantern Museum", "Lighthouse Charity", "Meadow Pharma", "Midtown Library",
    "Northwind Ferries",
    "Opal Optics", "Orchard Schools", "Pebble Payments", "Quarry Cement", "Redwood Retail", "River Valley Housing",
    "Saffron Kitchens", "Slate Software", "Thistle Textiles", "Willow Clinics",
)  # fmt: skip


def organisation_name(index: int) -> str:
    """Name of organisation 0, 1, 2, ...; beyond the list the names are numbered."""
    if index < len(ORGANISATION_NAMES):
        return ORGANISATION_NAMES[index]
    return f"{ORGANISATION_NAMES[index % len(ORGANISATION_NAMES)]} {index // len(ORGANISATION_NAMES) + 1}"


def people_of(organisation: int, count: int, seed: int) -> list[Person]:
    """The people of one organisation; sizes differ by a tenth around `count`."""
    rng = random.Random(f"people {seed} {organisation}")
    size = max(1, round(count * rng.uniform(0.9, 1.1)))
    return [_person(rng, number) for number in range(size)]


def _person(rng: random.Random, number: int) -> Person:
    wanted = rng.choices((1, 2, 3), weights=(8, 50, 42))[0]
    pool, chosen = list(MODELS), []
    for _ in range(wanted):
        model = rng.choices(pool, weights=[m.share for m in pool])[0]
        pool.remove(model)
        chosen.append(model)
    return Person(
        staff_id=f"s-{1001 + number}",
        models=tuple(chosen),
        chat=rng.random() < 0.2,
        kind=rng.choice(("writing", "analysis")),
    )


@dataclass(frozen=True, slots=True)
class Work:
    """One planned piece of work: when, with which model, and what happens in it.

    `moved_to`: the person moves to this model for the second turn. `runs`: for each transient fault whether the request
    recovered. `tools`: outcome words of the tool calls. `skill`: the harness runs a skill on its own model.
    """

    begins: datetime
    model: DemoModel
    finished: bool
    turns: int
    moved_to: DemoModel | None
    runs: tuple[bool, ...]
    tools: tuple[str, ...]
    skill: bool


NORMAL, FAULTY = 5, 1
"""Pieces of work of one person with one model in the quarter: ordinary ones, and ones in which the service falters."""


def plan_work(person: Person, quarter: Quarter, rng: random.Random) -> list[Work]:
    """A person's pieces of work in time order: one with each model before the quarter (so that no model is a novelty),
    then the quarter's."""
    planned: list[tuple[DemoModel, str]] = []
    for model in person.models:
        planned.extend([(model, "normal")] * NORMAL + [(model, "faulty")] * FAULTY)
    rng.shuffle(planned)
    before = [(model, "habit") for model in person.models]
    days = sorted(rng.sample(range(88), min(len(planned), 88)))
    moments = [quarter.start - timedelta(days=20 + i, hours=rng.uniform(-3, 3)) for i in range(len(before))][::-1]
    moments += [quarter.start + timedelta(days=day, hours=rng.uniform(8, 17)) for day in days]
    return [_work(person, model, what, at, rng) for (model, what), at in zip(before + planned, moments, strict=False)]


def _work(person: Person, model: DemoModel, what: str, begins: datetime, rng: random.Random) -> Work:
    # Analysis is harder for every model alike: votes are balanced inside a kind, so this must not turn a direction.
    finish = model.finish - (0.15 if person.chat and person.kind == "analysis" else 0.0)
    others = [other for other in person.models if other is not model]
    turns = 2 if what == "faulty" or rng.random() < 0.55 else 1
    moves = what == "normal" and turns == 2 and bool(others) and rng.random() < model.leave
    calls = 0 if person.chat and rng.random() < 0.3 else rng.choice((2, 2, 3))
    return Work(
        begins=begins.replace(microsecond=0),
        model=model,
        finished=rng.random() < finish,
        turns=turns,
        moved_to=rng.choice(others) if moves else None,
        runs=tuple(rng.random() < model.recover for _ in range(2)) if what == "faulty" else (),
        tools=tuple(_tool(model, rng) for _ in range(calls)),
        skill=what == "normal" and rng.random() < 0.05,
    )


def _tool(model: DemoModel, rng: random.Random) -> str:
    if rng.random() < model.tool_ok:
        return rng.choices(("ok", "runtime", "denied"), weights=(90, 8, 2))[0]
    return rng.choice(("malformed", "precondition"))
