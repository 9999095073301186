# SPDX-License-Identifier: Apache-2.0
"""A witness at an address: logs push their checkpoints, and anybody reads what it signed last.

Rules kept here:
* an address does nothing but hand bytes to the witness; what may be signed lies in `windvane_privacy.witness`;
* a body is counted while it is read and ends at its limit, whatever its header says;
* a fault of this machine (a lost row, a full disk) is a 500 without a word about it, and nothing is signed.

Source: C2SP tlog-witness (July 2026): `POST /add-checkpoint`, `GET /<hex SHA-256 of the origin>/checkpoint`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from fastapi import FastAPI, Request
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from windvane_privacy.errors import NotReady
from windvane_privacy.witness import MAX_REQUEST_BYTES, PLAIN, Witness
from windvane_server.app import Faults
from windvane_server.logs import ServiceLog

HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


def create_witness_app(
    witness: Witness, origins: Sequence[str], now: Callable[[], int], log: ServiceLog | None = None
) -> FastAPI:
    """The service in front of `witness`, which pinned the logs of these `origins`. `now`: seconds since 1970."""
    names = {hashlib.sha256(origin.encode()).hexdigest(): origin for origin in origins}

    async def add_checkpoint(request: Request) -> Response:
        body = await _body(request)
        if body is None:
            return Response(status_code=413, media_type=PLAIN, headers=HEADERS)
        answer = await run_in_threadpool(witness.add_checkpoint, body, now())
        return Response(answer.body, answer.status, {**HEADERS, "Content-Type": answer.media_type})

    async def checkpoint(request: Request) -> Response:
        origin = names.get(request.path_params["log"])
        if origin is None:
            return Response(status_code=404, media_type=PLAIN, headers=HEADERS)
        try:
            note = await run_in_threadpool(witness.newest, origin, now())
        except NotReady:
            return Response(status_code=404, media_type=PLAIN, headers=HEADERS)
        return Response(note.encode(), media_type=PLAIN, headers=HEADERS)

    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    app.add_api_route("/add-checkpoint", add_checkpoint, methods=["POST"], response_model=None)
    app.add_api_route("/{log}/checkpoint", checkpoint, methods=["GET"], response_model=None)
    app.add_middleware(Faults, log=log)
    return app


async def _body(request: Request) -> bytes | None:
    """The body; None where it is too long. One that ends early is short, and malformed as such."""
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_REQUEST_BYTES:
                return None
    except ClientDisconnect:
        return b""
    return bytes(body)
