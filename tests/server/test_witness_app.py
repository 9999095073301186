# SPDX-License-Identifier: Apache-2.0
"""A witness at an address: what the standard says goes over the wire, and nothing else of the machine does."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path

import anyio
import httpx
import pytest

from log_witnesses import LOG_KEY, note, tree
from manifests import LOG_ORIGIN
from small_federation import START, Clock
from windvane_privacy.notes import Cosigner, parse_checkpoint, verify_cosignature
from windvane_privacy.quorum import Signer
from windvane_privacy.witness import MAX_REQUEST_BYTES, Request, encode_request
from windvane_privacy.witness_state import init_witness, load_witness, own_signer, pin_log
from windvane_server.logs import ServiceLog
from windvane_server.witness_app import create_witness_app

NOW = int(START.timestamp())
PLACE = f"/{hashlib.sha256(LOG_ORIGIN.encode()).hexdigest()}/checkpoint"


class Served:
    """The application without a network, over a real folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, io.StringIO()
        init_witness(folder, "witness.test/1")
        pin_log(folder, Signer(LOG_ORIGIN, LOG_KEY.public))
        self.app = create_witness_app(
            load_witness(folder), [LOG_ORIGIN], lambda: NOW, ServiceLog(self.log, Clock(), strict=True)
        )

    def __call__(self, method: str, path: str, body: bytes | list[bytes] = b"") -> httpx.Response:
        async def chunks():
            for chunk in body:
                yield chunk

        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(app=self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://witness.test") as client:
                return await client.request(method, path, content=body if isinstance(body, bytes) else chunks())

        return anyio.run(ask)

    def push(self, old: int, words: str, key: Cosigner = LOG_KEY) -> httpx.Response:
        leaves = [word.encode() for word in words]
        proof = tuple(tree(leaves).consistency(old, len(leaves)))
        request = Request(old, proof, note(leaves, START, key=key, witnesses=()))
        return self("POST", "/add-checkpoint", encode_request(request))


@pytest.fixture
def served(tmp_path: Path) -> Served:
    return Served(tmp_path / "w")


def test_a_pushed_checkpoint_is_signed_and_shown_at_the_place_of_its_log(served: Served) -> None:
    assert served("GET", PLACE).status_code == 404
    for old, words in ((0, "ab"), (2, "ab"), (2, "abcde")):
        answer = served.push(old, words)
        assert answer.status_code == 200
        shown = served("GET", PLACE)
        assert shown.headers["content-type"].startswith("text/plain")
        found = parse_checkpoint(shown.content)
        assert found.checkpoint.size == len(words)
        pushed = parse_checkpoint(found.checkpoint.text.encode() + b"\n" + answer.content).signatures
        assert [one.name for one in pushed] == ["witness.test/1"]
        assert verify_cosignature(pushed[0], found.checkpoint, own_signer(served.folder).public) == NOW
        for line, public in zip(found.signatures, (LOG_KEY.public, own_signer(served.folder).public), strict=True):
            assert verify_cosignature(line, found.checkpoint, public) == NOW


def test_refusals_have_the_statuses_of_the_standard(served: Served) -> None:
    served.push(0, "abc")
    conflict = served.push(1, "abcd")
    assert (conflict.status_code, conflict.headers["content-type"]) == (409, "text/x.tlog.size")
    assert conflict.text == "3\n"
    assert served.push(3, "xyzw").status_code == 422
    assert served.push(3, "abcd", Cosigner.generate(LOG_ORIGIN)).status_code == 403
    assert served.push(3, "abcd", Cosigner.generate("another.test/log")).status_code == 404
    assert served("POST", "/add-checkpoint", b"nonsense").status_code == 400
    assert served("GET", f"/{'0' * 64}/checkpoint").status_code == 404
    assert served("GET", "/").status_code == 404
    assert served("GET", "/docs").status_code == 404
    assert load_witness(served.folder).size(LOG_ORIGIN) == 3


def test_a_body_above_the_limit_is_refused_announced_or_not(served: Served) -> None:
    piece = b"x" * (64 << 10)
    whole = piece * (MAX_REQUEST_BYTES // len(piece) + 1)
    assert served("POST", "/add-checkpoint", whole).status_code == 413
    assert served("POST", "/add-checkpoint", [piece] * 40).status_code == 413


def test_a_lost_row_is_a_fault_that_signs_nothing_and_tells_nothing(served: Served) -> None:
    served.push(0, "abc")
    next((served.folder / "logs").glob("*.signed")).unlink()
    for answer in (served.push(0, "xyz"), served.push(3, "abcd"), served("GET", PLACE)):
        assert answer.status_code == 500
        assert "row" not in answer.text.lower()
        assert "signed" not in answer.text
    faults = [line for line in map(json.loads, served.log.getvalue().splitlines()) if line["event"] == "fault"]
    assert {line["kind"] for line in faults} == {"WitnessRowLost"}
