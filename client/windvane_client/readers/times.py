# SPDX-License-Identifier: Apache-2.0
"""Times that a log writes as a number or as text.

Rules kept here:
* a number is in s, ms, µs or ns by its magnitude; a text is RFC 3339 (a missing zone is UTC) or such a number;
* what cannot be read, is before 2020 or is more than a day ahead is no time.
"""

from __future__ import annotations

from windvane_client.readers.lines import plausible, rfc3339_micros

_SCALES = ((1e17, 1e-3), (1e14, 1.0), (1e11, 1e3))


def micros(raw: float | str | None, now: int) -> int | None:
    """µs UTC; None where it is no plausible time."""
    if isinstance(raw, str):
        text = raw.strip()
        try:
            value: float | int | None = float(text) if text and text[0].isdigit() and "-" not in text else None
        except ValueError:
            value = None
        ts = rfc3339_micros(text) if value is None else _scaled(value)
    else:
        ts = None if raw is None or isinstance(raw, bool) else _scaled(raw)
    return ts if plausible(ts, now) else None


def _scaled(value: float) -> int | None:
    if not 0 < value < 1e20:
        return None
    for least, factor in _SCALES:
        if value > least:
            return value if factor == 1.0 and isinstance(value, int) else round(value * factor)
    return round(value * 1e6)
