# SPDX-License-Identifier: Apache-2.0
"""What a round is made of before it is opened: the next roster, the guardians' keys, the federation's past.

Rules kept here:
* a roster lists everybody enrolled, each by its own signed card, and follows the newest roster;
* a guardian enters a manifest only by its own logged entry;
* what earlier rounds did is read from the database, never typed.
"""

from __future__ import annotations

import importlib.metadata

import msgspec
from sqlalchemy import Connection, select

from windvane_privacy import canonical
from windvane_privacy.errors import NotReady
from windvane_privacy.manifest import GuardianEntry, Manifest, RosterReference
from windvane_privacy.roster import GUARDIANS_NEEDED, SCHEMA, Roster, RosterMember, read_enrolment
from windvane_privacy.rules import current_rules
from windvane_privacy.signed import Federation
from windvane_server.agreed import signed_roster
from windvane_server.entries import Entries, slot
from windvane_server.plan_round import Standing
from windvane_server.schema import members, reports, rosters, rounds, sums


def enrolled(connection: Connection) -> tuple[RosterMember, ...]:
    """Everybody enrolled, by number."""
    listed = []
    for row in connection.execute(select(members).order_by(members.c.number)):
        card = read_enrolment(bytes(row.card))
        listed.append(
            RosterMember(row.number, row.name, row.key, card.key_id, "active", row.since, card.band, card.ties)
        )
    return tuple(listed)


def next_roster(connection: Connection, federation: Federation) -> Roster:
    """The roster after the newest one."""
    last = connection.execute(select(rosters).order_by(rosters.c.version.desc()).limit(1)).one_or_none()
    return Roster(
        schema=SCHEMA,
        version=1 if last is None else last.version + 1,
        previous=None if last is None else last.sha256,
        federation=federation.name,
        coordinator=federation.coordinator,
        log_origin=federation.log_origin,
        members=enrolled(connection),
        guardians=federation.guardians,
    )


def bare_guardians(federation: Federation) -> tuple[GuardianEntry, ...]:
    """The guardians without keys of a round: enough for a plan, never for a manifest."""
    return tuple(GuardianEntry(g.index, g.name, g.identity, "", "", "", "") for g in federation.guardians)


def ready_guardians(
    connection: Connection, log: Entries, federation: Federation, round_id: str
) -> tuple[GuardianEntry, ...]:
    """The guardians with their keys of the round.

    Raises:
        NotReady: a guardian's key is missing, or two guardians' signatures below the roster.
    """
    entries, missing = [], []
    for guardian in federation.guardians:
        entry = log.find(connection, slot("guardian-ready", round_id, guardian.index))
        if entry is None:
            missing.append(guardian.name)
            continue
        fields = entry.leaf.fields
        entries.append(
            GuardianEntry(
                guardian.index,
                guardian.name,
                guardian.identity,
                fields["round_key"],
                fields["round_key_id"],
                fields["nonce_commitment"],
                entry.hash,
            )
        )
    if missing:
        raise NotReady(f"The roster is proposed. Not ready yet: {', '.join(missing)}.")
    if len(signed_roster(connection, round_id).signatures) - 1 < GUARDIANS_NEEDED:
        raise NotReady("Fewer than two guardians have signed the roster.")
    return tuple(entries)


def standing(
    connection: Connection,
    federation: Federation,
    round_id: str,
    roster: Roster,
    guardians: tuple[GuardianEntry, ...],
) -> Standing:
    """What the manifest of this round takes over."""
    full = (
        connection.execute(
            select(rounds.c.round)
            .where(rounds.c.state == "published", rounds.c.round.in_(select(sums.c.round)))
            .order_by(rounds.c.place)
        )
        .scalars()
        .all()
    )
    last_report = connection.execute(
        select(reports.c.report)
        .join(rounds, rounds.c.round == reports.c.round)
        .order_by(rounds.c.place.desc())
        .limit(1)
    ).scalar()
    return Standing(
        round_id=round_id,
        demo=federation.demo,
        log_origin=federation.log_origin,
        coordinator=federation.coordinator,
        roster=RosterReference(roster.sha256, roster.version, len(roster.active), roster.people),
        guardians=guardians,
        t=len(guardians) // 2 + 1,
        rules=current_rules(),
        min_software=importlib.metadata.version("windvane"),
        rounds_so_far=len(full),
        last_full_round=full[-1] if full else None,
        previous_report=last_report,
    )


def read_planned(raw: bytes) -> Manifest:
    """The plan of a round that was too small to be opened. It is not sound, so it is not checked as a manifest."""
    return msgspec.convert(canonical.decode(raw), Manifest)
