# SPDX-License-Identifier: Apache-2.0
"""The coordinator's steps of a round: what each needs, what it does twice, and what it survives."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from small_federation import FAMILIES, ROUND, START, SmallFederation, agreement, leaves_of, own_vector
from windvane_privacy import canonical
from windvane_privacy.couriers import Parcel
from windvane_privacy.errors import (
    EntryConflict,
    FederationTooSmall,
    MalformedInput,
    ManifestError,
    ManifestNotLogged,
    NotReady,
    ReportError,
    RoundClosed,
    RoundEnded,
    RoundNotOpened,
    SpareShareMismatch,
    UnknownManifest,
    WindvaneError,
)
from windvane_privacy.guardian import GuardianSession
from windvane_privacy.manifest import Manifest
from windvane_privacy.roster import SignedRoster
from windvane_privacy.sums import CohortSums
from windvane_server.schema import results


def kinds_in_log(small: SmallFederation) -> list[str]:
    return [leaf.type for leaf in leaves_of(small).leaves]


def expected_sums(small: SmallFederation, manifest: Manifest, vectors: dict[int, list[int]]) -> CohortSums:
    table = small.coordinator.fix_lot(ROUND)
    rows = tuple(tuple(map(sum, zip(*(vectors[m] for m in cohort), strict=True))) for cohort in table)
    return CohortSums(tuple(map(len, table)), rows)


def test_a_round_with_a_restart_between_any_two_steps_gives_the_exact_sums(small: SmallFederation) -> None:
    small.coordinator.propose_roster(ROUND)
    small.restart()
    for index in (1, 2, 3):
        small.ready(index)
        small.restart()
    manifest = small.open_round()
    small.restart()
    vectors = {}
    for number in range(1, 21):
        made = small.draw(manifest, number)
        small.send("leaf", made.leaf)
        if number < 4:
            small.restart()
        small.send("reveal", made.envelope)
        vectors[number] = made.vector
    small.restart()
    root = small.coordinator.close_round(ROUND)
    small.restart()
    assert small.coordinator.close_round(ROUND) == root
    for index in (1, 2, 3):
        small.nonces(index)
        small.restart()
    small.results(1, 2)
    small.restart()
    opened, crosschecked = small.coordinator.tally(ROUND)
    assert opened == expected_sums(small, manifest, vectors)
    assert not crosschecked
    small.results(3)
    small.restart()
    assert small.coordinator.tally(ROUND) == (opened, True)
    assert kinds_in_log(small) == [
        *["guardian-ready"] * 3,
        *["roster", "round-opened"],
        *["commitment", "accepted"] * 20,
        *["round-closed", "nonce", "nonce", "nonce", "lot", "opened", "opened", "opened"],
    ]


@pytest.mark.parametrize("away", [1, 2, 3])
def test_any_two_guardians_are_enough(full: SmallFederation, away: int) -> None:
    small, manifest = full, agreement(full)
    vectors = {number: own_vector(manifest, number) for number in range(1, 21)}
    small.coordinator.close_round(ROUND)
    present = [index for index in (1, 2, 3) if index != away]
    small.nonces(*present)
    with pytest.raises(NotReady, match=f"Guardian {away}"):
        small.coordinator.fix_lot(ROUND)
    small.clock.pass_by(days=2)
    small.coordinator.fix_lot(ROUND)
    small.results(*present)
    opened, crosschecked = small.coordinator.tally(ROUND)
    assert (opened, crosschecked) == (expected_sums(small, manifest, vectors), False)


def test_one_guardian_is_not_enough(full: SmallFederation) -> None:
    small = full
    small.coordinator.close_round(ROUND)
    small.nonces()
    small.results(1)
    with pytest.raises(NotReady):
        small.coordinator.tally(ROUND)


def test_a_lying_third_guardian_ends_the_round_without_a_sum(full: SmallFederation) -> None:
    small = full
    small.coordinator.close_round(ROUND)
    small.nonces()
    small.results()
    _alter_result(small, 3)
    with pytest.raises(SpareShareMismatch):
        small.coordinator.tally(ROUND)
    small.restart()
    with pytest.raises(SpareShareMismatch):
        small.coordinator.tally(ROUND)
    assert kinds_in_log(small)[-1] == "incident"
    assert kinds_in_log(small).count("incident") == 1
    assert b'"disputed"' in small.send("state")


def test_the_manifest_waits_for_every_guardian_by_name(small: SmallFederation) -> None:
    with pytest.raises(NotReady, match="Guardian 1, Guardian 2, Guardian 3"):
        small.coordinator.open_round(ROUND, small.plan())
    small.ready(1, 3)
    with pytest.raises(NotReady, match=r"Guardian 2\."):
        small.coordinator.open_round(ROUND, small.plan())
    with pytest.raises(UnknownManifest):
        small.send("manifest")
    small.ready(2)
    signed = small.coordinator.open_round(ROUND, small.plan())
    assert small.coordinator.open_round(ROUND, small.plan(delta="1e-9")) == signed
    assert small.send("manifest") == signed


def test_a_roster_is_fixed_once_a_guardian_has_signed_it(small: SmallFederation) -> None:
    before = SignedRoster.decode(small.coordinator.propose_roster(ROUND)).roster
    small.enrol("One more")
    after = SignedRoster.decode(small.coordinator.propose_roster(ROUND)).roster
    assert (len(before.members), len(after.members)) == (20, 21)
    small.ready(1)
    small.enrol("Too late for this round")
    fixed = SignedRoster.decode(small.coordinator.propose_roster(ROUND))
    assert (fixed.roster, len(fixed.signatures)) == (after, 2)


def test_the_next_roster_follows_the_last(small: SmallFederation) -> None:
    first = SignedRoster.decode(small.coordinator.propose_roster(ROUND)).roster
    second = SignedRoster.decode(small.coordinator.propose_roster("2026-Q4")).roster
    assert (second.version, second.previous) == (first.version + 1, first.sha256)


def test_a_federation_below_the_floors_is_not_opened_and_may_grow(tmp_path: Path) -> None:
    small = SmallFederation(tmp_path, size=19)
    with pytest.raises(FederationTooSmall):
        small.coordinator.open_round(ROUND, small.plan())
    assert canonical.decode(small.send("state"))["reason"] == "roster"
    small.enrol("The twentieth")
    with pytest.raises(NotReady):
        small.coordinator.open_round(ROUND, small.plan())
    small.ready()
    small.coordinator.open_round(ROUND, small.plan())
    assert canonical.decode(small.send("state"))["state"] == "open"
    small.close()


def test_too_few_accepted_members_leave_the_round_unopened(small: SmallFederation) -> None:
    manifest = small.open_round()
    for number in range(1, 15):
        small.submit(manifest, number)
    small.coordinator.close_round(ROUND)
    standing = canonical.decode(small.send("state"))
    assert (standing["state"], standing["reason"]) == ("not_opened", "accepted")
    with pytest.raises(RoundNotOpened):
        small.nonces(1)
    with pytest.raises(RoundNotOpened):
        small.coordinator.fix_lot(ROUND)
    with pytest.raises(RoundNotOpened):
        small.send("envelopes")


def test_a_real_round_is_not_opened_late_nor_closed_early(tmp_path: Path) -> None:
    small = SmallFederation(tmp_path, size=0, demo=False)
    for number in range(1, 37):
        small.enrol(f"Large organisation {number}", band="1000-4999")
    small.coordinator.propose_roster(ROUND)
    small.ready()
    small.clock.now = START.replace(year=2026, month=6, day=18)
    with pytest.raises(ManifestNotLogged):
        small.coordinator.open_round(ROUND, small.plan())
    small.clock.now = START.replace(year=2026, month=6, day=16)
    small.coordinator.open_round(ROUND, small.plan())
    small.clock.now = START.replace(month=10, day=30)
    with pytest.raises(NotReady, match="2026-10-31"):
        small.coordinator.close_round(ROUND)
    small.clock.now = START.replace(month=10, day=31)
    small.coordinator.close_round(ROUND)
    assert canonical.decode(small.send("state"))["state"] == "not_opened"
    small.close()


def test_the_lot_is_not_drawn_before_the_closing(small: SmallFederation) -> None:
    small.open_round()
    with pytest.raises(NotReady):
        small.coordinator.fix_lot(ROUND, timedelta(0))
    with pytest.raises(NotReady):
        small.coordinator.tally(ROUND)


def test_an_aborted_round_takes_nothing_more_and_says_why(small: SmallFederation) -> None:
    manifest = small.open_round()
    made = small.draw(manifest, 1)
    with pytest.raises(MalformedInput):
        small.coordinator.abort(ROUND, "no reason of the list")
    small.coordinator.abort(ROUND, "legal")
    small.coordinator.abort(ROUND, "legal")
    assert kinds_in_log(small)[-1] == "incident"
    assert kinds_in_log(small).count("incident") == 1
    with pytest.raises(RoundClosed):
        small.send("leaf", made.leaf)
    with pytest.raises(RoundEnded):
        small.coordinator.close_round(ROUND)
    with pytest.raises(RoundNotOpened):
        small.coordinator.tally(ROUND)


def test_a_guardian_that_comes_after_the_lot_is_told_so(full: SmallFederation) -> None:
    small = full
    root = small.coordinator.close_round(ROUND)
    small.nonces(1, 2)
    small.coordinator.fix_lot(ROUND, timedelta(0))
    with small.guardian(3) as session:
        assert not session.reveal_nonce(ROUND).revealed
    late = _nonce_leaf(small, 3, root)
    with pytest.raises(EntryConflict):
        small.send("leaf", late)
    small.results(3, 1)
    assert small.coordinator.tally(ROUND)[1] is False


class DrawnInBetween:
    """The real courier; before the first nonce leaves, `before` happens to the coordinator."""

    def __init__(self, small: SmallFederation, before: Callable[[], object]) -> None:
        self.small = small
        self.before: Callable[[], object] | None = before

    def exchange(self, parcel: Parcel) -> bytes:
        if parcel.kind == "leaf" and self.before is not None:
            before, self.before = self.before, None
            before()
        return self.small.send(parcel.kind, parcel.body, parcel.round_id)


def test_a_guardian_whose_nonce_meets_a_lot_drawn_meanwhile_goes_on_without_it_and_opens(full: SmallFederation) -> None:
    small = full
    small.coordinator.close_round(ROUND)
    small.nonces(1, 2)
    courier = DrawnInBetween(small, lambda: small.coordinator.fix_lot(ROUND, timedelta(0)))
    with GuardianSession(small.guardian_folder(3), courier, small.clock) as session:
        assert not session.reveal_nonce(ROUND).revealed
        assert courier.before is None
        assert not session.reveal_nonce(ROUND).revealed
    small.results(3, 1, 2)
    assert small.coordinator.tally(ROUND)[1] is True


def test_a_nonce_refused_without_a_lot_in_the_log_is_an_alarm(full: SmallFederation) -> None:
    small = full
    small.coordinator.close_round(ROUND)

    def refuse() -> None:
        raise EntryConflict("made up")

    with (
        GuardianSession(small.guardian_folder(3), DrawnInBetween(small, refuse), small.clock) as session,
        pytest.raises(EntryConflict),
    ):
        session.reveal_nonce(ROUND)


def test_steps_of_a_round_that_nobody_proposed_are_refused(small: SmallFederation) -> None:
    for step in (small.coordinator.close_round, small.coordinator.fix_lot, small.coordinator.tally):
        with pytest.raises(UnknownManifest):
            step("2030-Q1")
    for name in ("", "../x", "a b", "x" * 33):
        with pytest.raises(MalformedInput):
            small.coordinator.propose_roster(name)
    for kind in ("state", "manifest", "roster", "envelopes"):
        with pytest.raises(UnknownManifest):
            small.coordinator.handle(Parcel(kind, "2030-Q1"))


def _nonce_leaf(small: SmallFederation, index: int, root: str) -> bytes:
    from windvane_privacy.guardian_ledger import GuardianLedger
    from windvane_privacy.guardian_state import load_guardian
    from windvane_privacy.log import make_leaf

    state = load_guardian(small.guardian_folder(index))
    ledger = GuardianLedger(small.guardian_folder(index))
    row = ledger.round(ROUND)
    ledger.close()
    assert row is not None
    fields = {"guardian": index, "nonce": row.nonce.hex(), "set_root": root, "day": "2026-10-02"}
    return make_leaf("nonce", ROUND, fields, state.identity)


def _alter_result(small: SmallFederation, index: int) -> None:
    """The guardian signs another share of the sum than the right one."""
    from windvane_privacy import tally
    from windvane_privacy.guardian_state import load_guardian

    manifest = agreement(small)
    key = load_guardian(small.guardian_folder(index)).identity
    with small.coordinator.store.write() as connection:
        raw = connection.execute(results.select().where(results.c.guardian == index)).one().raw
        true = tally.read_result(bytes(raw), key.public)
        shares = [share.copy() for share in true.shares]
        shares[2][7] = (int(shares[2][7]) + 12) % (2**64 - 2**32 + 1)
        lie = tally.make_result(manifest, true.set_root, index, true.counts, shares, key)
        connection.execute(results.delete().where(results.c.guardian == index))
        connection.execute(
            results.insert().values(round=ROUND, guardian=index, sha256=canonical.sha256_hex(lie), raw=lie)
        )


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ({"label": "The best of all"}, ReportError),
        ({"valid_from": "soon"}, ManifestError),
        ({"retired_from": "2026-13-01"}, ManifestError),
    ],
)
def test_a_catalogue_that_could_not_be_published_fails_when_the_round_is_opened(
    small: SmallFederation, change: dict[str, str], refusal: type[WindvaneError]
) -> None:
    small.coordinator.propose_roster(ROUND)
    small.ready()
    before = kinds_in_log(small)
    families = (msgspec.structs.replace(FAMILIES[0], **change), *FAMILIES[1:])
    with pytest.raises(refusal):
        small.coordinator.open_round(ROUND, small.plan(families=families))
    assert kinds_in_log(small) == before
    small.coordinator.open_round(ROUND, small.plan())
    assert kinds_in_log(small) == [*before, "roster", "round-opened"]
