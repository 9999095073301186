# SPDX-License-Identifier: Apache-2.0
"""The closed public lists: signals, kinds of work, model families and the pairs that are compared.

Rules kept here:
* every list is public, signed with the manifest and fixed before the quarter: a rare name cannot reveal itself by
  appearing;
* a raw model name becomes a family id, `other`, `unknown` or `synthetic`; the raw name is dropped at once;
* the pair list follows one greedy rule over a named public order and never looks at a count of ours.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Mapping, Sequence
from enum import StrEnum
from itertools import combinations

import msgspec

from windvane_privacy.errors import ManifestError


class Signal(StrEnum):
    """The five signals, in manifest order. A larger share of successes is always better."""

    COMPLETION = "completion"
    SWITCH_AWAY = "switch_away"
    TOOL_RELIABILITY = "tool_reliability"
    INFRA_RECOVERY = "infra_recovery"
    BLIND_QUALITY = "blind_quality"


SIGNALS: tuple[Signal, ...] = tuple(Signal)

KINDS: tuple[str, ...] = ("coding", "analysis", "writing", "research", "support", "other")
"""Kinds of work. `other` is everything undecided; it is never compared, but for blind quality in the pooled layout."""

POOLED = "all"
"""The one published kind of the pooled layout; votes are still balanced inside each kind of work."""

OTHER, UNKNOWN, SYNTHETIC = "other", "unknown", "synthetic"
SPECIAL_FAMILIES = frozenset({OTHER, UNKNOWN, SYNTHETIC})

_FAMILY_ID = re.compile(r"[a-z0-9]+(?:[.-][a-z0-9]+)*")


class Family(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One model family: family and generation, e.g. `claude-opus-4.6`.

    `patterns` are anchored regular expressions over the normalised name (see `normalise`), with no nested quantifier.
    `valid_from` and `retired_from` are days (`YYYY-MM-DD`) or null.
    """

    id: str
    label: str
    vendor: str
    patterns: tuple[str, ...]
    valid_from: str | None = None
    retired_from: str | None = None


_PROVIDERS = (
    "anthropic", "openai", "azure_ai", "bedrock", "vertex_ai", "google", "gemini", "openrouter", "mistralai", "mistral",
    "meta-llama", "deepseek", "x-ai", "xai", "qwen", "cohere", "groq", "together_ai", "fireworks_ai", "litellm_proxy",
    "models", "publishers", "converse", "invoke",
)  # fmt: skip
_STRIP = (
    re.compile(rf"^(?:{'|'.join(map(re.escape, _PROVIDERS))})/"),
    re.compile(r"^(?:us|eu|apac|global)\.(?=[a-z]+\.)"),
    re.compile(r"^(?:anthropic|amazon|meta|mistral|cohere|deepseek|openai)\."),
    re.compile(r"-v\d+:\d+$"),
    re.compile(r"-preview$"),
    re.compile(r"@(?:latest|\d{8}|\d{4}-\d{2}-\d{2})$"),
    re.compile(r"-\d{4}-\d{2}-\d{2}$"),
    re.compile(r"-(?:19|20)\d{6}$"),
    re.compile(r"-(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])$"),
    re.compile(r"\[1m\]$"),
    re.compile(r"[-:]thinking$"),
    re.compile(r"-fast$"),
    re.compile(r":free$"),
    re.compile(r"-latest$"),
)
_NO_MODEL = frozenset({"auto", "default", "unknown", "opusplan", "openrouter/auto", "sonnet", "opus", "haiku", ""})
MAX_NAME_BYTES = 200


def normalise(name: str) -> str | None:
    """A raw model name without provider, region, date and mode words; None where it is not usable."""
    if not 1 <= len(name.encode("utf-8", "replace")) <= MAX_NAME_BYTES:
        return None
    text = unicodedata.normalize("NFKC", name).strip().casefold()
    if text in _NO_MODEL or text.startswith(("arn:", "azure/")):
        return None
    while True:
        before = text
        for pattern in _STRIP:
            text = pattern.sub("", text)
        if text == before:
            return text if text not in _NO_MODEL else None


class Catalogue:
    """Families with their compiled patterns.

    Raises:
        ManifestError: an id is malformed or occurs twice, or a pattern does not compile.
    """

    def __init__(self, families: Sequence[Family]) -> None:
        ids = [family.id for family in families]
        if len(set(ids)) != len(ids) or any(i in SPECIAL_FAMILIES or not _FAMILY_ID.fullmatch(i) for i in ids):
            raise ManifestError("A family id of the catalogue is malformed or occurs twice.")
        self.families = tuple(families)
        self.ids = tuple(ids)
        self._by_id = {family.id: family for family in families}
        try:
            with warnings.catch_warnings():
                # A pattern that a later Python will read otherwise would give two members two families.
                warnings.simplefilter("error", FutureWarning)
                self._patterns = [(f.id, re.compile(p)) for f in families for p in (re.escape(f.id), *f.patterns)]
        except (re.error, OverflowError, RecursionError, FutureWarning) as error:
            raise ManifestError("A pattern of the catalogue is not a regular expression.") from error
        self._seen: dict[str, str] = {}

    def __contains__(self, family: str) -> bool:
        return family in self._by_id

    def get(self, family: str) -> Family:
        """The family of an id. Raises KeyError for an id that is not in the catalogue."""
        return self._by_id[family]

    def resolve(self, name: str | None, aliases: Mapping[str, str] | None = None) -> str:
        """Family id, `other`, `unknown` or `synthetic` for a raw model name.

        Raises:
            ManifestError: two families match the name (the catalogue overlaps).
        """
        if name is None:
            return UNKNOWN
        if aliases and name in aliases:
            return aliases[name]
        known = self._seen.get(name)
        if known is None:
            known = self._resolve(name)
            if len(self._seen) < 4096:
                self._seen[name] = known
        return known

    def _resolve(self, name: str) -> str:
        if name.strip().casefold() == "<synthetic>":
            return SYNTHETIC
        text = normalise(name)
        if text is None:
            return UNKNOWN
        found = {family for family, pattern in self._patterns if pattern.fullmatch(text)}
        if len(found) > 1:
            raise ManifestError("Two families of the catalogue match one model name.")
        return found.pop() if found else OTHER


def ordered_pair(a: str, b: str) -> tuple[str, str]:
    """The unordered pair with the smaller id first."""
    return (a, b) if a < b else (b, a)


def greedy_pairs(order: Sequence[str], cap: int) -> tuple[tuple[str, str], ...]:
    """The pair list of direction.md section 2, in catalogue (id) order.

    Goes through all pairs by rank sum, then by lower rank, with the pairs (r, k+1-r) moved to the end, and takes a pair
    while both models are in fewer than `cap` pairs. `order` lists family ids by a named public rank.
    """
    k = len(order)
    ranked = sorted(
        combinations(range(1, k + 1), 2),
        key=lambda pair: (pair[0] + pair[1] == k + 1, pair[0] + pair[1], pair[0]),
    )
    used = dict.fromkeys(range(1, k + 1), 0)
    taken: list[tuple[str, str]] = []
    for a, b in ranked:
        if used[a] < cap and used[b] < cap:
            used[a] += 1
            used[b] += 1
            taken.append(ordered_pair(order[a - 1], order[b - 1]))
    return tuple(sorted(taken))
