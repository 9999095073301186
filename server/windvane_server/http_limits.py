# SPDX-License-Identifier: Apache-2.0
"""What a request may look like before anything of it is parsed.

Rules kept here:
* a body comes whole, with a Content-Length, not compressed, of the one content type of its address;
* its size is refused from the header, before a byte of it is read, and counted again while it is read;
* a body of JSON is at most 64 KiB; an envelope has the exact length that its manifest fixes, the cap is for the class;
* a refusal is a problem document (RFC 9457), whoever refuses: our rules, the router, or a fault in the program.
"""

from __future__ import annotations

import re

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from windvane_privacy import canonical
from windvane_privacy.couriers import BINARY, JSON, Route
from windvane_privacy.errors import (
    BodyTooLarge,
    CoordinatorUnreachable,
    LengthRequired,
    MalformedInput,
    NotReady,
    WindvaneError,
    WrongContentType,
    problem_type,
)

MAX_JSON_BYTES = 64 << 10
MAX_RESULT_BYTES = 4 << 20
"""A guardian's result: G cohorts of up to 1,440 numbers of 20 digits stay far below."""
MAX_ENVELOPE_BYTES = 64 << 10
"""Size class of all envelopes: the largest layout has 38,463 bytes."""
PROBLEM = "application/problem+json"
RETRY_SECONDS = 60

_DIGITS = re.compile(r"0|[1-9][0-9]{0,9}")


def limit_of(kind: str, route: Route) -> int:
    """The largest body that a parcel of this kind may have, in bytes."""
    if kind == "result":
        return MAX_RESULT_BYTES
    return MAX_ENVELOPE_BYTES if route.content_type == BINARY else MAX_JSON_BYTES


def check_headers(headers: Headers, content_type: str, limit: int) -> int:
    """The announced length of a body that may be read.

    Raises:
        LengthRequired: chunked, or no Content-Length.
        WrongContentType: another content type, or compressed.
        BodyTooLarge: longer than `limit`.
        MalformedInput: a length that is no number.
    """
    announced = headers.get("content-length")
    if announced is None or "transfer-encoding" in headers:
        raise LengthRequired
    if not _DIGITS.fullmatch(announced):
        raise MalformedInput("The length of the body is no number.")
    if not _is_type(headers.get("content-type", ""), content_type) or "content-encoding" in headers:
        raise WrongContentType(f"Expected: {content_type}.")
    length = int(announced)
    if length > limit:
        raise BodyTooLarge(f"At most {limit} bytes are accepted here.")
    return length


async def read_body(request: Request, content_type: str, limit: int) -> bytes:
    """The body, within the limits of `check_headers`.

    Raises:
        MalformedInput: it ended before, or went on after, its announced length.
    """
    length = check_headers(request.headers, content_type, limit)
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > length:
                raise MalformedInput("The body is longer than announced.")
    except ClientDisconnect:
        raise MalformedInput("The body ended early.") from None
    if len(body) != length:
        raise MalformedInput("The body is shorter than announced.")
    return bytes(body)


def problem_response(error: WindvaneError, *, status: int | None = None) -> Response:
    """The problem document of an error; `status` where HTTP demands another one."""
    code = status or error.status
    document = {
        "type": problem_type(type(error)),
        "title": error.what(),
        "status": code,
        "detail": error.detail,
        "advice": error.advice,
    }
    headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    if isinstance(error, (NotReady, CoordinatorUnreachable)) or error.status == NotReady.status:
        headers["Retry-After"] = str(RETRY_SECONDS)
    return Response(canonical.encode(document), status_code=code, media_type=PROBLEM, headers=headers)


def _is_type(given: str, wanted: str) -> bool:
    name, _, parameters = given.partition(";")
    plain = parameters.strip().lower() in ("", "charset=utf-8" if wanted == JSON else "")
    return name.strip().lower() == wanted and plain
