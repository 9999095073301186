# SPDX-License-Identifier: Apache-2.0
"""Which rules this version has: each with the hash of the conformance vectors that pin it.

Rules kept here:
* a rule is claimed only with the shipped vectors that a test makes it reproduce (`vectors/*.json`);
* a manifest names rules by these hashes, so a member or guardian with other rules refuses the round;
* `code_sha256` names the very code of the decision rule, in one hash over its modules.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import resources

from windvane_privacy import canonical
from windvane_privacy.manifest import Rule

RULE_MODULES = ("claims.py", "direction.py", "statistics.py", "transitions.py")


@cache
def current_rules() -> tuple[Rule, ...]:
    """The rules of this version, by id: the stem of each vector file and its SHA-256 (hex)."""
    folder = resources.files("windvane_privacy") / "vectors"
    files = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".json")), key=lambda entry: entry.name)
    return tuple(Rule(entry.name.removesuffix(".json"), canonical.sha256_hex(entry.read_bytes())) for entry in files)


def rules_sha256(rules: tuple[Rule, ...]) -> str:
    """One hex SHA-256 over the rule ids of a manifest and their vectors."""
    return canonical.sha256_hex(canonical.encode([[rule.id, rule.sha256] for rule in rules]))


@cache
def code_sha256() -> str:
    """Hex SHA-256 over the modules of the decision rule, each preceded by its name and length."""
    digest = hashlib.sha256()
    folder = resources.files("windvane_privacy")
    for name in RULE_MODULES:
        raw = (folder / name).read_bytes()
        digest.update(f"{name}\0{len(raw)}\0".encode())
        digest.update(raw)
    return digest.hexdigest()
