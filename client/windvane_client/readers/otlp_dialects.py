# SPDX-License-Identifier: Apache-2.0
"""Telemetry (OTLP JSON): which dialect a record is of.

Rules kept here:
* a program's own event names come before its scope and service, those before the general names of spans;
* a body is compared with the fixed list of event names, and nothing of it is kept;
* a record of none of the dialects is foreign, never guessed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from windvane_client.readers import otlp_claude, otlp_codex, otlp_gemini
from windvane_client.readers import otlp_rows as rows

AGENTS: Final = ("claude_code", "codex", "gemini_cli")
DIALECTS: Final = (*AGENTS, "gen_ai", "openinference", "vercel_ai")
_SERVICES: Final = {"claude-code": "claude_code", "gemini-cli": "gemini_cli"}
_SCOPES: Final = (("com.anthropic.claude_code", "claude_code"),)
_BODIES: Final = {
    f"{agent}.{name}".encode(): f"{agent}.{name}"
    for agent, module in (("claude_code", otlp_claude), ("codex", otlp_codex), ("gemini_cli", otlp_gemini))
    for name in module.EVENTS | module.IGNORED
}
PREFIXES: Final = tuple(f"{agent}." for agent in AGENTS)


@dataclass(slots=True)
class Group:
    """What the records of one group share: the resource's attributes and the scope's name."""

    attrs: rows.Attributes
    scope: str


def own_attributes(record: rows.Record) -> tuple[rows.Attributes, dict[str, bytes], bool]:
    """Attributes of a record; malformed ones are none, and said to be malformed."""
    try:
        return rows.attributes(record.attributes)
    except msgspec.DecodeError:
        return {}, {}, False


def scope_name(scope: rows.Scope | None) -> str:
    """Name of a scope; empty where it has none that can be read."""
    try:
        name = rows.scalar(scope.name) if scope is not None else None
    except msgspec.DecodeError:
        return ""
    return name if isinstance(name, str) else ""


def name_in(head: bytes) -> str:
    """The event name that a body is, from the fixed list; a body with an agent's prefix is one of unknown name."""
    head = head.partition(b'"')[0]
    found = _BODIES.get(head)
    if found is not None:
        return found
    return next((f"{agent}.?" for agent in AGENTS if head.startswith(agent.encode() + b".")), "")


def sdk_group(record: rows.Record) -> Group:
    """Resource and scope of an object of the JavaScript SDK."""
    attrs: rows.Attributes = {}
    scope = ""
    try:
        if rows.first_byte(record.resource) == b"{":
            attrs = rows.attributes(rows.RESOURCE.decode(record.resource).attributes)[0]
        for raw in (record.instrumentationScope, record.instrumentationLibrary):
            if rows.first_byte(raw) == b"{":
                scope = scope_name(rows.SCOPE.decode(raw)) or scope
    except msgspec.DecodeError:
        pass
    return Group(attrs, scope)


def dialect_of(attrs: rows.Attributes, name: str, scope: str) -> str | None:
    """The dialect of a row; None for a foreign one. A program's own events come before general names."""
    for agent in AGENTS:
        if name.startswith(f"{agent}."):
            return agent
    for prefix, agent in _SCOPES:
        if scope.startswith(prefix):
            return agent
    service = attrs.get("service.name")
    if isinstance(service, str):
        if service in _SERVICES:
            return _SERVICES[service]
        if service.casefold() in otlp_codex.PROGRAMS:
            return "codex"
    if "openinference.span.kind" in attrs:
        return "openinference"
    if "ai.operationId" in attrs:
        return "vercel_ai"
    return "gen_ai" if any(key.startswith("gen_ai.") for key in attrs) else None
