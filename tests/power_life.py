# SPDX-License-Identifier: Apache-2.0
"""The life of a ledger on a disk that forgets, and what the world outside has seen of it.

Rules kept here:
* the ledger is the real one; the world keeps what left the ledger and what a finished call promised;
* after every opening the ledger must hold all that was promised, and nothing that contradicts what the world saw;
* every draw of a test has other noise, so that a second draw is another vector.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace

from ledger_steps import CAP, DAY, accepted, drawn, manifest_of, open_ledger, receipt_for
from power_disk import Disk
from power_vfs import PowerVfs
from windvane_privacy.errors import WindvaneError
from windvane_privacy.ledger import Ledger
from windvane_privacy.ledger_schema import BurnReason, Drawn, RoundEntry, State
from windvane_privacy.log import Leaf
from windvane_privacy.manifest import Manifest
from windvane_privacy.votes import OwnDirection


def _read_once(manifest: Manifest) -> SimpleNamespace:
    """What the ledger asks of a manifest, computed once: its hash costs more than a whole step on this disk."""
    asked = ("round", "sha256", "rho", "bounds", "noise", "events", "share_scale")
    return SimpleNamespace(**{name: getattr(manifest, name) for name in asked})


ENDED_WELL = _read_once(manifest_of())
ENDED_BADLY = _read_once(manifest_of("2026-Q4", start="2026-10-01", end="2027-01-01"))
PLANNED = {manifest.round: manifest for manifest in (ENDED_WELL, ENDED_BADLY)}
STEPS = 2
"""How far a life goes on after a start: there is a start before every step."""
RANK = {State.DRAWN: 1, State.COMMITTED: 2, State.REVEALED: 3, State.ACCEPTED: 4, State.BURNED: 4}
WORDS = [OwnDirection("all", "completion", "alder", "birch", "toward_a")]


@dataclass
class World:
    """`visible`: noisy vectors of a round whose hash or bytes left. `promised`: the newest entry that a call returned.
    `problems`: what must never be seen."""

    draws: int = 0
    approved: set[str] = field(default_factory=set)
    visible: dict[str, set[object]] = field(default_factory=dict)
    promised: dict[str, RoundEntry] = field(default_factory=dict)
    problems: set[str] = field(default_factory=set)

    def copy(self) -> World:
        seen = {name: set(vectors) for name, vectors in self.visible.items()}
        return World(self.draws, set(self.approved), seen, dict(self.promised), set(self.problems))

    def check(self, ledger: Ledger) -> None:
        if ledger.damage is not None:
            self.problems.add("unopenable")
        if any(ledger.approval(round_id) is None for round_id in self.approved):
            self.problems.add("an approval was lost")
        for round_id, before in self.promised.items():
            now = ledger.round(round_id)
            if now is None:
                self.problems.add("a charge was lost")
                continue
            if (now.entry_hash, now.noisy) != (before.entry_hash, before.noisy):
                self.problems.add("double draw")
            if RANK[now.state] < RANK[before.state]:
                self.problems.add("a step was forgotten")
            if before.state.final and now.state is not before.state:
                self.problems.add("an end was changed")
        for entry in ledger.rounds():
            ours = entry.round_id in (ENDED_WELL.round, ENDED_BADLY.round)
            if ours and entry.state.final != bool(ledger.own_directions(entry.round_id)):
                self.problems.add("an end without its own directions")

    def keep(self, ledger: Ledger, round_id: str) -> RoundEntry:
        """What a finished call promised."""
        entry = ledger.round(round_id)
        assert entry is not None
        self.promised[round_id] = entry
        return entry

    def show(self, round_id: str, noisy: object) -> None:
        """Something about this vector leaves."""
        seen = self.visible.setdefault(round_id, set())
        seen.add(noisy)
        if len(seen) > 1:
            self.problems.add("double draw")


# Signatures cost more than a step on this disk, and are the same in every trial.
_receipt = cache(receipt_for)


@cache
def _made(round_id: str, number: int) -> Drawn:
    """The draw with this number: other noise than every other."""
    return replace(drawn(PLANNED[round_id], mark=f"{round_id} {number}"), noisy=(number, -3))


@cache
def _accepted(round_id: str, commit_hash: str) -> Leaf:
    return accepted(PLANNED[round_id], commit_hash)


def _draw(ledger: Ledger, world: World, manifest: object) -> None:
    ledger.approve(manifest.round, manifest.sha256, DAY)
    world.approved.add(manifest.round)
    world.draws += 1
    made = _made(manifest.round, world.draws)
    ledger.draw(manifest, day=DAY, lifetime_cap=CAP, make=lambda _admits: made)
    world.keep(ledger, manifest.round)


def _commit(ledger: Ledger, world: World, manifest: object) -> None:
    entry = ledger.round(manifest.round)
    world.show(entry.round_id, entry.noisy)  # the hash leaves
    ledger.remember_head(f"head {world.draws}".encode())
    ledger.commit(entry.round_id, _receipt(entry.commitment_leaf))
    world.keep(ledger, manifest.round)


def _reveal(ledger: Ledger, world: World, manifest: object) -> None:
    ledger.reveal(manifest.round)
    world.show(manifest.round, world.keep(ledger, manifest.round).noisy)  # the envelope leaves


def _accept(ledger: Ledger, world: World, manifest: object) -> None:
    entry = ledger.round(manifest.round)
    ledger.accept(manifest.round, _accepted(manifest.round, entry.commit_hash), WORDS, DAY)
    world.keep(ledger, manifest.round)


def _burn(ledger: Ledger, world: World, manifest: object) -> None:
    ledger.burn(manifest.round, BurnReason.NOT_ACCEPTED, WORDS, DAY)
    world.keep(ledger, manifest.round)


Step = Callable[[Ledger, World, object], None]
AFTER: dict[State | None, Step] = {None: _draw, State.DRAWN: _commit, State.COMMITTED: _reveal}


def next_step(ledger: Ledger) -> tuple[Step, object] | None:
    """What the member does next: one round to its acceptance, then another that is burned after the reveal."""
    for manifest, last in ((ENDED_WELL, _accept), (ENDED_BADLY, _burn)):
        entry = ledger.round(manifest.round)
        state = None if entry is None else entry.state
        if state is None or not state.final:
            return AFTER.get(state, last), manifest
    return None


def live(ledger: Ledger, world: World, steps: int = 99) -> int:
    """Go on from wherever the ledger stands; how many steps were taken."""
    for done in range(steps):
        found = next_step(ledger)
        if found is None:
            return done
        found[0](ledger, world, found[1])
    return steps


@dataclass
class Lives:
    """Starts of a ledger's life (its bytes before each step) and trials that end one with a power failure."""

    vfs: PowerVfs
    folder: Path
    starts: list[tuple[bytes, World]] = field(default_factory=list)
    points: list[tuple[int, int]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return str(self.folder / "ledger.db")

    def prepare(self, raw: bytes) -> None:
        """Find every start and, for each, every call at which the power can fail."""
        world = World()
        while True:
            self.vfs.disk = Disk.holding({self.name: raw})
            with open_ledger(self.folder) as ledger:
                self.starts.append((raw, world.copy()))
                live(ledger, world.copy(), STEPS)
            calls = self.vfs.disk.calls
            self.points += [(len(self.starts) - 1, cut) for cut in range(1, calls + 1)]
            self.vfs.disk = Disk.holding({self.name: raw})
            with open_ledger(self.folder) as ledger:
                found = next_step(ledger)
                if live(ledger, world, 1) == 0:
                    return
                self.names.append(found[0].__name__.strip("_"))
            raw = self.vfs.disk.contents()[self.name]

    def trial(self, number: int, seed: int) -> set[str]:
        """One failure at one of the points, up to two more while the ledger recovers, then on; what was wrong."""
        chance = random.Random(f"{seed} {number}")
        start, cut = self.points[number % len(self.points)]
        raw, before = self.starts[start]
        world, files = before.copy(), {self.name: raw}
        for failure in range(1 + chance.choice((0, 0, 1, 2))):
            self.vfs.disk = Disk.holding(files, cut=cut if failure == 0 else chance.randint(1, 16))
            with suppress(WindvaneError), open_ledger(self.folder) as ledger:
                live(ledger, world, STEPS)
            files = self.vfs.disk.after_power_loss(chance)
        self.vfs.disk = Disk.holding(files)
        try:
            with open_ledger(self.folder) as ledger:
                world.check(ledger)
                live(ledger, world, 99 if chance.random() < 0.1 else 1)
                world.check(ledger)
        except WindvaneError:
            world.problems.add("unopenable")
        return world.problems

    def flaky_trial(self, number: int, seed: int) -> set[str]:
        """Calls that fail alone; the member tries again with the same open ledger, then the power fails."""
        chance = random.Random(f"{seed} flaky {number}")
        start, first = self.points[number % len(self.points)]
        raw, before = self.starts[start]
        world = before.copy()
        failing = {first + offset for offset in range(6) if offset == 0 or chance.random() < 0.2}
        self.vfs.disk = Disk.holding({self.name: raw}, failing=failing, cut=chance.choice((0, first + 25)))
        files = {}
        for _opening in range(2):
            with suppress(WindvaneError), open_ledger(self.folder) as ledger:
                for _attempt in range(3):
                    with suppress(WindvaneError):
                        live(ledger, world)
                files = self.vfs.disk.after_power_loss(chance)
        self.vfs.disk = Disk.holding(files or self.vfs.disk.after_power_loss(chance))
        try:
            with open_ledger(self.folder) as ledger:
                world.check(ledger)
                live(ledger, world)
                world.check(ledger)
        except WindvaneError:
            world.problems.add("unopenable")
        return world.problems
