# SPDX-License-Identifier: Apache-2.0
"""A coordinator on a socket of this machine, at a time that the test chose: a process of its own, or a thread."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import uvicorn

from small_federation import open_coordinator
from windvane_server.app import create_app

_PROGRAM = """
import sys
from datetime import datetime
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from windvane.serve import serve
from small_federation import open_coordinator
state, moment = Path(sys.argv[1]), datetime.fromisoformat(sys.argv[2])
serve(open_coordinator(state, lambda: moment), host="127.0.0.1", port=0, tls_cert=None, tls_key=None, log=sys.stderr,
      listening=lambda address: print(address, flush=True))
"""


@contextmanager
def serving(state: Path, moment: datetime) -> Iterator[str]:
    """The address of the coordinator with this state, for which it is always `moment`."""
    arguments = [sys.executable, "-c", _PROGRAM, str(state), moment.isoformat(), str(Path(__file__).parent)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().strip()
        finally:
            server.terminate()
            server.wait(20)


@contextmanager
def serving_here(state: Path, moment: datetime) -> Iterator[str]:
    """The same in a thread: starts at once, for tests that kill nothing."""
    coordinator = open_coordinator(state, lambda: moment)
    config = uvicorn.Config(create_app(coordinator, None), log_config=None, access_log=False, lifespan="off")
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as bound:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{bound.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(20)
            coordinator.close()
