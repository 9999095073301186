# SPDX-License-Identifier: Apache-2.0
"""The page about recorded logs says what the readers say today."""

from __future__ import annotations

from pathlib import Path

import pytest

from house.render_samples import PAGE, page


def test_the_page_equals_the_readers_runs(shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert PAGE.read_text("utf-8") == page(shared / "samples"), "run: python tests/house/render_samples.py FOLDER"
