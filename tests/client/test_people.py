# SPDX-License-Identifier: Apache-2.0
"""people.toml: mapped, defaulted, dropped or refused, and never guessed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windvane_client.people import ME, PEOPLE_TOML, People, load_people, parse_people, staff_id_text
from windvane_privacy.errors import ConfigurationError

CANARY = "canary4711"
FULL = """
default = "email-local-part"
[machine]
staff_id = " S-1042 "
[[person]]
staff_id = "s-2001"
ids = ["email:Ana@Example.org", "litellm:key:5f0c", "open_webui:8b1e"]
[exclude]
staff_ids = ["S-3007", "bo"]
"""


def test_an_entry_names_its_identities():
    people = parse_people(FULL)
    assert people.machine == "s-1042"
    for identity in ("email:ana@example.org", "EMAIL:ANA@example.ORG ", "litellm:key:5f0c", "open_webui:8b1e"):
        assert people.staff_id(identity) == "s-2001"
    assert people.staff_id("litellm:key:5F0C") is None, "only e-mail addresses ignore case"


def test_the_default_drops():
    people = parse_people("")
    for identity in ("email:ana@example.org", "canonical:x", "x", "", ":", "x:"):
        assert people.staff_id(identity) is None


def test_the_local_part_is_a_default_of_choice():
    people = parse_people(FULL)
    assert people.staff_id("email:Cleo@example.org") == "cleo"
    assert people.staff_id("litellm:user:cleo@example.org") == "cleo"
    for identity in ("email:cleo", "email:@example.org", "email:cleo@", "email:a@b@c", "email:"):
        assert people.staff_id(identity) is None


def test_excluded_people_are_excluded_whatever_names_them():
    people = parse_people(FULL)
    assert people.is_excluded(people.staff_id("email:bo@example.org"))
    assert not people.is_excluded(people.staff_id("email:ana@example.org"))
    assert not people.is_excluded(None)
    machine = parse_people('[machine]\nstaff_id = "a"\n[exclude]\nstaff_ids = ["A"]\n')
    assert machine.machine_excluded
    assert not people.machine_excluded


def test_canonical_pseudonyms_count_only_if_declared():
    assert parse_people("").staff_id("canonical:s-1") is None
    people = parse_people('canonical = "staff-id"\n')
    assert people.staff_id("canonical: S-1") == "s-1"
    assert people.staff_id("email:s-1@example.org") is None


def test_without_set_up_everything_is_me():
    people = People.me()
    assert people.staff_id("email:ana@example.org") == people.staff_id("canonical:x") == people.machine == ME
    assert not people.machine_excluded


@pytest.mark.parametrize(
    "raw",
    [
        '[[person]]\nstaff_id="a"\nids=["email:canary4711@x"]\n[[person]]\nstaff_id="b"\nids=["email:CANARY4711@X"]',
        '[[person]]\nstaff_id = "a"\nids = ["k:canary4711", "k:canary4711"]',
        '[[person]]\nstaff_id = "a"\nids = ["canary4711"]',
        '[[person]]\nstaff_id = "a"\nids = [":canary4711"]',
        '[[person]]\nstaff_id = "  "\nids = ["k:canary4711"]',
        f'[[person]]\nstaff_id = "a"\nids = ["k:{"x" * 255}"]',
        '[[person]]\nstaff_id = "a"\nids = [4711]',
        '[[person]]\nids = ["k:canary4711"]',
        'canary4711 = "x"',
        'default = "canary4711"',
        'default = "as-logged"',
        'canonical = "as-logged"',
        '[machine]\nstaff_id = ""',
        '[exclude]\nstaff_ids = ["canary4711", ""]',
        "canary4711",
    ],
)
def test_what_is_wrong_is_refused_without_repeating_it(raw):
    with pytest.raises(ConfigurationError) as caught:
        parse_people(raw)
    error = caught.value
    while error is not None:
        assert CANARY not in str(error).casefold()
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def test_a_missing_file_is_an_error_and_the_example_loads(tmp_path):
    with pytest.raises(ConfigurationError):
        load_people(tmp_path / "people.toml")
    (tmp_path / "people.toml").write_bytes(b"\xff")
    with pytest.raises(ConfigurationError):
        load_people(tmp_path / "people.toml")
    (tmp_path / "people.toml").write_text(PEOPLE_TOML)
    assert load_people(tmp_path / "people.toml") == People()


@given(st.text(max_size=40))
def test_no_identity_raises_and_staff_ids_are_stable(raw):
    for people in (parse_people(FULL), parse_people('canonical = "staff-id"'), People.me()):
        for identity in (raw, f"canonical:{raw}", f"email:{raw}"):
            found = people.staff_id(identity)
            assert found is None or staff_id_text(found) == found
