"""Line charts as SVG, drawn by hand: crisp on paper, in the page's own colours, without a script.

Everything is a function of the points alone; coordinates have one decimal.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from kakehashi.insight.report.labels import figure

WIDTH, HEIGHT = 340, 190
RIGHT, TOP, BOTTOM = 20, 10, 34
LETTER = 7
"""Width of a digit in a wide face, in the style's size of letters."""
POINTS = 240
"""Most points of a line; more are drawn as the means of neighbours."""

Points = Sequence[tuple[int, float]]


@dataclass(frozen=True)
class Line:
    """One of the lines of a chart."""

    name: str
    points: Points
    """Update and value, in the order of updates."""


def chart(title: str, lines: Sequence[Line], name: str, digits: int = 2) -> str:
    """A figure with all lines over the same updates; empty where no line has a point.

    Args:
        title: what is shown, with its unit.
        lines: up to three; drawn full, dashed and dotted.
        name: a word for the ids in it.
        digits: decimals of the values that are told in words.
    """
    lines = [line for line in lines if line.points]
    if not lines:
        return ""
    updates = [update for line in lines for update, _ in line.points]
    values = [value for line in lines for _, value in line.points]
    across = _ticks(min(0, *updates), max(updates), 4, least=1)  # there is no half an update
    up = _ticks(min(values), max(values), 4)
    beside = [_label(value, up) for value in up]
    edge = LETTER * max(4, *map(len, beside)) + 10
    frame = _Frame(edge, across[0], max(updates), up[0], up[-1])
    grid = "".join(
        f'<path class="grid" d="M{edge} {frame.y(value)}H{WIDTH - RIGHT}"/>'
        f'<text x="{edge - 6}" y="{frame.y(value)}" dy="0.35em" text-anchor="end">{said}</text>'
        for value, said in zip(up, beside, strict=True)
    )
    below = "".join(
        f'<text x="{_inside(frame.x(u), label)}" y="{HEIGHT - BOTTOM + 15}" '
        f'text-anchor="middle">{label}</text>'
        for u in across
        if u <= frame.right
        for label in [_label(u, across)]
    )
    drawn = "".join(frame.line(line, n) for n, line in enumerate(lines))
    said = "; ".join(_said(line, digits) for line in lines)
    legend = ""
    if len(lines) > 1:
        keys = "".join(
            f'<li><svg viewBox="0 0 24 8" aria-hidden="true"><path class="line l{n}" d="M0 4H24"/>'
            f"</svg> {escape(line.name)}</li>"
            for n, line in enumerate(lines)
        )
        legend = f'<ul class="legend">{keys}</ul>'
    return (
        f'<figure class="chart"><figcaption>{escape(title)}</figcaption>'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="{name}-t {name}-d">'
        f'<title id="{name}-t">{escape(title)}</title><desc id="{name}-d">{escape(said)}.</desc>'
        f'{grid}{below}<text x="{(edge + WIDTH - RIGHT) / 2:.1f}" y="{HEIGHT - 4}" '
        f'text-anchor="middle">updates</text>{drawn}</svg>{legend}</figure>'
    )


@dataclass(frozen=True)
class _Frame:
    """From values to places in the picture."""

    edge: int
    """Where the lines begin, right of the labels."""
    left: float
    right: float
    low: float
    high: float

    def x(self, update: float) -> str:
        share = (update - self.left) / (self.right - self.left or 1)
        return f"{self.edge + share * (WIDTH - self.edge - RIGHT):.1f}"

    def y(self, value: float) -> str:
        share = (value - self.low) / (self.high - self.low or 1)
        return f"{HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM):.1f}"

    def line(self, line: Line, number: int) -> str:
        points = _thinned(line.points)
        places = [f"{self.x(update)} {self.y(value)}" for update, value in points]
        path = f'<path class="line l{number}" d="M{"L".join(places)}"/>'
        if len(points) <= 30:  # few were measured: show where
            path += "".join(
                f'<circle class="point l{number}" cx="{self.x(u)}" cy="{self.y(v)}" r="2.2"/>'
                for u, v in points
            )
        return path


def _inside(place: str, label: str) -> str:
    """The middle of a label that would otherwise reach over the right edge."""
    return f"{min(float(place), WIDTH - LETTER * len(label) / 2):.1f}"


def _thinned(points: Points) -> list[tuple[float, float]]:
    """Means of neighbours where there are many."""
    size = math.ceil(len(points) / POINTS)
    parts = [points[start : start + size] for start in range(0, len(points), size)]
    return [
        (math.fsum(u for u, _ in part) / len(part), math.fsum(v for _, v in part) / len(part))
        for part in parts
    ]


def _ticks(low: float, high: float, number: int, least: float = 0) -> list[float]:
    """Round values from at most ``low`` to at least ``high``, about so many steps."""
    if high <= low:
        high = low + (abs(low) or 1.0)
    raw = (high - low) / number
    power = 10.0 ** math.floor(math.log10(raw))
    step = max(least, next(s * power for s in (1, 2, 2.5, 5, 10) if s * power >= raw * 0.999))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [n * step for n in range(first, last + 1)]


def _label(value: float, ticks: Sequence[float]) -> str:
    step = ticks[1] - ticks[0]
    if abs(value) < step / 2:
        return "0"
    decimals = next((d for d in range(5) if abs(round(step, d) - step) < step * 1e-6), None)
    return f"{value:.1e}" if decimals is None else f"{value:,.{decimals}f}"


def _said(line: Line, digits: int) -> str:
    """The line in words, for those who do not see it."""
    (first_at, first), (last_at, last) = line.points[0], line.points[-1]
    low_at, low = min(line.points, key=lambda point: point[1])
    high_at, high = max(line.points, key=lambda point: point[1])
    return (
        f"{line.name}: {figure(first, digits)} at update {first_at:,}, {figure(last, digits)} at "
        f"update {last_at:,}; lowest {figure(low, digits)} at {low_at:,}, highest "
        f"{figure(high, digits)} at {high_at:,}"
    )
