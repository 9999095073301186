# SPDX-License-Identifier: Apache-2.0
"""docs/threats.md: each adversary, what it can and cannot do, and the test that shows it.

Rules kept here:
* every line that says "cannot" or "is noticed" names a test of this repository (`test_threats_page.py` looks it up);
* what an adversary can do is said first, and nothing that it can do is left out because it sounds bad;
* the table of coalitions is that of `privacy/windvane_privacy/coalitions.py`, which the member's preview shows too.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from windvane_privacy.coalitions import COALITIONS, DEFENCE_IN_DEPTH, HONEST_SENTENCE


@dataclass(frozen=True)
class Attack:
    """`what` it tries, what happens (`end`: an error's name, or plain words) and the tests that show it."""

    what: str
    end: str
    tests: tuple[str, ...]


@dataclass(frozen=True)
class Adversary:
    """`can`: what nothing prevents. `attacks`: what is refused or noticed."""

    name: str
    can: str
    attacks: tuple[Attack, ...]


def _adversaries() -> tuple[Adversary, ...]:
    listed = tomllib.loads((Path(__file__).parent / "threats.toml").read_text(encoding="utf-8"))["adversary"]
    return tuple(
        Adversary(one["name"], one["can"], tuple(Attack(x["what"], x["end"], tuple(x["tests"])) for x in one["attack"]))
        for one in listed
    )


ADVERSARIES = _adversaries()
"""From `threats.toml`, in its order."""

HEAD = """\
# Threats

Who could attack a round, what they can do, what is refused, and the test that shows it. Rendered from
`tests/house/threats.toml` and `privacy/windvane_privacy/coalitions.py`; a test looks every named test up.

{depth} Guarantees (a), (b), (c) and their epsilons: [mechanism.md](mechanism.md#5-three-guarantees).

## Who could learn what

The member's preview and the page before an approval show this table, the latter with the round's own epsilons.

| who | about one member | about sums | could forge or stop | guarantee |
|---|---|---|---|---|
"""
TAIL = """
Never say "nobody can see your numbers". Say: "{honest}"

An organisation's own totals are hidden by shares and sealing, not by the noise: against two guardians a large
organisation's counts show through it. What the noise protects, even then, is each person in them.
"""


def threats_page() -> str:
    """The whole page."""
    lines = [HEAD.format(depth=DEFENCE_IN_DEPTH).rstrip("\n")]
    lines += [f"| {c.who} | {c.member} | {c.sums} | {c.forge} | ({c.guarantee}) |" for c in COALITIONS]
    lines.append(TAIL.format(honest=HONEST_SENTENCE).rstrip("\n"))
    for one in ADVERSARIES:
        lines += ["", f"## {one.name}", "", one.can, "", "| it | then | shown by |", "|---|---|---|"]
        lines += [f"| {x.what} | {x.end} | {', '.join(f'`{t}`' for t in x.tests)} |" for x in one.attacks]
    return "\n".join(lines) + "\n"
