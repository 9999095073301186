# SPDX-License-Identifier: Apache-2.0
"""The JSON Schema (2020-12) of `report.json`, built from the enums of `claims.py`.

Rules kept here:
* no number and no integer type anywhere: every figure about the system is a string with a pattern;
* every object is closed (`additionalProperties: false`) and every property is required;
* state, certainty, change, reasons and status of a claim are tied together, so that a wrong combination is refused.
"""

from __future__ import annotations

from typing import Any

from windvane_privacy.catalogue import KINDS, OTHER, POOLED, SIGNALS
from windvane_privacy.claims import (
    DIRECTIONS,
    LETTERS,
    REASON_ORDER,
    Certainty,
    Change,
    ConfStatus,
    ObsStatus,
    Reason,
    State,
    reason_obs,
    reason_state,
)

GATE_RULES: tuple[str, ...] = tuple(f"F{i}" for i in range(1, 11))
GATE_RESULTS: tuple[str, ...] = ("pass", "fail", "not_run")
PUBLISHED_KINDS: tuple[str, ...] = (POOLED, *(kind for kind in KINDS if kind != OTHER))

QUARTER = r"^[0-9]{4}-Q[1-4]$"
HASH = r"^[0-9a-f]{64}$"
TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$"
FAMILY = r"^[a-z0-9]+(?:[.-][a-z0-9]+)*$"
LABEL = r"^[^%#<>]{1,40}$"
RHO = r"^[0-9]+(?:/[1-9][0-9]*)?$"
EPSILON = r"^[0-9]+\.[0-9]{3}$"
DELTA = r"^[0-9](?:\.[0-9]+)?(?:e-[0-9]+)?$"
CLAIM_ADDRESS = r"^[0-9]{4}-q[1-4]\.[a-z]+\.[a-z-]+\.[a-z0-9-]+$"
SENTENCE = r"^[A-Z][^0-9%#<>]{1,240}\.$"

Schema = dict[str, Any]


def report_schema() -> Schema:
    """The schema of a whole report; `$id` is the path under which the site serves it."""
    loss = _object({"a": _text(EPSILON), "c": _text(EPSILON)})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "schema/report-1.json",
        **_object(
            {
                "schema": {"const": "windvane/report/v1"},
                "report_id": _text(r"^windvane-[0-9]{4}-Q[1-4]$"),
                "revision": _text(r"^r[0-9]+$"),
                "quarter": _text(QUARTER),
                "window": _object({"from": _text(TIME), "to": _text(TIME)}),
                "published": _text(TIME),
                "demo": {"type": "boolean"},
                "not_opened": _maybe(SENTENCE),
                "method": _object(
                    {
                        "version": _text(r"^[0-9A-Za-z.+-]{1,40}$"),
                        "rules_sha256": _text(HASH),
                        "code_sha256": _text(HASH),
                        "stage": {"enum": ["1", "2"]},
                        "preregistration_sha256": _text(HASH),
                        "opening": {"enum": ["cross_checked", "two_guardians", None]},
                        "lot_proof": _maybe(HASH),
                        "sealed_sums_sha256": _maybe(HASH),
                        "wording_version": _text(r"^[0-9]+$"),
                    }
                ),
                "kinds": {"type": "array", "items": {"enum": list(PUBLISHED_KINDS)}, "uniqueItems": True},
                "models": {
                    "type": "array",
                    "items": _object(
                        {
                            "id": _text(FAMILY),
                            "label": _text(LABEL),
                            "provider": _text(r"^[^%#<>]{1,80}$"),
                            "version_note": _maybe(r"^[^%#<>]{1,200}$"),
                            "first_seen_quarter": _maybe(QUARTER),
                        }
                    ),
                },
                "claims": {"type": "array", "items": claim_schema()},
                "changes": {"type": "array", "items": _text(CLAIM_ADDRESS), "uniqueItems": True},
                "privacy": _object(
                    {
                        "unit": {"const": "one person in one organisation"},
                        "adjacency": {"const": "add or remove"},
                        "rho": _text(RHO),
                        "delta": _text(DELTA),
                        "quarter": _object(
                            {
                                "a": _text(EPSILON),
                                "a_plus": _text(EPSILON),
                                "b": {
                                    "type": "array",
                                    "items": _object({"honest": _text(r"^[0-9]+$"), "epsilon": _text(EPSILON)}),
                                },
                                "c": _text(EPSILON),
                                "replace_one": _text(EPSILON),
                            }
                        ),
                        "four_quarters": loss,
                        "twelve_quarters": loss,
                        "lifetime": _object({"cap": _text(RHO), "a": _text(EPSILON), "c": _text(EPSILON)}),
                    }
                ),
                "gate": _object({rule: {"enum": list(GATE_RESULTS)} for rule in GATE_RULES}),
                "previous_sha256": _maybe(HASH),
            }
        ),
    }


def claim_schema() -> Schema:
    """The schema of one claim, with one `if`/`then` per state."""
    return {
        **_object(
            {
                "kind": {"enum": list(PUBLISHED_KINDS)},
                "signal": {"enum": [signal.value for signal in SIGNALS]},
                "a": _text(FAMILY),
                "b": _text(FAMILY),
                "state": {"enum": [state.value for state in State]},
                "certainty": {"enum": [*(word.value for word in Certainty), None]},
                "since_quarter": _maybe(QUARTER),
                "called_quarter": _maybe(QUARTER),
                "change": {"enum": [change.value for change in Change]},
                "reasons": {
                    "type": "array",
                    "items": {"enum": [reason.value for reason in REASON_ORDER]},
                    "uniqueItems": True,
                },
                "obs_status": {"enum": [status.value for status in ObsStatus]},
                "conf_status": {"enum": [status.value for status in ConfStatus]},
            }
        ),
        "if": {"properties": {"state": {"enum": sorted(state.value for state in DIRECTIONS)}}},
        "then": {
            "properties": {
                "certainty": {"enum": [word.value for word in Certainty]},
                "since_quarter": {"type": "string"},
                "called_quarter": {"type": "string"},
                "reasons": {"maxItems": 0},
                "obs_status": {"const": ObsStatus.DIRECTION.value},
                "change": {"not": {"const": Change.ENDED.value}},
            }
        },
        "else": {
            "properties": {
                "certainty": {"const": None},
                "since_quarter": {"const": None},
                "called_quarter": {"const": None},
                "change": {"enum": [Change.FIRST_MEASURED.value, Change.KEPT.value, Change.ENDED.value]},
            }
        },
        "allOf": [
            {
                "if": {"properties": {"state": {"const": State.NO_CLEAR_DIRECTION.value}}},
                "then": {"properties": {"reasons": {"maxItems": 0}, "obs_status": {"const": ObsStatus.NONE.value}}},
            },
            *(_silent(state) for state in (State.NOT_ENOUGH_DATA, State.WITHHELD, State.NOT_COMPARED)),
        ],
    }


def _silent(state: State) -> Schema:
    firsts = [reason for reason in LETTERS if reason_state(reason) is state]
    return {
        "if": {"properties": {"state": {"const": state.value}}},
        "then": {
            "properties": {"reasons": {"minItems": 1}},
            "anyOf": [_first_reason(reason) for reason in firsts],
        },
    }


def _first_reason(reason: Reason) -> Schema:
    return {
        "properties": {
            "reasons": {"prefixItems": [{"const": reason.value}]},
            "obs_status": {"const": reason_obs(reason).value},
        }
    }


def _object(properties: Schema) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _text(pattern: str) -> Schema:
    return {"type": "string", "pattern": pattern}


def _maybe(pattern: str) -> Schema:
    return {"type": ["string", "null"], "pattern": pattern}
