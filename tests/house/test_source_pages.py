# SPDX-License-Identifier: Apache-2.0
"""The pages about sources and the data store name everything that is there, and nothing that is not."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest

from windvane.main import run
from windvane_client import events, store_tables
from windvane_client.collect import LOGS_KEPT_DAYS, WARN_AFTER_DAYS
from windvane_client.constants import CONSTANTS, DAY
from windvane_client.preview_sources import NOT_BUILT, REFUSED
from windvane_client.readers import READERS
from windvane_client.readers.canonical_rows import BY_KIND, Line

DOCS = Path(__file__).resolve().parents[2] / "docs"
SOURCES = sorted({name.partition("/")[0] for name in READERS} - {"collected"})
CANONICAL = (DOCS / "sources" / "canonical.md").read_text("utf-8")
RETENTION = (DOCS / "retention.md").read_text("utf-8")


@pytest.mark.parametrize("source", SOURCES)
def test_every_source_has_a_page_that_says_what_is_never_read(source: str) -> None:
    page = (DOCS / "sources" / f"{source}.md").read_text("utf-8")
    assert re.search(r"never read|cannot read", page)
    assert re.search(r"cannot say|unknown", page)
    assert f"](sources/{source}.md)" in (DOCS / "members.md").read_text("utf-8")


def rows_of_canonical() -> dict[str, list[str]]:
    cells = [line.split("|")[1:-1] for line in CANONICAL.splitlines() if line.startswith("| `")]
    return {kind.strip(" `"): more for kind, *more in cells}


def fields_of(cell: str) -> set[str]:
    """Fields named in a cell; words in brackets or after a colon are values of the field before them."""
    return set(re.findall(r"`(\w+)`", re.sub(r"\(.*?\)|:.*", "", cell)))


@pytest.mark.parametrize("kind", BY_KIND)
def test_the_page_names_every_field_of_a_canonical_line_on_the_right_side(kind: str) -> None:
    common = {field.name for field in msgspec.structs.fields(Line)}
    needed, optional = map(fields_of, rows_of_canonical()[kind])
    own = [field for field in msgspec.structs.fields(BY_KIND[kind]) if field.name not in common]
    assert needed - {"key"} == {field.name for field in own if field.required}
    assert optional == {field.name for field in own if not field.required}


def test_the_page_names_the_fields_that_every_line_may_have() -> None:
    every = CANONICAL.partition("**Every line**")[2].partition("| `k` |")[0]
    assert set(re.findall(r"`(\w+)`", every)) >= {field.name for field in msgspec.structs.fields(Line)}


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("prompt", events.PROMPT_ORIGINS),
        ("call", (*events.CALL_STATUS, *events.ROUTES)),
        ("attempt_error", events.ERROR_CLASSES),
        ("tool", (*events.TOOL_OUTCOMES, *events.TOOL_CLASSES)),
        ("turn_end", events.TURN_ENDS),
        ("outcome", events.OUTCOME_VALUES),
    ],
)
def test_the_page_names_every_word_of_a_closed_list(kind: str, words: tuple[str, ...]) -> None:
    assert set(re.findall(r"`(\w+)`", "".join(rows_of_canonical()[kind]))) >= set(words) - {"unknown"}


def test_the_retention_page_names_every_table_of_the_store() -> None:
    tables = set(re.findall(r"CREATE TABLE (\w+)", store_tables.SCHEMA))
    assert tables <= set(re.findall(r"^\| `(\w+)` \|", RETENTION, re.MULTILINE))


def test_the_retention_page_says_how_long_in_the_numbers_of_the_code() -> None:
    for number in (WARN_AFTER_DAYS, LOGS_KEPT_DAYS, CONSTANTS.first_seen_kept // DAY):
        assert f"{number} days" in RETENTION


@pytest.mark.parametrize("source", [*REFUSED, *NOT_BUILT])
def test_a_refused_source_is_on_the_page_and_refused_by_the_command(
    source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (DOCS / "sources" / "refused.md").read_text("utf-8")
    run(["member", "preview", str(tmp_path), "--source", source, "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert answer["observed"] is None
    assert f"`{source}`" in page
    if source in REFUSED:
        assert answer["refused"] == {"reason": REFUSED[source].reason, "instead": REFUSED[source].instead}
        assert f"| `{source}` | {REFUSED[source].reason} | {REFUSED[source].instead} |" in page
