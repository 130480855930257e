"""Attention weights as a picture: which source piece each target piece looked at.

Rows are target pieces and columns source pieces, as in figure 3 of Bahdanau et al. (2015).
"""

import io
import logging
import math
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from kakehashi.data.reading import write_bytes
from kakehashi.errors import ConfigError
from kakehashi.insight.fonts import fonts_for, install_hint

FORMATS = (".png", ".pdf", ".svg")
CELL = 0.3
"""Inches a weight, in pictures that are not too large for it."""
LARGEST = 40.0
"""Inches, the longest side of the grid; more pieces get smaller cells."""
LEGIBLE = 4.0
"""Points, the smallest type; where cells are smaller, only every second, third… piece is named."""

_log = logging.getLogger(__name__)


def heatmap(
    weights: npt.ArrayLike,
    source_labels: Sequence[str],
    target_labels: Sequence[str],
    path: str | Path,
    *,
    title: str = "",
) -> None:
    """Draw weights [N M] with N target and M source pieces as labels, dark where they are large.

    The labels are literal text: nothing in them is taken for markup. A character that no installed
    font has is written as its number (U+732B), and a warning names the package with a font for it.
    The file appears whole or not at all.

    Args:
        weights: rows are distributions over the source pieces.
        source_labels: M pieces.
        target_labels: N pieces.
        path: ends in .png, .pdf or .svg.
        title: a line above the picture.

    Raises:
        ConfigError: for another kind of file.
        DataError: when the file cannot be written.
        ValueError: when labels and weights differ in number.
    """
    values = np.asarray(weights, dtype=np.float64)
    if values.shape != (len(target_labels), len(source_labels)):
        raise ValueError(
            f"weights {values.shape} for {len(target_labels)} target and "
            f"{len(source_labels)} source pieces"
        )
    kind = picture_format(path)
    families, missing = fonts_for([*source_labels, *target_labels, title])
    if missing:
        _log.warning(
            "no installed font has %s: written as numbers; for letters install a font (Debian, "
            "Ubuntu: apt install %s)",
            " ".join(sorted(missing)),
            install_hint(missing),
        )
    settings = mpl.rcParamsDefault | {"font.family": families, "text.usetex": False}
    content = io.BytesIO()
    with mpl.rc_context(settings):
        figure = _figure(
            values,
            [_label(text, missing) for text in source_labels],
            [_label(text, missing) for text in target_labels],
            _label(title, missing),
        )
        figure.savefig(content, format=kind, dpi=150, bbox_inches="tight", pad_inches=0.1)
    write_bytes(path, content.getvalue())


def picture_format(path: str | Path) -> str:
    """The kind of picture a file name asks for: png, pdf or svg.

    Raises:
        ConfigError: for another one.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise ConfigError(f"{path}: a picture's name ends in {', '.join(FORMATS)}")
    return suffix[1:]


def _figure(
    values: npt.NDArray[np.float64], source: list[str], target: list[str], title: str
) -> Figure:
    rows, columns = values.shape
    cell = min(CELL, LARGEST / max(rows, columns))
    width, height = columns * cell, rows * cell
    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    image = axes.imshow(values, cmap="Blues", vmin=0, aspect="auto", interpolation="nearest")
    _name_pieces(axes, source, target, cell)
    if cell == CELL:
        _rule(axes, rows, columns)
    bar = figure.add_axes((1 + CELL / width, 0, 0.5 * CELL / width, 1))
    figure.colorbar(image, cax=bar).set_label("weight", fontsize=10)
    bar.tick_params(labelsize=8)
    if title:
        axes.set_title(title, fontsize=10, parse_math=False, loc="left")
    return figure


def _name_pieces(axes: Axes, source: list[str], target: list[str], cell: float) -> None:
    """Source pieces above the columns, target pieces left of the rows."""
    points = min(10.0, max(LEGIBLE, 0.75 * 72 * cell))
    every = math.ceil(points / (72 * cell))
    columns, rows = range(0, len(source), every), range(0, len(target), every)
    axes.set_xticks(columns, source[::every], rotation=90, fontsize=points, parse_math=False)
    axes.set_yticks(rows, target[::every], fontsize=points, parse_math=False)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)


def _rule(axes: Axes, rows: int, columns: int) -> None:
    """Thin lines between the cells."""
    axes.set_xticks(np.arange(columns + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(rows + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="0.85", linewidth=0.5)
    axes.tick_params(which="minor", length=0)


def _label(text: str, missing: set[str]) -> str:
    """The text on one line, characters without a glyph as numbers, controls left out."""
    shown = (f"U+{ord(c):04X} " if c in missing else c for c in text)
    return "".join(
        c for c in shown if len(c) > 1 or unicodedata.category(c) not in ("Cc", "Cf")
    ).strip()
