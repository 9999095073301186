# SPDX-License-Identifier: Apache-2.0
"""Open WebUI exports: which votes are blind, who won, and what a chat's statistics tell."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from reader_support import KEY, NOW, context, of
from reader_support import read as read_rows
from windvane_client.catalogue_builtin import builtin_catalogue
from windvane_client.ids import KeyedIds
from windvane_client.outcomes_table import build_outcomes
from windvane_client.people import parse_people
from windvane_client.preview_sources import recognise
from windvane_client.readers import READERS
from windvane_client.readers.files import open_log
from windvane_client.rules import Rules, parse_rules
from windvane_client.store import EventStore
from windvane_privacy.catalogue import Signal

CANARY = "CANARY-4711"
A, B = "gpt-5.2", "claude-opus-4.6"
FIXTURES = Path(__file__).parent / "fixtures"
T = 1_772_359_200


def feedback(n: int = 1, *, data: dict[str, Any] | None = None, meta: dict[str, Any] | None = None, **more: Any) -> Any:
    base = {"rating": 1, "model_id": A, "sibling_model_ids": [B], "comment": CANARY, "reason": CANARY, "tags": [CANARY]}
    about = {"arena": True, "model_id": "arena-model", "chat_id": "c1", "message_id": f"m{n}"}
    item = {"id": f"f{n}", "user_id": "u1", "type": "rating", "created_at": T, "updated_at": T + n,
            "snapshot": {"chat": {"title": CANARY}}}  # fmt: skip
    return {**item, "data": {**base, **(data or {})}, "meta": {**about, **(meta or {})}, **more}


def read(*items: Any, **more: Any) -> tuple[list[Any], Any]:
    return read_rows(json.dumps(items, indent=1).encode(), context("open_webui", **more))


def votes(*items: Any) -> list[tuple[str, str, str, str]]:
    return [(vote.a, vote.b, vote.winner, vote.blind) for vote in of(read(*items)[0], "Vote")]


def test_an_arena_vote_with_its_own_model_told_is_blind():
    assert votes(feedback()) == [(A, B, "a", "proved")]
    assert votes(feedback(data={"rating": -1})) == [(A, B, "b", "proved")]
    assert votes(feedback(data={"rating": "1"}, meta={"arena": "true"})) == [(A, B, "a", "proved")]


def test_a_visible_name_is_not_blind_even_with_siblings():
    assert votes(feedback(meta={"arena": False, "model_id": A})) == [(A, "unknown", "a", "no")]
    assert votes(feedback(meta={"arena": None})) == [(A, "unknown", "a", "no")]


def test_a_thumb_down_loses_only_against_exactly_one_sibling():
    two = [B, "gpt-5"]
    assert {winner for *_, winner, _ in votes(feedback(data={"rating": -1, "sibling_model_ids": two}))} == {"tie"}
    assert votes(feedback(data={"sibling_model_ids": two})) == [(A, B, "a", "proved"), (A, "gpt-5", "a", "proved")]
    assert votes(feedback(data={"sibling_model_ids": []})) == [(A, "unknown", "a", "no")]
    assert votes(feedback(data={"rating": 0})) == [(A, B, "tie", "proved")]


def test_several_siblings_are_a_comparison_only_in_the_arena():
    two = {"sibling_model_ids": [B, "gpt-5"]}
    for rating in (1, -1):
        for arena in (False, None, "false"):
            with EventStore.temporary() as store:
                store.add(read(feedback(data=two | {"rating": rating}, meta={"arena": arena, "model_id": A}))[0])
                assert outcome_rows(store, Rules(), pooled=True) == {}
    with EventStore.temporary() as store:
        store.add(read(feedback(data=two))[0])
        found = outcome_rows(store, Rules(), pooled=True)
    pairs = {(model, against): counts for (_, _, _, model, against), counts in found.items()}
    assert pairs == {(A, B): (1, 1), (B, A): (0, 1), (A, "gpt-5"): (1, 1), ("gpt-5", A): (0, 1)}
    with EventStore.temporary() as store:  # one sibling more than can have lost it
        store.add(read(feedback(data=two | {"rating": -1}))[0])
        assert outcome_rows(store, Rules(), pooled=True) == {}


def test_r28_an_arena_vote_without_the_rated_model_proves_nothing():
    """open-webui#16643: arena feedback without the rated model: the message's own model or nothing."""
    for own in ("arena-model", "my-arena", None, ""):
        (vote,) = of(read(feedback(data={"model_id": own}, meta={"model_id": own or "arena-model"}))[0], "Vote")
        assert vote.blind == "no"


def test_the_latest_version_of_a_vote_counts_in_any_order():
    for items in ((feedback(1), feedback(1, data={"rating": -1}, updated_at=T + 500)),) * 2:
        for order in (items, items[::-1]):
            with EventStore.temporary() as store:
                store.add(read(*order)[0])
                rows = outcome_rows(store, Rules(), pooled=True)
                assert rows == {("blind_quality", "other", "proved", A, B): (0, 1),
                                ("blind_quality", "other", "proved", B, A): (1, 1)}  # fmt: skip
    with EventStore.temporary() as store:  # a thumb that was taken back
        store.add(read(feedback(1), feedback(1, data={"rating": 0}, updated_at=T + 500))[0])
        assert outcome_rows(store, Rules(), pooled=True) == {}


def test_a_vote_is_interactive_by_itself_unless_a_program_gave_it():
    rules = parse_rules('[modes]\nautomation_keys = ["u1"]\n')
    (vote,) = read(feedback())[0]
    assert (vote.mode, vote.mode_evidence, vote.judge) == ("interactive", "vote", "person")
    (vote,) = read(feedback(), key_mode=rules.key_mode)[0]
    assert (vote.mode, vote.judge) == ("automation", "llm")


def test_free_tags_decide_no_kind_without_a_rule():
    rules = parse_rules(f'[[kind]]\nsource = "open_webui"\ntag = "{CANARY}"\nkind = "support"\n')
    assert read(feedback())[0][0].kind_hint is None
    assert read(feedback(), kind_rule=rules.kind_rule)[0][0].kind_hint == "support"
    assert read(feedback(data={"tags": ["windvane:writing"]}))[0][0].kind_hint == "writing"


def test_people_are_mapped_dropped_or_excluded():
    ids = KeyedIds(KEY, parse_people(
        '[[person]]\nstaff_id = "s-1"\nids = ["open_webui:u1"]\n'
        '[[person]]\nstaff_id = "s-2"\nids = ["open_webui:u2"]\n[exclude]\nstaff_ids = ["s-2"]\n'
    ))  # fmt: skip
    events, ctx = read(
        feedback(1), feedback(2, user_id="u2"), feedback(3, user_id="u3"), feedback(4, user_id=""), ids=ids
    )
    assert [event.person for event in events] == [ids.staff("s-1"), None, None]
    assert [event.what for event in of(events, "Gap")] == ["person_unknown"] * 2
    assert ctx.rows.read == 3


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"id": ""}, "missing_field"), ({"data": None}, "missing_field"), ({"meta": None}, "missing_field"),
        ({"created_at": None, "updated_at": None}, "missing_field"), ({"updated_at": 5}, "bad_time"),
        ({"data": "x"}, "wrong_type"), ({"user_id": 7}, "wrong_type"), ({"user_id": "x" * 300}, "bad_value"),
        ({"chat": {"history": None}}, "missing_field"),
        ({"chat": {"history": {"messages": {"a": {"role": "user", "timestamp": 5}}}}}, "bad_time"),
        ({"chat": {"history": {"messages": {"a": 7}}}}, "wrong_type"),
    ],
)  # fmt: skip
def test_version_drift_is_rejected_with_a_reason(more, reason):
    events, ctx = read(feedback(1), {**feedback(2), **more}, feedback(3))
    assert ctx.rows.reasons == {reason: 1}
    assert [type(event).__name__ for event in events] == ["Vote", "Gap", "Vote"]


def test_an_unknown_type_of_feedback_is_counted_before_any_field_is_checked():
    events, ctx = read(feedback(1, type=CANARY, id=7, data=None))
    assert (events, ctx.rows.unknown, ctx.rows.rejected) == ([], 1, 0)


def test_old_times_in_milliseconds_are_the_same_times():
    (a,), (b,) = read(feedback(0))[0], read(feedback(0, created_at=T * 1000, updated_at=str(T * 1000)))[0]
    assert a.ts == b.ts == T * 1_000_000


@pytest.mark.parametrize("raw", [b"NaN", b'"\xff\xfe', b"[1, 2", b"}{", b'"' + CANARY.encode() + b'"'])
def test_what_is_no_export_gives_no_event_and_no_text(raw):
    ctx = context("open_webui", final=True)
    events, _ = read_rows(b"[\n" + json.dumps(feedback()).encode() + b",\n" + raw, ctx)
    assert len(of(events, "Vote")) == 1
    assert CANARY not in repr(events) + repr(ctx.rows)


def test_a_cut_export_waits_or_is_counted():
    whole = json.dumps([feedback(1), feedback(2)], indent=1).encode()
    for cut in range(0, len(whole), 7):
        ctx = context("open_webui", final=True)
        events, _ = read_rows(whole[:cut], ctx)
        assert len(of(events, "Vote")) + ctx.rows.rejected == ctx.rows.read
        assert read_rows(whole[:cut], context("open_webui"))[1].rows.rejected == 0


def test_an_export_that_grew_is_read_anew_as_a_whole():
    _, ctx = read(feedback(1))
    whole = json.dumps([feedback(1), feedback(2)], indent=1).encode()
    events, later = read_rows(whole, context("open_webui", offset=ctx.offset))
    assert (len(events), later.rows.read) == (2, 2)
    with EventStore.temporary() as store:
        store.add(read(feedback(1))[0])
        store.add(events)
        assert store.counts() == {"vote": 2}


def test_no_text_is_in_events_counts_or_facts():
    whole = feedback(meta={"chat_id": CANARY, "message_id": CANARY}, user_id=CANARY)
    seen = repr(read(whole))
    for name in whole:
        for wrong in (CANARY, [CANARY], {CANARY: CANARY}, 7):
            seen += repr(read({**whole, name: wrong})[0])
    for name in whole["data"]:
        for wrong in (CANARY, [CANARY], {CANARY: CANARY}, 7):
            seen += repr(read(feedback(data={name: wrong}))[0])
    assert CANARY not in seen


def test_memory_does_not_grow_with_the_snapshots(tmp_path):
    def peak(size: int) -> int:
        path = tmp_path / f"{size}.json"
        item = feedback(snapshot={"chat": {"messages": [{"content": 'x\\"{[' * (size // 40)}] * 2}})
        path.write_text(json.dumps([item] * 20))
        tracemalloc.start()
        try:
            with open_log(path) as stream:
                assert len(list(READERS["open_webui"].read(stream, context("open_webui")))) == 20
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(400_000) < 16 << 20


# --- chats ------------------------------------------------------------------------------------------------------------


def chat(turns: list[list[str]], rating: object = None, rated: int = -1, **more: Any) -> Any:
    """A chat with one list of answering models a turn."""
    messages: dict[str, Any] = {}
    answers = []
    for k, models in enumerate(turns):
        messages[f"u{k}"] = {"id": f"u{k}", "role": "user", "content_length": 5, "timestamp": T + 300 * k}
        for j, model in enumerate(models):
            answers.append(f"a{k}{j}")
            messages[answers[-1]] = {
                "id": answers[-1],
                "role": "assistant",
                "model": model,
                "timestamp": T + 300 * k + 9,
            }
    if rating is not None:
        messages[answers[rated]]["rating"] = rating
    history = {"messages": messages, "currentId": answers[-1]}
    item = {"id": "c1", "user_id": "u1", "created_at": T, "updated_at": T + 999, "tags": [], "title": CANARY}
    return {**item, "stats": {"message_count": len(messages)}, "chat": {"history": history}, **more}


def kinds_of(events: list[Any]) -> list[str]:
    return [type(event).__name__ for event in events]


def test_a_chat_gives_prompts_answers_and_the_persons_choice_of_another_model():
    events, _ = read(chat([[A], [B], [B]]))
    assert kinds_of(events) == ["Prompt", "Call", "ModelSet", "Prompt", "Call", "Prompt", "Call"]
    assert (events[2].family, events[2].by) == (B, "person")
    assert [call.served for call in of(events, "Call")] == [A, B, B]


def test_answers_side_by_side_are_no_choice():
    events, _ = read(chat([[A, B], [B], [B]]))
    assert "ModelSet" not in kinds_of(events)
    assert [call.route for call in of(events, "Call")] == ["unknown", "unknown", "direct", "direct"]


def test_only_the_rating_of_the_last_answer_tells_the_end():
    assert of(read(chat([[A], [A]], 1))[0], "Outcome")[0].value == "accepted"
    assert of(read(chat([[A], [A]], -1))[0], "Outcome")[0].value == "rejected"
    assert of(read(chat([[A], [A]], 1, rated=0))[0], "Outcome") == []
    assert of(read(chat([[A], [A]], 0))[0], "Outcome") == []


def test_a_page_of_chats_is_as_many_rows_as_chats():
    page = {"type": "chats", "items": [chat([[A]]), chat([[A]], id="c2"), 7], "total": 3, "page": 1}
    events, ctx = read_rows(json.dumps(page).encode() + b"\n", context("open_webui"))
    assert (ctx.rows.read, ctx.rows.reasons) == (3, {"not_an_object": 1})
    assert len(of(events, "Prompt")) == 2
    lines_ = b"".join(json.dumps(one).encode() + b"\n" for one in page["items"][:2])
    again, _ = read_rows(lines_, context("open_webui"))
    assert [event.key for event in again] == [event.key for event in events if type(event).__name__ != "Gap"]


def test_a_chats_mode_is_unknown_unless_the_organisation_declares_it():
    assert {event.mode for event in read(chat([[A]]))[0]} == {"unknown"}
    rules = parse_rules('[modes]\ninteractive_keys = ["open_webui"]\nautomation_keys = ["u1"]\n')
    assert {event.mode for event in read(chat([[A]]), key_mode=rules.key_mode)[0]} == {"automation"}


# --- outcomes ---------------------------------------------------------------------------------------------------------


def outcome_rows(store: EventStore, rules: Rules, *, pooled: bool = False) -> dict[tuple[str, ...], tuple[int, int]]:
    rows = build_outcomes(
        store, window=(0, NOW), catalogue=builtin_catalogue(), rules=rules, ids_key=KEY, now=NOW, pooled=pooled
    )
    return {
        (row.signal.value, row.kind, row.basis.value, row.model, *([row.against] if row.against else [])): (
            row.successes,
            row.trials,
        )
        for row in rows
    }


def fixture(name: str, rules: Rules) -> dict[tuple[str, ...], tuple[int, int]]:
    path = FIXTURES / name
    ctx = context("open_webui", key_mode=rules.key_mode)
    assert recognise(path) == ("open_webui", None)
    with EventStore.temporary() as store, open_log(path) as stream:
        store.add(READERS["open_webui"].read(stream, ctx))
        assert (ctx.rows.rejected, ctx.rows.unknown) == (0, 0)
        return outcome_rows(store, rules)


def test_a_feedback_export_ends_in_votes():
    """By hand: A won 1-7, B won 8 and 9, A lost 10; two siblings (11), a visible name (12), no rated model (13) and the
    same model twice (14) decide nothing."""
    assert fixture("open_webui_SYNTHETIC.json", Rules()) == {
        (Signal.BLIND_QUALITY.value, "writing", "proved", A, B): (7, 10),
        (Signal.BLIND_QUALITY.value, "writing", "proved", B, A): (3, 10),
    }


def test_chat_statistics_end_in_rows_where_the_organisation_says_that_people_chat():
    """By hand: chats 1 and 2 introduce the models; 3-8 with A and 9-11 with B were accepted, 12 with B was rejected;
    13 was opened with A and left for B; 14 with A was not rated."""
    declared = parse_rules('[modes]\ninteractive_keys = ["open_webui"]\n')
    assert fixture("open_webui_chats_SYNTHETIC.json", declared) == {
        (Signal.COMPLETION.value, "writing", "explicit", A): (6, 6),
        (Signal.COMPLETION.value, "writing", "explicit", B): (3, 4),
        (Signal.SWITCH_AWAY.value, "writing", "recorded", A, B): (7, 8),
        (Signal.SWITCH_AWAY.value, "writing", "recorded", B, A): (4, 4),
    }
    assert fixture("open_webui_chats_SYNTHETIC.json", Rules()) == {}
