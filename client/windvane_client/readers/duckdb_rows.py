# SPDX-License-Identifier: Apache-2.0
"""Rows of Parquet files and of very large CSV files through DuckDB, an optional extra; nothing else imports it.

Rules kept here:
* DuckDB may open this one file and nothing else: no network, no extension, no other path, no file of its own;
* one thread, a memory limit, no spilling to disk; rows come in batches, so memory does not grow with the file;
* only the named columns are selected; a value longer than a field may be never becomes an object;
* its messages quote the file: they are dropped, and a reason of our list is counted;
* a file that changes while it is read is not taken: it is an export, and the next run reads it whole.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from windvane_client.readers.lines import UNREADABLE
from windvane_privacy.errors import ConfigurationError, MissingExtra

if TYPE_CHECKING:
    import duckdb

_BATCH: Final = 1024
_MEMORY: Final = "256MB"
_MAX_LINE: Final = 4 << 20
"""Of a CSV file; DuckDB holds sixteen times as much."""
_SETTINGS: Final[dict[str, str | bool | int | float | list[str]]] = {
    "threads": 1,
    "memory_limit": _MEMORY,
    "temp_directory": "",
    "max_temp_directory_size": "0B",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
}
_SCALARS: Final = frozenset({
    "BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT",
    "UHUGEINT", "FLOAT", "DOUBLE", "DECIMAL", "VARCHAR", "DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS",
    "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE", "UUID", "ENUM", '"NULL"',
})  # fmt: skip
"""Types of columns that are one value; an object, a list or plain bytes is none."""
_GLOB: Final = re.compile(r"([*?\[])")
_REASONS: Final = {"UNQUOTED VALUE": "not_json", "INVALID ENCODING": "not_json", "LINE SIZE OVER MAXIMUM": "too_long"}
"""Why DuckDB left a line of a CSV file out, in our words; anything else is another number of columns."""

Row = dict[str, str]


def installed() -> bool:
    """Whether the extra is there. It is not imported."""
    return importlib.util.find_spec("duckdb") is not None


def require() -> None:
    """Refuse before a row is read.

    Raises:
        MissingExtra: DuckDB is not installed.
    """
    if not installed():
        raise MissingExtra("Extra: duckdb. Parquet files are read with it: pip install 'windvane[duckdb]'.")


class _Rows:
    """Iterating gives (row or None, end): None stands for a row that is not held; `problem` then holds its reason."""

    cut: Final = False

    def __init__(self, path: Path, wanted: frozenset[str], *, max_field: int) -> None:
        require()
        self._path = path
        self._wanted = wanted
        self._max_field = max_field
        self._before = _stamp(path)
        self.offset = 0
        self.problem = ""

    def __iter__(self) -> Iterator[tuple[Row | None, int]]:
        import duckdb

        with _alone_with(self._path) as connection:
            try:
                yield from self._selected(connection)
            except duckdb.Error:
                self.problem = UNREADABLE
                yield None, self.offset
        if _stamp(self._path) != self._before:
            raise ConfigurationError("A file was written while it was read.")
        self.offset = self._before[0]

    def _selected(self, connection: duckdb.DuckDBPyConnection) -> Iterator[tuple[Row | None, int]]:
        raise NotImplementedError

    def _batches(
        self, connection: duckdb.DuckDBPyConnection, columns: Mapping[str, str], source: str
    ) -> Iterator[tuple[Row | None, int]]:
        """Rows of a query. `columns`: wanted name to what stands for it in the query."""
        names = list(columns)
        texts = [f"CAST({column} AS VARCHAR)" for column in columns.values()]
        long = " OR ".join(f"coalesce(strlen({text}), 0) > {self._max_field}" for text in texts) or "false"
        kept = [f"CASE WHEN strlen({text}) > {self._max_field} THEN NULL ELSE {text} END" for text in texts]
        connection.execute(f"SELECT {', '.join([long, *kept])} FROM {source}", [_pattern(self._path)])
        while batch := connection.fetchmany(_BATCH):
            for too_long, *values in batch:
                self.offset += 1
                self.problem = "too_long"
                row = None if too_long else {name: one for name, one in zip(names, values, strict=True) if one}
                yield row, self.offset


class Parquet(_Rows):
    """A Parquet file. A column that is no single value rejects every row; a file that breaks off counts once."""

    def _selected(self, connection: duckdb.DuckDBPyConnection) -> Iterator[tuple[Row | None, int]]:
        connection.execute("DESCRIBE SELECT * FROM read_parquet(?)", [_pattern(self._path)])
        types = {name: kind for name, kind, *_ in connection.fetchall() if name in self._wanted}
        columns = {name: _quoted(name) for name in types}
        nested = any(kind.partition("(")[0] not in _SCALARS or kind.endswith("]") for kind in types.values())
        for row, end in self._batches(connection, {} if nested else columns, "read_parquet(?)"):
            if nested:
                self.problem = "wrong_type"
            yield None if nested else row, end


class LargeCsv(_Rows):
    """A CSV file whose header was read before: `places` holds the position of every wanted column, of `width` in all.

    Lines that DuckDB leaves out come last: it says how many they are and why, not between which rows they stood.
    """

    def __init__(self, path: Path, places: Mapping[int, str], width: int, *, max_field: int) -> None:
        super().__init__(path, frozenset(places.values()), max_field=max_field)
        self._places = places
        self._width = width

    def _selected(self, connection: duckdb.DuckDBPyConnection) -> Iterator[tuple[Row | None, int]]:
        # Columns are named by position: DuckDB's own names ignore case, and it guesses what a file looks like.
        columns = {name: f"c{place}" for place, name in self._places.items()}
        every = ", ".join(f"'c{place}': 'VARCHAR'" for place in range(self._width))
        yield from self._batches(
            connection,
            columns,
            f"read_csv(?, auto_detect=false, header=true, columns={{{every}}}, delim=',', quote='\"', escape='\"', "
            f"store_rejects=true, rejects_limit=0, max_line_size={_MAX_LINE}, parallel=false)",
        )
        connection.execute("SELECT any_value(error_type) FROM reject_errors GROUP BY line ORDER BY line")
        while batch := connection.fetchmany(_BATCH):
            for (why,) in batch:
                self.offset += 1
                self.problem = _REASONS.get(str(why), "wrong_type")
                yield None, self.offset


def _alone_with(path: Path) -> duckdb.DuckDBPyConnection:
    """A DuckDB that can open one file and reach nothing else, for good."""
    import duckdb

    connection = duckdb.connect(":memory:", config=_SETTINGS)
    allowed = ", ".join("'" + one.replace("'", "''") + "'" for one in {str(path), _pattern(path)})
    connection.execute(f"SET allowed_paths=[{allowed}]")
    connection.execute("SET enable_external_access=false")
    connection.execute("SET lock_configuration=true")
    return connection


def _pattern(path: Path) -> str:
    """A path as DuckDB takes it: a pattern, which this makes match the file and no other."""
    return _GLOB.sub(r"[\1]", str(path))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns
