# SPDX-License-Identifier: Apache-2.0
"""A ledger that is gone or damaged, made anew from the public log; and a key of the pseudonyms that is gone for good.

Rules kept here:
* every commitment of ours in the log becomes a charged, burned round, and its charge falls on everybody: nobody can
  know any more whom those draws were about;
* the log is read and checked as before every step; it must continue the checkpoint in the second place;
* a ledger that is whole is never replaced; a damaged one is set aside and not deleted;
* the new ledger appears whole or not at all;
* with a new key of the pseudonyms the open collection is deleted: one person must not stand in it under two names.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from windvane_client.ids import load_or_make_k_org
from windvane_client.in_force import carry_adopted
from windvane_client.lost_draws import lost_draws
from windvane_client.person_key import note_lost_key
from windvane_client.round_log import check_clock
from windvane_client.state import MemberState, machine_id
from windvane_privacy import log
from windvane_privacy.couriers import Courier, Parcel
from windvane_privacy.errors import LedgerDamaged, StateExists
from windvane_privacy.keyfiles import sync_folder
from windvane_privacy.ledger import Ledger
from windvane_privacy.submission import software_versions

LEDGER = "ledger"


def rebuild_ledger(state: MemberState, courier: Courier, clock: Callable[[], datetime]) -> tuple[str, ...]:
    """Make the ledger anew; the names of the rounds that are burned and charged to everybody in it.

    Raises:
        StateExists: there is a whole ledger.
        LedgerLocked: another process has it.
        LogError, ManifestError: the log or an agreement does not hold together; nothing was changed.
        CoordinatorUnreachable: no answer; nothing was changed.
    """
    refuse_whole(state)
    policy, key, now = state.log_policy(state.policy), state.key, clock().astimezone(UTC)
    coordinator = bytes.fromhex(state.policy.coordinator)
    scan = log.scan(courier.exchange(Parcel("leaves")), policy, now=int(now.timestamp()))
    kept = state.second_head()
    if kept is not None:
        scan.check_continues(log.read_head(kept, policy))
    check_clock(scan.head, now)
    day = now.date().isoformat()
    lost = list(lost_draws(scan, courier, key, coordinator, lambda _round: False))
    draft = state.folder / f".{LEDGER}.{secrets.token_hex(8)}"
    try:
        Ledger.create(draft, key_id=key.key_id, machine_id=machine_id())
        with Ledger.open(draft, machine_id=machine_id()) as ledger:
            for one in lost:
                ledger.burn_undrawn(one.manifest, one.commit_hash, [], versions=software_versions(), day=day)
            ledger.remember_head(scan.head.raw)
            carry_adopted(state.folder, ledger, day)
        sync_folder(draft)
        _set_aside(state.folder)
        draft.rename(state.folder / LEDGER)
        sync_folder(state.folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return tuple(one.manifest.round for one in lost)


def replace_person_key(state: MemberState, day: str) -> None:
    """Go on under the k_org that lies in the folder, or a new one: everybody counts as charged for every round so far.

    Raises:
        LedgerLocked, LedgerDamaged: the ledger cannot be used.
    """
    with state.ledger() as ledger:
        if ledger.damage is not None:
            raise LedgerDamaged(ledger.damage)
        for path in state.collection.parent.glob(f"{state.collection.name}*"):
            path.unlink(missing_ok=True)
        k_org = load_or_make_k_org(state.folder / "keys" / "k_org.key")
        note_lost_key(ledger, k_org, day)


def refuse_whole(state: MemberState) -> None:
    """Raise StateExists where there is a whole ledger: that one is never made anew."""
    try:
        with state.ledger() as ledger:
            damage = ledger.damage
    except LedgerDamaged:
        return
    if damage is None:
        raise StateExists("The ledger is whole; it is never made anew.")


def _set_aside(folder: Path) -> None:
    """Keep what is left of the old ledger beside the new one."""
    old = folder / LEDGER
    if old.exists():
        number = 1 + sum(1 for _ in folder.glob(f"{LEDGER}.damaged-*"))
        old.rename(folder / f"{LEDGER}.damaged-{number}")
