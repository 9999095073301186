# SPDX-License-Identifier: Apache-2.0
"""What all audiences' commands share on a terminal: common options, two consoles, JSON results, patient waiting.

Rules kept here:
* results go to stdout, progress and questions to stderr; `--json` prints one canonical JSON value and nothing else;
* names that others chose are never read as markup;
* waiting ends at its deadline with the refusal itself, and says each reason once.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, TypeVar

import typer
from rich.console import Console

from windvane_privacy import canonical
from windvane_privacy.errors import NotReady, WindvaneError

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Wait = Annotated[int, typer.Option("--wait", help="Keep trying for so many seconds.", min=0)]
RoundName = Annotated[str, typer.Argument(metavar="ROUND", help="Name of the round, such as 2027-Q1.")]

POLL_SECONDS = 2.0
Result = TypeVar("Result")

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def print_json(value: canonical.JsonValue) -> None:
    """A result for a program: canonical JSON and a line's end, on stdout."""
    sys.stdout.write(canonical.encode(value).decode() + "\n")


def patiently(step: Callable[[], Result], wait: int, until: tuple[type[WindvaneError], ...] = (NotReady,)) -> Result:
    """Run a step again until it is ready or `wait` seconds are over.

    Raises:
        WindvaneError: the last refusal of the kinds in `until`, or any other at once.
    """
    deadline = time.monotonic() + wait
    shown = ""
    while True:
        try:
            return step()
        except until as missing:
            if time.monotonic() + POLL_SECONDS > deadline:
                raise
            why = missing.detail or missing.what()
            if why != shown:
                shown = why
                err.print(f"Waiting. {why}", markup=False)
            time.sleep(POLL_SECONDS)


def utc_now() -> datetime:
    """This machine's time."""
    return datetime.now(UTC)
