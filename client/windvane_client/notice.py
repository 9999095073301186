# SPDX-License-Identifier: Apache-2.0
"""A page in plain words for the people whose logs are read, and for their works council: what a member's set-up does.

Rules kept here:
* a function of the settings, the policy and the rules of people.toml: no log, ledger or collection is opened for it;
* no person and no count: a folder that names somebody, or lies in somebody's home, is shown without the name;
* every source has its own words for what is read and what is not; one without words is refused, never skipped;
* whole sentences; what holds only under a condition is said with the condition.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from windvane_client.people import People, identity_text, staff_id_text
from windvane_client.readers import MACHINE_SOURCES, reader
from windvane_client.settings import LogFolder, MemberSettings
from windvane_privacy.catalogue import POOLED, Signal
from windvane_privacy.policy import Policy


@dataclass(frozen=True, slots=True)
class SourceWords:
    """One kind of source in plain words: its name, what is taken from its logs, what in them is skipped."""

    name: str
    read: str
    never: str


SOURCES: Mapping[str, SourceWords] = {
    "claude_code": SourceWords(
        "Transcripts of Claude Code",
        "when a prompt, an answer or a tool call happened, which model answered, whether it failed, and the program's "
        "own marks of who started it",
        "the words of prompts and answers, tool arguments and outputs, files and paths",
    ),
    "codex": SourceWords(
        "Session files of Codex",
        "when a turn began and how it ended, which model answered, whether a tool call succeeded, and which program "
        "started the session",
        "messages, instructions, reasoning, tool arguments and outputs, folders, git data",
    ),
    "cline": SourceWords(
        "Task and session files of Cline and Roo",
        "when a task began and how it ended, which model was set, whether requests and tool calls failed",
        "texts, paths, commands, file contents and titles",
    ),
    "litellm": SourceWords(
        "Rows of a LiteLLM gateway",
        "when a request was made, for which user or key, which model was asked and answered, whether attempts failed, "
        "and tags that decide the kind of work",
        "messages, responses, error texts, addresses and prices",
    ),
    "open_webui": SourceWords(
        "Exports of Open WebUI",
        "which user rated or voted, when, between which models, and for chats when which model answered and its rating",
        "the chats themselves, titles, comments and reasons",
    ),
    "langfuse": SourceWords(
        "Traces of Langfuse",
        "the user's id and the session of a trace, when a model or a tool was called and whether that failed, which "
        "model it was, tags, and scores whose names our own rules list",
        "inputs, outputs, metadata, comments and error texts",
    ),
    "gemini_cli": SourceWords(
        "Session files of Gemini CLI",
        "when a prompt, an answer or a tool call happened, which model answered, and whether the tool call succeeded",
        "the words of prompts and answers, thoughts, summaries, tool arguments and outputs, folders",
    ),
    "otlp": SourceWords(
        "Telemetry of AI programs (OpenTelemetry files)",
        "the user's address or id in the record, the time, the model, whether a call, an attempt or a tool failed, and "
        "whether a person or a program started it",
        "prompts, answers, tool arguments and outputs, reasoning and error texts, also where the telemetry holds them",
    ),
    "mapping": SourceWords(
        "Exports of other programs, by columns that we named",
        "only the columns that our mapping file names: who, when, which conversation and model, and how it ended as a "
        "word of a fixed list",
        "every other column of the export",
    ),
    "collected": SourceWords(
        "Rows that our own machines wrote with Windvane's collector",
        "what the collector took from the logs of that machine, with a keyed hash in place of every id",
        "anything else: a row that holds a word outside the fixed lists is refused",
    ),
    "canonical": SourceWords(
        "Lines that our own programs write for Windvane",
        "the person's id, the time, the kind of event, the model and the result, in fields of a fixed list",
        "anything else: a line with one more field is refused as a whole",
    ),
}
"""By the part of a source's id before the slash."""

SIGNAL_WORDS: Mapping[str, str] = {
    Signal.COMPLETION: "whether work that used a model ended well",
    Signal.SWITCH_AWAY: "whether people left a model for another by their own choice",
    Signal.TOOL_RELIABILITY: "whether a model's tool calls worked",
    Signal.INFRA_RECOVERY: "whether a model answered again after a fault of the service",
    Signal.BLIND_QUALITY: "which of two answers people preferred while the models' names were hidden",
}
_HOMES = re.compile(r"(?:/(?:home|Users|var/home|export/home)/[^/]+|/root)(?=/|$)")
_MARKDOWN = re.compile(r"([\\`*_\[\]<>#|])")
_ONE_PERSONS = "folders that are set aside for one person each"


def notice(settings: MemberSettings, policy: Policy, people: People, *, home: Path) -> str:
    """The page as Markdown. `home`: home of the account that runs this, shown as `~`.

    Of `people` only the rules show; its names serve to leave out paths that contain them.

    Raises:
        UnsupportedSource: a configured source has no reader.
    """
    name = _plain(settings.name)
    parts = (
        ("", _opening(name, policy)),
        ("What is read, and where", _read(settings.logs, people, home)),
        ("Whose logs count", _whose(settings.logs, people)),
        ("What is never read", _never()),
        ("How long it is kept", _kept()),
        ("What leaves this organisation", _leaves(settings, policy)),
        ("Who could learn what", _learns(policy)),
        ("How to opt out", _opt_out()),
    )
    text = "\n\n".join(f"## {title}\n\n{body}" if title else body for title, body in parts)
    return f"# How {name} takes part in Windvane\n\n{text}\n"


# --- the parts --------------------------------------------------------------------------------------------------------


def _opening(name: str, policy: Policy) -> str:
    words = [SIGNAL_WORDS[signal] for signal in policy.signals]
    kinds = [kind for kind in policy.kinds if kind != POOLED]
    asked = [f"for {_list(kinds)} apart"] if kinds else []
    if POOLED in policy.kinds:
        asked.append("for all work together")
    lines = [
        "Windvane compares AI models, not people, by how real work with them goes in many organisations.",
        f"{name} allows these questions and no others: {_list(words)}.",
    ]
    if asked:
        lines.append(f"They may be asked {_list(asked)}.")
    if policy.demo:
        lines.append("This set-up also takes part in demonstrations, which have weaker limits.")
    return " ".join(lines)


def _read(logs: Sequence[LogFolder], people: People, home: Path) -> str:
    places: dict[str, list[str]] = {}
    for folder in logs:
        known = places.setdefault(reader(folder.source).source.partition("/")[0], [])
        place = _place(folder, people, home)
        if place not in known:
            known.append(place)
    bullets = []
    for source, found in places.items():
        words = SOURCES[source]
        bullets.append(
            f"* **{words.name}**, from {_list(found)}. Taken from them: {words.read}. Skipped: {words.never}."
        )
    return "Only these folders are read, on our own machines:\n\n" + "\n".join(bullets)


def _whose(logs: Sequence[LogFolder], people: People) -> str:
    sources = {folder.source.partition("/")[0] for folder in logs}
    lines = []
    if sources & MACHINE_SOURCES or "otlp" in sources or any(folder.staff_id is not None for folder in logs):
        lines.append(
            "Logs that name nobody count for the person to whom our settings give the machine or the folder, and "
            "without such a person for nobody."
        )
    if sources - MACHINE_SOURCES:
        lines.append("Where a log names its user, the name is looked up in our file `people.toml`.")
        if people.canonical_is_staff_id and "canonical" in sources:
            lines.append("The lines of our own programs already name a staff id, which is taken as it is.")
        lines.append(
            "Of an e-mail address that the file does not list, the part before the @ sign is taken for the staff id; "
            "any other unlisted name is dropped."
            if people.email_local_part
            else "A name that the file does not list is dropped, not guessed."
        )
    lines.append(
        "Names are not kept. Events carry a pseudonym, made with a secret key that stays on the machine; whoever holds "
        "the key and a staff id can compute it, so events are still data about people."
    )
    return " ".join(lines)


def _never() -> str:
    return (
        "No prompt, answer, file content, tool argument, tool output or error text is taken from a log, whatever the "
        "log holds. The program passes over these bytes without decoding them; some are compared with a fixed list of "
        "technical markers, and only the class that fits is kept. The name of the folder in which a log lies is "
        "compared with our own rules and kept as a keyed hash only. Nothing outside the folders above is opened as a "
        "log: no mailbox, no screen, no browser. Work that a program did without a person is not compared."
    )


def _kept() -> str:
    return (
        "Events stay on our machine until the round of their quarter has ended for us; if we skip a round, until 60 "
        "days after the end of its quarter. Then they are deleted, but for work that is still unfinished. When "
        "a person first and last used each family of models is kept until it is 400 days old at the end of a round. "
        "The ledger keeps without end in which rounds a pseudonym was counted, because of the lifetime limit below, "
        "and in words how our people as a whole leaned. Our numbers with noise in them leave it 45 days after the "
        "round. How long the log files themselves are kept is decided by the programs that write them."
    )


def _leaves(settings: MemberSettings, policy: Policy) -> str:
    ties = _list([_plain(tie) for tie in settings.ties])
    decides = (
        "A person here approves each round before anything is drawn."
        if policy.approval == "human"
        else "The program approves rounds that keep to our policy, without asking a person."
    )
    return (
        f"Our public entry holds our name, our size band ({settings.band}), our ties to vendors ({ties}) and our key. "
        "For each round in which we take part one sealed envelope goes out, of the same length for every organisation. "
        "It holds sums over all our people with random noise added, split so that no single guardian can read them. "
        f'One person enters these sums with at most {policy.max_Q} votes of the form "more with A than with B". No '
        "event, no pseudonym and no log file leaves. The program connects to the coordinator "
        f"({_code(settings.address)}) and to nobody else. {decides}"
    )


def _learns(policy: Policy) -> str:
    public = (
        "that we took part, and directions about models for many organisations together. What they could find out "
        f"about one person is limited: rho, which says how much a result can depend on one person, is at most "
        f"{policy.max_rho_per_quarter} in a quarter and {policy.max_rho_lifetime} for good; whoever reaches that is no "
        "longer counted."
    )
    broken = (
        f"any {policy.guardians_t} together, or one with the coordinator, could see our organisation's own numbers, "
        f"with only our own noise in them (rho at most {policy.max_rho_local_per_quarter} in a quarter). Our guardians "
        f"come from {_list([_plain(one.group) for one in policy.guardians])}."
    )
    here = (
        "whoever runs Windvane's machine can read the events with their pseudonyms and holds the key, and can read the "
        "logs themselves as before. No command lists or compares people; where all logs are one person's, the preview "
        "shows that person's work and is meant for them. While a round is open none of its numbers is shown."
    )
    bullets = (
        f"* **Readers of the public report**: {public}",
        "* **The coordinator**: who sent an envelope on which day, and sums of many organisations with noise in them.",
        "* **One guardian alone**: a part of our envelope that looks random, and the same sums.",
        f"* **Guardians who break their word**: {broken}",
        f"* **Here in the organisation**: {here}",
    )
    return "\n".join(bullets) + "\n\nA person with two staff ids, or in two organisations, is protected less."


def _opt_out() -> str:
    return (
        "Tell those who run Windvane here; no reason is needed. They write your staff id into `people.toml`:\n\n"
        '```toml\n[exclude]\nstaff_ids = ["the-staff-id"]\n```\n\n'
        "From the next collection on, your rows are dropped before anything about you is kept, and folders that are "
        "yours alone are not opened. What was collected before is deleted at once with `windvane member forget`; "
        "without this command it stays on our machine until the round has ended, but gives no vote. A round that is "
        "already drawn cannot be taken back. Nobody outside is told who opted out."
    )


# --- words ------------------------------------------------------------------------------------------------------------


def _place(folder: LogFolder, people: People, home: Path) -> str:
    """A folder without the name of a person: in a home it begins with ~, one person's own is only said to be so."""
    path = folder.path
    own = str(home).rstrip("/")
    if own and (path == own or path.startswith(f"{own}/")):
        path = "~" + path[len(own) :]
    path = _HOMES.sub("~", path, count=1)
    if folder.staff_id is not None or _names_somebody(path, people):
        return _ONE_PERSONS
    return _code(path) + (" in the home folder" if path.startswith("~") else "")


def _names_somebody(path: str, people: People) -> bool:
    known = {*people.named.values(), *people.excluded_staff, *people.named} | ({people.machine} - {None})
    for identity in people.named:
        rest = identity.partition(":")[2]
        known |= {rest, staff_id_text(rest.partition("@")[0])}
    return any({staff_id_text(part), identity_text(part)} & known for part in PurePath(path).parts)


def _list(words: Iterable[str]) -> str:
    *rest, end = dict.fromkeys(words) or ("none",)
    return f"{', '.join(rest)} and {end}" if rest else end


def _plain(text: str) -> str:
    """A name that others chose, as text and never as Markdown."""
    return _MARKDOWN.sub(r"\\\1", " ".join(text.split()))


def _code(text: str) -> str:
    line = " ".join(text.split())
    return f"`` {line} ``" if "`" in line else f"`{line}`"
