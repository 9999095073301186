# SPDX-License-Identifier: Apache-2.0
"""A preview opens no connection, writes nothing, and shows nothing of a round that is open."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from member_world import LyingCourier, MemberWorld
from preview_homes import NOW, write_home
from small_federation import ROUND
from windvane.main import run
from windvane_client.preview_setup import open_round, setup_of
from windvane_client.settings import LogFolder
from windvane_privacy.errors import CoordinatorUnreachable
from windvane_privacy.ledger_schema import State
from windvane_privacy.manifest import parse_time

WATCHED = """
import os, sys
wrong = []
CHANGES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.chmod", "os.truncate",
           "shutil.copyfile", "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork"}
def watch(event, arguments):
    if event.startswith("socket.") or event in CHANGES:
        wrong.append((event, str(arguments)[:200]))
    elif event == "open":
        path, mode, flags = arguments
        if flags and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) and path != os.devnull:
            wrong.append((event, str(path)))
    elif event == "sqlite3.connect" and arguments[0]:
        wrong.append((event, str(arguments[0])))
sys.addaudithook(watch)
from windvane.main import run
run(["member", "preview", *sys.argv[1:]])
print("wrong:", wrong, file=sys.stderr)
"""


def files_below(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(p): (p.stat().st_size, p.stat().st_mtime_ns) for p in sorted(folder.rglob("*"))}


@pytest.mark.process
@pytest.mark.parametrize("arguments", [[], ["--json"]], ids=["page", "json"])
def test_no_connection_is_opened_and_nothing_is_written(tmp_path: Path, arguments: list[str]) -> None:
    write_home(tmp_path / "home")
    before = files_below(tmp_path)
    environment = {k: v for k, v in os.environ.items() if k != "CLAUDE_CONFIG_DIR"}
    environment |= {"HOME": str(tmp_path / "home"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, *arguments, "--now", NOW.strftime("%Y-%m-%dT%H:%M:%SZ")],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.strip().splitlines()[-1] == "wrong: []"
    assert done.stdout
    assert files_below(tmp_path) == before


# --- with a member's set-up -------------------------------------------------------------------------------------------


def test_an_open_round_hides_outcomes_until_it_is_accepted(world: MemberWorld) -> None:
    world.approve()
    opens = parse_time(world.manifest.submission.opens)
    assert open_round(world.state, opens - timedelta(seconds=1)) is None
    assert open_round(world.state, opens) == ROUND
    with world.agent() as agent:
        assert agent.submit(ROUND).state is State.ACCEPTED
    assert open_round(world.state, opens) is None


def test_a_round_without_a_draw_hides_outcomes_until_it_closes(world: MemberWorld) -> None:
    world.approve()
    closes = parse_time(world.manifest.submission.closes)
    assert open_round(world.state, closes - timedelta(seconds=1)) == ROUND
    assert open_round(world.state, closes) is None


def test_a_drawn_round_hides_outcomes_also_after_it_closed(world: MemberWorld) -> None:
    world.approve()
    courier = LyingCourier(world.courier, lose=[("leaf", "request")])
    with world.agent(courier) as agent:
        with pytest.raises(CoordinatorUnreachable):
            agent.submit(ROUND)
        entry = agent.ledger.round(ROUND)
        assert entry is not None
        assert entry.state is State.DRAWN
    assert open_round(world.state, parse_time(world.manifest.submission.closes) + timedelta(days=1)) == ROUND


def test_a_ledger_that_cannot_be_read_shows_nothing(world: MemberWorld) -> None:
    world.approve()
    with world.agent():  # another process holds the ledger
        assert open_round(world.state, parse_time(world.manifest.submission.closes)) == ROUND
    (world.folder / "ledger" / "ledger.db").unlink()
    assert open_round(world.state, parse_time(world.manifest.submission.closes)) == ROUND


@pytest.fixture
def member_with_logs(world: MemberWorld, tmp_path: Path) -> MemberWorld:
    """The member reads a real home, and everything of this machine is one member of staff."""
    home = write_home(tmp_path / "home")
    settings = world.folder / "member.toml"
    settings.write_text(settings.read_text().replace("/nowhere", str(home)))
    people = world.folder / "people.toml"
    people.write_text(people.read_text() + '[machine]\nstaff_id = "s-1"\n')
    return world


def test_a_member_sees_its_configured_logs_when_no_round_is_open(
    member_with_logs: MemberWorld, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    setup = setup_of(member_with_logs.state, NOW)
    assert setup.folders == (
        LogFolder(str(member_with_logs.folder.parent / "home" / ".claude/projects/-home-user-project")),
    )
    run(["member", "preview", "--state", str(member_with_logs.folder), "--now", "2027-01-15T00:00:00Z", "--json"])
    total = json.loads(capsys.readouterr().out)["total"]
    assert total["episodes"] > 0
    assert total["mode"] == "interactive"


def test_while_a_round_is_open_only_rows_are_shown(
    member_with_logs: MemberWorld, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    member_with_logs.approve()
    opens = parse_time(member_with_logs.manifest.submission.opens)
    monkeypatch.setattr("windvane.preview._clock", lambda: opens)
    arguments = ["member", "preview", "--state", str(member_with_logs.folder), "--now", "2027-01-15T00:00:00Z"]
    run([*arguments, "--json"])
    answer = json.loads(capsys.readouterr().out)
    for observed in (answer["total"], *(sample["observed"] for sample in answer["samples"])):
        assert observed.pop("rows")["read"] > 0
        assert not told(observed)
    run(arguments)
    text = capsys.readouterr().out
    assert "Your own outcomes" not in text
    assert "directions" not in text
    assert "is open, so no outcome is shown" in " ".join(text.replace("│", " ").split())
    with pytest.raises(SystemExit) as stopped:
        run([*arguments, "--explain", "1"])
    assert stopped.value.code == 1


def told(value: object) -> list[object]:
    """Every value inside that is not null."""
    if isinstance(value, dict):
        return [inner for one in value.values() for inner in told(one)]
    return [] if value is None else [value]
