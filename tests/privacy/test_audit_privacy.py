# SPDX-License-Identifier: Apache-2.0
"""The empirical audit: the real member path keeps its promise, and each way of breaking it is seen."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from windvane import audit as commands
from windvane.audit_privacy import facts_of
from windvane_client.audit_member import AuditMember
from windvane_client.privacy_audit import Audit, audit, draws_needed, person_at, places, replay
from windvane_privacy.errors import PrivacyClaimBroken
from windvane_privacy.noise import OpenDPNoise

TRIALS = 480
OPENDP = OpenDPNoise()


class Broken:
    """A source of noise with a fault; `answer` gets the exact vector and the scale that was asked for."""

    def __init__(self, answer: Callable[[NDArray[np.int64], float], list[int]]) -> None:
        self.answer = answer

    def draw(self, exact: NDArray[np.int64], share_scale: float) -> list[int]:
        return self.answer(exact, share_scale)


def kept() -> Broken:
    """The same noise for every draw."""
    once: list[list[int]] = []

    def answer(exact: NDArray[np.int64], scale: float) -> list[int]:
        if not once:
            once.append(OPENDP.draw(exact * 0, scale))
        return [int(value) + noise for value, noise in zip(exact, once[0], strict=True)]

    return Broken(answer)


def with_noise(folder: Path, noise: Broken, trials: int = 240) -> Audit:
    return audit(AuditMember(folder, s=26, h=1, noise=noise), trials)


def test_the_real_path_holds_its_claim(tmp_path: Path) -> None:
    member = AuditMember(tmp_path, s=26, h=1)
    steps: list[int] = []
    found = audit(member, TRIALS, steps.append)
    assert found.faults == ()
    assert found.claimed == 1.5
    assert 0.3 < found.shown <= found.claimed  # an audit that sees nothing would prove nothing
    assert found.trials >= TRIALS
    assert steps[-1] == draws_needed(member, TRIALS) == found.draws


def test_a_sum_of_four_shares_holds_the_same_claim(tmp_path: Path) -> None:
    member = AuditMember(tmp_path, s=52, h=4)
    found = audit(member, 240)
    assert member.manifest.share_scale == 26.0
    assert found.faults == ()
    assert (found.scale, found.claimed, found.honest) == (52.0, 0.75, 4)


def test_one_person_moves_the_vector_before_noise_by_39_at_most(tmp_path: Path) -> None:
    member = AuditMember(tmp_path, s=26, h=1)
    spots = places(member.manifest)
    here = [row for number in range(2, 9) for row in person_at(spots, number)]
    for number in (0, 1, 10, 23):
        exact, found = replay(member, [here], person_at(spots, number))
        assert any(exact[0])
        assert found.distance == 39**2 == member_bound(member)
        assert found.same_path


def member_bound(member: AuditMember) -> int:
    from windvane_privacy.noise import sensitivity

    return int(sensitivity(member.manifest.bounds.Q) ** 2)


def test_places_share_no_cell_and_each_holds_nine(tmp_path: Path) -> None:
    spots = places(AuditMember(tmp_path, s=26, h=1).manifest)
    cells = [cell for spot in spots for cell in spot.cells]
    assert len(cells) == len(set(cells)) == 9 * len(spots) == 216


@pytest.mark.parametrize(
    ("fault", "noise"),
    [
        ("none at all", Broken(lambda exact, _scale: [int(value) for value in exact])),
        ("half the scale", Broken(lambda exact, scale: OPENDP.draw(exact, scale / 2))),
        ("the share of two members instead of one", Broken(lambda exact, scale: OPENDP.draw(exact, scale / 2**0.5))),
        ("twelve per cent too little", Broken(lambda exact, scale: OPENDP.draw(exact, scale * 0.88))),
        ("kept for every draw", kept()),
        (
            "on the net only",
            Broken(
                lambda exact, scale: [
                    int(true) if place % 2 else noisy
                    for place, (true, noisy) in enumerate(zip(exact, OPENDP.draw(exact, scale), strict=True))
                ]
            ),
        ),
        ("on zeros: nobody's votes counted", Broken(lambda exact, scale: OPENDP.draw(exact * 0, scale))),
        ("everybody counted twice", Broken(lambda exact, scale: OPENDP.draw(exact + exact.clip(-24, 24), scale))),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_fault_of_the_noise_is_seen(tmp_path: Path, fault: str, noise: Broken) -> None:
    assert with_noise(tmp_path, noise).faults != (), fault


def test_the_bound_alone_sees_missing_and_halved_noise(tmp_path: Path) -> None:
    halved = with_noise(tmp_path, Broken(lambda exact, scale: OPENDP.draw(exact, scale / 2)), 960)
    assert halved.shown > halved.claimed


def test_the_command_says_in_words_what_holds() -> None:
    done = CliRunner().invoke(commands.app, ["privacy", "--trials", "100"])
    assert done.exit_code == 0, done.output
    assert "Nothing that was looked for is broken" in done.output
    assert "never that it holds" in done.output


def test_the_command_gives_the_same_as_json() -> None:
    done = CliRunner().invoke(commands.app, ["privacy", "--trials", "100", "--json"])
    facts = json.loads(done.output)
    assert facts["holds"] is True
    assert facts["mu_promised_at_most"] == "1.500"
    assert facts["distance_squared"] == facts["distance_squared_allowed"] == 1521
    assert facts["openings_that_differ"] == 0


def test_a_broken_promise_is_an_error_with_its_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = with_noise(tmp_path, Broken(lambda exact, _scale: [int(value) for value in exact]), 100)
    monkeypatch.setattr("windvane.audit_privacy.run_audit", lambda *_a, **_k: found)
    done = CliRunner().invoke(commands.app, ["privacy"])
    assert isinstance(done.exception, PrivacyClaimBroken)
    assert "one person shows more clearly" in str(done.exception)
    assert "broken" in done.output
    assert facts_of(found)["holds"] is False


def test_noise_too_small_for_its_members_is_refused() -> None:
    done = CliRunner().invoke(commands.app, ["privacy", "--s", "26", "--h", "2"])
    assert "too small" in str(done.exception)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("s", "h", "trials"), [(208, 1, 40_000), (52, 4, 4_000)])
def test_many_looks_show_no_more_than_is_promised(tmp_path: Path, s: int, h: int, trials: int) -> None:
    found = audit(AuditMember(tmp_path, s=s, h=h), trials)
    print(f"\n{found}")
    assert found.faults == ()
    assert found.trials >= trials
