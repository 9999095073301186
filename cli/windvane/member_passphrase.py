# SPDX-License-Identifier: Apache-2.0
"""`windvane member passphrase`: the passphrase of the member's identity key.

Rules kept here:
* only the identity key is sealed: the key of the pseudonyms stays as it is, because collecting runs unattended.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from windvane.passphrases import NewFile, Remove, change_keys

HERE = Path("windvane-member")


def passphrase(
    state: Annotated[Path, typer.Option("--state", help="Folder of this member.")] = HERE,
    new_file: NewFile = None,
    remove: Remove = False,
) -> None:
    """Set, change or remove the passphrase of your identity key."""
    change_keys(list((state / "keys").glob("identity.key")), new_file, remove=remove)
