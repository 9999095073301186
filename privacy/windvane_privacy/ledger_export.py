# SPDX-License-Identifier: Apache-2.0
"""The ledger's extract for reviewers: `ledger.jsonl`, one line for each round that was charged.

Rules kept here:
* a line is canonical JSON and holds what a round cost and nothing else: no person, no count, no noisy number, no state;
* every entry of the ledger has its line, published or not, in the order of the charges;
* what the ledger does not know (a draw that it lost) is null, never left out and never guessed;
* a reader refuses a line with another field, another type or another order, as `MalformedInput`.

What each field means: docs/reviewers.md.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction

import msgspec

from windvane_privacy import canonical
from windvane_privacy.errors import MalformedInput
from windvane_privacy.leaf import is_hash, is_round, read_leaf
from windvane_privacy.ledger_schema import GENESIS, RoundEntry
from windvane_privacy.manifest import Manifest, parse_time

SCHEMA = "windvane/ledger-entry/v1"
MAX_LINE_BYTES = 16 * 1024
MAX_LINES = 10_000
_SCALE = re.compile(r"[0-9]{1,9}\.[0-9]{1,20}")
_LARGEST = 2**53
_MOST = 10**6
"""Far above any Q, s or h, and small enough that OpenDP's map of it is a number."""


class Spend(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One charged round. `q`: votes of a signal, null where the manifest is not known here; `Q`: their sum. `member`:
    our number in the roster. `measurement`: OpenDP's own JSON of the draw; null together with `member` where the log
    proves a draw that the ledger lost, which is charged to everyone."""

    schema: str
    number: int
    round: str
    member: int | None
    manifest: str
    rho_num: int
    rho_den: int
    q: tuple[int, ...] | None
    Q: int
    s: int
    h: int
    s_i: str
    events_from: str
    events_to: str
    everyone: bool
    measurement: str | None
    versions: str
    commitment: str | None
    previous: str
    entry: str

    @property
    def rho(self) -> Fraction:
        """The charge, exact."""
        return Fraction(self.rho_num, self.rho_den)


def spends(entries: Sequence[RoundEntry], manifests: Mapping[str, Manifest]) -> tuple[Spend, ...]:
    """The spends of a ledger's entries, in order. `manifests` by their SHA-256, as far as they are known here."""
    found, previous = [], GENESIS
    for entry in entries:
        known = manifests.get(entry.manifest_sha256)
        leaf = None if entry.commitment_leaf is None else read_leaf(entry.commitment_leaf)
        found.append(
            Spend(
                schema=SCHEMA,
                number=entry.number,
                round=entry.round_id,
                member=None if leaf is None else leaf.fields["member"],
                manifest=entry.manifest_sha256,
                rho_num=entry.rho.numerator,
                rho_den=entry.rho.denominator,
                q=None if known is None else known.bounds.q,
                Q=entry.q,
                s=entry.s,
                h=entry.h,
                s_i=entry.s_i,
                events_from=entry.events_from,
                events_to=entry.events_to,
                everyone=entry.everyone,
                measurement=entry.opendp_json,
                versions=entry.versions,
                commitment=entry.commit_hash,
                previous=previous,
                entry=entry.entry_hash,
            )
        )
        previous = entry.entry_hash
    return tuple(found)


def encode_spends(found: Sequence[Spend]) -> bytes:
    """`ledger.jsonl`."""
    return b"".join(canonical.encode(msgspec.to_builtins(spend)) + b"\n" for spend in found)


def decode_spends(raw: bytes) -> tuple[Spend, ...]:
    """The spends of a `ledger.jsonl`, each sound in itself; what they say is not checked here.

    Raises:
        MalformedInput: with the line that is not of the agreed form.
    """
    lines = raw.split(b"\n")
    if lines.pop() != b"" or len(lines) > MAX_LINES:
        raise MalformedInput("ledger.jsonl does not end with a line's end, or has too many lines")
    found = []
    for number, line in enumerate(lines, start=1):
        try:
            spend = msgspec.convert(canonical.decode(line, max_bytes=MAX_LINE_BYTES), Spend)
        except (msgspec.ValidationError, MalformedInput):
            raise MalformedInput(f"line {number} is not canonical JSON of the agreed fields") from None
        if not _sound(spend):
            raise MalformedInput(f"line {number} holds a value that no ledger writes")
        found.append(spend)
    return tuple(found)


def _sound(x: Spend) -> bool:
    numbers = (x.number, x.rho_num, x.rho_den, *(x.q or ()))
    try:
        begins, ends = parse_time(x.events_from), parse_time(x.events_to)
    except MalformedInput:
        return False
    return (
        x.schema == SCHEMA
        and is_round(x.round)
        and all(0 < number < _LARGEST for number in numbers)
        and all(0 < number <= _MOST for number in (x.Q, x.s, x.h))
        and math.gcd(x.rho_num, x.rho_den) == 1
        and (x.member is None or x.member > 0)
        and all(is_hash(one) for one in (x.manifest, x.previous, x.entry))
        and (x.commitment is None or is_hash(x.commitment))
        and _SCALE.fullmatch(x.s_i) is not None
        and begins < ends
        and (x.measurement is None) == x.everyone
    )
