# SPDX-License-Identifier: Apache-2.0
"""From each source's own log files to a vote: state, people.toml, collect, outcomes table, votes.

Rules kept here:
* no row is made by hand: everything goes through files on disk, as a member's own logs do;
* two people have the same quarter, so a vote that only one of them could cast would be missed;
* a source that truthfully can carry no comparison ends in no row and no vote, also after 26 turns, and says why.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from collecting_member import adopt, make_state
from manifests import make_manifest
from windvane_client.capabilities import CAPABILITIES
from windvane_client.catalogue_builtin import builtin_catalogue
from windvane_client.collect import collect
from windvane_client.evidence import StoredEvidence
from windvane_client.readers import MACHINE_SOURCES
from windvane_client.settings import LogFolder
from windvane_client.state import MemberState
from windvane_privacy.catalogue import Signal
from windvane_privacy.manifest import Manifest
from windvane_privacy.outcomes import PersonOutcome
from windvane_privacy.votes import collect_votes, exact_vector

FIXTURES = Path(__file__).parent / "fixtures"
AFTER = datetime(2026, 4, 20, tzinfo=UTC)
OPUS, SONNET, GPT = "claude-opus-4.6", "claude-sonnet-4.6", "gpt-5.2"
ORDER = (
    OPUS, SONNET, "claude-sonnet-4.5", GPT, "gpt-5.2-codex", "gpt-5.3-codex", "gpt-5.1-codex", "gemini-3-pro",
    "gemini-2.5-pro",
)  # fmt: skip
PEOPLE = ("ana", "ben")
PEOPLE_TOML = """default = "drop"
canonical = "staff-id"
[[person]]
staff_id = "ana"
ids = ["email:ana@example.org", "litellm:user:ana", "open_webui:ana", "mapping:ana", "langfuse:ana"]
[[person]]
staff_id = "ben"
ids = ["email:ben@example.org", "litellm:user:ben", "open_webui:ben", "mapping:ben", "langfuse:ben"]
"""
SAID = '[modes]\ninteractive_keys = ["otlp", "otlp/claude_code", "neutral@example.org", "ana@example.org"]\n'
CHATS = '[modes]\ninteractive_keys = ["open_webui"]\n'
TRACES = '[modes]\ninteractive_keys = ["desk"]\n[scores.user-feedback]\n"1" = "accepted"\n"0" = "rejected"\n'
SESSIONS = '[modes]\ninteractive_keys = ["gemini_cli"]\n'
DESK = '[modes]\ninteractive_keys = ["desk"]\n'
C, S, T, I, B = Signal


@dataclass(frozen=True)
class Case:
    """A fixture and what one person's votes are. `name`: the person's name in it. `votes`: signal to who is preferred;
    a signal without an entry has no vote."""

    source: str
    fixture: str
    votes: Mapping[Signal, str]
    name: str = ""
    rules: str = ""


# Preferred by the counts that are worked out in the test of each fixture's reader: after equal numbers of trials are
# drawn, this side is ahead or, in some draws, nobody is.
CASES = (
    Case("claude_code", "claude_code_SYNTHETIC.jsonl", {C: OPUS, S: SONNET, T: SONNET}),
    Case("codex", "codex_SYNTHETIC", {C: "gpt-5.2-codex", T: "gpt-5.3-codex"}),
    Case("cline", "cline_SYNTHETIC", {C: OPUS, S: GPT, T: GPT}),
    Case("litellm", "litellm_SYNTHETIC.csv", {I: "claude-sonnet-4.5"}, name="u-1", rules=DESK),
    Case("open_webui", "open_webui_SYNTHETIC.json", {B: GPT}, name="u1"),
    Case("open_webui", "open_webui_chats_SYNTHETIC.json", {C: GPT, S: OPUS}, name="u1", rules=CHATS),
    Case("otlp", "otlp_gemini_cli_SYNTHETIC.json", {S: "gemini-3-pro", T: "gemini-3-pro"}, name="neutral@example.org"),
    Case("otlp", "otlp_codex_SYNTHETIC.jsonl", {S: GPT, T: GPT}, name="neutral@example.org"),
    Case("langfuse", "langfuse_SYNTHETIC.json", {C: GPT, T: GPT}, name="u1", rules=TRACES),
    Case("gemini_cli", "gemini_cli_SYNTHETIC", {T: "gemini-3-pro"}, rules=SESSIONS),
    Case("canonical", "canonical_SYNTHETIC.jsonl", {C: OPUS, S: GPT, B: OPUS}, name="p-1"),
    Case("mapping", "mapping_votes_SYNTHETIC", {B: GPT}, name="u1"),
)
NOTHING = (
    # Telemetry of Claude Code has 26 turns with two models, a move and a recovered fault; nothing in it says that a
    # person typed, so its mode is unknown, and no list of rules.toml is asked.
    Case("otlp", "otlp_claude_code_SYNTHETIC.jsonl", {}, name="neutral@example.org", rules=SAID),
    # Spans of programs hold calls and tool calls of two models but no turn of a person.
    Case("otlp", "otlp_gen_ai_SYNTHETIC.jsonl", {}, name="neutral@example.org"),
    # A gateway's rows and chats of people are nobody's until the organisation says who works there.
    Case("litellm", "litellm_SYNTHETIC.csv", {}, name="u-1"),
    Case("open_webui", "open_webui_chats_SYNTHETIC.json", {}, name="u1"),
    # Traces and session files name no mode: nobody's turns until the organisation says that people are there.
    Case("langfuse", "langfuse_SYNTHETIC.json", {}, name="u1"),
    Case("gemini_cli", "gemini_cli_SYNTHETIC", {}),
)


def ids_of(cases: tuple[Case, ...]) -> list[str]:
    return [case.fixture.partition("_SYNTHETIC")[0] for case in cases]


@pytest.fixture(scope="module")
def manifest() -> Manifest:
    return make_manifest(
        families=builtin_catalogue().families, order=ORDER, cap=len(ORDER) - 1, start="2026-01-01", end="2026-04-01"
    )


def logs_of(case: Case, person: str, folder: Path) -> LogFolder:
    """The fixture as this person's own log."""
    source = FIXTURES / case.fixture
    target = folder / person / case.fixture
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        target.parent.mkdir(parents=True)
        shutil.copy(source, target)
    if case.name:
        name = f"{person}@example.org" if "@" in case.name else person
        before, after = (f'"{case.name}"', f'"{name}"') if target.suffix != ".csv" else (case.name, name)
        for path in [target] if target.is_file() else target.glob("*.jsonl"):
            text = path.read_text("utf-8")
            assert before in text
            path.write_text(text.replace(before, after), "utf-8")
    return LogFolder(str(target), case.source, person if case.source in MACHINE_SOURCES else None)


def member(case: Case, folder: Path, manifest: Manifest) -> MemberState:
    state = make_state(folder, tuple(logs_of(case, person, folder / "logs") for person in PEOPLE), PEOPLE_TOML)
    adopt(state, manifest)
    if case.rules:
        (state.folder / "rules.toml").write_text(case.rules)
    return state


def outcomes(state: MemberState, manifest: Manifest) -> list[PersonOutcome]:
    report = collect(state, AFTER)
    assert report.events > 0
    assert report.unreadable == 0
    return list(StoredEvidence(state).outcomes(manifest))


@pytest.mark.parametrize("case", CASES, ids=ids_of(CASES))
def test_a_log_ends_in_a_vote_of_each_person(case: Case, tmp_path: Path, manifest: Manifest) -> None:
    state = member(case, tmp_path, manifest)
    rows = outcomes(state, manifest)
    everyone = {state.ids.staff(person) for person in PEOPLE}
    assert {row.person for row in rows} == everyone
    # One draw may come out even; over twenty a lead shows.
    found: dict[bytes, dict[Signal, set[str]]] = {person: {} for person in everyone}
    for seed in range(20):
        collected = collect_votes(rows, manifest, random.Random(seed))
        assert set(collected.people) == everyone
        assert collected.invalid_people == 0
        assert len(collected.votes) == len(PEOPLE)
        for person, votes in zip(collected.people, collected.votes, strict=True):
            for vote in votes:
                preferred = vote.cell.a if vote.toward_a else vote.cell.b
                found[person].setdefault(vote.cell.signal, set()).add(preferred)
    expected = {signal: {preferred} for signal, preferred in case.votes.items()}
    assert found == dict.fromkeys(everyone, expected)
    assert exact_vector(collect_votes(rows, manifest, random.Random(0)).votes, manifest).any()


@pytest.mark.parametrize("case", NOTHING, ids=ids_of(NOTHING))
def test_a_log_that_cannot_carry_a_comparison_ends_in_no_row_and_no_vote(
    case: Case, tmp_path: Path, manifest: Manifest
) -> None:
    rows = outcomes(member(case, tmp_path, manifest), manifest)
    assert rows == []
    assert collect_votes(rows, manifest, random.Random(1)).votes == []


def test_mapped_votes_are_counted_from_both_sides(tmp_path: Path, manifest: Manifest) -> None:
    """By hand: the first won 5, the second 3; the ninth is a tie, the tenth was given with names in sight."""
    (case,) = (case for case in CASES if case.source == "mapping")
    rows = outcomes(member(case, tmp_path, manifest), manifest)
    counts = [(row.basis, row.kind, row.model, row.against, row.successes, row.trials) for row in rows]
    wanted = [("proved", "writing", GPT, OPUS, 5, 8), ("proved", "writing", OPUS, GPT, 3, 8)]
    assert sorted(counts) == sorted(wanted * len(PEOPLE))


def test_every_source_is_in_one_of_the_two_lists() -> None:
    """Whoever adds a source meets this test: it needs a path to a vote, or a reason why it has none."""
    here = {case.source for case in (*CASES, *NOTHING)}
    # Collected rows are those of the other sources, see test_collectors.
    assert {name.partition("/")[0] for name in CAPABILITIES} - here == {"collected"}
