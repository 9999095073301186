# SPDX-License-Identifier: Apache-2.0
"""Files that share a transaction: one that fails takes back only its own, a crash takes back all with their cursors."""

from __future__ import annotations

from pathlib import Path

import pytest

from client_events import START, Log, tag
from windvane_client.events import Rows
from windvane_client.store import Cursor, EventStore


def work(conv: str) -> Log:
    log = Log(conv=conv, start=START)
    log.turn(0)
    return log


def read_file(store: EventStore, name: str, *, fails: type[BaseException] | None = None) -> None:
    """What collecting does with one file."""
    with store.transaction():
        store.add(work(name).events)
        store.add_rows("claude_code", Rows(read=3))
        store.set_cursor(Cursor(tag(name), 10, 5, 10, bytes(32)))
        if fails is not None:
            raise fails


def test_a_file_that_fails_takes_back_only_its_own() -> None:
    with EventStore.temporary() as store:
        with store.transaction():
            read_file(store, "first")
            with pytest.raises(OSError):
                read_file(store, "second", fails=OSError)
            read_file(store, "third")
        assert [cursor.file_key for cursor in store.cursors()] == sorted([tag("first"), tag("third")])
        assert store.rows().read == 6
        assert store.counts() == {"prompt": 2, "call": 2, "turn_end": 2}


def test_a_crash_takes_back_every_file_with_its_cursor(tmp_path: Path) -> None:
    def run(store: EventStore) -> None:
        with store.transaction():
            read_file(store, "first")
            read_file(store, "second", fails=KeyboardInterrupt)

    with EventStore.open(tmp_path / "collection.db") as store:
        read_file(store, "before")
        with pytest.raises(KeyboardInterrupt):
            run(store)
    with EventStore.open(tmp_path / "collection.db") as store:
        assert [cursor.file_key for cursor in store.cursors()] == [tag("before")]
        assert store.rows().read == 3
        assert store.counts() == {"prompt": 1, "call": 1, "turn_end": 1}


def test_the_revision_moves_with_events_and_history_only() -> None:
    with EventStore.temporary() as store:
        seen = [store.revision]
        store.set_fact("last_run", "1")
        store.set_cursor(Cursor(tag("f"), 10, 5, 10, bytes(32)))
        store.add([])
        assert store.revision == seen[-1]
        for change in (
            lambda: store.add(work("a").events),
            lambda: store.keep_first_seen(tag("ana"), {}),
            lambda: store.forget_unused(0),
            lambda: store.delete_window(START + 1),
            lambda: store.forget(tag("ana")),
        ):
            change()
            seen.append(store.revision)
        assert seen == sorted(set(seen))
