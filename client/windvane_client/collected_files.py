# SPDX-License-Identifier: Apache-2.0
"""Collectors' files end with the window whose rows they hold.

Rules kept here:
* a file is deleted only when every row of it was read and it was last written before the window ended;
* a file that may not be deleted is left: its rows belong to a window that is over and are not stored again.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from windvane_client.ids import KeyedIds
from windvane_client.readers.collected import SOURCE, CollectedReader
from windvane_client.settings import LogFolder
from windvane_client.store import EventStore


def delete_collected(store: EventStore, ids: KeyedIds, logs: Sequence[LogFolder], until: int) -> None:
    """Delete what was read to the end and written before `until`, the end of a window that is over, µs UTC."""
    for path in CollectedReader().discover([Path(one.path) for one in logs if one.source == SOURCE]):
        with suppress(OSError):
            status = path.stat()
            cursor = store.cursor(ids.file(str(path)))
            read = cursor is not None and cursor.offset >= cursor.size == status.st_size
            if read and status.st_mtime_ns // 1000 < until:
                path.unlink()
