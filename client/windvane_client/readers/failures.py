# SPDX-License-Identifier: Apache-2.0
"""Status codes and error codes to the closed list of error classes.

Rules kept here:
* only a status, a code or a fixed marker decides; a missing one is never guessed into an infrastructure fault;
* 429 is the vendor's limit unless the source says that it is its own limiter or the person's plan;
* what a person aborted is nobody's failure.
"""

from __future__ import annotations

from typing import Final

UNCLASSED: Final = "client_4xx"
"""A failure that says nothing about its cause: never opens an infrastructure episode, excuses and blames nobody."""

_CODES: Final = {
    "overloaded_error": "overload",
    "overloaded": "overload",
    "rate_limit_error": "rate_vendor",
    "rate_limit": "rate_vendor",
    "rate_limit_exceeded": "rate_vendor",
    "api_error": "5xx",
    "server_error": "5xx",
    "internal_server_error": "5xx",
    "timeout_error": "timeout",
    "timeout": "timeout",
    "etimedout": "timeout",
    "connection_error": "network",
    "network_error": "network",
    "connectionrefused": "network",
    "connectionclosed": "network",
    "failedtoopensocket": "network",
    "eai_again": "network",
    "enotfound": "network",
    "epipe": "network",
    "usage_limit": "rate_own",
    "usage_limit_reached": "rate_own",
    "context_length_exceeded": "context",
    "prompt_too_long": "context",
    "aborted": "aborted",
    "abort_err": "aborted",
    "user_cancelled": "aborted",
}
_PREFIXES: Final = (("econn", "network"), ("enet", "network"), ("ehost", "network"), ("und_err_socket", "network"),
                    ("und_err_connect_timeout", "timeout"), ("und_err_headers_timeout", "timeout"),
                    ("und_err_body_timeout", "timeout"), ("socket", "network"))  # fmt: skip


def class_of_status(status: int | str | None) -> str | None:
    """Class of an HTTP status, also as text; None where it is missing, "undefined" or no failure."""
    if isinstance(status, str):
        text = status.strip()
        if not (text.isascii() and text.isdigit() and len(text) == 3):
            return None
        status = int(text)
    if status is None or not 400 <= status <= 599:
        return None
    if status == 429:
        return "rate_vendor"
    if status == 529:
        return "overload"
    if status in (408, 504):
        return "timeout"
    return "5xx" if status >= 500 else "client_4xx"


def class_of_code(code: str | int | None) -> str | None:
    """Class of an error code word; None where it is missing or not listed."""
    if isinstance(code, int):
        return class_of_status(code)
    if not code:
        return None
    word = code.strip().casefold()
    found = _CODES.get(word)
    if found is None:
        found = next((one for prefix, one in _PREFIXES if word.startswith(prefix)), None)
    return found if found is not None else class_of_status(word)


def error_class(status: int | str | None, codes: tuple[str | int | None, ...], marker: str | None = None) -> str:
    """Class of a failed attempt: an abort, quota or context marker first, then vendor codes for overload, then status.

    `marker` is the class that a fixed text marker gave, or None.
    """
    named = [found for found in map(class_of_code, codes) if found is not None]
    for decisive in ("aborted", "rate_own", "context", "overload"):
        if marker == decisive or decisive in named:
            return decisive
    return class_of_status(status) or next(iter(named), None) or marker or UNCLASSED
