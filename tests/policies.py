# SPDX-License-Identifier: Apache-2.0
"""The default policy for tests, with the keys that the manifests of tests name."""

from __future__ import annotations

import tomllib
from typing import Any

from manifests import LOG_ORIGIN, coordinator_key, guardian_key
from windvane_privacy.policy import PinnedGuardian, Policy, policy_from, policy_toml

GUARDIANS = [PinnedGuardian(f"Guardian {j}", guardian_key(j).public.hex(), f"group {j}") for j in range(1, 4)]


def text(**changes: Any) -> str:
    arguments: dict[str, Any] = {
        "coordinator": coordinator_key().public.hex(),
        "log_origin": LOG_ORIGIN,
        "guardians": GUARDIANS,
    }
    return policy_toml(**{**arguments, **changes})


def policy(**changes: Any) -> Policy:
    """The default policy with some fields changed, as a file would give it."""
    return policy_from({**tomllib.loads(text()), **changes})
