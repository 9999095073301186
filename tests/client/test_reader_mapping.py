# SPDX-License-Identifier: Apache-2.0
"""Column mapping: what a mapping may say, what it gives, and what it can never let through."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.test_collect import make_state
from reader_support import KEY, NOW, context, lines, of, read
from windvane_client.catalogue_builtin import builtin_catalogue
from windvane_client.collect import collect
from windvane_client.constants import CONSTANTS
from windvane_client.events import AnyEvent
from windvane_client.gateways import requests_of
from windvane_client.ids import KeyedIds
from windvane_client.outcomes_table import build_outcomes
from windvane_client.people import parse_people
from windvane_client.preview_sources import recognise, source_named
from windvane_client.readers import READERS, SampleFacts, context_for
from windvane_client.readers.files import open_log
from windvane_client.readers.mapping_file import Mapped, parse_mapping
from windvane_client.rules import Rules
from windvane_client.settings import LogFolder
from windvane_client.store import EventStore
from windvane_privacy.errors import ConfigurationError

A, B = "claude-sonnet-4.5", "gpt-5.2"
CANARY = "CANARY-4711"
FOLDER = Path(__file__).parent / "fixtures" / "mapping_SYNTHETIC"
START = 1_772_359_200
CALL = """name = "g"
format = "jsonl"
event = "call"
[columns]
person = "user"
conv = "trace"
key = "id"
ts = "at"
served = "model"
requested = "asked"
route = { column = "via", map = { "fb" = "fallback", "no" = "direct" } }
status = { column = "code", map = { "2xx" = "ok", "499" = "aborted", "*" = "error" } }
"""
ATTEMPTS = CALL + '[declares]\ninfra_recovery = "attempts"\n'
VOTE = """name = "v"
format = "jsonl"
event = "vote"
[columns]
person = "user"
ts = "at"
a = "left"
b = "right"
item = "pair"
winner = { column = "won", map = { "l" = "a", "r" = "b", "=" = "tie" } }
blind = { column = "hidden", map = { "true" = "proved", "half" = "attested" } }
"""
OUTCOME = """name = "t"
format = "jsonl"
event = "outcome"
joins = "canonical"
[columns]
conv = "thread"
ts = "at"
value = { column = "state", map = { "done" = "accepted", "back" = "rejected" } }
[declares]
completion = "explicit"
"""


def row(n: int = 0, code: Any = 200, **more: Any) -> dict[str, Any]:
    """One call, `n` seconds after the start."""
    return {
        "id": f"i{n}",
        "at": START + n,
        "user": "u",
        "trace": "t",
        "model": A,
        "code": code,
        "prompt": CANARY,
        **more,
    }


def events(mapping: str, *rows: Any, **more: Any) -> tuple[list[AnyEvent], Any]:
    return read(lines(rows), context("mapping", companion=mapping.encode(), **more))


def results(found: list[AnyEvent]) -> list[tuple[str, str, bool]]:
    return [(one.family, one.result, one.two_sided) for one in requests_of(found, NOW, CONSTANTS)]


def parsed(text: str) -> Mapped:
    return parse_mapping(text.encode())


# --- the mapping itself -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [CALL, ATTEMPTS, VOTE, OUTCOME])
def test_a_sound_mapping_is_accepted(text):
    assert parsed(text).name


STATUS = next(line for line in CALL.splitlines() if line.startswith("status"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name = ", "not TOML"),
        (CALL.replace('name = "g"', 'name = "g"\nextra = 1'), "unknown or missing key"),
        (CALL.replace('event = "call"\n', ""), "unknown or missing key"),
        (CALL.replace('ts = "at"', 'ts = { column = "at", format = "x" }'), "unknown or missing key"),
        (CALL.replace('"g"', '"G x"'), "`name`"),
        (CALL.replace('"jsonl"', '"xml"'), "`format`"),
        (CALL.replace('"call"', '"tool"'), "`event`"),
        (CALL + 'winner = "w"\n', "does not have"),
        (CALL.replace('ts = "at"\n', ""), "no column for ts"),
        (CALL.replace('served = "model"\n', ""), "no column for served"),
        (CALL.replace('"trace"', '"user"'), "twice"),
        (CALL.replace('column = "code"', 'column = "user"'), "twice"),
        (CALL.replace('"trace"', '""'), "twice, or an empty one"),
        (CALL.replace('"trace"', '"prompt"'), "named like text"),
        (CALL.replace('"trace"', '"errorMessage"'), "named like text"),
        (CALL.replace('"model"', '"request.Body"'), "named like text"),
        (CALL.replace('key = "id"', 'key = "user_query"'), "named like text"),
        (CALL.replace('key = "id"', 'key = "messages.0"'), "named like text"),
        (CALL.replace('key = "id"', 'key = "messages.-1.content"'), "named like text"),
        (CALL.replace('key = "id"', 'key = "prompt2"'), "named like text"),
        (CALL.replace(STATUS, 'status = "code"'), "as it stands"),
        (CALL.replace(STATUS, 'status = { column = "code", map = {} }'), "as it stands"),
        (CALL.replace('"aborted"', '"stopped"'), "another word"),
        (CALL.replace('"499"', '"49*"'), "inside a value"),
        (CALL.replace('conv = "trace"', 'conv = { column = "trace", map = { "x" = "y" } }'), "no class"),
        (CALL.replace('conv = "trace"', 'conv = { column = "trace", unit = "s" }'), "another field than ts"),
        (CALL.replace('ts = "at"', 'ts = { column = "at", unit = "min" }'), "unit"),
        (CALL.replace('ts = "at"', 'ts = { column = "at", zone = "Mars/Base" }'), "zone"),
        (CALL + '[declares]\nspeed = "x"\n', "declares a signal"),
        (CALL + '[declares]\nswitch_away = "recorded"\n', "cannot carry"),
        (CALL + '[declares]\ntool_reliability = "bit"\n', "cannot carry"),
        (CALL + '[declares]\nblind_quality = "proved"\n', "cannot carry"),
        (CALL + '[declares]\ncompletion = "explicit"\n', "without `joins`"),
        (ATTEMPTS.replace('"attempts"', '"proved"'), "cannot carry"),
        (ATTEMPTS.replace(STATUS + "\n", ""), "both answers and failures"),
        (ATTEMPTS.replace('"error"', '"client_4xx"'), "both answers and failures"),
        (ATTEMPTS.replace('"ok"', '"5xx"'), "both answers and failures"),
        (ATTEMPTS.replace('conv = "trace"\n', ""), "belong together"),
        (VOTE.replace('"r" = "b"', '"r" = "tie"') + '[declares]\nblind_quality = "attested"\n', "one of the two"),
        (VOTE.replace('"proved"', '"no"') + '[declares]\nblind_quality = "proved"\n', "vote by vote"),
        (OUTCOME.replace('"rejected"', '"met"'), "one of the two"),
        (OUTCOME.replace('joins = "canonical"\n', ""), "without `joins`"),
        (OUTCOME.replace('"canonical"', '"litellm"'), "`joins` other"),
        (OUTCOME.replace('completion = "explicit"', 'completion = "unknown"'), "does not declare"),
    ],
)  # fmt: skip
def test_a_wrong_mapping_is_refused_at_load_with_its_reason(text, says):
    with pytest.raises(ConfigurationError, match=says) as caught:
        parsed(text)
    assert not any(word in str(caught.value) for word in ("trace", "user_query", "errorMessage", "Mars"))


@given(st.text(max_size=6), st.dictionaries(st.text(max_size=4), st.sampled_from(["ok", "error"]), max_size=4))
def test_a_value_gives_a_word_of_its_map_or_nothing(raw, words):
    mapped = Mapped("g", "csv", "call", {}, {"status": words}, None, None, {}, "")
    found = mapped.word("status", raw)
    assert found == words.get(raw, found)
    assert found is None or found in words.values()
    if not raw:
        assert found == words.get("")


# --- calls ------------------------------------------------------------------------------------------------------------


def test_attempts_and_answers_become_requests():
    found, ctx = events(ATTEMPTS, row(0, 503), row(2), row(100, 503, trace="t2"), row(300, trace="t3"))
    assert results(found) == [(A, "recovered_same", True), (A, "lost", True), (A, "", False)]
    assert ctx.facts.infra_possible
    moved, _ = events(ATTEMPTS, row(0, 503), row(2, model=B, asked=A, via="fb"))
    assert results(moved) == [(A, "recovered_other", True)]


def test_without_a_declaration_faults_have_no_second_side():
    found, ctx = events(CALL, row(0, 503), row(2))
    assert results(found) == [(A, "recovered_same", False)]
    assert not ctx.facts.infra_possible


@pytest.mark.parametrize(
    ("code", "name"), [(429, "rate_vendor"), (503, "5xx"), (529, "overload"), (504, "timeout"), (400, "client_4xx")]
)
def test_the_class_of_an_error_follows_from_its_status(code, name):
    assert [one.error_class for one in of(events(CALL, row(0, code))[0], "AttemptError")] == [name]


def test_an_abort_is_nobodys_fault():
    assert results(events(ATTEMPTS, row(0, 499))[0]) == [(A, "", False)]
    assert results(events(ATTEMPTS, row(0, 503), row(1, 499))[0]) == [(A, "cut", True)]


def test_a_missing_status_is_no_answer_and_a_missing_route_no_choice():
    found, ctx = events(CALL, row(0, None), row(1, ""))
    assert (ctx.rows.rejected, ctx.rows.reasons) == (2, {"missing_field": 2})
    assert [one.what for one in found] == ["rows_rejected"] * 2
    strict = CALL.replace('"*" = "error"', '"5xx" = "error"')
    assert events(strict, row(0, "teapot"))[1].rows.reasons == {"bad_value": 1}
    assert [one.route for one in events(CALL, row(0), row(1, via="no"))[0]] == ["unknown", "direct"]


def test_the_same_row_in_two_exports_is_one_event():
    keyed = events(CALL, row(0), row(0, 503), row(1))[0]
    assert len({(type(one), one.key) for one in keyed}) == 3
    bare = CALL.replace('key = "id"\n', "")
    assert len({one.key for one in events(bare, row(0), row(0), row(0, model=B))[0]}) == 2


@pytest.mark.parametrize("raw", [str(START), START * 1000, "2026-03-01T10:00:00Z", "2026-03-01T10:00:00", float(START)])
def test_times_are_read_by_their_size_or_as_rfc_3339(raw):
    assert [one.ts for one in events(CALL, row(at=raw))[0]] == [START * 1_000_000]


def test_units_and_zones_are_those_of_the_mapping():
    unit = CALL.replace('ts = "at"', 'ts = { column = "at", unit = "ms" }')
    assert [one.ts for one in events(unit, row(at=START * 1000))[0]] == [START * 1_000_000]
    assert events(unit, row())[1].rows.reasons == {"bad_time": 1}
    zone = CALL.replace('ts = "at"', 'ts = { column = "at", zone = "Europe/Berlin" }')
    assert [one.ts for one in events(zone, row(at="2026-03-01T11:00:00"))[0]] == [START * 1_000_000]
    assert [one.ts for one in events(zone, row(at="2026-03-01T10:00:00Z"))[0]] == [START * 1_000_000]
    for local in ("2026-03-29T02:30:00", "2025-10-26T02:30:00"):
        assert [one.what for one in events(zone, row(at=local))[0]] == ["time_ambiguous"]


@pytest.mark.parametrize("at", ["soon", "2019-12-31T00:00:00Z", "2100-01-01T00:00:00Z", "-5"])
def test_an_implausible_time_rejects_the_row(at):
    assert events(CALL, row(at=at))[1].rows.reasons == {"bad_time": 1}


def test_people_are_looked_up_and_who_opted_out_leaves_no_trace():
    people = parse_people(
        '[[person]]\nstaff_id = "s1"\nids = ["mapping:u"]\n[[person]]\nstaff_id = "s2"\nids = ["mapping:w"]\n'
        '[exclude]\nstaff_ids = ["s2"]\n'
    )
    ids = KeyedIds(KEY, people)
    found, ctx = events(CALL, row(0), row(1, user="w"), row(2, user="stranger"), row(3, user=None), ids=ids)
    assert [type(one).__name__ for one in found] == ["Call", "Gap", "Gap"]
    assert found[0].person == ids.staff("s1")
    assert {one.what for one in of(found, "Gap")} == {"person_unknown"}
    assert ctx.rows.read == 3


def test_rows_without_a_person_column_belong_to_the_folders_person():
    found, ctx = events(CALL.replace('person = "user"\n', ""), row())
    assert [one.person for one in found] == [ctx.machine_person]
    assert ctx.facts.persons is None


# --- votes and outcomes -----------------------------------------------------------------------------------------------


def vote(hidden: str | None, n: int = 0) -> dict[str, Any]:
    return {"at": START + n, "user": "u", "left": A, "right": B, "pair": f"p{n}", "won": "l", "hidden": hidden}


@pytest.mark.parametrize(
    ("declared", "blind"),
    [
        ("unknown", ["no", "no", "no"]),
        ("attested", ["attested", "attested", "no"]),
        ("proved", ["proved", "attested", "no"]),
    ],
)
def test_a_vote_is_as_blind_as_it_says_and_never_more_than_declared(declared, blind):
    text = VOTE + f'[declares]\nblind_quality = "{declared}"\n'
    found = of(events(text, vote("true"), vote("half", 1), vote(None, 2))[0], "Vote")
    assert [one.blind for one in found] == blind
    assert {(one.a, one.b, one.winner, one.mode) for one in found} == {(A, B, "a", "interactive")}


def test_declared_votes_become_blind_quality_and_undeclared_ones_nothing():
    def signals(text: str) -> set[tuple[str, str, int]]:
        found = stored(text, vote("true"))
        return {(row.signal, str(row.basis), row.successes) for row in found if row.model == A}

    declared = VOTE.replace('person = "user"', 'person = "user"\nkind = { column = "k", map = { "" = "coding" } }')
    assert signals(declared + '[declares]\nblind_quality = "proved"\n') == {("blind_quality", "proved", 1)}
    assert signals(declared) == set()


def chat(conv: str, at: str) -> list[dict[str, Any]]:
    """A prompt and its answer, as canonical rows; nothing says how it ended."""
    head = {"v": 1, "conv": conv, "mode": "interactive", "kind_hint": "coding"}
    return [
        {**head, "k": "prompt", "ts": f"{at}T10:00:00Z", "origin": "human", "key": f"{conv}p"},
        {**head, "k": "call", "ts": f"{at}T10:00:05Z", "key": f"{conv}k", "served": A, "parent": f"{conv}p"},
    ]


CHAT = [*chat("past", "2026-01-02"), *chat("c", "2026-03-01")]  # a model that is new to a person does not count


def stored(text: str, *rows: Any, before: Sequence[dict[str, Any]] = ()) -> list[Any]:
    with EventStore.temporary() as store:
        store.add(read(lines(before), context("canonical"))[0])
        store.add(events(text, *rows)[0])
        return list(
            build_outcomes(
                store, window=(0, NOW), catalogue=builtin_catalogue(), rules=Rules(), ids_key=KEY, now=NOW,
                constants=CONSTANTS,
            )
        )  # fmt: skip


@pytest.mark.parametrize(("state", "success"), [("done", 1), ("back", 0)])
def test_an_outcome_completes_the_work_of_the_conversation_it_joins(state, success):
    result = {"at": "2026-03-01T10:01:00Z", "thread": "c", "state": state}
    found = stored(OUTCOME, result, before=CHAT)
    assert [(r.signal, str(r.basis), r.successes) for r in found] == [("completion", "explicit", success)]
    assert stored(OUTCOME, {**result, "thread": "other"}, before=CHAT) == []
    silent = OUTCOME.replace('joins = "canonical"\n', "").split("[declares]")[0]
    assert stored(silent, result, before=CHAT) == []


def test_attempt_errors_alone_give_no_trial():
    text = CALL.replace('"call"', '"attempt_error"').split("served")[0]
    text += 'family = "model"\nerror_class = { column = "code", map = { "5xx" = "5xx", "429" = "rate_own" } }\n'
    found, _ = events(text, row(0, 503), row(1, 429))
    assert [one.error_class for one in found] == ["5xx", "rate_own"]
    assert not any(two_sided for _, _, two_sided in results(found))


# --- bytes ------------------------------------------------------------------------------------------------------------


def test_no_text_of_an_export_is_in_an_event():
    base = row(0, 503)
    for name in base:
        for wrong in (CANARY, [CANARY], {CANARY: CANARY}, CANARY * 50, True, -7):
            found, ctx = events(ATTEMPTS, {**base, name: wrong})
            seen = repr(found) + repr(ctx.rows) + repr(ctx.facts) + msgspec.msgpack.encode(found).decode("latin-1")
            assert CANARY not in seen
            assert len(found) == 1


def test_a_bad_row_is_counted_and_the_rest_is_read():
    found, ctx = events(CALL, b"not json", row(0), row(1, user={"x": 1}), row(2, model=None), row(3))
    assert ctx.rows.reasons == {"not_json": 1, "wrong_type": 1, "missing_field": 1}
    assert len(of(found, "Call")) == 2


def table(*cells: list[str], header: list[str] | None = None) -> bytes:
    out = io.StringIO()
    csv.writer(out).writerows([header or ["id", "at", "user", "trace", "model", "code", "prompt"], *cells])
    return out.getvalue().encode()


def cells(n: int, prompt: str = CANARY) -> list[str]:
    return [f"i{n}", str(START + n), "u", "t", A, "200", prompt]


def from_table(raw: bytes) -> tuple[list[AnyEvent], Any]:
    text = CALL.replace('"jsonl"', '"csv"').replace('requested = "asked"\n', "")
    return read(raw, context("mapping", companion=text.encode(), final=True))


def test_csv_is_read_by_its_named_columns():
    found, ctx = from_table(table(cells(0, 'a,"b"\r\nc'), cells(1), [*cells(2), "more"]))
    assert len(of(found, "Call")) == 2
    assert ctx.rows.reasons == {"wrong_type": 1}


def test_a_field_above_one_mib_rejects_its_row_even_if_it_is_not_read():
    found, ctx = from_table(table(cells(0, "x" * ((1 << 20) + 1)), cells(1, "x" * (1 << 20))))
    assert ctx.rows.reasons == {"too_long": 1}
    assert len(of(found, "Call")) == 1


def test_a_header_that_names_a_column_twice_gives_no_row():
    header = ["id", "at", "user", "trace", "model", "code", "user"]
    assert from_table(table(cells(0), header=header))[1].rows.reasons == {"wrong_type": 1}


# --- files ------------------------------------------------------------------------------------------------------------


def test_an_export_beside_its_mapping_is_found_and_read():
    paths = list(READERS["mapping"].discover([FOLDER]))
    assert [path.name for path in paths] == ["export.csv"]
    assert recognise(paths[0]) == ("mapping", None)
    assert source_named("mapping") == ("mapping", None)
    facts = SampleFacts("mapping")
    ids = KeyedIds(KEY, parse_people('[[person]]\nstaff_id = "s"\nids = ["mapping:u1"]\n'))
    ctx = context_for(paths[0], ids=ids, catalogue=builtin_catalogue(), now=NOW, facts=facts)
    ctx.final = True
    with open_log(paths[0]) as stream:
        found = list(READERS["mapping"].read(stream, ctx))
    # t1 fails and recovers, t2 fails for good, t3 is the program's own fault, t4 answers, t5 is stopped, t6 has no
    # status.
    assert [result for _, result, _ in results(found)] == ["recovered_same", "lost", "", "", ""]
    assert (ctx.rows.read, ctx.rows.reasons) == (7, {"missing_field": 1})


def test_a_folder_without_a_mapping_or_with_a_wrong_one_is_refused(tmp_path):
    export = tmp_path / "a.csv"
    export.write_bytes(table(cells(0)))
    with pytest.raises(ConfigurationError, match=r"no mapping\.toml"):
        list(READERS["mapping"].discover([tmp_path]))
    assert recognise(export)[0] != "mapping"
    (tmp_path / "mapping.toml").write_text('name = "g"\n')
    for wrong in (lambda: list(READERS["mapping"].discover([tmp_path])), lambda: recognise(export)):
        with pytest.raises(ConfigurationError, match="unknown or missing key"):
            wrong()
    (tmp_path / "mapping.toml").write_text(CALL)
    assert list(READERS["mapping"].discover([tmp_path])) == []  # it is for JSONL


def test_a_changed_mapping_reads_its_files_again(tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "a.jsonl").write_bytes(lines([row(0, 503), row(1)]))
    (logs / "mapping.toml").write_text(CALL)
    state = make_state(tmp_path, (LogFolder(str(logs), "mapping"),))
    now = datetime(2026, 3, 2, tzinfo=UTC)
    assert collect(state, now).rows.read == 2
    assert (collect(state, now).unchanged, collect(state, now).rows.read) == (1, 0)
    (logs / "mapping.toml").write_text(ATTEMPTS)
    assert collect(state, now).rows.read == 2
    (logs / "mapping.toml").write_text(CALL + "x = 1\n")
    with pytest.raises(ConfigurationError):
        collect(state, now)
