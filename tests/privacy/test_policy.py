# SPDX-License-Identifier: Apache-2.0
"""Policy: the file decides, each limit refuses by its own name, and no manifest can loosen it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import pytest

from manifests import guardian_key, make_guardians, make_manifest, member_key
from policies import GUARDIANS, policy, text
from windvane_privacy import policy as policy_module
from windvane_privacy.budget import Overlap
from windvane_privacy.catalogue import KINDS, SIGNALS
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
    ManifestError,
    NoiseShareOutsidePolicy,
    PolicyMissing,
    PolicyRefusal,
    RhoAbovePolicy,
    SignalNotAllowed,
    SoftwareTooOld,
)
from windvane_privacy.manifest import Bounds, Floors, GuardianEntry, Manifest, NoiseLaw, Rule
from windvane_privacy.policy import (
    PinnedGuardian,
    Policy,
    check_manifest,
    installed_version,
    load_policy,
    policy_from,
)
from windvane_privacy.rules import current_rules


def real(**changes: Any) -> Manifest:
    """A manifest that the default policy accepts: 60 organisations of 1,000 people, rho 9/512, h = 5."""
    return make_manifest(**{"members": 60, "demo": False, "rules": current_rules(), **changes})


def small(**changes: Any) -> Manifest:
    """36 organisations of 1,000: rho 9/128, h = 3, smallest cohort 6; everything at or near the default limits."""
    return real(**{"members": 36, **changes})


@pytest.mark.parametrize("manifest", [small(), real(), real(members=500, people=150_000)])
def test_the_default_policy_accepts_a_real_federation(manifest: Manifest) -> None:
    check_manifest(policy(), manifest)


def bounds(C: int = 20, Q: int = 9) -> Bounds:
    return Bounds((3, 2, 1, 1, Q - 7), Q, C, 20)


def noise(s: int, h: int, Q: int = 9) -> NoiseLaw:
    rho = Fraction(169 * Q, 2 * s * s)
    return NoiseLaw(s, h, f"{rho.numerator}/{rho.denominator}", "1e-8")


CASES: list[tuple[str, type[PolicyRefusal], Policy, Manifest, Policy, Manifest]] = [
    # name, refusal, policy and manifest just inside, policy and manifest just outside
    ("rho per quarter", RhoAbovePolicy, policy(), small(s=104), policy(), small(s=103)),
    ("rho of the policy", RhoAbovePolicy, policy(max_rho_per_quarter="9/512"), real(),
     policy(max_rho_per_quarter="9/513"), real()),
    ("local rho", LocalRhoAbovePolicy, policy(), real(members=90, people=50_000, s=104, h=6),
     policy(), real(members=90, people=50_000, s=104, h=7)),
    ("local rho of the policy", LocalRhoAbovePolicy, policy(max_rho_local_per_quarter="45/512"), real(),
     policy(max_rho_local_per_quarter="44/512"), real()),
    ("local rho, lifetime", LocalRhoAbovePolicy, policy(max_rho_local_lifetime="45/32"), real(),
     policy(max_rho_local_lifetime="44/32"), real()),
    ("lifetime cap", LifetimeCapReached, policy(max_rho_lifetime="9/128"), small(),
     policy(max_rho_lifetime="9/129"), small()),
    ("roster", FederationTooSmall, policy(), small(members=36), policy(min_roster=37), small(members=36)),
    ("accepted", FederationTooSmall, policy(), small(), policy(min_accepted=31), small()),
    ("people", FederationTooSmall, policy(), small(people=10_000), policy(min_people_in_scope=10_001),
     small(people=10_000)),
    ("least h", NoiseShareOutsidePolicy, policy(), small(h=2), policy(), small(h=1)),
    ("most h", NoiseShareOutsidePolicy, policy(max_h=5), real(h=5), policy(max_h=4), real(h=5)),
    ("delta of the clamp", NoiseShareOutsidePolicy, policy(), real(),
     policy(), real(noise=NoiseLaw(208, 5, "9/512", "1e-17"))),
    ("cohort", CohortTooSmall, policy(min_cohort=6), small(), policy(min_cohort=7), small()),
    ("C", BoundAbovePolicy, policy(), real(bounds=bounds(C=20)), policy(), real(bounds=bounds(C=21))),
    ("Q", BoundAbovePolicy, policy(), real(bounds=bounds(Q=9)),
     policy(), real(bounds=bounds(Q=10), noise=noise(208, 5, 10))),
    ("signal", SignalNotAllowed, policy(), real(), policy(signals=["completion"]), real()),
    ("kind", SignalNotAllowed, policy(kinds=["coding", "writing"]), real(kinds=("coding", "writing")),
     policy(kinds=["coding", "writing"]), real(kinds=("coding", "writing", "research"))),
    ("pooled kind", SignalNotAllowed, policy(kinds=["all"]), real(), policy(kinds=["coding"]), real()),
    ("coordinator", CoordinatorNotPinned, policy(), real(),
     policy(), real(coordinator=member_key(1).public)),
    ("log", CoordinatorNotPinned, policy(), real(), policy(log_origin="elsewhere"), real()),
    ("guardian", GuardianNotPinned, policy(), real(),
     policy(), real(guardians=make_guardians(identities=[guardian_key(j).public for j in (1, 2, 9)]))),
    ("t", GuardianNotPinned, policy(), real(t=2), policy(), real(t=3)),
    ("n", GuardianNotPinned, policy(), real(), policy(guardians_n=2), real()),
    ("software of the manifest", SoftwareTooOld, policy(), real(min_software=installed_version()),
     policy(), real(min_software="99.0.0")),
    ("software not a version", SoftwareTooOld, policy(), real(), policy(), real(min_software="newest")),
    ("software of the policy", SoftwareTooOld, policy(), real(), policy(min_software="99.0"), real()),
    ("rule hash", SoftwareTooOld, policy(), real(), policy(), real(rules=(Rule("votes-1", "00" * 32),))),
    ("rule name", SoftwareTooOld, policy(), real(),
     policy(), real(rules=(Rule("votes-9", current_rules()[0].sha256), *current_rules()))),
    ("no rules", SoftwareTooOld, policy(), real(), policy(), real(rules=())),
]  # fmt: skip


NAMED = {
    # case: (field of the manifest, line of the policy or None where the field alone says it)
    "rho per quarter": ("noise.rho", "max_rho_per_quarter"),
    "rho of the policy": ("noise.rho", "max_rho_per_quarter"),
    "local rho": ("noise.h x noise.rho", "max_rho_local_per_quarter"),
    "local rho of the policy": ("noise.h x noise.rho", "max_rho_local_per_quarter"),
    "local rho, lifetime": ("noise.h", "max_rho_local_lifetime"),
    "lifetime cap": ("noise.rho", "max_rho_lifetime"),
    "roster": ("roster.members", "min_roster"),
    "accepted": ("floors.accepted", "min_accepted"),
    "people": ("roster.people", "min_people_in_scope"),
    "least h": ("noise.h", "least_h"),
    "most h": ("noise.h", "max_h"),
    "delta of the clamp": ("noise.delta", None),
    "cohort": ("cohorts.m_min", "min_cohort"),
    "C": ("bounds.C", "max_C"),
    "Q": ("bounds.Q", "max_Q"),
    "signal": ("signals", "signals"),
    "kind": ("kinds", "kinds"),
    "pooled kind": ("kinds", "kinds"),
    "coordinator": ("coordinator", None),
    "log": ("log_origin", None),
    "guardian": ("guardians", None),
    "t": ("t", "guardians_t"),
    "n": ("n", "guardians_n"),
    "software of the manifest": ("min_software", None),
    "software not a version": ("min_software", None),
    "software of the policy": (None, "min_software"),
    "rule hash": ("rules", None),
    "rule name": ("rules", None),
    "no rules": ("rules", None),
}


@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_each_refusal_names_the_field_of_the_manifest_and_the_line_of_the_policy(case: tuple[Any, ...]) -> None:
    name, _refusal, _wide, _inside, narrow, outside = case
    field, line = NAMED[name]
    with pytest.raises(PolicyRefusal) as caught:
        check_manifest(narrow, outside)
    said = caught.value.detail
    assert field is None or re.match(rf"Manifest, field {re.escape(field)}\b", said), said
    assert line is None or f"policy.toml, line {line}:" in said, said


def test_a_refusal_tells_both_values() -> None:
    with pytest.raises(RhoAbovePolicy) as caught:
        check_manifest(policy(max_rho_per_quarter="9/1024"), real(), overlap=Overlap(Fraction(9, 512), Fraction(0)))
    assert caught.value.detail == (
        "Manifest, field noise.rho, with overlapping rounds: 9/256. policy.toml, line max_rho_per_quarter: 9/1024."
    )
    with pytest.raises(SignalNotAllowed) as refused:
        check_manifest(policy(signals=["completion", "switch_away"]), real())
    assert "tool_reliability, infra_recovery, blind_quality" in refused.value.detail


@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_each_limit_lets_the_edge_pass_and_refuses_the_next_by_its_own_name(case: tuple[Any, ...]) -> None:
    _name, refusal, wide, inside, narrow, outside = case
    check_manifest(wide, inside)
    with pytest.raises(PolicyRefusal) as caught:
        check_manifest(narrow, outside)
    assert type(caught.value) is refusal


def test_every_numeric_limit_of_the_file_has_its_case() -> None:
    """A field added to the policy without a refusal would be a promise that nothing keeps."""
    here = Path(__file__).read_text(encoding="utf-8")
    own = {"demo", "approval", "coordinator", "guardians_t", "guardians", "least_h", "max_C", "max_Q"}
    for name in set(Policy.__struct_fields__) - own:
        assert f"policy({name}=" in here, name


def test_rounds_with_overlapping_events_count_together() -> None:
    manifest = real()
    room = policy().max_rho_per_quarter - manifest.rho
    check_manifest(policy(), manifest, overlap=Overlap(room))
    with pytest.raises(RhoAbovePolicy):
        check_manifest(policy(), manifest, overlap=Overlap(room + Fraction(1, 10**9)))


def test_overlapping_rounds_count_against_colluding_guardians_at_the_h_of_each() -> None:
    """An earlier round with a larger h has told two guardians more than its rho says at the h of this one."""
    manifest = real()
    room = policy().max_rho_local_per_quarter - manifest.noise.h * manifest.rho
    check_manifest(policy(), manifest, overlap=Overlap(Fraction(1, 10**9), room))
    with pytest.raises(LocalRhoAbovePolicy):
        check_manifest(policy(), manifest, overlap=Overlap(Fraction(1, 10**9), room + Fraction(1, 10**9)))


def demo(**changes: Any) -> Manifest:
    return make_manifest(**{"rules": current_rules(), **changes})


def test_a_demonstration_is_refused_before_anything_else() -> None:
    everything_wrong = demo(coordinator=member_key(1).public, s=52, h=1, min_software="99.0.0", rules=(), C=1_000)
    with pytest.raises(DemoManifest):
        check_manifest(policy(), everything_wrong)
    with pytest.raises(CoordinatorNotPinned):
        check_manifest(policy(demo=True), everything_wrong)


def test_a_policy_with_demo_takes_part_in_a_demonstration_and_in_real_rounds() -> None:
    both = policy(demo=True)
    check_manifest(both, demo())
    check_manifest(both, demo(members=20, people=2_000))
    check_manifest(both, small())
    with pytest.raises(FederationTooSmall):
        check_manifest(policy(demo=True, min_roster=37), small())


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({"members": 19}, FederationTooSmall),
        ({"people": 1_999}, FederationTooSmall),
        ({"floors": Floors(20, 14, 2_000, 15)}, FederationTooSmall),
        ({"members": 20, "G": 6}, CohortTooSmall),
    ],
)
def test_a_demonstration_has_floors_of_its_own(changes: dict[str, Any], refusal: type[PolicyRefusal]) -> None:
    with pytest.raises(refusal):
        check_manifest(policy(demo=True), demo(**{"members": 20, "people": 2_000, "sound": False, **changes}))


def test_guardians_of_one_group_are_refused() -> None:
    guardians = [*GUARDIANS, PinnedGuardian("Guardian 4", guardian_key(4).public.hex(), "group 3")]
    four = policy_from(tomllib.loads(text(guardians=guardians)))
    entries = [make_guardians(identities=[guardian_key(j).public for j in chosen]) for chosen in ((1, 2, 4), (1, 3, 4))]
    check_manifest(four, real(guardians=entries[0]))
    with pytest.raises(GuardianNotPinned):
        check_manifest(four, real(guardians=entries[1]))


def test_a_malformed_delta_is_an_error_and_not_a_traceback() -> None:
    with pytest.raises(ManifestError):
        check_manifest(policy(), real(noise=NoiseLaw(208, 5, "9/512", "small")))


# --- the file ---------------------------------------------------------------------------------------------------------


def written(folder: Path, content: str | bytes) -> Path:
    path = folder / "policy.toml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("role", ["member", "guardian"])
@pytest.mark.parametrize("approval", ["auto", "human"])
def test_the_written_file_loads_with_the_stated_limits(tmp_path: Path, role: str, approval: Any) -> None:
    odd = [msgspec.structs.replace(GUARDIANS[0], name='Ω "quoted" \\ back\n\x7f # slash'), *GUARDIANS[1:]]
    loaded = load_policy(written(tmp_path, text(role=role, approval=approval, demo=True, guardians=odd)))
    assert (loaded.demo, loaded.approval, loaded.guardians) == (True, approval, tuple(odd))
    assert [loaded.max_rho_per_quarter, loaded.max_rho_local_per_quarter] == [Fraction(9, 128), Fraction(27, 64)]
    assert [loaded.max_rho_local_lifetime, loaded.max_rho_lifetime] == [Fraction(27, 4), Fraction(9, 32)]
    assert (loaded.min_roster, loaded.min_accepted, loaded.min_people_in_scope) == (36, 30, 10_000)
    assert (loaded.min_cohort, loaded.least_h, loaded.max_h, loaded.max_C, loaded.max_Q) == (5, 2, None, 20, 9)
    assert (loaded.signals, loaded.kinds) == (tuple(SIGNALS), ("all", *KINDS[:5]))
    assert "other" not in loaded.kinds
    assert f"What this {role} accepts" in text(role=role)


@pytest.mark.parametrize(("t", "n"), [(2, 2), (2, 3), (3, 3)])
def test_every_guardian_may_be_needed_and_every_pinned_one_may_take_part(t: int, n: int) -> None:
    assert (policy(guardians_t=t, guardians_n=n).guardians_t, n) == (t, n)


def test_a_demonstration_at_each_of_its_floors_is_accepted() -> None:
    edge = make_manifest(members=20, demo=True, people=2_000, rules=current_rules(), floors=Floors(20, 15, 2_000, 15))
    assert (edge.cohorts.m_min, edge.noise.h) == (3, 1)
    check_manifest(policy(demo=True), edge)
    with pytest.raises(FederationTooSmall):
        check_manifest(policy(demo=True), msgspec.structs.replace(edge, floors=Floors(20, 14, 2_000, 15)))


@pytest.mark.parametrize(
    "make",
    [
        lambda folder: folder / "nothing.toml",
        lambda folder: folder,
        lambda folder: written(folder, "not toml ["),
        lambda folder: written(folder, b"\xff\xfe"),
        lambda folder: written(folder, "# " + "x" * 70_000),
        lambda folder: written(folder, "a = " + "[" * 5_000),
    ],
    ids=["no file", "a folder", "not TOML", "not UTF-8", "too long", "too deep"],
)
def test_without_a_readable_policy_nothing_is_accepted(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    with pytest.raises(PolicyMissing):
        load_policy(make(tmp_path))


def test_the_longest_file_loads_and_one_byte_more_does_not(tmp_path: Path) -> None:
    filled = text() + "#" * (64 * 1024 - len(text().encode()))
    assert load_policy(written(tmp_path, filled)).min_roster == 36
    with pytest.raises(PolicyMissing, match="larger"):
        load_policy(written(tmp_path, filled + "#"))


@pytest.mark.parametrize(
    ("installed", "wanted", "enough"),
    [
        ("0.1.0", "0.1", True),
        ("0.1", "0.1.0", True),
        ("0.1", "0.1.1", False),
        ("0.1.1", "0.1", True),
        ("0.1.0", "0.1.0", True),
        ("0.1.0.dev3", "0.1.0", True),
        ("0.9.9", "0.10.0", False),
        ("1.0.0", "0.10.7", True),
        ("unknown", "0.1.0", False),
        ("0.1.0", "0.1.0.dev3", False),
        ("0.1.0", "", False),
    ],
)
def test_versions_are_compared_part_by_part(
    monkeypatch: pytest.MonkeyPatch, installed: str, wanted: str, enough: bool
) -> None:
    monkeypatch.setattr("windvane_privacy.policy.installed_version", lambda: installed)
    manifest = real(min_software=wanted)
    own = policy(min_software="0.0.0")
    if enough:
        check_manifest(own, manifest)
    else:
        with pytest.raises(SoftwareTooOld):
            check_manifest(own, manifest)


@pytest.mark.parametrize("name", sorted(set(Policy.__struct_fields__) - {"max_h"}))
def test_a_missing_field_is_no_default(tmp_path: Path, name: str) -> None:
    table = tomllib.loads(text())
    del table[name]
    with pytest.raises(ConfigurationError, match=name):
        policy_from(table)


@pytest.mark.parametrize(
    "change",
    [
        {"max_rho": "9/128"},
        {"max_rho_per_quarter": 0.07},
        {"max_rho_per_quarter": "0.07"},
        {"max_rho_per_quarter": "0/1"},
        {"max_rho_per_quarter": "1/0"},
        {"max_rho_per_quarter": "-9/128"},
        {"max_rho_per_quarter": "9/128 "},
        {"max_rho_lifetime": "10/8"},
        {"min_roster": 0},
        {"min_roster": "36"},
        {"min_roster": True},
        {"least_h": 0},
        {"max_h": 1},
        {"max_C": 0},
        {"approval": "maybe"},
        {"demo": 1},
        {"coordinator": "AB" * 32},
        {"coordinator": "ab" * 31},
        {"log_origin": ""},
        {"signals": ["applause"]},
        {"kinds": ["other"]},
        {"kinds": ["gardening"]},
        {"guardians_t": 1},
        {"guardians_t": 4},
        {"guardians_n": 4},
        {"min_software": "new"},
        {"guardians": msgspec.to_builtins(GUARDIANS[:2])},
        {"guardians": msgspec.to_builtins([*GUARDIANS[:2], GUARDIANS[0]])},
        {"guardians": msgspec.to_builtins([*GUARDIANS[:2], PinnedGuardian("x", "zz" * 32, "g")])},
        {"guardians": msgspec.to_builtins([*GUARDIANS[:2], PinnedGuardian("x", "ab" * 32, "group 1")])},
        {"guardians": [{"name": "x", "identity": "ab" * 32, "group": "g", "phone": "1"}]},
    ],
    ids=str,
)
def test_a_malformed_field_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        policy(**change)
    assert type(caught.value) is ConfigurationError


@pytest.mark.parametrize("value", [0.07, 1, "0.07", "-9/128", "0/1", "9/0", "nan", ""])
def test_a_limit_that_is_no_positive_fraction_is_told_what_one_is(value: object) -> None:
    with pytest.raises(ConfigurationError, match='positive fraction in quotes such as "9/128"'):
        policy(max_rho_per_quarter=value)


def test_a_limit_of_one_is_a_limit() -> None:
    ones = dict.fromkeys(("min_roster", "min_accepted", "min_people_in_scope", "min_cohort", "least_h"), 1)
    assert policy(**ones, max_h=1, max_C=1, max_Q=1).floors == policy_module.Floors(1, 1, 1, 1, 1)


def test_the_most_that_the_software_accepts_is_accepted() -> None:
    assert policy(max_rho_lifetime="9/8").max_rho_lifetime == Fraction(9, 8)


def test_a_manifest_entry_cannot_pin_itself() -> None:
    """Names and groups come from the policy; what a manifest says about a guardian beside its key is not looked at."""
    stranger: GuardianEntry = make_guardians(identities=[guardian_key(9).public] * 3)[0]
    named = msgspec.structs.replace(stranger, name="Guardian 1")
    with pytest.raises(GuardianNotPinned):
        check_manifest(policy(), real(guardians=(named, *make_guardians()[1:])))
