# SPDX-License-Identifier: Apache-2.0
"""The built site: what each page says, that every link resolves, and that the lint finds nothing."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from string import Formatter

import msgspec
import pytest

from manifests import coordinator_key, make_manifest
from report_world import all_facts, demo_manifest, real_manifest, simulated_sums
from windvane_privacy.catalogue import Signal
from windvane_privacy.claims import (
    DIRECTIONS,
    GLOSS,
    PARENTHESIS,
    Certainty,
    Change,
    Reason,
    State,
    measured_claim,
    silent_claim,
)
from windvane_privacy.direction import directions
from windvane_privacy.errors import ReportError
from windvane_privacy.report_file import build_report, history_of, read_report
from windvane_privacy.site_lint import DIRECTION_STEMS, Names, forbidden_words, lint_file, lint_site
from windvane_server.report import build_site, wording
from windvane_server.report.render import SHEET
from windvane_server.report.site import site_files

WORLD = {"alder-4": 0.6, "birch-2": 0.0, "cedar-5": 0.3, "elm-3.5": 0.28, "oak-1": -0.4}
MANIFEST = demo_manifest()
SUMS = simulated_sums(MANIFEST, WORLD, seed=3, silent=("blind_quality",))
REPORT = read_report(
    build_report(directions(SUMS, MANIFEST, all_facts(MANIFEST), None), MANIFEST, previous_sha256=None)
)
FILES = site_files(REPORT, MANIFEST, ())
PAGES = {path: raw.decode() for path, raw in FILES.items() if path.endswith(".html")}
LABELS = {"alder": "Alder 4", "elm": "Elm 3.5"}


class Links(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.tags: list[str] = []
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.tags.append(tag)
        self.ids |= {values["id"]} if "id" in values else set()
        self.targets += [values[name] for name in ("href", "src") if name in values]


def test_lint_finds_nothing_on_the_built_site(tmp_path):
    build_site(REPORT, MANIFEST, (), tmp_path)
    assert lint_site(tmp_path) == []


def test_every_relative_link_leads_to_a_file_of_the_site():
    signed = {"2026-q3/report.json.sig", "2026-q3/files.json", "2026-q3/files.json.sig", "keys.json"}
    known = set(FILES) | signed
    for path, text in PAGES.items():
        found = Links(text)
        for target in found.targets:
            if target.startswith(("https:", "#")):
                continue
            where = Path("/" + path).parent.joinpath(target.split("#")[0])
            assert str(Path(re.sub(r"/[^/]+/\.\.", "", _flat(str(where))))).lstrip("/") in known, (path, target)


def _flat(path: str) -> str:
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)


def test_every_page_is_sound_html_with_the_demo_banner():
    for path, text in PAGES.items():
        found = Links(text)
        assert '<html lang="en">' in text
        assert found.tags.count("h1") == 1, path
        assert found.tags.count("main") == 1
        assert text.count(wording.MESSAGES["demo"]) == 1, path
        assert 'class="skip" href="#content"' in text
        assert "content" in found.ids
        assert found.tags.count("table") == found.tags.count("caption")
        levels = [int(tag[1]) for tag in found.tags if re.fullmatch(r"h[1-6]", tag)]
        assert levels[0] == 1
        assert all(after - before <= 1 for before, after in pairwise(levels)), path
        assert not re.search(r"<th(?![^>]*scope=)[ >]", text)


def test_round_that_is_no_demonstration_has_no_banner():
    manifest = real_manifest()
    sums = simulated_sums(manifest, dict.fromkeys(manifest.catalogue.ids, 0.0), seed=1)
    report = read_report(
        build_report(directions(sums, manifest, all_facts(manifest), None), manifest, previous_sha256=None)
    )
    for path, raw in site_files(report, manifest, ()).items():
        if path.endswith(".html"):
            assert b"Demonstration" not in raw
    kind = site_files(report, manifest, ())["2026-q3/all/index.html"].decode()
    assert wording.MESSAGES["no_direction_here"] in kind


def test_pages_stay_small():
    for path, text in PAGES.items():
        limit = 48_000 if re.fullmatch(r"[^/]+/[a-z]+/index\.html", path) and "/all/" in path else 20_000
        assert len(text.encode()) < limit, path
    assert len(SHEET) < 6_000


def test_pages_of_eight_models_and_a_third_kind_stay_small(tmp_path):
    manifest = make_manifest(members=200, demo=False, people=200_000, k=8, kinds=("coding", "analysis", "writing"))
    strength = {family: place / 5 for place, family in enumerate(manifest.catalogue.ids)}
    sums = simulated_sums(manifest, strength, seed=2)
    report = read_report(
        build_report(directions(sums, manifest, all_facts(manifest), None), manifest, previous_sha256=None)
    )
    build_site(report, manifest, (), tmp_path)
    assert lint_site(tmp_path) == []
    assert (tmp_path / "index.html").stat().st_size < 20_000
    for kind in manifest.kinds:
        assert (tmp_path / "2026-q3" / kind / "index.html").stat().st_size < 90_000


def test_each_claim_stands_on_its_kind_page_and_its_pair_page():
    kind = PAGES["2026-q3/all/index.html"]
    for claim in REPORT.claims:
        pair = PAGES[f"2026-q3/all/{claim.a.replace('.', '-')}--{claim.b.replace('.', '-')}/index.html"]
        text = wording.sentence(claim, REPORT.labels, REPORT.quarter)
        assert text in kind
        assert text in pair
        if claim.state in DIRECTIONS:
            assert GLOSS[Certainty.MODERATE] in text


def test_index_asks_the_question_first_and_says_nothing_about_a_direction():
    text = PAGES["index.html"]
    assert not any(stem in text for stem in ("met fewer", "more often than", "preferred"))
    assert text.index("Choose a kind of work") < text.index("Alder 4 and Birch 2")
    assert text.count("--") == 10 + text.count("<!--")
    assert "withheld/index.html" in text[: text.index("Choose a kind")]
    assert wording.MESSAGES["scope"] in text


def test_stage_one_is_said_wherever_claims_are_shown():
    for path in ("2026-q3/all/index.html", "2026-q3/all/alder-4--birch-2/index.html", "index.html"):
        assert wording.MESSAGES["stage_one"] in PAGES[path]
    second = demo_manifest(stage="2")
    report = read_report(build_report(directions(SUMS, second, all_facts(second), None), second, previous_sha256=None))
    assert wording.MESSAGES["stage_one"] not in site_files(report, second, ())["index.html"].decode()


def test_withheld_page_lists_every_silent_cell():
    text = PAGES["2026-q3/withheld/index.html"]
    silent = [claim for claim in REPORT.claims if claim.letter]
    assert {claim.letter for claim in silent} == {"x", "z"}
    for claim in silent:
        assert wording.sentence(claim, REPORT.labels, REPORT.quarter) in text
    assert "No kind of work is withheld as a whole." in text


def test_privacy_page_has_the_figures_of_the_report():
    text = PAGES["privacy/index.html"]
    for value in (REPORT.privacy["rho"], *(REPORT.privacy["quarter"][n] for n in ("a", "a_plus", "c", "replace_one"))):
        assert value in text
    assert f"<td>{REPORT.privacy['lifetime']['c']}</td>" in text


def test_tables_are_a_lower_triangle_with_arrows_that_are_not_read_out():
    text = PAGES["2026-q3/all/index.html"]
    table = text[text.index('<table class="tri">') :].split("</table>")[0]
    rows = re.findall(r"<tr><th scope=\"row\">(.*?)</th>(.*?)</tr>", table)
    assert [row[1].count("<td") for row in rows] == [1, 2, 3, 4]
    assert text.count("↑") + text.count("←") + text.count("→") == text.count('class="vane" aria-hidden="true"')


def test_rebuild_gives_the_same_bytes():
    assert site_files(REPORT, MANIFEST, ()) == FILES


def test_history_is_told_in_words_with_links_to_the_old_pages(tmp_path):
    following = demo_manifest(round="2026-Q4")
    claims = directions(SUMS, following, all_facts(following), history_of([REPORT]))
    second = read_report(build_report(claims, following, previous_sha256="ab" * 32))
    build_site(REPORT, MANIFEST, (), tmp_path)
    build_site(second, following, (REPORT,), tmp_path)
    text = (tmp_path / "2026-q4/all/alder-4--birch-2/index.html").read_text()
    assert '<a href="../../../2026-q3/all/alder-4--birch-2/index.html">2026 Q3: toward Alder 4</a>' in text
    assert "2026-q3/index.html" in (tmp_path / "index.html").read_text()
    assert lint_site(tmp_path) == []


def test_round_that_was_not_opened_has_one_page_that_says_why(tmp_path):
    why = "Fewer organisations took part than the agreement of this quarter demands, so nothing was opened."
    report = read_report(build_report((), MANIFEST, previous_sha256=None, not_opened=why))
    build_site(report, MANIFEST, (), tmp_path)
    for path in ("index.html", "2026-q3/index.html"):
        text = (tmp_path / path).read_text()
        assert why in text
        assert "<table" not in text
        assert wording.MESSAGES["demo"] in text
    assert not list((tmp_path / "2026-q3").glob("all*"))
    assert lint_site(tmp_path) == []


def test_manifest_of_another_round_is_refused(tmp_path):
    with pytest.raises(ReportError):
        build_site(REPORT, demo_manifest(round="2026-Q4"), (), tmp_path)


# --- wording ---------------------------------------------------------------------------------------------------------


def toward(signal: Signal, state: State, called: str = "2026-Q3", word: Certainty = Certainty.MODERATE):
    key = ("all", signal.value, "alder", "elm")
    return measured_claim(key, state, Change.KEPT, certainty=word, since="2026-Q1", called=called)


@pytest.mark.parametrize("signal", list(Signal))
def test_swapping_the_direction_swaps_the_sentence_but_not_the_first_name(signal):
    one = wording.sentence(toward(signal, State.TOWARD_A), LABELS, "2026-Q3")
    other = wording.sentence(toward(signal, State.TOWARD_B), LABELS, "2026-Q3")
    assert one != other
    if signal is not Signal.BLIND_QUALITY:
        assert one.index("Alder 4 and Elm 3.5") == other.index("Alder 4 and Elm 3.5")
    assert sorted(one) == sorted(other)


@pytest.mark.parametrize("signal", list(Signal))
@pytest.mark.parametrize("word", list(Certainty))
def test_gloss_is_part_of_each_directional_sentence_and_the_lint_misses_it_if_gone(signal, word):
    text = wording.sentence(toward(signal, State.TOWARD_A, word=word), LABELS, "2026-Q3")
    assert f"{word.value} ({GLOSS[word]})" in text
    assert any(stem in text for stem in DIRECTION_STEMS)
    names = Names({"alder-4": "Alder 4", "elm-3.5": "Elm 3.5"})
    assert lint_file("q/index.html", f"<p>{text}</p>".encode(), names) == set()
    assert lint_file("q/index.html", f"<p>{text.replace(GLOSS[word], 'surely')}</p>".encode(), names) == {"gloss"}


def test_kept_direction_says_from_when():
    text = wording.sentence(toward(Signal.COMPLETION, State.TOWARD_B, called="2026-Q2"), LABELS, "2026-Q3")
    assert text.endswith("goes the wrong way; kept from 2026 Q2, not measured as clearly this quarter).")


@pytest.mark.parametrize("reason", list(Reason))
def test_each_reason_has_a_sentence_with_its_letter(reason):
    claim = silent_claim(("all", "completion", "alder", "elm"), [reason], Change.KEPT)
    text = wording.sentence(claim, LABELS, "2026-Q3")
    assert f"[{claim.letter}]" in text
    assert "Alder 4" in text
    assert "Elm 3.5" in text


def test_no_message_holds_a_figure_a_word_of_victory_or_an_unknown_placeholder():
    allowed = {"kind", "a", "b", "to", "from", "certainty", "quarter", "gloss"}
    for message in wording.MESSAGES.values():
        assert not forbidden_words(message)
        assert not any(character.isdigit() for character in message)
        assert {name for _, name, _, _ in Formatter().parse(message) if name} <= allowed
    assert PARENTHESIS in wording.MESSAGES["none"]


def test_label_with_markup_signs_is_escaped():
    models = tuple(msgspec.structs.replace(m, label=m.label.replace("Alder", 'A"&der')) for m in REPORT.models)
    files = site_files(msgspec.structs.replace(REPORT, models=models), MANIFEST, ())
    assert b"A&#34;&amp;der 4" in files["2026-q3/models/index.html"]
    assert b'A"&der' not in files["2026-q3/all/index.html"]


def test_keys_of_the_coordinator_are_not_in_the_pages():
    for text in PAGES.values():
        assert coordinator_key().raw.hex() not in text
