# SPDX-License-Identifier: Apache-2.0
"""Canonical events: the content-free records that every reader produces (docs/signals.md).

Rules kept here:
* no field can hold a prompt, an answer, a path, a tool argument or an error text: every field is an id (16 bytes, keyed
  hash), a number, a time or a word of a closed list;
* times are microseconds UTC; a missing time is None, never "now";
* an event counts once, by (person, kind of event, `key`), however often it is written.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

VERSION = 1

MAIN, SIDE = "main", "side"
MODES = ("interactive", "automation", "relay", "unknown")
CLIENTS = (
    "claude_cli", "claude_ide", "claude_desktop", "claude_sdk", "codex_cli", "codex_ide", "codex_desktop", "codex_exec",
    "gemini_cli", "cline", "roo", "open_webui", "litellm", "langfuse", "continue", "other",
)  # fmt: skip
PROMPT_ORIGINS = ("human", "queued", "command", "system", "sdk", "scheduled")
PERSON_ORIGINS = frozenset({"human", "queued"})
OPENING_ORIGINS = frozenset({"human", "queued", "command"})
CALL_STATUS = ("ok", "error", "aborted")
ROUTES = ("direct", "router", "fallback", "skill", "subagent", "background", "unknown")
ERROR_CLASSES = (
    "rate_vendor", "rate_own", "overload", "5xx", "timeout", "network", "client_4xx", "aborted", "context",
)  # fmt: skip
INFRA_CLASSES = frozenset({"rate_vendor", "overload", "5xx", "timeout", "network"})
TOOL_CLASSES = ("edit", "run", "data", "web", "doc", "ticket", "read", "plan", "mcp", "unknown")
TOOL_OUTCOMES = (
    "ok", "runtime", "malformed", "precondition", "failed", "denied", "hook_block", "tool_infra", "no_result",
    "unclassified",
)  # fmt: skip
MODEL_SETTERS = ("person", "harness", "policy", "refusal", "fallback", "unknown")
"""Who or what set a model; `refusal`, `fallback`: the program moved, after a refusal or because a model failed."""
TURN_ENDS = ("clean", "interrupted", "error", "limit", "unknown")
OUTCOME_VALUES = ("accepted", "rejected", "met", "failed", "submitted", "merged")
GAPS = (
    "rows_rejected", "rows_unknown", "files_missing", "retention_cut", "schema_unknown", "person_unknown", "shared_id",
    "parent_missing", "fork_parent_missing", "subagent_file_missing", "source_silent", "time_ambiguous",
    "rules_changed",
)  # fmt: skip


class Event(msgspec.Struct, kw_only=True, tag_field="k", omit_defaults=True, gc=False):
    """Header of every event. `seq` is the reading order inside a file: order is (ts, parent link, seq)."""

    source: str
    recorder: str
    reader: str
    """`name/version` of the reader, so that a re-read after a fix can be told apart."""
    key: bytes
    """16 bytes: keyed hash of the event's natural id; duplicates merge inside one person."""
    person: bytes | None = None
    conv: bytes | None = None
    project: bytes | None = None
    thread: str = MAIN
    ts: int | None = None
    seq: int = 0
    mode: str = "unknown"
    mode_evidence: str = ""
    """Name of the field that told the mode, never its value."""
    client: str = "other"
    kind_hint: str | None = None
    turn: bytes | None = None
    """Keyed id of the turn; readers without turn ids leave it None and order decides."""
    parent: bytes | None = None
    """`key` of the row that this one answers, where the log links rows (Claude Code: the row's uuid chain)."""
    row: bytes | None = None
    """Keyed id of the log row, the target of `parent` links; None where the log has none."""


class Prompt(Event, tag="prompt"):
    """Input that may open a turn."""

    origin: str


class Call(Event, tag="call"):
    """One model answer. `served` is a family id, `other`, `unknown` or `synthetic` (never stored as synthetic)."""

    served: str
    requested: str | None = None
    status: str = "ok"
    route: str = "direct"


class AttemptError(Event, tag="attempt_error"):
    """One failed attempt. `request` groups the attempts of one logical request."""

    error_class: str
    family: str
    request: bytes | None = None
    attempt: int | None = None
    final: bool = False


class Tool(Event, tag="tool"):
    """One tool call with its outcome; the call row and the result row merge by `key`."""

    family: str
    tool_class: str
    outcome: str
    call: bytes | None = None
    """`key` of the issuing `Call`."""
    origin: str = "unknown"
    result_ts: int | None = None
    """When the result arrived (idle time is not counted while a call is pending)."""


class ModelSet(Event, tag="model_set"):
    """The model was set. `by`: a word of MODEL_SETTERS."""

    family: str
    by: str


class TurnEnd(Event, tag="turn_end"):
    """How a turn ended, where the log says so."""

    how: str


class Outcome(Event, tag="outcome"):
    """Explicit evidence about the work. `evidence` is the name of the log's field."""

    value: str
    evidence: str


class Vote(Event, tag="vote"):
    """A comparison of two answers. `winner`: a, b, tie. `blind`: proved, attested, no. `judge`: person, llm."""

    a: str
    b: str
    winner: str
    blind: str
    item: bytes
    judge: str = "person"


class Close(Event, tag="close"):
    """The conversation was closed. `how`: explicit, new_conv, idle, log_end."""

    how: str


class Gap(Event, tag="gap"):
    """Something could not be seen. `what` is one of GAPS."""

    what: str
    count: int = 1
    since: int | None = None
    until: int | None = None


AnyEvent = Prompt | Call | AttemptError | Tool | ModelSet | TurnEnd | Outcome | Vote | Close | Gap


class Rows(msgspec.Struct):
    """Row counts of one file. read = used + rejected + unknown + foreign."""

    FIELDS: ClassVar[tuple[str, ...]] = ("read", "rejected", "unknown", "foreign")

    read: int = 0
    rejected: int = 0
    unknown: int = 0
    foreign: int = 0
    reasons: dict[str, int] = msgspec.field(default_factory=dict)
    """Rejections by reason code (a closed list in `readers/lines.py`)."""

    def add(self, more: Rows) -> None:
        """Add the counts of another file, reasons included."""
        for name in self.FIELDS:
            setattr(self, name, getattr(self, name) + getattr(more, name))
        for reason, count in more.reasons.items():
            self.reasons[reason] = self.reasons.get(reason, 0) + count
