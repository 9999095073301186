# SPDX-License-Identifier: Apache-2.0
"""The coordinator over HTTP: every refusal is a problem document, and no refusal changes anything."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from small_federation import ROUND, Clock, SmallFederation, leaves_of
from windvane_privacy import canonical
from windvane_privacy.couriers import BINARY, JSON, ROUTES
from windvane_privacy.errors import all_errors
from windvane_privacy.manifest import Manifest
from windvane_privacy.tiles import TiledTree
from windvane_server.app import create_app
from windvane_server.http_limits import MAX_ENVELOPE_BYTES, MAX_JSON_BYTES, MAX_RESULT_BYTES
from windvane_server.logs import ServiceLog
from windvane_server.schema import metadata
from windvane_server.site_files import SECURITY_HEADERS


class Web:
    """The application without a network; one request at a time."""

    def __init__(self, small: SmallFederation, site: Path | None) -> None:
        self.log = io.StringIO()
        self.small = small
        self.app = create_app(small.coordinator, site, ServiceLog(self.log, Clock(), strict=True))

    def __call__(self, method: str, path: str, **parts: Any) -> httpx.Response:
        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(app=self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://coordinator.test") as client:
                return await client.request(method, path, **parts)

        return anyio.run(ask)

    def rows(self) -> dict[str, list[tuple[object, ...]]]:
        with self.small.coordinator.store.read() as connection:
            return {t.name: [tuple(row) for row in connection.execute(t.select())] for t in metadata.sorted_tables}

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.getvalue().splitlines()]


@pytest.fixture
def web(small: SmallFederation, tmp_path: Path) -> Web:
    site = tmp_path / "site"
    (site / "2026-q3" / "all").mkdir(parents=True)
    (site / "index.html").write_text("<title>Front</title>", encoding="utf-8")
    (site / "2026-q3" / "index.html").write_text("<title>Quarter</title>", encoding="utf-8")
    (site / "2026-q3" / "report.json").write_text("{}", encoding="utf-8")
    (site / "style.0123456789abcdef.css").write_text("body{}", encoding="utf-8")
    (tmp_path / "secret.html").write_text("outside", encoding="utf-8")
    (site / "link.html").symlink_to(tmp_path / "secret.html")
    return Web(small, site)


def is_problem(answer: httpx.Response, status: int, kind: str) -> bool:
    document = answer.json()
    assert answer.headers["content-type"] == "application/problem+json"
    assert set(document) == {"type", "title", "status", "detail", "advice"}
    assert document["type"] in all_errors()
    assert document["title"]
    assert document["advice"].endswith(".")
    assert document["status"] == answer.status_code
    return (answer.status_code, document["type"]) == (status, f"urn:windvane:problem:{kind}")


# --- sizes and types -----------------------------------------------------------------------------------------------


POSTS = {kind: route for kind, route in ROUTES.items() if route.method == "POST"}


def path_of(kind: str) -> str:
    return ROUTES[kind].path.replace("{round}", ROUND)


async def chunks() -> AsyncIterator[bytes]:
    yield b"{"
    yield b"}"


@pytest.mark.parametrize("kind", POSTS)
def test_a_chunked_body_is_refused_before_it_is_read(web: Web, kind: str) -> None:
    answer = web("POST", path_of(kind), content=chunks(), headers={"content-type": POSTS[kind].content_type or JSON})
    assert is_problem(answer, 411, "length-required")


@pytest.mark.parametrize("kind", POSTS)
def test_an_oversized_body_is_refused_by_its_header(web: Web, kind: str) -> None:
    limit = {"reveal": MAX_ENVELOPE_BYTES, "result": MAX_RESULT_BYTES}.get(kind, MAX_JSON_BYTES)
    before = web.rows()
    headers = {"content-type": POSTS[kind].content_type or JSON}
    assert is_problem(web("POST", path_of(kind), content=b" " * (limit + 1), headers=headers), 413, "body-too-large")
    assert not is_problem(web("POST", path_of(kind), content=b" " * limit, headers=headers), 413, "body-too-large")
    assert web.rows() == before


@pytest.mark.parametrize("kind", POSTS)
@pytest.mark.parametrize("given", ["text/plain", "", "application/json; charset=latin-1", "multipart/form-data"])
def test_another_content_type_is_refused(web: Web, kind: str, given: str) -> None:
    given = "application/json" if given == POSTS[kind].content_type else given
    answer = web("POST", path_of(kind), content=b"{}", headers={"content-type": given})
    assert is_problem(answer, 415, "wrong-content-type")


def test_a_compressed_body_is_refused(web: Web) -> None:
    answer = web("POST", "/v1/log", content=b"{}", headers={"content-type": JSON, "content-encoding": "gzip"})
    assert is_problem(answer, 415, "wrong-content-type")


@pytest.mark.parametrize("length", ["-1", "+2", "1e3", "0x10", "02", "9" * 30, "two"])
def test_a_length_that_is_no_number_is_refused(web: Web, length: str) -> None:
    headers = {"content-type": JSON, "content-length": length}
    assert is_problem(web("POST", "/v1/log", content=b"{}", headers=headers), 400, "malformed-input")


@pytest.mark.parametrize("length", ["1", "3"])
def test_a_body_of_another_length_than_announced_is_refused(web: Web, length: str) -> None:
    headers = {"content-type": JSON, "content-length": length}
    assert is_problem(web("POST", "/v1/log", content=b"{}", headers=headers), 400, "malformed-input")


# --- content -------------------------------------------------------------------------------------------------------


GARBAGE = {
    "empty": b"",
    "no JSON": b"\xff\xfe",
    "byte order mark": b"\xef\xbb\xbf{}",
    "spaces": b'{ "type": "commitment" }',
    "duplicate keys": b'{"day":"2026-10-02","day":"2026-10-03"}',
    "NaN": b'{"a":NaN}',
    "a float": b'{"a":1.5}',
    "deep": b"[" * 5000 + b"]" * 5000,
    "two values": b"{}{}",
    "a list": b"[]",
    "null": b"null",
}


@pytest.mark.parametrize("kind", ["enrol", "leaf", "endorse"])
@pytest.mark.parametrize("body", GARBAGE.values(), ids=GARBAGE.keys())
def test_garbage_is_malformed_and_nothing_is_stored(web: Web, kind: str, body: bytes) -> None:
    before = web.rows()
    answer = web("POST", path_of(kind), content=body, headers={"content-type": JSON})
    assert answer.status_code == 400
    assert answer.json()["type"] in ("urn:windvane:problem:malformed-input", "urn:windvane:problem:malformed-leaf")
    assert is_problem(answer, 400, answer.json()["type"].removeprefix("urn:windvane:problem:"))
    assert web.rows() == before


def test_refusals_of_the_inbox_keep_their_status_and_type(web: Web, manifest: Manifest) -> None:
    small = web.small
    first, second = small.draw(manifest, 1), small.draw(manifest, 1)

    def leaf(raw: bytes) -> httpx.Response:
        return web("POST", "/v1/log", content=raw, headers={"content-type": JSON})

    def reveal(raw: bytes) -> httpx.Response:
        path = f"/v1/rounds/{ROUND}/envelopes"
        return web("POST", path, content=raw, headers={"content-type": BINARY})

    assert leaf(first.leaf).status_code == 200
    assert leaf(first.leaf).content == leaf(first.leaf).content
    assert is_problem(leaf(second.leaf), 409, "duplicate-submission")
    assert is_problem(reveal(second.envelope), 409, "commit-mismatch")
    assert is_problem(reveal(first.envelope[:-1]), 400, "malformed-envelope")
    assert reveal(first.envelope).status_code == 200
    small.clock.pass_by(days=-30)
    early = leaf(small.draw(manifest, 2).leaf)
    assert is_problem(early, 425, "window-not-open")
    assert early.headers["retry-after"] == "60"
    small.clock.pass_by(days=90)
    assert is_problem(leaf(small.draw(manifest, 2).leaf), 410, "round-closed")
    assert is_problem(web("GET", f"/v1/rounds/{ROUND}/envelopes"), 425, "lot-before-close")


# --- addresses -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/docs", "/openapi.json", "/redoc", "/v1/log/", "/v2/log", "/%00", "/v1"])
def test_only_the_listed_addresses_answer(web: Web, path: str) -> None:
    assert is_problem(web("GET", path), 404, "unknown-address")


@pytest.mark.parametrize(("method", "path"), [("DELETE", "/v1/log"), ("PUT", "/livez"), ("POST", "/v1/rounds")])
def test_another_method_is_a_problem_document_too(web: Web, method: str, path: str) -> None:
    answer = web(method, path)
    assert is_problem(answer, 405, "unknown-address")


@pytest.mark.parametrize(
    "query", ["", "?old=0", "?old=&new=1", "?old=-1&new=1", "?old=00&new=1", "?new=1&old=0", "?old=0&new=1&x=1"]
)
def test_a_proof_takes_two_parameters_in_one_form(web: Web, query: str) -> None:
    assert is_problem(web("GET", f"/v1/log/consistency{query}"), 400, "malformed-input")


def test_other_addresses_take_no_parameter(web: Web) -> None:
    assert is_problem(web("GET", "/v1/federation?x=1"), 400, "malformed-input")


def test_answers_are_the_inbox_s_bytes(web: Web) -> None:
    web.small.open_round()
    for kind, route in ROUTES.items():
        if route.method == "GET" and kind not in ("manifest", "envelopes"):
            query = "?old=0&new=0" if kind == "consistency" else ""
            bodies = {"consistency": {"old": 0, "new": 0}, "tile": {"path": "tile/0/000.p/4"}}
            body = canonical.encode(bodies[kind]) if kind in bodies else b""
            path = path_of(kind).replace("{tile}", "0/000.p/4")
            assert web("GET", path + query).content == web.small.send(kind, body)


@pytest.mark.parametrize("tile", ["0/000", "0/000.p/200", "entries/000", "entries/001.p/1", "9/000", "0/00", "../x"])
def test_no_tile_is_shown_that_the_witnesses_have_not_signed(web: Web, tile: str) -> None:
    web.small.open_round()
    assert is_problem(web("GET", f"/v1/log/tile/{tile}"), 404, "unknown-address")


def test_the_log_can_be_read_by_its_tiles_alone(web: Web) -> None:
    web.small.open_round()
    whole = leaves_of(web.small)
    read = TiledTree(whole.head.checkpoint, lambda tile: web("GET", f"/v1/log/{tile.path}").content)
    assert list(read.entries(0, whole.head.size)) == [leaf.raw for leaf in whole.leaves]


def test_health_says_alive_and_ready(web: Web) -> None:
    assert web("GET", "/livez").json() == {"live": True}
    assert web("GET", "/readyz").json() == {"ready": True}


def test_a_fault_is_a_problem_document_without_its_text(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_parcel: object) -> bytes:
        raise ZeroDivisionError("what was sent: secret")

    monkeypatch.setattr(web.small.coordinator, "handle", fail)
    faulty = Web(web.small, None)
    assert is_problem(faulty("GET", "/v1/federation"), 500, "internal-error")
    assert "secret" not in faulty.log.getvalue()
    assert [line["event"] for line in faulty.lines()] == ["fault", "request"]


# --- site ----------------------------------------------------------------------------------------------------------


def test_the_site_is_served_with_strong_tags_and_closed_headers(web: Web) -> None:
    page = web("GET", "/2026-q3/")
    assert page.text == "<title>Quarter</title>"
    assert all(page.headers[name] == value for name, value in SECURITY_HEADERS.items())
    assert page.headers["etag"] == f'"{canonical.sha256_hex(page.content)}"'
    assert web("GET", "/2026-q3/", headers={"if-none-match": page.headers["etag"]}).status_code == 304
    assert web("HEAD", "/2026-q3/").content == b""


@pytest.mark.parametrize(
    ("path", "lasting"),
    [("/", False), ("/2026-q3/report.json", True), ("/style.0123456789abcdef.css", True), ("/2026-q3/", True)],
)
def test_only_what_never_changes_is_cached_for_ever(web: Web, path: str, lasting: bool) -> None:
    assert ("immutable" in web("GET", path).headers["cache-control"]) is lasting


def test_a_folder_is_redirected_so_that_relative_links_hold(web: Web) -> None:
    answer = web("GET", "/2026-q3")
    assert (answer.status_code, answer.headers["location"]) == (308, "2026-q3/")


@pytest.mark.parametrize(
    "path",
    ["/../secret.html", "/%2e%2e/secret.html", "/link.html", "/INDEX.html", "/.hidden", "/2026-q3/all/", "/a/b/"],
)
def test_nothing_outside_the_site_is_served(web: Web, path: str) -> None:
    assert is_problem(web("GET", path), 404, "unknown-address")


# --- log -----------------------------------------------------------------------------------------------------------


def test_the_service_log_has_nothing_of_the_client(web: Web, manifest: Manifest) -> None:
    made = web.small.draw(manifest, 1)
    headers = {"content-type": JSON, "user-agent": "marked-agent", "x-forwarded-for": "192.0.2.77"}
    web("POST", "/v1/log", content=made.leaf, headers=headers)
    path = f"/v1/rounds/{ROUND}/envelopes"
    web("POST", path, content=made.envelope, headers=headers | {"content-type": BINARY})
    web("GET", "/v1/rounds/2030-Q1/manifest?q=marked-query", headers=headers)
    assert [{k: v for k, v in line.items() if k != "at"} for line in web.lines()] == [
        {"event": "request", "method": "POST", "route": "/v1/log", "status": 200},
        {"event": "request", "method": "POST", "route": "/v1/rounds/{round}/envelopes", "status": 200},
        {
            "event": "request",
            "method": "GET",
            "route": "/v1/rounds/{round}/manifest",
            "status": 400,
            "path": "/v1/rounds/2030-Q1/manifest",
        },
    ]
    written = web.log.getvalue()
    assert made.hash not in written
    assert not any(word in written for word in ("marked", "192.0.2", "127.0.0.1"))


def test_a_field_or_event_outside_the_list_is_an_error_here_and_dropped_in_production() -> None:
    kept = io.StringIO()
    log = ServiceLog(kept, Clock())
    log.write("request", {"method": "GET", "address": "192.0.2.77"})
    log.write("something", {"method": "GET"})
    assert json.loads(kept.getvalue()).keys() == {"event", "at", "method"}
    with pytest.raises(ValueError, match="closed list"):
        ServiceLog(kept, Clock(), strict=True).write("request", {"address": "192.0.2.77"})
    log.write("request", {"path": "/a\nb\x1b[31m" + "x" * 500})
    assert len(kept.getvalue().splitlines()[-1]) < 300
    assert "\x1b" not in kept.getvalue()
