# SPDX-License-Identifier: Apache-2.0
"""What the fuzz of the parsers found once, each with its own test: no traceback, and one spelling of everything."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import numpy as np
import pytest

from manifests import guardian_key, make_manifest
from policies import policy, text
from windvane_privacy import canonical, manifest
from windvane_privacy.budget import parse_delta
from windvane_privacy.errors import MalformedInput, ManifestError, PolicyMissing, SoftwareTooOld
from windvane_privacy.manifest import MOST_DAYS, parse_time
from windvane_privacy.policy import check_manifest, read_policy
from windvane_privacy.tally import RESULT_LABEL, make_result, read_result


def altered(change: Any) -> bytes:
    table: dict[str, Any] = canonical.decode(manifest.encode(make_manifest()))
    change(table)
    return canonical.encode(table)


@pytest.mark.parametrize("field", ["identity", "round_key", "round_key_id", "nonce_commitment", "ready_leaf"])
def test_a_guardians_key_or_hash_that_is_none_is_refused_with_the_manifest(field: str) -> None:
    def change(table: dict[str, Any]) -> None:
        table["guardians"][0][field] = "zz" + table["guardians"][0][field][2:]

    with pytest.raises(ManifestError, match="malformed"):
        manifest.decode(altered(change))


@pytest.mark.parametrize(
    ("field", "value"),
    [("coordinator", "key"), ("round", "../x"), ("last_full_round", ""), ("previous_report", "none")],
)
def test_a_malformed_name_or_hash_is_refused_with_the_manifest(field: str, value: str) -> None:
    with pytest.raises(ManifestError, match="malformed"):
        manifest.decode(altered(lambda table: table.update({field: value})))


def test_a_manifest_without_a_field_that_has_a_default_is_refused() -> None:
    """It would have another hash as bytes than as an agreement."""
    with pytest.raises(MalformedInput, match="missing"):
        manifest.decode(altered(lambda table: table["families"][0].pop("valid_from")))


@pytest.mark.parametrize("days", [-1, -(2**52)])
def test_an_appeal_that_ends_before_the_report_is_refused(days: int) -> None:
    with pytest.raises(ManifestError):
        manifest.decode(altered(lambda table: table.update(appeal_days=days)))


def test_keys_are_never_to_be_kept_beyond_what_a_calendar_holds() -> None:
    found = manifest.decode(altered(lambda table: table.update(destroy_by_days=MOST_DAYS)))
    assert date(2999, 12, 31) + timedelta(days=found.destroy_by_days)
    with pytest.raises(ManifestError, match="ten years"):
        manifest.decode(altered(lambda table: table.update(destroy_by_days=MOST_DAYS + 1)))


@pytest.mark.parametrize(
    "other",
    ["2026-7-1T0:0:0Z", "2026-07- 1T00:00:00Z",
     "2\u0660\u0662\u0666-07-01T00:00:00Z", "2026-07-01T00:00:60Z", "2026-07-01T00:00:00Z\n"],
)  # fmt: skip
def test_a_time_has_one_spelling(other: str) -> None:
    with pytest.raises(MalformedInput):
        parse_time(other)


@pytest.mark.parametrize("other", ["1e-1\u0663", "1e-\u0668", "1e-08", "1E-8"])
def test_a_delta_has_one_spelling(other: str) -> None:
    with pytest.raises(ManifestError):
        parse_delta(other)


def test_a_policy_with_a_number_of_thousands_of_digits_accepts_nothing() -> None:
    with pytest.raises(PolicyMissing):
        read_policy(text().replace("demo = false", "demo = " + "9" * 5000).encode())


@pytest.mark.parametrize("version", ["9" * 5000 + ".0", "\u0661.\u0662"])
def test_a_version_that_no_software_has_is_refused_by_name(version: str) -> None:
    asked = make_manifest(min_software=version)
    with pytest.raises(SoftwareTooOld):
        check_manifest(policy(demo=True), asked)


def test_a_truth_value_is_no_number_of_a_cohort() -> None:
    made = make_manifest(k=2, cap=1)
    key, rows = guardian_key(1), [np.zeros(made.length, dtype=np.uint64)] * made.cohorts.G
    value = canonical.decode(make_result(made, "ab" * 32, 1, [8] * made.cohorts.G, rows, key))
    del value["sig"]
    value["cohorts"][1]["cohort"] = True
    raw = canonical.encode({**value, "sig": key.sign(RESULT_LABEL, canonical.encode(value)).hex()})
    with pytest.raises(MalformedInput):
        read_result(raw, key.public)
