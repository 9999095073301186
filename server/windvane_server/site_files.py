# SPDX-License-Identifier: Apache-2.0
"""The published site as files over HTTP: what any static server could do, with the headers that the report promises.

Rules kept here:
* only regular files inside the site's folder, by plain paths of lower-case letters, digits, `.` and `-`;
* files of a quarter and of a schema never change and say so; the pages above them are asked for again after 5 minutes;
* the entity tag is the file's SHA-256, so that a mirror can be compared;
* no parameter, no listing, no other method than GET and HEAD.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from windvane_privacy.errors import UnknownAddress

SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".csv": "text/csv; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
    ".sig": "application/octet-stream",
}
IMMUTABLE, FRESH = "public, max-age=31536000, immutable", "public, max-age=300"

_STEP = re.compile(r"(?!\.)[a-z0-9.-]{1,200}")
_LASTING = re.compile(r"(?:\d{4}-q[1-4]|schema)/.*|style\.[0-9a-f]{8,64}\.css")


def site_response(site: Path, path: str, request: Request) -> Response:
    """The file at `path` (without its leading slash) of the site.

    Raises:
        UnknownAddress: there is no such file, or the path is not plain.
    """
    steps = path.split("/") if path else [""]
    if any(not _STEP.fullmatch(step) for step in steps[:-1]) or (steps[-1] and not _STEP.fullmatch(steps[-1])):
        raise UnknownAddress
    root = site.resolve()
    found = (root / path).resolve()
    if not found.is_relative_to(root):
        raise UnknownAddress
    if found.is_dir():
        if path and not path.endswith("/"):
            # Relative links of a page only work below its folder.
            return RedirectResponse(f"{steps[-1]}/", status_code=308, headers=SECURITY_HEADERS)
        found = found / "index.html"
    elif path.endswith("/"):
        raise UnknownAddress
    try:
        content = found.read_bytes()
    except OSError:
        raise UnknownAddress from None
    tag = f'"{hashlib.sha256(content).hexdigest()}"'
    cache = IMMUTABLE if _LASTING.fullmatch(path) else FRESH
    headers = {**SECURITY_HEADERS, "ETag": tag, "Cache-Control": cache}
    if tag in (known.strip() for known in request.headers.get("if-none-match", "").split(",")):
        return Response(status_code=304, headers=headers)
    media_type = TYPES.get(found.suffix, "application/octet-stream")
    return Response(content, headers=headers, media_type=media_type)
