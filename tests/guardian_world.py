# SPDX-License-Identifier: Apache-2.0
"""A coordinator made of a script: it serves the bytes of one round to real guardian sessions, honestly or not.

Rules kept here:
* guardians, members, envelopes, leaves, roster and manifest are real; only the coordinator is a script;
* a lie is a change that a test makes to what the script holds or answers; the script checks nothing.
"""

from __future__ import annotations

import atexit
import random
import shutil
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from log_witnesses import PINS, answer, receipt
from manifests import LOG_ORIGIN, calendar, coordinator_key, make_manifest, member_key
from windvane_privacy import canonical, log, lot, shares
from windvane_privacy.couriers import Parcel
from windvane_privacy.envelope import build_envelope, commit_hash, join_envelopes
from windvane_privacy.guardian import GuardianSession
from windvane_privacy.guardian_state import init_guardian, pin_coordinator
from windvane_privacy.manifest import GuardianEntry, Manifest, RosterReference
from windvane_privacy.roster import (
    SCHEMA,
    Endorsement,
    Roster,
    RosterGuardian,
    RosterMember,
    Signature,
    SignedRoster,
    sign_roster,
)
from windvane_privacy.rules import current_rules
from windvane_privacy.signed import FEDERATION_SCHEMA, Federation, read_card, sign_manifest

ROUND = "2026-Q3"


class Died(Exception):
    """Stands for the end of the guardian's process between two of its steps."""


def make_members(count: int, band: str = "100-249", first: int = 1) -> tuple[RosterMember, ...]:
    """Active members with keys that the tests hold."""
    return tuple(
        RosterMember(
            n, f"Organisation {n}", member_key(n).public.hex(), member_key(n).key_id, "active", ROUND, band, ()
        )
        for n in range(first, first + count)
    )


class World:
    """One round of one federation. `demo`: 20 organisations, else 40 and the real calendar."""

    def __init__(self, folder: Path, *, demo: bool = True) -> None:
        self.demo = demo
        self.folder = folder
        self.key = coordinator_key()
        self.now = datetime(2026, 5, 1, 9, tzinfo=UTC)
        self.leaves: list[bytes] = []
        self.answers: dict[str, Callable[[Parcel], bytes]] = {}
        self.asked: list[str] = []
        self.results: dict[int, bytes] = {}
        self.endorsed: dict[str, Signature] = {}
        self.values: dict[int, list[int]] = {}
        self.envelopes: dict[int, bytes] = {}
        self.signed_manifest = b""
        self.folders = {j: folder / f"guardian-{j}" for j in (1, 2, 3)}
        cards = {j: read_card(init_guardian(self.folders[j], f"Institute {j}", f"Group {j}")) for j in self.folders}
        self.guardians = tuple(RosterGuardian(j, c.name, c.identity, c.group) for j, c in cards.items())
        self.federation = Federation(
            FEDERATION_SCHEMA, "Federation", self.key.public.hex(), LOG_ORIGIN, PINS, self.guardians, demo
        )
        for state in self.folders.values():
            pin_coordinator(state, self.federation.encode(), demo=demo)
        members = make_members(20) if demo else make_members(40, "250-999")
        self.roster = self.make_roster(members)

    def make_roster(self, members: tuple[RosterMember, ...], version: int = 1, previous: str | None = None) -> Roster:
        return Roster(
            SCHEMA, version, previous, "Federation", self.key.public.hex(), LOG_ORIGIN, members, self.guardians
        )

    # --- what the guardian's courier reaches ---

    def exchange(self, parcel: Parcel) -> bytes:
        self.asked.append(parcel.kind)
        if parcel.kind in self.answers:
            return self.answers[parcel.kind](parcel)
        return self.honest(parcel)

    def honest(self, parcel: Parcel) -> bytes:
        match parcel.kind:
            case "roster":
                own = sign_roster(self.roster, self.key)
                return SignedRoster(self.roster, (own, *self.endorsed.values())).encode()
            case "endorse":
                endorsement = Endorsement.decode(parcel.body)
                self.endorsed[endorsement.key] = endorsement.signature
                return b"{}"
            case "leaf":
                return self.put(parcel.body)
            case "manifest":
                return self.signed_manifest
            case "leaves":
                return self.show(self.leaves)
            case "envelopes":
                return join_envelopes([self.envelopes[m] for m, _ in sorted(self.accepted())])
            case "result":
                self.results[canonical.decode(parcel.body)["guardian"]] = parcel.body
                return b"{}"
        raise AssertionError(parcel.kind)

    def session(self, guardian: int) -> GuardianSession:
        return GuardianSession(self.folders[guardian], self, lambda: self.now)

    # --- the log ---

    def put(self, leaf: bytes) -> bytes:
        if leaf not in self.leaves:
            self.leaves.append(leaf)
        return receipt(self.leaves, self.leaves.index(leaf), self.now)

    def show(self, leaves: list[bytes]) -> bytes:
        return answer(leaves, self.now)

    def say(self, kind: str, day: str | None = None, **fields: Any) -> bytes:
        """A leaf signed by the coordinator, put in the log."""
        leaf = log.make_leaf(kind, ROUND, {**fields, "day": day or self.now.date().isoformat()}, self.key)
        self.put(leaf)
        return leaf

    def accepted(self) -> list[tuple[int, str]]:
        found = [log.read_leaf(leaf) for leaf in self.leaves]
        return [(x.fields["member"], x.fields["hash"]) for x in found if x.type == "accepted"]

    # --- the steps of a round ---

    def all_ready(self) -> None:
        for j in self.folders:
            with self.session(j) as session:
                session.ready(ROUND)

    def make_manifest(self, **changes: Any) -> Manifest:
        found = [log.read_leaf(leaf) for leaf in self.leaves]
        ready = {x.fields["guardian"]: x for x in found if x.type == "guardian-ready" and x.round == ROUND}
        entries = [
            GuardianEntry(
                g.index,
                g.name,
                g.identity,
                ready[g.index].fields["round_key"],
                ready[g.index].fields["round_key_id"],
                ready[g.index].fields["nonce_commitment"],
                ready[g.index].hash,
            )
            for g in self.guardians
        ]
        reference = RosterReference(
            self.roster.sha256, self.roster.version, len(self.roster.active), self.roster.people
        )
        wanted = {
            "members": len(self.roster.active),
            "demo": self.demo,
            "k": 3,
            "G": 4 if self.demo else 5,
            "guardians": entries,
            "roster": reference,
            "rules": current_rules(),
            **calendar("2026-07-01", "2026-10-01", demo=self.demo),
        }
        return make_manifest(**{**wanted, **changes})

    def open_round(self, manifest: Manifest | None = None, day: str | None = None) -> None:
        self.manifest = manifest or self.make_manifest()
        self.agreed = self.manifest.sha256
        self.signed_manifest = sign_manifest(self.manifest, self.key)
        self.say("round-opened", day, manifest=self.agreed)

    def commitment(self, member: int, digest: str, *, day: str = "2026-10-02", key: int | None = None) -> bytes:
        fields = {"manifest": self.agreed, "member": member, "hash": digest, "install": "0" * 64, "day": day}
        return log.make_leaf("commitment", ROUND, fields, member_key(key or member))

    def make_envelope(self, member: int) -> bytes:
        rng = random.Random(member)
        self.values[member] = [rng.randint(-240, 240) for _ in range(self.manifest.length)]
        parts = shares.split(self.values[member], self.manifest.t, self.manifest.n)
        return build_envelope(self.manifest, member, member_key(member), parts, rng.randbytes(16))

    def submit(self, member: int) -> None:
        raw = self.make_envelope(member)
        self.envelopes[member] = raw
        self.put(self.commitment(member, commit_hash(raw)))
        self.say("accepted", "2026-10-02", member=member, hash=commit_hash(raw))

    def submit_all(self) -> None:
        self.now = datetime(2026, 10, 3 if self.demo else 20, 9, tzinfo=UTC)
        for member in self.roster.active:
            self.submit(member.number)

    def close(self) -> None:
        self.now = datetime(2026, 10, 4 if self.demo else 31, 9, tzinfo=UTC)
        rows = self.accepted()
        self.say("round-closed", set_root=lot.set_root(rows), members=len(rows))

    def all_reveal(self, *guardians: int) -> None:
        for j in guardians or (1, 2, 3):
            with self.session(j) as session:
                session.reveal_nonce(ROUND)

    def nonces(self) -> list[str | None]:
        found = [log.read_leaf(leaf) for leaf in self.leaves]
        told = {x.fields["guardian"]: x.fields["nonce"] for x in found if x.type == "nonce"}
        return [told.get(j) for j in (1, 2, 3)]

    def table(self, nonces: list[str | None]) -> tuple[tuple[int, ...], ...]:
        root = lot.set_root(self.accepted())
        raw = [None if nonce is None else bytes.fromhex(nonce) for nonce in nonces]
        seed = lot.lot_seed(self.manifest.sha256, root, raw)
        return lot.cohorts([member for member, _ in self.accepted()], seed, self.manifest.cohorts.G)

    def draw_lot(self) -> None:
        nonces = self.nonces()
        self.cohorts = self.table(nonces)
        digest = lot.cohorts_sha256(self.cohorts)
        self.say("lot", set_root=lot.set_root(self.accepted()), nonces=nonces, cohorts_sha256=digest)

    def to_opened(self) -> None:
        self.go_to("opened")

    def to_submitted(self) -> None:
        self.go_to("submitted")

    def to_closed(self) -> None:
        self.go_to("closed")

    def to_lot(self) -> None:
        self.go_to("lot")

    def go_to(self, stage: str) -> None:
        """Bring a fresh world to a stage, by a copy of one that went there before: the steps are real, made once."""
        made = _arrived(self.demo, stage)
        for j, mine in self.folders.items():
            shutil.rmtree(mine)
            shutil.copytree(made.folders[j], mine)
        for name, value in vars(made).items():
            if name not in {"folder", "folders"}:
                setattr(self, name, value.copy() if isinstance(value, (list, dict)) else value)

    def open(self, guardian: int) -> bytes:
        with self.session(guardian) as session:
            return session.open(ROUND)

    def true_sums(self) -> list[list[int]]:
        """Per cohort, the sums of what the members sent."""
        return [
            [sum(column) for column in zip(*(self.values[m] for m in cohort), strict=True)] for cohort in self.cohorts
        ]


STAGES = ("opened", "submitted", "closed", "lot")


@cache
def _arrived(demo: bool, stage: str) -> World:
    folder = Path(tempfile.mkdtemp(prefix="windvane-world-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    world = World(folder, demo=demo)
    at = STAGES.index(stage)
    if at > 0:
        world.go_to(STAGES[at - 1])
    match stage:
        case "opened":
            world.all_ready()
            world.open_round()
        case "submitted":
            world.submit_all()
        case "closed":
            world.close()
        case "lot":
            world.all_reveal()
            world.draw_lot()
    return world


def kinds(world: World) -> list[str]:
    """The types of the log's leaves in order."""
    return [log.read_leaf(leaf).type for leaf in world.leaves]


def place(world: World, kind: str) -> int:
    """Where the first leaf of this type stands in the log."""
    return kinds(world).index(kind)
