# SPDX-License-Identifier: Apache-2.0
"""The key of the pseudonyms, and who came after it or the ledger was lost: fail closed, with one documented way out.

Rules kept here:
* the ledger notes which k_org its people were charged under, as a keyed hash; under another key nothing is drawn, since
  everybody would look new;
* a key that is gone for good is replaced once, by name: every round so far then counts for everybody;
* persons_since.csv (staff id and first day, attested by the personnel office) is the only thing that makes somebody new
  again, and it is read strictly: one bad line refuses the file;
* staff ids leave this module as pseudonyms only.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from pathlib import Path

from windvane_client.people import MAX_IDENTITY_BYTES, staff_id_text
from windvane_privacy.errors import ConfigurationError, PersonKeyLost
from windvane_privacy.leaf import is_day
from windvane_privacy.ledger import Ledger

SINCE = "persons_since.csv"
MAX_SINCE_BYTES = 1 << 24
NOTE = "person_key"
_LABEL = b"windvane/1/person-key\0"


def key_check(k_org: bytes) -> str:
    """What the ledger notes of a key: 64 hex digits that tell whether it is the same, and nothing else."""
    return hmac.new(k_org, _LABEL, hashlib.sha256).hexdigest()


def check_person_key(ledger: Ledger, k_org: bytes, day: str) -> None:
    """Refuse another key than the one people were charged under; the first one is noted.

    Raises:
        PersonKeyLost: it is another one.
    """
    known, check = ledger.notes(NOTE), key_check(k_org)
    if not known:
        ledger.note(NOTE, check, day)
    elif known[-1][1] != check:
        raise PersonKeyLost


def note_lost_key(ledger: Ledger, k_org: bytes, day: str) -> None:
    """The old key is gone for good: from here on every round up to `day` counts for everybody. Again is harmless."""
    known, check = ledger.notes(NOTE), key_check(k_org)
    if known and known[-1][1] == check:
        return
    if not known:
        # The old key was never noted here: a mark stands for it, so that the new one counts as a second.
        ledger.note(NOTE, "0" * 64, day)
    ledger.note(NOTE, check, day)


def attested_since(folder: Path, pseudonym: Callable[[str], bytes]) -> dict[bytes, str]:
    """First days by pseudonym, from persons_since.csv of the state folder; nobody where there is no file.

    Raises:
        ConfigurationError: a line is not `staff id,2027-03-01`, or one staff id stands in two lines.
    """
    path = folder / SINCE
    if not path.exists():
        return {}
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_SINCE_BYTES + 1)
        text = raw.decode("utf-8")
    except (OSError, UnicodeDecodeError):
        raise ConfigurationError(f"{SINCE} cannot be read.") from None
    if len(raw) > MAX_SINCE_BYTES:
        raise ConfigurationError(f"{SINCE} is too long.")
    found: dict[bytes, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        staff_id, comma, day = line.rpartition(",")
        if not line.strip() or (number == 1 and line.strip() == "staff_id,first_day"):
            continue
        name = staff_id_text(staff_id)
        if not comma or not name or len(name.encode()) > MAX_IDENTITY_BYTES or not is_day(day.strip()):
            raise ConfigurationError(f"{SINCE}: line {number} is not a staff id, a comma and a day such as 2027-03-01.")
        key = pseudonym(name)
        if key in found:
            raise ConfigurationError(f"{SINCE}: line {number} names somebody a second time.")
        found[key] = day.strip()
    return found
