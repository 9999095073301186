# SPDX-License-Identifier: Apache-2.0
"""The header fields that every reader fills, as keyword arguments of an event.

Rules kept here:
* the fields are those of `windvane_client.events.Event`, all of them but `turn`: none can be forgotten.
"""

from __future__ import annotations

from typing import TypedDict


class Fields(TypedDict):
    """The header of an event."""

    source: str
    recorder: str
    reader: str
    key: bytes
    person: bytes | None
    conv: bytes | None
    project: bytes | None
    thread: str
    ts: int | None
    seq: int
    mode: str
    mode_evidence: str
    client: str
    kind_hint: str | None
    parent: bytes | None
    row: bytes | None
