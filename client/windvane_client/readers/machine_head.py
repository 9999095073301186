# SPDX-License-Identifier: Apache-2.0
"""The header of events from logs that name nobody: the machine's own person, one conversation at a time.

Rules kept here:
* the person is the one that the configuration names for this machine, never one that a log names;
* a raw id becomes a keyed hash in the call that receives it;
* `seq` counts the events of one pass, so that order inside equal times is the reading order.
"""

from __future__ import annotations

from windvane_client.readers.header import Fields
from windvane_client.readers.protocol import ReadContext

_NO_KEY = b""


class MachineHead:
    """Header fields of the row that is being read. `session` stands in every natural id."""

    def __init__(
        self, context: ReadContext, source: str, version: str, *, recorder: str = "", suffix: str = ""
    ) -> None:
        self._context = context
        self._source = source
        # Where no row names a session: the file's own name and folder, wherever that folder lies.
        self.session = f"{context.log_dir}\0{context.session_hint}"
        self.fields = Fields(
            source=source,
            recorder=recorder or source,
            reader=f"{source}/{version}{suffix}",
            key=_NO_KEY,
            person=context.machine_person,
            conv=None,
            project=None,
            thread="main",
            ts=None,
            seq=0,
            mode="unknown",
            mode_evidence="",
            client="other",
            kind_hint=None,
            parent=None,
            row=None,
        )
        self.client("other")

    def client(self, client: str) -> None:
        """The program that wrote the log; an organisation's rule may give its kind of work."""
        self.fields["client"] = client
        rule = self._context.kind_rule
        if rule is not None:
            recorder, log_dir = self.fields["recorder"], self._context.log_dir
            known = {"source": self._source, "recorder": recorder, "client": client, "log_dir": log_dir}
            self.fields["kind_hint"] = rule(known)

    def mode(self, mode: str, evidence: str) -> None:
        """The mode, and the name of the field that told it."""
        self.fields["mode"], self.fields["mode_evidence"] = mode, evidence

    def at(self, ts: int | None) -> None:
        """Start a row."""
        self.fields["ts"] = ts
        self.fields["parent"] = None

    def key(self, what: str, *parts: object) -> bytes:
        """Keyed id of an event of this session."""
        return self._context.ids.key(f"{self._source}/{what}", "\0".join([self.session, *map(str, parts)]))

    def global_key(self, what: str, raw: str) -> bytes:
        """Keyed id of something whose own id is unique everywhere."""
        return self._context.ids.key(f"{self._source}/{what}", raw)

    def event(self, key: bytes, *, node: bool = False) -> Fields:
        """Header of an event; `node`: a prompt or call, which later rows link to."""
        fields = self.fields
        fields["seq"] += 1
        fields["key"] = key
        fields["row"] = key if node else None
        return fields

    def derived(self, what: str, key: bytes) -> Fields:
        """Header of an event that belongs to the event `key`."""
        return self.event(self._context.ids.key(f"{self._source}/{what}", key.hex()))
