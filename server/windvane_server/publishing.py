# SPDX-License-Identifier: Apache-2.0
"""Publication: from a tallied (or not opened) round to the site, and the log entry that names it.

Rules kept here:
* not before `publish_at`, to nobody, unless it is a demonstration;
* a round without sums gets a report with one sentence why; a disputed one gets none;
* the report's hash goes into the log in the same transaction that stores the report;
* published once: a second run writes the same files again, or nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import Connection, Row, select

from windvane_privacy.direction import PublicFacts, public_facts
from windvane_privacy.errors import NotReady, NotYetPublished, SpareShareMismatch, UnknownManifest
from windvane_privacy.identity import SigningKey
from windvane_privacy.manifest import Manifest, parse_time
from windvane_privacy.sums import CohortSums
from windvane_privacy.transitions import quarter_of
from windvane_server.agreed import signed_roster
from windvane_server.desk import Desk, Part
from windvane_server.entries import slot
from windvane_server.preparing import read_planned
from windvane_server.schema import envelopes, reports, rounds, sums

WHY_NOT = {
    "roster": "Fewer organisations are enrolled than a round needs, so this round was not opened.",
    "people": "Fewer people are in scope than a round needs, so this round was not opened.",
    "accepted": "Fewer organisations took part than a round needs, so nothing was opened and nothing can be said.",
    "legal": "The round was stopped for a legal reason, so nothing can be said.",
    "wrong_configuration": "The round was stopped because it was set up wrongly, so nothing can be said.",
    "software_fault": "The round was stopped because of a fault in the software, so nothing can be said.",
    "guardian_lost": "The round was stopped because too few guardians were left, so nothing can be said.",
    "key_loss": "The round was stopped because a key was lost, so nothing can be said.",
}
"""The one sentence of a report without claims, by the reason that the round has in the database."""


class Publisher(Part):
    """Publishes rounds of one coordinator. `key`: the coordinator's identity key."""

    def __init__(self, desk: Desk, key: SigningKey) -> None:
        super().__init__(desk)
        self._key = key

    def publish(self, round_id: str, out: Path, *, breaks: Sequence[str] = ()) -> Path:
        """Write the site into `out` and log it; returns the folder of the site.

        `breaks`: families that their vendor replaced inside the window, as far as it became known.

        Raises:
            NotYetPublished: before the date in the manifest.
            NotReady: the round is not tallied.
            SpareShareMismatch: the guardians' results contradict each other.
            UnknownManifest: no such round, or it was stopped before there was a plan.
            LintFailed, ReportError: the built site breaks a rule; nothing was published.
        """
        from windvane_server.report import publish_round  # templates and styles are needed here only

        now = self._clock()
        with self._store.write() as connection:
            row = connection.execute(select(rounds).where(rounds.c.round == round_id)).one_or_none()
            if row is None:
                raise UnknownManifest
            manifest = self._manifest(connection, row)
            if not manifest.demo and now < parse_time(manifest.publish_at):
                raise NotYetPublished(f"The report is published at {manifest.publish_at}.")
            stored = connection.execute(select(reports.c.raw).where(reports.c.round == round_id)).scalar()
            if stored is not None and _is_there(out, manifest, bytes(stored)):
                # A newer quarter may stand on the front page by now: what is served stays as it is.
                return out
            opened, not_opened = self._outcome(connection, row)
            made = publish_round(
                out,
                manifest=manifest,
                sums=opened,
                facts=self._facts(connection, manifest, breaks),
                history=self._earlier(connection, row.place),
                key=self._key,
                not_opened=not_opened,
                crosschecked=self._crosschecked(connection, round_id),
                lot_proof=self._lot(connection, round_id),
                salt=None if opened is None else self._salt(connection, round_id),
            )
            if stored is None:
                fields = {"report": made.report_sha256, "files": made.files_sha256}
                place = slot("report-published", round_id)
                self._log.say(connection, "report-published", round_id, fields, now, place)
                connection.execute(
                    reports.insert().values(
                        round=round_id, report=made.report_sha256, files=made.files_sha256, raw=made.report
                    )
                )
                if opened is not None:
                    connection.execute(rounds.update().where(rounds.c.round == round_id).values(state="published"))
        return out

    def _manifest(self, connection: Connection, row: Row[tuple[object, ...]]) -> Manifest:
        if row.manifest is not None:
            return self._agreements.of(connection, row.round).manifest
        if row.planned is not None:
            return read_planned(bytes(row.planned))
        raise UnknownManifest

    def _outcome(self, connection: Connection, row: Row[tuple[object, ...]]) -> tuple[CohortSums | None, str | None]:
        if row.state == "disputed":
            raise SpareShareMismatch
        if row.state in ("not_opened", "aborted"):
            return None, WHY_NOT[row.reason]
        raw = connection.execute(select(sums.c.raw).where(sums.c.round == row.round)).scalar()
        if raw is None:
            raise NotReady("The round is not tallied.")
        return CohortSums.from_json(bytes(raw)), None

    def _facts(self, connection: Connection, manifest: Manifest, breaks: Sequence[str]) -> PublicFacts:
        accepted = set(
            connection.execute(select(envelopes.c.member).where(envelopes.c.round == manifest.round)).scalars()
        )
        roster = signed_roster(connection, manifest.round).roster
        return public_facts(manifest, [m.ties for m in roster.active if m.number in accepted], breaks)

    def _earlier(self, connection: Connection, place: int) -> list[bytes]:
        rows = connection.execute(
            select(reports.c.raw)
            .join(rounds, rounds.c.round == reports.c.round)
            .where(rounds.c.place < place)
            .order_by(rounds.c.place)
        ).scalars()
        return [bytes(raw) for raw in rows]

    def _crosschecked(self, connection: Connection, round_id: str) -> bool:
        return bool(connection.execute(select(sums.c.crosschecked).where(sums.c.round == round_id)).scalar())

    def _salt(self, connection: Connection, round_id: str) -> bytes:
        return bytes(connection.execute(select(sums.c.salt).where(sums.c.round == round_id)).scalar_one())

    def _lot(self, connection: Connection, round_id: str) -> str | None:
        entry = self._log.find(connection, slot("lot", round_id))
        return None if entry is None else entry.hash


def _is_there(site: Path, manifest: Manifest, report: bytes) -> bool:
    try:
        return (site / quarter_of(manifest).lower() / "report.json").read_bytes() == report
    except OSError:
        return False
