# SPDX-License-Identifier: Apache-2.0
"""Runs the coordinator's application, or a witness's, on a socket.

Rules kept here:
* without a certificate it listens on this machine only (a proxy with TLS may stand in front), never on a network;
* the socket is bound before anything is said, so that the printed address answers;
* uvicorn's own logs are off: the service writes its own closed list of events (`windvane_server.logs`).
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

import uvicorn
from fastapi import FastAPI

from windvane_privacy.couriers import is_loopback
from windvane_privacy.errors import ConfigurationError, InsecureAddress
from windvane_server.app import create_app
from windvane_server.coordinator import Coordinator, utc_now
from windvane_server.logs import ServiceLog

MOST_CONNECTIONS = 2_048
GRACE_SECONDS = 10
MOST_HEADER_BYTES = 16 << 10


def serve(
    coordinator: Coordinator,
    *,
    host: str,
    port: int,
    tls_cert: Path | None,
    tls_key: Path | None,
    log: TextIO,
    listening: Callable[[str], None],
) -> None:
    """Serve the coordinator until the process is told to stop: see `listen`. `log` gets the service's events."""
    app = create_app(coordinator, coordinator.site, ServiceLog(log, utc_now))
    listen(app, host=host, port=port, tls_cert=tls_cert, tls_key=tls_key, listening=listening)


def listen(
    app: FastAPI,
    *,
    host: str,
    port: int,
    tls_cert: Path | None,
    tls_key: Path | None,
    listening: Callable[[str], None],
) -> None:
    """Serve until the process is told to stop. `listening` is called with the address once the socket is bound.

    Raises:
        InsecureAddress: a network address without a certificate.
        ConfigurationError: the address is taken, or a certificate file is missing.
    """
    if (tls_cert is None) != (tls_key is None):
        raise ConfigurationError("A certificate and its key come together: --tls-cert and --tls-key.")
    if tls_cert is None and not is_loopback(host):
        raise InsecureAddress
    if any(path is not None and not path.is_file() for path in (tls_cert, tls_key)):
        raise ConfigurationError("The certificate or its key is not there.")
    bound = _bind(host, port)
    config = uvicorn.Config(
        app,
        http="h11",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ssl_certfile=tls_cert,
        ssl_keyfile=tls_key,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_graceful_shutdown=GRACE_SECONDS,
        h11_max_incomplete_event_size=MOST_HEADER_BYTES,
    )
    with bound:
        scheme = "http" if tls_cert is None else "https"
        shown = f"[{host}]" if ":" in host else host
        listening(f"{scheme}://{shown}:{bound.getsockname()[1]}")
        uvicorn.Server(config).run(sockets=[bound])


def _bind(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=MOST_CONNECTIONS)
    except OSError as error:
        raise ConfigurationError("The address cannot be listened on; another program may hold it.") from error
