# SPDX-License-Identifier: Apache-2.0
"""The key of the pseudonyms: under another one nobody is drawn; a lost one makes everybody count as charged."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from ledger_entries import charge, quarter
from member_world import FixedEvidence, MemberWorld, rows_of
from small_federation import ROUND
from windvane_client.ids import KeyedIds
from windvane_client.people import People
from windvane_client.person_key import SINCE, attested_since, key_check, note_lost_key
from windvane_client.rebuild import replace_person_key
from windvane_privacy.errors import ConfigurationError, PersonKeyLost
from windvane_privacy.keyfiles import write_secret
from windvane_privacy.ledger_schema import State

DAY = "2026-10-02"


def new_key(world: MemberWorld) -> None:
    path = world.folder / "keys" / "k_org.key"
    path.unlink()
    write_secret(path, b"n" * 32)


def test_a_draw_notes_the_key_and_the_same_key_goes_on(world: MemberWorld) -> None:
    world.approve()
    with world.agent() as agent:
        assert agent.submit(ROUND).state is State.ACCEPTED
        assert agent.ledger.notes("person_key") == [(DAY, key_check(world.state.k_org))]


def test_under_another_key_nothing_is_drawn(world: MemberWorld) -> None:
    """Restored without its key, or with a colleague's: everybody would look new and vote above the cap."""
    with world.state.ledger() as ledger:
        ledger.note("person_key", key_check(world.state.k_org), DAY)
    new_key(world)
    world.approve()
    with world.agent() as agent:
        with pytest.raises(PersonKeyLost):
            agent.submit(ROUND)
        assert agent.ledger.round(ROUND) is None


def test_a_missing_key_draws_nothing(world: MemberWorld) -> None:
    (world.folder / "keys" / "k_org.key").unlink()
    world.approve()
    with world.agent() as agent, pytest.raises(ConfigurationError, match="k_org"):
        agent.submit(ROUND)


def test_a_key_that_is_gone_for_good_charges_everybody_for_every_round_so_far(world: MemberWorld) -> None:
    with world.state.ledger() as ledger:
        ledger.note("person_key", key_check(world.state.k_org), "2026-01-01")
        for place in range(8, 24):
            charge(ledger, quarter(place), persons=(), opendp_json="{}")
    new_key(world)
    (world.folder / "collection" / "collection.db").write_bytes(b"events under the old key")
    replace_person_key(world.state, DAY)
    replace_person_key(world.state, DAY)  # again is harmless
    assert list((world.folder / "collection").iterdir()) == []
    with world.state.ledger() as ledger:
        assert [day for day, _check in ledger.notes("person_key")] == ["2026-01-01", DAY]
        assert not ledger.admission(Fraction(9, 512), Fraction(9, 32), {})(b"x" * 16)
    world.approve()
    evidence = FixedEvidence(rows_of(12))
    with world.agent(evidence=evidence) as agent:
        assert agent.submit(ROUND).state is State.ACCEPTED
        assert agent.ledger.charged_people(ROUND) == 0  # the round goes on, with zeros and noise
    ids = KeyedIds(b"n" * 32, People())
    newcomer = ids.staff("s-9")
    (world.folder / SINCE).write_text("staff_id,first_day\ns-9,2027-06-01\n")
    with world.state.ledger() as ledger:
        since = attested_since(world.folder, ids.staff)
        assert since == {newcomer: "2027-06-01"}
        # The round above was drawn on the day of the loss, so it counts for everybody too, but for the newcomer.
        assert ledger.admission(Fraction(9, 512), Fraction(9, 32), since)(newcomer)


def test_a_new_key_is_made_where_there_is_none(world: MemberWorld) -> None:
    (world.folder / "keys" / "k_org.key").unlink()
    replace_person_key(world.state, DAY)
    assert len(world.state.k_org) == 32
    with world.state.ledger() as ledger:
        assert len(ledger.notes("person_key")) == 2  # a mark stands for the old one, which was never noted


def test_a_loss_is_noted_once(world: MemberWorld) -> None:
    with world.state.ledger() as ledger:
        for _ in range(3):
            note_lost_key(ledger, b"k" * 32, DAY)
        assert len(ledger.notes("person_key")) == 2


def test_the_noted_hash_is_of_the_key_and_tells_keys_apart() -> None:
    assert key_check(b"a" * 32) == key_check(b"a" * 32) != key_check(b"b" * 32)
    assert (b"a" * 32).hex() not in key_check(b"a" * 32)


# --- persons_since.csv ------------------------------------------------------------------------------------------------


def pseudonym(name: str) -> bytes:
    return name.encode()


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("", {}),
        ("staff_id,first_day\n", {}),
        ("s-1,2027-03-01\n", {b"s-1": "2027-03-01"}),
        ("staff_id,first_day\r\n S-1 , 2027-03-01 \r\n\r\n", {b"s-1": "2027-03-01"}),
        ("a,b,2027-03-01\n", {b"a,b": "2027-03-01"}),
    ],
)
def test_attested_days_are_read_by_pseudonym(tmp_path: Path, content: str, found: dict[bytes, str]) -> None:
    (tmp_path / SINCE).write_text(content)
    assert attested_since(tmp_path, pseudonym) == found


@pytest.mark.parametrize(
    "content",
    [
        b"s-1\n",
        b"s-1;2027-03-01\n",
        b"s-1,2027-3-1\n",
        b"s-1,2027-02-30\n",
        b"s-1,soon\n",
        b",2027-03-01\n",
        b"x" * 300 + b",2027-03-01\n",
        b"s-1,2027-03-01\nS-1,2027-04-01\n",
        b"\xff,2027-03-01\n",
    ],
    ids=repr,
)
def test_one_bad_line_refuses_the_file_and_repeats_nobody(tmp_path: Path, content: bytes) -> None:
    (tmp_path / SINCE).write_bytes(content)
    with pytest.raises(ConfigurationError) as caught:
        attested_since(tmp_path, pseudonym)
    assert "s-1" not in caught.value.sentence().casefold()


def test_without_a_file_nobody_is_new(tmp_path: Path) -> None:
    assert attested_since(tmp_path, pseudonym) == {}
