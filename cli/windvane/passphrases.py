# SPDX-License-Identifier: Apache-2.0
"""Passphrases of key files on the command line: asked for, set at `init`, changed later.

Rules kept here:
* a passphrase is typed unseen, or read from a file of the owner's; it is no argument;
* where nobody can be asked (cron, a service), nothing waits for a person: the command says what is missing.
"""

from __future__ import annotations

import getpass
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from windvane.terminal import err, out
from windvane_privacy import passphrase
from windvane_privacy.errors import ConfigurationError

Sealed = Annotated[bool, typer.Option("--passphrase", help="Seal the keys with a passphrase, asked for now.")]
NewFile = Annotated[
    Path | None, typer.Option("--new-file", help="A file of yours with the new passphrase, instead of the terminal.")
]
Remove = Annotated[bool, typer.Option("--remove", help="Leave the keys without a passphrase.")]


def ask_on_terminals() -> None:
    """Let sealed keys ask for their passphrase, where a person is there to type it."""
    if sys.stdin is not None and sys.stdin.isatty():
        passphrase.ask_with(lambda: getpass.getpass("Passphrase of the key: "))


def seal_new_keys(wanted: bool) -> None:
    """Before an `init`: from now on new keys are sealed, if that is wanted and nothing around says with what."""
    if wanted and passphrase.given() is None:
        passphrase.use(typer.prompt("New passphrase", hide_input=True, confirmation_prompt=True, err=True))


def change_keys(paths: Sequence[Path], new_file: Path | None, *, remove: bool) -> None:
    """Give these key files another passphrase, or none.

    Raises:
        PassphraseMissing, PassphraseWrong: a file does not open under the present passphrase; nothing was changed.
        ConfigurationError: no key is here, or the new passphrase is too short.
    """
    if not paths:
        raise ConfigurationError("No key is in this folder.")
    old = passphrase.known_for(paths)
    new = None
    if not remove:
        if new_file is None:
            text = typer.prompt("New passphrase", hide_input=True, confirmation_prompt=True, err=True)
        else:
            text = passphrase.from_file(new_file).decode("utf-8", "replace")
        passphrase.use(text)
        new = text.encode()
    changed = passphrase.change(paths, old, new)
    out.print(
        "Nothing was to be changed." if not changed else "The keys have no passphrase now." if remove else "Done."
    )
    if changed and not remove:
        err.print("Keep it somewhere: without it the keys are lost.")
