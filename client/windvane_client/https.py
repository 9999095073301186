# SPDX-License-Identifier: Apache-2.0
"""The courier that carries parcels over HTTPS.

Rules kept here:
* https only; plain http is accepted to this machine (loopback) and nowhere else (`InsecureAddress`);
* one host: no redirect is followed, no proxy and no setting is taken from the environment, no telemetry exists;
* what goes out is fixed: method, path, content type, one constant user agent; nothing names this installation;
* what comes back is bounded before it is read whole, never decompressed, and never trusted: a problem document
  (RFC 9457) becomes the error it names, but no coordinator can name an error of this machine (ledger, configuration);
* no answer is `CoordinatorUnreachable`: the same parcel may be sent again.
"""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from urllib.parse import quote, urlsplit

import httpx

from windvane_privacy import canonical
from windvane_privacy.couriers import JSON, ROUTES, Parcel, is_loopback
from windvane_privacy.errors import (
    BodyTooLarge,
    ConfigurationError,
    CoordinatorUnreachable,
    InsecureAddress,
    LedgerError,
    MalformedInput,
    NotReady,
    RemoteProblem,
    UnknownAddress,
    WindvaneError,
    all_errors,
)
from windvane_privacy.tiles import parse_tile_path

USER_AGENT = "windvane/1"
TIMEOUT_SECONDS = 30.0
MAX_ANSWER_BYTES = {
    "envelopes": 256 << 20,  # 5,000 members at the largest layout
    "leaves": 128 << 20,  # ten years of 1,000 members, 8,192 bytes a leaf at most
}
MAX_OTHER_ANSWER_BYTES = 4 << 20  # the largest is a roster of 5,000 members
MAX_PROBLEM_BYTES = 16 << 10
MAX_DETAIL = 300
_ROUND = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_NO_ANSWER = frozenset({502, 503, 504})  # a gateway without a coordinator behind it


class HttpsCourier:
    """Carries parcels to the coordinator at `address`, for example `https://windvane.example.org`.

    `ca` is a file of certificates (PEM) to trust instead of the usual ones; `timeout` is seconds for each of
    connecting, sending and waiting for bytes. `transport` replaces the network (an in-process application).

    Raises:
        InsecureAddress: not https, and not loopback.
        ConfigurationError: no address, or an unreadable `ca`.
    """

    def __init__(
        self,
        address: str,
        *,
        ca: Path | None = None,
        timeout: float = TIMEOUT_SECONDS,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.address = checked_address(address)
        self._client = httpx.Client(
            verify=_trust(ca),
            timeout=timeout,
            trust_env=False,
            follow_redirects=False,
            headers={"User-Agent": USER_AGENT, "Accept-Encoding": "identity"},
            transport=transport,
        )

    def __enter__(self) -> HttpsCourier:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def exchange(self, parcel: Parcel) -> bytes:
        """The answer's bytes.

        Raises:
            WindvaneError: the refusal that the coordinator named; `RemoteProblem` for one that is unknown here.
            CoordinatorUnreachable: no answer; the same parcel may be sent again.
        """
        request = self._request(parcel)
        limit = MAX_ANSWER_BYTES.get(parcel.kind, MAX_OTHER_ANSWER_BYTES)
        with _network_errors():
            answer = self._client.send(request, stream=True)
            try:
                if answer.is_success:
                    if answer.headers.get("Content-Encoding", "identity") != "identity":
                        raise RemoteProblem("The answer is compressed.")
                    return _read(answer, limit)
                raise problem(answer.status_code, _read(answer, MAX_PROBLEM_BYTES, cut=True))
            finally:
                answer.close()

    def _request(self, parcel: Parcel) -> httpx.Request:
        route = ROUTES.get(parcel.kind)
        if route is None:
            raise UnknownAddress
        path = route.path
        if "{round}" in path:
            if not _ROUND.fullmatch(parcel.round_id):
                raise MalformedInput("The name of the round is malformed.")
            path = path.replace("{round}", quote(parcel.round_id, safe=""))
        if parcel.kind == "tile":
            return self._client.build_request(
                "GET", f"{self.address}/v1/log/{_tile(parcel)}", headers={"Accept": "*/*"}
            )
        url = self.address + path
        if route.method == "GET":
            return self._client.build_request("GET", url + _query(parcel), headers={"Accept": "*/*"})
        content_type = route.content_type or JSON
        return self._client.build_request("POST", url, content=parcel.body, headers={"Content-Type": content_type})


def checked_address(address: str) -> str:
    """The address without a trailing slash, if it may be used.

    Raises:
        InsecureAddress: not https, and not loopback.
        ConfigurationError: it has no host, or carries a name, password, query or fragment.
    """
    try:
        parts = urlsplit(address)
        host = parts.hostname
        _port = parts.port
    except ValueError:
        raise ConfigurationError("The coordinator's address is malformed.") from None
    if not host or parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise ConfigurationError("The coordinator's address is not of the form https://host.")
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(host)):
        raise InsecureAddress
    return address.rstrip("/")


def problem(status: int, raw: bytes) -> WindvaneError:
    """The error that an answer stands for.

    Only errors of the exchange are taken over by name; one about this machine's ledger or files can only come from this
    machine.
    """
    kind, detail = _document(raw)
    named = all_errors().get(kind)
    if named is not None and not issubclass(named, (LedgerError, ConfigurationError, CoordinatorUnreachable)):
        return named(detail)
    if status in _NO_ANSWER:
        return CoordinatorUnreachable()
    if status == NotReady.status:
        return NotReady(detail)
    if status == BodyTooLarge.status:
        return BodyTooLarge(detail)
    return RemoteProblem(f"Status {status}. {detail}".strip())


def _document(raw: bytes) -> tuple[str, str]:
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return "", ""
    if not isinstance(value, dict):
        return "", ""
    kind, detail = value.get("type"), value.get("detail")
    return kind if isinstance(kind, str) else "", _plain(detail) if isinstance(detail, str) else ""


def _plain(text: str) -> str:
    """Foreign text goes to a terminal: printable characters only, and not without end."""
    return "".join(c for c in text if c.isprintable() and c not in "[]\\")[:MAX_DETAIL].strip()


def _tile(parcel: Parcel) -> str:
    """The address of a tile below the log, in its one form."""
    value = canonical.decode(parcel.body)
    if not isinstance(value, dict) or set(value) != {"path"} or not isinstance(value["path"], str):
        raise MalformedInput("A tile is asked for by its path.")
    return parse_tile_path(value["path"]).path


def _query(parcel: Parcel) -> str:
    """A question travels as a GET: its whole numbers go into the query."""
    if not parcel.body:
        return ""
    value = canonical.decode(parcel.body)
    if not isinstance(value, dict) or any(type(number) is not int or number < 0 for number in value.values()):
        raise MalformedInput("A question of this kind holds whole numbers only.")
    # In the order of the alphabet a canonical object comes as new, old; the address has old first.
    pairs = sorted(value.items(), reverse=True)
    return "?" + "&".join(f"{quote(name, safe='')}={number}" for name, number in pairs) if value else ""


def _read(answer: httpx.Response, limit: int, *, cut: bool = False) -> bytes:
    found = bytearray()
    for chunk in answer.iter_raw():
        found += chunk
        if len(found) > limit:
            if cut:
                return bytes(found[:limit])
            raise RemoteProblem("The answer is longer than any of its kind.")
    return bytes(found)


@contextmanager
def _network_errors() -> Iterator[None]:
    try:
        yield
    except (httpx.TransportError, httpx.StreamError, OSError) as error:
        raise CoordinatorUnreachable(f"{type(error).__name__}.") from None


def _trust(ca: Path | None) -> ssl.SSLContext | bool:
    if ca is None:
        return True
    try:
        return ssl.create_default_context(cafile=str(ca))
    except OSError:
        raise ConfigurationError("The file of certificates cannot be read.") from None
