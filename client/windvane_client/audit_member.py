# SPDX-License-Identifier: Apache-2.0
"""A throw-away member for the audit: real state, keys, ledger and agent, with an agreement of its own and no network.

Rules kept here:
* everything lies in one folder that the caller deletes; no installed member is looked at;
* a draw is `MemberAgent.draw` on a ledger in which nothing was drawn yet, and its envelope is opened with the keys of
  two guardians, as in a round;
* the layout is the largest that rounds have, so that one draw holds many cells to look at.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

from windvane_client.agent import MemberAgent
from windvane_client.agreement import Agreement
from windvane_client.settings import LogFolder, MemberSettings
from windvane_client.state import MemberState
from windvane_privacy import field as prime_field
from windvane_privacy import log
from windvane_privacy import manifest as agreements
from windvane_privacy.catalogue import KINDS, OTHER, SIGNALS, Family, greedy_pairs
from windvane_privacy.couriers import Parcel
from windvane_privacy.envelope import open_share, parse_envelope, verify_envelope
from windvane_privacy.errors import CoordinatorUnreachable
from windvane_privacy.identity import KEY_ED25519, KEY_KEM, SigningKey, key_id
from windvane_privacy.keyfiles import replace_file
from windvane_privacy.manifest import Manifest
from windvane_privacy.merkle import EMPTY_ROOT
from windvane_privacy.noise import Noise
from windvane_privacy.notes import Checkpoint, Cosigner, SignedCheckpoint
from windvane_privacy.outcomes import PersonOutcome
from windvane_privacy.policy import MOST_LIFETIME_RHO
from windvane_privacy.roster import SCHEMA as ROSTER_SCHEMA
from windvane_privacy.roster import Roster, RosterGuardian, RosterMember
from windvane_privacy.rules import current_rules
from windvane_privacy.sealing import RoundKey
from windvane_privacy.shares import combine
from windvane_privacy.signed import FEDERATION_SCHEMA, Federation, LogPins, PinnedWitness
from windvane_privacy.votes import Sampler

ORIGIN = "log.windvane.example/audit"
ROUND = "2026-Q3"
NOW = datetime(2026, 10, 2, 9, 0, tzinfo=UTC)
MODELS = ("alder", "birch", "cedar", "dogwood", "elm", "fir", "ginkgo", "hazel")
PAIRS_A_MODEL = 6
TASKS = 20
COHORTS = 5
KINDS_COUNTED = tuple(kind for kind in KINDS if kind != OTHER)


@dataclass
class _Rows:
    """Outcomes that are made up, for one draw."""

    rows: Sequence[PersonOutcome] = ()

    def outcomes(self, _manifest: Manifest) -> Sequence[PersonOutcome]:
        return self.rows

    def forget(self, _events_from: str, _events_to: str) -> None:
        return


class _NoNetwork:
    """There is nobody to talk to: a draw needs nobody."""

    def exchange(self, _parcel: Parcel) -> bytes:
        raise CoordinatorUnreachable


@dataclass
class _Keys:
    """The other parties' keys."""

    log: Cosigner = field(default_factory=lambda: Cosigner.generate(ORIGIN))
    witness: Cosigner = field(default_factory=lambda: Cosigner.generate("witness.windvane.example"))
    coordinator: SigningKey = field(default_factory=SigningKey.generate)
    guardians: tuple[SigningKey, ...] = field(default_factory=lambda: tuple(SigningKey.generate() for _ in range(3)))
    rounds: tuple[RoundKey, ...] = field(default_factory=lambda: tuple(RoundKey.generate() for _ in range(3)))


class AuditMember:
    """A member at `folder` whose agreement has noise of scale `s`, carried by `h` honest members of a cohort.

    `noise`: None is the member's own, OpenDP's; tests hand in broken ones to see them found.
    """

    def __init__(self, folder: Path, *, s: int, h: int, noise: Noise | None = None) -> None:
        self._noise = noise
        self._keys = keys = _Keys()
        listed = tuple(
            RosterGuardian(j, f"Guardian {j}", key.public.hex(), f"Group {j}")
            for j, key in enumerate(keys.guardians, start=1)
        )
        coordinator = keys.coordinator.public.hex()
        pins = LogPins(keys.log.public.hex(), (PinnedWitness(keys.witness.name, keys.witness.public.hex()),), 1, 0, 24)
        federation = Federation(FEDERATION_SCHEMA, "Audit", coordinator, ORIGIN, pins, listed, demo=True)
        settings = MemberSettings(
            "Audit", "100-249", (), "https://audit.invalid", (LogFolder("/nowhere"),), str(folder.absolute() / "second")
        )
        self._state = MemberState.create(folder / "member", settings, federation.encode(), demo=True)
        key = self._state.key.public.hex()
        organisations = max(20, -(-200 * COHORTS * h // 85))
        member = RosterMember(
            1, "Audit", key, key_id(KEY_ED25519, bytes.fromhex(key)), "active", "2026-07-01", "100-249", ()
        )
        roster = Roster(ROSTER_SCHEMA, 1, None, "Audit", coordinator, ORIGIN, (member,), listed)
        self.manifest = _agreement(keys, s=s, h=h, organisations=organisations)
        self._agreed = Agreement(self.manifest, b"", roster, b"", 1)
        second = int(NOW.timestamp())
        empty = Checkpoint(ORIGIN, 0, EMPTY_ROOT)
        lines = tuple(one.cosign(empty, second) for one in (keys.log, keys.witness))
        note = SignedCheckpoint(empty, lines).encode()
        self._scan = log.scan(log.encode_leaves(note, []), federation.log_policy, now=second)
        self._allow(h)
        with self._agent(()) as agent:
            agent.ledger.approve(ROUND, self.manifest.sha256, NOW.date().isoformat())
        self._file = self._state.folder / "ledger" / "ledger.db"
        self._unspent = self._file.read_bytes()

    def draw(
        self, rows: Sequence[PersonOutcome], *, noise: Noise | None = None, sampler: Sampler | None = None
    ) -> tuple[bytes, tuple[int, ...]]:
        """One draw on an unspent ledger: the envelope, and the noisy vector as the ledger holds it.

        `noise`, `sampler`: as for `MemberAgent`; without them OpenDP's and the system's.
        """
        replace_file(self._file, self._unspent)
        with self._agent(rows, noise, sampler) as agent:
            entry = agent.draw(self._agreed, self._scan)
        return entry.envelope or b"", entry.noisy or ()

    def cohort(self, rows: Sequence[PersonOutcome]) -> tuple[list[int], list[int]]:
        """The sum of h members' vectors, one of them with `rows` and the others without anybody: as two guardians open
        it from summed shares, and as the ledgers hold it."""
        drawn = [self.draw(rows if member == 0 else ()) for member in range(self.manifest.noise.h)]
        opened = {}
        for guardian in range(1, self.manifest.t + 1):
            key = self._keys.rounds[guardian - 1]
            shares = []
            for raw, _noisy in drawn:
                envelope = parse_envelope(raw, self.manifest)
                verify_envelope(envelope, self._state.key.public)
                shares.append(open_share(envelope, self.manifest, guardian, key))
            opened[guardian] = prime_field.total(shares)
        found = prime_field.decode_signed(combine(opened, self.manifest.t)[: self.manifest.length])
        return found, [sum(values) for values in zip(*(noisy for _raw, noisy in drawn), strict=True)]

    def _agent(
        self, rows: Sequence[PersonOutcome], noise: Noise | None = None, sampler: Sampler | None = None
    ) -> MemberAgent:
        return MemberAgent(
            self._state, _NoNetwork(), lambda: NOW, noise=noise or self._noise, sampler=sampler, evidence=_Rows(rows)
        )  # fmt: skip

    def _allow(self, h: int) -> None:
        """A policy that accepts this agreement where the usual one would not: the noise is small on purpose."""
        path = self._state.folder / "policy.toml"
        text = path.read_text(encoding="utf-8")
        most = MOST_LIFETIME_RHO
        for name, value in (
            ("max_rho_per_quarter", most),
            ("max_rho_local_per_quarter", h * most),
            ("max_rho_local_lifetime", h * most),
            ("max_rho_lifetime", most),
        ):
            text = re.sub(rf"^{name} = .*$", f'{name} = "{_text(value)}"', text, flags=re.MULTILINE)
        replace_file(path, text.encode())


def _agreement(keys: _Keys, *, s: int, h: int, organisations: int) -> Manifest:
    """A sound manifest of a demonstration with the largest layout: one draw holds many cells to look at."""
    day, at = timedelta(days=1), agreements.format_time
    guardians = tuple(
        agreements.GuardianEntry(
            index=j,
            name=f"Guardian {j}",
            identity=identity.public.hex(),
            round_key=round_key.public.hex(),
            round_key_id=key_id(KEY_KEM, round_key.public),
            nonce_commitment=hashlib.sha256(b"nonce %d" % j).hexdigest(),
            ready_leaf=hashlib.sha256(b"leaf %d" % j).hexdigest(),
        )
        for j, (identity, round_key) in enumerate(zip(keys.guardians, keys.rounds, strict=True), start=1)
    )
    q = (3, 2, 1, 1, 2)
    made = Manifest(
        schema=agreements.SCHEMA,
        round=ROUND,
        demo=True,
        log_origin=ORIGIN,
        coordinator=keys.coordinator.public.hex(),
        events=agreements.Window(at(NOW - 93 * day), at(NOW - 2 * day)),
        collection_deadline=at(NOW - 2 * day),
        submission=agreements.Submission(at(NOW - day), at(NOW + day), at(NOW + day)),
        publish_at=at(NOW + 2 * day),
        appeal_days=30,
        destroy_by_days=45,
        families=tuple(Family(name, name.capitalize(), f"vendor of {name}", ()) for name in MODELS),
        signals=tuple(SIGNALS),
        kinds=KINDS_COUNTED,
        pairs=greedy_pairs(MODELS, PAIRS_A_MODEL),
        pair_source=agreements.PairSource("audit", MODELS, PAIRS_A_MODEL),
        bounds=agreements.Bounds(q, sum(q), 20, TASKS),
        noise=agreements.NoiseLaw(s, h, _text(agreements.rho_of(sum(q), s)), "1e-8"),
        cohorts=agreements.CohortLayout(COHORTS, agreements.smallest_cohort(organisations, COHORTS)),
        floors=agreements.Floors(20, 20, 2_000, 15),
        roster=agreements.RosterReference("0" * 64, 1, organisations, 100 * organisations),
        guardians=guardians,
        t=2,
        n=3,
        stage="1",
        rules=current_rules(),
        min_software="0.1.0",
        log_batch="now",
        rounds_so_far=0,
        last_full_round=None,
        previous_report=None,
    )
    agreements.check(made)
    return made


def _text(value: Fraction) -> str:
    return f"{value.numerator}/{value.denominator}"
