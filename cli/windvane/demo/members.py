# SPDX-License-Identifier: Apache-2.0
"""What one demo organisation does, as functions that run in a worker process.

Rules kept here:
* the member's path is the real one: the same state folder, collection, agent, ledger, noise and courier as anywhere;
* every function may be called again after a crash and goes on where it stopped.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from windvane.demo.canonical_logs import Export
from windvane.demo.claude_logs import write_person
from windvane.demo.world import Quarter, organisation_name, people_of, plan_work
from windvane_client.agent import MemberAgent
from windvane_client.collect import collect
from windvane_client.https import HttpsCourier
from windvane_client.settings import LogFolder, MemberSettings
from windvane_client.state import MemberState
from windvane_privacy.couriers import Parcel
from windvane_privacy.roster import BANDS


@dataclass(frozen=True, slots=True)
class Organisation:
    """One demo member: where it lies and how large it is meant to be."""

    index: int
    folder: Path
    people: int
    seed: int

    @property
    def name(self) -> str:
        """Its public name."""
        return organisation_name(self.index)

    @property
    def state(self) -> Path:
        """Its agent's state folder."""
        return self.folder / "windvane"

    @property
    def logs(self) -> Path:
        """Its log files."""
        return self.folder / "logs"


def write_logs(organisation: Organisation, quarter: Quarter) -> int:
    """Write the log files of everybody in the organisation; returns the number of rows."""
    rows, export = 0, Export()
    for person in people_of(organisation.index, organisation.people, organisation.seed):
        rng = random.Random(f"work {organisation.seed} {organisation.index} {person.staff_id}")
        plan = plan_work(person, quarter, rng)
        if person.chat:
            export.person(person, plan, rng)
        else:
            rows += write_person(organisation.logs / "homes" / person.staff_id, person, plan, rng)
    target = organisation.logs / "chat" / "export.jsonl"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("\n".join(export.lines) + "\n", encoding="utf-8")
    return rows + len(export.lines)


def enrol(organisation: Organisation, address: str) -> None:
    """Set the member up and hand in its public card."""
    with HttpsCourier(address) as courier:
        if not (organisation.state / "member.toml").exists():
            settings = MemberSettings(
                name=organisation.name,
                band=_band(organisation.people),
                ties=(),
                address=address,
                logs=_log_folders(organisation),
                second_place=str((organisation.folder / "second-place").resolve()),
            )
            federation = courier.exchange(Parcel("federation"))
            people = 'default = "drop"\ncanonical = "staff-id"\n'
            MemberState.create(organisation.state, settings, federation, demo=True, people=people)
        with MemberAgent(MemberState.open(organisation.state), courier, _now) as agent:
            agent.enrol()


def take_part(organisation: Organisation, address: str, round_id: str) -> int:
    """Approve, collect, submit; returns the number of rows that were read."""
    state = MemberState.open(organisation.state)
    with HttpsCourier(address) as courier:
        with MemberAgent(state, courier, _now) as agent:
            agent.approve(round_id)
        report = collect(state, _now())
        with MemberAgent(state, courier, _now) as agent:
            agent.submit(round_id)
    return report.rows.read


def _log_folders(organisation: Organisation) -> tuple[LogFolder, ...]:
    homes = sorted(path for path in (organisation.logs / "homes").iterdir() if path.is_dir())
    claude = tuple(LogFolder(str((home / ".claude").resolve()), "claude_code", home.name) for home in homes)
    return (*claude, LogFolder(str((organisation.logs / "chat").resolve()), "canonical"))


def _band(people: int) -> str:
    return max((low, band) for band, low in BANDS.items() if low <= max(people, min(BANDS.values())))[1]


def _now() -> datetime:
    return datetime.now(UTC)
