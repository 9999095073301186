# SPDX-License-Identifier: Apache-2.0
"""What one pass over a Codex rollout remembers: where a fork begins to be itself, open tools, turns taken back.

Rules kept here:
* a fork starts with a copy of its parent's rows under new times: everything before the first turn whose own id was made
  after the fork is the parent's, whatever its time or its token counts;
* where no id tells when a turn was made, a fork holds nothing that could be told from a copy;
* memory does not grow with the file.
"""

from __future__ import annotations

from collections.abc import Iterator

from windvane_client.readers import codex_rows as rows

_MAX_OPEN = 4096
_MAX_TURNS = 4096


class ForkGate:
    """Closed while the rows are a copy of the parent's."""

    def __init__(self) -> None:
        self.closed = False
        self.inherited = False
        """The file is a fork: what its first rows count may be the parent's."""
        self._own_from: int | None = None

    def arm(self, own_from: int | None) -> None:
        """The file copies its parent. `own_from`: when it was made, ms UTC."""
        self.closed = self.inherited = True
        self._own_from = own_from

    def turn(self, turn_id: str | None) -> bool | None:
        """A turn begins: True if it is the file's first own one, False if a copy, None if nothing tells."""
        made = rows.made_at(turn_id)
        if made is None or self._own_from is None:
            return None
        if made < self._own_from:
            return False
        self.closed = False
        return True


class OpenTools:
    """Tool calls without a result, by (call id, name): two tools may share one call id."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str], None] = {}

    def called(self, call_id: str, name: str) -> None:
        """A model called a tool."""
        self._open[call_id, name] = None
        if len(self._open) > _MAX_OPEN:
            del self._open[next(iter(self._open))]

    def ended(self, call_id: str) -> str | None:
        """Name of the first tool of this call id that waits for its result; it waits no longer."""
        name = next((known for known in self._names(call_id)), None)
        if name is not None:
            del self._open[call_id, name]
        return name

    def _names(self, call_id: str) -> Iterator[str]:
        # The latest calls come last, and a result follows its call closely.
        return (name for known, name in reversed(self._open) if known == call_id)


class Turns:
    """Links between prompts and answers, with what was rolled back cut off."""

    def __init__(self) -> None:
        self.above: bytes | None = None
        """Key of the prompt or answer that the next one continues."""
        self.last_prompt: bytes | None = None
        self._before: list[bytes | None] = []

    def prompt(self, key: bytes) -> bytes | None:
        """A prompt came; what it continues."""
        parent, self.above, self.last_prompt = self.above, key, key
        self._before.append(parent)
        if len(self._before) > _MAX_TURNS:
            del self._before[: _MAX_TURNS // 2]
        return parent

    def answer(self, key: bytes) -> bytes | None:
        """An answer came; what it continues."""
        parent, self.above = self.above, key
        return parent

    def roll_back(self, turns: int) -> None:
        """The last `turns` prompts were taken back."""
        for _ in range(min(turns, len(self._before))):
            self.above = self._before.pop()
