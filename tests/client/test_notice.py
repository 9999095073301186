# SPDX-License-Identifier: Apache-2.0
"""The page for staff and works council: true to the member's own settings, in whole sentences, without a person."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from client.test_collect import conversation, make_state, run
from windvane import main
from windvane_client.notice import SIGNAL_WORDS, SOURCES, notice
from windvane_client.people import People, parse_people
from windvane_client.readers import READERS
from windvane_client.settings import LogFolder
from windvane_client.state import MemberState
from windvane_privacy.catalogue import POOLED, SIGNALS
from windvane_privacy.errors import UnsupportedSource

HOME = Path("/data/accounts/operator")
HEADINGS = [
    "What is read, and where", "Whose logs count", "What is never read", "How long it is kept",
    "What leaves this organisation", "Who could learn what", "How to opt out",
]  # fmt: skip
PEOPLE = """
default = "drop"
[machine]
staff_id = "mira"
[[person]]
staff_id = "s-2001"
ids = ["email:ana.lopez@example.org"]
[exclude]
staff_ids = ["otto"]
"""


@pytest.fixture
def state(tmp_path: Path) -> MemberState:
    return make_state(tmp_path, (LogFolder("/srv/transcripts"), LogFolder("/srv/gateway", "litellm")), PEOPLE)


def page(state: MemberState, *logs: LogFolder, people: People | None = None, **changes: object) -> str:
    settings = state.settings
    if logs:
        settings = msgspec.structs.replace(settings, logs=logs)
    policy = msgspec.structs.replace(state.policy, **changes)
    return notice(settings, policy, state.people if people is None else people, home=HOME)


def section(text: str, title: str) -> str:
    return text.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


def test_the_page_has_every_part_and_fits_on_one(state: MemberState) -> None:
    text = page(state)
    assert re.findall(r"^## (.*)$", text, re.M) == HEADINGS
    assert text.startswith("# How Us takes part in Windvane\n")
    assert len(text.split()) < 1000


def test_every_paragraph_is_of_whole_sentences(state: MemberState) -> None:
    text = re.sub(r"```.*?```", "", page(state), flags=re.S)
    for line in filter(None, text.splitlines()):
        assert line.startswith("#") or line.endswith((".", ":")), line
    assert "  " not in text
    assert ".." not in text


@pytest.mark.parametrize("source", sorted(READERS))
def test_every_source_that_can_be_read_is_explained(state: MemberState, source: str) -> None:
    read = section(page(state, LogFolder("/srv/one", source)), HEADINGS[0])
    words = SOURCES[source.partition("/")[0]]
    assert f"**{words.name}**, from `/srv/one`." in read
    assert words.read in read
    assert words.never in read
    others = [other for other in SOURCES.values() if other is not words]
    assert not any(other.name in read for other in others)


def test_a_source_without_a_reader_is_refused(state: MemberState) -> None:
    with pytest.raises(UnsupportedSource):
        page(state, LogFolder("/srv/one", "mailboxes"))


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/home/ana/.claude", "`~/.claude`"),
        ("/Users/ana/.codex", "`~/.codex`"),
        ("/root/logs", "`~/logs`"),
        ("/data/accounts/operator/logs", "`~/logs`"),
        ("/data/accounts/operators/logs", "`/data/accounts/operators/logs`"),
        ("/rooted/logs", "`/rooted/logs`"),
        ("/srv/MIRA/logs", "set aside for one person"),
        ("/srv/ana.lopez/logs", "set aside for one person"),
        ("/srv/s-2001", "set aside for one person"),
        ("/srv/otto", "set aside for one person"),
        ("/srv/a`b", "`` /srv/a`b ``"),
    ],
)
def test_a_folder_is_shown_without_the_name_in_it(state: MemberState, path: str, shown: str) -> None:
    text = page(state, LogFolder(path))
    assert shown in text
    assert not re.search(r"\bana\b|ana\.lopez|mira|otto|s-2001|accounts/operator/", text, re.I)


def test_a_folder_of_one_person_is_shown_neither_by_name_nor_by_number(state: MemberState) -> None:
    one = page(state, LogFolder("/srv/x1", "codex", "s-7"))
    two = page(state, LogFolder("/srv/x1", "codex", "s-7"), LogFolder("/srv/x2", "codex", "s-8"))
    assert one == two
    assert "/srv/x" not in one


def test_people_show_by_their_rules_only(state: MemberState) -> None:
    strangers = parse_people('default = "drop"\n[[person]]\nstaff_id = "zoe"\nids = ["email:zoe@example.org"]\n')
    assert page(state, people=strangers) == page(state)
    assert page(state, people=People(email_local_part=True)) != page(state)
    lines = LogFolder("/srv/lines", "canonical")
    assert "taken as it is" in page(state, lines, people=People(canonical_is_staff_id=True))
    assert "taken as it is" not in page(state, lines)


def test_only_what_the_policy_allows_is_said_to_be_asked(state: MemberState) -> None:
    assert set(SIGNAL_WORDS) == set(SIGNALS)
    text = page(state, signals=("completion",), kinds=(POOLED, "coding"))
    assert SIGNAL_WORDS["completion"] in text
    assert SIGNAL_WORDS["switch_away"] not in text
    assert "writing" not in text.split("##")[0]
    assert "for all work together" in text
    assert "for all work together" not in page(state, kinds=("coding",))


def test_limits_and_approval_are_the_policys(state: MemberState) -> None:
    text = page(state)
    policy = state.policy
    for number in (policy.max_rho_per_quarter, policy.max_rho_lifetime, policy.max_rho_local_per_quarter):
        assert str(number) in section(text, "Who could learn what")
    for guardian in policy.guardians:
        assert guardian.group in text
    assert "A person here approves" in text
    assert "without asking a person" in page(state, approval="auto")
    assert "at most 4 votes" in page(state, max_Q=4)
    assert "demonstrations" in text
    assert "demonstrations" not in page(state, demo=False)


def test_ties_and_names_are_text_and_never_markdown(state: MemberState) -> None:
    settings = msgspec.structs.replace(state.settings, name="A *B* <b>", ties=("V[x](y)",))
    text = notice(settings, state.policy, state.people, home=HOME)
    assert "# How A \\*B\\* \\<b\\> takes part" in text
    assert "V\\[x\\](y)" in text


def test_the_command_prints_the_page_or_writes_it_and_reads_no_event(
    state: MemberState, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(HOME))
    main.run(["member", "notice", "--state", str(state.folder)])
    shown = capsys.readouterr().out
    assert shown == page(state)
    assert not state.collection.exists()
    file = tmp_path / "notice.md"
    main.run(["member", "notice", "--state", str(state.folder), "--out", str(file)])
    assert file.read_text(encoding="utf-8") == shown
    assert capsys.readouterr().out == ""
    with pytest.raises(SystemExit) as end:
        main.run(["member", "notice", "--state", str(state.folder), "--out", str(tmp_path / "none" / "notice.md")])
    assert end.value.code == 2


def test_the_page_is_the_same_whatever_was_collected(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    state = make_state(tmp_path, (LogFolder(str(tmp_path / "logs"), "canonical"),))
    before = page(state)
    (tmp_path / "logs" / "a.jsonl").write_text(conversation("c1") + conversation("c2", person="q"))
    assert run(state).events == 6
    assert page(state) == before
