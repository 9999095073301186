# SPDX-License-Identifier: Apache-2.0
"""Malformed input: counted by reason, the rest of the file read, nothing of it repeated."""

from __future__ import annotations

import gzip
import io
import json

import pytest

from reader_support import context, of, read
from windvane_client.events import Rows
from windvane_client.readers import READERS
from windvane_client.readers import lines as line_module
from windvane_client.readers.files import find_logs, open_log
from windvane_client.readers.lines import REASONS, LineDecoder, Lines, Rejected, reject, rfc3339_micros
from windvane_privacy.errors import ConfigurationError, MalformedInput

CANARY = "CANARY-4711"
GOOD = {
    "claude_code": {
        "type": "user", "sessionId": "s1", "version": "2.1.40", "uuid": "u1", "parentUuid": None,
        "timestamp": "2026-03-01T10:00:00Z", "cwd": CANARY, "message": {"role": "user", "content": CANARY},
    },
    "codex": {
        "timestamp": "2026-03-01T10:00:00Z", "type": "event_msg",
        "payload": {"type": "user_message", "message": CANARY},
    },
    "gemini_cli": {"id": "m", "timestamp": "2026-03-01T10:00:00Z", "type": "user", "content": CANARY},
    "langfuse": {
        "id": "o", "traceId": "t", "type": "GENERATION", "startTime": "2026-03-01T10:00:00Z", "input": CANARY,
        "endTime": "2026-03-01T10:00:00Z", "level": "DEFAULT",
    },
    "canonical": {"v": 1, "k": "prompt", "person": "p", "conv": "c", "ts": "2026-03-01T10:00:00Z", "origin": "human"},
}  # fmt: skip
SOURCES = sorted(GOOD)
FIRST = {"langfuse": "Call"}
"""What a good row gives, where it is no prompt."""
NAMES = {"claude_code": "uuid", "canonical": "conv"}
"""The field that tells two good rows apart."""


def good(source: str, n: int = 0) -> bytes:
    row = dict(GOOD[source])
    if source == "codex":
        row["timestamp"] = f"2026-03-01T10:00:{n:02}Z"
    else:
        row[NAMES.get(source, "id")] = f"id{n}"
    return json.dumps(row).encode()


def with_field(source: str, raw: bytes) -> bytes:
    """A good row with one more field, in a place that the reader does not look at where the format has one."""
    return good(source)[:-1] + b', "zzz": ' + raw + b"}"


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (b'{"k": NaN}', "not_json"),
        (b'{"k": Infinity}', "not_json"),
        (b'{"k": "' + CANARY.encode() + b'\0"}', "nul_byte"),
        (b'{"k": "a"}{"k": "' + CANARY.encode() + b'"}', "not_json"),
        (CANARY.encode(), "not_json"),
        (b'"' + CANARY.encode() + b'"', "not_an_object"),
        (b"42", "not_an_object"),
        (b'["' + CANARY.encode() + b'"]', "not_an_object"),
        (b"null", "not_an_object"),
        (b'{"silly": "' + CANARY.encode() + b'"}', "missing_field"),
        (b'{"type": 5, "k": 5}', "wrong_type"),
        (b'{"zzz": ' + b"[" * 3000 + b"]" * 3000 + b"}", "too_deep"),
        (b'{"k": "\xff\xfe", "type": "\xff\xfe"}', "not_json"),
    ],
)
def test_one_bad_row_is_counted_and_the_rest_is_read(source, broken, reason):
    events, ctx = read(good(source, 1) + b"\n" + broken + b"\n" + good(source, 2) + b"\n", context(source))
    assert ctx.rows.reasons == {reason: 1}
    assert (ctx.rows.read, ctx.rows.rejected) == (3, 1)
    assert len(of(events, FIRST.get(source, "Prompt"))) == 2
    assert len(of(events, "Gap")) == 1
    assert CANARY not in repr(events) + repr(ctx.rows) + repr(ctx.facts)


def test_unread_fields_may_hold_anything_that_is_json_syntax():
    for raw, kept in ((b'"\xff\xfe"', True), (b'"\\ud800"', True), (b'"\\ud83d\\ude00"', True), (b"NaN", False)):
        _, ctx = read(with_field("claude_code", raw) + b"\n")
        assert (ctx.rows.rejected == 0) is kept, raw


def test_an_escaped_backslash_is_no_surrogate():
    # The text is a backslash followed by "ud800": valid, and left alone beside a real surrogate escape.
    events, ctx = read(with_field("claude_code", rb'["\\ud800", "\ud800", "\\\ud800"]') + b"\n")
    assert ctx.rows.rejected == 0
    assert len(events) == 1


def test_a_field_of_unknown_name_rejects_a_canonical_row_without_naming_it():
    events, ctx = read(with_field("canonical", b'"x"').replace(b"zzz", CANARY.encode()) + b"\n", context("canonical"))
    assert ctx.rows.reasons == {"unknown_field": 1}
    assert CANARY not in repr(events) + repr(ctx.rows)


def test_duplicate_keys_take_the_last():
    raw = good("claude_code")[:-1] + b', "uuid": "other"}\n'
    events, _ = read(raw)
    assert events[0].key == context().ids.key("claude_code/row", "other")


@pytest.mark.parametrize("source", SOURCES)
def test_a_half_written_last_line_waits_for_the_next_run(source):
    whole = good(source, 1) + b"\n" + good(source, 2)
    ctx = context(source)
    events, _ = read(whole, ctx)
    assert len(events) == 1
    assert ctx.offset == len(good(source, 1)) + 1
    later = context(source, offset=ctx.offset)
    events, _ = read(whole + b"\n", later)
    assert len(events) == 1
    assert later.offset == len(whole) + 1
    assert later.rows.read == 1


@pytest.mark.parametrize("source", SOURCES)
def test_a_finished_file_tries_its_last_line(source):
    ctx = context(source, final=True)
    events, _ = read(good(source, 1) + b"\n" + good(source, 2), ctx)
    assert (len(events), ctx.rows.rejected) == (2, 0)
    ctx = context(source, final=True)
    read(good(source, 1) + b"\n" + good(source, 2)[:-9], ctx)
    assert ctx.rows.reasons == {"truncated": 1}


@pytest.mark.parametrize("source", SOURCES)
def test_a_bom_is_stripped_at_the_start_only(source):
    bom = b"\xef\xbb\xbf"
    _, ctx = read(bom + good(source, 1) + b"\n" + bom + good(source, 2) + b"\n", context(source))
    assert (ctx.rows.read, ctx.rows.reasons) == (2, {"not_json": 1})


@pytest.mark.parametrize("source", SOURCES)
def test_a_line_above_the_limit_is_counted_and_never_held(source, monkeypatch):
    monkeypatch.setattr(line_module, "MAX_LINE_BYTES", 3 << 20)
    monkeypatch.setattr(Lines.__init__, "__kwdefaults__", {**Lines.__init__.__kwdefaults__, "max_line_bytes": 3 << 20})
    long = b'{"zzz": "' + b"x" * (4 << 20) + b'"}'
    fits = with_field("claude_code", b'"' + b"x" * (2 << 20) + b'"') if source == "claude_code" else good(source, 3)
    events, ctx = read(good(source, 1) + b"\n" + long + b"\n" + fits + b"\n", context(source))
    assert ctx.rows.reasons == {"too_long": 1}
    assert len(of(events, FIRST.get(source, "Prompt"))) == 2


def test_a_100_mb_line_does_not_need_100_mb(tmp_path):
    import tracemalloc

    path = tmp_path / "long.jsonl"
    with path.open("wb") as file:
        for _ in range(100):
            file.write(b"x" * (1 << 20))
        file.write(b"\n" + good("claude_code") + b"\n")
    ctx = context()
    tracemalloc.start()
    try:
        with open_log(path) as stream:
            events = list(READERS["claude_code"].read(stream, ctx))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert ctx.rows.reasons == {"too_long": 1}
    assert len(of(events, "Prompt")) == 1
    assert peak < 72 << 20


def test_memory_does_not_grow_with_the_file():
    import tracemalloc

    def peak(times: int) -> int:
        rows = b"".join(good("claude_code", n) + b"\n" for n in range(times))
        stream, ctx = io.BytesIO(rows), context()
        tracemalloc.start()
        try:
            for _ in READERS["claude_code"].read(stream, ctx):
                pass
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    from windvane_client.readers import claude_state

    limit, claude_state._MAX_LINKS = claude_state._MAX_LINKS, 512
    try:
        small, large = peak(2_000), peak(12_000)
    finally:
        claude_state._MAX_LINKS = limit
    assert large < 1.5 * small


def test_damaged_compression_ends_the_file_with_a_reason(tmp_path):
    path = tmp_path / "a.jsonl.gz"
    packed = gzip.compress(b"".join(good("claude_code", n) + b"\n" for n in range(3000)))
    path.write_bytes(packed[: len(packed) // 2])
    ctx = context()
    with open_log(path) as stream:
        events = list(READERS["claude_code"].read(stream, ctx))
    assert ctx.rows.reasons == {"unreadable": 1}
    assert len(of(events, "Prompt")) == ctx.rows.read - 1


def test_blank_lines_are_no_rows():
    _, ctx = read(b"\n \r\n\t\n" + good("claude_code") + b"\r\n")
    assert ctx.rows.read == 1


def test_reasons_are_a_closed_list():
    rows = Rows()
    for reason in REASONS:
        reject(rows, reason)
    assert rows.rejected == len(REASONS)
    error = Rejected(CANARY)
    assert error.reason == "not_json"
    assert isinstance(error, MalformedInput)


def test_the_decoders_message_is_dropped():
    import msgspec

    class One(msgspec.Struct, forbid_unknown_fields=True):
        a: int

    for raw in (b'{"%s": 1}' % CANARY.encode(), b'{"a": "%s"}' % CANARY.encode(), CANARY.encode()):
        with pytest.raises(Rejected) as caught:
            LineDecoder(One).decode(raw)
        chain = caught.value
        while chain is not None:
            assert CANARY not in str(chain)
            chain = chain.__cause__ or chain.__context__


@pytest.mark.parametrize(
    ("text_", "micros"),
    [
        ("2026-01-01T00:00:00Z", 1_767_225_600_000_000),
        ("2026-01-01T00:00:00.123456Z", 1_767_225_600_123_456),
        ("2026-01-01T01:00:00+01:00", 1_767_225_600_000_000),
        ("2026-01-01T00:00:00", 1_767_225_600_000_000),
        ("0001-01-01T00:00:00+14:00", -62_135_647_200_000_000),
        ("", None),
        ("17", None),
        ("2026-13-01T00:00:00Z", None),
    ],
)
def test_times(text_, micros):
    assert rfc3339_micros(text_) == micros


def test_only_regular_files_under_the_roots_are_found(tmp_path):
    import os

    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "a").mkdir(parents=True)
    outside.mkdir()
    inside = root / "a" / "x.jsonl"
    inside.write_bytes(b"")
    (root / "a" / "note.txt").write_bytes(b"")
    (outside / "secret.jsonl").write_bytes(b"")
    (root / "link.jsonl").symlink_to(outside / "secret.jsonl")
    (root / "inner.jsonl").symlink_to(inside)
    (root / "gone.jsonl").symlink_to(root / "nothing")
    (root / "folder").symlink_to(outside)
    os.mkfifo(root / "pipe.jsonl")
    found = list(find_logs([root, root, tmp_path / "missing"], (".jsonl",)))
    assert [path.resolve() for path in found] == [inside]
    with pytest.raises(ConfigurationError):
        open_log(root / "pipe.jsonl")
    with pytest.raises(ConfigurationError):
        open_log(root / "gone.jsonl")
    assert list(READERS["claude_code"].discover([inside])) == [inside]


def test_a_log_is_read_up_to_its_size_at_opening(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_bytes(good("claude_code", 1) + b"\n")
    ctx = context()
    with open_log(path) as stream:
        with path.open("ab") as more:
            more.write(good("claude_code", 2) + b"\n")
        assert len(list(READERS["claude_code"].read(stream, ctx))) == 1
    assert ctx.offset == len(good("claude_code", 1)) + 1
