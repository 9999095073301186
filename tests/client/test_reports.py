# SPDX-License-Identifier: Apache-2.0
"""Public bug reports of other readers whose condition spans more than one reader: each has a test of its name."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from client_events import END, A, B, Log, facts_of, rows_of_logs, table, tag
from otlp_support import claude, logs, read_values
from reader_support import Log as Transcript
from reader_support import context, of, read, text, tool
from windvane_client.catalogue_builtin import builtin_catalogue
from windvane_client.constants import CONSTANTS, DAY, MINUTE
from windvane_client.events import Gap
from windvane_client.outcomes_table import switch_of
from windvane_client.rules import Rules
from windvane_client.signals import PersonFacts, read_person
from windvane_client.store import EventStore

ROOT = Path(__file__).resolve().parents[2]


def person_of(events: list, now: int = 1_790_000_000_000_000) -> PersonFacts:
    """What one machine's person did, from events that a reader made."""
    with EventStore.temporary() as store:
        store.add(events)
        (person,) = store.people()
        return read_person(store, person, window=(0, now), rules=Rules(), ids_key=bytes(32), now=now)


def used_before(*models: str, days: int = 30) -> list[dict]:
    """A session some days before the others: the person knows these models and has a choice."""
    rows = []
    for at, model in enumerate(models):
        old = Transcript(f"old{at}")
        old.user()
        old.answer(f"old{at}", model=model)
        day = datetime(2026, 3, 1, tzinfo=UTC).toordinal() - days
        rows += [
            row | {"timestamp": row["timestamp"].replace("2026-03-01", str(datetime.fromordinal(day).date()))}
            for row in old.rows
        ]
    return rows


def cause_in(log: Transcript) -> tuple[str | None, str] | None:
    """(target, cause) of the latest piece of work, by somebody who knows both models."""
    rows = used_before("claude-opus-4-6", "claude-sonnet-4-6", days=20) + log.rows
    facts = person_of(read(rows)[0])
    return switch_of(facts.episodes[-1], facts, builtin_catalogue(), Rules(), CONSTANTS)


@pytest.mark.parametrize(
    ("local", "third_quarter"),
    [
        ("2026-09-30T23:30:00+02:00", True),
        ("2026-09-30T23:30:00Z", True),
        ("2026-09-30T23:30:00-02:00", False),
        ("2026-10-01T01:30:00+02:00", True),
    ],
)
def test_r10_work_at_half_past_eleven_lands_in_the_quarter_of_its_utc_day(local: str, third_quarter: bool) -> None:
    """ccusage#349, #413, #1114: one zone; late local work lands in the right UTC day and quarter."""
    prompt = {
        "v": 1, "k": "prompt", "person": "p", "conv": "c", "ts": local, "seq": 1, "key": "k", "origin": "human",
    }  # fmt: skip
    far = context("canonical")
    far.now = round(datetime(2027, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000
    (event,) = of(read([prompt], far)[0], "Prompt")
    assert event.ts == round(datetime.fromisoformat(local).timestamp()) * 1_000_000
    july, october = (round(datetime(2026, m, 1, tzinfo=UTC).timestamp()) * 1_000_000 for m in (7, 10))
    assert (july <= event.ts < october) is third_quarter
    log = Log(start=event.ts)
    log.turn(0)
    log.tool(1)
    log.close(2)
    both = [
        table(rows_of_logs(log, window=window, now=october + 40 * DAY), "tool_reliability")
        for window in ((july, october), (october, october + 92 * DAY))
    ]
    assert [bool(rows) for rows in both] == [third_quarter, not third_quarter]


def test_r11_deleted_days_are_a_gap_and_an_ending_before_them_is_unknown() -> None:
    """claude-code#62476, #84279, agentic_coding_flywheel_setup#330: a deleted day is a gap, not idleness."""
    log = Log()
    log.turn(0)
    last = log.events[-1].ts or 0
    assert [one.ending.value for one in facts_of(log).episodes] == ["clean_end"]

    def with_gap(since: int, person: str = "ana") -> list[str]:
        gap = Gap(
            source="collect", recorder="collect", reader="collect/1.0.0", key=tag("g"), person=tag(person),
            ts=since + 40 * DAY, what="retention_cut", since=since, until=since + 40 * DAY,
        )  # fmt: skip
        other = Log()
        other.events = [*log.events, gap]
        return [one.ending.value for one in facts_of(other, now=END + 60 * DAY).episodes]

    assert with_gap(last + 10 * MINUTE) == ["unknown"], "it was still open when the logs were last read"
    assert with_gap(last + 61 * MINUTE) == ["clean_end"], "it was over before"
    assert with_gap(last - MINUTE) == ["clean_end"], "it was read on after the gap"
    assert with_gap(last + 10 * MINUTE, person="ben") == ["clean_end"], "a gap of somebody else's machine"


def test_r12_a_hidden_model_is_unknown_and_an_alias_names_it() -> None:
    """claude-code#31376: the recorded model may differ from the served one: alias file, `unknown` behind a router."""
    log = Transcript()
    log.user()
    log.answer("m1", model="openrouter/auto")
    log.answer("m2", model="our-own-proxy-name")
    log.answer("m3", model="azure/gpt-5")
    told = [call.served for call in of(log.read()[0], "Call")]
    assert told == ["unknown", "other", "unknown"]
    aliases = {"our-own-proxy-name": "claude-opus-4.6", "azure/gpt-5": "claude-sonnet-4.6"}
    told = [call.served for call in of(log.read(aliases=aliases)[0], "Call")]
    assert told == ["unknown", "claude-opus-4.6", "claude-sonnet-4.6"]


@pytest.mark.parametrize(
    ("happens", "cause"),
    [
        (lambda log: None, "person_inferred"),
        (
            lambda log: log.answer(
                "cap", text("Claude AI usage limit reached|17"), model="<synthetic>", isApiErrorMessage=True,
                apiErrorStatus=429, error="rate_limit",
            ),
            "quota",
        ),
        (lambda log: log.system("model_refusal_fallback", content="neutral"), "refusal"),
        (lambda log: log.system("model_fallback", content="neutral"), "fallback"),
    ],
)  # fmt: skip
def test_r16_a_move_at_a_cap_is_quota_and_on_a_refusal_is_refusal(happens, cause: str) -> None:
    """claude-code#3434, #66723: the program moves at a cap or on a refusal: `quota`, `refusal`, never the person."""
    log = Transcript("new")
    log.user()
    log.answer("m1")
    happens(log)
    log.user()
    log.answer("m2", model="claude-sonnet-4-6")
    assert cause_in(log) == ("claude-sonnet-4.6", cause)


def test_r16_telemetry_tells_a_refusal_by_its_own_word() -> None:
    """claude-code#66723: a refusal in telemetry is evidence of a refusal, of nothing planned."""
    rows = logs(
        claude(1, "user_prompt", prompt__id="p1"),
        claude(2, "api_request", prompt__id="p1", model="claude-opus-4-6"),
        claude(3, "api_refusal", prompt__id="p1", model="claude-opus-4-6"),
        claude(4, "user_prompt", prompt__id="p2"),
        claude(5, "api_request", prompt__id="p2", model="claude-sonnet-4-6"),
    )
    assert [event.by for event in of(read_values(rows)[0], "ModelSet")] == ["refusal"]


def test_r17_the_model_after_plan_mode_is_planned() -> None:
    """claude-code#93177: `opusplan`: `planned_mode`."""
    log = Transcript("new")
    log.user(permissionMode="plan")
    log.answer("m1", tool("t1", "ExitPlanMode"))
    log.result("t1")
    log.user(permissionMode="default")
    log.answer("m2", model="claude-sonnet-4-6")
    assert cause_in(log) == ("claude-sonnet-4.6", "planned_mode")


@pytest.mark.parametrize("denials", [0, 1, 60])
def test_r20_denials_change_no_row_however_many_there_are(denials: int) -> None:
    """claude-code#78562, #53169: denials are noisy: never a signal."""
    log = Log().habit(A, B)
    log.turn(0)
    log.tool(2, "ok")
    log.tool(3, "malformed")
    for number in range(denials):
        log.tool(4 + number / 100, "denied")
    log.turn(6)
    rows = rows_of_logs(log)
    assert table(rows, "tool_reliability") == {(A, None): (2, 1)}
    assert table(rows, "completion")[A, None][1] == 1


def test_r25_success_with_an_error_flag_or_a_denial_is_no_clean_end() -> None:
    """claude-code#79854, cc-plugin-codex#92: "success" with `is_error` or denials is no clean end."""

    def ending(**result: object) -> str:
        log = Transcript()
        log.user()
        log.answer("m1", tool("t1"))
        log.result("t1", **result)
        log.system("stop_hook_summary", preventedContinuation=True)
        (episode,) = person_of(log.read()[0]).episodes
        return episode.ending.value

    assert ending(content="The user doesn't want to proceed with this tool use.", is_error=True) == "abandoned"
    assert ending(content="success: done", is_error=True) == "unknown"
    assert ending(content="success: done") == "unknown"


TEXTS = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("cli/**/*.py"), *ROOT.glob("server/**/*.html")]
)
_TOOLS = r"tool[ -](?:success|reliability|calls?|outcomes?)"
_DONE = r"(?:complet\w*|finish\w*|task success)"


def test_r29_no_text_calls_tool_success_completion() -> None:
    """gemini-cli#12569: tool success shown as task success: no text of ours may call it completion."""
    from windvane.preview_page import MORE_OFTEN, SIGNAL_NAMES
    from windvane_privacy.catalogue import Signal

    said = re.compile(rf"{_TOOLS}[^.|\n]{{0,20}} (?:is|are|means?|shows?|=|as) (?:the )?{_DONE}", re.I)
    assert said.search("The tool success rate is task success."), "the search finds what it looks for"
    found = [path.name for path in TEXTS if path.name != "reports.md" and said.search(path.read_text("utf-8"))]
    assert not found
    for words in (SIGNAL_NAMES, MORE_OFTEN):
        assert not re.search(_DONE, words[Signal.TOOL_RELIABILITY], re.I)
        assert "tool" not in words[Signal.COMPLETION]
