# SPDX-License-Identifier: Apache-2.0
"""Peak memory of a whole preview for homes of several sizes, and its plot.

Rules kept here:
* each preview runs in a process of its own; workers count as if all had their peak at once;
* the plot is a plain SVG with the numbers in it.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from contenders import preview

from windvane_client.file_workers import cores

WIDTH, HEIGHT, LEFT, BOTTOM = 640, 320, 70, 60
LIMIT_MB = 500


def peak_of_preview(folder: Path) -> float:
    """Largest resident memory of one preview, in MB, its workers included."""
    done = subprocess.run([sys.executable, __file__, str(folder)], capture_output=True, text=True, check=True)
    return round(float(done.stdout), 1)


def _measured(folder: Path) -> float:
    preview(folder)
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    one = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / unit
    return own + cores() * one


def plot(peaks: Mapping[int, float]) -> str:
    """The plot: size of the home in MB against peak memory in MB."""
    largest = max(peaks)
    top = max(LIMIT_MB, 1.1 * max(peaks.values()))

    def x(megabytes: float) -> float:
        return round(LEFT + (WIDTH - LEFT - 40) * megabytes / largest, 1)

    def y(memory: float) -> float:
        return round(HEIGHT - BOTTOM - (HEIGHT - BOTTOM - 30) * memory / top, 1)

    points = sorted(peaks.items())
    line = " ".join(f"{x(size)},{y(peak)}" for size, peak in points)
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
            'font-size="13">'
        ),
        "<title>Peak memory of a preview against the size of the home</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<path d="M{LEFT} 30V{HEIGHT - BOTTOM}H{WIDTH - 20}" fill="none" stroke="#555555"/>',
        f'<polyline points="{line}" fill="none" stroke="#1f5fa8" stroke-width="2"/>',
    ]
    for size, peak in points:
        parts += [
            f'<circle cx="{x(size)}" cy="{y(peak)}" r="4" fill="#1f5fa8"/>',
            f'<text x="{x(size)}" y="{y(peak) - 10}" text-anchor="middle">{peak:.0f} MB</text>',
            f'<text x="{x(size)}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{size}</text>',
        ]
    for memory in range(0, int(top) + 1, 100):
        parts.append(f'<text x="{LEFT - 8}" y="{y(memory) + 4}" text-anchor="end">{memory}</text>')
    parts += [
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 14}" text-anchor="middle">size of the home, MB</text>',
        f'<text x="{LEFT - 50}" y="20">peak memory of all processes, MB</text>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    print(_measured(Path(sys.argv[1])))
