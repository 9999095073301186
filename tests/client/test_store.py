# SPDX-License-Identifier: Apache-2.0
"""The event store: copies merge the same way whatever the order, and nothing raw is in the file."""

from __future__ import annotations

import os
import random
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client_events import START, A, B, Log, rows_of_store, store_of, tag
from windvane_client.constants import DAY, MINUTE
from windvane_client.events import AnyEvent, Call, Rows, Tool
from windvane_client.merge import KINDS, merge, pack, unpack
from windvane_client.outcomes_table import retire_window
from windvane_client.rules import Rules
from windvane_client.store import Cursor, EventStore, Seen
from windvane_privacy.errors import ConfigurationError, KeyFileTooOpen, LedgerFormat, LedgerLocked


def every_kind() -> Log:
    log = Log()
    log.prompt(0)
    log.call(1)
    log.error(2, attempt=1)
    log.tool(3)
    log.set_model(4)
    log.end(5)
    log.outcome(6, "met")
    log.vote(7, "a")
    log.close(8)
    log.gap(9, "rows_rejected", count=3)
    return log


def busy_world() -> list[AnyEvent]:
    logs = []
    for person in ("ana", "bob"):
        own = Log(person, f"{person}-c").habit(A, B)
        for i in range(6):
            at = i * 200
            own.prompt(at)
            own.call(at + 0.5, A if i % 2 else B, key=f"{person}{i}m")
            own.call(at + 0.6, A if i % 2 else B, key=f"{person}{i}m")
            own.tool(at + 1, "no_result", key=f"{person}{i}t")
            own.tool(at + 2, "ok" if i else "malformed", "unknown", "unknown", key=f"{person}{i}t", result=at + 2)
            own.error(at + 3, attempt=1)
            own.call(at + 4, A)
            own.end(at + 5)
        logs.append(own)
    return [event for one in logs for event in one.events]


def test_every_kind_survives_the_disk() -> None:
    events = every_kind().events
    assert {type(event) for event in events} == set(KINDS)
    for event in events:
        again = unpack(pack(event))
        assert isinstance(again, type(event))
        assert pack(again) == pack(event)
        assert {n: getattr(again, n) for n in event.__struct_fields__} == {
            n: getattr(event, n) for n in event.__struct_fields__
        }
    with store_of(events) as store:
        (conversation,) = store.conversations(tag("ana"))
        assert [pack(event) for event in conversation.events] == [pack(event) for event in events]


def test_conversations_come_in_order_of_time() -> None:
    log = every_kind()
    with store_of(reversed(log.events)) as store:
        (conversation,) = store.conversations(tag("ana"))
        assert [e.ts for e in conversation.events] == sorted(e.ts or 0 for e in log.events)


def call(minute: float, served: str, **over: object) -> bytes:
    return pack(Log().call(minute, served, key="m", **over))


def test_the_first_copy_fixes_the_time_and_the_last_one_the_answer() -> None:
    merged, _ = merge([call(2, B, status="error"), call(1, A)])
    assert isinstance(merged, Call)
    assert (merged.ts, merged.served, merged.status) == ((START + 40 * DAY) + MINUTE, B, "error")


def test_a_known_model_beats_an_unknown_one() -> None:
    merged, _ = merge([call(1, A), call(2, "unknown")])
    assert isinstance(merged, Call)
    assert merged.served == A


def test_the_main_copy_beats_the_side_copy() -> None:
    merged, _ = merge([call(2, A), call(1, B, thread="side"), call(3, B, thread="side")])
    assert isinstance(merged, Call)
    assert (merged.thread, merged.served, merged.ts) == ("main", A, START + 40 * DAY + 2 * MINUTE)


def test_a_result_beats_the_call_whatever_comes_later() -> None:
    log = Log()
    log.tool(1, "no_result", A, key="t")
    log.tool(2, "runtime", "unknown", "unknown", key="t", result=2)
    log.tool(9, "no_result", A, key="t")
    for order in (log.events, log.events[::-1]):
        merged, _ = merge([pack(event) for event in order])
        assert isinstance(merged, Tool)
        assert (merged.outcome, merged.family, merged.tool_class) == ("runtime", A, "edit")
        assert merged.result_ts == log.start + 2 * MINUTE


@given(st.permutations(range(6)), st.integers(0, 5))
def test_merging_is_a_function_of_the_set_of_copies(order: list[int], again: int) -> None:
    copies = [
        call(1, A), call(2, B, thread="side"), call(2, "unknown", status="error"), call(3, B, route="fallback"),
        call(3, A, mode="unknown"), call(1, A, client="other"),
    ]  # fmt: skip
    shuffled = [copies[i] for i in order]
    assert pack(merge(shuffled)[0]) == pack(merge(copies)[0])
    assert merge(shuffled)[1] == merge(copies)[1]
    with EventStore.temporary() as store:
        store.add(map(unpack, [*shuffled, copies[again]]))
        assert store.counts() == {"call": 1}
        (conversation,) = store.conversations(tag("ana"))
        assert pack(conversation.events[0]) == pack(merge(copies)[0])


def test_the_same_id_under_two_persons_stays_two() -> None:
    ana, bob = Log("ana"), Log("bob")
    ana.call(1, key="shared")
    bob.call(1, key="shared")
    with store_of(ana, bob) as store:
        assert store.counts() == {"call": 2}
        assert store.shared_ids() == 1


def test_equal_content_is_not_equal_id() -> None:
    log = Log()
    log.tool(1, key="one")
    log.tool(1, key="two")
    with store_of(log) as store:
        assert store.counts() == {"tool": 2}


@settings(max_examples=15)
@given(st.integers(0, 2**32), st.integers(1, 5), st.booleans())
def test_any_order_split_and_repetition_gives_the_same_outcomes(seed: int, runs: int, twice: bool) -> None:
    events = busy_world()
    with store_of(events) as store:
        expected = rows_of_store(store)
    assert {row.signal for row in expected} >= {"completion", "tool_reliability", "infra_recovery"}
    shuffled = [*events, *events] if twice else list(events)
    random.Random(seed).shuffle(shuffled)
    with EventStore.temporary() as store:
        for run in range(runs):
            store.add(shuffled[run::runs])
            store.people()  # reading in between must not freeze anything
        assert rows_of_store(store) == expected


def test_a_row_that_many_rows_stand_for_keeps_its_links() -> None:
    log = Log()
    log.prompt(0, key="p", parent=None)
    log.call(1, key="m", parent=tag("p"))
    log.call(2, key="m", parent=tag("m"))
    with store_of(log) as store:
        (conversation,) = store.conversations(tag("ana"))
        assert conversation.links == {tag("p"): None, tag("m"): tag("p")}


def test_events_of_nobody_are_kept_for_coverage_and_belong_to_no_person() -> None:
    with store_of(Log(person="").events or every_kind().events) as store:
        store.add([Log(person="").prompt(0)])
        assert store.people() == [tag("ana")]
        assert len(list(store.conversations(None))) == 1


def test_the_file_is_private_and_opened_by_one_process(tmp_path: Path) -> None:
    path = tmp_path / "collection.db"
    with EventStore.open(path) as store:
        store.add(every_kind().events)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with pytest.raises(LedgerLocked):
            EventStore.open(path)
    with EventStore.open(path) as store:
        assert store.counts()["prompt"] == 1
    path.chmod(0o640)
    with pytest.raises(KeyFileTooOpen):
        EventStore.open(path)


def test_a_file_that_is_no_store_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "collection.db"
    path.write_bytes(os.urandom(5000))
    path.chmod(0o600)
    with pytest.raises(ConfigurationError):
        EventStore.open(path)
    link = tmp_path / "link.db"
    link.symlink_to(path)
    with pytest.raises(ConfigurationError):
        EventStore.open(link)


def test_another_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "collection.db"
    with EventStore.open(path) as store:
        store.set_fact("format", "99")
    with pytest.raises(LedgerFormat):
        EventStore.open(path)


def test_a_crash_keeps_cursor_rows_and_events_together(tmp_path: Path) -> None:
    path = tmp_path / "collection.db"
    cursor = Cursor(tag("file"), 10, 5, 10, bytes(32))

    def crash(store: EventStore) -> None:
        with store.transaction():
            store.add(every_kind().events)
            store.add_rows("claude_code", Rows(read=5))
            store.set_cursor(cursor)
            raise KeyboardInterrupt

    with EventStore.open(path) as store:
        with pytest.raises(KeyboardInterrupt):
            crash(store)
        assert store.people() == []
        assert store.cursor(tag("file")) is None
        assert store.rows().read == 0
        with store.transaction():
            store.add(every_kind().events)
            store.set_cursor(cursor)
        assert store.cursor(tag("file")) == cursor
        assert list(store.cursors()) == [cursor]
        store.drop_cursor(tag("file"))
        assert store.cursor(tag("file")) is None


def test_row_counts_add_up() -> None:
    with EventStore.temporary() as store:
        store.add_rows("claude_code", Rows(read=5, rejected=2, reasons={"bad_time": 2}), "2026-W27")
        store.add_rows("claude_code", Rows(read=3, unknown=1, rejected=1, reasons={"bad_time": 1}), "2026-W27")
        store.add_rows("canonical", Rows(read=1, foreign=1))
        assert store.rows("claude_code") == Rows(read=8, rejected=3, unknown=1, reasons={"bad_time": 3})
        assert store.rows() == Rows(read=9, rejected=3, unknown=1, foreign=1, reasons={"bad_time": 3})


def test_rules_are_frozen_inside_a_window() -> None:
    with EventStore.temporary() as store:
        store.freeze_rules("2026Q3", "aa")
        store.freeze_rules("2026Q3", "aa")
        store.freeze_rules("2026Q4", "bb")
        with pytest.raises(ConfigurationError):
            store.freeze_rules("2026Q3", "bb")


def test_forgetting_a_person_leaves_no_byte_of_them(tmp_path: Path) -> None:
    path = tmp_path / "collection.db"
    with EventStore.open(path) as store:
        store.add(busy_world())
        store.keep_first_seen(tag("bob"), {A: Seen(1, 2)})
        store.forget(tag("bob"))
        assert store.people() == [tag("ana")]
        assert store.first_seen(tag("bob")) == {}
    assert tag("bob") not in path.read_bytes()
    assert tag("ana") in path.read_bytes()


def test_history_keeps_the_earliest_and_the_latest() -> None:
    with EventStore.temporary() as store:
        store.keep_first_seen(tag("ana"), {A: Seen(5, 6)})
        store.keep_first_seen(tag("ana"), {A: Seen(7, 9), B: Seen(1, 1)})
        assert store.first_seen(tag("ana")) == {A: Seen(5, 9), B: Seen(1, 1)}
        store.forget_unused(5)
        assert store.first_seen(tag("ana")) == {A: Seen(5, 9)}


def test_a_retired_window_is_gone_and_the_next_one_counts_the_same() -> None:
    window, following = (START, START + 50 * DAY), (START + 50 * DAY, START + 100 * DAY)
    log = Log(start=START + 35 * DAY).habit(A, B)
    log.turn(0, A)
    log.turn(5, B)
    late = Log(conv="over the edge", start=window[1] - 20 * MINUTE)
    late.turn(0, A)
    late.tool(30)
    late.turn(31, B)
    after = Log(conv="after", start=window[1] + 2 * DAY)
    for i in range(3):
        after.turn(i * 200, A)
        after.turn(i * 200 + 5, A)
    with store_of(log, late, after) as store:
        first = rows_of_store(store, window=window)
        expected = rows_of_store(store, window=following)
        assert first
        assert {row.signal for row in expected} == {"completion", "switch_away", "tool_reliability"}
        deleted = retire_window(store, window=window, rules=Rules(), ids_key=bytes(32), now=window[1] + 20 * DAY)
        assert deleted == len(log.events)
        assert rows_of_store(store, window=window) == []
        assert rows_of_store(store, window=following) == expected


def test_memory_does_not_grow_with_the_store() -> None:
    """A 10 times larger store with conversations of the same size costs no more Python memory to read."""
    import tracemalloc

    def peak(conversations: int) -> int:
        with EventStore.temporary() as store:
            for i in range(conversations):
                log = Log(conv=f"c{i}")
                for minute in range(20):
                    log.tool(minute)
                store.add(log.events)
            tracemalloc.start()
            assert sum(len(c.events) for c in store.conversations(tag("ana"))) == conversations * 20
            found = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            return found

    assert peak(200) < 1.5 * peak(20) + 100_000
