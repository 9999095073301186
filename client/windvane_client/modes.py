# SPDX-License-Identifier: Apache-2.0
"""Who worked: a person, a program, a relay, or unknown (docs/signals.md, mode).

Rules kept here:
* a declaration in the log decides; behaviour never makes a mode `interactive`, it can only demote it to `unknown`;
* a turn that a program, a schedule or the harness opened is automation, also inside an interactive conversation;
* demotion looks at one person's own day, never at other people.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

from windvane_client.constants import DAY, HOUR, Constants
from windvane_client.events import PERSON_ORIGINS, Prompt

INTERACTIVE, AUTOMATION, UNKNOWN = "interactive", "automation", "unknown"
PROGRAM_ORIGINS = frozenset({"sdk", "scheduled", "system"})


def turn_mode(prompt: Prompt, demoted: frozenset[int], *, service: bool) -> str:
    """Mode of the turn that `prompt` opens. `demoted`: days (`day_of`). `service`: the person is a service account."""
    if prompt.origin in PROGRAM_ORIGINS or service:
        return AUTOMATION
    if prompt.mode == INTERACTIVE and prompt.ts is not None and day_of(prompt.ts) in demoted:
        return UNKNOWN
    return prompt.mode


def day_of(ts: int) -> int:
    """Number of the UTC day of a time in µs."""
    return ts // DAY


def demoted_days(prompts: Iterable[tuple[bytes | None, Prompt]], constants: Constants) -> frozenset[int]:
    """Days on which one person's prompts do not look like one person at a keyboard.

    `prompts`: the person's prompts with their conversation, in order of conversation and time.
    """
    times: dict[int, list[int]] = defaultdict(list)
    starts: dict[int, list[int]] = defaultdict(list)
    last_conv: bytes | None = None
    for conv, prompt in prompts:
        if prompt.ts is None or prompt.mode != INTERACTIVE or prompt.origin not in PERSON_ORIGINS:
            continue
        times[day_of(prompt.ts)].append(prompt.ts)
        if conv is not None and conv != last_conv:
            starts[day_of(prompt.ts)].append(prompt.ts)
            last_conv = conv
    return frozenset(
        day
        for day, found in times.items()
        if len({ts // HOUR for ts in found}) > constants.demote_hours
        or _fast(sorted(found), constants)
        or _equal(sorted(starts[day]), constants)
    )


def _fast(times: Sequence[int], constants: Constants) -> bool:
    run = 1
    for before, after in pairwise(times):
        run = run + 1 if after - before < constants.demote_fast_gap else 1
        if run >= constants.demote_fast_prompts:
            return True
    return False


def _equal(starts: Sequence[int], constants: Constants) -> bool:
    gaps = [after - before for before, after in pairwise(starts)]
    need = constants.demote_equal_starts - 1
    return any(
        max(gaps[i : i + need]) - min(gaps[i : i + need]) <= constants.demote_equal_within
        for i in range(len(gaps) - need + 1)
    )
