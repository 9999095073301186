# SPDX-License-Identifier: Apache-2.0
"""Readers: one log format each, from bytes to canonical events.

Rules kept here:
* one reader a source id; a source without one is refused by name, never guessed from content;
* what readers promise to the store is written in `protocol`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from windvane_client.ids import FirstStepIds
from windvane_client.readers.canonical import CanonicalReader
from windvane_client.readers.claude_code import ClaudeCodeReader
from windvane_client.readers.cline import ClineReader
from windvane_client.readers.cline_files import companion, program
from windvane_client.readers.codex import CodexReader
from windvane_client.readers.collected import CollectedReader
from windvane_client.readers.gemini_cli import CHATS, GeminiCliReader
from windvane_client.readers.langfuse import LangfuseReader
from windvane_client.readers.litellm import LiteLLMReader
from windvane_client.readers.mapping import MappingReader
from windvane_client.readers.mapping_file import beside
from windvane_client.readers.open_webui import OpenWebUIReader
from windvane_client.readers.otlp import OtlpReader
from windvane_client.readers.otlp_dialects import DIALECTS
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

_ALL: tuple[Reader, ...] = (
    ClaudeCodeReader(),
    CodexReader(),
    ClineReader(),
    LiteLLMReader(),
    OpenWebUIReader(),
    LangfuseReader(),
    GeminiCliReader(),
    CanonicalReader(),
    MappingReader(),
    CollectedReader(),
    OtlpReader(),
    *map(OtlpReader, DIALECTS),
)
READERS: Mapping[str, Reader] = {one.source: one for one in _ALL}

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
    elif folder.name == CHATS:
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
        companion=beside(path) if facts.source == MappingReader.source else companion(path),
        program=program(path),
        collected=ids.known_people() if facts.source == CollectedReader.source else None,
        path=path,
        offset=offset,
    )
