# SPDX-License-Identifier: Apache-2.0
"""One case of damage to a log: drawn by its number, read, and judged.

Rules kept here:
* a case is its reader and its number: the same number is the same damage, wherever and whenever it runs;
* a reader raises nothing but the project's own errors, and only for a mapping that is wrong;
* rows add up: rejected by reason, unknown and foreign ones are never more than were read, a line is a row, and each
  rejected row leaves one gap;
* rows that are not damaged give the events that they give without the damaged ones between them;
* no text of a log is in an event, a count or a fact.
"""

from __future__ import annotations

import functools
import gzip
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from mutations import Sown, mutated_file, mutated_gzip, mutated_row, paired, sown
from reader_forms import BY_LINE, CSV, FORMS, Form, framed
from reader_logs import CANARY, STEPS
from windvane_client.events import AnyEvent, Gap
from windvane_client.readers import READERS, ReadContext, mapping
from windvane_client.readers.mapping_file import parse_mapping
from windvane_client.readers.values import LINES as IN_LINES
from windvane_client.readers.values import framing
from windvane_privacy.errors import ConfigurationError

SOURCES = (
    "claude_code", "codex", "cline", "litellm", "open_webui", "otlp", "canonical", "mapping",
    "langfuse", "gemini_cli", "collected",
)  # fmt: skip
_APART = 8
"""Between the seeds of two cases of a source. It stays: with the number of sources every case would be another one."""
FIXTURES = Path(__file__).parent / "client" / "fixtures"
_MOST_BYTES, _MOST_ROWS, _FILES = 1500, 4, 60
_CANARY = CANARY.encode()
_SAMPLES = {"otlp claude_code": "claude_code_otel", "otlp spans": "otel_genai", "otlp/gen_ai": "otel_genai"}
"""Folders of recorded samples, where they are named otherwise than the source."""
_WITHOUT_SAMPLES = frozenset({"langfuse", "langfuse array", "langfuse page"})
"""Forms that no recorded sample has."""
_ALWAYS_BY_LINE = frozenset({"claude_code", "codex", "canonical", "collected"})
"""Readers for which a line is a row, whatever is in it."""
_DOCUMENTS_TOO = frozenset({"litellm", "open_webui", "langfuse", "gemini_cli"})
"""Readers that look at the first lines to tell lines from a document."""


@dataclass(frozen=True, slots=True)
class Seed:
    """A small sound file, and what it gives."""

    form: Form
    rows: tuple[Sown, ...]
    events: tuple[bytes, ...]
    read: int
    refused: int


def seeds(source: str, samples: Path | None) -> list[Seed]:
    """Small sound files of a source: built here, cut from the fixtures, and from recorded samples where they are."""
    rng, found = Random(source), []
    steps = [step for step in STEPS if step != "broken"]
    for form in FORMS:
        if form.source.partition("/")[0] != source:
            continue
        for _ in range(_FILES):
            made = form.rows(rng.choices(steps, k=rng.randrange(2, _MOST_ROWS + 1)))
            found.append(_seed(form, [json.dumps(row).encode() if isinstance(row, dict) else row for row in made]))
        files = [path for path in _files(form) if samples is not None or path.is_relative_to(FIXTURES)]
        if samples is not None and form.name not in _WITHOUT_SAMPLES:
            files += sorted((samples / _SAMPLES.get(form.name, form.source)).glob("*")) if form.frame != CSV else []
        rows = [row for path in files for row in _rows_of(form, path)]
        windows = [rows[at : at + _MOST_ROWS] for at in range(0, len(rows), _MOST_ROWS)]
        found += [_seed(form, window) for window in windows[:_FILES]]
    return found


def _files(form: Form) -> list[Path]:
    own = {"claude_code": "claude_code_S*", "codex": "codex_S*/*", "canonical": "canonical_S*",
           "cline": "cline_S*/*/*/*.json", "otlp codex": "otlp_codex*", "otlp gemini_cli": "otlp_gemini*",
           "open_webui votes": "open_webui_S*", "open_webui chats": "open_webui_chats*",
           "langfuse traces": "langfuse_S*", "gemini_cli": "gemini_cli_S*/**/*.jsonl",
           "gemini_cli document": "gemini_cli_S*/**/*.json"}  # fmt: skip
    return sorted(FIXTURES.glob(own[form.name])) if form.name in own else []


def _rows_of(form: Form, path: Path) -> list[bytes]:
    """Rows of at most a few kB that are JSON objects; the last ones of a file too, not only its beginning."""
    if path.suffix not in (".json", ".jsonl") or path.name.endswith(".expected.json"):
        return []
    text, at, found = path.read_text("utf-8", errors="replace"), 0, []
    decoder = json.JSONDecoder()
    lines = text.splitlines() if path.suffix == ".jsonl" else []
    if not lines:
        while at < len(text):
            value, at = decoder.raw_decode(text, at)
            at += len(text[at:]) - len(text[at:].lstrip())
            found.append(value)
        if len(found) == 1:
            (value,) = found
            found = value if isinstance(value, list) else value.get("messages", value.get("items", [value]))
        lines = [json.dumps(value) for value in found]
    kept = [line.encode() for line in lines if len(line) <= _MOST_BYTES and line[:1] == "{"]
    return kept[:100] + kept[-100:]


def _seed(form: Form, rows: Sequence[object]) -> Seed:
    raw = [row for row in rows if isinstance(row, bytes)]
    events, context = form.read(framed(form.frame, raw), final=True)
    refused = context.rows.rejected + context.rows.unknown + context.rows.foreign
    return Seed(form, tuple(map(sown, raw)), tuple(bare(events)), context.rows.read, refused)


def bare(events: Sequence[AnyEvent]) -> list[bytes]:
    """Events without their place in the reading order, packed; gaps are left out."""
    found = []
    for event in events:
        if type(event) is not Gap:
            event.seq = 0
            if event.ts is None:
                event.key = b""  # a row without a time is known by its place in the file, which damage moves
            found.append(_PACK(event))
    return found


_PACK = msgspec.msgpack.Encoder().encode


class Fuzzer:
    """Cases of one source."""

    def __init__(self, source: str, samples: Path | None = None) -> None:
        self.source = source
        self.seeds = seeds(source, samples)
        self.strict = 0
        """Cases in which every damaged row was refused, so that all events had to be the good ones."""
        self._rng = Random()
        # A pure function of a few files that each case reads again; it would take most of the time.
        mapping.parse_mapping = functools.lru_cache(maxsize=64)(parse_mapping)
        self._index = SOURCES.index(source)

    def problem(self, number: int) -> str | None:
        """What is wrong with case `number`; None where nothing is."""
        rng = self._rng
        rng.seed(number * _APART + self._index)
        seed = self.seeds[int(rng.random() * len(self.seeds))]
        what = rng.random()
        try:
            if what < 0.7:
                return self._between(rng, seed)
            data = framed(seed.form.frame, [row.raw for row in seed.rows])
            if what < 0.95:
                return self._damaged(rng, seed.form, mutated_file(rng, data), packed=False)
            return self._damaged(rng, seed.form, mutated_gzip(rng, data), packed=True)
        except Exception as error:
            trace, places = error.__traceback__, []
            while trace is not None:
                places.append(f"{trace.tb_frame.f_code.co_name}:{trace.tb_lineno}")
                trace = trace.tb_next
            return f"raised {type(error).__name__} in {' > '.join(places[-4:])}"

    def _between(self, rng: Random, seed: Seed) -> str | None:
        """Damaged rows between good ones."""
        form, rows = seed.form, [row.raw for row in seed.rows]
        first = 1 if form.frame == CSV else 0
        count = 1 if rng.random() < 0.6 else 2 + int(rng.random() * 2)
        other = self.seeds[int(rng.random() * len(self.seeds))].rows
        for _ in range(count):
            good = seed.rows[first + int(rng.random() * (len(seed.rows) - first))]
            row = mutated_row(rng, good, [*seed.rows, *other], sound=form.frame not in (*BY_LINE, CSV))
            at = first + int(rng.random() * (len(rows) - first + 1))
            rows.insert(at, paired(row) if form.frame == CSV else row)
        events, context, wrong = self._read(rng, form, framed(form.frame, rows))
        if wrong is not None:
            return wrong
        counts = context.rows
        refused = counts.rejected + counts.unknown + counts.foreign - seed.refused
        found = bare(events)
        if not form.nested and counts.read - seed.read == refused:
            self.strict += 1
            return None if found == list(seed.events) else "a good row gave other events beside refused ones"
        if form.stateless and not set(seed.events) <= set(found):
            return "a good row was lost"
        return None

    def _damaged(self, rng: Random, form: Form, data: bytes, *, packed: bool) -> str | None:
        return self._read(rng, form, data, packed=packed, beside=rng.random() < 0.1)[2]

    def _read(
        self, rng: Random, form: Form, data: bytes, *, packed: bool = False, beside: bool = False
    ) -> tuple[list[AnyEvent], ReadContext, str | None]:
        context = form.context(final=True)
        if form.companion and beside:
            context.companion = mutated_file(rng, form.companion)
        stream: Any = io.BytesIO(data)
        if packed:
            stream = io.BufferedReader(gzip.GzipFile(fileobj=stream))
        try:
            events = list(READERS[form.source].read(stream, context))
        except ConfigurationError:
            if form.source == "mapping" and context.companion != form.companion:
                return [], context, None
            raise
        wrong = self._adds_up(form, data, events, context, packed=packed or beside)
        if wrong is None and not packed and not beside and form.frame in BY_LINE and rng.random() < 0.1:
            wrong = self._in_two_runs(rng, form, data, events, context)
        return events, context, wrong

    @staticmethod
    def _adds_up(form: Form, data: bytes, events: list[AnyEvent], context: ReadContext, *, packed: bool) -> str | None:
        rows = context.rows
        if rows.rejected != sum(rows.reasons.values()) or rows.rejected + rows.unknown + rows.foreign > rows.read:
            return f"rows do not add up: {rows}"
        if sum(type(event) is Gap and event.what == "rows_rejected" for event in events) != rows.rejected:
            return f"not one gap for each rejected row: {rows}"
        if _CANARY in b"".join(map(_PACK, events)) or CANARY in repr(rows) + repr(context.facts):
            return "text of the log is in what was read"
        if packed:
            return None
        if context.offset > len(data):
            return f"ends at {context.offset} of {len(data)}"
        by_line = (
            form.frame in BY_LINE
            and not form.nested
            and (
                form.source in (*_ALWAYS_BY_LINE, "mapping")
                or (not form.source.startswith("otlp") and framing(io.BytesIO(data)) == IN_LINES)
            )
        )
        if by_line and rows.read != sum(
            not line.isspace() for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n") if line
        ):
            return f"a line is no row: {rows}"
        if by_line and context.offset != len(data):
            return f"ends at {context.offset} of {len(data)}"
        return None

    @staticmethod
    def _in_two_runs(rng: Random, form: Form, data: bytes, events: list[AnyEvent], whole: ReadContext) -> str | None:
        """Read while it grows: the same counts, and the same events where a reader rebuilds what it knew."""
        first, half = form.context(), data[: int(rng.random() * len(data))]
        if form.source in _DOCUMENTS_TOO and {framing(io.BytesIO(one)) for one in (half, data)} != {IN_LINES}:
            return None  # a document is read anew as a whole, and counted anew
        found = list(READERS[form.source].read(io.BytesIO(half), first))
        second = form.context(final=True, offset=first.offset)
        found += READERS[form.source].read(io.BytesIO(data), second)
        counts = [
            sum(getattr(one.rows, name) for one in (first, second))
            for name in ("read", "rejected", "unknown", "foreign")
        ]
        if counts != [getattr(whole.rows, name) for name in ("read", "rejected", "unknown", "foreign")]:
            return f"two runs count {counts}, one counts {whole.rows}"
        if form.name in ("otlp spans", "otlp/gen_ai"):
            return None  # a span may name its trace's conversation later; without a mode none of them is an outcome
        return None if set(bare(found)) == set(bare(events)) else "two runs give other events than one"
