# SPDX-License-Identifier: Apache-2.0
"""Every command that a page tells a reader to type exists, with the options it is given; the README's run here."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path

import click
import pytest

from windvane.main import AUDIENCES, Audiences, main, run

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```(?:sh|text)\n(.*?)^```", re.M | re.S)
NAMED = re.compile(r"`(windvane (?:member|guardian|coordinator|audit|demo)[^`|…]*)`")


def typed() -> list[tuple[str, str]]:
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        lines = [line.split("#")[0].strip() for block in BLOCK.findall(text) for line in block.splitlines()]
        named = [] if page.name == "commands.md" else NAMED.findall(text)
        found += [(page.name, line) for line in (*lines, *named) if re.match(r"(\S*/)?windvane ", line)]
    return found


@pytest.mark.parametrize(("page", "line"), typed())
def test_command_exists_with_its_options(page: str, line: str) -> None:
    words = shlex.split(line)[1:]
    command: click.Command | None = Audiences().get_command(click.Context(main), words.pop(0))
    assert command is not None, page
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        command = command.get_command(click.Context(command), words.pop(0))
        assert command is not None, page
    options = {"--help"} | {name for parameter in command.params for name in parameter.opts}
    assert {word.split("=")[0] for word in words if word.startswith("--")} <= options, page


def jobs() -> dict[str, object]:
    spec = importlib.util.spec_from_file_location("dev", ROOT / "dev.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.JOBS


def test_readme_gives_two_commands_and_both_are_jobs() -> None:
    blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S)
    commands = [block.strip() for block in blocks if "dev.py" in block]
    assert commands == ["python3 dev.py demo", "python3 dev.py test"]
    assert {command.split()[2] for command in commands} <= set(jobs())


def test_ci_runs_the_readmes_test_command() -> None:
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert "python3 dev.py test" in lines
    assert lines[-1] == "python3 dev.py test"


def test_readmes_preview_runs_on_an_empty_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    run(["member", "preview"])
    assert "Next" in capsys.readouterr().out


@pytest.mark.parametrize("audience", AUDIENCES)
def test_every_audience_has_a_page(audience: str) -> None:
    pages = {"member": "members", "guardian": "guardians", "coordinator": "coordinators", "audit": "reviewers"}
    if audience in pages:
        assert f"windvane {audience}" in (ROOT / "docs" / f"{pages[audience]}.md").read_text(encoding="utf-8")
    assert f"windvane {audience}" in (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
