# SPDX-License-Identifier: Apache-2.0
"""Rosters: who must sign them, what must follow, what cannot be listed; cards of members and guardians."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guardian_world import make_members
from log_witnesses import PINS
from manifests import LOG_ORIGIN, coordinator_key, derived, guardian_key, make_manifest, member_key
from windvane_privacy import canonical
from windvane_privacy.errors import (
    ConfigurationError,
    KeyRefused,
    MalformedInput,
    ManifestSignatureInvalid,
    RosterNotSuccessor,
    RosterSignatureMissing,
    SignatureInvalid,
    UnknownMember,
)
from windvane_privacy.identity import SigningKey
from windvane_privacy.roster import (
    BANDS,
    SCHEMA,
    Endorsement,
    Roster,
    RosterGuardian,
    RosterMember,
    SignedRoster,
    check_successor,
    endorse,
    make_enrolment,
    read_enrolment,
    sign_roster,
    verify_roster,
)
from windvane_privacy.signed import (
    FEDERATION_SCHEMA,
    Federation,
    decode_federation,
    make_card,
    read_card,
    sign_manifest,
    verify_signed_manifest,
)

KEY = coordinator_key()
GUARDIANS = tuple(RosterGuardian(j, f"Institute {j}", guardian_key(j).public.hex(), f"Group {j}") for j in (1, 2, 3))
PUBLICS = [guardian_key(j).public for j in (1, 2, 3)]
replace = msgspec.structs.replace


def roster(members: tuple[RosterMember, ...] = make_members(5), **changes: Any) -> Roster:
    made = Roster(SCHEMA, 1, None, "Federation", KEY.public.hex(), LOG_ORIGIN, members, GUARDIANS)
    return replace(made, **changes)


def signed(made: Roster, *keys: SigningKey) -> SignedRoster:
    return SignedRoster(made, tuple(sign_roster(made, key) for key in keys))


# --- signatures -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pair", [(1, 2), (1, 3), (2, 3), (1, 2, 3)])
def test_the_coordinator_and_any_two_guardians_suffice(pair: tuple[int, ...]) -> None:
    made = signed(roster(), KEY, *(guardian_key(j) for j in pair))
    assert verify_roster(SignedRoster.decode(made.encode()), KEY.public, PUBLICS) == roster()


def test_fewer_signatures_are_refused() -> None:
    first, second = guardian_key(1), guardian_key(2)
    for keys in ((), (KEY,), (KEY, first), (first, second), (KEY, first, first), (KEY, first, member_key(1))):
        with pytest.raises(RosterSignatureMissing):
            verify_roster(signed(roster(), *keys), KEY.public, PUBLICS)


def test_a_guardian_listed_twice_signs_once() -> None:
    with pytest.raises(RosterSignatureMissing):
        verify_roster(signed(roster(), KEY, guardian_key(1)), KEY.public, [PUBLICS[0], PUBLICS[0]])


def test_the_coordinators_signature_is_no_guardians() -> None:
    with pytest.raises(RosterSignatureMissing):
        verify_roster(signed(roster(), KEY, guardian_key(1)), KEY.public, [KEY.public, PUBLICS[0]])


def test_a_proposal_needs_the_coordinator_alone() -> None:
    verify_roster(signed(roster(), KEY), KEY.public, (), need=0)
    with pytest.raises(RosterSignatureMissing):
        verify_roster(signed(roster(), guardian_key(1), guardian_key(2)), KEY.public, PUBLICS, need=0)


@pytest.mark.parametrize(
    "changes", [{"version": 2}, {"federation": "Other"}, {"members": make_members(6)}, {"previous": "0" * 64}]
)
def test_a_roster_edited_after_signing_is_refused(changes: dict[str, Any]) -> None:
    made = signed(roster(), KEY, guardian_key(1), guardian_key(2))
    with pytest.raises(RosterSignatureMissing):
        verify_roster(SignedRoster(roster(**changes), made.signatures), KEY.public, PUBLICS)


def test_an_endorsement_is_the_guardians_signature() -> None:
    made = Endorsement.decode(endorse(roster(), guardian_key(2)).encode())
    assert made.sha256 == roster().sha256
    assert made.signature == sign_roster(roster(), guardian_key(2))


# --- succession -------------------------------------------------------------------------------------------------------


def after(old: Roster, members: tuple[RosterMember, ...], **changes: Any) -> Roster:
    return replace(old, **{"version": old.version + 1, "previous": old.sha256, "members": members, **changes})


def test_new_members_and_departures_follow() -> None:
    old = roster()
    check_successor(old, old)
    check_successor(old, after(old, make_members(7)))
    left = (replace(old.members[0], state="left"), *old.members[1:])
    check_successor(old, after(old, left))
    band = (replace(old.members[0], band="250-999"), *old.members[1:])
    check_successor(old, after(old, band))
    check_successor(old, after(old, make_members(7), version=3, previous="1" * 64))


def not_successors() -> dict[str, Roster]:
    old = roster()
    other = (replace(old.members[0], key=member_key(99).public.hex(), key_id=member_key(99).key_id), *old.members[1:])
    renamed = (replace(old.members[0], name="Other"), *old.members[1:])
    return {
        "a member is gone": after(old, old.members[1:]),
        "a number with another key": after(old, other),
        "a number with another name": after(old, renamed),
        "the same version": replace(after(old, make_members(6)), version=1),
        "another past": after(old, make_members(6), previous="0" * 64),
        "no past": after(old, make_members(6), previous=None),
        "another coordinator": after(old, old.members, coordinator="0" * 64),
        "another log": after(old, old.members, log_origin="other"),
        "another guardian": after(old, old.members, guardians=GUARDIANS[:2]),
    }


@pytest.mark.parametrize("why", not_successors())
def test_what_does_not_follow_is_refused(why: str) -> None:
    with pytest.raises(RosterNotSuccessor):
        check_successor(roster(), not_successors()[why])


def test_nobody_comes_back_under_an_old_number_and_no_gap_is_filled() -> None:
    old = roster((replace(make_members(1)[0], state="revoked"), *make_members(5)[2:]))
    with pytest.raises(RosterNotSuccessor):
        check_successor(old, after(old, (make_members(1)[0], *make_members(5)[2:])))
    with pytest.raises(RosterNotSuccessor):
        check_successor(old, after(old, (old.members[0], make_members(2)[1], *old.members[1:])))


def test_an_older_roster_is_refused() -> None:
    old = roster()
    new = after(old, make_members(6))
    with pytest.raises(RosterNotSuccessor):
        check_successor(new, old)


# --- content ----------------------------------------------------------------------------------------------------------


def test_people_are_the_lower_ends_of_active_bands() -> None:
    members = tuple(replace(m, band=band) for m, band in zip(make_members(6), BANDS, strict=True))
    assert roster(members).people == 10 + 50 + 100 + 250 + 1000 + 5000
    left = (*members[:5], replace(members[5], state="left"))
    assert roster(left).people == 10 + 50 + 100 + 250 + 1000
    with pytest.raises(UnknownMember):
        roster(left).member(6)
    with pytest.raises(UnknownMember):
        roster(left).by_key(members[5].key)
    assert roster(left).member(2) == roster(left).by_key(members[1].key) == members[1]


def contradictions() -> dict[str, Roster]:
    first, *rest = make_members(5)
    return {
        "numbers out of order": roster((*rest, first)),
        "number twice": roster((first, replace(rest[0], number=1))),
        "number zero": roster((replace(first, number=0), *rest)),
        "key twice": roster((first, replace(rest[0], key=first.key, key_id=first.key_id))),
        "name twice": roster((first, replace(rest[0], name=first.name.upper()))),
        "another key id": roster((replace(first, key_id="0" * 64), *rest)),
        "unknown band": roster((replace(first, band="1-9"), *rest)),
        "unknown state": roster((replace(first, state="vip"), *rest)),
        "name with a line break": roster((replace(first, name="a\nb"), *rest)),
        "unsorted ties": roster((replace(first, ties=("b", "a")), *rest)),
        "no version": roster(version=0),
        "schema": roster(schema="windvane/roster/v2"),
        "guardian numbers": roster(guardians=GUARDIANS[1:]),
        "guardian twice": roster(guardians=(GUARDIANS[0], replace(GUARDIANS[0], index=2))),
    }


@pytest.mark.parametrize("why", contradictions())
def test_a_list_that_contradicts_itself_is_refused(why: str) -> None:
    SignedRoster.decode(signed(roster(), KEY).encode())
    with pytest.raises(MalformedInput):
        SignedRoster.decode(signed(contradictions()[why], KEY).encode())


# --- cards ------------------------------------------------------------------------------------------------------------


def test_a_card_reads_back() -> None:
    card = read_enrolment(make_enrolment(member_key(1), "Bureau of Wind", "100-249", ["b", "a", "b"]))
    assert (card.name, card.band, card.ties) == ("Bureau of Wind", "100-249", ("a", "b"))
    assert (card.key, card.key_id) == (member_key(1).public.hex(), member_key(1).key_id)


IMPROPER = [("", "10-49"), (" a", "10-49"), ("a" * 201, "10-49"), ("a", "60"), ("a\x07", "10-49")]


@pytest.mark.parametrize(("name", "band"), IMPROPER)
def test_a_card_without_a_proper_name_and_band_is_not_made(name: str, band: str) -> None:
    with pytest.raises(MalformedInput):
        make_enrolment(member_key(1), name, band, [])


@pytest.mark.parametrize("changes", [{"name": "Other"}, {"band": "5000+"}, {"ties": ["a"]}])
def test_a_card_edited_after_signing_is_refused(changes: dict[str, Any]) -> None:
    value = canonical.decode(make_enrolment(member_key(1), "Bureau of Wind", "100-249", []))
    with pytest.raises(SignatureInvalid):
        read_enrolment(canonical.encode({**value, **changes}))


def test_nobody_enrols_the_key_of_somebody_else() -> None:
    value = canonical.decode(make_enrolment(member_key(1), "Bureau of Wind", "100-249", []))
    with pytest.raises(SignatureInvalid):
        read_enrolment(canonical.encode({**value, "key": member_key(2).public.hex()}))


def test_a_low_order_key_is_refused() -> None:
    value = canonical.decode(make_enrolment(member_key(1), "Bureau of Wind", "100-249", []))
    for low in ("01" + "00" * 31, "00" * 32):
        with pytest.raises(KeyRefused):
            read_enrolment(canonical.encode({**value, "key": low}))
        card = canonical.decode(make_card(guardian_key(1), "Institute", "Group"))
        with pytest.raises(KeyRefused):
            read_card(canonical.encode({**card, "identity": low}))


def test_a_guardians_card_counts_with_its_own_signature_only() -> None:
    raw = make_card(guardian_key(1), "Institute", "Group")
    assert read_card(raw).identity == guardian_key(1).public.hex()
    for changes in ({"name": "Other"}, {"group": "Other"}, {"identity": guardian_key(2).public.hex()}):
        with pytest.raises(SignatureInvalid):
            read_card(canonical.encode({**canonical.decode(raw), **changes}))


def test_a_federations_document_reads_back_and_contradictions_are_refused() -> None:
    made = Federation(FEDERATION_SCHEMA, "Federation", KEY.public.hex(), LOG_ORIGIN, PINS, GUARDIANS, True)
    assert decode_federation(made.encode()) == made
    for changes in (
        {"guardians": GUARDIANS[1:]},
        {"coordinator": GUARDIANS[0].identity},
        {"name": ""},
        {"schema": "x"},
        {"log": replace(PINS, key="00")},
        {"log": replace(PINS, max_age_hours=0)},
    ):
        with pytest.raises(MalformedInput):
            decode_federation(replace(made, **changes).encode())
    for log in (replace(PINS, quorum=1), replace(PINS, faulty=1), replace(PINS, witnesses=PINS.witnesses[:1] * 3)):
        with pytest.raises(ConfigurationError):
            decode_federation(replace(made, log=log).encode())
    with pytest.raises(KeyRefused):
        decode_federation(replace(made, log_origin="a name with spaces").encode())


def test_a_manifest_counts_with_the_pinned_coordinators_signature_only() -> None:
    agreed = make_manifest()
    raw = sign_manifest(agreed, KEY)
    assert verify_signed_manifest(raw, KEY.public) == agreed
    with pytest.raises(ManifestSignatureInvalid):
        verify_signed_manifest(sign_manifest(agreed, member_key(1)), KEY.public)
    with pytest.raises(ManifestSignatureInvalid):
        verify_signed_manifest(sign_manifest(make_manifest(coordinator=derived("x")), KEY), KEY.public)
    value = canonical.decode(raw)
    value["manifest"]["rounds_so_far"] = 3
    with pytest.raises(ManifestSignatureInvalid):
        verify_signed_manifest(canonical.encode(value), KEY.public)


def leaks_only_malformed_input(raw: bytes) -> None:
    for read in (SignedRoster.decode, Endorsement.decode, read_enrolment, read_card, decode_federation):
        with pytest.raises(MalformedInput):
            read(raw)
    with pytest.raises(MalformedInput):
        verify_signed_manifest(raw, KEY.public)


@given(st.binary(max_size=200))
def test_garbage_leaks_only_malformed_input(raw: bytes) -> None:
    leaks_only_malformed_input(raw)


texts = st.sampled_from(["schema", "name", "key", "band", "ties", "sig", "roster", "signatures", "manifest", "group"])
values = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | st.text(max_size=4),
    lambda x: st.lists(x, max_size=3) | st.dictionaries(texts, x, max_size=4),
    max_leaves=6,
)


@settings(max_examples=50)
@given(values)
def test_other_documents_leak_only_malformed_input(value: Any) -> None:
    leaks_only_malformed_input(canonical.encode(value))
