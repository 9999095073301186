# SPDX-License-Identifier: Apache-2.0
"""What the log says about one round and one member: pure questions to a verified scan.

Rules kept here:
* only the coordinator's signed entries accept, close or abort; what comes after the first `round-closed` is too late;
* the time of the log's witnesses opens a window; this machine's clock can only refuse.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

from windvane_privacy import canonical
from windvane_privacy.errors import ClockImplausible, MalformedInput, RoundClosed, WindowNotOpen
from windvane_privacy.leaf import is_aborted, is_round
from windvane_privacy.log import Head, Leaf, Scan, first_of, signed_by
from windvane_privacy.manifest import Manifest, parse_time

CLOCK_BEHIND = timedelta(hours=24)
"""How far this machine's clock may be behind the log's. How far ahead, the federation's own document says: a checkpoint
is then too old. Witnesses sign anew while the log stands still, so a quiet log has a fresh checkpoint."""


def round_names(answer: bytes) -> list[str]:
    """Names of the rounds that have a manifest, from the answer to a `rounds` parcel. An offer only: nothing is signed.

    Raises:
        MalformedInput: not of the agreed form.
    """
    value = canonical.decode(answer)
    rounds = value.get("rounds") if isinstance(value, dict) else None
    if not isinstance(rounds, list) or not all(isinstance(one, dict) for one in rounds):
        raise MalformedInput
    return [one["round"] for one in rounds if is_round(one.get("round")) and one.get("manifest") is not None]


def accepted_leaf(leaves: Sequence[Leaf], round_id: str, member: int, coordinator: bytes) -> Leaf | None:
    """The coordinator's `accepted` entry for this member, if it came before the closing."""
    for leaf in leaves:
        if leaf.type == "round-closed" and leaf.round == round_id and signed_by(leaf, coordinator):
            return None
        ours = leaf.type == "accepted" and leaf.round == round_id and leaf.fields["member"] == member
        if ours and signed_by(leaf, coordinator):
            return leaf
    return None


def is_closed(leaves: Sequence[Leaf], round_id: str, coordinator: bytes) -> bool:
    """Whether the accepted set is fixed."""
    return first_of(leaves, "round-closed", round_id, public=coordinator) is not None


def check_clock(head: Head, now: datetime) -> None:
    """Refuse a clock that contradicts the log's witnesses.

    Raises:
        ClockImplausible: more than a day earlier.
    """
    if now < datetime.fromtimestamp(head.time, UTC) - CLOCK_BEHIND:
        raise ClockImplausible


def check_window(manifest: Manifest, scan: Scan, now: datetime, coordinator: bytes) -> None:
    """Refuse a draw outside the submission window.

    Raises:
        RoundClosed: it is closed or stopped in the log, or the last moment for a commitment has passed.
        WindowNotOpen: by the log's time, or by this clock.
    """
    leaves, round_id = scan.leaves, manifest.round
    opens, last = parse_time(manifest.submission.opens), parse_time(manifest.submission.commit_by)
    if now > last or is_closed(leaves, round_id, coordinator) or is_aborted(leaves, round_id, coordinator):
        raise RoundClosed
    if date.fromisoformat(scan.head.day) < opens.date() or now < opens:
        raise WindowNotOpen(f"It opens at {manifest.submission.opens}.")
