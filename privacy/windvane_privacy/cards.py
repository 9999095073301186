# SPDX-License-Identifier: Apache-2.0
"""Cards: small documents that are signed by the very key they show, so that nobody can present somebody else's key.

Rules kept here:
* canonical JSON of at most 8,192 bytes; an unknown or missing field is refused;
* the key on it is looked at before anything is verified with it: low-order and malformed keys are refused;
* the signature covers the label and every field but `sig`; each kind of card has its own label.

Source: docs/protocol.md (enrolment, a guardian's card).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import msgspec

from windvane_privacy import canonical
from windvane_privacy.canonical import JsonValue
from windvane_privacy.errors import MalformedInput
from windvane_privacy.identity import SigningKey, check_public, verify

MAX_CARD_BYTES = 8192
Card = TypeVar("Card", bound=msgspec.Struct)


def sign_card(body: Mapping[str, JsonValue], label: bytes, key: SigningKey) -> bytes:
    """The canonical bytes of a card. `body`: every field but `sig`, the public half of `key` among them."""
    return canonical.encode({**body, "sig": key.sign(label, canonical.encode(body)).hex()})


def read_signed_card(raw: bytes, form: type[Card], label: bytes, key_field: str, sound: Callable[[Card], bool]) -> Card:
    """A card of this form whose signature fits the key in `key_field`.

    `sound` says whether its fields have the agreed forms, that of the key (64 hex digits) and of `sig` (128) included.

    Raises:
        MalformedInput: not of this form.
        KeyRefused: a low-order or non-canonical key.
        SignatureInvalid: signed by another key, or altered.
    """
    value = canonical.decode(raw, max_bytes=MAX_CARD_BYTES)
    try:
        card = msgspec.convert(value, form)
    except msgspec.ValidationError:
        raise MalformedInput from None
    if not sound(card):
        raise MalformedInput
    public = bytes.fromhex(value[key_field])
    check_public(public)
    signature = bytes.fromhex(value.pop("sig"))
    verify(public, signature, label, canonical.encode(value))
    return card
