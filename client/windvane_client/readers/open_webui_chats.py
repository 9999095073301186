# SPDX-License-Identifier: Apache-2.0
"""Open WebUI: events of one chat of the statistics export.

Rules kept here:
* messages are ordered by time, since the statistics do not link them; one without a time is left out;
* a person picks the model in the page: another model on the next prompt is the person's own act, unless two models
  answered side by side;
* several models that answered one prompt are no choice; their answers open no turn with a visible choice;
* only the rating of the last answer says something about how the chat ended.
"""

from __future__ import annotations

from typing import Final

from windvane_client.events import AnyEvent, Call, ModelSet, Outcome, Prompt
from windvane_client.readers import open_webui_rows as rows
from windvane_client.readers.header import Fields
from windvane_client.readers.lines import Rejected
from windvane_client.readers.protocol import ReadContext
from windvane_client.readers.times import micros
from windvane_privacy.catalogue import SYNTHETIC, UNKNOWN

MAX_MESSAGES: Final = 100_000
_MAX_ID_BYTES: Final = 256

_Dated = tuple[int, bool, str, rows.Message]
_Turn = tuple[_Dated, list[_Dated]]


def chat_events(item: rows.Item, head: Fields, context: ReadContext) -> list[AnyEvent]:
    """Prompts, answers, model choices and the last rating, in order of time.

    Raises:
        Rejected: a message has no known role or an impossible time, or there are too many.
    """
    history = item.chat.history if item.chat is not None else None
    if history is None or len(history.messages) > MAX_MESSAGES:
        raise Rejected("missing_field" if history is None else "too_long")
    turns = _turns(_dated(history.messages, context.now))
    found: list[AnyEvent] = []
    last: str | None = None
    for prompt, answers in turns:
        families = [_family(answer[3].model, context) for answer in answers]
        alone = len(set(families)) == 1
        chosen = families[0] if alone else None
        if last is not None and chosen not in (None, UNKNOWN, last) and last != UNKNOWN:
            made = _at(head, context, item, "model", prompt)
            found.append(ModelSet(**made, family=chosen or UNKNOWN, by="person"))
        made = _at(head, context, item, "prompt", prompt)
        made["row"] = made["key"]
        found.append(Prompt(**made, origin="human"))
        for answer, family in zip(answers, families, strict=True):
            if family == SYNTHETIC:
                continue
            made = _at(head, context, item, "call", answer)
            made["row"] = made["key"]
            found.append(Call(**made, served=family, route="direct" if alone else UNKNOWN))
        # After answers side by side nobody can say which model the person went on from.
        last = chosen if answers else last
    rated = _last_rating(turns, history.currentId)
    if rated is not None:
        made = _at(head, context, item, "rating", rated)
        value = "accepted" if rows.rating(rated[3].rating) == 1 else "rejected"
        found.append(Outcome(**made, value=value, evidence="rating"))
    return found


def _dated(messages: dict[str, rows.Message], now: int) -> list[_Dated]:
    found: list[_Dated] = []
    for name, message in messages.items():
        if len(name.encode("utf-8", "surrogatepass")) > _MAX_ID_BYTES:
            raise Rejected("bad_value")
        if message.role not in ("user", "assistant") or message.timestamp in (None, ""):
            continue
        ts = micros(message.timestamp, now)
        if ts is None:
            raise Rejected("bad_time")
        found.append((ts, message.role == "assistant", name, message))
    return sorted(found, key=lambda one: one[:3])


def _turns(messages: list[_Dated]) -> list[_Turn]:
    turns: list[_Turn] = []
    for one in messages:
        if not one[1]:
            turns.append((one, []))
        elif turns:
            turns[-1][1].append(one)
    return turns


def _last_rating(turns: list[_Turn], current: str | None) -> _Dated | None:
    """The last answer of the active branch, if the person rated it."""
    answers = turns[-1][1] if turns else []
    last = next((one for one in answers if one[2] == current), answers[-1] if answers else None)
    return last if last is not None and rows.rating(last[3].rating) is not None else None


def _at(head: Fields, context: ReadContext, item: rows.Item, what: str, message: _Dated) -> Fields:
    key = context.ids.key(f"open_webui/{what}", f"{item.id}\0{message[2]}")
    return Fields(**{**head, "key": key, "ts": message[0], "seq": head["seq"]})


def _family(name: str | None, context: ReadContext) -> str:
    return context.catalogue.resolve(name or None, context.aliases)
