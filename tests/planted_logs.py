# SPDX-License-Identifier: Apache-2.0
"""Copies of log files with a marker in every text, id, address, key and path.

Rules kept here:
* `QUIET`: in every string but those that a reader compares with a closed list (classes, times, names of models and
  tools, versions); appended, so that equal ids stay equal and prefixes what they are. A right reader sees what it saw;
* `LOUD`: also in those, but for the words that say what a row is, so that unknown words get into every reader;
* `ALL`: in every string without exception, and in one more field of every object, so that rows are refused;
* lines that are no JSON get the marker as bytes.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MARKER = "PLANTED-4711-MARKER"
PATH_MARKER = "planted-path-4711"
"""In the name of the folder that holds the logs."""
KINDS_OF_ROWS = frozenset(
    {"k", "kind", "type", "event.name", "name", "role", "call_type", "say", "ask", "service.name"}
)

CLASSES = frozenset({
    # words that tell what a row is
    "k", "kind", "level", "type", "subtype", "role", "event.name", "name", "say", "ask",
    "call_type", "gen_ai.operation.name", "openinference.span.kind", "ai.operationId",
    # who or what was at work
    "entrypoint", "promptSource", "originator", "source", "mode",
    "service.name", "query_source", "status", "version",
    "cli_version", "permissionMode", "origin", "blind", "internal_call_origin",
    # how it went
    "stop_reason", "winner", "value", "how", "by", "outcome", "error_class",
    "event.kind", "decision", "error_type",
    "ai.response.finishReason", "gen_ai.response.finish_reasons",
    "won", "names", "function_name", "tool_name", "tool_type",
    "decision_source", "environment",
    # which model, which tool, which kind of work
    "model", "model_name", "served", "family", "model_id", "id_of_model", "modelId", "response_model", "a", "b", "left",
    "right", "model_group", "original_model_group", "sibling_model_ids",
    "gen_ai.request.model", "gen_ai.response.model", "gen_ai.system", "gen_ai.provider.name",
    "gen_ai.tool.name", "llm.model_name", "ai.model.id",
    "ai.response.model", "tool_class", "kind_hint", "tags", "request_tags", "topic",
    "user_api_key_alias", "providedModelName", "provided_model_name",
})  # fmt: skip
"""Fields whose words are compared with a closed list; the marker in them would change what is read."""
_SESSION = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d|-?\d+(\.\d+)?$|(true|false|none|null)$", re.IGNORECASE)


@dataclass(frozen=True)
class Planting:
    """`keep`: fields whose words stay. `times`: times, numbers and truth values stay. `fields`: one more everywhere."""

    keep: frozenset[str]
    times: bool
    fields: bool

    def text(self, name: str, raw: str) -> str:
        """A string under this name with the marker, where it gets one."""
        if self.times and (raw == "" or name in self.keep or _TIME.match(raw)):
            return raw
        if raw[:1] in ("{", "[") and (inner := _parsed(raw)) is not None:
            return json.dumps(self.value(name, inner))
        return raw + MARKER

    def value(self, name: str, raw: Any) -> Any:
        """The same for whatever JSON holds."""
        if isinstance(raw, str):
            return self.text(name, raw)
        if isinstance(raw, list):
            return [self.value(name, one) for one in raw]
        if not isinstance(raw, dict):
            return raw
        if set(raw) == {"key", "value"} and isinstance(raw["key"], str):
            # An attribute of telemetry: its name stands beside its value.
            return {"key": raw["key"], "value": self.value(raw["key"], raw["value"])}
        found = {key: self.value(_named(name, key), one) for key, one in raw.items()}
        return {**found, MARKER: {MARKER: MARKER}} if self.fields else found

    def line(self, raw: str) -> str:
        value = _parsed(raw)
        return raw + MARKER if value is None else json.dumps(self.value("", value))


def _named(around: str, key: str) -> str:
    if key.endswith("Value"):
        return around
    return "id_of_model" if (around, key) == ("modelInfo", "id") else key


def _parsed(raw: str) -> Any:
    try:
        found = json.loads(raw)
    except ValueError:
        return None
    return found if isinstance(found, dict | list) else None


def _document(planting: Planting, raw: str) -> str:
    """One JSON value, or several one after the other."""
    decoder, at, found = json.JSONDecoder(), 0, []
    while raw[at:].strip():
        at += len(raw[at:]) - len(raw[at:].lstrip())
        value, at = decoder.raw_decode(raw, at)
        found.append(json.dumps(planting.value("", value), indent=1))
    return "\n".join(found) + "\n"


def _table(planting: Planting, raw: str) -> str:
    head, *rows = list(csv.reader(io.StringIO(raw)))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([planting.text(name, cell) for name, cell in zip(head, row, strict=True)] for row in rows)
    return out.getvalue()


def _lines(planting: Planting, raw: str) -> str:
    return "".join(planting.line(line) + "\n" for line in raw.split("\n") if line)


_FORMS: dict[str, Callable[[Planting, str], str]] = {
    ".jsonl": _lines, ".json": _document, ".csv": _table, ".traj": _document,
}  # fmt: skip


QUIET = Planting(CLASSES, times=True, fields=False)
LOUD = Planting(KINDS_OF_ROWS, times=True, fields=False)
ALL = Planting(frozenset(), times=False, fields=True)


def plant(source: Path, target: Path, planting: Planting) -> int:
    """A planted copy of a log file; how often the marker stands in it. Other files are copied as they are."""
    form = _FORMS.get(source.suffix)
    raw = source.read_bytes()
    target.parent.mkdir(parents=True, exist_ok=True)
    if form is not None:
        # Surrogates stand for bytes that are no UTF-8: a log may hold them.
        raw = form(planting, raw.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
    target.write_bytes(raw)
    return raw.count(MARKER.encode())


def planted_path(relative: Path) -> Path:
    """Where the planted copy of a file lies: a folder that is named after a session is named after the planted one."""
    return Path(*(part + MARKER if _SESSION.fullmatch(part) else part for part in relative.parts))


def plant_folder(source: Path, target: Path, planting: Planting) -> int:
    """`plant` for everything below a folder but the expected values and the pages."""
    return sum(
        plant(path, target / planted_path(path.relative_to(source)), planting)
        for path in sorted(source.rglob("*"))
        if path.is_file() and path.suffix != ".md" and not path.name.endswith(".expected.json")
    )
