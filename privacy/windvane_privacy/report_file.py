# SPDX-License-Identifier: Apache-2.0
"""`report.json`: the one file that a quarter comes down to, its signature, and the check of both.

Rules kept here:
* RFC 8785 canonical bytes with no number token; figures about the system are strings;
* a pure function of claims, manifest and earlier reports: same input, same bytes, on any machine;
* reports form a chain, each names the hash of the one before;
* a round that was not opened gives a report with one sentence why, never an empty table;
* what is read back is checked again, claim by claim: only `read_report` and `verify_report` make a `Report`;
* a model's label holds no praise, and labels and ids have one order.

docs/protocol.md has the fields and the signature.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import NoReturn

import msgspec

from windvane_privacy import canonical
from windvane_privacy.budget import guarantees, loss
from windvane_privacy.catalogue import SIGNALS, Family
from windvane_privacy.claims import DIRECTIONS, Change, Claim, check_claim
from windvane_privacy.errors import MalformedInput, ReportError, ReportSignatureInvalid, SignatureInvalid
from windvane_privacy.identity import KEY_ED25519, SigningKey, key_id, verify
from windvane_privacy.manifest import Manifest
from windvane_privacy.report_schema import GATE_RULES, HASH, LABEL, QUARTER, SENTENCE
from windvane_privacy.rules import code_sha256, rules_sha256
from windvane_privacy.site_lint import forbidden_words, slug
from windvane_privacy.transitions import PreviousReport, previous_of, quarter_number, quarter_of

SCHEMA = "windvane/report/v1"
SIGNATURE_SCHEMA = "windvane/signature/v1"
FILES_SCHEMA = "windvane/files/v1"
LABEL_REPORT = b"windvane/1/report\0"
WORDING_VERSION = "1"
OPENINGS = ("cross_checked", "two_guardians")
LIFETIME_CAP = Fraction(9, 32)
"""Lifetime cap of a member's default policy; a member may have a lower one."""
MAX_REPORT_BYTES = 1 << 22


class Window(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"from_": "from"}):
    """Half-open interval of the events."""

    from_: str
    to: str


class Method(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """By what the claims were made; hashes are hex SHA-256. `stage`: "1" without range proofs, "2" with them.
    `opening`: "cross_checked" when a third guardian's shares agree, "two_guardians" when nobody could compare, null
    when the round was not opened."""

    version: str
    rules_sha256: str
    code_sha256: str
    stage: str
    preregistration_sha256: str
    opening: str | None
    lot_proof: str | None
    sealed_sums_sha256: str | None
    wording_version: str


class ReportModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model family as the report names it."""

    id: str
    label: str
    provider: str
    version_note: str | None
    first_seen_quarter: str | None


class Report(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A whole report; docs/protocol.md has the meaning of each field. `not_opened`: the sentence why there are no
    claims, null where there are."""

    schema: str
    report_id: str
    revision: str
    quarter: str
    window: Window
    published: str
    demo: bool
    not_opened: str | None
    method: Method
    kinds: tuple[str, ...]
    models: tuple[ReportModel, ...]
    claims: tuple[Claim, ...]
    changes: tuple[str, ...]
    privacy: dict[str, canonical.JsonValue]
    gate: dict[str, str]
    previous_sha256: str | None

    @property
    def labels(self) -> dict[str, str]:
        """Label by family id."""
        return {model.id: model.label for model in self.models}


def check_catalogue(families: Sequence[Family]) -> None:
    """Refuse a catalogue that cannot be published; called before a round is opened, and again for its report.

    Raises:
        ReportError: a label holds praise, a figure sign or markup; two ids share a path; ids and labels have
            two orders.
    """
    by_id = sorted(families, key=lambda family: family.id)
    if len({slug(family.id) for family in by_id}) != len(by_id):
        raise ReportError("Two ids of the catalogue give one path.")
    if any(not re.fullmatch(LABEL[1:-1], f.label) or forbidden_words(f.label) for f in by_id):
        raise ReportError("A label of the catalogue holds praise, a sign of a figure, or markup.")
    if by_id != sorted(families, key=lambda family: slug(family.label)):
        raise ReportError("Ids and labels of the catalogue are not in one order.")


def claim_address(quarter: str, claim: Claim) -> str:
    """Stable, readable name of a claim: `2027-q1.coding.switch-away.alder-4--elm-3-5`."""
    signal = claim.signal.value.replace("_", "-")
    return f"{quarter.lower()}.{claim.kind}.{signal}.{slug(claim.a)}--{slug(claim.b)}"


def build_report(
    claims: Sequence[Claim],
    manifest: Manifest,
    *,
    previous_sha256: str | None,
    not_opened: str | None = None,
    crosschecked: bool = False,
    lot_proof: str | None = None,
    sealed_sums_sha256: str | None = None,
) -> bytes:
    """The canonical bytes of `report.json`.

    Args:
        claims: from `direction.directions`; empty exactly when `not_opened` is given.
        manifest: the agreement of the round.
        previous_sha256: hash of the report before; null for the first.
        not_opened: one sentence why the round was not opened.
        crosschecked: a third guardian's shares agree with the sums.
        lot_proof: hash of the log entry that fixed the lot.
        sealed_sums_sha256: commitment to the sums, see `seal`.

    Raises:
        ReportError: the report would break one of its rules.
    """
    quarter = quarter_of(manifest)
    families = _published_families(manifest) if claims else ()
    check_catalogue(families)
    report = Report(
        schema=SCHEMA,
        report_id=f"windvane-{quarter}",
        revision="r0",
        quarter=quarter,
        window=Window(manifest.events.from_, manifest.events.to),
        published=manifest.publish_at,
        demo=manifest.demo,
        not_opened=not_opened,
        method=Method(
            version=version("windvane"),
            rules_sha256=rules_sha256(manifest.rules),
            code_sha256=code_sha256(),
            stage=manifest.stage,
            preregistration_sha256=manifest.sha256,
            opening=None if not_opened is not None else (OPENINGS[0] if crosschecked else OPENINGS[1]),
            lot_proof=lot_proof,
            sealed_sums_sha256=sealed_sums_sha256,
            wording_version=WORDING_VERSION,
        ),
        kinds=manifest.kinds,
        models=tuple(ReportModel(f.id, f.label, f.vendor, None, _first_seen(f)) for f in families),
        claims=tuple(claims),
        changes=tuple(claim_address(quarter, claim) for claim in claims if claim.change is not Change.KEPT),
        privacy=privacy_figures(manifest),
        gate=dict.fromkeys(GATE_RULES, "not_run"),
        previous_sha256=previous_sha256,
    )
    _check(report)
    return canonical.encode(msgspec.to_builtins(report))


def privacy_figures(manifest: Manifest) -> dict[str, canonical.JsonValue]:
    """rho, delta and the epsilons of the guarantees as strings, rounded up; (c) always stands beside (a)."""
    found, h, delta = guarantees(manifest), manifest.noise.h, manifest.noise.delta

    def both(rho: Fraction) -> dict[str, str]:
        return {"a": loss(rho, delta).text, "c": loss(rho * h, delta).text}

    return {
        "unit": "one person in one organisation",
        "adjacency": "add or remove",
        "rho": str(manifest.rho),
        "delta": delta,
        "quarter": {
            "a": found.a.text,
            "a_plus": found.a_plus.text,
            "b": [{"honest": str(honest), "epsilon": each.text} for honest, each in found.b],
            "c": found.c.text,
            "replace_one": found.replace_one.text,
        },
        "four_quarters": both(4 * manifest.rho),
        "twelve_quarters": both(12 * manifest.rho),
        "lifetime": {"cap": str(LIFETIME_CAP), **both(LIFETIME_CAP)},
    }


def seal(sums: bytes, salt: bytes) -> str:
    """Commitment to the canonical sums: hex SHA-256(salt || sums), with a salt of 32 random bytes.

    Raises:
        ReportError: another length of salt.
    """
    if len(salt) != 32:
        raise ReportError("The salt of the sealed sums has not 32 bytes.")
    return canonical.sha256_hex(salt + sums)


def read_report(raw: bytes) -> Report:
    """A report whose parts agree; its signature is another matter, see `verify_report`.

    Raises:
        MalformedInput: not canonical, a number token, a field missing, unknown or contradicting another.
    """
    value = canonical.decode(raw, max_bytes=MAX_REPORT_BYTES)
    json.loads(raw, parse_int=_no_number, parse_float=_no_number, parse_constant=_no_number)
    try:
        report = msgspec.convert(value, Report)
        _check(report)
    except (msgspec.ValidationError, ReportError):
        raise MalformedInput("The report contradicts its own form.") from None
    return report


def history_of(reports: Sequence[Report]) -> PreviousReport | None:
    """What the decision rule needs of the earlier reports, oldest first; null when none has claims.

    Raises:
        ReportError: not in the order of their quarters.
    """
    return previous_of((report.quarter, report.claims) for report in reports)


def sign_report(raw: bytes, key: SigningKey) -> bytes:
    """The signature file of `report.json` or `files.json`: canonical JSON with key id and signature, hex."""
    signature = key.sign(LABEL_REPORT, bytes.fromhex(canonical.sha256_hex(raw)))
    return canonical.encode({"schema": SIGNATURE_SCHEMA, "key": key.key_id, "sig": signature.hex()})


def verify_report(raw: bytes, sig: bytes, public: bytes) -> Report:
    """A sound report that this key signed.

    Args:
        raw: bytes of `report.json`.
        sig: bytes of `report.json.sig`.
        public: the coordinator's public key, 32 bytes, from a trusted place.

    Raises:
        ReportSignatureInvalid: signed by another key, or altered.
        MalformedInput: a file is not of its form.
    """
    verify_file(raw, sig, public)
    return read_report(raw)


def verify_file(raw: bytes, sig: bytes, public: bytes) -> None:
    """Return if `sig` is this key's signature file for `raw`.

    Raises:
        ReportSignatureInvalid: it is not.
        MalformedInput: it is no signature file.
    """
    value = canonical.decode(sig, max_bytes=1024)
    if not isinstance(value, dict) or set(value) != {"schema", "key", "sig"} or value["schema"] != SIGNATURE_SCHEMA:
        raise MalformedInput("The signature file has another form.")
    if not isinstance(value["sig"], str) or not re.fullmatch(r"[0-9a-f]{128}", value["sig"]):
        raise MalformedInput("The signature file has another form.")
    if value["key"] != key_id(KEY_ED25519, public):
        raise ReportSignatureInvalid("It was made with another key.")
    try:
        verify(public, bytes.fromhex(value["sig"]), LABEL_REPORT, bytes.fromhex(canonical.sha256_hex(raw)))
    except SignatureInvalid:
        raise ReportSignatureInvalid from None


def files_json(quarter: str, files: Sequence[tuple[str, bytes]]) -> bytes:
    """`files.json`: path and SHA-256 of every file of the quarter, by path; one signature covers all pages."""
    listed = [{"path": path, "sha256": canonical.sha256_hex(raw)} for path, raw in sorted(files)]
    return canonical.encode({"schema": FILES_SCHEMA, "quarter": quarter, "files": listed})


def verify_quarter(folder: Path, public: bytes) -> Report:
    """The report of a quarter's folder, after every file in it was compared with the signed list.

    Raises:
        ReportSignatureInvalid: a signature does not fit, or a file is missing, altered or was added.
        MalformedInput: a file is not of its form.
    """
    contents = {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    try:
        report = verify_report(contents["report.json"], contents["report.json.sig"], public)
        verify_file(contents["files.json"], contents["files.json.sig"], public)
    except KeyError:
        raise ReportSignatureInvalid("A signed file is missing.") from None
    here = [(path, raw) for path, raw in contents.items() if path not in ("files.json", "files.json.sig")]
    if files_json(report.quarter, here) != contents["files.json"]:
        raise ReportSignatureInvalid("A file is missing, altered or was added.")
    return report


def _no_number(_token: str) -> NoReturn:
    raise MalformedInput("a report holds no number")


def _published_families(manifest: Manifest) -> tuple[Family, ...]:
    compared = set(manifest.pair_source.order)
    return tuple(sorted((f for f in manifest.families if f.id in compared), key=lambda family: family.id))


def _first_seen(family: Family) -> str | None:
    if family.valid_from is None:
        return None
    year, month = family.valid_from[:4], int(family.valid_from[5:7])
    return f"{year}-Q{(month - 1) // 3 + 1}"


def _check(report: Report) -> None:
    for broken, why in (
        (report.schema != SCHEMA, "The report is of another version."),
        (not re.fullmatch(QUARTER[1:-1], report.quarter), "The quarter is malformed."),
        (report.report_id != f"windvane-{report.quarter}", "The report's name does not fit its quarter."),
        (bool(report.claims) == (report.not_opened is not None), "A report has either claims or the reason why not."),
        (
            report.not_opened is not None
            and (not re.fullmatch(SENTENCE[1:-1], report.not_opened) or forbidden_words(report.not_opened)),
            "The reason why there are no claims is not one plain sentence without figures.",
        ),
        (not all(re.fullmatch(HASH[1:-1], h) for h in _hashes(report)), "A hash of the report is malformed."),
        (
            (report.method.opening in OPENINGS) != (report.not_opened is None),
            "The report does not say how its sums were opened.",
        ),
        (set(report.gate) != set(GATE_RULES), "The gate does not list its rules."),
        ([m.id for m in report.models] != sorted({m.id for m in report.models}), "The models are not in order."),
        (not _ordered(report), "The claims are not in order, or speak of something that is not listed."),
        (not _changes_fit(report), "The list of changes does not follow from the claims."),
    ):
        if broken:
            raise ReportError(why)
    for claim in report.claims:
        check_claim(claim)
        if claim.state in DIRECTIONS and (
            quarter_number(claim.since_quarter or "") > quarter_number(claim.called_quarter or "")
            or quarter_number(claim.called_quarter or "") > quarter_number(report.quarter)
        ):
            raise ReportError("The quarters of a direction are not in order.")


def _hashes(report: Report) -> list[str]:
    method = report.method
    optional = (method.lot_proof, method.sealed_sums_sha256, report.previous_sha256)
    always = (method.rules_sha256, method.code_sha256, method.preregistration_sha256)
    return [*always, *(value for value in optional if value is not None)]


def _ordered(report: Report) -> bool:
    models = {model.id for model in report.models}
    kinds = {kind: place for place, kind in enumerate(report.kinds)}
    places = []
    for claim in report.claims:
        if claim.kind not in kinds or not {claim.a, claim.b} <= models:
            return False
        places.append((kinds[claim.kind], SIGNALS.index(claim.signal), claim.a, claim.b))
    return places == sorted(set(places))


def _changes_fit(report: Report) -> bool:
    expected = [claim_address(report.quarter, c) for c in report.claims if c.change is not Change.KEPT]
    return list(report.changes) == expected
