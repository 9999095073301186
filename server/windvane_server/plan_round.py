# SPDX-License-Identifier: Apache-2.0
"""From a plan of a quarter to its manifest: the ladder of sizes, the noise law, the calendar.

Rules kept here:
* everything follows from public facts: the roster, its bands, a named public order of models, the calendar;
* s, h, m_min, C and the pair list are computed, never typed; a plan may only choose among what the ladder allows;
* dates of a real round follow from its quarter; only a demonstration may set its own;
* a federation below the floors gets no softer manifest: the reason is named instead (`too_small`).

Sources: docs/mechanism.md (noise, h, ladder of sizes), docs/protocol.md (calendar).
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import msgspec

from windvane_privacy import canonical
from windvane_privacy.catalogue import POOLED, SIGNALS, Family, greedy_pairs
from windvane_privacy.errors import ConfigurationError
from windvane_privacy.manifest import (
    SCHEMA,
    VOTE_NORM,
    Bounds,
    CohortLayout,
    Floors,
    GuardianEntry,
    Manifest,
    NoiseLaw,
    PairSource,
    RosterReference,
    Rule,
    Submission,
    Window,
    format_time,
    rho_of,
    smallest_cohort,
)

VOTES_KEPT = (3, 2, 1, 1, 2)
"""Kept votes of one person per signal, in signal order; their sum is Q = 9."""
TASKS = 20
COHORTS = 5
REAL_FLOORS = Floors(roster=36, accepted=30, people=10_000, pair=25)
DEMO_FLOORS = Floors(roster=20, accepted=15, people=2_000, pair=15)
LARGE_FROM = (60, 60_000)
"""Organisations and people from which the smaller rho is enough."""
RHO_SMALL_FEDERATION, RHO_LARGE_FEDERATION = Fraction(9, 128), Fraction(9, 512)
MAX_RHO_LOCAL = Fraction(27, 64)
"""h x rho at most: what two colluding guardians could reach, as the strictest usual policy allows."""
TIGHT_CLIP_FROM = 200
APPEAL_DAYS, DESTROY_DAYS = 30, 45

_QUARTER = re.compile(r"(\d{4})-Q([1-4])")
_DATES = ("events_from", "events_to", "collection_deadline", "opens", "commit_by", "closes", "publish_at")


class RoundPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the coordinator decides before a quarter.

    `quarter`: such as "2027-Q1". `order`: family ids by the public rank of `source`. `families`: the catalogue.
    `cap`: pairs a model may stand in, null for k - 2. `kinds`: ("all",) or kinds of work. `rho`: null for the ladder's.
    `dates`: times by the names in `_DATES`, in a demonstration only.
    """

    quarter: str
    source: str
    order: tuple[str, ...]
    families: tuple[Family, ...]
    delta: str
    cap: int | None = None
    kinds: tuple[str, ...] = (POOLED,)
    rho: str | None = None
    stage: str = "1"
    log_batch: str = "now"
    dates: dict[str, str] = {}


class _PlanFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    quarter: str
    source: str
    order: tuple[str, ...]
    delta: str
    cap: int | None = None
    kinds: tuple[str, ...] = (POOLED,)
    rho: str | None = None
    family: tuple[Family, ...] = ()
    builtin: bool = True
    dates: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class Standing:
    """What a new manifest takes over from the federation and its log."""

    round_id: str
    demo: bool
    log_origin: str
    coordinator: str
    roster: RosterReference
    guardians: tuple[GuardianEntry, ...]
    t: int
    rules: tuple[Rule, ...]
    min_software: str
    rounds_so_far: int
    last_full_round: str | None
    previous_report: str | None


def read_plan(raw: bytes, builtin: Sequence[Family]) -> RoundPlan:
    """A plan from TOML. Families that the file does not define itself come from `builtin`, all of them, unless the file
    says `builtin = false`.

    Raises:
        ConfigurationError: not TOML, an unknown or missing field, a field of another type.
    """
    try:
        found = msgspec.convert(tomllib.loads(raw.decode("utf-8")), _PlanFile)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError("The plan is not TOML.") from error
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"The plan: {error}.") from None
    own = {family.id for family in found.family}
    others = (family for family in builtin if family.id not in own) if found.builtin else ()
    families = (*found.family, *others)
    return RoundPlan(
        quarter=found.quarter,
        source=found.source,
        order=found.order,
        families=tuple(sorted(families, key=lambda family: family.id)),
        delta=found.delta,
        cap=found.cap,
        kinds=found.kinds,
        rho=found.rho,
        dates=found.dates,
    )


def calendar(quarter: str) -> dict[str, str]:
    """The dates of a real round, by the names a plan uses.

    Raises:
        ConfigurationError: not of the form 2027-Q1.
    """
    found = _QUARTER.fullmatch(quarter)
    if found is None or int(found[1]) < 1:
        raise ConfigurationError("A quarter is written like 2027-Q1.")
    year, number = int(found[1]), int(found[2])
    start = datetime(year, 3 * number - 2, 1, tzinfo=UTC)
    end = datetime(year + number // 4, 3 * number % 12 + 1, 1, tzinfo=UTC)
    after = {
        "events_to": timedelta(0),
        "collection_deadline": timedelta(days=14),
        "opens": timedelta(days=15),
        "commit_by": timedelta(days=28),
        "closes": timedelta(days=30),
        "publish_at": timedelta(days=45, hours=12),
    }
    return {"events_from": format_time(start)} | {name: format_time(end + later) for name, later in after.items()}


def ladder_rho(organisations: int, people: int) -> Fraction:
    """rho of a round for a federation of this size: 9/128, or 9/512 from 60 organisations and 60,000 people on."""
    large = organisations >= LARGE_FROM[0] and people >= LARGE_FROM[1]
    return RHO_LARGE_FEDERATION if large else RHO_SMALL_FEDERATION


def noise_scale(rho: Fraction, Q: int) -> int:
    """The smallest whole s whose rho, 169 Q / (2 s^2), is at most `rho`."""
    least = Fraction(VOTE_NORM**2 * Q, 2) / rho
    s = math.isqrt(math.floor(least))
    return s if s * s >= least else s + 1


def honest_share(m_min: int, rho: Fraction) -> int:
    """h = min(floor(m_min / 2), h_max), at least 1; h_max is the largest h with h rho <= 27/64."""
    return max(1, min(m_min // 2, math.floor(MAX_RHO_LOCAL / rho)))


def build_manifest(plan: RoundPlan, standing: Standing) -> Manifest:
    """The manifest of a plan. It is not checked here: `manifest.check` decides whether it may be signed.

    Raises:
        ConfigurationError: a date or a fraction of the plan is malformed, or dates are set in a real round.
    """
    dates = _dates(plan, demo=standing.demo)
    organisations, people = standing.roster.members, standing.roster.people
    s = noise_scale(_rho(plan, organisations, people), sum(VOTES_KEPT))
    m_min = smallest_cohort(organisations, COHORTS)
    exact_rho = rho_of(sum(VOTES_KEPT), s)
    cap = plan.cap if plan.cap is not None else max(1, len(plan.order) - 2)
    return Manifest(
        schema=SCHEMA,
        round=standing.round_id,
        demo=standing.demo,
        log_origin=standing.log_origin,
        coordinator=standing.coordinator,
        events=Window(from_=dates["events_from"], to=dates["events_to"]),
        collection_deadline=dates["collection_deadline"],
        submission=Submission(opens=dates["opens"], commit_by=dates["commit_by"], closes=dates["closes"]),
        publish_at=dates["publish_at"],
        appeal_days=APPEAL_DAYS,
        destroy_by_days=DESTROY_DAYS,
        families=plan.families,
        signals=tuple(str(signal) for signal in SIGNALS),
        kinds=plan.kinds,
        pairs=greedy_pairs(plan.order, cap),
        pair_source=PairSource(name=plan.source, order=plan.order, cap=cap),
        bounds=Bounds(q=VOTES_KEPT, Q=sum(VOTES_KEPT), C=8 if organisations >= TIGHT_CLIP_FROM else 20, tasks=TASKS),
        noise=NoiseLaw(
            s=s,
            h=honest_share(m_min, exact_rho),
            rho=f"{exact_rho.numerator}/{exact_rho.denominator}",
            delta=plan.delta,
        ),
        cohorts=CohortLayout(G=COHORTS, m_min=m_min),
        floors=DEMO_FLOORS if standing.demo else REAL_FLOORS,
        roster=standing.roster,
        guardians=standing.guardians,
        t=standing.t,
        n=len(standing.guardians),
        stage=plan.stage,
        rules=standing.rules,
        min_software=standing.min_software,
        log_batch=plan.log_batch,
        rounds_so_far=standing.rounds_so_far,
        last_full_round=standing.last_full_round,
        previous_report=standing.previous_report,
    )


def too_small(organisations: int, people: int, floors: Floors) -> str | None:
    """Why a roster of this size cannot hold a round: "roster", "people", or null when it can."""
    if organisations < floors.roster:
        return "roster"
    return "people" if people < floors.people else None


def plan_sha256(plan: RoundPlan) -> str:
    """A name for a plan, to tell whether two are the same."""
    return canonical.sha256_hex(canonical.encode(msgspec.to_builtins(plan)))


def _rho(plan: RoundPlan, organisations: int, people: int) -> Fraction:
    if plan.rho is None:
        return ladder_rho(organisations, people)
    try:
        rho = Fraction(plan.rho)
    except (ValueError, ZeroDivisionError):
        raise ConfigurationError("rho is a fraction such as 9/512.") from None
    if not 0 < rho <= ladder_rho(organisations, people):
        raise ConfigurationError("rho is larger than a federation of this size needs.")
    return rho


def _dates(plan: RoundPlan, *, demo: bool) -> Mapping[str, str]:
    unknown = set(plan.dates) - set(_DATES)
    if unknown or (plan.dates and not demo):
        raise ConfigurationError("The plan sets dates: those of a real round follow from its quarter.")
    return calendar(plan.quarter) | plan.dates
