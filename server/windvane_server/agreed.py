# SPDX-License-Identifier: Apache-2.0
"""What the database says about a round: its state, roster, agreement and lot.

Rules kept here:
* only reading; an opened round's agreement never changes, so it is kept once read;
* the cohorts are recomputed from the log each time, never stored beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, select

from windvane_privacy import canonical, lot
from windvane_privacy.errors import LotBeforeClose, NotReady, RoundNotOpened, UnknownGuardian, UnknownManifest
from windvane_privacy.identity import KEY_ED25519, key_id
from windvane_privacy.manifest import Manifest
from windvane_privacy.manifest import decode as decode_manifest
from windvane_privacy.roster import Endorsement, RosterGuardian, SignedRoster
from windvane_privacy.signed import Federation
from windvane_server.entries import Entries, slot
from windvane_server.schema import endorsements, envelopes, rosters, rounds

ENDED = frozenset({"not_opened", "aborted"})
AFTER_CLOSE = frozenset({"closed", "lot", "tallied", "disputed", "published"})


@dataclass(frozen=True, slots=True)
class Agreed:
    """An opened round as the inbox needs it; none of it ever changes. `keys`: member number to identity key."""

    manifest: Manifest
    sha256: str
    keys: Mapping[int, bytes]


class Agreements:
    """Opened rounds by name, each read once."""

    def __init__(self) -> None:
        self._known: dict[str, Agreed] = {}

    def of(self, connection: Connection, round_id: str) -> Agreed:
        """The agreement of an opened round.

        Raises:
            UnknownManifest: no such round, or it was not opened.
        """
        known = self._known.get(round_id)
        if known is None:
            raw = connection.execute(select(rounds.c.manifest).where(rounds.c.round == round_id)).scalar()
            if raw is None:
                raise UnknownManifest
            manifest = decode_manifest(canonical.encode(canonical.decode(bytes(raw))["manifest"]))
            members = signed_roster(connection, round_id).roster.active
            known = Agreed(manifest, manifest.sha256, {m.number: bytes.fromhex(m.key) for m in members})
            self._known[round_id] = known
        return known


def round_state(connection: Connection, round_id: str) -> str:
    """Where a round stands.

    Raises:
        UnknownManifest: no round of this name.
    """
    state = connection.execute(select(rounds.c.state).where(rounds.c.round == round_id)).scalar()
    if state is None:
        raise UnknownManifest
    return str(state)


def signed_roster(connection: Connection, round_id: str) -> SignedRoster:
    """The roster of a round with every signature so far: the coordinator's, then guardians' by index.

    Raises:
        UnknownManifest: no roster was proposed for a round of this name.
    """
    raw = connection.execute(select(rosters.c.raw).where(rosters.c.round == round_id)).scalar()
    if raw is None:
        raise UnknownManifest
    proposed = SignedRoster.decode(bytes(raw))
    rows = connection.execute(
        select(endorsements.c.key, endorsements.c.sig)
        .where(endorsements.c.sha256 == proposed.roster.sha256)
        .order_by(endorsements.c.guardian)
    ).all()
    more = tuple(Endorsement(proposed.roster.sha256, row.key, row.sig).signature for row in rows)
    return SignedRoster(proposed.roster, (*proposed.signatures, *more))


def drawn_cohorts(
    connection: Connection, entries: Entries, manifest: Manifest
) -> tuple[str, tuple[tuple[int, ...], ...]]:
    """The closed set's root and the cohorts that the round's lot gives.

    Raises:
        NotReady: the lot is not drawn yet.
    """
    entry = entries.find(connection, slot("lot", manifest.round))
    if entry is None:
        raise NotReady("The lot is not drawn yet.")
    fields = entry.leaf.fields
    nonces = [None if nonce is None else bytes.fromhex(nonce) for nonce in fields["nonces"]]
    accepted = (
        connection.execute(
            select(envelopes.c.member).where(envelopes.c.round == manifest.round).order_by(envelopes.c.member)
        )
        .scalars()
        .all()
    )
    seed = lot.lot_seed(manifest.sha256, fields["set_root"], nonces)
    return fields["set_root"], lot.cohorts(accepted, seed, manifest.cohorts.G)


def check_closed(connection: Connection, round_id: str) -> None:
    """Return if the accepted set of the round is fixed.

    Raises:
        RoundNotOpened: the round ended without an opening.
        LotBeforeClose: it is not closed yet.
    """
    state = round_state(connection, round_id)
    if state in ENDED:
        raise RoundNotOpened
    if state not in AFTER_CLOSE:
        raise LotBeforeClose


def guardian_of(federation: Federation, index: int) -> RosterGuardian:
    """The guardian with this index.

    Raises:
        UnknownGuardian: the federation has none.
    """
    found = next((g for g in federation.guardians if g.index == index), None)
    if found is None:
        raise UnknownGuardian
    return found


def guardian_by_key(federation: Federation, name: str) -> RosterGuardian:
    """The guardian whose identity key has this id.

    Raises:
        UnknownGuardian: the federation has none.
    """
    for guardian in federation.guardians:
        if key_id(KEY_ED25519, bytes.fromhex(guardian.identity)) == name:
            return guardian
    raise UnknownGuardian
