# SPDX-License-Identifier: Apache-2.0
"""Where Cline and Roo keep their logs, and which files belong together.

Rules kept here:
* a session's messages are never read without looking for its header: only the header says that they are a copy;
* of the path, only fixed folder and file names are compared; none is stored;
* the header is a small file; a large one is none.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from windvane_client.readers.files import open_log
from windvane_privacy.errors import ConfigurationError

TASK_FILE: Final = "ui_messages.json"
MESSAGES: Final = ".messages.json"
_EXTENSIONS: Final = {"saoudrizwan.claude-dev": "cline", "rooveterinaryinc.roo-cline": "roo"}
_STORAGE: Final = (
    ".config/Code/User/globalStorage",
    ".vscode-server/data/User/globalStorage",
    "Library/Application Support/Code/User/globalStorage",
    "AppData/Roaming/Code/User/globalStorage",
)
USUAL_PLACES: Final = (
    *(f"{storage}/{extension}/tasks" for storage in _STORAGE for extension in _EXTENSIONS),
    ".cline/data/tasks",
    ".cline/data/sessions",
)
"""Below the home folder."""
_MAX_HEADER_BYTES: Final = 1 << 20


def header_of(path: Path) -> Path | None:
    """The header that belongs to a file of messages; None for any other file."""
    if not path.name.endswith(MESSAGES):
        return None
    return path.with_name(path.name.removesuffix(MESSAGES) + ".json")


def is_header(path: Path) -> bool:
    """Whether a file is the header of a session whose messages lie beside it."""
    if path.suffix != ".json" or path.name.endswith((MESSAGES, TASK_FILE)):
        return False
    return path.with_name(path.stem + MESSAGES).is_file()


def beside_task(path: Path) -> bool:
    """Whether a file is one of the other files that Cline keeps in a task's folder: they say the same again."""
    return path.suffix == ".json" and path.name != TASK_FILE and path.with_name(TASK_FILE).is_file()


def session_of(path: Path) -> Path:
    """One name for a header and its messages."""
    return header_of(path) or path


def companion(path: Path) -> bytes:
    """Bytes of the header of a file of messages; empty where there is none or it cannot be read."""
    header = header_of(path)
    if header is None or not header.is_file():
        return b""
    try:
        with open_log(header) as stream:
            data = stream.read(_MAX_HEADER_BYTES + 1)
    except (OSError, ConfigurationError):
        return b""
    return data if len(data) <= _MAX_HEADER_BYTES else b""


def program(path: Path) -> str:
    """The program whose folder a file lies in: cline, roo, or empty for any other place."""
    return next((_EXTENSIONS[part] for part in path.parts if part in _EXTENSIONS), "")
