# SPDX-License-Identifier: Apache-2.0
"""When a person opened conversations: another one in the same client ends the one before.

Rules kept here:
* one person's own prompts only;
* conversations of two programs do not end each other.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable

from windvane_client.episodes import Split
from windvane_client.events import MAIN, Prompt

Starts = dict[str, tuple[list[int], list[bytes]]]


def starts_of(prompts: Iterable[tuple[bytes | None, Prompt]]) -> Starts:
    """When the person opened each conversation, by client, in order of time."""
    first: dict[bytes, tuple[int, str]] = {}
    for conv, prompt in prompts:
        if conv is not None and prompt.ts is not None and prompt.thread == MAIN:
            first.setdefault(conv, (prompt.ts, prompt.client))
    by_client: Starts = defaultdict(lambda: ([], []))
    for conv, (ts, client) in sorted(first.items(), key=lambda item: (item[1][0], item[0])):
        times, convs = by_client[client]
        times.append(ts)
        convs.append(conv)
    return dict(by_client)


def next_start(cut: Split, conv: bytes | None, starts: Starts) -> int | None:
    """When the person next opened another conversation in the same client, after the last episode's last event."""
    episode = cut.episodes[-1]
    times, convs = starts.get(episode.turns[0].prompt.client, ([], []))
    for at in range(bisect_right(times, episode.last), len(times)):
        if convs[at] != conv:
            return times[at]
    return None
