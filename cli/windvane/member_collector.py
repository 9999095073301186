# SPDX-License-Identifier: Apache-2.0
"""`windvane member collector-key`, and `init` and `collect` on a collector: laptops that feed one organisation's agent.

Rules kept here:
* thin: the file is `windvane_client.collector_file`, the rows are `windvane_client.collector`;
* nothing here connects to anything;
* a collector file is written 0600 and never over another file.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from windvane.terminal import err, utc_now
from windvane_privacy.errors import ConfigurationError

if TYPE_CHECKING:
    from windvane_client.collect_files import CollectReport, Progress
    from windvane_client.settings import LogFolder

HERE = Path("windvane-member")


def collector_key(
    staff_id: Annotated[
        str | None, typer.Option("--staff-id", help="Whose machine the collector is for, as named in people.toml.")
    ] = None,
    people: Annotated[
        bool, typer.Option("--people", help="For a machine with logs of many: the file holds your people.toml.")
    ] = False,
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write; it must not exist.")] = Path(
        "windvane-collector.json"
    ),
    state: Annotated[Path, typer.Option("--state", help="Folder of this member.")] = HERE,
) -> None:
    """Write a collector file for a laptop or server whose logs your agent shall count."""
    from windvane_client.collector_file import make_collector_file
    from windvane_client.state import MemberState
    from windvane_privacy.keyfiles import write_private

    if people == (staff_id is not None):
        raise typer.BadParameter("give one of them", param_hint="--staff-id or --people")
    raw = make_collector_file(MemberState.open(state), utc_now(), staff_id=staff_id)
    write_private(out, raw)
    err.print("The collector file is written. It is a secret: hand it over as you would a password, then delete it.")
    err.print("On the other machine: windvane member init --collector FILE", markup=False)


def init_collector(file: Path, state: Path, logs: tuple[LogFolder, ...]) -> None:
    """Make a collector from a collector file."""
    from windvane_client.collector import CollectorState
    from windvane_client.collector_file import MAX_BYTES

    try:
        with file.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError:
        raise ConfigurationError("The collector file is missing or cannot be read.") from None
    if len(raw) > MAX_BYTES:
        raise ConfigurationError("This is no collector file of this version.")
    CollectorState.create(state, raw, logs)
    err.print("This machine is a collector. Delete the collector file; its content is kept in the folder.")
    err.print("Next, every week: windvane member collect --out FOLDER, a folder that your agent reads.", markup=False)


def collect_rows(state: Path, out: Path | None, progress: Progress) -> CollectReport:
    """One run of a collector."""
    from windvane_client.collector import CollectorState, collect_out

    if out is None:
        raise ConfigurationError("This machine is a collector: say with --out which folder your agent reads.")
    return collect_out(CollectorState.open(state), out, utc_now(), progress=progress)
