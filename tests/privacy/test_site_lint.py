# SPDX-License-Identifier: Apache-2.0
"""One seeded file per rule of the lint: that rule finds it, and no other does."""

from __future__ import annotations

import json

import pytest

from windvane_privacy.site_lint import LICENCE_URL, Names, lint_file, lint_site

NAMES = Names({"alder-4": "Alder 4", "elm-3.5": "Elm 3.5", "oak-1": "Oak 1"}, frozenset({"01 Works"}))
GLOSS = "(at most about one such statement in twenty goes the wrong way)"
TOWARD = "people who used both {} and {} met fewer wrong tool calls with {} than with {}: moderate " + GLOSS + "."


def page(body: str, head: str = "") -> bytes:
    return f'<!doctype html><html lang="en"><head><title>Pairs</title>{head}</head><body>{body}</body></html>'.encode()


def said(a: str, b: str) -> str:
    return f"<p>{TOWARD.format(a, b, a, b)}</p>"


CLEAN = {
    "digits of labels": ("a/index.html", page("<p>Alder 4, Elm 3.5. Oak 1 and oak-1.</p>")),
    "dates and quarters": (
        "a/index.html",
        page("<p>Alder 4, 2026-07-01, 1 July 2026, July 2026, 2026 Q3, 2026-Q3</p>"),
    ),
    "hash and log index": ("a/index.html", page(f"<p>Alder 4 {'0a' * 32} log/217</p>")),
    "window and pointless": ("a/index.html", page("<p>Alder 4 in a window: winding, pointless, stopped.</p>")),
    "provider with digits": ("models/index.html", page("<td>Alder 4</td><td>01 Works</td>")),
    "figures without names": ("privacy/index.html", page("<p>epsilon 2.104</p>")),
    "denials on the method page": ("method/index.html", page("<p>No score, no rank, no top, 40 %.</p>")),
    "licence": ("a/index.html", page(f'<a href="{LICENCE_URL}">licence</a><p>Alder 4</p>')),
    "relative links": ("a/index.html", page('<a href="../x/index.html#switch-away">x</a><img src="y.svg" alt="">')),
    "pair anchor": ("a/index.html", page('<p id="alder-4--elm-3-5">Alder 4 and Elm 3.5</p>')),
    "pair page": ("a/alder-4--elm-3-5/index.html", page(said("Alder 4", "Elm 3.5") * 2)),
    "three pairs": (
        "a/index.html",
        page(said("Alder 4", "Oak 1") + said("Alder 4", "Elm 3.5") + said("Elm 3.5", "Oak 1")),
    ),
    "withheld page about one model": (
        "withheld/index.html",
        page("<p>Alder 4 or Oak 1 [x]</p><p>Alder 4 or Elm 3.5 [x]</p>"),
    ),
    "no clear direction": (
        "a/index.html",
        page("<p>No clear direction between Alder 4 and Oak 1 (this does not mean that they are equal).</p>"),
    ),
    "viewport": (
        "a/index.html",
        page("<p>Alder 4</p>", '<meta name="viewport" content="width=device-width, initial-scale=1">'),
    ),
    "style sheet": ("style.0123456789abcdef.css", b"body { margin: 0; background: url(data:image/png;base64,x) }"),
    "drawing": (
        "v.svg",
        b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><title>Alder 4</title><path d="M1 2"/></svg>',
    ),
}


@pytest.mark.parametrize(("path", "raw"), CLEAN.values(), ids=CLEAN.keys())
def test_clean_file_has_no_finding(path, raw):
    assert lint_file(path, raw, NAMES) == set()


SEEDED = {
    "decimal at the end of a sentence": ("figure", page("<p>Alder 4 is under CC BY 4.0.</p>")),
    "digit in alt text": ("figure", page('<p>Alder 4</p><img src="x.svg" alt="place 2">')),
    "digit in a title attribute": ("figure", page('<p title="3 pairs">Alder 4</p>')),
    "digit in a spoken label": ("figure", page('<p aria-label="3 pairs">Alder 4</p>')),
    "number beside a label": ("figure", page("<p>Alder 4 7</p>")),
    "longer version than the catalogue's": ("figure", page("<p>Alder 4.1</p>")),
    "digit of another script": ("figure", page("<p>Alder 4 ٣</p>")),
    "half": ("figure", page("<p>Alder 4 ½</p>")),
    "per cent in words": ("figure", page("<p>Alder 4, five per cent</p>")),
    "per cent sign": ("figure", page("<p>Alder 4, many %</p>")),
    "digit through an entity": ("figure", page("<p>Alder 4 &#55;</p>")),
    "ranking": ("word", page("<p>Alder 4 ranks</p>")),
    "victory": ("word", page("<p>Alder 4 wins</p>")),
    "point": ("word", page("<p>Alder 4 is ahead by a point</p>")),
    "number one": ("word", page("<p>Alder 4 is number one</p>")),
    "denial outside the method page": ("word", page("<p>there is no score</p>")),
    "directional sentence without gloss": (
        "gloss",
        page("<p>people used both Alder 4 and Oak 1 and finished with Alder 4 more often than with Oak 1</p>"),
    ),
    "gloss in the next block": ("gloss", page(f"<p>people preferred Alder 4 to Oak 1</p><p>{GLOSS}</p>")),
    "none without parenthesis": ("parenthesis", page("<p>No clear direction between Alder 4 and Oak 1.</p>")),
    "one model in all claims": ("one-model-page", page(said("Alder 4", "Elm 3.5") + said("Alder 4", "Oak 1"))),
    "anchor of one model": ("one-model-anchor", page('<p id="alder-4">x</p>')),
    "fragment of one model": ("one-model-anchor", page('<a href="x.html#about-oak-1">x</a>')),
    "data attribute of one model": ("one-model-anchor", page('<p data-model="elm-3-5">x</p>')),
    "bold name": ("bold-name", page("<p><strong>Alder 4</strong> and Oak 1</p>")),
    "script": ("active-content", page("<script>x</script>")),
    "inline style": ("active-content", page('<p style="color:red">x</p>')),
    "style element": ("active-content", page("<style>p{}</style>")),
    "handler": ("active-content", page('<p onclick="x">x</p>')),
    "form": ("active-content", page("<form></form>")),
    "frame": ("active-content", page('<iframe src="x.html"></iframe>')),
    "refresh": ("active-content", page("x", '<meta http-equiv="refresh" content="x">')),
    "external link": ("external-address", page('<a href="https://example.org/">x</a>')),
    "external image": ("external-address", page('<img src="//example.org/x.png" alt="">')),
    "script address": ("external-address", page('<a href="javascript:x">x</a>')),
}


@pytest.mark.parametrize(("rule", "raw"), SEEDED.values(), ids=SEEDED.keys())
def test_seeded_page_is_found_by_its_rule_alone(rule, raw):
    assert lint_file("q/index.html", raw, NAMES) == {rule}


REPORT = {
    "models": [{"id": i, "label": label, "provider": "01 Works"} for i, label in NAMES.labels.items()],
    "kinds": ["all"],
    "changes": [],
    "not_opened": None,
    "claims": [
        {"kind": "all", "signal": "completion", "a": "alder-4", "b": b, "reasons": []} for b in ("elm-3.5", "oak-1")
    ],
}
OTHER_FILES = {
    "number token": ("q/report.json", {**REPORT, "x": 1}, "number-token"),
    "float": ("q/report.json", {**REPORT, "x": 0.5}, "number-token"),
    "claims out of order": ("q/report.json", {**REPORT, "claims": REPORT["claims"][::-1]}, "claims-order"),
    "reasons out of order": (
        "q/report.json",
        {**REPORT, "claims": [{**REPORT["claims"][0], "reasons": ["too_new", "version_break"]}]},
        "claims-order",
    ),
    "model as a key": ("q/x.json", {"alder-4": "x"}, "one-model-key"),
    "slug as a key": ("q/x.json", {"elm-3-5": "x"}, "one-model-key"),
    "number beside a name": ("q/x.json", {"pair": "Alder 4", "n": 3}, "figure"),
    "figure as text": ("q/x.json", {"pair": "Alder 4", "n": "3"}, "figure"),
}


@pytest.mark.parametrize(("path", "value", "rule"), OTHER_FILES.values(), ids=OTHER_FILES.keys())
def test_seeded_json_is_found_by_its_rule_alone(path, value, rule):
    assert lint_file(path, json.dumps(value).encode(), NAMES) == {rule}


def test_sound_report_has_no_finding():
    assert lint_file("q/report.json", json.dumps(REPORT).encode(), NAMES) == set()


UNREADABLE = {
    "text file": ("q/x.txt", b"x", {"unknown-file"}),
    "signature of nothing": ("q/x.sig", b"x", {"unknown-file"}),
    "not UTF-8": ("q/x.html", b"\xff", {"unreadable"}),
    "not JSON": ("q/x.json", b"{", {"unreadable"}),
    "imported style": ("x.css", b"@import 'x.css';", {"external-address"}),
    "style from elsewhere": ("x.css", b"p { background: url( 'https://example.org/x' ) }", {"external-address"}),
    "style of one model": ("x.css", b".oak-1 { color: red }", {"one-model-anchor"}),
}


@pytest.mark.parametrize(("path", "raw", "rules"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_file_that_is_not_understood_is_a_finding(path, raw, rules):
    assert lint_file(path, raw, NAMES) == rules


@pytest.mark.parametrize(
    "path",
    [
        "oak-1/index.html",
        "q/oak-1.html",
        "q/about-elm-3-5/index.html",
        "q/oak-1--oak-1/x.html",
        "q/oak-1--elm-3-5--alder-4/x.html",
    ],
)
def test_path_that_is_keyed_by_one_model_is_found(tmp_path, path):
    target = tmp_path / path
    target.parent.mkdir(parents=True)
    target.write_bytes(page("<p>words</p>"))
    assert {finding.rule for finding in lint_site(tmp_path, NAMES.labels)} == {"one-model-path"}


def test_names_come_from_the_reports_of_the_site_itself(tmp_path):
    (tmp_path / "2026-q3" / "alder-4--elm-3-5").mkdir(parents=True)
    (tmp_path / "2026-q3" / "report.json").write_text(json.dumps(REPORT))
    (tmp_path / "2026-q3" / "alder-4--elm-3-5" / "index.html").write_bytes(page("<p>Alder 4 and Elm 3.5</p>"))
    assert lint_site(tmp_path) == []
    (tmp_path / "index.html").write_bytes(page("<p>Alder 4: 12</p>"))
    assert [(finding.path, finding.rule) for finding in lint_site(tmp_path)] == [("index.html", "figure")]


def test_link_out_of_the_site_is_a_finding(tmp_path):
    (tmp_path / "x.html").symlink_to("/etc/hostname")
    assert {finding.rule for finding in lint_site(tmp_path)} == {"unknown-file"}
