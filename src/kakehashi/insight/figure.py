"""Where the parts of a figure of attention maps stand: cells, labels, titles, the scale.

Lengths are in inches.
"""

import math
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from kakehashi.insight.heatmap import Panel

CELL = 0.25
"""A weight's side, in figures that are not too large for it."""
LARGEST = 40.0
"""The longest side of all cells together; more pieces get smaller ones."""
LEGIBLE = 4.0
"""Points, the smallest type; where cells are smaller, only every second, third… piece is named."""
TYPE = 9.0
"""Points, the largest type."""
GAP = 0.2
"""Between panels."""
MARGIN = 0.08
"""Around the figure, and between a label and its map."""
BAR, BAR_WIDTH = 1.8, 0.1
"""The longest bar of the scale, and its width."""
MANY = 20_000
"""Cells from which on they are one image in an SVG or a PDF, which would be megabytes."""
GREYS = "Greys"
"""White for 0, black for the largest weight: prints well, and reads without colour."""


def figure_of_panels(
    panels: Sequence["Panel"], title: str, missing: set[str], across: int | None = None
) -> Figure:
    """The figure, with ``missing`` characters as numbers; its first axes are those of the panels.

    Labels that a panel shares with the one above it, or to its left, are not written again.

    Args:
        panels: one or more.
        title: a line above all of them.
        missing: characters that no font has.
        across: panels side by side; None: as many as make about a square.
    """
    across = min(across or math.ceil(math.sqrt(len(panels))), len(panels))
    cell = _cell(panels, across)
    measure = _Measure(min(TYPE, max(LEGIBLE, 0.75 * 72 * cell)), missing)
    places = _Places(panels, title, across, cell, measure)
    figure = Figure(figsize=(places.width, places.height))
    FigureCanvasAgg(figure)
    top = max(
        0.1, math.ceil(10 * max(float(np.asarray(p.weights).max()) for p in panels) - 1e-6) / 10
    )
    many = sum(len(panel.rows) * len(panel.columns) for panel in panels) > MANY
    for number, panel in enumerate(panels):
        x, y = places.corner(number)
        axes = figure.add_axes(places.box(x, y, len(panel.columns) * cell, len(panel.rows) * cell))
        _draw(axes, panel, top, cell, many)
        _name(axes, panel, places.named[number], measure, cell)
        if panel.title:
            measure.write(
                figure, panel.title, *places.at(x, y - places.head[number // places.across])
            )
    x, y = MARGIN + places.inner + GAP, places.corner(0)[1]
    bar = figure.add_axes(places.box(x, y, BAR_WIDTH, min(BAR, places.high[0])))
    figure.colorbar(ScalarMappable(Normalize(0, top), GREYS), cax=bar)
    bar.tick_params(labelsize=measure.small, width=0.5, length=2)
    bar.set_ylabel("weight", fontsize=measure.small)
    for spine in bar.spines.values():
        spine.set_linewidth(0.5)
    if title:
        measure.write(figure, title, *places.at(MARGIN, MARGIN))
    return figure


def _cell(panels: Sequence["Panel"], across: int) -> float:
    """The side of a cell: ``CELL``, or less where the cells would take more than ``LARGEST``."""
    lines = [panels[start : start + across] for start in range(0, len(panels), across)]
    wide = max(sum(len(panel.columns) for panel in line) for line in lines)
    high = sum(max(len(panel.rows) for panel in line) for line in lines)
    return min(CELL, LARGEST / wide, LARGEST / high)


class _Places:
    """A grid of panels: each column as wide as its widest labels and its widest map, rows alike."""

    def __init__(
        self, panels: Sequence["Panel"], title: str, across: int, cell: float, measure: "_Measure"
    ) -> None:
        self.across = across
        self.named = [
            (
                not number % across or panels[number - 1].rows != panel.rows,
                number < across or panels[number - across].columns != panel.columns,
            )
            for number, panel in enumerate(panels)
        ]
        """Whether each panel's rows, and its columns, are named."""
        lefts, heads = [], []
        for panel, (rows, columns) in zip(panels, self.named, strict=True):
            lefts.append(measure.longest(panel.rows) if rows else 0.0)
            titled = measure.line + MARGIN if panel.title else 0.0
            heads.append(titled + (measure.longest(panel.columns) if columns else 0.0))
        lines = range(0, len(panels), across)
        self.left = [max(lefts[start::across]) for start in range(across)]
        self.wide = [max(len(p.columns) for p in panels[a::across]) * cell for a in range(across)]
        self.head = [max(heads[start : start + across]) for start in lines]
        self.high = [max(len(p.rows) for p in panels[a : a + across]) * cell for a in lines]
        self.heading = measure.line + MARGIN if title else 0.0
        self.inner = sum(self.left) + sum(self.wide) + (across - 1) * GAP
        scale = BAR_WIDTH + 3.8 * measure.small / 72
        self.width = 2 * MARGIN + max(self.inner + GAP + scale, measure.wide(title))
        self.height = (
            2 * MARGIN + self.heading + sum(self.head) + sum(self.high) + (len(lines) - 1) * GAP
        )

    def corner(self, number: int) -> tuple[float, float]:
        """The upper left corner of a panel's map, from that of the figure."""
        row, column = divmod(number, self.across)
        x = sum(self.left[: column + 1]) + sum(self.wide[:column]) + column * GAP
        y = self.heading + sum(self.head[: row + 1]) + sum(self.high[:row]) + row * GAP
        return MARGIN + x, MARGIN + y

    def at(self, x: float, y: float) -> tuple[float, float]:
        """A place as matplotlib counts: from the lower left corner, in parts of the figure."""
        return x / self.width, 1 - y / self.height

    def box(
        self, x: float, y: float, width: float, height: float
    ) -> tuple[float, float, float, float]:
        """A rectangle as matplotlib counts, from its upper left corner."""
        left, bottom = self.at(x, y + height)
        return left, bottom, width / self.width, height / self.height


class _Measure:
    """How long text is in this type."""

    def __init__(self, points: float, missing: set[str]) -> None:
        self.points = points
        self.small = max(LEGIBLE, points - 2)
        self.missing = missing
        self.line = 1.25 * points / 72
        self._figure = Figure(dpi=300)
        FigureCanvasAgg(self._figure)

    def label(self, text: str) -> str:
        """The text on one line, characters without a glyph as numbers, controls left out."""
        shown = (f"U+{ord(c):04X} " if c in self.missing else c for c in text)
        return "".join(c for c in shown if len(c) > 1 or not _control(c)).strip()

    def wide(self, text: str) -> float:
        """The length of a text."""
        if not text:
            return 0.0
        drawn = self._figure.text(0, 0, self.label(text), fontsize=self.points, parse_math=False)
        return float(drawn.get_window_extent().width) / 300

    def write(self, figure: Figure, text: str, x: float, y: float) -> None:
        """Put a line below and right of a place."""
        figure.text(x, y, self.label(text), fontsize=self.points, parse_math=False, va="top")

    def longest(self, labels: Sequence[str]) -> float:
        """The room that labels take beside a map."""
        return max(map(self.wide, set(labels)), default=0.0) + MARGIN


def _control(character: str) -> bool:
    """Whether it is invisible; the two that decide whether letters are joined are needed."""
    return unicodedata.category(character) in ("Cc", "Cf") and character not in "\u200c\u200d"


def _draw(axes: Axes, panel: "Panel", top: float, cell: float, many: bool) -> None:
    """The cells, row 0 at the top."""
    axes.pcolormesh(
        np.asarray(panel.weights, dtype=np.float64),
        cmap=GREYS,
        vmin=0,
        vmax=top,
        edgecolors="0.88" if cell == CELL else "none",
        linewidth=0.4 if cell == CELL else 0,
        rasterized=many,
    )
    axes.invert_yaxis()
    for spine in axes.spines.values():
        spine.set_linewidth(0.6)


def _name(
    axes: Axes, panel: "Panel", named: tuple[bool, bool], measure: _Measure, cell: float
) -> None:
    """Row labels on the left and column labels above, where they are not those of a neighbour."""
    every = math.ceil(measure.points / (72 * cell))
    axes.xaxis.tick_top()
    axes.tick_params(length=0, pad=72 * MARGIN / 2)
    for own, labels, ticks, rotation in (
        (named[1], panel.columns, axes.set_xticks, 90),
        (named[0], panel.rows, axes.set_yticks, 0),
    ):
        shown = [measure.label(label) for label in labels[::every]] if own else []
        places = [at + 0.5 for at in range(0, len(labels), every)] if own else []
        ticks(places, shown, rotation=rotation, fontsize=measure.points, parse_math=False)
