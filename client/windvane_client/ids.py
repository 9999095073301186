# SPDX-License-Identifier: Apache-2.0
"""Keyed ids: what stands for a person, a conversation, a project, an event or an item on the member's machine.

Rules kept here:
* id = HMAC-SHA256(k_org, label 00 namespace 00 raw)[:16]; the raw id is dropped at once;
* a person's id has no source in its input, so one person in two sources is one person;
* k_org is 32 random bytes made at install, in a file with mode 0600, and lives as long as the member's ledger;
* the preview without set-up uses a key that is never written anywhere.
"""

from __future__ import annotations

import hashlib
import secrets
from pathlib import Path

from windvane_client.people import People, staff_id_text
from windvane_privacy.errors import ConfigurationError
from windvane_privacy.keyfiles import read_secret, write_secret

K_ORG_BYTES = 32
ID_BYTES = 16
_BLOCK = 64
"""Block of SHA-256, bytes."""


class KeyedHash:
    """HMAC-SHA256 (RFC 2104) under one key of at most 64 bytes, for many short messages.

    The key's two blocks are hashed once and copied for each message, which costs a third of a fresh HMAC.
    """

    __slots__ = ("_inner", "_outer")

    def __init__(self, key: bytes, prefix: bytes = b"") -> None:
        block = key.ljust(_BLOCK, b"\0")
        self._inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in block) + prefix)
        self._outer = hashlib.sha256(bytes(byte ^ 0x5C for byte in block))

    def digest(self, message: bytes) -> bytes:
        """HMAC-SHA256(key, prefix + message), 32 bytes."""
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(message)
        outer.update(inner.digest())
        return outer.digest()


class KeyedIds:
    """The ids of one organisation; satisfies `windvane_client.readers.Ids`.

    Raises:
        ConfigurationError: the key has not 32 bytes.
    """

    def __init__(self, key: bytes, people: People) -> None:
        if len(key) != K_ORG_BYTES:
            raise ConfigurationError("The key of the keyed ids has not 32 bytes.")
        self._key = key
        self._people = people
        self._persons: dict[str, bytes] = {}
        self._hashes: dict[tuple[bytes, str | None], KeyedHash] = {}

    def __repr__(self) -> str:
        return "KeyedIds(key=..., people=...)"

    def _id(self, label: bytes, raw: str, namespace: str | None = None) -> bytes:
        known = self._hashes.get((label, namespace))
        if known is None:
            # Namespaces are constants of the readers, so there are few of them.
            within = b"" if namespace is None else _bytes(namespace) + b"\0"
            known = self._hashes[label, namespace] = KeyedHash(self._key, label + b"\0" + within)
        return known.digest(_bytes(raw))[:ID_BYTES]

    def staff(self, staff_id: str) -> bytes:
        """Pseudonym of a staff id: also the person key of the privacy ledger."""
        text = staff_id_text(staff_id)
        known = self._persons.get(text)
        if known is None:
            known = self._persons[text] = self._id(b"person", text)
        return known

    def person(self, identity: str) -> bytes | None:
        """Pseudonym of a logged identity; None where unmapped or excluded."""
        staff_id = self._people.staff_id(identity)
        return None if staff_id is None or self._people.is_excluded(staff_id) else self.staff(staff_id)

    def excluded(self, identity: str) -> bool:
        """True for a person who opted out."""
        return self._people.is_excluded(self._people.staff_id(identity))

    def machine(self) -> bytes | None:
        """Pseudonym of this machine's own person; None where people.toml names none, or the person opted out."""
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
        return self._id(b"key", raw, namespace)

    def item(self, namespace: str, raw: str) -> bytes:
        """Id of a compared item."""
        return self._id(b"item", raw, namespace)

    def file(self, path: str) -> bytes:
        """Keyed id of a log file's path, for cursors."""
        return self._id(b"file", path)

    def order(self, key: bytes) -> bytes:
        """A keyed random order over event keys that no outcome can influence (the cap of tool calls per episode)."""
        return KeyedHash(self._key, b"order\0").digest(key)[:ID_BYTES]


def _bytes(raw: str) -> bytes:
    # "surrogatepass": a lone surrogate in a log's id must not raise, and must not collide with another id.
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
