# SPDX-License-Identifier: Apache-2.0
"""Made-up home folders for tests of the preview.

Rules kept here:
* logs come from the demo's writer, which keeps the quirks of real ones, with names of real model families, so that the
  shipped catalogue knows them;
* the seed is explicit: the same arguments give the same files.
"""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from windvane.demo import claude_logs
from windvane.demo.world import MODELS, Person, Quarter, plan_work

NOW = datetime(2027, 1, 15, tzinfo=UTC)
QUARTER = Quarter.before(NOW)
GOOD = replace(MODELS[0], id="claude-opus-4.6", label="Claude Opus 4.6")
BAD = replace(MODELS[4], id="claude-haiku-4.5", label="Claude Haiku 4.5")
_FOLDER = Path(".claude", "projects", "-home-user-project")
TEXT_OF_THE_WRITER = claude_logs._TEXT


def write_home(home: Path, *, models: tuple[str, ...] = ("good", "bad"), seed: int = 1, tools: int = 1) -> Path:
    """One person's quarter of Claude Code transcripts below `home`; returns their folder.

    `tools`: tool calls of each piece of work, as a multiple of what the demo plans.
    """
    rng = random.Random(seed)
    chosen = tuple({"good": GOOD, "bad": BAD}[name] for name in models)
    person = Person("s-1", chosen, chat=False, kind="writing")
    plan = [replace(work, tools=work.tools * tools) for work in plan_work(person, QUARTER, rng)]
    claude_logs.write_person(home, person, plan, rng)
    return home / _FOLDER


def write_big_home(home: Path, megabytes: int, *, seed: int = 1) -> int:
    """Many sessions of one person until `megabytes` are full, rows and pieces of work as long as real ones.

    Returns the bytes written.
    """
    template = home.parent / f"{home.name}-template"
    sessions = sorted(write_home(template, seed=seed, tools=12).glob("*.jsonl"))
    long = "neutral words " * 90
    texts = [(path.stem, path.read_text("utf-8").replace(TEXT_OF_THE_WRITER, long)) for path in sessions]
    folder = home / _FOLDER
    folder.mkdir(parents=True)
    written = number = 0
    while written < megabytes << 20:
        name, text = texts[number % len(texts)]
        session = f"{number:08x}-{number & 0xFFFF:04x}"
        raw = text.replace(name[:13], session).encode()
        (folder / f"{session}{name[13:]}.jsonl").write_bytes(raw)
        written += len(raw)
        number += 1
    return written
