# SPDX-License-Identifier: Apache-2.0
"""`windvane witness`: make a key, pin a log, sign its checkpoints from cron.

Rules kept here:
* thin: what may be signed lies in `windvane_privacy.witness`; a command says what was signed or refused, in one line;
* the log is pinned only after a person compared its fingerprint (or said so with --yes);
* `run` may be called at any time and as often as one likes; with --every it waits for a coordinator that is away, and
  ends at a log that contradicts itself.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from windvane.passphrases import NewFile, Remove, Sealed, change_keys, seal_new_keys
from windvane.terminal import Json, err, out, print_json, utc_now
from windvane_privacy import canonical
from windvane_privacy.errors import ConfigurationError, CoordinatorUnreachable, NotReady
from windvane_privacy.identity import fingerprint_words
from windvane_privacy.notes import SignedCheckpoint

app = typer.Typer(no_args_is_help=True, help="For a witness of the public log: sign that it only grows.")

ADDRESS = "address.json"
HERE = Path("windvane-witness")
State = Annotated[Path, typer.Option("--state", help="Folder of this witness.")]


@app.command()
def init(
    name: Annotated[str, typer.Option("--name", help="Name in signature lines, such as witness.example.org/1.")],
    state: State = HERE,
    passphrase: Sealed = False,
    as_json: Json = False,
) -> None:
    """Make the witness's key; what others need of it is the file witness.vkey."""
    from windvane_privacy.witness_state import CARD, init_witness

    seal_new_keys(passphrase)
    key = init_witness(state, name)
    if as_json:
        print_json({"key": key, "card": str(state / CARD)})
        return
    out.print(f"Witness [bold]{escape(name)}[/] is set up in {escape(str(state))}.")
    out.print(f"Next: give {state / CARD} to the coordinator, then run `windvane witness pin`.", markup=False)


@app.command()
def pin(
    coordinator: Annotated[str, typer.Option("--coordinator", help="The coordinator's address.")],
    state: State = HERE,
    ca: Annotated[Path | None, typer.Option("--ca", help="Certificates to trust instead of the usual ones.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="The fingerprint was compared by another way.")] = False,
    as_json: Json = False,
) -> None:
    """Pin the log of a federation that names this witness."""
    from windvane_client.https import HttpsCourier
    from windvane_privacy.couriers import Parcel
    from windvane_privacy.keyfiles import write_secret
    from windvane_privacy.signed import decode_federation
    from windvane_privacy.witness_state import own_signer, pin_log

    with HttpsCourier(coordinator, ca=ca) as courier:
        shown = decode_federation(courier.exchange(Parcel("federation")))
    policy, own = shown.log_policy, own_signer(state)
    if own not in policy.witnesses:
        raise ConfigurationError("The federation does not name this witness.")
    words = fingerprint_words(policy.log.public)
    if not yes:
        err.print(f"Federation: {shown.name}", markup=False)
        err.print(f"Fingerprint of the log's key: [bold]{words}[/]")
        typer.confirm("Did you compare these words with the coordinator?", abort=True, err=True)
    pin_log(state, policy.log)
    if not (state / ADDRESS).exists():
        settings = {"address": coordinator, "ca": None if ca is None else str(ca.resolve()), "origin": policy.log.name}
        write_secret(state / ADDRESS, canonical.encode(settings))
    if as_json:
        print_json({"log": policy.log.name, "fingerprint": words})
        return
    out.print(f"The log {policy.log.name} is pinned.", markup=False)
    out.print("Next: let `windvane witness run` run every hour.")


@app.command()
def run(
    state: State = HERE,
    every: Annotated[int, typer.Option("--every", help="Go on, every so many seconds; 0: once.", min=0)] = 0,
    as_json: Json = False,
) -> None:
    """Sign the log's newest checkpoint, if it continues the one that was signed last."""
    from windvane_client.https import HttpsCourier
    from windvane_privacy.witness_state import keep_evidence, load_witness
    from windvane_privacy.witnessing import visit

    def keep(signed: SignedCheckpoint, shown: SignedCheckpoint) -> None:
        err.print(
            f"Nothing was signed. What contradicts it is kept in {keep_evidence(state, signed, shown)}.", markup=False
        )

    address, ca, origin = _address(state)
    witness = load_witness(state)
    why = ""
    with HttpsCourier(address, ca=ca) as courier:
        while True:
            now = int(utc_now().timestamp())
            try:
                done = visit(witness, origin, courier, now, keep)
            except (NotReady, CoordinatorUnreachable) as missing:
                if not every:
                    raise
                if missing.sentence() != why:
                    why = missing.sentence()
                    err.print(f"Waiting. {why}", markup=False)
            else:
                why = ""
                if as_json:
                    print_json({"log": origin, "size": done.size, "before": done.before})
                elif done.size != done.before or not every:
                    out.print(f"Signed {origin} at {done.size} entries (before: {done.before}).", markup=False)
            if not every:
                return
            time.sleep(every)


@app.command()
def serve(
    state: State = HERE,
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="0 takes a free one.", min=0, max=65535)] = 8444,
    tls_cert: Annotated[Path | None, typer.Option("--tls-cert", help="Certificate chain, PEM.")] = None,
    tls_key: Annotated[Path | None, typer.Option("--tls-key", help="Its private key, PEM.")] = None,
    as_json: Json = False,
) -> None:
    """Let logs push their checkpoints (C2SP tlog-witness), and show what was signed last. `run` needs none of it."""
    from windvane.main import require_extra

    require_extra("server")
    from windvane.serve import listen
    from windvane_privacy.witness_state import load_witness, pinned_logs
    from windvane_server.logs import ServiceLog
    from windvane_server.witness_app import create_witness_app

    def listening(address: str) -> None:
        if as_json:
            print_json({"address": address})
        else:
            out.print(f"Listening on [bold]{address}[/]. Stop with Ctrl-C.")
        sys.stdout.flush()

    witness, origins = load_witness(state), [one.name for one in pinned_logs(state)]
    log = ServiceLog(sys.stderr, utc_now)
    service = create_witness_app(witness, origins, lambda: int(utc_now().timestamp()), log)
    listen(service, host=host, port=port, tls_cert=tls_cert, tls_key=tls_key, listening=listening)


@app.command()
def status(state: State = HERE, as_json: Json = False) -> None:
    """What this witness has signed last for each pinned log."""
    from windvane_privacy.witness_state import EVIDENCE, load_witness, own_signer, pinned_logs

    witness = load_witness(state)
    points = {one.name: witness.last(one.name).checkpoint for one in pinned_logs(state)}
    evidence = sorted(path.name for path in (state / EVIDENCE).glob("*"))
    if as_json:
        logs = {origin: {"size": one.size, "root": one.root.hex()} for origin, one in points.items()}
        print_json({"name": own_signer(state).name, "logs": logs, "evidence": list(evidence)})
        return
    for origin, one in points.items():
        out.print(f"{origin}: signed at {one.size} entries, root {one.root.hex()}.", markup=False)
    if evidence:
        out.print(f"Contradictions of a log: {len(evidence)}, in {state / EVIDENCE}.", markup=False)
    if not points:
        out.print("No log is pinned. Next: `windvane witness pin --coordinator ADDRESS`.")


@app.command("passphrase")
def passphrase_(state: State = HERE, new_file: NewFile = None, remove: Remove = False) -> None:
    """Set, change or remove the passphrase of the witness's key."""
    change_keys(list(state.glob("witness.key")), new_file, remove=remove)


def _address(state: Path) -> tuple[str, Path | None, str]:
    from windvane_privacy.keyfiles import read_secret

    if not (state / ADDRESS).exists():
        raise ConfigurationError("No log is pinned here: run `windvane witness pin` first.")
    found = canonical.decode(read_secret(state / ADDRESS))
    if not isinstance(found, dict) or set(found) != {"address", "ca", "origin"}:
        raise ConfigurationError("address.json is damaged.")
    return found["address"], None if found["ca"] is None else Path(found["ca"]), found["origin"]
