# SPDX-License-Identifier: Apache-2.0
"""`windvane audit`: what a reviewer can check offline, with nothing but the published files and this program.

Rules kept here:
* nothing is fetched, nothing is written but in a folder that is deleted again;
* a key that comes with the site proves only that the files belong together, and the output says so;
* the exit code is 0 only if everything holds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from windvane.terminal import Json, out, print_json
from windvane_privacy import canonical
from windvane_privacy.errors import ConfigurationError, KeyRefused, LintFailed, MalformedInput, PrivacyClaimBroken
from windvane_privacy.identity import check_public, fingerprint_words
from windvane_privacy.report_file import Report, verify_quarter, verify_report
from windvane_privacy.site_lint import lint_site

app = typer.Typer(no_args_is_help=True, help="For reviewers: check a report, a site or this program's noise, offline.")

_MAX_KEYS_BYTES = 1 << 16
MIN_TRIALS, MAX_TRIALS = 100, 1_000_000


@app.callback()
def audit() -> None:
    """For reviewers: check a report, a site or this program's noise, offline."""


@app.command("site")
def site(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a published site.")],
    as_json: Json = False,
) -> None:
    """Look through a published site for what a report of directions must not hold."""
    if not folder.is_dir():
        raise ConfigurationError("There is no such folder.")
    findings = lint_site(folder)
    if as_json:
        print_json({"findings": [{"path": f.path, "rule": f.rule} for f in findings]})
    else:
        for finding in findings:
            out.print(f"{finding.path}: {finding.rule}", markup=False)
        if not findings:
            out.print("Nothing found: the site holds directions in words and nothing else.")
    if findings:
        raise LintFailed(f"Rules: {', '.join(sorted({finding.rule for finding in findings}))}.")


@app.command("verify-report")
def verify(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="report.json, or the folder of its quarter.")],
    key: Annotated[
        str | None, typer.Option("--key", metavar="HEX", help="The coordinator's public key from a place you trust.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Check the signature and the form of a report, and of every page beside it."""
    folder = file if file.is_dir() else file.parent
    public = _public_key(key) if key is not None else _key_of_the_site(folder)
    whole = file.is_dir() or (file.name == "report.json" and (folder / "files.json").is_file())
    try:
        report = verify_quarter(folder, public) if whole else _single(file, public)
    except OSError:
        raise ConfigurationError("The report or its .sig file beside it cannot be read.") from None
    result = {
        "report": report.report_id,
        "revision": report.revision,
        "sha256": canonical.sha256_hex((folder / "report.json" if file.is_dir() else file).read_bytes()),
        "demo": report.demo,
        "pages_checked": whole,
        "key_was_given": key is not None,
        "key_fingerprint": fingerprint_words(public),
    }
    if as_json:
        print_json(result)
        return
    pages = " and every page of its quarter" if whole else ""
    out.print(f"{report.report_id} {report.revision}: signature, form{pages} hold.", markup=False)
    if report.demo:
        out.print("It is a demonstration: invented organisations, invented models, invented preferences.")
    out.print(f"Key: {result['key_fingerprint']}", markup=False)
    if key is None:
        out.print("The key came with the site itself; compare the words above with the coordinator's, or give --key.")


@app.command("privacy")
def privacy(
    trials: Annotated[
        int, typer.Option("--trials", metavar="N", min=MIN_TRIALS, max=MAX_TRIALS, help="Looks at one made-up person.")
    ] = 2_000,
    s: Annotated[int, typer.Option("--s", min=26, max=10_000, help="Scale of a cohort's noise.")] = 26,
    h: Annotated[int, typer.Option("--h", min=1, max=24, help="Honest members who carry it together.")] = 1,
    as_json: Json = False,
) -> None:
    """Draw many times with and without one made-up person, the way a member draws, and see whether it shows too much.

    The usual noise is the smallest that this program accepts, because it shows most in few draws.
    """
    from windvane.audit_privacy import facts_of, run_audit, show

    found = run_audit(trials, s=s, h=h, quiet=as_json)
    if as_json:
        print_json(facts_of(found))
    else:
        show(out, found)
    if found.faults:
        raise PrivacyClaimBroken(f"Found: {'; '.join(found.faults)}.")


def _single(file: Path, public: bytes) -> Report:
    return verify_report(file.read_bytes(), file.with_name(file.name + ".sig").read_bytes(), public)


def _public_key(text: str) -> bytes:
    try:
        public = bytes.fromhex(text)
    except ValueError:
        raise KeyRefused("The key is not hex.") from None
    check_public(public)
    return public


def _key_of_the_site(folder: Path) -> bytes:
    try:
        raw = (folder.parent / "keys.json").read_bytes()
    except OSError:
        raise ConfigurationError("There is no keys.json above the report; give the key with --key.") from None
    value = canonical.decode(raw, max_bytes=_MAX_KEYS_BYTES)
    try:
        text = value["keys"][0]["public"]
    except (TypeError, KeyError, IndexError):
        raise MalformedInput("keys.json has another form") from None
    if not isinstance(text, str):
        raise MalformedInput("keys.json has another form")
    return _public_key(text)


def _mount() -> None:
    from windvane.audit_budget import budget

    app.command("budget")(budget)


_mount()
