# SPDX-License-Identifier: Apache-2.0
"""A made-up Claude Code home of any size, shaped like recorded sessions.

Rules kept here:
* sizes follow recorded sessions: rows of 2 KB on average, half of them below 1 KB, one in ten above 3 KB; a tool result
  is written twice (`content` and `toolUseResult`), a third of the rows are progress, snapshots and other rows that are
  not read;
* what costs a reader work is there too: answers of several rows, parallel tools, retries, model changes, interrupts,
  sessions that begin with a copy of an earlier one, subagents' files, broken rows;
* every text is filler; everything follows from an explicit seed.
"""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

_MODELS = ("claude-opus-4-6", "claude-sonnet-4-5-20250929", "claude-haiku-4-5-20251001")
_TOOLS = ("Bash", "Edit", "Read", "Write", "Grep", "Glob", "WebFetch", "TodoWrite")
_ERRORS = ("Exit code 1", "<tool_use_error>String to replace not found in file.</tool_use_error>")
_USAGE = (
    '"usage":{"input_tokens":3,"cache_creation_input_tokens":8165,"cache_read_input_tokens":17842,"cache_creation":'
    '{"ephemeral_5m_input_tokens":8165,"ephemeral_1h_input_tokens":0},"output_tokens":9,"service_tier":"standard"}'
)
_BROKEN = ('{"type":"user","message":{"role":"us', "[]", '{"type":"assistant","timestamp":NaN}')
_END = datetime(2027, 1, 10, tzinfo=UTC)
_DAYS = 80
_LINES = (
    "    return [row for row in rows if row.kind == 'x']", '        print("filler text, never read by anything")', "",
    "def neutral(value: int) -> int:", "    # filler, filler and filler – nothing else", "\tpath = C:\\temp\\x;",
)  # fmt: skip


class _Filler:
    """Escaped text of about a wanted length."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        lines = [json.dumps(line, ensure_ascii=False)[1:-1] + "\\n" for line in _LINES]
        self._texts = []
        for step in range(56):
            text, wanted = "", 8 * 1.16**step
            while len(text) < wanted:
                text += rng.choice(lines)
            self._texts.append(text)

    def text(self, median: float, spread: float) -> str:
        """A log-normal length, at most about 30 KB."""
        wanted = min(median * 2.718 ** (spread * self._rng.gauss(0, 1)), 30_000)
        step = 0
        while step < len(self._texts) - 1 and len(self._texts[step]) < wanted:
            step += 1
        return self._texts[step]


class _Session:
    """Rows of one file, with the parent chain of a real one."""

    def __init__(self, rng: random.Random, filler: _Filler, begins: datetime, *, side: str = "") -> None:
        self.rows: list[str] = []
        self.id = self._uuid(rng)
        self._rng, self._filler, self._now = rng, filler, begins
        self._side = f'"isSidechain":true,"agentId":"{side}"' if side else '"isSidechain":false'
        self._parent = "null"

    @staticmethod
    def _uuid(rng: random.Random) -> str:
        raw = f"{rng.getrandbits(128):032x}"
        return f"{raw[:8]}-{raw[8:12]}-4{raw[13:16]}-8{raw[17:20]}-{raw[20:]}"

    def _id(self, prefix: str) -> str:
        return f"{prefix}01{self._rng.getrandbits(96):024x}"

    def _stamp(self) -> str:
        return f"{self._now:%Y-%m-%dT%H:%M:%S}.{self._now.microsecond // 1000:03d}Z"

    def wait(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)

    def _row(self, kind: str, rest: str, *, linked: bool = True) -> None:
        uuid = self._uuid(self._rng)
        self.rows.append(
            f'{{"parentUuid":{self._parent},{self._side},"userType":"external","entrypoint":"cli","cwd":"/home/user/project",'
            f'"sessionId":"{self.id}","version":"2.1.144","gitBranch":"x",{rest},"type":"{kind}","uuid":"{uuid}",'
            f'"timestamp":"{self._stamp()}"}}'
        )
        if linked:
            self._parent = f'"{uuid}"'

    def snapshot(self) -> None:
        uuid = self._uuid(self._rng)
        self.rows.append(
            f'{{"type":"file-history-snapshot","messageId":"{uuid}","snapshot":{{"messageId":"{uuid}","trackedFileBackups":'
            f'{{"x":"{self._filler.text(300, 0.8)}"}},"timestamp":"{self._stamp()}"}},"isSnapshotUpdate":false}}'
        )

    def prompt(self) -> None:
        text = self._filler.text(160, 1.2)
        self._row(
            "user", f'"message":{{"role":"user","content":"{text}"}},"promptSource":"typed","permissionMode":"default"'
        )
        self.wait(2)

    def _answer(self, model: str, blocks: list[str], stop: str) -> None:
        message, request = self._id("msg_"), self._id("req_")
        for block in blocks:
            self._row(
                "assistant",
                f'"message":{{"model":"{model}","id":"{message}","type":"message","role":"assistant","content":[{block}],'
                f'"stop_reason":{stop},"stop_sequence":null,{_USAGE}}},"requestId":"{request}"',
            )
            self.wait(0.4)

    def _said(self) -> str:
        return f'{{"type":"text","text":"{self._filler.text(220, 1.1)}"}}'

    def step(self, model: str) -> None:
        """An answer that runs tools, with their results."""
        rng, fill = self._rng, self._filler
        blocks = []
        if rng.random() < 0.2:
            signature = f"{rng.getrandbits(2400):0600x}"
            blocks.append(f'{{"type":"thinking","thinking":"{fill.text(400, 0.9)}","signature":"{signature}"}}')
        if rng.random() < 0.5:
            blocks.append(self._said())
        used = [(self._id("toolu_"), rng.choice(_TOOLS)) for _ in range(2 if rng.random() < 0.12 else 1)]
        blocks += [
            f'{{"type":"tool_use","id":"{tool}","name":"{name}","input":{{"command":"{fill.text(190, 1.7)}"}}}}'
            for tool, name in used
        ]
        self._answer(model, blocks, "null")
        for tool, _ in used:
            for _ in range(rng.choice((0, 0, 1, 1, 2))):
                self._row("progress", f'"data":{{"type":"hook_progress","hookEvent":"PostToolUse","command":'
                          f'"{fill.text(60, 0.5)}"}},"toolUseID":"{tool}"', linked=False)  # fmt: skip
            failed = rng.random() < 0.06
            text = rng.choice(_ERRORS) if failed else fill.text(700, 1.5)
            self.wait(rng.expovariate(0.2))
            self._row(
                "user",
                f'"message":{{"role":"user","content":[{{"tool_use_id":"{tool}","type":"tool_result","content":"{text}",'
                f'"is_error":{str(failed).lower()}}}]}},"toolUseResult":{{"stdout":"{text}","stderr":""}}',
            )

    def retries(self) -> None:
        for attempt in range(1, self._rng.choice((2, 3, 4))):
            self._row(
                "system",
                f'"subtype":"api_error","level":"error","error":{{"status":529}},"retryAttempt":{attempt},"maxRetries":10',
            )
            self.wait(3)

    def turn(self, model: str) -> None:
        self.snapshot()
        self.prompt()
        if self._rng.random() < 0.04:
            self.retries()
        for _ in range(int(self._rng.lognormvariate(1.6, 0.8))):
            self.step(model)
        if self._rng.random() < 0.1:
            self._row(
                "user", '"message":{"role":"user","content":[{"type":"text","text":"[Request interrupted by user]"}]}'
            )
            return
        self._answer(model, [self._said()], '"end_turn"')
        self._row("system", '"subtype":"turn_duration","durationMs":4000')

    def run(self, *, episodes: int) -> None:
        """Several pieces of work, with pauses between them."""
        for _ in range(episodes):
            model = self._rng.choice(_MODELS)
            for _ in range(self._rng.choice((1, 1, 2, 3, 4))):
                if self._rng.random() < 0.08:
                    model = self._rng.choice(_MODELS)
                self.turn(model)
                self.wait(self._rng.expovariate(1 / 120))
            if self._rng.random() < 0.02:
                self.rows.append(self._rng.choice(_BROKEN))
            self.wait(self._rng.uniform(2_000, 40_000))

    def copied_into(self, other: _Session) -> None:
        """The other session was forked off this one: its first rows are copies, under its own session id."""
        half = self.rows[: len(self.rows) // 2]
        other.rows = [row.replace(self.id, other.id) for row in half] + other.rows

    def save(self, path: Path) -> int:
        """Writes the file; its size."""
        path.parent.mkdir(parents=True, exist_ok=True)
        raw = ("\n".join(self.rows) + "\n").encode()
        path.write_bytes(raw)
        return len(raw)


def write_home(home: Path, megabytes: float, seed: int = 1) -> Path:
    """Transcripts of one person below `home` until they fill `megabytes`; returns their folder."""
    rng = random.Random(seed)
    filler = _Filler(rng)
    folder = home / ".claude" / "projects"
    written, number = 0, 0
    while written < megabytes * 1_000_000:
        project = folder / f"-home-user-project-{rng.randrange(12)}"
        begins = _END - timedelta(seconds=rng.uniform(3, _DAYS) * 86_400)
        session = _Session(rng, filler, begins)
        session.run(episodes=rng.choice((1, 2, 3, 5)))
        number += 1
        if number % 20 == 0:
            forked = _Session(rng, filler, begins + timedelta(days=1))
            forked.run(episodes=1)
            session.copied_into(forked)
            written += forked.save(project / f"{forked.id}.jsonl")
        if number % 8 == 0:
            agent = f"{rng.getrandbits(28):07x}"
            side = _Session(rng, filler, begins, side=agent)
            side.id = session.id
            side.turn(rng.choice(_MODELS))
            written += side.save(project / session.id / "subagents" / f"agent-{agent}.jsonl")
        written += session.save(project / f"{session.id}.jsonl")
    return folder


def write_dense_home(home: Path, megabytes: float, seed: int = 1) -> Path:
    """The demo's transcripts of one person: rows of 0.5 KB and a piece of work every five rows."""
    from windvane.demo.claude_logs import write_person
    from windvane.demo.world import Quarter, people_of, plan_work

    rng = random.Random(seed)
    person = people_of(0, 1, seed)[0]
    quarter = Quarter.before(_END)
    folder = home / ".claude" / "projects"
    while sum(path.stat().st_size for path in folder.rglob("*.jsonl")) < megabytes * 1_000_000:
        write_person(home, person, plan_work(person, quarter, rng), rng)
    return folder
