# SPDX-License-Identifier: Apache-2.0
"""Templates and the style sheet, and how a page finds its way back to the root of the site.

Rules kept here:
* everything is escaped; an undefined name stops the build;
* links are relative and name `index.html`, so that a folder opened from disk works like a served one;
* the style sheet's name holds its hash.
"""

from __future__ import annotations

from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from windvane_privacy import canonical
from windvane_privacy.manifest import parse_time
from windvane_privacy.report_file import Report
from windvane_privacy.site_lint import LICENCE_URL
from windvane_server.report import wording

HERE = Path(__file__).resolve().parent
SHEET = (HERE / "style.css").read_bytes()


class Renderer:
    """Renders the pages of one report."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self.sheet_name = f"style.{canonical.sha256_hex(SHEET)[:16]}.css"

    def page(self, template: str, path: str, **values: Any) -> bytes:
        """One page at `path` (relative to the root of the site)."""
        report = self._report
        text = (
            _environment()
            .get_template(template)
            .render(
                root="../" * path.count("/"),
                sheet=self.sheet_name,
                report=report,
                quarter=report.quarter.lower(),
                quarter_name=wording.quarter_name(report.quarter),
                span=_span(report),
                messages=wording.MESSAGES,
                licence=LICENCE_URL,
                **values,
            )
        )
        return text.encode()

    @staticmethod
    def asset(name: str) -> bytes:
        """A file that is served as it is."""
        return (HERE / name).read_bytes()


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _span(report: Report) -> str:
    """The window in words, by its first and its last day: `1 July 2026 to 30 September 2026`."""
    first = parse_time(report.window.from_)
    last = parse_time(report.window.to) - timedelta(seconds=1)
    return f"{first.day} {first:%B} {first.year} to {last.day} {last:%B} {last.year}"
