# SPDX-License-Identifier: Apache-2.0
"""LiteLLM rows: attempts, answers, fallbacks, sessions, people, and what is no call of a person."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reader_support import KEY, NOW, context, lines, of
from reader_support import read as read_rows
from windvane_client.catalogue_builtin import builtin_catalogue
from windvane_client.constants import CONSTANTS
from windvane_client.events import AnyEvent
from windvane_client.gateways import Request, requests_of
from windvane_client.ids import KeyedIds
from windvane_client.merge import merge, pack
from windvane_client.outcomes_table import build_outcomes
from windvane_client.people import parse_people
from windvane_client.preview_sources import recognise
from windvane_client.readers import READERS
from windvane_client.readers.files import open_log
from windvane_client.rules import Rules, parse_rules
from windvane_client.store import EventStore
from windvane_privacy.catalogue import Signal

CANARY = "CANARY-4711"
A, B = "claude-sonnet-4.5", "gpt-5.2"
FIXTURE = Path(__file__).parent / "fixtures" / "litellm_SYNTHETIC.csv"
START = 1_772_359_200


def payload(n: int, **more: Any) -> dict[str, Any]:
    """A standard logging payload; `n`: seconds after the start."""
    row: dict[str, Any] = {
        "id": f"i{n}", "litellm_call_id": f"c{n}", "trace_id": "t1", "session_id": "", "call_type": "acompletion",
        "status": "success", "startTime": START + n, "endTime": START + n + 0.5, "model": A, "model_group": "g",
        "cache_hit": None, "end_user": "u1", "request_tags": [], "metadata": {}, "hidden_params": {},
        "messages": [{"content": CANARY}], "response": CANARY, "error_str": CANARY,
    }  # fmt: skip
    return {**row, **more}


def failure(n: int, code: object = 503, cls: str = "ServiceUnavailableError", **more: Any) -> dict[str, Any]:
    error = {"error_code": code, "error_class": cls, "error_message": CANARY, "traceback": CANARY}
    return payload(n, status="failure", error_information={**error, **more.pop("error", {})}, **more)


def fallback(n: int, original: str | None = None, **more: Any) -> dict[str, Any]:
    meta = {"attempted_fallbacks": 1, "original_model_group": original}
    return payload(n, **{"model": B, "model_group": "h", "metadata": meta, **more})


def read(*rows: Any, **more: Any) -> tuple[list[AnyEvent], Any]:
    return read_rows(lines(rows), context("litellm", **more))


def requests(*rows: Any, now: int = NOW) -> list[Request]:
    return requests_of(read(*rows)[0], now, CONSTANTS)


def results(*rows: Any, now: int = NOW) -> list[tuple[str, str]]:
    return [(request.family, request.result) for request in requests(*rows, now=now)]


# --- requests ---------------------------------------------------------------------------------------------------------


def test_attempts_and_answer_are_one_request():
    assert results(failure(0), failure(2), payload(5)) == [(A, "recovered_same")]
    assert results(failure(0), failure(2)) == [(A, "lost")]
    assert results(payload(0), payload(5)) == [(A, ""), (A, "")]


def test_a_fallback_closes_the_open_request_of_the_asked_model_and_opens_none():
    assert results(failure(0), failure(2), fallback(5)) == [(A, "recovered_other")]
    assert results(failure(0), fallback(5, "g")) == [(A, "recovered_other")]
    assert of(read(fallback(5))[0], "Call")[0].route == "fallback"


def test_a_fallbacks_own_failed_attempts_belong_to_the_request_it_answers():
    assert results(failure(0), failure(2, model=B, model_group="h"), fallback(5)) == [(A, "recovered_other")]
    assert results(failure(0), failure(2, model=B, model_group="h"), fallback(5, "g")) == [(A, "recovered_other")]


def test_interleaved_requests_of_one_session_are_kept_apart_by_their_model_group():
    rows = [failure(0), failure(1, model=B, model_group="h"), payload(3), payload(4, model=B, model_group="h")]
    assert results(*rows) == [(A, "recovered_same"), (B, "recovered_same")]
    named = [failure(0, model=B, model_group="h"), failure(1), fallback(3, "g", model=A, model_group="k")]
    assert results(*named) == [(B, "lost"), (A, "recovered_other")]


def test_sessions_are_kept_apart():
    assert results(failure(0), payload(2, trace_id="t2")) == [(A, "lost"), (A, "")]


def test_a_later_success_does_not_rescue_the_earlier_request():
    gap = CONSTANTS.request_gap // 1_000_000
    assert results(failure(0), payload(gap + 1)) == [(A, "lost"), (A, "")]
    assert results(failure(0), payload(gap - 1)) == [(A, "recovered_same")]


def test_the_end_of_the_log_cuts_a_request():
    assert results(failure(0), now=(START + 5) * 1_000_000) == [(A, "cut")]
    assert not requests(failure(0), now=(START + 5) * 1_000_000)[0].failed
    assert requests(failure(0))[0].failed


def test_a_persons_abort_cuts_a_request():
    assert results(failure(0), failure(1, 499, "ClientDisconnectedError")) == [(A, "cut")]


@pytest.mark.parametrize(
    ("code", "cls", "category", "expected"),
    [
        ("429", "RateLimitError", "vendor_rate_limit", "rate_vendor"),
        ("429", "RateLimitError", "litellm_rate_limit", "rate_own"),
        ("429", "BudgetExceededError", None, "rate_own"),
        ("529", "InternalServerError", None, "overload"),
        ("500", "InternalServerError", None, "5xx"),
        (503, "ServiceUnavailableError", None, "5xx"),
        ("408", "Timeout", None, "timeout"),
        ("", "litellm.Timeout", None, "timeout"),
        ("", "APIConnectionError", None, "network"),
        ("400", "ContextWindowExceededError", None, "context"),
        ("400", "BadRequestError", None, "client_4xx"),
        ("499", "", None, "aborted"),
        (None, CANARY, CANARY, "client_4xx"),
    ],
)
def test_error_classes(code, cls, category, expected):
    events, _ = read(failure(0, code, cls, error={"error_rate_limit_category": category}))
    assert of(events, "AttemptError")[0].error_class == expected


@pytest.mark.parametrize("cls", ["BadRequestError", "ContextWindowExceededError", "BudgetExceededError"])
def test_what_is_no_fault_of_the_provider_opens_no_infra_episode(cls):
    (request,) = requests(failure(0, "400", cls))
    assert (request.result, request.failed) == ("", True)


def test_attempts_of_one_call_id_stay_apart_and_their_copies_do_not():
    events, _ = read(failure(0, litellm_call_id="c"), failure(2, litellm_call_id="c"), failure(2, litellm_call_id="c"))
    assert len({event.key for event in events}) == 2


def test_r21_session_ids_made_up_for_each_call_are_no_sessions():
    """litellm#40851: the session id is made up for each call: no sessions, not thousands."""
    store, facts = stored([payload(n, trace_id=f"random-{n}") for n in range(50)])
    assert observed(store, facts)["conversations"] == 0
    store, facts = stored([payload(0), payload(1), failure(5, trace_id="t2"), payload(6, trace_id="t2")])
    assert observed(store, facts)["conversations"] == 1


def test_r22_no_switch_is_told_from_rows_without_fallback_fields():
    """litellm#16752, #38107: fallbacks left no trace: switch unknown."""
    store, facts = stored([payload(0), payload(5, model=B, model_group="h"), payload(9, model=B, model_group="h")])
    found = observed(store, facts)
    assert set(found["switches"].values()) == {None}
    assert found["episodes"] is found["completion"] is None


def test_r23_a_row_exported_twice_under_new_ids_counts_once():
    """litellm#10588, codex-observability-plugin#87: exported twice with new ids: counted once."""
    store, facts = stored([payload(0), payload(0, id="another"), failure(3), failure(3, id="another")])
    assert observed(store, facts)["calls"] == {"answered": 1, "failed": 1, "side_answered": 0}


def test_r24_rows_with_empty_ids_do_not_overwrite_each_other():
    """litellm#6633: empty request ids: rows do not overwrite each other."""
    rows = [payload(n, id="", litellm_call_id="", request_id="", end_user=user) for n in range(3) for user in "ab"]
    events, _ = read(*rows)
    assert len({event.key for event in events}) == 6


# --- what is read -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "more",
    [
        {"cache_hit": True},
        {"cache_hit": "True"},
        {"metadata": {"internal_call_origin": "guardrail"}},
        {"metadata": {"is_silent_experiment": True}},
        {"is_silent_experiment": "true"},
        {"request_tags": ["litellm-internal-health-check"]},
        {"call_type": "aembedding"},
    ],
)
def test_the_gateways_own_work_is_no_call(more):
    events, ctx = read(payload(0, **more))
    assert events == []
    assert (ctx.rows.read, ctx.rows.rejected, ctx.rows.unknown) == (1, 0, 0)


@pytest.mark.parametrize("value", ["None", "False", "", False, None])
def test_no_cache_hit_whatever_its_spelling(value):
    assert len(of(read(payload(0, cache_hit=value))[0], "Call")) == 1


def test_metadata_and_tags_may_be_json_inside_a_string():
    meta = {"attempted_fallbacks": "1", "spend_logs_metadata": {'ü\n"\\': f"{CANARY} 😀"}}
    for whole in (meta, json.dumps(meta), json.dumps(meta, ensure_ascii=False)):
        for tags in (["windvane:support"], '["windvane:support"]'):
            (event,), _ = read(payload(0, metadata=whole, request_tags=tags))
            assert (event.route, event.kind_hint) == ("fallback", "support")
    for more in ({"metadata": "text"}, {"metadata": "[1]"}, {"request_tags": "text"}, {"request_tags": '{"a": 1}'}):
        assert read(payload(0, **more))[1].rows.rejected == 1


def test_a_table_tells_attempts_only_where_it_counts_them():
    table = {"id": None, "litellm_call_id": None, "hidden_params": None, "request_id": "r"}
    old = failure(0, **table, metadata={"attempted_retries": None})
    new = failure(0, **table, metadata={"attempted_retries": 0})
    assert [requests(row)[0].two_sided for row in (old, new)] == [False, True]
    assert [read(row)[1].facts.infra_possible for row in (old, new)] == [False, True]


def test_a_retried_answer_is_a_recovery_without_failure_rows():
    table = {"id": None, "litellm_call_id": None, "hidden_params": None, "request_id": "r"}
    assert results(payload(0, **table, metadata={"attempted_retries": 2})) == [(A, "recovered_same")]
    assert results(payload(0, **table, metadata={"attempted_retries": 0})) == [(A, "")]


def test_an_own_deployment_needs_an_alias():
    assert of(read(payload(0, model="azure/mine"))[0], "Call")[0].served == "unknown"
    events, _ = read(payload(0, model="azure/mine"), aliases={"azure/mine": B})
    assert of(events, "Call")[0].served == B
    assert of(read(failure(0, model="azure/mine"), aliases={"g": A})[0], "AttemptError")[0].family == A


def test_an_unknown_call_type_is_counted_before_any_field_is_checked():
    events, ctx = read(payload(0, call_type=CANARY, model=7, startTime=None), payload(1, call_type=CANARY))
    assert (ctx.rows.unknown, ctx.rows.rejected, events) == (2, 0, [])


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"startTime": None}, "missing_field"), ({"model": ""}, "missing_field"), ({"model": None}, "missing_field"),
        ({"startTime": "yesterday"}, "bad_time"), ({"startTime": 5}, "bad_time"), ({"endTime": 9e12}, "bad_time"),
        ({"model": 7}, "wrong_type"), ({"metadata": 7}, "not_an_object"), ({"error_information": "x"}, "wrong_type"),
        ({"status": "maybe"}, "bad_value"), ({"end_user": "x" * 300}, "bad_value"),
        ({"litellm_call_id": "x" * 2000}, "bad_value"), ({"startTime": True}, "wrong_type"),
    ],
)  # fmt: skip
def test_version_drift_is_rejected_with_a_reason(more, reason):
    events, ctx = read(payload(0), payload(1, **more), payload(2))
    assert ctx.rows.reasons == {reason: 1}
    assert [type(event).__name__ for event in events] == ["Call", "Gap", "Call"]


def test_missing_optional_fields_change_nothing_else():
    row = payload(0)
    for name in row:
        if name not in ("model", "startTime"):
            events, ctx = read({key: value for key, value in row.items() if key != name})
            assert ctx.rows.rejected == 0
            assert len(of(events, "Call")) == 1
    bare = {"startTime": START, "model": A}
    (event,), ctx = read(bare)
    assert ctx.facts.conversations is None
    assert event.conv is event.turn is None


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (b'{"k": NaN}', "not_json"), (b'{"k": "' + CANARY.encode() + b'\0"}', "nul_byte"),
        (b'{"k": 1}{"k": "' + CANARY.encode() + b'"}', "not_json"), (CANARY.encode(), "not_json"),
        (b'"' + CANARY.encode() + b'"', "not_an_object"), (b'["' + CANARY.encode() + b'"]', "not_an_object"),
        (b'{"silly": "' + CANARY.encode() + b'"}', "missing_field"),
        (b'{"zzz": ' + b"[" * 3000 + b"]" * 3000 + b"}", "too_deep"),
    ],
)  # fmt: skip
def test_one_bad_row_is_counted_and_the_rest_is_read(broken, reason):
    events, ctx = read(payload(0), broken, payload(1))
    assert ctx.rows.reasons == {reason: 1}
    assert len(of(events, "Call")) == 2
    assert CANARY not in repr(events) + repr(ctx.rows)


def test_no_text_of_a_row_is_in_events_counts_or_facts():
    names = ("end_user", "user", "trace_id", "model", "model_group", "api_key", "user_agent")
    meta = {"user_agent": CANARY, "spend_logs_metadata": {CANARY: CANARY}}
    row = failure(0, metadata=meta, request_tags=[CANARY], **dict.fromkeys(names, CANARY))
    whole = {**row, "proxy_server_request": CANARY, "litellm_call_id": CANARY, "team_id": CANARY}
    events, ctx = read(whole, {**whole, "status": "success"})
    assert len(events) == 2
    for name in whole:
        for wrong in (CANARY, [CANARY], {CANARY: CANARY}, 7):
            more, other = read({**whole, name: wrong})
            events += more
            assert CANARY not in repr(other.rows) + repr(other.facts)
    assert CANARY not in repr(events) + repr(ctx.rows) + repr(ctx.facts)


# --- people, modes, kinds ---------------------------------------------------------------------------------------------


PEOPLE = """
[[person]]
staff_id = "s-1"
ids = ["litellm:user:u1"]
[[person]]
staff_id = "s-2"
ids = ["litellm:key:k2"]
[[person]]
staff_id = "s-3"
ids = ["litellm:user:u3"]
[exclude]
staff_ids = ["s-3"]
"""


def test_end_user_before_user_before_key_and_nobody_is_guessed():
    ids = KeyedIds(KEY, parse_people(PEOPLE))
    rows = [
        payload(0, end_user="u1", user="x", api_key="k2"),
        payload(1, end_user="", user="u1"),
        payload(2, end_user=None, model_parameters={"user": "u1"}),
        payload(3, end_user="stranger", api_key="k2"),
        payload(4, end_user=None, metadata={"user_api_key_hash": "k2"}),
        payload(5, end_user="stranger", api_key="strange"),
        payload(6, end_user=None),
        payload(7, end_user="u3"),
        payload(8, end_user="u1", user="u3"),
    ]
    events, ctx = read(*rows, ids=ids)
    one, two = ids.staff("s-1"), ids.staff("s-2")
    assert [event.person for event in events] == [one, one, one, two, two, None, None]
    assert [event.what for event in of(events, "Gap")] == ["person_unknown"] * 2
    assert ctx.rows.read == 7


def test_modes_come_from_the_organisations_lists_only():
    rules = parse_rules(
        '[modes]\nautomation_keys = ["svc"]\nrelay_keys = ["bot"]\ninteractive_keys = ["desk", "svc"]\n'
        'skip_user_agents = ["claude-cli/*"]\n'
    )
    more = {"key_mode": rules.key_mode, "skip_agent": rules.skips_agent}

    def mode(**row: Any) -> tuple[str, str]:
        (event,), _ = read(payload(0, **row), **more)
        return event.mode, event.mode_evidence

    assert mode() == ("unknown", "")
    assert mode(end_user="svc") == ("automation", "automation_keys")
    assert mode(metadata={"user_api_key_alias": "desk"}) == ("interactive", "interactive_keys")
    assert mode(end_user="svc", api_key="desk") == ("automation", "automation_keys")
    assert mode(api_key="bot", end_user="desk") == ("relay", "relay_keys")
    assert read(payload(0, user_agent="claude-cli/2.1"), **more)[0] == []


def test_a_rule_goes_before_the_reserved_tag_and_free_tags_decide_nothing():
    rules = parse_rules('[[kind]]\nsource = "litellm"\ntag = "helpdesk-*"\nkind = "support"\n')
    for tags, kind in ((["x"], None), (["windvane:coding"], "coding"), (["windvane:coding", "helpdesk-1"], "support")):
        (event,), _ = read(payload(0, request_tags=tags), kind_rule=rules.kind_rule)
        assert event.kind_hint == kind


# --- files ------------------------------------------------------------------------------------------------------------


def as_csv(rows: list[dict[str, Any]]) -> bytes:
    out = io.StringIO(newline="")
    names = list(rows[0])
    writer = csv.DictWriter(out, names)
    writer.writeheader()
    writer.writerows(
        {k: json.dumps(v) if isinstance(v, dict | list) else "" if v is None else v for k, v in row.items()}
        for row in rows
    )
    return out.getvalue().encode()


def test_one_log_in_every_framing_gives_the_same_events(tmp_path):
    made = payload(0, metadata={"attempted_fallbacks": 1}), payload(1, request_tags=["a", 'b"'], cache_hit="None")
    rows = [{name: value for name, value in row.items() if name != "hidden_params"} for row in made]
    pretty = "\n".join(json.dumps(row, indent=1) for row in rows).encode()
    array = json.dumps(rows).encode()
    framings = [
        lines(rows), lines(rows).replace(b"\n", b"\r\n"), array, json.dumps(rows, indent=2).encode(), pretty,
        b"\xef\xbb\xbf" + array,
    ]  # fmt: skip
    wanted = [(e.key, e.ts, e.route, e.parent, e.person) for e in read(*rows)[0]]
    for raw in framings:
        events, ctx = read_rows(raw, context("litellm", final=True))
        assert [(e.key, e.ts, e.route, e.parent, e.person) for e in events] == wanted
        assert (ctx.rows.read, ctx.rows.rejected) == (2, 0)
    for raw in (as_csv(rows), b"\xef\xbb\xbf" + as_csv(rows)):
        events, ctx = read_rows(raw, context("litellm"))
        assert [(e.key, e.ts, e.route, e.parent, e.person) for e in events] == wanted
        assert (ctx.rows.read, ctx.offset) == (2, len(raw))
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(lines(rows)))
    with open_log(path) as stream:
        again = list(READERS["litellm"].read(stream, context("litellm")))
    assert [(e.key, e.ts, e.route, e.parent, e.person) for e in again] == wanted


def test_a_csv_row_that_is_no_row_is_counted():
    raw = as_csv([payload(0), payload(1), payload(2)]).split(b"\r\n")
    raw[2] = b"only,two"
    events, ctx = read_rows(b"\r\n".join(raw), context("litellm"))
    assert ctx.rows.reasons == {"wrong_type": 1}
    assert len(of(events, "Call")) == 2
    events, ctx = read_rows(b"a,b\n1,2\n", context("litellm"))
    assert ctx.rows.reasons == {"missing_field": 1}
    cut = as_csv([payload(0), payload(1)])[:-25]  # inside a quoted column
    assert read_rows(cut, context("litellm"))[1].rows.read == 1
    assert read_rows(cut, context("litellm", final=True))[1].rows.reasons == {"truncated": 1}


def test_a_half_written_last_line_waits_for_the_next_run():
    whole = lines([payload(0), payload(1)])
    for cut in range(len(whole) + 1):
        first, ctx = read_rows(whole[:cut], context("litellm"))
        rest, later = read_rows(whole, context("litellm", offset=ctx.offset))
        assert ctx.rows.read + later.rows.read == 2
        assert [e.key for e in first + rest] == [e.key for e in read(payload(0), payload(1))[0]]


def test_a_table_is_recognised_by_its_columns(tmp_path):
    assert recognise(FIXTURE) == ("litellm", None)
    other = tmp_path / "a.csv"
    other.write_text("name,amount\nx,1\n")
    assert recognise(other)[0] is None


ROWS = [failure(0), failure(2), payload(5), failure(9, trace_id="t2"), fallback(12, trace_id="t2"), payload(20),
        failure(30, model=B, model_group="h"), fallback(33, "h", model=A), payload(40, end_user="u2")]  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(st.permutations(range(len(ROWS))), st.integers(0, len(ROWS)), st.booleans())
def test_any_order_split_or_repetition_gives_the_same_requests(order, cut, twice):
    shuffled = [ROWS[i] for i in order]
    parts = [shuffled[:cut], shuffled[cut:], *([shuffled[cut:]] if twice else [])]
    events: dict[tuple[str, bytes], list[bytes]] = {}
    for part in parts:
        for event in read(*part)[0]:
            event.seq = 0
            events.setdefault((type(event).__name__, event.key), []).append(pack(event))
    merged = [merge(sorted(set(copies)))[0] for copies in events.values()]
    found = sorted((one.last, one.family, one.result) for one in requests_of(merged, NOW, CONSTANTS))
    assert found == sorted((one.last, one.family, one.result) for one in requests(*ROWS))


# --- outcomes ---------------------------------------------------------------------------------------------------------


def stored(rows: list[dict[str, Any]]) -> tuple[EventStore, Any]:
    events, ctx = read(*rows)
    store = EventStore.temporary()
    store.add(events)
    return store, ctx.facts


def observed(store: EventStore, facts: Any) -> dict[str, Any]:
    from windvane_client.observed import observe

    return observe(store, facts, store.rows(), catalogue=builtin_catalogue(), rules=Rules(), ids_key=KEY, now=NOW)


def table(rules: Rules, window: tuple[int, int] = (0, NOW)) -> dict[tuple[str, ...], tuple[int, int]]:
    ctx = context("litellm", key_mode=rules.key_mode)
    with EventStore.temporary() as store, open_log(FIXTURE) as stream:
        store.add(READERS["litellm"].read(stream, ctx))
        assert (ctx.rows.rejected, ctx.rows.unknown) == (0, 0)
        rows = list(
            build_outcomes(store, window=window, catalogue=builtin_catalogue(), rules=rules, ids_key=KEY, now=NOW)
        )
    return {(r.signal.value, r.kind, r.recorder, r.basis.value, r.model): (r.successes, r.trials) for r in rows}


def test_a_table_ends_in_rows_where_the_organisation_says_who_works_there():
    """Faults by hand: A failed and recovered (session 3), A was retried (4); B was answered by a fallback (9), B was
    lost (10); a budget and a bad request (11) are no faults."""
    head = (Signal.INFRA_RECOVERY.value, "analysis", "litellm/litellm", "attempts")
    wanted = {(*head, A): (2, 2), (*head, B): (0, 2)}
    assert table(parse_rules('[modes]\ninteractive_keys = ["desk"]\n')) == wanted
    assert table(parse_rules('[modes]\ninteractive_keys = ["litellm"]\n')) == wanted
    assert table(Rules()) == {}
    assert table(parse_rules('[modes]\ninteractive_keys = ["desk"]\nautomation_keys = ["u-1"]\n')) == {}


def test_a_request_counts_in_the_window_in_which_it_ends():
    rules = parse_rules('[modes]\ninteractive_keys = ["desk"]\n')
    middle = 1_767_603_600_000_000 + 200 * 3_600_000_000
    early, late = table(rules, (0, middle)), table(rules, (middle, NOW))
    assert {key[-1] for key in early} == {A}
    assert {key[-1] for key in late} == {B}


def test_one_persons_requests_do_not_change_anothers():
    ids = KeyedIds(KEY, parse_people(PEOPLE))
    own = [failure(0), payload(3)]
    others = [fallback(1, "g", end_user=None, api_key="k2"), payload(2, end_user=None, api_key="k2")]
    events = [e for e in read(*own, *others, ids=ids)[0] if e.person == ids.staff("s-1")]
    assert [one.result for one in requests_of(events, NOW, CONSTANTS)] == ["recovered_same"]
