# SPDX-License-Identifier: Apache-2.0
"""What was true in the demo's world beside what the report says, in words.

Rules kept here:
* the report is read as any reader would read it: the signed report.json, its words and nothing else;
* a wrong direction is shown as wrong.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from windvane.demo.world import MODELS, true_direction
from windvane_privacy.catalogue import Signal

LABEL = {model.id: model.label for model in MODELS}
COMPARED = (Signal.COMPLETION, Signal.SWITCH_AWAY, Signal.TOOL_RELIABILITY, Signal.INFRA_RECOVERY)


@dataclass(frozen=True, slots=True)
class Verdict:
    """One cell. `truth` and `said`: the better model's id, or None for equal, or for no direction."""

    signal: Signal
    a: str
    b: str
    truth: str | None
    said: str | None
    state: str

    @property
    def called(self) -> bool:
        """The report gives a direction."""
        return self.said is not None

    @property
    def right(self) -> bool:
        """The direction is the true one."""
        return self.called and self.said == self.truth

    @property
    def words(self) -> str:
        """For the closing table."""
        if self.state not in ("toward_a", "toward_b", "no_clear_direction"):
            return "[dim]– too few[/]"
        if self.said:
            other = f"equal; said to {LABEL[self.said]}" if not self.truth else f"to {LABEL[self.truth]}, said not"
            return f"[green]✓ to {LABEL[self.said]}[/]" if self.right else f"[bold red]✗ true: {other}[/]"
        return "[green]✓ equal[/]" if not self.truth else f"[dim]· to {LABEL[self.truth]}[/]"


def verdicts(report: Path) -> list[Verdict]:
    """Every compared cell of a demo report."""
    found = []
    for claim in json.loads(report.read_text(encoding="utf-8"))["claims"]:
        signal = Signal(claim["signal"])
        if signal in COMPARED and claim["state"] != "not_compared":
            said = {"toward_a": claim["a"], "toward_b": claim["b"]}.get(claim["state"])
            truth = true_direction(signal, claim["a"], claim["b"])
            found.append(Verdict(signal, claim["a"], claim["b"], truth, said, claim["state"]))
    return found
