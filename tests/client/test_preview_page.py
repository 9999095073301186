# SPDX-License-Identifier: Apache-2.0
"""The page of `windvane member preview`: what it shows, and the sentence it ends with."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from numpy.typing import NDArray
from rich.console import Console

import windvane.preview_page as page
from manifests import FAMILY_IDS
from outcome_rows import row
from preview_homes import NOW, TEXT_OF_THE_WRITER, write_home
from reader_support import Log as Transcript
from reader_support import lines, tool
from windvane.main import run
from windvane_client.evidence import micros
from windvane_client.ids import K_ORG_BYTES
from windvane_client.people import People
from windvane_client.preview import plan_source, read, summed
from windvane_client.preview_own import LEAST_TRIALS, Own, leans, next_step, outcome_cells, own_work
from windvane_client.preview_setup import Setup
from windvane_client.rules import Rules
from windvane_client.store import EventStore
from windvane_client.synthetic import MADE_UP
from windvane_privacy.catalogue import Catalogue, Family, Signal
from windvane_privacy.noise import OpenDPNoise
from windvane_privacy.outcomes import Basis, PersonOutcome

AT = ("--now", NOW.strftime("%Y-%m-%dT%H:%M:%SZ"))
TREES = Catalogue([Family(name, name.capitalize(), "grove", ()) for name in FAMILY_IDS])


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


@pytest.fixture
def shown(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def show(*arguments: object) -> str:
        run(["member", "preview", *map(str, arguments), *AT])
        return " ".join(re.sub(r"[│╭╮╰╯─]", " ", capsys.readouterr().out).split())

    return show


def setup_for(people: People) -> Setup:
    return Setup(bytes(K_ORG_BYTES), people, Rules(), TREES)


def rewrite(folder: Path, change: Callable[[str], str]) -> None:
    for log in folder.rglob("*.jsonl"):
        log.write_text(change(log.read_text("utf-8")), "utf-8")


# --- the parts --------------------------------------------------------------------------------------------------------


def test_the_page_has_its_parts_in_order_and_ends_in_one_sentence(home: Path, shown: Callable[..., str]) -> None:
    write_home(home)
    text = shown()
    parts = [
        "1 What was read", "2 What was refused, and why", "3 Your own outcomes, by kind of work",
        "4 Your own directions", "5 How a submission would be bounded and noised",
        "6 Who could learn what of a submission", "Next",
    ]  # fmt: skip
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert "finished more often with Claude Opus 4.6 than with Claude Haiku 4.5." in text
    assert "Of each person at most 9 votes are kept" in text
    assert text.endswith("`windvane member init` (docs/members.md).")


def test_no_text_of_a_log_and_no_path_is_on_the_page(
    home: Path, shown: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_home(home)
    logs = folder.rename(folder.with_name("CANARY-folder"))
    rewrite(logs, lambda text: text.replace(TEXT_OF_THE_WRITER, "CANARY").replace("/home/user/project", "CANARY"))
    (logs / "CANARY-broken.jsonl").write_text(
        '{"type":"CANARY"}\n{"type":"user","CANARY":1,"message":"CANARY"}\nCANARY\n'
    )
    text = shown()
    assert "CANARY" not in text
    assert "1 row rejected" in text
    assert "skipped" in text
    shown("--explain", "3")
    run(["member", "preview", *AT, "--source", "claude_code", "--json"])
    observed = json.loads(capsys.readouterr().out)["observed"]
    assert "CANARY" not in json.dumps(observed)


def test_noise_is_drawn_on_made_up_counts_only(
    home: Path, shown: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_home(home)
    drawn: list[tuple[int, ...]] = []

    class Watched(OpenDPNoise):
        def draw(self, exact: NDArray, share_scale: float) -> list[int]:
            drawn.append(tuple(int(value) for value in exact))
            return super().draw(exact, share_scale)

    monkeypatch.setattr(page, "OpenDPNoise", Watched)
    text = shown()
    cut = {(12 * max(-20, min(20, a - b)), 5 * min(a + b, 20)) for a, b in MADE_UP}
    assert set(drawn) == cut
    assert "MADE-UP" in text
    assert "made-up for A" in text


def test_other_programs_folders_are_named_as_refused(home: Path, shown: Callable[..., str]) -> None:
    write_home(home)
    (home / ".continue" / "dev_data").mkdir(parents=True)
    assert "continue: no reader in this version. Instead:" in shown()


def test_an_episode_is_explained_by_number_and_by_start(home: Path, shown: Callable[..., str]) -> None:
    write_home(home)
    text = shown()
    number, start = re.findall(r" (\d+) (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ) coding", text)[-1]
    by_number, by_start = shown("--explain", number), shown("--explain", start)
    assert by_number == by_start
    assert f"Piece of work {number} started {start}" in by_number
    assert re.search(r"because of: (turn_end_clean|turn_end_interrupted)", by_number)


def test_an_explanation_names_evidence_and_no_value(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_home(home)
    run(["member", "preview", *AT, "--explain", "3", "--json"])
    why = json.loads(capsys.readouterr().out)
    assert why["schema"] == "windvane/preview-episode/v1"
    assert why["mode"] == "interactive"
    assert set(why["completion"]) == {"class", "evidence"}


# --- own words --------------------------------------------------------------------------------------------------------


def words(rows: list[PersonOutcome]) -> dict[tuple[str, str], str]:
    return {(lean.signal, f"{lean.a}|{lean.b}"): lean.word for lean in leans(rows, setup_for(People.me()))}


def test_a_clear_difference_is_a_direction_and_its_mirror_the_other() -> None:
    assert words([row("alder", 9, 9), row("birch", 9, 0)]) == {("completion", "alder|birch"): "toward_a"}
    assert words([row("alder", 9, 0), row("birch", 9, 9)]) == {("completion", "alder|birch"): "toward_b"}


def test_equal_work_is_even() -> None:
    assert words([row("alder", 12, 12), row("birch", 12, 12)]) == {("completion", "alder|birch"): "even"}


def test_too_few_trials_of_one_model_say_so() -> None:
    few = LEAST_TRIALS - 1
    assert words([row("alder", 40, 40), row("birch", few, 0)]) == {("completion", "alder|birch"): "too_few"}
    assert words([row("alder", 40, 40), row("birch", few + 1, 0)]) == {("completion", "alder|birch"): "toward_a"}


def test_two_recorders_are_never_compared() -> None:
    assert words([row("alder", 9, 9, recorder="x"), row("birch", 9, 0, recorder="y")]) == {}


def test_every_pair_of_many_models_is_shown_not_only_as_many_as_a_person_has_votes() -> None:
    rows = [row(name, 9, 9 if name < "d" else 0) for name in FAMILY_IDS[:6]]
    found = words(rows)
    assert len(found) == 15
    assert sum(word in ("toward_a", "toward_b") for word in found.values()) == 9


def test_switching_away_is_shown_from_both_sides() -> None:
    switch = {"signal": Signal.SWITCH_AWAY, "basis": Basis.RECORDED}
    rows = [row("alder", 8, 8, against="birch", **switch), row("birch", 8, 0, against="alder", **switch)]
    assert words(rows) == {("switch_away", "alder|birch"): "toward_a"}
    assert (
        page.sentence(leans(rows, setup_for(People.me()))[0], TREES) == "stayed more often with Alder than with Birch."
    )


def test_several_people_have_words_only_from_ten_voters_on() -> None:
    def of(people: int) -> set[str]:
        rows = [r for n in range(people) for r in (row("alder", 9, 9, who=n + 1), row("birch", 9, 0, who=n + 1))]
        return set(words(rows).values())

    assert of(9) == {"too_few"}
    assert of(10) == {"toward_a"}


def test_small_cells_of_several_people_show_no_count() -> None:
    rows = [row("alder", 7, 5, who=n + 1) for n in range(9)] + [row("birch", 9, 8, who=n + 1) for n in range(10)]
    out = Console(width=160, record=True, file=None, force_terminal=False, quiet=True)
    with out.capture() as text:
        out.quiet = False
        page._outcomes(out, Own(people=10, rows=rows), setup_for(People.me()))
    assert "too few people" in text.get()
    assert "80 of 90" in text.get()
    assert "45 of 63" not in text.get()
    assert [cell.people for cell in outcome_cells(rows)] == [9, 10]


# --- the last sentence ------------------------------------------------------------------------------------------------


def test_an_empty_home_names_the_usual_place(shown: Callable[..., str]) -> None:
    assert "No logs were found: Claude Code keeps its transcripts in .claude/projects" in shown()


def test_only_other_programs_logs_say_so(home: Path, shown: Callable[..., str]) -> None:
    (home / ".continue" / "dev_data").mkdir(parents=True)
    assert "only the refused ones above" in shown()


def test_refused_files_say_so(tmp_path: Path, shown: Callable[..., str]) -> None:
    (tmp_path / "run.traj").write_text("{}")
    assert "Nothing was read: every log was refused" in shown(tmp_path / "run.traj")


def test_logs_of_another_form_say_so(tmp_path: Path, shown: Callable[..., str]) -> None:
    (tmp_path / "a.jsonl").write_text("nonsense\n[]\n")
    assert "No row could be used" in shown(tmp_path / "a.jsonl", "--source", "claude_code")


def test_an_unknown_mode_says_so(home: Path, shown: Callable[..., str]) -> None:
    folder = write_home(home)
    rewrite(folder, lambda text: re.sub(r'"(entrypoint|promptSource)":"[a-z-]+",', "", text))
    text = shown()
    assert "Mode unknown" in text
    assert "Nothing counts yet" in text


@pytest.mark.parametrize("source", ["gemini_cli", "open_webui_chats"])
def test_a_source_that_never_names_a_mode_says_what_to_declare(shown: Callable[..., str], source: str) -> None:
    fixtures = Path(__file__).parent / "fixtures"
    (log,) = fixtures.glob(f"{source}_SYNTHETIC*")
    text = " ".join(shown(log, "--now", "2027-06-01T00:00:00Z").split())
    assert "Mode unknown" in text
    assert "interactive_keys" in text


def test_programs_work_says_so(home: Path, shown: Callable[..., str]) -> None:
    folder = write_home(home)
    rewrite(
        folder, lambda text: text.replace('"entrypoint":"cli"', '"entrypoint":"sdk-cli"').replace('"typed"', '"sdk"')
    )
    assert "Programs started all of this work" in shown()


def test_one_family_says_that_a_comparison_needs_two(home: Path, shown: Callable[..., str]) -> None:
    write_home(home, models=("good",))
    assert "One model family only: a comparison needs two" in shown()


def canonical_line(person: str, number: int, k: str, more: str) -> str:
    fields = {
        "v": 1, "k": k, "person": person, "conv": f"c-{person}-{number}", "seq": 1, "mode": "interactive",
        "ts": f"2026-07-{1 + number % 28:02d}T10:{number % 60:02d}:00Z",
    }  # fmt: skip
    return json.dumps(fields)[:-1] + f",{more}}}\n"


def canonical_log(path: Path, people: list[str], *, kind: str | None) -> Path:
    hint = f'"kind_hint":"{kind}",' if kind else ""
    lines = []
    for person in people:
        for number in range(40):
            model = ("alder", "birch")[number % 2]
            value = ("met", "failed")[number % 2]
            lines += [
                canonical_line(person, number, "prompt", f'{hint}"key":"p{number}","origin":"human"'),
                canonical_line(person, number, "call", f'{hint}"key":"m{number}","served":"{model}","status":"ok"'),
                canonical_line(
                    person, number, "outcome", f'{hint}"key":"o{number}","value":"{value}","evidence":"goal"'
                ),
            ]
    path.write_text("".join(lines))
    return path


def own_of(log: Path, people: People) -> tuple[str, Own, dict[str, object]]:
    setup = setup_for(people)
    sample = plan_source("canonical", [log], setup)
    with EventStore.temporary() as store:
        read([sample], store, setup, now=NOW)
        own = own_work(store, setup, micros(NOW))
        observed, _ = summed(store, [sample], setup, NOW)
    return next_step([sample], own, leans(own.rows, setup), setup), own, observed


def test_undecided_work_asks_for_a_rule(tmp_path: Path) -> None:
    step, own, _ = own_of(canonical_log(tmp_path / "a.jsonl", ["p1"], kind=None), People.me())
    assert "rules.toml" in step
    assert own.kinds["other"] == 40


def test_unmapped_people_ask_for_people_toml(tmp_path: Path) -> None:
    step, own, _ = own_of(canonical_log(tmp_path / "a.jsonl", ["p1"], kind="coding"), People())
    assert step.startswith("No identity is mapped")
    assert own.people == 0


def test_a_summary_of_few_people_shows_no_outcome(tmp_path: Path) -> None:
    staff = People(canonical_is_staff_id=True)
    one = own_of(canonical_log(tmp_path / "a.jsonl", ["p1"], kind="coding"), staff)[2]
    few = own_of(canonical_log(tmp_path / "b.jsonl", ["p1", "p2"], kind="coding"), staff)[2]
    many = own_of(canonical_log(tmp_path / "c.jsonl", [f"p{n}" for n in range(10)], kind="coding"), staff)[2]
    assert sorted(one["completion"]) == ["explicit_no"] * 20 + ["explicit_yes"] * 20
    assert (few["completion"], few["outcome_rows"], few["tools"]) == (
        None,
        None,
        {"basis": "classed", "outcomes": None},
    )
    assert few["rows"] == {"read": 240, "rejected": 0, "unknown": 0, "foreign": 0}
    assert len(many["completion"]) == 400


def test_work_of_several_people_is_not_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = canonical_log(tmp_path / "a.jsonl", ["p1", "p2"], kind="coding")
    monkeypatch.setattr("windvane.preview._setup", lambda _state: setup_for(People(canonical_is_staff_id=True)))
    with pytest.raises(SystemExit) as stopped:
        run(["member", "preview", str(log), "--source", "canonical", *AT, "--explain", "1"])
    assert stopped.value.code == 1
    assert "several people" in capsys.readouterr().err


def test_a_person_who_opted_out_is_not_read(tmp_path: Path) -> None:
    people = People(canonical_is_staff_id=True, excluded_staff=frozenset({"p2"}))
    _, own, observed = own_of(canonical_log(tmp_path / "a.jsonl", ["p1", "p2"], kind="coding"), people)
    assert own.people == 1
    assert observed["rows"] == {"read": 120, "rejected": 0, "unknown": 0, "foreign": 0}
    machine = People(machine="p2", excluded_staff=frozenset({"p2"}))
    folder = write_home(tmp_path / "home")
    sample = plan_source("claude_code", [folder], setup_for(machine))
    assert sample.files == []
    assert sample.refused is not None


def test_progress_goes_up_to_all_bytes(home: Path) -> None:
    folder = write_home(home)
    setup = setup_for(People.me())
    sample = plan_source("claude_code", [folder], setup)
    told: list[tuple[int, int]] = []
    with EventStore.temporary() as store:
        read([sample], store, setup, now=datetime(2027, 1, 15, tzinfo=UTC), progress=lambda *at: told.append(at))
    total = sum(path.stat().st_size for path in folder.glob("*.jsonl"))
    done = [at for at, _ in told]
    assert done == sorted(done)
    assert told[-1] == (total, total)


def test_the_page_says_what_could_not_be_seen_and_what_needs_a_person(home: Path, shown: Callable[..., str]) -> None:
    home.mkdir()
    log = Transcript()
    log.user()
    log.answer("m1", tool("t1", "Agent"))
    log.result("t1", toolUseResult={"agentId": "a7"})
    (home / "s.jsonl").write_bytes(lines(log.rows))
    page = shown(home)
    assert "a subagent's own file is not there: its tool calls are not seen." in page
    assert "By week (UTC)" in page
    assert "claude_code, tool calls, by outcome: ok 1." in page
    assert "This needs a person All answers came from one model family." in page
    assert page.index("By week") < page.index("What was refused") < page.index("This needs a person")
