# SPDX-License-Identifier: Apache-2.0
"""`windvane guardian`: make the keys, be ready for a round, open one sum.

Rules kept here:
* thin: every check lies in `windvane_privacy.guardian`; a command shows what was checked and what was refused;
* the coordinator is pinned only after a person compared its fingerprint (or said so with --yes);
* each command may be run again: a step that is done is done, and stored bytes are sent again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from windvane.carried import Bundle, Out, carrying, read_carried
from windvane.passphrases import NewFile, Remove, Sealed, change_keys, seal_new_keys
from windvane.terminal import Json, RoundName, Wait, err, out, patiently, print_json, utc_now
from windvane_privacy import canonical
from windvane_privacy.errors import ConfigurationError, LotBeforeClose, NotReady, UnknownManifest, WindvaneError
from windvane_privacy.identity import fingerprint_words

if TYPE_CHECKING:
    from windvane_client.https import HttpsCourier
    from windvane_privacy.guardian import GuardianSession

app = typer.Typer(no_args_is_help=True, help="For a guardian: make a round's key, check, open one sum.")

ADDRESS = "address.json"

State = Annotated[Path, typer.Option("--state", help="Folder of this guardian.")]
HERE = Path("windvane-guardian")
LATER = (NotReady, LotBeforeClose, UnknownManifest)
"""What a guardian waits for: before the proposal there is no round of that name, before the closing no set."""


@app.command()
def init(
    state: State = HERE,
    name: Annotated[str | None, typer.Option("--name", help="Name of the institution, public.")] = None,
    group: Annotated[str | None, typer.Option("--group", help="Group of institutions it belongs to, public.")] = None,
    coordinator: Annotated[
        str | None, typer.Option("--coordinator", help="Second run: the coordinator's address, to pin its key.")
    ] = None,
    ca: Annotated[Path | None, typer.Option("--ca", help="Certificates to trust instead of the usual ones.")] = None,
    bundle: Bundle = None,
    demo: Annotated[bool, typer.Option("--demo", help="Take part in demonstrations.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="The fingerprint was compared by another way.")] = False,
    passphrase: Sealed = False,
    as_json: Json = False,
) -> None:
    """First run: make the key and the card for the coordinator. Second run, --coordinator or --bundle: pin its key."""
    if coordinator is None and bundle is None:
        seal_new_keys(passphrase)
        _make_card(state, name, group, as_json=as_json)
    else:
        _pin(state, coordinator, ca, bundle, demo=demo, yes=yes, as_json=as_json)


@app.command()
def ready(
    round_id: RoundName,
    state: State = HERE,
    wait: Wait = 0,
    bundle: Bundle = None,
    result: Out = None,
    as_json: Json = False,
) -> None:
    """Check and sign the roster; make the round's key and commit to a nonce."""
    with _session(state, bundle, result, as_json=as_json) as session:
        outcome = patiently(lambda: session.ready(round_id), wait, LATER)
    if as_json:
        members = [member.name for member in outcome.new_members]
        print_json({"round": round_id, "roster": outcome.roster_sha256, "new_members": members})
        return
    out.print(f"Ready for [bold]{round_id}[/]: roster {outcome.roster_sha256} is signed.")
    for member in outcome.new_members:
        out.print(f"  new: {member.name} ({member.band} people)", markup=False)
    out.print(f"This round's key: {outcome.round_key_id}")


@app.command("open")
def open_(
    round_id: RoundName,
    state: State = HERE,
    wait: Wait = 0,
    bundle: Bundle = None,
    result_file: Out = None,
    as_json: Json = False,
) -> None:
    """After the closing: check everything, reveal the nonce, and open this guardian's shares once, as sums."""
    deadline = time.monotonic() + wait
    with _session(state, bundle, result_file, as_json=as_json) as session:
        nonce = patiently(lambda: session.reveal_nonce(round_id), wait, LATER)
        err.print("The nonce is in the log." if nonce.revealed else "The lot was drawn without this nonce.")
        left = max(0, int(deadline - time.monotonic()))
        result = patiently(lambda: _open_with_bar(session, round_id), left, LATER)
    digest = canonical.sha256_hex(result)
    if as_json:
        print_json({"round": round_id, "result": digest, "set_root": nonce.set_root})
        return
    out.print(f"Round [bold]{round_id}[/] is opened for the set {nonce.set_root}.")
    out.print(f"Signed result: {digest}")


@app.command()
def inspect(round_id: RoundName, state: State = HERE, bundle: Bundle = None, as_json: Json = False) -> None:
    """Look at a round check by check, up to the lot; sends nothing."""
    from windvane_privacy import inspection

    with _session(state, bundle) as session:
        found = list(inspection.inspect(session, round_id))
    if as_json:
        print_json([{"check": one.name, "found": one.found, "refusal": _named(one.refusal)} for one in found])
    else:
        for one in found:
            said = one.found if one.refusal is None else f"{_named(one.refusal)}: {one.refusal.sentence()}"
            out.print(f"{'holds' if one.refusal is None else 'FAILS'}  {one.name}: {said}", markup=False)
    if any(one.refusal is not None for one in found):
        raise typer.Exit(1)


@app.command()
def verify(round_id: RoundName, state: State = HERE, bundle: Bundle = None, as_json: Json = False) -> None:
    """Open your share of every accepted envelope and name the members whose share does not open; sends nothing."""
    from windvane_privacy import inspection

    with _session(state, bundle) as session:
        bad = inspection.verify(session, round_id)
    if as_json:
        print_json([{"member": member, "refusal": _named(refusal)} for member, refusal in bad])
    else:
        for member, refusal in bad:
            out.print(f"member {member}: {_named(refusal)}: {refusal.sentence()}", markup=False)
        if not bad:
            out.print(f"Every share of [bold]{round_id}[/] opens.")
    if bad:
        raise typer.Exit(1)


@app.command("passphrase")
def passphrase_(state: State = HERE, new_file: NewFile = None, remove: Remove = False) -> None:
    """Set, change or remove the passphrase of your identity key and of every round's key."""
    change_keys([*state.glob("identity.key"), *sorted(state.glob("round-*.key"))], new_file, remove=remove)


@app.command("log")
def log_(state: State = HERE, as_json: Json = False) -> None:
    """Your own record: each round, how far it went here, for which set it was opened, whether its key is destroyed."""
    from windvane_privacy.guardian_ledger import GuardianLedger

    with GuardianLedger(state) as ledger:
        rows = [
            {
                "round": row.round_id,
                "state": row.state,
                "set_root": row.set_root,
                "result": None if row.result is None else canonical.sha256_hex(row.result),
                "held": len(ledger.held(row.round_id)),
                "key_destroyed": ledger.destroyed(row.round_id) is not None,
            }
            for row in ledger.rounds()
        ]
    if as_json:
        print_json(rows)
        return
    for one in rows:
        key = "key destroyed" if one["key_destroyed"] else "key kept"
        opened = f"opened for set {one['set_root']}, result {one['result']}" if one["result"] else str(one["state"])
        out.print(f"{one['round']}: {opened}; {key}", markup=False)
    if not rows:
        out.print("No round yet.")


@app.command()
def destroy(
    round_id: RoundName,
    state: State = HERE,
    wait: Wait = 0,
    bundle: Bundle = None,
    result_file: Out = None,
    as_json: Json = False,
) -> None:
    """30 days after publication: destroy the round's key and say so in the log."""
    with _session(state, bundle, result_file, as_json=as_json) as session:
        late = patiently(lambda: session.destroy(round_id), wait)
    if as_json:
        print_json({"round": round_id, "destroyed": True, "late": late})
        return
    out.print(f"The key of round [bold]{round_id}[/] is destroyed, and the log says so.")
    if late:
        out.print("It was to be destroyed earlier; the log shows the day.")
    out.print("Backups and copies of this folder may still hold it: delete them too.")


@app.command()
def hold(
    carried: Annotated[Path, typer.Argument(metavar="FILE", help="The envelope that a member handed over.")],
    state: State = HERE,
    bundle: Bundle = None,
    as_json: Json = False,
) -> None:
    """Hold a member's envelope that the coordinator ignores: nothing is released for a set without it."""
    from windvane_privacy.handed_over import read_hand_over

    parcel = read_hand_over(read_carried(carried))
    with _session(state, bundle) as session:
        member, held = session.hold(parcel)
    if as_json:
        print_json({"round": parcel.round_id, "member": member, "held": held})
        return
    if held:
        out.print(f"Held for [bold]{parcel.round_id}[/]: nothing is released for a set without member {member}.")
        out.print("Next: give the same file to the coordinator: `windvane coordinator receive FILE`.")
    else:
        out.print(f"Nothing to hold: the log shows the envelope of member {member} as accepted.")


def _make_card(state: Path, name: str | None, group: str | None, *, as_json: bool) -> None:
    from windvane_privacy.guardian_state import CARD, init_guardian, own_card

    if not name or not group:
        raise ConfigurationError("The first run needs --name and --group; the second one --coordinator.")
    init_guardian(state, name, group)
    words = fingerprint_words(bytes.fromhex(own_card(state).identity))
    if as_json:
        print_json({"card": str(state / CARD), "fingerprint": words})
        return
    out.print(f"Guardian [bold]{escape(name)}[/] is set up in {escape(str(state))}.")
    out.print(f"Fingerprint of its key: [bold]{words}[/]")
    next_step = f"Next: give {state / CARD} to the coordinator, and tell them the fingerprint by another way."
    out.print(next_step, markup=False)


def _pin(
    state: Path, address: str | None, ca: Path | None, bundle: Path | None, *, demo: bool, yes: bool, as_json: bool
) -> None:
    from windvane_client.https import HttpsCourier
    from windvane_privacy.couriers import Parcel
    from windvane_privacy.file_courier import FileCourier
    from windvane_privacy.guardian_state import pin_coordinator
    from windvane_privacy.keyfiles import write_secret
    from windvane_privacy.parcel_file import decode_answers
    from windvane_privacy.signed import decode_federation

    if bundle is not None:
        document = FileCourier(decode_answers(read_carried(bundle))).exchange(Parcel("federation"))
    elif address is not None:
        with HttpsCourier(address, ca=ca) as courier:
            document = courier.exchange(Parcel("federation"))
    else:
        raise ConfigurationError("Pinning needs --coordinator or --bundle.")
    shown = decode_federation(document)
    words = fingerprint_words(bytes.fromhex(shown.coordinator))
    if not yes:
        err.print(f"Federation: {shown.name}", markup=False)
        err.print(f"Fingerprint of the coordinator's key: [bold]{words}[/]")
        for each in shown.guardians:
            key = fingerprint_words(bytes.fromhex(each.identity))
            err.print(f"Guardian {each.index}: {each.name}, {key}", markup=False)
        typer.confirm("Did you compare these words with the coordinator and the guardians?", abort=True, err=True)
    pin_coordinator(state, document, demo=demo)
    if address is not None:
        settings = {"address": address, "ca": None if ca is None else str(ca.resolve())}
        write_secret(state / ADDRESS, canonical.encode(settings))
    if as_json:
        print_json({"coordinator": shown.coordinator, "fingerprint": words})
        return
    out.print(f"The coordinator of [bold]{escape(shown.name)}[/] is pinned: {words}")
    out.print("Next: read policy.toml, then `windvane guardian ready ROUND` when a round is announced.")


@contextmanager
def _session(
    state: Path, bundle: Path | None = None, result: Path | None = None, *, as_json: bool = False
) -> Iterator[GuardianSession]:
    """A session over https, or with files in the network's place."""
    from windvane_privacy.guardian import GuardianSession

    if bundle is not None or result is not None:
        with carrying(bundle, result, as_json=as_json) as carried, GuardianSession(state, carried, utc_now) as session:
            yield session
        return
    with _courier(state) as courier, GuardianSession(state, courier, utc_now) as session:
        yield session


def _named(refusal: WindvaneError | None) -> str | None:
    return None if refusal is None else type(refusal).__name__.rstrip("_")


def _courier(state: Path) -> HttpsCourier:
    from windvane_client.https import HttpsCourier
    from windvane_privacy.keyfiles import read_secret

    settings = canonical.decode(read_secret(state / ADDRESS))
    if not isinstance(settings, dict) or set(settings) != {"address", "ca"}:
        raise ConfigurationError(f"The file {ADDRESS} is not of the agreed form.")
    return HttpsCourier(settings["address"], ca=None if settings["ca"] is None else Path(settings["ca"]))


def _open_with_bar(session: GuardianSession, round_id: str) -> bytes:
    columns = (TextColumn("Summing shares"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task("sum", total=None)

        def show(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        return session.open(round_id, show)
