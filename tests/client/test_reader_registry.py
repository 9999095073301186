# SPDX-License-Identifier: Apache-2.0
"""The registry of readers: each under its own name, imported when it is first asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

from windvane_client.readers import READERS, reader
from windvane_client.readers.gemini_cli import CHATS
from windvane_client.readers.otlp_dialects import DIALECTS
from windvane_privacy.errors import UnsupportedSource


@pytest.mark.parametrize("source", list(READERS))
def test_a_reader_is_registered_under_its_own_source(source: str) -> None:
    assert reader(source).source == source
    assert reader(source) is READERS[source]


def test_every_dialect_of_telemetry_is_a_source() -> None:
    assert [source.removeprefix("otlp/") for source in READERS if source.startswith("otlp/")] == list(DIALECTS)


def test_gemini_cli_and_the_context_mean_the_same_folder() -> None:
    from windvane_client import readers

    assert readers._CHATS == CHATS


def test_a_source_without_reader_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedSource):
        reader("otlp/nothing")


@pytest.mark.process
def test_a_worker_imports_neither_other_readers_nor_what_is_built_from_events() -> None:
    program = (
        "import sys, windvane_client.file_worker\n"
        "from windvane_client.readers import reader\n"
        "reader('claude_code')\n"
        "unwanted = ('readers.otlp', 'readers.codex', 'readers.mapping', 'signals', 'store', 'preview')\n"
        "print([name for name in unwanted if f'windvane_client.{name}' in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
