# SPDX-License-Identifier: Apache-2.0
"""Readers: one log format each, from bytes to canonical events.

Rules kept here:
* one reader a source id; a source without one is refused by name, never guessed from content;
* a reader is imported when it is first asked for;
* what readers promise to the store is written in `protocol`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Final, cast

from windvane_client.ids import FirstStepIds
from windvane_client.readers.cline_files import companion, program
from windvane_client.readers.protocol import NO_ATTEMPTS, Ids, KindRule, ReadContext, Reader, SampleFacts
from windvane_privacy.catalogue import Catalogue
from windvane_privacy.errors import UnsupportedSource

__all__ = [
    "MACHINE_SOURCES",
    "NO_ATTEMPTS",
    "READERS",
    "Ids",
    "KindRule",
    "ReadContext",
    "Reader",
    "SampleFacts",
    "context_for",
    "reader",
]

_MODULES: Final[Mapping[str, tuple[str, str]]] = {
    "claude_code": ("claude_code", "ClaudeCodeReader"),
    "codex": ("codex", "CodexReader"),
    "cline": ("cline", "ClineReader"),
    "litellm": ("litellm", "LiteLLMReader"),
    "open_webui": ("open_webui", "OpenWebUIReader"),
    "langfuse": ("langfuse", "LangfuseReader"),
    "gemini_cli": ("gemini_cli", "GeminiCliReader"),
    "canonical": ("canonical", "CanonicalReader"),
    "mapping": ("mapping", "MappingReader"),
    "collected": ("collected", "CollectedReader"),
    "otlp": ("otlp", "OtlpReader"),
}
"""Module and class of each source's reader."""
_DIALECTS: Final = ("claude_code", "codex", "gemini_cli", "gen_ai", "openinference", "vercel_ai")
"""Of telemetry: sources `otlp/<dialect>`."""


class _Readers(Mapping[str, Reader]):
    """The readers by source id. A module is imported when its source is first read: a process that reads one source
    starts twice as fast."""

    def __init__(self) -> None:
        self._made: dict[str, Reader | None] = dict.fromkeys((*_MODULES, *(f"otlp/{one}" for one in _DIALECTS)))

    def __getitem__(self, source: str) -> Reader:
        made = self._made[source]
        if made is None:
            name, _, dialect = source.partition("/")
            module, kind = _MODULES[name]
            make = getattr(import_module(f"{__name__}.{module}"), kind)
            made = self._made[source] = cast("Reader", make(dialect) if dialect else make())
        return made

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)


READERS: Final[Mapping[str, Reader]] = _Readers()

_CHATS: Final = "chats"
"""Folder of Gemini CLI's session files."""
MACHINE_SOURCES = frozenset({"claude_code", "codex", "cline", "gemini_cli"})
"""Sources that log no person: their logs are those of the machine's own person."""


def reader(source: str) -> Reader:
    """The reader of a source id.

    Raises:
        UnsupportedSource: no reader has this id.
    """
    found = READERS.get(source)
    if found is None:
        raise UnsupportedSource(f"Sources with a reader: {', '.join(sorted(READERS))}.")
    return found


def context_for(
    path: Path, *, ids: FirstStepIds, catalogue: Catalogue, now: int, facts: SampleFacts, offset: int = 0
) -> ReadContext:
    """The context of one log file; `now` in µs UTC. Further fields (rules, aliases) are set by the caller.

    The log folder of a subagent file is its project's folder, not `subagents`; that of Gemini CLI's `chats` likewise.
    """
    folder = path.parent
    if folder.name == "subagents":
        folder = folder.parent.parent
    elif folder.name == _CHATS:
        folder = folder.parent
    return ReadContext(
        ids=ids,
        catalogue=catalogue,
        now=now,
        file_key=ids.file(str(path)),
        facts=facts,
        machine_person=ids.machine(),
        log_dir=folder.name,
        session_hint=path.name.split(".", 1)[0],
        companion=_beside(path) if facts.source == "mapping" else companion(path),
        program=program(path),
        collected=ids.known_people() if facts.source == "collected" else None,
        path=path,
        offset=offset,
    )


def _beside(path: Path) -> bytes:
    from windvane_client.readers.mapping_file import beside

    return beside(path)
