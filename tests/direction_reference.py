# SPDX-License-Identifier: Apache-2.0
"""A second, naive implementation of the decision rule, written from its description and sharing no code with it.

Rules kept here:
* exact fractions as far as they go; the tail of Student's t by numerical integration, not by the closed form;
* the table of quarters is a table, row by row;
* it reads plain dictionaries (the form of the shipped vectors), not the manifest.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

SIGNALS = ("completion", "switch_away", "tool_reliability", "infra_recovery", "blind_quality")
PRECEDENCE = ("version_break", "too_new", "too_few_orgs", "too_few_people", "not_selected")
STATE_OF = {
    "version_break": "withheld",
    "too_new": "withheld",
    "too_few_orgs": "not_enough_data",
    "too_few_people": "not_enough_data",
    "not_selected": "not_compared",
}


def tail(t: float, freedom: int = 14, steps: int = 4_000) -> float:
    """Two-sided tail of Student's t: 1 minus Simpson's rule over the density from -|t| to |t|."""
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    width = abs(t) / steps
    values = [scale * (1 + (i * width) ** 2 / freedom) ** (-(freedom + 1) / 2) for i in range(steps + 1)]
    inside = width / 3 * math.fsum(v * (1 if i in (0, steps) else 4 if i % 2 else 2) for i, v in enumerate(values))
    return 1 - 2 * inside


def decide(case: dict[str, Any]) -> dict[tuple[str, str, str, str], dict[str, Any]]:
    """Expected fields of every claim of a vector, by (kind, signal, a, b)."""
    c = case["constants"]
    scale = Fraction(c["s"] ** 2, c["h"])
    sizes = case["sizes"]
    accepted, G = sum(sizes), len(sizes)
    cells = {(e["kind"], e["signal"], e["a"], e["b"]): (e["d"], e["t"]) for e in case["cells"]}
    order = sorted(cells, key=lambda key: (SIGNALS.index(key[1]), c["kinds"].index(key[0]), key[2], key[3]))
    figures: dict[Any, dict[str, Any]] = {}
    reasons: dict[Any, set[str]] = {}
    for key in order:
        d, t = cells[key]
        D, T = Fraction(sum(d), 12), Fraction(sum(t), 5)
        own = [Fraction(x, 12) for x in d]
        spread = sum((x - D / G) ** 2 for x in own) / (G - 1)
        V0 = max(T, 0) / G + sum(m * scale / 144 for m in sizes) / G
        figures[key] = {"D": D, "T": T, "s2": spread, "V0": V0, "d": d, "t": t}
        a, b = key[2:]
        tied = {(x["a"], x["b"]): x["organisations"] for x in case["tied"]}.get((a, b), 0)
        found = set()
        if {a, b} & set(case["breaks"]):
            found.add("version_break")
        if min(case["available_days"][a], case["available_days"][b]) < 45:
            found.add("too_new")
        if accepted - tied < c["pair_floor"]:
            found.add("too_few_orgs")
        if float(T) < 30 + math.sqrt(scale * accepted) / 5:
            found.add("too_few_people")
        reasons[key] = found
    for kind in c["kinds"]:
        eligible = [key for key in order if key[0] == kind and not reasons[key]]
        if len(eligible) < 5:
            for key in eligible:
                reasons[key].add("too_few_people")
    eligible = [key for key in order if not reasons[key]]
    groups: dict[tuple[str, str], list[Fraction]] = {}
    for key in eligible:
        groups.setdefault(key[:2], []).append(figures[key]["s2"] / figures[key]["V0"])
    phi = {group: max(1, sum(r) / len(r)) for group, r in groups.items()}
    largest = max(phi.values(), default=Fraction(1))
    share = math.sqrt(c["s"] ** 2 / c["h"])
    lie = c["C"] + math.ceil(10 * share) / 12
    for key in eligible:
        f = figures[key]
        used = phi[key[:2]] if len(groups[key[:2]]) >= 8 else largest
        f["se"] = math.sqrt(G * (4 * f["s2"] + 10 * used * f["V0"]) / 14)
        f["tv"] = float(f["D"]) / f["se"]
        f["p"] = tail(f["tv"])
    ranked = sorted(eligible, key=lambda key: figures[key]["p"])
    last = max((i for i, key in enumerate(ranked, 1) if figures[key]["p"] <= 0.1 * i / len(ranked)), default=0)
    passing = set(ranked[:last])
    out = {}
    previous = {tuple(e["key"]): e for e in case["previous"]["claims"]} if case["previous"] else {}
    for key in order:
        f = figures[key]
        call = firm = None
        if key in passing:
            sign = 1 if f["D"] > 0 else -1
            same = sum(x * sign > 0 for x in f["d"])
            gap = abs(float(f["D"]))
            if abs(f["D"]) * 10 >= f["T"] and same >= 4 and gap - lie >= 2.33 * f["se"]:
                call = "toward_a" if sign > 0 else "toward_b"
                strict = f["p"] <= 0.05 / len(eligible) and same == 5 and gap - 2 * lie >= 2.33 * f["se"]
                firm = strict and c["stage"] == "2"
        out[key] = _claim(key, f, reasons[key], call, firm, previous, case)
    k = sorted(c["order"])
    for kind in c["kinds"]:
        for signal in SIGNALS:
            for i, a in enumerate(k):
                for b in k[i + 1 :]:
                    if (kind, signal, a, b) not in out:
                        key = (kind, signal, a, b)
                        out[key] = _claim(key, {}, {"not_selected"}, None, None, previous, case)
    return out


def _age(now: str, then: str) -> int:
    return 4 * (int(now[:4]) - int(then[:4])) + int(now[6]) - int(then[6])


def _claim(key: Any, f: Any, why: set[str], call: Any, firm: Any, previous: Any, case: Any) -> dict[str, Any]:
    now = case["quarter"]
    before = previous.get(key)
    was = before["state"] if before and before["state"].startswith("toward") else None
    series = before is not None and before["state"] != "not_compared" and "version_break" not in before["reasons"]
    base = {"certainty": None, "since_quarter": None, "called_quarter": None}
    if why:
        ordered = [reason for reason in PRECEDENCE if reason in why]
        gone = why & {"version_break", "not_selected"}
        known = before is not None if gone else series
        change = "ended" if was else "kept" if known else "first_measured"
        return {"state": STATE_OF[ordered[0]], **base, "change": change, "reasons": ordered}
    leaning = ("toward_a" if f["D"] > 0 else "toward_b") if abs(f["tv"]) > 1 else None
    if call and was in (None, call):
        since = before["since_quarter"] if was else now
        change = "kept" if was else "new" if series else "first_measured"
        word = "firm" if firm else "moderate"
        return {
            "state": call,
            "certainty": word,
            "since_quarter": since,
            "called_quarter": now,
            "change": change,
            "reasons": [],
        }
    if not call and was and leaning == was and _age(now, before["called_quarter"]) <= 2:
        fields = {name: before[name] for name in ("since_quarter", "called_quarter")}
        return {"state": was, "certainty": "moderate", **fields, "change": "kept", "reasons": []}
    change = "ended" if was else "kept" if series else "first_measured"
    return {"state": "no_clear_direction", **base, "change": change, "reasons": []}
