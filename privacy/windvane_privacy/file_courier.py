# SPDX-License-Identifier: Apache-2.0
"""The courier without a network: answers come from a file of the coordinator, what is to go there is collected.

Rules kept here:
* no socket, no path, no clock: a file's answers come in, an outbox goes out, a person carries both;
* an answer out of a file is as little trusted as one out of a network: it answers the parcel whose hash it names, and
  the caller verifies it the same way; no file can name an error of this machine (ledger, configuration);
* a question that no file answers, and a parcel that waits for its answer, are `NotReady`, never an empty answer;
* the same parcel again is the same record in the outbox; a parcel that was answered does not travel again.
"""

from __future__ import annotations

from windvane_privacy.couriers import ROUTES, Parcel
from windvane_privacy.errors import (
    ConfigurationError,
    CoordinatorUnreachable,
    LedgerError,
    NotReady,
    RemoteProblem,
    WindvaneError,
    all_errors,
)
from windvane_privacy.parcel_file import Answer, Answers, parcel_id

UNREAD = frozenset({"endorse", "result"})
"""Kinds whose answer tells the sender nothing that it needs, so that the next parcel may travel in the same file. Where
such a parcel is refused, the coordinator takes nothing more of its round from that file."""
MAX_DETAIL = 300
CARRY = "Carry the file to the coordinator, and bring back the file with its answers."
ASK = "No file answers this question: ask the coordinator for a newer bundle of this round."


class FileCourier:
    """Answers from `answers`, the records of a bundle or of an answer file; what must travel is in `outbox`."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._outbox: dict[bytes, Parcel] = {}

    @property
    def outbox(self) -> tuple[Parcel, ...]:
        """What is to be carried to the coordinator, in the order in which it was sent."""
        return tuple(self._outbox.values())

    def exchange(self, parcel: Parcel) -> bytes:
        """The answer's bytes.

        Raises:
            WindvaneError: the refusal that the file holds; `RemoteProblem` for one that is unknown here.
            NotReady: no answer yet; the parcel is in the outbox, unless it only asks.
        """
        name = parcel_id(parcel)
        known = self._answers.get(name)
        if known is not None and known.problem is None:
            return known.body
        asks = ROUTES[parcel.kind].method == "GET"
        if known is not None:
            refused = refusal(known)
            if refused.status == NotReady.status and not asks:
                self._outbox[name] = parcel  # "not yet" is no answer for good: it travels once more
            raise refused
        if asks:
            raise NotReady(ASK)
        self._outbox[name] = parcel
        if parcel.kind in UNREAD:
            return b""
        raise NotReady(CARRY)


def refusal(answer: Answer) -> WindvaneError:
    """The error that a refused answer stands for, as the exchange over https would raise it."""
    named = all_errors().get(answer.problem or "")
    if named is None or issubclass(named, (LedgerError, ConfigurationError, CoordinatorUnreachable)):
        return RemoteProblem(plain(answer.detail))
    return named(plain(answer.detail))


def plain(text: str) -> str:
    """Foreign text goes to a terminal: printable characters only, and not without end."""
    return "".join(c for c in text if c.isprintable() and c not in "[]\\")[:MAX_DETAIL].strip()
