# SPDX-License-Identifier: Apache-2.0
"""However a log lies in files, and whenever it is read, its outcomes are the same.

What may be parted is what the format parts. Rows that carry all that they mean (canonical, gateway tables, mapped
exports, votes, chats, collected rows) lie in any files in any order. A transcript, the telemetry of a session and a
rollout link their rows, so a session stays in its order in one file, as its program writes it. A task of Cline is one
JSON document: the document is the piece. An export is one document too, but its elements (votes, chats, traces) may lie
in several exports.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from langfuse_logs import RULES as SCORES
from reader_forms import ARRAY, CALLS, CSV, LINES, PAGE, UNDER_KEY, VOTES, framed
from reader_logs import csv_line
from reader_support import KEY, NOW, context
from windvane_client.catalogue_builtin import builtin_catalogue
from windvane_client.outcomes_table import build_outcomes
from windvane_client.people import KnownPeople
from windvane_client.readers import READERS
from windvane_client.readers.collected_rows import line
from windvane_client.rules import Rules, parse_rules
from windvane_client.store import EventStore
from windvane_privacy.catalogue import OTHER, UNKNOWN

FIXTURES = Path(__file__).parent / "fixtures"
CATALOGUE = builtin_catalogue()
PEOPLE_WORK = parse_rules('[modes]\ninteractive_keys = ["desk", "open_webui", "u1", "gemini_cli"]\n')
_NAME = re.compile(rb"(?<![\w/.-])(?:anthropic/|openai/)?(?:claude|gpt|gemini)-[\w.-]*\w")


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows that stay together. `log_dir`, `name`: of the file, where it lies in a folder or has a name of its own."""

    rows: tuple[bytes, ...]
    log_dir: str = "-home-project"
    name: str = "s"


@dataclass(frozen=True, slots=True)
class Corpus:
    """A log in pieces. `alone`: each piece is a file by itself. `head`: what stands before the rows of every file."""

    source: str
    frame: str
    pieces: tuple[Piece, ...]
    alone: bool = False
    head: tuple[bytes, ...] = ()
    companion: bytes = b""
    rules: Rules = field(default_factory=Rules)
    collected: KnownPeople | None = None

    def files(self, parts: Sequence[Sequence[Piece]]) -> list[tuple[bytes, Piece]]:
        """Bytes of each file, and one of its pieces."""
        return [
            (framed(self.frame, [*self.head, *(row for piece in part for row in piece.rows)]), part[0])
            for part in parts
            if part
        ]


def grouped(rows: Iterable[bytes], name: Callable[[Any], Any]) -> tuple[Piece, ...]:
    found: dict[Any, list[bytes]] = {}
    for row in rows:
        found.setdefault(name(json.loads(row)), []).append(row)
    return tuple(Piece(tuple(one)) for one in found.values())


def single(rows: Iterable[object]) -> tuple[Piece, ...]:
    return tuple(Piece((row if isinstance(row, bytes) else json.dumps(row).encode(),)) for row in rows)


def attributes(record: dict[str, Any]) -> dict[str, Any]:
    return {pair["key"]: pair["value"] for pair in record["attributes"]}


def conversation(request: dict[str, Any]) -> str:
    record = request["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0]
    return json.dumps(attributes(record)["conversation.id"])


def of_a_collector() -> tuple[bytes, ...]:
    """What a collector writes of the transcripts, each event once."""
    made = context("claude_code", final=True)
    return tuple(
        line(one)[:-1] for one in READERS["claude_code"].read(io.BytesIO((FIXTURES / CLAUDE).read_bytes()), made)
    )


def values_of(text: str) -> list[bytes]:
    decoder, at, found = json.JSONDecoder(), 0, []
    while at < len(text):
        value, at = decoder.raw_decode(text, at)
        at += len(text[at:]) - len(text[at:].lstrip())
        found.append(json.dumps(value).encode())
    return found


def table(name: str) -> list[bytes]:
    with (FIXTURES / name).open(newline="") as file:
        return [csv_line(cells) for cells in csv.reader(file)]


def votes() -> tuple[bytes, ...]:
    return tuple(
        json.dumps({
            "user": "u1", "at": 1_772_359_200 + 60 * n, "item": f"i{n}", "left": "gpt-5.2", "right": "claude-opus-4.6",
            "won": "lllr"[n % 4], "hidden": True, "k": "writing",
        }).encode()
        for n in range(12)
    )  # fmt: skip


def calls() -> list[bytes]:
    rows = [b"id,at,user,trace,model,asked,via,code,k"]
    for n in range(24):
        code = 503 if n % 6 == 0 else 200  # each sixth call fails, and the next one of its conversation answers
        at = f"2026-03-01T{10 + n // 2}:{n % 2:02}:00"
        rows.append(csv_line([f"r{n}", at, "u1", f"t{n // 2}", "claude-opus-4.6", "", "no", code, "coding"]))
    return rows


KIND = b'person = "user"\nkind = { column = "k", map = { "writing" = "writing", "coding" = "coding" } }'
CLAUDE, CANONICAL = "claude_code_SYNTHETIC.jsonl", "canonical_SYNTHETIC.jsonl"


def corpora() -> dict[str, Corpus]:
    def fixture(name: str) -> list[bytes]:
        return (FIXTURES / name).read_bytes().splitlines()

    def document(name: str, inner: str | None = None) -> list[Any]:
        value = json.loads((FIXTURES / name).read_text())
        found: list[Any] = value[inner] if inner is not None else value
        return found

    rollouts = sorted((FIXTURES / "codex_SYNTHETIC").iterdir())
    tasks = sorted((FIXTURES / "cline_SYNTHETIC" / "tasks").iterdir())
    sessions = sorted((FIXTURES / "gemini_cli_SYNTHETIC").rglob("*.jsonl"))
    gateway, mapped = table("litellm_SYNTHETIC.csv"), calls()
    gemini = values_of((FIXTURES / "otlp_gemini_cli_SYNTHETIC.json").read_text())
    return {
        "claude_code": Corpus("claude_code", LINES, grouped(fixture(CLAUDE), lambda row: row["sessionId"])),
        "codex": Corpus(
            "codex", LINES, tuple(Piece(tuple(p.read_bytes().splitlines()), name=p.stem) for p in rollouts), alone=True
        ),
        "cline": Corpus(
            "cline",
            ARRAY,
            tuple(
                Piece(tuple(json.dumps(row).encode() for row in document(f"{p}/ui_messages.json")), p.name)
                for p in tasks
            ),
            alone=True,
        ),
        "litellm": Corpus("litellm", CSV, single(gateway[1:]), head=(gateway[0],), rules=PEOPLE_WORK),
        "open_webui votes": Corpus("open_webui", ARRAY, single(document("open_webui_SYNTHETIC.json"))),
        "open_webui chats": Corpus(
            "open_webui", PAGE, single(document("open_webui_chats_SYNTHETIC.json", "items")), rules=PEOPLE_WORK
        ),
        "otlp codex": Corpus("otlp", LINES, grouped(fixture("otlp_codex_SYNTHETIC.jsonl"), conversation)),
        "otlp gemini_cli": Corpus("otlp", LINES, grouped(gemini, lambda row: row["attributes"]["session.id"])),
        "langfuse": Corpus(
            "langfuse", ARRAY, single(document("langfuse_SYNTHETIC.json")),
            rules=parse_rules(SCORES.replace('"u1"', '"u1", "desk"')),
        ),
        "gemini_cli": Corpus(
            "gemini_cli", LINES,
            tuple(Piece(tuple(p.read_bytes().splitlines()), p.parent.name, p.stem) for p in sessions),
            alone=True, rules=PEOPLE_WORK,
        ),
        "collected": Corpus(
            "collected", UNDER_KEY, single(of_a_collector()),
            collected=KnownPeople(1, {}, everyone=b"everyone........"),
        ),
        "canonical": Corpus("canonical", LINES, single(fixture(CANONICAL))),
        "mapping votes": Corpus(
            "mapping", LINES, single(votes()), companion=VOTES.replace(b'person = "user"', KIND)
        ),
        "mapping calls": Corpus(
            "mapping", CSV, single(mapped[1:]), head=(mapped[0],), rules=PEOPLE_WORK,
            companion=CALLS.replace(b'person = "user"', KIND),
        ),
    }  # fmt: skip


CORPORA = corpora()
NAMES = sorted(CORPORA)
ONE_BY_ONE = {
    name: [[piece] for piece in one.pieces] if one.alone else [list(one.pieces)] for name, one in CORPORA.items()
}


@dataclass(frozen=True, slots=True)
class Seen:
    """What a log came to: rows of the outcomes table, and the merged events of all people."""

    outcomes: dict[tuple[str, ...], tuple[int, int]]
    events: list[bytes]


def seen(corpus: Corpus, runs: Iterable[tuple[bytes, Piece, int]], aliases: dict[str, str] | None = None) -> Seen:
    """`runs`: a file's bytes, one of its pieces, and how many of the bytes were there at an earlier run (0: none)."""
    with EventStore.temporary() as store:
        for data, piece, early in runs:
            offset = 0
            for part in (data[:early], data) if early else (data,):
                made = context(
                    corpus.source, offset=offset, companion=corpus.companion, aliases=aliases or {},
                    key_mode=corpus.rules.key_mode, final=part is data, scores=corpus.rules.scores,
                    collected=corpus.collected,
                )  # fmt: skip
                made.log_dir, made.session_hint = piece.log_dir, piece.name
                made.file_key = str(hash(data)).encode()[:16].ljust(16)
                stream: Any = io.BytesIO(part)
                if part[:2] == b"\x1f\x8b":
                    stream = io.BufferedReader(gzip.GzipFile(fileobj=stream))
                store.add(READERS[corpus.source].read(stream, made))
                assert (made.rows.rejected, made.rows.unknown) == (0, 0)
                offset = made.offset
        rows = build_outcomes(store, window=(0, NOW), catalogue=CATALOGUE, rules=corpus.rules, ids_key=KEY, now=NOW)
        outcomes = {
            (row.signal.value, row.kind, row.recorder, row.basis.value, row.model, row.against or ""): (
                row.successes,
                row.trials,
            )
            for row in rows
        }
        events = [
            msgspec.json.encode(msgspec.structs.replace(event, seq=0))
            for person in store.people()
            for one in store.conversations(person)
            for event in one.events
        ]
        return Seen(outcomes, sorted(events))


_WHOLE: dict[str, Seen] = {}


def whole(name: str) -> Seen:
    if name not in _WHOLE:
        _WHOLE[name] = seen(CORPORA[name], ((*file, 0) for file in CORPORA[name].files(ONE_BY_ONE[name])))
        assert _WHOLE[name].outcomes  # a log without any row of the table would pass everything below
    return _WHOLE[name]


@st.composite
def parted(draw: st.DrawFn, corpus: Corpus) -> list[tuple[bytes, Piece]]:
    """The log in any number of files, in any order; rows that may be shuffled are."""
    if corpus.alone:
        return corpus.files([[piece] for piece in draw(st.permutations(corpus.pieces))])
    count = draw(st.integers(1, 5))
    parts: list[list[Piece]] = [[] for _ in range(count)]
    rng = draw(st.randoms(use_true_random=False))
    for piece in rng.sample(corpus.pieces, len(corpus.pieces)):
        parts[rng.randrange(count)].append(piece)
    return corpus.files(parts)


FEW = settings(max_examples=6, deadline=None)


@pytest.mark.parametrize("name", NAMES)
@FEW
@given(st.data())
def test_any_number_of_files_in_any_order_gives_the_same_outcomes(name: str, data: st.DataObject) -> None:
    files = data.draw(parted(CORPORA[name]))
    assert seen(CORPORA[name], ((*file, 0) for file in files)) == whole(name)


@pytest.mark.parametrize("name", NAMES)
@FEW
@given(st.data())
def test_resuming_at_any_byte_gives_the_same_outcomes(name: str, data: st.DataObject) -> None:
    files = CORPORA[name].files(ONE_BY_ONE[name])
    runs = [(raw, piece, data.draw(st.integers(0, len(raw) - 1))) for raw, piece in files]
    assert seen(CORPORA[name], runs) == whole(name)


@pytest.mark.parametrize("name", NAMES)
@FEW
@given(st.data())
def test_reading_files_twice_and_rows_written_twice_give_the_same_outcomes(name: str, data: st.DataObject) -> None:
    corpus = CORPORA[name]
    copied = data.draw(st.integers(0, len(corpus.pieces) - 1))
    parts = ONE_BY_ONE[name]
    files = corpus.files([*parts, [corpus.pieces[copied]], *parts])
    assert seen(corpus, ((*file, 0) for file in files)) == whole(name)


@pytest.mark.parametrize("name", NAMES)
def test_gzip_and_crlf_give_the_same_outcomes(name: str) -> None:
    files = CORPORA[name].files(ONE_BY_ONE[name])
    assert seen(CORPORA[name], ((gzip.compress(raw), piece, 0) for raw, piece in files)) == whole(name)
    crlf = ((raw.replace(b"\n", b"\r\n"), piece, 0) for raw, piece in files)
    assert seen(CORPORA[name], crlf) == whole(name)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "collected"])  # there families stand already
def test_models_renamed_by_alias_give_the_same_outcomes(name: str) -> None:
    aliases: dict[str, str] = {}
    new: dict[str, str] = {}

    def renamed(found: re.Match[bytes]) -> bytes:
        raw = found.group().decode()
        family = CATALOGUE.resolve(raw, {})
        if family in (OTHER, UNKNOWN):
            return found.group()
        aliases[new.setdefault(raw, f"house-{len(new)}")] = family
        return new[raw].encode()

    files = [(_NAME.sub(renamed, raw), piece, 0) for raw, piece in CORPORA[name].files(ONE_BY_ONE[name])]
    assert aliases
    # The events' own ids may hold a name as the log writes it; the table may not.
    assert seen(CORPORA[name], files, aliases).outcomes == whole(name).outcomes
