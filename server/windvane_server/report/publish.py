# SPDX-License-Identifier: Apache-2.0
"""Publication of one round: decide, build, lint, sign, and swap the new folder in.

Rules kept here:
* only noisy cohort sums, the manifest, public facts and earlier reports come in;
* the site is built and linted in a folder of its own; a finding stops publication and nothing that is served changes;
* quarters that are already published keep their bytes; the same quarter with other bytes is refused;
* one signature covers `report.json`, a second one the hashes of all pages of the quarter;
* a round that was not opened gives a page and a report that say why.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from windvane_privacy import canonical
from windvane_privacy.direction import PublicFacts, directions
from windvane_privacy.errors import LintFailed, ReportError
from windvane_privacy.identity import SigningKey
from windvane_privacy.manifest import Manifest
from windvane_privacy.report_file import (
    Report,
    build_report,
    files_json,
    history_of,
    read_report,
    seal,
    sign_report,
)
from windvane_privacy.site_lint import lint_site
from windvane_privacy.sums import CohortSums
from windvane_server.report.site import build_site

KEYS_SCHEMA = "windvane/keys/v1"
SEALED_SCHEMA = "windvane/sealed/v1"
NOT_OPENED: dict[str, str] = {
    "too_few_organisations": "Fewer organisations took part than the agreement of this quarter demands, so nothing was "
    "opened.",
    "too_few_people": "The organisations that took part stand for fewer people than the agreement of this quarter "
    "demands, so nothing was opened.",
    "cohort_too_small": "A cohort would have been smaller than the agreement of this quarter demands, so nothing was "
    "opened.",
    "aborted": "The round was stopped before anything was opened.",
}
"""Reasons by key; `publish_round` also takes a sentence of its own."""
_LASTING = re.compile(r"\d{4}-q[1-4]|style\.[0-9a-f]{16}\.css")


@dataclass(frozen=True, slots=True)
class Publication:
    """What was published; the hashes (hex SHA-256) go into the log's `report-published` entry."""

    report: bytes
    report_sha256: str
    files_sha256: str
    folder: Path


def publish_round(
    out: Path,
    *,
    manifest: Manifest,
    sums: CohortSums | None,
    facts: PublicFacts,
    history: Sequence[bytes],
    key: SigningKey,
    not_opened: str | None = None,
    crosschecked: bool = False,
    lot_proof: str | None = None,
    salt: bytes | None = None,
) -> Publication:
    """Publish a round into the folder `out`, replacing what is served there in one step.

    Args:
        out: folder of the whole site; made if missing.
        manifest: the agreement of the round.
        sums: opened cohort sums; null for a round that was not opened.
        facts: public facts, see `direction.public_facts`.
        history: the bytes of all earlier `report.json`, oldest first.
        key: the coordinator's key.
        not_opened: a key of `NOT_OPENED` or one plain sentence; required exactly when `sums` is null.
        crosschecked: a third guardian's shares agree with the sums.
        lot_proof: hash (hex) of the log entry that fixed the lot.
        salt: 32 random bytes that seal the sums; the coordinator keeps them until the sums are shown.

    Raises:
        LintFailed: the built site breaks a rule; nothing was changed.
        ReportError: the report or the chain of reports does not hold together.
        RoundNotOpened: the sums are below the manifest's floors.
        MalformedInput: an earlier report is not of its form.
    """
    if (sums is None) == (not_opened is None):
        raise ReportError("A round has either sums or a reason why it was not opened.")
    earlier = tuple(read_report(raw) for raw in history)
    previous = canonical.sha256_hex(history[-1]) if history else None
    # A manifest is signed before its quarter: newer reports may be out since, so it names any one of the chain.
    if manifest.previous_report is not None and manifest.previous_report not in map(canonical.sha256_hex, history):
        raise ReportError("The manifest names a report that is not in the chain of earlier ones.")
    sealed = seal(sums.to_json(), salt) if sums is not None and salt is not None else None
    raw = build_report(
        directions(sums, manifest, facts, history_of(earlier)) if sums is not None else (),
        manifest,
        previous_sha256=previous,
        not_opened=NOT_OPENED.get(not_opened, not_opened) if not_opened is not None else None,
        crosschecked=crosschecked,
        lot_proof=lot_proof,
        sealed_sums_sha256=sealed,
    )
    return _swap_in(out, raw, manifest, earlier, key)


def _swap_in(out: Path, raw: bytes, manifest: Manifest, earlier: Sequence[Report], key: SigningKey) -> Publication:
    out = out.absolute()
    fresh, old = out.with_name(f".{out.name}.new"), out.with_name(f".{out.name}.old")
    if old.exists() and not out.exists():
        # A publication was killed between its two renames.
        old.rename(out)
    shutil.rmtree(fresh, ignore_errors=True)
    shutil.rmtree(old, ignore_errors=True)
    fresh.mkdir(parents=True)
    report = read_report(raw)
    quarter = report.quarter.lower()
    published = out / quarter / "report.json"
    if published.exists() and published.read_bytes() != raw:
        shutil.rmtree(fresh)
        raise ReportError("This quarter is already published with other content.")
    _keep_earlier(out, fresh, except_for=quarter)
    build_site(report, manifest, earlier, fresh)
    files_sha256 = _sign(fresh, quarter, raw, report, key)
    findings = lint_site(fresh)
    if findings:
        shutil.rmtree(fresh)
        raise LintFailed(f"Rules: {', '.join(sorted({finding.rule for finding in findings}))}.")
    _sync(fresh)
    if out.exists():
        out.rename(old)
    fresh.rename(out)
    shutil.rmtree(old, ignore_errors=True)
    return Publication(raw, canonical.sha256_hex(raw), files_sha256, out)


def _keep_earlier(out: Path, fresh: Path, *, except_for: str) -> None:
    if not out.exists():
        return
    for entry in sorted(out.iterdir()):
        if not _LASTING.fullmatch(entry.name) or entry.name == except_for:
            continue
        if entry.is_dir():
            shutil.copytree(entry, fresh / entry.name)
        else:
            shutil.copyfile(entry, fresh / entry.name)


def _sign(site: Path, quarter: str, raw: bytes, report: Report, key: SigningKey) -> str:
    folder = site / quarter
    (folder / "report.json.sig").write_bytes(sign_report(raw, key))
    if report.method.sealed_sums_sha256 is not None:
        sealed = {"schema": SEALED_SCHEMA, "sha256": report.method.sealed_sums_sha256}
        (folder / "sealed.json").write_bytes(canonical.encode(sealed))
    contents = [(p.relative_to(folder).as_posix(), p.read_bytes()) for p in folder.rglob("*") if p.is_file()]
    listed = files_json(report.quarter, contents)
    (folder / "files.json").write_bytes(listed)
    (folder / "files.json.sig").write_bytes(sign_report(listed, key))
    keys = [{"key_id": key.key_id, "public": key.public.hex(), "use": "reports"}]
    (site / "keys.json").write_bytes(canonical.encode({"schema": KEYS_SCHEMA, "keys": keys}))
    return canonical.sha256_hex(listed)


def _sync(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
