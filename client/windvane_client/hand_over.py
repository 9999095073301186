# SPDX-License-Identifier: Apache-2.0
"""An envelope that was revealed and that the log does not show as accepted: the same bytes for two guardians.

Rules kept here:
* nothing is drawn or changed: what is handed over are the bytes that the coordinator was to get;
* first the coordinator has its time: 48 hours of the log from the first log after the reveal that lacked the entry;
* the time is kept once and never moved; it decides nothing but how long a person is asked to wait.

Two guardians, because the round goes on without one.

Source: docs/protocol.md (an envelope that is ignored).
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from windvane_client.agent import MemberAgent
from windvane_client.round_log import accepted_leaf
from windvane_privacy import log
from windvane_privacy.errors import ConfigurationError, IllegalTransition, NotReady, RoundBurned, StateExists
from windvane_privacy.keyfiles import read_secret, write_secret
from windvane_privacy.leaf import is_aborted
from windvane_privacy.ledger_schema import RoundEntry, State
from windvane_privacy.log import read_leaf

WAIT = 48 * 3600
"""Seconds by the log's clock, which is its witnesses'."""


def note_unanswered(agent: MemberAgent, round_id: str) -> None:
    """Keep the time of the newest log that was seen, if the round is revealed and not ended; the first one stays."""
    entry, seen = agent.ledger.round(round_id), agent.ledger.last_head
    if entry is None or entry.state is not State.REVEALED or seen is None:
        return
    head = log.read_head(seen, agent.state.log_policy(agent.state.policy))
    try:
        write_secret(_path(agent, round_id), str(head.time).encode())
    except StateExists:
        pass


def hand_over(agent: MemberAgent, round_id: str) -> bytes:
    """The envelope of a revealed round that the log does not show as accepted, two days later.

    Raises:
        NotReady: nothing was revealed, or the two days are not over.
        IllegalTransition: the log shows it as accepted, or the coordinator stopped the round.
        RoundBurned: the round has ended for us.
        LogError: see `MemberAgent.scan`.
    """
    scan = agent.scan()
    entry = agent.ledger.round(round_id)
    if entry is None or entry.state in (State.DRAWN, State.COMMITTED):
        raise NotReady("Nothing was revealed yet: run `windvane member submit` first.")
    if entry.state is State.BURNED:
        raise RoundBurned
    coordinator = bytes.fromhex(agent.state.policy.coordinator)
    if entry.state is State.ACCEPTED or accepted_leaf(scan.leaves, round_id, _member(entry), coordinator) is not None:
        raise IllegalTransition("The log shows your envelope as accepted; nothing is to be handed over.")
    if is_aborted(scan.leaves, round_id, coordinator):
        raise IllegalTransition("The coordinator stopped the round.")
    note_unanswered(agent, round_id)
    over = _since(_path(agent, round_id)) + WAIT
    if scan.head.time < over:
        moment = datetime.fromtimestamp(over, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        raise NotReady(f"The coordinator has its time until {moment} by the log's clock.")
    return agent.ledger.reveal(round_id)


def _member(entry: RoundEntry) -> int:
    if entry.commitment_leaf is None:
        raise IllegalTransition("The round has no commitment of ours.")
    return int(read_leaf(entry.commitment_leaf).fields["member"])


def _since(path: Path) -> int:
    try:
        return int(read_secret(path).decode("ascii"))
    except ValueError:
        raise ConfigurationError(f"The file {path.name} does not hold a time.") from None


def _path(agent: MemberAgent, round_id: str) -> Path:
    if not log.is_round(round_id):
        raise ConfigurationError("The name of the round is malformed.")
    return agent.state.folder / f"unanswered-{round_id}"
