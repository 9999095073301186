# SPDX-License-Identifier: Apache-2.0
"""What each page shows, as plain values for the templates.

Rules kept here:
* every list is in the order of names; strength is not known here;
* a pair page is the only page about one pair, and no page is about one model;
* what is not said is shown in the same place as what is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from windvane_privacy.claims import DIRECTIONS, MEASURED, Change, Claim, State
from windvane_privacy.report_file import Report
from windvane_privacy.site_lint import slug
from windvane_server.report import wording

ARROW_LEFT, ARROW_RIGHT, ARROW_UP = "←", "→", "↑"


@dataclass(frozen=True, slots=True)
class Line:
    """One sentence, the signals it holds for, and its arrow (between a on the left and b on the right) or none."""

    titles: tuple[str, ...]
    sentence: str
    arrow: str | None


@dataclass(frozen=True, slots=True)
class PairLines:
    """All that is said about one pair in one kind of work."""

    name: str
    slug: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class TableCell:
    """`form`: `direction`, `none` or `letter`."""

    form: str
    arrow: str
    words: str


@dataclass(frozen=True, slots=True)
class SignalTable:
    """Lower triangle of one signal. `columns`: labels; `rows`: label and cells."""

    slug: str
    title: str
    question: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[TableCell, ...]], ...]


@dataclass(frozen=True, slots=True)
class KindView:
    """A kind of work."""

    kind: str
    title: str
    said: tuple[PairLines, ...]
    any_direction: bool
    any_measured: bool
    tables: tuple[SignalTable, ...]
    unmeasured: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PairSection:
    """One signal of a pair page."""

    slug: str
    title: str
    question: str
    sentence: str
    arrow: str | None
    change: str | None
    history: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class PairView:
    """A pair in one kind of work."""

    kind_title: str
    a: str
    b: str
    sections: tuple[PairSection, ...]


@dataclass(frozen=True, slots=True)
class WithheldGroup:
    """Everything withheld for one cause: per kind the pairs with their sentence and signals."""

    slug: str
    title: str
    kinds: tuple[tuple[str, tuple[Line, ...]], ...]


@dataclass(frozen=True, slots=True)
class WithheldView:
    """Kinds without any statement first, then cells by cause."""

    whole_kinds: tuple[str, ...]
    groups: tuple[WithheldGroup, ...]


def pairs(report: Report) -> list[tuple[str, str]]:
    """Every pair of the report, in the order of ids."""
    return sorted({(claim.a, claim.b) for claim in report.claims})


def pair_slug(a: str, b: str) -> str:
    """`alder-4--elm-3-5`."""
    return f"{slug(a)}--{slug(b)}"


def pair_name(report: Report, a: str, b: str) -> str:
    """`Alder 4 and Elm 3.5`."""
    return f"{report.labels[a]} and {report.labels[b]}"


def pair_links(report: Report, base: str) -> list[tuple[str, str]]:
    """Path and name of every pair of a kind whose pages lie in `base`."""
    return [(f"{base}/{pair_slug(a, b)}/index.html", pair_name(report, a, b)) for a, b in pairs(report)]


def kind_view(report: Report, kind: str) -> KindView:
    """The page of one kind of work."""
    claims = [claim for claim in report.claims if claim.kind == kind]
    said = tuple(_pair_lines(report, [c for c in claims if (c.a, c.b) == pair]) for pair in pairs(report))
    tables, unmeasured = [], []
    for signal, title in wording.SIGNAL_TITLES.items():
        of_signal = [claim for claim in claims if claim.signal is signal]
        if any(claim.state in MEASURED for claim in of_signal):
            tables.append(_table(report, signal.value, title, wording.SIGNAL_QUESTIONS[signal], of_signal))
        else:
            unmeasured.append(title)
    return KindView(
        kind=kind,
        title=wording.KIND_TITLES[kind],
        said=said,
        any_direction=any(claim.state in DIRECTIONS for claim in claims),
        any_measured=bool(tables),
        tables=tuple(tables),
        unmeasured=tuple(unmeasured),
    )


def pair_view(report: Report, history: Sequence[Report], kind: str, a: str, b: str) -> PairView:
    """The page of one pair in one kind of work."""
    sections = []
    for claim in report.claims:
        if (claim.kind, claim.a, claim.b) != (kind, a, b):
            continue
        sections.append(
            PairSection(
                slug=claim.signal.value.replace("_", "-"),
                title=wording.SIGNAL_TITLES[claim.signal],
                question=wording.SIGNAL_QUESTIONS[claim.signal],
                sentence=wording.sentence(claim, report.labels, report.quarter),
                arrow=_arrow(claim),
                change=_change(claim),
                history=tuple(_history(claim, history)),
            )
        )
    return PairView(wording.KIND_TITLES[kind], report.labels[a], report.labels[b], tuple(sections))


def withheld_view(report: Report) -> WithheldView:
    """Every cell that is neither a direction nor "no clear direction"."""
    measured = {claim.kind for claim in report.claims if claim.state in MEASURED}
    silent = [claim for claim in report.claims if claim.state not in MEASURED]
    titles = {
        State.WITHHELD: ("withheld", "Withheld, with the reason"),
        State.NOT_ENOUGH_DATA: ("not-enough", "Not enough people or organisations"),
        State.NOT_COMPARED: ("not-compared", "Not on this quarter's list of pairs"),
    }
    groups = []
    for state, (name, title) in titles.items():
        kinds = []
        for kind in report.kinds:
            of_kind = [claim for claim in silent if claim.state is state and claim.kind == kind]
            lines = [
                line for pair in pairs(report) for line in _lines(report, [c for c in of_kind if (c.a, c.b) == pair])
            ]
            if lines:
                kinds.append((wording.KIND_TITLES[kind], tuple(lines)))
        groups.append(WithheldGroup(name, title, tuple(kinds)))
    whole = tuple(wording.KIND_TITLES[kind] for kind in report.kinds if kind not in measured)
    return WithheldView(whole, tuple(groups))


def _pair_lines(report: Report, claims: Sequence[Claim]) -> PairLines:
    a, b = claims[0].a, claims[0].b
    return PairLines(pair_name(report, a, b), pair_slug(a, b), tuple(_lines(report, claims)))


def _lines(report: Report, claims: Sequence[Claim]) -> Iterator[Line]:
    """A line per direction, then one per sentence that several signals share."""
    shared: dict[str, list[str]] = {}
    for claim in claims:
        text = wording.sentence(claim, report.labels, report.quarter)
        title = wording.SIGNAL_TITLES[claim.signal]
        if claim.state in DIRECTIONS:
            yield Line((title,), text, _arrow(claim))
        else:
            shared.setdefault(text, []).append(title)
    for text, titles in shared.items():
        yield Line(tuple(titles), text, None)


def _arrow(claim: Claim) -> str | None:
    return {State.TOWARD_A: ARROW_LEFT, State.TOWARD_B: ARROW_RIGHT}.get(claim.state)


def _table(report: Report, signal: str, title: str, question: str, claims: Sequence[Claim]) -> SignalTable:
    cells = {(claim.a, claim.b): claim for claim in claims}
    labels = report.labels
    ids = list(labels)
    rows = tuple(
        (labels[row], tuple(_cell(cells[column, row], labels) for column in ids[:place]))
        for place, row in enumerate(ids)
        if place
    )
    columns = tuple(labels[i] for i in ids[:-1])
    return SignalTable(signal.replace("_", "-"), title, question, columns, rows)


def _cell(claim: Claim, labels: dict[str, str]) -> TableCell:
    """The column's model is a, the row's is b: an arrow up leads to the column's name, one to the left to the row's."""
    if claim.state is State.TOWARD_A:
        return TableCell("direction", ARROW_UP, f"toward {labels[claim.a]}")
    if claim.state is State.TOWARD_B:
        return TableCell("direction", ARROW_LEFT, f"toward {labels[claim.b]}")
    if claim.state is State.NO_CLEAR_DIRECTION:
        return TableCell("none", "", "not clear")
    return TableCell("letter", "", wording.letter_of(claim.reasons[0]))


def _change(claim: Claim) -> str | None:
    if claim.state in MEASURED or claim.change is Change.ENDED:
        return wording.MESSAGES[f"change.{claim.change.value}"]
    return None


def _history(claim: Claim, history: Sequence[Report]) -> Iterator[tuple[str, str]]:
    """Path from the root of the site, and words, of what earlier reports said; newest first."""
    for old in reversed(history):
        for then in old.claims:
            if then.key == claim.key:
                path = f"{old.quarter.lower()}/{then.kind}/{pair_slug(then.a, then.b)}/index.html"
                yield path, wording.history_words(then, old.labels, old.quarter)
