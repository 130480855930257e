"""How long the sentences are, and pairs whose lengths do not belong together."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kakehashi.audit.findings import Finding, Hits, Text

QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)
_BINS = 30
_OUTLIER = 5.0
"""Standard deviations from the corpus's own ratio."""
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")

Counts = NDArray[np.int64]
Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Distribution:
    """Lengths of the sentences of one side, or their ratios."""

    what: str
    mean: float
    quantiles: tuple[tuple[float, float], ...]
    """(q, value) for the q of QUANTILES."""
    edges: tuple[float, ...]
    """Borders of the histogram's bins, one more than `counts`; the last bin has the rest."""
    counts: tuple[int, ...]

    @classmethod
    def of(cls, what: str, values: NDArray[np.float64] | Counts) -> "Distribution":
        """Of at least one value. Bins reach to the 99.5 % quantile, and the rest is in the last."""
        values = np.asarray(values, np.float64)
        low, high = np.quantile(values, (0.0, 0.995))
        if np.all(values == np.round(values)):
            # Whole numbers: bins of the same whole width, so that none has more numbers in it.
            width = max(1.0, np.ceil((high - low + 1) / _BINS))
            edges = np.asarray(np.arange(low, high + width + 1, width), np.float64)
        else:
            edges = np.asarray(np.linspace(low, max(high, low + 1e-9), _BINS + 1), np.float64)
        counts, _ = np.histogram(np.minimum(values, np.nextafter(edges[-1], low)), edges)
        return cls(
            what,
            float(values.mean()),
            tuple(
                (q, float(v))
                for q, v in zip(QUANTILES, np.quantile(values, QUANTILES), strict=True)
            ),
            tuple(map(float, edges)),
            tuple(map(int, counts)),
        )


def characters(side: Sequence[str]) -> Counts:
    """Characters of each sentence."""
    return np.fromiter(map(len, side), np.int64, len(side))


def words(side: Sequence[str]) -> Counts:
    """Words between spaces of each sentence."""
    return np.fromiter((len(line.split()) for line in side), np.int64, len(side))


def spaced(side: Sequence[str]) -> bool:
    """Whether words stand between spaces: not in Chinese, Japanese, Thai and the like."""
    step = max(1, len(side) // 1000)
    sample = "".join(side[i] for i in range(0, len(side), step))
    return len(_UNSPACED.findall(sample)) < 0.2 * max(1, len(sample))


def distributions(text: Text) -> list[Distribution]:
    """Characters and (where spaces divide them) words of both sides, and the ratio of lengths."""
    found = []
    for name, side, _ in text.sides():
        if not len(side):
            continue
        found.append(Distribution.of(f"{name}, characters", characters(side)))
        if spaced(side):
            found.append(Distribution.of(f"{name}, words", words(side)))
    source, target = (characters(side)[: len(text)] for side in (text.source, text.target))
    kept = (source > 0) & (target > 0)
    if kept.any():
        ratios = target[kept] / source[kept]
        found.append(Distribution.of("target / source, characters", ratios))
    return found


def surprise(source: Counts, target: Counts) -> Numbers:
    """How far each pair's lengths are from belonging together, in standard deviations.

    Gale and Church (1993), equation 1: (target - c source) / sqrt(source s^2), with the c and s^2
    of this corpus. Both are estimated from medians, so that misaligned pairs do not count much.
    The two sides play the same part: the mean of both lengths, in source characters, stands below
    the root. Pairs without a text on one side have 0.
    """
    kept = (source > 0) & (target > 0)
    if not kept.any():
        return np.zeros(len(source))
    c = float(np.median(target[kept] / source[kept]))
    scale = np.sqrt(np.maximum(1.0, (source + target / c) / 2))
    delta = np.where(kept, (target / c - source) / scale, 0.0)
    centre = float(np.median(delta[kept]))
    # The median of |z| of a normal distribution is 0.6745.
    spread = float(np.median(np.abs(delta[kept] - centre))) / 0.6745
    return np.where(kept, (delta - centre) / max(spread, 0.25), 0.0)


def ratio_outliers(text: Text) -> Iterator[Finding]:
    """Pairs of which one side is far longer than the other one calls for."""
    n = len(text)
    source, target = (characters(side)[:n] for side in (text.source, text.target))
    deviations = surprise(source, target)
    found = np.flatnonzero(np.abs(deviations) > _OUTLIER)
    if not len(found):
        return
    hits = Hits()
    # The worst first: they are what one wants to see.
    for i in found[np.argsort(-np.abs(deviations[found]), kind="stable")].tolist():
        hits.add(i, f"{source[i]:,} and {target[i]:,} characters")
    yield hits.finding(
        text,
        "lengths.ratio",
        "warning" if len(found) > 0.01 * n else "note",
        f"pairs whose lengths do not belong together (more than {_OUTLIER:g} standard deviations)",
        "both",
        "often half a translation, or two sentences against one; the worst are shown first",
    )
