# SPDX-License-Identifier: Apache-2.0
"""The coordinator: one state folder, one inbox for every courier, and the operator's steps.

Rules kept here:
* everything it knows lies in its folder: key, federation, database, published site; a new object on the same folder
  goes on where the last one stopped;
* it holds no key that opens an envelope, and never asks for one;
* set-up happens once and never replaces a key;
* a database that is missing is never made anew by opening it: it would be a second, empty log.

    state/
      coordinator.key      identity key, 0600
      log.key              log identity: signs checkpoints, 0600
      checkpoint           the newest signed checkpoint, a second time: an older database refuses to serve
      federation.json      public: name, keys of the coordinator and the guardians, whether it is a demonstration
      coordinator.db       log, roster, envelopes, sums (schema.py)
      site/                the published report
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from windvane_privacy.couriers import Parcel
from windvane_privacy.errors import ConfigurationError, MalformedInput, NotReady, StateExists
from windvane_privacy.identity import SigningKey
from windvane_privacy.keyfiles import check_private, read_secret, require_platform, secure_folder, write_secret
from windvane_privacy.notes import Cosigner, parse_verifier_key
from windvane_privacy.passphrase import read_key, write_key
from windvane_privacy.quorum import usual_rule
from windvane_privacy.roster import RosterGuardian, is_name
from windvane_privacy.signed import FEDERATION_SCHEMA, Federation, LogPins, PinnedWitness, decode_federation, read_card
from windvane_privacy.sums import CohortSums
from windvane_server.agreed import Agreements
from windvane_server.checkpoints import AtOnce, Checkpoints
from windvane_server.desk import Clock, Desk
from windvane_server.entries import Entries
from windvane_server.inbox import Inbox
from windvane_server.plan_round import RoundPlan
from windvane_server.publishing import Publisher
from windvane_server.rounds import LOT_WAIT, Rounds
from windvane_server.store import DATABASE, Store, newest_level

KEY_FILE, LOG_KEY_FILE, FEDERATION_FILE, SITE = "coordinator.key", "log.key", "federation.json", "site"
CHECKPOINT_FILE = "checkpoint"
MAX_AGE_HOURS = 14 * 24
LEAST_GUARDIANS = 3


def utc_now() -> datetime:
    """This machine's time."""
    return datetime.now(UTC)


def init_coordinator(
    state: Path,
    *,
    name: str,
    guardians: Sequence[bytes],
    witnesses: Sequence[str],
    quorum: int | None = None,
    faulty: int | None = None,
    max_age_hours: int = MAX_AGE_HOURS,
    demo: bool = False,
    log_origin: str | None = None,
) -> Federation:
    """Make a coordinator's folder: its keys, the federation's document, an empty log.

    `guardians`: their cards (guardian.json), in the order of their indices. `witnesses`: their verifier keys, one line
    each. `quorum`, `faulty`: see `quorum.py`; 5 of 7 and 2 unless given, for another number the strictest that stands
    with as many silent witnesses as lying ones. `log_origin`: a name of the log that never changes; made from the
    federation's name unless given.

    Raises:
        StateExists: the folder is already set up.
        MalformedInput, KeyRefused, SignatureInvalid: a card or a name is not of the agreed form.
        ConfigurationError: fewer than three guardians, or two of one key or one group; no witnesses, or a quorum that
            two histories could both reach.
        UnsupportedPlatform: no file locks here.
    """
    require_platform()
    if not is_name(name):
        raise MalformedInput("The federation's name is 1 to 200 printable characters.")
    cards = [read_card(raw) for raw in guardians]
    if len(cards) < LEAST_GUARDIANS:
        raise ConfigurationError("A federation has at least three guardians.")
    if len({card.identity for card in cards}) != len(cards) or len({card.group for card in cards}) != len(cards):
        raise ConfigurationError("Two guardians have one key or belong to one group.")
    folder = secure_folder(state)
    if (folder / KEY_FILE).exists() or (folder / FEDERATION_FILE).exists():
        raise StateExists
    key = SigningKey.generate()
    origin = log_origin or f"windvane/{_plain(name)}/{key.key_id[:8]}"
    log_key = Cosigner.generate(origin)
    usual = usual_rule(len(witnesses))
    federation = Federation(
        schema=FEDERATION_SCHEMA,
        name=name,
        coordinator=key.public.hex(),
        log_origin=origin,
        log=LogPins(
            key=log_key.public.hex(),
            witnesses=tuple(PinnedWitness(who, public.hex()) for who, public in map(parse_verifier_key, witnesses)),
            quorum=usual[0] if quorum is None else quorum,
            faulty=usual[1] if faulty is None else faulty,
            max_age_hours=max_age_hours,
        ),
        guardians=tuple(
            RosterGuardian(index, card.name, card.identity, card.group) for index, card in enumerate(cards, 1)
        ),
        demo=demo,
    )
    decode_federation(federation.encode())
    write_key(folder / KEY_FILE, key.raw)
    write_key(folder / LOG_KEY_FILE, log_key.raw)
    write_secret(folder / FEDERATION_FILE, federation.encode())
    Store(folder / DATABASE).close()
    (folder / DATABASE).chmod(0o600)
    return federation


class Coordinator:
    """A set-up coordinator on its folder. `clock`: the time in UTC. `at_once`: witnesses that answer when asked."""

    def __init__(self, state: Path, clock: Clock = utc_now, *, at_once: Sequence[AtOnce] = ()) -> None:
        """Open the folder.

        Raises:
            ConfigurationError: it is not set up, or its database is missing, damaged or newer than this version.
            LogRolledBack: the database is older than a checkpoint that was signed here.
            KeyFileTooOpen: others can read the key or the database.
            UnsupportedPlatform: no file locks here.
        """
        require_platform()
        self.state = state
        key = SigningKey.from_raw(read_key(state / KEY_FILE))
        self.federation = decode_federation(read_secret(state / FEDERATION_FILE))
        if self.federation.coordinator != key.public.hex():
            raise ConfigurationError("The key and federation.json do not belong together.")
        check_private(state / DATABASE)
        self.store = Store(state / DATABASE)
        log_key = Cosigner.from_raw(self.federation.log_origin, read_key(state / LOG_KEY_FILE))
        if self.federation.log.key != log_key.public.hex():
            raise ConfigurationError("The key of the log and federation.json do not belong together.")
        policy, second = self.federation.log_policy, state / CHECKPOINT_FILE
        try:
            checkpoints = Checkpoints(self.store, log_key, policy, second, at_once)
        except BaseException:
            self.store.close()
            raise
        desk = Desk(self.store, Entries(key), checkpoints, self.federation, Agreements(), clock)
        self._rounds = Rounds(desk, key)
        self._publisher = Publisher(desk, key)
        self._inbox = Inbox(desk, self._after_nonce)

    @property
    def site(self) -> Path:
        """Folder of the published report."""
        return self.state / SITE

    def handle(self, parcel: Parcel) -> bytes:
        """The answer to a parcel, whichever courier brought it; see `inbox.py`.

        Raises:
            WindvaneError: the refusal; nothing was stored or changed.
        """
        return self._inbox.handle(parcel)

    def check_ready(self) -> None:
        """Return if requests can be answered.

        Raises:
            NotReady: the database is not at this version's level.
        """
        if self.store.level() != newest_level():
            raise NotReady("The database is being brought to this version.")

    def propose_roster(self, round_id: str) -> bytes:
        """See `Rounds.propose_roster`."""
        return self._rounds.propose_roster(round_id)

    def open_round(self, round_id: str, plan: RoundPlan) -> bytes:
        """See `Rounds.open_round`."""
        return self._rounds.open_round(round_id, plan)

    def close_round(self, round_id: str) -> str:
        """See `Rounds.close_round`."""
        return self._rounds.close_round(round_id)

    def fix_lot(self, round_id: str, wait: timedelta = LOT_WAIT) -> tuple[tuple[int, ...], ...]:
        """See `Rounds.fix_lot`."""
        return self._rounds.fix_lot(round_id, wait)

    def tally(self, round_id: str) -> tuple[CohortSums, bool]:
        """See `Rounds.tally`."""
        return self._rounds.tally(round_id)

    def abort(self, round_id: str, reason: str) -> None:
        """See `Rounds.abort`."""
        self._rounds.abort(round_id, reason)

    def publish(self, round_id: str, *, out: Path | None = None, breaks: Sequence[str] = ()) -> Path:
        """See `Publisher.publish`; into this folder's site unless `out` is given."""
        return self._publisher.publish(round_id, out or self.site, breaks=breaks)

    def close(self) -> None:
        """Give back the database."""
        self.store.close()

    def _after_nonce(self, round_id: str) -> None:
        # With every nonce in the log nothing is left to wait for, so that guardians need no operator to go on.
        try:
            self._rounds.fix_lot(round_id)
        except NotReady:
            pass


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.casefold()).strip("-")[:60] or "federation"
