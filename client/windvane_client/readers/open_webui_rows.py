# SPDX-License-Identifier: Apache-2.0
"""Open WebUI: the fields that are read of the feedback export and of the chat statistics export.

Rules kept here:
* no struct names `snapshot` (it holds the whole chat), a comment, a reason, a title or a message's content;
* ratings and times may come as strings; a tag is only compared with the organisation's rules and dropped.
"""

from __future__ import annotations

from typing import Final

import msgspec

Text = str | None
Number = int | float | str | None
NONE: Final = msgspec.Raw(b"")
ARENA_NAMES: Final = frozenset({"arena-model"})
"""Names under which Open WebUI shows two hidden models; an administrator may add others."""
RATING: Final = "rating"


class FeedbackData(msgspec.Struct):
    """`data` of a feedback item."""

    rating: Number = None
    model_id: Text = None
    sibling_model_ids: list[str] | None = None
    tags: list[str | None] | None = None


class FeedbackMeta(msgspec.Struct):
    """`meta` of a feedback item; `model_id` is what the voter saw."""

    arena: bool | str | None = None
    chat_id: Text = None
    message_id: Text = None
    model_id: Text = None


class Message(msgspec.Struct):
    """One message of the statistics: no content, only its role, model, time and rating."""

    id: Text = None
    role: Text = None
    model: Text = None
    timestamp: Number = None
    rating: Number = None
    parentId: Text = None


class History(msgspec.Struct):
    """`chat.history`."""

    messages: dict[str, Message] = {}
    currentId: Text = None


class Body(msgspec.Struct):
    """`chat` of a chat's statistics."""

    history: History | None = None


class Item(msgspec.Struct, kw_only=True):
    """One feedback item, one chat, or a page of chats (`items`)."""

    type: Text = None
    id: Text = None
    user_id: Text | msgspec.UnsetType = msgspec.UNSET
    created_at: Number = None
    updated_at: Number = None
    data: FeedbackData | None = None
    meta: FeedbackMeta | None = None
    chat: Body | None = None
    tags: list[str | None] | None = None
    items: list[msgspec.Raw] | None = None


class Shape(msgspec.Struct):
    """What decides before any field is checked."""

    type: Text = None
    chat: msgspec.Raw = NONE


STRUCTS: Final = (FeedbackData, FeedbackMeta, Message, History, Body, Item, Shape)


def rating(raw: Number) -> int | None:
    """1, -1, or None for anything else (0: the person took the rating back)."""
    if isinstance(raw, str):
        return {"1": 1, "-1": -1}.get(raw.strip())
    return int(raw) if raw in (1, -1) else None


def yes(raw: bool | str | None) -> bool:
    """A truth value that may be text."""
    return raw.strip().casefold() == "true" if isinstance(raw, str) else bool(raw)
