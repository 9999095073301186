# SPDX-License-Identifier: Apache-2.0
"""The commit-and-reveal protocol of one member and one round as a small model that can be searched to its end.

Rules kept here:
* a draw is a number: two different numbers are two different noisy vectors of the member and the round;
* messages are lost, delivered twice, late and in any order; the coordinator may log a second commitment although it
  must not, and may answer a scan with any older state of its log;
* crashes forget what a process held in its hands; a restored backup forgets what the ledger learned since; a clone is a
  second machine with the same ledger; the second place survives a restore and is copied with a clone;
* what is visible is what was sent, delivered or not;
* there is one log: a coordinator that shows two copies two different logs is not in it (see docs/protocol.md);
* a bug is a named departure from the rules (`BUGS`); without one the model is what the agent and the ledger do.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

EMPTY, DRAWN, COMMITTED, REVEALED, ACCEPTED, BURNED = range(6)
FINAL = (ACCEPTED, BURNED)
CLOSED, FORGED = 100, 101  # entries of the log beside commitments (the draw's number) and acceptances (its negative)
LEAF, RECEIPT, ENVELOPE = range(3)
NOTHING = -1

BUGS = {
    "no scan before the draw": "draws without looking for commitments of its own in the log",
    "reveal before receipt": "sends the envelope as soon as the commitment was sent",
    "one phase": "sends the envelope right after the draw, without any commitment",
    "log checked at the start only": "takes a receipt for the proof that its commitment is the first",
    "no burn on a foreign hash": "goes on when the first commitment in the log is another one",
    "last commitment counts": "the newest commitment in the log decides, not the first",
    "a selection is enough": "believes a scan from which the coordinator left out the other commitments",
    "redraw on retry": "draws again after a crash instead of sending the stored bytes",
    "stored after sending": "sends the hash first and stores the draw afterwards",
    "burned rounds begin again": "takes a burned round for an empty one",
    "no second place": "measures the age of a log by the ledger alone, which a restore sets back",
    "unsigned commitments count": "burns for an entry in its name that it did not sign",
    "lost draws are skipped": "waits, instead of burning, when the log holds a commitment that the ledger lost",
}

UNSEEN = {"no scan before the draw", "burned rounds begin again", "a selection is enough", "lost draws are skipped"}
"""Bugs with which an empty ledger does not notice a commitment of its own."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much may go wrong in one history."""

    crashes: int = 0
    restores: int = 0
    clones: int = 0
    duplicates: int = 0
    drops: int = 0
    closes: int = 0
    forgeries: int = 0
    double_logs: int = 0
    draws: int = 4


class Machine(NamedTuple):
    """`seen`: length of the newest log, in the ledger; `second`: the same in the second place. In the process's hands:
    `view`, the length of the log of its last scan, and `receipt`."""

    state: int = EMPTY
    draw: int = 0
    seen: int = 0
    second: int = 0
    view: int = NOTHING
    receipt: int = 0


class World(NamedTuple):
    """Everything at one moment. `net`: one bit for each kind of message and draw. `left`: what may still go wrong."""

    machines: tuple[Machine, ...] = (Machine(),)
    log: tuple[int, ...] = ()
    net: int = 0
    backup: tuple[int, int, int] | None = None
    draws: int = 0
    visible: int = 0
    copied: int = 0
    left: tuple[int, ...] = ()


Action = tuple[object, ...]
CRASH, RESTORE, CLONE, DUPLICATE, DROP, CLOSE, FORGE, DOUBLE = range(8)
FAULTS = {"crash", "restore", "clone", "duplicate", "drop", "close", "forge", "backup", "double"}


def start(bounds: Bounds) -> World:
    limits = (bounds.crashes, bounds.restores, bounds.clones, bounds.duplicates, bounds.drops, bounds.closes)
    return World(left=(*limits, bounds.forgeries, bounds.double_logs))


def bit(kind: int, draw: int) -> int:
    return 1 << (3 * draw + kind)


def commitments(log: tuple[int, ...], bug: str = "") -> list[int]:
    forged = bug == "unsigned commitments count"
    return [entry for entry in log if 0 < entry < CLOSED or (forged and entry == FORGED)]


def decisive(log: tuple[int, ...], draw: int, bug: str) -> int:
    """The commitment that counts; 0: none."""
    found = commitments(log, bug)
    if bug in ("a selection is enough", "no burn on a foreign hash"):
        return draw if draw in found else 0
    if not found:
        return 0
    return found[-1] if bug == "last commitment counts" else found[0]


class Model:
    """The steps that are possible in a world, and what must hold in it."""

    def __init__(self, bounds: Bounds, bug: str = "") -> None:
        assert bug == "" or bug in BUGS
        self.bounds, self.bug = bounds, bug

    def steps(self, world: World) -> Iterator[tuple[Action, World]]:
        for index, machine in enumerate(world.machines):
            for action, after, changes in self._member(world, machine):
                machines = (*world.machines[:index], after, *world.machines[index + 1 :])
                yield (action[0], index, *action[1:]), world._replace(machines=machines, **changes)
        yield from self._network(world)
        yield from self._accidents(world)

    # --- the member ---

    def _member(self, world: World, m: Machine) -> Iterator[tuple[Action, Machine, dict[str, object]]]:
        oldest = m.seen if self.bug == "no second place" else max(m.seen, m.second)
        if m.state not in FINAL or self.bug == "burned rounds begin again":
            for length in range(oldest, len(world.log) + 1):
                after = self.scanned(m, world.log[:length])
                if after != m:
                    yield ("scan", length), after, {}
        if m.view == NOTHING:
            return
        shown, number = world.log[: m.view], world.draws + 1
        if m.state == EMPTY and not m.draw and CLOSED not in shown and number <= self.bounds.draws:
            blind = self.bug in ("no scan before the draw", "burned rounds begin again", "a selection is enough")
            if blind or not commitments(shown):
                if self.bug == "stored after sending":
                    yield ("draw",), m._replace(draw=number), {"draws": number, "net": world.net | bit(LEAF, number)}
                else:
                    yield ("draw",), m._replace(state=DRAWN, draw=number), {"draws": number}
        if m.state == EMPTY and m.draw:  # only with the bug: sent, and stored now
            yield ("store",), m._replace(state=DRAWN), {}
        if m.state == DRAWN:
            yield ("send_leaf",), m, {"net": world.net | bit(LEAF, m.draw)}
            if world.net & bit(RECEIPT, m.draw) and not m.receipt:
                view = m.view if self.bug == "log checked at the start only" else NOTHING
                yield ("take_receipt",), m._replace(receipt=1, view=view), {"net": world.net & ~bit(RECEIPT, m.draw)}
            unchecked = self.bug == "log checked at the start only"
            if m.receipt and (unchecked or decisive(shown, m.draw, self.bug) == m.draw):
                yield ("commit",), m._replace(state=COMMITTED, receipt=0), {}
            if self.bug == "reveal before receipt" and world.net & bit(LEAF, m.draw):
                yield ("reveal",), m._replace(state=REVEALED), {}
            if self.bug == "one phase":
                yield ("reveal",), m._replace(state=REVEALED), {}
        if m.state == COMMITTED:
            yield ("reveal",), m._replace(state=REVEALED), {}
        if m.state == REVEALED:
            out = bit(ENVELOPE, m.draw)
            yield ("send_envelope",), m, {"net": world.net | out, "visible": world.visible | 1 << m.draw}

    def scanned(self, m: Machine, log: tuple[int, ...]) -> Machine:
        """After a scan of this log: what it ends, what is remembered, what is in hand."""
        state, draw = m.state, m.draw
        if state == BURNED and self.bug == "burned rounds begin again":
            state, draw = EMPTY, 0
        first = decisive(log, draw, self.bug) if draw else next(iter(commitments(log, self.bug)), 0)
        unseen = (
            "no scan before the draw",
            "burned rounds begin again",
            "a selection is enough",
            "lost draws are skipped",
        )
        if state == EMPTY and first and not draw and self.bug not in unseen:
            state = BURNED
        elif state in (DRAWN, COMMITTED, REVEALED):
            if first not in (0, draw) and self.bug != "log checked at the start only":
                state = BURNED
            elif -draw in log and state != DRAWN:
                state = ACCEPTED
            elif CLOSED in log and -draw not in log:
                state = BURNED
        if state in FINAL:
            return Machine(state, draw, len(log), max(len(log), m.second))
        if self.bug == "redraw on retry" and state == DRAWN and m.view == NOTHING and not m.receipt:
            state, draw = EMPTY, 0
        return Machine(state, draw, len(log), max(len(log), m.second), len(log), m.receipt)

    # --- coordinator and network ---

    def _network(self, world: World) -> Iterator[tuple[Action, World]]:
        for draw in range(1, world.draws + 1):
            for kind in (LEAF, RECEIPT, ENVELOPE):
                if not world.net & bit(kind, draw):
                    continue
                gone = world._replace(net=world.net & ~bit(kind, draw))
                if world.left[DROP]:
                    yield ("drop", kind, draw), _spend(gone, DROP)
                if kind == RECEIPT:
                    continue
                for handled in self._handled(gone, kind, draw):
                    yield ("deliver", kind, draw), handled
                if world.left[DUPLICATE]:
                    for handled in self._handled(world, kind, draw):
                        yield ("duplicate", kind, draw), _spend(handled, DUPLICATE)

    def _handled(self, world: World, kind: int, draw: int) -> Iterator[World]:
        known, over = commitments(world.log), CLOSED in world.log
        if kind == ENVELOPE:
            fits = known[:1] == [draw] or self.bug == "one phase"
            taken = fits and not over and -draw not in world.log
            yield world._replace(log=(*world.log, -draw)) if taken else world
        elif draw in known:
            yield world._replace(net=world.net | bit(RECEIPT, draw))
        elif over:
            yield world
        elif not known:
            yield _logged(world, draw)
        else:
            yield world
            if world.left[DOUBLE]:
                yield _spend(_logged(world, draw), DOUBLE)

    # --- what goes wrong ---

    def _accidents(self, world: World) -> Iterator[tuple[Action, World]]:
        first = world.machines[0]
        for index, m in enumerate(world.machines):
            if world.left[CRASH] and (m.view != NOTHING or m.receipt):
                draw = 0 if m.state == EMPTY else m.draw
                yield (
                    ("crash", index),
                    _spend(_with(world, index, m._replace(view=NOTHING, receipt=0, draw=draw)), CRASH),
                )
        kept = (first.state, first.draw if first.state != EMPTY else 0, first.seen)
        if world.left[RESTORE]:
            if world.backup != kept:
                yield ("backup",), world._replace(backup=kept)
            if world.backup is not None and world.backup != kept:
                back = _with(world, 0, Machine(*world.backup, first.second))
                yield ("restore",), _spend(back._replace(copied=world.copied + 1), RESTORE)
        if world.left[CLONE]:
            copy = Machine(*kept, first.second)
            both = world._replace(machines=(first, copy), copied=world.copied + 1)
            yield ("clone",), _spend(both, CLONE)
        if world.left[CLOSE] and CLOSED not in world.log:
            yield ("close",), _spend(world._replace(log=(*world.log, CLOSED)), CLOSE)
        if world.left[FORGE]:
            yield ("forge",), _spend(world._replace(log=(*world.log, FORGED)), FORGE)

    # --- what must hold ---

    def broken(self, world: World, action: Action = (), before: World | None = None) -> str | None:
        """The sentence that does not hold in this world, or in the step to it; None: all do."""
        if world.visible & (world.visible - 1):
            return "two different noisy vectors of one round are revealed"
        if world.draws > 1 + world.copied:
            return "a second draw without any copy"
        if action[:1] == ("draw",) and before is not None:
            shown = before.machines[action[1]].second  # what this installation was shown, whatever its ledger says
            if commitments(before.log[:shown]):
                return "a draw beside a commitment that was shown before"
        burned = any(m.state == BURNED for m in world.machines)
        if burned and not world.copied and CLOSED not in world.log:
            return "a burned round without a copy or a closing"
        return None


def _logged(world: World, draw: int) -> World:
    return world._replace(log=(*world.log, draw), net=world.net | bit(RECEIPT, draw))


def _with(world: World, index: int, machine: Machine) -> World:
    return world._replace(machines=(*world.machines[:index], machine, *world.machines[index + 1 :]))


def _spend(world: World, what: int) -> World:
    left = world.left
    return world._replace(left=(*left[:what], left[what] - 1, *left[what + 1 :]))


class Found(NamedTuple):
    """The result of a search: states, and the sentence that broke with the steps to it."""

    states: int
    broken: str | None = None
    steps: tuple[Action, ...] = ()
    complete: bool = True


def search(model: Model, *, most: int = 10**9, trace: bool = False) -> Found:
    """Every world that can be reached, breadth first: the shortest way to a broken sentence is found first."""
    first = start(model.bounds)
    parents: dict[World, tuple[World, Action] | None] = {first: None} if trace else {}
    known, waiting = {hash_free(first)}, deque([first])
    while waiting:
        world = waiting.popleft()
        for action, after in model.steps(world):
            key = hash_free(after)
            if key in known:
                continue
            known.add(key)
            if trace:
                parents[after] = (world, action)
            sentence = model.broken(after, action, world)
            if sentence:
                return Found(len(known), sentence, (*_way(parents, world), action) if trace else (action,))
            if len(known) >= most:
                return Found(len(known), complete=False)
            waiting.append(after)
    return Found(len(known))


def _way(parents: dict[World, tuple[World, Action] | None], world: World) -> tuple[Action, ...]:
    found, step = [], parents[world]
    while step is not None:
        found.append(step[1])
        step = parents[step[0]]
    return tuple(reversed(found))


def hash_free(world: World) -> bytes:
    """The world in a few dozen bytes, without loss: a million worlds fit into memory."""
    machines = [value + 1 for machine in world.machines for value in machine]
    log = [entry % 256 for entry in world.log]
    net = world.net.to_bytes(3, "big")
    backup = () if world.backup is None else world.backup
    head = (len(world.machines), len(log), len(backup), world.draws, world.visible, world.copied)
    return bytes((*head, *machines, *log, *backup, *world.left)) + net


def stuck(model: Model) -> tuple[int, list[World]]:
    """Worlds from which the member cannot come to an end although nothing more goes wrong. To have drawn nothing before
    the round closed is an end too."""
    first = start(model.bounds)
    known, waiting = {first}, deque([first])
    back: dict[World, list[World]] = {}
    ends: list[World] = []
    while waiting:
        world = waiting.popleft()
        over = CLOSED in world.log
        if all(machine.state in FINAL or (over and machine.state == EMPTY) for machine in world.machines):
            ends.append(world)
        for action, after in model.steps(world):
            if action[0] not in FAULTS:
                back.setdefault(after, []).append(world)
            if after not in known:
                known.add(after)
                waiting.append(after)
    reached = set(ends)
    while ends:
        for before in back.get(ends.pop(), ()):
            if before not in reached:
                reached.add(before)
                ends.append(before)
    return len(known), [world for world in known if world not in reached]
