# SPDX-License-Identifier: Apache-2.0
"""`windvane coordinator`: set up a federation, serve it, and take each round from its roster to its report.

Rules kept here:
* thin: a command reads files, calls one step of `windvane_server.coordinator`, and says in words what happened;
* every step may be run again; one that has to wait says for whom;
* keys are shown as fingerprints only.
"""

from __future__ import annotations

import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from windvane.passphrases import NewFile, Remove, Sealed, change_keys, seal_new_keys
from windvane.terminal import POLL_SECONDS, Json, RoundName, Wait, err, out, patiently, print_json
from windvane_privacy import canonical
from windvane_privacy.catalogue import Family
from windvane_privacy.errors import ConfigurationError
from windvane_privacy.identity import fingerprint_words

app = typer.Typer(no_args_is_help=True, help="For the coordinator: run rounds, publish the report.")

THIRD_GUARDIAN_SECONDS = 30
"""How much of --wait is left for the third guardian, whose shares check the other two."""
PLAN_EXAMPLE = """\
# A plan of one quarter. The dates of a real round, its noise and its pairs follow from these lines and the roster.
quarter = "2027-Q1"
# Families to compare, by rank of a public list that you name. Ids of the catalogue, most used first.
source = "name of the public list, and its date"
order = []
delta = "1e-8"
# kinds = ["all"]         # "all", or kinds of work where the federation is large enough
# cap = 4                 # pairs that a family may stand in; left out: families - 2

# Families of your own, or other words for those of the catalogue (builtin = false: none but these):
# [[family]]
# id = "alder-4"
# label = "Alder 4"
# vendor = "Alder"
# patterns = []
"""

State = Annotated[Path, typer.Option("--state", help="Folder of this coordinator.", show_default=True)]
HERE = Path("windvane-coordinator")


@app.command()
def init(
    name: Annotated[str, typer.Option("--name", help="Name of the federation, public.")],
    guardian: Annotated[list[Path], typer.Option("--guardian", help="A guardian's card (guardian.json); three times.")],
    witness: Annotated[
        list[Path], typer.Option("--witness", help="A witness's key (witness.vkey); once for each, seven are usual.")
    ],
    state: State = HERE,
    quorum: Annotated[
        int | None, typer.Option("--quorum", help="Cosignatures that a checkpoint needs; 5 of 7 unless given.")
    ] = None,
    faulty: Annotated[
        int | None, typer.Option("--faulty", help="Witnesses that may lie without harm; 2 of 7 unless given.")
    ] = None,
    demo: Annotated[bool, typer.Option("--demo", help="A demonstration: lower floors, said on every page.")] = False,
    origin: Annotated[str | None, typer.Option("--origin", help="Name of the public log; never changes.")] = None,
    passphrase: Sealed = False,
    as_json: Json = False,
) -> None:
    """Make the coordinator's key, the federation's document and an empty log."""
    from windvane_server.coordinator import init_coordinator

    seal_new_keys(passphrase)
    cards = [_read(path) for path in guardian]
    keys = [_read(path).decode("ascii", "replace").strip() for path in witness]
    federation = init_coordinator(
        state, name=name, guardians=cards, witnesses=keys, quorum=quorum, faulty=faulty, demo=demo, log_origin=origin
    )
    (state / "plan.toml").write_text(PLAN_EXAMPLE, encoding="utf-8")
    words = fingerprint_words(bytes.fromhex(federation.coordinator))
    if as_json:
        print_json({"coordinator": federation.coordinator, "log_origin": federation.log_origin, "fingerprint": words})
        return
    out.print(f"Federation [bold]{escape(federation.name)}[/] is set up in {escape(str(state))}.")
    out.print(f"Log: {federation.log_origin}", markup=False)
    out.print(f"Fingerprint of the coordinator's key: [bold]{words}[/]")
    for each in federation.guardians:
        key = fingerprint_words(bytes.fromhex(each.identity))
        out.print(f"Guardian {each.index}: {each.name} ({each.group}), {key}", markup=False)
    out.print(
        "Next: `windvane coordinator run`, then each guardian runs `windvane guardian init --coordinator ADDRESS`."
    )


@app.command("passphrase")
def passphrase_(state: State = HERE, new_file: NewFile = None, remove: Remove = False) -> None:
    """Set, change or remove the passphrase of the coordinator's and the log's key."""
    change_keys(sorted(state.glob("*.key")), new_file, remove=remove)


@app.command()
def run(
    state: State = HERE,
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="0 takes a free one.", min=0, max=65535)] = 8443,
    tls_cert: Annotated[Path | None, typer.Option("--tls-cert", help="Certificate chain, PEM.")] = None,
    tls_key: Annotated[Path | None, typer.Option("--tls-key", help="Its private key, PEM.")] = None,
    witness: Annotated[
        list[Path] | None,
        typer.Option("--witness", help="Folder of a witness on this machine, for a demonstration: it proves nothing."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Serve the inbox, the public log and the published report until stopped."""
    from windvane.serve import serve
    from windvane_privacy.witness_state import load_witness
    from windvane_server.coordinator import Coordinator

    def listening(address: str) -> None:
        if as_json:
            print_json({"address": address})
        else:
            out.print(f"Listening on [bold]{address}[/]; the report is served at the same address. Stop with Ctrl-C.")
        sys.stdout.flush()

    coordinator = Coordinator(state, at_once=[load_witness(folder) for folder in witness or ()])
    try:
        serve(
            coordinator,
            host=host,
            port=port,
            tls_cert=tls_cert,
            tls_key=tls_key,
            log=sys.stderr,
            listening=listening,
        )
    finally:
        coordinator.close()


@app.command()
def open_round(
    round_id: RoundName,
    plan: Annotated[Path, typer.Option("--plan", help="Plan of the quarter, TOML.")],
    state: State = HERE,
    wait: Wait = 0,
    as_json: Json = False,
) -> None:
    """Propose the roster, wait for the guardians, then sign and log the manifest."""
    from windvane_server.coordinator import Coordinator
    from windvane_server.plan_round import read_plan

    planned = read_plan(_read(plan), _builtin_families())
    coordinator = Coordinator(state)
    try:
        signed = patiently(lambda: coordinator.open_round(round_id, planned), wait)
    finally:
        coordinator.close()
    manifest = canonical.decode(signed)["manifest"]
    digest = canonical.sha256_hex(canonical.encode(manifest))
    if as_json:
        print_json({"round": round_id, "manifest": digest})
        return
    out.print(f"Round [bold]{round_id}[/] is open under manifest {digest}.")
    out.print(f"Events from {manifest['events']['from']} to {manifest['events']['to']}.")
    out.print(f"Members submit from {manifest['submission']['opens']} to {manifest['submission']['commit_by']}.")


@app.command()
def close_round(
    round_id: RoundName,
    state: State = HERE,
    wait: Wait = 0,
    lot_wait: Annotated[
        float, typer.Option("--lot-wait", help="Hours after which the lot is drawn without a guardian.", min=0)
    ] = 48.0,
    as_json: Json = False,
) -> None:
    """Fix the accepted set, draw the lot when the nonces are there, and tally when two guardians have opened."""
    from windvane_server.coordinator import Coordinator

    coordinator = Coordinator(state)
    try:
        root = coordinator.close_round(round_id)
        err.print(f"The accepted set is fixed: {root}.")
        patiently(lambda: coordinator.fix_lot(round_id, timedelta(hours=lot_wait)), wait)
        err.print("The lot is drawn.")
        _opened, crosschecked = patiently(lambda: coordinator.tally(round_id), wait)
        until = time.monotonic() + min(wait, THIRD_GUARDIAN_SECONDS)
        while not crosschecked and time.monotonic() < until:
            time.sleep(POLL_SECONDS)
            _opened, crosschecked = coordinator.tally(round_id)
    finally:
        coordinator.close()
    if as_json:
        print_json({"round": round_id, "set_root": root, "crosschecked": crosschecked})
        return
    checked = "a third guardian's shares agree" if crosschecked else "opened by two guardians, not cross-checked"
    out.print(f"Round [bold]{round_id}[/] is tallied: {checked}.")
    out.print(f"Next: `windvane coordinator publish {round_id}` on the date of publication.")


@app.command()
def abort(
    round_id: RoundName,
    reason: Annotated[
        str,
        typer.Option("--reason", help="legal, wrong_configuration, software_fault, guardian_lost or key_loss."),
    ],
    state: State = HERE,
) -> None:
    """Stop a round for good; the public log says why. It stays charged at its members."""
    from windvane_server.coordinator import Coordinator

    coordinator = Coordinator(state)
    try:
        coordinator.abort(round_id, reason)
    finally:
        coordinator.close()
    out.print(f"Round [bold]{round_id}[/] is stopped.")


@app.command()
def publish(
    round_id: RoundName,
    state: State = HERE,
    to: Annotated[Path | None, typer.Option("--out", help="Folder of the site, instead of the served one.")] = None,
    replaced: Annotated[
        list[str] | None, typer.Option("--break", help="A family that its vendor replaced inside the window.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Build, check, sign and swap in the report, and log its hash."""
    from windvane_server.coordinator import Coordinator

    coordinator = Coordinator(state)
    try:
        site = coordinator.publish(round_id, out=to, breaks=replaced or [])
    finally:
        coordinator.close()
    if as_json:
        print_json({"round": round_id, "site": str(site)})
        return
    out.print(f"The report of [bold]{round_id}[/] is published: {escape(str(site / 'index.html'))}")


def _builtin_families() -> tuple[Family, ...]:
    from windvane_client.catalogue_builtin import builtin_catalogue

    return builtin_catalogue().families


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"The file {path.name} cannot be read.") from error


def _mount() -> None:
    """Commands with a module of their own: what is carried by hand."""
    from windvane.coordinator_files import bundle, receive

    app.command("bundle")(bundle)
    app.command("receive")(receive)


_mount()
