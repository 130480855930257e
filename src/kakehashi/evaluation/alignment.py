"""How good word alignments are against links that people made.

Och and Ney (2003), "A Systematic Comparison of Various Statistical Alignment Models", equations 4
and 5: with links A, sure links S and possible links P (S among them),

    precision = |A n P| / |A|    recall = |A n S| / |S|
    AER = 1 - (|A n S| + |A n P|) / (|A| + |S|)

over all sentence pairs together, not the mean of theirs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kakehashi.errors import EvaluationError
from kakehashi.evaluation.bootstrap import interval
from kakehashi.evaluation.links import Gold, Links
from kakehashi.evaluation.metrics import SEED


@dataclass(frozen=True)
class AlignmentScore:
    """All in percent."""

    aer: float
    """Alignment error rate; less is better."""
    precision: float
    """Of the links that were found; 100 where none was."""
    recall: float
    """Of the sure links."""
    low: float
    """Bounds of the 95 % bootstrap interval of the AER, over sentence pairs."""
    high: float
    links: int
    """How many were found."""
    pairs: int

    def __str__(self) -> str:
        return (
            f"AER {self.aer:.1f} (95 % interval {self.low:.1f} to {self.high:.1f}), precision "
            f"{self.precision:.1f}, recall {self.recall:.1f}: {self.links:,} links in "
            f"{self.pairs:,} sentence pairs"
        )


def alignment_score(
    found: Sequence[Links], gold: Sequence[Gold], n_samples: int = 1000
) -> AlignmentScore:
    """The verdict on the alignments of a test set.

    Args:
        found: of each sentence pair.
        gold: of the same pairs.
        n_samples: resampled sets behind the interval.

    Raises:
        EvaluationError: for unequal counts, and for gold without a sure link.
    """
    if len(found) != len(gold):
        raise EvaluationError(
            f"alignments of {len(found):,} sentence pairs and gold of {len(gold):,}: they must be "
            "the same pairs, line by line"
        )
    counts = np.array(
        [
            (len(links), len(links & g.sure), len(links & g.possible), len(g.sure))
            for links, g in zip(found, gold, strict=True)
        ],
        dtype=np.float64,
    ).reshape(-1, 4)
    links, sure, possible, wanted = counts.sum(axis=0)
    if not wanted:
        raise EvaluationError("the gold alignments hold no sure link: there is nothing to find")
    generator = np.random.default_rng(SEED)
    samples = np.empty(n_samples)
    for sample in range(n_samples):
        drawn = generator.integers(len(counts), size=len(counts))
        samples[sample] = _aer(counts[drawn].sum(axis=0))
    low, high = interval(samples)
    return AlignmentScore(
        aer=_aer(counts.sum(axis=0)),
        precision=100 * possible / links if links else 100.0,
        recall=100 * sure / wanted,
        low=low,
        high=high,
        links=int(links),
        pairs=len(counts),
    )


def _aer(counts: np.ndarray) -> float:
    links, sure, possible, wanted = counts
    total = links + wanted
    return float(100 * (1 - (sure + possible) / total)) if total else 100.0
