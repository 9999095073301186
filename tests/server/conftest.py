# SPDX-License-Identifier: Apache-2.0
"""A small federation for each test of the server, copied from one that was set up once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from small_federation import SmallFederation, agreement
from windvane_privacy.manifest import Manifest


@pytest.fixture(scope="session")
def enrolled(tmp_path_factory: pytest.TempPathFactory) -> SmallFederation:
    """Twenty organisations, no round."""
    made = SmallFederation(tmp_path_factory.mktemp("template") / "enrolled")
    made.close()
    return made


@pytest.fixture(scope="session")
def opened(enrolled: SmallFederation, tmp_path_factory: pytest.TempPathFactory) -> SmallFederation:
    """The same with an open round."""
    made = enrolled.copy(tmp_path_factory.mktemp("template") / "opened")
    made.open_round()
    made.close()
    return made


@pytest.fixture(scope="session")
def submitted(opened: SmallFederation, tmp_path_factory: pytest.TempPathFactory) -> SmallFederation:
    """The same after everybody has sent."""
    made = opened.copy(tmp_path_factory.mktemp("template") / "submitted")
    agreed = agreement(made)
    for number in range(1, 21):
        made.submit(agreed, number)
    made.close()
    return made


@pytest.fixture
def full(submitted: SmallFederation, tmp_path: Path) -> Iterator[SmallFederation]:
    """A federation of the test's own in which everybody has sent."""
    made = submitted.copy(tmp_path / "federation")
    yield made
    made.close()


@pytest.fixture
def small(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SmallFederation]:
    """A federation of the test's own; its round is open where the test asks for the manifest too."""
    template = request.getfixturevalue("opened" if "manifest" in request.fixturenames else "enrolled")
    made = template.copy(tmp_path / "federation")
    yield made
    made.close()


@pytest.fixture
def manifest(small: SmallFederation) -> Manifest:
    """The agreement of the open round."""
    return agreement(small)
