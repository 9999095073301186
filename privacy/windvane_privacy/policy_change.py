# SPDX-License-Identifier: Apache-2.0
"""What a change of policy means: which fields are looser than before, and one field set in the file's text.

Rules kept here:
* every field of a policy has a direction here; one that has none makes every change of policy fail in the tests;
* whatever lets in a manifest that was refused before is looser; a limit that is left out is the loosest;
* another coordinator, log, or guardian key or group is always looser; leaving a guardian out never is;
* a field is set in its one line of the file; comments and all other lines stay as they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import msgspec

from windvane_privacy.errors import ConfigurationError, PolicyMissing
from windvane_privacy.policy import Policy, read_policy

Looser = Callable[[Any, Any], bool]
"""(old, new): whether the new value lets in what the old one refused."""
BY_HAND = "guardians"
"""The one field that is a list of tables: it is edited in the file."""
LEFT_OUT = "none"
_PLAIN = re.compile(r"true|false|\d{1,9}")


def _more(old: Any, new: Any) -> bool:
    return bool(new > old)


def _less(old: Any, new: Any) -> bool:
    return bool(new < old)


def _other(old: Any, new: Any) -> bool:
    return bool(new != old)


def _wider(old: tuple[str, ...], new: tuple[str, ...]) -> bool:
    return not set(new) <= set(old)


def _newcomers(old: Any, new: Any) -> bool:
    return not {(one.identity, one.group) for one in new} <= {(one.identity, one.group) for one in old}


def _older(old: str, new: str) -> bool:
    return _version(new) < _version(old)


def _no_limit(old: int | None, new: int | None) -> bool:
    return old is not None and (new is None or new > old)


def _version(text: str) -> list[int]:
    parts = [int(part) for part in text.split(".")]
    return parts + [0] * (3 - len(parts))


LOOSER: dict[str, Looser] = {
    "demo": _more,
    "approval": lambda old, new: (old, new) == ("human", "auto"),
    "coordinator": _other,
    "log_origin": _other,
    "max_rho_per_quarter": _more,
    "max_rho_local_per_quarter": _more,
    "max_rho_local_lifetime": _more,
    "max_rho_lifetime": _more,
    "min_roster": _less,
    "min_accepted": _less,
    "min_people_in_scope": _less,
    "min_cohort": _less,
    "least_h": _less,
    "max_C": _more,
    "max_Q": _more,
    "signals": _wider,
    "kinds": _wider,
    "guardians_t": _less,
    "guardians_n": _more,
    "guardians": _newcomers,
    "min_software": _older,
    "max_h": _no_limit,
}
"""For each field of a policy, when a new value is looser than the old one."""


def loosened(old: Policy, new: Policy) -> tuple[str, ...]:
    """The fields in which `new` lets in what `old` refused, in the order of the file."""
    return tuple(name for name, looser in LOOSER.items() if looser(getattr(old, name), getattr(new, name)))


def changed(old: Policy, new: Policy) -> tuple[str, ...]:
    """The fields that differ, in the order of the file."""
    return tuple(name for name in LOOSER if getattr(old, name) != getattr(new, name))


def shown(policy: Policy) -> dict[str, str | list[dict[str, str]]]:
    """A policy as text, field by field, as the file writes it; guardians as tables."""
    values = {name: _text(getattr(policy, name)) for name in LOOSER if name != BY_HAND}
    return {**values, BY_HAND: [msgspec.to_builtins(one) for one in policy.guardians]}


def set_field(raw: bytes, field: str, value: str) -> bytes:
    """The text of a policy file with one field set. `value`: as on a command line, lists with commas, `none` for a
    limit that may be left out.

    Raises:
        ConfigurationError: no such field, a value that the field does not take, or a file laid out by hand in such a
            way that one line cannot be changed safely.
    """
    if field not in LOOSER:
        raise ConfigurationError(f"A policy has no such field. It has: {', '.join(sorted(LOOSER))}.")
    if field == BY_HAND:
        raise ConfigurationError("Guardians are edited in policy.toml itself; then adopt the file.")
    old = read_policy(raw)
    written = None if field == "max_h" and value == LEFT_OUT else _toml(getattr(old, field), field, value)
    text = _with_line(raw.decode("utf-8"), field, written).encode("utf-8")
    try:
        new = read_policy(text)
    except PolicyMissing:
        raise ConfigurationError("This field's line cannot be changed safely; edit policy.toml and adopt it.") from None
    if set(changed(old, new)) - {field}:
        raise ConfigurationError("This field's line cannot be changed safely; edit policy.toml and adopt it.")
    return text


def _with_line(text: str, field: str, written: str | None) -> str:
    head, bracket, tables = text.partition("\n[")
    line = re.compile(rf"^{field}\s*=.*$", re.MULTILINE)
    if written is None:
        head = re.sub(rf"^{field}\s*=.*\n?", "", head, flags=re.MULTILINE)
    elif line.search(head):
        head = line.sub(lambda _found: f"{field} = {written}", head, count=1)
    else:
        head = f"{head.rstrip()}\n\n{field} = {written}\n"
    return head + bracket + tables


def _toml(old: Any, field: str, value: str) -> str:
    """The value in TOML, by the type that the field has."""
    if isinstance(old, tuple):
        return json.dumps([part.strip() for part in value.split(",") if part.strip()], ensure_ascii=False)
    if isinstance(old, (bool, int)) or field == "max_h":
        if _PLAIN.fullmatch(value) is None:
            raise ConfigurationError(f"{field} takes a whole number, or true or false.")
        return value
    return json.dumps(value, ensure_ascii=False)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Fraction):
        return f"{value.numerator}/{value.denominator}"
    if isinstance(value, tuple):
        return ", ".join(value)
    return LEFT_OUT if value is None else str(value)
