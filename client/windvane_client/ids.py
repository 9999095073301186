# SPDX-License-Identifier: Apache-2.0
"""Keyed ids: what stands for a person, a conversation, a project, an event or an item on the member's machine.

Rules kept here:
* id = HMAC-SHA256(k_collect, label 00 namespace 00 raw)[:16]; the raw id is dropped at once;
* k_collect = HKDF-SHA256(k_org, "collect") (RFC 5869): whoever collects on a laptop holds it, and not k_org, so a log
  gives the same ids wherever it was read;
* a person's pseudonym takes a second step, HMAC-SHA256(k_org, "person" 00 first step)[:16]: it lives as long as the
  ledger, and no laptop can compute it;
* a later number of k_collect changes the first step of everything and the pseudonym of nobody;
* a person's id has no source in its input, so one person in two sources is one person;
* k_org is 32 random bytes made at install, in a file with mode 0600, and lives as long as the member's ledger;
* the preview without set-up uses a key that is never written anywhere.
"""

from __future__ import annotations

import hashlib
import secrets
from pathlib import Path

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from windvane_client.people import KnownPeople, People, staff_id_text
from windvane_privacy.errors import ConfigurationError
from windvane_privacy.keyfiles import read_secret, write_secret

K_ORG_BYTES = 32
ID_BYTES = 16
PERSON, COLLECT = b"person", b"collect"
_BLOCK = 64
"""Block of SHA-256, bytes."""
_INNER, _OUTER = (bytes(byte ^ pad for byte in range(256)) for pad in (0x36, 0x5C))


class KeyedHash:
    """HMAC-SHA256 (RFC 2104) under one key of at most 64 bytes, for many short messages.

    The key's two blocks are hashed once and copied for each message, which costs a third of a fresh HMAC.
    """

    __slots__ = ("_inner", "_outer")

    def __init__(self, key: bytes, prefix: bytes = b"") -> None:
        block = key.ljust(_BLOCK, b"\0")
        self._inner = hashlib.sha256(block.translate(_INNER) + prefix)
        self._outer = hashlib.sha256(block.translate(_OUTER))

    def digest(self, message: bytes) -> bytes:
        """HMAC-SHA256(key, prefix + message), 32 bytes."""
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(message)
        outer.update(inner.digest())
        return outer.digest()

    def short_id(self, raw: str) -> bytes:
        """The first 16 bytes for a text."""
        inner, outer = self._inner.copy(), self._outer.copy()
        # "surrogatepass": a lone surrogate in a log's id must not raise, and must not collide with another id.
        inner.update(raw.encode("utf-8", "surrogatepass"))
        outer.update(inner.digest())
        return outer.digest()[:ID_BYTES]


class FirstStepIds:
    """Ids under k_collect, as a collector writes them; satisfies `windvane_client.readers.Ids`.

    Raises:
        ConfigurationError: the key has not 32 bytes.
    """

    def __init__(self, k_collect: bytes, people: People) -> None:
        if len(k_collect) != K_ORG_BYTES:
            raise ConfigurationError("The key of the keyed ids has not 32 bytes.")
        self._first = k_collect
        self.made_of: tuple[bytes, int | None] = (k_collect, None)
        """What `ids_of` makes the same ids from, in another process of this machine. As secret as the key."""
        self._people = people
        self._persons: dict[str, bytes] = {}
        self._hashes: dict[tuple[bytes, str | None], KeyedHash] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}(key=..., people=...)"

    def _id(self, label: bytes, raw: str, namespace: str | None = None) -> bytes:
        return (self._hashes.get((label, namespace)) or self._hash(label, namespace)).short_id(raw)

    def _hash(self, label: bytes, namespace: str | None) -> KeyedHash:
        # Namespaces are constants of the readers, so there are few of them.
        within = b"" if namespace is None else _bytes(namespace) + b"\0"
        made = self._hashes[label, namespace] = KeyedHash(self._first, label + b"\0" + within)
        return made

    def _person(self, staff_text: str) -> bytes:
        return self._id(PERSON, staff_text)

    def staff(self, staff_id: str) -> bytes:
        """Id of a staff id."""
        text = staff_id_text(staff_id)
        known = self._persons.get(text)
        if known is None:
            known = self._persons[text] = self._person(text)
        return known

    def person(self, identity: str) -> bytes | None:
        """Id of a logged identity's person; None where unmapped or excluded."""
        staff_id = self._people.staff_id(identity)
        return None if staff_id is None or self._people.is_excluded(staff_id) else self.staff(staff_id)

    def excluded(self, identity: str) -> bool:
        """True for a person who opted out."""
        return self._people.is_excluded(self._people.staff_id(identity))

    def machine(self) -> bytes | None:
        """Id of this machine's own person; None where people.toml names none, or the person opted out."""
        if self._people.machine is None or self._people.machine_excluded:
            return None
        return self.staff(self._people.machine)

    def conv(self, namespace: str, raw: str) -> bytes:
        """Conversation id."""
        return self._id(b"conv", raw, namespace)

    def project(self, namespace: str, raw: str) -> bytes:
        """Project or folder id."""
        return self._id(b"project", raw, namespace)

    def key(self, namespace: str, raw: str) -> bytes:
        """Event key."""
        return (self._hashes.get((b"key", namespace)) or self._hash(b"key", namespace)).short_id(raw)

    def item(self, namespace: str, raw: str) -> bytes:
        """Id of a compared item."""
        return self._id(b"item", raw, namespace)

    def file(self, path: str) -> bytes:
        """Keyed id of a log file's path, for cursors."""
        return self._id(b"file", path)

    def known_people(self) -> KnownPeople:
        """Nobody: only the agent reads what collectors wrote."""
        return KnownPeople(None, {})


class KeyedIds(FirstStepIds):
    """The ids of one organisation, on its agent. `number`: which k_collect is in force, 1 or more.

    Raises:
        ConfigurationError: the key has not 32 bytes.
    """

    def __init__(self, key: bytes, people: People, *, number: int = 1) -> None:
        super().__init__(collect_key(key, number), people)
        self.made_of = key, number
        # Pseudonyms go through the first k_collect for ever, whichever is in force.
        self._lasting = KeyedHash(collect_key(key, 1), PERSON + b"\0")
        self._number = number
        self._second = KeyedHash(key, PERSON + b"\0")
        self._order = KeyedHash(key, b"order\0")

    def _person(self, staff_text: str) -> bytes:
        return self._second.digest(self._lasting.short_id(staff_text))[:ID_BYTES]

    def staff(self, staff_id: str) -> bytes:
        """Pseudonym of a staff id: also the person key of the privacy ledger."""
        return super().staff(staff_id)

    def known_people(self) -> KnownPeople:
        """Who may stand in rows that collectors wrote: the staff ids of people.toml."""
        people = self._people
        if people.everyone is not None:
            return KnownPeople(None, {}, everyone=self.machine())
        return KnownPeople(
            self._number,
            {self._id(PERSON, text): self.staff(text) for text in people.named_staff - people.excluded_staff},
            frozenset(self._id(PERSON, text) for text in people.excluded_staff),
        )

    def order(self, key: bytes) -> bytes:
        """A keyed random order over event keys that no outcome can influence (the cap of tool calls per episode)."""
        return self._order.digest(key)[:ID_BYTES]


def collect_key(k_org: bytes, number: int = 1) -> bytes:
    """k_collect, 32 bytes: HKDF-SHA256 (RFC 5869, no salt) of k_org under "collect", from the second on "collect/2"...

    Raises:
        ConfigurationError: k_org has not 32 bytes, or the number is below 1.
    """
    if len(k_org) != K_ORG_BYTES:
        raise ConfigurationError("The key of the keyed ids has not 32 bytes.")
    if number < 1:
        raise ConfigurationError("Collector keys are numbered from 1.")
    info = COLLECT if number == 1 else COLLECT + f"/{number}".encode()
    return HKDF(algorithm=SHA256(), length=K_ORG_BYTES, salt=None, info=info).derive(k_org)


def ids_of(made_of: tuple[bytes, int | None], people: People) -> FirstStepIds:
    """The ids whose `made_of` this is."""
    key, number = made_of
    return FirstStepIds(key, people) if number is None else KeyedIds(key, people, number=number)


def _bytes(raw: str) -> bytes:
    return raw.encode("utf-8", "surrogatepass")


def load_or_make_k_org(path: Path) -> bytes:
    """The organisation's 32-byte key, made at the first call.

    Raises:
        KeyFileTooOpen: the file can be read by others.
        ConfigurationError: it has not 32 bytes, or cannot be read or written.
    """
    if not path.exists():
        write_secret(path, secrets.token_bytes(K_ORG_BYTES))
    key = read_secret(path)
    if len(key) != K_ORG_BYTES:
        raise ConfigurationError("The key file of the keyed ids has not 32 bytes.")
    return key


def throw_away_ids() -> KeyedIds:
    """Ids of a preview without set-up: one person `me`, under a key that is forgotten with the process."""
    return KeyedIds(secrets.token_bytes(K_ORG_BYTES), People.me())
