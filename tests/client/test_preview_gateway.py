# SPDX-License-Identifier: Apache-2.0
"""The preview of a gateway's rows says what is missing before they can count."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from windvane_client.evidence import micros
from windvane_client.preview import plan_source, read
from windvane_client.preview_own import next_step, own_work
from windvane_client.preview_setup import no_setup
from windvane_client.store import EventStore

FIXTURE = Path(__file__).parent / "fixtures" / "litellm_SYNTHETIC.csv"
NOW = datetime(2027, 1, 1, tzinfo=UTC)


def test_the_preview_of_a_gateway_says_what_is_missing() -> None:
    setup = no_setup()
    sample = plan_source("litellm", [FIXTURE], setup)
    with EventStore.temporary() as store:
        read([sample], store, setup, now=NOW)
        own = own_work(store, setup, micros(NOW))
    assert "interactive_keys" in next_step([sample], own, [], setup)
