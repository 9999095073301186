# SPDX-License-Identifier: Apache-2.0
"""The page of `windvane member preview`: seven short parts that end in what to do next.

Rules kept here:
* it shows values that were worked out before and decides nothing;
* own counts are shown to the one person they are of; with several people small cells read "too few";
* noise is shown on made-up counts only, and every line of it says so;
* nothing of a log's text is here to be shown; file names and paths are not printed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from windvane.preview_coverage import Seen, show_coverage, show_warnings
from windvane_client.events import Rows
from windvane_client.preview import Sample
from windvane_client.preview_own import (
    USUAL_BOUNDS,
    USUAL_H,
    USUAL_S,
    Lean,
    Own,
    leans,
    least_people,
    next_step,
    outcome_cells,
)
from windvane_client.preview_setup import Setup
from windvane_client.readers.lines import REASONS
from windvane_client.synthetic import DRAWS, demonstrate
from windvane_privacy.catalogue import SIGNALS, Catalogue, Signal
from windvane_privacy.coalitions import COALITIONS, DEFENCE_IN_DEPTH, HONEST_SENTENCE
from windvane_privacy.manifest import D_SCALE, T_SCALE, share_scale
from windvane_privacy.noise import OpenDPNoise

LATEST = 8
SIGNAL_NAMES: Mapping[Signal, str] = {
    Signal.COMPLETION: "finished",
    Signal.SWITCH_AWAY: "stayed with it",
    Signal.TOOL_RELIABILITY: "well-made tool calls",
    Signal.INFRA_RECOVERY: "recovered after a fault",
    Signal.BLIND_QUALITY: "preferred unseen",
}
MORE_OFTEN: Mapping[Signal, str] = {
    Signal.COMPLETION: "finished more often with {0} than with {1}",
    Signal.SWITCH_AWAY: "stayed more often with {0} than with {1}",
    Signal.TOOL_RELIABILITY: "made tool calls well more often with {0} than with {1}",
    Signal.INFRA_RECOVERY: "recovered from faults more often with {0} than with {1}",
    Signal.BLIND_QUALITY: "preferred {0} over {1} without seeing the names",
}
ENDINGS = {
    "explicit_yes": "accepted", "explicit_no": "rejected", "clean_end": "ended well", "abandoned": "broken off",
    "unknown": "unknown",
}  # fmt: skip
MODES = {"interactive": "person", "automation": "program", "relay": "relay", "unknown": "not said"}
GAPS = {
    "files_missing": "a file could not be opened",
    "parent_missing": "links between rows are broken in places; nothing was taken back because of it",
    "person_unknown": "rows of identities that people.toml does not name: not used",
    "shared_id": "one id under two people: kept apart",
    "fork_parent_missing": "a copied conversation without the one it was copied from: that work is not seen",
    "subagent_file_missing": "a subagent's own file is not there: its tool calls are not seen",
    "source_silent": "a log stopped while its program went on: how that work ended is unknown",
    "time_ambiguous": "a local time that happened twice or never: the row is not used",
    "retention_cut": "days whose logs were deleted before they were read: what happened then is unknown",
    "schema_unknown": "a version of the format that this reader does not know",
    "rows_unknown": "rows of types that this reader does not know: skipped",
}


def show(out: Console, samples: Sequence[Sample], own: Own | None, setup: Setup, seen: Seen) -> None:
    """The whole page. `own` is None while a round is open: then only what was read is shown."""
    out.print()
    out.print(Text("Preview of your own logs", style="bold"))
    out.print(
        Text("It stays on this machine. Prompts, answers, tool arguments and paths were not decoded.", style="dim")
    )
    _what_was_read(out, samples)
    show_coverage(out, seen.cover)
    _what_was_refused(out, samples, seen.gaps)
    show_warnings(out, seen, open_round=own is None)
    found: list[Lean] = []
    if own is not None:
        found = leans(own.rows, setup)
        _outcomes(out, own, setup)
        _directions(out, own, found, setup.catalogue)
    _bounds_and_noise(out, setup)
    _who_could_learn(out)
    step = next_step(samples, own, found, setup)
    out.print()
    out.print(Panel(Text(step), title="Next", title_align="left", box=box.ROUNDED, border_style="cyan", padding=(0, 1)))


def time_text(micros: int) -> str:
    """A time in µs as an RFC 3339 UTC time of whole seconds."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _heading(out: Console, number: int, text: str) -> None:
    out.print()
    out.print(Text.assemble((f"{number}  ", "cyan"), (text, "bold")))


def table_of(*columns: tuple[str, str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, header_style="dim", pad_edge=False, show_edge=False)
    for name, justify in columns:
        table.add_column(
            name,
            justify="right" if justify == "right" else "left",
            overflow="fold",
            no_wrap=name in ("start", "how often"),
        )
    return table


def _indented(out: Console, what: Any) -> None:
    out.print(Padding(what, (0, 0, 0, 3)))


def _lines(out: Console, lines: Iterable[str]) -> None:
    for line in lines:
        _indented(out, Text(line))


# --- 1 and 2: reading -------------------------------------------------------------------------------------------------


def _what_was_read(out: Console, samples: Sequence[Sample]) -> None:
    _heading(out, 1, "What was read")
    read = [sample for sample in samples if sample.refused is None and sample.files]
    if not read:
        _lines(out, ["Nothing."])
        return
    numbers = [(name, "right") for name in ("files", "rows", "rejected", "unknown", "foreign", "conversations")]
    table = table_of(("source", "left"), *numbers)
    for source in sorted({sample.source or "" for sample in read}):
        some = [sample for sample in read if sample.source == source]
        rows = _rows(some)
        told = [sample.facts.conversations for sample in some if sample.facts.conversations is not None]
        table.add_row(
            source, str(sum(len(sample.files) - sample.unreadable for sample in some)),
            *(f"{getattr(rows, name):,}" for name in Rows.FIELDS),
            f"{len(set().union(*told)):,}" if told else "not said",
        )  # fmt: skip
    _indented(out, table)


def _what_was_refused(out: Console, samples: Sequence[Sample], gaps: Sequence[str]) -> None:
    _heading(out, 2, "What was refused, and why")
    said = False
    refused: Counter[tuple[str, str, str]] = Counter()
    for sample in samples:
        if sample.refused is not None:
            refused[sample.source or "not recognised", sample.refused.reason, sample.refused.instead] += len(
                sample.files
            )
    for (source, reason, instead), files in sorted(refused.items()):
        count = f" ({_count(files, 'file')})" if files else ""
        _lines(out, [f"{source}{count}: {reason}. Instead: {instead}."])
        said = True
    rows = _rows([sample for sample in samples if sample.refused is None])
    for why, number in sorted(rows.reasons.items(), key=lambda item: (-item[1], item[0])):
        _lines(out, [f"{_count(number, 'row')} rejected: {REASONS.get(why, why)}."])
        said = True
    for word in sorted(set(gaps) - {"rows_rejected"}):
        _lines(out, [f"{GAPS.get(word, word.replace('_', ' '))}."])
        said = True
    if not said:
        _lines(out, ["Nothing."])


def _rows(samples: Iterable[Sample]) -> Rows:
    rows = Rows()
    for sample in samples:
        rows.add(sample.rows)
    return rows


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


# --- 3 and 4: own work ------------------------------------------------------------------------------------------------


def _outcomes(out: Console, own: Own, setup: Setup) -> None:
    whose = "Your own outcomes" if own.people <= 1 else "Your people's outcomes"
    _heading(out, 3, f"{whose}, by kind of work")
    cells = outcome_cells(own.rows)
    least = least_people(own)
    for kind in dict.fromkeys(cell.kind for cell in cells):
        _indented(out, Text(kind, style="bold"))
        table = table_of(("", "left"), ("model", "left"), ("how often", "right"))
        before = None
        for cell in (cell for cell in cells if cell.kind == kind):
            name = setup.catalogue.get(cell.model).label
            if cell.against is not None:
                joint = "not left for" if cell.signal is Signal.SWITCH_AWAY else "against"
                name += f", {joint} {setup.catalogue.get(cell.against).label}"
            value = f"{cell.successes:,} of {cell.trials:,}" if cell.people >= least else "too few people"
            table.add_row(SIGNAL_NAMES[cell.signal] if cell.signal is not before else "", name, value)
            before = cell.signal
        _indented(out, table)
    if not cells:
        _lines(out, ["Nothing counts yet; the last line of this page says why."])
    if own.people == 1:
        modes = ", ".join(f"{MODES.get(mode, mode)} {n:,}" for mode, n in own.modes.most_common())
        _lines(
            out, [f"Pieces of work: {own.episodes:,}; started by: {modes or 'nobody'}; still open: {own.still_open:,}."]
        )
        _latest(out, own, setup)


def _latest(out: Console, own: Own, setup: Setup) -> None:
    episodes = own.person.episodes if own.person is not None else []
    if not episodes or own.person is None:
        return
    out.print()
    _indented(out, Text("The latest pieces of work (say --explain and a number to see why)", style="dim"))
    table = table_of(
        ("", "right"), ("start", "left"), ("kind", "left"), ("by", "left"), ("model", "left"), ("end", "left")
    )
    for number, episode in list(enumerate(episodes, 1))[-LATEST:]:
        model = next((one.family for one in episode.openings if one.family), None)
        end = ENDINGS.get(episode.ending.value, episode.ending.value) if episode.closed is not None else "still open"
        table.add_row(
            str(number), time_text(episode.opened), own.person.kinds[episode.workspace],
            MODES.get(episode.mode, episode.mode), label(model, setup.catalogue), end,
        )  # fmt: skip
    _indented(out, table)


def label(family: str | None, catalogue: Catalogue) -> str:
    if family is None:
        return "not said"
    return catalogue.get(family).label if family in catalogue else family


def _directions(out: Console, own: Own, found: Sequence[Lean], catalogue: Catalogue) -> None:
    _heading(out, 4, "Your own directions, in words" if own.people <= 1 else "Your people's directions, in words")
    for kind in dict.fromkeys(lean.kind for lean in found):
        _indented(out, Text(kind, style="bold"))
        _lines(out, (f"  {sentence(lean, catalogue)}" for lean in found if lean.kind == kind))
    if not found:
        _lines(out, ["None: no two models were used for the same kind of work in the same program."])


def sentence(lean: Lean, catalogue: Catalogue) -> str:
    """One direction as a sentence."""
    a, b = catalogue.get(lean.a).label, catalogue.get(lean.b).label
    if lean.word in ("toward_b", "leans_b"):
        a, b = b, a
    if lean.word in ("toward_a", "toward_b"):
        return MORE_OFTEN[lean.signal].format(a, b) + "."
    if lean.word in ("leans_a", "leans_b"):
        return f"{MORE_OFTEN[lean.signal].format(a, b)}, barely: another look at the same work may say otherwise."
    if lean.word == "even":
        return f"{SIGNAL_NAMES[lean.signal]}: no difference between {a} and {b}."
    return f"{SIGNAL_NAMES[lean.signal]}: too few to compare {a} with {b}."


# --- 5: what would leave ----------------------------------------------------------------------------------------------


def _bounds_and_noise(out: Console, setup: Setup) -> None:
    manifest = setup.manifest
    bounds = manifest.bounds if manifest is not None else USUAL_BOUNDS
    scale = manifest.share_scale if manifest is not None else share_scale(USUAL_S, USUAL_H)
    _heading(out, 5, "How a submission would be bounded and noised")
    each = ", ".join(f"{q} {str(signal).replace('_', ' ')}" for signal, q in zip(SIGNALS, bounds.q, strict=True))
    C = bounds.C
    _lines(
        out,
        (
            f"Of each person at most {bounds.Q} votes are kept, by lot ({each}).",
            f"A vote looks at up to {bounds.tasks} trials of either model and says only which of the two did better.",
            f"In one comparison your organisation counts for at most {C} people:",
            f"  D (people for A less people for B) is cut to between -{C} and {C}, T (people with a vote) to {C}.",
            f"Your machine adds noise of scale {scale:.1f} to {D_SCALE} D and {T_SCALE} T, then splits and seals them.",
        ),
    )
    out.print()
    _indented(
        out, Text("The same on MADE-UP counts, noised three times. Noise is never drawn on yours for a look.", "yellow")
    )
    draws = [(f"noised {number}", "right") for number in range(1, DRAWS + 1)]
    names = ("made-up for A", "for B", "D", "T", f"{D_SCALE} D, {T_SCALE} T")
    table = table_of(*((name, "right") for name in names), *draws)
    for cell in demonstrate(clamp=C, share_scale=scale, noise=OpenDPNoise()):
        pairs = (cell.exact, *cell.noised)
        table.add_row(
            str(cell.for_a), str(cell.for_b), str(cell.net), str(cell.voters), *(f"{d}, {t}" for d, t in pairs)
        )
    _indented(out, table)
    if manifest is None:
        _lines(out, ["Bounds and noise as in a round of 60 organisations with 1,000 people each."])


# --- 6: who could learn what ------------------------------------------------------------------------------------------


def _who_could_learn(out: Console) -> None:
    _heading(out, 6, "Who could learn what of a submission")
    table = table_of(("who", "left"), ("about your organisation", "left"))
    for one in COALITIONS:
        table.add_row(one.who, one.member)
    _indented(out, table)
    _lines(out, (DEFENCE_IN_DEPTH, HONEST_SENTENCE))
