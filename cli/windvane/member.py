# SPDX-License-Identifier: Apache-2.0
"""`windvane member`: set up, collect, look, approve, submit.

Rules kept here:
* thin: every check lies in `windvane_client` and `windvane_privacy`; a command shows what was checked and asks;
* the decision comes before the draw, and no number of an open round is shown before its end;
* each command may be run again: a step that is done is done, and stored bytes are sent again;
* results go to stdout (`--json`: canonical JSON), progress and questions to stderr.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

from windvane.carried import FromFile, ToFile, carrying
from windvane.passphrases import Sealed, seal_new_keys
from windvane.terminal import Json, RoundName, err, print_json, utc_now
from windvane_privacy import canonical
from windvane_privacy.errors import ConfigurationError, NeedsApproval, StateExists, WindvaneError
from windvane_privacy.identity import fingerprint_words

if TYPE_CHECKING:
    from windvane_client.agent import MemberAgent
    from windvane_client.agreement import Agreement
    from windvane_client.settings import LogFolder
    from windvane_client.state import MemberState
    from windvane_privacy.manifest import Manifest

app = typer.Typer(no_args_is_help=True, help="For an organisation: read your logs, look at them, take part.")
out = Console(highlight=False, soft_wrap=False)

State = Annotated[Path, typer.Option("--state", help="Folder of this member.")]
Yes = Annotated[bool, typer.Option("--yes", help="Answer yes to the question of this command.")]
HERE = Path("windvane-member")


@app.command()
def init(
    name: Annotated[str | None, typer.Option("--name", help="Legal name of your organisation, public.")] = None,
    band: Annotated[
        str | None, typer.Option("--band", help="Public size band: 10-49, 50-99, 100-249, ... 5000+.")
    ] = None,
    coordinator: Annotated[str | None, typer.Option("--coordinator", help="Address of the coordinator.")] = None,
    state: State = HERE,
    logs: Annotated[
        list[str] | None, typer.Option("--logs", help="Folder to read, or SOURCE:FOLDER. Default: the usual places.")
    ] = None,
    ties: Annotated[list[str] | None, typer.Option("--ties", help="Vendor that you own part of, or it of you.")] = None,
    staff_id: Annotated[str | None, typer.Option("--staff-id", help="Whose machine this is.")] = None,
    people: Annotated[Path | None, typer.Option("--people", help="Your people.toml, if you have one.")] = None,
    ca: Annotated[Path | None, typer.Option("--ca", help="Certificates to trust instead of the usual ones.")] = None,
    second_place: Annotated[
        Path | None, typer.Option("--second-place", help="Folder for the second copy of the log's newest checkpoint.")
    ] = None,
    auto: Annotated[bool, typer.Option("--auto", help="The policy alone approves rounds, no person.")] = False,
    demo: Annotated[bool, typer.Option("--demo", help="Take part in demonstrations.")] = False,
    collector: Annotated[
        Path | None,
        typer.Option("--collector", help="Make this machine a collector from a file of your agent's collector-key."),
    ] = None,
    passphrase: Sealed = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Make keys, policy and ledger, pin the federation, and enrol; or, with --collector, make a collector."""
    from windvane_client.https import HttpsCourier
    from windvane_client.settings import MemberSettings
    from windvane_client.state import MemberState, usual_second_place
    from windvane_privacy.couriers import Parcel
    from windvane_privacy.signed import decode_federation

    folders = tuple(_log_folder(text) for text in logs) if logs else _usual_logs()
    if collector is not None:
        from windvane.member_collector import init_collector

        init_collector(collector, state, folders)
        return
    if name is None or band is None or coordinator is None:
        raise typer.BadParameter("a member needs all three", param_hint="--name, --band, --coordinator")
    existing = _unenrolled(state)
    if existing is None:
        seal_new_keys(passphrase)
        settings = MemberSettings(
            name=name,
            band=band,
            ties=tuple(sorted(set(ties or ()))),
            address=coordinator,
            logs=folders,
            second_place=str((second_place or usual_second_place(Path.home())).absolute()),
            ca=None if ca is None else str(ca.absolute()),
        )
        with HttpsCourier(coordinator, ca=ca) as courier:
            document = courier.exchange(Parcel("federation"))
        shown = decode_federation(document)
        if not yes:
            err.print(f"Federation: {shown.name}", markup=False)
            err.print(f"Fingerprint of the coordinator's key: [bold]{_words(shown.coordinator)}[/]")
            for each in shown.guardians:
                err.print(f"Guardian {each.index}: {each.name} ({each.group}): {_words(each.identity)}", markup=False)
            typer.confirm("Did you compare these words with the coordinator and the guardians?", abort=True, err=True)
        existing = MemberState.create(
            state,
            settings,
            document,
            demo=demo,
            approval="auto" if auto else "human",
            people=_people(people, staff_id),
        )
    with agent_of(existing) as agent:
        answer = canonical.decode(agent.enrol())
    if as_json:
        print_json({"state": str(state), "key": existing.key.key_id, "enrolled": answer})
        return
    out.print(f"[bold]{escape(existing.settings.name)}[/] is set up in {escape(str(state))} and enrolled.")
    out.print(f"Fingerprint of your key: [bold]{_words(existing.key.public.hex())}[/]")
    out.print(f"Next: tell the guardians this fingerprint by another way, read {state / 'policy.toml'},", markup=False)
    out.print(f"fill {state / 'people.toml'}, and run `windvane member collect` every week.", markup=False)


@app.command()
def collect(
    state: State = HERE,
    offline: Annotated[bool, typer.Option("--offline", help="Do not ask the coordinator for new rounds.")] = False,
    rows_to: Annotated[
        Path | None, typer.Option("--out", help="On a collector: the folder that your agent reads.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Read what is new in the configured log folders. Nothing leaves this machine, but for a collector's rows."""
    from windvane.member_collector import collect_rows
    from windvane.member_pages import collect_facts, show_collect
    from windvane_client.collect import collect as run
    from windvane_client.collector import is_collector

    collecting = is_collector(state)
    opened = None if collecting else _open(state)
    if opened is not None and rows_to is not None:
        raise ConfigurationError("This is an agent's folder: its own collection stays here, --out is for collectors.")
    if opened is not None and not offline:
        _learn(opened)
    with Progress(
        TextColumn("Reading logs"), BarColumn(), DownloadColumn(), console=err, transient=True, disable=as_json
    ) as bar:
        task = bar.add_task("read", total=None)

        def show(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        report = collect_rows(state, rows_to, show) if opened is None else run(opened, utc_now(), progress=show)
        facts = collect_facts(report)
    if as_json:
        print_json(facts)
    else:
        show_collect(out, facts)


@app.command()
def approve(
    round_id: RoundName,
    state: State = HERE,
    yes: Yes = False,
    from_file: FromFile = None,
    to_file: ToFile = None,
    as_json: Json = False,
) -> None:
    """Read what would leave and what it costs, before anything is drawn; then decide."""
    with agent_of(_open(state), from_file, to_file, as_json=as_json) as agent:
        begun = agent.ledger.round(round_id)
        if begun is not None:
            out.print(f"Round [bold]{escape(round_id)}[/] is {begun.state.value} here; nothing is left to approve.")
            return
        facts = _ask(agent, round_id, yes=yes, show=not as_json)
    if as_json:
        print_json(facts)
    else:
        out.print(f"Round [bold]{round_id}[/] is approved. Next: windvane member submit {round_id}")


@app.command()
def submit(
    round_id: Annotated[str | None, typer.Argument(metavar="[ROUND]", help="Default: the approved round.")] = None,
    state: State = HERE,
    yes: Annotated[bool, typer.Option("--yes", help="Ask nothing; needs approval = auto, or an approval.")] = False,
    from_file: FromFile = None,
    to_file: ToFile = None,
    as_json: Json = False,
) -> None:
    """Draw once, commit, wait for the receipt, reveal; run again it goes on where it stopped."""
    from windvane.member_pages import drawn_facts, show_drawn
    from windvane_client.hand_over import note_unanswered

    opened = _open(state)
    with agent_of(opened, from_file, to_file, as_json=as_json) as agent:
        name = round_id if round_id is not None else _only_round(agent)
        if agent.ledger.round(name) is None and agent.ledger.approval(name) is None:
            if not yes:
                _ask(agent, name, yes=False, show=True)
            elif opened.policy.approval != "auto":
                raise NeedsApproval
        if agent.ledger.moved and agent.ledger.round(name) is None:
            if yes:
                raise NeedsApproval("This is another machine than before.")
            typer.confirm("This is another machine than before. Is no copy running elsewhere?", abort=True, err=True)
            agent.ledger.confirm_machine(utc_now().date().isoformat())
        try:
            entry = agent.submit(name)
        finally:
            note_unanswered(agent, name)
            stored, manifest = agent.ledger.round(name), _manifest(opened, name)
            if stored is not None and manifest is not None and not as_json:
                show_drawn(out, drawn_facts(stored, manifest))
        if as_json and manifest is not None:
            print_json(drawn_facts(entry, manifest))
    if not as_json:
        out.print(f"Round [bold]{name}[/] is accepted. The log shows the hash above; nothing more is to be done.")


@app.command()
def status(state: State = HERE, as_json: Json = False) -> None:
    """Where this member stands; needs no network."""
    from windvane.member_pages import show_status, status_facts

    opened = _open(state)
    settings = opened.settings
    with opened.ledger() as ledger:
        facts = status_facts(settings.name, settings.address, opened.policy, ledger)
    facts["enrolled"] = opened.enrolled
    if as_json:
        print_json(facts)
    else:
        show_status(out, facts)


# --- parts ------------------------------------------------------------------------------------------------------------


def _ask(agent: MemberAgent, round_id: str, *, yes: bool, show: bool) -> canonical.JsonValue:
    """Show the page, ask, record. The person approves the manifest that was shown and no other."""
    from windvane.member_pages import approval_facts, show_approval

    agreed = agent.agreement(round_id)
    facts = approval_facts(agreed, agent.state.policy, agent.ledger, _last_approved(agent, agreed))
    if show:
        show_approval(out, facts)
    if not yes:
        typer.confirm(f"Take part in {round_id}?", abort=True, err=True)
    agent.approve(round_id, manifest_sha256=agreed.manifest.sha256)
    return facts


def _last_approved(agent: MemberAgent, agreed: Agreement) -> Manifest | None:
    for name in reversed(agent.ledger.approvals()):
        if name != agreed.manifest.round:
            return _manifest(agent.state, name)
    return None


def _manifest(state: MemberState, round_id: str) -> Manifest | None:
    from windvane_privacy.signed import verify_signed_manifest

    raw = state.manifest(round_id)
    return None if raw is None else verify_signed_manifest(raw, bytes.fromhex(state.policy.coordinator))


def _only_round(agent: MemberAgent) -> str:
    """The round to go on with: the one under way, else the one approved last."""
    ledger = agent.ledger
    under_way = [entry.round_id for entry in ledger.rounds() if not entry.state.final]
    waiting = [name for name in ledger.approvals() if ledger.round(name) is None]
    candidates = under_way or waiting[-1:]
    if len(candidates) != 1:
        raise ConfigurationError("Name the round: none, or more than one, is under way.")
    return candidates[0]


def _learn(state: MemberState) -> None:
    """Fetch the agreements of new rounds: collecting needs their list of models. Without a network it goes on."""
    try:
        with agent_of(state) as agent:
            agent.learn()
    except WindvaneError as problem:
        err.print(f"New rounds were not fetched. {problem.sentence()}", markup=False)


def _unenrolled(state: Path) -> MemberState | None:
    """A set-up whose enrolment did not arrive; None where nothing is set up.

    Raises:
        StateExists: it is set up and enrolled.
    """
    from windvane_client.state import MemberState

    if not (state / "member.toml").is_file():
        return None
    found = MemberState.open(state)
    if found.enrolled:
        raise StateExists
    return found


def _open(state: Path) -> MemberState:
    from windvane_client.state import MemberState

    return MemberState.open(state)


@contextmanager
def agent_of(
    state: MemberState, from_file: Path | None = None, to_file: Path | None = None, *, as_json: bool = False
) -> Iterator[MemberAgent]:
    """The agent of a state over https, or with files in the network's place."""
    import time

    from windvane_client.agent import MemberAgent
    from windvane_client.https import HttpsCourier
    from windvane_client.slots import slot_pause

    settings = state.settings
    if from_file is not None or to_file is not None:
        with (
            carrying(from_file, to_file, as_json=as_json) as carried,
            MemberAgent(state, carried, utc_now, warn=_warn) as agent,
        ):
            yield agent
        return
    with (
        HttpsCourier(settings.address, ca=None if settings.ca is None else Path(settings.ca)) as courier,
        MemberAgent(state, courier, utc_now, warn=_warn, pause=slot_pause(utc_now, time.sleep)) as agent,
    ):
        yield agent


def _warn(sentence: str) -> None:
    err.print(f"Warning: {sentence}", markup=False)


def _log_folder(text: str) -> LogFolder:
    from windvane_client.readers import READERS, reader
    from windvane_client.settings import LogFolder

    source, colon, path = text.partition(":")
    if colon and (source in READERS or not Path(text).exists()):
        return LogFolder(str(Path(path).absolute()), reader(source).source)
    return LogFolder(str(Path(text).absolute()))


def _usual_logs() -> tuple[LogFolder, ...]:
    import os

    from windvane_client.preview_sources import usual_roots
    from windvane_client.settings import LogFolder

    usual = usual_roots(Path.home(), os.environ)
    claude = (LogFolder(str(one)) for one in usual.pop("claude_code"))
    others = (LogFolder(str(path), source) for source, places in usual.items() for path in places if path.is_dir())
    return (*claude, *others)


def _people(path: Path | None, staff_id: str | None) -> str | None:
    import json

    from windvane_client.people import PEOPLE_TOML

    if path is not None and staff_id is not None:
        raise ConfigurationError("Give --people or --staff-id, not both.")
    if path is not None:
        try:
            return path.read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            raise ConfigurationError("people.toml cannot be read.") from None
    if staff_id is not None:
        return PEOPLE_TOML + f"\n[machine]\nstaff_id = {json.dumps(staff_id)}\n"
    return None


def _words(public: str) -> str:
    return fingerprint_words(bytes.fromhex(public))


def _mount() -> None:
    """Commands with modules of their own: `preview` needs no set-up, `notice` and `forget` are about people."""
    from windvane.member_budget import budget
    from windvane.member_collector import collector_key
    from windvane.member_files import hand_over
    from windvane.member_ledger import app as ledger
    from windvane.member_passphrase import passphrase
    from windvane.member_people import forget, notice
    from windvane.member_policy import app as policy
    from windvane.member_round import refuse, rehearse
    from windvane.preview import preview

    app.command("budget")(budget)
    app.add_typer(ledger, name="ledger")
    app.add_typer(policy, name="policy")
    app.command("hand-over")(hand_over)
    app.command("refuse")(refuse)
    app.command("passphrase")(passphrase)
    app.command("rehearse")(rehearse)
    app.command("collector-key")(collector_key)
    app.command("notice")(notice)
    app.command("forget")(forget)
    app.command("preview")(preview)


_mount()
