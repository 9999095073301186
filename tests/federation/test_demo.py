# SPDX-License-Identifier: Apache-2.0
"""The smallest demonstration, with real processes from log files to a signed report.

Twenty organisations of about a hundred people. Not failures: a true difference about which the report is silent (the
federation is small). Failures: a wrong direction; a page that does not say what it is; anything of a person or of one
organisation's numbers at the coordinator. Known randomness: noise, keys, lot; the logs are those of seed 1.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from windvane.demo.federation import DemoFederation
from windvane.demo.truth import verdicts
from windvane.demo.world import MODELS, people_of
from windvane_client.state import MemberState
from windvane_privacy.field import encode_signed
from windvane_privacy.report_file import verify_quarter
from windvane_privacy.signed import decode_federation
from windvane_privacy.site_lint import lint_site

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]

ORGANISATIONS, PEOPLE = 20, 100
SEVERAL = 2
DEMONSTRATION = "Demonstration: invented organisations, invented models, invented preferences."
WINDOW = 4
"""A vector is looked for in pieces of so many entries: twice as many neighbouring ones, in any form, are a find."""
NAMES_OF_MEMBERS = {("members", "name"), ("members", "card"), ("rosters", "raw")}
NAMES_OF_MODELS = {("rounds", "manifest"), ("reports", "raw")}


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoFederation]:
    """A demo that is over; its folders are still there."""
    folder = tmp_path_factory.mktemp("demo").resolve()
    with DemoFederation(folder, ORGANISATIONS, PEOPLE, seed=1) as federation:
        federation.write_logs(_nothing)
        federation.found()
        federation.enrol(_nothing)
        federation.agree()
        assert not federation.too_small
        federation.take_part(_nothing)
        federation.open_sums()
        federation.publish()
        yield federation


def test_it_ends_in_a_report_that_the_coordinator_signed(played: DemoFederation) -> None:
    document = decode_federation((played.coordinator / "federation.json").read_bytes())
    report = verify_quarter(played.site / played.round_id, bytes.fromhex(document.coordinator))
    assert report.not_opened is None
    assert (played.site / "index.html").is_file()


def test_it_calls_several_directions_and_every_one_is_true(played: DemoFederation) -> None:
    called = [verdict for verdict in verdicts(_report(played)) if verdict.called]
    assert len(called) >= SEVERAL
    assert [verdict for verdict in called if not verdict.right] == []


def test_every_page_and_the_report_say_that_it_is_a_demonstration(played: DemoFederation) -> None:
    pages = list(played.site.rglob("*.html"))
    assert len(pages) > 1
    assert [page for page in pages if DEMONSTRATION not in page.read_text("utf-8")] == []
    assert json.loads(_report(played).read_text("utf-8"))["demo"] is True


def test_the_site_has_nothing_that_the_lint_forbids(played: DemoFederation) -> None:
    assert lint_site(played.site, {model.id: model.label for model in MODELS}) == []


def test_no_vector_of_a_member_is_at_the_coordinator(played: DemoFederation) -> None:
    vectors = []
    for member in played.members:
        with MemberState.open(member.state).ledger() as ledger:
            entry = ledger.round(played.round_id)
        assert entry is not None
        assert entry.noisy is not None
        assert _holds((member.state / "ledger" / "ledger.db").read_bytes(), entry.noisy), "the search finds nothing"
        vectors.append(entry.noisy)
    files = _files(played)
    assert any(path.name == "coordinator.db" for path in files)
    found = [path.name for path, raw in files.items() for vector in vectors if _holds(raw, vector)]
    assert found == []


def test_the_search_for_vectors_finds_one_in_every_form() -> None:
    vector = (1201, -733, 88, 4096, -15, 977, -1310, 404)
    part = vector[1:]
    forms = [
        json.dumps(part).encode(),
        np.array(part, "<i8").tobytes(),
        np.array(part, ">i8").tobytes().hex().encode(),
        encode_signed(np.array(part, np.int64)).astype("<u8").tobytes(),
    ]
    assert all(_holds(b"before" + form + b"after", vector) for form in forms)
    assert not _holds(json.dumps(vector[:3]).encode() + np.array(vector[5:], "<i8").tobytes(), vector)


def test_no_person_is_at_the_coordinator(played: DemoFederation) -> None:
    people = {person.staff_id for member in played.members for person in people_of(member.index, PEOPLE, played.seed)}
    pseudonyms = set()
    for member in played.members:
        with closing(sqlite3.connect(member.state / "ledger" / "ledger.db")) as ledger:
            pseudonyms |= {bytes(row[0]) for row in ledger.execute("SELECT person_key FROM person_quarter")}
    assert len(people) > PEOPLE // 2
    assert len(pseudonyms) > ORGANISATIONS * PEOPLE // 2
    for path, raw in _files(played).items():
        assert not [person for person in people if f'"{person}"'.encode() in raw], path.name
        windows = {raw[i : i + 16] for i in range(len(raw) - 15)}
        assert not windows & pseudonyms, path.name


def test_names_of_members_and_models_stand_only_in_what_is_agreed_and_published(played: DemoFederation) -> None:
    members = [member.name.encode() for member in played.members]
    models = [word.encode() for model in MODELS for word in (model.id, model.label)]
    where: dict[str, set[tuple[str, str]]] = {"members": set(), "models": set()}
    for table, column, raw in _cells(played.coordinator / "coordinator.db"):
        for kind, words in (("members", members), ("models", models)):
            if any(word in raw for word in words):
                where[kind].add((table, column))
    assert where == {"members": NAMES_OF_MEMBERS, "models": NAMES_OF_MODELS}
    written = (played.folder / "coordinator.log").read_bytes()
    assert b'"event":"request"' in written
    assert not [name for name in (*members, *models) if name in written]
    published = b"".join(path.read_bytes() for path in played.site.rglob("*") if path.is_file())
    assert not [name for name in members if name in published]


def _report(played: DemoFederation) -> Path:
    return played.site / played.round_id / "report.json"


def _files(played: DemoFederation) -> dict[Path, bytes]:
    """Everything that the coordinator has written, its own log included."""
    paths = [path for path in played.coordinator.rglob("*") if path.is_file()]
    return {path: path.read_bytes() for path in (*paths, played.folder / "coordinator.log")}


def _cells(database: Path) -> Iterator[tuple[str, str, bytes]]:
    """Every value of every table: table, column, bytes."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            cursor = connection.execute(f'SELECT * FROM "{table}"')
            names = [column[0] for column in cursor.description]
            for row in cursor:
                for name, value in zip(names, row, strict=True):
                    yield table, name, value if isinstance(value, bytes) else str(value).encode()


def _holds(raw: bytes, vector: tuple[int, ...]) -> bool:
    """Whether a piece of the vector stands in `raw`: as decimals, or as eight-byte numbers or field elements in either
    order, or as hex of those."""
    windows = [vector[i : i + WINDOW] for i in range(0, len(vector) - WINDOW + 1, WINDOW)]
    wide = [window for window in windows if all(before != after for before, after in pairwise(window))]
    return any(form in raw for window in wide for form in _forms(window))


def _forms(window: tuple[int, ...]) -> Iterator[bytes]:
    for between in (",", ", ", " "):
        yield between.join(map(str, window)).encode()
    plain = np.array(window, dtype=np.int64)
    for numbers, kind in ((plain, "i8"), (encode_signed(plain), "u8")):
        for order in "<>":
            whole = numbers.astype(order + kind).tobytes()
            yield whole
            yield whole.hex().encode()


def _nothing(_step: int) -> None:
    pass
