# SPDX-License-Identifier: Apache-2.0
"""The LiteLLM and Open WebUI samples give exactly the values that were worked out by hand, through the preview."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from windvane_client.evidence import micros
from windvane_client.preview import plan_source, read
from windvane_client.preview_own import next_step, own_work
from windvane_client.preview_setup import no_setup
from windvane_client.preview_sources import recognise
from windvane_client.store import EventStore

FIXTURE = Path(__file__).parent / "fixtures" / "litellm_SYNTHETIC.csv"
NOW = datetime(2027, 1, 1, tzinfo=UTC)
SAMPLES = (
    ("litellm", "fixture_spend_logs_payload.json"),
    ("litellm", "generated_standard_logging.jsonl"),
    ("open_webui", "SYNTHETIC_feedback_export.json"),
)


def previewed(source: str, path: Path) -> dict[str, Any]:
    setup = no_setup()
    sample = plan_source(source, [path], setup)
    with EventStore.temporary() as store:
        read([sample], store, setup, now=NOW, each=True)
    assert sample.refused is None
    assert sample.observed is not None
    return sample.observed


@pytest.mark.parametrize(("source", "name"), SAMPLES)
def test_sample_gives_its_expected_values_also_the_doubtful_ones(shared: Path, source: str, name: str) -> None:
    path = shared / "samples" / source / name
    expected = json.loads(path.with_name(f"{name}.expected.json").read_text("utf-8"))
    assert previewed(source, path) == expected["observed"]


@pytest.mark.parametrize(("source", "name"), SAMPLES)
def test_sample_is_recognised_without_being_named(shared: Path, source: str, name: str) -> None:
    assert recognise(shared / "samples" / source / name) == (source, None)


def test_the_preview_of_a_gateway_says_what_is_missing() -> None:
    setup = no_setup()
    sample = plan_source("litellm", [FIXTURE], setup)
    with EventStore.temporary() as store:
        read([sample], store, setup, now=NOW)
        own = own_work(store, setup, micros(NOW))
    assert "interactive_keys" in next_step([sample], own, [], setup)
