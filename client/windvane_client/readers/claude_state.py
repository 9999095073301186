# SPDX-License-Identifier: Apache-2.0
"""What one pass over a Claude Code transcript remembers from row to row.

Rules kept here:
* memory does not grow with the file: links and threads are bounded;
* links lead from any row to the nearest prompt or call above it, so that ignored rows do not break a chain;
* nothing remembered here is ever written to disk.
"""

from __future__ import annotations

from windvane_client.events import AnyEvent, ModelSet, Prompt
from windvane_client.readers import claude_rows as rows
from windvane_client.readers.claude_header import ROW, Header
from windvane_client.readers.lines import without_id
from windvane_client.readers.protocol import Ids, ReadContext
from windvane_privacy.catalogue import UNKNOWN

_MAX_LINKS = 16_384
_MAX_BLOCKED = 256
_ABSENT = b""


class Links:
    """From a row's uuid to the key of the nearest prompt or call at or above it."""

    def __init__(self, ids: Ids, namespace: str) -> None:
        self._ids = ids
        self._namespace = namespace
        # Two generations: forgetting the oldest half at once keeps each row cheap.
        self._nodes: dict[str, bytes | None] = {}
        self._older: dict[str, bytes | None] = {}
        self._gone: dict[bytes, bytes | None] = {}

    def node(self, uuid: str | None) -> bytes | None:
        """Key of the node; None at a root; a key that no event has where the row was never seen."""
        if uuid is None:
            return None
        found = self._nodes.get(uuid, _ABSENT)
        if found is _ABSENT:
            found = self._older.get(uuid, _ABSENT)
            if found is _ABSENT:
                return self._ids.key(self._namespace, uuid)
        if self._gone:
            while found is not None and found in self._gone:
                found = self._gone[found]
        return found

    def add(self, uuid: str | None, node: bytes | None) -> None:
        """Row `uuid` is, or stands for, this node."""
        if uuid is None:
            return
        if len(self._nodes) >= _MAX_LINKS:
            self._older, self._nodes = self._nodes, {}
        self._nodes[uuid] = node
        if self._gone and node is not None:
            self._gone.pop(node, None)

    def pass_through(self, uuid: str | None, parent: str | None) -> bytes | None:
        """Row `uuid` is no node: it stands for what is above it."""
        nodes = self._nodes
        node = nodes.get(parent, _ABSENT) if parent is not None else None
        if node == _ABSENT or self._gone or len(nodes) >= _MAX_LINKS:
            node = self.node(parent)
            self.add(uuid, node)
        elif uuid is not None:
            nodes[uuid] = node
        return node

    def forget(self, key: bytes, parent: bytes | None) -> None:
        """A node that was announced never became an event."""
        if len(self._gone) < _MAX_LINKS:
            self._gone[key] = parent


class Thread:
    """State of one thread of one conversation."""

    __slots__ = (
        "_attempt", "_failed_row", "_last_failure", "_plan", "_request", "_skill", "agents", "asked", "blocked", "call",
        "call_parent", "command", "command_mode", "direct", "model_command", "plan_changed", "scheduled", "shown",
    )  # fmt: skip

    def __init__(self) -> None:
        self.call: bytes = _ABSENT
        self.call_parent: bytes | None = None
        self.shown: tuple[bytes, str, str] | None = None
        self.asked = UNKNOWN
        """Family that the next request goes to, as far as the log tells: the last one that answered."""
        self.direct = UNKNOWN
        self.command: Prompt | None = None
        self.command_mode: tuple[str, str] | None = None
        self.model_command: ModelSet | None = None
        self.scheduled = False
        self.plan_changed = False
        self.blocked: dict[str, None] = {}
        self.agents: dict[str, None] = {}
        """Tool calls that started a subagent and have no result yet."""
        self._skill: str | None = None
        self._plan: bool | None = None
        self._failed_row: str | None = None
        self._last_failure: tuple[str | None, bytes | None] = (None, None)
        self._request: bytes | None = None
        self._attempt: int | None = None

    def route(self, family: str) -> str:
        """A skill may bring its own model: that is nobody's choice."""
        return "skill" if self._skill is not None and family != self._skill else "direct"

    def skill_started(self, family: str) -> None:
        """A skill was launched by an answer of this family; a skill inside a skill changes nothing."""
        if self._skill is None:
            self._skill = family

    def answered(self, key: bytes, parent: bytes | None, family: str, *, direct: bool) -> None:
        """A call was answered."""
        self.call, self.call_parent = key, parent
        self.asked = family
        if direct:
            self.direct = family
        self._failed_row = self._request = self._attempt = None

    def new_turn(self) -> None:
        """A prompt ends a skill; the request goes to the model of the last direct answer again."""
        self._skill = None
        if self.asked != UNKNOWN:
            self.asked = self.direct
        self._failed_row = self._request = self._attempt = None

    def plan_mode(self, mode: str | None) -> None:
        """The permission mode; a change into or out of plan mode may change the model."""
        if mode is None:
            return
        plan = mode == "plan"
        if self._plan is not None and plan != self._plan:
            self.plan_changed = True
        self._plan = plan

    def request(self, uuid: str | None, parent: str | None, attempt: int | None) -> bytes | None:
        """Keyed id of the logical request that a failed attempt belongs to; None for a new one."""
        if uuid is not None and uuid == self._last_failure[0]:
            return self._last_failure[1]
        if self._request is None or (self._failed_row is not None and parent != self._failed_row):
            return None
        if attempt is not None and self._attempt is not None and attempt <= self._attempt:
            return None
        return self._request

    def failed(self, uuid: str | None, request: bytes, attempt: int | None, *, final: bool) -> None:
        """An attempt failed; after the last one the request is over."""
        self._last_failure = (uuid, request)
        self._failed_row, self._request, self._attempt = (None, None, None) if final else (uuid, request, attempt)

    def block(self, tool: str) -> None:
        """A hook stopped this tool call; its result row says only that something failed."""
        _remember(self.blocked, tool)

    def agent_started(self, tool: str) -> None:
        """A tool call started a subagent."""
        _remember(self.agents, tool)

    def drop_pending(self, links: Links) -> None:
        """Other input came: a waiting command started no turn."""
        if self.command is not None:
            links.forget(self.command.key, self.command.parent)
        self.command = self.model_command = None


def _remember(known: dict[str, None], tool: str) -> None:
    known[tool] = None
    if len(known) > _MAX_BLOCKED:
        del known[next(iter(known))]


class Pass:
    """One pass over one file: what the row modules share."""

    def __init__(self, context: ReadContext, head: Header) -> None:
        self.context = context
        self.head = head
        self.links = Links(context.ids, ROW)
        self.out: list[AnyEvent] = []
        """Events of the row that is being read."""
        self.model: str | None = None
        """Model of the last answer as the log writes it, and its family: most answers are of the same one."""
        self.family = UNKNOWN
        self.start = 0
        """Byte offset of the row."""
        self.line = b""
        """Bytes of the row."""

    def link(self, row: rows.Row) -> None:
        """This row is no node of its own: what links to it links to the nearest prompt or call above."""
        self.head.parent = self.links.pass_through(row.uuid, row.parentUuid or row.logicalParentUuid)

    def above(self, row: rows.Row) -> bytes | None:
        """Key of the nearest prompt or call above the row."""
        return self.links.node(row.parentUuid or row.logicalParentUuid)

    def row_id(self, row: rows.Row) -> str:
        """Natural id of the row."""
        return row.uuid or without_id(self.start, self.line)

    def model_set(self, namespace: str, place: str, by: str) -> ModelSet:
        """The model may have been set here; to which one is not read."""
        return ModelSet(**self.head.of(namespace, place), family=UNKNOWN, by=by)

    def emit_model_command(self, thread: Thread) -> None:
        """A person's model command that was not seen to keep the model."""
        if thread.model_command is not None:
            thread.asked = UNKNOWN
            self.out.append(thread.model_command)
            thread.model_command = None

    def emit_plan(self, thread: Thread, place: str) -> None:
        """A change into or out of plan mode since the last prompt or answer."""
        if thread.plan_changed:
            thread.plan_changed = False
            self.out.append(self.model_set("claude_code/plan", place, "harness"))

    def emit_waiting(self, thread: Thread) -> None:
        """A model call follows: a command that was waiting has started a turn."""
        self.emit_model_command(thread)
        if thread.command is not None:
            self.head.turn_mode(thread.command_mode)
            thread.new_turn()
            self.out.append(thread.command)
            thread.command = None
