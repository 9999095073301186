# SPDX-License-Identifier: Apache-2.0
"""Every error Windvane can raise, in one tree.

Rules kept here:
* each class says in its docstring what happened, and in `advice` what to do next, one sentence each;
* a message never holds a person, a model, a count, a path of a log or any text from a log;
* parsers let nothing out but `MalformedInput` (and its subclasses);
* "not ready yet" is never reported as "invalid";
* over HTTP each class is a problem document (RFC 9457) whose `type` is `problem_type(cls)`.

    WindvaneError
    |- MalformedInput         bytes that are not what they claim to be
    |- NotReady               nothing is wrong, ask again later
    |- ConfigurationError     a file of this installation is missing or wrong
    |- PolicyRefusal          the manifest asks more than this installation allows
    |- ManifestError, RosterError, KeyError_   what was signed does not hold together
    |- EnvelopeError, ShareError               a submission is not what was committed
    |- LogError               the public log contradicts itself or us
    |- LedgerError            the member's own ledger
    |- LotError, OpeningError, TallyError      closing week
    |- ServiceError           HTTP: sizes, types, unknown things
    '- ReportError            what may not be published
"""

from __future__ import annotations

import re


class WindvaneError(Exception):
    """Something Windvane refused to do."""

    advice = "Read the message above; if it stays unclear, ask the coordinator of your federation."
    status = 400

    def __init__(self, detail: str = "") -> None:
        self.detail = detail
        super().__init__(detail or self.what())

    @classmethod
    def what(cls) -> str:
        """One sentence: what happened."""
        return " ".join((cls.__doc__ or "").split())

    def sentence(self) -> str:
        """What happened, with the detail where there is one."""
        return f"{self.what()} {self.detail}".strip() if self.detail else self.what()


def problem_type(error: type[WindvaneError]) -> str:
    """Stable problem type of RFC 9457: `urn:windvane:problem:` and the class name in kebab case."""
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", error.__name__.rstrip("_"))
    return f"urn:windvane:problem:{name.lower()}"


def all_errors() -> dict[str, type[WindvaneError]]:
    """Every class of the tree by its problem type; two classes never share one."""
    found: dict[str, type[WindvaneError]] = {}
    waiting: list[type[WindvaneError]] = [WindvaneError]
    while waiting:
        cls = waiting.pop()
        # Classes of other modules are refinements inside one program; they have no name on the wire.
        if cls.__module__ == __name__:
            found[problem_type(cls)] = cls
        waiting.extend(cls.__subclasses__())
    return found


# --- input -----------------------------------------------------------------------------------------------------------


class MalformedInput(WindvaneError):
    """The bytes are not in the form they claim."""

    advice = "Send the file again from where it was made; do not edit it by hand."


class MalformedEnvelope(MalformedInput):
    """The envelope has not the exact length and layout that the manifest fixes."""

    advice = "Run `windvane member submit` again: it sends the stored bytes."


class MalformedLeaf(MalformedInput):
    """A log entry is not canonical JSON of a known form."""

    advice = "Update windvane, then ask the coordinator which version wrote the entry."


class UnsupportedSource(WindvaneError):
    """No reader exists for this source, or it is refused by design."""

    advice = "Run `windvane member preview --help` to see the sources that can be read."


# --- waiting ---------------------------------------------------------------------------------------------------------


class NotReady(WindvaneError):
    """The step before this one has not happened yet."""

    advice = "Nothing is wrong: run the same command again later."
    status = 425


class WindowNotOpen(NotReady):
    """The submission window of this round has not opened yet."""

    advice = "Wait until the date of `submission.opens` in the manifest, then run the same command again."


# --- configuration ---------------------------------------------------------------------------------------------------


class ConfigurationError(WindvaneError):
    """A configuration file is missing, unreadable or holds an unknown field."""

    advice = "Correct the file named above; `windvane member init` writes a commented example."


class StateNotWritten(WindvaneError):
    """The disk did not take a file of the state folder or of the second place."""

    advice = "Free space or repair the disk, then run the same command again; nothing is lost or sent twice."


class PolicyMissing(ConfigurationError):
    """There is no readable policy, so nothing is accepted."""

    advice = "Write policy.toml, or run `init` of your role to get one with the defaults."


class KeyFileTooOpen(ConfigurationError):
    """A key file or its folder can be read by others."""

    advice = "Run chmod 700 on the folder and chmod 600 on the file, and consider the key known to others."


class StateExists(ConfigurationError):
    """The state folder is already set up."""

    advice = "Use another --state folder; existing keys and ledgers are never overwritten."


class WitnessRowLost(ConfigurationError):
    """This witness does not know any more what it signed last, so it signs nothing."""

    advice = (
        "Do not restore an old copy: it could sign a fork. Make a new witness and tell the coordinator and guardians."
    )


class UnsupportedPlatform(ConfigurationError):
    """This role needs file locks and fsync that this system does not give."""

    advice = "Run it on Linux or macOS; on Windows only collect and preview work."


class MissingExtra(ConfigurationError):
    """This command needs packages that are not installed."""

    advice = "Install the extra named above, for example: pip install 'windvane[server]'."


class InsecureAddress(ConfigurationError):
    """The coordinator's address is not https."""

    advice = "Use an https address; plain http is accepted on this machine (loopback) only."


# --- policy ----------------------------------------------------------------------------------------------------------


class PolicyRefusal(WindvaneError):
    """The manifest asks for more than this installation's policy allows."""

    advice = "Do not take part in this round, or have your privacy officer change policy.toml."
    status = 403


class PolicyLoosened(PolicyRefusal):
    """policy.toml accepts more than the policy that was adopted here, so nothing new is approved or drawn."""

    advice = "Undo the change, or run `windvane member policy adopt --i-am-the-privacy-officer` if it was meant."


class DemoManifest(PolicyRefusal):
    """The manifest is a demonstration and this policy does not take part in demonstrations."""

    advice = "Nothing to do: a demonstration has lower floors and is never a real round."


class RhoAbovePolicy(PolicyRefusal):
    """The rho of this round, with all rounds of overlapping events, is above the policy's limit."""


class LocalRhoAbovePolicy(PolicyRefusal):
    """The rho that two colluding guardians could reach (h x rho) is above the policy's limit."""


class LifetimeCapReached(PolicyRefusal):
    """One round of this manifest alone costs more than a person's lifetime cap."""


class FederationTooSmall(PolicyRefusal):
    """Fewer organisations or people than the policy or the manifest demands."""

    advice = "Wait until the federation has grown; nothing was sent."


class NoiseShareOutsidePolicy(PolicyRefusal):
    """The number of honest members whose noise must suffice (h) or the noise scale is outside the policy."""


class CohortTooSmall(PolicyRefusal):
    """A cohort is smaller than the policy or the manifest demands."""


class BoundAbovePolicy(PolicyRefusal):
    """A bound on one person's or one organisation's weight is looser than the policy allows."""


class SignalNotAllowed(PolicyRefusal):
    """The manifest asks for a signal or a kind of work that the policy does not give."""


class GuardianNotPinned(PolicyRefusal):
    """The manifest names a guardian whose identity key the policy does not list."""

    advice = "Check the guardian's key with the institution by another way before you add it to policy.toml."


class CoordinatorNotPinned(PolicyRefusal):
    """The manifest names another coordinator, or another log, than the policy."""

    advice = "Check the coordinator's key with your guardians before you change policy.toml."


class NeedsApproval(PolicyRefusal):
    """A person has to approve this round first."""

    advice = "Run `windvane member approve ROUND` and read what would leave."


class SoftwareTooOld(PolicyRefusal):
    """The manifest demands a newer version, or rules that this version does not have."""

    advice = "Update windvane; nothing is lost, the ledger stays as it is."


# --- manifest, roster, keys ------------------------------------------------------------------------------------------


class ManifestError(WindvaneError):
    """The manifest does not hold together."""

    advice = "Do not take part; send the message to the coordinator and to your guardians."


class UnknownManifest(ManifestError):
    """No manifest of this round is known."""

    advice = "Check the round's name; `windvane member status` lists the rounds."
    status = 404


class ManifestSignatureInvalid(ManifestError):
    """The manifest is not signed by the coordinator's pinned key."""

    advice = "Stop and ask your guardians: somebody may have replaced the manifest."


class ManifestNotLogged(ManifestError):
    """The manifest's hash is not in the log, or was logged too late."""

    advice = "Do not take part; ask the coordinator why the log does not show the agreement in time."


class ManifestChanged(ManifestError):
    """The manifest is not the one that was approved or logged first."""

    advice = "Stop and compare both with your guardians: a round has one manifest."


class CapacityExceeded(ManifestError):
    """The sums of this manifest could overflow the field."""


class RosterError(WindvaneError):
    """The roster does not hold together."""

    advice = "Do not take part; ask the coordinator and two guardians which roster they signed."


class RosterSignatureMissing(RosterError):
    """The roster lacks the coordinator's or two guardians' valid signatures."""


class RosterNotSuccessor(RosterError):
    """The roster does not follow the last one that was accepted."""


class UnknownMember(RosterError):
    """This member is not in the roster of the round."""

    advice = "Ask the coordinator whether your enrolment was approved before this round was opened."
    status = 403


class UnknownGuardian(RosterError):
    """The signer is not a guardian of this federation."""

    advice = "Check that this guardian's card was given to `windvane coordinator init`."
    status = 403


class AlreadyEnrolled(RosterError):
    """This key or this name is already enrolled."""

    advice = "Nothing to do if it is yours; otherwise choose the legal name of your organisation."
    status = 409


class KeyRefused(WindvaneError):
    """A public key is malformed, of low order or not canonical."""

    advice = "Make a new key; do not reuse the refused one."


class SignatureInvalid(WindvaneError):
    """A signature does not fit its content and key."""

    advice = "Send the original again; if it fails again, tell your guardians."
    status = 403


# --- envelope and shares ---------------------------------------------------------------------------------------------


class EnvelopeError(WindvaneError):
    """A submission is not what was committed."""

    advice = "Run `windvane member submit` again: it sends the stored bytes."


class BadMemberSignature(EnvelopeError):
    """The envelope is not signed by the member it names."""

    status = 403


class CommitMismatch(EnvelopeError):
    """The envelope's hash is not the one in the log."""

    status = 409


class NotCommitted(EnvelopeError):
    """An envelope came before its commitment was in the log."""

    status = 409


class DuplicateSubmission(EnvelopeError):
    """Another commitment of this member is already in the log of this round."""

    advice = "Nothing was changed. Run `windvane member status`: the round may be burned at this installation."
    status = 409


class RoundClosed(EnvelopeError):
    """The submission window of this round has closed."""

    advice = "Nothing can be added any more; your data stays where it is, and the next round opens next quarter."
    status = 410


class ShareError(WindvaneError):
    """A share is not what the envelope says."""

    advice = "The guardian reports it; the round's other guardians must agree before anything is opened."


class WrongGuardianKey(ShareError):
    """The envelope was sealed to another key than this guardian's key of the round."""


class ShareWillNotOpen(ShareError):
    """The sealed share does not open with this guardian's key and this manifest."""


class ShareHeaderMismatch(ShareError):
    """The opened share names another member, round, guardian or layout than its envelope."""


class FieldElementOutOfRange(ShareError):
    """A share holds a number that is not an element of the field."""


# --- log -------------------------------------------------------------------------------------------------------------


class LogError(WindvaneError):
    """The public log contradicts itself or what we know."""

    advice = "Stop; keep the files as evidence and send them to your guardians."


class ReceiptRefused(LogError):
    """The receipt does not prove that the log holds our entry."""


class InclusionRefused(LogError):
    """A proof does not show that the log holds this entry at this place."""

    advice = "Ask for the proof again; if it stays so, tell the guardians and witnesses of your federation."


class QuorumMissing(LogError):
    """Too few witnesses have cosigned the newest checkpoint of the log."""

    advice = "Run the same command again tomorrow; if it stays so, ask your federation which witnesses are silent."


class CheckpointTooOld(LogError):
    """The newest cosigned checkpoint of the log is older than your policy allows."""

    advice = "Check this machine's clock, then ask the coordinator why the log has stood still."


class InconsistentCheckpoint(LogError):
    """The log's checkpoint does not continue the one we saw before."""


class ForkDetected(InconsistentCheckpoint):
    """The log shows two different histories of the same length."""

    advice = "Keep both checkpoints: they prove it. Send them to every guardian, witness and member you know."


class LogRolledBack(LogError):
    """This log's database is older than a checkpoint that it has signed."""

    advice = "Restore the newest copy of the database; until then nothing can be served, or the log would fork."


class UnknownLog(LogError):
    """This witness does not watch a log of this name."""

    advice = "Pin the federation's document first: `windvane witness pin`."
    status = 404


class WitnessConflict(LogError):
    """The witness last signed a checkpoint of another size."""

    advice = "Send the proof from the size that it names."
    status = 409

    def __init__(self, detail: str = "", *, size: int = 0) -> None:
        super().__init__(detail)
        self.size = size


class LogIncomplete(LogError):
    """Entries are missing between the beginning of the log and its checkpoint."""


class EntryConflict(LogError):
    """Another entry for this step is already in the log."""

    advice = "Nothing was changed: the first entry counts. Compare it with your own files."
    status = 409


class ForgedCommitment(LogError):
    """The log holds a commitment in our name that we did not sign."""

    advice = "It burns nothing. Keep it as evidence and tell your guardians."


# --- the member's ledger ---------------------------------------------------------------------------------------------


class LedgerError(WindvaneError):
    """The ledger refuses this step."""

    advice = "Do not delete or copy the ledger; run `windvane member status`."


class LedgerLocked(LedgerError):
    """Another windvane process holds the ledger."""

    advice = "Wait for it to finish; one installation runs one agent."


class LedgerDamaged(LedgerError):
    """The ledger's integrity check or hash chain failed; it is open for reading only."""

    advice = "Do not restore an old copy over it; keep the file and ask for help."


class PersonKeyLost(LedgerError):
    """The key of the pseudonyms is another one than this ledger's people were charged under."""

    advice = "Put keys/k_org.key back; if it is gone for good, run `windvane member ledger rebuild --key-lost`."


class LedgerFormat(LedgerError):
    """The ledger was written by another version of windvane."""

    advice = "Use the version that wrote it, or a newer one."


class IllegalTransition(LedgerError):
    """The round is in a state that does not allow this step."""


class RoundBurned(LedgerError):
    """This round is burned for this member: nothing will be sent for it."""

    advice = "Wait for the next quarter. The round stays charged. Do not delete the ledger."


class NumbersGone(LedgerError):
    """The counts and noisy numbers of this round are deleted: they were shown once, or the round ended 45 days ago."""

    advice = "Nothing to do: they exist nowhere any more. The own directions in words are kept."


class RoundStopped(LedgerError):
    """This organisation has stopped the round itself: nothing will be drawn or sent for it."""

    advice = "Nothing to do. A stop is final for its round; the next round is a new decision."


class PassphraseMissing(ConfigurationError):
    """A key file is sealed with a passphrase, and none was given."""

    advice = (
        "Run the command on a terminal, or give systemd's credential windvane-passphrase, or name a file of yours in "
        "WINDVANE_PASSPHRASE_FILE."
    )


class PassphraseWrong(ConfigurationError):
    """A key file does not open with this passphrase."""

    advice = "Try again; if it stays so, restore the key file from your backup."


class ClockImplausible(LedgerError):
    """This machine's clock contradicts the log."""

    advice = "Correct the clock, then run the same command again."


# --- data on its way out ---------------------------------------------------------------------------------------------


class BoundBroken(WindvaneError):
    """A vector is outside the bounds that make it safe to release; nothing was released."""

    advice = "This is a fault of the software: report it, do not retry."
    status = 500


class PrivacyClaimBroken(WindvaneError):
    """What this installation draws does not keep what is promised about one person."""

    advice = "Take part in no round with this installation, and report the output as SECURITY.md says."
    status = 500


class InvalidOutcomes(WindvaneError):
    """The table of outcomes as a whole is not of the agreed form."""

    advice = "This is a fault of the software: report it, do not retry."
    status = 500


# --- closing week ----------------------------------------------------------------------------------------------------


class LotError(WindvaneError):
    """The drawing of the cohorts cannot be trusted."""

    advice = "Do not open the round; compare the log with the other guardians."


class LotBeforeClose(LotError):
    """The nonces may be revealed only after the closed set is in the log."""

    advice = "Nothing is wrong: wait for the round to close, then run the same command again."
    status = 425


class NonceMismatch(LotError):
    """A revealed nonce is not the one that was committed before the round."""


class LotMismatch(LotError):
    """The cohorts are not the ones that the nonces give."""


class MemberOmitted(LotError):
    """The set was closed without a member whose committed envelope this guardian holds."""

    advice = "Open nothing and tell the other guardians; `windvane coordinator abort` ends a round that stays so."
    status = 409


class OpeningError(WindvaneError):
    """The guardian refuses to open this round."""

    advice = "Nothing was opened; compare the set and the lot with the other guardians."


class AlreadyOpened(OpeningError):
    """This round was opened before, for another set of members."""

    advice = "A guardian opens a round once; the stored result for the first set stays valid."
    status = 409


class AppealRunning(OpeningError):
    """The round's key is still needed: the time for appeals is not over."""

    advice = "Run `windvane guardian destroy` again after that day."
    status = 425


class RoundKeyDestroyed(OpeningError):
    """This guardian has destroyed its key of this round."""

    advice = "Nothing of this round can be opened here any more; that is what the key was destroyed for."


class SetMismatch(OpeningError):
    """The set of envelopes is not the one that the log fixed when the round closed."""


class RoundNotOpened(OpeningError):
    """Too few members or too small cohorts: this round is not opened."""

    advice = "It stays charged and is not retried on the same data; the report says why."
    status = 409


class TallyError(WindvaneError):
    """The guardians' results do not give a sum."""

    advice = "Publish nothing; start a dispute among the guardians."
    status = 409


class ResultSignatureInvalid(TallyError):
    """A guardian's result is not signed by that guardian."""

    status = 403


class SpareShareMismatch(TallyError):
    """The third guardian's result contradicts the other two."""


class TallyOutOfRange(TallyError):
    """A sum lies outside what this many members can have sent."""


# --- services --------------------------------------------------------------------------------------------------------


class ServiceError(WindvaneError):
    """The service could not take this request."""

    advice = "Correct the request as the message says and send it again."


class BodyTooLarge(ServiceError):
    """The body is larger than anything this address accepts."""

    status = 413


class WrongContentType(ServiceError):
    """The body's content type is not the one this address accepts."""

    status = 415


class LengthRequired(ServiceError):
    """The body came without a Content-Length."""

    advice = "Send the body whole with a Content-Length; chunked bodies are not accepted."
    status = 411


class UnknownAddress(ServiceError):
    """Nothing is served at this address with this method."""

    advice = "Check the address; docs/protocol.md lists them all."
    status = 404


class CoordinatorUnreachable(ServiceError):
    """The coordinator did not answer."""

    advice = "Check the address and the network; everything is stored, run the same command again."
    status = 503


class RemoteProblem(ServiceError):
    """The coordinator refused with a problem that this version does not know."""

    advice = "Update windvane, then run the same command again; everything is stored."


class RoundEnded(ServiceError):
    """This round has ended, or has gone past this step."""

    advice = "Nothing was changed; the public log shows what was decided."
    status = 409


class InternalError(ServiceError):
    """The service failed; the request was not carried out."""

    advice = "Send it again later; what was stored before is unchanged."
    status = 500


class AccountsDisagree(WindvaneError):
    """A charge does not map again, or two accountants disagree about it."""

    advice = "Do not rely on this ledger's figures; send the findings to the member and to its guardians."
    status = 409


# --- report ----------------------------------------------------------------------------------------------------------


class ReportError(WindvaneError):
    """The report breaks one of its own rules and is not published."""

    advice = "Publish nothing; correct the cause named above and build the report again."
    status = 409


class ReportSignatureInvalid(ReportError):
    """The report's signature does not fit its content."""

    advice = "Do not quote it; fetch it again from the coordinator and compare the log."


class LintFailed(ReportError):
    """The built site holds something that a report of directions must not hold."""


class NotYetPublished(NotReady):
    """The publication date has not come."""

    advice = "Nothing is shown before the date in the manifest, to nobody."
