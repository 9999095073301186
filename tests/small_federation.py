# SPDX-License-Identifier: Apache-2.0
"""A whole small federation in one process: real coordinator, real guardians, members that are only a key and a vector.

Rules kept here:
* every signature, seal and share is real; only the clock and the members' vectors are the test's own;
* it is a demonstration of twenty organisations, the smallest that a round accepts;
* every party is made anew from its folder when a test wants a restart.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from log_witnesses import CARDS, at_once
from windvane_privacy.canonical import sha256_hex
from windvane_privacy.catalogue import Family
from windvane_privacy.couriers import Courier, Parcel
from windvane_privacy.envelope import build_envelope, commit_hash
from windvane_privacy.guardian import GuardianSession
from windvane_privacy.guardian_state import init_guardian, pin_coordinator
from windvane_privacy.identity import SigningKey
from windvane_privacy.log import Scan, make_leaf, scan
from windvane_privacy.manifest import Manifest, format_time
from windvane_privacy.roster import make_enrolment
from windvane_privacy.shares import split
from windvane_privacy.signed import decode_federation, verify_signed_manifest
from windvane_server.coordinator import Coordinator, init_coordinator
from windvane_server.plan_round import RoundPlan

ROUND = "2026-Q3"
START = datetime(2026, 10, 2, 9, 0, tzinfo=UTC)
FAMILIES = tuple(
    Family(name.lower(), name, f"{name} works", ()) for name in ("Alder", "Birch", "Cedar", "Dogwood", "Elm")
)


@dataclass
class Clock:
    """Time that stands still until a test moves it."""

    now: datetime = START

    def __call__(self) -> datetime:
        return self.now

    def pass_by(self, **parts: float) -> None:
        self.now += timedelta(**parts)


class Direct:
    """A courier without a network: the coordinator's inbox itself."""

    def __init__(self, federation: SmallFederation) -> None:
        self._federation = federation

    def exchange(self, parcel: Parcel) -> bytes:
        return self._federation.coordinator.handle(parcel)


@dataclass
class Member:
    """An organisation as the coordinator sees it."""

    number: int
    key: SigningKey
    name: str


@dataclass
class Submission:
    """What a member holds after its draw."""

    member: Member
    vector: list[int]
    envelope: bytes
    leaf: bytes

    @property
    def hash(self) -> str:
        return commit_hash(self.envelope)


@dataclass
class SmallFederation:
    """The parties and their folders; `courier` carries guardians' and members' parcels."""

    folder: Path
    clock: Clock = field(default_factory=Clock)
    size: int = 20
    demo: bool = True
    courier: Courier | None = None
    members: list[Member] = field(default_factory=list)

    def __post_init__(self) -> None:
        cards = [init_guardian(self.guardian_folder(j), f"Guardian {j}", f"Group {j}") for j in (1, 2, 3)]
        self.state = self.folder / "coordinator"
        init_coordinator(
            self.state, name="Small Federation", guardians=cards, witnesses=CARDS, quorum=2, faulty=0, demo=self.demo
        )
        self.coordinator = self._opened()
        document = self.coordinator.handle(Parcel("federation"))
        for j in (1, 2, 3):
            pin_coordinator(self.guardian_folder(j), document, demo=self.demo)
        if self.courier is None:
            self.courier = Direct(self)
        for number in range(1, self.size + 1):
            self.enrol(f"Organisation {number}")

    def copy(self, folder: Path) -> SmallFederation:
        """The same federation in another folder: what one copy does the other does not see."""
        shutil.copytree(self.folder, folder)
        made = copy(self)
        made.folder, made.state = folder, folder / "coordinator"
        made.clock = Clock(self.clock.now)
        made.members = list(self.members)
        made.courier = Direct(made)
        made.coordinator = made._opened()
        return made

    def _opened(self) -> Coordinator:
        return open_coordinator(self.state, self.clock)

    def guardian_folder(self, index: int) -> Path:
        return self.folder / f"guardian-{index}"

    def restart(self) -> None:
        """A new coordinator on the same folder."""
        self.coordinator.close()
        self.coordinator = self._opened()

    def close(self) -> None:
        self.coordinator.close()

    def send(self, kind: str, body: bytes = b"", round_id: str = ROUND) -> bytes:
        assert self.courier is not None
        return self.courier.exchange(Parcel(kind, round_id, body))

    def enrol(self, name: str, *, band: str = "100-249", ties: Sequence[str] = ()) -> Member:
        key = SigningKey.generate()
        self.send("enrol", make_enrolment(key, name, band, ties), "")
        member = Member(len(self.members) + 1, key, name)
        self.members.append(member)
        return member

    def plan(self, **changes: object) -> RoundPlan:
        values: dict[str, object] = {
            "quarter": "2026-Q3",
            "source": "order of a test",
            "order": tuple(family.id for family in FAMILIES),
            "families": FAMILIES,
            "delta": "1e-8",
        }
        if self.demo:
            values["dates"] = {
                "collection_deadline": "2026-10-01T00:00:00Z",
                "opens": format_time(START),
                "commit_by": format_time(START + timedelta(days=2)),
                "closes": format_time(START + timedelta(days=3)),
                "publish_at": format_time(START + timedelta(days=4)),
            }
        return RoundPlan(**(values | changes))  # type: ignore[arg-type]  # a test passes wrong types on purpose

    def guardian(self, index: int) -> GuardianSession:
        assert self.courier is not None
        return GuardianSession(self.guardian_folder(index), self.courier, self.clock)

    def ready(self, *guardians: int) -> None:
        for index in guardians or (1, 2, 3):
            with self.guardian(index) as session:
                session.ready(ROUND)

    def open_round(self) -> Manifest:
        """Roster, guardians, manifest: the round is open for submissions."""
        self.coordinator.propose_roster(ROUND)
        self.ready()
        signed = self.coordinator.open_round(ROUND, self.plan())
        return verify_signed_manifest(signed, bytes.fromhex(self.coordinator.federation.coordinator))

    def draw(self, manifest: Manifest, number: int, vector: Sequence[int] | None = None) -> Submission:
        """A member's envelope and commitment for a vector that the test chooses."""
        member = self.members[number - 1]
        values = list(vector) if vector is not None else own_vector(manifest, number)
        shares = split(values, manifest.t, manifest.n)
        envelope = build_envelope(manifest, number, member.key, shares, secrets.token_bytes(16))
        fields = {
            "manifest": manifest.sha256,
            "member": number,
            "hash": commit_hash(envelope),
            "install": sha256_hex(member.name.encode()),
            "day": self.clock().date().isoformat(),
        }
        return Submission(member, values, envelope, make_leaf("commitment", manifest.round, fields, member.key))

    def submit(self, manifest: Manifest, number: int, vector: Sequence[int] | None = None) -> Submission:
        made = self.draw(manifest, number, vector)
        self.send("leaf", made.leaf)
        self.send("reveal", made.envelope)
        return made

    def nonces(self, *guardians: int) -> None:
        for index in guardians or (1, 2, 3):
            with self.guardian(index) as session:
                session.reveal_nonce(ROUND)

    def results(self, *guardians: int) -> None:
        for index in guardians or (1, 2, 3):
            with self.guardian(index) as session:
                session.open(ROUND)


def open_coordinator(state: Path, clock: Callable[[], datetime]) -> Coordinator:
    """The coordinator of this folder, with three witnesses that sign at once and remember nothing from before."""
    federation = decode_federation((state / "federation.json").read_bytes())
    return Coordinator(state, clock, at_once=at_once(federation))


def own_vector(manifest: Manifest, number: int) -> list[int]:
    """Numbers that name their member and their place, inside the bounds of one member."""
    return [(-1) ** place * (number * 31 + place * 7) % 601 - 300 for place in range(manifest.length)]


def leaves_of(federation: SmallFederation) -> Scan:
    """The whole log as a member reads it now."""
    raw = federation.send("leaves", b"", "")
    now = int(federation.clock().timestamp())
    return scan(raw, federation.coordinator.federation.log_policy, now=now)


def agreement(federation: SmallFederation) -> Manifest:
    """The manifest of the open round, as the coordinator hands it out."""
    raw = federation.send("manifest")
    return verify_signed_manifest(raw, bytes.fromhex(federation.coordinator.federation.coordinator))


def dates_around(now: datetime) -> dict[str, str]:
    """The dates of a plan whose submission window is open at `now`."""
    day = timedelta(days=1)
    times = {
        "events_from": now - 90 * day,
        "events_to": now - 2 * day,
        "collection_deadline": now - 2 * day,
        "opens": now - day,
        "commit_by": now + day,
        "closes": now + day,
        "publish_at": now + day,
    }
    return {name: format_time(moment) for name, moment in times.items()}


def open_now(federation: SmallFederation) -> Manifest:
    """Open the round with a submission window around this machine's own time, for a coordinator in another process."""
    now = datetime.now(UTC).replace(microsecond=0)
    federation.clock.now = now
    federation.coordinator.propose_roster(ROUND)
    federation.ready()
    federation.coordinator.open_round(ROUND, federation.plan(dates=dates_around(now)))
    return agreement(federation)
