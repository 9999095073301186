# SPDX-License-Identifier: Apache-2.0
"""Who could learn and forge what, alone and together: the one table that pages, previews and documents show.

Rules kept here:
* every coalition that the protocol speaks of stands here once, from the weakest to the strongest;
* what it learns about one member is said for the worst case, with the guarantee of docs/mechanism.md that then holds;
* encryption is never the last line: the last row is what is left when all of it has failed.

Source: docs/mechanism.md section 5 (guarantees), docs/protocol.md (life of a round); the tests behind each row are in
docs/threats.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Guarantee(StrEnum):
    """Which epsilon holds for one person in a member's data (docs/mechanism.md section 5)."""

    A = "a"
    """Reader of the sums of a whole cohort."""
    B = "b"
    """Reader of the sum of the honest members that are left of a cohort."""
    C = "c"
    """Reader of one member's own noised vector."""


@dataclass(frozen=True, slots=True)
class Coalition:
    """One row. `member`: what it learns about one member; `sums`: about sums; `forge`: what it can forge or stop.

    `guarantee`: what bounds the loss of one person then.
    """

    who: str
    member: str
    sums: str
    forge: str
    guarantee: Guarantee


_SAME = "nothing more"
_NOISED = "its noised vector of each round whose round keys still exist"

COALITIONS: tuple[Coalition, ...] = (
    Coalition(
        "a reader of the report, the site and the log",
        "that it takes part, its name and size band, the day it committed and was accepted, its cohort; after closing "
        "its sealed envelope",
        "directions in words; a hash that commits to the sums",
        "nothing",
        Guarantee.A,
    ),
    Coalition(
        "somebody on the network",
        "network addresses, times, a constant length",
        "nothing, while TLS holds: guardians' results travel in it",
        "can delay",
        Guarantee.A,
    ),
    Coalition(
        "another member",
        "nothing",
        "directions in words",
        "its own vector: any numbers, because there are no range proofs",
        Guarantee.A,
    ),
    Coalition(
        "the coordinator alone",
        "who sent what when, from which address; envelopes that it cannot open",
        "the noisy sums of the cohorts",
        "can drop and delay, both visible in the log; no submission, no roster alone",
        Guarantee.A,
    ),
    Coalition(
        "one guardian alone",
        "one uniformly random vector",
        "its share of each sum, random as well",
        "with three results nothing unnoticed, with only two any sum; can refuse",
        Guarantee.A,
    ),
    Coalition(
        "the coordinator, one guardian and fewer witnesses than the quorum leaves over",
        _SAME,
        "the noisy sums of the cohorts",
        _SAME,
        Guarantee.A,
    ),
    Coalition(
        "those, and all but a few members of a cohort",
        "the sum of the few that are left; of one that is left alone, its noised vector",
        "the same",
        "their own inputs",
        Guarantee.B,
    ),
    Coalition(
        "the coordinator, one guardian and so many witnesses that two histories both look right",
        "two guardians may open two sets that differ in one member: its noised vector",
        "all",
        "can show two histories, so that a member restored from a backup reveals a second draw",
        Guarantee.C,
    ),
    Coalition(
        "any two guardians",
        _NOISED,
        "all",
        "any sum, unnoticed; they also know the lot early",
        Guarantee.C,
    ),
    Coalition("all three guardians", _NOISED, "all", "any sum, unnoticed", Guarantee.C),
    Coalition(
        "somebody who records today and has a quantum computer later",
        "nothing, while one of ML-KEM-768 and X25519 stands",
        "nothing",
        "could sign as anybody with an Ed25519 key from then on; what is under an ML-DSA cosignature stays as it is",
        Guarantee.A,
    ),
    Coalition(
        "everybody, if all encryption failed",
        "its noised vector of every round",
        "all",
        "nothing by itself",
        Guarantee.C,
    ),
)
"""From what everybody may read to what is left when every lock is broken."""

DEFENCE_IN_DEPTH = (
    "Encryption is defence in depth. What protects each person even if it fails is the noise that your own machine "
    "adds before anything is sealed."
)
HONEST_SENTENCE = (
    "Two of the three named guardians would have to break their word, and even then they see numbers with noise."
)
"""What may be said instead of "nobody can see your numbers"."""
