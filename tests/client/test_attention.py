# SPDX-License-Identifier: Apache-2.0
"""Warnings that need a person: what is so, why it matters, what to do; no number of few people."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from client_events import A, B, Log
from reader_support import Log as Transcript
from reader_support import lines
from windvane.main import run
from windvane_client.attention import mass_move, warnings_of
from windvane_client.constants import DAY
from windvane_client.noticed import Noticed

GATEWAY = {"source": "litellm", "recorder": "litellm", "reader": "litellm/1.0.0"}


def noticed(*logs: Log) -> Noticed:
    found = Noticed()
    for log in logs:
        list(found.watch(log.events))
    return found


def codes(*logs: Log) -> list[str]:
    return [one.code for one in warnings_of(noticed(*logs), numbers=True)]


def calls(log: Log, *families: str, **over: object) -> Log:
    for number, family in enumerate(families):
        log.call(number, family, **over)
    return log


def both(person: str = "ana", **header: object) -> Log:
    """Two listed models, said by a person, in logs that write retries: nothing to warn of."""
    log = Log(person, **header)
    log.turn(0, A)
    log.turn(5, B)
    return log


def of_nobody() -> Log:
    return calls(Log(person=""), A, B)


def without_sessions(share: int, *, made_up: bool = False) -> Log:
    log = Log(**GATEWAY)
    for number in range(100):
        own = f"own{number}" if made_up else ""
        log.conv = own if number < share else "shared"
        log.call(number, (A, B)[number % 2])
    return log


CASES: list[tuple[str, Callable[[], Log], Callable[[], Log], str]] = [
    ("nobody_mapped", of_nobody, both, "people.toml"),
    ("no_session", lambda: without_sessions(82), lambda: without_sessions(5), "missing_session_id"),
    ("no_session", lambda: without_sessions(82, made_up=True), lambda: without_sessions(4, made_up=True), "82 %"),
    ("unlisted_models", lambda: calls(both(), "other"), both, "aliases.toml"),
    ("unlisted_models", lambda: calls(both(), *["unknown"] * 3), lambda: calls(both(), *[A] * 30, "other"), "60 %"),
    ("one_family", lambda: calls(Log(), A, A), lambda: calls(Log(), A, B), "two models"),
    ("mode_unknown", lambda: both(mode="unknown"), both, "entrypoint"),
    ("mode_unknown", lambda: both(mode="unknown", source="open_webui"), both, "interactive_keys"),
    ("retries_unknown", lambda: both(reader="claude_code/1.0.0+no-attempts"), both, "2.0.76"),
]


@pytest.mark.parametrize(("code", "so", "not_so", "words"), CASES, ids=[f"{c[0]}-{c[3]}" for c in CASES])
def test_each_warning_and_its_nearest_miss(
    code: str, so: Callable[[], Log], not_so: Callable[[], Log], words: str
) -> None:
    found = {one.code: one for one in warnings_of(noticed(so()), numbers=True)}
    assert words in found[code].text
    assert code not in codes(not_so())
    one = found[code]
    assert all(part.endswith(".") for part in (one.what, one.why, one.do)), "what, why and what to do are sentences"


def test_nothing_is_said_where_all_is_well() -> None:
    assert codes(both()) == []


def test_votes_of_no_kind_come_with_the_lines_to_add() -> None:
    log = Log(source="open_webui", recorder="open_webui", conv="")
    log.vote(0, "a")
    (one,) = warnings_of(noticed(log), numbers=True)
    assert one.code == "votes_of_no_kind"
    assert '[[kind]], source = "open_webui", kind = "writing"' in one.do
    log.vote(1, "a", item="two", kind_hint="writing")
    assert codes(log) == []
    assert "votes_of_no_kind" in codes(*[Log(source="open_webui", recorder="open_webui")], _voted("other"))


def _voted(kind: str) -> Log:
    log = Log(source="open_webui", recorder="open_webui")
    log.vote(0, "a", kind_hint=kind)
    return log


@pytest.mark.parametrize(("people", "said"), [(1, "60 %"), (2, "Most"), (9, "Most"), (10, "60 %")])
def test_a_share_of_few_people_is_a_word(people: int, said: str) -> None:
    logs = [calls(Log(f"p{n}"), A, B, "other", "other", "other") for n in range(people)]
    (one,) = [one for one in warnings_of(noticed(*logs), numbers=True) if one.code == "unlisted_models"]
    assert one.what.startswith(f"{said} of the calls")


def test_collecting_never_says_a_share_in_numbers_and_nothing_after_a_few_rows() -> None:
    many = noticed(calls(Log(), *[A, B, "other"] * 10))
    (one,) = warnings_of(many, numbers=False)
    assert one.what.startswith("Some of the calls")
    assert not re.search(r"\d", one.what)
    assert warnings_of(noticed(calls(Log(), A, B, "other")), numbers=False) == []
    assert [one.code for one in warnings_of(noticed(of_nobody()), numbers=False)] == ["nobody_mapped"]


@pytest.mark.parametrize(
    ("moved", "people", "days_apart", "hint"),
    [(6, 10, 1, True), (5, 10, 1, False), (6, 10, 2, False), (2, 2, 1, False), (3, 3, 1, True)],
)
def test_a_mass_move_is_only_hinted_at(moved: int, people: int, days_apart: int, hint: bool) -> None:
    found = mass_move({(A, B): [n * days_apart * DAY for n in range(moved)]}, people)
    assert [one.code for one in found] == (["mass_move"] if hint else [])
    assert all("hint" in one.do and A not in one.text for one in found)


def test_no_name_of_an_unknown_model_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    log = Transcript()
    for number in range(10):
        log.user()
        log.answer(f"m{number}", model="our-secret-deployment" if number < 2 else "claude-opus-4-6")
    (tmp_path / "s.jsonl").write_bytes(lines(log.rows))
    for form in ((), ("--json",)):
        run(["member", "preview", "s.jsonl", *form])
        out = " ".join(capsys.readouterr().out.split())
        assert "20 % of the calls went to models that the list does not know" in out
        assert "secret" not in out
