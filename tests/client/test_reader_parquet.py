# SPDX-License-Identifier: Apache-2.0
"""Parquet and very large CSV through DuckDB: the same rows as any export, from one file and from nothing else."""

from __future__ import annotations

import builtins
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from client.test_collect import make_state
from reader_support import IDS, KEY, NOW, of
from windvane_client.catalogue_builtin import builtin_catalogue
from windvane_client.collect import collect
from windvane_client.outcomes_table import build_outcomes
from windvane_client.preview_sources import recognise
from windvane_client.readers import READERS, SampleFacts, context_for, duckdb_rows, mapping
from windvane_client.readers.files import open_log
from windvane_client.rules import parse_rules
from windvane_client.settings import LogFolder
from windvane_client.store import EventStore
from windvane_privacy.errors import ConfigurationError, MissingExtra

A = "claude-sonnet-4.5"
CANARY = "CANARY-4711"
START = 1_772_359_200
MAPPING = """name = "g"
format = "parquet"
event = "call"
[columns]
person = "user"
conv = "trace"
key = "id"
ts = "at"
served = "model"
status = { column = "code", map = { "2xx" = "ok", "499" = "aborted", "*" = "error" } }
[declares]
infra_recovery = "attempts"
"""
ROWS = ["id", "at", "user", "trace", "model", "code", "prompt"]
Written = Callable[..., Path]


@pytest.fixture
def written(tmp_path: Path, duckdb: ModuleType) -> Written:
    """Writes a real Parquet file of a query, with its mapping."""

    def write(query: str, name: str = "export.parquet", text: str = MAPPING) -> Path:
        path = tmp_path / "logs" / name
        path.parent.mkdir(exist_ok=True)
        (path.parent / "mapping.toml").write_text(text)
        with duckdb.connect(":memory:") as connection:
            quoted = str(path).replace("'", "''")
            connection.execute(f"COPY ({query}) TO '{quoted}' (FORMAT parquet)")
        return path

    return write


def calls(n: int = 3, **columns: str) -> str:
    """A query of `n` calls; `columns`: another expression for a column."""
    known = {
        "id": "'i' || i", "at": f"{START} + i", "user": "'u'", "trace": "'t'", "model": f"'{A}'", "code": "200",
        "prompt": f"'{CANARY}'",
    }  # fmt: skip
    chosen = ", ".join(f'{one} AS "{name}"' for name, one in {**known, **columns}.items() if one)
    return f"SELECT {chosen} FROM range({n}) r(i)"


def read(path: Path) -> tuple[list[Any], Any]:
    ctx = context_for(path, ids=IDS, catalogue=builtin_catalogue(), now=NOW, facts=SampleFacts("mapping"))
    ctx.final = True
    with open_log(path) as stream:
        return list(READERS["mapping"].read(stream, ctx)), ctx


def shape(events: list[Any]) -> list[tuple[Any, ...]]:
    return [(type(one).__name__, one.key, one.ts, one.conv, one.person, getattr(one, "served", "")) for one in events]


def test_a_parquet_file_gives_the_events_of_the_same_rows_as_csv(written: Written, tmp_path: Path) -> None:
    found, ctx = read(written(calls(code="CASE i WHEN 0 THEN 503 WHEN 1 THEN 499 ELSE 200 END")))
    assert [type(one).__name__ for one in found] == ["AttemptError", "Call", "Call"]
    assert (ctx.rows.read, ctx.rows.rejected) == (3, 0)
    assert ctx.offset == ctx.path.stat().st_size
    folder = tmp_path / "csv"
    folder.mkdir()
    (folder / "mapping.toml").write_text(MAPPING.replace("parquet", "csv"))
    rows = [",".join(ROWS), *(f"i{n},{START + n},u,t,{A},{code},x" for n, code in enumerate((503, 499, 200)))]
    (folder / "a.csv").write_text("\n".join(rows) + "\n")
    assert shape(found) == shape(read(folder / "a.csv")[0])


@pytest.mark.parametrize(
    "at",
    [
        f"{START} + i", f"({START} + i)::DOUBLE", f"({START} + i) * 1000", f"({START} + i)::VARCHAR",
        f"to_timestamp({START} + i)", "TIMESTAMP '2026-03-01 10:00:00' + INTERVAL (i) SECOND",
        "(TIMESTAMP '2026-03-01 10:00:00' + INTERVAL (i) SECOND)::TIMESTAMP_MS", f"({START} + i)::DECIMAL(18, 0)",
    ],
)  # fmt: skip
def test_times_of_every_type_are_the_same_times(written: Written, at: str) -> None:
    found, _ = read(written(calls(at=at)))
    assert [one.ts for one in found] == [(START + n) * 1_000_000 for n in range(3)]


def test_a_bad_row_is_counted_and_the_rest_is_read(written: Written) -> None:
    path = written(
        calls(
            6,
            model=f"CASE WHEN i = 1 THEN NULL ELSE '{A}' END",
            at=f"CASE WHEN i = 2 THEN 5 ELSE {START} + i END",
            user="CASE WHEN i = 3 THEN repeat('x', 1048577) WHEN i = 4 THEN repeat('x', 300) ELSE 'u' END",
        )
    )
    found, ctx = read(path)
    assert ctx.rows.reasons == {"missing_field": 1, "bad_time": 1, "too_long": 1, "bad_value": 1}
    assert (ctx.rows.read, len(of(found, "Call")), len(of(found, "Gap"))) == (6, 2, 4)


def test_a_column_that_is_no_single_value_rejects_every_row(written: Written) -> None:
    for wrong in (f"{{'text': '{CANARY}'}}", f"['{CANARY}']", f"'{CANARY}'::BLOB", "MAP {'a': 'b'}"):
        found, ctx = read(written(calls(user=wrong)))
        assert ctx.rows.reasons == {"wrong_type": 3}
        assert CANARY not in repr(found) + repr(ctx.rows)
    # An unread column may be anything.
    assert read(written(calls(prompt=f"{{'text': ['{CANARY}']}}")))[1].rows.rejected == 0


def test_names_are_exact_and_a_missing_column_is_a_missing_value(written: Written) -> None:
    assert read(written(calls(model="", Model=f"'{A}'")))[1].rows.reasons == {"missing_field": 3}
    odd = MAPPING.replace('"user"', "'the \"user\"'")
    ((first, *_), _) = read(written(calls(user="", **{'the ""user""': "'u'"}), text=odd))
    assert first.person == IDS.person("mapping:u")


@pytest.mark.parametrize("name", ["a'b.parquet", "a [1]*?.parquet", "ä ö.parquet"])
def test_a_files_name_is_only_a_name(written: Written, name: str) -> None:
    written(calls(9), "a 1xy.parquet")
    assert read(written(calls(), name))[1].rows.read == 3


@pytest.mark.parametrize("damage", ["empty", "text", "cut", "inside"])
def test_a_damaged_file_is_counted_once_and_says_nothing_of_itself(written: Written, damage: str) -> None:
    path = written(calls(5000, user=f"'{CANARY}-' || i"))
    whole = path.read_bytes()
    at = whole.index(CANARY.encode())
    path.write_bytes({"empty": b"", "text": CANARY.encode() * 99, "cut": whole[:-20],
                      "inside": whole[: at - 40] + b"\xff" * 4000 + whole[at + 3960 :]}[damage])  # fmt: skip
    found, ctx = read(path)
    assert ctx.rows.rejected == 1
    assert ctx.rows.reasons == {"unreadable": 1}
    assert CANARY not in repr(found) + repr(ctx.rows)


def test_a_file_that_changes_while_it_is_read_is_left_for_the_next_run(written: Written) -> None:
    path = written(calls(5000))
    ctx = context_for(path, ids=IDS, catalogue=builtin_catalogue(), now=NOW, facts=SampleFacts("mapping"))
    with open_log(path) as stream:
        events = READERS["mapping"].read(stream, ctx)
        next(events)
        with path.open("ab") as more:
            more.write(b"x")
        with pytest.raises(ConfigurationError, match="while it was read"):
            list(events)


def test_duckdb_reaches_this_file_and_nothing_else(written: Written, tmp_path: Path, duckdb: ModuleType) -> None:
    path, other = written(calls()), tmp_path / "other.csv"
    other.write_text("a\nb\n")
    with duckdb_rows._alone_with(path) as connection:
        assert connection.execute("SELECT count(*) FROM read_parquet(?)", [str(path)]).fetchone() == (3,)
        for forbidden in (
            f"SELECT * FROM read_csv('{other}')", "SELECT * FROM read_text('/etc/hostname')", "INSTALL httpfs",
            f"COPY (SELECT 1) TO '{tmp_path / 'out.csv'}'", f"ATTACH '{tmp_path / 'x.db'}'", "LOAD httpfs",
            "SELECT * FROM read_csv('https://windvane.example/x.csv')", "SET enable_external_access=true",
            f"SET temp_directory='{tmp_path}'", "SET autoload_known_extensions=true", "SET threads=64",
            "SELECT * FROM 's3://windvane.example/x.parquet'", f"SET allowed_paths=['{other}']",
        ):  # fmt: skip
            with pytest.raises(duckdb.Error):
                connection.execute(forbidden).fetchall()
        settings = connection.execute(
            "SELECT current_setting('threads'), current_setting('temp_directory'), "
            "current_setting('autoinstall_known_extensions'), current_setting('autoload_known_extensions')"
        ).fetchone()
        assert settings == (1, "", False, False)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["logs", "other.csv"]


def test_reading_opens_no_socket(written: Written) -> None:
    path = written(calls())
    code = (
        "import sys, socket\n"
        "sys.addaudithook(lambda e, a: (_ for _ in ()).throw(AssertionError(e)) if e.startswith('socket.') else None)\n"
        "from pathlib import Path\n"
        "from windvane_client.readers.duckdb_rows import Parquet\n"
        "print(sum(1 for _ in Parquet(Path(sys.argv[1]), frozenset({'id'}), max_field=99)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "3"


def test_memory_does_not_grow_with_the_file(written: Written) -> None:
    def peak(n: int) -> int:
        path = written(calls(n), f"{n}.parquet")
        tracemalloc.start()
        try:
            for _ in duckdb_rows.Parquet(path, frozenset(ROWS[:6]), max_field=1 << 20):
                pass
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(1000)  # what is imported once
    small, large = peak(5_000), peak(50_000)
    assert large < small * 1.5


# --- without the extra ------------------------------------------------------------------------------------------------


@pytest.fixture
def without_duckdb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    real = builtins.__import__

    def guarded(name: str, *more: Any, **named: Any) -> Any:
        assert name.partition(".")[0] != "duckdb", "imported where it is not installed"
        return real(name, *more, **named)

    monkeypatch.setattr(builtins, "__import__", guarded)


@pytest.mark.usefixtures("without_duckdb")
def test_without_the_extra_parquet_is_refused_with_what_to_install(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1")
    (tmp_path / "mapping.toml").write_text(MAPPING)
    with pytest.raises(MissingExtra, match=r"windvane\[duckdb\]"):
        list(READERS["mapping"].discover([tmp_path]))
    with pytest.raises(MissingExtra):
        read(path)
    source, refusal = recognise(path)
    assert source == "mapping"
    assert refusal is not None
    assert "windvane[duckdb]" in refusal.instead
    (tmp_path / "mapping.toml").unlink()
    assert "mapping.toml" in (recognise(path)[1] or duckdb_rows).instead  # type: ignore[union-attr]


def test_a_members_install_does_not_import_it() -> None:
    code = (
        "import sys, windvane.member, windvane_client.readers\n"
        "from windvane_client.readers.duckdb_rows import installed\n"
        "installed()\n"
        "print('duckdb' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# --- very large CSV ---------------------------------------------------------------------------------------------------

BROKEN = [
    ("i1,1,u,t", "wrong_type"),
    (f"i1,{START},u,t,m,200,x,more", "wrong_type"),
    (f'i1,{START},"u"x,t,m,200,x', "not_json"),
]


def csv_file(tmp_path: Path, *rows: str, end: str = "\r\n") -> Path:
    folder = tmp_path / "csv"
    folder.mkdir(exist_ok=True)
    (folder / "mapping.toml").write_text(MAPPING.replace("parquet", "csv"))
    path = folder / "a.csv"
    path.write_bytes(b"\xef\xbb\xbf" + end.join([",".join(ROWS), *rows, ""]).encode())
    return path


def good(n: int, prompt: str = "x") -> str:
    return f'i{n},{START + n},"u",t,{A},200,{prompt}'


def both(path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[Any], Any]]:
    """The file by our own reader, and by DuckDB."""
    own = read(path)
    with monkeypatch.context() as patch:
        patch.setattr(mapping, "LARGE_CSV_BYTES", 1)
        called: list[Path] = []
        large = duckdb_rows.LargeCsv
        patch.setattr(duckdb_rows, "LargeCsv", lambda place, *m, **n: (called.append(place), large(place, *m, **n))[1])
        found = read(path)
        assert called == [path]
    return [own, found]


@pytest.mark.usefixtures("duckdb")
def test_a_very_large_csv_gives_the_same_events_as_a_small_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = csv_file(
        tmp_path, good(0), good(1, '"a ""quoted"", \r\nlong text"'), "", good(2, "ä"), f'"i3",{START},,t,{A},200,'
    )
    (own, one), (found, other) = both(path, monkeypatch)
    assert shape(own) == shape(found)
    assert (one.rows, one.offset) == (other.rows, other.offset)
    assert len(own) == 4


@pytest.mark.usefixtures("duckdb")
@pytest.mark.parametrize(("broken", "reason"), BROKEN)
def test_a_broken_line_is_counted_for_the_same_reason(
    tmp_path: Path, broken: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = csv_file(tmp_path, good(0), broken, good(1))
    (own, one), (found, other) = both(path, monkeypatch)
    assert one.rows == other.rows
    assert one.rows.reasons == {reason: 1}
    assert shape(of(own, "Call")) == shape(of(found, "Call"))
    assert len(of(found, "Gap")) == 1


@pytest.mark.usefixtures("duckdb")
def test_duckdb_leaves_to_us_what_it_would_read_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A last line that is still being written, a doubled column, a packed file: our own reader takes them."""
    monkeypatch.setattr(mapping, "LARGE_CSV_BYTES", 1)
    monkeypatch.setattr(duckdb_rows, "LargeCsv", None)
    path = csv_file(tmp_path, good(0), good(1))
    path.write_bytes(path.read_bytes().rstrip())
    assert len(read(path)[0]) == 2
    path.write_text(f"{','.join([*ROWS[:6], 'user'])}\n{good(0)}\n")
    assert read(path)[1].rows.reasons == {"wrong_type": 1}


def test_without_duckdb_a_very_large_csv_is_read_by_us(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapping, "LARGE_CSV_BYTES", 1)
    monkeypatch.setattr(duckdb_rows, "installed", lambda: False)
    assert len(read(csv_file(tmp_path, good(0), good(1)))[0]) == 2


# --- collecting and outcomes ------------------------------------------------------------------------------------------


def test_parquet_is_collected_once(written: Written, tmp_path: Path) -> None:
    path = written(calls())
    state = make_state(tmp_path, (LogFolder(str(path.parent), "mapping"),))
    now = datetime(2026, 3, 2, tzinfo=UTC)
    assert collect(state, now).rows.read == 3
    assert (collect(state, now).unchanged, collect(state, now).rows.read) == (1, 0)
    written(calls(5))
    assert collect(state, now).rows.read == 5


def test_a_parquet_export_ends_in_rows_of_the_outcomes_table(written: Written) -> None:
    """By hand: twelve requests of one person; A fails and recovers in 0, 2, 4 and is lost in 6; B recovers in 8."""
    attempts = (
        "SELECT * FROM (VALUES (0, 503, 0, 'a'), (0, 200, 9, 'a'), (1, 200, 0, 'a'), (2, 529, 0, 'a'),"
        " (2, 200, 5, 'a'),"
        " (3, 200, 0, 'a'), (4, 504, 0, 'a'), (4, 200, 7, 'a'), (5, 200, 0, 'a'), (6, 503, 0, 'a'), (7, 200, 0, 'b'),"
        " (8, 503, 0, 'b'), (8, 200, 3, 'b'), (9, 200, 0, 'b'), (10, 400, 0, 'b'), (11, 200, 0, 'b')) v(n, code, s, f)"
    )
    query = (
        f"SELECT 'i' || n AS id, {START} + 3600 * n + s AS at, 'u' AS \"user\", 't' || n AS trace, code, "
        f"CASE f WHEN 'a' THEN '{A}' ELSE 'gpt-5.2' END AS model, '{CANARY}' AS prompt FROM ({attempts})"
    )
    rules = parse_rules('[modes]\ninteractive_keys = ["mapping"]\n[[kind]]\nsource = "mapping"\nkind = "coding"\n')
    path = written(query)
    ctx = context_for(path, ids=IDS, catalogue=builtin_catalogue(), now=NOW, facts=SampleFacts("mapping"))
    ctx.key_mode, ctx.kind_rule = rules.key_mode, rules.kind_rule
    with EventStore.temporary() as store, open_log(path) as stream:
        store.add(READERS["mapping"].read(stream, ctx))
        rows = build_outcomes(store, window=(0, NOW), catalogue=builtin_catalogue(), rules=rules, ids_key=KEY, now=NOW)
        found = {(row.signal.value, row.recorder, row.model): (row.successes, row.trials) for row in rows}
    assert found == {
        ("infra_recovery", "mapping/g/other", A): (3, 4),
        ("infra_recovery", "mapping/g/other", "gpt-5.2"): (1, 1),
    }
