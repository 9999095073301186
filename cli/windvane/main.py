# SPDX-License-Identifier: Apache-2.0
"""The one command: `windvane`, with sub-commands by audience.

Rules kept here:
* each audience's commands are imported only when they are used, so that a member's install never loads server code;
* a command whose packages are missing prints one line with the extra to install, never an ImportError;
* every refusal is two sentences on stderr: what happened, what to do next.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from importlib.metadata import version
from typing import TYPE_CHECKING

import click
import typer
from rich.console import Console
from rich.markup import escape

from windvane_privacy.errors import InternalError, MissingExtra, WindvaneError

if TYPE_CHECKING:
    from collections.abc import Sequence

AUDIENCES: dict[str, tuple[str, str, str | None]] = {
    "member": ("windvane.member", "For an organisation: read your logs, look at them, take part.", None),
    "guardian": ("windvane.guardian", "For a guardian: make a round's key, check, open one sum.", None),
    "witness": ("windvane.witness", "For a witness of the public log: sign that it only grows.", None),
    "coordinator": ("windvane.coordinator", "For the coordinator: run rounds, publish the report.", "server"),
    "audit": ("windvane.audit", "For reviewers: check a report, a site or this program's noise, offline.", None),
    "demo": ("windvane.demo", "A whole federation on this machine, from log files to a report.", "server"),
}
HOLD_KEYS = frozenset({"member", "guardian", "witness", "coordinator"})
"""Whose key files may be sealed with a passphrase, which is asked for on a terminal."""
EXTRAS = {"server": ("alembic", "fastapi", "jinja2", "sqlalchemy", "uvicorn")}
"""What each extra brings, by the names that are imported."""


def require_extra(extra: str | None) -> None:
    """Return if the packages of an extra are here.

    Raises:
        MissingExtra: they are not.
    """
    # Looked up before anything is imported: commands import their packages late, in the middle of their work.
    if any(importlib.util.find_spec(package) is None for package in EXTRAS.get(extra or "", ())):
        raise MissingExtra(f"Extra: {extra}.")


class Audiences(click.Group):
    """Sub-commands that are imported when they are first used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(AUDIENCES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in AUDIENCES:
            return None
        module, _help, extra = AUDIENCES[cmd_name]
        require_extra(extra)
        app = importlib.import_module(module).app
        if cmd_name in HOLD_KEYS:
            importlib.import_module("windvane.passphrases").ask_on_terminals()
        command = typer.main.get_command(app)
        command.name = cmd_name
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_module, text, _extra) in AUDIENCES.items()])


@click.group(cls=Audiences, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version("windvane"), prog_name="windvane")
def main() -> None:
    """Windvane: which AI models people finish real work with, as directions, without anyone's numbers."""


def run(arguments: Sequence[str] | None = None) -> None:
    """Entry point: runs the command, turns refusals into two lines and an exit code of 1."""
    try:
        main.main(args=list(arguments) if arguments is not None else None, prog_name="windvane", standalone_mode=False)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.ClickException as wrong:
        wrong.show()
        sys.exit(wrong.exit_code)
    except (click.Abort, KeyboardInterrupt):
        Console(stderr=True).print("Stopped.")
        sys.exit(130)
    except WindvaneError as refusal:
        say(refusal)
        sys.exit(1)
    except BrokenPipeError:
        sys.exit(0)
    except Exception as fault:
        # The text of an unexpected error may hold log content: only its type is shown.
        say(InternalError(f"{type(fault).__name__} in {_where(fault)}."))
        sys.exit(70)


def say(refusal: WindvaneError) -> None:
    """What happened and what to do next, on stderr."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print(f"[bold red]{type(refusal).__name__.rstrip('_')}[/]: {escape(refusal.sentence())}")
    console.print(f"Next: {refusal.advice}", markup=False)


def _where(fault: BaseException) -> str:
    trace = fault.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return "windvane"
    return f"{trace.tb_frame.f_globals.get('__name__', 'windvane')}:{trace.tb_lineno}"
