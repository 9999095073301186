# SPDX-License-Identifier: Apache-2.0
"""The policy in force: policy.toml as the ledger noted it; a looser file waits until somebody says that it was meant.

Rules kept here:
* every adopted policy is an entry in the ledger by its hash, and lies beside policy.toml as it was adopted;
* a file that only tightens is adopted at the next start; one that loosens any field never is by itself;
* until then the policy adopted before decides, and no round is approved or drawn;
* a copy that is not the one the ledger noted is no policy: nothing is accepted until the file is adopted anew;
* a missing or unreadable policy.toml accepts nothing, whatever was adopted before.

    policy.adopted.toml    0600, the text that the ledger's last "policy" entry names
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from windvane_privacy.errors import PolicyLoosened, PolicyMissing
from windvane_privacy.keyfiles import replace_file
from windvane_privacy.ledger import Ledger
from windvane_privacy.policy import MAX_POLICY_BYTES, Policy, load_policy, read_policy
from windvane_privacy.policy_change import loosened

POLICY, ADOPTED = "policy.toml", "policy.adopted.toml"


@dataclass(frozen=True, slots=True)
class InForce:
    """The policy that decides. `refusal`: None, or why nothing new may be approved or drawn under it."""

    policy: Policy
    refusal: PolicyLoosened | None = None


def policy_in_force(folder: Path, ledger: Ledger, day: str) -> InForce:
    """The policy of a member's folder; a file that tightens is adopted on the way.

    Raises:
        PolicyMissing, ConfigurationError: policy.toml is not a policy.
        PolicyLoosened: it is another one than was adopted, and what was adopted is not there to compare.
    """
    policy, raw = load_policy(folder / POLICY), _bytes(folder / POLICY)
    known = ledger.notes("policy")
    if ledger.damage is not None:
        return InForce(policy)  # nothing can be written, approved or drawn
    if not known or known[-1][1] == _sha256(raw):
        _adopt(folder, ledger, raw, day)
        return InForce(policy)
    adopted = _adopted(folder, known[-1][1])
    if adopted is None:
        raise PolicyLoosened("The policy that was adopted before is not there to compare it with.")
    looser = loosened(adopted, policy)
    if looser:
        return InForce(adopted, PolicyLoosened(f"Loosened: {', '.join(looser)}."))
    _adopt(folder, ledger, raw, day)
    return InForce(policy)


def looser_than_adopted(folder: Path, ledger: Ledger, policy: Policy) -> tuple[str, ...] | None:
    """Fields in which a policy is looser than the adopted one; None where there is nothing to compare it with."""
    known = ledger.notes("policy")
    adopted = _adopted(folder, known[-1][1]) if known else None
    return None if adopted is None else loosened(adopted, policy)


def adopt(folder: Path, ledger: Ledger, raw: bytes, day: str, *, meant: bool) -> tuple[str, ...]:
    """Put a policy's text in force: the file, the ledger's entry, the copy. Returns the fields that it loosens.

    `meant`: the privacy officer says that loosening is meant; noted as an entry of its own.

    Raises:
        PolicyMissing, ConfigurationError: the text is no policy.
        PolicyLoosened: it loosens, or cannot be compared, and that was not said to be meant.
    """
    policy = read_policy(raw)
    looser = looser_than_adopted(folder, ledger, policy)
    if not meant and looser is None and ledger.notes("policy"):
        raise PolicyLoosened("The policy that was adopted before is not there to compare it with.")
    if looser and not meant:
        raise PolicyLoosened(f"Loosened: {', '.join(looser)}.")
    if looser:
        ledger.note("loosened", _sha256(raw), day)
    if _bytes(folder / POLICY) != raw:
        replace_file(folder / POLICY, raw)
    _adopt(folder, ledger, raw, day)
    return looser or ()


def carry_adopted(folder: Path, ledger: Ledger, day: str) -> None:
    """Tell a ledger that was made anew which policy was adopted here, so that a looser file is still noticed."""
    if (folder / ADOPTED).is_file():
        ledger.note_policy(_sha256(_bytes(folder / ADOPTED)), day)


def _adopt(folder: Path, ledger: Ledger, raw: bytes, day: str) -> None:
    # The ledger first: a crash before the copy leaves a copy that is not the noted one, which loosens nothing.
    ledger.note_policy(_sha256(raw), day)
    if not (folder / ADOPTED).is_file() or _bytes(folder / ADOPTED) != raw:
        replace_file(folder / ADOPTED, raw)


def _adopted(folder: Path, noted: str) -> Policy | None:
    path = folder / ADOPTED
    if not path.is_file() or _sha256(raw := _bytes(path)) != noted:
        return None
    return read_policy(raw)


def _bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_POLICY_BYTES + 1)
    except OSError as error:
        raise PolicyMissing from error


def _sha256(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()
