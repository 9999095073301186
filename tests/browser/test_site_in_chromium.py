# SPDX-License-Identifier: Apache-2.0
"""The site in Debian's Chromium: from a folder and from a server, in light and dark, narrow, zoomed, without script."""

from __future__ import annotations

import contextlib
import shutil
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from conftest import not_run
from manifests import coordinator_key
from report_world import all_facts, demo_manifest, simulated_sums
from windvane_server.report import publish_round

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
WORLD = {"alder-4": 0.6, "birch-2": 0.0, "cedar-5": 0.3, "elm-3.5": 0.28, "oak-1": -0.4}
POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
PATHS = (
    "index.html",
    "2026-q3/index.html",
    "2026-q3/all/index.html",
    "2026-q3/all/alder-4--elm-3-5/index.html",
    "2026-q3/withheld/index.html",
    "2026-q3/models/index.html",
    "method/index.html",
    "privacy/index.html",
)
# Relative luminance and contrast of WCAG 2.2, over every element that holds text of its own.
CONTRAST = """() => {
  const parse = (c) => c.match(/[\\d.]+/g).map(Number);
  const lum = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c.length < 4 || c[3] > 0) return c;
    }
    return [255, 255, 255];
  };
  const bad = [];
  for (const e of document.querySelectorAll('body *')) {
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())) continue;
    const [a, b] = [lum(parse(getComputedStyle(e).color)), lum(ground(e))].sort((x, y) => y - x);
    if ((a + .05) / (b + .05) < 4.5) bad.push(e.tagName + ': ' + e.textContent.trim().slice(0, 30));
  }
  return bad;
}"""

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    manifest = demo_manifest()
    sums = simulated_sums(manifest, WORLD, seed=3, silent=("blind_quality",))
    out = tmp_path_factory.mktemp("browser") / "site"
    publish_round(out, manifest=manifest, sums=sums, facts=all_facts(manifest), history=(), key=coordinator_key())
    return out


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    if not Path(CHROMIUM).is_file():
        not_run("there is no Chromium", "apt-get install chromium")
    sync_api = pytest.importorskip("playwright.sync_api", reason="not run: playwright is missing")
    with sync_api.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield running
        running.close()


class Served(SimpleHTTPRequestHandler):
    """The site with the headers that docs/protocol.md demands."""

    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        super().end_headers()

    def log_message(self, *_arguments: object) -> None:
        """Quiet."""


@pytest.fixture(scope="module")
def address(site) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Served, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


@contextlib.contextmanager
def opened(browser, **options):
    context = browser.new_context(**options)
    page = context.new_page()
    page.messages, page.requested = [], []
    page.on("console", lambda message: page.messages.append(message.text))
    page.on("request", lambda request: page.requested.append(request.url))
    page.on("requestfailed", lambda request: page.messages.append(f"failed: {request.url}"))
    yield page
    context.close()


def test_site_loads_nothing_from_elsewhere_and_breaks_no_policy(browser, address):
    with opened(browser, java_script_enabled=False) as page:
        for path in PATHS:
            # Idle first: leaving a page while it loads would abort its own requests.
            assert page.goto(f"{address}/{path}", wait_until="networkidle").status == 200
            assert page.locator("h1").count() == 1
        assert all(url.startswith(address) for url in page.requested)
        assert page.messages == []


def test_reader_walks_from_the_question_to_a_statement_in_a_plain_folder(browser, site):
    with opened(browser, java_script_enabled=False) as page:
        page.goto((site / "index.html").as_uri())
        assert "invented models" in page.locator(".demo").inner_text()
        page.get_by_role("link", name="Alder 4 and Birch 2", exact=True).click()
        assert page.locator("h1").inner_text() == "Alder 4 and Birch 2"
        said = page.locator("section", has=page.locator("#completion")).inner_text()
        assert "finished their work with Alder 4 more often than with Birch 2: moderate (at most about one" in said
        page.get_by_role("link", name="All kinds of work together").click()
        assert page.locator("table.tri").first.is_visible()
        page.get_by_role("link", name="What is withheld this quarter, and why").click()
        assert "Not enough people or organisations" in page.locator("main").inner_text()
        assert all(url.startswith(site.as_uri()) for url in page.requested)
        assert page.messages == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast(browser, site, scheme):
    with opened(browser, color_scheme=scheme, viewport={"width": 1280, "height": 900}) as page:
        for path in PATHS:
            page.goto((site / path).as_uri())
            assert page.evaluate(CONTRAST) == [], path
        colour = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        assert (colour == "rgb(18, 24, 27)") == (scheme == "dark")


# 1280 pixels at 400 % zoom are 320 pixels.
@pytest.mark.parametrize("width", [320, 375, 1280])
def test_no_page_scrolls_sideways(browser, site, width):
    with opened(browser, viewport={"width": width, "height": 800}) as page:
        for path in PATHS:
            page.goto((site / path).as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path


def test_keyboard_reaches_the_content_first_and_the_tables(browser, site):
    with opened(browser) as page:
        page.goto((site / "2026-q3/all/index.html").as_uri())
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.getAttribute('href')") == "#content"
        assert page.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
        regions = page.locator("[role=region][tabindex='0']")
        assert regions.count() >= 4
        for region in regions.all():
            assert page.locator(f"#{region.get_attribute('aria-labelledby')}").count() == 1


def test_links_are_large_enough_to_touch(browser, site):
    with opened(browser, viewport={"width": 320, "height": 800}) as page:
        page.goto((site / "index.html").as_uri())
        heights = page.locator("nav a, .plain a, .brand").evaluate_all(
            "e => e.map(x => x.getBoundingClientRect().height)"
        )
        assert heights
        assert min(heights) >= 24


def test_front_page_can_be_looked_at(browser, site, tmp_path):
    with opened(browser, viewport={"width": 1280, "height": 900}) as page:
        page.goto((site / "index.html").as_uri())
        image = page.screenshot(path=str(tmp_path / "front.png"))
        assert image[:8] == b"\x89PNG\r\n\x1a\n"
        mark = page.locator(".front img")
        assert mark.evaluate("e => e.naturalWidth") > 0
        assert page.locator("h1").bounding_box()["y"] < 400
