# SPDX-License-Identifier: Apache-2.0
"""`windvane demo`: a whole federation on this machine, from log files to a signed report.

Rules kept here:
* one command, no arguments, under two minutes on two cores;
* it ends with the report's address and a table of what was true and what the report says, in words;
* it says what it is: invented organisations, invented models, invented preferences.
"""

from __future__ import annotations

import shutil
import tempfile
import time
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from windvane.demo.federation import DemoFederation
from windvane.demo.truth import COMPARED, LABEL, Verdict, verdicts
from windvane_privacy.errors import ConfigurationError

app = typer.Typer(add_completion=False)
out = Console(highlight=False)
REPORT = Path("windvane-demo")
TITLES = dict(zip(COMPARED, ("finished", "moved away", "tool calls", "after a fault"), strict=True))


@app.command()
def demo(
    members: Annotated[int, typer.Option("--members", help="Organisations.", min=1, max=500)] = 40,
    people: Annotated[int, typer.Option("--people", help="People in each, about.", min=1, max=5000)] = 100,
    seed: Annotated[int, typer.Option("--seed", help="Fixes the invented logs; noise and keys are never fixed.")] = 1,
    keep: Annotated[Path | None, typer.Option("--keep", help="Keep everything in this new folder.")] = None,
    show: Annotated[bool, typer.Option("--open", help="Open the report in a browser.")] = False,
) -> None:
    """A whole federation on this machine, from log files to a report one can open."""
    if keep is not None and keep.exists() and any(keep.iterdir()):
        raise ConfigurationError("The folder of --keep already holds something.")
    started = time.monotonic()
    out.print("[bold]Windvane demonstration[/]: invented organisations, invented models, invented preferences.")
    folder = keep if keep is not None else Path(tempfile.mkdtemp(prefix="windvane-demo-"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with DemoFederation(folder.resolve(), members, people, seed) as federation:
            page = _play(federation)
            if keep is None:
                page = _keep_report(federation.site)
    finally:
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    _close(page, time.monotonic() - started, kept=keep)
    if show:
        webbrowser.open(page.as_uri())


def _play(federation: DemoFederation) -> Path:
    bar = Progress(
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn(),
        TimeElapsedColumn(), console=Console(stderr=True),
    )  # fmt: skip
    many = federation.organisations

    def counted(words: str, step: Callable[[Callable[[int], None]], int | None]) -> int:
        task = bar.add_task(words, total=many)
        return step(lambda n: bar.advance(task, n)) or 0

    def once(words: str, step: Callable[[], object]) -> None:
        task = bar.add_task(words, total=1)
        step()
        bar.advance(task)

    with bar:
        counted("Writing log files", federation.write_logs)
        once("Setting up coordinator and three guardians", federation.found)
        counted("Members enrol", federation.enrol)
        once("Roster, guardians' keys, signed manifest", federation.agree)
        if not federation.too_small:
            counted("Members read, approve, draw, commit, reveal", federation.take_part)
            once("Closing; guardians check and open one sum a cohort", federation.open_sums)
        task = bar.add_task("Publishing the report", total=1)
        page = federation.publish()
        bar.advance(task)
    return page


def _keep_report(site: Path) -> Path:
    target = REPORT
    number = 2
    while target.exists():
        target, number = Path(f"{REPORT}-{number}"), number + 1
    shutil.copytree(site, target)
    return (target / "index.html").resolve()


def _close(page: Path, seconds: float, *, kept: Path | None) -> None:
    reports = sorted(page.parent.glob("*/report.json"))
    found = verdicts(reports[-1]) if reports else []
    out.print()
    if found:
        out.print(_table(found))
        called = [v for v in found if v.called]
        wrong = [v for v in called if not v.right]
        verdict = "every one of them is true" if not wrong else "[bold red]not all of them are true[/]"
        out.print(f"The report calls {'several directions' if len(called) > 1 else 'few directions'}; {verdict}.")
    else:
        out.print("This federation is below the floors, so the report gives no direction and says why.")
    out.print(f"Done in {seconds:.0f} seconds. Nothing left this machine.")
    if kept is not None:
        out.print(f"Everything is in {kept}: members' logs and ledgers, guardians, coordinator, site.", soft_wrap=True)
    out.print(f"\nReport: [bold]{page.as_uri()}[/]", soft_wrap=True)


def _table(found: list[Verdict]) -> Table:
    table = Table(
        title="What was true / what the report says",
        caption="✓ true, and said (equal: no direction)   · true, not clear enough to say   ✗ said, but wrong",
        title_justify="left", caption_justify="left", pad_edge=False, box=SIMPLE_HEAD,
    )  # fmt: skip
    table.add_column("pair", no_wrap=True)
    for signal in COMPARED:
        table.add_column(TITLES[signal])
    for a, b in sorted({(v.a, v.b) for v in found}):
        cells = {v.signal: v.words for v in found if (v.a, v.b) == (a, b)}
        table.add_row(f"{LABEL[a]} – {LABEL[b]}", *(cells.get(signal, "") for signal in COMPARED))
    return table
