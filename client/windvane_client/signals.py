# SPDX-License-Identifier: Apache-2.0
"""One person's events become facts: episodes with their endings, openings, tool outcomes and faults, and votes.

Rules kept here:
* a pure function of one person's own events, the catalogue and the organisation's declarations; other people's events
  are never looked at;
* one conversation is in memory at a time; what is kept of an episode is under 1 KB, words shared among episodes;
* tools and faults count only in turns of mode `interactive`, whatever the conversation's mode;
* at most a fixed number of tool calls per episode and family enter, chosen by a keyed order that no outcome can
  influence.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from operator import attrgetter
from typing import TypeVar, cast

from windvane_client.capabilities import Capability, capability
from windvane_client.completion import Ending, ending
from windvane_client.constants import CONSTANTS, Constants
from windvane_client.episodes import Episode, Split, Turn, close_last, split
from windvane_client.events import (
    MAIN,
    PERSON_ORIGINS,
    AnyEvent,
    AttemptError,
    Call,
    Close,
    Gap,
    ModelSet,
    Outcome,
    Prompt,
    Tool,
    TurnEnd,
    Vote,
)
from windvane_client.gateways import requests_of
from windvane_client.hidden import mark_hidden
from windvane_client.ids import KeyedHash
from windvane_client.infra import faults
from windvane_client.joined import Telemetry, entry_of, first_tellers, telemetry_of
from windvane_client.kinds import (
    WORK_CLASSES,
    Profile,
    Workspace,
    decided_by,
    kind_of,
    profile_for,
    workspace_of,
)
from windvane_client.merge import structs_of
from windvane_client.modes import INTERACTIVE, demoted_days, turn_mode
from windvane_client.rules import Rules
from windvane_client.starts import next_start, starts_of
from windvane_client.store import Conversation, EventStore, Seen
from windvane_client.switches import History, Opening, openings
from windvane_privacy.catalogue import UNKNOWN

CLASSED_TRIALS: Mapping[str, bool] = {"ok": True, "runtime": True, "malformed": False, "precondition": False}
BIT_TRIALS: Mapping[str, bool] = {"ok": True, "failed": False}
"""Tool outcomes that are trials, by basis, and whether they are successes."""
_MAY_BE_TRIALS = frozenset(CLASSED_TRIALS) | frozenset(BIT_TRIALS)
_NOT_A_PERSON = frozenset({"automation", "relay"})
_UNCOUNTED = structs_of(ModelSet, TurnEnd, Outcome, Close, Gap)
_HEAD = attrgetter("source", "mode", "recorder", "project", "conv", "kind_hint")
_T = TypeVar("_T")
_Tools = Counter[tuple[str, str]]
_Faults = Counter[tuple[str, str, str]]


@dataclass(slots=True)
class EpisodeFacts:
    """What is kept of one episode. Times are µs; `closed` is None while it is open.

    `tool_counts`: ((family, outcome), n) after the cap; `fault_counts`: ((family, client, result), n) from logs that
    write attempts; both from interactive turns only.
    """

    source: str
    recorder: str
    client: str
    workspace: Workspace
    conv: bytes
    mode: str
    opened: int
    closed: int | None
    how: str
    ending: Ending
    openings: tuple[Opening, ...]
    tool_counts: tuple[tuple[tuple[str, str], int], ...]
    fault_counts: tuple[tuple[tuple[str, str, str], int], ...]
    telemetry: tuple[str, str] | None = None
    """(source, recorder) of telemetry that was on in all its turns, beside a transcript."""
    mode_evidence: tuple[str, ...] = ()
    """Names of what told the mode of its turns."""
    tools_left_out: tuple[tuple[tuple[str, str], int], ...] = ()
    """Tool calls that are no trial: by their outcome, their turn's mode, or beyond the cap."""
    faults_left_out: tuple[tuple[tuple[str, str, str], int], ...] = ()

    @property
    def can_say(self) -> Capability:
        """What its logs can say."""
        return entry_of(self.source, self.recorder, self.telemetry)

    @property
    def tools(self) -> Counter[tuple[str, str]]:
        """`tool_counts` to look things up in."""
        return Counter(dict(self.tool_counts))

    @property
    def faults(self) -> Counter[tuple[str, str, str]]:
        """`fault_counts` to look things up in."""
        return Counter(dict(self.fault_counts))


@dataclass(frozen=True, slots=True)
class VoteFacts:
    """One comparison of two answers."""

    source: str
    recorder: str
    workspace: Workspace
    ts: int
    a: str
    b: str
    winner: str
    blind: str
    judge: str


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """One request of a gateway that met a fault, from a log that writes attempts. `ts`: its end, µs."""

    source: str
    recorder: str
    client: str
    workspace: Workspace
    ts: int
    family: str
    result: str


@dataclass(slots=True)
class Totals:
    """Counts for the person's own preview: everything read, also what gives no trial."""

    calls_ok: int = 0
    calls_side: int = 0
    calls_failed: int = 0
    prompts_person: int = 0
    prompts_command: int = 0
    tools: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    turn_modes: Counter[str] = field(default_factory=Counter)
    event_modes: Counter[str] = field(default_factory=Counter)
    sources: Counter[str] = field(default_factory=Counter)
    families: Counter[str] = field(default_factory=Counter)
    """Answered calls by family."""
    parent_missing: int = 0
    source_silent: int = 0
    """Conversations whose transcript stops while their telemetry goes on."""
    sessions: int = 0
    """Session ids of a gateway that hold at least two requests."""


@dataclass(slots=True)
class PersonFacts:
    """Everything the outcomes of one person follow from."""

    person: bytes
    episodes: list[EpisodeFacts] = field(default_factory=list)
    votes: list[VoteFacts] = field(default_factory=list)
    requests: list[RequestFacts] = field(default_factory=list)
    kinds: dict[Workspace, str] = field(default_factory=dict)
    kinds_decided_by: dict[Workspace, str] = field(default_factory=dict)
    history: History = field(default_factory=History)
    kept: dict[str, Seen] = field(default_factory=dict)
    """The history from windows whose rows are deleted."""
    totals: Totals = field(default_factory=Totals)


def read_person(
    store: EventStore,
    person: bytes,
    *,
    window: tuple[int, int],
    rules: Rules,
    ids_key: bytes,
    now: int,
    constants: Constants = CONSTANTS,
) -> PersonFacts:
    """Facts of one person. `window`: [from, to) in µs; `now`: the moment of reading, µs.

    Events from `to` + the time for late evidence on are not looked at, so that a later reading says the same.
    """
    facts = PersonFacts(person, kept=store.first_seen(person))
    facts.history.seen = dict(facts.kept)
    deadline = window[1] + constants.late_evidence
    prompts = [(conv, prompt) for conv, prompt in store.prompts(person) if prompt.ts is None or prompt.ts < deadline]
    reading = _Reading(
        facts, window, rules, ids_key, constants, demoted_days(prompts, constants), person in rules.service_people
    )
    starts = starts_of(prompts)
    swept: list[int] = []
    for conversation in store.conversations(person):
        events = [event for event in conversation.events if event.ts is None or event.ts < deadline]
        beside = Telemetry()
        if conversation.conv is not None:
            beside, events = telemetry_of(events), first_tellers(events)
        else:
            swept += [event.since for event in events if isinstance(event, Gap) and event.since is not None]
        cut = split(Conversation(person, conversation.conv, events, conversation.links), constants)
        if cut.episodes:
            close_last(cut, min(now, deadline), next_start(cut, conversation.conv, starts), constants)
            facts.totals.source_silent += mark_hidden(cut, swept, beside, constants)
        reading.conversation(conversation.conv, events, cut, min(now, deadline), beside)
    facts.history.freeze()
    facts.kinds = {place: kind_of(profile, constants) for place, profile in reading.profiles.items()}
    facts.kinds_decided_by = {place: decided_by(profile, constants) for place, profile in reading.profiles.items()}
    facts.episodes.sort(key=lambda episode: (episode.opened, episode.conv))
    facts.votes.sort(key=lambda vote: (vote.ts, vote.a, vote.b, vote.winner))
    return facts


@dataclass(slots=True)
class _Reading:
    facts: PersonFacts
    window: tuple[int, int]
    rules: Rules
    ids_key: bytes
    constants: Constants
    demoted: frozenset[int]
    service: bool
    profiles: dict[Workspace, Profile] = field(default_factory=dict)
    shared: dict[object, object] = field(default_factory=dict)
    """One object for all equal values that episodes keep: each decoded event brings its own copies."""

    def _share(self, value: _T) -> _T:
        return cast("_T", self.shared.setdefault(value, value))

    def conversation(
        self, conv: bytes | None, events: Sequence[AnyEvent], cut: Split, now: int, beside: Telemetry
    ) -> None:
        totals = self.facts.totals
        self._heads(events)
        for event in events:
            if type(event) not in _UNCOUNTED:
                self._count(event)
        totals.parent_missing += cut.parent_missing
        gateway = [event for event in cut.outside if not capability(event.source).prompts]
        if gateway:
            self._requests(conv, gateway, now)
        turnless = [event for event in cut.outside if capability(event.source).prompts] if gateway else cut.outside
        for fault in faults(turnless, goes_on=bool(cut.episodes)):
            totals.faults[fault.result] += 1
        for event in cut.outside:
            if isinstance(event, Tool):
                totals.tools[event.outcome] += 1
        for episode in cut.episodes:
            self.facts.episodes.append(self._episode(conv or b"", episode, beside))

    def _heads(self, events: Sequence[AnyEvent]) -> None:
        """Count what every event says of itself. Most events of a conversation say the same, so equal heads go once."""
        totals = self.facts.totals
        for (source, mode, recorder, project, conv, hint), n in Counter(map(_HEAD, events)).items():
            totals.sources[source] += n
            totals.event_modes[mode] += n
            place = (recorder, project or conv or b"")
            profile = self.profiles.get(place)
            if profile is None:
                first = next(event for event in events if workspace_of(event) == place)
                profile = self.profiles[place] = profile_for(first, self.rules)
            if hint is not None:
                profile.hints[hint] += n

    def _requests(self, conv: bytes | None, events: list[AnyEvent], now: int) -> None:
        totals = self.facts.totals
        found = requests_of(events, now, self.constants)
        totals.sessions += conv is not None and len(found) > 1
        for request in found:
            totals.calls_failed += request.failed
            if not request.result:
                continue
            totals.faults[request.result] += 1
            head = request.first
            if request.two_sided and head.mode == INTERACTIVE and not self.service:
                self.facts.requests.append(RequestFacts(
                    head.source, head.recorder, head.client, workspace_of(head), request.last, request.family,
                    request.result,
                ))  # fmt: skip

    def _count(self, event: AnyEvent) -> None:
        totals = self.facts.totals
        if isinstance(event, Tool):
            inside = event.ts is not None and self.window[0] <= event.ts < self.window[1]
            if inside and event.tool_class in WORK_CLASSES:
                self.profiles[workspace_of(event)].work[event.tool_class] += 1
        elif isinstance(event, Call):
            totals.calls_ok += event.status == "ok"
            totals.calls_failed += event.status == "error"
            totals.calls_side += event.status == "ok" and event.thread != MAIN
            totals.families[event.served] += event.status == "ok"
        elif isinstance(event, AttemptError):
            totals.calls_failed += event.final
            if event.ts is not None:
                error = self._share(event.family), self._share(event.error_class)
                self.facts.history.errors.append((event.ts, *error))
        elif isinstance(event, Prompt) and event.thread == MAIN:
            totals.prompts_person += event.origin in PERSON_ORIGINS
            totals.prompts_command += event.origin == "command"
        elif isinstance(event, Vote) and event.ts is not None:
            place = self._share(workspace_of(event))
            self.facts.votes.append(VoteFacts(
                event.source, event.recorder, place, event.ts, event.a, event.b, event.winner, event.blind,
                "service" if self.service else event.judge,
            ))  # fmt: skip

    def _episode(self, conv: bytes, episode: Episode, beside: Telemetry) -> EpisodeFacts:
        prompt = episode.turns[0].prompt
        telemetry = (beside.source, beside.recorder) if beside.covers(episode) else None
        causes = telemetry is not None and capability(*telemetry).causes
        found = tuple(self._opening(one, causes=causes) for one in openings(episode))
        modes = [turn_mode(turn.prompt, self.demoted, service=self.service) for turn in episode.turns]
        opened_by_person = [mode for mode, turn in zip(modes, episode.turns, strict=True) if turn.opens]
        declared = [turn.prompt.mode for turn in episode.turns if turn.by_person]
        for opening, mode in zip(found, declared, strict=True):
            if opening.direct and opening.family is not None and mode not in _NOT_A_PERSON and not self.service:
                self.facts.history.openings.append((opening.ts, opening.family))
        self.facts.totals.turn_modes.update(opened_by_person)
        tools, faulty, idle_tools, idle_faults = self._turns(episode, modes)
        told = {self._told_by(turn, mode) for turn, mode in zip(episode.turns, modes, strict=True) if turn.opens}
        return EpisodeFacts(
            source=self._share(prompt.source),
            recorder=self._share(prompt.recorder),
            client=self._share(prompt.client),
            workspace=self._share(workspace_of(prompt)),
            conv=conv,
            mode=self._share(next((mode for mode in opened_by_person if mode != INTERACTIVE), INTERACTIVE)),
            opened=episode.opened,
            closed=episode.closed,
            how=self._share(episode.how),
            ending=self._share(ending(episode)),
            openings=found,
            tool_counts=self._share(tuple(tools.items())),
            fault_counts=self._share(tuple(faulty.items())),
            telemetry=self._share(telemetry),
            mode_evidence=self._share(tuple(sorted(told - {""}))),
            tools_left_out=self._share(tuple(idle_tools.items())),
            faults_left_out=self._share(tuple(idle_faults.items())),
        )

    def _told_by(self, turn: Turn, mode: str) -> str:
        if self.service:
            return "service_accounts"
        return turn.prompt.mode_evidence if mode == turn.prompt.mode else "behaviour_of_the_day"

    def _opening(self, found: Opening, *, causes: bool) -> Opening:
        set_by, set_to = self._share(found.set_by), self._share(found.set_to)
        answered = found.ts if found.answered == found.ts else found.answered
        family, route = self._share(found.family), self._share(found.route)
        return Opening(found.ts, answered, family, route, set_by, set_to, found.causes_known or causes)

    def _turns(self, episode: Episode, modes: list[str]) -> tuple[_Tools, _Faults, _Tools, _Faults]:
        """Tool calls and faults that may be trials, and those that are left out."""
        totals = self.facts.totals
        trials: dict[str, list[tuple[bytes, str]]] = defaultdict(list)
        tools: _Tools = Counter()
        faulty: _Faults = Counter()
        every: _Faults = Counter()
        for i, (turn, mode) in enumerate(zip(episode.turns, modes, strict=True)):
            for fault in faults(turn.events, goes_on=i + 1 < len(episode.turns) or episode.goes_on):
                totals.faults[fault.result] += 1
                every[fault.family, fault.client, fault.result] += 1
                if mode == INTERACTIVE and fault.two_sided:
                    faulty[fault.family, fault.client, fault.result] += 1
            for tool in _live_tools(turn):
                totals.tools[tool.outcome] += 1
                tools[_made_by(tool, turn), tool.outcome] += 1
                if mode == INTERACTIVE and tool.outcome in _MAY_BE_TRIALS:
                    trials[_made_by(tool, turn)].append((tool.key, tool.outcome))
        entering = Counter((family, outcome) for family in trials for outcome in self._capped(trials[family]))
        return entering, faulty, tools - entering, every - faulty

    def _capped(self, calls: list[tuple[bytes, str]]) -> list[str]:
        """Outcomes of an episode's calls of one family, (key, outcome) each, after the cap."""
        most = self.constants.tool_calls_per_episode
        if len(calls) > most:
            order = KeyedHash(self.ids_key, b"tool-cap\0").digest
            calls = nsmallest(most, [(order(key), outcome) for key, outcome in calls])
        return [outcome for _, outcome in calls]


def _live_tools(turn: Turn) -> list[Tool]:
    return [] if turn.rewound else [event for event in turn.events if isinstance(event, Tool)]


def _made_by(tool: Tool, turn: Turn) -> str:
    """Family of the model that made a tool call."""
    if tool.family != UNKNOWN or not capability(tool.source, tool.recorder).credits_turn:
        return tool.family
    answered = {event.served for event in turn.events if isinstance(event, Call) and event.turn == tool.turn}
    return answered.pop() if len(answered) == 1 else UNKNOWN
