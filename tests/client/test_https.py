# SPDX-License-Identifier: Apache-2.0
"""The https courier: where it goes, what it sends, and what it makes of an answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windvane_client.https import MAX_DETAIL, HttpsCourier, checked_address, problem
from windvane_privacy.couriers import ROUTES, Parcel
from windvane_privacy.errors import (
    ConfigurationError,
    CoordinatorUnreachable,
    InsecureAddress,
    LedgerError,
    MalformedInput,
    NotReady,
    RemoteProblem,
    RoundClosed,
    UnknownAddress,
    WindowNotOpen,
    WindvaneError,
    all_errors,
    problem_type,
)

ADDRESS = "https://windvane.example.org"
Answer = Callable[[httpx.Request], httpx.Response]


def reply(status: int, content: bytes = b"", **headers: str) -> httpx.Response:
    """As from a network: bytes that are still to be read."""
    return httpx.Response(status, headers=headers, stream=httpx.ByteStream(content))


def courier(answer: Answer) -> HttpsCourier:
    return HttpsCourier(ADDRESS, transport=httpx.MockTransport(answer))


def exchange(answer: Answer, parcel: Parcel | None = None) -> bytes:
    with courier(answer) as one:
        return one.exchange(parcel or Parcel("rounds"))


# --- where it goes ------------------------------------------------------------------------------------------------

REFUSED = ["http://windvane.example.org", "http://10.0.0.1:8000", "ftp://localhost", "windvane.example.org", "//x", ""]


@pytest.mark.parametrize("address", REFUSED)
def test_only_https_leaves_this_machine(address: str) -> None:
    with pytest.raises((InsecureAddress, ConfigurationError)):
        HttpsCourier(address)


@pytest.mark.parametrize(
    "address", ["http://localhost:8000", "http://127.0.0.1", "http://[::1]:9", "https://a.example/x/"]
)
def test_loopback_may_be_plain(address: str) -> None:
    assert checked_address(address) == address.rstrip("/")


@pytest.mark.parametrize(
    "address", ["https://u:p@a.example", "https://a.example?x=1", "https://a.example#f", "https://a:x"]
)
def test_an_address_carries_nothing_but_a_place(address: str) -> None:
    with pytest.raises(ConfigurationError):
        checked_address(address)


def test_every_kind_of_parcel_goes_to_its_route() -> None:
    seen: dict[str, httpx.Request] = {}
    for kind, route in ROUTES.items():

        def answer(request: httpx.Request, kind: str = kind) -> httpx.Response:
            seen[kind] = request
            return reply(200, b"ok")

        questions = {"consistency": b'{"new":7,"old":3}', "tile": b'{"path":"tile/0/x001/067.p/8"}'}
        body = questions.get(kind, b"" if route.method == "GET" else b"body")
        assert exchange(answer, Parcel(kind, "2026-Q3", body)) == b"ok"
        request = seen[kind]
        path = route.path.replace("{round}", "2026-Q3").replace("{tile}", "0/x001/067.p/8")
        assert (request.method, request.url.path) == (route.method, path)
        assert request.headers.get("content-type") == route.content_type
        assert request.headers["user-agent"] == "windvane/1"
        assert request.content == (b"body" if route.method == "POST" else b"")
    assert seen["consistency"].url.query == b"old=3&new=7"


@pytest.mark.parametrize("name", ["", "../admin", "a/b", "a b", "-x", "x" * 65, "a\n"])
def test_a_round_cannot_lead_to_another_address(name: str) -> None:
    with pytest.raises(MalformedInput):
        exchange(lambda _request: reply(200), Parcel("state", name))


def test_an_unknown_kind_is_not_sent() -> None:
    with pytest.raises(UnknownAddress):
        exchange(lambda _request: reply(200), Parcel("gossip"))


def test_no_redirect_is_followed() -> None:
    hosts = []

    def answer(request: httpx.Request) -> httpx.Response:
        hosts.append(request.url.host)
        return reply(307, Location="https://elsewhere.example/")

    with pytest.raises(RemoteProblem):
        exchange(answer)
    assert hosts == ["windvane.example.org"]


def test_the_environment_has_no_say(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://proxy.example:1")
    with HttpsCourier(ADDRESS) as one:
        assert one._client.trust_env is False
        assert not one._client._mounts


# --- what it makes of an answer -----------------------------------------------------------------------------------

LOCAL = (LedgerError, ConfigurationError, CoordinatorUnreachable)


def document(kind: str, detail: str = "") -> bytes:
    return json.dumps({"type": kind, "title": "t", "detail": detail}).encode()


@pytest.mark.parametrize("kind", sorted(all_errors()))
def test_a_problem_comes_back_as_the_error_it_names(kind: str) -> None:
    named = all_errors()[kind]
    with pytest.raises(WindvaneError) as caught:
        exchange(lambda _request: reply(named.status, document(kind, "why")))
    if issubclass(named, LOCAL):
        # A coordinator cannot claim that our ledger is burned or our files are wrong.
        assert not isinstance(caught.value, (LedgerError, ConfigurationError))
    else:
        assert type(caught.value) is named
        assert caught.value.detail == "why"


def test_not_ready_is_never_reported_as_invalid() -> None:
    assert isinstance(problem(425, document(problem_type(WindowNotOpen))), NotReady)
    assert type(problem(425, b"")) is NotReady


def test_what_is_unknown_here_is_a_remote_problem() -> None:
    for raw in (document("urn:windvane:problem:from-the-future"), b"<html>", b"", b"[]", b'{"type": 5}', b"\xff"):
        assert type(problem(400, raw)) is RemoteProblem


@pytest.mark.parametrize("status", [502, 503, 504])
def test_a_gateway_without_a_coordinator_is_no_answer(status: int) -> None:
    assert type(problem(status, b"<html>bad gateway</html>")) is CoordinatorUnreachable


def test_foreign_text_cannot_reach_the_terminal_as_more_than_text() -> None:
    error = problem(410, document(problem_type(RoundClosed), "\x1b[31mred\x1b[0m [bold]x[/] \u202e" + "y" * 5000))
    assert type(error) is RoundClosed
    assert error.detail.isprintable()
    assert not set("[]\\\x1b") & set(error.detail)
    assert len(error.detail) <= MAX_DETAIL


@given(st.integers(300, 599), st.binary(max_size=300))
def test_any_refusal_is_a_named_error(status: int, raw: bytes) -> None:
    assert isinstance(problem(status, raw), WindvaneError)


NO_ANSWER = [httpx.ConnectError, httpx.ReadTimeout, httpx.RemoteProtocolError, httpx.WriteError, ConnectionResetError]


@pytest.mark.parametrize("fault", NO_ANSWER)
def test_no_answer_is_unreachable_and_nothing_else(fault: type[Exception]) -> None:
    def answer(_request: httpx.Request) -> httpx.Response:
        raise fault("text that names a host")

    with pytest.raises(CoordinatorUnreachable) as caught:
        exchange(answer)
    assert "host" not in str(caught.value)


def test_an_answer_that_breaks_off_is_no_answer() -> None:
    class Broken(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            yield b"half"
            raise httpx.ReadError("gone")

    with pytest.raises(CoordinatorUnreachable):
        exchange(lambda _request: httpx.Response(200, stream=Broken()))


def test_an_endless_answer_is_cut_off() -> None:
    taken = []

    class Endless(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            while True:
                taken.append(1)
                yield bytes(1 << 20)

    with pytest.raises(RemoteProblem):
        exchange(lambda _request: httpx.Response(200, stream=Endless()))
    assert len(taken) < 10
    with pytest.raises(RemoteProblem):
        exchange(lambda _request: httpx.Response(500, stream=Endless()))


def test_a_compressed_answer_is_not_unpacked() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        assert request.headers["accept-encoding"] == "identity"
        return httpx.Response(200, headers={"Content-Encoding": "gzip"}, stream=httpx.ByteStream(b"\x1f\x8b"))

    with pytest.raises(RemoteProblem):
        exchange(answer)


def test_a_missing_file_of_certificates_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError):
        HttpsCourier(ADDRESS, ca=tmp_path / "missing.pem")
