# SPDX-License-Identifier: Apache-2.0
"""The page of `windvane member preview --explain`: what led to each outcome of one piece of work.

Rules kept here:
* it shows what was worked out before and decides nothing;
* evidence is named by the name of its field or event, no text and no id of a log is here to be shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from windvane.preview_page import ENDINGS, MODES, SIGNAL_NAMES, label, table_of, time_text
from windvane_client.explained import COUNTS
from windvane_client.preview_setup import Setup
from windvane_privacy.catalogue import Catalogue, Signal

WHY_NOT = {
    "still_open": "it is still open", "mode_unknown": "the log does not say that a person started it",
    "mode_automation": "a program started it", "mode_relay": "it was passed on for somebody else",
    "kind_undecided": "its kind of work is undecided", "source_cannot_tell": "these logs cannot tell",
    "end_unknown": "its end is unknown", "model_not_recorded": "the log does not name the model",
    "several_models": "its turns began with several models", "model_not_listed": "its model is not on the list",
    "model_is_new": "its model was new to you: used for under 14 days", "one_turn_only": "it has one turn only",
    "no_second_model_lately": "you used no second model in the 30 days before",
    "no_call_that_counts": "no tool call in it counts", "no_fault_that_counts": "it met no fault that counts",
}  # fmt: skip
"""First reason why a signal does not count here, in words."""


def show_explanation(out: Console, number: int, opened: int, why: Mapping[str, Any], setup: Setup) -> None:
    """Why one piece of work was read as it was: classes and the names of evidence."""
    catalogue = setup.catalogue
    out.print()
    out.print(Text.assemble((f"Piece of work {number}", "bold"), (f"  started {time_text(opened)}", "dim")))
    table = table_of(("", "left"), ("", "left"))
    table.show_header = False
    completion = why["completion"]
    mode = MODES.get(why["mode"], why["mode"])
    table.add_row("started by", f"{mode}, because of: {_names(why['mode_evidence'])}")
    table.add_row("kind of work", f"{why['kind']}, because of: {_names([why['kind_evidence']])}")
    table.add_row("closed by", why["closed_by"].replace("_", " "))
    end = ENDINGS.get(completion["class"], completion["class"])
    table.add_row("end", f"{end}, because of: {_names(completion['evidence'])}")
    table.add_row("model of each turn", ", ".join(label(family, catalogue) for family in why["openings"]) or "none")
    for number_of, change in enumerate(why["changes"]):
        table.add_row("changes of model" if not number_of else "", _change(change, catalogue))
    if not why["changes"]:
        table.add_row("changes of model", "none")
    basis = {"classed": " (by class of failure)", "bit": " (done or not done)"}.get(why["tools_basis"] or "", "")
    for name, words in (
        (f"tool calls{basis}", "tools"), ("tool calls left out", "tools_left_out"), ("faults", "infra"),
        ("faults left out", "infra_left_out"),
    ):  # fmt: skip
        counts = "; ".join(_count(key, n, catalogue) for key, n in why[words].items())
        if counts or not words.endswith("left_out"):
            table.add_row(name, counts or "none")
    out.print(Padding(table, (0, 0, 0, 3)))
    out.print()
    for signal, verdict in why["signals"].items():
        out.print(Padding(Text(f"{SIGNAL_NAMES[Signal(signal)]}: {verdict_text(verdict)}."), (0, 0, 0, 3)))
    counted = any(verdict == COUNTS for verdict in why["signals"].values())
    out.print()
    out.print(Text("It can count." if counted else "It does not count."))


def verdict_text(verdict: str) -> str:
    """Whether a signal counts here, in words."""
    if verdict == COUNTS:
        return "can count"
    cause = verdict.removeprefix("cause_")
    if cause != verdict:
        return f"does not count, because the model changed for another reason ({cause.replace('_', ' ')})"
    return f"does not count, because {WHY_NOT.get(verdict, verdict.replace('_', ' '))}"


def _names(evidence: list[str]) -> str:
    return ", ".join(name for name in evidence if name) or "no evidence"


def _change(change: Mapping[str, Any], catalogue: Catalogue) -> str:
    models = f"{label(change['from'], catalogue)} to {label(change['to'], catalogue)}"
    return f"turn {change['turn']}: {models}, cause: {change['cause']}, because of: {_names(change['evidence'])}"


def _count(key: str, number: int, catalogue: Catalogue) -> str:
    family, _, outcome = key.rpartition(":")
    return f"{label(family, catalogue)} {outcome.replace('_', ' ')} {number}"
