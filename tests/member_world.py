# SPDX-License-Identifier: Apache-2.0
"""One real member beside nineteen bare ones in a small federation, and couriers that lose or change what they carry.

Rules kept here:
* the member's state, ledger, keys, votes, shares and seals are real; its outcomes are rows that the test chose;
* its noise is OpenDP's unless a test says otherwise;
* every lie of a courier has a name.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from numpy.typing import NDArray

from small_federation import ROUND, Clock, Direct, SmallFederation, leaves_of, open_coordinator
from windvane_client.agent import MemberAgent
from windvane_client.settings import LogFolder, MemberSettings
from windvane_client.state import MemberState
from windvane_privacy.catalogue import Signal
from windvane_privacy.couriers import Courier, Parcel
from windvane_privacy.errors import CoordinatorUnreachable
from windvane_privacy.log import Leaf, Scan
from windvane_privacy.manifest import Manifest
from windvane_privacy.outcomes import Basis, PersonOutcome


class Silent:
    """A source that adds nothing: for tests that are not about noise and must be fast."""

    def draw(self, exact: NDArray, share_scale: float) -> list[int]:
        return [int(value) for value in exact]


def rows_of(people: int, *, better: str = "alder", worse: str = "birch") -> list[PersonOutcome]:
    """`people` persons who finished every piece of work with one model and none with the other."""
    return [
        PersonOutcome(
            bytes([i]) * 16, Signal.COMPLETION, "coding", "claude_code", Basis.EXPLICIT, model, None, 6, successes
        )
        for i in range(1, people + 1)
        for model, successes in ((better, 6), (worse, 0))
    ]


@dataclass
class FixedEvidence:
    """Outcomes that the test chose; remembers what was asked to be forgotten."""

    rows: Sequence[PersonOutcome] = field(default_factory=lambda: rows_of(12))
    forgotten: list[str] = field(default_factory=list)

    def outcomes(self, _manifest: Manifest) -> Sequence[PersonOutcome]:
        return self.rows

    def forget(self, _events_from: str, events_to: str) -> None:
        self.forgotten.append(events_to)


@dataclass
class LyingCourier:
    """Carries parcels; `change` may alter an answer, `lose` names (kind, "request" or "answer") to lose once each."""

    inner: Courier
    change: Callable[[Parcel, bytes], bytes] = lambda _parcel, answer: answer
    lose: list[tuple[str, str]] = field(default_factory=list)
    sent: list[Parcel] = field(default_factory=list)

    def exchange(self, parcel: Parcel) -> bytes:
        if (parcel.kind, "request") in self.lose:
            self.lose.remove((parcel.kind, "request"))
            raise CoordinatorUnreachable
        self.sent.append(parcel)
        answer = self.inner.exchange(parcel)
        if (parcel.kind, "answer") in self.lose:
            self.lose.remove((parcel.kind, "answer"))
            raise CoordinatorUnreachable
        return self.change(parcel, answer)


class MemberWorld:
    """The federation with an open round and the member's state at `member`."""

    def __init__(self, folder: Path, *, approval: str = "human") -> None:
        self.small = SmallFederation(folder / "federation", size=19)
        self.clock = Clock()
        self.folder = folder / "member"
        self.second = folder / "second"
        document = self.small.send("federation", b"", "")
        settings = MemberSettings(
            "Our Organisation", "100-249", (), "https://windvane.example", (LogFolder("/nowhere"),), str(self.second)
        )
        MemberState.create(self.folder, settings, document, demo=True, approval=approval)
        with self.agent() as agent:
            agent.enrol()
        self.manifest = self.small.open_round()

    @classmethod
    def copy_of(cls, folder: Path, template: MemberWorld) -> MemberWorld:
        """The same world in another folder: much faster than making twenty keys and three guardians again."""
        old = template.folder.parent
        shutil.copytree(old, folder, symlinks=True, dirs_exist_ok=True)
        settings = folder / "member" / "member.toml"
        settings.write_text(settings.read_text().replace(str(old), str(folder)))
        world = object.__new__(cls)
        world.small = small = object.__new__(SmallFederation)
        small.folder, small.clock, small.size, small.demo = folder / "federation", Clock(), 19, True
        small.members, small.state = list(template.small.members), small.folder / "coordinator"
        small.coordinator = open_coordinator(small.state, small.clock)
        small.courier = Direct(small)
        world.clock, world.folder, world.second = Clock(), folder / "member", folder / "second"
        world.manifest = template.manifest
        return world

    @property
    def state(self) -> MemberState:
        return MemberState.open(self.folder)

    @property
    def courier(self) -> Courier:
        assert self.small.courier is not None
        return self.small.courier

    @contextmanager
    def agent(self, courier: Courier | None = None, **changes: object) -> Iterator[MemberAgent]:
        how = {"noise": Silent(), "evidence": FixedEvidence()} | changes
        with MemberAgent(self.state, courier or self.courier, self.clock, **how) as agent:
            yield agent

    def approve(self) -> None:
        with self.agent() as agent:
            agent.approve(ROUND)

    def log(self) -> Scan:
        return leaves_of(self.small)

    def mine(self, kind: str) -> list[Leaf]:
        """Entries of a kind about the member, who has number 20."""
        return [leaf for leaf in self.log().leaves if leaf.type == kind and leaf.fields.get("member") == 20]

    def append(self, leaf: bytes) -> None:
        """A coordinator that writes what it should not have taken: the entry goes straight into its log."""
        inbox = self.small.coordinator._inbox
        with inbox._store.write() as connection:
            inbox._log.append(connection, leaf, None)

    def backup(self, name: str = "backup") -> Path:
        """A copy of the member's folder as it is now."""
        target = self.folder.with_name(name)
        shutil.copytree(self.folder, target, symlinks=True)
        return target

    def restore(self, backup: Path) -> None:
        shutil.rmtree(self.folder)
        shutil.copytree(backup, self.folder, symlinks=True)
