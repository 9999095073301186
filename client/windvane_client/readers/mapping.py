# SPDX-License-Identifier: Apache-2.0
"""Column mapping: CSV, JSONL and Parquet exports of any program, read by the mapping.toml beside them.

Rules kept here:
* only the named columns are read; ids are hashed, models become families, every other value a word of a closed list;
* what the mapping does not declare stays unknown: faults have no second side, votes are not blind, outcomes join
  nothing;
* a failed row of calls is an attempt, as with any gateway; a missing status is never guessed to be an answer;
* a person who opted out leaves no trace; an identity that nobody mapped leaves a gap, never an event;
* a local time that happened twice, or never, leaves a gap `time_ambiguous`;
* Parquet needs DuckDB, which opens the file itself; a very large CSV file is read with it where it is installed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Final

from windvane_client import events as ev
from windvane_client.events import AnyEvent
from windvane_client.readers import duckdb_rows, mapping_file
from windvane_client.readers.csv_rows import Table
from windvane_client.readers.failures import error_class
from windvane_client.readers.files import find_logs
from windvane_client.readers.header import Fields
from windvane_client.readers.json_columns import JsonColumns
from windvane_client.readers.lines import Lines, Rejected, plausible, reject
from windvane_client.readers.mapping_file import CSV, PARQUET, Mapped, mapping_of, parse_mapping
from windvane_client.readers.protocol import NO_ATTEMPTS, ReadContext
from windvane_client.readers.times import micros
from windvane_privacy.catalogue import SYNTHETIC
from windvane_privacy.errors import ConfigurationError

SOURCE: Final = "mapping"
VERSION: Final = "1.0.0"
MAX_FIELD_BYTES: Final = 1 << 20
LARGE_CSV_BYTES: Final = 256 << 20
"""From this size on DuckDB reads a CSV file, where it is installed."""
_MAX_ID_BYTES: Final = 256
_READER: Final = f"{SOURCE}/{VERSION}"
_NOBODY: Final = "mapping:nobody"
_STRENGTH: Final = ("no", "attested", "proved")

Row = dict[str, str]
"""Field to value, without the empty ones."""
_Source = Table | Lines | duckdb_rows.Parquet | duckdb_rows.LargeCsv


class MappingReader:
    """Reader of the source `mapping`."""

    source = SOURCE
    version = VERSION

    def discover(self, roots: Sequence[Path]) -> Iterator[Path]:
        """Files of the format that the mapping in their folder names.

        Raises:
            ConfigurationError: a folder with files of these formats has no mapping.toml, or a wrong one.
            MissingExtra: there is Parquet to read, and DuckDB is not installed.
        """
        for path in find_logs(roots, mapping_file.ALL_SUFFIXES):
            format_ = mapping_of(path).format
            if path.name.endswith(mapping_file.SUFFIXES[format_]):
                if format_ == PARQUET:
                    duckdb_rows.require()
                yield path

    def read(self, stream: BinaryIO, context: ReadContext) -> Iterator[AnyEvent]:
        """Events of one file; `context.companion` holds its mapping. See `windvane_client.readers.protocol.Reader`.

        Raises:
            ConfigurationError: there is no mapping, it is wrong, or a file for DuckDB changed while it was read.
            MissingExtra: as `discover`.
        """
        if not context.companion:
            raise ConfigurationError(f"An export has no {mapping_file.FILE_NAME} beside it.")
        return _File(context, parse_mapping(context.companion)).events(stream)


class _File:
    def __init__(self, context: ReadContext, mapped: Mapped) -> None:
        self._context = context
        self._ids = context.ids
        self._mapped = mapped
        self._fields = {column: field for field, column in mapped.columns.items()}
        self._recorder = f"{SOURCE}/{mapped.name}"
        self._attempts = "infra_recovery" in mapped.declares
        self._reader = _READER if self._attempts else _READER + NO_ATTEMPTS
        self._seq = 0
        self._start = 0
        self._conv: bytes | None = None
        self._ts: int | None = None

    def events(self, stream: BinaryIO) -> Iterator[AnyEvent]:
        context = self._context
        source, cut = self._source(stream)
        for raw, end in source:
            context.rows.read += 1
            self._seq += 1
            try:
                if raw is None:
                    raise Rejected(source.problem)
                yield from self._row({self._fields[name]: value for name, value in cut(raw).items()})
            except Rejected as error:
                lost = source.cut and (self._mapped.format == CSV or error.reason == "not_json")
                reject(context.rows, "truncated" if lost else error.reason)
                yield self._gap("rows_rejected")
            self._start = end
        context.offset = max(source.offset, context.offset)

    def _source(self, stream: BinaryIO) -> tuple[_Source, Callable[[Any], Row]]:
        """Where the rows come from, and what cuts the named columns out of one."""
        context, wanted = self._context, frozenset(self._fields)
        if self._mapped.format == PARQUET:
            if context.path is None:
                raise ConfigurationError("A Parquet file is only read where it lies.")
            return duckdb_rows.Parquet(context.path, wanted, max_field=MAX_FIELD_BYTES), dict
        if self._mapped.format == CSV:
            large = self._large(stream, wanted)
            if large is not None:
                return large, dict
            table = Table(stream, wanted, final=context.final, max_field=MAX_FIELD_BYTES)
            return table, table.columns
        self._start = context.offset
        lines = Lines(stream, start=context.offset, final=context.final)
        return lines, JsonColumns(wanted, max_field=MAX_FIELD_BYTES)

    def _large(self, stream: BinaryIO, wanted: frozenset[str]) -> duckdb_rows.LargeCsv | None:
        """A very large file for DuckDB; None where our own reader takes it, which gives the same rows."""
        path = self._context.path
        if path is None or path.suffix != ".csv" or not duckdb_rows.installed():
            return None
        if stream.seek(0, 2) < LARGE_CSV_BYTES:
            return None
        stream.seek(-1, 2)
        if stream.read(1) != b"\n":
            return None  # DuckDB would take a line that is still being written for a whole one
        header = Table(stream, wanted)
        for _ in header:
            break
        if header.doubled or not header.places:
            return None
        return duckdb_rows.LargeCsv(path, header.places, header.width, max_field=MAX_FIELD_BYTES)

    def _gap(self, what: str) -> ev.Gap:
        key = self._ids.key("mapping/gap", f"{what}\0{self._context.file_key.hex()}\0{self._start}")
        return ev.Gap(
            source=SOURCE, recorder=self._recorder, reader=self._reader, key=key, conv=self._conv, ts=self._ts,
            seq=self._seq, what=what,
        )  # fmt: skip

    def _row(self, row: Row) -> Iterator[AnyEvent]:
        identity = self._id(row, "person")
        if identity and self._ids.excluded(f"{SOURCE}:{identity}"):
            self._context.rows.read -= 1
            return
        ts = self._time(row)
        if ts is None:
            self._facts(row, identity)
            yield self._gap("time_ambiguous")
            return
        head = self._head(row, identity, ts)
        event = self._event(row, head)
        self._facts(row, identity)
        if event is None:
            return
        self._conv, self._ts = head["conv"], ts
        yield self._gap("person_unknown") if head["person"] is None else event

    # --- fields -------------------------------------------------------------------------------------------------------

    def _id(self, row: Row, field: str) -> str:
        found = row.get(field, "")
        if len(found.encode("utf-8", "surrogatepass")) > _MAX_ID_BYTES:
            raise Rejected("bad_value")
        return found

    def _needed(self, row: Row, field: str) -> str:
        found = self._id(row, field)
        if not found:
            raise Rejected("missing_field")
        return found

    def _word(self, row: Row, field: str, default: str | None = None) -> str:
        """The class of a row; `default` stands for a column that is not mapped, or a value that names nothing."""
        if field in self._mapped.maps:
            raw = row.get(field)
            found = self._mapped.word(field, raw)
            if found is not None:
                return found
            if default is None:
                raise Rejected("bad_value" if raw else "missing_field")
        return default or ""

    def _time(self, row: Row) -> int | None:
        """µs UTC; None for a local time that happened twice or never.

        Raises:
            Rejected: no time, or no plausible one.
        """
        raw, now = row.get("ts"), self._context.now
        if not raw:
            raise Rejected("missing_field")
        unit, zone = self._mapped.unit, self._mapped.zone
        if unit is not None:
            ts = _whole(raw, unit)
            found = ts if plausible(ts, now) else None
        else:
            local = _naive(raw) if zone is not None else None
            if local is None:
                found = micros(raw, now)
            else:
                first, second = (local.replace(tzinfo=zone, fold=fold).utcoffset() for fold in (0, 1))
                if first != second:
                    return None
                found = micros(local.replace(tzinfo=zone).astimezone(UTC).isoformat(), now)
        if found is None:
            raise Rejected("bad_time")
        return found

    def _head(self, row: Row, identity: str, ts: int) -> Fields:
        context, ids = self._context, self._ids
        if "person" in self._mapped.columns:
            person = ids.person(f"{SOURCE}:{identity}" if identity else _NOBODY)
        else:
            person = context.machine_person
        conv, project = self._id(row, "conv"), self._id(row, "project")
        client = self._word(row, "client", "other")
        mode, evidence = self._word(row, "mode", "unknown"), "mode"
        if mode == "unknown":
            names = [identity] if identity else []
            listed = context.key_mode([*names, SOURCE]) if context.key_mode is not None else None
            mode, evidence = listed if listed is not None else ("unknown", "")
        kind = self._word(row, "kind", "") or None
        if kind is None and context.kind_rule is not None:
            kind = context.kind_rule(
                {"source": SOURCE, "recorder": self._recorder, "client": client, "log_dir": context.log_dir}
            )
        return Fields(
            source=SOURCE,
            recorder=self._recorder,
            reader=self._reader,
            key=self._key(row, ts),
            person=person,
            conv=ids.conv(self._mapped.joins or SOURCE, conv) if conv else None,
            project=ids.project(SOURCE, project) if project else None,
            thread=ev.MAIN,
            ts=ts,
            seq=self._seq,
            mode=mode,
            mode_evidence=evidence,
            client=client,
            kind_hint=kind,
            parent=None,
            row=None,
        )

    def _key(self, row: Row, ts: int) -> bytes:
        """The row's own key, else every value of the row: the same row in two exports is one event."""
        own = self._id(row, "key")
        if own:
            return self._ids.key(f"mapping/{self._mapped.name}/key", own)
        parts = [f"{field}\0{row[field]}" for field in sorted(row) if field != "ts"]
        return self._ids.key(f"mapping/{self._mapped.name}/row", "\0".join((str(ts), *parts)))

    def _facts(self, row: Row, identity: str) -> None:
        facts, mapped = self._context.facts, self._mapped
        facts.any_row = True
        if mapped.event in ("call", "attempt_error"):
            facts.any_call_row = True
            facts.failures_hidden = facts.failures_hidden or (mapped.event == "call" and "status" not in mapped.maps)
            facts.saw_attempts(self._attempts)
        facts.any_vote_row = facts.any_vote_row or mapped.event == "vote"
        if "person" in mapped.columns:
            facts.saw_person(self._ids.key("mapping/person", identity) if identity else None)
        if "conv" in mapped.columns:
            conv = row.get("conv")
            facts.saw_conversation(self._ids.conv(mapped.joins or SOURCE, conv) if conv else None)

    # --- events -------------------------------------------------------------------------------------------------------

    def _event(self, row: Row, head: Fields) -> AnyEvent | None:
        match self._mapped.event:
            case "call":
                return self._call(row, head)
            case "attempt_error":
                name, family = self._word(row, "error_class"), self._family(row.get("family"))
                final = self._word(row, "final", "false") == "true"
                return self._attempt(row, head, name, family, final=final)
            case "vote":
                return self._vote(row, head)
            case _:
                self._needed(row, "conv")
                return ev.Outcome(**head, value=self._word(row, "value"), evidence=SOURCE)

    def _family(self, name: str | None) -> str:
        return self._context.catalogue.resolve(name or None, self._context.aliases)

    def _trace(self, row: Row) -> bytes | None:
        conv = row.get("conv")
        return self._ids.key("mapping/trace", conv) if conv else None

    def _request(self, row: Row) -> bytes | None:
        """What holds the attempts of one request together: its own id, else the conversation and the asked model."""
        own, conv = self._id(row, "request"), row.get("conv")
        if own:
            return self._ids.key("mapping/request", own)
        asked = row.get("requested") or row.get("served")
        return self._ids.key("mapping/group", f"{conv}\0{asked}") if conv and asked else None

    def _attempt(self, row: Row, head: Fields, name: str, family: str, *, final: bool = False) -> ev.AttemptError:
        request = self._request(row) or head["key"]
        # One key may stand for several attempts and the answer, each with its own time.
        head["key"] = self._ids.key("mapping/attempt", f"{head['key'].hex()}\0{head['ts']}")
        return ev.AttemptError(
            **head, turn=self._trace(row), error_class=name, family=family, request=request, attempt=1, final=final
        )

    def _call(self, row: Row, head: Fields) -> AnyEvent | None:
        status = self._word(row, "status") if "status" in self._mapped.maps else "ok"
        served, requested = row.get("served"), row.get("requested")
        if status not in ev.CALL_STATUS or status == "error":
            raw = row.get("status")
            name = error_class(raw, (raw,)) if status == "error" else status
            return self._attempt(row, head, name, self._family(requested or served))
        if not served and status == "ok":
            raise Rejected("missing_field")
        family = self._family(served)
        if family == SYNTHETIC:
            return None
        route = self._word(row, "route", "unknown") if "route" in self._mapped.maps else "direct"
        fallback = route == "fallback" and not row.get("request")
        head["row"] = head["key"]
        head["parent"] = None if fallback else self._request(row) or head["key"]
        return ev.Call(
            **head,
            turn=self._trace(row),
            served=family,
            requested=self._family(requested) if requested else None,
            status=status,
            route=route,
        )

    def _vote(self, row: Row, head: Fields) -> ev.Vote:
        a, b, item = (self._needed(row, field) for field in ("a", "b", "item"))
        declared = self._mapped.declares.get("blind_quality", "no")
        told = self._word(row, "blind", "no" if "blind" in self._mapped.maps else declared)
        judge = self._word(row, "judge", "llm" if "judge" in self._mapped.maps else "person")
        if judge == "person":
            head["mode"], head["mode_evidence"] = "interactive", "vote"
        head["key"] = self._ids.key("mapping/vote", f"{self._mapped.name}\0{item}")
        return ev.Vote(
            **head,
            a=self._family(a),
            b=self._family(b),
            winner=self._word(row, "winner"),
            blind=min(told, declared, key=_STRENGTH.index),
            item=self._ids.item(SOURCE, item),
            judge=judge,
        )


def _whole(raw: str, unit: float) -> int | None:
    try:
        value = float(raw)
    except ValueError:
        return None
    return round(value * unit) if 0 < value < 1e20 else None


def _naive(raw: str) -> datetime | None:
    """A time that names no zone; None for any other text."""
    try:
        moment = datetime.fromisoformat(raw.strip())
    except ValueError:
        return None
    return moment if moment.tzinfo is None and not raw.strip().isdigit() else None
