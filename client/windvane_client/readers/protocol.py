# SPDX-License-Identifier: Apache-2.0
"""What a reader is: the protocol, its context and its report.

Rules kept here:
* a reader is a pure function of (bytes, context): it opens nothing, asks no clock and draws no randomness;
* raw ids become keyed hashes, model names become family ids and tool names become classes before an event exists;
* a row is used, rejected (by reason), of unknown type, or foreign: never silently skipped;
* a reader may read a stream again from the start; events merge by (person, kind of event, key) in the store.

What the store can rely on:
* `Prompt` and `Call` events have `row == key`; `parent` of every event is the `key` of the nearest `Prompt` or `Call`
  above it in the log's own links, None at a root, and a key that no event has where the chain is broken;
* a `Tool` event comes twice with one key: at the call (outcome `no_result`, `result_ts` None) and at the result
  (`result_ts` set, family and class `unknown`). A copy with `result_ts` decides the outcome, whatever the order;
* every rejected row gives one `Gap(what="rows_rejected")` with the conversation of the last good row before it;
* `reader` ends in `+no-attempts` on rows whose log version does not write retries (infra recovery is unknown there, and
  a change of model could hide an outage);
* `ModelSet(by="person", family="unknown")` is a person's model command whose target is not read; `by="harness"` is
  a plan-mode change, `by="refusal"` and `by="fallback"` are moves that the program announced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Protocol

from windvane_client.events import AnyEvent, Rows
from windvane_client.people import KnownPeople
from windvane_client.tool_classes import BUILTIN_TOOLS, ToolClasses
from windvane_privacy.catalogue import Catalogue

NO_ATTEMPTS = "+no-attempts"
"""Suffix of `Event.reader` where the log's version does not write retries."""


class Ids(Protocol):
    """Raw ids to 16-byte keyed hashes. `identity` is "kind:id", e.g. "email:ana@example.org"."""

    def person(self, identity: str) -> bytes | None:
        """Pseudonym of a logged identity; None where no rule of people.toml names a staff id."""
        ...

    def excluded(self, identity: str) -> bool:
        """True for a person who opted out: the reader drops the row before any event exists."""
        ...

    def conv(self, namespace: str, raw: str) -> bytes:
        """Conversation id. A transcript and the telemetry of one agent share a namespace, so that they join."""
        ...

    def project(self, namespace: str, raw: str) -> bytes:
        """Project or folder id."""
        ...

    def key(self, namespace: str, raw: str) -> bytes:
        """Event key."""
        ...

    def item(self, namespace: str, raw: str) -> bytes:
        """Id of a compared item (blind votes)."""
        ...


@dataclass(slots=True)
class SampleFacts:
    """What the rows of a sample could have told: the difference between "none" (0) and "cannot know" (null).

    One object may collect over several files that form one sample. Readers only ever switch a flag on.
    """

    source: str
    conversations: set[bytes] | None = None
    """Distinct conversation ids that the rows state; None as long as no row has the field at all."""
    persons: set[bytes] | None = None
    """Distinct identities that the rows state; None where configuration names the person or no row has the field."""
    any_row: bool = False
    """A row was neither rejected, unknown nor foreign. Without one, nothing is known."""
    any_call_row: bool = False
    """A row type that can tell a model call occurred: `calls.answered` and `calls.failed` are numbers."""
    any_prompt_row: bool = False
    """A row type that can hold a prompt occurred: `prompts`, `episodes`, `completion` are numbers."""
    any_tool_row: bool = False
    """A row type that can hold a tool call or result occurred: `tools` is known."""
    any_vote_row: bool = False
    """A row type that can hold a vote or a rating occurred: `blind` is known."""
    failures_hidden: bool = False
    """A log that does not write failed requests was seen: `calls.failed` is null."""
    stated_mode: str = "unknown"
    """Mode that a header states, for a sample whose rows all belong elsewhere (a copied history)."""
    recorder: str = ""
    """Who wrote the rows, where one source has several recorders that can tell different things; else empty."""
    fork_parents: set[bytes] = field(default_factory=set)
    """Conversations whose copied rows were left out: without their own files that work is lost."""
    subagents_named: set[bytes] = field(default_factory=set)
    """Subagents whose results a main thread holds."""
    subagents_read: set[bytes] = field(default_factory=set)
    """Subagents whose own rows were read; one that is only named has lost its tool calls."""
    attempts_known: bool | None = None
    """True: a log version that writes retries was seen; False: only older ones; None: no version at all."""

    @property
    def infra_possible(self) -> bool:
        """`infra` holds numbers (also 0), not null."""
        return self.attempts_known is True

    def saw_conversation(self, conv: bytes | None) -> None:
        """The field is there; an empty value counts as none."""
        if self.conversations is None:
            self.conversations = set()
        if conv is not None:
            self.conversations.add(conv)

    def saw_person(self, person: bytes | None) -> None:
        """The field is there; an empty value counts as none."""
        if self.persons is None:
            self.persons = set()
        if person is not None:
            self.persons.add(person)

    def saw_attempts(self, known: bool) -> None:
        """A log version was seen that writes retries, or one that does not."""
        if known or self.attempts_known is None:
            self.attempts_known = known

    def absorb(self, later: SampleFacts) -> None:
        """Add what a later file of the same sample told, as if one object had collected over both."""
        if later.source.startswith(f"{self.source}/"):
            self.source = later.source  # the first dialect that a row told names the sample
        for name in ("any_row", "any_call_row", "any_prompt_row", "any_tool_row", "any_vote_row", "failures_hidden"):
            setattr(self, name, getattr(self, name) or getattr(later, name))
        for name in ("conversations", "persons"):
            if (told := getattr(later, name)) is not None:
                setattr(self, name, (getattr(self, name) or set()) | told)
        if later.stated_mode != "unknown":
            self.stated_mode = later.stated_mode
        self.recorder = later.recorder or self.recorder
        self.fork_parents |= later.fork_parents
        self.subagents_named |= later.subagents_named
        self.subagents_read |= later.subagents_read
        if later.attempts_known is not None:
            self.saw_attempts(later.attempts_known)


KindRule = Callable[[Mapping[str, str]], str | None]
"""Organisation rule: content-free attributes (source, recorder, client, log_dir) to a kind of work, or None."""


KeyMode = Callable[[Sequence[str]], tuple[str, str] | None]
"""Organisation lists: names of a row's keys and users to (mode, name of the list), or None."""


@dataclass(slots=True)
class ReadContext:
    """Everything a reader may know besides the bytes of one file, and what it reports back.

    `offset` in: bytes already read in an earlier run (0: none). Out: just after the last complete line. A reader whose
    format links rows reads the older part again to rebuild the links, but neither counts nor emits it a second time.
    """

    ids: Ids
    catalogue: Catalogue
    now: int
    """µs UTC; a row more than a day ahead of it is rejected."""
    file_key: bytes
    """Keyed id of the file's path."""
    facts: SampleFacts
    aliases: Mapping[str, str] = field(default_factory=dict)
    """aliases.toml: raw model name, exact, to a catalogue id."""
    machine_person: bytes | None = None
    """Whose machine this is, for sources that log no person."""
    log_dir: str = ""
    """Folder name of the log file; used for rules and for the project id, never stored."""
    session_hint: str = ""
    """File name without suffix."""
    companion: bytes = b""
    """Bytes of the small file beside this one that says what it is (Cline, mapping.toml); empty without one."""
    program: str = ""
    """Program whose folder the file lies in, where one format has several; a word of the closed list of clients."""
    rows: Rows = field(default_factory=Rows)
    path: Path | None = None
    """The file itself, for formats that a library must open (Parquet, very large CSV); no reader opens it."""
    offset: int = 0
    final: bool = False
    """The file is finished: a last line without newline is tried, and counted as `truncated` if it does not parse."""
    kind_rule: KindRule | None = None
    key_mode: KeyMode | None = None
    skip_agent: Callable[[str], bool] | None = None
    """True for a program whose own logs are collected too: a gateway's reader drops its rows."""
    collected: KnownPeople | None = None
    """Who may stand in rows that collectors wrote."""
    tools: ToolClasses = field(default_factory=lambda: BUILTIN_TOOLS)
    scores: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """[scores] of rules.toml: name of a score to (its value as written, outcome)."""
    tool_markers: Mapping[bytes, str] = field(default_factory=dict)
    """[tool_markers] of rules.toml: first bytes of an error result (at most 80) to a tool outcome."""


class Reader(Protocol):
    """One log format."""

    source: str
    version: str
    """Semantic version; a change means that old files are read anew."""

    def discover(self, roots: Sequence[Path]) -> Iterator[Path]:
        """Log files of this format under the roots (files or folders), sorted; regular files only."""
        ...

    def read(self, stream: BinaryIO, context: ReadContext) -> Iterator[AnyEvent]:
        """Events in reading order. Counts into `context.rows`, `context.facts`; sets `context.offset` at the end."""
        ...
