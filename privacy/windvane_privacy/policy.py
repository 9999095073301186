# SPDX-License-Identifier: Apache-2.0
"""What this member or guardian accepts: a local file that no centre can override.

Rules kept here:
* the file is complete: a field that is missing, unknown or malformed is an error, never a silent default;
* a missing or unreadable file accepts nothing (`PolicyMissing`);
* a manifest is compared with the policy field by field and refused by name; it can never loosen a policy;
* a demonstration is refused first, before anything else is looked at, unless the policy takes part in demonstrations;
* members and guardians hold the same kind of file and run the same check.

What each limit means: docs/mechanism.md.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Literal

import msgspec

from windvane_privacy import budget
from windvane_privacy.catalogue import KINDS, POOLED, SIGNALS
from windvane_privacy.errors import (
    BoundAbovePolicy,
    CohortTooSmall,
    ConfigurationError,
    CoordinatorNotPinned,
    DemoManifest,
    FederationTooSmall,
    GuardianNotPinned,
    LifetimeCapReached,
    LocalRhoAbovePolicy,
    NoiseShareOutsidePolicy,
    PolicyMissing,
    PolicyRefusal,
    RhoAbovePolicy,
    SignalNotAllowed,
    SoftwareTooOld,
)
from windvane_privacy.manifest import Manifest

MAX_POLICY_BYTES = 64 * 1024
MOST_LIFETIME_RHO = Fraction(9, 8)
"""The software accepts no lifetime cap above this, whatever the file says: sixteen quarters at s = 104."""
LEAST_GUARDIANS = 3
NO_OVERLAP = budget.Overlap()
_KEY = re.compile(r"[0-9a-f]{64}")
_FRACTION = re.compile(r"[1-9][0-9]{0,8}(?:/[1-9][0-9]{0,8})?")
_VERSION = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})(?:\.([0-9]{1,9}))?")


class PinnedGuardian(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A guardian that may appear in a manifest: its name, identity key (32 bytes, hex), and the group of companies or
    institutions it belongs to; two guardians of one round are never of one group."""

    name: str
    identity: str
    group: str


class Floors(msgspec.Struct, frozen=True):
    """The least federation that is accepted: organisations in the roster, accepted organisations, people in scope (by
    the lower ends of public bands), members of a cohort, and honest members whose noise suffices."""

    roster: int
    accepted: int
    people: int
    cohort: int
    h: int


DEMO_FLOORS = Floors(roster=20, accepted=15, people=2_000, cohort=3, h=1)
"""What a demonstration needs in a policy that takes part in demonstrations."""


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A policy file. rho in zCDP, as fractions; limits are inclusive."""

    demo: bool
    approval: Literal["auto", "human"]
    coordinator: str
    """Identity key of the coordinator, 32 bytes, hex."""
    log_origin: str
    max_rho_per_quarter: Fraction
    """For all rounds whose events overlap, together."""
    max_rho_local_per_quarter: Fraction
    """h x rho: what two colluding guardians could hold against this organisation's noised vector."""
    max_rho_local_lifetime: Fraction
    """h x the lifetime cap."""
    max_rho_lifetime: Fraction
    """Cap of one person; people who reach it are dropped, the organisation goes on."""
    min_roster: int
    min_accepted: int
    min_people_in_scope: int
    min_cohort: int
    least_h: int
    max_C: int
    max_Q: int
    signals: tuple[str, ...]
    kinds: tuple[str, ...]
    guardians_t: int
    guardians_n: int
    guardians: tuple[PinnedGuardian, ...]
    min_software: str
    max_h: int | None = None
    """None: only `max_rho_local_per_quarter` bounds h."""

    @property
    def floors(self) -> Floors:
        """The floors for a real round."""
        return Floors(self.min_roster, self.min_accepted, self.min_people_in_scope, self.min_cohort, self.least_h)


def load_policy(path: Path) -> Policy:
    """The policy in a TOML file.

    Raises:
        PolicyMissing: no file, not readable, or not TOML.
        ConfigurationError: a field is missing, unknown or malformed.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_POLICY_BYTES + 1)
    except OSError as error:
        raise PolicyMissing from error
    return read_policy(raw)


def read_policy(raw: bytes) -> Policy:
    """The policy of a file's bytes.

    Raises:
        PolicyMissing: not TOML, or longer than any policy.
        ConfigurationError: a field is missing, unknown or malformed.
    """
    if len(raw) > MAX_POLICY_BYTES:
        raise PolicyMissing("policy.toml is larger than any policy.")
    try:
        table = tomllib.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError) as error:  # not UTF-8, not TOML, or a number of more digits than Python reads
        raise PolicyMissing from error
    return policy_from(table)


def policy_from(table: dict[str, object]) -> Policy:
    """A sound policy from the table of a TOML file.

    Raises:
        ConfigurationError: a field is missing, unknown or malformed.
    """
    try:
        policy = msgspec.convert(table, Policy, dec_hook=_read_fraction)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"policy.toml: {error}") from None
    for broken, why in _findings(policy):
        if broken:
            raise ConfigurationError(f"policy.toml: {why}")
    return policy


def check_manifest(policy: Policy, manifest: Manifest, *, overlap: budget.Overlap = NO_OVERLAP) -> None:
    """Refuse a manifest that asks more than the policy allows; used by members and guardians alike.

    `overlap`: what this member already spent on other rounds whose events overlap with this one's; guardians spend
    nothing.

    Raises:
        PolicyRefusal: the subclass that names what is refused; `DemoManifest` before all others.
        ManifestError: delta is not of an agreed form.
    """
    for broken, refusal in _refusals(policy, manifest, overlap):
        if broken:
            raise refusal


def installed_version() -> str:
    """Version of the installed distribution."""
    return importlib.metadata.version("windvane")


# --- the comparison ---------------------------------------------------------------------------------------------------


def _refusals(policy: Policy, m: Manifest, overlap: budget.Overlap) -> Iterator[tuple[bool, PolicyRefusal]]:
    # Each refusal names the manifest's field with its value, and the line of policy.toml that it is measured against.
    yield m.demo and not policy.demo, DemoManifest(_said("demo", "true", "demo", "false"))
    floors = DEMO_FLOORS if m.demo else policy.floors
    h, installed = m.noise.h, installed_version()
    spent, local = m.rho + overlap.rho, h * m.rho + overlap.local
    yield (
        m.coordinator != policy.coordinator,
        CoordinatorNotPinned("Manifest, field coordinator: the key is another one."),
    )
    yield (
        m.log_origin != policy.log_origin,
        CoordinatorNotPinned("Manifest, field log_origin: the name is another one."),
    )
    newer, wanted = not _at_least(installed, m.min_software), not _at_least(installed, policy.min_software)
    yield newer, SoftwareTooOld(f"Manifest, field min_software: it demands another version than {installed}.")
    yield wanted, SoftwareTooOld(f"policy.toml, line min_software: it demands another version than {installed}.")
    yield not m.rules, SoftwareTooOld("Manifest, field rules: it names none, so nothing says how sums become claims.")
    yield not _rules_known(m), SoftwareTooOld("Manifest, field rules: one is not a rule of this version.")
    yield not _guardians_pinned(policy, m), GuardianNotPinned("Manifest, field guardians: a key, or two of one group.")
    yield m.t != policy.guardians_t, GuardianNotPinned(_said("t", m.t, "guardians_t", policy.guardians_t))
    yield m.n != policy.guardians_n, GuardianNotPinned(_said("n", m.n, "guardians_n", policy.guardians_n))
    limit = policy.max_rho_per_quarter
    yield (
        spent > limit,
        RhoAbovePolicy(_said("noise.rho, with overlapping rounds", spent, "max_rho_per_quarter", limit)),
    )
    # Two guardians who see one noised vector of a member see all of them, each under its own round's h.
    limit = policy.max_rho_local_per_quarter
    said = _said("noise.h x noise.rho, with overlapping rounds", local, "max_rho_local_per_quarter", limit)
    yield local > limit, LocalRhoAbovePolicy(said)
    lifetime, limit = h * policy.max_rho_lifetime, policy.max_rho_local_lifetime
    said = _said("noise.h x max_rho_lifetime of the policy", lifetime, "max_rho_local_lifetime", limit)
    yield lifetime > limit, LocalRhoAbovePolicy(said)
    limit = policy.max_rho_lifetime
    yield m.rho > limit, LifetimeCapReached(_said("noise.rho", m.rho, "max_rho_lifetime", limit))
    floor = "{} for a demonstration" if m.demo else "{}"
    for field, value, name, least in (
        ("roster.members", m.roster.members, "min_roster", floors.roster),
        ("floors.accepted", m.floors.accepted, "min_accepted", floors.accepted),
        ("roster.people", m.roster.people, "min_people_in_scope", floors.people),
    ):
        yield value < least, FederationTooSmall(_said(field, value, name, floor.format(least)))
    yield h < floors.h, NoiseShareOutsidePolicy(_said("noise.h", h, "least_h", floor.format(floors.h)))
    most = policy.max_h if policy.max_h is not None else h
    yield h > most, NoiseShareOutsidePolicy(_said("noise.h", h, "max_h", most))
    clamped = NoiseShareOutsidePolicy(
        f"Manifest, field noise.delta: the clamp of the noise takes too much of {m.noise.delta}."
    )
    yield not budget.clamp_is_negligible(m), clamped
    m_min = m.cohorts.m_min
    yield (
        m_min < floors.cohort,
        CohortTooSmall(_said("cohorts.m_min", m_min, "min_cohort", floor.format(floors.cohort))),
    )
    C, Q = m.bounds.C, m.bounds.Q
    yield policy.max_C < C, BoundAbovePolicy(_said("bounds.C", C, "max_C", policy.max_C))
    yield policy.max_Q < Q, BoundAbovePolicy(_said("bounds.Q", Q, "max_Q", policy.max_Q))
    for field, asked, given in (("signals", m.signals, policy.signals), ("kinds", m.kinds, policy.kinds)):
        # Named from the closed lists, which `manifest.check` has compared before.
        more = [one for one in asked if one not in given]
        yield bool(more), SignalNotAllowed(_said(field, ", ".join(more), field, ", ".join(given)))


def _said(field: str, value: object, name: str, limit: object) -> str:
    return f"Manifest, field {field}: {value}. policy.toml, line {name}: {limit}."


def _guardians_pinned(policy: Policy, m: Manifest) -> bool:
    pinned = {guardian.identity: guardian.group for guardian in policy.guardians}
    groups = [pinned.get(entry.identity) for entry in m.guardians]
    return None not in groups and len(set(groups)) == len(groups)


def _rules_known(m: Manifest) -> bool:
    from windvane_privacy.rules import current_rules  # hashes the shipped vectors; only this check needs them

    known = {(rule.id, rule.sha256) for rule in current_rules()}
    return all((rule.id, rule.sha256) in known for rule in m.rules)


def _at_least(installed: str, wanted: str) -> bool:
    have, need = _VERSION.match(installed), _VERSION.fullmatch(wanted)
    if have is None or need is None:
        return False
    return [int(part or 0) for part in have.groups()] >= [int(part or 0) for part in need.groups()]


# --- the file ---------------------------------------------------------------------------------------------------------


def _read_fraction(kind: type, value: object) -> Fraction:
    if kind is Fraction and isinstance(value, str) and _FRACTION.fullmatch(value):
        return Fraction(value)
    raise ValueError('Expected a positive fraction in quotes such as "9/128"')


def _findings(p: Policy) -> list[tuple[bool, str]]:
    identities = [guardian.identity for guardian in p.guardians]
    least = (p.min_roster, p.min_accepted, p.min_people_in_scope, p.min_cohort, p.least_h, p.max_C, p.max_Q)
    return [
        (not all(_KEY.fullmatch(key) for key in (p.coordinator, *identities)), "a key is not 64 hex digits"),
        (not p.log_origin, "log_origin is empty"),
        (min(least) < 1 or (p.max_h is not None and p.max_h < p.least_h), "a limit is below what any round needs"),
        (p.max_rho_lifetime > MOST_LIFETIME_RHO, "max_rho_lifetime is above 9/8, the most this software accepts"),
        (not set(p.signals) <= set(SIGNALS), "a signal is not in the closed list"),
        (not set(p.kinds) <= {POOLED, *KINDS} - {"other"}, "a kind of work is not in the closed list"),
        (len(set(identities)) != len(identities), "two guardians have one key"),
        (len(identities) < LEAST_GUARDIANS, "fewer than three guardians are pinned"),
        (not 2 <= p.guardians_t <= p.guardians_n <= len(identities), "guardians_t of guardians_n does not fit"),
        (len({g.group for g in p.guardians}) < p.guardians_n, "the guardians are of too few groups"),
        (_VERSION.fullmatch(p.min_software) is None, "min_software is not of the form 0.1.0"),
    ]


def policy_toml(
    *,
    coordinator: str,
    log_origin: str,
    guardians: Sequence[PinnedGuardian],
    demo: bool = False,
    approval: Literal["auto", "human"] = "human",
    role: str = "member",
) -> str:
    """A commented policy file with the limits of docs/mechanism.md, for `init` of a role to write.

    `coordinator` and guardian identities are 32-byte keys in hex. The text loads with `load_policy`.
    """
    pinned = "\n".join(
        f"[[guardians]]\nname = {_text(g.name)}\nidentity = {_text(g.identity)}\ngroup = {_text(g.group)}\n"
        for g in guardians
    )
    return _TEMPLATE.format(
        role=re.sub(r"[^a-z]", "", role),
        demo=str(demo).lower(),
        approval=_text(approval),
        coordinator=_text(coordinator),
        log_origin=_text(log_origin),
        signals=_list(SIGNALS),
        kinds=_list((POOLED, *KINDS[:-1])),
        min_software=_text(installed_version()),
        guardians=pinned,
    )


def _text(value: str) -> str:
    # A JSON string is a TOML basic string but for DEL, which TOML wants escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _list(values: Sequence[str]) -> str:
    return "[" + ", ".join(_text(value) for value in values) + "]"


_TEMPLATE = """\
# What this {role} accepts. No coordinator can override it: a manifest that asks more is refused by name.
# Loosening a limit is a decision of your privacy officer. Every field must be here. docs/mechanism.md explains them.

# Take part in demonstrations (lower floors, invented data)? A real member says false.
demo = {demo}
# "human": a person approves each round before anything is drawn. "auto": the policy alone decides.
approval = {approval}

# Who may ask: the coordinator's identity key and the name of its public log.
coordinator = {coordinator}
log_origin = {log_origin}
min_software = {min_software}

# Privacy of one person, add or remove, as rho (zCDP). At delta 1e-8, 9/128 is epsilon 2.104 and 9/512 is 1.012.
max_rho_per_quarter = "9/128"
# The same if two guardians collude (h x rho): per quarter, and over a person's lifetime here.
max_rho_local_per_quarter = "27/64"
max_rho_local_lifetime = "27/4"
# Cap of one person over all quarters: 9/32 is epsilon 4.436. People who reach it are dropped. Never above 9/8.
max_rho_lifetime = "9/32"

# The least federation to take part in.
min_roster = 36
min_accepted = 30
min_people_in_scope = 10000
min_cohort = 5
# Honest members of a cohort whose noise alone must suffice. max_h may be added; the limits of h x rho bound it anyway.
least_h = 2

# The most that one organisation (C people in a comparison) and one person (Q votes) may weigh.
max_C = 20
max_Q = 9

# What may be counted at all. Remove what you do not give.
signals = {signals}
kinds = {kinds}

# How many guardians a round has, and how many of them can open a sum together. All of different groups.
guardians_t = 2
guardians_n = 3

# Guardians whose keys you checked with the institution by another way.
{guardians}"""
