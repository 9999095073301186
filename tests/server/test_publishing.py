# SPDX-License-Identifier: Apache-2.0
"""Publication as the coordinator does it: when, once, logged, and what a round without sums says."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from small_federation import ROUND, START, SmallFederation, leaves_of
from windvane_privacy import canonical
from windvane_privacy.errors import FederationTooSmall, NotReady, NotYetPublished, RoundEnded, SpareShareMismatch
from windvane_privacy.log import Leaf
from windvane_privacy.report_file import verify_quarter
from windvane_server.publishing import WHY_NOT
from windvane_server.rounds import ABORT_REASONS
from windvane_server.schema import rounds


def published_leaves(small: SmallFederation) -> list[Leaf]:
    return [leaf for leaf in leaves_of(small).leaves if leaf.type == "report-published"]


def finish(small: SmallFederation) -> None:
    small.coordinator.close_round(ROUND)
    small.nonces(1, 2)
    small.coordinator.fix_lot(ROUND, timedelta(0))
    small.results(1, 2)
    small.coordinator.tally(ROUND)


def test_a_tallied_round_is_published_signed_logged_and_only_once(full: SmallFederation) -> None:
    small = full
    finish(small)
    site = small.coordinator.publish(ROUND)
    public = bytes.fromhex(small.coordinator.federation.coordinator)
    report = verify_quarter(site / "2026-q3", public)
    assert (report.demo, report.not_opened, report.previous_sha256) == (True, None, None)
    assert report.claims
    leaf = published_leaves(small)[0]
    assert leaf.fields["report"] == canonical.sha256_hex((site / "2026-q3" / "report.json").read_bytes())
    assert leaf.fields["files"] == canonical.sha256_hex((site / "2026-q3" / "files.json").read_bytes())
    before = {path: path.read_bytes() for path in site.rglob("*") if path.is_file()}
    small.restart()
    small.coordinator.publish(ROUND)
    assert {path: path.read_bytes() for path in site.rglob("*") if path.is_file()} == before
    assert len(published_leaves(small)) == 1
    with pytest.raises(RoundEnded):
        small.coordinator.abort(ROUND, "legal")


def test_a_site_that_was_lost_is_written_again_with_the_same_bytes(full: SmallFederation, tmp_path: Path) -> None:
    small = full
    finish(small)
    site = small.coordinator.publish(ROUND)
    again = small.coordinator.publish(ROUND, out=tmp_path / "mirror")
    first, second = (
        {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}
        for root in (site, again)
    )
    assert first == second
    assert len(published_leaves(small)) == 1


def test_nothing_is_published_before_the_tally(small: SmallFederation) -> None:
    small.open_round()
    with pytest.raises(NotReady):
        small.coordinator.publish(ROUND)
    assert not small.coordinator.site.exists()
    assert published_leaves(small) == []


def test_a_disputed_round_publishes_nothing(full: SmallFederation) -> None:
    small = full
    finish(small)
    with small.coordinator.store.write() as connection:
        connection.execute(rounds.update().values(state="disputed"))
    with pytest.raises(SpareShareMismatch):
        small.coordinator.publish(ROUND)
    assert not small.coordinator.site.exists()


def test_too_few_accepted_members_give_a_report_that_says_why(small: SmallFederation) -> None:
    manifest = small.open_round()
    for number in range(1, 15):
        small.submit(manifest, number)
    small.coordinator.close_round(ROUND)
    site = small.coordinator.publish(ROUND)
    report = verify_quarter(site / "2026-q3", bytes.fromhex(small.coordinator.federation.coordinator))
    assert report.not_opened == WHY_NOT["accepted"]
    assert WHY_NOT["accepted"] in (site / "index.html").read_text(encoding="utf-8")


def test_a_federation_below_the_floors_publishes_why_without_a_round(tmp_path: Path) -> None:
    small = SmallFederation(tmp_path, size=3)
    with pytest.raises(FederationTooSmall):
        small.coordinator.open_round(ROUND, small.plan())
    site = small.coordinator.publish(ROUND)
    report = verify_quarter(site / "2026-q3", bytes.fromhex(small.coordinator.federation.coordinator))
    assert (report.not_opened, report.claims) == (WHY_NOT["roster"], ())
    small.enrol("Too late")
    with pytest.raises(RoundEnded):
        small.coordinator.open_round(ROUND, small.plan())
    small.close()


def test_a_real_round_is_published_on_its_date_and_not_before(tmp_path: Path) -> None:
    small = SmallFederation(tmp_path, size=3, demo=False)
    with pytest.raises(FederationTooSmall):
        small.coordinator.open_round(ROUND, small.plan())
    small.clock.now = START.replace(month=11, day=15, hour=11)
    with pytest.raises(NotYetPublished, match="2026-11-15T12:00:00Z"):
        small.coordinator.publish(ROUND)
    small.clock.pass_by(hours=1)
    site = small.coordinator.publish(ROUND)
    assert verify_quarter(site / "2026-q3", bytes.fromhex(small.coordinator.federation.coordinator)).demo is False
    small.close()


@pytest.mark.parametrize("reason", ABORT_REASONS)
def test_every_reason_to_stop_has_its_sentence(small: SmallFederation, reason: str) -> None:
    small.open_round()
    small.coordinator.abort(ROUND, reason)
    site = small.coordinator.publish(ROUND)
    report = verify_quarter(site / "2026-q3", bytes.fromhex(small.coordinator.federation.coordinator))
    assert report.not_opened == WHY_NOT[reason]
