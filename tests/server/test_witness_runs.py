# SPDX-License-Identifier: Apache-2.0
"""`windvane witness run` and `serve` as processes, against a small log over HTTP that grows, sleeps and forks."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from log_witnesses import LOG_KEY, note, tree
from manifests import LOG_ORIGIN
from small_federation import START
from windvane.witness import ADDRESS
from windvane_privacy import canonical
from windvane_privacy.keyfiles import write_secret
from windvane_privacy.notes import encode_proof, parse_checkpoint, verify_cosignature
from windvane_privacy.quorum import Signer
from windvane_privacy.witness import Request, encode_request
from windvane_privacy.witness_state import init_witness, own_signer, pin_log

RUN = (sys.executable, "-c", "from windvane.main import run; run()")


class SmallLog(HTTPServer):
    """Its leaves are the letters of `words`."""

    words = "ab"

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Answers)
        self.brought: list[bytes] = []

    @property
    def leaves(self) -> list[bytes]:
        return [word.encode() for word in self.words]


class Answers(BaseHTTPRequestHandler):
    server: SmallLog

    def do_GET(self) -> None:
        place, leaves = urlsplit(self.path), self.server.leaves
        if place.path == "/v1/log/checkpoint":
            self._send(note(leaves, START, witnesses=()).encode())
        else:
            asked = {name: int(value[0]) for name, value in parse_qs(place.query).items()}
            self._send(encode_proof(tree(leaves).consistency(asked["old"], asked["new"])).encode())

    def do_POST(self) -> None:
        self.server.brought.append(self.rfile.read(int(self.headers["Content-Length"])))
        self._send(b"{}")

    def _send(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_parts: object) -> None:
        """Nothing is said."""


@contextmanager
def serving(port: int = 0) -> Iterator[SmallLog]:
    with SmallLog(port) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def made(folder: Path, port: int) -> Path:
    init_witness(folder, "witness.test/1")
    pin_log(folder, Signer(LOG_ORIGIN, LOG_KEY.public))
    settings = {"address": f"http://127.0.0.1:{port}", "ca": None, "origin": LOG_ORIGIN}
    write_secret(folder / ADDRESS, canonical.encode(settings))
    return folder


def windvane(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*RUN, *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.process
def test_a_fork_ends_a_run_with_1_and_says_where_both_histories_are_kept(tmp_path: Path) -> None:
    with serving() as log:
        folder = made(tmp_path / "w", log.server_port)
        first = windvane("witness", "run", "--state", folder)
        assert (first.returncode, first.stdout.count("\n"), first.stderr) == (0, 1, "")
        log.words = "xy"
        refused = windvane("witness", "run", "--state", folder)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "ForkDetected" in refused.stderr
        kept = next((folder / "evidence").iterdir())
        assert str(kept) in refused.stderr
        assert len(log.brought) == 1
    for name in ("signed", "shown"):
        found = parse_checkpoint((kept / f"{name}.note").read_bytes())
        assert verify_cosignature(found.signatures[0], found.checkpoint, LOG_KEY.public) == int(START.timestamp())
    status = windvane("witness", "status", "--state", folder)
    assert status.returncode == 0
    assert "Contradictions of a log: 1" in status.stdout
    assert tree([b"a", b"b"]).root().hex() in status.stdout


@pytest.mark.process
def test_a_run_that_goes_on_waits_for_a_log_that_is_away_and_ends_at_a_fork(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    folder = made(tmp_path / "w", port)
    command = [*RUN, "witness", "run", "--state", str(folder), "--every", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            assert process.stderr.readline().startswith("Waiting.")
            with serving(port) as log:
                assert "at 2 entries" in process.stdout.readline()
                log.words = "abc"
                assert "at 3 entries" in process.stdout.readline()
                log.words = "axcd"
                assert process.wait(30) == 1
                assert "InconsistentCheckpoint" in process.stderr.read()
        finally:
            process.kill()


@pytest.mark.process
def test_a_served_witness_signs_what_a_log_pushes(tmp_path: Path) -> None:
    folder = made(tmp_path / "w", 1)
    command = [*RUN, "witness", "serve", "--state", str(folder), "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            assert process.stdout is not None
            address = json.loads(process.stdout.readline())["address"]
            pushed = note([b"a", b"b"], START, witnesses=())
            answer = httpx.post(f"{address}/add-checkpoint", content=encode_request(Request(0, (), pushed)))
            assert answer.status_code == 200
            found = parse_checkpoint(pushed.encode() + answer.content)
            assert verify_cosignature(found.signatures[1], found.checkpoint, own_signer(folder).public) > 0
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(20)


@pytest.mark.process
def test_a_witness_on_a_network_is_served_with_a_certificate_only(tmp_path: Path) -> None:
    folder = made(tmp_path / "w", 1)
    refused = windvane("witness", "serve", "--state", folder, "--host", "192.0.2.1", "--port", "0")
    assert refused.returncode == 1
    assert "InsecureAddress" in refused.stderr
