"""Attention weights as a figure to print: which source piece each target piece looked at.

Rows are target pieces and columns source pieces, as in figure 3 of Bahdanau et al. (2015). There
white is a weight of one; here black is, so that a page that is mostly zeros stays mostly paper.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import matplotlib as mpl
import numpy as np
import numpy.typing as npt

from kakehashi.data.reading import write_bytes
from kakehashi.errors import ConfigError
from kakehashi.insight.figure import figure_of_panels
from kakehashi.insight.fonts import all_truetype, fonts_for, install_hint

FORMATS = (".png", ".pdf", ".svg")
RESOLUTION, PIXELS = 300, 6000
"""Of a PNG: dots an inch, and the most dots of its longer side, which may make them fewer."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Panel:
    """One map of a figure."""

    weights: npt.ArrayLike
    """[N M]: row n is a distribution over the columns."""
    rows: Sequence[str]
    """N labels."""
    columns: Sequence[str]
    """M labels."""
    title: str = ""
    """A line above the map."""


def heatmap(
    weights: npt.ArrayLike,
    source_labels: Sequence[str],
    target_labels: Sequence[str],
    path: str | Path,
    *,
    title: str = "",
) -> None:
    """Draw weights [N M] with N target and M source pieces as labels: a figure of one panel.

    See ``heatmaps``.
    """
    heatmaps([Panel(weights, target_labels, source_labels)], [path], title=title)


def heatmaps(
    panels: Sequence[Panel],
    paths: Sequence[str | Path],
    *,
    title: str = "",
    across: int | None = None,
) -> None:
    """Draw maps side by side in one figure, and write it to each path in its format.

    All panels share one scale, from 0 to their largest weight, rounded up to a tenth: the same grey
    is the same weight everywhere in a figure, and the bar beside it says which.

    The labels are literal text: nothing in them is taken for markup. Arabic is joined and
    right-to-left labels are written so. A character that no font has is written as its number
    (U+732B), and a warning says what to install for it. A PDF holds its fonts (as TrueType, Type
    42, where the fonts are TrueType) and its text can be searched; an SVG has letters as outlines,
    so that it looks the same where the fonts are missing, and its title and labels as text in its
    title and description. The same input gives the same bytes. Files appear whole or not at all.

    Args:
        panels: one or more, in reading order.
        paths: each ends in .png, .pdf or .svg.
        title: a line above the figure.
        across: panels side by side; None: as many as make about a square.

    Raises:
        ConfigError: for another kind of file.
        DataError: when a file cannot be written.
        ValueError: when there is no panel, or labels and weights differ in number.
    """
    if not panels:
        raise ValueError("there is no panel to draw")
    for panel in panels:
        if np.shape(panel.weights) != (len(panel.rows), len(panel.columns)):
            raise ValueError(
                f"weights {np.shape(panel.weights)} for {len(panel.rows)} target and "
                f"{len(panel.columns)} source pieces"
            )
    kinds = [picture_format(path) for path in paths]
    labels = [label for panel in panels for label in (*panel.rows, *panel.columns, panel.title)]
    families, missing = fonts_for([*labels, title])
    if missing:
        _log.warning(
            "no installed font has %s: written as numbers; for letters install a font (%s)",
            " ".join(sorted(missing)),
            install_hint(missing),
        )
    settings = mpl.rcParamsDefault | {
        "font.family": families,
        "text.usetex": False,
        # PostScript outlines in a Type 42 font are against the letter of PDF: some readers refuse.
        "pdf.fonttype": 42 if all_truetype(families) else 3,
        "svg.fonttype": "path",
        "svg.hashsalt": "kakehashi",
    }
    with mpl.rc_context(settings):
        figure = figure_of_panels(panels, title, missing, across)
        dpi = min(RESOLUTION, PIXELS / max(figure.get_size_inches()))
        contents = []
        for kind in kinds:
            content = BytesIO()
            figure.savefig(content, format=kind, dpi=dpi, metadata=_metadata(kind, panels, title))
            contents.append(content.getvalue())
    for path, written in zip(paths, contents, strict=True):
        write_bytes(path, written)


def picture_format(path: str | Path) -> str:
    """The kind of picture a file name asks for: png, pdf or svg.

    Raises:
        ConfigError: for another one.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise ConfigError(f"{path}: a picture's name ends in {', '.join(FORMATS)}")
    return suffix[1:]


def _metadata(kind: str, panels: Sequence[Panel], title: str) -> dict[str, str | None]:
    """What the file says of itself: for readers who cannot see it, and no date."""
    if kind == "png":
        return {"Title": title}
    if kind == "pdf":
        return {"Title": title, "CreationDate": None}
    parts = [f"{p.title} rows: {' '.join(p.rows)}; columns: {' '.join(p.columns)}" for p in panels]
    return {"Title": title, "Description": ". ".join(parts).strip(), "Date": None}
