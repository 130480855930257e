"""Every head of a model in one picture: where its weight lies, and what it is worth."""

import io
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, ListedColormap, Normalize
from matplotlib.figure import Figure

from kakehashi.data.reading import write_bytes
from kakehashi.insight.ablation import Ablation, Cost
from kakehashi.insight.heads import HeadStudy, Look
from kakehashi.insight.heatmap import picture_format
from kakehashi.models.interface import Head

NAMES = {
    "encoder": "encoder\nself-attention",
    "decoder": "decoder\nself-attention",
    "cross": "cross-attention",
}
SHORT = {
    Look.previous: "prev",
    Look.same: "same",
    Look.next: "next",
    Look.first: "first",
    Look.end: "end",
    Look.punctuation: "punct",
    Look.aligned: "align",
    Look.aligned_input: "al. in",
}
BAR, UNIFORM = "#5b7fb5", "#8c0d1f"
WIDTH, HEIGHT = 2.1, 1.35
"""Inches of one head."""
DEAR = 0.4
"""How far into the colours the ground of a panel may go: bars and type stay readable on it."""


def draw_heads(
    studies: Sequence[HeadStudy],
    groups: Sequence[Sequence[Head]],
    ablation: Ablation | None,
    path: str | Path,
) -> None:
    """A panel for each head: bars are shares of its weight, dashes what all alike would give.

    Rows are layers, attention by attention; of several heads the ground is darker the more BLEU is
    lost without the head. The file appears whole or not at all.

    Args:
        studies: of every head.
        groups: what the ablation removed.
        ablation: what that cost; None leaves it out.
        path: ends in .png, .pdf or .svg.

    Raises:
        ConfigError: for another kind of file.
        DataError: when it cannot be written.
    """
    kind = picture_format(path)
    costs: dict[tuple[str, int, int], Cost] = {}
    if ablation is not None:
        for group, cost in zip(groups, ablation.costs, strict=True):
            if len(group) == 1:
                head = group[0]
                costs[head.attention, head.layer + 1, head.number + 1] = cost
    content = io.BytesIO()
    settings = mpl.rcParamsDefault | {"text.usetex": False, "svg.hashsalt": "kakehashi"}
    with mpl.rc_context(settings):
        _figure(studies, costs).savefig(
            content, format=kind, dpi=150, bbox_inches="tight", pad_inches=0.1
        )
    write_bytes(path, content.getvalue())


def _figure(studies: Sequence[HeadStudy], costs: dict[tuple[str, int, int], Cost]) -> Figure:
    layers = list(dict.fromkeys((s.attention, s.layer) for s in studies))
    columns = max(s.head for s in studies)
    figure = Figure(figsize=(max(2, columns) * WIDTH, len(layers) * HEIGHT), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(len(layers), columns, squeeze=False)
    highest = max([0.1, *(cost.loss for cost in costs.values())])
    ground = ScalarMappable(Normalize(0, highest / DEAR), "YlOrBr")
    for row in panels:
        for axes in row:
            axes.set_visible(False)
    for study in studies:
        row = layers.index((study.attention, study.layer))
        axes = panels[row, study.head - 1]
        axes.set_visible(True)
        cost = costs.get((study.attention, study.layer, study.head))
        _panel(axes, study, cost, ground if len(costs) > 1 else None)
        if study.head == 1:
            axes.set_ylabel(f"{NAMES[study.attention]}\nlayer {study.layer}", fontsize=7)
    figure.suptitle("bars: share of the weight, %   lines: all places alike", fontsize=8)
    if len(costs) > 1:
        shown = ScalarMappable(Normalize(0, highest), _light(ground))
        bar = figure.colorbar(shown, ax=panels.ravel().tolist(), shrink=0.5, aspect=30)
        bar.set_label("BLEU lost without the head", fontsize=8)
        bar.ax.tick_params(labelsize=7)
    return figure


def _light(ground: ScalarMappable) -> Colormap:
    """The part of the colours that panels use."""
    colours = ground.get_cmap()
    steps = [colours(DEAR * step / 255) for step in range(256)]
    return ListedColormap(steps)


def _panel(axes: Axes, study: HeadStudy, cost: Cost | None, ground: ScalarMappable | None) -> None:
    looks = list(study.shares)
    places = range(len(looks))
    shares = [study.shares[look] for look in looks]
    axes.bar(places, [100 * share.weight for share in shares], color=BAR, width=0.7)
    axes.hlines(
        [100 * share.uniform for share in shares],
        [place - 0.45 for place in places],
        [place + 0.45 for place in places],
        colors=UNIFORM,
        linewidth=1.5,
    )
    axes.set_ylim(0, 100)
    axes.set_yticks([0, 50, 100])
    axes.tick_params(labelsize=6, length=2)
    axes.set_xticks(list(places), [SHORT[look] for look in looks], fontsize=6, rotation=45)
    title = f"head {study.head}"
    if study.kind is not None:
        title += f": {study.kind}"
    if cost is not None:
        title += f"  ({-cost.loss:+.1f})"
    axes.set_title(title, fontsize=7.5, fontweight="bold" if study.kind else "normal")
    if cost is not None and ground is not None:
        red, green, blue, _ = ground.to_rgba(np.array([max(0.0, cost.loss)]))[0]
        axes.set_facecolor((float(red), float(green), float(blue)))
