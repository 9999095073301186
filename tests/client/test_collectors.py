# SPDX-License-Identifier: Apache-2.0
"""Laptops feed one organisation's agent: the same logs give the same outcomes, whoever read them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import shutil
import stat
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from collecting_member import make_state
from windvane.main import run
from windvane_client.catalogue_builtin import builtin_catalogue
from windvane_client.collect import collect
from windvane_client.collect_files import CollectReport
from windvane_client.collector import CollectorState, collect_out
from windvane_client.collector_file import make_collector_file
from windvane_client.evidence import StoredEvidence, micros
from windvane_client.outcomes_table import build_outcomes
from windvane_client.people import parse_people
from windvane_client.rules import load_rules
from windvane_client.settings import LogFolder, MemberSettings, settings_toml
from windvane_client.state import MemberState
from windvane_client.store import EventStore
from windvane_privacy.catalogue import Signal
from windvane_privacy.errors import ConfigurationError, KeyFileTooOpen, StateExists
from windvane_privacy.outcomes import PersonOutcome

FIXTURES = Path(__file__).parent / "fixtures"
NOW = datetime(2026, 4, 2, tzinfo=UTC)
WINDOW = (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 4, 1, tzinfo=UTC))
PEOPLE = """
[machine]
staff_id = "Ana.Example"
[[person]]
staff_id = "bo"
ids = ["litellm:user:u-1", "open_webui:u1", "canonical:p-1", "mapping:u1", "langfuse:u1", "email:neutral@example.org"]
[[person]]
staff_id = "cy"
"""
LOGS = {
    "claude_code": ("claude_code_SYNTHETIC.jsonl",),
    "codex": ("codex_SYNTHETIC",),
    "cline": ("cline_SYNTHETIC",),
    "litellm": ("litellm_SYNTHETIC.csv",),
    "open_webui": ("open_webui_SYNTHETIC.json", "open_webui_chats_SYNTHETIC.json"),
    "otlp": ("otlp_gemini_cli_SYNTHETIC.json", "otlp_codex_SYNTHETIC.jsonl"),
    "canonical": ("canonical_SYNTHETIC.jsonl",),
    "mapping": ("mapping_SYNTHETIC",),
    "langfuse": ("langfuse_SYNTHETIC.json",),
    "gemini_cli": ("gemini_cli_SYNTHETIC",),
}


@dataclass
class World:
    """An agent, logs of every source, and a folder that collectors write to."""

    folder: Path
    state: MemberState

    @property
    def shared(self) -> Path:
        return self.folder / "shared"

    def logs(self, place: str, sources: set[str] | None = None) -> tuple[LogFolder, ...]:
        """A copy of the logs at another place, as a laptop has it."""
        made = []
        for source, names in LOGS.items():
            if sources is not None and source not in sources:
                continue
            target = self.folder / place / source
            if not target.exists():
                target.mkdir(parents=True)
                for name in names:
                    copy = shutil.copytree if (FIXTURES / name).is_dir() else shutil.copy
                    copy(FIXTURES / name, target / name)
            made.append(LogFolder(str(target), source))
        return tuple(made)

    def agent(self, *logs: LogFolder) -> list[PersonOutcome]:
        """Outcomes of the agent that reads these folders, from an empty store."""
        self.state.collection.unlink(missing_ok=True)
        (self.state.folder / "member.toml").write_text(settings_toml(replace_logs(self.state, logs)))
        self.report = collect(self.state, NOW)
        return self.outcomes()

    def outcomes(self) -> list[PersonOutcome]:
        with EventStore.open(self.state.collection) as store:
            return list(build_outcomes(
                store, window=(micros(WINDOW[0]), micros(WINDOW[1])), catalogue=builtin_catalogue(),
                rules=load_rules(self.state.folder), ids_key=self.state.k_org, now=micros(NOW), pooled=True,
            ))  # fmt: skip

    def collector(self, name: str, logs: tuple[LogFolder, ...], *, staff_id: str | None = None) -> CollectorState:
        raw = make_collector_file(self.state, NOW, staff_id=staff_id)
        return CollectorState.create(self.folder / "states" / name, raw, logs)

    def out(self, collector: CollectorState) -> CollectReport:
        self.shared.mkdir(exist_ok=True)
        return collect_out(collector, self.shared, NOW)

    @property
    def shared_folder(self) -> LogFolder:
        return LogFolder(str(self.shared), "collected")

    def rows(self) -> list[dict[str, object]]:
        return [json.loads(line) for path in sorted(self.shared.iterdir()) for line in path.read_bytes().splitlines()]


def replace_logs(state: MemberState, logs: tuple[LogFolder, ...], **changes: int) -> MemberSettings:
    return msgspec.structs.replace(state.settings, logs=logs, **changes)


@pytest.fixture
def world(tmp_path: Path) -> World:
    state = make_state(tmp_path, (LogFolder("/nowhere"),), PEOPLE)
    # The shipped list of models, which knows the fixtures' names.
    shutil.rmtree(state.folder / "manifests")
    (state.folder / "rules.toml").write_text(
        '[modes]\ninteractive_keys = ["litellm", "desk", "gemini_cli"]\n'
        '[scores.user-feedback]\n"1" = "accepted"\n"0" = "rejected"\n'
    )
    return World(tmp_path, state)


def test_two_collectors_the_agent_or_half_and_half_give_the_same_outcomes(world: World) -> None:
    alone = world.agent(*world.logs("server"))
    assert {row.recorder.partition("/")[0] for row in alone} >= set(LOGS) - {"mapping"}
    assert len({row.person for row in alone}) == 2

    for name in ("laptop-1", "laptop-2"):
        world.out(world.collector(f"{name}-state", world.logs(name)))
    assert world.agent(world.shared_folder) == alone
    assert world.agent(world.shared_folder, *world.logs("server")) == alone

    shutil.rmtree(world.shared)
    half = {"claude_code", "litellm", "open_webui", "canonical"}
    world.out(world.collector("laptop-3-state", world.logs("laptop-3", half)))
    assert world.agent(world.shared_folder, *world.logs("server", set(LOGS) - half)) == alone


def test_one_conversation_half_on_a_laptop_and_half_on_the_server_is_one(world: World) -> None:
    alone = world.agent(*world.logs("server", {"claude_code"}))
    lines = (FIXTURES / "claude_code_SYNTHETIC.jsonl").read_bytes().splitlines(keepends=True)
    folders = []
    for place, part in (("first", lines[: len(lines) // 2]), ("second", lines[len(lines) // 2 :])):
        folder = world.folder / place / "claude_code"
        folder.mkdir(parents=True)
        (folder / "claude_code_SYNTHETIC.jsonl").write_bytes(b"".join(part))
        folders.append(LogFolder(str(folder), "claude_code"))
    world.out(world.collector("laptop", (folders[0],)))
    assert world.agent(world.shared_folder, folders[1]) == alone


def test_the_shared_folder_holds_no_name_no_raw_id_and_no_text(world: World) -> None:
    world.out(world.collector("laptop", world.logs("laptop")))
    raw = b"".join(path.read_bytes() for path in world.shared.iterdir()).lower()
    names = b"\n".join(path.name.encode() for path in world.shared.iterdir()).lower()
    ids = ("ana.example", "u-1", "neutral@example.org", "00000000-0000-4000", "019b8d62", "key-1", "team-1", "a1")
    texts = ("canary", "neutral", "synthetic", str(world.folder).lower(), "laptop")
    for text in (*(one for one in ids if len(one) > 2), *texts):
        encoded = base64.b64encode(text.encode()).rstrip(b"=").lower()
        assert text.encode() not in raw, text
        assert text.encode() not in names
        assert len(encoded) < 9 or encoded[:-1] not in raw
    words = {value for row in world.rows() for value in row.values() if isinstance(value, str)}
    long = {word for word in words if len(word) > 32}
    assert not long, "an id is base64 of 16 bytes, anything else is a short word"


def test_a_second_run_adds_no_file_and_new_rows_give_one(world: World) -> None:
    collector = world.collector("laptop", world.logs("laptop", {"claude_code"}))
    assert world.out(collector).events > 0
    assert len(list(world.shared.iterdir())) == 1
    assert world.out(collector).events == 0
    assert len(list(world.shared.iterdir())) == 1
    path = world.folder / "laptop" / "claude_code" / "claude_code_SYNTHETIC.jsonl"
    with path.open("ab") as file:
        file.write(b'{"type": "user"}\n')
    assert world.out(collector).rows.rejected == 1
    assert len(list(world.shared.iterdir())) == 2


def test_a_crash_before_the_run_is_remembered_writes_rows_twice_which_count_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = world.agent(*world.logs("server"))
    collector = world.collector("laptop", world.logs("laptop"))
    before = collector.folder / "collection" / "collection.db"
    world.out(collector)
    before.unlink()
    world.out(collector)
    assert len(list(world.shared.iterdir())) == 2
    assert world.agent(world.shared_folder) == alone


def test_a_folder_that_cannot_be_written_remembers_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    collector = world.collector("laptop", world.logs("laptop", {"claude_code"}))
    with pytest.raises(ConfigurationError, match="not there"):
        collect_out(collector, world.folder / "unmounted", NOW)
    world.shared.mkdir()

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(ConfigurationError, match="cannot be written"):
            collect_out(collector, world.shared, NOW)
    assert list(world.shared.iterdir()) == []
    assert world.out(collector).events > 0


def test_ids_take_the_declared_steps(world: World) -> None:
    k_org = world.state.k_org
    k_collect = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"collect").derive(k_org)
    first = hmac.new(k_collect, b"person\0ana.example", hashlib.sha256).digest()[:16]
    second = hmac.new(k_org, b"person\0" + first, hashlib.sha256).digest()[:16]
    world.out(world.collector("laptop", world.logs("laptop", {"claude_code"})))
    assert {row["person"] for row in world.rows() if "person" in row} == {base64.b64encode(first).decode()}
    assert {row.person for row in world.agent(world.shared_folder)} == {second}


def test_the_next_key_changes_no_pseudonym_and_shuts_out_the_old_one(world: World) -> None:
    alone = world.agent(*world.logs("server"))
    world.out(world.collector("old", world.logs("old")))
    (world.state.folder / "member.toml").write_text(
        settings_toml(replace_logs(world.state, (world.shared_folder,), collector_key=2))
    )
    world.state.collection.unlink()
    collect(world.state, NOW)
    assert world.outcomes() == []
    world.out(world.collector("new", world.logs("new")))
    after = collect(world.state, NOW)
    assert after.rows.read > after.rows.rejected == 0
    assert world.outcomes() == alone


def test_rows_under_an_old_key_are_counted_by_their_reason(world: World) -> None:
    world.out(world.collector("old", world.logs("old", {"claude_code"})))
    (world.state.folder / "member.toml").write_text(
        settings_toml(replace_logs(world.state, (world.shared_folder,), collector_key=2))
    )
    report = collect(world.state, NOW)
    assert report.rows.reasons == {"old_key": report.rows.read - 1}


def test_who_opts_out_at_the_agent_leaves_no_trace_of_collected_rows(world: World) -> None:
    world.out(world.collector("laptop", world.logs("laptop")))
    (world.state.folder / "people.toml").write_text(PEOPLE + '[exclude]\nstaff_ids = ["bo", "ana.example"]\n')
    assert world.agent(world.shared_folder) == []
    with EventStore.open(world.state.collection) as store:
        assert store.people() == []
        assert store.counts().get("gap", 0) == sum(store.counts().values())


def test_nobody_can_invent_a_person_in_the_shared_folder(world: World) -> None:
    world.out(world.collector("laptop", world.logs("laptop", {"claude_code"})))
    (path,) = world.shared.iterdir()
    known = next(row["person"] for row in world.rows() if "person" in row)
    invented = base64.b64encode(bytes(16)).decode()
    path.write_text(path.read_text().replace(str(known), invented))
    assert world.agent(world.shared_folder) == []
    with EventStore.open(world.state.collection) as store:
        assert store.people() == []
        assert set(store.counts()) == {"gap"}


def test_a_person_of_the_collector_only_is_unknown_to_the_agent(world: World) -> None:
    with pytest.raises(ConfigurationError, match="does not name"):
        make_collector_file(world.state, NOW, staff_id="nobody")
    (world.state.folder / "people.toml").write_text(PEOPLE + '[exclude]\nstaff_ids = ["cy"]\n')
    with pytest.raises(ConfigurationError, match="opted out"):
        make_collector_file(world.state, NOW, staff_id="CY")


def test_a_collector_file_for_one_person_names_nobody_else(world: World) -> None:
    raw = make_collector_file(world.state, NOW, staff_id="cy")
    assert b"ana.example" not in raw.lower()
    assert b"neutral@example.org" not in raw
    assert world.state.k_org.hex().encode() not in raw
    assert parse_people(json.loads(raw)["people"]).machine == "cy"
    world.out(world.collector("laptop", world.logs("laptop", {"claude_code"}), staff_id="cy"))
    assert {row.person for row in world.agent(world.shared_folder)} == {world.state.ids.staff("cy")}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"mode": "a text that slipped in"}, "bad_value"),
        ({"recorder": "A secret name"}, "bad_value"),
        ({"source": "windows"}, "bad_value"),
        ({"reader": "a b c"}, "bad_value"),
        ({"key": "c2hvcnQ="}, "bad_value"),
        ({"conv": "not base64!"}, "wrong_type"),
        ({"ts": 1}, "bad_time"),
        ({"ts": None}, "missing_field"),
        ({"seq": -1}, "bad_value"),
        ({"kind_hint": "marketing"}, "bad_value"),
        ({"client": "netscape"}, "bad_value"),
        ({"origin": "ghost"}, "bad_value"),
        ({"mode_evidence": "words with spaces"}, "bad_value"),
    ],
)
def test_a_row_with_anything_but_hashes_and_listed_words_is_rejected(
    world: World, change: dict[str, object], reason: str
) -> None:
    world.out(world.collector("laptop", world.logs("laptop", {"claude_code"})))
    (path,) = world.shared.iterdir()
    rows = world.rows()
    spoilt = next(number for number, row in enumerate(rows) if row["k"] == "prompt")
    rows[spoilt] = {key: value for key, value in (rows[spoilt] | change).items() if value is not None}
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    world.agent(world.shared_folder)
    assert world.report.rows.reasons == {reason: 1}
    assert world.report.rows.read == len(rows)


def test_an_unknown_kind_and_an_unlisted_model_do_not_stop_the_file(world: World) -> None:
    world.out(world.collector("laptop", world.logs("laptop", {"claude_code"})))
    (path,) = world.shared.iterdir()
    rows = world.rows()
    for row in rows:
        if row["k"] == "call":
            row["served"] = "model-of-next-year"
    rows.append(dict(rows[-1], k="dream"))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    rows_of_agent = world.agent(world.shared_folder)
    assert {row.signal for row in rows_of_agent} <= {Signal.INFRA_RECOVERY, Signal.TOOL_RELIABILITY}
    assert (world.report.rows.unknown, world.report.rows.rejected) == (1, 0)
    assert b"model-of-next-year" not in world.state.collection.read_bytes()


def test_a_file_without_its_first_line_is_not_believed(world: World) -> None:
    world.out(world.collector("laptop", world.logs("laptop", {"claude_code"})))
    (path,) = world.shared.iterdir()
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[1:]))
    assert world.agent(world.shared_folder) == []
    assert world.report.rows.rejected == world.report.rows.read


def test_collected_files_go_when_their_window_is_over(world: World) -> None:
    world.out(world.collector("laptop", world.logs("laptop", {"claude_code"})))
    (path,) = world.shared.iterdir()
    world.agent(world.shared_folder)
    other = world.shared / "other.txt"
    other.write_text("not ours")
    late = micros(datetime(2026, 3, 1, tzinfo=UTC)) // 1_000_000
    os.utime(path, (late, late))
    collect(world.state, NOW)
    StoredEvidence(world.state).forget("2025-10-01T00:00:00Z", "2026-01-01T00:00:00Z")
    assert path.exists(), "written after that window"
    StoredEvidence(world.state).forget("2026-01-01T00:00:00Z", "2026-04-01T00:00:00Z")
    assert list(world.shared.iterdir()) == [other]


def test_unread_rows_are_not_deleted_with_the_window(world: World) -> None:
    collector = world.collector("laptop", world.logs("laptop", {"claude_code"}))
    world.out(collector)
    world.agent(world.shared_folder)
    shutil.copy(next(world.shared.iterdir()), world.shared / "windvane-unread.jsonl")
    for path in world.shared.iterdir():
        os.utime(path, (1_770_000_000, 1_770_000_000))
    collect_gone = StoredEvidence(world.state)
    collect_gone.forget("2026-01-01T00:00:00Z", "2026-04-01T00:00:00Z")
    assert [path.name for path in world.shared.iterdir()] == ["windvane-unread.jsonl"]


# --- the commands -----------------------------------------------------------------------------------------------------


def test_the_commands_go_from_a_key_to_rows(
    world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file, laptop = world.folder / "ana.json", world.folder / "laptop-state"
    state = str(world.state.folder)
    run(["member", "collector-key", "--staff-id", "ana.example", "-o", str(file), "--state", state])
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    (folder,) = world.logs("laptop", {"claude_code"})
    run(["member", "init", "--collector", str(file), "--state", str(laptop), "--logs", folder.path])
    world.shared.mkdir()
    capsys.readouterr()
    run(["member", "collect", "--state", str(laptop), "--out", str(world.shared), "--json"])
    shown = capsys.readouterr()
    assert json.loads(shown.out)["events"] == len(world.rows()) - 1
    assert "ana" not in (shown.out + shown.err).casefold()
    run(["member", "preview", str(world.shared), "--now", "2026-04-02T00:00:00Z", "--json"])
    (sample,) = json.loads(capsys.readouterr().out)["samples"]
    assert sample["source"] == "collected"
    assert sample["observed"]["episodes"] > 0


def test_wrong_uses_of_the_commands_are_refused_in_words(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    file, laptop, state = world.folder / "a.json", world.folder / "laptop-state", str(world.state.folder)
    (folder,) = world.logs("laptop", {"claude_code"})
    run(["member", "collector-key", "--people", "-o", str(file), "--state", state])
    run(["member", "init", "--collector", str(file), "--state", str(laptop), "--logs", folder.path])
    for arguments, words in (
        (["collector-key", "--people", "-o", str(file), "--state", state], "exists"),
        (["collect", "--state", str(laptop)], "--out"),
        (["collect", "--state", state, "--offline", "--out", str(world.folder)], "agent's folder"),
        (["init", "--collector", str(file), "--state", state, "--logs", folder.path], "other --state"),
        (["init", "--collector", str(world.folder / "none"), "--state", str(laptop)], "missing"),
        (["init", "--name", "Us", "--state", str(world.folder / "n")], "--band"),
        (["collector-key", "--state", state], "--staff-id"),
    ):
        capsys.readouterr()
        with pytest.raises(SystemExit) as stopped:
            run(["member", *arguments])
        assert stopped.value.code in (1, 2)
        assert words in " ".join(capsys.readouterr().err.split())


def test_a_collector_whose_secret_others_can_read_stops(world: World) -> None:
    collector = world.collector("laptop", world.logs("laptop", {"claude_code"}))
    (collector.folder / "collector.json").chmod(0o644)
    with pytest.raises(KeyFileTooOpen):
        world.out(collector)


def test_a_new_collector_file_replaces_the_old_one_and_keeps_what_was_read(world: World) -> None:
    collector = world.collector("laptop", world.logs("laptop", {"claude_code"}))
    world.out(collector)
    renewed = world.collector("laptop", world.logs("laptop", {"claude_code"}))
    assert world.out(renewed).events == 0
    (world.folder / "states" / "taken").mkdir()
    (world.folder / "states" / "taken" / "file").write_text("x")
    with pytest.raises(StateExists):
        world.collector("taken", world.logs("laptop", {"claude_code"}))


# --- where a file lies says nothing ---------------------------------------------------------------------------------


@pytest.mark.parametrize("source", sorted(LOGS))
def test_a_log_that_was_moved_renamed_or_rotated_counts_once(world: World, source: str) -> None:
    (folder,) = world.logs("server", {source})
    alone = world.agent(folder)
    moved = world.folder / "elsewhere" / source
    shutil.copytree(folder.path, moved)
    for path in [one for one in moved.rglob("*") if one.is_file() and one.suffix in (".jsonl", ".csv")]:
        if source not in ("cline", "codex", "gemini_cli", "mapping"):  # these say what they are by their name
            path.rename(path.with_name("1-" + path.name))
    assert world.agent(folder, LogFolder(str(moved), source)) == alone
    shutil.rmtree(folder.path)
    collect(world.state, NOW)
    assert world.outcomes() == alone


def test_rows_without_an_id_of_their_own_count_once_wherever_they_lie(world: World) -> None:
    (folder,) = world.logs("server", {"claude_code"})
    path = Path(folder.path) / "claude_code_SYNTHETIC.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        for name in ("uuid", "parentUuid", "logicalParentUuid"):
            row.pop(name, None)
        row.get("message", {}).pop("id", None)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    alone = world.agent(folder)
    assert alone
    copy = world.folder / "copy"
    shutil.copytree(folder.path, copy)
    assert world.agent(folder, LogFolder(str(copy), "claude_code")) == alone
