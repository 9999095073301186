# SPDX-License-Identifier: Apache-2.0
"""The member's agent: takes a round from approval to `accepted` or `burned`, one idempotent step at a time.

Rules kept here:
* the decision comes first: nothing is drawn without an approval of exactly this manifest, and no count is shown here;
* before every step the whole log is read, under a quorum of witnesses; it continues what was seen, here or elsewhere;
* a commitment of ours in the log that the ledger does not hold burns its round: a copy or an old backup is running;
* `committed` needs a receipt and a scan in which our hash is the first with our valid signature; only then anything is
  revealed; an entry in our name without our signature burns nothing and is kept as evidence;
* each step stores before it says; a step that was interrupted is taken again with the same bytes;
* the time of the log's witnesses opens a window; this machine's clock can only refuse;
* own directions are written when the round ends, in the same transaction; then the window's events are deleted.

Not failures: a coordinator that does not answer, a window that is not open, an entry that is not there yet. Each is a
named refusal, and the same call later goes on.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import UTC, datetime

from windvane_client.agreement import Agreement, verify_agreement
from windvane_client.evidence import Evidence, StoredEvidence
from windvane_client.in_force import policy_in_force
from windvane_client.lost_draws import lost_draws
from windvane_client.person_key import attested_since, check_person_key
from windvane_client.retention import forget_skipped
from windvane_client.round_log import accepted_leaf, check_clock, check_window, is_closed, round_names
from windvane_client.state import MemberState, machine_id
from windvane_client.stopping import make_stop, tell_stops
from windvane_privacy import log
from windvane_privacy.couriers import Courier, Parcel
from windvane_privacy.errors import (
    DuplicateSubmission,
    IllegalTransition,
    LedgerDamaged,
    LedgerError,
    ManifestChanged,
    ManifestError,
    NeedsApproval,
    NotReady,
    PolicyRefusal,
    ReceiptRefused,
    RosterError,
    RoundBurned,
    RoundClosed,
    RoundStopped,
)
from windvane_privacy.leaf import is_aborted
from windvane_privacy.ledger_schema import BurnReason, Drawn, RoundEntry, State, Stop, StopReason
from windvane_privacy.log import Scan, first_commitment, forged_commitments
from windvane_privacy.manifest import Manifest
from windvane_privacy.noise import Noise, OpenDPNoise
from windvane_privacy.own import KEPT, OwnCounts, own_outcome
from windvane_privacy.policy import Policy, check_manifest
from windvane_privacy.signed import verify_signed_manifest
from windvane_privacy.submission import Sender, make_submission, software_versions
from windvane_privacy.votes import OwnDirection, Sampler

Clock = Callable[[], datetime]
Warn = Callable[[str], None]
"""Tells the operator something that stops nothing."""


class MemberAgent:
    """One agent over one state folder; holds the ledger's lock until it is closed.

    `noise` and `sampler` default to OpenDP and the system's generator; tests hand in others. `pause` waits between the
    draw and the first message, so that the message's time does not tell how long the draw took.

    Raises:
        LedgerLocked, LedgerDamaged, LedgerFormat: the ledger cannot be used.
    """

    def __init__(
        self,
        state: MemberState,
        courier: Courier,
        clock: Clock,
        *,
        noise: Noise | None = None,
        sampler: Sampler | None = None,
        evidence: Evidence | None = None,
        warn: Warn | None = None,
        pause: Callable[[], None] = lambda: None,
    ) -> None:
        self.state, self._courier, self._clock, self._noise, self._pause = state, courier, clock, noise, pause
        self._sampler: Sampler = sampler if sampler is not None else secrets.SystemRandom()
        self._evidence: Evidence = evidence if evidence is not None else StoredEvidence(state)
        self._warn: Warn = warn if warn is not None else lambda _sentence: None
        self._key = state.key
        self.ledger = state.ledger()
        try:
            self._in_force = policy_in_force(state.folder, self.ledger, self._today())
            self._policy: Policy = self._in_force.policy
            self._coordinator = bytes.fromhex(self._policy.coordinator)
            self._log_policy = state.log_policy(self._policy)
            self._begin()
        except BaseException:
            self.ledger.close()
            raise

    def __enter__(self) -> MemberAgent:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the ledger to the next process."""
        self.ledger.close()

    # --- before a round ---

    def enrol(self) -> bytes:
        """Send our public card; the same card again is harmless.

        Raises:
            AlreadyEnrolled: the name or the key is somebody else's.
        """
        answer = self._courier.exchange(Parcel("enrol", "", self.state.card()))
        self.state.keep_enrolled(answer)
        return answer

    def agreement(self, round_id: str) -> Agreement:
        """The verified agreement on a round, for the page before the approval. No count of any window is in it.

        Raises:
            ManifestError, RosterError, LogError, PolicyRefusal: what does not hold, or is more than the policy allows.
        """
        found = self._agreed(round_id, self.scan())
        self._judge(found.manifest)
        # Collecting needs the catalogue of a round before anybody approves it.
        self._store_agreement(found)
        return found

    def learn(self) -> list[str]:
        """Verify and keep the agreements of rounds that are new here; the names of those kept.

        A round that does not hold together is a warning: it must not keep the others from being collected for.
        """
        kept = []
        for name in round_names(self._courier.exchange(Parcel("rounds"))):
            if self.state.manifest(name) is not None:
                continue
            try:
                self.agreement(name)
                kept.append(name)
            except (ManifestError, RosterError, PolicyRefusal) as refusal:
                self._warn(f"Round {name}: {refusal.sentence()}")
        return kept

    def approve(self, round_id: str, *, manifest_sha256: str | None = None) -> Agreement:
        """Record the approval. `manifest_sha256`: what the person was shown.

        Raises:
            ManifestChanged: the round's manifest is another one now.
        """
        found = self.agreement(round_id)
        if manifest_sha256 is not None and manifest_sha256 != found.manifest.sha256:
            raise ManifestChanged
        self.ledger.approve(round_id, found.manifest.sha256, self._today())
        return found

    # --- a round ---

    def submit(self, round_id: str) -> RoundEntry:
        """Go on from wherever this round stands, to its end if the coordinator answers.

        Returns the entry of an accepted round.

        Raises:
            RoundBurned: nothing will be sent for this round.
            NotReady: the window is not open, or `accepted` is not in the log yet.
            CoordinatorUnreachable: no answer; call again.
        """
        entry = self.ledger.round(round_id)
        if entry is not None and entry.state.final:
            return self._ended(entry)
        scan = self.scan()
        entry = self.ledger.round(round_id)
        if entry is not None and entry.state.final:
            return self._ended(entry)
        agreed = self._agreed(round_id, scan)
        if entry is None:
            entry = self.draw(agreed, scan)
            self._pause()
        elif entry.manifest_sha256 != agreed.manifest.sha256:
            raise ManifestChanged
        entry = self._settle(entry, agreed, scan)
        if entry.state is State.DRAWN:
            entry = self._commit(entry, agreed)
        if entry.state in (State.COMMITTED, State.REVEALED):
            entry = self._reveal(entry, agreed)
        return self._ended(entry)

    def draw(self, agreed: Agreement, scan: Scan) -> RoundEntry:
        """Draw, charge and store; sends nothing.

        Raises:
            NeedsApproval: nobody approved, or this is another machine than the one that was confirmed.
            WindowNotOpen, RoundClosed: by the log's day, or the clock refuses.
            RoundBurned: the log holds a commitment of ours.
            RoundStopped: this organisation stopped the round itself.
        """
        manifest = agreed.manifest
        self._judge(manifest)
        if self.ledger.stop(manifest.round) is not None:
            raise RoundStopped
        if self.ledger.moved:
            raise NeedsApproval("This is another machine than before: confirm that no copy runs elsewhere.")
        check_window(manifest, scan, self._clock(), self._coordinator)
        if first_commitment(scan.leaves, manifest.round, agreed.member, self._key.public) is not None:
            raise RoundBurned  # `scan` has burned it already; never draw beside a commitment of ours
        if self._policy.approval == "auto" and self.ledger.approval(manifest.round) is None:
            self._store_agreement(agreed)
            self.ledger.approve(manifest.round, manifest.sha256, self._today())
        if self.ledger.approval(manifest.round) is None:
            raise NeedsApproval
        rows = self._evidence.outcomes(manifest)
        noise = self._noise if self._noise is not None else OpenDPNoise()
        ties = frozenset(agreed.roster.member(agreed.member).ties)
        sender = Sender(agreed.member, self._key, self.ledger.install_id, machine_id(), ties)
        today = self._today()
        check_person_key(self.ledger, self.state.k_org, today)
        since = attested_since(self.state.folder, self.state.ids.staff)

        def make(admits: Callable[[bytes], bool]) -> Drawn:
            return make_submission(
                rows, manifest, sender=sender, day=today, admits=admits, noise=noise, sampler=self._sampler,
                versions=software_versions(),
            )  # fmt: skip

        return self.ledger.draw(manifest, day=today, lifetime_cap=self._policy.max_rho_lifetime, make=make, since=since)

    def refuse(self, round_id: str, reason: StopReason) -> RoundEntry | None:
        """Stop a round for ourselves: nothing is drawn, or nothing more is sent and the log is told.

        Returns the burned entry; None where nothing was drawn.

        Raises:
            IllegalTransition: the envelope was revealed, or the round has ended.
            CoordinatorUnreachable: the stop stands here; the log is told at the next call of any command.
        """
        entry = self.ledger.round(round_id)
        if entry is None:
            self.ledger.stop_undrawn(round_id, reason, self._today())
            return None
        if entry.state not in (State.DRAWN, State.COMMITTED):
            raise IllegalTransition("What was revealed or has ended cannot be taken back.")
        manifest = verify_signed_manifest(self.state.manifest(round_id) or b"", self._coordinator)
        stop = make_stop(round_id, reason, self._today(), self._key)
        entry = self._burn(entry, manifest, BurnReason.STOPPED, stop)
        tell_stops(self.ledger, self._courier)
        return entry

    def _commit(self, entry: RoundEntry, agreed: Agreement) -> RoundEntry:
        leaf = entry.commitment_leaf or b""
        refused: DuplicateSubmission | RoundClosed | None = None
        answer = b""
        try:
            answer = self._courier.exchange(Parcel("leaf", entry.round_id, leaf))
        except (DuplicateSubmission, RoundClosed) as error:
            refused = error  # the coordinator's word burns nothing: the log decides below
        scan = self.scan()
        entry = self._settle(entry, agreed, scan)
        if refused is not None:
            if entry.state.final:
                return entry
            raise refused
        if entry.state is not State.DRAWN:
            return entry
        receipt = log.verify_receipt(answer, leaf, self._log_policy)
        scan.check_receipt(receipt)
        mine = first_commitment(scan.leaves, entry.round_id, agreed.member, self._key.public)
        if mine is None or mine.fields["hash"] != entry.commit_hash:
            raise ReceiptRefused("The log does not hold our commitment.")
        self.ledger.commit(entry.round_id, receipt)
        return self._entry(entry.round_id)

    def _reveal(self, entry: RoundEntry, agreed: Agreement) -> RoundEntry:
        envelope = self.ledger.reveal(entry.round_id)
        refused: RoundClosed | None = None
        try:
            self._courier.exchange(Parcel("reveal", entry.round_id, envelope))
        except RoundClosed as error:
            refused = error
        entry = self._settle(self._entry(entry.round_id), agreed, self.scan())
        if entry.state.final:
            return entry
        if refused is not None:
            raise refused
        raise NotReady("The log does not show our envelope as accepted yet.")

    def _settle(self, entry: RoundEntry, agreed: Agreement, scan: Scan) -> RoundEntry:
        """End the round if the log says that it has ended for us; otherwise nothing changes."""
        if entry.state.final:
            return entry
        leaves, round_id, member = scan.leaves, entry.round_id, agreed.member
        for forged in forged_commitments(leaves, round_id, member, self._key.public):
            path = self.state.keep_evidence(forged.hash, forged.raw)
            self._warn(f"The log holds a commitment in our name that we did not sign; it is kept as {path.name}.")
        mine = first_commitment(leaves, round_id, member, self._key.public)
        if mine is not None and mine.fields["hash"] != entry.commit_hash:
            return self._burn(entry, agreed.manifest, BurnReason.FOREIGN_COMMITMENT)
        accepted = accepted_leaf(leaves, round_id, member, self._coordinator)
        if accepted is not None and accepted.fields["hash"] == entry.commit_hash and entry.receipt is not None:
            if entry.state is State.COMMITTED:
                # A copy of this ledger from before the reveal is running: what it revealed are the same bytes.
                self.ledger.reveal(round_id)
            words, counts = self._own(agreed.manifest)
            self.ledger.accept(round_id, accepted, words, self._today(), counts)
            return self._over(round_id, agreed.manifest)
        if accepted is None and is_aborted(leaves, round_id, self._coordinator):
            return self._burn(entry, agreed.manifest, BurnReason.ABORTED)
        if accepted is None and is_closed(leaves, round_id, self._coordinator):
            late = BurnReason.NOT_COMMITTED_IN_TIME if mine is None else BurnReason.NOT_ACCEPTED
            return self._burn(entry, agreed.manifest, late)
        return entry

    # --- the log ---

    def scan(self) -> Scan:
        """All of the log, checked; rounds that the log proves and the ledger lost are burned on the way.

        Raises:
            LogError: it contradicts itself or what was seen before.
            ClockImplausible: this machine's clock contradicts it.
        """
        now = self._clock().astimezone(UTC)
        found = log.scan(self._courier.exchange(Parcel("leaves")), self._log_policy, now=int(now.timestamp()))
        check_clock(found.head, now)
        for seen in self._seen():
            found.check_continues(seen)
        self._resynchronise(found)
        tell_stops(self.ledger, self._courier, found)
        # The second place last: a crash in between leaves it older, which refuses nothing.
        self.ledger.remember_head(found.head.raw)
        self.state.keep_second_head(found.head.raw)
        return found

    def _seen(self) -> list[log.Head]:
        kept = filter(None, (self.ledger.last_head, self.state.second_head()))
        return [log.read_head(raw, self._log_policy) for raw in kept]

    def _resynchronise(self, scan: Scan) -> None:
        """A commitment of ours without an entry here: an old backup or a copy. Its round is charged to all, burned."""
        known = self.ledger.round
        for lost in lost_draws(scan, self._courier, self._key, self._coordinator, lambda name: known(name) is not None):
            manifest = lost.manifest
            words, counts = self._own(manifest)
            self.ledger.burn_undrawn(
                manifest, lost.commit_hash, words, versions=software_versions(), day=self._today(), counts=counts
            )
            self._evidence.forget(manifest.events.from_, manifest.events.to)
            self._warn(f"The log holds a commitment for {manifest.round} that this ledger does not: it is burned.")

    # --- inside ---

    def _begin(self) -> None:
        if self.ledger.key_id != self._key.key_id:
            raise LedgerDamaged("The ledger was made for another identity key.")
        if self.ledger.damage is not None:
            return
        if self._in_force.refusal is not None:
            self._warn(self._in_force.refusal.sentence())
        self.ledger.forget_noisy((self._clock().astimezone(UTC) - KEPT).date().isoformat())
        known = (verify_signed_manifest(raw, self._coordinator) for raw in self.state.manifests())
        forget_skipped(self._evidence, self.ledger, known, self._clock())
        for entry in self.ledger.rounds():
            # A crash may have come between the end of a round and the deletion of its events.
            if entry.state.final:
                self._evidence.forget(entry.events_from, entry.events_to)

    def _agreed(self, round_id: str, scan: Scan) -> Agreement:
        raw = self.state.manifest(round_id)
        if raw is None:
            raw = self._courier.exchange(Parcel("manifest", round_id))
        roster = self._courier.exchange(Parcel("roster", round_id))
        return verify_agreement(
            raw, roster, scan, round_id=round_id, policy=self._policy, key=self._key, accepted=self.state.roster()
        )

    def _judge(self, manifest: Manifest) -> None:
        if self._in_force.refusal is not None:
            raise self._in_force.refusal
        check_manifest(self._policy, manifest, overlap=self.ledger.overlap(manifest))

    def _store_agreement(self, found: Agreement) -> None:
        self.state.keep_manifest(found.manifest.round, found.raw)
        self.state.keep_roster(found.signed_roster)

    def _own(self, manifest: Manifest) -> tuple[list[OwnDirection], OwnCounts]:
        ties = self.state.settings.ties
        return own_outcome(self._evidence.outcomes(manifest), manifest, self._sampler, ties=ties)

    def _burn(self, entry: RoundEntry, manifest: Manifest, reason: BurnReason, stop: Stop | None = None) -> RoundEntry:
        words, counts = self._own(manifest)
        self.ledger.burn(entry.round_id, reason, words, self._today(), counts, stop)
        return self._over(entry.round_id, manifest)

    def _over(self, round_id: str, manifest: Manifest) -> RoundEntry:
        self._evidence.forget(manifest.events.from_, manifest.events.to)
        return self._entry(round_id)

    def _entry(self, round_id: str) -> RoundEntry:
        entry = self.ledger.round(round_id)
        if entry is None:
            raise LedgerError("The round has no entry.")
        return entry

    def _ended(self, entry: RoundEntry) -> RoundEntry:
        if entry.state is State.BURNED:
            raise RoundBurned(f"Reason: {entry.reason}.")
        return entry

    def _today(self) -> str:
        return self._clock().astimezone(UTC).date().isoformat()
