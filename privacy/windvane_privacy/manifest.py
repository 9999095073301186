# SPDX-License-Identifier: Apache-2.0
"""The manifest: one signed agreement per quarter. Nothing about a round is configured anywhere else.

Rules kept here:
* canonical JSON (RFC 8785); its SHA-256 is bound into every signature and every envelope of the round;
* unknown fields are refused; every number is a whole number, every fraction a string;
* what can be computed from other fields (rho, m_min, h at most, the pair list) is computed again and must agree;
* dates follow the calendar of a real round unless `demo` is true; a demo has its own, lower floors and says so;
* a manifest never loosens a policy: `policy.py` compares, this module only checks that the agreement is sound.

References: docs/mechanism.md (bounds, noise), docs/protocol.md (who signs what).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import msgspec

from windvane_privacy import canonical
from windvane_privacy.catalogue import KINDS, POOLED, SIGNALS, Catalogue, Family, greedy_pairs
from windvane_privacy.errors import CapacityExceeded, MalformedInput, ManifestError
from windvane_privacy.leaf import is_day, is_hash, is_round, is_round_key

SCHEMA = "windvane/manifest/v1"
FIELD_PRIME = 2**64 - 2**32 + 1
VOTE_NORM = 13
"""L2 norm of one vote: it moves (12 D, 5 T) by at most (12, 5), a Pythagorean triple."""
D_SCALE, T_SCALE = 12, 5
MIN_SHARE_SCALE = 26
"""Least s_i: two in vote units, so that a sum of discrete Gaussians is one (docs/mechanism.md, tau)."""
LEAD_DAYS = 14
MOST_COMPARED = 100
"""Families of a pair list at most, so that no manifest makes its readers compute for ever."""
MOST_DAYS = 3660
"""Longest time from a report until its keys are gone: ten years."""


class Window(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"from_": "from"}):
    """Half-open interval of UTC times, RFC 3339 with `Z`."""

    from_: str
    to: str


class Submission(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When members draw and send. `commit_by` is the last moment for a commitment."""

    opens: str
    commit_by: str
    closes: str


class PairSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The public order that the pair list was taken from. `order` lists family ids by rank, `cap` is pairs a model."""

    name: str
    order: tuple[str, ...]
    cap: int


class Bounds(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one person and one organisation can weigh at most.

    `q`: kept votes of one person per signal, in signal order. `Q`: their sum. `C`: people an organisation counts for in
    a cell. `tasks`: trials drawn per side of a comparison.
    """

    q: tuple[int, int, int, int, int]
    Q: int
    C: int
    tasks: int


class NoiseLaw(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`s`: scale of a cohort's noise on the released integers; `h`: honest members whose shares carry it; `rho`: a
    fraction such as "9/512"; `delta`: such as "1e-8"."""

    s: int
    h: int
    rho: str
    delta: str


class CohortLayout(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`G` cohorts, none smaller than `m_min`."""

    G: int
    m_min: int


class Floors(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Least organisations in the roster, accepted organisations, people in scope, organisations of a pair."""

    roster: int
    accepted: int
    people: int
    pair: int


class RosterReference(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The roster of this round: its SHA-256 (hex), version, organisations, and the sum of the bands' lower ends."""

    sha256: str
    version: int
    members: int
    people: int


class GuardianEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One guardian: identity key (32 bytes, hex), this round's encryption key (1,216 bytes, hex) and its id, the
    SHA-256 of its nonce, and the hash of its `guardian-ready` leaf."""

    index: int
    name: str
    identity: str
    round_key: str
    round_key_id: str
    nonce_commitment: str
    ready_leaf: str


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule and the SHA-256 of the conformance vectors that a program must reproduce to claim it."""

    id: str
    sha256: str


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """See the module. Field meanings stand with their types."""

    schema: str
    round: str
    demo: bool
    log_origin: str
    coordinator: str
    """Identity key of the coordinator, 32 bytes, hex."""
    events: Window
    collection_deadline: str
    submission: Submission
    publish_at: str
    appeal_days: int
    destroy_by_days: int
    families: tuple[Family, ...]
    signals: tuple[str, ...]
    kinds: tuple[str, ...]
    """("all",) in the pooled layout, else kinds of work."""
    pairs: tuple[tuple[str, str], ...]
    pair_source: PairSource
    bounds: Bounds
    noise: NoiseLaw
    cohorts: CohortLayout
    floors: Floors
    roster: RosterReference
    guardians: tuple[GuardianEntry, ...]
    t: int
    n: int
    stage: str
    """"1": no range proofs. "2": range proofs in force."""
    rules: tuple[Rule, ...]
    min_software: str
    log_batch: str
    """"now" (a leaf is logged at once) or "1d"."""
    rounds_so_far: int
    last_full_round: str | None
    previous_report: str | None
    """SHA-256 (hex) of the report before this round, null for the first."""

    # --- what follows from the fields ---

    @property
    def sha256(self) -> str:
        """Hex SHA-256 of the canonical bytes: the name of this agreement."""
        return canonical.sha256_hex(encode(self))

    @property
    def catalogue(self) -> Catalogue:
        """The families with compiled patterns."""
        return Catalogue(self.families)

    @property
    def pooled(self) -> bool:
        """True when the one published kind is `all`."""
        return self.kinds == (POOLED,)

    @property
    def rho(self) -> Fraction:
        """Exact zCDP cost of the round for one person: 169 Q / (2 s^2)."""
        return rho_of(self.bounds.Q, self.noise.s)

    @property
    def share_scale(self) -> float:
        """s_i, the scale of one member's noise share: s / sqrt(h), rounded up."""
        return share_scale(self.noise.s, self.noise.h)

    @property
    def noise_clamp(self) -> int:
        """B = ceil(10 s_i): how far a released entry may lie outside its exact range."""
        return math.ceil(10 * self.share_scale)

    @property
    def cell_count(self) -> int:
        """Cells of the layout: signals x kinds x pairs."""
        return len(self.signals) * len(self.kinds) * len(self.pairs)

    @property
    def length(self) -> int:
        """L, released integers: two a cell."""
        return 2 * self.cell_count


def rho_of(Q: int, s: int) -> Fraction:
    """rho = (13 sqrt Q)^2 / (2 s^2), exact."""
    return Fraction(VOTE_NORM**2 * Q, 2 * s * s)


def share_scale(s: int, h: int) -> float:
    """s / sqrt(h) as a float rounded up, so that h shares never carry less than s^2 (docs/mechanism.md, H2)."""
    scale = s / math.sqrt(h)
    while Fraction(scale) ** 2 * h < s * s:
        scale = math.nextafter(scale, math.inf)
    return scale


def smallest_cohort(roster: int, G: int) -> int:
    """m_min = floor(.85 n / G), in whole numbers."""
    return (85 * roster) // (100 * G)


def parse_time(text: str) -> datetime:
    """An RFC 3339 UTC time ending in `Z`, whole seconds, of the years 2000 to 2999 (windows are reckoned from it).

    Raises:
        MalformedInput: another form.
    """
    try:
        found = datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError as error:
        raise MalformedInput("a time is not of the form 2026-07-01T00:00:00Z") from error
    # Python's reader takes single digits, spaces and digits of other scripts too.
    if not text.startswith("2") or format_time(found) != text:
        raise MalformedInput("a time is not of the form 2026-07-01T00:00:00Z")
    return found


def format_time(moment: datetime) -> str:
    """The RFC 3339 form that `parse_time` reads; fractions of a second are dropped."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def encode(manifest: Manifest) -> bytes:
    """Canonical bytes."""
    return canonical.encode(msgspec.to_builtins(manifest))


def decode(raw: bytes) -> Manifest:
    """A sound manifest from canonical bytes.

    Raises:
        MalformedInput: not canonical, a missing or unknown field, a wrong type.
        ManifestError, CapacityExceeded: the fields contradict each other.
    """
    value = canonical.decode(raw)
    try:
        manifest = msgspec.convert(value, Manifest)
    except msgspec.ValidationError:
        raise MalformedInput("a field of the manifest is missing, unknown or of another type") from None
    # A field that has a default could be left out: one agreement would have two spellings, and two hashes.
    if encode(manifest) != raw:
        raise MalformedInput("a field of the manifest is missing")
    check(manifest)
    return manifest


def check(manifest: Manifest) -> None:
    """Refuse a manifest that does not hold together; see the module's rules.

    Raises:
        ManifestError: with the rule that is broken.
        CapacityExceeded: sums could overflow the field.
    """
    for broken, why in _findings(manifest):
        if broken:
            raise ManifestError(why)
    largest = D_SCALE * manifest.bounds.C + manifest.noise_clamp
    if manifest.roster.members * largest >= (FIELD_PRIME - 1) // 2:
        raise CapacityExceeded


def _findings(m: Manifest) -> Iterator[tuple[bool, str]]:
    # One at a time: what is reckoned further down stands on what was found sound further up.
    catalogue = m.catalogue
    ids = set(catalogue.ids)
    order = m.pair_source.order
    days = [day for family in m.families for day in (family.valid_from, family.retired_from) if day is not None]
    yield m.schema != SCHEMA, "The manifest is of another version."
    yield not _forms_hold(m), "A key, a hash or the name of a round in the manifest is malformed."
    yield not all(is_day(day) for day in days), "A day of the catalogue is not of the form 2026-07-01."
    yield m.signals != tuple(SIGNALS), "The layout must have the five signals in their order."
    yield not m.pooled and not set(m.kinds) <= set(KINDS) - {"other"}, "A kind of work is not in the closed list."
    yield len(set(m.kinds)) != len(m.kinds) or not m.kinds, "A kind of work is missing or listed twice."
    yield not 2 <= len(order) <= MOST_COMPARED, "The public order has too few or too many families."
    yield len(set(order)) != len(order) or not set(order) <= ids, "The public order is malformed."
    yield m.pairs != greedy_pairs(order, m.pair_source.cap), "The pair list does not follow from its public order."
    yield sum(m.bounds.q) != m.bounds.Q or min(m.bounds.q) < 1, "Q is not the sum of the votes per signal."
    yield m.bounds.C < 1 or m.bounds.tasks < 1, "A bound is below one."
    yield m.noise.h < 1 or m.noise.s < 1, "The noise law is malformed."
    yield m.noise.rho != _fraction(m.rho), "rho does not follow from s and Q."
    yield m.share_scale < MIN_SHARE_SCALE, "A member's noise share is too small for its sum to be exact."
    yield m.cohorts.G < 1 or m.cohorts.m_min != smallest_cohort(m.roster.members, m.cohorts.G), "m_min is wrong."
    yield m.noise.h > max(1, m.cohorts.m_min // 2), "h is more than half of the smallest cohort."
    yield m.roster.members < m.floors.roster, "The roster is below the manifest's own floor."
    yield m.roster.people < m.floors.people, "The people in scope are below the manifest's own floor."
    yield not m.demo and m.floors.roster < 36, "A real round needs a floor of 36 organisations in the roster."
    yield not m.demo and m.floors.accepted < 30, "A real round needs a floor of 30 accepted organisations."
    yield not m.demo and m.floors.people < 10_000, "A real round needs a floor of 10,000 people."
    yield m.demo and (m.floors.roster < 20 or m.floors.people < 2_000), "A demonstration's floors are too low."
    yield m.n != len(m.guardians) or not 2 <= m.t <= m.n, "t of n does not fit the guardians."
    yield [g.index for g in m.guardians] != list(range(1, m.n + 1)), "Guardians are not numbered from 1."
    yield len({g.identity for g in m.guardians}) != m.n, "Two guardians have one key."
    yield m.stage not in ("1", "2"), "The stage of the range proofs is unknown."
    yield m.log_batch not in ("now", "1d"), "The log's batch is unknown."
    yield from _date_findings(m)


def _forms_hold(m: Manifest) -> bool:
    hashes = [m.coordinator, m.roster.sha256, *(rule.sha256 for rule in m.rules)]
    hashes += [h for g in m.guardians for h in (g.identity, g.round_key_id, g.nonce_commitment, g.ready_leaf)]
    hashes += [] if m.previous_report is None else [m.previous_report]
    rounds = [m.round] if m.last_full_round is None else [m.round, m.last_full_round]
    return (
        all(map(is_hash, hashes)) and all(map(is_round, rounds)) and all(is_round_key(g.round_key) for g in m.guardians)
    )


def _date_findings(m: Manifest) -> list[tuple[bool, str]]:
    start, end = parse_time(m.events.from_), parse_time(m.events.to)
    deadline = parse_time(m.collection_deadline)
    opens, commit_by, closes = (
        parse_time(t) for t in (m.submission.opens, m.submission.commit_by, m.submission.closes)
    )
    published = parse_time(m.publish_at)
    day = timedelta(days=1)
    ordered = start < end <= deadline <= opens < commit_by <= closes <= published
    real = (
        deadline == end + 14 * day
        and opens >= end + 15 * day
        and closes == opens + 15 * day
        and commit_by == closes - 2 * day
        and published >= end + 45 * day
    )
    return [
        (not ordered, "The dates of the round are not in order."),
        (not m.demo and not real, "The dates are not those of a real round."),
        (m.appeal_days < 30 and not m.demo, "The appeal period is shorter than 30 days."),
        (m.appeal_days < 0, "The appeal period is malformed."),
        (m.destroy_by_days < m.appeal_days, "Keys would be destroyed before the appeal ends."),
        (m.destroy_by_days > MOST_DAYS, "Keys would be kept for more than ten years."),
    ]


def _fraction(value: Fraction) -> str:
    return f"{value.numerator}/{value.denominator}"
