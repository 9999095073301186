# SPDX-License-Identifier: Apache-2.0
"""Sound manifests for tests, with keys that the tests hold.

Rules kept here:
* every manifest passes `manifest.check`, unless a test asks for a broken one with `sound=False`;
* keys are derived from fixed text, so a test can open what was sealed to the guardians of a made manifest;
* family ids are neutral words: nothing here depends on a real model.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec

from windvane_privacy import manifest as module
from windvane_privacy.catalogue import SIGNALS, Family, greedy_pairs
from windvane_privacy.identity import KEY_KEM, SigningKey, key_id
from windvane_privacy.manifest import (
    Bounds,
    CohortLayout,
    Floors,
    GuardianEntry,
    Manifest,
    NoiseLaw,
    PairSource,
    RosterReference,
    Submission,
    Window,
)
from windvane_privacy.sealing import RoundKey

FAMILY_IDS = (
    "alder", "birch", "cedar", "dogwood", "elm", "fir", "ginkgo", "hazel", "iroko", "juniper", "kauri", "larch",
)  # fmt: skip
LOG_ORIGIN = "log.windvane.example/test"


def derived(text: str, length: int = 32) -> bytes:
    """`length` bytes that depend on the text only."""
    return hashlib.shake_256(b"windvane tests\0" + text.encode()).digest(length)


def coordinator_key() -> SigningKey:
    """The coordinator's identity key."""
    return SigningKey.from_raw(derived("coordinator"))


def guardian_key(index: int) -> SigningKey:
    """Identity key of guardian `index` (from 1)."""
    return SigningKey.from_raw(derived(f"guardian {index}"))


def guardian_round_key(index: int) -> RoundKey:
    """Round key of guardian `index` (from 1)."""
    return RoundKey.from_raw(derived(f"round key {index}", 96))


def member_key(number: int) -> SigningKey:
    """Identity key of member `number`."""
    return SigningKey.from_raw(derived(f"member {number}"))


def guardian_nonce(index: int) -> bytes:
    """Stands for the 32-byte nonce of guardian `index`."""
    return derived(f"nonce {index}")


def make_guardians(
    n: int = 3,
    *,
    identities: Sequence[bytes] | None = None,
    round_keys: Sequence[bytes] | None = None,
    nonce_commitments: Sequence[str] | None = None,
    ready_leaves: Sequence[str] | None = None,
) -> tuple[GuardianEntry, ...]:
    """Manifest entries of `n` guardians; public keys are given raw, hashes as hex."""
    publics = round_keys or [guardian_round_key(j).public for j in range(1, n + 1)]
    return tuple(
        GuardianEntry(
            index=j,
            name=f"Guardian {j}",
            identity=(identities[j - 1] if identities else guardian_key(j).public).hex(),
            round_key=publics[j - 1].hex(),
            round_key_id=key_id(KEY_KEM, publics[j - 1]),
            nonce_commitment=nonce_commitments[j - 1] if nonce_commitments else derived(f"commitment {j}").hex(),
            ready_leaf=ready_leaves[j - 1] if ready_leaves else derived(f"ready leaf {j}").hex(),
        )
        for j in range(1, n + 1)
    )


def calendar(start: str, end: str, *, demo: bool = False) -> dict[str, Any]:
    """The date fields of a manifest; `start` and `end` are days. A demo's submission lasts two days after the end."""
    first, last = (module.parse_time(f"{day}T00:00:00Z") for day in (start, end))
    wait, lasts = (1, 2) if demo else (15, 15)
    deadline = last if demo else last + timedelta(days=14)
    opens = last + timedelta(days=wait)
    closes = opens + timedelta(days=lasts)
    published = closes + timedelta(days=1) if demo else last + timedelta(days=45)
    commit_by = closes if demo else closes - timedelta(days=2)
    at = module.format_time
    return {
        "events": Window(at(first), at(last)),
        "collection_deadline": at(deadline),
        "submission": Submission(at(opens), at(commit_by), at(closes)),
        "publish_at": at(published),
    }


def make_manifest(
    *,
    members: int = 40,
    demo: bool = True,
    k: int = 5,
    people: int | None = None,
    cap: int | None = None,
    kinds: tuple[str, ...] = ("all",),
    C: int = 20,
    tasks: int = 20,
    s: int | None = None,
    G: int = 5,
    h: int | None = None,
    t: int = 2,
    guardians: Sequence[GuardianEntry] | None = None,
    coordinator: bytes | None = None,
    floors: Floors | None = None,
    order: Sequence[str] | None = None,
    families: Sequence[Family] | None = None,
    start: str = "2026-07-01",
    end: str = "2026-10-01",
    sound: bool = True,
    **changes: Any,
) -> Manifest:
    """A manifest of `members` organisations and `k` families.

    `s`, `h` and the pair cap follow docs/mechanism.md for the size unless given (60 organisations of 1,000 people:
    s = 208, h = 5). `order` lists family ids by public rank (default: the first `k` neutral ids). A real round
    (`demo=False`) has the real calendar after `end`; a demo a short one. `changes` replaces any field at the end.

    Raises:
        ManifestError, CapacityExceeded: what was asked for is not sound (unless `sound=False`).
    """
    ids = tuple(order or FAMILY_IDS[:k])
    limit = cap if cap is not None else max(1, len(ids) - 2)
    heads = people if people is not None else members * (100 if demo else 1_000)
    smallest = module.smallest_cohort(members, G)
    scale = s if s is not None else (104 if members < 60 or heads < 60_000 else 208)
    honest = h if h is not None else max(1, min(smallest // 2, 6 if scale < 208 else 24))
    q = (3, 2, 1, 1, 2)
    rho = module.rho_of(sum(q), scale)
    entries = tuple(guardians) if guardians is not None else make_guardians()
    made = Manifest(
        schema=module.SCHEMA,
        round="2026-Q3",
        demo=demo,
        log_origin=LOG_ORIGIN,
        coordinator=(coordinator or coordinator_key().public).hex(),
        appeal_days=30,
        destroy_by_days=45,
        families=tuple(families or (Family(i, i.capitalize(), f"vendor of {i}", ()) for i in ids)),
        signals=tuple(SIGNALS),
        kinds=kinds,
        pairs=greedy_pairs(ids, limit),
        pair_source=PairSource("order of a test", ids, limit),
        bounds=Bounds(q, sum(q), C, tasks),
        noise=NoiseLaw(scale, honest, f"{rho.numerator}/{rho.denominator}", "1e-8"),
        cohorts=CohortLayout(G, smallest),
        floors=floors or (Floors(20, 20, 2_000, 15) if demo else Floors(36, 30, 10_000, 25)),
        roster=RosterReference(derived("roster").hex(), 1, members, heads),
        guardians=entries,
        t=t,
        n=len(entries),
        stage="1",
        rules=(),
        min_software="0.1.0",
        log_batch="now",
        rounds_so_far=0,
        last_full_round=None,
        previous_report=None,
        **calendar(start, end, demo=demo),
    )
    made = msgspec.structs.replace(made, **changes)
    if sound:
        module.check(made)
    return made
