# SPDX-License-Identifier: Apache-2.0
"""A whole federation on this machine: coordinator and guardians as processes, members over HTTP on loopback.

Rules kept here:
* every role runs the code it runs anywhere: the coordinator and the guardians are `windvane` processes, members use
  their real state, ledger, noise and courier in two worker processes;
* steps come in the order of a real round and may be run again; whatever is started is stopped.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from pathlib import Path
from types import TracebackType
from typing import Self

from windvane.demo import members
from windvane.demo.members import Organisation
from windvane.demo.world import PUBLIC_ORDER, Quarter, families
from windvane_privacy.errors import InternalError
from windvane_privacy.manifest import format_time
from windvane_privacy.signed import decode_federation
from windvane_privacy.witness_state import CARD, init_witness, pin_log

GUARDIANS = (
    ("University of the Demo", "university"),
    ("Demo Audit Office", "audit"),
    ("Demo Foundation", "foundation"),
)
WITNESSES = 3
WORKERS = 2
Advance = Callable[[int], None]


def _windvane(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "windvane", *arguments]


@dataclass
class DemoFederation:
    """The folder of a demo and what runs in it. Use it as a context.

    `organisations` people-sized `people` each; `seed` fixes the logs, never keys or noise.
    """

    folder: Path
    organisations: int
    people: int
    seed: int
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    address: str = ""
    too_small: bool = False
    """Set by `agree`: the federation is below the floors, and the report will say so."""
    _server: subprocess.Popen[str] | None = None
    _pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def quarter(self) -> Quarter:
        """The quarter whose logs are written."""
        return Quarter.before(self.now)

    @property
    def round_id(self) -> str:
        """Name of the one round."""
        return self.quarter.name

    @property
    def members(self) -> list[Organisation]:
        """All member organisations."""
        root = self.folder / "members"
        return [
            Organisation(i, root / f"{i + 1:03d}", self.people, self.seed) for i in range(self.organisations)
        ]  # fmt: skip

    @property
    def coordinator(self) -> Path:
        """The coordinator's state folder."""
        return self.folder / "coordinator"

    def guardian(self, index: int) -> Path:
        """State folder of guardian 1, 2 or 3."""
        return self.folder / "guardians" / str(index)

    @property
    def witnesses(self) -> list[Path]:
        """State folders of the log's witnesses. They run in the coordinator's own process: here they prove nothing."""
        return [self.folder / "witnesses" / str(index) for index in range(1, WITNESSES + 1)]

    @property
    def site(self) -> Path:
        """The published report."""
        return self.coordinator / "site"

    # --- steps, in the order of a round ---

    def write_logs(self, advance: Advance) -> int:
        """Log files of all organisations; returns the number of rows."""
        return sum(self._everybody(members.write_logs, (self.quarter,), advance))

    def found(self) -> None:
        """Guardians make their cards, the coordinator its key; it starts to serve; the guardians pin it."""
        states = [str(self.guardian(index)) for index in range(1, len(GUARDIANS) + 1)]
        (self.folder / "guardians").mkdir(parents=True, exist_ok=True)
        named = zip(states, GUARDIANS, strict=True)
        self._together(
            [("guardian", "init", "--state", at, "--name", name, "--group", group) for at, (name, group) in named]
        )
        cards = [part for at in states for part in ("--guardian", str(Path(at) / "guardian.json"))]
        for index, at in enumerate(self.witnesses, 1):
            init_witness(at, f"witness-{index}.demo")
            cards += ["--witness", str(at / CARD)]
        self._run(
            "coordinator",
            "init",
            "--state",
            str(self.coordinator),
            "--name",
            "Windvane demonstration",
            "--demo",
            "--quorum",
            "2",
            "--faulty",
            "0",
            *cards,
        )
        policy = decode_federation((self.coordinator / "federation.json").read_bytes()).log_policy
        for at in self.witnesses:
            pin_log(at, policy.log)
        self.serve()
        pin = ("--coordinator", self.address, "--demo", "--yes")
        self._together([("guardian", "init", "--state", at, *pin) for at in states])

    def serve(self, port: int = 0) -> None:
        """Start the coordinator's process and wait for its address."""
        log = (self.folder / "coordinator.log").open("a", encoding="utf-8")
        at_once = [part for at in self.witnesses for part in ("--witness", str(at))]
        with log:
            self._server = subprocess.Popen(
                _windvane("coordinator", "run", "--state", str(self.coordinator), "--port", str(port), "--json",
                          *at_once),
                stdout=subprocess.PIPE, stderr=log, text=True,
            )  # fmt: skip
        assert self._server.stdout is not None
        line = self._server.stdout.readline()
        if not line:
            raise InternalError("The coordinator did not start; its log lies in the demo's folder.")
        self.address = json.loads(line)["address"]

    def enrol(self, advance: Advance) -> None:
        """Every organisation sets its member up and hands in its card."""
        list(self._everybody(members.enrol, (self.address,), advance))

    def agree(self) -> None:
        """Roster, guardians' keys and signatures, manifest."""
        plan = self.folder / "plan.toml"
        plan.write_text(self.plan_toml(), encoding="utf-8")
        open_round = ("coordinator", "open-round", self.round_id, "--plan", str(plan), "--state", str(self.coordinator))
        first = subprocess.run(_windvane(*open_round), capture_output=True, text=True, check=False)
        self.too_small = "FederationTooSmall" in first.stderr
        if first.returncode == 0 or self.too_small:
            return
        self._together([("guardian", "ready", self.round_id, "--state", str(self.guardian(i))) for i in (1, 2, 3)])
        self._run(*open_round)

    def take_part(self, advance: Advance) -> int:
        """Every member approves, collects and submits; returns the number of rows that were read."""
        return sum(self._everybody(members.take_part, (self.address, self.round_id), advance))

    def open_sums(self, guardians: Sequence[int] = (1, 2, 3), lot_wait_hours: float = 48.0) -> None:
        """Close the round; guardians reveal, check and open; the coordinator adds up."""
        close = (
            "coordinator", "close-round", self.round_id, "--state", str(self.coordinator),
            "--lot-wait", str(lot_wait_hours), "--wait", "60",
        )  # fmt: skip
        opening = [
            ("guardian", "open", self.round_id, "--state", str(self.guardian(i)), "--wait", "60") for i in guardians
        ]
        self._together([close, *opening])

    def publish(self) -> Path:
        """Build, check and sign the report; returns its first page."""
        self._run("coordinator", "publish", self.round_id, "--state", str(self.coordinator))
        return self.site / "index.html"

    def stop(self) -> None:
        """Stop whatever runs."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None
        if self._server is not None:
            self._server.terminate()
            try:
                self._server.wait(timeout=15)
            except subprocess.TimeoutExpired:
                self._server.kill()
                self._server.wait()
            if self._server.stdout is not None:
                self._server.stdout.close()
            self._server = None

    # --- inside ---

    def plan_toml(self) -> str:
        """The plan of the demo's quarter. Its dates are those of a demonstration: everything happens now."""
        quarter, now = self.quarter, self.now
        opens = now - timedelta(minutes=1)
        dates = {
            "events_from": quarter.start,
            "events_to": quarter.end,
            "collection_deadline": min(quarter.end + timedelta(days=14), opens),
            "opens": opens,
            "commit_by": now + timedelta(hours=2),
            "closes": now + timedelta(hours=3),
            "publish_at": now + timedelta(hours=3),
        }
        lines = [
            f'quarter = "{quarter.name.upper()}"',
            'source = "The demonstration\'s list of models by use"',
            f"order = {json.dumps(list(PUBLIC_ORDER))}",
            'delta = "1e-8"',
            "builtin = false",
            "[dates]",
            *(f'{name} = "{format_time(moment)}"' for name, moment in dates.items()),
        ]
        for family in families():
            lines += ["[[family]]", f'id = "{family.id}"', f'label = "{family.label}"', f'vendor = "{family.vendor}"']
            lines.append(f"patterns = {json.dumps(list(family.patterns))}")
        return "\n".join(lines) + "\n"

    def _everybody(
        self, step: Callable[..., int | None], arguments: tuple[object, ...], advance: Advance
    ) -> Iterable[int]:
        if self._pool is None:
            # Spawned, not forked: a worker must not inherit the parent's threads or the noise library's state.
            self._pool = ProcessPoolExecutor(max_workers=WORKERS, mp_context=get_context("spawn"))
        waiting: list[Future[int | None]] = [self._pool.submit(step, member, *arguments) for member in self.members]
        for done in as_completed(waiting):
            advance(1)
            yield done.result() or 0

    def _run(self, *arguments: str) -> None:
        self._together([arguments])

    def _together(self, commands: Sequence[Sequence[str]]) -> None:
        running = [
            subprocess.Popen(_windvane(*command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for command in commands
        ]
        for command, process in zip(commands, running, strict=True):
            _stdout, stderr = process.communicate()
            if process.returncode:
                raise InternalError(f"windvane {command[0]} {command[1]} stopped with: {stderr.strip()}")
