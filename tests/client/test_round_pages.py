# SPDX-License-Identifier: Apache-2.0
"""The pages of one round: nothing with a number before its end, and after it once."""

from __future__ import annotations

import json

import pytest

from member_world import FixedEvidence, LyingCourier, MemberWorld, rows_of
from small_federation import ROUND
from windvane.main import run
from windvane_privacy.errors import CoordinatorUnreachable
from windvane_privacy.ledger_schema import State, StopReason


class Marked:
    """A source of noise whose every number is one that occurs nowhere else."""

    def draw(self, exact: object, share_scale: float) -> list[int]:
        return [137] * len(exact)


class Shown:
    def __init__(self, world: MemberWorld, capsys: pytest.CaptureFixture[str]) -> None:
        self._world, self._capsys = world, capsys

    def page(self, *words: str, code: int = 0) -> str:
        """What a command prints, on one line."""
        self._capsys.readouterr()
        stopped = 0
        try:
            run(["member", words[0], "--state", str(self._world.folder), *words[1:]])
        except SystemExit as end:
            stopped = int(end.code or 0)
        found = self._capsys.readouterr()
        assert stopped == code, found.err
        return " ".join((found.out + found.err).split())

    def printed(self) -> str:
        """What was printed since the last look."""
        return self._capsys.readouterr().out

    def json(self, *words: str) -> dict[str, object]:
        self._capsys.readouterr()
        run(["member", words[0], "--state", str(self._world.folder), *words[1:], "--json"])
        return json.loads(self._capsys.readouterr().out)


@pytest.fixture
def shown(world: MemberWorld, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shown:
    monkeypatch.setenv("COLUMNS", "150")
    return Shown(world, capsys)


def submit(world: MemberWorld, people: int = 12, lose: list[tuple[str, str]] | None = None) -> None:
    world.approve()
    courier = LyingCourier(world.courier, lose=lose or [])
    with world.agent(courier, noise=Marked(), evidence=FixedEvidence(rows_of(people))) as agent:
        if lose:
            with pytest.raises(CoordinatorUnreachable):
                agent.submit(ROUND)
        else:
            agent.submit(ROUND)


def test_before_the_draw_there_is_no_page(shown: Shown) -> None:
    assert "Nothing was drawn" in shown.page("preview", "--drawn", ROUND, code=1)
    assert "Nothing was drawn" in shown.page("preview", "--after", ROUND, code=1)


def test_a_drawn_round_shows_hash_bytes_and_charge_and_no_number(world: MemberWorld, shown: Shown) -> None:
    submit(world, lose=[("leaf", "request")])
    facts = shown.json("preview", "--drawn", ROUND)
    assert facts["state"] == "drawn"
    assert (facts["receipt"], facts["accepted_hash"]) == (False, None)
    page = shown.page("preview", "--drawn", ROUND)
    assert facts["commit_hash"] in page
    assert "nothing yet" in page
    assert "137" not in page.replace(str(facts["commit_hash"]), "")
    assert "has not ended" in shown.page("preview", "--after", ROUND, code=1)


def test_the_hash_of_the_draw_stands_beside_the_hash_of_the_log(world: MemberWorld, shown: Shown) -> None:
    submit(world)
    facts = shown.json("preview", "--drawn", ROUND)
    assert facts["accepted_hash"] == facts["commit_hash"] == world.mine("accepted")[0].fields["hash"]
    assert "(the same)" in shown.page("preview", "--drawn", ROUND)


def test_after_the_end_counts_and_noisy_numbers_are_shown_once(world: MemberWorld, shown: Shown) -> None:
    submit(world)
    with world.state.ledger() as ledger:
        assert ledger.round(ROUND).noisy is not None
    facts = shown.json("preview", "--after", ROUND)
    assert facts["people"] == 12
    assert facts["left_out"] == {"over_their_cap": 0, "malformed_rows": 0}
    (cell,) = [one for one in facts["cells"] if one["people"] is not None]
    assert cell["signal"] == "completion"
    assert cell["people"] == [12, 0]
    assert cell["bounded"] == [144, 60]
    assert all(one["noisy"] == [137, 137] for one in facts["cells"])
    with world.state.ledger() as ledger:
        assert ledger.round(ROUND).noisy is None
        assert ledger.counts(ROUND) is None
        assert ledger.own_directions(ROUND), "the words stay"
    assert "NumbersGone" in shown.page("preview", "--after", ROUND, code=1)


def test_a_cell_of_fewer_than_ten_people_shows_no_count(world: MemberWorld, shown: Shown) -> None:
    submit(world, people=9)
    page = shown.page("preview", "--after", ROUND)
    assert "People with outcomes: too few" in page
    assert "9 and 0" not in page
    assert "comparisons with fewer than 10 people are not shown" in page


def test_the_page_after_the_end_in_words(world: MemberWorld, shown: Shown) -> None:
    submit(world)
    page = shown.page("preview", "--after", ROUND)
    for words in ("12 and 0", "144 and 60", "137 and 137", "counts and noisy numbers are deleted"):
        assert words in page


def test_a_page_that_could_not_be_shown_is_not_lost(
    world: MemberWorld, shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit(world)
    with monkeypatch.context() as patch:
        patch.setattr("windvane.member_round_pages.show_after", lambda *_: (_ for _ in ()).throw(BrokenPipeError()))
        with pytest.raises(SystemExit):
            run(["member", "preview", "--state", str(world.folder), "--after", ROUND])
    assert shown.json("preview", "--after", ROUND)["people"] == 12


def test_a_burned_round_shows_its_numbers_too(world: MemberWorld, shown: Shown) -> None:
    submit(world, lose=[("leaf", "request")])
    with world.agent(evidence=FixedEvidence(rows_of(12))) as agent:
        agent.refuse(ROUND, StopReason.LEGAL)
        assert agent.ledger.round(ROUND).state is State.BURNED
    assert shown.json("preview", "--after", ROUND)["state"] == "burned"


def test_counts_are_deleted_45_days_after_the_end_though_nobody_looked(world: MemberWorld) -> None:
    submit(world)
    world.clock.pass_by(days=45)
    with world.agent() as agent:
        assert agent.ledger.counts(ROUND) is not None
    world.clock.pass_by(days=1)
    with world.agent() as agent:
        assert agent.ledger.counts(ROUND) is None
        assert agent.ledger.round(ROUND).noisy is None


def test_the_rehearsal_reads_and_changes_nothing(world: MemberWorld, shown: Shown) -> None:
    world.approve()
    before = {path: path.read_bytes() for path in world.folder.rglob("*") if path.is_file()}
    facts = shown.json("rehearse")
    assert facts["invented"] is True
    assert facts["same"] is True
    page = shown.page("rehearse", ROUND)
    for words in ("INVENTED", "each time exactly the numbers with noise", "could not open it again"):
        assert words in page
    assert {path: path.read_bytes() for path in world.folder.rglob("*") if path.is_file()} == before


def test_a_state_folder_may_be_named_from_where_one_stands(
    world: MemberWorld, shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit(world)
    monkeypatch.chdir(world.folder.parent)
    for words in (["rehearse"], ["preview", "--drawn", ROUND], ["preview", "--after", ROUND], ["status"]):
        run(["member", words[0], "--state", world.folder.name, *words[1:], "--json"])
        assert json.loads(shown.printed())


def test_a_rehearsal_needs_an_agreement(world: MemberWorld, shown: Shown) -> None:
    assert "No agreement of this round" in shown.page("rehearse", "2031-Q1", code=1)


def test_wrong_options_are_refused_in_words(shown: Shown) -> None:
    assert "give one of them" in shown.page("preview", "--drawn", ROUND, "--after", ROUND, code=2)
