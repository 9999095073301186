# SPDX-License-Identifier: Apache-2.0
"""The coordinator over HTTPS: the couriers' addresses, two health checks, and the published site.

Rules kept here:
* an address does nothing but hand bytes to the one inbox and its answer back; every rule lies behind it;
* every refusal is a problem document with a stable type and one sentence of advice, unknown addresses and our own
  faults included;
* there is no generated documentation, no query interface and no address per model;
* the log has the method, the route's template and the status of a request, and nothing of the client.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from windvane_privacy import canonical
from windvane_privacy.couriers import BINARY, JSON, ROUTES, TEXT, Parcel, Route
from windvane_privacy.errors import InternalError, MalformedInput, UnknownAddress, WindvaneError
from windvane_server.coordinator import Coordinator
from windvane_server.http_limits import limit_of, problem_response, read_body
from windvane_server.logs import ServiceLog
from windvane_server.site_files import site_response

BINARY_ANSWERS = frozenset({"leaves", "envelopes", "tile"})
TEXT_ANSWERS = frozenset({"checkpoint", "consistency", "leaf", "reveal"})
"""Checkpoints, proofs and receipts are lines of text (C2SP); everything else is JSON."""
QUESTIONS: Mapping[str, tuple[str, ...]] = {"consistency": ("old", "new")}
"""Whole numbers in the query of a GET, by kind of parcel."""
_NUMBER = re.compile(r"0|[1-9][0-9]{0,9}")


def create_app(coordinator: Coordinator, site: Path | None, log: ServiceLog | None = None) -> FastAPI:
    """The service in front of `coordinator`; `site` is the folder of the published report, if it is served here."""

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        if log is not None:
            log.write("started", {"version": version("windvane"), "level": coordinator.store.level() or ""})
        yield
        if log is not None:
            log.write("stopped")

    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan, redirect_slashes=False)
    for kind, route in ROUTES.items():
        path, answer = route.path.replace("{tile}", "{tile:path}"), _exchange(coordinator, kind, route)
        app.add_api_route(path, answer, methods=[route.method], response_model=None, name=kind)
    app.add_api_route("/livez", _live, methods=["GET"], response_model=None)
    app.add_api_route("/readyz", _ready(coordinator), methods=["GET"], response_model=None)
    if site is not None:
        app.add_api_route("/{path:path}", _site(site), methods=["GET", "HEAD"], response_model=None, name="site")
    app.add_exception_handler(WindvaneError, _refused)
    app.add_exception_handler(HTTPException, _router_refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_middleware(Faults, log=log)
    return app


class Faults:
    """Outermost: a fault becomes a problem document, and each request becomes one line of the log."""

    def __init__(self, app: ASGIApp, log: ServiceLog | None) -> None:
        self.app = app
        self.log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status = 0

        async def watch(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, watch)
        except Exception as fault:
            self._fault(fault)
            if status:
                raise
            await problem_response(InternalError())(scope, receive, watch)
        finally:
            self._request(scope, status)

    def _fault(self, fault: Exception) -> None:
        if self.log is None:
            return
        trace = fault.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        # The text of a fault can hold what was sent: only its type and place are written.
        where = f"{trace.tb_frame.f_globals.get('__name__', '')}:{trace.tb_lineno}" if trace is not None else ""
        self.log.write("fault", {"kind": type(fault).__name__, "where": where})

    def _request(self, scope: Scope, status: int) -> None:
        if self.log is None:
            return
        route = getattr(scope.get("route"), "path", "")
        fields: dict[str, str | int] = {"method": scope["method"], "route": route, "status": status}
        if 400 <= status < 500:
            fields["path"] = scope["path"]
        self.log.write("request", fields)


def _exchange(coordinator: Coordinator, kind: str, route: Route) -> Callable[[Request], Awaitable[Response]]:
    async def exchange(request: Request) -> Response:
        if route.method == "POST":
            body = await read_body(request, route.content_type or JSON, limit_of(kind, route))
        else:
            body = _question(kind, request)
        parcel = Parcel(kind, request.path_params.get("round", ""), body)
        answer = await run_in_threadpool(coordinator.handle, parcel)
        return Response(answer, media_type=_media_type(kind), headers={"Cache-Control": "no-store"})

    return exchange


def _question(kind: str, request: Request) -> bytes:
    """The body of a parcel that travels as a GET: whole numbers of its query, and nothing elsewhere."""
    given = request.query_params.multi_items()
    wanted = QUESTIONS.get(kind)
    if wanted is None:
        if given:
            raise MalformedInput("This address takes no parameters.")
        return canonical.encode({"path": f"tile/{request.path_params['tile']}"}) if kind == "tile" else b""
    if [name for name, _ in given] != list(wanted) or not all(_NUMBER.fullmatch(value) for _, value in given):
        raise MalformedInput(f"It is asked for with ?{'&'.join(f'{name}=N' for name in wanted)}.")
    return canonical.encode({name: int(value) for name, value in given})


def _media_type(kind: str) -> str:
    if kind in BINARY_ANSWERS:
        return BINARY
    return f"{TEXT}; charset=utf-8" if kind in TEXT_ANSWERS else JSON


async def _live() -> Response:
    return Response(canonical.encode({"live": True}), media_type=JSON, headers={"Cache-Control": "no-store"})


def _ready(coordinator: Coordinator) -> Callable[[], Awaitable[Response]]:
    async def ready() -> Response:
        await run_in_threadpool(coordinator.check_ready)
        return Response(canonical.encode({"ready": True}), media_type=JSON, headers={"Cache-Control": "no-store"})

    return ready


def _site(site: Path) -> Callable[[Request], Awaitable[Response]]:
    async def page(request: Request) -> Response:
        return await run_in_threadpool(site_response, site, request.path_params["path"], request)

    return page


async def _refused(_request: Request, error: Exception) -> Response:
    return problem_response(error if isinstance(error, WindvaneError) else InternalError())


async def _router_refused(_request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        return problem_response(InternalError())
    answer = problem_response(UnknownAddress(), status=error.status_code if error.status_code in (404, 405) else 400)
    for name, value in (error.headers or {}).items():
        answer.headers[name] = value
    return answer


async def _invalid(_request: Request, _error: Exception) -> Response:
    return problem_response(MalformedInput("The request is not of the agreed form."), status=422)
