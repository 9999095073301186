# SPDX-License-Identifier: Apache-2.0
"""What is looser: every field of a policy has a direction, and a looser value lets in what was refused."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from manifests import guardian_key
from policies import GUARDIANS, policy, text
from windvane_privacy.errors import ConfigurationError, PolicyMissing
from windvane_privacy.policy import PinnedGuardian, Policy, load_policy, policy_from, read_policy
from windvane_privacy.policy_change import LOOSER, changed, loosened, set_field, shown

NEW = msgspec.to_builtins(PinnedGuardian("Guardian 4", guardian_key(4).public.hex(), "group 4"))
PINNED = msgspec.to_builtins(GUARDIANS)
CHANGES: dict[str, tuple[Any, Any, Any]] = {
    # field: usual value (None: as the file has it), a looser one, a tighter one (None: there is none)
    "demo": (False, True, None),
    "approval": ("human", "auto", None),
    "coordinator": (None, "ab" * 32, None),
    "log_origin": (None, "elsewhere", None),
    "max_rho_per_quarter": (None, "10/128", "9/512"),
    "max_rho_local_per_quarter": (None, "28/64", "26/64"),
    "max_rho_local_lifetime": (None, "28/4", "26/4"),
    "max_rho_lifetime": (None, "9/16", "9/64"),
    "min_roster": (None, 35, 37),
    "min_accepted": (None, 29, 31),
    "min_people_in_scope": (None, 9_999, 10_001),
    "min_cohort": (None, 4, 6),
    "least_h": (None, 1, 3),
    "max_C": (None, 21, 19),
    "max_Q": (None, 10, 8),
    "max_h": (5, 6, 4),
    "signals": (["completion", "switch_away"], ["completion", "blind_quality"], ["completion"]),
    "kinds": (["all", "coding"], ["all", "coding", "writing"], ["all"]),
    "guardians_t": (3, 2, None),
    "guardians_n": (2, 3, None),
    "guardians": (None, [*PINNED, NEW], None),
    "min_software": ("0.1.0", "0.0.9", "0.2"),
}


def test_every_field_of_a_policy_has_a_direction_and_a_case() -> None:
    assert set(LOOSER) == set(Policy.__struct_fields__) == set(CHANGES)


@pytest.mark.parametrize("field", CHANGES)
def test_looser_and_tighter_are_told_apart(field: str) -> None:
    usual, loose, tight = CHANGES[field]
    before = policy() if usual is None else policy(**{field: usual})
    assert loosened(before, policy(**{field: loose})) == (field,)
    assert changed(before, policy(**{field: loose})) == (field,)
    assert loosened(before, before) == changed(before, before) == ()
    if tight is not None:
        assert loosened(before, policy(**{field: tight})) == ()
        assert changed(before, policy(**{field: tight})) == (field,)


def test_a_limit_that_is_left_out_is_the_loosest() -> None:
    assert loosened(policy(max_h=24), policy()) == ("max_h",)
    assert loosened(policy(), policy(max_h=24)) == ()


def test_a_guardian_that_is_left_out_or_renamed_loosens_nothing_and_another_group_does() -> None:
    four = policy(guardians=[*PINNED, NEW])
    assert loosened(four, policy()) == ()
    assert loosened(policy(), policy(guardians=[{**PINNED[0], "name": "New name"}, *PINNED[1:]])) == ()
    assert loosened(four, policy(guardians=[*PINNED, {**NEW, "group": "group 5"}])) == ("guardians",)


def test_versions_are_compared_as_numbers() -> None:
    assert loosened(policy(min_software="0.9.0"), policy(min_software="0.10")) == ()
    assert loosened(policy(min_software="0.10"), policy(min_software="0.9.9")) == ("min_software",)
    assert loosened(policy(min_software="0.1.0"), policy(min_software="0.1")) == ()


SET = {
    "max_rho_per_quarter": ("9/512", "9/512"),
    "min_roster": ("40", 40),
    "demo": ("true", True),
    "max_h": ("5", 5),
    "signals": ("completion, blind_quality", ["completion", "blind_quality"]),
    "kinds": ("all", ["all"]),
    "approval": ("auto", "auto"),
    "log_origin": ('a "quoted" \\ name', 'a "quoted" \\ name'),
    "min_software": ("0.2.0", "0.2.0"),
}


@pytest.mark.parametrize("field", SET)
def test_a_field_is_set_in_its_line_and_everything_else_stays(field: str) -> None:
    value, meant = SET[field]
    raw = text().encode()
    after = set_field(raw, field, value)
    assert read_policy(after) == policy(**{field: meant})
    kept = [line for line in text().splitlines() if not line.startswith(f"{field} =") and line]
    assert [line for line in after.decode().splitlines() if not line.startswith(f"{field} =") and line] == kept


def test_a_limit_that_may_be_left_out_is_put_in_changed_and_taken_out() -> None:
    with_limit = set_field(text().encode(), "max_h", "6")
    assert read_policy(with_limit).max_h == 6
    assert read_policy(set_field(with_limit, "max_h", "5")).max_h == 5
    assert read_policy(set_field(with_limit, "max_h", "none")) == policy()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("applause", "1"),
        ("guardians", "x"),
        ("min_roster", "many"),
        ("min_roster", "1\nmax_C = 400"),
        ("min_roster", "36 # or so"),
        ("min_roster", "3.6"),
        ("min_roster", "0"),
        ("min_roster", "none"),
        ("demo", "perhaps"),
        ("demo", "1"),
        ("max_rho_per_quarter", "0.07"),
        ("max_rho_lifetime", "10/8"),
        ("approval", "maybe"),
        ("signals", "applause"),
        ("kinds", "gardening"),
        ("coordinator", "me"),
    ],
)
def test_a_value_that_the_field_does_not_take_is_refused(field: str, value: str) -> None:
    with pytest.raises(ConfigurationError):
        set_field(text().encode(), field, value)


def test_a_file_laid_out_by_hand_is_edited_by_hand() -> None:
    """A list over several lines, or a field inside a text of several lines, is never cut in two."""
    spread = text().replace("kinds = [", "kinds = [\n  ").encode()
    assert policy_from(tomllib.loads(spread.decode())) == policy()
    with pytest.raises(ConfigurationError, match="safely"):
        set_field(spread, "kinds", "all")
    origin = policy().log_origin
    hidden = text().replace(f'log_origin = "{origin}"', f'log_origin = """\n{origin}\nmin_roster = 1"""')
    hidden = hidden.replace("\nmin_roster = 36", "\n  min_roster = 36").encode()
    with pytest.raises(ConfigurationError, match="safely"):
        set_field(hidden, "min_roster", "40")


def test_a_policy_is_shown_as_the_file_writes_it() -> None:
    found = shown(policy())
    assert set(found) == set(LOOSER)
    assert (found["max_rho_per_quarter"], found["demo"], found["max_h"]) == ("9/128", "false", "none")
    assert found["guardians"] == PINNED


@pytest.mark.parametrize("raw", [b"\xff", b"a = [", b"#" * 70_000])
def test_bytes_that_are_no_policy_accept_nothing(raw: bytes) -> None:
    with pytest.raises(PolicyMissing):
        read_policy(raw)


def test_the_file_and_its_bytes_give_one_policy(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(text())
    assert load_policy(path) == read_policy(text().encode())
