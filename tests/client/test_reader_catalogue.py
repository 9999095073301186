# SPDX-License-Identifier: Apache-2.0
"""The shipped catalogue: closed, without overlap, by family and generation."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windvane_client.catalogue_builtin import builtin_catalogue, builtin_file, read_catalogue
from windvane_privacy.catalogue import SPECIAL_FAMILIES, normalise
from windvane_privacy.errors import ManifestError

FAMILIES = builtin_file().families


def test_ids_are_unique_and_labelled():
    assert len({family.id for family in FAMILIES}) == len(FAMILIES) > 50
    assert len({family.label for family in FAMILIES}) == len(FAMILIES)
    assert all(family.vendor for family in FAMILIES)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.id)
def test_whatever_a_pattern_matches_is_that_family_and_no_other(family):
    catalogue = builtin_catalogue()

    @given(
        st.one_of(
            [
                st.from_regex(pattern, fullmatch=True, alphabet="abcdefghijklmnopqrstuvwxyz0123456789.-")
                for pattern in (*family.patterns, family.id.replace(".", "[.]"))
            ]
        )
    )
    @settings(max_examples=15, deadline=None)
    def check(name):
        # A name that the normal form changes (a trailing date or `-preview`) is looked up in its normal form.
        if normalise(name) == name:
            assert catalogue.resolve(name) == family.id

    check()
    assert catalogue.resolve(family.id) == family.id


@pytest.mark.parametrize("pattern", [p for family in FAMILIES for p in family.patterns])
def test_patterns_have_no_nested_quantifier(pattern):
    assert ")*" not in pattern
    assert ")+" not in pattern
    assert ".*" not in pattern


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("claude-3-sonnet-20240229", "claude-sonnet-3"), ("claude-3-haiku-20240307", "claude-haiku-3"),
        ("claude-3-5-sonnet-latest", "claude-sonnet-3.5"), ("claude-3.7-sonnet", "claude-sonnet-3.7"),
        ("claude-sonnet-4-20250514", "claude-sonnet-4"), ("claude-opus-4-0", "claude-opus-4"),
        ("claude-opus-4-1-20250805", "claude-opus-4.1"), ("claude-opus-4-6", "claude-opus-4.6"),
        ("claude-haiku-4-5-20251001", "claude-haiku-4.5"), ("claude-4.5-sonnet", "claude-sonnet-4.5"),
        ("gpt-4o-2024-08-06", "gpt-4o"), ("gpt-4o-mini", "gpt-4o-mini"), ("openai/gpt-5.2", "gpt-5.2"),
        ("gpt-5.2-codex", "gpt-5.2-codex"), ("gpt-5-2-codex", "gpt-5.2-codex"),
        ("gpt-5", "gpt-5"), ("gpt-5-mini", "gpt-5-mini"),
        ("gpt-5-2025-08-07", "gpt-5"), ("models/gemini-2.5-pro-preview-05-06", "gemini-2.5-pro"),
        ("gemini-3-pro-preview", "gemini-3-pro"), ("gemini-2.5-flash-lite", "gemini-2.5-flash-lite"),
        ("deepseek/deepseek-r1-0528", "deepseek-r1"), ("meta-llama/llama-3.3-70b-instruct:free", "llama-3.3-70b"),
        ("sonnet", "unknown"), ("opusplan", "unknown"), ("auto", "unknown"), ("", "unknown"), ("x" * 201, "unknown"),
        ("<synthetic>", "synthetic"), ("gpt-9", "other"), ("claude-sonnet-4-9", "other"),
        ("REDACTED", "other"), (None, "unknown"),
    ],
)  # fmt: skip
def test_names(name, family):
    assert builtin_catalogue().resolve(name) == family


@given(st.text(max_size=60))
def test_the_domain_is_closed(name):
    found = builtin_catalogue().resolve(name)
    assert found in builtin_catalogue() or found in SPECIAL_FAMILIES


def test_overlap_and_other_schemas_are_refused():
    def raw(*families, schema="windvane/catalogue/v1"):
        return json.dumps({"schema": schema, "version": "1", "families": list(families)}).encode()

    one = {"id": "a-1", "label": "A", "vendor": "v", "patterns": []}
    two = {"id": "b-1", "label": "B", "vendor": "v", "patterns": ["a-1"]}
    assert read_catalogue(raw(one)).families[0].id == "a-1"
    for wrong in (raw(one, two), raw(one, one), raw(one, schema="x"), raw({**one, "patterns": ["("]}), b"{"):
        with pytest.raises(ManifestError):
            read_catalogue(wrong)
