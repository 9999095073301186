# SPDX-License-Identifier: Apache-2.0
"""Ways to read the same Claude Code home: ours step by step, a bare decoder, DuckDB, and ccusage.

Rules kept here:
* each is a function of the folder of transcripts that returns how many rows it met, so that none can skip the work;
* the floor decodes the same fields into the same structs and does nothing with them, on one core;
* DuckDB gets the same fields by name and type, and all cores; ccusage is the published command, offline;
* what is not installed is left out, with the reason: nothing is replaced by something easier.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from windvane_client.evidence import micros
from windvane_client.file_reading import Reading, Task, settings_of
from windvane_client.file_workers import read_files
from windvane_client.preview import plan_source, read
from windvane_client.preview_own import own_work
from windvane_client.preview_setup import no_setup
from windvane_client.readers import claude_rows as rows
from windvane_client.store import EventStore

NOW = datetime(2027, 1, 15, tzinfo=UTC)
SOURCE = "claude_code"
CCUSAGE = "ccusage@18.0.11"
Contender = Callable[[Path], int]


class NotRun(Exception):
    """This contender is not there; the text says what would bring it."""


def transcripts(folder: Path) -> list[Path]:
    """All transcripts of a home, in order."""
    return sorted(folder.rglob("*.jsonl"))


def size_of(folder: Path) -> int:
    """Bytes of all transcripts."""
    return sum(path.stat().st_size for path in transcripts(folder))


def floor(folder: Path) -> int:
    """Decodes the fields that the reader reads, and does nothing with them."""
    decode = msgspec.json.Decoder(rows.Row).decode
    count = 0
    for path in transcripts(folder):
        with path.open("rb") as file:
            for line in file:
                count += 1
                try:
                    row = decode(line)
                except msgspec.DecodeError:
                    continue
                if row.message is not None and bytes(memoryview(row.message.content)[:1]) == b"[":
                    rows.BLOCKS.decode(row.message.content)
    return count


def _reading(folder: Path, workers: int | None) -> int:
    setup = no_setup()
    settings = settings_of(
        setup.ids, setup.people, setup.catalogue, setup.aliases, setup.rules, now=micros(NOW), final=True
    )
    count = 0
    for file in read_files(Reading(settings), _tasks(folder, setup.ids.machine()), workers=workers):
        for batch in file.batches():
            if not batch.copies:
                raise ValueError
        count += file.done.rows.read
    return count


def _tasks(folder: Path, person: bytes | None) -> Iterator[Task]:
    for path in transcripts(folder):
        yield Task(os.fsencode(path), SOURCE, person, 0, path.stat().st_size)


def reader(folder: Path) -> int:
    """The reader on every core: rows become the events of all signals, packed for the store, and are dropped."""
    return _reading(folder, None)


def reader_alone(folder: Path) -> int:
    """The same in one process."""
    return _reading(folder, 0)


def stored(folder: Path) -> int:
    """Reader and store."""
    with EventStore.temporary() as store:
        return _stored(folder, store)


def _stored(folder: Path, store: EventStore) -> int:
    setup = no_setup()
    sample = plan_source(SOURCE, [folder], setup)
    read([sample], store, setup, now=NOW)
    return sample.rows.read


def preview(folder: Path) -> int:
    """Everything that `windvane member preview` does before it prints: also merging, episodes, signals, outcomes."""
    setup = no_setup()
    with EventStore.temporary() as store:
        sample = plan_source(SOURCE, [folder], setup)
        read([sample], store, setup, now=NOW)
        own_work(store, setup, micros(NOW))
        return sample.rows.read


# Types by field of the reader's own structs: text, or the value as it stands.
_JSON = frozenset({"content", "origin", "toolDenialKind", "attachment", "error", "cause"})


def _columns() -> dict[str, str]:
    def kind(name: str) -> str:
        return "JSON" if name in _JSON else "VARCHAR"

    message = ", ".join(f"{name} {kind(name)}" for name in rows.Message.__struct_fields__)
    found = {name: kind(name) for name in rows.Row.__struct_fields__}
    return found | {"message": f"STRUCT({message})"}


def duckdb(folder: Path) -> int:
    """The same fields through DuckDB's JSON reader, on every core, counted so that each has to be read."""
    try:
        import duckdb as database
    except ImportError:
        raise NotRun("install the group `bench`: python3 dev.py bench") from None
    columns = _columns()
    counts = ", ".join(f'count("{name}")' for name in columns if name != "message")
    inside = ", ".join(f"count(message.{name})" for name in rows.Message.__struct_fields__)
    with database.connect() as connection:
        found = connection.execute(
            f"SELECT count(*), {counts}, {inside}, sum(json_array_length(message.content)) FROM read_json($files, "
            "format = 'newline_delimited', ignore_errors = true, columns = $columns)",
            {"files": [str(path) for path in transcripts(folder)], "columns": columns},
        ).fetchone()
    return 0 if found is None else int(found[0])


def ccusage(folder: Path) -> int:
    """`npx ccusage daily --offline`, which adds up tokens. It says no row count: 1 stands for its having run."""
    npx = shutil.which("npx")
    if npx is None:
        raise NotRun("install npm")
    done = subprocess.run(
        [npx, "--yes", CCUSAGE, "daily", "--offline", "--json"],
        env=os.environ | {"CLAUDE_CONFIG_DIR": str(folder.parent)},
        capture_output=True,
        check=False,
    )
    if done.returncode or b'"totals"' not in done.stdout:
        raise NotRun("npx could not run it; it needs a network the first time")
    return 1


CONTENDERS: dict[str, Contender] = {
    "floor": floor,
    "reader, all cores": reader,
    "reader, one core": reader_alone,
    "reader and store": stored,
    "whole preview": preview,
    "DuckDB": duckdb,
    "ccusage": ccusage,
}
OURS = ("reader, all cores", "reader, one core", "reader and store", "whole preview")
