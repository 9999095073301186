# SPDX-License-Identifier: Apache-2.0
"""One conversation written by two programs: each kind of event from the first of them that tells it.

Rules kept here:
* a transcript comes before telemetry, telemetry before a gateway: one prompt is never two turns; of Gemini CLI the
  telemetry comes first, since its session files name no mode;
* what only the later one tells (the failed attempts of Codex) is taken from there;
* decided inside one conversation of one person, by the kinds of event that are there, never by their content;
* events without a conversation are no conversation together: none of them stands for another.
"""

from __future__ import annotations

from collections.abc import Sequence

from windvane_client.events import AnyEvent, Gap

_AFTER_TELEMETRY = frozenset({"litellm", "langfuse", "mapping", "gemini_cli"})
"""Gateways, and the session files of Gemini CLI: its telemetry says more, above all whether a person is there."""


def first_tellers(events: Sequence[AnyEvent]) -> list[AnyEvent]:
    """The events of one conversation without what a later kind of recorder says again. Gaps stay: each is its own."""
    ranks = {source: _rank(source) for source in {event.source for event in events}}
    if len(set(ranks.values())) < 2:
        return list(events)
    best: dict[str, int] = {}
    for event in events:
        kind, rank = _kind(event), ranks[event.source]
        best[kind] = min(rank, best.get(kind, rank))
    return [event for event in events if isinstance(event, Gap) or ranks[event.source] == best[_kind(event)]]


def _kind(event: AnyEvent) -> str:
    return str(event.__struct_config__.tag)


def _rank(source: str) -> int:
    if source.startswith("otlp"):
        return 1
    return 2 if source in _AFTER_TELEMETRY else 0
