# SPDX-License-Identifier: Apache-2.0
"""`windvane member budget | ledger | policy` and `windvane audit budget`, as an operator and a reviewer type them."""

from __future__ import annotations

import json
import sqlite3
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from conftest import not_run
from ledger_entries import charge, quarter
from ledger_steps import PEOPLE
from member_world import MemberWorld
from small_federation import ROUND
from windvane_privacy.ledger_export import SCHEMA, decode_spends, encode_spends, spends
from windvane_privacy.ledger_schema import State

with warnings.catch_warnings():
    # typer 0.20 imports names that click 8.4 deprecates.
    warnings.simplefilter("ignore", DeprecationWarning)
    from windvane import main, member_budget

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(world: MemberWorld, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Exit code, stdout, stderr of a member's command; nothing it runs may open a socket."""
    import socket

    def refused(*_address: object) -> None:
        raise AssertionError

    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setenv("COLUMNS", "160")

    def type_in(*words: str, audience: str = "member") -> tuple[int, str, str]:
        code = 0
        try:
            main.run([audience, *words, *(("--state", str(world.folder)) if audience == "member" else ())])
        except SystemExit as end:
            code = int(end.code or 0)
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return type_in


@pytest.fixture
def submitted(world: MemberWorld) -> MemberWorld:
    world.approve()
    with world.agent() as agent:
        agent.submit(ROUND)
    return world


# --- budget -----------------------------------------------------------------------------------------------------------


def test_budget_before_any_round_says_so(run: Run) -> None:
    code, out, _ = run("budget")
    assert code == 0
    assert "No round was charged yet." in out
    assert "No agreement is known here yet" in out
    facts = json.loads(run("budget", "--json")[1])
    assert (facts["rounds"], facts["terms"], facts["delta"], facts["quarters_left"]) == ([], None, None, None)
    assert facts["cap"] == {"rho": "9/32", "epsilon": None}


def test_budget_tells_every_charge_every_span_and_every_guarantee(run: Run, submitted: MemberWorld) -> None:
    facts = json.loads(run("budget", "--json")[1])
    noise = submitted.manifest.noise
    (row,) = facts["rounds"]
    assert (row["round"], row["state"], row["rho"], row["h"], row["s"], row["q"]) == (
        ROUND, "accepted", noise.rho, noise.h, noise.s, 9,
    )  # fmt: skip
    assert Fraction(row["rho"]) == submitted.manifest.rho
    assert facts["delta"] == "1e-8"
    assert [span["over"] for span in facts["spent_at_most"]] == list(member_budget.SPAN_WORDS.values())
    assert {span["a"]["rho"] for span in facts["spent_at_most"]} == {"9/128"}
    assert facts["cap"] == {"rho": "9/32", "epsilon": "4.436"}
    assert facts["quarters_left"] == 3
    terms = facts["terms"]
    assert terms["a_quarter"]["a"] == {"rho": "9/128", "epsilon": "2.104"}
    assert terms["lifetime"]["a"] == {"rho": "9/32", "epsilon": "4.436"}
    assert [one["honest"] for one in terms["a_quarter"]["b"]] == list(range(noise.h - 1, 0, -1))
    assert Fraction(terms["lifetime"]["c"]["rho"]) == noise.h * Fraction(9, 32)


def test_budget_for_people_says_the_same_and_never_how_many_people(run: Run, submitted: MemberWorld) -> None:
    facts = json.loads(run("budget", "--json")[1])
    code, out, _ = run("budget")
    assert code == 0
    for figure in ("9/128", "2.104", "9/32", "4.436", "(a)", "(a+)", "(c)", "at delta 1e-8", "3 more quarters"):
        assert figure in out, figure
    assert "people" not in json.dumps(facts)
    with submitted.state.ledger() as ledger:
        people = ledger.charged_people(ROUND)
    assert people == 12  # FixedEvidence has twelve; no cell of the page is that number
    assert " 12 " not in out.replace("last 12 quarters", "")


def test_budget_of_a_real_federation_prints_the_published_figures(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.console import Console

    manifest = quarter(0)
    facts = member_budget.budget_facts([], {manifest.sha256: manifest}, Fraction(9, 32), None)
    member_budget.show_budget(Console(width=200, highlight=False), facts)
    out = capsys.readouterr().out
    for figure in (
        "9/512, 1.012",
        "45/1024, 1.640",
        "45/512, 2.370",
        "81/1352, 1.933",
        "9/128, 2.104",
        "16 more quarters",
    ):
        assert figure in out, figure
    lifetime = facts["terms"]["lifetime"]
    assert (lifetime["a"]["epsilon"], lifetime["c"]["epsilon"][:4]) == ("4.436", "10.9")


def test_a_round_charged_to_everybody_and_a_damaged_ledger_are_told(run: Run, world: MemberWorld) -> None:
    with world.state.ledger() as ledger:
        ledger.burn_undrawn(quarter(8), "ab" * 32, [], versions="test", day="2026-10-02")
    connection = sqlite3.connect(world.folder / "ledger" / "ledger.db")
    connection.execute("UPDATE meta SET value = 'ff' WHERE key = 'chain_head'")
    connection.commit()
    connection.close()
    code, out, _ = run("budget")
    assert code == 0
    assert "burned, to everybody" in out
    assert "open for reading only" in out
    assert run("ledger", "export")[0] == 1
    assert run("policy", "set", "max_C", "9")[0] == 1


# --- ledger -----------------------------------------------------------------------------------------------------------


def test_verify_says_that_a_real_ledger_is_whole(run: Run, submitted: MemberWorld) -> None:
    code, out, _ = run("ledger", "verify")
    assert code == 0
    assert out.count("holds ") == 4
    assert "The ledger is whole." in out
    facts = json.loads(run("ledger", "verify", "--json")[1])
    assert facts["whole"] is True


def test_verify_names_what_is_broken_and_exits_with_one(run: Run, submitted: MemberWorld) -> None:
    connection = sqlite3.connect(submitted.folder / "ledger" / "ledger.db")
    connection.execute("DROP TRIGGER round_kept")
    connection.commit()
    connection.close()
    code, out, err = run("ledger", "verify")
    assert code == 1
    assert "BROKEN  tables and triggers" in out
    assert "The trigger round_kept is missing." in out
    assert "LedgerDamaged" in err
    facts = json.loads(run("ledger", "verify", "--json")[1])
    assert facts["whole"] is False


def test_export_is_what_the_library_writes_and_holds_nobody(run: Run, submitted: MemberWorld, tmp_path: Path) -> None:
    code, out, _ = run("ledger", "export")
    assert code == 0
    file = tmp_path / "ledger.jsonl"
    assert run("ledger", "export", "-o", str(file))[0] == 0
    assert file.read_text() == out
    (spend,) = decode_spends(file.read_bytes())
    assert (spend.schema, spend.round, spend.member, spend.q) == (SCHEMA, ROUND, 20, (3, 2, 1, 1, 2))
    assert spend.measurement is not None
    for person in (bytes([i]) * 16 for i in range(1, 13)):
        assert person.hex() not in out
    assert run("ledger", "export", "-o", str(tmp_path / "no" / "such"))[0] == 2


def test_rebuild_refuses_a_whole_ledger_before_it_asks(run: Run, submitted: MemberWorld) -> None:
    code, _, err = run("ledger", "rebuild")
    assert code == 1
    assert "StateExists" in err


def test_rebuild_with_a_lost_key_says_what_it_means_and_asks(
    run: Run, world: MemberWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("typer.confirm", lambda *_a, **_k: (_ for _ in ()).throw(__import__("click").Abort()))
    code, _, err = run("ledger", "rebuild", "--key-lost")
    assert code == 130
    assert "every round so far counts for everybody" in err
    code, out, _ = run("ledger", "rebuild", "--key-lost", "--yes")
    assert code == 0
    assert "counts for everybody" in out


def test_rebuild_on_a_real_socket(
    world: MemberWorld, submitted: MemberWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    import shutil

    from coordinator_process import serving_here
    from small_federation import START
    from windvane import member_ledger

    shutil.rmtree(world.folder / "ledger")
    with serving_here(world.small.state, START) as address, pytest.MonkeyPatch.context() as patch:
        patch.setattr(member_ledger, "utc_now", lambda: START)
        settings = world.folder / "member.toml"
        settings.write_text(settings.read_text().replace("https://windvane.example", address))
        main.run(["member", "ledger", "rebuild", "--yes", "--json", "--state", str(world.folder)])
    assert json.loads(capsys.readouterr().out) == {"burned": [ROUND]}
    with world.state.ledger() as ledger:
        assert [(e.round_id, e.state, e.everyone) for e in ledger.rounds()] == [(ROUND, State.BURNED, True)]


# --- policy -----------------------------------------------------------------------------------------------------------


def test_tightening_needs_no_flag_and_loosening_does(run: Run, world: MemberWorld) -> None:
    code, out, _ = run("policy", "set", "min_roster", "40")
    assert code == 0
    assert "Loosened: nothing" in out
    assert world.state.policy.min_roster == 40
    code, _, err = run("policy", "set", "min_roster", "30")
    assert code == 1
    assert "PolicyLoosened" in err
    assert "min_roster" in err
    assert world.state.policy.min_roster == 40
    code, out, _ = run("policy", "set", "min_roster", "30", "--i-am-the-privacy-officer")
    assert code == 0
    assert "Loosened: min_roster" in out
    assert world.state.policy.min_roster == 30
    with world.state.ledger() as ledger:
        assert (len(ledger.notes("policy")), len(ledger.notes("loosened"))) == (3, 1)


def test_a_file_edited_by_hand_is_shown_as_looser_and_adopted_with_the_flag_only(run: Run, world: MemberWorld) -> None:
    path = world.folder / "policy.toml"
    path.write_text(path.read_text().replace("max_Q = 9", "max_Q = 12"))
    code, out, _ = run("policy", "show")
    assert code == 0
    assert "LOOSER than adopted" in out
    assert json.loads(run("policy", "show", "--json")[1])["loosened"] == ["max_Q"]
    assert run("policy", "adopt")[0] == 1
    assert json.loads(run("policy", "adopt", "--i-am-the-privacy-officer", "--json")[1]) == {"loosened": ["max_Q"]}
    assert "LOOSER" not in run("policy", "show")[1]


def test_a_missing_policy_refuses_every_command_that_needs_one(run: Run, world: MemberWorld) -> None:
    (world.folder / "policy.toml").unlink()
    for words in (("policy", "show"), ("policy", "set", "max_C", "9"), ("policy", "adopt"), ("budget",)):
        code, _, err = run(*words)
        assert code == 1
        assert "PolicyMissing" in err


def test_one_field_on_top_of_a_loosened_file_does_not_smuggle_it_in(run: Run, world: MemberWorld) -> None:
    path = world.folder / "policy.toml"
    path.write_text(path.read_text().replace("max_Q = 9", "max_Q = 12"))
    code, _, err = run("policy", "set", "min_roster", "40")
    assert code == 1
    assert "max_Q" in err
    assert world.state.policy.min_roster == 36


# --- audit ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def extract(world: MemberWorld, tmp_path: Path) -> Path:
    import importlib.util

    if importlib.util.find_spec("dp_accounting") is None:
        not_run("dp-accounting is not installed", "pip install 'windvane[audit]'")
    manifests = [quarter(place, s=104) for place in (8, 9)]
    with world.state.ledger() as ledger:
        for manifest in manifests:
            charge(ledger, manifest, persons=PEOPLE)
        found = spends(ledger.rounds(), {manifest.sha256: manifest for manifest in manifests})
    file = tmp_path / "ledger.jsonl"
    file.write_bytes(encode_spends(found))
    return file


def test_a_reviewer_asks_both_accountants_about_every_charge(run: Run, extract: Path) -> None:
    code, out, _ = run("budget", str(extract), audience="audit")
    assert code == 0
    assert "2 charges, rho 9/64" in out
    assert "3.048 at 1e-8" in out
    assert "both accountants agree" in out
    facts = json.loads(run("budget", str(extract.parent), "--json", "--cap", "9/128", audience="audit")[1])
    assert (facts["charges"], facts["findings"]) == (2, [])


def test_a_reviewer_is_told_which_charge_is_false(run: Run, extract: Path) -> None:
    import msgspec

    first, second = decode_spends(extract.read_bytes())
    extract.write_bytes(encode_spends((first, msgspec.structs.replace(second, rho_den=127))))
    code, out, err = run("budget", str(extract), "--cap", "9/256", audience="audit")
    assert code == 1
    assert "AccountsDisagree" in err
    assert f"{second.round}: rule 1 fails" in out
    assert f"{first.round}: with the rounds that overlap it, rho is 9/128 and the limit 9/256." in out


def test_without_the_second_accountant_nothing_is_said_to_agree(
    run: Run, extract: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib.util

    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *a: None if name == "dp_accounting" else real(name, *a)
    )
    code, out, err = run("budget", str(extract), audience="audit")
    assert (code, out) == (1, "")
    assert "MissingExtra" in err
    assert "audit" in err


@pytest.mark.parametrize("words", [("budget", "/nowhere/at/all"), ("budget", "/")])
def test_a_file_that_is_not_there_is_named(run: Run, words: tuple[str, ...]) -> None:
    code, _, err = run(*words, audience="audit")
    assert code == 1
    assert "ConfigurationError" in err


def test_a_limit_that_is_no_fraction_is_wrong_use(run: Run, extract: Path) -> None:
    assert run("budget", str(extract), "--cap", "much", audience="audit")[0] == 2
