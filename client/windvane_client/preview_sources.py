# SPDX-License-Identifier: Apache-2.0
"""Which log is which: the usual places, the sources that are refused and why, and a look at a file's first rows.

Rules kept here:
* a refusal has a reason and says where to look instead; it is no error, the other logs are read;
* a file is recognised by the names and types of its first rows' fields, decoded by type: no text becomes an object;
* outside the logs that are read, only the existence of a folder is looked at; nothing in it is opened;
* no path of a log is put into a message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import BinaryIO

import msgspec

from windvane_client.readers import (
    READERS,
    canonical_rows,
    cline_files,
    codex,
    collected_rows,
    duckdb_rows,
    gemini_cli,
    langfuse_rows,
    litellm_rows,
)
from windvane_client.readers.claude_code import default_roots
from windvane_client.readers.claude_rows import KNOWN, NONE
from windvane_client.readers.csv_rows import Table
from windvane_client.readers.files import PACKED_SUFFIXES, open_log
from windvane_client.readers.lines import LineDecoder, Lines, Rejected
from windvane_client.readers.mapping_file import reads as mapped
from windvane_client.readers.values import TABLE, VALUES, Values, framing
from windvane_privacy.errors import ConfigurationError, UnsupportedSource

MAX_SNIFFED_LINES = 200
LOG_SUFFIXES = (".jsonl", ".jsonl.gz", ".json", ".json.gz", ".csv", ".csv.gz", ".parquet", ".traj", *PACKED_SUFFIXES)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why nothing of a log was read, and what to use instead."""

    reason: str
    instead: str


NO_READER = Refusal(
    "no reader in this version",
    "write its events as canonical JSONL (docs/signals.md) and read them with --source canonical",
)
NOT_RECOGNISED = Refusal(
    "none of its first rows is of a form that a reader knows", "name what it is with --source, or leave it out"
)
PACKED = Refusal(
    "it is compressed in a way that is not read", "unpack it, or compress it as .gz, and run the command again"
)
NO_MAPPING = Refusal(
    "a Parquet file says nothing of what its columns mean", "put a mapping.toml beside it (docs/sources/mapping.md)"
)
NO_DUCKDB = Refusal("Parquet files are read with DuckDB, which is not installed", "pip install 'windvane[duckdb]'")
UNREADABLE = Refusal("it cannot be opened for reading", "check the rights of the file and run the command again")
OPTED_OUT = Refusal("this person has opted out", "nothing to do: these logs are never opened")

REFUSED: Mapping[str, Refusal] = {
    "cursor": Refusal(
        "usage events of Cursor name no conversation and carry none of the five signals, only how much was used",
        "transcripts of an agent, for example Claude Code",
    ),
    "copilot_metrics": Refusal(
        "the usage metrics of Copilot are daily totals of a user, without any piece of work",
        "the telemetry files of Copilot, with --source otlp",
    ),
    "swe_agent": Refusal(
        "benchmark runs are no real work and name no person and no time",
        "logs of people's own work, for example Claude Code transcripts",
    ),
    "provider_dashboard": Refusal(
        "totals of tokens or money are volume, which is none of the five signals",
        "transcripts or gateway logs with single calls",
    ),
    "access_log": Refusal(
        "plain access logs name no conversation and no person", "transcripts, or gateway logs with people and sessions"
    ),
}
"""Sources that no version will read."""
NOT_BUILT = frozenset({
    "continue", "openhands", "opencode", "aider", "librechat", "langsmith", "mlflow", "helicone", "portkey",
    "cloudflare", "openrouter", "envoy",
})  # fmt: skip
"""Known sources without a reader in this version."""
_OTHER_NAMES = {
    "copilot": "copilot_metrics",
    "sweagent": "swe_agent",
    "benchmark": "swe_agent",
    "roo": "cline",
    "vllm": "access_log",
    "ollama": "access_log",
    "kong": "access_log",
}
USUAL_PLACES_OF_OTHERS: Mapping[str, tuple[str, ...]] = {
    "continue": (".continue/dev_data",),
    "openhands": (".openhands/conversations",),
    "opencode": (".local/share/opencode",),
}
"""Where the programs of `NOT_BUILT` keep their logs, below the home folder."""
_BY_NAME = (
    ("*.traj", "swe_agent"),
    ("rollout-*.jsonl*", "codex"),
    (f"*{cline_files.TASK_FILE}", "cline"),
    (f"*{cline_files.MESSAGES}", "cline"),
)
_CODEX_TYPES = frozenset({"session_meta", "response_item", "event_msg", "turn_context"})


def source_named(text: str) -> tuple[str, Refusal | None]:
    """The id of a source as given with --source, and its refusal if it has no reader.

    Raises:
        UnsupportedSource: nobody knows this source.
    """
    name = text.strip().casefold().replace("-", "_")
    name = _OTHER_NAMES.get(name, name)
    if name in READERS:
        return name, None
    if name in REFUSED:
        return name, REFUSED[name]
    if name in NOT_BUILT:
        return name, NO_READER
    raise UnsupportedSource(
        f"Read: {', '.join(sorted(READERS))}. Known, without a reader yet: {', '.join(sorted(NOT_BUILT))}."
    )


def usual_roots(home: Path, environment: Mapping[str, str]) -> dict[str, list[Path]]:
    """Source to the folders in which its program keeps its logs, also where its own variable moved them."""
    codex_home = Path(environment.get("CODEX_HOME") or home / ".codex")
    gemini_home = Path(environment.get("GEMINI_CLI_HOME") or home)
    return {
        "claude_code": default_roots(home, environment.get("CLAUDE_CONFIG_DIR")),
        "codex": [codex_home / folder for folder in codex.FOLDERS],
        "cline": [home / place for place in cline_files.USUAL_PLACES],
        "gemini_cli": [gemini_home / place for place in gemini_cli.USUAL_PLACES],
    }


def others_at_home(home: Path) -> list[str]:
    """Sources without a reader whose usual folder exists below the home folder; nothing is opened."""
    return [name for name, places in USUAL_PLACES_OF_OTHERS.items() if any((home / place).is_dir() for place in places)]


class _First(msgspec.Struct):
    """What tells the formats apart; values are never looked at, but for the two short type words."""

    k: str | None = None
    type: str | None = None
    v: msgspec.Raw = NONE
    message: msgspec.Raw = NONE
    payload: msgspec.Raw = NONE
    uuid: msgspec.Raw = NONE
    source: str | None = None
    projectHash: msgspec.Raw = NONE
    trace: msgspec.Raw = NONE
    traceId: msgspec.Raw = NONE
    trace_id: msgspec.Raw = NONE
    start_time: msgspec.Raw = NONE
    observations: msgspec.Raw = NONE
    scores: msgspec.Raw = NONE
    sessionId: msgspec.Raw = NONE
    startTime: msgspec.Raw = NONE
    call_type: msgspec.Raw = NONE
    user_id: msgspec.Raw = NONE
    data: msgspec.Raw = NONE
    meta: msgspec.Raw = NONE
    chat: msgspec.Raw = NONE
    items: msgspec.Raw = NONE
    resourceLogs: msgspec.Raw = NONE
    resourceSpans: msgspec.Raw = NONE
    resourceMetrics: msgspec.Raw = NONE
    hrTime: msgspec.Raw = NONE
    attributes: msgspec.Raw = NONE


_DECODER = LineDecoder(_First)
_PAGE = msgspec.json.Decoder(list[msgspec.Raw])


def recognise(path: Path) -> tuple[str | None, Refusal | None]:
    """The source of a file, and its refusal if it is not read; (None, refusal) where nobody knows it.

    Raises:
        ConfigurationError: a wrong mapping.toml lies beside the file.
    """
    if mapped(path):
        needs = path.name.endswith(".parquet") and not duckdb_rows.installed()
        return "mapping", NO_DUCKDB if needs else None
    if path.name.endswith(PACKED_SUFFIXES):
        return None, PACKED
    if path.name.endswith(".parquet"):
        return None, NO_MAPPING
    for pattern, source in _BY_NAME:
        if fnmatchcase(path.name, pattern):
            return source, None if source in READERS else REFUSED.get(source, NO_READER)
    if cline_files.is_header(path):
        return "cline", None
    try:
        with open_log(path) as stream:
            for number, (line, _) in enumerate(_first_rows(stream)):
                source_of_row = _source_of(line)
                if source_of_row is not None:
                    return source_of_row, None if source_of_row in READERS else NO_READER
                if number >= MAX_SNIFFED_LINES:
                    break
    except (OSError, EOFError, ConfigurationError):
        return None, UNREADABLE
    return None, NOT_RECOGNISED


def _first_rows(stream: BinaryIO) -> Iterator[tuple[bytes | None, int]]:
    frame = framing(stream)
    if frame == VALUES:
        return iter(Values(stream, final=True))
    if frame == TABLE:
        table = Table(stream, litellm_rows.CSV_COLUMNS, final=True)
        for _ in table:
            break
        # Of a table only the names of the columns count.
        if table.names >= {"startTime", "model", "request_id"}:
            return iter([(b'{"startTime": 0, "call_type": ""}', 0)])
        stream.seek(0)
    return iter(Lines(stream, final=True))


def _source_of(line: bytes | None) -> str | None:
    if line is None:
        return None
    try:
        row = _DECODER.decode(line)
    except Rejected:
        return None
    if any(one is not NONE for one in (row.resourceLogs, row.resourceSpans, row.resourceMetrics)):
        return "otlp"
    if row.attributes is not NONE and (row.hrTime is not NONE or row.startTime is not NONE):
        return "otlp"
    if row.k == collected_rows.HEADER and row.v is not NONE:
        return "collected"
    if row.k in canonical_rows.BY_KIND and row.v is not NONE:
        return "canonical"
    if row.startTime is not NONE and row.call_type is not NONE:
        return "litellm"
    if row.projectHash is not NONE and row.sessionId is not NONE:
        return "gemini_cli"
    if _of_langfuse(row):
        return "langfuse"
    if row.user_id is not NONE and ((row.data is not NONE and row.meta is not NONE) or row.chat is not NONE):
        return "open_webui"
    if row.type == "chats" and row.items is not NONE:
        return "open_webui"
    if row.type in _CODEX_TYPES and row.payload is not NONE:
        return "codex"
    linked = row.sessionId is not NONE or row.uuid is not NONE
    if row.type in KNOWN and (linked or row.message is not NONE):
        return "claude_code"
    return "claude_code" if row.type is None and row.message is not NONE and row.k is None else None


def _of_langfuse(row: _First) -> bool:
    if row.observations is not NONE:
        return row.trace is not NONE or row.scores is not NONE
    if row.traceId is not NONE or row.trace_id is not NONE:
        timed = row.startTime is not NONE or row.start_time is not NONE
        return row.source in langfuse_rows.SCORE_SOURCES or (timed and row.type in langfuse_rows.TYPES)
    if bytes(memoryview(row.data)[:1]) != b"[" or row.meta is NONE:
        return False
    try:
        first = _PAGE.decode(row.data)[:1]
    except (msgspec.DecodeError, RecursionError):
        return False
    return any(_source_of(bytes(one)) == "langfuse" for one in first)
