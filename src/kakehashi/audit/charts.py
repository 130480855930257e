"""Histograms as SVG, drawn by hand: a few rectangles need no library and no script."""

from html import escape

from kakehashi.audit.lengths import Distribution
from kakehashi.audit.terminal import number

_WIDTH, _HEIGHT, _BOTTOM = 320, 90, 16


def histogram(lengths: Distribution) -> str:
    """One SVG element; colours come from the page's style sheet, so that dark pages work too."""
    top = max((*lengths.counts, 1))
    wide = _WIDTH / max(1, len(lengths.counts))
    bars = []
    for i, count in enumerate(lengths.counts):
        height = (_HEIGHT - _BOTTOM - 4) * count / top
        if count:
            height = max(height, 1.0)
        low, high = lengths.edges[i], lengths.edges[i + 1]
        last = i == len(lengths.counts) - 1
        between = f"{number(low)} and more" if last else f"{number(low)} to {number(high)}"
        bars.append(
            f'<rect x="{i * wide + 0.5:.1f}" y="{_HEIGHT - _BOTTOM - height:.1f}" '
            f'width="{max(1.0, wide - 1):.1f}" height="{height:.1f}">'
            f"<title>{between}: {count:,}</title></rect>"
        )
    middle = lengths.edges[len(lengths.edges) // 2]
    baseline = _HEIGHT - 4
    labels = (
        f'<text x="0" y="{baseline}">{number(lengths.edges[0])}</text>'
        f'<text x="{_WIDTH / 2}" y="{baseline}" text-anchor="middle">{number(middle)}</text>'
        f'<text x="{_WIDTH}" y="{baseline}" text-anchor="end">{number(lengths.edges[-2])}+</text>'
    )
    return (
        f'<svg class="histogram" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="Histogram: {escape(lengths.what)}">{"".join(bars)}'
        f'<line x1="0" x2="{_WIDTH}" y1="{_HEIGHT - _BOTTOM}" y2="{_HEIGHT - _BOTTOM}"/>'
        f"{labels}</svg>"
    )
