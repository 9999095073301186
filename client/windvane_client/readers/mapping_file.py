# SPDX-License-Identifier: Apache-2.0
"""mapping.toml: which columns of an export are which fields of one kind of event (docs/sources/mapping.md).

Rules kept here:
* everything is checked when the file is loaded, before a row is read: unknown keys, missing or doubled columns, units;
* a column named like text is taken for a class only, through `map`; a class is never taken as it stands;
* a declared basis is refused where the columns cannot carry it, or where they could show only one of the two results;
* no message repeats a column, a value or a path of the file.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

import msgspec

from windvane_client import events as ev
from windvane_client.readers.files import open_log
from windvane_privacy.catalogue import KINDS
from windvane_privacy.errors import ConfigurationError

FILE_NAME: Final = "mapping.toml"
CSV, JSONL, PARQUET = "csv", "jsonl", "parquet"
SUFFIXES: Final = {CSV: (".csv", ".csv.gz"), JSONL: (".jsonl", ".jsonl.gz"), PARQUET: (".parquet",)}
ALL_SUFFIXES: Final = tuple(suffix for suffixes in SUFFIXES.values() for suffix in suffixes)
UNITS: Final = {"s": 1_000_000.0, "ms": 1_000.0, "us": 1.0, "ns": 0.001}
"""µs in one of a unit."""
DEFAULT: Final = "*"
_MAX_BYTES: Final = 1 << 16
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
_CLASS_OF_STATUS: Final = re.compile(r"[1-5]xx")
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_ALWAYS: Final = frozenset({"person", "conv", "project", "key", "ts", "mode", "kind", "client"})
_FIELDS: Final[Mapping[str, tuple[frozenset[str], frozenset[str]]]] = {
    "call": (frozenset({"served"}), frozenset({"requested", "status", "route", "request"})),
    "attempt_error": (frozenset({"error_class"}), frozenset({"family", "request", "final"})),
    "vote": (frozenset({"a", "b", "winner", "item"}), frozenset({"blind", "judge"})),
    "outcome": (frozenset({"value", "conv"}), frozenset()),
}
"""Kind of event to (fields it needs besides `ts`, further ones)."""
CLASSES: Final[Mapping[str, frozenset[str]]] = {
    "status": frozenset({*ev.CALL_STATUS, *ev.ERROR_CLASSES}),
    "route": frozenset(ev.ROUTES),
    "error_class": frozenset(ev.ERROR_CLASSES),
    "final": frozenset({"true", "false"}),
    "winner": frozenset({"a", "b", "tie"}),
    "blind": frozenset({"proved", "attested", "no"}),
    "judge": frozenset({"person", "llm"}),
    "value": frozenset(ev.OUTCOME_VALUES),
    "mode": frozenset(ev.MODES),
    "kind": frozenset(KINDS),
    "client": frozenset(ev.CLIENTS),
}
"""Fields that hold a word of a closed list."""
_TEXT: Final = frozenset({
    "prompt", "prompts", "text", "content", "contents", "message", "messages", "msg", "input", "inputs", "output",
    "outputs", "body", "query", "response", "responses", "answer", "question", "completion", "arguments", "args",
    "title", "summary", "comment", "comments", "description", "reason", "note", "notes", "transcript", "snapshot",
    "instructions", "traceback", "stack", "stdout", "stderr", "payload", "path", "cwd", "url", "snippet", "feedback",
})  # fmt: skip
"""Last words of names under which exports keep what somebody wrote."""
JOINS: Final = frozenset({"canonical", "claude_code", "codex", "cline", "open_webui"})
"""Sources whose conversation ids a column may hold."""
_DECLARES: Final[Mapping[str, tuple[str, frozenset[str]]]] = {
    "completion": ("outcome", frozenset({"explicit"})),
    "infra_recovery": ("call", frozenset({"attempts"})),
    "blind_quality": ("vote", frozenset({"proved", "attested"})),
    "switch_away": ("", frozenset()),
    "tool_reliability": ("", frozenset()),
}
"""Signal to (the kind of event that can carry it, bases)."""
_FAILED: Final = frozenset({"rejected", "failed"})


class _Spec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    column: str
    map: dict[str, str] | None = None
    unit: str | None = None
    zone: str | None = None


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    format: str
    event: str
    columns: dict[str, str | _Spec]
    declares: dict[str, str] = {}
    joins: str | None = None


@dataclass(frozen=True, slots=True)
class Mapped:
    """A checked mapping. `columns`: field to column. `maps`: class field to (value of the column to word).

    `unit`: µs in one unit of `ts`, None: by magnitude. `zone`: of times without one, None: UTC. `declares`: signal to
    basis, without `unknown`. `joins`: source whose conversations `conv` names, else empty.
    """

    name: str
    format: str
    event: str
    columns: Mapping[str, str]
    maps: Mapping[str, Mapping[str, str]]
    unit: float | None
    zone: ZoneInfo | None
    declares: Mapping[str, str]
    joins: str

    def word(self, field: str, raw: str | None) -> str | None:
        """The class that a value stands for: exact, then `5xx` for three digits, then `*`; None where none fits.

        An empty value is only what `map` names as "".
        """
        words = self.maps[field]
        if not raw:
            return words.get("")
        found = words.get(raw)
        if found is None and len(raw) == 3 and raw.isascii() and raw.isdigit():
            found = words.get(f"{raw[0]}xx")
        return found if found is not None else words.get(DEFAULT)


def parse_mapping(raw: bytes) -> Mapped:
    """The mapping of the bytes of mapping.toml.

    Raises:
        ConfigurationError: not TOML, an unknown key or kind, a missing, doubled or text column, a class without `map`
            or outside its list, an unknown unit or zone, or a basis that the columns cannot carry.
    """
    try:
        file = msgspec.convert(tomllib.loads(raw.decode("utf-8")), _File)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError):
        raise _wrong("is not TOML") from None
    except msgspec.ValidationError:
        raise _wrong("has an unknown or missing key, or a value of the wrong type") from None
    if not _NAME.fullmatch(file.name):
        raise _wrong("needs a `name` of at most 32 small letters, digits, - and _")
    if file.format not in SUFFIXES:
        raise _wrong(f"has a `format` other than {', '.join(SUFFIXES)}")
    if file.event not in _FIELDS:
        raise _wrong(f"has an `event` other than {', '.join(_FIELDS)}")
    specs = {field: _Spec(one) if isinstance(one, str) else one for field, one in file.columns.items()}
    _check_columns(file.event, specs)
    for field, spec in specs.items():
        _check_spec(field, spec)
    declares = {signal: basis for signal, basis in file.declares.items() if basis != "unknown"}
    if not file.declares.keys() <= _DECLARES.keys():
        raise _wrong(f"declares a signal other than {', '.join(_DECLARES)}")
    _check_joins(file, declares)
    for signal, basis in declares.items():
        _check_basis(file.event, signal, basis, specs)
    ts = specs["ts"]
    return Mapped(
        name=file.name,
        format=file.format,
        event=file.event,
        columns={field: spec.column for field, spec in specs.items()},
        maps={field: spec.map for field, spec in specs.items() if spec.map is not None},
        unit=UNITS[ts.unit] if ts.unit is not None else None,
        zone=_zone(ts.zone),
        declares=declares,
        joins=file.joins or "",
    )


def beside(path: Path) -> bytes:
    """Bytes of the mapping in the folder of a log file; empty where there is none.

    Raises:
        ConfigurationError: it cannot be read, or it is longer than 64 KiB.
    """
    place = path.with_name(FILE_NAME)
    if not place.is_file():
        return b""
    with open_log(place) as stream:
        data = stream.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise _wrong("is longer than 64 KiB")
    return data


def mapping_of(path: Path) -> Mapped:
    """The mapping for a log file.

    Raises:
        ConfigurationError: there is none in its folder, or see `parse_mapping`.
    """
    raw = beside(path)
    if not raw:
        raise ConfigurationError(f"A folder of the source mapping has no {FILE_NAME} beside its files.")
    return parse_mapping(raw)


def reads(path: Path) -> bool:
    """Whether the mapping in a file's folder is one for this file.

    Raises:
        ConfigurationError: there is a mapping and it is wrong.
    """
    if not path.name.endswith(ALL_SUFFIXES) or not path.with_name(FILE_NAME).is_file():
        return False
    return path.name.endswith(SUFFIXES[mapping_of(path).format])


def _wrong(what: str) -> ConfigurationError:
    return ConfigurationError(f"{FILE_NAME} {what}.")


def _check_columns(event: str, specs: Mapping[str, _Spec]) -> None:
    needed, more = _FIELDS[event]
    if not specs.keys() <= needed | more | _ALWAYS:
        raise _wrong(f"names a field that the event {event} does not have")
    missing = sorted((needed | {"ts"}) - specs.keys())
    if missing:
        raise _wrong(f"has no column for {', '.join(missing)}")
    names = [spec.column for spec in specs.values()]
    if "" in names or len(set(names)) != len(names):
        raise _wrong("names a column twice, or an empty one")


def _check_spec(field: str, spec: _Spec) -> None:
    if field != "ts" and (spec.unit is not None or spec.zone is not None):
        raise _wrong("gives a unit or zone to another field than ts")
    if spec.unit is not None and spec.unit not in UNITS:
        raise _wrong(f"has a unit other than {', '.join(UNITS)}")
    allowed = CLASSES.get(field)
    if allowed is not None:
        if not spec.map:
            raise _wrong(f"takes {field} as it stands: give it a `map`")
        if not allowed.issuperset(spec.map.values()):
            raise _wrong(f"maps {field} to another word than {', '.join(sorted(allowed))}")
        if any(DEFAULT in key and key != DEFAULT for key in spec.map):
            raise _wrong("has a `*` inside a value: only `*` alone and 1xx to 5xx stand for several")
        return
    if spec.map is not None:
        raise _wrong(f"has a `map` for {field}, which is no class")
    # The last word that is no number: `messages.0` and `prompt2` are text like `messages` and `prompt`.
    words = [word for word in _WORDS.findall(spec.column) if not word.isdigit()]
    if words and words[-1].casefold() in _TEXT:
        raise _wrong(f"takes {field} from a column that is named like text")


def _check_joins(file: _File, declares: Mapping[str, str]) -> None:
    if file.joins is None:
        if "completion" in declares:
            raise _wrong("declares completion without `joins`: outcomes alone belong to no piece of work")
        return
    if file.joins not in JOINS:
        raise _wrong(f"has a `joins` other than {', '.join(sorted(JOINS))}")
    if "completion" not in declares:
        raise _wrong("has `joins` but does not declare completion")


def _check_basis(event: str, signal: str, basis: str, specs: Mapping[str, _Spec]) -> None:
    carrier, bases = _DECLARES[signal]
    if event != carrier or basis not in bases:
        raise _wrong(f"declares a basis of {signal} that the event {event} cannot carry")
    words = {field: set(spec.map.values()) for field, spec in specs.items() if spec.map is not None}
    if signal == "completion" and not (words["value"] & _FAILED and words["value"] - _FAILED):
        raise _wrong("declares completion, but its value shows only one of the two results")
    if signal == "infra_recovery":
        status = words.get("status", set())
        if "ok" not in status or not status & {"error", *ev.INFRA_CLASSES}:
            raise _wrong("declares infra_recovery, but its status does not show both answers and failures")
        if not specs.keys() & {"request", "conv"}:
            raise _wrong("declares infra_recovery, but no request or conv says which attempts belong together")
    if signal == "blind_quality":
        if not {"a", "b"} <= words["winner"]:
            raise _wrong("declares blind_quality, but its winner shows only one of the two results")
        blind = words.get("blind")
        if basis == "proved" and "proved" not in (blind or ()):
            raise _wrong("declares blind_quality proved, but no column says so vote by vote")


def _zone(name: str | None) -> ZoneInfo | None:
    if name is None or name == "UTC":
        return None
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise _wrong("has a zone that this machine does not know") from None
