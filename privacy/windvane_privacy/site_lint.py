# SPDX-License-Identifier: Apache-2.0
"""A crawler over a published site that must find nothing: no figure, no order and no page about one model.

Rules kept here:
* masked first: model labels (longest first), dates, quarters, SHA-256, log indices; only what a reader can see or hear
  counts, not markup;
* a file that names a model holds no digit, no per cent, no word of victory; those words live on the method page only;
* nothing is keyed by one model: no path, no anchor, no JSON key; a path names two models or none;
* only a pair page may be about one pair: elsewhere no model takes part in everything that is said;
* each directional sentence holds its gloss, each "no clear direction" its parenthesis, and no model's name is set bold;
* no script, no inline style, no form, no frame, no address outside the site but the licence;
* `report.json` holds no number token, and its claims are in their order;
* there is no allow-list of exceptions, and a file of an unknown type is a finding.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import NoReturn

from windvane_privacy.canonical import JsonValue
from windvane_privacy.catalogue import SIGNALS
from windvane_privacy.claims import GLOSS, PARENTHESIS, REASON_ORDER

LICENCE_URL = "https://creativecommons.org/licenses/by/4.0/"
ALLOWED_URLS = frozenset({LICENCE_URL})
DIRECTION_STEMS = ("more often than", "more often with", "fewer wrong tool calls", "preferred")
"""Each directional sentence holds one of them; a test compares them with the wording."""
NONE_STEM = "no clear direction between"
METHOD_FOLDER = "method"
UNREAD_SUFFIXES = frozenset({".sig"})
REPORT_PARTS = ("claims", "models", "kinds", "changes", "not_opened")
"""Parts of report.json that speak of models; the figures about the system stand in the others."""

_WORDS = re.compile(
    r"\b(?:rank\w*|scor\w*|win|wins|winn\w*|best|worst|top|leader\w*|beat\w*|elo|league|crown\w*|points?|number one)\b"
    r"|#\s?\d",
    re.IGNORECASE,
)
_PER_CENT = re.compile(r"[%‰]|\bper\s?cent\b", re.IGNORECASE)
_MONTH = "(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_MASKED = re.compile(
    r"\b\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}:\d{2}Z)?\b"
    rf"|\b(?:\d{{1,2}} )?{_MONTH} \d{{4}}\b"
    r"|\b\d{4}[- ][Qq][1-4]\b"
    r"|\b[0-9a-f]{64}\b|\bstyle\.[0-9a-f]{16}\.css\b"
    r"|\blog/\d+\b"
    r"|\bwindvane/[a-z-]+/v\d+\b"
)
_CSS_ADDRESS = re.compile(r"@import|url\(\s*['\"]?\s*(?!data:)(?:[a-z]+:)?//", re.IGNORECASE)
_ADDRESS = re.compile(r"^\s*(?:[a-z][a-z0-9+.-]*:|//)", re.IGNORECASE)
_ACTIVE = frozenset(
    {"script", "style", "form", "iframe", "object", "embed", "base", "frame", "applet", "foreignobject"}
)
_BOLD = frozenset({"b", "strong", "em", "mark", "i", "big"})
_INLINE = _BOLD | frozenset({"a", "span", "abbr", "small", "code", "time", "wbr", "q", "cite", "sup", "sub", "tspan"})
_HEARD = ("alt", "title", "aria-label", "placeholder", "content")
_SPOKEN_META = frozenset({"description", "author", "keywords"})
_ADDRESSES = ("href", "src", "srcset", "action", "poster", "data", "cite", "xlink:href", "ping", "manifest")
_VOID = frozenset({"meta", "link", "img", "br", "hr", "input", "wbr", "source", "col"})
_LABEL_MARK, _OTHER_MARK = "\ue000", "\ue001"


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """A broken rule and the file (relative path) that breaks it."""

    path: str
    rule: str


class Names:
    """The models that a site may name: label by id, and their providers, whose own names may hold digits."""

    def __init__(self, labels: Mapping[str, str], providers: Iterable[str] = ()) -> None:
        self.labels = dict(labels)
        self.slugs = frozenset(slug(family) for family in labels)
        self._written = {
            form.casefold(): family for family, label in labels.items() for form in (label, family, slug(family))
        }
        self._names = re.compile(rf"(?<![0-9a-z])(?:{_any_of(self._written)})(?![0-9a-z])", re.IGNORECASE)
        self._providers = re.compile(rf"(?<!\w)(?:{_any_of(providers)})(?!\w)")
        self._one = re.compile(rf"(?:^|-)(?:{_any_of(self.slugs)})(?:-|$)")

    def mask(self, text: str) -> tuple[str, list[str]]:
        """The text without names, dates, quarters and hashes, and the ids it named, in order of occurrence."""
        named: list[str] = []

        def name(match: re.Match[str]) -> str:
            named.append(self._written[match[0].casefold()])
            return _LABEL_MARK

        text = self._providers.sub(_OTHER_MARK, self._names.sub(name, text))
        return _MASKED.sub(_OTHER_MARK, text), named

    def keyed_by_one(self, text: str) -> bool:
        """Whether an identifier contains a model and is not exactly a pair of two."""
        parts = text.split("--")
        if len(parts) == 2 and parts[0] != parts[1] and self.slugs.issuperset(parts):
            return False
        return self._one.search(slug(text)) is not None


def _any_of(forms: Iterable[str]) -> str:
    """A pattern of these words, longest first; one that matches nothing where there are none."""
    return "|".join(re.escape(form) for form in sorted(filter(None, forms), key=len, reverse=True)) or "(?!)"


def slug(family: str) -> str:
    """A family id as part of a path: letters, digits and single hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", family.casefold()).strip("-")


def forbidden_words(text: str) -> bool:
    """Whether a text holds a word of order or victory, or a per cent."""
    return bool(_WORDS.search(text) or _PER_CENT.search(text))


def lint_site(folder: Path, names: Mapping[str, str] | None = None) -> list[Finding]:
    """Everything that a built site must not hold, sorted; empty is good.

    Args:
        folder: the site.
        names: label by family id; added to those of the site's own reports.
    """
    files = sorted(path for path in folder.rglob("*") if not path.is_dir())
    models = _models_of(files)
    labels = {**{model["id"]: model["label"] for model in models}, **(names or {})}
    known = Names(labels, frozenset(model["provider"] for model in models))
    found: set[Finding] = set()
    for path in files:
        relative = path.relative_to(folder).as_posix()
        found.update(Finding(relative, rule) for rule in _lint_path(relative, known))
        if path.is_symlink():
            found.add(Finding(relative, "unknown-file"))
        else:
            found.update(Finding(relative, rule) for rule in lint_file(relative, path.read_bytes(), known))
    return sorted(found)


def lint_file(relative: str, raw: bytes, names: Names) -> set[str]:
    """Names of the rules that one file breaks.

    Args:
        relative: path inside the site, with `/`.
        raw: content.
        names: the models of the site.
    """
    suffix = Path(relative).suffix
    if suffix in UNREAD_SUFFIXES and not relative.endswith(".json.sig"):
        return {"unknown-file"}
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return {"unreadable"}
    if suffix in (".html", ".svg"):
        return _lint_markup(relative, text, names)
    if suffix == ".json" or relative.endswith(".json.sig"):
        return _lint_json(relative, text, names)
    if suffix == ".css":
        _masked, named = names.mask(text)
        broken = {"external-address": _CSS_ADDRESS.search(text) is not None, "one-model-anchor": bool(named)}
        return {rule for rule, holds in broken.items() if holds}
    return {"unknown-file"}


def _models_of(files: Iterable[Path]) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
    for path in files:
        if path.name == "report.json" and not path.is_symlink():
            try:
                models = json.loads(path.read_bytes())["models"]
                found += [{part: str(model[part]) for part in ("id", "label", "provider")} for model in models]
            except (ValueError, KeyError, TypeError):
                # The file itself becomes a finding when it is read for its own sake.
                continue
    return found


def _lint_path(relative: str, names: Names) -> Iterator[str]:
    if any(names.keyed_by_one(part.removesuffix(".html")) for part in relative.split("/")):
        yield "one-model-path"


# --- text ------------------------------------------------------------------------------------------------------------


def _lint_text(relative: str, blocks: Sequence[str], names: Names) -> set[str]:
    """Rules about what is said: figures, words, glosses, and how often one model occurs."""
    rules: set[str] = set()
    pairs: list[frozenset[str]] = []
    named_any = directional = False
    masked_blocks: list[str] = []
    for block in blocks:
        masked, named = names.mask(block)
        masked_blocks.append(masked)
        named_any = named_any or bool(named)
        about = frozenset(named)
        lowered = block.casefold()
        if len(about) == 2:
            pairs.append(about)
            if any(stem in lowered for stem in DIRECTION_STEMS):
                directional = True
                if not any(gloss in block for gloss in GLOSS.values()):
                    rules.add("gloss")
        if NONE_STEM in lowered and PARENTHESIS not in block:
            rules.add("parenthesis")
    whole = " \n".join(masked_blocks)
    if named_any and any(unicodedata.category(character).startswith("N") for character in whole):
        rules.add("figure")
    if named_any and _PER_CENT.search(whole):
        rules.add("figure")
    if _WORDS.search(whole) and (named_any or METHOD_FOLDER not in Path(relative).parts[:-1]):
        rules.add("word")
    on_pair_page = any("--" in part for part in Path(relative).parts)
    if directional and not on_pair_page and len(pairs) >= 2 and frozenset.intersection(*pairs):
        rules.add("one-model-page")
    return rules


# --- markup ----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Seen:
    blocks: list[str] = field(default_factory=list)
    bold: list[str] = field(default_factory=list)
    identifiers: list[str] = field(default_factory=list)
    addresses: list[str] = field(default_factory=list)
    active: bool = False


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.seen = _Seen()
        self._block: list[str] = []
        self._bold = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _INLINE:
            self.flush()
        if tag in _BOLD:
            self._bold += 1
        self.seen.active |= tag in _ACTIVE
        values = {name: value or "" for name, value in attrs}
        self.seen.active |= any(name == "style" or name.startswith("on") for name in values)
        self.seen.active |= tag == "meta" and "http-equiv" in values
        self.seen.blocks.extend(
            values[name]
            for name in _HEARD
            if name in values and (name != "content" or values.get("name") in _SPOKEN_META)
        )
        self.seen.addresses.extend(values[name] for name in _ADDRESSES if name in values)
        for name, value in values.items():
            if name in ("id", "name", "for", "headers", "aria-labelledby") or name.startswith("data-"):
                self.seen.identifiers.extend(value.split())
            if name == "href" and "#" in value:
                self.seen.identifiers.append(value.split("#", 1)[1])

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in _INLINE:
            self.flush()
        if tag in _BOLD:
            self._bold = max(0, self._bold - 1)

    def handle_data(self, data: str) -> None:
        self._block.append(data)
        if self._bold:
            self.seen.bold.append(data)

    def flush(self) -> None:
        """End the present block of text."""
        text = " ".join("".join(self._block).split())
        if text:
            self.seen.blocks.append(text)
        self._block = []


def _lint_markup(relative: str, text: str, names: Names) -> set[str]:
    page = _Page()
    page.feed(text)
    page.close()
    page.flush()
    seen = page.seen
    rules = _lint_text(relative, seen.blocks, names)
    if seen.active:
        rules.add("active-content")
    if any(_ADDRESS.match(address) and address not in ALLOWED_URLS for address in seen.addresses):
        rules.add("external-address")
    if any(names.keyed_by_one(identifier) for identifier in seen.identifiers):
        rules.add("one-model-anchor")
    if any(names.mask(part)[1] for part in seen.bold):
        rules.add("bold-name")
    return rules


# --- JSON ------------------------------------------------------------------------------------------------------------


class _NumberToken(Exception):
    pass


def _no_number(_token: str) -> NoReturn:
    raise _NumberToken


def _lint_json(relative: str, text: str, names: Names) -> set[str]:
    own = Path(relative).name == "report.json"
    hook = _no_number if own else None
    try:
        value: JsonValue = json.loads(text, parse_int=hook, parse_float=hook, parse_constant=hook)
    except _NumberToken:
        return {"number-token"}
    except (ValueError, RecursionError):
        return {"unreadable"}
    rules: set[str] = set()
    keys = list(_keys(value))
    if any(names.keyed_by_one(key) for key in keys):
        rules.add("one-model-key")
    if own and isinstance(value, dict):
        if not _in_order(value):
            rules.add("claims-order")
        value = {part: value.get(part) for part in REPORT_PARTS}
    rules |= _lint_text(relative, list(_strings(value)), names)
    return rules


def _keys(value: JsonValue) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from _keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _keys(inner)


def _strings(value: JsonValue) -> Iterator[str]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)
    elif isinstance(value, bool) or value is None:
        return
    else:
        yield str(value)


def _in_order(report: dict[str, JsonValue]) -> bool:
    try:
        kinds, signals = list(report["kinds"]), [signal.value for signal in SIGNALS]
        reasons = [reason.value for reason in REASON_ORDER]
        places = [(kinds.index(c["kind"]), signals.index(c["signal"]), c["a"], c["b"]) for c in report["claims"]]
        listed = [[reasons.index(reason) for reason in c["reasons"]] for c in report["claims"]]
    except (KeyError, TypeError, ValueError):
        return False
    ordered = all(before < after for before, after in pairwise(places))
    return ordered and all(found == sorted(set(found)) for found in listed)
