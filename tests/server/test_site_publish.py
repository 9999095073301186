# SPDX-License-Identifier: Apache-2.0
"""Publication: signed, linted, swapped in whole, and earlier quarters keep their bytes."""

from __future__ import annotations

import hashlib
import json
import shutil

import msgspec
import pytest
from typer.testing import CliRunner

from manifests import coordinator_key, guardian_key
from report_world import FAMILIES, all_facts, demo_manifest, simulated_sums
from windvane import audit
from windvane_privacy import canonical
from windvane_privacy.direction import PublicFacts
from windvane_privacy.errors import KeyRefused, LintFailed, ReportError, ReportSignatureInvalid, RoundNotOpened
from windvane_privacy.identity import SigningKey
from windvane_privacy.report_file import read_report, verify_file, verify_quarter
from windvane_server.report import publish, publish_round

WORLD = {"alder-4": 0.6, "birch-2": 0.0, "cedar-5": 0.3, "elm-3.5": 0.28, "oak-1": -0.4}
KEY = coordinator_key()


def publish_demo(out, *, history=(), seed=3, **changes):
    previous = canonical.sha256_hex(history[-1]) if history else None
    manifest = demo_manifest(previous_report=previous, **changes)
    sums = simulated_sums(manifest, WORLD, seed)
    return publish_round(
        out, manifest=manifest, sums=sums, facts=all_facts(manifest), history=history, key=KEY, salt=bytes(32)
    )


def everything(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture
def site(tmp_path):
    publish_demo(tmp_path / "site")
    return tmp_path / "site"


def test_signature_list_of_files_and_hashes_agree(tmp_path):
    done = publish_demo(tmp_path / "site")
    quarter = done.folder / "2026-q3"
    report = verify_quarter(quarter, KEY.public)
    assert report == read_report(done.report)
    assert done.report_sha256 == canonical.sha256_hex((quarter / "report.json").read_bytes())
    assert done.files_sha256 == canonical.sha256_hex((quarter / "files.json").read_bytes())
    verify_file((quarter / "files.json").read_bytes(), (quarter / "files.json.sig").read_bytes(), KEY.public)
    assert json.loads((quarter / "sealed.json").read_bytes())["sha256"] == report.method.sealed_sums_sha256
    assert json.loads((done.folder / "keys.json").read_bytes())["keys"][0]["public"] == KEY.public.hex()


def test_nothing_but_the_site_is_left_behind(site):
    assert [path.name for path in site.parent.iterdir()] == ["site"]


def test_one_flipped_byte_in_any_file_of_the_quarter_is_found(site):
    quarter = site / "2026-q3"
    for path in sorted(quarter.rglob("*")):
        if path.is_file():
            raw = path.read_bytes()
            path.write_bytes(bytes([raw[0] ^ 1]) + raw[1:])
            with pytest.raises((ReportSignatureInvalid, Exception)) as caught:
                verify_quarter(quarter, KEY.public)
            assert type(caught.value).__name__ in {"ReportSignatureInvalid", "MalformedInput"}, path
            path.write_bytes(raw)
    verify_quarter(quarter, KEY.public)


def test_added_or_missing_file_is_found(site):
    quarter = site / "2026-q3"
    (quarter / "extra.html").write_text("x")
    with pytest.raises(ReportSignatureInvalid):
        verify_quarter(quarter, KEY.public)
    (quarter / "extra.html").unlink()
    shutil.rmtree(quarter / "withheld")
    with pytest.raises(ReportSignatureInvalid):
        verify_quarter(quarter, KEY.public)
    (quarter / "report.json.sig").unlink()
    with pytest.raises(ReportSignatureInvalid):
        verify_quarter(quarter, KEY.public)


def test_earlier_quarter_keeps_its_bytes(tmp_path):
    first = publish_demo(tmp_path / "site")
    before = everything(first.folder / "2026-q3")
    second = publish_demo(tmp_path / "site", history=(first.report,), round="2026-Q4", seed=4)
    assert everything(second.folder / "2026-q3") == before
    verify_quarter(second.folder / "2026-q3", KEY.public)
    assert read_report(second.report).previous_sha256 == first.report_sha256
    assert "2026 Q4" in (second.folder / "index.html").read_text()


def test_publishing_again_changes_nothing(site):
    before = everything(site)
    publish_demo(site)
    assert everything(site) == before


def test_same_quarter_with_other_content_is_refused(site):
    before = everything(site)
    with pytest.raises(ReportError):
        publish_demo(site, seed=99)
    assert everything(site) == before


def publish_next(site, previous):
    report = (site / "2026-q3" / "report.json").read_bytes()
    manifest = demo_manifest(round="2026-Q4", previous_report=previous)
    sums = simulated_sums(manifest, WORLD, 3)
    return publish_round(site, manifest=manifest, sums=sums, facts=all_facts(manifest), history=(report,), key=KEY)


def test_manifest_that_names_an_unknown_report_is_refused(site):
    before = everything(site)
    with pytest.raises(ReportError):
        publish_next(site, "ab" * 32)
    assert everything(site) == before


def test_manifest_signed_before_the_last_report_came_out_is_published(site):
    earlier = (site / "2026-q3" / "report.json").read_bytes()
    publish_next(site, None)
    latest = json.loads((site / "2026-q4" / "report.json").read_bytes())
    assert latest["previous_sha256"] == hashlib.sha256(earlier).hexdigest()


def test_lint_stops_publication_and_what_is_served_stays(site):
    # A provider called like a word of victory, which no check of labels sees.
    families = tuple(msgspec.structs.replace(f, vendor="Winners") for f in FAMILIES)
    before = everything(site)
    report = (site / "2026-q3" / "report.json").read_bytes()
    with pytest.raises(ReportError):
        publish_demo(
            site,
            history=(report,),
            round="2026-Q4",
            families=[msgspec.structs.replace(f, label="Top") for f in families],
        )
    (site / "2026-q3" / "stray.html").write_text("<p>Alder 4 scores</p>")
    with pytest.raises(LintFailed):
        publish_demo(site, history=(report,), round="2026-Q4")
    (site / "2026-q3" / "stray.html").unlink()
    assert everything(site) == before
    assert [path.name for path in site.parent.iterdir()] == ["site"]


def test_publication_that_was_killed_between_its_renames_is_repaired(site):
    report = (site / "2026-q3" / "report.json").read_bytes()
    before = everything(site / "2026-q3")
    site.rename(site.with_name(".site.old"))
    (site.with_name(".site.new")).mkdir()
    publish_demo(site, history=(report,), round="2026-Q4")
    assert everything(site / "2026-q3") == before
    assert [path.name for path in site.parent.iterdir()] == ["site"]


def test_round_below_its_floors_publishes_the_reason(tmp_path):
    manifest = demo_manifest()
    given = {"manifest": manifest, "facts": PublicFacts(), "history": (), "key": KEY}
    done = publish_round(tmp_path / "site", sums=None, not_opened="too_few_organisations", **given)
    report = read_report(done.report)
    assert report.not_opened == publish.NOT_OPENED["too_few_organisations"]
    assert report.not_opened in (done.folder / "index.html").read_text()
    verify_quarter(done.folder / "2026-q3", KEY.public)
    for wrong in ({"sums": None}, {"sums": simulated_sums(manifest, WORLD, 3), "not_opened": "aborted"}):
        with pytest.raises(ReportError):
            publish_round(tmp_path / "other", **wrong, **given)
    assert not (tmp_path / "other").exists()


def test_sums_below_the_floors_are_never_published(tmp_path):
    manifest = demo_manifest()
    sums = simulated_sums(manifest, WORLD, 3)
    small = msgspec.structs.replace(manifest, floors=msgspec.structs.replace(manifest.floors, accepted=41))
    with pytest.raises(RoundNotOpened):
        publish_round(tmp_path / "site", manifest=small, sums=sums, facts=all_facts(small), history=(), key=KEY)


# --- windvane audit --------------------------------------------------------------------------------------------------


def run(*arguments):
    return CliRunner().invoke(audit.app, [str(argument) for argument in arguments])


def test_audit_site_finds_nothing_and_then_what_was_seeded(site):
    assert run("site", site).exit_code == 0
    (site / "index.html").write_text("<p>Alder 4 has 12</p>")
    failed = run("site", site, "--json")
    assert isinstance(failed.exception, LintFailed)
    assert json.loads(failed.stdout) == {"findings": [{"path": "index.html", "rule": "figure"}]}


def test_audit_verifies_a_report_with_a_key_from_elsewhere(site):
    file = site / "2026-q3" / "report.json"
    result = run("verify-report", file, "--key", KEY.public.hex(), "--json")
    assert result.exit_code == 0
    value = json.loads(result.stdout)
    assert value["report"] == "windvane-2026-Q3"
    assert value["demo"] is value["key_was_given"] is value["pages_checked"] is True
    assert isinstance(
        run("verify-report", file, "--key", guardian_key(1).public.hex()).exception, ReportSignatureInvalid
    )
    assert isinstance(run("verify-report", file, "--key", "zz").exception, KeyRefused)
    assert "demonstration" in run("verify-report", site / "2026-q3").stdout


def test_audit_says_when_the_key_came_with_the_site(site):
    assert "came with the site" in run("verify-report", site / "2026-q3" / "report.json").stdout
    (site / "2026-q3" / "all" / "index.html").write_text("<p>x</p>")
    assert isinstance(run("verify-report", site / "2026-q3" / "report.json").exception, ReportSignatureInvalid)


def test_audit_checks_a_report_alone(site, tmp_path):
    for name in ("report.json", "report.json.sig"):
        shutil.copy(site / "2026-q3" / name, tmp_path / name)
    result = run("verify-report", tmp_path / "report.json", "--key", KEY.public.hex(), "--json")
    assert json.loads(result.stdout)["pages_checked"] is False
    other = SigningKey.generate()
    assert run("verify-report", tmp_path / "report.json", "--key", other.public.hex()).exit_code != 0


@pytest.mark.parametrize(
    ("crosschecked", "word", "said"),
    [(True, "cross_checked", "a third guardian's shares agree"), (False, "two_guardians", "not cross-checked")],
)
def test_report_says_whether_a_third_guardian_checked_the_sums(tmp_path, crosschecked, word, said):
    manifest = demo_manifest()
    sums = simulated_sums(manifest, WORLD, 3)
    publish_round(
        tmp_path / "site", manifest=manifest, sums=sums, facts=all_facts(manifest), history=(), key=KEY,
        crosschecked=crosschecked,
    )  # fmt: skip
    report = json.loads((tmp_path / "site" / "2026-q3" / "report.json").read_bytes())
    assert report["method"]["opening"] == word
    page = (tmp_path / "site" / "method" / "index.html").read_text(encoding="utf-8")
    assert said in page.replace("&#39;", "'")
