# SPDX-License-Identifier: Apache-2.0
"""Writes Claude-Code-format transcripts of the demo's people.

Rules kept here:
* rows have the fields, order and quirks of real ones: one row a content block, retries as system rows, queued prompts,
  harness text, skills that change the model, subagents' files, headless runs, and now and then a broken row;
* every text in them is a neutral phrase.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

from windvane.demo.world import HARNESS_MODEL, DemoModel, Person, Work

_TEXT = "neutral text of the demonstration, never read by anything"
_VERSION = "2.1.144"
_TOOLS = ("Bash", "Edit", "Read", "Write", "Grep")
_RESULTS = {
    "ok": ('"done"', "false"),
    "runtime": ('"Exit code 1"', "true"),
    "denied": ('"The user doesn\'t want to proceed with this tool use."', "true"),
    "malformed": ('"<tool_use_error>InputValidationError: neutral</tool_use_error>"', "true"),
    "precondition": ('"<tool_use_error>String to replace not found in file.</tool_use_error>"', "true"),
}
_BROKEN = ('{"type":"user","message":{"role":"us', '{"type":"assistant","timestamp":NaN}', "[]", "\x00\x00")


class Transcript:
    """Rows of one session, in order, with the parent chain of a real one."""

    def __init__(self, session: str, rng: random.Random, *, entrypoint: str = "cli", sidechain: bool = False) -> None:
        self.rows: list[str] = []
        self._session, self._rng, self._entrypoint = session, rng, entrypoint
        self._side = "true" if sidechain else "false"
        self._parent = "null"
        self._serial = 0
        self._now = datetime(2020, 1, 1)  # noqa: DTZ001 - set by `at` before the first row

    def at(self, moment: datetime) -> None:
        """Moves the session's clock; it never goes back."""
        self._now = moment

    def wait(self, seconds: float) -> None:
        """Lets time pass."""
        self._now += timedelta(seconds=seconds)

    def _id(self, prefix: str) -> str:
        self._serial += 1
        return f"{prefix}{self._session[:13]}-{self._serial:05d}"

    def _row(self, kind: str, rest: str) -> str:
        uuid = self._id("row-")
        stamp = self._now.strftime("%Y-%m-%dT%H:%M:%S.000Z")
        self.rows.append(
            f'{{"parentUuid":{self._parent},"isSidechain":{self._side},"userType":"external","entrypoint":"{self._entrypoint}",'
            f'"cwd":"/home/user/project","sessionId":"{self._session}","version":"{_VERSION}","gitBranch":"x",'
            f'"type":"{kind}",{rest},"uuid":"{uuid}","timestamp":"{stamp}"}}'
        )
        self._parent = f'"{uuid}"'
        return uuid

    def prompt(self) -> None:
        """A person types."""
        source = "typed" if self._entrypoint == "cli" else "sdk"
        self._row("user", f'"promptSource":"{source}","message":{{"role":"user","content":"{_TEXT}"}}')
        self.wait(2)

    def answer(self, model: str, *, blocks: Sequence[str] = (), text: bool = True) -> None:
        """One model call: a row for each content block, all with one message id."""
        message, request = self._id("msg_"), self._id("req_")
        parts = list(blocks) + ([f'{{"type":"text","text":"{_TEXT}"}}'] if text else [])
        for part in parts:
            self._row(
                "assistant",
                f'"requestId":"{request}","message":{{"model":"{model}","id":"{message}","type":"message","role":"assistant",'
                f'"content":[{part}],"stop_reason":null,"usage":{{"input_tokens":3,"output_tokens":27}}}}',
            )
        self.wait(5)

    def tools(self, model: str, outcomes: Sequence[str]) -> None:
        """One call that uses tools, then one result row a tool."""
        used = [(self._id("toolu_"), self._rng.choice(_TOOLS)) for _ in outcomes]
        self.answer(
            model,
            blocks=[
                f'{{"type":"tool_use","id":"{i}","name":"{name}","input":{{"value":"{_TEXT}"}}}}' for i, name in used
            ],
            text=False,
        )
        for (tool, _name), outcome in zip(used, outcomes, strict=True):
            content, error = _RESULTS[outcome]
            denied = '"toolDenialKind":"user",' if outcome == "denied" else ""
            self._row(
                "user",
                f'{denied}"message":{{"role":"user","content":[{{"tool_use_id":"{tool}","type":"tool_result",'
                f'"content":{content},"is_error":{error}}}]}}',
            )
        self.wait(3)

    def skill(self, model: str) -> None:
        """The model runs a skill; the harness answers with its own model until the next prompt."""
        tool = self._id("toolu_")
        self.answer(model, blocks=[f'{{"type":"tool_use","id":"{tool}","name":"Skill","input":{{}}}}'], text=False)
        self._row(
            "user",
            f'"message":{{"role":"user","content":[{{"tool_use_id":"{tool}","type":"tool_result","content":"launched"}}]}}',
        )
        self.answer(HARNESS_MODEL)

    def fault(self, model: str, *, recovered: bool) -> None:
        """A request meets an overloaded service: one row a retry, then an answer or a final error."""
        for attempt in range(1, self._rng.choice((2, 3, 4))):
            self._row(
                "system",
                f'"subtype":"api_error","level":"error","error":{{"status":529}},"retryAttempt":{attempt},"maxRetries":10',
            )
            self.wait(4)
        if recovered:
            self.answer(model)
        else:
            message = self._id("msg_")
            self._row(
                "assistant",
                f'"isApiErrorMessage":true,"apiErrorStatus":529,"message":{{"model":"<synthetic>","id":"{message}",'
                f'"role":"assistant","content":[{{"type":"text","text":"{_TEXT}"}}]}}',
            )

    def end(self, *, finished: bool) -> None:
        """The last turn ends by itself, or the person interrupts it."""
        if finished:
            self._row("system", '"subtype":"turn_duration","durationMs":4000')
        else:
            content = '[{"type":"text","text":"[Request interrupted by user]"}]'
            self._row("user", f'"message":{{"role":"user","content":{content}}}')

    def command(self, model: DemoModel) -> None:
        """The person picks another model from the menu."""
        self._row(
            "user",
            f'"message":{{"role":"user","content":"<command-name>/model</command-name><command-args>{model.id}</command-args>"}}',
        )
        self._row(
            "user",
            f'"message":{{"role":"user","content":"<local-command-stdout>Set model to {model.label}'
            f'</local-command-stdout>"}}',
        )

    def broken(self) -> None:
        """A row that no reader can read."""
        self.rows.append(self._rng.choice(_BROKEN))


def write_person(home: Path, person: Person, plan: Sequence[Work], rng: random.Random) -> int:
    """The transcripts of one person below `home`; returns the number of rows."""
    folder = home / ".claude" / "projects" / "-home-user-project"
    folder.mkdir(parents=True, exist_ok=True)
    rows = 0
    half = (len(plan) + 1) // 2
    for part in (plan[:half], plan[half:]):
        if part:
            session = f"{rng.getrandbits(32):08x}-{rng.getrandbits(16):04x}-4000-8000-{rng.getrandbits(48):012x}"
            transcript = Transcript(session, rng)
            for work in part:
                _perform(transcript, work, rng)
            rows += _save(folder / f"{session}.jsonl", transcript)
    if rng.random() < 0.08:
        rows += _headless(folder, person, plan, rng)
    return rows


def _perform(transcript: Transcript, work: Work, rng: random.Random) -> None:
    transcript.at(work.begins)
    transcript.prompt()
    runs = list(work.runs)
    if runs:
        transcript.fault(work.model.id, recovered=runs[0])
    else:
        transcript.answer(work.model.id)
    if work.tools and not runs:
        transcript.tools(work.model.id, work.tools)
        transcript.answer(work.model.id)
    if work.skill:
        transcript.skill(work.model.id)
    if rng.random() < 0.01:
        transcript.broken()
    last = work.model
    if work.turns == 2:
        transcript.end(finished=True)
        transcript.wait(rng.uniform(60, 900))
        if work.moved_to is not None:
            last = work.moved_to
            transcript.command(last)
        transcript.prompt()
        transcript.answer(last.id)
        if len(runs) > 1:
            transcript.fault(last.id, recovered=runs[1])
            if not runs[1]:
                transcript.wait(30)
                transcript.prompt()
                transcript.answer(last.id)
    transcript.end(finished=work.finished)


def _headless(folder: Path, person: Person, plan: Sequence[Work], rng: random.Random) -> int:
    # A program, not a person: many short runs that all break off. They must not count as anybody's work.
    session = f"{rng.getrandbits(32):08x}-auto-4000-8000-{rng.getrandbits(48):012x}"
    transcript = Transcript(session, rng, entrypoint="sdk-cli")
    for work in plan[:4]:
        transcript.at(work.begins + timedelta(hours=5))
        transcript.prompt()
        transcript.answer(person.models[0].id)
        transcript.end(finished=False)
    return _save(folder / f"{session}.jsonl", transcript)


def _save(path: Path, transcript: Transcript) -> int:
    path.write_text("\n".join(transcript.rows) + "\n", encoding="utf-8")
    return len(transcript.rows)
