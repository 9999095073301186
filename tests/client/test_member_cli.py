# SPDX-License-Identifier: Apache-2.0
"""The member's commands against a real coordinator on a real socket: what they ask, show, write and refuse."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from rich.console import Console

from coordinator_process import serving_here
from manifests import make_manifest
from member_world import FixedEvidence, MemberWorld, rows_of
from small_federation import ROUND, START
from windvane_client.agent import MemberAgent
from windvane_client.state import MemberState
from windvane_privacy.envelope import envelope_length
from windvane_privacy.ledger_schema import State
from windvane_privacy.submission import envelope_fields

with warnings.catch_warnings():
    # typer 0.20 imports names that click 8.4 deprecates.
    warnings.simplefilter("ignore", DeprecationWarning)
    from windvane import main, member, member_pages


@dataclass
class Commands:
    """Runs `windvane member` in this process at the test's time."""

    world: MemberWorld
    address: str
    capsys: pytest.CaptureFixture[str]

    def run(self, *words: str, state: Path | None = None) -> tuple[int, str, str]:
        """Exit code, stdout, stderr."""
        code = 0
        try:
            main.run(["member", words[0], "--state", str(state or self.world.folder), *words[1:]])
        except SystemExit as end:
            code = int(end.code or 0)
        shown = self.capsys.readouterr()
        return code, shown.out, shown.err

    def json(self, *words: str, state: Path | None = None) -> dict[str, object]:
        code, out, err = self.run(*words, "--json", state=state)
        assert code == 0, err
        return json.loads(out)


@pytest.fixture
def commands(
    world: MemberWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Commands]:
    monkeypatch.setattr(member, "utc_now", lambda: START)
    monkeypatch.setenv("COLUMNS", "120")
    wide = {"highlight": False, "width": 120}
    with serving_here(world.small.state, START) as address:
        settings = world.folder / "member.toml"
        settings.write_text(settings.read_text().replace("https://windvane.example", address))
        monkeypatch.setattr(member, "out", Console(soft_wrap=False, **wide))
        yield Commands(world, address, capsys)


def test_a_member_is_set_up_approves_submits_and_is_done(commands: Commands) -> None:
    facts = commands.json("approve", ROUND, "--yes")
    assert facts["round"] == ROUND
    assert commands.world.mine("commitment") == []  # an approval draws and sends nothing
    done = commands.json("submit", ROUND)
    assert done["state"] == "accepted"
    logged = commands.world.mine("accepted")[0]
    assert done["commit_hash"] == logged.fields["hash"]
    status = commands.json("status")
    assert [(one["round"], one["state"]) for one in status["rounds"]] == [(ROUND, "accepted")]
    code, out, _ = commands.run("submit", ROUND)
    assert code == 0
    assert "is accepted" in out
    code, out, _ = commands.run("approve", ROUND)
    assert code == 0
    assert "nothing is left to approve" in out


def test_submit_asks_for_the_approval_that_is_missing(commands: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    code, _, err = commands.run("submit", ROUND, "--yes")
    assert code == 1
    assert "NeedsApproval" in err
    asked: list[str] = []

    def answer(text: str, **_how: object) -> bool:
        asked.append(text)
        return True

    monkeypatch.setattr("typer.confirm", answer)
    code, out, _ = commands.run("submit", ROUND)
    assert code == 0
    assert asked == [f"Take part in {ROUND}?"]
    assert out.index("Who could learn what") < out.index("commit hash")


def test_whoever_says_no_draws_nothing(commands: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))  # no terminal answers
    code, _, _ = commands.run("approve", ROUND)
    assert code == 130
    with commands.world.agent() as agent:
        assert agent.ledger.approval(ROUND) is None
        assert agent.ledger.round(ROUND) is None


def test_init_pins_the_federation_enrols_and_refuses_a_second_time(commands: Commands, tmp_path: Path) -> None:
    place = tmp_path / "new"
    words = [
        "init", "--name", "Another One", "--band", "50-99", "--coordinator", commands.address, "--logs", str(tmp_path),
        "--second-place", str(tmp_path / "new-second"), "--demo", "--yes", "--staff-id", "s-1",
    ]  # fmt: skip
    answer = commands.json(*words, state=place)
    assert answer["enrolled"] == {"key": answer["key"], "member": 21, "name": "Another One"}
    found = MemberState.open(place)
    assert found.policy.coordinator == commands.world.small.coordinator.federation.coordinator
    assert found.people.machine == "s-1"
    code, _, err = commands.run(*words, state=place)
    assert code == 1
    assert "StateExists" in err
    assert MemberState.open(place).key.key_id == answer["key"]


def test_without_a_folder_named_the_programs_that_are_there_are_read(
    commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    (home / ".claude" / "projects").mkdir(parents=True)
    (home / ".codex" / "sessions").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    words = ["--name", "A Third", "--band", "50-99", "--coordinator", commands.address, "--demo", "--yes"]
    commands.json("init", *words, "--second-place", str(tmp_path / "second"), state=tmp_path / "new")
    folders = MemberState.open(tmp_path / "new").settings.logs
    assert {one.source for one in folders} == {"claude_code", "codex"}
    assert str(home / ".codex" / "sessions") in {one.path for one in folders}


def test_a_demonstration_needs_a_word(commands: Commands, tmp_path: Path) -> None:
    words = ["--name", "X", "--band", "50-99", "--coordinator", commands.address, "--logs", str(tmp_path), "--yes"]
    code, _, err = commands.run("init", *words, state=tmp_path / "new")
    assert code == 1
    assert "DemoManifest" in err
    assert not (tmp_path / "new").exists()


def test_collect_learns_of_new_rounds_before_it_reads(commands: Commands) -> None:
    (commands.world.folder / "manifests" / f"{ROUND}.json").unlink(missing_ok=True)
    commands.json("collect")
    assert commands.world.state.manifest(ROUND) is not None


def test_a_coordinator_that_is_away_does_not_stop_collecting(
    world: MemberWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = world.folder / "member.toml"
    settings.write_text(settings.read_text().replace("https://windvane.example", "http://127.0.0.1:9"))
    main.run(["member", "collect", "--state", str(world.folder), "--json"])
    shown = capsys.readouterr()
    assert json.loads(shown.out)["files"] == 0
    assert "not fetched" in shown.err


@pytest.mark.parametrize("command", [["status"], ["collect"], ["approve", "X"], ["submit", "X"]])
def test_without_a_set_up_each_command_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main.run(["member", *command, "--state", str(tmp_path / "none")])
    assert end.value.code == 1
    assert "No member is set up" in capsys.readouterr().err


# --- the pages ----------------------------------------------------------------------------------------------------


def rendered(show: object, *facts: object) -> str:
    console = Console(width=140, highlight=False, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    with console.file:
        show(console, *facts)
        return console.export_text()


def approval_page(agent: MemberAgent) -> str:
    agreed = agent.agreement(ROUND)
    facts = member_pages.approval_facts(agreed, agent.state.policy, agent.ledger, None)
    return rendered(member_pages.show_approval, facts)


def test_the_page_before_the_approval_names_every_field_that_leaves(world: MemberWorld) -> None:
    with world.agent() as agent:
        page = approval_page(agent)
        assert agent.ledger.round(ROUND) is None
    for field in envelope_fields(world.manifest):
        assert field.name in page
        assert field.tells in page
    for word in (world.manifest.sha256, f"{envelope_length(world.manifest):,}", "DEMONSTRATION", "SYNTHETIC", "rho"):
        assert word in page


def test_the_page_before_the_approval_depends_on_no_data(world: MemberWorld) -> None:
    pages = []
    for people in (0, 40):
        with world.agent(evidence=FixedEvidence(rows_of(people))) as agent:
            pages.append(approval_page(agent))
    assert pages[0] == pages[1]


def test_the_page_after_the_draw_shows_no_count_and_no_noisy_number(world: MemberWorld) -> None:
    class Marked:
        """A source whose every number is one that occurs nowhere else."""

        def draw(self, exact: object, share_scale: float) -> list[int]:
            return [137] * len(exact)

    world.approve()
    with world.agent(noise=Marked()) as agent:
        entry = agent.submit(ROUND)
    assert entry.noisy is not None
    assert set(entry.noisy) == {137}
    facts = member_pages.drawn_facts(entry, world.manifest)
    assert entry.state is State.ACCEPTED
    page = rendered(member_pages.show_drawn, facts)
    hashless = page.replace(entry.commit_hash, "")
    assert "137" not in hashless
    assert set(facts) == {
        "round", "state", "reason", "commit_hash", "commitment_bytes", "envelope_bytes", "envelope_fields",
        "rho_charged", "drawn_day",
    }  # fmt: skip
    assert entry.commit_hash in page


def test_fields_that_changed_since_the_last_approval_are_shown() -> None:
    before, after = make_manifest(C=20), make_manifest(C=10, round="2026-Q4")
    changed = {row["field"] for row in member_pages.changed_fields(before, after)}
    assert changed == {"round", "bounds"}
    assert member_pages.changed_fields(None, after) == []
