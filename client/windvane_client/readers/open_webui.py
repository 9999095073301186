# SPDX-License-Identifier: Apache-2.0
"""Open WebUI: the feedback export (votes, also blind ones) and the chat statistics export (chats without content).

Rules kept here:
* a vote is blind only where the server hid the names (`meta.arena`) and the rated message's own model is told;
* a rating with a visible name is counted as not blind and compares nothing, however many siblings it has;
* a thumb down says who won only with exactly one sibling; a thumb up wins against each sibling;
* one vote for each user, message and sibling: the latest version counts;
* `snapshot` is never decoded; a message's text is in neither export's structs;
* an export is one document: changed, it is read anew as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from windvane_client.events import AnyEvent, Gap, Vote
from windvane_client.readers import open_webui_rows as rows
from windvane_client.readers.files import find_logs
from windvane_client.readers.header import Fields
from windvane_client.readers.json_items import Items
from windvane_client.readers.lines import UNREADABLE, LineDecoder, Lines, Rejected, reject
from windvane_client.readers.open_webui_chats import chat_events
from windvane_client.readers.protocol import ReadContext
from windvane_client.readers.times import micros
from windvane_client.readers.values import DAMAGED, LINES, Values, framing
from windvane_privacy.catalogue import KINDS, UNKNOWN

SOURCE: Final = "open_webui"
VERSION: Final = "1.0.0"
SUFFIXES: Final = (".json", ".json.gz", ".jsonl", ".jsonl.gz")
_READER: Final = f"{SOURCE}/{VERSION}"
_MAX_ID_BYTES: Final = 256
_PAGE_HEAD: Final = 4096
_RESERVED: Final = "windvane:"
_ITEM = LineDecoder(rows.Item)
_SHAPE = LineDecoder(rows.Shape)


class OpenWebUIReader:
    """Reader of the source `open_webui`."""

    source = SOURCE
    version = VERSION

    def discover(self, roots: Sequence[Path]) -> Iterator[Path]:
        """JSON and JSONL files under the roots."""
        return find_logs(roots, SUFFIXES)

    def read(self, stream: BinaryIO, context: ReadContext) -> Iterator[AnyEvent]:
        """Events of one export; see `windvane_client.readers.protocol.Reader`."""
        return _File(context).events(stream)


class _File:
    def __init__(self, context: ReadContext) -> None:
        self._context = context
        self._ids = context.ids
        self._seq = 0
        self._place = 0
        self._conv: bytes | None = None
        self._ts: int | None = None

    def events(self, stream: BinaryIO) -> Iterator[AnyEvent]:
        context = self._context
        source: Lines | Values
        frame = framing(stream)
        if frame == DAMAGED:
            context.rows.read += 1
            reject(context.rows, UNREADABLE)
            yield self._gap("rows_rejected", "")
            return
        if frame == LINES:
            source = Lines(stream, start=context.offset, final=context.final)
            self._place = context.offset
        else:
            source = Values(stream, final=context.final)
        for value, end in source:
            pages = None if value is None else self._page(value)
            for number, item in enumerate([value] if pages is None else pages):
                context.rows.read += 1
                self._seq += 1
                place = f"{self._place}:{number}"
                try:
                    if item is None:
                        raise Rejected(source.problem)
                    yield from self._item(item, place)
                except Rejected as error:
                    reason = "truncated" if source.cut and error.reason == "not_json" else error.reason
                    reject(context.rows, reason)
                    yield self._gap("rows_rejected", place)
            self._place = end
        context.offset = max(source.offset, context.offset)

    @staticmethod
    def _page(value: bytes) -> list[bytes] | None:
        """The chats of a page of statistics; None where the value is a row itself."""
        if b'"items"' not in value[:_PAGE_HEAD]:
            return None
        try:
            found = _ITEM.decode(value).items
        except Rejected:
            # One damaged chat does not cost the others: they are told apart by their brackets.
            apart = Items(value, b"items")
            chats = [raw for raw, _ in apart]
            return chats if apart.complete else None
        return None if found is None else [bytes(one) for one in found]

    def _gap(self, what: str, place: str) -> Gap:
        key = self._ids.key("open_webui/gap", f"{what}\0{self._context.file_key.hex()}\0{place}")
        return Gap(
            source=SOURCE, recorder=SOURCE, reader=_READER, key=key, conv=self._conv, ts=self._ts, seq=self._seq,
            what=what,
        )  # fmt: skip

    def _item(self, raw: bytes, place: str) -> Iterator[AnyEvent]:
        context = self._context
        item = self._decoded(raw)
        if item is None:
            context.rows.unknown += 1
            return
        chat = item.chat is not None
        if not item.id or (not chat and (item.data is None or item.meta is None)):
            raise Rejected("missing_field")
        ts = micros(item.created_at if chat else item.updated_at or item.created_at, context.now)
        if ts is None:
            raise Rejected("missing_field" if item.created_at is None and item.updated_at is None else "bad_time")
        user = item.user_id if isinstance(item.user_id, str) else ""
        thread = item.id if chat else (item.meta.chat_id if item.meta is not None else None)
        if any(len(one.encode("utf-8", "surrogatepass")) > _MAX_ID_BYTES for one in (user, thread or "", item.id)):
            raise Rejected("bad_value")
        identity = f"open_webui:{user}"
        if user and self._ids.excluded(identity):
            context.rows.read -= 1
            return
        facts = context.facts
        facts.any_row = True
        if item.user_id is not msgspec.UNSET:
            facts.saw_person(self._ids.key("open_webui/person", user) if user else None)
        facts.saw_conversation(self._ids.conv(SOURCE, thread) if thread else None)
        head = self._head(item, user, thread, ts)
        self._conv, self._ts = head["conv"], ts
        if head["person"] is None:
            yield self._gap("person_unknown", place)
        if chat:
            facts.any_call_row = facts.any_prompt_row = True
        else:
            facts.any_vote_row = True
        if head["person"] is not None:
            yield from chat_events(item, head, context) if chat else self._votes(item, head, user)

    @staticmethod
    def _decoded(raw: bytes) -> rows.Item | None:
        """The item; None where its type is unknown, whatever else is wrong with it."""
        try:
            item = _ITEM.decode(raw)
        except Rejected as error:
            if error.reason != "wrong_type":
                raise
            item = None
        shape = item or _SHAPE.decode(raw)
        if not shape.chat and shape.type not in (None, rows.RATING):
            return None
        if item is None:
            raise Rejected("wrong_type")
        return item

    def _head(self, item: rows.Item, user: str, thread: str | None, ts: int) -> Fields:
        context, ids = self._context, self._ids
        listed = context.key_mode([name for name in (user, SOURCE) if name]) if context.key_mode is not None else None
        tags = item.tags if item.chat is not None else (item.data.tags if item.data is not None else None)
        return Fields(
            source=SOURCE,
            recorder=SOURCE,
            reader=_READER,
            key=b"",
            person=ids.person(f"open_webui:{user}") if user else None,
            conv=ids.conv(SOURCE, thread) if thread else None,
            project=None,
            thread="main",
            ts=ts,
            seq=self._seq,
            mode=listed[0] if listed is not None else UNKNOWN,
            mode_evidence=listed[1] if listed is not None else "",
            client=SOURCE,
            kind_hint=self._kind([tag for tag in tags or () if tag]),
            parent=None,
            row=None,
        )

    def _kind(self, tags: list[str]) -> str | None:
        """The organisation's rule first; free tags may have been written by a model, so alone they decide nothing."""
        rule = self._context.kind_rule
        if rule is not None:
            base = {"source": SOURCE, "recorder": SOURCE, "client": SOURCE, "log_dir": self._context.log_dir}
            for tag in tags or [""]:
                found = rule({**base, "tag": tag})
                if found is not None:
                    return found
        reserved = (tag.removeprefix(_RESERVED) for tag in tags if tag.startswith(_RESERVED))
        return next((kind for kind in reserved if kind in KINDS), None)

    def _votes(self, item: rows.Item, head: Fields, user: str) -> Iterator[AnyEvent]:
        data, meta = item.data or rows.FeedbackData(), item.meta or rows.FeedbackMeta()
        message = f"{user}\0{meta.chat_id}\0{meta.message_id or item.id}"
        if head["mode"] not in ("automation", "relay"):
            # A signed-in user's vote is itself an act of a person; the chat around it may be anything.
            head["mode"], head["mode_evidence"] = "interactive", "vote"
        own = data.model_id if data.model_id not in (None, "", meta.model_id, *rows.ARENA_NAMES) else None
        siblings = sorted({one for one in data.sibling_model_ids or () if one and one not in rows.ARENA_NAMES})
        score = rows.rating(data.rating)
        if not rows.yes(meta.arena) or own is None or not siblings:
            # Names on screen, or the rated model is not told: nothing is compared.
            name = own or data.model_id
            a = self._family(name) if name not in (None, *rows.ARENA_NAMES) else UNKNOWN
            yield self._vote(head, message, "", a, UNKNOWN, "tie" if score is None else "a" if score > 0 else "b", "no")
            return
        for sibling in siblings:
            decided = score == 1 or (score == -1 and len(siblings) == 1)
            winner = ("a" if score == 1 else "b") if decided else "tie"
            yield self._vote(head, message, sibling, self._family(own), self._family(sibling), winner, "proved")

    def _vote(self, head: Fields, message: str, sibling: str, a: str, b: str, winner: str, blind: str) -> Vote:
        own = Fields(**{**head, "key": self._ids.key("open_webui/vote", f"{message}\0{sibling}")})
        judge = "person" if own["mode"] == "interactive" else "llm"
        item = self._ids.item(SOURCE, message)
        return Vote(**own, a=a, b=b, winner=winner, blind=blind, item=item, judge=judge)

    def _family(self, name: str | None) -> str:
        return self._context.catalogue.resolve(name, self._context.aliases)
