# SPDX-License-Identifier: Apache-2.0
"""Every tunable number of the signals, in one place (docs/signals.md, constants).

Rules kept here:
* numbers that decide what counts stand here and nowhere else; none of them is fitted to data of a federation;
* times are microseconds, as in the events.
"""

from __future__ import annotations

from dataclasses import dataclass

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR


@dataclass(frozen=True, slots=True)
class Constants:
    """See the names. "Assumption" marks a value to be tuned on members' data, by a new version of the rules."""

    idle: int = 60 * MINUTE
    """No event of either side for this long closes an episode. Convention."""
    cause_lookback: int = 30 * MINUTE
    """How far before a change of model an error explains it. Assumption."""
    novelty: int = 14 * DAY
    """A model this new to a person is being tried, not chosen. Assumption."""
    policy_span: int = 7 * DAY
    """How long after a declared policy a change follows it. Assumption."""
    unknown_cause_max: float = 0.20
    """Above this share of changes of unknown cause a person gives no switch trials. Assumption."""
    choice_span: int = 30 * DAY
    """Two families opened within this span show that there was a choice. Assumption."""
    min_person_turns: int = 2
    """Person turns that an episode needs before leaving it can mean anything. Assumption."""
    tool_calls_per_episode: int = 50
    """Tool calls per episode and family that enter, chosen by a keyed order. Assumption."""
    kind_min_work_calls: int = 20
    """Work calls before a tool profile decides the kind of work. Assumption."""
    kind_share: float = 0.5
    """Share of work calls that decides. Assumption."""
    research_edit_max: float = 0.1
    """Above this share of edits, web searching is not research. Assumption."""
    request_gap: int = 10 * MINUTE
    """A gateway's next attempt this long after the one before belongs to another request. Assumption."""
    late_evidence: int = 14 * DAY
    """How long after its close an episode takes a rating. Assumption."""
    demote_hours: int = 16
    """More active hours in one day than this are not one person at a keyboard. Assumption."""
    demote_fast_prompts: int = 20
    """So many successive prompts, each under `demote_fast_gap` after the one before. Assumption."""
    demote_fast_gap: int = 5 * SECOND
    demote_equal_starts: int = 10
    """So many conversation starts with equal spacing, within `demote_equal_within`. Assumption."""
    demote_equal_within: int = 2 * SECOND
    retention_after_window: int = 60 * DAY
    first_seen_kept: int = 400 * DAY


CONSTANTS = Constants()
