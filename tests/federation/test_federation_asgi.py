# SPDX-License-Identifier: Apache-2.0
"""A whole federation in one process: real agents, guardians and service over ASGI, from outcomes to a page.

Not failures: a member that gives up; a guardian that is away. Failures: a member counted twice, or lost after its
receipt; a sum that is not the sum of what was sent; a claim against what every organisation's people did.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import anyio
import httpx
import pytest

from member_world import FixedEvidence, LyingCourier, Silent
from small_federation import ROUND, SmallFederation
from windvane_client.agent import MemberAgent
from windvane_client.https import HttpsCourier
from windvane_client.settings import LogFolder, MemberSettings
from windvane_client.state import MemberState
from windvane_privacy.catalogue import Signal
from windvane_privacy.claims import State
from windvane_privacy.errors import CoordinatorUnreachable, DuplicateSubmission
from windvane_privacy.ledger_schema import State as RoundState
from windvane_privacy.log import make_leaf
from windvane_privacy.manifest import Manifest
from windvane_privacy.outcomes import Basis, PersonOutcome
from windvane_privacy.report_file import verify_quarter
from windvane_privacy.votes import collect_votes, exact_vector
from windvane_server.app import create_app
from windvane_server.coordinator import Coordinator

MEMBERS = 20


class Bridge(httpx.BaseTransport):
    """Carries a request into the application of whichever coordinator object lives now."""

    def __init__(self, federation: SmallFederation) -> None:
        self._federation = federation
        self._served: tuple[Coordinator, httpx.ASGITransport] | None = None

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        living = self._federation.coordinator
        if self._served is None or self._served[0] is not living:
            self._served = (living, httpx.ASGITransport(app=create_app(living, living.site)))
        inner = self._served[1]

        async def ask() -> httpx.Response:
            answer = await inner.handle_async_request(request)
            body = httpx.ByteStream(await answer.aread())
            return httpx.Response(answer.status_code, headers=answer.headers, stream=body)

        return anyio.run(ask)


class World:
    """Twenty organisations with agents; organisation n has the outcomes `rows[n]`."""

    def __init__(self, folder: Path) -> None:
        self.small = SmallFederation(folder / "federation", size=0)
        self.courier = HttpsCourier("https://coordinator.test", transport=Bridge(self.small))
        self.small.courier = self.courier
        self.folder = folder
        document = self.small.send("federation", round_id="")
        for number in range(1, MEMBERS + 1):
            settings = MemberSettings(
                f"Organisation {number}",
                "100-249",
                (),
                "https://coordinator.test",
                (LogFolder("/nowhere"),),
                str(folder / "second"),
            )
            MemberState.create(folder / f"member-{number}", settings, document, demo=True, approval="auto")
            with self.agent(number, []) as agent:
                agent.enrol()

    def agent(self, number: int, rows: Sequence[PersonOutcome], **parts: object) -> MemberAgent:
        how = {"evidence": FixedEvidence(rows)} | parts
        courier = how.pop("courier", self.courier)
        return MemberAgent(MemberState.open(self.folder / f"member-{number}"), courier, self.small.clock, **how)

    def finish(self, *guardians: int) -> None:
        """Closing week with the given guardians, the coordinator restarted between any two steps."""
        self.small.coordinator.close_round(ROUND)
        self.small.restart()
        self.small.nonces(*guardians)
        self.small.restart()
        self.small.coordinator.fix_lot(ROUND, timedelta(0))
        self.small.results(*guardians)
        self.small.restart()
        self.small.coordinator.tally(ROUND)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.courier.close()
    made.small.close()


def prefers(people: int, first: int, better: str, worse: str) -> list[PersonOutcome]:
    """People who finished everything with one model and nothing with the other."""
    return [
        PersonOutcome(
            (first + i).to_bytes(16, "big"), Signal.COMPLETION, "coding", "test", Basis.EXPLICIT, model, None, 6, done
        )
        for i in range(people)
        for model, done in ((better, 6), (worse, 0))
    ]


def test_the_sums_are_exactly_those_of_the_members_however_often_they_die(world: World) -> None:
    small = world.small
    manifest = small.open_round()
    rows = {number: prefers(number, 1, *manifest.pairs[number % 3]) for number in range(1, MEMBERS + 1)}
    deaths = {1: ("leaf", "request"), 2: ("leaf", "answer"), 3: ("reveal", "request"), 4: ("reveal", "answer")}
    for number in range(1, MEMBERS + 1):
        if number in deaths:
            dying = LyingCourier(world.courier, lose=[deaths[number]])
            agent = world.agent(number, rows[number], noise=Silent(), courier=dying)
            with agent, pytest.raises(CoordinatorUnreachable):
                agent.submit(ROUND)
            small.restart()
        with world.agent(number, rows[number], noise=Silent()) as agent:
            assert agent.submit(ROUND).state is RoundState.ACCEPTED
            assert agent.submit(ROUND).state is RoundState.ACCEPTED
    copied = _second_commitment(world, manifest)
    with pytest.raises(DuplicateSubmission):
        small.send("leaf", copied)
    world.finish(1, 3)
    opened, crosschecked = small.coordinator.tally(ROUND)
    assert not crosschecked
    exact = {number: _exact(rows[number], manifest) for number in rows}
    cohorts = small.coordinator.fix_lot(ROUND)
    assert sorted(member for cohort in cohorts for member in cohort) == list(range(1, MEMBERS + 1))
    assert opened.sums == tuple(tuple(map(sum, zip(*(exact[m] for m in cohort), strict=True))) for cohort in cohorts)
    small.results(2)
    assert small.coordinator.tally(ROUND) == (opened, True)


def test_what_people_everywhere_preferred_is_what_the_page_says(world: World) -> None:
    small = world.small
    manifest = small.open_round()
    truth = {pair: pair[place % 2] for place, pair in enumerate(manifest.pairs[:6])}
    for number in range(1, MEMBERS + 1):
        rows = [
            row
            for place, (pair, better) in enumerate(truth.items())
            for row in prefers(20, 1 + 20 * place, better, pair[0] if better == pair[1] else pair[1])
        ]
        with world.agent(number, rows) as agent:
            agent.submit(ROUND)
    world.finish(1, 2, 3)
    site = small.coordinator.publish(ROUND)
    report = verify_quarter(site / "2026-q3", bytes.fromhex(small.coordinator.federation.coordinator))
    called = {
        (claim.a, claim.b): claim.a if claim.state is State.TOWARD_A else claim.b
        for claim in report.claims
        if claim.state in (State.TOWARD_A, State.TOWARD_B)
    }
    assert called == truth
    front = httpx.Client(transport=Bridge(small), base_url="https://coordinator.test").get("/")
    assert front.status_code == 200
    assert "Demonstration: invented organisations" in front.text


def _exact(rows: Sequence[PersonOutcome], manifest: Manifest) -> list[int]:
    votes = collect_votes(rows, manifest, secrets.SystemRandom()).votes
    return [int(value) for value in exact_vector(votes, manifest)]


def _second_commitment(world: World, manifest: Manifest) -> bytes:
    key = MemberState.open(world.folder / "member-1").key
    fields = {"manifest": manifest.sha256, "member": 1, "hash": "1" * 64, "install": "2" * 64, "day": "2026-10-02"}
    return make_leaf("commitment", ROUND, fields, key)
