# SPDX-License-Identifier: Apache-2.0
"""The published site: a pure function from report, manifest and earlier reports to static files.

Rules kept here:
* question first: kind of work, then pair; nothing is sorted by strength or counted, no page is about one model;
* figures and model names never share a file;
* no script, relative links only, so that any server or a plain folder can show it;
* same input, same bytes; every page says so where the round is a demonstration.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from windvane_privacy import canonical
from windvane_privacy.claims import GLOSS
from windvane_privacy.errors import ReportError
from windvane_privacy.manifest import Manifest
from windvane_privacy.report_file import LIFETIME_CAP, Report
from windvane_privacy.report_schema import report_schema
from windvane_server.report import pages, wording
from windvane_server.report.render import SHEET, Renderer

ASSETS = ("windvane.svg",)


def build_site(report: Report, manifest: Manifest, history: Sequence[Report], out: Path) -> None:
    """Write the pages of one publication into the folder `out`; other quarters' folders are not touched.

    Args:
        report: what is published.
        manifest: the agreement of its round.
        history: all earlier reports, oldest first.
        out: an existing or new folder.

    Raises:
        ReportError: the manifest is not the report's.
    """
    if report.method.preregistration_sha256 != manifest.sha256:
        raise ReportError("The manifest is not the one of this report.")
    for path, content in site_files(report, manifest, history).items():
        target = out / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def site_files(report: Report, manifest: Manifest, history: Sequence[Report]) -> dict[str, bytes]:
    """Content of every file by its path; see `build_site`."""
    quarter = report.quarter.lower()
    renderer = Renderer(report)
    files = {renderer.sheet_name: SHEET, **{name: renderer.asset(name) for name in ASSETS}}
    files["schema/report-1.json"] = schema_file()
    files[f"{quarter}/report.json"] = canonical.encode(msgspec.to_builtins(report))
    earlier = [(old.quarter.lower(), wording.quarter_name(old.quarter)) for old in reversed(history)]
    for path, base in (("index.html", f"{quarter}/"), (f"{quarter}/index.html", "")):
        files[path] = _front(renderer, report, path, base, earlier)
    files["method/index.html"] = renderer.page("method.html", "method/index.html", **_method(report, manifest))
    files["privacy/index.html"] = renderer.page("privacy.html", "privacy/index.html", **_privacy(report, manifest))
    if report.not_opened is None:
        files |= _quarter_pages(renderer, report, history, quarter)
    return files


def schema_file() -> bytes:
    """The JSON Schema of the report as it is served."""
    return json.dumps(report_schema(), indent=1, sort_keys=True).encode() + b"\n"


def _front(renderer: Renderer, report: Report, path: str, base: str, earlier: list[tuple[str, str]]) -> bytes:
    if report.not_opened is not None:
        return renderer.page("not_opened.html", path, earlier=earlier)
    kinds = [(base + kind, wording.KIND_TITLES[kind], pages.pair_links(report, base + kind)) for kind in report.kinds]
    signals = [(wording.SIGNAL_TITLES[s], wording.SIGNAL_QUESTIONS[s]) for s in wording.SIGNAL_TITLES]
    return renderer.page("index.html", path, kinds=kinds, signals=signals, earlier=earlier)


def _quarter_pages(renderer: Renderer, report: Report, history: Sequence[Report], quarter: str) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    for kind in report.kinds:
        view = pages.kind_view(report, kind)
        path = f"{quarter}/{kind}/index.html"
        files[path] = renderer.page("kind.html", path, view=view)
        for a, b in pages.pairs(report):
            pair = pages.pair_view(report, history, kind, a, b)
            path = f"{quarter}/{kind}/{pages.pair_slug(a, b)}/index.html"
            files[path] = renderer.page("pair.html", path, view=pair)
    path = f"{quarter}/withheld/index.html"
    files[path] = renderer.page("withheld.html", path, view=pages.withheld_view(report))
    path = f"{quarter}/models/index.html"
    files[path] = renderer.page("models.html", path, models=report.models)
    return files


def _method(report: Report, manifest: Manifest) -> dict[str, Any]:
    opening = report.method.opening
    return {
        "opening": "" if opening is None else wording.MESSAGES[f"opening.{opening}"],
        "m": manifest,
        "glosses": [(word.value, gloss) for word, gloss in GLOSS.items()],
        "letters": wording.LETTER_MEANINGS,
        "questions": [(wording.SIGNAL_TITLES[s], wording.SIGNAL_QUESTIONS[s]) for s in wording.SIGNAL_TITLES],
        "kind_titles": [wording.KIND_TITLES[kind] for kind in manifest.kinds],
    }


def _privacy(report: Report, manifest: Manifest) -> dict[str, Any]:
    return {"m": manifest, "p": report.privacy, "rounds": LIFETIME_CAP // manifest.rho}
