# SPDX-License-Identifier: Apache-2.0
"""Two equal models, one of which is often not available: people who move because of that are no evidence against it."""

from __future__ import annotations

import random
from functools import cache

from client_events import CATALOGUE, A, B, Log, rows_of_logs
from windvane_client.events import AttemptError
from windvane_client.ids import K_ORG_BYTES
from windvane_client.people import People
from windvane_client.preview_own import preview_layout
from windvane_client.preview_setup import Setup
from windvane_client.rules import Rules
from windvane_privacy.votes import collect_votes

WORLDS, PEOPLE, EPISODES = 8, 16, 30
CHOICE, NOT_AVAILABLE = 0.06, 0.2


def person(coins: random.Random, name: str) -> list[Log]:
    """Episodes on both models in turn. Leaving by choice is equally rare; only A is sometimes overloaded."""
    logs = [Log(name, f"{name}-past", kind_hint="coding").habit(A, B)]
    for number in range(EPISODES):
        log = Log(name, f"{name}-{number}", start=logs[0].start + number * 4 * 3_600_000_000, kind_hint="coding")
        first, other = (A, B) if number % 2 else (B, A)
        log.turn(0, first)
        overloaded = first == A and coins.random() < NOT_AVAILABLE
        if overloaded:
            log.error(3, "overload", A, attempt=1)
        log.turn(5, other if overloaded or coins.random() < CHOICE else first)
        logs.append(log)
    return logs


@cache
def nets(*, errors_seen: bool) -> tuple[int, ...]:
    """Votes for A less votes for B of switch-away, world by world."""
    layout = preview_layout(Setup(bytes(K_ORG_BYTES), People.me(), Rules(), CATALOGUE), [(A, B)], ["coding"])
    found = []
    for world in range(WORLDS):
        coins = random.Random(world)
        rows = []
        for number in range(PEOPLE):
            logs = person(coins, f"p{number}")
            if not errors_seen:
                for log in logs:
                    log.events = [event for event in log.events if not isinstance(event, AttemptError)]
            rows += [row for row in rows_of_logs(*logs) if row.signal == "switch_away"]
        votes = collect_votes(rows, layout, random.Random(world)).votes
        found.append(sum(1 if vote.toward_a else -1 for one in votes for vote in one))
    return tuple(found)


def test_moves_away_from_an_overloaded_model_do_not_speak_against_it() -> None:
    net = nets(errors_seen=True)
    assert abs(sum(net)) < 3 * (WORLDS * PEOPLE) ** 0.5
    assert min(net) > -PEOPLE / 2, "no world says that people left A"


def test_the_same_world_without_its_errors_would_mislead() -> None:
    net = nets(errors_seen=False)
    assert max(net) < 0, "every world says that people left A: the errors are what makes the difference"
