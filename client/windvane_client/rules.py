# SPDX-License-Identifier: Apache-2.0
"""What an organisation declares: rules.toml (kinds, tools, markers, scores, modes) and events.toml (outside facts).

Rules kept here:
* rules look at content-free attributes only; the first that matches wins; the reader keeps the kind, not the attribute;
* nothing is detected from several people's data: policies, outages and relays are declared;
* unknown tables, fields, kinds, classes or outcomes are refused at load, with the entry's number and nothing else;
* `sha256` names the rules, which stay fixed inside a window; facts of events.toml may be declared until the draw.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from windvane_client.constants import CONSTANTS, MINUTE, SECOND
from windvane_client.events import OUTCOME_VALUES, TOOL_CLASSES, TOOL_OUTCOMES
from windvane_privacy.catalogue import KINDS
from windvane_privacy.errors import ConfigurationError

ATTRIBUTES = ("source", "recorder", "client", "service", "tag", "team", "key_alias", "log_dir")
MODE_LISTS = ("automation_keys", "service_accounts", "relay_keys", "interactive_keys", "skip_user_agents")
EVENT_KINDS = ("policy", "default_change", "price", "outage", "retirement")
MAX_MARKER_BYTES = 80
_BAD_ENDS = frozenset({"rejected", "failed"})


@dataclass(frozen=True, slots=True)
class KindEntry:
    """One [[kind]]: every attribute named must match its pattern (`*` and `?` as in file names)."""

    kind: str
    patterns: tuple[tuple[str, str], ...]

    def matches(self, attributes: Mapping[str, str]) -> bool:
        """True when all named attributes are there and match."""
        return all(fnmatchcase(attributes.get(name, ""), pattern) for name, pattern in self.patterns)


@dataclass(frozen=True, slots=True)
class DeclaredEvent:
    """One outside fact. `since`, `until`: µs, half-open. `model_from`, `model_to`: family ids or None for any."""

    kind: str
    since: int
    until: int
    model_from: str | None = None
    model_to: str | None = None

    def covers(self, a: str, b: str, moment: int) -> bool:
        """Whether a change from a to b at `moment` (µs) falls under it."""
        return self.since <= moment < self.until and self.model_from in (None, a) and self.model_to in (None, b)


@dataclass(frozen=True, slots=True)
class Rules:
    """An organisation's declarations; the default declares nothing."""

    kinds: tuple[KindEntry, ...] = ()
    tools: Mapping[str, str] = field(default_factory=dict)
    tool_markers: Mapping[bytes, str] = field(default_factory=dict)
    scores: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Name of a score to (value, outcome): what a trace tool's score says about how the work ended."""
    automation_keys: tuple[str, ...] = ()
    service_accounts: tuple[str, ...] = ()
    relay_keys: tuple[str, ...] = ()
    interactive_keys: tuple[str, ...] = ()
    """Keys, users or whole sources of which the organisation declares that only people at a keyboard use them."""
    skip_user_agents: tuple[str, ...] = ()
    """Programs whose own logs are collected too (`*` and `?` as in file names): a gateway drops their rows."""
    declared: tuple[DeclaredEvent, ...] = ()
    service_people: frozenset[bytes] = frozenset()
    """Pseudonyms of `service_accounts`, see `with_people`."""
    sha256: str = hashlib.sha256(b"").hexdigest()
    """Of rules.toml."""
    events_sha256: str = hashlib.sha256(b"").hexdigest()
    """Of events.toml."""

    def kind_rule(self, attributes: Mapping[str, str]) -> str | None:
        """Kind of work of the first entry that matches, or None."""
        return next((entry.kind for entry in self.kinds if entry.matches(attributes)), None)

    def key_mode(self, names: Iterable[str]) -> tuple[str, str] | None:
        """(mode, list) of the first list that names one of a row's keys or users; None where none does."""
        own = frozenset(names)
        for mode, name, listed in (
            ("relay", "relay_keys", self.relay_keys),
            ("automation", "service_accounts", self.service_accounts),
            ("automation", "automation_keys", self.automation_keys),
            ("interactive", "interactive_keys", self.interactive_keys),
        ):
            if not own.isdisjoint(listed):
                return mode, name
        return None

    def skips_agent(self, agent: str) -> bool:
        """Whether another source already tells what this program did."""
        return any(fnmatchcase(agent, pattern) for pattern in self.skip_user_agents)

    def with_people(self, pseudonym: Callable[[str], bytes]) -> Rules:
        """The same rules knowing the pseudonyms of the service accounts (staff ids)."""
        return replace(self, service_people=frozenset(pseudonym(staff) for staff in self.service_accounts))


def parse_rules(rules: str = "", events: str = "") -> Rules:
    """Rules from the text of rules.toml and events.toml; empty text declares nothing.

    Raises:
        ConfigurationError: not TOML, or an unknown or malformed entry.
    """
    table, declared = _toml(rules, "rules.toml"), _toml(events, "events.toml")
    _only(table, {"kind", "tools", "tool_markers", "scores", "modes"}, "rules.toml")
    _only(declared, {"event"}, "events.toml")
    modes = _strings_of(table.get("modes", {}), MODE_LISTS)
    markers = _mapping(table, "tool_markers", TOOL_OUTCOMES)
    if any(not 0 < len(marker.encode()) <= MAX_MARKER_BYTES for marker in markers):
        raise ConfigurationError("A marker in [tool_markers] has not 1 to 80 bytes.")
    return Rules(
        kinds=tuple(_kind(entry, i) for i, entry in enumerate(_list(table, "kind"), 1)),
        tools=_mapping(table, "tools", TOOL_CLASSES),
        tool_markers={marker.encode(): outcome for marker, outcome in markers.items()},
        scores=_scores(table),
        automation_keys=modes["automation_keys"],
        service_accounts=modes["service_accounts"],
        relay_keys=modes["relay_keys"],
        interactive_keys=modes["interactive_keys"],
        skip_user_agents=modes["skip_user_agents"],
        declared=tuple(_declared(entry, i) for i, entry in enumerate(_list(declared, "event"), 1)),
        sha256=hashlib.sha256(rules.encode()).hexdigest(),
        events_sha256=hashlib.sha256(events.encode()).hexdigest(),
    )


def load_rules(folder: Path) -> Rules:
    """Rules from rules.toml and events.toml in a folder; a file that is not there declares nothing.

    Raises:
        ConfigurationError: as `parse_rules`, or a file cannot be read.
    """
    texts = []
    for name in ("rules.toml", "events.toml"):
        try:
            texts.append((folder / name).read_text("utf-8"))
        except FileNotFoundError:
            texts.append("")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"{name} cannot be read.") from error
    return parse_rules(*texts)


def _toml(text: str, name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise ConfigurationError(f"{name} is not TOML.") from None


def _only(table: Mapping[str, Any], known: set[str], where: str) -> None:
    if not set(table) <= known:
        raise ConfigurationError(f"{where} has an unknown field; known are {', '.join(sorted(known))}.")


def _list(table: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    value = table.get(name, [])
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise ConfigurationError(f"[[{name}]] is not a list of tables.")
    return value


def _mapping(table: Mapping[str, Any], name: str, values: tuple[str, ...]) -> dict[str, str]:
    value = table.get(name, {})
    if not isinstance(value, dict) or not all(v in values for v in value.values()):
        raise ConfigurationError(f"[{name}] maps to something else than {', '.join(values)}.")
    return value


def _scores(table: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    scores = table.get("scores", {})
    if not isinstance(scores, dict):
        raise ConfigurationError("[scores] is not a table of tables.")
    for number, words in enumerate(scores.values(), 1):
        if not isinstance(words, dict) or not all(word in OUTCOME_VALUES for word in words.values()):
            raise ConfigurationError(f"Score number {number} maps to something else than {', '.join(OUTCOME_VALUES)}.")
        bad = _BAD_ENDS.intersection(words.values())
        if not bad or bad.issuperset(words.values()):
            # A score that could only praise, or only blame, is no trial.
            raise ConfigurationError(f"Score number {number} shows only one of the two results.")
    return scores


def _strings_of(table: Any, names: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    if not isinstance(table, dict):
        raise ConfigurationError("[modes] is not a table.")
    _only(table, set(names), "[modes]")
    lists = {name: table.get(name, []) for name in names}
    if not all(isinstance(v, list) and all(isinstance(s, str) for s in v) for v in lists.values()):
        raise ConfigurationError("[modes] holds lists of text only.")
    return {name: tuple(value) for name, value in lists.items()}


def _kind(entry: dict[str, Any], number: int) -> KindEntry:
    where = f"[[kind]] number {number}"
    _only(entry, {"kind", *ATTRIBUTES}, where)
    kind = entry.get("kind")
    patterns = tuple((name, entry[name]) for name in ATTRIBUTES if name in entry)
    if kind not in KINDS or not patterns or not all(isinstance(pattern, str) for _, pattern in patterns):
        raise ConfigurationError(f"{where} needs a known kind and at least one attribute, all of them text.")
    return KindEntry(str(kind), patterns)


def _declared(entry: dict[str, Any], number: int) -> DeclaredEvent:
    where = f"[[event]] number {number}"
    _only(entry, {"date", "until", "kind", "from", "to", "provider"}, where)
    kind, models = entry.get("kind"), (entry.get("from"), entry.get("to"))
    if kind not in EVENT_KINDS or not all(model is None or isinstance(model, str) for model in models):
        raise ConfigurationError(f"{where} is of an unknown kind, or names a model that is not text.")
    since = _moment(entry.get("date"), where)
    if kind == "outage":
        until = _moment(entry.get("until"), where) + 30 * MINUTE
    elif kind == "retirement":
        until = 2**62
    else:
        until = since + CONSTANTS.policy_span
    return DeclaredEvent(str(kind), since, until, *models)


def _moment(value: Any, where: str) -> int:
    if isinstance(value, datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=UTC)
    elif isinstance(value, date):
        moment = datetime(value.year, value.month, value.day, tzinfo=UTC)
    else:
        raise ConfigurationError(f"{where} has no date.")
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1) * SECOND
