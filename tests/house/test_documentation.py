# SPDX-License-Identifier: Apache-2.0
"""The documentation says what the code does, and nothing of how it came to be."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from house.render_docs import PAGES
from windvane_privacy.errors import all_errors

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PROSE = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *ROOT.glob("privacy/**/*.md")])


@pytest.mark.parametrize("page", PAGES)
def test_rendered_pages_equal_the_code(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    assert text == PAGES[page](), "run: python tests/house/render_docs.py"


def test_every_error_says_what_to_do_next() -> None:
    for cls in all_errors().values():
        assert cls.what().endswith("."), cls
        assert cls.advice.strip().endswith("."), cls
        assert cls.what() != cls.advice


@pytest.mark.parametrize("page", PROSE, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if not target.startswith(("http:", "https:", "mailto:")):
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PROSE, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_anchor_exists(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#]*)#([^)]*)\)", page.read_text(encoding="utf-8")):
        if target.startswith("http"):
            continue
        text = ((page.parent / target) if target else page).read_text(encoding="utf-8")
        headings = {
            re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in re.findall(r"^#+ (.*)$", text, re.M)
        }
        assert anchor in headings, f"{target}#{anchor}"


def test_every_dependency_has_a_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    named = (
        list(project["project"]["dependencies"])
        + project["dependency-groups"]["dev"]
        + project["build-system"]["requires"]
    )
    for extra in project["project"]["optional-dependencies"].values():
        named += extra
    page = (DOCS / "decisions" / "0002-dependencies.md").read_text(encoding="utf-8")
    missing = {re.split(r"[\[<>=]", name)[0] for name in named} - set(re.findall(r"[a-z][a-z0-9-]+", page))
    assert not missing


def test_flower_is_pinned_exactly() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["optional-dependencies"]["flower"] == ["flwr==1.42.0"]
    lock = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))
    assert [p["version"] for p in lock["package"] if p["name"] == "flwr"] == ["1.42.0"]


def test_every_decision_is_listed_by_number_once() -> None:
    numbers = [int(p.name[:4]) for p in sorted((DOCS / "decisions").glob("*.md"))]
    assert numbers == list(range(1, len(numbers) + 1))
