# SPDX-License-Identifier: Apache-2.0
"""LiteLLM: rows of the table LiteLLM_SpendLogs (JSON, JSONL, CSV) and the standard payloads of its callbacks (JSONL).

Rules kept here:
* one row is one attempt or one answer; rows are put together into requests later (`windvane_client.gateways`), so that
  no order and no split into files matters;
* an answer that came by a fallback is marked as such: it is nobody's choice;
* a session id is only a hint, since the gateway makes one up where none is given;
* the gateway's own work (health checks, cache hits, silent experiments, internal calls) is no call of a person;
* a person is the end user, else the user, else the key; each only where people.toml names it;
* an unknown call type is counted before any field is checked; a row without time, model or readable status is rejected;
* a table or an array is one document: changed, it is read anew as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from windvane_client.events import AnyEvent, AttemptError, Call, Gap
from windvane_client.readers import litellm_rows as rows
from windvane_client.readers.csv_rows import Table
from windvane_client.readers.failures import error_class
from windvane_client.readers.files import find_logs
from windvane_client.readers.header import Fields
from windvane_client.readers.lines import UNREADABLE, LineDecoder, Lines, Rejected, reject
from windvane_client.readers.protocol import NO_ATTEMPTS, ReadContext
from windvane_client.readers.times import micros
from windvane_client.readers.values import DAMAGED, LINES, TABLE, Values, embedded, framing
from windvane_privacy.catalogue import KINDS, OTHER, SYNTHETIC, UNKNOWN

SOURCE: Final = "litellm"
VERSION: Final = "1.0.0"
SUFFIXES: Final = (".jsonl", ".jsonl.gz", ".json", ".json.gz", ".csv", ".csv.gz")
_READER: Final = f"{SOURCE}/{VERSION}"
_MAX_ID_BYTES: Final = 256
_RESERVED: Final = "windvane:"
_OWN_NAMES: Final = ("litellm-internal", "litellm_internal")
_NOBODY: Final = "litellm:nobody"
_ROW = LineDecoder(rows.Row)
_TYPE = LineDecoder(rows.TypeOnly)
_METADATA = LineDecoder(rows.Metadata)
_TAGS = msgspec.json.Decoder(list[str])


class LiteLLMReader:
    """Reader of the source `litellm`."""

    source = SOURCE
    version = VERSION

    def discover(self, roots: Sequence[Path]) -> Iterator[Path]:
        """JSON, JSONL and CSV files under the roots."""
        return find_logs(roots, SUFFIXES)

    def read(self, stream: BinaryIO, context: ReadContext) -> Iterator[AnyEvent]:
        """Events of one file; see `windvane_client.readers.protocol.Reader`."""
        return _File(context).events(stream)


class _File:
    def __init__(self, context: ReadContext) -> None:
        self._context = context
        self._ids = context.ids
        self._seq = 0
        self._start = 0
        self._conv: bytes | None = None
        self._person: bytes | None = None
        self._ts: int | None = None

    def events(self, stream: BinaryIO) -> Iterator[AnyEvent]:
        context = self._context
        frame = framing(stream)
        if frame == DAMAGED:
            yield from self._unreadable()
            return
        table = Table(stream, rows.CSV_COLUMNS, final=context.final) if frame == TABLE else None
        source: Table | Lines | Values
        if table is not None:
            source = table
        elif frame == LINES:
            source = Lines(stream, start=context.offset, final=context.final)
            self._start = context.offset
        else:
            source = Values(stream, final=context.final)
        for row, end in source:
            context.rows.read += 1
            self._seq += 1
            try:
                if row is None:
                    raise Rejected(source.problem)
                yield from self._row(row if table is None else self._from_table(table, row))
            except Rejected as error:
                cut = source.cut and (table is not None or error.reason == "not_json")
                reason = "truncated" if cut else error.reason
                reject(context.rows, reason)
                yield self._gap("rows_rejected")
            self._start = end
        context.offset = max(source.offset, context.offset)

    @staticmethod
    def _from_table(table: Table, row: bytes) -> bytes:
        if not table.names:
            raise Rejected("missing_field")
        cut: dict[str, object] = dict(table.columns(row))
        for name in ("metadata", "request_tags"):
            if name in cut:
                cut[name] = msgspec.Raw(_json_of(str(cut[name])))
        return msgspec.json.encode(cut)

    def _unreadable(self) -> Iterator[AnyEvent]:
        self._context.rows.read += 1
        reject(self._context.rows, UNREADABLE)
        yield self._gap("rows_rejected")

    def _gap(self, what: str) -> Gap:
        key = self._ids.key("litellm/gap", f"{what}\0{self._context.file_key.hex()}\0{self._start}")
        return Gap(
            source=SOURCE, recorder=SOURCE, reader=_READER, key=key, conv=self._conv, ts=self._ts, seq=self._seq,
            what=what,
        )  # fmt: skip

    def _row(self, raw: bytes) -> Iterator[AnyEvent]:
        context = self._context
        row = self._decoded(raw)
        if row is None:
            return
        if row.call_type and row.call_type not in rows.ANSWERS:
            context.rows.unknown += row.call_type not in rows.OTHERS
            context.facts.any_row = context.facts.any_row or row.call_type in rows.OTHERS
            return
        if row.startTime is None or not row.model:
            raise Rejected("missing_field")
        start = micros(row.startTime, context.now)
        ts = micros(row.endTime, context.now) if row.endTime not in (None, "") else start
        if start is None or ts is None:
            raise Rejected("bad_time")
        meta = self._metadata(row)
        failed = self._failed(row, meta)
        tags = self._tags(row)
        identities, keys = self._identities(row, meta)
        if any(self._ids.excluded(one) for one in identities):
            context.rows.read -= 1
            return
        self._facts(row, meta, identities)
        if self._own_work(row, meta, tags, keys):
            return
        head = self._head(row, meta, (start, ts), identities, keys, tags)
        self._conv, self._ts = head["conv"], ts
        if head["person"] is None:
            yield self._gap("person_unknown")
            return
        yield from self._events(row, meta, head, start, failed=failed)

    def _decoded(self, raw: bytes) -> rows.Row | None:
        """The row; None where its call type is unknown, whatever else is wrong with it."""
        try:
            return _ROW.decode(raw)
        except Rejected as error:
            if error.reason != "wrong_type":
                raise
        kind = _TYPE.decode(raw).call_type
        if not kind or kind in rows.ANSWERS or kind in rows.OTHERS:
            raise Rejected("wrong_type")
        self._context.rows.unknown += 1
        return None

    @staticmethod
    def _metadata(row: rows.Row) -> rows.Metadata:
        inner = embedded(bytes(row.metadata))
        return _METADATA.decode(inner) if inner not in (b"", b"null") else rows.Metadata()

    @staticmethod
    def _tags(row: rows.Row) -> list[str]:
        inner = embedded(bytes(row.request_tags))
        if inner in (b"", b"null"):
            return []
        try:
            return _TAGS.decode(inner)
        except (msgspec.DecodeError, RecursionError):
            pass
        raise Rejected("wrong_type")

    @staticmethod
    def _failed(row: rows.Row, meta: rows.Metadata) -> bool:
        status = row.status or meta.status
        if not status:
            # Old rows have no status: the table then held answers only, unless an error is told.
            error = row.error_information or meta.error_information
            return error is not None and bool(error.error_code or error.error_class)
        if status not in (rows.FAILED, rows.SUCCEEDED):
            raise Rejected("bad_value")
        return status == rows.FAILED

    def _identities(self, row: rows.Row, meta: rows.Metadata) -> tuple[list[str], list[str]]:
        """Identities in the order in which they count, and the bare names for the organisation's lists."""
        parameters = row.model_parameters
        users = [_given(row.end_user) or meta.user_api_key_end_user_id, parameters.user if parameters else None,
                 _given(row.user) or meta.user_api_key_user_id]  # fmt: skip
        hashes = [row.api_key or meta.user_api_key_hash or meta.user_api_key]
        found = [f"litellm:user:{one}" for one in users if one] + [f"litellm:key:{one}" for one in hashes if one]
        names = [one for one in (*users, *hashes, meta.user_api_key_alias) if one]
        if any(len(one.encode("utf-8", "surrogatepass")) > _MAX_ID_BYTES for one in names):
            raise Rejected("bad_value")
        return found, names

    def _facts(self, row: rows.Row, meta: rows.Metadata, identities: list[str]) -> None:
        facts = self._context.facts
        facts.any_row = facts.any_call_row = True
        facts.saw_attempts(_writes_attempts(row, meta))
        if row.trace_id is not msgspec.UNSET or row.session_id is not msgspec.UNSET:
            trace = _given(row.session_id) or _given(row.trace_id)
            facts.saw_conversation(self._ids.conv(SOURCE, trace) if trace else None)
        facts.saw_person(self._ids.key("litellm/person", identities[0]) if identities else None)

    def _own_work(self, row: rows.Row, meta: rows.Metadata, tags: list[str], keys: list[str]) -> bool:
        """True for rows that no person's request made, and for programs whose own logs are collected."""
        agent = row.user_agent or meta.user_agent
        skips = self._context.skip_agent
        return (
            bool(meta.internal_call_origin)
            or rows.flag(row.cache_hit)
            or rows.flag(row.is_silent_experiment)
            or rows.flag(meta.is_silent_experiment)
            or any(one.startswith(_OWN_NAMES) for one in (*tags, *keys))
            or (bool(agent) and skips is not None and skips(agent or ""))
        )

    def _head(
        self,
        row: rows.Row,
        meta: rows.Metadata,
        times: tuple[int, int],
        identities: list[str],
        keys: list[str],
        tags: list[str],
    ) -> Fields:
        context, ids = self._context, self._ids
        person = next((p for p in map(ids.person, identities or [_NOBODY]) if p is not None), None)
        trace = _given(row.session_id) or _given(row.trace_id)
        team = row.team_id or meta.user_api_key_team_id
        listed = context.key_mode([*keys, SOURCE]) if context.key_mode is not None else None
        natural = row.litellm_call_id or row.request_id or row.id or f"{times[0]}\0{row.model}\0{keys}"
        if any(len(one.encode("utf-8", "surrogatepass")) > 4 * _MAX_ID_BYTES for one in (natural, trace, team) if one):
            raise Rejected("bad_value")
        return Fields(
            source=SOURCE,
            recorder=SOURCE,
            reader=_READER if _writes_attempts(row, meta) else _READER + NO_ATTEMPTS,
            key=ids.key("litellm/call", natural),
            person=person,
            conv=ids.conv(SOURCE, trace) if trace else None,
            project=ids.project(SOURCE, team) if team else None,
            thread="main",
            ts=times[1],
            seq=self._seq,
            mode=listed[0] if listed is not None else UNKNOWN,
            mode_evidence=listed[1] if listed is not None else "",
            client=SOURCE,
            kind_hint=self._kind(tags, team or "", meta.user_api_key_alias or ""),
            parent=None,
            row=None,
        )

    def _kind(self, tags: list[str], team: str, alias: str) -> str | None:
        rule = self._context.kind_rule
        if rule is not None:
            base = {"source": SOURCE, "recorder": SOURCE, "client": SOURCE, "team": team, "key_alias": alias,
                    "log_dir": self._context.log_dir}  # fmt: skip
            for tag in tags or [""]:
                found = rule({**base, "tag": tag})
                if found is not None:
                    return found
        reserved = (tag.removeprefix(_RESERVED) for tag in tags if tag.startswith(_RESERVED))
        return next((kind for kind in reserved if kind in KINDS), None)

    def _events(
        self, row: rows.Row, meta: rows.Metadata, head: Fields, start: int, *, failed: bool
    ) -> Iterator[AnyEvent]:
        trace = _given(row.trace_id) or _given(row.session_id)
        turn = self._ids.key("litellm/trace", trace) if trace else None
        asked, served = self._asked(row), self._family(row.model)
        if served == SYNTHETIC:
            return
        group = self._group(trace, row.model_group)
        base = head["key"]
        if failed:
            # One call id may stand for several attempts, each with its own start.
            head["key"] = self._ids.key("litellm/attempt", f"{base.hex()}\0{start}")
            yield AttemptError(
                **head,
                turn=turn,
                error_class=_class(row, meta),
                family=asked or served,
                request=group or base,
                attempt=1,
            )
            return
        fallback = (_count(row, meta, "attempted_fallbacks") or 0) > 0
        if not fallback and (_count(row, meta, "attempted_retries") or 0) > 0:
            # The gateway tries again after transient faults only; which one it was stands in no row.
            retried = Fields(**{**head, "key": self._ids.key("litellm/retried", base.hex()), "ts": start})
            yield AttemptError(
                **retried, turn=turn, error_class="5xx", family=asked or served, request=group or base, attempt=1
            )
        head["row"] = base
        head["parent"] = self._group(trace, meta.original_model_group) if fallback else group or base
        yield Call(**head, turn=turn, served=served, requested=None if fallback else asked,
                   route="fallback" if fallback else "direct")  # fmt: skip

    def _group(self, trace: str | None, name: str | None) -> bytes | None:
        return self._ids.key("litellm/group", f"{trace}\0{name}") if trace and name else None

    def _family(self, name: str | None) -> str:
        return self._context.catalogue.resolve(name or None, self._context.aliases)

    def _asked(self, row: rows.Row) -> str | None:
        """Family of the asked model group, where its name or an alias tells one."""
        found = self._family(row.model_group)
        return None if found in (OTHER, UNKNOWN, SYNTHETIC) else found


def _given(raw: str | msgspec.UnsetType | None) -> str | None:
    return raw or None if isinstance(raw, str) else None


def _json_of(text: str) -> bytes:
    """A column that holds JSON; a text that is none stays a JSON string, which its decoder then rejects."""
    return text.encode() if text.lstrip()[:1] in ("{", "[") else msgspec.json.encode(text)


def _count(row: rows.Row, meta: rows.Metadata, name: str) -> int | None:
    headers = row.hidden_params.additional_headers if row.hidden_params is not None else None
    found = rows.number(getattr(meta, name))
    return found if found is not None or headers is None else rows.number(getattr(headers, name))


def _writes_attempts(row: rows.Row, meta: rows.Metadata) -> bool:
    """Payloads come once an attempt; the table tells retries only from the version on that counts them."""
    if row.request_id is None and (row.litellm_call_id or row.hidden_params is not None):
        return True
    return rows.number(meta.attempted_retries) is not None


def _class(row: rows.Row, meta: rows.Metadata) -> str:
    error = row.error_information or meta.error_information or rows.ErrorInformation()
    if (error.error_rate_limit_category or "").startswith(rows.OWN_LIMIT):
        return "rate_own"
    named = rows.ROUTED_CLASSES.get((error.error_class or "").rpartition(".")[2].casefold())
    code = "aborted" if str(error.error_code) == "499" else error.error_code
    return error_class(None if code == "aborted" else code, (code,), named)
