# SPDX-License-Identifier: Apache-2.0
"""A marker in every prompt, answer, argument, path, address and key gets into no file, no log and no output of ours.

Rules kept here:
* all fixtures and all samples are read, by `collect` and by `preview`, as they are and where every word is unknown;
* quietly planted logs give exactly what the clean ones give: the marker was really passed by, not refused;
* files are looked at as bytes, also while a run has them open and those that only an open file leads to.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from collecting_member import adopt, make_state
from manifests import make_manifest
from planted_logs import ALL, LOUD, MARKER, PATH_MARKER, QUIET, Planting, plant_folder, planted_path
from windvane.main import run
from windvane_client.catalogue_builtin import builtin_catalogue
from windvane_client.collect import collect
from windvane_client.preview import plan_paths, read
from windvane_client.preview_setup import no_setup
from windvane_client.preview_sources import recognise, source_named
from windvane_client.readers import READERS
from windvane_client.settings import LogFolder
from windvane_client.state import MemberState
from windvane_client.store import EventStore

FIXTURES = Path(__file__).parent / "fixtures"
NOW, LONG_AFTER = datetime(2027, 6, 1, tzinfo=UTC), ("--now", "2027-06-01T00:00:00Z")
OURS = {"people.toml", "member.toml"}
"""Files of the state that a person writes: the identities and the folders stand in them."""
PEOPLE = f"""default = "email-local-part"
canonical = "staff-id"
[machine]
staff_id = "s-{MARKER}"
[[person]]
staff_id = "t-{MARKER}"
ids = ["litellm:user:u-1{MARKER}", "open_webui:u1{MARKER}", "mapping:u1{MARKER}"]
"""
FORMS = [m.lower() for m in (MARKER.encode(), MARKER.encode().hex().encode(), MARKER.encode("utf-16-le"))]


@pytest.fixture(autouse=True)
def an_empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)


@pytest.fixture(params=["fixtures", "samples"])
def clean(request: pytest.FixtureRequest) -> Path:
    """A folder with logs of every source."""
    if request.param == "fixtures":
        return FIXTURES
    shared: Path = request.getfixturevalue("shared")
    return shared / "samples"


def shows(raw: bytes) -> bool:
    """Whether the marker is in there, in any letter case."""
    low = raw.lower()
    return any(form in low for form in FORMS)


def logs_in(clean: Path, planted: Path) -> tuple[LogFolder, ...]:
    """One entry a file, each with the source that the clean file is: a planted one may say nothing any more."""
    found = []
    for path in sorted(clean.rglob("*")):
        expected = path.with_name(f"{path.name}.expected.json")
        if not path.is_file() or path.suffix in (".md", ".toml") or path.name.endswith(".expected.json"):
            continue
        source = json.loads(expected.read_text("utf-8"))["source"] if expected.exists() else recognise(path)[0]
        if source in READERS:
            found.append(LogFolder(str(planted / planted_path(path.relative_to(clean))), source))
    return tuple(found)


def open_files(logs: Path) -> Iterator[Path]:
    """Regular files that this process has open, deleted ones too, but for the logs (Linux only)."""
    for link in Path("/proc/self/fd").glob("*"):
        try:
            if link.is_file() and not str(link.readlink()).startswith(str(logs)):
                yield link
        except OSError:
            continue


def watched(state: Path, logs: Path, seen: list[int]) -> Callable[[int, int], None]:
    """A `progress` that looks into every file of the state and every open one."""

    def look(_done: int, _total: int) -> None:
        seen.append(0)
        for path in [*(one for one in state.rglob("*") if one.is_file() and one.name not in OURS), *open_files(logs)]:
            raw = path.read_bytes()
            seen[-1] += path.name.startswith("collection.db")
            assert not shows(raw), path.name

    return look


def member(folder: Path, clean: Path, planted: Path) -> MemberState:
    state = make_state(folder, logs_in(clean, planted), PEOPLE)
    families = builtin_catalogue().families
    adopt(state, make_manifest(families=families, order=[one.id for one in families][:5], cap=4))
    return state


def printed(*arguments: object) -> None:
    """Run a command; a refusal prints its sentences and ends it."""
    with suppress(SystemExit):
        run(["member", *map(str, arguments)])


@pytest.mark.parametrize("planting", [QUIET, LOUD, ALL], ids=["quiet", "loud", "all"])
def test_no_file_log_or_output_shows_what_was_planted(
    clean: Path,
    planting: Planting,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    logs = tmp_path / PATH_MARKER
    assert plant_folder(clean, logs, planting) > 1000
    state = member(tmp_path, clean, logs)
    seen: list[int] = []
    report = collect(state, NOW, progress=watched(state.folder, logs, seen))
    assert report.files == len(state.settings.logs)
    assert report.unreadable == 0
    assert len(seen) > 10
    assert min(seen) >= 1
    for path in tmp_path.rglob("*"):
        if path.is_file() and path.name not in OURS and not path.is_relative_to(logs):
            assert not shows(path.read_bytes()), path.name
    setup = no_setup()
    with EventStore.temporary() as store:
        read(plan_paths([logs], setup, apart=False), store, setup, now=NOW, progress=watched(state.folder, logs, seen))

    (Path.home() / ".claude").mkdir(parents=True)
    shutil.copytree(logs, Path.home() / ".claude" / "projects")
    for arguments in ([], ["--json"], ["--explain", "1"], ["--explain", "1", "--json"]):
        printed("preview", logs, *LONG_AFTER, *arguments)
        printed("preview", "--state", state.folder, *LONG_AFTER, *arguments)
        printed("preview", *LONG_AFTER, *arguments)
    for source in sorted({one.source for one in state.settings.logs}):
        paths = [one.path for one in state.settings.logs if one.source == source]
        printed("preview", *paths, "--source", source, *LONG_AFTER, "--json")
    for arguments in ([], ["--json"]):
        printed("collect", "--state", state.folder, "--offline", *arguments)
    out, err = capfd.readouterr()
    assert len(out) > 10_000
    for text in (out, err, caplog.text):
        assert not shows(text.encode())
        assert PATH_MARKER not in text
    # The notice names folders as member.toml has them, and nothing else.
    printed("notice", "--state", state.folder)
    notice = capfd.readouterr().out
    for path in sorted((one.path for one in state.settings.logs), key=len, reverse=True):
        notice = notice.replace(path, "")
    assert not shows(notice.encode())
    assert PATH_MARKER not in notice


def test_quietly_planted_logs_give_what_the_clean_ones_give(
    clean: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def samples(folder: Path) -> dict[tuple[str, ...], Any]:
        printed("preview", folder, *LONG_AFTER, "--json")
        return {(one["source"], *one["files"]): one for one in json.loads(capsys.readouterr().out)["samples"]}

    plant_folder(clean, tmp_path / "planted", QUIET)
    before = {key: one for key, one in samples(clean).items() if not key[1].endswith((".expected.json", ".md"))}
    after = samples(tmp_path / "planted")
    assert after == before
    assert sum(one["observed"] is not None for one in after.values()) >= 9


WRONG = {
    "rules.toml": f'[{MARKER}]\n"{MARKER}" = 1\n',
    "events.toml": f'[[event]]\nkind = "{MARKER}"\n',
    "aliases.toml": f'"{MARKER}" = "{MARKER}"\n',
    "people.toml": f'[[person]]\nstaff_id = "{MARKER}"\nids = ["{MARKER}"]\n',
    "member.toml": f'name = "{MARKER}"\n{MARKER} = 1\n',
}
"""Of policy.toml, which names no person and no log, the wrong field is told."""


@pytest.mark.parametrize("name", WRONG)
def test_no_message_about_a_wrong_file_repeats_it(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    state = make_state(tmp_path, (LogFolder(str(FIXTURES / "codex_SYNTHETIC"), "codex"),))
    (state.folder / name).write_text(WRONG[name])
    for command in (["collect", "--offline"], ["preview"], ["notice"]):
        printed(*command, "--state", state.folder)
    out, err = capfd.readouterr()
    assert "what to do" in err.lower() or len(err) > 20
    assert not shows(f"{out}{err}".encode())


def test_no_message_about_a_wrong_mapping_repeats_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    logs = tmp_path / PATH_MARKER
    shutil.copytree(FIXTURES / "mapping_SYNTHETIC", logs)
    before = (logs / "mapping.toml").read_text()
    for wrong in (f'{MARKER} = "{MARKER}"\n' + before, before + f"[{MARKER}]\n", before.replace("gateway", MARKER)):
        (logs / "mapping.toml").write_text(wrong)
        printed("preview", logs, *LONG_AFTER)
        printed("preview", logs, "--source", "mapping", *LONG_AFTER)
        state = tmp_path / "member"
        shutil.rmtree(state, ignore_errors=True)
        make_state(tmp_path, (LogFolder(str(logs), "mapping"),))
        printed("collect", "--state", state, "--offline")
    out, err = capfd.readouterr()
    assert err
    assert not shows(f"{out}{err}".encode())
    assert PATH_MARKER not in out + err


def test_an_unknown_source_is_not_repeated(capfd: pytest.CaptureFixture[str]) -> None:
    printed("preview", FIXTURES, "--source", MARKER)
    assert source_named("codex") == ("codex", None)
    out, err = capfd.readouterr()
    assert err
    assert not shows(f"{out}{err}".encode())
