# SPDX-License-Identifier: Apache-2.0
"""Langfuse: the fields that are read, of whole traces, of single observations and of scores.

Rules kept here:
* no struct names input, output, metadata, a status message, a comment or a score's text;
* a score's value is compared as bytes with the values that the organisation names, and dropped;
* exports write the same fields in two spellings; both are named;
* a tag and a score's name are only compared with the organisation's rules and dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

Text = str | None
Given = str | msgspec.UnsetType | None
"""A field whose absence means something else than its being empty."""
Time = str | int | float | None
NONE: Final = msgspec.Raw()

CALL, TOOL, ERROR = "GENERATION", "TOOL", "ERROR"
TYPES: Final = frozenset({
    CALL, TOOL, "SPAN", "EVENT", "AGENT", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL",
})  # fmt: skip
"""Types of observations; all but the first two are wrappers or side work, also with a model or usage."""
EVAL, ANNOTATION = "EVAL", "ANNOTATION"
SCORE_SOURCES: Final = frozenset({"API", EVAL, ANNOTATION})
OWN_ENVIRONMENT: Final = "langfuse"
"""Begins the environment of what Langfuse runs itself, for example its judges."""


class Row(msgspec.Struct, kw_only=True):
    """One value of an export: a trace with its observations, a page of rows, an observation, or a score."""

    trace: msgspec.Raw = NONE
    observations: list[msgspec.Raw] | None = None
    scores: list[msgspec.Raw] | None = None
    data: list[msgspec.Raw] | None = None
    id: Text = None
    type: Text = None
    name: Text = None
    level: Text = None
    source: Text = None
    value: msgspec.Raw = NONE
    stringValue: msgspec.Raw = NONE
    string_value: msgspec.Raw = NONE
    model: Text = None
    providedModelName: Text = None
    provided_model_name: Text = None
    timestamp: Time = None
    startTime: Time = None
    start_time: Time = None
    endTime: Time = None
    end_time: Time = None
    traceId: Text = None
    trace_id: Text = None
    parentObservationId: Text = None
    parent_observation_id: Text = None
    userId: Given = msgspec.UNSET
    user_id: Given = msgspec.UNSET
    sessionId: Given = msgspec.UNSET
    session_id: Given = msgspec.UNSET
    environment: Text = None
    tags: list[str | None] | None = None

    @property
    def of_trace(self) -> str:
        """Id of the trace that it belongs to."""
        return self.traceId or self.trace_id or ""

    @property
    def parent(self) -> str:
        """Id of the observation that it is part of; empty at the top of a trace."""
        return self.parentObservationId or self.parent_observation_id or ""

    @property
    def start(self) -> Time:
        """When it began."""
        return self.startTime or self.start_time

    @property
    def end(self) -> Time:
        """When it ended."""
        return self.endTime or self.end_time

    @property
    def user(self) -> Given:
        """Who it was for; unset where the export has no such field."""
        return self.user_id if self.userId is msgspec.UNSET else self.userId

    @property
    def session(self) -> Given:
        """Its conversation; unset where the export has no such field."""
        return self.session_id if self.sessionId is msgspec.UNSET else self.sessionId

    @property
    def served(self) -> str:
        """The model as the program named it."""
        return self.model or self.providedModelName or self.provided_model_name or ""


class Shape(msgspec.Struct):
    """What decides before any field is checked."""

    type: Text = None
    observations: msgspec.Raw = NONE
    data: msgspec.Raw = NONE


STRUCTS: Final = (Row, Shape)
"""For the field audit."""


def score_word(row: Row, named: Mapping[str, Mapping[str, str]]) -> str | None:
    """The outcome that the organisation gave to this score's value; None where it names neither."""
    words = named.get(row.name or "", {})
    written = [bytes(one) for one in (row.value, row.stringValue, row.string_value) if one is not NONE]
    for value, word in words.items():
        forms = (value.encode(), value.encode() + b".0", msgspec.json.encode(value))
        if any(one in forms for one in written):
            return word
    return None
