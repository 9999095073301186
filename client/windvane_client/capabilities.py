# SPDX-License-Identifier: Apache-2.0
"""What each source can and cannot say: the table of docs/signals.md as data.

Rules kept here:
* a reader cannot claim more than its entry; None means "cannot tell" and gives no trial, never 0;
* a source gives trials for a signal only if it records success *and* failure of that signal;
* the version of the log counts: where it does not write retries, faults are unknown and a change of model may hide one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from windvane_client.events import Event
from windvane_privacy.outcomes import Basis


@dataclass(frozen=True, slots=True)
class Capability:
    """One source. A basis of None: unknown. `completion`, `infra`: whether the log shows both outcomes.

    `causes`: errors, fallbacks and mode changes are recorded, so that a change with none of them was the person's.
    `offers`: a clean end of a turn is an offer of the result, which the person's next task accepts; silence does not.
    """

    completion: bool
    switch: Basis | None
    tools: Basis | None
    infra: bool
    blind: Basis | None
    causes: bool
    default_kind: str
    prompts: bool = True
    """False: a gateway, which sees requests and no turns; its faults count by themselves (`gateways`)."""
    offers: bool = False
    credits_turn: bool = False
    """True: a tool call does not name the answer it came from; the only family that answered in its turn made it."""
    acts: bool = False
    """A person's own choice of another model is written, so that a move can count although other causes could hide."""

    @property
    def shows_moves(self) -> bool:
        """Staying and leaving can both be seen; where only staying can, nothing is a trial."""
        return self.switch is not None and (self.causes or self.acts)


_SPANS = Capability(
    completion=False, switch=None, tools=Basis.BIT, infra=False, blind=None, causes=False, default_kind="other"
)
"""Spans of programs: calls and tool calls, no prompts and no attempts."""

CAPABILITIES: Mapping[str, Capability] = {
    "claude_code": Capability(
        completion=True,
        switch=Basis.INFERRED,
        tools=Basis.CLASSED,
        infra=True,
        blind=None,
        causes=True,
        default_kind="coding",
        acts=True,
    ),
    # Errors and reroutes are not written: neither a fault nor the cause of a change of model can be seen.
    "codex": Capability(
        completion=True,
        switch=None,
        tools=Basis.BIT,
        infra=False,
        blind=None,
        causes=False,
        default_kind="coding",
    ),
    "cline": Capability(
        completion=True,
        switch=Basis.RECORDED,
        tools=Basis.CLASSED,
        infra=True,
        blind=None,
        causes=True,
        default_kind="coding",
        offers=True,
        acts=True,
    ),
    # Messages name the model that answered, not the mode: plan/act and a hand's choice look alike.
    "cline/session": Capability(
        completion=False,
        switch=Basis.INFERRED,
        tools=Basis.BIT,
        infra=False,
        blind=None,
        causes=False,
        default_kind="coding",
    ),
    "canonical": Capability(
        completion=True,
        switch=Basis.RECORDED,
        tools=Basis.CLASSED,
        infra=True,
        blind=Basis.PROVED,
        causes=True,
        default_kind="other",
        acts=True,
    ),
    "litellm": Capability(
        completion=False,
        switch=None,
        tools=None,
        infra=True,
        blind=None,
        causes=False,
        default_kind="other",
        prompts=False,
    ),
    # A mapping says less unless it declares more: its reader marks faults and votes row by row.
    "mapping": Capability(
        completion=False,
        switch=None,
        tools=None,
        infra=True,
        blind=Basis.PROVED,
        causes=False,
        default_kind="other",
        prompts=False,
    ),
    "open_webui": Capability(
        completion=True,
        switch=Basis.RECORDED,
        tools=None,
        infra=False,
        blind=Basis.PROVED,
        causes=False,
        default_kind="other",
        acts=True,
    ),
    # Rows of collectors keep their log's own source, which decides; this is the most that any of them can say.
    "collected": Capability(
        completion=True,
        switch=Basis.RECORDED,
        tools=Basis.CLASSED,
        infra=True,
        blind=Basis.PROVED,
        causes=True,
        default_kind="other",
        acts=True,
    ),
    # A trace is a request of some program; only a score that the organisation names says how it ended.
    "langfuse": Capability(
        completion=True,
        switch=None,
        tools=Basis.BIT,
        infra=False,
        blind=None,
        causes=False,
        default_kind="other",
        credits_turn=True,
    ),
    # Retries, turn ends and the cause of a change of model are not written.
    "gemini_cli": Capability(
        completion=False,
        switch=None,
        tools=Basis.BIT,
        infra=False,
        blind=None,
        causes=False,
        default_kind="coding",
    ),
    "otlp/claude_code": Capability(
        completion=False,  # only an abandonment would show
        switch=Basis.INFERRED,
        tools=Basis.BIT,
        infra=True,
        blind=None,
        causes=False,  # skills and plan mode may bring a model unseen
        default_kind="coding",
    ),
    "otlp/codex": Capability(
        completion=False,
        switch=Basis.INFERRED,
        tools=Basis.BIT,
        infra=True,
        blind=None,
        causes=True,
        default_kind="coding",
    ),
    "otlp/gemini_cli": Capability(
        completion=False,
        switch=Basis.RECORDED,
        tools=Basis.BIT,
        infra=True,
        blind=None,
        causes=True,
        default_kind="coding",
        acts=True,
    ),
    "otlp/gen_ai": _SPANS,
    "otlp/openinference": _SPANS,
    "otlp/vercel_ai": _SPANS,
}
NAMES_NO_MODE = frozenset({"gemini_cli", "langfuse", "open_webui"})
"""Sources whose prompts never say whether a person was there: only the organisation can."""
NOTHING = Capability(
    completion=False, switch=None, tools=None, infra=False, blind=None, causes=False, default_kind="other"
)
"""A source without an entry says nothing."""
NO_ATTEMPTS = "+no-attempts"
"""Ends `Event.reader` where the log's version writes no retries (see `windvane_client.readers`)."""


def capability(source: str, recorder: str = "") -> Capability:
    """The entry of a source, or of one of its recorders (`source/recorder`) where that has its own."""
    own = CAPABILITIES.get(recorder) if recorder.startswith(f"{source}/") else None
    return own or CAPABILITIES.get(source, NOTHING)


def together(entries: Sequence[Capability]) -> Capability:
    """What samples of several sources can say as one: all that one of them can. The first one's kind of work."""
    if not entries:
        return NOTHING
    return Capability(
        completion=any(entry.completion for entry in entries),
        switch=next((entry.switch for entry in entries if entry.switch is not None), None),
        tools=next((entry.tools for entry in entries if entry.tools is not None), None),
        infra=any(entry.infra for entry in entries),
        blind=next((entry.blind for entry in entries if entry.blind is not None), None),
        causes=any(entry.causes for entry in entries),
        default_kind=entries[0].default_kind,
        prompts=any(entry.prompts for entry in entries),
        offers=any(entry.offers for entry in entries),
        acts=any(entry.acts for entry in entries),
    )


def attempts_known(event: Event) -> bool:
    """Whether the log that this event came from writes the attempts that failed."""
    return capability(event.source, event.recorder).infra and not event.reader.endswith(NO_ATTEMPTS)
