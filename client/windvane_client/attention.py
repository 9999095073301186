# SPDX-License-Identifier: Apache-2.0
"""Warnings that need a person: what about the logs is so that work will not count, why, and what to do.

Rules kept here:
* a warning changes nothing: no number measured on people ever changes what counts, a person decides;
* shares are of what was read; they are percentages only where one person looks at own logs, or ten and more people
  stand behind them, else "most" or "some";
* no name, no id and no text of a log is repeated; memory is bounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from windvane_client.capabilities import NAMES_NO_MODE, capability
from windvane_client.constants import DAY
from windvane_client.coverage import LEAST_PEOPLE
from windvane_client.noticed import Noticed
from windvane_privacy.catalogue import OTHER

WORTH_SAYING: Final = 0.05
"""Smaller shares of calls give no warning."""
MOST: Final = 0.5
LEAST_ROWS: Final = 20
"""Fewer calls, prompts or votes of one run of collecting say nothing about a log."""
MASS_MOVE_DAYS: Final = 7
MASS_MOVE_PEOPLE: Final = 3


@dataclass(frozen=True, slots=True)
class Warn:
    """One warning: what is so, why it matters, what to do."""

    code: str
    what: str
    why: str
    do: str

    @property
    def text(self) -> str:
        """All three as one paragraph."""
        return f"{self.what} {self.why} {self.do}"


def warnings_of(noticed: Noticed, *, numbers: bool) -> list[Warn]:
    """The warnings. `numbers`: the local preview, where percentages may be said."""
    exact = numbers and (len(noticed.people) <= 1 or len(noticed.people) >= LEAST_PEOPLE)
    if not numbers and max(map(sum, _sizes(noticed))) < LEAST_ROWS:
        return list(_people(noticed))
    return [
        *_people(noticed), *_sessions(noticed, exact=exact), *_models(noticed, exact=exact),
        *_modes(noticed, exact=exact), *_votes(noticed), *_attempts(noticed, exact=exact),
    ]  # fmt: skip


def _sizes(noticed: Noticed) -> Iterator[Iterable[int]]:
    yield noticed.calls.values()
    yield noticed.prompts.values()
    yield noticed.votes.values()


def _share(part: int, whole: int, *, exact: bool) -> str:
    if part == whole:
        return "All"
    if exact:
        return f"{max(1, min(99, round(100 * part / whole)))} %"
    return "Most" if part > MOST * whole else "Some"


def _people(noticed: Noticed) -> Iterator[Warn]:
    if noticed.nobody and not noticed.people:
        yield Warn(
            "nobody_mapped", "Nobody in these logs is mapped to a staff id.",
            "Work without a person gives no outcome, because it could be one person counted many times.",
            "Add the identities to people.toml, one [[person]] each, or [machine] for the logs of this machine.",
        )  # fmt: skip


def _sessions(noticed: Noticed, *, exact: bool) -> Iterator[Warn]:
    for source, calls in sorted(noticed.calls.items()):
        loose = noticed.without_session(source)
        if loose <= WORTH_SAYING * calls:
            continue
        what = f"{_share(loose, calls, exact=exact)} of the calls of {source} have no session id that joins them."
        if source == "litellm":
            yield Warn(
                "no_session", what,
                "LiteLLM's `missing_session_id` setting says what is written when a program sends none; an id made up "
                "for each call joins nothing, so ratings and requests of one piece of work stay apart.",
                "Let the programs send their session id, and set `missing_session_id: omit` so that none is made up.",
            )  # fmt: skip
        else:
            yield Warn(
                "no_session", what, "Calls that nothing joins are no piece of work and cannot count for one.",
                "Switch the conversation or session id on where the program writes its logs.",
            )  # fmt: skip


def _models(noticed: Noticed, *, exact: bool) -> Iterator[Warn]:
    calls, unlisted = sum(noticed.calls.values()), sum(noticed.unlisted.values())
    if calls and unlisted > WORTH_SAYING * calls:
        yield Warn(
            "unlisted_models",
            f"{_share(unlisted, calls, exact=exact)} of the calls went to models that the list does not know.",
            "Such calls are in no comparison.",
            "If these are own names of known models (deployments, gateway groups), name them in aliases.toml; if they "
            "are other models, do nothing.",
        )  # fmt: skip
    if len(noticed.families) == 1 and unlisted <= MOST * calls:
        yield Warn(
            "one_family", "All answers came from one model family.",
            "A comparison needs two models that the same person uses for the same kind of work.",
            "Do nothing if that is how the work is done; there is just nothing to compare.",
        )  # fmt: skip


def _modes(noticed: Noticed, *, exact: bool) -> Iterator[Warn]:
    for source in sorted({source for source, _ in noticed.prompts}):
        prompts = sum(n for (one, _), n in noticed.prompts.items() if one == source)
        unknown = noticed.prompts[source, "unknown"]
        if unknown <= MOST * prompts:
            continue
        share = _share(unknown, prompts, exact=exact)
        what_of = "prompts" if capability(source).prompts else "calls"
        what = f"{share} of the {what_of} of {source} do not say whether a person wrote them."
        why = "Only work that a person started counts."
        if source == "claude_code":
            do = "Update Claude Code: newer versions write the field `entrypoint`, and their logs will count."
        elif source in NAMES_NO_MODE or source in ("litellm", "canonical", "mapping", "collected"):
            do = "If only people use it, name it in rules.toml, [modes] interactive_keys, or deliver the mode too."
        else:
            do = "Update the program if a newer version writes it (docs/sources); else only other logs can count."
        yield Warn("mode_unknown", what, why, do)


def _votes(noticed: Noticed) -> Iterator[Warn]:
    for source in sorted({source for source, _ in noticed.votes}):
        undecided, decided = noticed.votes[source, False], noticed.votes[source, True]
        if undecided and not decided and capability(source).default_kind == OTHER:
            yield Warn(
                "votes_of_no_kind", f"All votes of {source} are in the kind `other`.",
                "A round that keeps kinds of work apart compares none of them.",
                f'Add to rules.toml what the votes are about: [[kind]], source = "{source}", kind = "writing" '
                "(or coding, analysis, research, support).",
            )  # fmt: skip


def _attempts(noticed: Noticed, *, exact: bool) -> Iterator[Warn]:
    for source, old in sorted(noticed.no_attempts.items()):
        calls = noticed.calls[source]
        if old <= MOST * calls:
            continue
        if source == "claude_code":
            do = "Update Claude Code: versions from 2.0.76 on write every retry."
        elif source == "litellm":
            do = "Log failed requests as well, with `attempted_retries` (docs/sources/litellm.md)."
        else:
            do = "Update the program, or deliver its failed attempts with the rows."
        share = _share(old, calls, exact=exact)
        yield Warn(
            "retries_unknown", f"{share} of the calls of {source} come from logs without retries.",
            "How a model recovers from faults is then unknown, and a change of model may have been an outage.", do,
        )  # fmt: skip


def mass_move(moves: Mapping[tuple[str, str], Sequence[int]], people: int) -> list[Warn]:
    """A hint where more than half of the people left a model for the same other one within seven days. `moves`: when
    each person did so for the last time, µs, by pair."""
    span = MASS_MOVE_DAYS * DAY
    for times in moves.values():
        if people < MASS_MOVE_PEOPLE or len(times) <= MOST * people:
            continue
        if max(sum(start <= ts < start + span for ts in times) for start in times) > MOST * people:
            return [Warn(
                "mass_move", "Most people left one model for the same other one within seven days.",
                "If a policy, a new default or an outage made them move, it was no choice and must not count.",
                "If it was so, declare it in events.toml before the draw; if nothing happened, do nothing. "
                "This is a hint and changes nothing by itself.",
            )]  # fmt: skip
    return []
