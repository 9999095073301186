# SPDX-License-Identifier: Apache-2.0
"""What a source cannot say gives no row, whatever its events hold, and nothing that is unknown becomes a number."""

from __future__ import annotations

from typing import Any

import pytest

from client_events import A, B, Log, rows_of_logs
from windvane_client.capabilities import CAPABILITIES, Capability
from windvane_privacy.catalogue import Signal

KNOWN = sorted(CAPABILITIES)


def everything(source: str) -> Log:
    """Events of every signal, both ways, as no single source writes them all."""
    family = source.partition("/")[0]
    header: dict[str, Any] = {"source": source, "recorder": source, "reader": f"{family}/1.0.0", "kind_hint": "coding"}
    if source == "cline/session":
        header["source"] = "cline"
    log = Log(**header).habit(A, B)
    for i in range(12):
        log.turn(i * 200, A if i % 2 else B, "interrupted" if i % 5 == 0 else "clean")
        for minute, outcome in ((1.2, "ok"), (1.4, "malformed"), (1.6, "failed")):
            log.tool(i * 200 + minute, outcome, A if i % 2 else B)
        if i == 7:
            log.set_model(i * 200 + 1.8)
        log.turn(i * 200 + 2, A if i % 2 and i != 7 else B)
    log.prompt(2600)
    log.error(2601, attempt=1)
    log.call(2602)
    log.outcome(2603, "accepted", evidence="rating")
    log.vote(2700, "a", item=log.conv)
    return log


def may_say(entry: Capability) -> set[str]:
    said = {
        Signal.COMPLETION: entry.completion,
        Signal.SWITCH_AWAY: entry.shows_moves,
        Signal.TOOL_RELIABILITY: entry.tools is not None,
        Signal.INFRA_RECOVERY: entry.infra,
        Signal.BLIND_QUALITY: entry.blind is not None,
    }
    return {str(signal) for signal, yes in said.items() if yes}


@pytest.mark.parametrize("source", KNOWN)
def test_a_source_gives_rows_of_what_it_can_say_and_of_nothing_else(source: str) -> None:
    found = {str(row.signal) for row in rows_of_logs(everything(source))}
    entry = CAPABILITIES[source]
    # A gateway has no turns, so only what needs none.
    expected = may_say(entry) if entry.prompts else found & may_say(entry)
    assert found == expected


@pytest.mark.parametrize("source", KNOWN)
def test_a_log_that_writes_no_attempts_says_nothing_of_faults(source: str) -> None:
    log = everything(source)
    for event in log.events:
        event.reader += "+no-attempts"
    assert not any(row.signal == Signal.INFRA_RECOVERY for row in rows_of_logs(log))


@pytest.mark.parametrize("source", KNOWN)
def test_a_thousand_failures_without_a_possible_success_are_no_trial(source: str) -> None:
    entry = CAPABILITIES[source]
    log = Log(source=source.replace("cline/session", "cline"), recorder=source, kind_hint="coding").habit(A, B)
    for i in range(1000):
        log.turn(i * 200, A, "interrupted")
    rows = rows_of_logs(log, window=(0, 2**62), now=2**62)
    assert any(row.signal == Signal.COMPLETION for row in rows) is entry.completion
