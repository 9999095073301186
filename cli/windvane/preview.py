# SPDX-License-Identifier: Apache-2.0
"""`windvane member preview`: look at your own logs as Windvane sees them. No set-up, no connection, nothing written.

Rules kept here:
* thin: what is read, summed and said lies in `windvane_client.preview*`, how it looks in `windvane.preview_page`;
* the printed JSON has exactly the documented shape (docs/signals.md); progress goes to stderr;
* whether a round is open is decided by the real clock, never by --now;
* one person's piece of work is explained to that person only: never where the logs hold several people.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from windvane.terminal import print_json

if TYPE_CHECKING:
    from windvane_client.noticed import Noticed
    from windvane_client.preview import Progress, Sample
    from windvane_client.preview_own import Own
    from windvane_client.preview_setup import Setup
    from windvane_client.store import EventStore

HERE = Path("windvane-member")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def preview(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[PATH]...", help="Logs or folders of logs; without one, the usual places of your home."
        ),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option("--source", help="What the logs are, for example claude_code. All paths are then one sample."),
    ] = None,
    now: Annotated[str | None, typer.Option("--now", help="Read as if it were this time (RFC 3339).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was observed as JSON.")] = False,
    explain: Annotated[
        str | None,
        typer.Option(
            "--explain", metavar="EPISODE", help="Say why one piece of work counts as it does: number or start."
        ),
    ] = None,
    drawn: Annotated[
        str | None, typer.Option("--drawn", metavar="ROUND", help="Show hash, bytes and charge of a drawn round.")
    ] = None,
    after: Annotated[
        str | None,
        typer.Option("--after", metavar="ROUND", help="Show counts and noisy numbers of a round that ended; once."),
    ] = None,
    state: Annotated[
        Path | None, typer.Option("--state", help="Folder of this member; without one everything is one person, you.")
    ] = None,
) -> None:
    """Look at your own logs: what is read, what it would count for, how it would be bounded and noised."""
    from windvane_client import preview as reading
    from windvane_client.noticed import Noticed
    from windvane_client.store import EventStore

    if drawn is not None or after is not None:
        _of_round(drawn, after, paths, state, as_json=as_json)
        return
    moment = _moment(now)
    setup = _setup(state)
    given = _existing(paths or [])
    each = as_json and explain is None and source is None
    samples = _plan(given, source, setup, apart=each)
    noticed = Noticed()
    with EventStore.temporary() as store:
        with _bar() as progress:
            reading.read(samples, store, setup, now=moment, each=each, progress=progress, noticed=noticed)
        if explain is not None:
            _explain(explain, store, setup, moment, as_json=as_json)
        elif as_json:
            _json(samples, store, setup, moment, noticed, one=source is not None)
        else:
            _page(samples, store, setup, moment, noticed)


def _of_round(
    drawn: str | None, after: str | None, paths: list[Path] | None, state: Path | None, *, as_json: bool
) -> None:
    """A round's own pages: they read the ledger, and no log."""
    from windvane.member_round import after_page, drawn_page

    if paths or (drawn is not None and after is not None):
        raise typer.BadParameter("give one of them, and no logs", param_hint="--drawn or --after")
    folder = HERE if state is None else state
    if drawn is not None:
        drawn_page(drawn, folder, as_json=as_json)
    elif after is not None:
        after_page(after, folder, as_json=as_json)


def _clock() -> datetime:
    """The real time, UTC."""
    return datetime.now(UTC)


# --- what was asked for -----------------------------------------------------------------------------------------------


def _moment(text: str | None) -> datetime:
    if text is None:
        return _clock()
    from windvane_client.readers.lines import rfc3339_micros

    micros = rfc3339_micros(text)
    if micros is None:
        raise typer.BadParameter("a time such as 2027-01-01T00:00:00Z is needed", param_hint="--now")
    return _EPOCH + timedelta(microseconds=micros)


def _setup(state: Path | None) -> Setup:
    from windvane_client.preview_setup import no_setup, setup_of
    from windvane_client.state import MemberState

    if state is None:
        if not (HERE / "member.toml").is_file():
            return no_setup()
        state = HERE
    return setup_of(MemberState.open(state), _clock())


def _existing(paths: list[Path]) -> list[Path]:
    from windvane_privacy.errors import ConfigurationError

    for number, path in enumerate(paths, 1):
        if not path.exists():
            raise ConfigurationError(f"PATH number {number} does not exist.")
    return paths


def _plan(paths: list[Path], source: str | None, setup: Setup, *, apart: bool) -> list[Sample]:
    from windvane_client.preview import Sample, plan_paths, plan_source, plan_usual
    from windvane_client.preview_sources import source_named, usual_roots

    if source is None:
        if paths:
            return plan_paths(paths, setup, apart=apart)
        return plan_usual(Path.home(), os.environ, setup, apart=apart)
    name, refusal = source_named(source)
    if refusal is not None:
        return [Sample(name, paths, refusal)]
    if not paths:
        if setup.is_member:
            paths = [Path(folder.path) for folder in setup.folders if folder.source == name]
        elif name in (usual := usual_roots(Path.home(), os.environ)):
            paths = usual[name]
        else:
            raise typer.BadParameter(f"{name} has no usual place; name a file or a folder", param_hint="PATH")
    return [plan_source(name, paths, setup)]


# --- what is printed --------------------------------------------------------------------------------------------------


@contextmanager
def _bar() -> Iterator[Progress]:
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("Reading"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("read", total=None)

        def show(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield show


def _json(
    samples: list[Sample], store: EventStore, setup: Setup, now: datetime, noticed: Noticed, *, one: bool
) -> None:
    from windvane_client.coverage import Coverage
    from windvane_client.preview import summed
    from windvane_client.preview_json import SCHEMA, more_json, sample_json

    cover = Coverage()
    if one:
        (sample,) = samples
        if sample.refused is None:
            sample.observed, sample.missing = summed(store, samples, setup, now, cover)
        print_json({**sample_json(sample), **more_json(samples, cover, noticed)})
        return
    total, _ = summed(store, samples, setup, now, cover)
    all_samples = [sample_json(sample) for sample in samples]
    print_json({
        "schema": SCHEMA, "samples": all_samples, "total": total, **more_json(samples, cover, noticed),
    })  # fmt: skip


def _page(samples: list[Sample], store: EventStore, setup: Setup, now: datetime, noticed: Noticed) -> None:
    from windvane.preview_coverage import Seen
    from windvane.preview_page import show
    from windvane_client.coverage import Coverage
    from windvane_client.evidence import micros
    from windvane_client.preview import all_gaps, summed
    from windvane_client.preview_own import own_work

    cover = Coverage()
    if setup.open_round is None:
        own = own_work(store, setup, micros(now), cover)
        gaps = all_gaps(store, samples, own.gaps)
    else:
        own, (_, gaps) = None, summed(store, samples, setup, now, cover)
    show(Console(highlight=False), samples, own, setup, Seen(cover, noticed, gaps))


def _explain(episode: str, store: EventStore, setup: Setup, now: datetime, *, as_json: bool) -> None:
    from windvane.preview_why import show_explanation
    from windvane_client.evidence import micros
    from windvane_client.explained import explain
    from windvane_client.preview_own import own_work
    from windvane_privacy.errors import ConfigurationError, NotReady

    if setup.open_round is not None:
        raise NotReady("A round is open; no outcome is shown before it has ended.")
    own = own_work(store, setup, micros(now))
    person = own.person
    if own.people > 1:
        raise ConfigurationError("These logs hold several people; only a person's own logs are explained.")
    number = None if person is None else _number(episode, own)
    if person is None or number is None:
        raise typer.BadParameter(
            "no piece of work has this number or start; the page lists them", param_hint="--explain"
        )
    found = person.episodes[number - 1]
    why = dict(explain(found, person, catalogue=setup.catalogue, rules=setup.rules))
    if as_json:
        print_json({"schema": "windvane/preview-episode/v1", "episode": number, **why})
    else:
        show_explanation(Console(highlight=False), number, found.opened, why, setup)


def _number(text: str, own: Own) -> int | None:
    """Place, from 1, of the episode with this number, or with this start as the page prints it."""
    from windvane.preview_page import time_text

    episodes = own.person.episodes if own.person is not None else []
    wanted = text.strip().removeprefix("#")
    if wanted.isascii() and wanted.isdigit():
        return int(wanted) if 1 <= int(wanted) <= len(episodes) else None
    return next((at for at, one in enumerate(episodes, 1) if time_text(one.opened) == wanted), None)
