# SPDX-License-Identifier: Apache-2.0
"""Kinds of work, decided per workspace and before any outcome is looked at (docs/signals.md, kinds of work).

Rules kept here:
* the unit is the workspace: a person's project with one recorder (or a conversation where there is no project), over
  the whole window and all models together, so that no model's behaviour in one episode chooses its own comparison;
* first hit wins: rule or reserved tag, tool profile, the source's default;
* tool outcomes and models never enter: only the class of each call.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from windvane_client.capabilities import capability
from windvane_client.constants import Constants
from windvane_client.events import Event
from windvane_client.rules import Rules

WORK_CLASSES = frozenset({"edit", "run", "data", "web", "doc", "ticket"})

Workspace = tuple[str, bytes]
"""(recorder, project or conversation)."""


def workspace_of(event: Event) -> Workspace:
    """The workspace that an event belongs to."""
    return (event.recorder, event.project or event.conv or b"")


@dataclass(slots=True)
class Profile:
    """What is known of one workspace: its source's default, its hints, and its work calls by class."""

    default: str
    hints: Counter[str] = field(default_factory=Counter)
    work: Counter[str] = field(default_factory=Counter)


def profile_for(event: Event, rules: Rules) -> Profile:
    """An empty profile for the workspace of `event`. A rule on source, recorder or client gives its first hint."""
    profile = Profile(capability(event.source, event.recorder).default_kind)
    hint = rules.kind_rule({"source": event.source, "recorder": event.recorder, "client": event.client})
    if hint is not None and event.kind_hint is None:
        profile.hints[hint] += 1
    return profile


def decided_by(profile: Profile, constants: Constants) -> str:
    """What decides the kind of a workspace: `rule_or_tag`, `tool_profile` or `default_of_source`."""
    if profile.hints:
        return "rule_or_tag"
    return "tool_profile" if sum(profile.work.values()) >= constants.kind_min_work_calls else "default_of_source"


def kind_of(profile: Profile, constants: Constants) -> str:
    """The kind of work of a workspace; `other` is everything undecided."""
    if profile.hints:
        # One workspace with two hints: the more frequent one, then the alphabet, so that order cannot matter.
        return min(profile.hints, key=lambda kind: (-profile.hints[kind], kind))
    total = sum(profile.work.values())
    if total < constants.kind_min_work_calls:
        return profile.default
    share = {name: profile.work[name] / total for name in WORK_CLASSES}
    if share["edit"] + share["run"] >= constants.kind_share:
        return "coding"
    if share["data"] >= constants.kind_share:
        return "analysis"
    if share["web"] >= constants.kind_share and share["edit"] < constants.research_edit_max:
        return "research"
    if share["doc"] >= constants.kind_share:
        return "writing"
    if share["ticket"] >= constants.kind_share:
        return "support"
    return "other"
