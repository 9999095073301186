# SPDX-License-Identifier: Apache-2.0
"""Renders the pages of docs/ that come from code or kept results (PAGES) after a change: run it."""

from __future__ import annotations

from pathlib import Path

import click

from windvane.main import AUDIENCES, Audiences, main
from windvane_client import preview_sources as sources
from windvane_privacy.errors import WindvaneError, problem_type

DOCS = Path(__file__).resolve().parents[2] / "docs"


def errors_page() -> str:
    """One table of every error: problem type, what happened, what to do next."""
    lines = [
        "# Errors",
        "",
        "Every refusal says what happened and what to do next. Over HTTP it is a problem document (RFC 9457) with",
        "the type below; on the command line the class name and two sentences, exit code 1. This page is rendered",
        "from `privacy/windvane_privacy/errors.py`.",
        "",
        "| error | status | type | what happened | what to do next |",
        "|---|---|---|---|---|",
    ]
    for cls in _in_order(WindvaneError):
        lines.append(f"| `{cls.__name__}` | {cls.status} | `{problem_type(cls)}` | {cls.what()} | {cls.advice} |")
    return "\n".join(lines) + "\n"


def _in_order(cls: type[WindvaneError]) -> list[type[WindvaneError]]:
    found = [cls]
    for child in cls.__subclasses__():
        if child.__module__ == "windvane_privacy.errors":
            found += _in_order(child)
    return found


def commands_page() -> str:
    """Every command with its help text and options."""
    codes = "Exit codes: 0 done, 1 refused, 2 wrong use, 70 a fault."
    lines = ["# Commands", "", f"Rendered from the commands themselves. {codes}", ""]
    for audience in AUDIENCES:
        group = Audiences().get_command(click.Context(main), audience)
        assert group is not None
        if isinstance(group, click.Group) and group.list_commands(click.Context(group)):
            lines += [f"## windvane {audience}", "", AUDIENCES[audience][1], ""]
            for name in group.list_commands(click.Context(group)):
                command = group.get_command(click.Context(group), name)
                assert command is not None
                lines += _commands(f"windvane {audience} {name}", command)
        else:
            lines += _command(f"windvane {audience}", group, "##")
    return "\n".join(lines).rstrip() + "\n"


def _commands(title: str, command: click.Command) -> list[str]:
    """A command, or the commands of a group below it."""
    if not isinstance(command, click.Group):
        return _command(title, command, "###")
    below = [
        (name, command.get_command(click.Context(command), name))
        for name in command.list_commands(click.Context(command))
    ]
    return [line for name, one in below if one is not None for line in _commands(f"{title} {name}", one)]


def _command(title: str, command: click.Command, level: str) -> list[str]:
    lines = [f"{level} {title}", "", " ".join((command.help or "").split()), ""]
    rows = []
    for parameter in command.params:
        if isinstance(parameter, click.Argument):
            text = getattr(parameter, "help", None) or ""
            rows.append(f"| `{parameter.human_readable_name}` | {text} |")
        elif isinstance(parameter, click.Option) and not parameter.hidden:
            names = ", ".join(f"`{name}`" for name in parameter.opts if name != "--help")
            if names:
                rows.append(f"| {names} | {' '.join((parameter.help or '').split())} |")
    return lines + (["| argument or option | |", "|---|---|", *rows, ""] if rows else [])


REFUSED_NAMES = {
    "cursor": "Cursor, usage events",
    "copilot_metrics": "GitHub Copilot, usage metrics",
    "swe_agent": "SWE-agent trajectories, benchmark logs",
    "provider_dashboard": "dashboards of providers, totals of tokens or money",
    "access_log": "plain access logs: vLLM, Ollama, Kong",
}
REFUSED_HEAD = """\
# Refused sources

Logs that Windvane does not read, why, and where to look instead. This page is rendered from
`client/windvane_client/preview_sources.py`; `windvane member preview` says the same. A refusal is no error: the other
logs of a folder are read, and the command ends with 0. Of a refused log nothing is kept.

## For good

No version will read these: none of the five signals stands in them, and what does stand in them would be taken for one.

| source | `--source` | why not | instead |
|---|---|---|---|
"""


def refused_page() -> str:
    """The sources that no version reads, those without a reader yet, and what else stops a log from being read."""
    lines = [
        f"| {REFUSED_NAMES[name]} | `{name}` | {one.reason} | {one.instead} |"
        for name, one in sorted(sources.REFUSED.items())
    ]
    known = ", ".join(f"`{name}`" for name in sorted(sources.NOT_BUILT))
    lines += [
        "",
        "## Not yet",
        "",
        f"Known, without a reader of their own: {known}. Instead: {sources.NO_READER.instead};",
    ]
    lines += ["a CSV or JSONL export may also be read by [naming its columns](mapping.md).", ""]
    lines += ["## One log, not its source", "", "| why not | what to do |", "|---|---|"]
    others = {one for one in vars(sources).values() if isinstance(one, sources.Refusal)} - {sources.NO_READER}
    lines += sorted(f"| {one.reason} | {one.instead} |" for one in others)
    return REFUSED_HEAD + "\n".join(lines) + "\n"


def feasibility_page() -> str:
    """What size of federation can say what, from the planning and accounting code."""
    # Beside this file when it runs as a program, a module of the package `house` under pytest.
    try:
        from house.render_feasibility import page
    except ImportError:
        from render_feasibility import page  # type: ignore[no-redef]
    return page()


def threats() -> str:
    """Adversaries, attacks and the tests that show them."""
    try:
        from house.render_threats import threats_page
    except ImportError:
        from render_threats import threats_page  # type: ignore[no-redef]
    return threats_page()


def costs() -> str:
    """What sealed shares cost, from the kept results."""
    try:
        from house.render_costs import costs_page
    except ImportError:
        from render_costs import costs_page  # type: ignore[no-redef]
    return costs_page()


PAGES = {
    "errors.md": errors_page,
    "commands.md": commands_page,
    "sources/refused.md": refused_page,
    "feasibility.md": feasibility_page,
    "threats.md": threats,
    "costs.md": costs,
}

if __name__ == "__main__":
    for name, render in PAGES.items():
        (DOCS / name).write_text(render(), encoding="utf-8")
        print("wrote", DOCS / name)
