# SPDX-License-Identifier: Apache-2.0
"""The guardian's part of a round: `ready`, `reveal_nonce` and `open`, over any courier.

Rules kept here:
* nothing is taken from the coordinator on trust: manifest, roster, log, commitments, lot and envelopes are all checked
  against the guardian's own pinned keys and its own policy before its share of a sum leaves;
* the round key and the nonce are made once, before the manifest exists; the nonce is revealed only after the closed
  set is in the log, bound to that set;
* shares are summed per cohort and only sums leave; a single member's share is never written or sent;
* a round is opened once: the signed result is on the disk before it leaves, a second call sends the same bytes, and
  another set is refused (`AlreadyOpened`);
* every step may be repeated after a crash; what left is sent again unchanged;
* while a member's committed envelope is held here, nothing is released for a set without it.

One envelope that does not hold up stops this guardian's opening with the reason: nobody is left out in silence, because
two guardians that open two sets which differ in one member would reveal that member. A result holds sums of shares;
any t results give the noisy sums, so it travels over a protected channel.

Source: docs/protocol.md (life of a round).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from windvane_privacy import canonical, field, lot
from windvane_privacy.agreement import check_agreement
from windvane_privacy.ceremony import ClosedSet, check_floors, check_not_stopped, closed_set, fixed_lot
from windvane_privacy.couriers import Courier, Parcel
from windvane_privacy.destroying import check_destruction
from windvane_privacy.envelope import split_envelopes
from windvane_privacy.errors import (
    AlreadyOpened,
    EntryConflict,
    FederationTooSmall,
    GuardianNotPinned,
    LotBeforeClose,
    MalformedInput,
    ManifestChanged,
    ManifestError,
    NonceMismatch,
    NotReady,
    RosterError,
    RoundKeyDestroyed,
    SetMismatch,
    UnknownManifest,
    WrongGuardianKey,
)
from windvane_privacy.guardian_ledger import GuardianLedger, GuardianRound
from windvane_privacy.guardian_outcomes import NonceOutcome, ReadyOutcome, View
from windvane_privacy.guardian_state import GuardianState, load_guardian
from windvane_privacy.handed_over import check_handed_over, is_accepted
from windvane_privacy.holding import check_nobody_left_out
from windvane_privacy.identity import check_public
from windvane_privacy.log import (
    Head,
    Scan,
    first_of,
    is_round,
    make_leaf,
    read_head,
    read_leaf,
    scan,
    verify_receipt,
)
from windvane_privacy.manifest import Manifest, parse_time
from windvane_privacy.opening import Opener
from windvane_privacy.policy import DEMO_FLOORS, check_manifest
from windvane_privacy.roster import Roster, RosterMember, SignedRoster, check_successor, endorse, verify_roster
from windvane_privacy.signed import verify_signed_manifest
from windvane_privacy.tally import make_result

Clock = Callable[[], datetime]
Progress = Callable[[int, int], None]


class GuardianSession:
    """One guardian at work. Use it as a context, or call `close`: it holds the ledger's lock.

    Raises:
        ConfigurationError, PolicyMissing, KeyFileTooOpen, GuardianNotPinned: see `load_guardian`.
        LedgerDamaged, LedgerLocked, LedgerFormat: see `GuardianLedger`.
    """

    def __init__(self, state: Path, courier: Courier, clock: Clock) -> None:
        self._state: GuardianState = load_guardian(state)
        self._courier = courier
        self._clock = clock
        self._ledger = GuardianLedger(state)

    def close(self) -> None:
        """Give up the ledger."""
        self._ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- before the manifest ---

    def ready(self, round_id: str) -> ReadyOutcome:
        """Check and sign the proposed roster, make the round key and the nonce, and put both commitments in the log.

        Raises:
            RosterSignatureMissing, RosterNotSuccessor, RosterError: the proposal is not the coordinator's or does not
                follow the roster accepted last.
            GuardianNotPinned, FederationTooSmall: it breaks this guardian's policy.
            ReceiptRefused: the coordinator's answer does not prove that the leaf is in the log.
            NotReady: the leaf is in the log, and its witnesses have not signed yet; the same call goes on later.
        """
        _check_name(round_id)
        roster, new_members = self._accept_roster(round_id)
        row = self._ledger.round(round_id)
        if row is None:
            row = self._begin(round_id)
        self._exchange("endorse", round_id, endorse(roster, self._state.identity).encode())
        self._post_leaf(row, "ready_receipt", row.ready_leaf)
        return ReadyOutcome(row.round_key_id, roster.sha256, new_members)

    def _accept_roster(self, round_id: str) -> tuple[Roster, tuple[RosterMember, ...]]:
        signed = SignedRoster.decode(self._exchange("roster", round_id))
        roster = verify_roster(signed, self._state.coordinator, (), need=0)
        if roster.log_origin != self._state.log_origin:
            raise RosterError("It is another log's.")
        mine = [g.identity for g in roster.guardians if g.index == self._state.index]
        pinned = {g.identity for g in self._state.policy.guardians}
        if mine != [self._state.identity.public.hex()] or not {g.identity for g in roster.guardians} <= pinned:
            raise GuardianNotPinned
        floors = DEMO_FLOORS if self._state.policy.demo and self._state.federation.demo else self._state.policy.floors
        if len(roster.active) < floors.roster or roster.people < floors.people:
            raise FederationTooSmall
        for member in roster.members:
            check_public(bytes.fromhex(member.key))
        stored = self._ledger.recall("roster")
        known: set[str] = set()
        if stored is not None:
            last = SignedRoster.decode(stored).roster
            check_successor(last, roster)
            known = {member.key for member in last.members}
        self._ledger.remember("roster", signed.encode())
        return roster, tuple(member for member in roster.members if member.key not in known)

    def _begin(self, round_id: str) -> GuardianRound:
        key = self._state.make_round_key(round_id)
        nonce = secrets.token_bytes(lot.NONCE_BYTES)
        fields = {
            "guardian": self._state.index,
            "round_key": key.public.hex(),
            "round_key_id": key.key_id,
            "nonce_commitment": lot.nonce_commitment(round_id, self._state.index, nonce),
        }
        self._ledger.begin(round_id, key.key_id, nonce, self._leaf("guardian-ready", round_id, fields))
        return self._row(round_id)

    # --- closing week ---

    def hold(self, parcel: Parcel) -> tuple[int, bool]:
        """Hold an envelope that its member handed over because the coordinator ignores it. Returns the member's number
        and whether it is held: what the log shows as accepted is not, and need not be.

        Raises:
            NotReady: this guardian is not part of the round.
            AlreadyOpened: it has opened the round; nothing can be held back any more.
            EnvelopeError, ShareError, MalformedEnvelope, UnknownMember, RoundNotOpened: see `check_handed_over`.
        """
        row = self._row(parcel.round_id)
        view = self._look(parcel.round_id, row)
        key = self._state.round_key(parcel.round_id)
        found = check_handed_over(parcel.body, view.manifest, view.roster, view.leaves, self._state.index, key)
        if is_accepted(found, view.manifest, view.leaves):
            return found.member, False
        if row.state == "opened":
            raise AlreadyOpened("The envelope came too late to hold anything back.")
        self._ledger.hold(parcel.round_id, found.member, found.commit_hash, parcel.body)
        return found.member, True

    def reveal_nonce(self, round_id: str) -> NonceOutcome:
        """Verify the round up to its closing, then put the nonce in the log, bound to the closed set.

        Raises:
            LotBeforeClose: the closed set is not in the log yet, or the submission window is still open.
            PolicyRefusal, ManifestError, RosterError, LogError, EnvelopeError, SetMismatch: see `agreement.py`,
                `ceremony.py`.
            MemberOmitted: a held envelope is not in the closed set; the nonce stays secret.
            RoundNotOpened: too few members; the nonce stays secret.
            EntryConflict: the log holds another nonce of this guardian that it did not send, and no lot.
        """
        row = self._row(round_id)
        view = self._look(round_id, row)
        closed = closed_set(view.leaves, view.manifest, view.roster)
        if not view.manifest.demo and self._clock() < parse_time(view.manifest.submission.closes):
            raise LotBeforeClose("The submission window is still open.")
        self._check_bound(row, closed, None)
        check_not_stopped(view.leaves, view.manifest)
        self._check_held(round_id, closed)
        check_floors(view.manifest, len(closed.accepted))
        if row.nonce_leaf is None:
            drawn = first_of(view.leaves, "lot", round_id, public=self._state.coordinator)
            if drawn is not None or row.state == "opened":
                return NonceOutcome(False, closed.set_root)
            fields = {"guardian": self._state.index, "nonce": row.nonce.hex(), "set_root": closed.set_root}
            leaf = self._leaf("nonce", round_id, fields)
            self._ledger.reveal(round_id, view.manifest.sha256, closed.set_root, leaf)
            row = self._row(round_id)
        if row.nonce_leaf is None:
            raise NotReady
        try:
            self._post_leaf(row, "nonce_receipt", row.nonce_leaf)
        except EntryConflict:
            # The lot may have been drawn between the look and the message. The log says whether it was: the round then
            # goes on without this nonce. Otherwise somebody else holds this guardian's place, and that is an alarm.
            again = self._look(round_id, row)
            if first_of(again.leaves, "lot", round_id, public=self._state.coordinator) is None:
                raise
            return NonceOutcome(False, closed.set_root)
        return NonceOutcome(True, closed.set_root)

    def open(self, round_id: str, progress: Progress | None = None) -> bytes:
        """Verify everything, sum this guardian's shares per cohort, and send the signed result; returns its bytes.

        `progress` is called with (members done, members). A second call sends the stored bytes again.

        Raises:
            NotReady: the lot has not been drawn.
            LotMismatch, NonceMismatch, RoundNotOpened: see `ceremony.py`.
            EnvelopeError, ShareError, MalformedEnvelope: a member's envelope is not what the log says or does not open.
            AlreadyOpened: this round was opened before, for another set or other cohorts.
            MemberOmitted: a held envelope is not in the closed set.
        """
        row = self._row(round_id)
        view = self._look(round_id, row)
        closed = closed_set(view.leaves, view.manifest, view.roster)
        self._check_bound(row, closed, None)
        cohorts = fixed_lot(view.leaves, view.manifest, closed)
        self._check_bound(row, closed, lot.cohorts_sha256(cohorts))
        if row.result is None:
            check_not_stopped(view.leaves, view.manifest)
            self._check_held(round_id, closed)
            result = self._sum(round_id, view, closed, cohorts, progress)
            digest = canonical.sha256_hex(result)
            fields = {"guardian": self._state.index, "result": digest, "set_root": closed.set_root}
            leaf = self._leaf("opened", round_id, fields)
            table = lot.cohorts_sha256(cohorts)
            self._ledger.open_once(round_id, view.manifest.sha256, closed.set_root, table, result, leaf)
            row = self._row(round_id)
        if row.result is None or row.opened_leaf is None:
            raise NotReady
        self._exchange("result", round_id, row.result)
        self._post_leaf(row, "opened_receipt", row.opened_leaf)
        return row.result

    def _sum(
        self,
        round_id: str,
        view: View,
        closed: ClosedSet,
        cohorts: tuple[tuple[int, ...], ...],
        progress: Progress | None,
    ) -> bytes:
        manifest = view.manifest
        raws = self.envelopes(view, closed)
        opener = self.opener(view)
        place = {member: g for g, cohort in enumerate(cohorts) for member in cohort}
        sums = [np.zeros(manifest.length, dtype=np.uint64) for _ in cohorts]
        for done, ((member, logged), raw) in enumerate(zip(closed.accepted, raws, strict=True), start=1):
            share = opener.share(raw, member, logged)
            # The blind element at the end serves a later check of single shares; it is no part of any sum.
            sums[place[member]] = field.add(sums[place[member]], share[: manifest.length])
            if progress is not None:
                progress(done, len(raws))
        counts = [len(cohort) for cohort in cohorts]
        return make_result(manifest, closed.set_root, self._state.index, counts, sums, self._state.identity)

    # --- what a look needs ---

    def view(self, round_id: str) -> View:
        """What the coordinator shows of a round, verified up to the agreement; sends nothing.

        Raises:
            WindvaneError: what does not hold; see `reveal_nonce`.
        """
        return self._look(round_id, self._row(round_id))

    def envelopes(self, view: View, closed: ClosedSet) -> list[bytes]:
        """The envelopes of the closed set, by member number, as the coordinator hands them out: nothing is checked."""
        answer = self._exchange("envelopes", view.manifest.round)
        return split_envelopes(answer, view.manifest, len(closed.accepted))

    def opener(self, view: View) -> Opener:
        """What opens this guardian's shares of the round."""
        keys = {member.number: bytes.fromhex(member.key) for member in view.roster.active}
        return Opener(view.manifest, keys, self._state.index, self._state.round_key(view.manifest.round))

    # --- after the appeal ---

    def destroy(self, round_id: str) -> bool:
        """Destroy the round's key and say so in the log; whether it is later than agreed. Said again on a second call.

        Raises:
            AppealRunning: see `destroying.py`.
            NotReady: the key is destroyed, and the entry is not under a quorum of witnesses yet.
        """
        row, late = self._row(round_id), False
        leaf = self._ledger.destroyed(round_id)
        if leaf is None:
            view = self._look(round_id, row)
            late = check_destruction(view.leaves, view.manifest, date.fromisoformat(view.day)).late
            fields = {"guardian": self._state.index, "round_key_id": row.round_key_id}
            leaf = self._leaf("key-destroyed", round_id, fields)
            self._ledger.destroy(round_id, leaf)
        self._state.destroy_round_key(round_id)
        answer = self._exchange("leaf", round_id, leaf)
        verify_receipt(answer, leaf, self._state.log_policy)
        return late

    # --- what the coordinator shows ---

    def _look(self, round_id: str, row: GuardianRound) -> View:
        if self._ledger.destroyed(round_id) is not None:
            raise RoundKeyDestroyed
        manifest = verify_signed_manifest(self._exchange("manifest", round_id), self._state.coordinator)
        if manifest.round != round_id:
            raise UnknownManifest
        if row.manifest_sha256 not in {None, manifest.sha256}:
            raise ManifestChanged
        check_manifest(self._state.policy, manifest)
        self._check_own_entry(manifest, row)
        shown = scan(self._exchange("leaves", ""), self._state.log_policy, now=int(self._clock().timestamp()))
        signed = SignedRoster.decode(self._exchange("roster", round_id))
        if row.state == "opened":
            # Said first, because it is the sharper finding than a log that does not continue: a set was swapped.
            self._check_bound(row, closed_set(shown.leaves, manifest, signed.roster), None)
        self._check_log(shown, row)
        roster = check_agreement(manifest, signed, shown.leaves)
        return View(manifest, roster, shown.leaves, shown.head.day)

    def _check_log(self, shown: Scan, row: GuardianRound) -> None:
        policy, stored = self._state.log_policy, self._ledger.recall("head")
        seen: Head | None = None if stored is None else read_head(stored, policy)
        if seen is not None:
            shown.check_continues(seen)
        for leaf, receipt in (
            (row.ready_leaf, row.ready_receipt),
            (row.nonce_leaf, row.nonce_receipt),
            (row.opened_leaf, row.opened_receipt),
        ):
            if leaf is not None and receipt is not None:
                shown.check_receipt(verify_receipt(receipt, leaf, policy))
        if seen is None or shown.head.size > seen.size:
            self._ledger.remember("head", shown.head.raw)

    def _check_own_entry(self, manifest: Manifest, row: GuardianRound) -> None:
        entry = next((g for g in manifest.guardians if g.index == self._state.index), None)
        if entry is None or entry.identity != self._state.identity.public.hex():
            raise GuardianNotPinned("This guardian is not the one the manifest names.")
        key = self._state.round_key(manifest.round)
        if (entry.round_key, entry.round_key_id) != (key.public.hex(), row.round_key_id):
            raise WrongGuardianKey
        if entry.nonce_commitment != lot.nonce_commitment(manifest.round, self._state.index, row.nonce):
            raise NonceMismatch
        if entry.ready_leaf != read_leaf(row.ready_leaf).hash:
            raise ManifestError("It does not name the entry that this guardian put in the log.")

    def _check_bound(self, row: GuardianRound, closed: ClosedSet, cohorts: str | None) -> None:
        if row.set_root is not None and row.set_root != closed.set_root:
            if row.state == "opened":
                raise AlreadyOpened
            raise SetMismatch("The nonce was revealed for another set.")
        if cohorts is not None and row.cohorts_sha256 is not None and row.cohorts_sha256 != cohorts:
            raise AlreadyOpened

    def _check_held(self, round_id: str, closed: ClosedSet) -> None:
        day = self._clock().date().isoformat()
        check_nobody_left_out(self._ledger, round_id, closed, self._courier, self._state.identity, day)

    # --- small steps ---

    def _row(self, round_id: str) -> GuardianRound:
        _check_name(round_id)
        row = self._ledger.round(round_id)
        if row is None:
            raise NotReady("Run `windvane guardian ready` for this round first.")
        return row

    def _leaf(self, kind: str, round_id: str, fields: dict[str, object]) -> bytes:
        day = self._clock().date().isoformat()
        return make_leaf(kind, round_id, {**fields, "day": day}, self._state.identity)

    def _post_leaf(self, row: GuardianRound, column: str, leaf: bytes) -> None:
        answer = self._exchange("leaf", row.round_id, leaf)
        verify_receipt(answer, leaf, self._state.log_policy)
        if getattr(row, column) is None:
            self._ledger.keep_receipt(row.round_id, column, answer)

    def _exchange(self, kind: str, round_id: str, body: bytes = b"") -> bytes:
        return self._courier.exchange(Parcel(kind, round_id, body))


def _check_name(round_id: str) -> None:
    if not is_round(round_id):
        raise MalformedInput("a round's name is letters, digits, dots and dashes")
