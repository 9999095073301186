# SPDX-License-Identifier: Apache-2.0
"""The coordinator's own steps of a round: roster, manifest, closing, lot, tally, abort.

Rules kept here:
* every step may be run again at any time: it finishes what is unfinished and otherwise returns what is stored;
* what a step decides is logged in the same transaction that stores it;
* a manifest is signed only with the keys of all guardians and two guardians' signatures below its roster, and, unless
  it is a demonstration, at least 14 days before its events begin;
* nobody closes a real round early; a round below a floor is never opened, and the reason is kept for the report;
* a contradiction among the guardians' results is logged and ends the round without a sum.

Source: docs/protocol.md (life of a round).
"""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta

from sqlalchemy import Connection, Row, func, select

from windvane_privacy import lot
from windvane_privacy import manifest as manifests
from windvane_privacy.ceremony import is_enough
from windvane_privacy.errors import (
    FederationTooSmall,
    MalformedInput,
    ManifestNotLogged,
    NotReady,
    RoundEnded,
    RoundNotOpened,
    SpareShareMismatch,
    TallyError,
    UnknownManifest,
)
from windvane_privacy.identity import SigningKey
from windvane_privacy.leaf import ABORTED, is_round
from windvane_privacy.manifest import LEAD_DAYS, Manifest, format_time, parse_time
from windvane_privacy.report_file import check_catalogue
from windvane_privacy.roster import Roster, SignedRoster, sign_roster
from windvane_privacy.signed import sign_manifest
from windvane_privacy.sums import CohortSums
from windvane_privacy.tally import read_result, tally
from windvane_server.agreed import drawn_cohorts, guardian_of, signed_roster
from windvane_server.desk import Desk, Part
from windvane_server.entries import slot
from windvane_server.plan_round import RoundPlan, build_manifest, too_small
from windvane_server.preparing import bare_guardians, enrolled, next_roster, ready_guardians, standing
from windvane_server.schema import envelopes, reports, results, rosters, rounds, sums

ABORT_REASONS = ("legal", "wrong_configuration", "software_fault", "guardian_lost", "key_loss")
"""Why a round may be stopped by hand: what the public log says about it."""
LOT_WAIT = timedelta(days=2)
"""How long the lot waits for a guardian's nonce before it is drawn without."""


class Rounds(Part):
    """Rounds of one coordinator. `key`: the coordinator's identity key."""

    def __init__(self, desk: Desk, key: SigningKey) -> None:
        super().__init__(desk)
        self._key = key

    # --- before the quarter ---

    def propose_roster(self, round_id: str) -> bytes:
        """The signed roster of everybody enrolled, for the guardians to sign. Fixed once one of them has.

        Raises:
            MalformedInput: the round's name is malformed.
        """
        if not is_round(round_id):
            raise MalformedInput("The name of the round is malformed.")
        with self._store.write() as connection:
            known = self._row(connection, round_id)
            if known is None:
                place = (connection.execute(select(func.max(rounds.c.place))).scalar() or 0) + 1
                connection.execute(rounds.insert().values(round=round_id, place=place, state="proposed"))
            else:
                proposed_before = signed_roster(connection, round_id)
                fixed = known.manifest is not None or len(proposed_before.signatures) > 1 or known.state == "aborted"
                if fixed or proposed_before.roster.members == enrolled(connection):
                    return proposed_before.encode()
                connection.execute(rosters.delete().where(rosters.c.round == round_id))
            proposed = next_roster(connection, self._federation)
            signed = SignedRoster(proposed, (sign_roster(proposed, self._key),))
            connection.execute(
                rosters.insert().values(
                    round=round_id, sha256=proposed.sha256, version=proposed.version, raw=signed.encode()
                )
            )
            return signed.encode()

    def open_round(self, round_id: str, plan: RoundPlan) -> bytes:
        """The signed manifest of the round, logged. Run it again until the guardians are through.

        Raises:
            NotReady: a guardian's key or signature is missing; the message names whose.
            FederationTooSmall: the roster is below the floors. The plan is kept, so that the report can say why.
            ManifestNotLogged: too late for the events of this plan.
            ManifestError, CapacityExceeded: the plan does not give a sound manifest.
            ReportError: a label of the catalogue could not be published.
            RoundEnded: the round was aborted or already published.
        """
        self.propose_roster(round_id)
        with self._store.write() as connection:
            row = self._known(connection, round_id)
            if row.manifest is not None:
                return bytes(row.manifest)
            if row.state not in ("proposed", "not_opened") or self._published(connection, round_id):
                raise RoundEnded
            roster = signed_roster(connection, round_id).roster
            floors_missed = self._planned(connection, round_id, plan, roster)
        if floors_missed is not None:
            raise FederationTooSmall("The roster has too few organisations or people in scope; the report will say so.")
        now = self._clock()
        with self._store.write() as connection:
            guardians = ready_guardians(connection, self._log, self._federation, round_id)
            agreed = build_manifest(plan, standing(connection, self._federation, round_id, roster, guardians))
            manifests.check(agreed)
            check_catalogue([family for family in agreed.families if family.id in agreed.pair_source.order])
            if not agreed.demo and now + timedelta(days=LEAD_DAYS) > parse_time(agreed.events.from_):
                raise ManifestNotLogged(f"A manifest is logged at least {LEAD_DAYS} days before its events begin.")
            signed = sign_manifest(agreed, self._key)
            named = {"sha256": roster.sha256, "version": roster.version}
            self._log.say(connection, "roster", round_id, named, now, slot("roster", round_id))
            opened = {"manifest": agreed.sha256}
            self._log.say(connection, "round-opened", round_id, opened, now, slot("round-opened", round_id))
            self._set(connection, round_id, state="open", manifest=signed, planned=None, reason=None)
        return signed

    # --- closing week ---

    def close_round(self, round_id: str) -> str:
        """Fix the accepted set; returns its root (hex).

        Raises:
            NotReady: the submission window of a real round has not closed yet.
            UnknownManifest: the round was not opened.
            RoundEnded: the round was aborted.
        """
        now = self._clock()
        with self._store.write() as connection:
            row = self._known(connection, round_id)
            if row.set_root is not None:
                return str(row.set_root)
            manifest = self._agreements.of(connection, round_id).manifest
            if row.state != "open":
                raise RoundEnded
            if not manifest.demo and now < parse_time(manifest.submission.closes):
                raise NotReady(f"The submission window closes at {manifest.submission.closes}.")
            accepted = [
                (found.member, found.hash)
                for found in connection.execute(
                    select(envelopes.c.member, envelopes.c.hash).where(envelopes.c.round == round_id)
                )
            ]
            root = lot.set_root(accepted)
            fields = {"set_root": root, "members": len(accepted)}
            self._log.say(connection, "round-closed", round_id, fields, now, slot("round-closed", round_id))
            enough = is_enough(manifest, len(accepted))
            self._set(
                connection,
                round_id,
                state="closed" if enough else "not_opened",
                reason=None if enough else "accepted",
                set_root=root,
                closed_at=format_time(now),
            )
        return root

    def fix_lot(self, round_id: str, wait: timedelta = LOT_WAIT) -> tuple[tuple[int, ...], ...]:
        """The cohorts. Drawn when every guardian's nonce is there, or `wait` after the closing with at least t.

        Raises:
            NotReady: nonces are missing, or the round is not closed.
            RoundNotOpened: the round ended without an opening.
        """
        now = self._clock()
        with self._store.write() as connection:
            row = self._known(connection, round_id)
            self._refuse_ended(row)
            manifest = self._agreements.of(connection, round_id).manifest
            if row.state == "open":
                raise NotReady("The round is not closed.")
            if row.state == "closed":
                nonces = [self._nonce(connection, round_id, g.index) for g in manifest.guardians]
                given = sum(nonce is not None for nonce in nonces)
                waited = now >= parse_time(row.closed_at) + wait
                if given < manifest.t or (given < manifest.n and not waited):
                    missing = [g.name for g, n in zip(manifest.guardians, nonces, strict=True) if n is None]
                    raise NotReady(f"Nonces are missing from: {', '.join(missing)}.")
                self._draw(connection, manifest, str(row.set_root), nonces, now)
                self._set(connection, round_id, state="lot")
            return drawn_cohorts(connection, self._log, manifest)[1]

    def tally(self, round_id: str) -> tuple[CohortSums, bool]:
        """The noisy sums of the cohorts, and whether a third guardian's shares agree with them.

        Run again after a third result came, before publication, it checks that result too.

        Raises:
            NotReady: fewer than t results, or no lot yet.
            SpareShareMismatch, TallyError: the results contradict each other; logged, and nothing is published.
            RoundNotOpened: the round ended without an opening.
        """
        with self._store.write() as connection:
            row = self._known(connection, round_id)
            self._refuse_ended(row)
            if row.state in ("open", "closed"):
                raise NotReady("The lot is not drawn yet.")
            if row.state == "disputed":
                raise SpareShareMismatch
            stored = connection.execute(select(sums).where(sums.c.round == round_id)).one_or_none()
            if stored is not None and (stored.crosschecked or row.state == "published"):
                return CohortSums.from_json(bytes(stored.raw)), bool(stored.crosschecked)
            agreed = self._agreements.of(connection, round_id)
            given = {
                found.guardian: read_result(bytes(found.raw), self._identity(found.guardian))
                for found in connection.execute(select(results).where(results.c.round == round_id))
            }
            table = drawn_cohorts(connection, self._log, agreed.manifest)[1]
            try:
                opened, crosschecked = tally(given, agreed.manifest, table)
            except TallyError as contradiction:
                fields = {"what": type(contradiction).__name__, "note": ""}
                self._log.say(connection, "incident", round_id, fields, self._clock(), None)
                self._set(connection, round_id, state="disputed", reason="results")
                connection.execute(sums.delete().where(sums.c.round == round_id))
                failure = contradiction
            else:
                self._keep_sums(connection, round_id, opened, crosschecked=crosschecked)
                return opened, crosschecked
        # Outside the transaction: the incident stays logged.
        raise failure

    def abort(self, round_id: str, reason: str) -> None:
        """Stop a round. It stays charged at its members; the log says why.

        Raises:
            MalformedInput: the reason is not in the closed list.
            RoundEnded: the report of the round is published.
        """
        if reason not in ABORT_REASONS:
            raise MalformedInput(f"A reason is one of: {', '.join(ABORT_REASONS)}.")
        with self._store.write() as connection:
            row = self._known(connection, round_id)
            if row.state == "aborted":
                return
            if self._published(connection, round_id):
                raise RoundEnded
            fields = {"what": ABORTED, "note": reason}
            self._log.say(connection, "incident", round_id, fields, self._clock(), slot("aborted", round_id))
            self._set(connection, round_id, state="aborted", reason=reason)

    # --- parts of the steps ---

    def _planned(self, connection: Connection, round_id: str, plan: RoundPlan, roster: Roster) -> str | None:
        """Keep the plan of a round whose roster is below the floors; returns which floor was missed."""
        bare = bare_guardians(self._federation)
        planned = build_manifest(plan, standing(connection, self._federation, round_id, roster, bare))
        missed = too_small(planned.roster.members, planned.roster.people, planned.floors)
        if missed is None:
            self._set(connection, round_id, state="proposed", planned=None, reason=None)
        else:
            self._set(connection, round_id, state="not_opened", planned=manifests.encode(planned), reason=missed)
        return missed

    def _draw(
        self, connection: Connection, manifest: Manifest, root: str, nonces: list[bytes | None], now: datetime
    ) -> None:
        accepted = connection.execute(
            select(envelopes.c.member).where(envelopes.c.round == manifest.round).order_by(envelopes.c.member)
        ).scalars()
        table = lot.cohorts(list(accepted), lot.lot_seed(manifest.sha256, root, nonces), manifest.cohorts.G)
        fields = {
            "set_root": root,
            "nonces": [None if nonce is None else nonce.hex() for nonce in nonces],
            "cohorts_sha256": lot.cohorts_sha256(table),
        }
        self._log.say(connection, "lot", manifest.round, fields, now, slot("lot", manifest.round))

    def _nonce(self, connection: Connection, round_id: str, guardian: int) -> bytes | None:
        entry = self._log.find(connection, slot("nonce", round_id, guardian))
        return None if entry is None else bytes.fromhex(entry.leaf.fields["nonce"])

    def _keep_sums(self, connection: Connection, round_id: str, opened: CohortSums, *, crosschecked: bool) -> None:
        known = connection.execute(select(sums.c.salt).where(sums.c.round == round_id)).scalar()
        if known is None:
            values = {"raw": opened.to_json(), "salt": secrets.token_bytes(32), "crosschecked": int(crosschecked)}
            connection.execute(sums.insert().values(round=round_id, **values))
        else:
            connection.execute(sums.update().where(sums.c.round == round_id).values(crosschecked=int(crosschecked)))
        self._set(connection, round_id, state="tallied")

    def _identity(self, guardian: int) -> bytes:
        return bytes.fromhex(guardian_of(self._federation, guardian).identity)

    def _known(self, connection: Connection, round_id: str) -> Row[tuple[object, ...]]:
        row = self._row(connection, round_id)
        if row is None:
            raise UnknownManifest
        return row

    def _row(self, connection: Connection, round_id: str) -> Row[tuple[object, ...]] | None:
        return connection.execute(select(rounds).where(rounds.c.round == round_id)).one_or_none()

    def _refuse_ended(self, row: Row[tuple[object, ...]]) -> None:
        if row.state in ("not_opened", "aborted"):
            raise RoundNotOpened
        if row.manifest is None:
            raise UnknownManifest

    def _published(self, connection: Connection, round_id: str) -> bool:
        return connection.execute(select(reports.c.round).where(reports.c.round == round_id)).first() is not None

    def _set(self, connection: Connection, round_id: str, **values: str | bytes | None) -> None:
        connection.execute(rounds.update().where(rounds.c.round == round_id).values(**values))
