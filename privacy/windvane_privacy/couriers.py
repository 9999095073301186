# SPDX-License-Identifier: Apache-2.0
"""What any courier carries: named parcels of bytes, one answer each.

Rules kept here:
* everything that matters is signed and sealed inside the bytes; a courier is never trusted with privacy or identity;
* the same bytes whatever the courier; an exchange may be repeated at any time (every parcel is idempotent);
* a refusal comes back as the error of `errors.py` that it is, never as an empty answer.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Protocol

JSON = "application/json"
BINARY = "application/octet-stream"
TEXT = "text/plain"


@dataclass(frozen=True, slots=True)
class Route:
    """Where a parcel of one kind goes over HTTP. `{round}` is filled in from the parcel, `{tile}` from its body."""

    method: str
    path: str
    content_type: str | None = None


ROUTES: dict[str, Route] = {
    # what anybody may ask for
    "federation": Route("GET", "/v1/federation"),
    "rounds": Route("GET", "/v1/rounds"),
    "state": Route("GET", "/v1/rounds/{round}"),
    "manifest": Route("GET", "/v1/rounds/{round}/manifest"),
    "roster": Route("GET", "/v1/rounds/{round}/roster"),
    "leaves": Route("GET", "/v1/log"),
    "checkpoint": Route("GET", "/v1/log/checkpoint"),
    "consistency": Route("GET", "/v1/log/consistency"),
    "tile": Route("GET", "/v1/log/tile/{tile}"),
    # what members send
    "enrol": Route("POST", "/v1/members", JSON),
    "leaf": Route("POST", "/v1/log", JSON),
    "reveal": Route("POST", "/v1/rounds/{round}/envelopes", BINARY),
    # what witnesses send
    "cosign": Route("POST", "/v1/log/cosignatures", TEXT),
    # what guardians send and fetch
    "endorse": Route("POST", "/v1/rounds/{round}/endorsements", JSON),
    "envelopes": Route("GET", "/v1/rounds/{round}/envelopes"),
    "result": Route("POST", "/v1/rounds/{round}/results", JSON),
}
"""Every kind of parcel. `leaf` carries guardian-ready, commitment and nonce entries alike."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """One request: its kind (a key of ROUTES), the round it belongs to ("" where none), and the bytes."""

    kind: str
    round_id: str = ""
    body: bytes = b""


def is_loopback(host: str) -> bool:
    """Whether a host of an address is this machine, where plain http shows nothing to a network."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Courier(Protocol):
    """Carries a parcel to the coordinator and brings the answer back."""

    def exchange(self, parcel: Parcel) -> bytes:
        """The answer's bytes.

        Raises:
            WindvaneError: the refusal, as the class of `errors.py` that the coordinator named.
            CoordinatorUnreachable: no answer; the same parcel may be sent again.
        """
        ...
