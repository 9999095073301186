# SPDX-License-Identifier: Apache-2.0
"""people.toml: which logged identity is which member of staff.

Rules kept here:
* an identity that no entry names is dropped, unless the organisation chose a default; it is never guessed;
* an identity in two entries is refused at load: one human with two pseudonyms would cost more privacy than declared;
* a staff id under [exclude] is dropped whatever else names it, before any event exists;
* without set-up (preview only) everything is the one person `me`;
* no message of this module repeats an identity.
"""

from __future__ import annotations

import tomllib
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec

from windvane_privacy.errors import ConfigurationError

MAX_IDENTITY_BYTES = 256
ME = "me"

PEOPLE_TOML = """\
# Who is who. Windvane keeps only a keyed pseudonym of the staff id, on this machine.

# What to do with a logged identity that no entry below names: "drop", or "email-local-part" (ana@example.org is "ana").
default = "drop"

# "staff-id": the person field of canonical JSONL files already is a staff id. Leave it out otherwise.
# canonical = "staff-id"

# Log files of this machine's own programs (Claude Code, Codex, Cline, Gemini CLI) belong to this person.
# [machine]
# staff_id = "s-1042"

# [[person]]
# staff_id = "s-2001"
# ids = ["email:ana@example.org"]

# People who opted out: dropped by the reader, before anything is kept.
[exclude]
staff_ids = []
"""


def staff_id_text(raw: str) -> str:
    """A staff id in the one form that is hashed: NFKC, trimmed, case-folded."""
    return unicodedata.normalize("NFKC", raw).strip().casefold()


def identity_text(raw: str) -> str:
    """A logged identity "kind:id" in the form in which it is looked up; e-mail addresses ignore case."""
    text = unicodedata.normalize("NFKC", raw).strip()
    return text.casefold() if text[:6].casefold() == "email:" else text


class _Machine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    staff_id: str


class _Person(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    staff_id: str
    ids: tuple[str, ...] = ()


class _Exclude(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    staff_ids: tuple[str, ...] = ()


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    default: Literal["drop", "email-local-part"] = "drop"
    canonical: Literal["staff-id"] | None = None
    machine: _Machine | None = None
    person: tuple[_Person, ...] = ()
    exclude: _Exclude = _Exclude()


@dataclass(frozen=True, slots=True)
class People:
    """The lookup. Staff ids are held in their hashed form's text (see `staff_id_text`)."""

    named: Mapping[str, str] = field(default_factory=dict)
    """Identity to staff id."""
    machine: str | None = None
    staff: frozenset[str] = frozenset()
    """Staff ids with an entry of their own; whose logs come from a collector needs one, also without identities."""
    excluded_staff: frozenset[str] = frozenset()
    email_local_part: bool = False
    canonical_is_staff_id: bool = False
    everyone: str | None = None
    """Set for the preview without set-up: every identity is this one person."""

    @classmethod
    def me(cls) -> People:
        """No set-up: the whole home is one person."""
        return cls(machine=ME, everyone=ME)

    def staff_id(self, identity: str) -> str | None:
        """Staff id of a logged identity "kind:id", also of an excluded one; None where nobody says whose it is."""
        if self.everyone is not None:
            return self.everyone
        text = identity_text(identity)
        kind, _, rest = text.partition(":")
        if not rest or len(text.encode()) > MAX_IDENTITY_BYTES:
            return None
        found = self.named.get(text)
        if found is not None:
            return found
        if kind == "canonical" and self.canonical_is_staff_id:
            return staff_id_text(rest) or None
        if self.email_local_part:
            local, at, domain = rest.rpartition(":")[2].partition("@")
            if at and local and domain and "@" not in domain:
                return staff_id_text(local) or None
        return None

    @property
    def named_staff(self) -> frozenset[str]:
        """Every staff id that people.toml names, excluded ones too."""
        machine = frozenset() if self.machine is None else frozenset({self.machine})
        return self.staff | machine | self.excluded_staff

    def is_excluded(self, staff_id: str | None) -> bool:
        """True for a person who opted out."""
        return staff_id in self.excluded_staff

    @property
    def machine_excluded(self) -> bool:
        """This machine's own person opted out: its log files are not opened at all."""
        return self.is_excluded(self.machine)


@dataclass(frozen=True, slots=True)
class KnownPeople:
    """Who may stand in collected rows. `number`: the collector key in force, None: any. `pseudonyms`: first step to
    pseudonym. `excluded`: first steps of those who opted out. `everyone`: the one person of a preview without set-up.
    """

    number: int | None
    pseudonyms: Mapping[bytes, bytes]
    excluded: frozenset[bytes] = frozenset()
    everyone: bytes | None = None


def parse_people(raw: str) -> People:
    """People of the text of people.toml.

    Raises:
        ConfigurationError: not TOML, an unknown field, a wrong type, an empty staff id, an identity without kind, or an
            identity in two entries.
    """
    try:
        file = msgspec.convert(tomllib.loads(raw), _File)
    except tomllib.TOMLDecodeError:
        raise ConfigurationError("people.toml is not TOML.") from None
    except msgspec.ValidationError:
        raise ConfigurationError("people.toml has an unknown field or a value of the wrong type.") from None
    named: dict[str, str] = {}
    for person in file.person:
        staff_id = _staff(person.staff_id)
        for one in person.ids:
            text = identity_text(one)
            kind, _, rest = text.partition(":")
            if not kind or not rest or len(text.encode()) > MAX_IDENTITY_BYTES:
                raise ConfigurationError('people.toml: each entry of ids is "kind:id", at most 256 bytes.')
            if text in named:
                raise ConfigurationError("people.toml: one identity is in two entries.")
            named[text] = staff_id
    return People(
        named=named,
        machine=_staff(file.machine.staff_id) if file.machine else None,
        staff=frozenset(_staff(person.staff_id) for person in file.person),
        excluded_staff=frozenset(_staff(one) for one in file.exclude.staff_ids),
        email_local_part=file.default == "email-local-part",
        canonical_is_staff_id=file.canonical == "staff-id",
    )


def load_people(path: Path) -> People:
    """People of the file at `path`.

    Raises:
        ConfigurationError: missing, unreadable, or see `parse_people`.
    """
    try:
        raw = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise ConfigurationError("people.toml is missing or cannot be read.") from None
    return parse_people(raw)


def _staff(raw: str) -> str:
    text = staff_id_text(raw)
    if not text or len(text.encode()) > MAX_IDENTITY_BYTES:
        raise ConfigurationError("people.toml: a staff id is empty or longer than 256 bytes.")
    return text
