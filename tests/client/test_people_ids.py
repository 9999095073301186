# SPDX-License-Identifier: Apache-2.0
"""Keyed ids: one person one pseudonym, nothing to be read back, a key that stays."""

from __future__ import annotations

import hashlib
import hmac
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windvane_client.ids import FirstStepIds, KeyedIds, collect_key, load_or_make_k_org, throw_away_ids
from windvane_client.people import People, parse_people
from windvane_privacy.errors import ConfigurationError, KeyFileTooOpen

KEY = bytes(range(32))
PEOPLE = parse_people(
    '[machine]\nstaff_id = "s-1"\n[[person]]\nstaff_id = "S-1"\nids = ["email:a@x", "litellm:key:1"]\n'
    '[[person]]\nstaff_id = "s-2"\nids = ["email:b@x"]\n[exclude]\nstaff_ids = ["s-2"]\n'
)


def mac(key: bytes, *parts: bytes) -> bytes:
    return hmac.new(key, b"\0".join(parts), hashlib.sha256).digest()[:16]


def hkdf(key: bytes, info: bytes) -> bytes:
    """RFC 5869 for one block of output and no salt, by its formula."""
    extracted = hmac.new(bytes(32), key, hashlib.sha256).digest()
    return hmac.new(extracted, info + b"\x01", hashlib.sha256).digest()


def reference(label: bytes, *parts: str, info: bytes = b"collect") -> bytes:
    return mac(hkdf(KEY, info), label, *(part.encode() for part in parts))


def pseudonym(staff_id: str) -> bytes:
    return mac(KEY, b"person", reference(b"person", staff_id))


def test_ids_are_the_declared_hmac():
    ids = KeyedIds(KEY, PEOPLE)
    assert ids.staff(" S-1 ") == pseudonym("s-1")
    assert ids.conv("claude_code", "x") == reference(b"conv", "claude_code", "x")
    assert ids.project("claude_code", "x") == reference(b"project", "claude_code", "x")
    assert ids.key("claude_code/call", "x") == reference(b"key", "claude_code/call", "x")
    assert ids.item("canonical", "x") == reference(b"item", "canonical", "x")


def test_a_later_collector_key_changes_every_id_but_no_pseudonym():
    first, second = KeyedIds(KEY, PEOPLE), KeyedIds(KEY, PEOPLE, number=2)
    assert second.staff("s-1") == first.staff("s-1") == pseudonym("s-1")
    assert second.conv("claude_code", "x") == reference(b"conv", "claude_code", "x", info=b"collect/2")
    assert second.known_people().pseudonyms == {
        reference(b"person", "s-1", info=b"collect/2"): pseudonym("s-1"),
    }
    assert second.known_people().excluded == {reference(b"person", "s-2", info=b"collect/2")}
    with pytest.raises(ConfigurationError):
        KeyedIds(KEY, PEOPLE, number=0)


def test_a_collector_cannot_compute_a_pseudonym():
    collector = FirstStepIds(collect_key(KEY), PEOPLE)
    assert collector.conv("claude_code", "x") == KeyedIds(KEY, PEOPLE).conv("claude_code", "x")
    assert collector.staff("s-1") == reference(b"person", "s-1")
    assert collector.known_people().pseudonyms == {}


def test_one_person_in_two_sources_and_on_their_machine_is_one():
    ids = KeyedIds(KEY, PEOPLE)
    assert ids.person("email:a@x") == ids.person("litellm:key:1") == ids.machine() == ids.staff("s-1")


def test_excluded_and_unmapped_people_have_no_pseudonym():
    ids = KeyedIds(KEY, PEOPLE)
    assert ids.person("email:b@x") is None
    assert ids.excluded("email:b@x")
    assert ids.person("email:c@x") is None
    assert not ids.excluded("email:c@x")
    assert KeyedIds(KEY, parse_people('[machine]\nstaff_id = "a"\n[exclude]\nstaff_ids = ["a"]')).machine() is None
    assert KeyedIds(KEY, People()).machine() is None


def test_preview_ids_are_forgotten():
    one, two = throw_away_ids(), throw_away_ids()
    assert one.person("email:a@x") == one.person("anything") == one.machine()
    assert one.machine() != two.machine()


def test_the_key_is_made_once_and_kept_to_oneself(tmp_path):
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    path = folder / "k_org"
    key = load_or_make_k_org(path)
    assert len(key) == 32
    assert load_or_make_k_org(path) == key
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)
    with pytest.raises(KeyFileTooOpen):
        load_or_make_k_org(path)
    path.chmod(0o600)
    path.write_bytes(b"short")
    with pytest.raises(ConfigurationError):
        load_or_make_k_org(path)


def test_a_key_of_another_length_is_refused():
    with pytest.raises(ConfigurationError):
        KeyedIds(b"x", PEOPLE)


@given(st.text(max_size=30), st.text(max_size=30))
def test_different_raw_ids_have_different_ids(a, b):
    ids = KeyedIds(KEY, People())
    assert (ids.key("n", a) == ids.key("n", b)) is (a == b)
    assert ids.conv("n", a) != ids.key("n", a)
    assert ids.key("n", a) != ids.key("m", a)


def test_a_lone_surrogate_is_an_id_like_any_other():
    ids = KeyedIds(KEY, People())
    assert ids.key("n", "\ud800") != ids.key("n", "\ud801")


def test_the_order_of_keys_is_keyed():
    other = KeyedIds(bytes(32), People())
    ids = KeyedIds(KEY, People())
    assert ids.order(b"k") != other.order(b"k")
    assert ids.file("/x") != ids.file("/y")
