# SPDX-License-Identifier: Apache-2.0
"""A growth curve as a plain SVG.

Rules kept here:
* both axes begin at zero and are linear, so that a straight line means growth in proportion;
* every point carries its number; nothing is smoothed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 680, 360, 70, 60, 56
COLOURS = ("#1f5fa8", "#b4541a", "#4a7d2c")


def curve(title: str, across: str, up: str, lines: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """The plot of some lines of (x, y) points by name."""
    most_x = max(x for points in lines.values() for x, _ in points)
    most_y = 1.15 * max(y for points in lines.values() for _, y in points)

    def at(x: float, y: float) -> tuple[float, float]:
        width, height = WIDTH - LEFT - 40, HEIGHT - BOTTOM - TOP
        return round(LEFT + width * x / most_x, 1), round(HEIGHT - BOTTOM - height * y / most_y, 1)

    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
            'font-size="12">'
        ),
        f"<title>{title}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<path d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - 20}" fill="none" stroke="#555555"/>',
        f'<text x="{LEFT - 55}" y="18" font-size="14">{title}</text>',
    ]
    for number, (name, points) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(f"{x},{y}" for x, y in (at(*point) for point in points))
        parts += [
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>',
            f'<text x="{LEFT + 12}" y="{TOP + 2 + 16 * number}" fill="{colour}">{name}</text>',
        ]
        for x, y in points:
            left, high = at(x, y)
            parts += [
                f'<circle cx="{left}" cy="{high}" r="3" fill="{colour}"/>',
                f'<text x="{left}" y="{high - 8}" text-anchor="middle" fill="{colour}">{y:.2f}</text>',
            ]
    for x, _ in next(iter(lines.values())):
        parts.append(f'<text x="{at(x, 0)[0]}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{x:,.0f}</text>')
    parts += [
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 14}" text-anchor="middle">{across}</text>',
        f'<text x="{LEFT - 55}" y="{TOP - 14}">{up}</text>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"
