# SPDX-License-Identifier: Apache-2.0
"""member.toml: who a member is and which logs it reads.

Rules kept here:
* a setting that is malformed is refused with its name, and nothing else of the file is repeated;
* paths are full paths: a command means the same wherever it is run.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import msgspec

from windvane_privacy.errors import ConfigurationError
from windvane_privacy.roster import BANDS, is_name


class LogFolder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A folder (or file) to read. `source`: id of a reader. `staff_id`: whose logs these are, for sources that name no
    person; None: the machine's own person of people.toml."""

    path: str
    source: str = "claude_code"
    staff_id: str | None = None


class MemberSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """member.toml. `band`: public size band. `ties`: vendors of models with a share in this organisation, or it in
    them. `address`: the coordinator's. `logs`: what to read. `second_place`: folder where the newest checkpoint of the
    log is kept a second time. `ca`: file of certificates to trust instead of the usual ones. `collector_key`: number of
    the key with which collectors write; the next one shuts out whoever holds an older collector file."""

    name: str
    band: str
    ties: tuple[str, ...]
    address: str
    logs: tuple[LogFolder, ...]
    second_place: str
    ca: str | None = None
    collector_key: int = 1


def check_settings(settings: MemberSettings) -> None:
    """Refuse malformed settings.

    Raises:
        ConfigurationError: with the field.
    """
    for broken, why in (
        (not is_name(settings.name), "name: 1 to 200 printable characters"),
        (settings.band not in BANDS, f"band: one of {', '.join(BANDS)}"),
        (not all(is_name(tie) for tie in settings.ties), "ties: names of vendors"),
        (not Path(settings.second_place).is_absolute(), "second_place: the full path of a folder outside this one"),
        (not 1 <= settings.collector_key <= 1_000_000, "collector_key: a number from 1"),
    ):
        if broken:
            raise ConfigurationError(f"member.toml, {why}.")
    check_logs(settings.logs, "member.toml")


def check_logs(logs: Sequence[LogFolder], file: str) -> None:
    """Refuse malformed folders. `file`: name of the file they stand in.

    Raises:
        ConfigurationError: none, or a path that is not a full one.
    """
    if not logs:
        raise ConfigurationError(f"{file}, logs: at least one folder.")
    if not all(Path(one.path).is_absolute() for one in logs):
        raise ConfigurationError(f"{file}, logs: full paths.")


def settings_toml(settings: MemberSettings) -> str:
    """The text of member.toml."""
    ca = f"ca = {_text(settings.ca)}\n" if settings.ca else '# ca = "/etc/ssl/our-ca.pem"\n'
    return (
        "# Who this member is. The name, the size band and the ties are public.\n"
        f"name = {_text(settings.name)}\n"
        f"band = {_text(settings.band)}\n"
        f"ties = {_text(list(settings.ties))}\n\n"
        "# The coordinator, and the certificates to trust if your network has its own.\n"
        f"address = {_text(settings.address)}\n{ca}\n"
        "# A second place for the log's newest checkpoint: it shows a restored copy of this folder. Back it up apart.\n"
        f"second_place = {_text(settings.second_place)}\n\n"
        "# Raise it after a quarter's end when a collector file was lost, and give out new ones.\n"
        f"collector_key = {settings.collector_key}\n\n"
    ) + logs_toml(settings.logs)


def logs_toml(logs: Sequence[LogFolder]) -> str:
    """The tables [[logs]], with what they mean."""
    return (
        "# What is read; nothing else is opened. source: the id of a reader, such as claude_code or litellm\n"
        "# (docs/members.md lists them); collected: a folder that collectors write to. staff_id: whose logs they are,\n"
        "# for sources that name no person (default: [machine] of people.toml).\n"
    ) + "".join(
        f"[[logs]]\npath = {_text(one.path)}\nsource = {_text(one.source)}\n"
        + (f"staff_id = {_text(one.staff_id)}\n" if one.staff_id else "")
        for one in logs
    )


def _text(value: object) -> str:
    # A JSON string is a TOML basic string but for DEL, which is_name and paths of ours never hold.
    return json.dumps(value, ensure_ascii=False)
